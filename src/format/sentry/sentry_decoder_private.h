/* Shared parts of the decoders of Sentry's sample formats V1 and V2: a walk over objects with known members, typed
 * values, notes of what breaks a rule, and the parts that both have. All of it reads the next value of DECODER's
 * reader, which remembers what went wrong.
 *
 * The decoder accepts what the real service accepts, and more. In the same pass it notes what breaks a rule: only the
 * offset, and continues. A value that it cannot understand fails the reader. Of each set of rules the first note
 * counts, as the service stops there. Attributes keep what the model has no place for (FMT-8, profile.h).
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_SENTRY_SENTRY_DECODER_PRIVATE_H
#define OFFBEAT_FORMAT_SENTRY_SENTRY_DECODER_PRIVATE_H

#include "base/buffer.h"
#include "base/json_reader.h"
#include "format/common/text_line.h"
#include "format/sentry/rules.h"
#include "format/sentry/sentry_extension.h"
#include "format/sentry/sentry_v2_private.h"

/* --- What was expected -------------------------------------------------------------------------------------------- */

struct expectation {
    const char *text;    /* "string" */
    const char *message; /* "expected string" */
    enum json_kind kind; /* a result quotes a value of this kind, and names the kind of another value */
};
extern const struct expectation expected_something, expected_string, expected_finite, expected_number, expected_integer,
    expected_u32, expected_index, expected_whole, expected_boolean, expected_object, expected_array, expected_uuid,
    expected_plain_uuid, expected_random_uuid, expected_address, expected_size, expected_debug_id, expected_image_type,
    expected_unit, expected_spec_unit, expected_measured, expected_once, expected_name_of_frame, expected_digits,
    expected_later, expected_time;

enum { BREAKS_SPEC = 1 << RULES_SPEC, BREAKS_RELAY = 1 << RULES_RELAY, BREAKS_BOTH = BREAKS_SPEC | BREAKS_RELAY };

/* The service reads a payload twice: first only the few members that say what it is. Their notes count before others.
 */
enum reading { READING_HEADER, READING_BODY, READINGS };

struct note {
    const struct expectation *expected; /* NULL: there is no note */
    const char *missing; /* the member that the object at OFFSET has not; NULL: the value there is wrong */
    uint64_t offset;
    bool is_metadata; /* the object is the payload */
};

/* --- The decoder -------------------------------------------------------------------------------------------------- */

enum { CHUNK_THREAD_CACHE_SIZE = 256, MEMBER_ORDER_MAX = 17 };

/* The order of members that objects of one kind had last: for each place after a member in the table of known members
 * (0: before the first one), the place of the next member. */
struct member_order {
    uint8_t next[MEMBER_ORDER_MAX + 1];
};

/* Values of a V1 transaction that rules ask for. */
struct v1_transaction {
    bool is_there, has_name, has_thread, has_nil_id;
    char id[UUID_TEXT_SIZE];
    uint64_t start_ns, end_ns, cpu_start_ms, cpu_end_ms;
};

/* Members of V1 that only the rules for cocoa ask for. */
enum {
    V1_BUILD_NUMBER = 1 << 0,
    V1_IS_EMULATOR = 1 << 1,
    V1_LOCALE = 1 << 2,
    V1_MANUFACTURER = 1 << 3,
    V1_MODEL = 1 << 4,
};

struct chunk_decoder {
    struct json_reader reader;
    struct profile *profile;
    struct sentry_extension *extension; /* PROFILE's; NO_EXTENSION without memory, and PROFILE has failed */
    struct sentry_extension no_extension;
    struct chunk chunk;
    struct cached_thread {
        struct slice text;
        uint64_t tail; /* last bytes of TEXT */
        struct thread_id id;
    } thread_cache[CHUNK_THREAD_CACHE_SIZE];
    struct cached_time {
        struct slice text;
        double seconds;
    } time_cache; /* timestamp of the last sample */
    struct {
        struct member_order frames, samples, values;
    } order;
    struct buffer attributes; /* members that were kept of the objects that are being read */
    enum reading reading;
    struct note notes[READINGS][RULES_COUNT];
    struct note rejection; /* reason for which the decoder made the reader fail; EXPECTED is NULL if there is none */
    bool is_v1;            /* a payload of V1: its times count from the profile's start, in nanoseconds */
    bool has_version, is_own_version, has_profile; /* OWN: the version that is read */
    bool has_trace;     /* a trace stands for the profile: Android's sampled_profile, or one of Perfetto */
    bool is_perfetto;   /* a Perfetto trace follows the payload */
    struct slice trace; /* text of sampled_profile, as it is in the payload */
    bool trace_is_base64, trace_is_empty;
    uint64_t trace_start_ns; /* timestamp of a chunk of V2, since 1970; 0: none */
    struct slice script;     /* JSON of js_profile, samples of React Native beside Android's trace */
    uint64_t version_offset; /* byte of the version in the payload, if has_version */
    bool only_validates;     /* keeps only what a rule asks for, so that a payload of any size gets a result (V2-10) */
    struct {
        uint64_t start_ns;
        struct slice transactions;         /* JSON of the list in the input */
        size_t transaction_count;          /* transactions in the list */
        bool has_transaction;              /* the payload has an object beside the list */
        struct v1_transaction transaction; /* the object, else the first of the list */
        unsigned described;                /* V1_… */
    } v1;
};

