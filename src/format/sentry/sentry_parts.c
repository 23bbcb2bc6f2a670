/* The parts of a payload that sample formats V1 and V2 share: the profile with its frames, stacks, samples and
 * threads, the images, the measurements, and the SDK that sent it.
 *
 * The parts of a JSON object come in any order, so the decoder first stores them in arrays; sentry_v2_build.c then
 * builds the model. Attributes keep values that the model cannot write back unchanged (a line 0, a file name that is
 * not the end of its path). If a server would reject the payload because of a value, the attribute's name begins with
 * "offbeat_" (doc/formats/sentry-v2.md). SPDX-License-Identifier: MIT */
#include "format/sentry/sentry_decoder_private.h"

#include "base/array.h"
#include "base/digits.h"
#include "base/hash.h"
#include "base/hex.h"
#include "base/uuid.h"
#include "format/common/metadata.h"

enum {
    CHUNK_ITEMS_MAX = 64 << 20, /* items of each kind; an accepted chunk has far fewer */
    UUID_HYPHENATED_SIZE = 36,
};

#define OURS "offbeat_"

/* Measurements of Node's SDK use milliseconds; all others use seconds. A time after the year 5138 is milliseconds. */
#define MILLISECONDS_FROM 1e11

/* Room for one more item of decoder->TABLE, zeroed and counted; NULL on failure, which the reader then remembers. */
#define ADD_ITEM(decoder, table)                                                                                       \
    ((__typeof__((decoder)->chunk.table.items))add_item(                                                               \
        (decoder), &(decoder)->chunk.table.items, &(decoder)->chunk.table.count, &(decoder)->chunk.table.capacity,     \
        sizeof(*(decoder)->chunk.table.items)))

static inline void *add_item(struct chunk_decoder *decoder, void *items, size_t *count, size_t *capacity,
                             size_t item_size)
{
    if (*count == *capacity && !array_reserve(items, capacity, *count + 1, item_size, CHUNK_ITEMS_MAX)) {
        json_reader_reject(&decoder->reader, STATUS_NO_MEMORY, "no memory for the chunk");
        return NULL;
    }
    uint8_t *item = *(uint8_t **)items + *count * item_size;
    memset(item, 0, item_size);
    (*count)++;
    return item;
}

static inline void read_list(struct chunk_decoder *decoder, void (*read_item)(struct chunk_decoder *))
{
    json_array_begin(&decoder->reader);
    while (json_array_next(&decoder->reader)) read_item(decoder);
}

/* A string of the model; whether it was present but empty is stored too. */
static struct string_id read_text(struct chunk_decoder *decoder, struct members *members)
{
    struct slice text = json_string(&decoder->reader);
    if (text.size == 0) chunk_keep_json(decoder, members, "", slice_of_text("\"\""));
    return chunk_string(decoder, text);
}

/* The string of a member that servers ignore. A value of another kind is kept unchanged. */
static struct string_id read_text_if_any(struct chunk_decoder *decoder, struct members *members)
{
    if (json_peek(&decoder->reader) == JSON_STRING) return read_text(decoder, members);
    chunk_keep_value(decoder, members, "");
    return (struct string_id){0};
}

/* V1's documents require what only the service requires of V2. */
static unsigned breaks_relay(const struct chunk_decoder *decoder)
{
    return decoder->is_v1 ? BREAKS_BOTH : BREAKS_RELAY;
}

/* V1 has no MEMBERS (bits): its rules allow missing and repeated members. */
static uint32_t ignored_in_v1(const struct chunk_decoder *decoder, uint32_t members)
{
    return decoder->is_v1 && decoder->only_validates ? members : 0;
}

/* --- Frames ------------------------------------------------------------------------------------------------------- */

/* A line or a column. */
static int64_t read_line_number(struct chunk_decoder *decoder, struct members *members)
{
    uint64_t offset = chunk_offset(decoder);
    int64_t number = json_i64(&decoder->reader);
    if (number > 0 && number <= UINT32_MAX) return number;
    struct slice json = slice_of(decoder->reader.start + offset, json_reader_taken(&decoder->reader) - offset);
    if (number != 0 || (decoder->is_v1 && json.size > 0 && json.data[0] == '-'))
        chunk_note(decoder, breaks_relay(decoder), &expected_u32, offset);
    if (!decoder->reader.failed) chunk_keep_json(decoder, members, number ? OURS : "", json);
    return number;
}

/* Our own addition: values that differ from what we write are kept unchanged. */
static int64_t read_start_line(struct chunk_decoder *decoder, struct members *members)
{
    uint64_t offset = chunk_offset(decoder);
    bool is_number = json_peek(&decoder->reader) == JSON_NUMBER;
    int64_t line = is_number ? json_i64(&decoder->reader) : 0;
    if (!is_number) json_skip(&decoder->reader);
    if (line > 0 || decoder->reader.failed) return line;
    chunk_keep_json(decoder, members, "",
                    slice_of(decoder->reader.start + offset, json_reader_taken(&decoder->reader) - offset));
    return 0;
}

