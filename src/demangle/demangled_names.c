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

/* Sets TEXT to the readable form of NAME. DTrace has the module in front: libx.so`_ZN1f1gEv. */
static bool make_readable(struct slice name, struct buffer *text)
{
    const char *linker_name = (const char *)name.data;
    const char *tick = is_mangled(linker_name) ? NULL : strchr(linker_name, '`');
    if (!tick || !is_mangled(tick + 1))
        return is_mangled(linker_name) ? demangle(linker_name, text) : demangle_hashed(name, text);
    struct buffer module;
    buffer_init(&module, PROFILE_STRING_BYTES_MAX);
    bool is_readable = demangle(tick + 1, text);
    buffer_append(&module, name.data, (size_t)(tick + 1 - linker_name));
    buffer_append_text(&module, is_readable ? (const char *)text->data : "");
    buffer_append_byte(&module, 0);
    is_readable = is_readable && !module.failed;
    if (is_readable) {
        buffer_fini(text);
        *text = module;
    } else {
        buffer_fini(&module);
    }
    return is_readable;
}

void profile_demangle(struct profile *profile)
{
    struct buffer text;
    buffer_init(&text, PROFILE_STRING_BYTES_MAX);
    for (size_t i = 1; i < profile->functions.count; i++) {
        struct function *function = &profile->functions.items[i];
        struct string_id known = function->name.index ? function->name : function->system_name;
        if (!make_readable(profile_slice(profile, known), &text)) continue;
        struct string_id readable = profile_text(profile, (const char *)text.data);
        if (function->system_name.index == 0) function->system_name = known;
        function->name = readable;
    }
    buffer_fini(&text);
}
