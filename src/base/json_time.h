/* Points in time as JSON has them.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BASE_JSON_TIME_H
#define OFFBEAT_BASE_JSON_TIME_H

#include "base/json_reader.h"

/* Takes the next value: seconds since 1970 as a number, to the nanosecond as far as its digits go, or a text of RFC
 * 3339. 0 for a time before 1970 and for anything else. */
uint64_t json_time_ns(struct json_reader *reader);

#endif
