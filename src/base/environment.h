/* The environment variables of this process. Nothing else in src/ calls getenv: test/layers checks that.
 *
 * A program with AT_SECURE (set-user-ID, set-group-ID or file capabilities) has rights that the person who starts it
 * does not have, and that person chooses its environment. There no variable counts. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BASE_ENVIRONMENT_H
#define OFFBEAT_BASE_ENVIRONMENT_H

#include <stdbool.h>

/* Makes VARIABLES the environment until libc's constructor has run. That constructor uses the same array. */
void environment_begin(char **variables);

/* NULL if NAME is not set, or if the environment is not trusted. The string belongs to the environment. */
const char *environment_get(const char *name);

/* False with AT_SECURE. */
bool environment_is_trusted(void);

#endif
