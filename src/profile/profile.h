/* The neutral profile.
 *
 * Typed ids, which are indices into the profile's tables, name everything. Index 0 of each table always exists and
 * means "none": the empty string, no mapping, no function, the empty stack, no thread, no labels. Ids are assigned in
 * order and stay valid until profile_fini.
 *
 * Adding never aborts. When memory is short or a maximum (PROFILE_…_MAX) is reached, the profile stores the status in
 * FAILED and the call returns the "none" id: a decoder adds without checking and calls profile_failed() once, at the
 * end.
 *
 * One thread at a time may change a profile. Several threads may read it while none changes it; reports only read.
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
struct thread_id    { uint32_t index; }; /* an index into profile.threads, not the system's tid */
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
    PROFILE_METADATA_MAX = 4096, /* each of comments and metadata */
    PROFILE_OMISSIONS_MAX = 16,  /* later ones are not told */
    PROFILE_MEASUREMENTS_MAX = 4096,
    PROFILE_MARKERS_MAX = 16 << 20,
    PROFILE_MARKER_TEXTS_MAX = 64, /* the texts of one marker */
    PROFILE_MARKER_SCHEMAS_MAX = 4096,
    PROFILE_ADDED_AT_ONCE = 128, /* stacks or label sets that one call adds; stacks that one call prefetches */
};

/* One executable segment of a file in memory; both pprof's Mapping and Sentry's image. Addresses are in the
 * memory of the profiled process. */
struct mapping {
    uint64_t start, limit; /* the segment */
    uint64_t file_offset;  /* the place of START in the file */
    struct string_id file_name;
    struct string_id build_id;   /* lowercase hex (profile/build_id.h); Sentry's code_id */
    struct string_id build_text; /* the source's id if it is a word that is not hex: to show, not to find a file by */
    struct string_id debug_id;   /* Sentry's debug_id, hyphenated lowercase uuid; "" = derive it from build_id */
    uint64_t image_start;        /* address of the file's first loaded segment; 0 = not known, use START */
    uint64_t image_size;         /* first to last loaded byte; 0 = not known */
    uint64_t image_vmaddr;       /* address of that segment in the file's program headers */
    struct string_id attributes; /* attributes of the image, see below */
    struct process_id process;   /* owner of the memory; 0 for a file, which several processes may map */
    bool has_functions, has_filenames, has_line_numbers, has_inline_frames; /* pprof: what has been symbolized */
};

/* Attributes: members of a JSON source for which the model has no field, as a JSON object
 * ({"vars":{},"platform":"native"}); mostly "". A member for which the model has a field is kept if the source wrote it
 * differently than the encoder would. Only Sentry's formats use attributes. */

enum in_app { IN_APP_UNKNOWN, IN_APP_NO, IN_APP_YES };

/* Functions with equal fields are the same function. */
struct function {
    struct string_id name;        /* the demangled name, for people */
    struct string_id system_name; /* the linker's, mangled; "" = the same as NAME */
    struct string_id file_name;   /* path in the debug information */
    struct string_id module;      /* Sentry frame.module (namespace, Java class, …) */
    struct string_id package;     /* Sentry frame.package if the frame has no mapping */
    enum in_app in_app;           /* UNKNOWN: the encoder decides by the mapping */
    int64_t start_line;           /* 0 = not known */
};

struct line {
    struct function_id function;
    struct string_id attributes; /* attributes of its frame */
    int64_t line;                /* 0 = not known */
    int64_t column;              /* 0 = not known */
};

/* The kind of code that a frame runs; profile/frame_kind.h derives it where a format does not say. */
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
 * stored minus 1. Formats with return addresses (Sentry, facts §3.5) convert them when they are read and written. */
struct location {
    struct mapping_id mapping;
    struct string_id attributes; /* attributes of the frame if it has no lines; else its lines have them */
    uint64_t address;            /* 0 = none */
    /* Range of profile.lines: the innermost inlined function first, the containing function last. May be empty. */
    uint32_t line_first, line_count;
    bool is_folded;       /* pprof: several symbols share the address */
    enum frame_kind kind; /* kind of the last line, from the format; FRAME_UNKNOWN: frame_kind_of() derives it */
};

