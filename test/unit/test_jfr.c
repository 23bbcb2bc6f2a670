/* Recordings of Java that are broken; test/cli/jfr.py compares real ones with jfr print.  SPDX-License-Identifier: MIT
 */
#include "test.h"

#include "base/file.h"
#include "dump.h"
#include "format/format.h"

static void read_real(struct buffer *raw)
{
    struct buffer file;
    struct slice bytes;
    buffer_init(&file, 1 << 20);
    CHECK_UINT(file_read(TEST_SOURCE_ROOT "/test/data/jfr/g1.jfr.gz", &file, NULL), STATUS_OK);
    CHECK_UINT(format_decompress(buffer_slice(&file), FORMAT_BYTES_MAX, raw, &bytes, NULL), STATUS_OK);
    buffer_fini(&file);
}

static enum status decode(struct buffer *bytes, size_t size, struct error *error)
{
    struct profile profile;
    profile_init(&profile);
    enum status status = format_jfr.decode(slice_of(bytes->data, size), &profile, error);
    profile_fini(&profile);
    return status;
}

TEST(reads_value_types_of_the_events_that_are_there)
{
    struct buffer bytes;
    struct profile profile;
    read_real(&bytes);
    profile_init(&profile);
    CHECK_UINT(format_jfr.decode(buffer_slice(&bytes), &profile, NULL), STATUS_OK);
    CHECK(profile.has_times);
    CHECK_TEXT(profile_c_string(&profile, profile.value_types[0].type), "samples");
    CHECK_TEXT(profile_c_string(&profile, profile.value_types[2].type), "alloc_space");
    CHECK_TEXT(profile_c_string(&profile, profile.default_value_type), "samples");
    CHECK_INT(profile.period, 10000000);
    CHECK_TEXT(profile_c_string(&profile, profile.period_type.unit), "nanoseconds");
    profile_fini(&profile);
    buffer_fini(&bytes);
}

TEST(rejects_a_chunk_that_is_cut_short_before_its_descriptions)
{
    struct buffer bytes;
    struct error error = {0};
    read_real(&bytes);
    for (size_t size = 0; size < bytes.size - 500; size += size < 100 ? 1 : 997) {
        enum status status = decode(&bytes, size, &error);
        CHECK_UINT(status, size < 6 ? STATUS_NOT_THIS_FORMAT : STATUS_MALFORMED);
    }
    buffer_fini(&bytes);
}

/* The descriptions end 95 bytes before the end. */
TEST(reads_a_chunk_that_is_cut_short_after_its_descriptions)
{
    for (int is_unfinished = 0; is_unfinished < 2; is_unfinished++) {
        struct buffer bytes;
        struct profile profile;
        read_real(&bytes);
        profile_init(&profile);
        if (is_unfinished) memset(bytes.data + 8, 0, 8);
        CHECK_UINT(format_jfr.decode(slice_of(bytes.data, bytes.size - 10), &profile, NULL), STATUS_OK);
        CHECK_UINT(profile.omissions.count, 1);
        CHECK(strstr(profile_c_string(&profile, profile.omissions.items[0]),
                     "is cut short or was not finished, at byte"));
        CHECK(profile.samples.count > 0);
        profile_fini(&profile);
        buffer_fini(&bytes);
    }
}

TEST(a_later_chunk_that_is_cut_short_is_left_out)
{
    struct buffer bytes;
    read_real(&bytes);
    size_t size = bytes.size, sizes[] = {2 * size - 500, size + 100, size + 10, size + 2};
    uint8_t *both = malloc(2 * size);
    memcpy(both, bytes.data, size);
    memcpy(both + size, bytes.data, size);
    struct profile whole;
    profile_init(&whole);
    CHECK_UINT(format_jfr.decode(slice_of(both, size), &whole, NULL), STATUS_OK);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct profile profile;
        profile_init(&profile);
        CHECK_UINT(format_jfr.decode(slice_of(both, sizes[i]), &profile, NULL), STATUS_OK);
        CHECK_UINT(profile.samples.count, whole.samples.count);
        CHECK_UINT(profile.omissions.count, 1);
        profile_fini(&profile);
    }
    profile_fini(&whole);
    free(both);
    buffer_fini(&bytes);
}

TEST(rejects_what_is_broken_with_its_place)
{
    struct buffer bytes;
    struct error error = {0};
    read_real(&bytes);
    bytes.data[67] = 0;
    CHECK_UINT(decode(&bytes, bytes.size, &error), STATUS_UNSUPPORTED);
    CHECK_UINT(error.offset, 64);
    bytes.data[67] = 1;
    bytes.data[68] = 1; /* the size of the first event */
    CHECK_UINT(decode(&bytes, bytes.size, &error), STATUS_MALFORMED);
    CHECK_UINT(error.offset, 68);
    buffer_fini(&bytes);
}