/* Whether sentry_v2_encode.c, which writes one path, will reproduce the file name. */
static bool is_file_written_back(const struct profile *profile, const struct chunk_frame *frame)
{
    struct slice name = profile_slice(profile, frame->file_name), path = profile_slice(profile, frame->absolute_path);
    if (path.size == 0) return name.size == 0 || name.data[0] != '/';
    if (path.data[0] != '/') return false;
    if (name.size == 0) return true;
    return name.size < path.size && path.data[path.size - name.size - 1] == '/' &&
           memcmp(path.data + path.size - name.size, name.data, name.size) == 0 && !memchr(name.data, '/', name.size);
}

/* FILE_JSON: the JSON of the file's name in the input. */
static void keep_what_is_lost(struct chunk_decoder *decoder, struct members *members, const struct chunk_frame *frame,
                              struct slice file_json)
{
    const struct function *function = &frame->function;
    bool is_kept_empty = file_json.size && !frame->file_name.index;
    if (!is_file_written_back(decoder->profile, frame) && !is_kept_empty) {
        chunk_keep_as(decoder, members, "filename", frame->file_name.index ? file_json : slice_of_text("null"));
    }
    if (function->system_name.index && (!function->name.index || function->name.index == function->system_name.index)) {
        chunk_keep_text(decoder, members, "raw_function", function->system_name);
    }
    /* A bare address becomes a location without a function, which can store neither of these. */
    bool is_bare = frame->has_address && !function->name.index && !frame->file_name.index &&
                   !frame->absolute_path.index && !function->module.index && !frame->line;
    if (!is_bare || !members->keeps) return;
    if (function->package.index) chunk_keep_text(decoder, members, "package", function->package);
    if (function->in_app != IN_APP_UNKNOWN) {
        chunk_keep_as(decoder, members, "in_app", slice_of_text(function->in_app == IN_APP_YES ? "true" : "false"));
    }
}

/* Sets FRAME's kind of code. The platform is kept as an attribute. */
static void read_frame_platform(struct chunk_decoder *decoder, struct members *members, struct chunk_frame *frame)
{
    static const char *const native[] = {"\"native\"", "\"cocoa\"", "\"rust\""};
    if (json_peek(&decoder->reader) != JSON_STRING) {
        chunk_note(decoder, breaks_relay(decoder), &expected_string, chunk_offset(decoder));
        chunk_keep_value(decoder, members, OURS);
        return;
    }
    struct slice rest = slice_of(decoder->reader.position, (size_t)(decoder->reader.end - decoder->reader.position));
    frame->code = CHUNK_CODE_OTHER;
    for (size_t i = 0; i < sizeof(native) / sizeof(native[0]); i++) {
        if (text_begins_with(rest, native[i])) frame->code = CHUNK_CODE_NATIVE;
    }
    chunk_keep_value(decoder, members, "");
}

static void read_frame(struct chunk_decoder *decoder)
{
    enum { FUNCTION, PATH, MODULE, PACKAGE, LINE, COLUMN, FILE, IN_APP, ADDRESS, RAW, PLATFORM, START_LINE };
    static const struct member known[] = {
        MEMBER("function", FUNCTION),
        MEMBER("filename", FILE),
        MEMBER("abs_path", PATH),
        MEMBER("lineno", LINE),
        MEMBER("colno", COLUMN),
        MEMBER("in_app", IN_APP),
        MEMBER("instruction_addr", ADDRESS),
        MEMBER("module", MODULE),
        MEMBER("package", PACKAGE),
        MEMBER("raw_function", RAW),
        MEMBER("platform", PLATFORM),
        MEMBER("offbeat_start_line", START_LINE),
        MEMBER("name", FUNCTION),
        MEMBER("file", FILE),
        MEMBER("line", LINE),
        MEMBER("column", COLUMN),
    };
    enum { NAMED = 1 << FUNCTION | 1 << FILE | 1 << ADDRESS };
    struct members members = MEMBERS(known);
    struct slice file_json = {0};
    uint32_t seen = 0;
    struct chunk_frame *frame = ADD_ITEM(decoder, frames);
    if (!frame) return;
    struct function *function = &frame->function;
    struct string_id *const texts[] = {&function->name, &frame->absolute_path, &function->module, &function->package};
    _Static_assert(sizeof(known) / sizeof(known[0]) <= MEMBER_ORDER_MAX, "the order of frames' members has room");
    members.order = &decoder->order.frames;
    members.ignored = ignored_in_v1(decoder, 1 << RAW | 1 << START_LINE);
    members.keeps = true;
    json_object_begin(&decoder->reader);
    for (int member; (member = chunk_next_member(decoder, &members)) >= 0;) {
        seen |= 1u << member;
        switch (member) {
        case LINE:
        case COLUMN:
            *(member == LINE ? &frame->line : &frame->column) = read_line_number(decoder, &members);
            break;
        case FILE:
            file_json.data = decoder->reader.start + chunk_offset(decoder);
            frame->file_name = read_text(decoder, &members);
            file_json.size = (size_t)(decoder->reader.position - file_json.data);
            break;
        case IN_APP:
            function->in_app = json_bool(&decoder->reader) ? IN_APP_YES : IN_APP_NO;
            break;
        case ADDRESS:
            frame->has_address = true;
            frame->address = chunk_read_address(decoder);
            if (frame->address == 0) chunk_keep_json(decoder, &members, "", slice_of_text("\"0x0\""));
            break;
        case RAW:
            function->system_name = read_text_if_any(decoder, &members);
            break;
        case START_LINE:
            function->start_line = read_start_line(decoder, &members);
            break;
        case PLATFORM:
            read_frame_platform(decoder, &members, frame);
            break;
        default:
            *texts[member] = read_text(decoder, &members);
        }
    }
    /* FMT-3. Native code too: the address is used to find these names. */
    if ((seen & NAMED) == 0) chunk_note(decoder, BREAKS_SPEC, &expected_name_of_frame, members.offset);
    frame->offset = (uint32_t)members.offset;
    keep_what_is_lost(decoder, &members, frame, file_json);
    frame->attributes = chunk_take_attributes(decoder, &members);
}

