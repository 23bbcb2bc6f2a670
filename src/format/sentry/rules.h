/* Who is accepted, and why not (requirements V1-…, V2-5, V2-6, REL-1; facts §1.2 to §1.4, §1.7; doc/formats/rules.md).
 *
 * Two sets of rules. SPEC is what the published documents ask for; RELAY is what the real service does: in its order,
 * with the names that it gives its reasons, and repairing what it repairs. A verdict is of one payload; what is wrong
 * with the envelope around it is format/sentry/envelope.h's. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_SENTRY_RULES_H
#define OFFBEAT_FORMAT_SENTRY_RULES_H

#include "base/slice.h"
#include "base/status.h"
#include "base/uuid.h"

enum rules { RULES_SPEC, RULES_RELAY, RULES_COUNT };

enum {
    RULES_RELAY_BYTES_MAX = 50 << 20,    /* of a payload */
    RULES_SPEC_BYTES_MAX = 50 * 1000000, /* "50 MB" */
    VERDICT_PLACE_SIZE = 160,
    VERDICT_TEXT_SIZE = 96,
    VERDICT_REPAIRS_MAX = 8,
};

struct repair {
    const char *what; /* constant text: "samples sorted by time" */
    uint64_t count;   /* of that which was changed or dropped */
};

/* All texts end with a NUL; what is longer than its place is cut. */
struct verdict {
    bool accepted;
    const char *reason;               /* "profiling_…", constant; "" if accepted */
    char place[VERDICT_PLACE_SIZE];   /* "profile.samples[17].stack_id"; "" = the whole */
    char found[VERDICT_TEXT_SIZE];    /* "number", "-5", "nothing", … */
    char expected[VERDICT_TEXT_SIZE]; /* "string", "integer from 0 to 4294967295", … */
    struct {
        struct repair items[VERDICT_REPAIRS_MAX];
        uint32_t count;
    } repairs; /* also of what was refused later */
};

/* What the envelope says beside the payload. */
struct rules_context {
    bool is_in_envelope;                 /* else the item's header is not known, and nothing is asked of it */
    struct slice platform;               /* of the item's header; data NULL = it has none */
    bool has_meta_length;                /* of the item's header */
    bool has_transaction;                /* for a V1 profile: there is one in the same envelope */
    char transaction_id[UUID_TEXT_SIZE]; /* of that one; "" = not known */
};

/* Judge one payload, whatever bytes it is. CONTEXT may be NULL: a payload that lies there alone. STATUS_OK: RET_VERDICT
 * is set, accepted or not. Else STATUS_NO_MEMORY, or STATUS_TOO_LARGE where one text or list
 * is larger than a profile may have (profile.h). Not signal-safe; distinct verdicts in parallel. */
enum status rules_judge_chunk(struct slice payload, const struct rules_context *context, enum rules rules,
                              struct verdict *ret_verdict, struct error *error);

/* The same for a profile of V1, the payload of a `profile` item. */
enum status rules_judge_profile(struct slice payload, const struct rules_context *context, enum rules rules,
                                struct verdict *ret_verdict, struct error *error);

/* False if PAYLOAD is larger than RULES allow, which VERDICT then says (V2-10). */
bool rules_allow_size(struct slice payload, enum rules rules, struct verdict *verdict);

/* "spec" or "relay". */
const char *rules_name(enum rules rules);

/* One line: "profiling_invalid_json: profile.samples[17].thread_id: expected string, found number"; "accepted". */
void verdict_print(const struct verdict *verdict, char *ret_text, size_t size);

/* --- For those that judge ----------------------------------------------------------------------------------------- */

/* Begins anew: accepted, nothing repaired. */
void verdict_init(struct verdict *verdict);
/* REASON is constant. Returns false, so that a rule can `return verdict_refuse(…)`. PLACE as printf. */
bool verdict_refuse(struct verdict *verdict, const char *reason, const char *expected, const char *found,
                    const char *place, ...) __attribute__((format(printf, 5, 6)));
/* Does nothing where COUNT is 0. */
void verdict_repair(struct verdict *verdict, const char *what, uint64_t count);

#endif
