/* SPDX-License-Identifier: MIT */
#include "profile/same_modules.h"

#include "profile/comparable_name.h"
#include "profile/incomplete.h"
#include "profile/processes.h"
#include "profile/profile_private.h"

#include <stdlib.h>

enum { PROCESSES_MAX = 64 }; /* processes with a bit in the users of a location */

/* The packages of one key. */
struct module_use {
    uint32_t first;                       /* a package */
    uint64_t users;                       /* union of the users */
    uint32_t base_count, new_count;       /* packages that each side uses */
    uint32_t first_of_base, first_of_new; /* packages that only this side uses; 0: none */
    bool is_twice;                        /* one process, or each side, has two packages */
};

struct finder {
    struct same_modules *modules;
    struct profile *profile;
    const bool *is_base;
    size_t string_count;
    uint64_t *package_users;  /* users of a module, by the package that stands for it */
    struct module_use *uses;  /* uses, by key */
    uint32_t *first_of_build; /* first package of each build id */
};

struct string_id package_of_frame(const struct same_modules *modules, const struct profile *profile,
                                  const struct location *location, struct function_id function)
{
    struct string_id file = profile_mapping(profile, location->mapping)->file_name;
    bool is_known = function.index < modules->function_count;
    if (is_known && modules->is_incomplete[function.index]) return (struct string_id){0};
    return file.index != 0 ? file : profile_function(profile, function)->package;
}

/* --- Users of locations ------------------------------------------------------------------------------------------- */

/* Returns the bit of the side or the process of SAMPLE; 0 if it is not known. */
static uint64_t user_of(const struct finder *finder, const struct processes *processes, size_t sample)
{
    if (finder->is_base)
        return finder->is_base[finder->profile->samples.labels[sample].index] ? USED_BY_BASE : USED_BY_NEW;
    uint32_t process = process_of_sample(processes, finder->profile, sample);
    const struct process_key *key = &processes->items[process];
    bool is_known = key->pid != 0 || key->name.index != 0;
    return is_known && process < PROCESSES_MAX ? (uint64_t)1 << process : 0;
}

/* Users of a stack use its parents, which have lower indices, and their locations. OF_STACK and OF_LOCATION are arrays
 * of unsigned numbers in which all bits have room: small ones where there are two users, as caches hold more of them.
 * The parent is usually the index before, whose users stay in a register. */
#define FIND_USERS(finder, processes, number, of_stack, of_location)                                                   \
    do {                                                                                                               \
        const struct profile *const from = (finder)->profile;                                                          \
        number *const stacks = (of_stack), *const locations = (of_location), bits = 0;                                 \
        for (size_t i = 0; i < from->samples.count; i++)                                                               \
            stacks[from->samples.stack[i].index] |= (number)user_of(finder, processes, i);                             \
        for (uint32_t i = profile_stack_limit(from); i-- > 1;) {                                                       \
            bits |= stacks[i];                                                                                         \
            if (bits == 0 || !profile_is_stack(from, i)) continue;                                                     \
            uint32_t parent = profile_parent_at(from, i);                                                              \
            locations[profile_stack_location(from, i)] |= bits;                                                        \
            if (parent == i - 1) continue;                                                                             \
            stacks[parent] |= bits;                                                                                    \
            bits = 0;                                                                                                  \
        }                                                                                                              \
        for (size_t i = 0; i < from->locations.count; i++) (finder)->modules->users[i] = locations[i];                 \
    } while (0)

static bool find_users(struct finder *finder)
{
    const struct profile *profile = finder->profile;
    struct processes processes;
    size_t size = finder->is_base ? sizeof(uint8_t) : sizeof(uint64_t), count = profile->locations.count + 1;
    void *of_stack = calloc((size_t)profile_stack_limit(profile) + 1, size), *of_location = calloc(count, size);
    finder->modules->users = calloc(count, sizeof(*finder->modules->users));
    bool has_memory = processes_find(&processes, profile) && of_stack && of_location && finder->modules->users;
    if (has_memory && finder->is_base)
        FIND_USERS(finder, &processes, uint8_t, of_stack, of_location);
    else if (has_memory)
        FIND_USERS(finder, &processes, uint64_t, of_stack, of_location);
    processes_fini(&processes);
    free(of_stack);
    free(of_location);
    return has_memory;
}