/* --- Stacks and samples ------------------------------------------------------------------------------------------- */

/* INDEX_NONE for this value or more. V1 allows digits only, not "-0". */
static uint32_t read_index(struct chunk_decoder *decoder)
{
    if (decoder->is_v1 && json_next_byte(&decoder->reader) == '-')
        chunk_note(decoder, BREAKS_BOTH, &expected_index, chunk_offset(decoder));
    uint64_t index = json_u64(&decoder->reader);
    return index < INDEX_NONE ? (uint32_t)index : INDEX_NONE;
}

static void read_stack(struct chunk_decoder *decoder)
{
    struct chunk_stack *stack = ADD_ITEM(decoder, stacks);
    if (!stack) return;
    stack->first = (uint32_t)decoder->chunk.frame_indices.count;
    json_array_begin(&decoder->reader);
    while (json_array_next(&decoder->reader)) {
        uint32_t frame = read_index(decoder);
        uint32_t *index = ADD_ITEM(decoder, frame_indices);
        if (!index) return;
        *index = frame;
    }
    stack->count = (uint32_t)decoder->chunk.frame_indices.count - stack->first;
}

/* The last bytes of TEXT in a word: ids of threads are small numbers or addresses, which differ there. */
static uint64_t tail_of(struct slice text)
{
    uint64_t tail = 0;
    if (text.size >= sizeof(tail)) {
        memcpy(&tail, text.data + text.size - sizeof(tail), sizeof(tail));
        return tail;
    }
    for (size_t i = 0; i < text.size; i++) tail = tail << 8 | text.data[i];
    return tail;
}

static bool is_cached(const struct cached_thread *cached, struct slice text, uint64_t tail)
{
    if (cached->id.index == 0 || cached->text.size != text.size || cached->tail != tail) return false;
    return text.size <= sizeof(tail) || bytes_equal(cached->text.data, text.data, text.size - sizeof(tail));
}

/* V1's threads are numbers: for its rules, "07" is thread 7. Other text stays. */
static struct slice number_of_thread(struct slice text)
{
    size_t zeros = 0;
    while (zeros + 1 < text.size && text.data[zeros] == '0') zeros++;
    return zeros == 0 ? text : slice_of(text.data + zeros, text.size - zeros); /* TEXT may have no data */
}

static struct thread_id read_thread_id(struct chunk_decoder *decoder)
{
    uint64_t offset = chunk_offset(decoder), number;
    if (json_peek(&decoder->reader) == JSON_NUMBER) /* V1's service takes it */
        chunk_note(decoder, decoder->is_v1 ? BREAKS_SPEC : BREAKS_BOTH,
                   decoder->is_v1 ? &expected_digits : &expected_string, offset);
    struct slice text = chunk_read_text_or_number(decoder);
    if (decoder->is_v1 && decoder->only_validates) {
        if (!text_number(text, &number)) chunk_note(decoder, BREAKS_BOTH, &expected_whole, offset);
        text = number_of_thread(text);
    }
    uint64_t tail = tail_of(text);
    struct cached_thread *cached = &decoder->thread_cache[hash_mix(text.size, tail) % CHUNK_THREAD_CACHE_SIZE];
    if (is_cached(cached, text, tail)) return cached->id;

    struct thread thread = {.id = chunk_string(decoder, text)};
    struct thread_id id = profile_add_thread(decoder->profile, &thread);
    *cached = (struct cached_thread){.text = profile_slice(decoder->profile, thread.id), .tail = tail, .id = id};
    return id;
}

/* V1: a string of digits (V1-9); the service also takes a number. Document 004 has a number in its example; its text
 * and document 000 say a string, and 000 takes precedence. */
