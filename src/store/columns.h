/* Splits a JSON text with an array of equal records into columns of numbers, which compress several times better.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_STORE_COLUMNS_H
#define OFFBEAT_STORE_COLUMNS_H

#include "base/buffer.h"
#include "base/slice.h"

/* Appends TEXT in columns to OUT. False if TEXT has no array "samples" of at least two records of the same form, or
 * without memory; OUT may then have more bytes than before. */
bool columns_encode(struct slice text, struct buffer *out);

/* Appends to OUT the text that columns_encode split into COLUMNS. False if COLUMNS is damaged or the text has more than
 * SIZE bytes; OUT may then have more bytes than before. */
bool columns_decode(struct slice columns, size_t size, struct buffer *out);

#endif
