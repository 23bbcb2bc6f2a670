/* SPDX-License-Identifier: MIT */
#include "format/pprof/pprof_made_mappings.h"

#include "base/array.h"

#include <stdlib.h>

enum { PAGE_BYTES = 4096 };

/* Returns the package of the outermost function that has one. */
static struct string_id package_of(const struct profile *profile, const struct location *location)
{
    const struct line *lines = profile_lines(profile, location);
    for (uint32_t i = location->line_count; i-- > 0;) {
        struct string_id package = profile_function(profile, lines[i].function)->package;
        if (package.index != 0) return package;
    }
    return (struct string_id){0};
}

/* Returns the mapping of PACKAGE, created if there is none; NULL without memory. BY_PACKAGE has its index plus one. */
static struct made_mapping *find(struct made_mappings *made, uint32_t *by_package, struct string_id package)
{
    uint32_t *known = &by_package[package.index];
    if (*known) return &made->items[*known - 1];
    struct made_mapping *added = ARRAY_ADD(made, PROFILE_ENTITIES_MAX);
    if (!added) return NULL;
    *added = (struct made_mapping){.package = package, .has_functions = true};
    *known = (uint32_t)made->count;
    return added;
}

static void include(struct made_mapping *mapping, const struct location *location)
{
    uint64_t start = location->address & -(uint64_t)PAGE_BYTES, limit = start + PAGE_BYTES;
    mapping->has_functions &= location->line_count > 0;
    if (location->address == 0) return;
    if (limit == 0) limit = UINT64_MAX; /* the last page */
    if (mapping->limit == 0 || start < mapping->start) mapping->start = start;
    if (limit > mapping->limit) mapping->limit = limit;
}

static bool add_location(struct made_mappings *made, uint32_t *by_package, const struct profile *profile,
                         uint32_t index)
{
    const struct location *location = &profile->locations.items[index];
    if (location->mapping.index != 0) return true;
    struct string_id package = package_of(profile, location);
    bool is_anonymous = location->address != 0 && profile->mappings.count > 1;
    if (package.index == 0 && !is_anonymous) return true;
    struct made_mapping *mapping = find(made, by_package, package);
    if (!mapping) return false;
    include(mapping, location);
    made->of_location[index] = (uint32_t)(mapping - made->items) + 1;
    return true;
}

enum status made_mappings_init(struct made_mappings *made, const struct profile *profile)
{
    *made = (struct made_mappings){.of_location = calloc(profile->locations.count + 1, sizeof(*made->of_location))};
    uint32_t *by_package = calloc(profile->strings.count + 1, sizeof(*by_package));
    bool is_made = made->of_location && by_package;
    for (uint32_t i = 1; is_made && i < profile->locations.count; i++)
        is_made = add_location(made, by_package, profile, i);
    free(by_package);
    return is_made ? STATUS_OK : STATUS_NO_MEMORY;
}

void made_mappings_fini(struct made_mappings *made)
{
    free(made->items);
    free(made->of_location);
    *made = (struct made_mappings){0};
}