static uint64_t read_elapsed(struct chunk_decoder *decoder)
{
    if (json_peek(&decoder->reader) == JSON_NUMBER)
        chunk_note(decoder, BREAKS_SPEC, &expected_digits, chunk_offset(decoder));
    return chunk_read_u64(decoder);
}

/* Usually all threads of a tick have the same timestamp: it is converted once. */
static double read_seconds(struct chunk_decoder *decoder)
{
    struct json_reader *reader = &decoder->reader;
    struct cached_time *cached = &decoder->time_cache;
    (void)json_next_byte(reader);
    const uint8_t *start = reader->position;
    size_t size = cached->text.size;
    if (size && (size_t)(reader->end - start) > size && (start[size] == ',' || start[size] == '}') &&
        bytes_equal(start, cached->text.data, size)) {
        reader->position += size;
        return cached->seconds;
    }
    double seconds = chunk_read_finite(decoder);
    size_t taken = reader->failed ? 0 : (size_t)(reader->position - start);
    *cached = (struct cached_time){slice_of(start, taken), seconds};
    return seconds;
}

static void read_sample(struct chunk_decoder *decoder)
{
    enum { TIME, STACK, THREAD, QUEUE, ALL = 1 << TIME | 1 << STACK | 1 << THREAD };
    static const struct member known[] = {MEMBER_OF("timestamp", TIME, expected_finite),
                                          MEMBER_OF("stack_id", STACK, expected_index),
                                          MEMBER_OF("thread_id", THREAD, expected_string)};
    static const struct member relative[] = {
        MEMBER_OF("elapsed_since_start_ns", TIME, expected_digits), MEMBER_OF("stack_id", STACK, expected_index),
        MEMBER_OF("thread_id", THREAD, expected_digits), MEMBER("queue_address", QUEUE)};
    static const struct member_rules rules = {.required = {ALL, ALL}};
    struct members members = MEMBERS_VALIDATED(known, rules);
    struct chunk_sample *sample = ADD_ITEM(decoder, samples);
    uint32_t taken = 0;
    if (!sample) return;
    if (decoder->is_v1) {
        members.known = relative;
        members.known_count = sizeof(relative) / sizeof(relative[0]);
        if (!decoder->only_validates) members.ignored = 1 << QUEUE;
    }
    members.order = &decoder->order.samples;
    json_object_begin(&decoder->reader);
    for (int member; (member = chunk_next_member(decoder, &members)) >= 0;) {
        taken |= 1u << member;
        switch (member) {
        case TIME:
            if (decoder->is_v1)
                sample->time_ns = read_elapsed(decoder);
            else
                sample->seconds = read_seconds(decoder);
            break;
        case STACK:
            sample->stack = read_index(decoder);
            break;
        case THREAD:
            sample->thread = read_thread_id(decoder);
            break;
        case QUEUE:
            (void)json_string(&decoder->reader);
            break;
        }
    }
    if ((taken & ALL) != ALL) {
        json_reader_reject(&decoder->reader, STATUS_MALFORMED,
                           decoder->is_v1 ? "sample without elapsed_since_start_ns, stack_id or thread_id"
                                          : "sample without timestamp, stack_id or thread_id");
    }
    sample->attributes = chunk_take_attributes(decoder, &members);
}

static void read_samples(struct chunk_decoder *decoder)
{
    struct json_reader *reader = &decoder->reader;
    json_array_begin(reader);
    for (bool is_first = true; json_array_next(reader); is_first = false) {
        size_t start = json_reader_taken(reader);
        read_sample(decoder);
        size_t size = json_reader_taken(reader) - start;
        if (!is_first || size == 0 || reader->failed) continue;
        /* Most bytes of a chunk are samples of about the same size: the first gives their maximum number. */
        size_t left = (size_t)(reader->end - reader->position) / size;
        if (left > CHUNK_ITEMS_MAX / 2) left = CHUNK_ITEMS_MAX / 2;
        (void)ARRAY_RESERVE(&decoder->chunk.samples, left, CHUNK_ITEMS_MAX);
    }
}

/* --- Threads ------------------------------------------------------------------------------------------------------ */

static void read_priority(struct chunk_decoder *decoder, struct members *members, struct thread *thread)
{
    uint64_t offset = chunk_offset(decoder);
    bool is_number = json_peek(&decoder->reader) == JSON_NUMBER;
    struct json_number number = is_number ? json_number(&decoder->reader) : (struct json_number){0};
    double priority = is_number ? json_number_to_double(&number) : 0;
    bool is_u32 = number.is_integer && priority >= 0 && priority <= UINT32_MAX;
    bool is_valid = is_u32 && !(decoder->is_v1 && number.is_negative); /* "-0" */
    chunk_note(decoder, is_number ? is_valid ? 0 : breaks_relay(decoder) : BREAKS_BOTH, &expected_u32, offset);
    thread->has_priority = number.is_integer && priority >= INT32_MIN && priority <= INT32_MAX;
    thread->priority = thread->has_priority ? (int32_t)priority : 0;
    if (!is_number)
        chunk_keep_value(decoder, members, OURS);
    else if (!thread->has_priority)
        chunk_keep_json(decoder, members, is_u32 ? "" : OURS, number.text);
}

