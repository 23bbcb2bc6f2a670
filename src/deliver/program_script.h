/* The script that an interpreter runs.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_DELIVER_PROGRAM_SCRIPT_H
#define OFFBEAT_DELIVER_PROGRAM_SCRIPT_H

#include "base/slice.h"

/* Returns the script among ARGUMENTS, the arguments of the interpreter NAME with a NUL after each, its own name first.
 * Empty if NAME is no interpreter, or runs no file. */
struct slice program_script(const char *name, struct slice arguments);

#endif
