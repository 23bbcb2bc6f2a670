/* The neutral profile.
 *
 * Everything is named by typed ids, indices into the profile's own tables. Index 0 of each table exists from the start
 * and means "none": the empty string, no mapping, no function, the empty stack, no thread, no labels. Ids are given out
 * in order and stay valid until profile_fini.
 *
 * Adding never aborts. When memory is short or a maximum (PROFILE_…_MAX) is reached, the profile remembers it in
 * FAILED and the call returns the "none" id: a decoder adds without checking and asks profile_failed() once, at the
 * end.
 *
 * One thread at a time changes a profile. Several may read it while none changes it; reports only read.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_PROFILE_PROFILE_H
#define OFFBEAT_PROFILE_PROFILE_H

#include "base/index_table.h"
#include "base/slice.h"
#include "base/status.h"

/* clang-format off */
struct string_id    { uint32_t index; };
struct mapping_id   { uint32_t index; };
struct function_id  { uint32_t index; };
struct location_id  { uint32_t index; };
struct stack_id     { uint32_t index; };
struct process_id   { uint32_t index; };
struct thread_id    { uint32_t index; }; /* place in profile.threads, not the system's number */
struct label_set_id { uint32_t index; };
/* clang-format on */

enum {
    PROFILE_STRINGS_MAX = 64 << 20,
    PROFILE_ENTITIES_MAX = 64 << 20, /* each of mappings, functions, locations, lines, label sets */
    PROFILE_STACK_WORDS_MAX = 128 << 20,
    PROFILE_THREADS_MAX = 4 << 20,
    PROFILE_PROCESSES_MAX = 4 << 20,
    PROFILE_SAMPLES_MAX = 1 << 30,
    PROFILE_VALUES_MAX = 64, /* value types of one profile */
    PROFILE_STRING_BYTES_MAX = 1 << 20,
    PROFILE_FACTS_MAX = 4096, /* each of comments and facts */
    PROFILE_MEASUREMENTS_MAX = 4096,
    PROFILE_MARKERS_MAX = 16 << 20,
    PROFILE_MARKER_TEXTS_MAX = 64, /* of one marker */
    PROFILE_MARKER_SCHEMAS_MAX = 4096,
    PROFILE_ADDED_AT_ONCE = 128, /* as many stacks, or label sets, as are added together; and stacks fetched */
};

/* One executable segment of a file in memory; pprof's Mapping and Sentry's image in one. Addresses are as they were
 * in the profiled process. */
struct mapping {
    uint64_t start, limit; /* the segment */
    uint64_t file_offset;  /* of START in the file */
    struct string_id file_name;
    struct string_id build_id;   /* lowercase hex, any length; Sentry's code_id */
    struct string_id debug_id;   /* Sentry's debug_id, hyphenated lowercase uuid; "" = derive it from build_id */
    uint64_t image_start;        /* where the file's first loaded segment is; 0 = not known, take START */
    uint64_t image_size;         /* first to last loaded byte; 0 = not known */
    uint64_t image_vmaddr;       /* the address that the file itself gives its first loaded segment */
    struct string_id attributes; /* of its image, see below */
    struct process_id process;   /* that has this memory; 0 for a file, which several processes may map */
    bool has_functions, has_filenames, has_line_numbers, has_inline_frames; /* pprof: already symbolized so far */
};

/* Attributes: what a source of JSON said of a thing and the model has no other place for, as a JSON object
 * ({"vars":{},"platform":"native"}), "" mostly. A member with the name of something that the model does hold is what
 * the source gave for it. Formats other than Sentry's pass over them. */

enum in_app { IN_APP_UNKNOWN, IN_APP_NO, IN_APP_YES };

/* Two functions are one if all of this is equal. */
struct function {
    struct string_id name;        /* for people: demangled */
    struct string_id system_name; /* as the linker knows it: mangled; "" = the same as NAME */
    struct string_id file_name;   /* path as the debug information has it */
    int64_t start_line;           /* 0 = not known */
    struct string_id module;      /* Sentry frame.module (namespace, Java class, …) */
    struct string_id package;     /* Sentry frame.package where there is no mapping to take it from */
    enum in_app in_app;           /* UNKNOWN: decided from the mapping when it is written */
};

