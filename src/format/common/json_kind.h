/* Detects which of the formats in JSON a document has. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_COMMON_JSON_KIND_H
#define OFFBEAT_FORMAT_COMMON_JSON_KIND_H

#include "base/slice.h"

enum json_kind_of_profile {
    JSON_PROFILE_UNKNOWN,
    JSON_PROFILE_SENTRY, /* sample format V1 or V2 */
    JSON_PROFILE_SPEEDSCOPE,
    JSON_PROFILE_CHROME,       /* one .cpuprofile */
    JSON_PROFILE_CHROME_TRACE, /* trace events, which may hold several */
    JSON_PROFILE_FIREFOX,
    JSON_PROFILE_OTLP,
};

enum { JSON_KIND_BYTES_MAX = 1 << 16 }; /* looked at */

/* Decides by the first member of the outermost object whose name only one of the formats has. UNKNOWN where none is
 * found at the front of BYTES, which need not be valid after it. */
enum json_kind_of_profile json_kind_of_profile(struct slice bytes);

#endif