static void read_thread(struct chunk_decoder *decoder, struct string_id id)
{
    enum { NAME, PRIORITY, OUR_PRIORITY };
    static const struct member known[] = {MEMBER("name", NAME), MEMBER("priority", PRIORITY),
                                          MEMBER(OURS "priority", OUR_PRIORITY)};
    struct members members = MEMBERS(known);
    struct thread thread = {.id = id};
    members.keeps = true;
    members.ignored = ignored_in_v1(decoder, 1 << OUR_PRIORITY);
    json_object_begin(&decoder->reader);
    for (int member; (member = chunk_next_member(decoder, &members)) >= 0;) {
        if (member == NAME) {
            thread.name = read_text(decoder, &members);
        } else if (member == PRIORITY) {
            read_priority(decoder, &members, &thread);
        } else { /* a negative one, which we wrote */
            struct json_number number = {0};
            if (json_peek(&decoder->reader) == JSON_NUMBER)
                number = json_number(&decoder->reader);
            else
                chunk_keep_value(decoder, &members, "");
            double priority = json_number_to_double(&number);
            if (number.is_integer && priority >= INT32_MIN && priority < 0 && !thread.has_priority) {
                thread.has_priority = true;
                thread.priority = (int32_t)priority;
            } else if (number.text.size) {
                chunk_keep_json(decoder, &members, "", number.text);
            }
        }
    }
    thread.attributes = chunk_take_attributes(decoder, &members);
    struct thread_id *described = ADD_ITEM(decoder, described_threads);
    if (described) *described = profile_add_thread(decoder->profile, &thread);
}

static void read_thread_metadata(struct chunk_decoder *decoder)
{
    struct slice key;
    json_object_begin(&decoder->reader);
    while (json_object_next(&decoder->reader, &key)) {
        bool is_number = decoder->is_v1 && decoder->only_validates;
        struct string_id id = chunk_string(decoder, is_number ? number_of_thread(key) : key);
        uint64_t offset = chunk_offset(decoder);
        if (json_null(&decoder->reader))
            chunk_note(decoder, BREAKS_BOTH, &expected_object, offset);
        else
            read_thread(decoder, id);
    }
}

static void read_profile(struct chunk_decoder *decoder)
{
    enum { FRAMES, STACKS, SAMPLES, THREADS, TABLES = 1 << FRAMES | 1 << STACKS | 1 << SAMPLES };
    static const struct member known[] = {
        MEMBER_OF("frames", FRAMES, expected_array), MEMBER_OF("stacks", STACKS, expected_array),
        MEMBER_OF("samples", SAMPLES, expected_array), MEMBER_OF("thread_metadata", THREADS, expected_object)};
    static const struct member of_v1[] = {
        MEMBER_OF("samples", SAMPLES, expected_array), MEMBER_OF("stacks", STACKS, expected_array),
        MEMBER_OF("frames", FRAMES, expected_array), MEMBER_OF("thread_metadata", THREADS, expected_object)};
    static const struct member_rules rules = {
        .required = {[RULES_SPEC] = TABLES | 1 << THREADS, [RULES_RELAY] = TABLES}};
    struct members members = MEMBERS_VALIDATED(known, rules);
    if (decoder->is_v1) members.known = of_v1; /* if several are missing, the error names the first one */
    decoder->has_profile = true;
    json_object_begin(&decoder->reader);
    for (int member; (member = chunk_next_member(decoder, &members)) >= 0;) {
        switch (member) {
        case FRAMES:
            read_list(decoder, read_frame);
            break;
        case STACKS:
            read_list(decoder, read_stack);
            break;
        case SAMPLES:
            read_samples(decoder);
            break;
        case THREADS:
            read_thread_metadata(decoder);
            break;
        }
    }
    decoder->extension->attributes.data = chunk_take_attributes(decoder, &members);
}

/* --- Images ------------------------------------------------------------------------------------------------------- */

static bool is_one_of(struct slice text, const char *const *words, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (slice_equals_text(text, words[i])) return true;
    }
    return false;
}

/* False for everything except native code. */
static bool read_image_type(struct chunk_decoder *decoder, struct members *members)
{
    static const char *const types[] = {"macho", "symbolic", "sourcemap", "proguard", "jvm"};
    uint64_t offset = chunk_offset(decoder);
    if (json_peek(&decoder->reader) != JSON_STRING) {
        chunk_note(decoder, BREAKS_BOTH, &expected_string, offset);
        chunk_keep_value(decoder, members, OURS);
        return true;
    }
    struct string_id type = chunk_read_string(decoder);
    struct slice text = profile_slice(decoder->profile, type);
    bool is_known = is_one_of(text, types, sizeof(types) / sizeof(types[0]));
    if (!is_known) chunk_note(decoder, BREAKS_RELAY, &expected_image_type, offset);
    if (!slice_equals_text(text, "symbolic")) { /* the encoder writes that */
        chunk_keep_text(decoder, members, is_known ? "type" : OURS "type", type);
    }
    return !is_one_of(text, types + 2, 3);
}

