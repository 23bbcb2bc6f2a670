/* SPDX-License-Identifier: MIT */
#include "demangle/demangled_names.h"

#include "demangle/demangler.h"

/* Whether NAME begins as mangled names of C++, Rust and D do. */
static bool is_mangled(const char *name)
{
    if (name[0] != '_') return false;
    size_t underscores = name[1] == '_' ? 2 : 1;
    char mark = name[underscores];
    return mark == 'Z' || mark == 'R' || (mark == 'D' && underscores == 1);
}

void profile_mangle(struct profile *profile)
{
    for (size_t i = 1; i < profile->functions.count; i++) {
        struct function *function = &profile->functions.items[i];
        bool is_linker_name = is_mangled(profile_c_string(profile, function->system_name)) ||
                              name_has_hash(profile_slice(profile, function->system_name));
        if (is_linker_name) function->name = function->system_name;
    }
}

void profile_demangle(struct profile *profile)
{
    struct buffer text;
    buffer_init(&text, PROFILE_STRING_BYTES_MAX);
    for (size_t i = 1; i < profile->functions.count; i++) {
        struct function *function = &profile->functions.items[i];
        struct string_id known = function->name.index ? function->name : function->system_name;
        const char *name = profile_c_string(profile, known);
        bool is_readable =
            is_mangled(name) ? demangle(name, &text) : demangle_hashed(profile_slice(profile, known), &text);
        if (!is_readable) continue;
        struct string_id readable = profile_text(profile, (const char *)text.data);
        if (function->system_name.index == 0) function->system_name = known;
        function->name = readable;
    }
    buffer_fini(&text);
}