struct line {
    struct function_id function;
    struct string_id attributes; /* of its frame */
    int64_t line;                /* 0 = not known */
    int64_t column;              /* 0 = not known */
};

/* What kind of code a frame runs; profile/frame_kind.h derives it where a format does not say. */
enum frame_kind {
    FRAME_UNKNOWN,
    FRAME_NATIVE, /* machine code of a file */
    FRAME_KERNEL,
    FRAME_JIT, /* machine code that the process wrote */
    FRAME_INTERPRETED,
    FRAME_INLINED, /* into the frame of its caller */
    FRAME_KINDS
};

/* One place in the code. ADDRESS is inside the instruction that was executing or calling (PPF-4): a return address is
 * stored less one. Formats that want return addresses (Sentry, facts §3.5) convert at their edge. */
struct location {
    struct mapping_id mapping;
    struct string_id attributes; /* of its frame, where that had no line; else they are the line's */
    uint64_t address;            /* 0 where a format has none */
    /* In profile.lines; innermost inlined function first, the real one last. LINE_COUNT may be 0. */
    uint32_t line_first, line_count;
    bool is_folded;       /* pprof: several symbols share the address */
    enum frame_kind kind; /* of the last line, as the format gave it; FRAME_UNKNOWN: frame_kind_of() derives it */
};

/* A stack is a leaf and the stack of its caller. Stack 0 is empty and is every root's parent; a parent's index is
 * always below its children's.
 *
 * Stacks are most of a large profile, and mostly the parent of one is the one before it. So the table has one word a
 * stack, its location; where the parent is another, the word before it is a branch: the parent's index, marked, and no
 * stack itself. profile_stack_at() puts the two together. */
struct stack {
    struct stack_id parent;
    struct location_id location;
};
#define PROFILE_BRANCH 0x80000000u

/* The file name of a mapping of memory that no file is after: as perf calls it, and pprof knows it. */
#define ANONYMOUS_MAPPING "//anon"

/* Two entries are the same process if host, container and pid are equal, and the starts where both are known. Without
 * a pid, profiler_id takes its place. A process that runs another program (exec) stays the same process. */
struct process {
    int64_t pid;                  /* 0 = not known */
    int64_t parent_pid;           /* 0 = not known */
    uint64_t start_ns;            /* UTC since 1970; 0 = not known */
    struct string_id name;        /* of the program; "" = not known */
    struct string_id profiler_id; /* a text that only the profiler of this process has; "" = not known */
    struct string_id host, container;
};

struct thread {
    struct process_id process; /* 0 = not known */
    struct string_id id;       /* any text that is unique in the process; the decimal tid on Linux */
    struct string_id name;
    int32_t priority;
    bool has_priority;
    struct string_id attributes;
};

/* The key of the label that holds the name of a sample's thread where that is not the thread's name now. */
#define PROFILE_THREAD_NAME_LABEL "thread"

/* The key of the label that holds the attributes of a sample. */
#define PROFILE_ATTRIBUTES_LABEL "sentry.attributes"

struct label {
    struct string_id key;
    bool is_number;
    struct string_id text; /* unless IS_NUMBER */
    int64_t number;
    struct string_id unit; /* "" = by the rules of PPF-8 */
};

struct label_set {
    uint32_t first, count; /* in profile.labels, in the order given */
};

struct value_type {
    struct string_id type, unit; /* "wall", "nanoseconds" */
};

/* The samples, as columns of equal length. VALUES has value_type_count entries a sample, row after row. */
struct sample_columns {
    struct stack_id *stack;
    struct thread_id *thread;
    struct label_set_id *labels;
    uint64_t *time_ns; /* UTC since 1970; 0 in profiles that have no times */
    int64_t *values;
    size_t count;
    size_t capacity;
};