/* A stack is a leaf and the stack of its caller. Stack 0 is empty and is the parent of every root; a parent has a lower
 * index than its children.
 *
 * Stacks are most of a large profile, and most of them directly follow their parent in the table. So the table has one
 * word per stack, its location. If another stack is the parent, the word before is a branch: the parent's index,
 * marked; a branch is not a stack. profile_stack_at() combines the two. */
struct stack {
    struct stack_id parent;
    struct location_id location;
};
#define PROFILE_BRANCH 0x80000000u

/* The file name of a mapping of anonymous memory: perf's name, which pprof knows. */
#define ANONYMOUS_MAPPING "//anon"

/* Two entries are the same process if host, container and pid are equal, and so are the starts if both are known.
 * Without a pid, profiler_id identifies the process. A process that runs another program (exec) stays the same process.
 */
struct process {
    int64_t pid;                  /* 0 = not known */
    int64_t parent_pid;           /* 0 = not known */
    uint64_t start_ns;            /* UTC since 1970; 0 = not known */
    struct string_id name;        /* name of the program; "" = not known */
    struct string_id profiler_id; /* unique to this process; "" = not known */
    struct string_id host, container;
};

struct thread {
    struct process_id process; /* 0 = not known */
    struct string_id id;       /* any string that is unique in the process; on Linux the decimal tid */
    struct string_id name;
    int32_t priority;
    bool has_priority;
    struct string_id attributes;
};

/* The label with the name that a sample's thread had, if the thread was renamed later. */
#define PROFILE_THREAD_NAME_LABEL "thread"

/* The label with the attributes of a sample. */
#define PROFILE_ATTRIBUTES_LABEL "sentry.attributes"

struct label {
    struct string_id key;
    bool is_number;
    struct string_id text; /* the value; "" if IS_NUMBER */
    int64_t number;
    struct string_id unit; /* "" = the rules of PPF-8 decide */
};

struct label_set {
    uint32_t first, count; /* range of profile.labels, in the order of the input */
};

struct value_type {
    struct string_id type, unit; /* "wall", "nanoseconds" */
};

/* The samples, as columns of equal length. VALUES has value_type_count entries per sample. */
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

/* An event of a thread, at one time or over some: a span, or what Firefox calls a marker. */
enum marker_kind { MARKER_INSTANT, MARKER_INTERVAL, MARKER_BEGIN, MARKER_END };
struct marker {
    struct string_id name, category;
    struct string_id details;        /* a JSON object; "" = there are none */
    uint32_t text_first, text_count; /* further details, in profile.marker_texts */
    struct thread_id thread;         /* 0 = not known */
    enum marker_kind kind;
    uint64_t start_ns, end_ns; /* UTC since 1970; an end has no start, and only an interval and an end have an end */
};
struct marker_text {
    struct string_id key, text;
};

/* Metadata of the recorder ("ticks", "lost_late", …): `offbeat info` shows it, and some formats keep it. A number is a
 * count, and a merge adds counts. A value that must not be added ("engine", "hz") is a string. */
struct metadata_entry {
    struct string_id key;
    bool is_number;
    struct string_id text;
    int64_t number;
};

/* Data that only one family of formats has: the family defines the struct. A profile has at most one extension. */
struct profile;
struct profile_extension_type {
    size_t size;
    void (*fini)(void *extension);
    /* Copies from the extension of FROM, which has this type, the fields that INTO lacks. */
    void (*merge)(struct profile *into, const struct profile *from);
};