/* BYTES and PROFILE outlive the decoder. */
void chunk_decoder_init(struct chunk_decoder *decoder, struct slice bytes, struct profile *profile, bool is_v1);
void chunk_decoder_fini(struct chunk_decoder *decoder);

/* Returns the offset of the next value. */
static inline uint64_t chunk_offset(struct chunk_decoder *decoder)
{
    (void)json_peek(&decoder->reader);
    return json_reader_taken(&decoder->reader);
}

/* The value at OFFSET breaks RULES (bits). */
void chunk_note(struct chunk_decoder *decoder, unsigned rules, const struct expectation *expected, uint64_t offset);
/* The object at OFFSET, of which all was taken, lacks MEMBER, which RULES require. */
void chunk_note_absent(struct chunk_decoder *decoder, unsigned rules, const struct expectation *expected,
                       const char *member, uint64_t offset);
/* The value at OFFSET, which was taken or comes next, cannot be understood. */
void chunk_reject_value(struct chunk_decoder *decoder, const struct expectation *expected, uint64_t offset);

/* --- Members of objects ------------------------------------------------------------------------------------------- */

struct member {
    const char *name;
    size_t name_size;
    const char *in_quotes; /* name as json_object_next_is takes it */
    int number;            /* several names of one member have the same */
    const struct expectation *expected;
};
#define MEMBER(name, number) MEMBER_OF(name, number, expected_something)
/* With what is expected where it is missing, or null where it must not be. */
#define MEMBER_OF(name, number, expected)                                                                              \
    {                                                                                                                  \
        name, sizeof(name) - 1, "\"" name "\":", number, &(expected)                                                   \
    }

/* Members that each set of rules asks for, as bits NUMBER. */
struct member_rules {
    uint32_t required[RULES_COUNT]; /* members that must be there, and not be null */
    uint32_t not_null[RULES_COUNT]; /* members that may be absent, but not null */
    uint32_t header;                /* belong to the first of the readings */
    bool is_metadata;
};

struct members {
    const struct member *known;
    uint32_t known_count;
    uint32_t place;                   /* index in KNOWN after the last member */
    struct member_order *order;       /* order of members in such objects; NULL: that of KNOWN */
    uint32_t seen;                    /* bits NUMBER of members that were taken */
    uint32_t ignored;                 /* bits NUMBER of members that are skipped */
    const struct member_rules *rules; /* NULL: none */
    bool keeps; /* unknown members become attributes: chunk_take_attributes must follow the last one */
    bool has_begun;
    struct slice key; /* key of the last member */
    int number;       /* number of the last member, or -1 */
    uint64_t offset;  /* offset of the object in the payload */
    size_t kept_from; /* start of its attributes in decoder->attributes */
};
#define MEMBERS(table)                                                                                                 \
    {                                                                                                                  \
        .known = table, .known_count = sizeof(table) / sizeof(table[0])                                                \
    }
#define MEMBERS_VALIDATED(table, member_rules)                                                                         \
    {                                                                                                                  \
        .known = table, .known_count = sizeof(table) / sizeof(table[0]), .rules = &(member_rules), .keeps = true       \
    }

/* Notes the offset of the object whose bracket was taken. */
static inline void chunk_begin_members(struct chunk_decoder *decoder, struct members *members)
{
    members->has_begun = true;
    members->offset = json_reader_taken(&decoder->reader) - 1; /* its bracket was just taken */
    members->kept_from = decoder->attributes.size;
}

/* Notes that MEMBER was taken. */
static inline void chunk_take_member(struct members *members, const struct member *member)
{
    members->place = (uint32_t)(member - members->known) + 1;
    members->key = slice_of(member->name, member->name_size);
    members->number = member->number;
    members->seen |= 1u << member->number;
}

/* Notes what is missing of an object whose last member was taken. */
void chunk_note_missing(struct chunk_decoder *decoder, const struct members *members);

static inline int chunk_end_members(struct chunk_decoder *decoder, const struct members *members)
{
    const struct member_rules *rules = members->rules;
    if (rules && (rules->required[RULES_SPEC] | rules->required[RULES_RELAY]) & ~members->seen)
        chunk_note_missing(decoder, members);
    return -1;
}