struct measurement_value {
    uint64_t time_ns;
    double value;
};

struct measurement {
    struct string_id name, unit, attributes;
    struct measurement_value *values;
    size_t count, capacity;
};

/* What happened in a thread, at one time or over some: a span, or what Firefox calls a marker. */
enum marker_kind { MARKER_INSTANT, MARKER_INTERVAL, MARKER_BEGIN, MARKER_END };
struct marker {
    struct string_id name, category;
    struct string_id details;        /* a JSON object; "" = there are none */
    uint32_t text_first, text_count; /* in profile.marker_texts: further details */
    struct thread_id thread;         /* 0 = not known */
    enum marker_kind kind;
    uint64_t start_ns, end_ns; /* UTC since 1970; an end has no start, and only an interval and an end have an end */
};
struct marker_text {
    struct string_id key, text;
};

/* What the recorder knows of itself ("ticks", "lost_late", …): shown by `offbeat info`, kept by formats that can.
 * A number is a count: a merge adds it up. What must not be added up ("engine", "hz") is a text. */
struct fact {
    struct string_id key;
    bool is_number;
    struct string_id text;
    int64_t number;
};

/* What only one family of formats has of a profile: its owner defines the struct. A profile has one at most. */
struct profile;
struct profile_extension_type {
    size_t size;
    void (*fini)(void *extension);
    /* Adds to INTO what the extension of FROM, which has this type, has and INTO lacks. */
    void (*merge)(struct profile *into, const struct profile *from);
};

/* clang-format off */
struct profile {
    /* Tables; read them freely, add through the functions below. */
    struct { struct slice *items; size_t count, capacity; struct index_table index; } strings; /* NUL-terminated copies */
    struct { struct mapping *items; size_t count, capacity; struct index_table index; } mappings; /* [1] is the program */
    struct { struct function *items; size_t count, capacity; struct index_table index; } functions;
    struct { struct location *items; size_t count, capacity; struct index_table index; } locations;
    struct { struct line *items; size_t count, capacity; } lines;
    struct { uint32_t *items; size_t count, capacity; struct index_table index; } stack_words; /* private, see struct stack */
    struct { struct process *items; size_t count, capacity; struct index_table index; } processes;
    struct { struct thread *items; size_t count, capacity; struct index_table index; } threads;
    struct { struct label *items; size_t count, capacity; } labels;
    struct { struct label_set *items; size_t count, capacity; struct index_table index; } label_sets;
    struct { struct measurement *items; size_t count, capacity; } measurements;
    struct { struct fact *items; size_t count, capacity; } facts;
    struct { struct string_id *items; size_t count, capacity; } comments;
    struct { struct marker *items; size_t count, capacity; } markers;
    struct { struct marker_text *items; size_t count, capacity; } marker_texts;
    struct { struct string_id *items; size_t count, capacity; } marker_schemas; /* JSON objects: how a viewer shows details */
    struct sample_columns samples;

    /* What the values are. A profile that times its samples: [0] is samples/count, [1] wall or cpu / nanoseconds. */
    struct value_type value_types[PROFILE_VALUES_MAX];
    size_t value_type_count;
    struct string_id default_value_type; /* the type to show first; "" = the last one */
    struct value_type period_type;
    int64_t period;

    bool has_times;       /* samples.time_ns means something */
    int64_t time_ns;      /* UTC start since 1970, negative before; 0 = not known */
    uint64_t duration_ns; /* 0 = not known */
    uint64_t source_bytes; /* of the files that it was read from, decompressed; 0 = of none */

    struct string_id drop_frames, keep_frames, doc_url; /* pprof */

    /* Of what was profiled, and of the profile itself. Empty where the source had none. */
    struct string_id profiler_id, chunk_id; /* 32 lowercase hex digits */
    struct string_id platform, release, environment, dist;
    struct string_id sdk_name, sdk_version;
    struct string_id active_thread; /* the id of the thread that the profile was taken for */
    bool has_ticks; /* samples were taken at a period, which may not be known: a short gap is no end */

