/* Shared parts of the readers of pprof's older formats: lines and numbers of text, and the lists from which the profile
 * is built. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_PPROF_PPROF_LEGACY_PRIVATE_H
#define OFFBEAT_FORMAT_PPROF_PPROF_LEGACY_PRIVATE_H

#include "base/cursor.h"
#include "base/index_table.h"
#include "format/common/text_line.h"
#include "format/pprof/pprof_legacy.h"

enum { LEGACY_VALUES_MAX = 4 };

struct legacy_sample {
    uint32_t frame_first, frame_count; /* in frames; leaf first */
    int64_t values[LEGACY_VALUES_MAX];
    int64_t block_bytes; /* the label "bytes" */
    bool has_block_bytes;
};

struct legacy_mapping {
    uint64_t start, limit, offset;
    struct string_id file, build_id; /* strings of the profile */
};

/* An address that samples name. */
struct legacy_place {
    uint64_t address;
    uint32_t mapping;            /* index in mappings plus one; 0 = none */
    struct function_id function; /* Java's: its name takes the place of the address */
    int64_t line;
};

/* A profile that is being read. */
/* clang-format off */
struct legacy {
    struct slice bytes;
    struct profile *profile;
    struct error *error;
    enum status status; /* the first failure; no more is read after it */
    struct { struct legacy_sample *items; size_t count, capacity; } samples;
    struct { uint64_t *items; size_t count, capacity; } frames; /* addresses, then indices of places */
    struct { struct legacy_mapping *items; size_t count, capacity; } mappings;
    struct { struct legacy_place *items; size_t count, capacity; struct index_table index; } places;
};
/* clang-format on */

/* Keeps the first failure. PLACE points into BYTES. */
#define LEGACY_FAIL(legacy, place, ...)                                                                                \
    ((legacy)->status == STATUS_OK                                                                                     \
         ? (void)((legacy)->status = error_set((legacy)->error, STATUS_MALFORMED,                                      \
                                               (uint64_t)((place) - (legacy)->bytes.data), __VA_ARGS__))               \
         : (void)0)

/* Makes room for one more item. Returns false after a failure, a list of more than MAXIMUM WHAT among others. */
bool legacy_make_room(struct legacy *legacy, void *items, size_t *capacity, size_t count, size_t item_size,
                      size_t maximum, const char *what);
#define LEGACY_MAKE_ROOM(legacy, list, maximum, what)                                                                  \
    legacy_make_room((legacy), &(list)->items, &(list)->capacity, (list)->count, sizeof(*(list)->items), (maximum),    \
                     (what))

void legacy_set_period(struct legacy *legacy, const char *type, const char *unit, int64_t period);
/* Returns a new sample, which takes the frames of the next calls of legacy_add_frame. NULL on failure. */
struct legacy_sample *legacy_add_sample(struct legacy *legacy);
void legacy_add_frame(struct legacy *legacy, uint64_t address);
/* Adds the hexadecimal numbers in TEXT (each "0x…") as frames; all but the first SKIPPED are return addresses. */
void legacy_add_frames(struct legacy *legacy, struct slice text, unsigned skipped);

/* Turns addresses into places, numbered by first use in the order of samples. What is done to frames after it works on
 * indices. */
void legacy_find_places(struct legacy *legacy);
static inline struct legacy_place *legacy_place_of(const struct legacy *legacy, const struct legacy_sample *sample,
                                                   uint32_t frame)
{
    return &legacy->places.items[legacy->frames.items[sample->frame_first + frame]];
}
/* The place with ADDRESS, or NULL. */
struct legacy_place *legacy_find_place(const struct legacy *legacy, uint64_t address);
/* Removes frame 1, the leaf's caller. */
void legacy_drop_caller(struct legacy *legacy, struct legacy_sample *sample);
/* A profiler that takes the leaf from the signal's context as well as from the stack has it twice. */
void legacy_drop_doubled_leaves(struct legacy *legacy);

/* Reads the mappings in what is left of CURSOR, lines as in /proc/PID/maps or briefer, then gives each place its own.
 * PLACES must have been found. */
void legacy_read_mappings(struct legacy *legacy, struct cursor *cursor);
/* Finds the places, then does the same with the lines after the first line that announces mappings; CURRENT is the line
 * read last. */
void legacy_read_mappings_section(struct legacy *legacy, struct slice current, struct cursor *cursor);

/* One reader for each kind. CURSOR begins with the line or word that identified it. */
void legacy_read_cpu(struct legacy *legacy, struct cursor *cursor);
void legacy_read_heap(struct legacy *legacy, struct cursor *cursor);
void legacy_read_count(struct legacy *legacy, struct cursor *cursor);
void legacy_read_threads(struct legacy *legacy, struct cursor *cursor);
void legacy_read_contention(struct legacy *legacy, struct cursor *cursor);
void legacy_read_java_text(struct legacy *legacy, struct cursor *cursor);
bool legacy_detect_cpu(struct slice bytes);
/* The names of Java's places: what is left of CURSOR. */
void legacy_read_java_places(struct legacy *legacy, struct cursor *cursor);

/* 1/(1 - e^(-size/count/rate)) times as many: what a sampler that picks one byte in RATE has not seen. */
void legacy_unsample(int64_t *count, int64_t *size, int64_t rate);
/* A double as a whole number, cut; what is too large becomes the largest. */
int64_t legacy_whole(double value);
int64_t legacy_times(int64_t a, int64_t b); /* saturating */

/* --- Lines -------------------------------------------------------------------------------------------------------- */

/* The next line without its end. False when there is none. */
bool legacy_next_line(struct cursor *cursor, struct slice *ret_line);
struct slice legacy_trim(struct slice text);
/* Empty, or a comment that begins with "#". */
bool legacy_is_blank(struct slice line);
/* Returns the place of WORD in TEXT, or NULL. */
const uint8_t *legacy_search(struct slice text, const char *word);
/* Splits LINE, "key = value". Returns false if it has no "=". */
bool legacy_split_attribute(struct slice line, struct slice *ret_key, struct slice *ret_value);
/* "--- Memory map: ---", "MAPPED_LIBRARIES:". */
bool legacy_announces_mappings(struct slice line);

/* --- Within a line: what is not there makes the cursor fail. ------------------------------------------------------ */

void legacy_skip_blanks(struct cursor *cursor);
void legacy_expect(struct cursor *cursor, const char *text);
int64_t legacy_decimal(struct cursor *cursor); /* with or without a minus */
uint64_t legacy_hex(struct cursor *cursor);    /* at least one digit, without 0x */
void legacy_two_decimals(struct cursor *cursor, int64_t *ret_first, int64_t *ret_second); /* "1 2 @" */
struct slice legacy_word(struct cursor *cursor); /* up to the next blank; may be empty */
static inline struct slice legacy_rest(const struct cursor *cursor)
{
    return slice_of(cursor->position, cursor_left(cursor));
}

#endif