/* Whatever comes next. */
int chunk_find_next_member(struct chunk_decoder *decoder, struct members *members);

/* The number of the next member that is known and not null, whose value is then to be taken; -1 after the last one.
 * A member that comes twice, by any of its names, fails the reader, as the server rejects it. Inlined,
 * although it is not small: a sample is three members and little else. */
static inline __attribute__((always_inline)) int chunk_next_member(struct chunk_decoder *decoder,
                                                                   struct members *members)
{
    if (!members->has_begun) chunk_begin_members(decoder, members);
    if (members->order) {
        const struct member *guess = &members->known[members->order->next[members->place]];
        bool is_due = !((members->seen | members->ignored) & 1u << guess->number);
        if (is_due && json_object_next_is(&decoder->reader, guess->in_quotes, guess->name_size + 3)) {
            chunk_take_member(members, guess);
            return guess->number;
        }
        if (json_object_ends(&decoder->reader)) return chunk_end_members(decoder, members);
    }
    return chunk_find_next_member(decoder, members);
}

/* Takes the value of the last member and keeps it as an attribute, called PREFIX and the member's name. */
void chunk_keep_value(struct chunk_decoder *decoder, struct members *members, const char *prefix);
/* The same; returns the value, empty after a failure. */
struct slice chunk_keep_and_show(struct chunk_decoder *decoder, struct members *members);
/* Keeps JSON, a value that was taken already. */
void chunk_keep_json(struct chunk_decoder *decoder, struct members *members, const char *prefix, struct slice json);
/* Keeps JSON as an attribute called NAME. */
void chunk_keep_as(struct chunk_decoder *decoder, struct members *members, const char *name, struct slice json);
void chunk_keep_text(struct chunk_decoder *decoder, struct members *members, const char *name, struct string_id text);
/* Returns the attributes of the object whose last member was taken. */
struct string_id chunk_take_attributes(struct chunk_decoder *decoder, struct members *members);

/* --- Values ------------------------------------------------------------------------------------------------------- */

struct slice chunk_read_text_or_number(struct chunk_decoder *decoder);
uint64_t chunk_read_u64(struct chunk_decoder *decoder); /* a number, or a string that holds one */
/* TEXT as a string of the profile. */
struct string_id chunk_string(struct chunk_decoder *decoder, struct slice text);
struct string_id chunk_read_string(struct chunk_decoder *decoder);
/* Any spelling, noted where it is not the plain one. */
struct string_id chunk_read_uuid(struct chunk_decoder *decoder);
uint64_t chunk_read_address(struct chunk_decoder *decoder); /* "0x1f", "31", or, with a note, 31 */
uint64_t chunk_read_size(struct chunk_decoder *decoder);    /* 31, "31", or, with a note, "0x1f" */
double chunk_read_finite(struct chunk_decoder *decoder);    /* a number that a double holds */
double chunk_read_measured(struct chunk_decoder *decoder);  /* a number, or a string that holds one (FMT-7) */

/* --- Payloads ----------------------------------------------------------------------------------------------------- */

/* Members that both versions have; the numbers of others follow. */
enum {
    PART_PLATFORM,
    PART_RELEASE,
    PART_ENVIRONMENT,
    PART_ID,
    PART_VERSION,
    PART_SDK,
    PART_IMAGES,
    PART_MEASUREMENTS,
    PART_PROFILE,
    PART_OFFBEAT,
    PARTS_SHARED,
};
void chunk_read_part(struct chunk_decoder *decoder, int part);

/* Take sampled_profile and js_profile, which become attributes, too. */
void chunk_read_trace(struct chunk_decoder *decoder, struct members *members);
void chunk_read_script(struct chunk_decoder *decoder, struct members *members);

/* Decodes both into DECODER's profile. START_NS: when the trace began, since 1970; 0: not known. */
enum status chunk_decode_trace(const struct chunk_decoder *decoder, uint64_t start_ns, struct error *error);

/* Adds the start of V1's profile to all of DECODER's times, which count from it. */
void v1_add_start(struct chunk_decoder *decoder, uint64_t start_ns);

/* Read the payload to its end. */
void v1_read_payload(struct chunk_decoder *decoder);
void v2_read_payload(struct chunk_decoder *decoder);
/* Read only the members that say what the payload is. */
void v1_read_header(struct chunk_decoder *decoder);
void v2_read_header(struct chunk_decoder *decoder);
/* Adds to the decoder's profile what DECODER read of BYTES. */
enum status v2_build(struct chunk_decoder *decoder, struct slice bytes, struct error *error);

#endif
