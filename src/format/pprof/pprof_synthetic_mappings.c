/* SPDX-License-Identifier: MIT */
#include "format/pprof/pprof_synthetic_mappings.h"

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
static struct synthetic_mapping *find_synthetic_mapping(struct synthetic_mappings *synthetic, uint32_t *by_package,
                                                        struct string_id package)
{
    uint32_t *known = &by_package[package.index];
    if (*known) return &synthetic->items[*known - 1];
    struct synthetic_mapping *added = ARRAY_ADD(synthetic, PROFILE_ENTITIES_MAX);
    if (!added) return NULL;
    *added = (struct synthetic_mapping){.package = package, .has_functions = true};
    *known = (uint32_t)synthetic->count;
    return added;
}

static void include_location(struct synthetic_mapping *mapping, const struct location *location)
{
    uint64_t start = location->address & -(uint64_t)PAGE_BYTES, limit = start + PAGE_BYTES;
    mapping->has_functions &= location->line_count > 0;
    if (location->address == 0) return;
    if (limit == 0) limit = UINT64_MAX; /* the last page */
    if (mapping->limit == 0 || start < mapping->start) mapping->start = start;
    if (limit > mapping->limit) mapping->limit = limit;
}

static bool add_location(struct synthetic_mappings *synthetic, uint32_t *by_package, const struct profile *profile,
                         uint32_t index)
{
    const struct location *location = &profile->locations.items[index];
    if (location->mapping.index != 0) return true;
    struct string_id package = package_of(profile, location);
    bool is_anonymous = location->address != 0 && profile->mappings.count > 1;
    if (package.index == 0 && !is_anonymous) return true;
    struct synthetic_mapping *mapping = find_synthetic_mapping(synthetic, by_package, package);
    if (!mapping) return false;
    include_location(mapping, location);
    synthetic->of_location[index] = (uint32_t)(mapping - synthetic->items) + 1;
    return true;
}

enum status synthetic_mappings_init(struct synthetic_mappings *synthetic, const struct profile *profile)
{
    uint32_t *of_location = calloc(profile->locations.count + 1, sizeof(*of_location));
    *synthetic = (struct synthetic_mappings){.of_location = of_location};
    uint32_t *by_package = calloc(profile->strings.count + 1, sizeof(*by_package));
    bool is_complete = of_location && by_package;
    for (uint32_t i = 1; is_complete && i < profile->locations.count; i++)
        is_complete = add_location(synthetic, by_package, profile, i);
    free(by_package);
    return is_complete ? STATUS_OK : STATUS_NO_MEMORY;
}

void synthetic_mappings_fini(struct synthetic_mappings *synthetic)
{
    free(synthetic->items);
    free(synthetic->of_location);
    *synthetic = (struct synthetic_mappings){0};
}
