/* Sends what programs leave in a spool folder.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_HELPER_SERVICE_H
#define OFFBEAT_HELPER_SERVICE_H

#include <stdbool.h>

/* Works on the spool folder ROOT until it is deleted or, if ENDS, a minute has passed without work and without a
 * program that records. Returns at once with false, after a message, if the folder cannot be used or another helper has
 * it; the latter is no message with ENDS. */
bool service_run(const char *root, bool ends);

#endif
