/* Long output on a terminal, page by page.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_PAGER_H
#define OFFBEAT_CLI_PAGER_H

#include "base/slice.h"

#include <stdbool.h>

/* Shows TEXT in the user's pager, and returns when the user has left it. False if TEXT fits on the terminal, if
 * standard output is not a terminal that can move its cursor, or if there is no pager: the caller writes TEXT. */
bool pager_show(struct slice text);

#endif
