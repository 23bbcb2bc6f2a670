/* SPDX-License-Identifier: MIT */
#include "profile/packages.h"

#include "base/buffer.h"
#include "profile/profile_private.h"

#include <stdlib.h>

/* The first package that has a name, and how another one differs. */
struct use {
    uint32_t package;
    bool has_several, has_equal_ends;
};

static struct slice last_part(struct slice path)
{
    const uint8_t *slash = path.size ? memrchr(path.data, '/', path.size) : NULL;
    return slash ? slice_of(slash + 1, path.size - (size_t)(slash + 1 - path.data)) : path;
}

static struct string_id package_of(const struct profile *profile, const struct location *location,
                                   const struct function *function, bool only_unmapped)
{
    struct string_id file = profile_mapping(profile, location->mapping)->file_name;
    if (function->module.index != 0 || (only_unmapped && location->mapping.index != 0)) return (struct string_id){0};
    return file.index != 0 ? file : function->package;
}

static struct string_id name_of(const struct function *function)
{
    return function->name.index != 0 ? function->name : function->system_name;
}

static void note_use(const struct profile *profile, struct use *use, struct string_id package)
{
    if (package.index == 0 || use->package == package.index) return;
    if (use->package == 0) {
        use->package = package.index;
        return;
    }
    struct slice first = last_part(profile_slice(profile, (struct string_id){use->package}));
    use->has_several = true;
    use->has_equal_ends |= slice_equal(first, last_part(profile_slice(profile, package)));
}

static void note_uses(const struct profile *profile, struct use *uses, bool only_unmapped)
{
    for (size_t i = 1; i < profile->locations.count; i++) {
        const struct location *location = &profile->locations.items[i];
        const struct line *lines = profile_lines(profile, location);
        for (uint32_t k = 0; k < location->line_count; k++) {
            const struct function *function = profile_function(profile, lines[k].function);
            struct use *use = &uses[name_of(function).index];
            note_use(profile, use, package_of(profile, location, function, only_unmapped));
        }
    }
}

static struct string_id name_with(struct profile *profile, struct string_id name, struct slice package)
{
    struct buffer text;
    struct slice known = profile_slice(profile, name);
    bool has_brackets = package.size > 0 && package.data[0] == '['; /* [kernel.kallsyms] */
    buffer_init(&text, PROFILE_STRING_BYTES_MAX);
    buffer_append(&text, known.data, known.size);
    buffer_append_text(&text, has_brackets ? " " : " [");
    buffer_append(&text, package.data, package.size);
    if (!has_brackets) buffer_append_byte(&text, ']');
    struct string_id id = text.failed ? name : profile_string(profile, buffer_slice(&text));
    buffer_fini(&text);
    return id;
}

static void rename_line(struct profile *profile, struct line *line, const struct use *use, struct string_id package)
{
    struct function function = *profile_function(profile, line->function);
    struct slice path = profile_slice(profile, package);
    struct string_id name = name_of(&function);
    if (function.system_name.index == 0) function.system_name = name;
    function.name = name_with(profile, name, use->has_equal_ends ? path : last_part(path));
    line->function = profile_add_function(profile, &function);
}

static void rename_lines(struct profile *profile, const struct use *uses, bool only_unmapped)
{
    for (size_t i = 1; i < profile->locations.count; i++) {
        const struct location *location = &profile->locations.items[i];
        for (uint32_t k = 0; k < location->line_count; k++) {
            struct line *line = &profile->lines.items[location->line_first + k];
            const struct function *function = profile_function(profile, line->function);
            struct string_id name = name_of(function);
            const struct use *use = &uses[name.index];
            struct string_id package = package_of(profile, location, function, only_unmapped);
            if (use->has_several && name.index != 0 && package.index != 0) rename_line(profile, line, use, package);
        }
    }
}

void profile_distinguish_packages(struct profile *profile, bool only_unmapped)
{
    struct use *uses = calloc(profile->strings.count + 1, sizeof(*uses));
    if (!uses) {
        profile_fail(profile, STATUS_NO_MEMORY);
        return;
    }
    note_uses(profile, uses, only_unmapped);
    rename_lines(profile, uses, only_unmapped);
    free(uses);
}
