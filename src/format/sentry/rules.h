/* Whether a server accepts a payload, and why not (requirements V1-…, V2-5, V2-6, REL-1; facts §1.2 to §1.4, §1.7;
 * doc/formats/rules.md).
 *
 * There are two sets of rules. SPEC is what the published documents ask for. RELAY is what the real service does: in
 * its order, with its names of the reasons, and with its repairs. A result describes one payload;
 * format/sentry/envelope.h checks the envelope around it. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_SENTRY_RULES_H
#define OFFBEAT_FORMAT_SENTRY_RULES_H

#include "base/slice.h"
#include "base/status.h"
#include "base/uuid.h"

enum rules { RULES_SPEC, RULES_RELAY, RULES_COUNT };
enum { RULES_BOTH = 1 << RULES_SPEC | 1 << RULES_RELAY };

enum {
    RULES_RELAY_BYTES_MAX = 50 << 20,    /* bytes of a payload */
    RULES_SPEC_BYTES_MAX = 50 * 1000000, /* "50 MB" */
    RULES_PLACE_SIZE = 160,
    RULES_TEXT_SIZE = 96,
    RULES_REPAIRS_MAX = 8,
};

/* The service's reasons, and two for the envelope. The names are an interface: reports and messages begin with them,
 * and the helper hands them to the library. */
enum reject_reason {
    REJECT_NONE, /* accepted, or no reason of this list */
    REJECT_EXCEED_SIZE_LIMIT,
    REJECT_INVALID_SAMPLED_PROFILE,
    REJECT_INVALID_BASE64_VALUE,
    REJECT_INVALID_PROTOBUF,
    REJECT_NO_PROFILE_SAMPLES_IN_TRACE,
    REJECT_INVALID_JSON,
    REJECT_INVALID_PROFILE_TYPE,
    REJECT_PLATFORM_NOT_SUPPORTED,
    REJECT_INVALID_PROFILE_METADATA,
    REJECT_NOT_ENOUGH_SAMPLES,
    REJECT_MALFORMED_SAMPLES,
    REJECT_MALFORMED_STACKS,
    REJECT_DURATION_IS_TOO_LONG,
    REJECT_NO_TRANSACTION_ASSOCIATED,
    REJECT_INVALID_TRANSACTION_METADATA,
    REJECT_MISSING_TRANSACTION,
    REJECT_ENVELOPE_TOO_LARGE,
    REJECT_ENVELOPE_MALFORMED,
    REJECT_REASONS,
};

/* "profiling_not_enough_samples"; "" for REJECT_NONE. */
const char *reject_reason_name(enum reject_reason reason);
/* The reason whose name MESSAGE begins with, alone or before a colon; REJECT_NONE if there is none. */
enum reject_reason reject_reason_of_message(const char *message);

struct repair {
    const char *what; /* constant text: "samples sorted by time" */
    uint64_t count;   /* number of changed or dropped items */
};

/* All strings end with a NUL; longer ones are cut. */
struct rules_result {
    bool accepted;
    enum reject_reason reason;      /* REJECT_NONE if accepted */
    char place[RULES_PLACE_SIZE];   /* "profile.samples[17].stack_id"; "" = the payload */
    char found[RULES_TEXT_SIZE];    /* "number", "-5", "nothing", … */
    char expected[RULES_TEXT_SIZE]; /* "string", "integer from 0 to 4294967295", … */
    struct {
        struct repair items[RULES_REPAIRS_MAX];
        uint32_t count;
    } repairs; /* repairs, also of a payload that a later rule rejects */
};

/* Properties of the envelope around a payload. */
struct rules_context {
    bool is_in_envelope;                 /* the payload is in an envelope, whose item header is validated */
    struct slice platform;               /* platform of the item header; data NULL = missing */
    bool has_meta_length;                /* the item header has a meta_length */
    bool is_perfetto;                    /* content_type of the item is that of a Perfetto trace */
    uint64_t meta_length;                /* bytes of JSON that a Perfetto trace follows */
    bool has_transaction;                /* the envelope of a V1 profile has a transaction */
    char transaction_id[UUID_TEXT_SIZE]; /* id of that transaction; "" = not known */
};

/* Validates one payload, which may be any bytes. CONTEXT may be NULL: the payload is not in an envelope. STATUS_OK sets
 * RET_RESULT, accepted or not. Else STATUS_NO_MEMORY, or STATUS_TOO_LARGE if a string or a list is larger than a
 * profile may have (profile.h). Not signal-safe; several threads may validate at once. */
enum status rules_validate_chunk(struct slice payload, const struct rules_context *context, enum rules rules,
                                 struct rules_result *ret_result, struct error *error);

/* The same for a profile of V1, the payload of a `profile` item. */
enum status rules_validate_profile(struct slice payload, const struct rules_context *context, enum rules rules,
                                   struct rules_result *ret_result, struct error *error);

/* Whether the documents list PLATFORM for V1. They do not list "native" and "other", which offbeat writes: servers know
 * C and C++, and code without images, by these names. */
bool rules_v1_platform_is_listed(struct slice platform);

/* Validates a payload of either version by one or two SETS of rules (bits 1 << enum rules), in one reading. RET_RESULT
 * is of the first set that rejects the payload; RELAY comes first. */
enum status rules_validate_by(struct slice payload, bool is_v1, const struct rules_context *context, unsigned sets,
                              struct rules_result *ret_result, struct error *error);

/* One line: "profiling_invalid_json: profile.samples[17].thread_id: expected string, found number"; "accepted". */
void rules_result_print(const struct rules_result *result, char *ret_text, size_t size);
/* STATUS_OK if RESULT is accepted, else STATUS_MALFORMED with that line as the message. */
enum status rules_result_status(const struct rules_result *result, struct error *error);

/* --- For the code that validates ---------------------------------------------------------------------------------- */

/* Accepted, nothing repaired. */
void rules_result_init(struct rules_result *result);
/* Returns false, so that a rule can `return rules_reject(…)`. PLACE as printf. If EXPECTED is empty, FOUND says all. */
bool rules_reject(struct rules_result *result, enum reject_reason reason, const char *expected, const char *found,
                  const char *place, ...) __attribute__((format(printf, 5, 6)));
/* Rejects a payload without a thread that has two samples with frames. */
bool rules_reject_too_few(struct rules_result *result);
/* Does nothing if COUNT is 0. */
void rules_repair(struct rules_result *result, const char *what, uint64_t count);

#endif
