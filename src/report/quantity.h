/* Numbers with units for people; units and digits as pprof prints them.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_REPORT_QUANTITY_H
#define OFFBEAT_REPORT_QUANTITY_H

#include <stdint.h>

enum { QUANTITY_UNIT_BYTES_MAX = 24 }; /* bytes of a unit's name that is not known */

/* The unit of a column. */
struct quantity_unit {
    const char *name; /* "s", "kB"; "" for counts; the profile's own name if it is not known */
    double size;      /* number of the value's own units in one */
};

struct quantity_text {
    char text[64];
};

/* Returns the unit for a column of values of the unit UNIT ("nanoseconds", "bytes", "count", …), from SMALLEST (not 0)
 * to LARGEST: the largest in which SMALLEST is at least 1, or, where the values reach over several units, 0.01. */
struct quantity_unit quantity_unit_for(const char *unit, int64_t smallest, int64_t largest);

/* Returns the unit WANTED for values of the unit UNIT: a name; or NULL, "minimum" or "auto" for the one that suits a
 * column from SMALLEST to LARGEST. */
struct quantity_unit quantity_unit_wanted(const char *unit, const char *wanted, int64_t smallest, int64_t largest);

/* Returns "1.20s", "3", "0". */
struct quantity_text quantity_in(struct quantity_unit unit, int64_t value);
/* Returns VALUE in the unit that suits it. */
struct quantity_text quantity_of(const char *unit, int64_t value);
/* Returns " 1.25%", "  100%": six characters wide up to 100 %. */
struct quantity_text quantity_percent(int64_t value, int64_t whole);
/* Returns the same without the sign, which pprof does not print. */
struct quantity_text quantity_share(int64_t value, int64_t whole);

/* Returns the nanoseconds of one UNIT, 0 if it is no unit of time. */
double quantity_nanoseconds(const char *unit);

#endif
