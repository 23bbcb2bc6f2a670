/* The strings of a profile, and those that a report needs beside them: the profile stays as it is, so that several
 * threads can compute reports on it.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_ANALYZE_NAMES_H
#define OFFBEAT_ANALYZE_NAMES_H

#include "profile/profile.h"

struct names {
    const struct profile *profile;
    struct profile added; /* private: only its strings are used */
    uint32_t first_added; /* private: ids from here on belong to ADDED */
};

/* clang-format off */
struct name_id { uint32_t index; }; /* 0: "" */
/* clang-format on */

/* PROFILE must stay as it is. */
void names_init(struct names *names, const struct profile *profile);
void names_fini(struct names *names); /* accepts {0} */

/* Equal strings have equal ids, also if one is of the profile. 0 without memory, which names_failed remembers. */
struct name_id names_add(struct names *names, struct slice text);
struct name_id name_of_string(struct string_id string);
/* False if NAME is no string of the profile. */
bool name_is_string(const struct names *names, struct name_id name, struct string_id *ret_string);
enum status names_failed(const struct names *names, struct error *error);

/* Valid until names_fini. */
struct slice names_slice(const struct names *names, struct name_id name);
const char *names_text(const struct names *names, struct name_id name); /* NUL-terminated */

#endif
