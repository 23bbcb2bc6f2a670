/* Small helpers of the text reports.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_REPORT_TEXT_H
#define OFFBEAT_REPORT_TEXT_H

#include "base/buffer.h"

/* TEXT came out of a file: characters that could command a terminal or turn the text around them become "?"
 * (base/printable.h). */
void append_printable(struct buffer *out, const char *text);
/* The same, with "…" in the middle if it has more than WIDTH characters (at least 3); WIDTH 0: complete. Counts
 * characters, not columns: a character of an East Asian script takes two columns. */
void append_shortened(struct buffer *out, const char *text, size_t width);
/* The same for lines that are made already: their ends stay. */
void make_printable(struct buffer *lines);

/* Whether a row with VALUE of TOTAL is shown bold on a terminal: from 10 % on. */
bool is_hot(int64_t value, int64_t total);
void append_bold(struct buffer *out);
void append_normal(struct buffer *out);

/* What follows the last slash. */
const char *base_name(const char *path);

#endif
