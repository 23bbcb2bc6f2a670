/* Collapsed stacks: "root;caller;leaf 42" a line.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_TEXT_COLLAPSED_H
#define OFFBEAT_FORMAT_TEXT_COLLAPSED_H

#include "base/buffer.h"
#include "profile/profile.h"

enum {
    COLLAPSED_BYTES_MAX = 1 << 30, /* written */
    COLLAPSED_DEPTH_MAX = 1 << 16, /* frames of a line */
    COLLAPSED_COMMENTS_MAX = 1024, /* kept; later ones are passed over */
    COLLAPSED_INLINED_MAX = 256,   /* functions of one place; more become a place of their own */
};

/* True if the first line that is neither empty nor a comment is text that ends with a blank or tab and a number.
 * Comments do not count. */
bool collapsed_detect(struct slice bytes);

/* Each line becomes a sample of samples/count, or, where every line has two numbers, of before/count and after/count.
 * If a number has a fraction, the unit is thousandths, millionths or billionths, and the type of a single value is
 * weight. Lines that begin with "# " become comments.
 * Frames have a function name, and what the marks behind it tell: name_[i] is inlined into the frame before it,
 * name_[k] is the kernel's, name_[j] was made by a JIT compiler. STATUS_NOT_THIS_FORMAT if the first line has no
 * number, STATUS_MALFORMED for a later one. See format_decode for the rest of the contract. */
enum status collapsed_decode(struct slice bytes, struct profile *profile, struct error *error);

/* Writes the default value of each stack, equal stacks summed, sorted by stack, zeros left out. An inlined function is
 * a frame of its own, with its mark. A place without a function is called by its file, "[libc.so.6]", or else by its
 * address; a stack without frames "[unknown]". STATUS_UNSUPPORTED if there is no line to write: an empty file is of no
 * format. What would break the line is replaced: ';' by ':', control characters by a blank;
 * what is no UTF-8 by '?'. */
enum status collapsed_encode(const struct profile *profile, struct buffer *out, struct error *error);

#endif
