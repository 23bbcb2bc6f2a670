/* SPDX-License-Identifier: MIT */
#include "cli/value_types.h"

#include "base/buffer.h"
#include "cli/message.h"

#include <stdlib.h>
#include <string.h>

static void reject_value_type(const struct profile *profile, const char *name)
{
    if (profile->value_type_count == 0) {
        message("there are no values in the profile");
        return;
    }
    struct buffer names;
    buffer_init(&names, PROFILE_VALUES_MAX * 64);
    for (size_t i = 0; i < profile->value_type_count; i++) {
        buffer_append_format(&names, "%s%.60s", i ? ", " : "", profile_c_string(profile, profile->value_types[i].type));
    }
    message("no value type \"%s\"; the profile has %.*s", name, SLICE_ARGUMENTS(buffer_slice(&names)));
    buffer_fini(&names);
}

/* The number of a value counts from 0, as pprof has it; a value of that name comes first. Heap profiles call the values
 * in use "inuse_space" or "space". */
static int find_column(const struct profile *profile, const char *name)
{
    static const char in_use[] = "inuse_";
    int column = profile_value_index(profile, name);
    if (column < 0 && strncmp(name, in_use, strlen(in_use)) == 0 && name[strlen(in_use)] != '\0')
        column = profile_value_index(profile, name + strlen(in_use));
    if (column >= 0 || name[0] == '\0' || name[strspn(name, "0123456789")] != '\0' || strlen(name) > 3) return column;
    column = atoi(name);
    return (size_t)column < profile->value_type_count ? column : -1;
}

int choose_value_type(const struct profile *profile, const char *name)
{
    int column = find_column(profile, name);
    if (column < 0) reject_value_type(profile, name);
    return column;
}
