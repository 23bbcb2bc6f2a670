/* Names and comparison of the boxes of a flame graph.  SPDX-License-Identifier: MIT */
#include "report/flame_report.h"

#include <math.h>
#include <string.h>

struct slice flame_name(const struct flame_report *flame, const struct flame_box *box)
{
    if (box->group == FLAME_NO_GROUP) return slice_of_text("all");
    if (box->group == FLAME_MERGED) return slice_of_text("(narrow boxes)");
    return names_slice(&flame->grouping->names, flame->grouping->items[box->group].printable);
}

double flame_growth(const struct flame_report *flame, const struct flame_box *box)
{
    const struct flame_box *root = &flame->layout->boxes[0];
    double new = root->cum > 0 ? (double)box->cum / (double)root->cum : 0;
    double base = root->base > 0 ? (double)box->base / (double)root->base : 0;
    return new - base;
}

int flame_growth_step(const struct flame_report *flame, const struct flame_box *box)
{
    static const double limits[] = {0.001, 0.01, 0.05, 0.2};
    double growth = flame_growth(flame, box);
    int step = 0;
    while (step < 4 && fabs(growth) >= limits[step]) step++;
    return growth < 0 ? -step : step;
}

static uint32_t add_hash(uint32_t hash, const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++) hash = (hash ^ (uint8_t)text[i]) * 16777619u; /* FNV-1a: the same in every run */
    return hash;
}

/* Returns the size of "net/http" in "net/http.(*Server).Serve", or of "std" in "std::sort". */
static size_t package_size(const char *name)
{
    size_t parameters = strcspn(name, "(<["), from = 0;
    for (size_t i = 0; i < parameters; i++) {
        if (name[i] == '/') from = i + 1;
    }
    for (size_t i = from; i < parameters; i++) {
        if (name[i] == '.' || (name[i] == ':' && name[i + 1] == ':')) return i;
    }
    return 0;
}

uint32_t flame_package_hash(const struct flame_report *flame, const struct flame_box *box)
{
    const struct profile *profile = flame->report->profile;
    const struct group *group = &flame->grouping->items[box->group];
    const struct function *function = profile_function(profile, group->function);
    const char *name = group_name(flame->grouping, group);
    const char *module = profile_c_string(profile, function->module);
    const char *package = profile_c_string(profile, function->package);
    if (package[0] == '\0') package = profile_c_string(profile, profile_mapping(profile, group->mapping)->file_name);
    uint32_t hash = add_hash(2166136261u, package, strlen(package));
    hash = module[0] ? add_hash(hash, module, strlen(module)) : add_hash(hash, name, package_size(name));
    return hash ^ hash >> 16;
}
