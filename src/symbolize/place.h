/* A file, a line and a column in 64 bits, as the index keeps them.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SYMBOLIZE_PLACE_H
#define OFFBEAT_SYMBOLIZE_PLACE_H

#include <stdint.h>

enum { PLACE_FILE_BITS = 24, PLACE_LINE_BITS = 24, PLACE_COLUMN_BITS = 16 };

/* FILE is the number of a text; what does not fit is not known (0). */
static inline uint64_t place_of(uint32_t file, int line, int column)
{
    uint64_t kept_line = line < 0 || line >> PLACE_LINE_BITS ? 0 : (uint64_t)line;
    uint64_t kept_column = column < 0 || column >> PLACE_COLUMN_BITS ? 0 : (uint64_t)column;
    return (uint64_t)file << (PLACE_LINE_BITS + PLACE_COLUMN_BITS) | kept_line << PLACE_COLUMN_BITS | kept_column;
}

static inline uint32_t place_file(uint64_t place)
{
    return (uint32_t)(place >> (PLACE_LINE_BITS + PLACE_COLUMN_BITS));
}

static inline int place_line(uint64_t place)
{
    return (int)(place >> PLACE_COLUMN_BITS & ((1 << PLACE_LINE_BITS) - 1));
}

static inline int place_column(uint64_t place)
{
    return (int)(place & ((1 << PLACE_COLUMN_BITS) - 1));
}

#endif
