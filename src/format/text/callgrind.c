/* Reads callgrind's format: lines that set the object, file and function, lines of costs at a place, and calls, whose
 * next line is what they cost. Names and numbers may be shortened by what was written before.
 * SPDX-License-Identifier: MIT */
#include "format/text/callgrind.h"

#include "base/array.h"
#include "base/hash.h"
#include "base/hex.h"
#include "format/common/format_ops.h"
#include "format/common/stack_estimate.h"
#include "format/common/text_line.h"
#include "profile/stated_costs.h"

#include <stdlib.h>

enum name_kind { NAME_OBJECT, NAME_FILE, NAME_FUNCTION, NAME_KINDS };

struct short_name {
    enum name_kind kind;
    uint64_t number;
    struct string_id name;
};

struct decoder {
    struct slice bytes, line; /* the file, and the line at hand */
    struct profile *profile;
    INDEXED_ARRAY_OF(struct short_name) names;
    bool has_addresses, has_lines;
    int64_t factors[CALLGRIND_EVENTS_MAX]; /* factor of the values of each event, for its unit */
    uint32_t event_count;
    struct string_id object, function, file; /* FILE: of the line at hand, which may be inlined */
    struct string_id callee_object, callee_file, callee;
    const char *totals; /* the last key that its program writes; NULL: not known */
    bool has_totals;    /* totals are on the last line, or for Xdebug on any */
    bool is_xdebug;
    uint32_t part_count, unfinished_count; /* parts of a file of Xdebug that end; those without a summary */
    bool has_callee_object, has_callee_file, has_callee, is_call;
    struct thread_id thread;
    uint64_t address, line_number; /* the last ones */
    uint32_t caller, called;       /* stated functions: of the lines at hand, and of the call at hand */
    int64_t call_count;            /* number of calls of the call at hand */
    enum status status;
    struct error *error;
};

static void reject(struct decoder *decoder, enum status status, const char *message)
{
    if (decoder->status != STATUS_OK) return;
    uint64_t offset = (uint64_t)(decoder->line.data - decoder->bytes.data);
    if (status == STATUS_MALFORMED && text_line_is_open(decoder->line, decoder->bytes))
        message = "the file is cut short: its last line is not whole";
    decoder->status = error_set(decoder->error, status, offset, "%s", message);
}

/* --- Words and numbers -------------------------------------------------------------------------------------------- */

/* Reads decimal digits, or hexadecimal ones after "0x". */
static bool parse_number(struct slice text, uint64_t *ret_number)
{
    return text_begins_with(text, "0x") ? hex_parse(text_from(text, 2), ret_number) : text_number(text, ret_number);
}

static bool parse_cost(struct slice text, int64_t *ret_cost)
{
    bool is_negative = text.size > 0 && text.data[0] == '-';
    uint64_t size;
    if (!parse_number(is_negative ? text_from(text, 1) : text, &size) || size > INT64_MAX) return false;
    *ret_cost = is_negative ? -(int64_t)size : (int64_t)size;
    return true;
}

/* "+3", "-3" and "*" are relative to *POSITION, the last one, which is then this one. */
static bool take_position(struct slice *left, uint64_t *position)
{
    struct slice word = text_take_word(left);
    if (word.size == 0) return false;
    if (slice_equals_text(word, "*")) return true;
    bool is_added = word.data[0] == '+', is_taken = word.data[0] == '-';
    if (is_added || is_taken) word = text_from(word, 1);
    uint64_t number;
    if (!parse_number(word, &number)) return false;
    *position = is_added ? *position + number : is_taken ? *position - number : number;
    return true;
}

/* --- Names -------------------------------------------------------------------------------------------------------- */

static bool name_equal(const void *context, uint32_t index, const void *key)
{
    const struct short_name *a = &((const struct decoder *)context)->names.items[index], *b = key;
    return a->kind == b->kind && a->number == b->number;
}

