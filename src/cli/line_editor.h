/* Lines that a person types, with history and completion on a terminal.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_LINE_EDITOR_H
#define OFFBEAT_CLI_LINE_EDITOR_H

#include <stdbool.h>
#include <stddef.h>

/* Returns the words that are possible at the cursor, one for each INDEX from 0 on; NULL ends them. WORD is the part in
 * front of the cursor, and IS_FIRST is true if it begins the line. The words need not begin with WORD. */
typedef const char *(*line_words)(void *context, const char *word, bool is_first, size_t index);

/* The next line of standard input without its end, to be freed; NULL at the end. PROMPT is shown on a terminal only.
 * libedit edits the line if it is installed (doc/decisions/reports.md); without it the terminal itself does. */
char *line_editor_read(const char *prompt, line_words words, void *context);

#endif