    const struct profile_extension_type *extension_type; /* of EXTENSION; see profile_extension */
    void *extension;

    enum status failed; /* the first failure to add, or STATUS_OK */

    struct { uint8_t *current; size_t used, size; void *blocks; } string_memory; /* private to profile.c */
};
/* clang-format on */

void profile_init(struct profile *profile);
void profile_fini(struct profile *profile); /* accepts {0} */

/* STATUS_OK, or the status of the first addition that failed; sets ERROR. */
enum status profile_failed(const struct profile *profile, struct error *error);

/* --- Adding. Equal things get equal ids, except samples, measurements, markers, facts and comments. ------------ */

/* Reserves memory for as many more entries as a decoder expects, so that large tables need not move while they grow. A
 * hint; failure is ignored, and there may be more or fewer entries. */
struct profile_expected {
    size_t strings, functions, locations, stacks, samples;
};
void profile_expect(struct profile *profile, const struct profile_expected *expected);
/* The same for the samples themselves, once the value types are known. */
void profile_expect_samples(struct profile *profile, size_t more);

struct string_id profile_string(struct profile *profile, struct slice text);
struct string_id profile_text(struct profile *profile, const char *text); /* NULL = "" */
struct mapping_id profile_add_mapping(struct profile *profile, const struct mapping *mapping);
struct function_id profile_add_function(struct profile *profile, const struct function *function);
struct location_id profile_add_location(struct profile *profile, const struct location *location,
                                        const struct line *lines,
                                        uint32_t line_count); /* LOCATION's own line_first and line_count are ignored */
/* Names a place that had no lines yet, in every stack that it is part of. LINES must not point into the profile. */
void profile_set_lines(struct profile *profile, struct location_id location, const struct line *lines,
                       uint32_t line_count);
struct stack_id profile_add_stack(struct profile *profile, struct stack_id parent, struct location_id leaf);
/* Adds COUNT whole stacks in their order, as profile_add_stack would frame by frame: many at once are faster by far, as
 * the memory that they need is fetched together. An empty one is stack 0. */
struct stack_frames {
    const struct location_id *frames; /* leaf first */
    uint32_t count;
};
void profile_add_stacks(struct profile *profile, const struct stack_frames *stacks, size_t count,
                        struct stack_id *ret_ids);
/* A known process takes over what it did not have. */
struct process_id profile_add_process(struct profile *profile, const struct process *process);
/* The process with this pid; NAME may be "". 0 if PID is not above 0. */
struct process_id profile_add_pid(struct profile *profile, int64_t pid, struct string_id name);
/* Finds by PROCESS and ID. A known thread takes over NAME and PRIORITY where it had none. */
struct thread_id profile_add_thread(struct profile *profile, const struct thread *thread);
/* Order matters: the same labels in another order are another set. */
struct label_set_id profile_add_labels(struct profile *profile, const struct label *labels, uint32_t count);
/* Adds COUNT sets in their order, as profile_add_labels would one by one, fetching the memory for many of them
 * together.
 */
struct labels_of_one {
    const struct label *labels;
    uint32_t count;
};
void profile_add_labels_of_many(struct profile *profile, const struct labels_of_one *lists, size_t count,
                                struct label_set_id *ret_ids);
void profile_add_value_type(struct profile *profile, const char *type, const char *unit);

struct sample {
    struct stack_id stack;
    struct thread_id thread;
    struct label_set_id labels;
    uint64_t time_ns;
};
/* VALUES has profile->value_type_count entries; add the value types first. */
void profile_add_sample(struct profile *profile, const struct sample *sample, const int64_t *values);

/* The measurement called NAME, made if there is none. NULL on failure. Valid until another one is made. */
struct measurement *profile_measurement(struct profile *profile, const char *name, const char *unit);
void profile_measure(struct profile *profile, struct measurement *measurement, uint64_t time_ns, double value);

