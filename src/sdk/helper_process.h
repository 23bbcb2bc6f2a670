/* Starts the helper program (src/helper) unnoticed by the host: it is a child of nobody in the host, and has none of
 * its descriptors, folders or variables.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SDK_HELPER_PROCESS_H
#define OFFBEAT_SDK_HELPER_PROCESS_H

#include <limits.h>
#include <stdbool.h>

/* Finds the helper: CHOSEN if it is not NULL, else the one beside this library, else the installed one. False if it
 * cannot be executed. */
bool helper_find(const char *chosen, char ret_path[PATH_MAX]);

/* Starts PATH for the spool folder ROOT, and does not wait for it. Returns 0, or an errno. The caller has blocked all
 * signals. */
int helper_start(const char *path, const char *root);

#endif
