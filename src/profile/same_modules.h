/* Modules that are builds of one: the same name in different folders, or with different versions.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_PROFILE_SAME_MODULES_H
#define OFFBEAT_PROFILE_SAME_MODULES_H

#include "profile/profile.h"

/* In the users of a comparison. */
enum { USED_BY_BASE = 1, USED_BY_NEW = 2, USED_BY_BOTH = 3 };

/* A package is the path of a mapping, or else that of a function. */
struct same_modules {
    uint32_t *of_package; /* package that stands for all builds of a module, by package */
    uint32_t *keys;       /* name of a package without folder and version, by string; 0 for other strings */
    bool *
        has_builds; /* true if a module has builds of different build ids or paths, by the package that stands for it */
    uint64_t *users;       /* sides of a comparison, or else a bit for each of the first processes, by location */
    bool *is_incomplete;   /* true for what stands for a missing part of a stack and has no module, by function */
    size_t package_limit;  /* strings of packages are below */
    size_t function_count; /* functions with an entry in IS_INCOMPLETE; those that are added later have a name */
};

/* Finds the modules of PROFILE. IS_BASE has the label sets of the base of a comparison, or is NULL.
 *
 * Packages with the same name are one module, unless one process uses two of them; in a comparison: unless both sides
 * use two of them. Then those with the same build id are one, and those that only one side has. If each side has a
 * single module of a name that the other side does not have, these are one. False without memory, or as profile_failed;
 * finish with same_modules_fini in all cases. */
bool same_modules_find(struct same_modules *modules, struct profile *profile, const bool *is_base);
void same_modules_fini(struct same_modules *modules);

/* The package of a frame of LOCATION in FUNCTION, 0 if it is not known: the file of the mapping, or else the package of
 * the function. MODULES were found in PROFILE. */
struct string_id package_of_frame(const struct same_modules *modules, const struct profile *profile,
                                  const struct location *location, struct function_id function);

/* The package that stands for the builds of PACKAGE. */
static inline struct string_id same_modules_package(const struct same_modules *modules, struct string_id package)
{
    return package.index < modules->package_limit ? (struct string_id){modules->of_package[package.index]} : package;
}

#endif