/* --- A file of async-profiler -------------------------------------------------------------------------------------
 */

enum { LONG = 1, INT, STRING, THREAD, TRACE, FRAME, METHOD, CLASS, SYMBOL, EVENTS };

struct field {
    const char *name;
    unsigned class_id;
    bool is_constant, is_array;
};

struct class
{
    const char *name;
    struct field fields[6];
};

/* As async-profiler 4 describes them, without what is not read; by number, from LONG on. */
static const struct class classes[] = {
    {"long", {{0}}},
    {"int", {{0}}},
    {"java.lang.String", {{0}}},
    {"java.lang.Thread", {{"osName", STRING, 0, 0}, {"osThreadId", LONG, 0, 0}}},
    {"jdk.types.StackTrace", {{"truncated", INT, 0, 0}, {"frames", FRAME, 0, true}}},
    {"jdk.types.StackFrame", {{"method", METHOD, true, 0}, {"lineNumber", INT, 0, 0}}},
    {"jdk.types.Method", {{"type", CLASS, true, 0}, {"name", SYMBOL, true, 0}}},
    {"java.lang.Class", {{"name", SYMBOL, true, 0}}},
    {"jdk.types.Symbol", {{"string", STRING, 0, 0}}},
#define SAMPLED                                                                                                        \
    {"startTime", LONG, 0, 0}, {"sampledThread", THREAD, true, 0},                                                     \
    {                                                                                                                  \
        "stackTrace", TRACE, true, 0                                                                                   \
    }
#define IN_THREAD                                                                                                      \
    {"startTime", LONG, 0, 0}, {"eventThread", THREAD, true, 0},                                                       \
    {                                                                                                                  \
        "stackTrace", TRACE, true, 0                                                                                   \
    }
#define WAITED                                                                                                         \
    {"startTime", LONG, 0, 0}, {"duration", LONG, 0, 0}, {"eventThread", THREAD, true, 0},                             \
    {                                                                                                                  \
        "stackTrace", TRACE, true, 0                                                                                   \
    }
    {"jdk.ExecutionSample", {SAMPLED}},
    {"profiler.WallClockSample", {SAMPLED, {"samples", INT, 0, 0}, {"timeSpan", LONG, 0, 0}}},
    {"jdk.ObjectAllocationInNewTLAB", {IN_THREAD, {"allocationSize", LONG, 0, 0}, {"tlabSize", LONG, 0, 0}}},
    {"jdk.ObjectAllocationOutsideTLAB", {IN_THREAD, {"allocationSize", LONG, 0, 0}}},
    {"profiler.LiveObject", {IN_THREAD, {"allocationSize", LONG, 0, 0}, {"allocationTime", LONG, 0, 0}}},
    {"profiler.Malloc", {IN_THREAD, {"address", LONG, 0, 0}, {"size", LONG, 0, 0}}},
    {"jdk.JavaMonitorEnter", {WAITED, {"address", LONG, 0, 0}}},
    {"profiler.NativeLock", {WAITED, {"address", LONG, 0, 0}}},
};

enum { CLASSES = sizeof(classes) / sizeof(classes[0]), FIELDS_MAX = 6 };

static void put_number(struct buffer *file, uint64_t number)
{
    for (; number > 0x7f; number >>= 7) buffer_append_byte(file, (uint8_t)(number | 0x80));
    buffer_append_byte(file, (uint8_t)number);
}

static void put_numbers(struct buffer *file, const uint64_t *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++) put_number(file, numbers[i]);
}

static void put_string(struct buffer *file, const char *text)
{
    buffer_append_byte(file, 3); /* UTF-8 */
    put_number(file, strlen(text));
    buffer_append_text(file, text);
}

static void put_event(struct buffer *file, const struct buffer *body)
{
    put_number(file, body->size + 2); /* with a byte that pads, or a size of two bytes */
    buffer_append(file, body->data, body->size);
    if (body->size + 2 < 0x80) buffer_append_byte(file, 0);
}

/* The first strings of the metadata. Then each class has its number, its name and the names of its fields. */
enum { TEXT_CLASS, TEXT_FIELD, TEXT_ID, TEXT_NAME, TEXT_OF, TEXT_POOL, TEXT_DIMENSION, TEXT_ROOT, TEXT_TRUE, TEXTS };