/* "…", or "…-1f" with the age of a file. */
static bool is_debug_id(struct slice text, bool *ret_is_plain)
{
    char uuid[UUID_TEXT_SIZE];
    struct slice front = text;
    for (size_t tried = text.size; tried > 32 && tried > text.size - 10; tried--) {
        bool ends_uuid = tried == UUID_HYPHENATED_SIZE || tried == UUID_TEXT_SIZE - 1;
        if (ends_uuid && tried < text.size) front.size = tried;
    }
    struct slice age = slice_of(text.data + front.size, text.size - front.size);
    for (size_t i = age.size && age.data[0] == '-' ? 1 : 0; i < age.size; i++) {
        if (hex_digit(age.data[i]) < 0) return false;
    }
    *ret_is_plain = text.size == UUID_HYPHENATED_SIZE && uuid_parse(text, uuid);
    return uuid_parse(front, uuid);
}

/* The encoder writes the model's id if it is a plain uuid. */
static void read_debug_id(struct chunk_decoder *decoder, struct members *members, struct mapping *mapping)
{
    bool is_plain = false;
    uint64_t offset = chunk_offset(decoder);
    mapping->debug_id = chunk_read_string(decoder);
    bool is_valid = is_debug_id(profile_slice(decoder->profile, mapping->debug_id), &is_plain);
    if (!is_valid && !decoder->is_v1) chunk_note(decoder, BREAKS_RELAY, &expected_debug_id, offset);
    if (!is_plain) chunk_keep_text(decoder, members, is_valid ? "debug_id" : OURS "debug_id", mapping->debug_id);
}

/* "uuid", or its other name "build_id": for the server it must be a uuid. A build id is the code id. */
static void read_image_uuid(struct chunk_decoder *decoder, struct members *members, struct mapping *mapping)
{
    char uuid[UUID_TEXT_SIZE];
    uint64_t offset = chunk_offset(decoder);
    bool is_build_id = slice_equals_text(members->key, "build_id");
    if (json_peek(&decoder->reader) != JSON_STRING) {
        chunk_note(decoder, BREAKS_RELAY, &expected_uuid, offset);
        chunk_keep_value(decoder, members, OURS);
        return;
    }
    struct string_id id = chunk_read_string(decoder);
    bool is_uuid = uuid_parse(profile_slice(decoder->profile, id), uuid);
    if (!is_uuid) chunk_note(decoder, BREAKS_RELAY, &expected_uuid, offset);
    if (is_build_id && !mapping->build_id.index) mapping->build_id = id;
    const char *name = is_build_id ? is_uuid ? "build_id" : OURS "build_id" : is_uuid ? "uuid" : OURS "uuid";
    chunk_keep_text(decoder, members, name, id);
}

static void read_image(struct chunk_decoder *decoder)
{
    enum { TYPE, CODE_FILE, DEBUG_ID, CODE_ID, START, VMADDR, SIZE, UUID };
    static const struct member known[] = {
        MEMBER_OF("type", TYPE, expected_string),
        MEMBER("code_file", CODE_FILE),
        MEMBER("debug_id", DEBUG_ID),
        MEMBER("code_id", CODE_ID),
        MEMBER("image_addr", START),
        MEMBER_OF("image_size", SIZE, expected_size),
        MEMBER("image_vmaddr", VMADDR),
        MEMBER("uuid", UUID),
        MEMBER("build_id", UUID),
        MEMBER("name", CODE_FILE),
        MEMBER("id", DEBUG_ID),
    };
    static const struct member_rules rules = {.required = {1 << TYPE, 1 << TYPE}, .not_null = {0, 1 << SIZE}};
    static const struct member_rules of_v1 = {.required = {1 << TYPE, 1 << TYPE}, .not_null = {1 << SIZE, 1 << SIZE}};
    struct members members = MEMBERS_VALIDATED(known, rules);
    struct mapping mapping = {0};
    bool is_native = true;
    const uint8_t *start = decoder->reader.start + chunk_offset(decoder);
    if (decoder->is_v1) members.rules = &of_v1;
    members.ignored = ignored_in_v1(decoder, 1 << CODE_ID);
    json_object_begin(&decoder->reader);
    for (int member; (member = chunk_next_member(decoder, &members)) >= 0;) {
        switch (member) {
        case TYPE:
            is_native = read_image_type(decoder, &members);
            break;
        case CODE_FILE:
            mapping.file_name = read_text(decoder, &members);
            break;
        case DEBUG_ID:
            read_debug_id(decoder, &members, &mapping);
            break;
        case CODE_ID:
            mapping.build_id = read_text_if_any(decoder, &members);
            break;
        case START:
            mapping.image_start = chunk_read_address(decoder);
            break;
        case VMADDR:
            mapping.image_vmaddr = chunk_read_address(decoder);
            break;
        case SIZE:
            mapping.image_size = chunk_read_size(decoder);
            break;
        case UUID:
            read_image_uuid(decoder, &members, &mapping);
            break;
        }
    }
    /* For native code, the documents require more of images; the platform may follow. */
    bool has_id = mapping.debug_id.index || mapping.build_id.index;
    if (is_native && !(mapping.image_start && has_id) && !decoder->chunk.incomplete_image.member) {
        decoder->chunk.incomplete_image.member = mapping.image_start ? "debug_id" : "image_addr";
        decoder->chunk.incomplete_image.offset = members.offset;
    }
    mapping.attributes = chunk_take_attributes(decoder, &members);
    if (decoder->reader.failed) return;
    decoder->chunk.image_count++;
    decoder->chunk.has_images |= is_native;
    if (!mapping.image_start) { /* a source map, a mapping of classes: no place in memory */
        if (decoder->only_validates) return;
        sentry_add_image(decoder->profile, slice_of(start, (size_t)(decoder->reader.position - start)));
        return;
    }
    struct chunk_image *image = ADD_ITEM(decoder, images);
    if (!image) return;
    mapping.start = mapping.image_start;
    if (__builtin_add_overflow(mapping.start, mapping.image_size, &mapping.limit)) mapping.limit = UINT64_MAX;
    image->mapping = mapping;
}

