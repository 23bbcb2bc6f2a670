/* Where the data of `offbeat serve` is, and what its store reports.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_STORE_FOLDER_H
#define OFFBEAT_CLI_STORE_FOLDER_H

#include <limits.h>

/* GIVEN, or if that is NULL, $XDG_STATE_HOME/offbeat in PATH. NULL, with a message of COMMAND, if neither
 * XDG_STATE_HOME nor HOME says where that is. */
const char *store_folder_choose(const char *command, const char *given, char path[PATH_MAX]);

#endif
