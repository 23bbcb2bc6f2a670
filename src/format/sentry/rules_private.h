/* Typed reading of a payload for those that judge it: an object by a table of its members, every violation with its
 * place. Nothing is built; the judge's own functions take the values. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_SENTRY_RULES_PRIVATE_H
#define OFFBEAT_FORMAT_SENTRY_RULES_PRIVATE_H

#include "base/json_reader.h"
#include "format/sentry/rules.h"

/* Give it as the first member of a judge. The first violation ends the reading, as a failure of JSON does. */
struct rules_reader {
    struct json_reader json;
    struct slice bytes;
    struct slice key;          /* of rules_take_map: of the value that is to be taken */
    uint64_t violation_offset; /* of the value that is wrong, or of the object that lacks a member */
    const char *expected;      /* constant; NULL = no violation but of JSON */
    const char *missing;       /* the member that the object lacks; NULL = none */
};

typedef void rules_take(struct rules_reader *reader); /* takes one value */

enum rules_presence {
    RULES_REQUIRED,
    RULES_OPTIONAL, /* absent or null */
    RULES_NOT_NULL, /* absent, but not null */
};

struct rules_member {
    const char *name, *alias; /* ALIAS may be NULL */
    enum rules_presence presence;
    const char *expected; /* where it is missing: "string" */
    rules_take *take;     /* NULL: any value */
};

void rules_reader_init(struct rules_reader *reader, struct slice bytes);
void rules_reader_fini(struct rules_reader *reader);

/* Takes an object with MEMBERS (at most 32), each at most once by whatever name; others are passed over. */
void rules_take_object(struct rules_reader *reader, const struct rules_member *members, uint32_t member_count);
#define RULES_TAKE_OBJECT(reader, members)                                                                             \
    rules_take_object((reader), (members), sizeof(members) / sizeof((members)[0]))
void rules_take_array(struct rules_reader *reader, rules_take *take);
/* Takes an object of any keys, a value each. */
void rules_take_map(struct rules_reader *reader, rules_take *take);

/* Each takes one value, and is a violation where that is of another kind. */
struct slice rules_string(struct rules_reader *reader);
void rules_take_string(struct rules_reader *reader);
void rules_take_bool(struct rules_reader *reader);
uint64_t rules_u64(struct rules_reader *reader, uint64_t maximum); /* a whole number */
void rules_take_u32(struct rules_reader *reader);
uint64_t rules_u64_or_text(struct rules_reader *reader); /* a whole number, or a string of its digits */
void rules_take_u64_or_text(struct rules_reader *reader);
double rules_double(struct rules_reader *reader);            /* a number that is finite */
void rules_take_double_or_text(struct rules_reader *reader); /* also as a string, which may be infinite */
void rules_take_uuid(struct rules_reader *reader);           /* in any spelling */
void rules_take_address(struct rules_reader *reader);        /* a string: 0x and hex digits, or decimal */
void rules_take_time(struct rules_reader *reader);           /* a string: RFC 3339 */

/* Makes the value at OFFSET a violation: EXPECTED is constant. */
void rules_violate(struct rules_reader *reader, uint64_t offset, const char *expected);
/* Where the next value begins. */
uint64_t rules_next_offset(struct rules_reader *reader);

/* Demands the end of the payload. STATUS_OK, with the verdict refused for REASON if something was violated; or
 * STATUS_NO_MEMORY. */
enum status rules_finish(struct rules_reader *reader, const char *reason, struct verdict *verdict, struct error *error);

#endif
