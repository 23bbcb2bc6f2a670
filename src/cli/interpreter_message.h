/* Lines about programs of interpreters whose functions are not in the stacks. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_INTERPRETER_MESSAGE_H
#define OFFBEAT_CLI_INTERPRETER_MESSAGE_H

#include "profile/profile.h"

/* Prints a line if PROFILE, that of a process, is of such a program; one for each interpreter. */
void interpreter_message(const struct profile *profile);

#endif