/* --- Packages ----------------------------------------------------------------------------------------------------- */

static void add_key(struct finder *finder, struct string_id package, struct buffer *text)
{
    uint32_t *key = &finder->modules->keys[package.index];
    if (package.index == 0 || *key != 0) return;
    buffer_clear(text);
    comparable_module_append(profile_slice(finder->profile, package), text);
    *key = text->failed ? package.index : profile_string(finder->profile, buffer_slice(text)).index;
}

static bool find_keys(struct finder *finder)
{
    struct buffer text;
    struct same_modules *modules = finder->modules;
    const struct profile *profile = finder->profile;
    modules->package_limit = profile->strings.count;
    modules->keys = calloc(modules->package_limit + 1, sizeof(*modules->keys));
    modules->of_package = calloc(modules->package_limit + 1, sizeof(*modules->of_package));
    modules->has_builds = calloc(modules->package_limit + 1, sizeof(*modules->has_builds));
    modules->is_incomplete = calloc(profile->functions.count + 1, sizeof(*modules->is_incomplete));
    if (!modules->keys || !modules->of_package || !modules->has_builds || !modules->is_incomplete) return false;
    modules->function_count = profile->functions.count;
    for (size_t i = 0; i < profile->functions.count; i++) {
        struct string_id name = profile->functions.items[i].name;
        modules->is_incomplete[i] = incomplete_is_name(profile_c_string(profile, name));
    }
    buffer_init(&text, PROFILE_STRING_BYTES_MAX);
    for (size_t i = 1; i < profile->mappings.count; i++) add_key(finder, profile->mappings.items[i].file_name, &text);
    for (size_t i = 1; i < profile->functions.count; i++) add_key(finder, profile->functions.items[i].package, &text);
    buffer_fini(&text);
    for (uint32_t i = 0; i < modules->package_limit; i++) modules->of_package[i] = i;
    finder->string_count = profile->strings.count + 1;
    finder->package_users = calloc(finder->string_count, sizeof(*finder->package_users));
    finder->uses = calloc(finder->string_count, sizeof(*finder->uses));
    finder->first_of_build = calloc(finder->string_count, sizeof(*finder->first_of_build));
    return finder->package_users && finder->uses && finder->first_of_build;
}

static bool has_equal_keys(struct finder *finder)
{
    const uint32_t *keys = finder->modules->keys;
    for (uint32_t i = 1; i < finder->modules->package_limit; i++) {
        if (keys[i] == 0) continue;
        if (finder->uses[keys[i]].first != 0) return true;
        finder->uses[keys[i]].first = i;
    }
    return false;
}

static uint32_t root_of(const struct same_modules *modules, uint32_t package)
{
    while (modules->of_package[package] != package) package = modules->of_package[package];
    return package;
}

/* Packages with the same name and build id are one. */
static void join_builds(struct finder *finder)
{
    struct same_modules *modules = finder->modules;
    for (size_t i = 1; i < finder->profile->mappings.count; i++) {
        const struct mapping *mapping = &finder->profile->mappings.items[i];
        uint32_t package = mapping->file_name.index, *first = &finder->first_of_build[mapping->build_id.index];
        if (package == 0 || mapping->build_id.index == 0) continue;
        if (*first == 0) *first = package;
        if (modules->keys[*first] == modules->keys[package])
            modules->of_package[root_of(modules, package)] = root_of(modules, *first);
    }
}

static void note_package_users(struct finder *finder)
{
    const struct profile *profile = finder->profile;
    for (uint32_t i = 1; i < profile->locations.count; i++) {
        const struct location *location = &profile->locations.items[i];
        const struct line *lines = profile_lines(profile, location);
        for (uint32_t k = 0; k < location->line_count || k == 0; k++) {
            struct function_id function = lines ? lines[k].function : (struct function_id){0};
            uint32_t package = package_of_frame(finder->modules, profile, location, function).index;
            finder->package_users[root_of(finder->modules, package)] |= finder->modules->users[i];
        }
    }
}

/* Whether PACKAGE stands for a module so far. */
static bool is_root(const struct same_modules *modules, uint32_t package)
{
    return modules->keys[package] != 0 && modules->of_package[package] == package;
}

