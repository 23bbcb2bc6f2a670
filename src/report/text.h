/* Small helpers of the text reports.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_REPORT_TEXT_H
#define OFFBEAT_REPORT_TEXT_H

#include "base/buffer.h"

/* Appends TEXT, which came out of a file or from the command line, with escapes (base/printable.h). */
void append_printable(struct buffer *out, const char *text);
/* Appends the same, with "…" in the middle if it has more than WIDTH characters (at least 3); WIDTH 0: complete. Counts
 * characters, not columns: a character of an East Asian script takes two columns. */
void append_shortened(struct buffer *out, const char *text, size_t width);

/* Returns the number of characters of TEXT, which is UTF-8. */
size_t character_count(struct slice text);

/* Returns the characters that a table of WIDTH leaves for names beside its COLUMNS of numbers; 0, without a limit, if
 * WIDTH is 0. */
size_t name_width(size_t width, size_t columns);

/* Appends "Active filters:" and a line for each of FILTERS, if there are any. NULL ends them; FILTERS may be NULL. */
void append_filters(struct buffer *out, const char *const *filters);

/* Returns whether a row with VALUE of TOTAL is shown bold on a terminal: from 10 % on. */
bool is_hot(int64_t value, int64_t total);
void append_bold(struct buffer *out);
void append_normal(struct buffer *out);

/* Returns the part of PATH after the last slash. */
const char *base_name(const char *path);

#endif