/* clang-format off */
struct profile {
    /* Tables: any code may read them; only the functions below add to them. */
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
    struct { struct metadata_entry *items; size_t count, capacity; } metadata;
    struct { struct string_id *items; size_t count, capacity; } comments;
    struct { struct string_id *items; size_t count, capacity; } omissions; /* lines for the user: unreadable parts of the source */
    struct { struct marker *items; size_t count, capacity; } markers;
    struct { struct marker_text *items; size_t count, capacity; } marker_texts;
    struct { struct string_id *items; size_t count, capacity; } marker_schemas; /* JSON objects: how a viewer shows details */
    struct sample_columns samples;
    struct stated_costs *stated;  /* costs that files without stacks state (profile/stated_costs.h); NULL = none */
    bool has_estimated_stacks;    /* a file stated costs of calls, and had no stacks */

    /* The columns of values. In a profile with timestamps, [0] is samples/count and [1] is wall or cpu in nanoseconds. */
    struct value_type value_types[PROFILE_VALUES_MAX];
    size_t value_type_count;
    struct string_id default_value_type; /* the type that reports show first; "" = the last one */
    struct value_type period_type;
    int64_t period;

    bool has_times;       /* samples.time_ns is valid */
    int64_t time_ns;      /* UTC start since 1970, negative before; 0 = not known */
    uint64_t duration_ns; /* 0 = not known */
    uint64_t source_bytes; /* size of the files that it was read from, decompressed; 0 = none */

    struct string_id drop_frames, keep_frames, doc_url; /* pprof */

    /* Metadata of the program and of the profile; "" = not known. */
    struct string_id profiler_id, chunk_id; /* 32 lowercase hex digits */
    struct string_id platform, release, environment, dist;
    struct string_id sdk_name, sdk_version;
    struct string_id active_thread; /* the id of the thread that the profile is about */
    bool has_ticks; /* samples were taken at a period, known or not: a short gap does not end a sample */

    const struct profile_extension_type *extension_type; /* type of EXTENSION; see profile_extension */
    void *extension;

    enum status failed; /* the first failure to add, or STATUS_OK */

    struct { uint8_t *current; size_t used, size; void *blocks; } string_memory; /* private to profile.c */
};
/* clang-format on */

void profile_init(struct profile *profile);
void profile_fini(struct profile *profile); /* accepts {0} */

/* STATUS_OK, or the status of the first addition that failed; sets ERROR. */
enum status profile_failed(const struct profile *profile, struct error *error);

/* --- Adding. Equal things get equal ids, except samples, measurements, markers, metadata and comments. ------------ */

/* Reserves memory for the entries that a decoder expects, so that large tables need not move while they grow. A hint:
 * failure is ignored, and there may be more or fewer entries. */
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
/* Gives lines to a location, in every stack that contains it. LINES must not point into the profile. */
void profile_set_lines(struct profile *profile, struct location_id location, const struct line *lines,
                       uint32_t line_count);
struct stack_id profile_add_stack(struct profile *profile, struct stack_id parent, struct location_id leaf);
/* Adds COUNT stacks in order, with the same result as profile_add_stack frame by frame. Much faster for many stacks,
 * because it prefetches their memory together. An empty stack is stack 0. */
struct stack_frames {
    const struct location_id *frames; /* leaf first */
    uint32_t count;
};
void profile_add_stacks(struct profile *profile, const struct stack_frames *stacks, size_t count,
                        struct stack_id *ret_ids);
/* Copies the fields that the process lacks, if it is known. */
struct process_id profile_add_process(struct profile *profile, const struct process *process);
/* The process with this pid; NAME may be "". 0 if PID is not above 0. */
struct process_id profile_add_pid(struct profile *profile, int64_t pid, struct string_id name);
/* Finds by PROCESS and ID. If the thread is known, copies NAME and PRIORITY if it lacks them. */
struct thread_id profile_add_thread(struct profile *profile, const struct thread *thread);
/* The same labels in another order are another set. */
struct label_set_id profile_add_labels(struct profile *profile, const struct label *labels, uint32_t count);
/* Adds COUNT sets in order, with the same result as profile_add_labels one by one; prefetches their memory together. */
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

