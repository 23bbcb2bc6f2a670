/* The name under which the program was started.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SDK_PROGRAM_NAME_H
#define OFFBEAT_SDK_PROGRAM_NAME_H

#include <limits.h>
#include <stdbool.h>

/* Writes the name that was started, without folders: the name of a link, not of the file that it names; of an
 * interpreter, the script. "" if it is not known. Returns true if it is a script. */
bool program_name(char ret_name[NAME_MAX + 1]);

#endif
