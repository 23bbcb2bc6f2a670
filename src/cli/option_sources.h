/* Options that are not on the command line: from variables and a file. The same table describes them all, and the
 * command line takes precedence over a variable, and a variable over the file.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_OPTION_SOURCES_H
#define OFFBEAT_CLI_OPTION_SOURCES_H

#include "cli/options.h"

/* Sets the options of SYNTAX whose bit in GIVEN is not set, from the variables and then from the file that SYNTAX
 * names. False after a message. */
bool option_sources_read(const struct command_syntax *syntax, uint64_t given);

#endif