static void put_metadata(struct buffer *file)
{
    static const char *const texts[TEXTS] = {"class",        "field",     "id",   "name", "class",
                                             "constantPool", "dimension", "root", "true"};
    struct buffer body;
    uint64_t count = TEXTS + CLASSES;
    buffer_init(&body, 1 << 16);
    for (size_t i = 0; i < CLASSES; i++)
        for (size_t k = 0; k < FIELDS_MAX && classes[i].fields[k].name; k++) count++;
    put_numbers(&body, (const uint64_t[]){0, 0, 0, 0}, 4); /* type, start, duration, number */
    put_number(&body, count + CLASSES);
    for (size_t i = 0; i < TEXTS; i++) put_string(&body, texts[i]);
    for (size_t i = 0; i < CLASSES; i++) {
        char id[8];
        (void)snprintf(id, sizeof(id), "%zu", i + 1);
        put_string(&body, id);
        put_string(&body, classes[i].name);
        for (size_t k = 0; k < FIELDS_MAX && classes[i].fields[k].name; k++)
            put_string(&body, classes[i].fields[k].name);
    }
    uint64_t text = TEXTS, ids[CLASSES];
    for (size_t i = 0; i < CLASSES; i++) {
        ids[i] = text;
        text += 2;
        for (size_t k = 0; k < FIELDS_MAX && classes[i].fields[k].name; k++) text++;
    }
    put_numbers(&body, (const uint64_t[]){TEXT_ROOT, 0, CLASSES}, 3);
    for (size_t i = 0; i < CLASSES; i++) {
        uint64_t fields = 0;
        while (fields < FIELDS_MAX && classes[i].fields[fields].name) fields++;
        put_numbers(&body, (const uint64_t[]){TEXT_CLASS, 2, TEXT_ID, ids[i], TEXT_NAME, ids[i] + 1, fields}, 7);
        for (uint64_t k = 0; k < fields; k++) {
            const struct field *field = &classes[i].fields[k];
            put_numbers(&body, (const uint64_t[]){TEXT_FIELD, 2u + field->is_constant + field->is_array}, 2);
            put_numbers(&body, (const uint64_t[]){TEXT_NAME, ids[i] + 2 + k, TEXT_OF, ids[field->class_id - 1]}, 4);
            if (field->is_constant) put_numbers(&body, (const uint64_t[]){TEXT_POOL, TEXT_TRUE}, 2);
            if (field->is_array) put_numbers(&body, (const uint64_t[]){TEXT_DIMENSION, ids[0]}, 2); /* "1" */
            put_number(&body, 0);
        }
    }
    put_number(file, body.size + 2);
    buffer_append(file, body.data, body.size);
    buffer_fini(&body);
}

/* One thread, one stack: NAME of class "a/B" on line 5. */
static void put_constants(struct buffer *file, const char *name)
{
    struct buffer body;
    buffer_init(&body, 1 << 10);
    put_numbers(&body, (const uint64_t[]){1, 0, 0, 0, 1, 6}, 6); /* type, start, duration, next, reason, tables */
    put_numbers(&body, (const uint64_t[]){THREAD, 1, 1}, 3);
    put_string(&body, "main");
    put_number(&body, 77);
    put_numbers(&body, (const uint64_t[]){TRACE, 1, 1, 0, 1, 1, 5}, 7);
    put_numbers(&body, (const uint64_t[]){METHOD, 1, 1, 1, 2}, 5);
    put_numbers(&body, (const uint64_t[]){CLASS, 1, 1, 1}, 4);
    put_numbers(&body, (const uint64_t[]){SYMBOL, 2, 1}, 3);
    put_string(&body, "a/B");
    put_number(&body, 2);
    put_string(&body, name);
    put_numbers(&body, (const uint64_t[]){INT, 0}, 2);
    put_event(file, &body);
    buffer_fini(&body);
}

static void put_sample(struct buffer *file, unsigned number, const uint64_t *values, size_t count)
{
    struct buffer body;
    buffer_init(&body, 1 << 10);
    put_number(&body, EVENTS + number);
    put_numbers(&body, values, count);
    put_event(file, &body);
    buffer_fini(&body);
}

static void put_big_endian(struct buffer *file, uint64_t number, unsigned size)
{
    while (size-- > 0) buffer_append_byte(file, (uint8_t)(number >> 8 * size));
}