static void read_debug_meta(struct chunk_decoder *decoder)
{
    static const struct member known[] = {MEMBER_OF("images", 0, expected_array)};
    static const struct member_rules rules = {.required = {1, 1}};
    struct members members = MEMBERS_VALIDATED(known, rules);
    json_object_begin(&decoder->reader);
    while (chunk_next_member(decoder, &members) >= 0) {
        read_list(decoder, read_image);
    }
    decoder->extension->attributes.debug_meta = chunk_take_attributes(decoder, &members);
}

static void read_client_sdk(struct chunk_decoder *decoder)
{
    static const struct member known[] = {MEMBER_OF("name", 0, expected_string),
                                          MEMBER_OF("version", 1, expected_string)};
    static const struct member_rules rules = {.required = {3, 3}};
    struct members members = MEMBERS_VALIDATED(known, rules);
    json_object_begin(&decoder->reader);
    for (int member; (member = chunk_next_member(decoder, &members)) >= 0;) {
        *(member == 0 ? &decoder->profile->sdk_name : &decoder->profile->sdk_version) = chunk_read_string(decoder);
    }
    decoder->extension->attributes.client_sdk = chunk_take_attributes(decoder, &members);
}

/* --- Measurements ------------------------------------------------------------------------------------------------- */

/* V1: a value from before the start has no time. A client that writes 0 for it gives several values that time. */
static void read_measurement_value(struct chunk_decoder *decoder, struct measurement *measurement, bool is_first)
{
    static const struct member known[] = {MEMBER_OF("timestamp", 0, expected_finite),
                                          MEMBER_OF("value", 1, expected_measured)};
    static const struct member relative[] = {MEMBER_OF("elapsed_since_start_ns", 0, expected_digits),
                                             MEMBER_OF("value", 1, expected_measured)};
    static const struct member_rules rules = {.required = {3, 3}};
    struct members members = {
        .known = decoder->is_v1 ? relative : known, .known_count = 2, .rules = &rules, .order = &decoder->order.values};
    uint64_t time_ns = 0;
    double value = 0;
    json_object_begin(&decoder->reader);
    for (int member; (member = chunk_next_member(decoder, &members)) >= 0;) {
        if (member == 1) {
            value = chunk_read_measured(decoder);
        } else if (decoder->is_v1) {
            uint64_t offset = chunk_offset(decoder);
            time_ns = read_elapsed(decoder);
            if (time_ns == 0 && !is_first) chunk_note(decoder, BREAKS_SPEC, &expected_later, offset);
        } else {
            double seconds = chunk_read_finite(decoder);
            time_ns = chunk_seconds_to_ns(seconds > MILLISECONDS_FROM ? seconds / 1000 : seconds);
        }
    }
    profile_measure(decoder->profile, measurement, time_ns, value);
}

bool chunk_unit_is_known(struct slice unit, enum rules rules)
{
    static const char *const units[] = {"nanosecond", "ns", "hertz", "hz", "byte", "percent", "nanojoule", "nj"};
    enum { SPEC_UNITS = 6 };
    return is_one_of(unit, units, rules == RULES_SPEC ? SPEC_UNITS : sizeof(units) / sizeof(units[0]));
}