static struct string_id known_name(struct decoder *decoder, const struct short_name *name, bool is_new)
{
    uint64_t hash = hash_mix(hash_mix(0, name->kind), name->number);
    uint32_t found = index_table_find(&decoder->names.index, hash, name_equal, decoder, name);
    if (found != INDEX_NONE) {
        if (is_new) decoder->names.items[found].name = name->name;
        return decoder->names.items[found].name;
    }
    if (!is_new) {
        reject(decoder, STATUS_MALFORMED, "a number in parentheses has no name yet");
        return (struct string_id){0};
    }
    if (decoder->names.count == CALLGRIND_NAMES_MAX) {
        reject(decoder, STATUS_TOO_LARGE, "too many numbers of names");
    } else if (!INDEXED_ARRAY_PUSH(&decoder->names, CALLGRIND_NAMES_MAX, hash, *name)) {
        reject(decoder, STATUS_NO_MEMORY, "no memory for the names");
    }
    return name->name;
}

/* "name", "(1) name" or "(1)". */
static struct string_id read_name(struct decoder *decoder, enum name_kind kind, struct slice text)
{
    struct short_name name = {.kind = kind};
    const uint8_t *end = text.size > 0 && text.data[0] == '(' ? memchr(text.data, ')', text.size) : NULL;
    if (!end || !parse_number(slice_of(text.data + 1, (size_t)(end - text.data) - 1), &name.number))
        return profile_string(decoder->profile, slice_equals_text(text, "???") ? slice_of(NULL, 0) : text);
    struct slice rest = text_trim(slice_of(end + 1, (size_t)(text.data + text.size - end) - 1));
    if (rest.size > 0)
        name.name = profile_string(decoder->profile, slice_equals_text(rest, "???") ? slice_of(NULL, 0) : rest);
    return known_name(decoder, &name, rest.size > 0);
}

/* --- The header --------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name, *unit;
    int64_t factor;
} units[] = {{"10ns", "nanoseconds", 10},
             {"ns", "nanoseconds", 1},
             {"nanoseconds", "nanoseconds", 1},
             {"us", "nanoseconds", 1000},
             {"\xc2\xb5s", "nanoseconds", 1000},
             {"ms", "nanoseconds", 1000000},
             {"s", "nanoseconds", 1000000000},
             {"bytes", "bytes", 1},
             {"B", "bytes", 1}};

/* "Time_(10ns)" is time in tens of nanoseconds, "Ir" a count. */
static void add_event(struct decoder *decoder, struct slice word)
{
    if (decoder->event_count == CALLGRIND_EVENTS_MAX) {
        reject(decoder, STATUS_TOO_LARGE, "more than 32 events");
        return;
    }
    int64_t *factor = &decoder->factors[decoder->event_count++];
    const char *unit = "count";
    *factor = 1;
    const uint8_t *open = word.data ? memrchr(word.data, '(', word.size) : NULL;
    if (open && open > word.data && word.data[word.size - 1] == ')') {
        struct slice name = slice_of(open + 1, (size_t)(word.data + word.size - open) - 2);
        for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
            if (!slice_equals_text(name, units[i].name)) continue;
            unit = units[i].unit;
            *factor = units[i].factor;
            word.size = (size_t)(open - word.data);
            if (word.size > 1 && word.data[word.size - 1] == '_') word.size--;
            break;
        }
    }
    const char *type = profile_c_string(decoder->profile, profile_string(decoder->profile, word));
    profile_add_value_type(decoder->profile, type, unit);
}

/* Each later part of a file has a header with the same events. */
static void read_events(struct decoder *decoder, struct slice text)
{
    if (decoder->event_count > 0) return;
    for (struct slice word = text_take_word(&text); word.size > 0; word = text_take_word(&text))
        add_event(decoder, word);
    if (decoder->event_count == 0) {
        reject(decoder, STATUS_MALFORMED, "\"events:\" names none");
        return;
    }
    /* Instructions or time, not the last event, which may be rare. */
    decoder->profile->default_value_type = decoder->profile->value_types[0].type;
}

static void read_positions(struct decoder *decoder, struct slice text)
{
    decoder->has_addresses = decoder->has_lines = false;
    for (struct slice word = text_take_word(&text); word.size > 0; word = text_take_word(&text)) {
        if (slice_equals_text(word, "instr"))
            decoder->has_addresses = true;
        else if (slice_equals_text(word, "line"))
            decoder->has_lines = true;
        else
            reject(decoder, STATUS_UNSUPPORTED, "a position that is neither \"instr\" nor \"line\"");
    }
}

/* Notes how the file must end. The files of other programs end in unknown ways. Cachegrind does not write its name.
 * Callgrind has a summary in the header, too. */