static void note_uses(struct finder *finder)
{
    const struct same_modules *modules = finder->modules;
    for (uint32_t i = 1; i < modules->package_limit; i++) {
        if (!is_root(modules, i)) continue;
        struct module_use *use = &finder->uses[modules->keys[i]];
        uint64_t users = finder->package_users[i];
        if (use->first == 0 || !is_root(modules, use->first)) use->first = i;
        use->base_count += (users & USED_BY_BASE) != 0;
        use->new_count += (users & USED_BY_NEW) != 0;
        if (users == USED_BY_BASE && use->first_of_base == 0) use->first_of_base = i;
        if (users == USED_BY_NEW && use->first_of_new == 0) use->first_of_new = i;
        use->is_twice =
            finder->is_base ? use->base_count > 1 && use->new_count > 1 : use->is_twice || (use->users & users) != 0;
        use->users |= users;
    }
}

/* Joins the module that only the base uses with the one that only the new side uses, if there is one of each: a program
 * that was renamed. */
static void join_renamed(struct finder *finder)
{
    struct same_modules *modules = finder->modules;
    uint32_t of_base = 0, of_new = 0, base_count = 0, new_count = 0;
    for (uint32_t i = 1; i < modules->package_limit; i++) {
        if (modules->keys[i] == 0 || finder->uses[modules->keys[i]].first != i) continue;
        uint64_t users = finder->uses[modules->keys[i]].users;
        if (users == USED_BY_BASE) of_base = i, base_count++;
        if (users == USED_BY_NEW) of_new = i, new_count++;
    }
    if (base_count == 1 && new_count == 1) modules->of_package[root_of(modules, of_base)] = root_of(modules, of_new);
}

/* Joins the packages of each key, or those that cannot be told apart by build ids. */
static void join_packages(struct finder *finder)
{
    struct same_modules *modules = finder->modules;
    for (uint32_t i = 1; i < modules->package_limit; i++) {
        if (!is_root(modules, i)) continue;
        const struct module_use *use = &finder->uses[modules->keys[i]];
        uint64_t users = finder->package_users[i];
        bool is_alone = finder->is_base && (users == USED_BY_BASE || users == USED_BY_NEW);
        if (!use->is_twice)
            modules->of_package[i] = use->first;
        else if (is_alone && use->first_of_base != 0 && use->first_of_new != 0)
            modules->of_package[i] = use->first_of_new;
    }
    if (finder->is_base) join_renamed(finder);
    for (uint32_t i = 1; i < modules->package_limit; i++) modules->of_package[i] = root_of(modules, i);
}

/* Finds modules with several builds. A build is known by its build id, or else by its path. */
static void find_builds(struct finder *finder)
{
    struct same_modules *modules = finder->modules;
    memset(finder->first_of_build, 0, finder->string_count * sizeof(*finder->first_of_build));
    for (size_t i = 1; i < finder->profile->mappings.count; i++) {
        const struct mapping *mapping = &finder->profile->mappings.items[i];
        uint32_t module = modules->of_package[mapping->file_name.index], *first = &finder->first_of_build[module];
        uint32_t build = mapping->build_id.index != 0 ? mapping->build_id.index : mapping->file_name.index;
        if (*first == 0) *first = build;
        modules->has_builds[module] |= module != 0 && *first != build;
    }
}

bool same_modules_find(struct same_modules *modules, struct profile *profile, const bool *is_base)
{
    struct finder finder = {.modules = modules, .profile = profile, .is_base = is_base};
    *modules = (struct same_modules){0};
    bool has_memory = find_keys(&finder), is_needed = has_memory && (has_equal_keys(&finder) || is_base);
    if (is_needed && (has_memory = find_users(&finder))) {
        join_builds(&finder);
        note_package_users(&finder);
        note_uses(&finder);
        join_packages(&finder);
        find_builds(&finder);
    }
    free(finder.package_users);
    free(finder.uses);
    free(finder.first_of_build);
    if (!has_memory) profile_fail(profile, STATUS_NO_MEMORY);
    return has_memory;
}

void same_modules_fini(struct same_modules *modules)
{
    free(modules->of_package);
    free(modules->keys);
    free(modules->has_builds);
    free(modules->users);
    free(modules->is_incomplete);
    *modules = (struct same_modules){0};
}
