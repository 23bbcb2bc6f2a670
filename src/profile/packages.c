/* SPDX-License-Identifier: MIT */
#include "profile/packages.h"

#include "base/array.h"
#include "base/buffer.h"
#include "base/hash.h"
#include "profile/comparable_name.h"
#include "profile/profile_private.h"
#include "profile/same_modules.h"

#include <ctype.h>
#include <stdlib.h>

/* Counts the packages of a name: the first one, and how another one differs. */
struct name_use {
    uint32_t package;
    bool has_several, has_equal_ends;
    uint32_t renamed_from, renamed_into; /* packages of the base and of the new side that are one for this name; or 0 */
};

/* A name in a package. */
struct package_use {
    uint32_t name, package;
    uint64_t users; /* sides of the comparison */
};

struct namer {
    struct profile *profile;
    const struct package_naming *naming;
    struct same_modules modules;
    struct name_use *names; /* uses of names, by string */
    struct package_use *uses;
    size_t use_count, use_capacity;
    struct index_table use_index;
};

/* Returns the package that stands for the frame's, or 0 if the frame needs none. */
static uint32_t package_of(const struct namer *namer, const struct location *location, struct function_id function)
{
    if (profile_function(namer->profile, function)->module.index != 0 ||
        (namer->naming->only_unmapped && location->mapping.index != 0))
        return 0;
    struct string_id package = package_of_frame(&namer->modules, namer->profile, location, function);
    return same_modules_package(&namer->modules, package).index;
}

static struct string_id name_of(const struct function *function)
{
    return function->name.index != 0 ? function->name : function->system_name;
}

/* Returns the text in brackets after a name if only one package of the name ends so. */
static struct slice short_package(const struct namer *namer, uint32_t package)
{
    const struct profile *profile = namer->profile;
    if (namer->naming->compares) return profile_slice(profile, (struct string_id){namer->modules.keys[package]});
    return path_base_name(profile_slice(profile, (struct string_id){package}));
}

static void note_use(const struct namer *namer, struct name_use *use, uint32_t package)
{
    if (package == use->renamed_from && package != 0) package = use->renamed_into;
    if (package == 0 || use->package == package) return;
    if (use->package == 0) {
        use->package = package;
        return;
    }
    use->has_several = true;
    use->has_equal_ends |= slice_equal(short_package(namer, use->package), short_package(namer, package));
}

typedef void visit_frame(struct namer *namer, uint32_t location, struct line *line);

static void visit_frames(struct namer *namer, visit_frame *visit)
{
    struct profile *profile = namer->profile;
    for (uint32_t i = 1; i < profile->locations.count; i++) {
        const struct location location = profile->locations.items[i];
        for (uint32_t k = 0; k < location.line_count; k++)
            visit(namer, i, &profile->lines.items[location.line_first + k]);
    }
}

static void note_frame(struct namer *namer, uint32_t location, struct line *line)
{
    const struct function *function = profile_function(namer->profile, line->function);
    struct name_use *use = &namer->names[name_of(function).index];
    note_use(namer, use, package_of(namer, &namer->profile->locations.items[location], line->function));
}

/* --- Comparisons: modules with another name ----------------------------------------------------------------------- */

static bool is_package_use(const void *context, uint32_t index, const void *key)
{
    const struct package_use *a = &((const struct namer *)context)->uses[index], *b = key;
    return a->name == b->name && a->package == b->package;
}

/* Notes which side has the frame's name in the frame's package, if several packages have the name. */
static void note_side(struct namer *namer, uint32_t location, struct line *line)
{
    const struct function *function = profile_function(namer->profile, line->function);
    struct package_use use = {.name = name_of(function).index,
                              .package = package_of(namer, &namer->profile->locations.items[location], line->function)};
    if (!namer->names[use.name].has_several || use.package == 0) return;
    uint64_t hash = hash_mix(use.name, use.package);
    uint32_t index = index_table_find(&namer->use_index, hash, is_package_use, namer, &use);
    if (index == INDEX_NONE) {
        index = (uint32_t)namer->use_count;
        if (!array_reserve(&namer->uses, &namer->use_capacity, namer->use_count + 1, sizeof(use),
                           PROFILE_ENTITIES_MAX) ||
            !index_table_add(&namer->use_index, hash, index)) {
            profile_fail(namer->profile, STATUS_NO_MEMORY);
            return;
        }
        namer->uses[namer->use_count++] = use;
    }
    namer->uses[index].users |= namer->modules.users[location];
}

