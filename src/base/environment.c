/* SPDX-License-Identifier: MIT */
#include "base/environment.h"

#include <stdlib.h>
#include <sys/auxv.h>
#include <unistd.h>

extern char **environ;

void environment_begin(char **variables)
{
    if (!environ) environ = variables;
}

bool environment_is_trusted(void)
{
    return getauxval(AT_SECURE) == 0;
}

const char *environment_get(const char *name)
{
    return environment_is_trusted() ? getenv(name) : NULL;
}