/* The measurement NAME, which is created if it is missing. NULL on failure. Valid until another one is created. */
struct measurement *profile_measurement(struct profile *profile, const char *name, const char *unit);
void profile_measure(struct profile *profile, struct measurement *measurement, uint64_t time_ns, double value);

void profile_add_metadata_number(struct profile *profile, const char *key, int64_t number);
void profile_add_metadata_text(struct profile *profile, const char *key, const char *text);
void profile_add_comment(struct profile *profile, struct slice text);
/* Says what a decoder passed over, and where: commands print it. Merging and encoding do not keep it. FORMAT as
 * printf. */
void profile_add_omission(struct profile *profile, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* MARKER's own text_first and text_count are ignored; at most PROFILE_MARKER_TEXTS_MAX texts. */
void profile_add_marker(struct profile *profile, const struct marker *marker, const struct marker_text *texts,
                        uint32_t text_count);
/* Equal ones are kept once. */
void profile_add_marker_schema(struct profile *profile, struct string_id json);
/* A copy that is valid until profile_fini; empty without memory. */
struct slice profile_copy(struct profile *profile, struct slice bytes);
/* Remembers the first failure. */
void profile_fail(struct profile *profile, enum status status);
/* Makes room for NEEDED items in an array of PROFILE or its extension. False if there is no memory, and the profile has
 * then failed. Also false if it had failed before: nothing can be added to a failed profile. */
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
/* True if PROFILE contains the string TEXT; it always contains "". */
bool profile_find_string(const struct profile *profile, struct slice text, struct string_id *ret_id);
/* Return the first string, or the first number, that the metadata have as KEY; "" and 0 if there is none. */
const char *profile_metadata_text(const struct profile *profile, const char *key);
int64_t profile_metadata_number(const struct profile *profile, const char *key);
const struct mapping *profile_mapping(const struct profile *profile, struct mapping_id id);
const struct function *profile_function(const struct profile *profile, struct function_id id);
const struct location *profile_location(const struct profile *profile, struct location_id id);
const struct line *profile_lines(const struct profile *profile, const struct location *location);
struct stack profile_stack(const struct profile *profile, struct stack_id id);
const struct process *profile_process(const struct profile *profile, struct process_id id);
const struct thread *profile_thread(const struct profile *profile, struct thread_id id);
/* The number of frames of STACK; 0 for the empty stack. */
size_t profile_stack_depth(const struct profile *profile, struct stack_id stack);
/* Prefetches the memory that walks from these stacks to their roots read. Walking many stacks is much faster after it.
 * COUNT is at most PROFILE_ADDED_AT_ONCE. */
void profile_fetch_stacks(const struct profile *profile, const struct stack_id *stacks, size_t count);
/* The default thread, as an index among the threads with samples: the thread of the transaction, or else the thread
 * whose stack changes most often. A thread whose samples are all equal mostly waits, however large their values are. */
size_t profile_default_thread(const struct profile *profile);
/* The thread at index PLACE among the threads with samples; 0 if there is none, or without memory. */
struct thread_id profile_thread_with_samples(const struct profile *profile, size_t place);
/* The column of the value type TYPE, or -1. "" = the default type. */
int profile_value_index(const struct profile *profile, const char *type);

/* The limit of the indices of stacks; not every index below it is a stack. */
static inline uint32_t profile_stack_limit(const struct profile *profile)
{
    return (uint32_t)profile->stack_words.count;
}

/* Whether INDEX, below the limit, is a stack. */
static inline bool profile_is_stack(const struct profile *profile, uint32_t index)
{
    return !(profile->stack_words.items[index] & PROFILE_BRANCH);
}

/* The parent of stack INDEX, which must be a stack other than 0. */
static inline uint32_t profile_parent_at(const struct profile *profile, uint32_t index)
{
    uint32_t before = profile->stack_words.items[index - 1];
    return before & PROFILE_BRANCH ? before & ~PROFILE_BRANCH : index - 1;
}

/* The location of stack INDEX, which must be a stack other than 0. */
static inline uint32_t profile_stack_location(const struct profile *profile, uint32_t index)
{
    return profile->stack_words.items[index];
}

/* The parent of stack INDEX + 1; INDEX must not be a stack. */
static inline uint32_t profile_branch_parent(const struct profile *profile, uint32_t index)
{
    return profile->stack_words.items[index] & ~PROFILE_BRANCH;
}

/* The locations of the stacks FIRST, FIRST + 1, …, as long as each is the parent of the next. */
static inline const uint32_t *profile_run_locations(const struct profile *profile, uint32_t first)
{
    return profile->stack_words.items + first;
}

/* The same as profile_stack() without a check: INDEX must be a stack other than 0. */
static inline struct stack profile_stack_at(const struct profile *profile, uint32_t index)
{
    return (struct stack){.parent = {profile_parent_at(profile, index)},
                          .location = {profile->stack_words.items[index]}};
}

/* The start of a profile in the unit of timestamps of samples; 0 if it is before 1970 or not known. */
static inline uint64_t profile_start_ns(const struct profile *profile)
{
    return profile->time_ns > 0 ? (uint64_t)profile->time_ns : 0;
}

/* TIME_NS since 1970 as a start; at most the year 2262. */
static inline int64_t profile_start_at(uint64_t time_ns)
{
    return time_ns <= INT64_MAX ? (int64_t)time_ns : INT64_MAX;
}

static inline const int64_t *profile_sample_values(const struct profile *profile, size_t sample)
{
    return profile->samples.values + sample * profile->value_type_count;
}

/* The sum of two values, limited to the range of int64_t. */
static inline int64_t profile_add_values(int64_t a, int64_t b)
{
    int64_t sum;
    if (!__builtin_add_overflow(a, b, &sum)) return sum;
    return a < 0 ? INT64_MIN : INT64_MAX;
}

/* Returns A minus B, limited to the range of int64_t. */
static inline int64_t profile_subtract_values(int64_t a, int64_t b)
{
    int64_t difference;
    if (!__builtin_sub_overflow(a, b, &difference)) return difference;
    return a < 0 ? INT64_MIN : INT64_MAX;
}

/* --- Whole-profile operations ------------------------------------------------------------------------------------- */

/* Adds FROM to INTO.
 *
 * Each sample gets EXTRA_LABELS (may be NULL) before its other labels. Ids, times, measurements and metadata that INTO
 * lacks are copied; the extension's merge() copies the extension. A thread without a process gets the process with its
 * profile's profiler_id, if there is one. The start is the earlier one, the duration ends at the later end, and numeric
 * metadata is added. Mappings of one file at different addresses of two processes become one (PPF merge): same build id
 * or else file name, same offset and size; their locations move with them.
 *
 * Stated costs are added if both have them. If one profile has samples without stated costs, the sum has none.
 *
 * FROM must have the value types of INTO (INTO may have none yet), else STATUS_UNSUPPORTED and INTO is
 * unchanged. */
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

/* Removes the samples of threads with these names; NULL ends the list. */
void profile_drop_threads(struct profile *profile, const char *const *names);

/* Adds samples with equal stack, thread and labels (PPF-2), removes timestamps, and keeps the order of first
 * appearance. */
enum status profile_aggregate(struct profile *profile, struct error *error);

/* Removes the samples whose values are all 0. */
void profile_drop_zero_samples(struct profile *profile);

/* Removes the samples whose entry in IS_KEPT is false. Stated costs follow if, of each thread and set of labels, all
 * samples stay or all go; else they are dropped. */
void profile_keep_samples(struct profile *profile, const bool *is_kept);

/* Gives an idle sample (with the empty stack) between two other samples of its thread the stack that these have in
 * common, as Sentry's backend does for profiles of V1 (facts §4.2). The samples must be in order of time. */
enum status profile_fill_idle(struct profile *profile, struct error *error);

/* Sorts the samples by time; samples with equal times keep their order. */
enum status profile_sort_by_time(struct profile *profile, struct error *error);

#endif