void profile_add_fact_number(struct profile *profile, const char *key, int64_t number);
void profile_add_fact_text(struct profile *profile, const char *key, const char *text);
void profile_add_comment(struct profile *profile, struct slice text);
/* MARKER's own text_first and text_count are ignored; at most PROFILE_MARKER_TEXTS_MAX texts. */
void profile_add_marker(struct profile *profile, const struct marker *marker, const struct marker_text *texts,
                        uint32_t text_count);
/* Equal ones are kept once. */
void profile_add_marker_schema(struct profile *profile, struct string_id json);
/* A copy that lives as long as the profile; empty without memory. */
struct slice profile_copy(struct profile *profile, struct slice bytes);
/* Remembers the first failure. */
void profile_fail(struct profile *profile, enum status status);
/* Makes room for NEEDED items in an array of PROFILE or its extension. False, and the profile has failed, if there is
 * no memory. Also false if the profile had failed before: nothing can be added to a failed profile. */
bool profile_reserve(struct profile *profile, void *items, size_t *capacity, size_t needed, size_t item_size,
                     size_t maximum);
/* The extension of PROFILE, created with zeros if there is none. NULL without memory, or if PROFILE had failed before.
 */
void *profile_extension_make(struct profile *profile, const struct profile_extension_type *type);

/* --- Asking ------------------------------------------------------------------------------------------------------- */

/* The extension of PROFILE if it has one of TYPE, else NULL. */
static inline const void *profile_extension(const struct profile *profile, const struct profile_extension_type *type)
{
    return profile->extension_type == type ? profile->extension : NULL;
}

/* NUL-terminated; valid until profile_fini. */
const char *profile_c_string(const struct profile *profile, struct string_id id);
struct slice profile_slice(const struct profile *profile, struct string_id id);
/* True if PROFILE has the string TEXT; it always has the empty one. */
bool profile_find_string(const struct profile *profile, struct slice text, struct string_id *ret_id);
const struct mapping *profile_mapping(const struct profile *profile, struct mapping_id id);
const struct function *profile_function(const struct profile *profile, struct function_id id);
const struct location *profile_location(const struct profile *profile, struct location_id id);
const struct line *profile_lines(const struct profile *profile, const struct location *location);
struct stack profile_stack(const struct profile *profile, struct stack_id id);
const struct process *profile_process(const struct profile *profile, struct process_id id);
const struct thread *profile_thread(const struct profile *profile, struct thread_id id);
/* Frames of STACK, 0 for the empty one. */
size_t profile_stack_depth(const struct profile *profile, struct stack_id stack);
/* Prefetches the memory that a walk from each of these stacks to its root reads. Prefetching for many stacks together,
 * before they are walked one by one, is much faster. COUNT is at most PROFILE_ADDED_AT_ONCE. */
void profile_fetch_stacks(const struct profile *profile, const struct stack_id *stacks, size_t count);
/* The thread to open on, as its place among those that have samples: the one that a transaction ran on, or else the one
 * whose stack changes most often. A thread whose samples are all alike mostly waits, however much they weigh. */
size_t profile_default_thread(const struct profile *profile);
/* The thread at PLACE among those that have samples; 0 if there is none, or without memory. */
struct thread_id profile_thread_with_samples(const struct profile *profile, size_t place);
/* The column of the value type called TYPE, or -1. "" = the default one. */
int profile_value_index(const struct profile *profile, const char *type);

/* All stacks have indices below this; not every index below it is a stack. */
static inline uint32_t profile_stack_limit(const struct profile *profile)
{
    return (uint32_t)profile->stack_words.count;
}

/* Whether INDEX, below the limit, is a stack. */
static inline bool profile_is_stack(const struct profile *profile, uint32_t index)
{
    return !(profile->stack_words.items[index] & PROFILE_BRANCH);
}

/* The parent of stack INDEX, which is one and not 0. */
static inline uint32_t profile_parent_at(const struct profile *profile, uint32_t index)
{
    uint32_t before = profile->stack_words.items[index - 1];
    return before & PROFILE_BRANCH ? before & ~PROFILE_BRANCH : index - 1;
}