/* A name that each side has in one package that the other side does not have is that of a renamed module, or of a
 * function that was moved to another module. */
static void join_renamed(struct namer *namer)
{
    static const uint32_t several = UINT32_MAX;
    visit_frames(namer, note_side);
    for (size_t i = 0; i < namer->use_count; i++) {
        const struct package_use *use = &namer->uses[i];
        struct name_use *name = &namer->names[use->name];
        uint32_t *package = use->users == USED_BY_BASE  ? &name->renamed_from
                            : use->users == USED_BY_NEW ? &name->renamed_into
                                                        : NULL;
        if (package) *package = *package == 0 ? use->package : several;
    }
    for (size_t i = 0; i < namer->use_count; i++) {
        struct name_use *name = &namer->names[namer->uses[i].name];
        bool is_renamed = name->renamed_from != 0 && name->renamed_into != 0 && name->renamed_from != several &&
                          name->renamed_into != several;
        *name = is_renamed ? (struct name_use){.renamed_from = name->renamed_from, .renamed_into = name->renamed_into}
                           : (struct name_use){0};
    }
    for (size_t i = 0; i < namer->use_count; i++)
        note_use(namer, &namer->names[namer->uses[i].name], namer->uses[i].package);
}

/* --- Comparisons: frames without a name --------------------------------------------------------------------------- */

/* Gives the frame of LOCATION, which has no name of its own, the name in TEXT. */
static struct string_id name_location(struct profile *profile, uint32_t location, const struct buffer *text)
{
    struct function function = {.name = profile_string(profile, buffer_slice(text))};
    struct line line = {.function = profile_add_function(profile, &function)};
    profile_set_lines(profile, (struct location_id){location}, &line, 1);
    return function.name;
}

/* Names the frame of LOCATION by its module alone, "[libx.so]", or "<unknown>" without a module. */
static void name_by_module(struct namer *namer, uint32_t location, uint32_t package, struct buffer *text)
{
    struct slice module = profile_slice(namer->profile, (struct string_id){namer->modules.keys[package]});
    bool has_brackets = module.size > 0 && module.data[0] == '[';
    buffer_clear(text);
    if (package == 0)
        buffer_append_text(text, "<unknown>");
    else
        buffer_append_format(text, has_brackets ? "%.*s" : "[%.*s]", SLICE_ARGUMENTS(module));
    (void)name_location(namer->profile, location, text);
}

static uint32_t module_of(const struct namer *namer, uint32_t location)
{
    const struct mapping *mapping = profile_mapping(namer->profile, namer->profile->locations.items[location].mapping);
    return same_modules_package(&namer->modules, mapping->file_name).index;
}

/* Splits NAME, "libx.so.1+0x1234". Returns the size of the module's name; 0: NAME is of another form. */
static size_t split_placeholder(struct slice name, uint64_t *ret_offset)
{
    const uint8_t *plus = name.size > 0 ? memrchr(name.data, '+', name.size) : NULL;
    size_t size = plus ? (size_t)(plus - name.data) : 0, place = size + strlen("+0x");
    if (size == 0 || place >= name.size || memcmp(plus, "+0x", strlen("+0x")) != 0) return 0;
    uint64_t offset = 0;
    for (; place < name.size && isxdigit(name.data[place]) && offset >> 60 == 0; place++) {
        uint8_t digit = name.data[place];
        offset = offset << 4 | (uint64_t)(isdigit(digit) ? digit - '0' : (digit | 0x20) - 'a' + 10);
    }
    *ret_offset = offset;
    return place == name.size ? size : 0;
}

/* Gives the placeholder of LOCATION (profile/placeholder.h) the module's name without version: "libx.so+0x1234".
 * Returns its id; 0: LOCATION has none. Its module may have another name than the mapping, which was merged with that
 * of an equal file; then the offset must be in the mapping's segment, not in a function. */
