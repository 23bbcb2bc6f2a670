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

struct helper;

/* Runs PATH with REQUEST and PAYLOADS, texts that live until helper_finish, and kills it after TIMEOUT_NS. When it has
 * ended, sampler_wake is called. NULL if there is no memory or thread for it. To be called with all signals blocked,
 * and not in a confined process. */
struct helper *helper_start(const char *path, const char *request, const char *payloads, uint64_t timeout_ns);
bool helper_has_ended(const struct helper *helper);
/* Has it killed soon. */
void helper_cancel(struct helper *helper);
/* Waits until it has ended, and frees HELPER. Its exit status, or -1 if it could not be run or did not end by itself.
 */
int helper_finish(struct helper *helper);

#endif
