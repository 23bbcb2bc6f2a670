/* SPDX-License-Identifier: MIT */
#include "cli/store_folder.h"

#include "base/environment.h"
#include "cli/message.h"

#include <stdio.h>

/* Chooses the folder by the base directory specification. */
const char *store_folder_choose(const char *command, const char *given, char path[PATH_MAX])
{
    const char *state = environment_get("XDG_STATE_HOME"), *home = environment_get("HOME");
    int length = -1;
    if (given) return given;
    if (state && state[0] == '/')
        length = snprintf(path, PATH_MAX, "%s/offbeat", state);
    else if (home && home[0] == '/')
        length = snprintf(path, PATH_MAX, "%s/.local/state/offbeat", home);
    if (length > 0 && length < PATH_MAX) return path;
    message("%s: --data is needed: neither XDG_STATE_HOME nor HOME is set", command);
    return NULL;
}
