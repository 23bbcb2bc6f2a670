/* Runs the helper program (src/helper) without the host noticing: no SIGCHLD, no child that its wait could find, no
 * descriptor or variable of it that would reach the helper.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SDK_HELPER_PROCESS_H
#define OFFBEAT_SDK_HELPER_PROCESS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

/* Where the helper is: CHOSEN, if it is not NULL, else beside this library or where it was installed. False if there is
 * none that can be executed. */
bool helper_find(const char *chosen, char ret_path[PATH_MAX]);

/* Runs PATH with REQUEST and PAYLOADS, and waits; kills it after TIMEOUT_NS. Its exit status, or -1 if it could not be
 * run or did not end by itself. To be called with all signals blocked, and not in a confined process. */
int helper_run(const char *path, const char *request, const char *payloads, uint64_t timeout_ns);

#endif
