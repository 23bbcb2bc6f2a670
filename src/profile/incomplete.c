/* SPDX-License-Identifier: MIT */
#include "profile/incomplete.h"

#include <string.h>

bool incomplete_is_name(const char *name)
{
    static const char *const names[] = {
        STARTING,           STOPPED,           NO_STACK_TOO_SHORT,  NO_STACK_LATE,    NO_STACK_UNANSWERED,
        NO_STACK_IN_KERNEL, NO_STACK_NO_TABLE, NO_STACK_UNREADABLE, NO_STACK_RUNNING, NO_STACK_WAIT,
        SHORT_WAITS};
    if (name[0] != '[') return false;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (strcmp(name, names[i]) == 0) return true;
    }
    return strncmp(name, INCOMPLETE_PREFIX, strlen(INCOMPLETE_PREFIX)) == 0;
}

static bool is_loader(const char *path)
{
    const char *name = path_base_name_text(path);
    return strncmp(name, "ld-linux", 8) == 0 || strncmp(name, "ld-musl-", 8) == 0;
}

struct location incomplete_location(const struct profile *profile)
{
    uint32_t found = profile->mappings.count > 1 ? 1 : 0; /* mapping 1 is the program */
    for (uint32_t i = (uint32_t)profile->mappings.count; i > 1; i--) {
        if (is_loader(profile_c_string(profile, profile->mappings.items[i - 1].file_name))) found = i - 1;
    }
    struct mapping_id mapping = {found};
    return (struct location){.mapping = mapping, .address = profile_mapping(profile, mapping)->start};
}