static void note_writer(struct decoder *decoder, struct slice key, struct slice value)
{
    static const struct {
        const char *name, *totals;
    } writers[] = {{"callgrind", "totals"}, {"offbeat", "totals"}, {"xdebug", "summary"}};
    bool is_cachegrind = !decoder->totals && slice_equals_text(key, "desc") && text_begins_with(value, "I1 cache:");
    if (is_cachegrind) decoder->totals = "summary";
    for (size_t i = 0; slice_equals_text(key, "creator") && i < sizeof(writers) / sizeof(writers[0]); i++)
        if (text_begins_with(value, writers[i].name)) decoder->totals = writers[i].totals;
    decoder->is_xdebug |= slice_equals_text(key, "creator") && text_begins_with(value, "xdebug");
}

/* Reads "key: value"; false if the line is something else. */
static bool read_header(struct decoder *decoder)
{
    static const char *const comments[] = {"creator:", "cmd:", "desc:"};
    struct slice line = decoder->line;
    const uint8_t *colon = memchr(line.data, ':', line.size);
    const uint8_t *sign = memchr(line.data, '=', line.size);
    if (!colon || (sign && sign < colon)) return false;
    struct slice key = slice_of(line.data, (size_t)(colon - line.data));
    struct slice value = text_trim(slice_of(colon + 1, line.size - key.size - 1));
    note_writer(decoder, key, value);
    decoder->has_totals |= decoder->totals && slice_equals_text(key, decoder->totals);
    if (slice_equals_text(key, "events")) read_events(decoder, value);
    if (slice_equals_text(key, "positions")) read_positions(decoder, value);
    if (slice_equals_text(key, "thread")) {
        struct thread thread = {.id = profile_string(decoder->profile, value)};
        decoder->thread = value.size > 0 ? profile_add_thread(decoder->profile, &thread) : (struct thread_id){0};
    }
    for (size_t i = 0; i < sizeof(comments) / sizeof(comments[0]); i++) {
        bool is_kept = value.size > 0 && decoder->profile->comments.count < CALLGRIND_HEADER_LINES_MAX;
        if (is_kept && text_begins_with(line, comments[i])) profile_add_comment(decoder->profile, line);
    }
    return true;
}

static bool is_header_line(struct slice line)
{
    static const char *const keys[] = {
        "version:", "creator:", "pid:", "cmd:", "part:", "desc:", "positions:", "event:", "thread:", "#"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (text_begins_with(line, keys[i])) return true;
    }
    return line.size == 0;
}

/* Xdebug writes it before each part if it appends to a file (xdebug.profiler_append). */
static bool is_banner(struct slice line)
{
    return text_begins_with(line, "==== NEW PROFILING FILE ");
}

bool callgrind_detect(struct slice bytes)
{
    bool has_mark = text_begins_with(bytes, "# callgrind format") || text_begins_with(bytes, "version: 1\n") ||
                    text_begins_with(bytes, "desc: I1 cache:");
    for (unsigned i = 0; i < CALLGRIND_HEADER_LINES_MAX && bytes.size > 0; i++) {
        struct slice line = text_take_line(&bytes);
        if (text_begins_with(line, "events:")) return true;
        bool is_cut = has_mark && bytes.size == 0;
        if (!is_header_line(line) && !is_banner(line)) return is_cut;
    }
    return has_mark && bytes.size == 0;
}

/* --- The body ----------------------------------------------------------------------------------------------------- */

static uint32_t function_of(struct decoder *decoder, struct string_id object, struct string_id file,
                            struct string_id name)
{
    struct profile *profile = decoder->profile;
    struct stated_function stated = {.thread = decoder->thread};
    struct function function = {.name = name, .file_name = file};
    if (object.index) stated.mapping = profile_add_mapping(profile, &(struct mapping){.file_name = object});
    stated.function = profile_add_function(profile, &function);
    return stated_function_add(profile, &stated);
}

/* The place of the line at hand. Inlined code is the function's, in another file. */
static struct location_id place_at_hand(struct decoder *decoder)
{
    struct profile *profile = decoder->profile;
    struct function function = {.name = decoder->function, .file_name = decoder->file};
    struct line line = {.function = profile_add_function(profile, &function)};
    struct location location = {.mapping = decoder->profile->stated->functions.items[decoder->caller].mapping};
    if (decoder->has_addresses) location.address = decoder->address;
    if (decoder->has_lines && decoder->line_number <= INT32_MAX) line.line = (int64_t)decoder->line_number;
    return profile_add_location(profile, &location, &line, 1);
}

