/* Runs the helper program (src/helper) unnoticed by the host: no SIGCHLD, no child that its wait could find, and none
 * of its descriptors or variables reaches the helper.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SDK_HELPER_PROCESS_H
#define OFFBEAT_SDK_HELPER_PROCESS_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

/* Finds the helper: CHOSEN if it is not NULL, else the one beside this library, else the installed one. False if it
 * cannot be executed. */
bool helper_find(const char *chosen, char ret_path[PATH_MAX]);

struct helper;

/* Runs PATH with REQUEST and PAYLOADS, strings that live until helper_finish, and kills it after TIMEOUT_NS. Calls
 * sampler_wake when it has ended. NULL without memory or thread. The caller has blocked all signals and is not
 * confined. */
struct helper *helper_start(const char *path, const char *request, const char *payloads, uint64_t timeout_ns);
bool helper_has_ended(const struct helper *helper);
/* Makes the helper end soon. */
void helper_cancel(struct helper *helper);
/* Waits until the helper has ended, and frees HELPER. Returns its exit status, or -1 if it could not be run or was
 * killed. */
int helper_finish(struct helper *helper);

#endif