/* The location of stack INDEX, which is one and not 0. */
static inline uint32_t profile_stack_location(const struct profile *profile, uint32_t index)
{
    return profile->stack_words.items[index];
}

/* The parent of stack INDEX + 1, where INDEX is not a stack. */
static inline uint32_t profile_branch_parent(const struct profile *profile, uint32_t index)
{
    return profile->stack_words.items[index] & ~PROFILE_BRANCH;
}

/* The locations of the stacks FIRST, FIRST + 1, …, as far as each is the parent of the next. */
static inline const uint32_t *profile_run_locations(const struct profile *profile, uint32_t first)
{
    return profile->stack_words.items + first;
}

/* The same as profile_stack() without checking the index: INDEX is a stack and not 0. */
static inline struct stack profile_stack_at(const struct profile *profile, uint32_t index)
{
    return (struct stack){.parent = {profile_parent_at(profile, index)},
                          .location = {profile->stack_words.items[index]}};
}

/* The start of a profile among times since 1970, as samples have them; 0 if it is earlier or not known. */
static inline uint64_t profile_start_ns(const struct profile *profile)
{
    return profile->time_ns > 0 ? (uint64_t)profile->time_ns : 0;
}

/* TIME_NS since 1970 as a start; the year 2262 for all that is later. */
static inline int64_t profile_start_at(uint64_t time_ns)
{
    return time_ns <= INT64_MAX ? (int64_t)time_ns : INT64_MAX;
}

static inline const int64_t *profile_sample_values(const struct profile *profile, size_t sample)
{
    return profile->samples.values + sample * profile->value_type_count;
}

/* The sum of two values, which stops at the ends of what they can be. */
static inline int64_t profile_add_values(int64_t a, int64_t b)
{
    int64_t sum;
    if (!__builtin_add_overflow(a, b, &sum)) return sum;
    return a < 0 ? INT64_MIN : INT64_MAX;
}

/* --- Whole-profile operations ------------------------------------------------------------------------------------- */

/* Adds everything of FROM to INTO. Every sample gets EXTRA_LABELS (may be NULL) before its other labels. Ids, times,
 * measurements and metadata that INTO lacks are copied; of an extension, what its merge copies. A thread
 * whose process is not known gets the process of its profile's profiler_id, if there is one. FROM's
 * value types must be INTO's (INTO may have none yet), else STATUS_UNSUPPORTED and INTO is unchanged. The start is the
 * earlier one, the duration reaches to the later end, numeric facts add up. Mappings of one file that are at different
 * addresses in the two processes become one (PPF merge): same build id or else file name, same offset and size;
 * locations move along. */
struct profile_extra_labels {
    struct {
        const char *key;
        const char *text;
        int64_t number;
        bool is_number;
    } items[8];
    uint32_t count;
};
enum status profile_merge(struct profile *into, const struct profile *from,
                          const struct profile_extra_labels *extra_labels, struct error *error);

/* Without the samples of threads of these names; NULL ends the list. */
void profile_drop_threads(struct profile *profile, const char *const *names);

/* Sums samples with equal stack, thread and labels (PPF-2), forgets the times, keeps the order of first appearance. */
enum status profile_aggregate(struct profile *profile, struct error *error);

/* Leaves out the samples all of whose values are 0: where the values are counts, they say nothing. */
void profile_drop_zero_samples(struct profile *profile);

/* Removes the samples whose entry in IS_KEPT is false. */
void profile_keep_samples(struct profile *profile, const bool *is_kept);

/* Gives an idle sample (one with the empty stack) that is between two others of its thread the stack that those
 * have in common. Sentry's backend shows profiles of V1 so (facts §4.2). The samples must be in order of time. */
enum status profile_fill_idle(struct profile *profile, struct error *error);

/* Sorts the samples by time, keeping the order of equal ones. */
enum status profile_sort_by_time(struct profile *profile, struct error *error);

#endif