static void begin_call(struct decoder *decoder, struct slice text)
{
    struct slice count = text_take_word(&text);
    if (!decoder->has_callee || decoder->caller == INDEX_NONE) {
        reject(decoder, STATUS_MALFORMED, "\"calls=\" without \"fn=\" and \"cfn=\" before it");
        return;
    }
    struct string_id object = decoder->has_callee_object ? decoder->callee_object : decoder->object;
    struct string_id file = decoder->has_callee_file ? decoder->callee_file : decoder->file;
    decoder->called = function_of(decoder, object, file, decoder->callee);
    decoder->has_callee_object = decoder->has_callee_file = decoder->has_callee = false;
    decoder->is_call = true;
    if (!parse_cost(count, &decoder->call_count)) decoder->call_count = 0;
}

/* Reads "key=value"; false if the line is something else. */
static bool read_assignment(struct decoder *decoder)
{
    struct slice line = decoder->line;
    const uint8_t *sign = memchr(line.data, '=', line.size);
    if (!sign) return false;
    struct slice key = slice_of(line.data, (size_t)(sign - line.data));
    struct slice value = text_trim(slice_of(sign + 1, line.size - key.size - 1));
    if (slice_equals_text(key, "fn")) {
        decoder->function = read_name(decoder, NAME_FUNCTION, value);
        decoder->caller = function_of(decoder, decoder->object, decoder->file, decoder->function);
    } else if (slice_equals_text(key, "fl") || slice_equals_text(key, "fi") || slice_equals_text(key, "fe")) {
        decoder->file = read_name(decoder, NAME_FILE, value);
    } else if (slice_equals_text(key, "ob")) {
        decoder->object = read_name(decoder, NAME_OBJECT, value);
    } else if (slice_equals_text(key, "cfn")) {
        decoder->callee = read_name(decoder, NAME_FUNCTION, value);
        decoder->has_callee = true;
    } else if (slice_equals_text(key, "cfi") || slice_equals_text(key, "cfl")) {
        decoder->callee_file = read_name(decoder, NAME_FILE, value);
        decoder->has_callee_file = true;
    } else if (slice_equals_text(key, "cob")) {
        decoder->callee_object = read_name(decoder, NAME_OBJECT, value);
        decoder->has_callee_object = true;
    } else if (slice_equals_text(key, "calls")) {
        begin_call(decoder, value);
    } else {
        return slice_equals_text(key, "jump") || slice_equals_text(key, "jcnd") || slice_equals_text(key, "jfi") ||
               slice_equals_text(key, "jfn");
    }
    return true;
}

static void read_costs(struct decoder *decoder)
{
    int64_t costs[CALLGRIND_EVENTS_MAX];
    uint32_t count = 0;
    struct slice left = decoder->line;
    if (decoder->event_count == 0 || decoder->caller == INDEX_NONE) {
        reject(decoder, STATUS_MALFORMED, "costs without \"events:\" and \"fn=\" before them");
        return;
    }
    if ((decoder->has_addresses && !take_position(&left, &decoder->address)) ||
        (decoder->has_lines && !take_position(&left, &decoder->line_number))) {
        reject(decoder, STATUS_MALFORMED, "a line that is neither costs, \"key=value\" nor \"key: value\"");
        return;
    }
    for (struct slice word = text_take_word(&left); word.size > 0; word = text_take_word(&left)) {
        if (count == decoder->event_count) {
            reject(decoder, STATUS_MALFORMED, "more costs than events");
            return;
        }
        int64_t factor = decoder->factors[count];
        if (!parse_cost(word, &costs[count])) {
            reject(decoder, STATUS_MALFORMED, "a cost that is no number of 64 bits");
            return;
        }
        if (__builtin_mul_overflow(costs[count], factor, &costs[count])) {
            reject(decoder, STATUS_TOO_LARGE, "a cost of more than 64 bits in the unit of its event");
            return;
        }
        count++;
    }
    if (decoder->is_call) {
        struct stated_call call = {.caller = decoder->caller,
                                   .callee = decoder->called,
                                   .location = place_at_hand(decoder),
                                   .count = decoder->call_count};
        stated_call_add(decoder->profile, &call, costs, count);
        decoder->is_call = false;
    } else if (count > 0) {
        stated_cost_add(decoder->profile, decoder->caller, place_at_hand(decoder), costs, count);
    }
}

