/* Parts that the readers of both forms of Firefox's profiles share: tables as columns of numbers.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_VIEWER_FIREFOX_PRIVATE_H
#define OFFBEAT_FORMAT_VIEWER_FIREFOX_PRIVATE_H

#include "base/array.h"
#include "format/common/json_members.h"
#include "format/viewer/firefox.h"

enum { NONE = -1 };

/* A column of numbers; null is stored as NONE. */
struct column {
    int64_t *items;
    size_t count, capacity;
};

enum { FRAME_ADDRESS, FRAME_DEPTH, FRAME_FUNCTION, FRAME_LINE, FRAME_COLUMN, FRAME_CATEGORY, FRAME_COLUMNS };
enum { FUNCTION_NAME, FUNCTION_FILE, FUNCTION_SOURCE, FUNCTION_LINE, FUNCTION_RESOURCE, FUNCTION_COLUMNS };
enum { STACK_FRAME, STACK_PREFIX, STACK_COLUMNS };

/* The tables that the stacks of one thread, or of all, refer to. */
struct tables {
    struct column stacks[STACK_COLUMNS], frames[FRAME_COLUMNS], functions[FUNCTION_COLUMNS];
    struct column resource_libraries, source_names;
    ARRAY_OF(struct string_id) strings;
    struct stack_id *made; /* stack of the model for each stack */
    bool *is_made;
};

struct library {
    struct mapping mapping;
    struct mapping_id id;
    uint64_t size;       /* up to the last address used */
    uint64_t start, end; /* addresses in memory, of a raw profile */
};

enum { META, LIBS, SHARED, THREADS, PROCESSES, PROFILE_PARTS };
enum { STACK_TABLE, FRAME_TABLE, FUNCTION_TABLE, RESOURCE_TABLE, SOURCES, STRINGS, STRING_TABLE, TABLE_PARTS };
enum { NAME, PID, TID, PROCESS_NAME, SAMPLES, MARKERS, NATIVE_ALLOCATIONS, JS_ALLOCATIONS, THREAD_PARTS };
enum { STACKS, TIMES, TIME_DELTAS, WEIGHTS, WEIGHT_TYPE, CPU_DELTAS, SCHEMA, DATA, SAMPLE_PARTS };

struct thread_parts {
    struct json_member own[THREAD_PARTS], samples[SAMPLE_PARTS];
    struct slice tables; /* the object itself */
    uint32_t process;    /* index in the decoder's list */
};

/* Each process of a raw profile has its own clock and libraries. */
struct process_parts {
    uint64_t start_ns;
    size_t library_first, library_end;
    size_t category_first, category_end;
};

struct category {
    struct string_id name;
    enum frame_kind kind; /* kind of a frame of this category */
};

enum measure {
    MEASURE_SAMPLES,
    MEASURE_TIME,
    MEASURE_BYTES,
    MEASURE_CPU,
    MEASURE_NATIVE_ALLOCATIONS,
    MEASURE_JS_ALLOCATIONS,
    MEASURES
};

struct decoder {
    struct json_parts file;
    ARRAY_OF(struct thread_parts) threads;
    ARRAY_OF(struct library) libraries;
    ARRAY_OF(struct process_parts) processes;
    ARRAY_OF(struct category) categories;    /* categories of all processes */
    ARRAY_OF(struct marker_text) references; /* types of markers, and their members that stand for strings */
    unsigned depth;                          /* level of the process at hand */
    int64_t cpu_unit_ns;                     /* 0: CPU time is not known */
    unsigned columns[MEASURES];
    struct slice first_pid;
    bool has_several_processes;
    struct tables shared;
    bool has_shared_stacks;
};

void firefox_fail(struct decoder *decoder, enum status status, struct slice place, const char *message);

/* Sets the values of MEMBERS, called NAMES, of OBJECT, which may be empty. */
void firefox_note(struct decoder *decoder, struct slice object, const char *const *names, struct json_member *members,
                  size_t count);

/* The next value × 10^POWER; NONE for null. */
int64_t firefox_number(struct json_reader *reader, int power);

void firefox_read_strings(struct decoder *decoder, struct slice list, struct tables *tables);

void firefox_read_column(struct decoder *decoder, struct slice value, int power, struct column *column);

/* OFFSET_NS after, or before, START_NS; 0 or UINT64_MAX if the time is beyond these. */
uint64_t firefox_time_at(uint64_t start_ns, int64_t offset_ns);

/* Checks what the stacks of TABLES refer to. PLACE: in the file. */
void firefox_check_tables(struct decoder *decoder, struct slice place, struct tables *tables);

static inline bool firefox_is_raw(const struct thread_parts *thread)
{
    return thread->samples[SCHEMA].value.size > 0;
}

/* --- Markers ------------------------------------------------------------------------------------------------------ */

/* Objects of the lists meta.markerSchema and meta.categories. */
void firefox_take_marker_schema(struct decoder *decoder, struct slice schema);
void firefox_take_category(struct decoder *decoder, struct slice category);

/* The markers of the thread PARTS, once its tables, and the schemas of all processes, are known. */
void firefox_read_markers(struct decoder *decoder, const struct thread_parts *parts, const struct tables *tables,
                          struct thread_id thread_id);

/* --- The raw form ------------------------------------------------------------------------------------------------- */

/* The tables of THREAD. Stack n has its callers' places in row n, and is in row n + RET_LEAVES where it is a sample's:
 * the addresses of callers are return addresses, and are put inside of the call. */
void firefox_raw_tables(struct decoder *decoder, const struct thread_parts *thread, struct tables *tables,
                        size_t *ret_leaves);

/* The places in a row that MEMBERS of a schema say; NONE where they say none. */
void firefox_raw_places(const struct json_member *members, int64_t *ret_places, size_t count);

/* The columns COUNT of them called NAMES of a table with "schema" and "data". Values are multiplied by 10^POWERS. */
void firefox_raw_columns(struct decoder *decoder, struct slice table, const char *const *names, const int *powers,
                         struct column *columns, size_t count);

#endif