static void read_unit(struct chunk_decoder *decoder, struct measurement *measurement)
{
    uint64_t offset = chunk_offset(decoder);
    measurement->unit = chunk_read_string(decoder);
    struct slice unit = profile_slice(decoder->profile, measurement->unit);
    if (!chunk_unit_is_known(unit, RULES_RELAY)) chunk_note(decoder, BREAKS_RELAY, &expected_unit, offset);
    if (!chunk_unit_is_known(unit, RULES_SPEC)) chunk_note(decoder, BREAKS_SPEC, &expected_spec_unit, offset);
}

static void read_measurement(struct chunk_decoder *decoder, struct measurement *measurement)
{
    enum { UNIT, VALUES };
    static const struct member known[] = {MEMBER_OF("unit", UNIT, expected_string),
                                          MEMBER_OF("values", VALUES, expected_array)};
    static const struct member_rules rules = {.required = {3, 3}};
    struct members members = MEMBERS_VALIDATED(known, rules);
    json_object_begin(&decoder->reader);
    for (int member; (member = chunk_next_member(decoder, &members)) >= 0;) {
        if (member == UNIT) {
            read_unit(decoder, measurement);
        } else if (json_peek(&decoder->reader) == JSON_OBJECT) {
            /* V2-9: the examples of documents 001, 003 and 004 have a single object, which no server accepts. */
            chunk_note(decoder, BREAKS_RELAY, &expected_array, chunk_offset(decoder));
            read_measurement_value(decoder, measurement, true);
        } else {
            json_array_begin(&decoder->reader);
            for (bool is_first = true; json_array_next(&decoder->reader); is_first = false)
                read_measurement_value(decoder, measurement, is_first);
        }
    }
    measurement->attributes = chunk_take_attributes(decoder, &members);
}

static void read_measurements(struct chunk_decoder *decoder)
{
    struct profile *profile = decoder->profile;
    struct slice key;
    json_object_begin(&decoder->reader);
    while (json_object_next(&decoder->reader, &key)) {
        /* Only their number is limited; a rule requires their values. */
        const char *name = decoder->only_validates ? "" : profile_c_string(profile, profile_string(profile, key));
        uint64_t offset = chunk_offset(decoder);
        if (json_null(&decoder->reader)) {
            chunk_note(decoder, BREAKS_BOTH, &expected_object, offset);
            continue;
        }
        struct measurement *measurement = profile_measurement(profile, name, "");
        if (!measurement) return;
        read_measurement(decoder, measurement);
    }
}

/* Our own addition. Other servers ignore it; the decoder ignores what we do not write. */
static void read_offbeat(struct chunk_decoder *decoder)
{
    enum { PERIOD, TIME, FACTS };
    static const struct member known[] = {MEMBER("period_ns", PERIOD), MEMBER("time", TIME), MEMBER("facts", FACTS)};
    struct members members = MEMBERS(known);
    if (json_peek(&decoder->reader) != JSON_OBJECT || decoder->only_validates) {
        json_skip(&decoder->reader);
        return;
    }
    json_object_begin(&decoder->reader);
    for (int member; (member = chunk_next_member(decoder, &members)) >= 0;) {
        enum json_kind kind = json_peek(&decoder->reader);
        if (member == PERIOD && kind == JSON_NUMBER)
            decoder->profile->period = json_i64(&decoder->reader);
        else if (member == TIME && kind == JSON_STRING)
            decoder->chunk.counts_cpu_time = slice_equals_text(json_string(&decoder->reader), "cpu");
        else if (member == FACTS && kind == JSON_OBJECT)
            metadata_read(&decoder->reader, decoder->profile);
        else
            json_skip(&decoder->reader);
    }
}

/* --- Parts -------------------------------------------------------------------------------------------------------- */

static void read_id(struct chunk_decoder *decoder)
{
    if (decoder->is_v1) decoder->reading = READING_BODY; /* the documents' spelling is asked for after the version */
    decoder->profile->chunk_id = chunk_read_uuid(decoder);
}

static void read_version(struct chunk_decoder *decoder)
{
    decoder->version_offset = chunk_offset(decoder);
    decoder->has_version = true;
    decoder->is_own_version = slice_equals_text(json_string(&decoder->reader), decoder->is_v1 ? "1" : "2");
}

void chunk_read_part(struct chunk_decoder *decoder, int part)
{
    static void (*const readers[])(struct chunk_decoder *) = {
        [PART_ID] = read_id,
        [PART_VERSION] = read_version,
        [PART_SDK] = read_client_sdk,
        [PART_IMAGES] = read_debug_meta,
        [PART_MEASUREMENTS] = read_measurements,
        [PART_PROFILE] = read_profile,
        [PART_OFFBEAT] = read_offbeat,
    };
    struct profile *profile = decoder->profile;
    struct string_id *const texts[] = {&profile->platform, &profile->release, &profile->environment};
    if (part <= PART_ENVIRONMENT)
        *texts[part] = chunk_read_string(decoder);
    else
        readers[part](decoder);
}
