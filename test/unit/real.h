/* Profiles and traffic of real clients: all of it is in ../shared/fixtures, a sample of it in test/data/real, in the
 * same layout.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_TEST_REAL_H
#define OFFBEAT_TEST_REAL_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#define REAL_COMPLETE TEST_SOURCE_ROOT "/../shared/fixtures/real/"
#define REAL_SAMPLE TEST_SOURCE_ROOT "/test/data/real/"

static inline bool real_is_complete(void)
{
    return access(REAL_COMPLETE, R_OK | X_OK) == 0;
}

/* The path of NAME (a file, or a pattern for glob), valid until the next call. */
static inline const char *real_path(const char *name)
{
    static char path[PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s%s", real_is_complete() ? REAL_COMPLETE : REAL_SAMPLE, name);
    return path;
}

#endif