/* A chunk that begins at START_NS, with a tick of 1 ns. */
static void put_chunk(struct buffer *file, uint64_t start_ns, const char *name)
{
    enum { HEADER = 68 };
    struct buffer body;
    buffer_init(&body, 1 << 16);
    put_metadata(&body);
    uint64_t constants = HEADER + body.size;
    put_constants(&body, name);
    put_sample(&body, 0, (const uint64_t[]){10, 1, 1}, 3);
    put_sample(&body, 1, (const uint64_t[]){20, 1, 1, 4, 900}, 5);
    put_sample(&body, 2, (const uint64_t[]){30, 1, 1, 24, 1000}, 5);
    put_sample(&body, 3, (const uint64_t[]){40, 1, 1, 5000}, 4);
    put_sample(&body, 4, (const uint64_t[]){50, 1, 1, 64, 7}, 5);
    put_sample(&body, 5, (const uint64_t[]){60, 1, 1, 123456, 300}, 5);
    put_sample(&body, 6, (const uint64_t[]){70, 2000, 1, 1, 9}, 5);
    put_sample(&body, 7, (const uint64_t[]){80, 3000, 1, 1, 9}, 5);
    buffer_append(file, "FLR\0\0\2\0\0", 8);
    put_big_endian(file, HEADER + body.size, 8);
    put_big_endian(file, constants, 8);
    put_big_endian(file, HEADER, 8);
    put_big_endian(file, start_ns, 8);
    put_big_endian(file, 100, 8); /* duration */
    put_big_endian(file, 0, 8);   /* first tick */
    put_big_endian(file, 1000000000, 8);
    put_big_endian(file, 1, 4); /* compressed numbers */
    buffer_append(file, body.data, body.size);
    buffer_fini(&body);
}

#define SAMPLE(time, values, name) "sample at " time " thread 77/main " values "\n a.B." name " (:5:0)\n"
#define CHUNK(second, name)                                                                                            \
    SAMPLE(second "010", "1 0 0 0 0 0 0 0 0 0", name)                                                                  \
    SAMPLE(second "020", "0 4 0 0 0 0 0 0 0 0", name)                                                                  \
    SAMPLE(second "030", "0 0 1 1000 0 0 0 0 0 0", name)                                                               \
    SAMPLE(second "040", "0 0 1 5000 0 0 0 0 0 0", name)                                                               \
    SAMPLE(second "050", "0 0 0 0 1 64 0 0 0 0", name)                                                                 \
    SAMPLE(second "060", "0 0 0 0 0 0 1 300 0 0", name)                                                                \
    SAMPLE(second "070", "0 0 0 0 0 0 0 0 1 2000", name)                                                               \
    SAMPLE(second "080", "0 0 0 0 0 0 0 0 1 3000", name)

TEST(events_of_async_profiler_in_two_chunks)
{
    struct buffer file, out;
    struct profile profile;
    struct error error = {0};
    buffer_init(&file, 1 << 16);
    profile_init(&profile);
    put_chunk(&file, 1000, "first");
    put_chunk(&file, 2000, "second");
    if (format_jfr.decode(buffer_slice(&file), &profile, &error) != STATUS_OK) TEST_FAIL("%s", error.message);
    CHECK_TEXT(dump(&out, &profile, DUMP_TIMES | DUMP_THREADS | DUMP_VALUES),
               "samples/count wall/count tlab_objects/count tlab_space/bytes live_objects/count live_space/bytes "
               "malloc_objects/count malloc_space/bytes contentions/count delay/nanoseconds\n" CHUNK("1", "first")
                   CHUNK("2", "second"));
    buffer_fini(&out);
    profile_fini(&profile);
    buffer_fini(&file);
}

TEST(only_format_2_is_detected)
{
    CHECK(format_jfr.detect(slice_of("FLR\0\0\2\0\1", 8)));
    CHECK(!format_jfr.detect(slice_of("FLR\0\0\1\0\0", 8)));
    CHECK(!format_jfr.detect(slice_of("FLR", 3)));
}

TEST(frames_have_the_kind_that_the_virtual_machine_gave_them)
{
    struct buffer bytes;
    struct profile profile;
    size_t counts[FRAME_KINDS] = {0};
    read_real(&bytes);
    profile_init(&profile);
    CHECK_UINT(format_jfr.decode(buffer_slice(&bytes), &profile, NULL), STATUS_OK);
    for (size_t i = 1; i < profile.locations.count; i++) counts[profile.locations.items[i].kind]++;
    CHECK(counts[FRAME_INTERPRETED] > 0);
    CHECK(counts[FRAME_JIT] > 0);
    CHECK(counts[FRAME_INLINED] > 0);
    CHECK_UINT(counts[FRAME_UNKNOWN], 0);
    profile_fini(&profile);
    buffer_fini(&bytes);
}

TEST_MAIN()