static uint32_t name_placeholder(struct namer *namer, uint32_t index, struct buffer *text)
{
    struct profile *profile = namer->profile;
    const struct location *location = &profile->locations.items[index];
    uint32_t package = module_of(namer, index);
    if (package == 0 || location->line_count != 1 || location->address == 0) return 0;
    struct string_id name = profile_function(profile, profile_lines(profile, location)->function)->name;
    struct slice known = profile_slice(profile, name), module = short_package(namer, package);
    uint64_t offset, segment = profile_mapping(profile, location->mapping)->file_offset;
    size_t size = split_placeholder(known, &offset);
    if (size == 0) return 0;
    buffer_clear(text);
    comparable_module_append(slice_of(known.data, size), text);
    bool is_of_module = slice_equal(buffer_slice(text), module) || (segment > 0 && offset >= segment);
    if (!is_of_module) return 0;
    buffer_clear(text);
    buffer_append(text, module.data, module.size);
    buffer_append(text, known.data + size, known.size - size);
    return slice_equal(buffer_slice(text), known) ? name.index : name_location(profile, index, text).index;
}

/* Whether LOCATION is an address or a placeholder, which only one build has, or one run where no mapping is known.
 * SIDES has the sides that use each placeholder: builds that have the same one have a function at the same address. */
static bool is_of_one_build(const struct namer *namer, uint32_t index, uint32_t placeholder, const uint64_t *sides)
{
    const struct profile *profile = namer->profile;
    const struct location *location = &profile->locations.items[index];
    bool is_raw = location->line_count == 0 || profile_lines(profile, location)->function.index == 0;
    if (location->mapping.index == 0)
        return is_raw && location->address != 0 && namer->modules.users[index] != USED_BY_BOTH;
    if (!namer->modules.has_builds[module_of(namer, index)]) return false;
    return is_raw || (placeholder != 0 && sides[placeholder] != USED_BY_BOTH);
}

static void name_unnamed(struct namer *namer)
{
    struct profile *profile = namer->profile;
    struct buffer text;
    uint32_t *placeholders = calloc(profile->locations.count + 1, sizeof(*placeholders));
    buffer_init(&text, PROFILE_STRING_BYTES_MAX);
    for (uint32_t i = 1; placeholders && i < profile->locations.count; i++)
        placeholders[i] = name_placeholder(namer, i, &text);
    uint64_t *sides = calloc(profile->strings.count + 1, sizeof(*sides));
    bool has_memory = placeholders && sides;
    for (uint32_t i = 1; has_memory && namer->naming->is_base && i < profile->locations.count; i++)
        sides[placeholders[i]] |= namer->modules.users[i];
    for (uint32_t i = 1; has_memory && namer->naming->is_base && i < profile->locations.count; i++) {
        if (is_of_one_build(namer, i, placeholders[i], sides)) name_by_module(namer, i, module_of(namer, i), &text);
    }
    buffer_fini(&text);
    free(placeholders);
    free(sides);
    if (!has_memory) profile_fail(profile, STATUS_NO_MEMORY);
}

/* --- Names -------------------------------------------------------------------------------------------------------- */

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

static void rename_frame(struct namer *namer, uint32_t location, struct line *line)
{
    struct profile *profile = namer->profile;
    struct function function = *profile_function(profile, line->function);
    struct string_id name = name_of(&function);
    const struct name_use *use = &namer->names[name.index];
    uint32_t package = package_of(namer, &profile->locations.items[location], line->function);
    if (package == 0 || name.index == 0 || !use->has_several) return;
    if (package == use->renamed_from) package = use->renamed_into;
    struct slice path = profile_slice(profile, (struct string_id){package});
    if (function.system_name.index == 0) function.system_name = name;
    function.name = name_with(profile, name, use->has_equal_ends ? path : short_package(namer, package));
    line->function = profile_add_function(profile, &function);
}

void profile_distinguish_packages(struct profile *profile, const struct package_naming *naming)
{
    struct namer namer = {.profile = profile, .naming = naming};
    bool has_modules = same_modules_find(&namer.modules, profile, naming->is_base);
    if (has_modules && naming->compares) name_unnamed(&namer);
    namer.names = calloc(profile->strings.count + 1, sizeof(*namer.names));
    if (has_modules && namer.names) {
        visit_frames(&namer, note_frame);
        if (naming->is_base) join_renamed(&namer);
        visit_frames(&namer, rename_frame);
    } else {
        profile_fail(profile, STATUS_NO_MEMORY);
    }
    same_modules_fini(&namer.modules);
    index_table_fini(&namer.use_index);
    free(namer.names);
    free(namer.uses);
}
