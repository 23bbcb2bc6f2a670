/* Words that perf, pprof and other tools have for the commands and options of offbeat.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_FOREIGN_WORDS_H
#define OFFBEAT_CLI_FOREIGN_WORDS_H

/* Returns the command that does what WORD does in another tool; NULL if there is none. */
const char *command_of_foreign_word(const char *word);

/* Returns what does in COMMAND what OPTION, without dashes, does in another tool, as the end of a sentence; NULL if
 * there is nothing to say. */
const char *advice_of_foreign_option(const char *command, const char *option);

/* Returns the long option that does what OPTION, without dashes, does in another tool, if a command has it; NULL if
 * there is none. */
const char *option_of_foreign_option(const char *option);

#endif