/* Ends a part of a file of Xdebug. The numbers of names begin again in the next one. */
static void end_part(struct decoder *decoder)
{
    decoder->part_count++;
    decoder->unfinished_count += !decoder->has_totals;
    decoder->has_totals = decoder->is_call = false;
    index_table_fini(&decoder->names.index);
    decoder->names.count = 0;
}

/* A request that is killed, or that replaces its process, has no summary: functions that had not returned are missing.
 */
static void note_unfinished_parts(struct decoder *decoder)
{
    end_part(decoder);
    if (decoder->unfinished_count == 0) return;
    if (decoder->profile->stated) decoder->profile->stated->lacks_callers = true;
    profile_add_omission(decoder->profile,
                         "%u of %u requests in the file did not end: functions that had not returned are missing",
                         decoder->unfinished_count, decoder->part_count);
}

static void note_cut_file(struct decoder *decoder)
{
    if (!decoder->profile->stated || decoder->profile->stated->places.count == 0) {
        decoder->status = error_set(decoder->error, STATUS_MALFORMED, decoder->bytes.size,
                                    "the file is cut short: it does not end with \"%s:\"", decoder->totals);
        return;
    }
    decoder->profile->stated->lacks_callers = true;
    profile_add_omission(decoder->profile,
                         "the file is cut short, at byte %zu: functions that came after it are missing",
                         decoder->bytes.size);
}

static void read_line(struct decoder *decoder)
{
    struct slice line = decoder->line;
    if (is_banner(line)) {
        if (decoder->event_count > 0) end_part(decoder);
        return;
    }
    if (line.size == 0 || line.data[0] == '#') return;
    if (!decoder->is_xdebug) decoder->has_totals = false;
    bool is_cost = (line.data[0] >= '0' && line.data[0] <= '9') || line.data[0] == '+' || line.data[0] == '-' ||
                   line.data[0] == '*';
    if (is_cost)
        read_costs(decoder);
    else if (!read_header(decoder) && !read_assignment(decoder))
        reject(decoder, STATUS_MALFORMED, "a line that is neither costs, \"key=value\" nor \"key: value\"");
}

static void read_lines(struct decoder *decoder)
{
    struct slice left = decoder->bytes;
    while (left.size > 0 && decoder->status == STATUS_OK && decoder->profile->failed == STATUS_OK) {
        decoder->line = text_take_line(&left);
        bool is_open = left.size == 0 && decoder->bytes.data[decoder->bytes.size - 1] != '\n';
        bool is_cut = is_open && decoder->totals && !text_begins_with(decoder->line, decoder->totals);
        if (!is_cut && !(is_open && decoder->is_xdebug)) read_line(decoder);
    }
    if (decoder->status == STATUS_OK) decoder->status = profile_failed(decoder->profile, decoder->error);
}

enum status callgrind_decode(struct slice bytes, struct profile *profile, struct error *error)
{
    if (!callgrind_detect(bytes)) return error_set(error, STATUS_NOT_THIS_FORMAT, 0, "not a file of callgrind");
    struct decoder decoder = {.bytes = bytes, .profile = profile, .error = error, .has_lines = true};
    decoder.caller = decoder.called = INDEX_NONE;
    read_lines(&decoder);
    if (decoder.status == STATUS_OK && decoder.event_count == 0)
        decoder.status = error_set(error, STATUS_MALFORMED, bytes.size, "the file is cut short: no line \"events:\"");
    if (decoder.is_xdebug)
        note_unfinished_parts(&decoder);
    else if (decoder.status == STATUS_OK && decoder.totals && !decoder.has_totals)
        note_cut_file(&decoder);
    if (decoder.status == STATUS_OK) decoder.status = stack_estimate_add_samples(profile, bytes.size, error);
    free(decoder.names.items);
    index_table_fini(&decoder.names.index);
    return decoder.status;
}

const struct format format_callgrind = {
    .name = "callgrind",
    .suffixes = {".callgrind"},
    .detect = callgrind_detect,
    .decode = callgrind_decode,
    .encode = callgrind_encode,
    .keeps = KEEPS_VALUES | KEEPS_ANY_UNIT | KEEPS_NEGATIVES | KEEPS_LINES | KEEPS_ADDRESSES,
    .needs_full_names = true,
};
