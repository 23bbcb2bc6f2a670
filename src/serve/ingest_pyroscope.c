/* Profiles of Pyroscope's clients: POST /ingest, and the push of Grafana Alloy (doc/serve.md).
 *
 * A pprof file or a recording of Java is stored as it came. Labels that have no column in the store, and collapsed
 * stacks, whose types are in the query, become a pprof file that has them.  SPDX-License-Identifier: MIT */
#include "base/array.h"
#include "base/protobuf.h"
#include "base/rfc3339.h"
#include "format/common/text_line.h"
#include "format/format.h"
#include "format/pprof/pprof.h"
#include "serve/ingest.h"
#include "serve/multipart.h"
#include "serve/push_json.h"
#include "serve/pyroscope_labels.h"
#include "serve/pyroscope_tree.h"

#include <stdlib.h>
#include <string.h>

enum { PUSHED_MAX = 256, FOLDED_BYTES_MAX = 64 << 20 };

/* --- A file with what the request says ---------------------------------------------------------------------------- */

/* Adds the labels to each sample. */
static void label_samples(struct profile *profile, const struct description *description)
{
    struct label *labels = NULL;
    size_t set_count = profile->label_sets.count, capacity = 0;
    struct label_set_id *sets = calloc(set_count ? set_count : 1, sizeof(*sets));
    for (size_t i = 0; i < set_count && sets; i++) {
        const struct label_set set = profile->label_sets.items[i];
        size_t count = set.count;
        if (!array_reserve(&labels, &capacity, count + NAMES_MAX, sizeof(*labels), PROFILE_ENTITIES_MAX)) {
            free(sets);
            sets = NULL;
            break;
        }
        if (count) (void)memcpy(labels, profile->labels.items + set.first, count * sizeof(*labels));
        for (size_t k = 0; k < description->other_count; k++)
            labels[count++] = (struct label){.key = profile_string(profile, description->others[k].name),
                                             .text = profile_string(profile, description->others[k].value)};
        sets[i] = profile_add_labels(profile, labels, (uint32_t)count);
    }
    for (size_t i = 0; i < profile->samples.count && sets; i++)
        profile->samples.labels[i] = sets[profile->samples.labels[i].index];
    if (!sets) profile->failed = STATUS_NO_MEMORY;
    free(sets);
    free(labels);
}

static enum status write_pprof(struct profile *profile, const struct description *description, struct buffer *file,
                               struct error *error)
{
    if (description->other_count) label_samples(profile, description);
    enum status status = profile_failed(profile, error);
    return status == STATUS_OK ? pprof_encode(profile, file, error) : status;
}

/* A file that another format than pprof's needs no change for. */
static enum status add_labels(struct slice bytes, const struct description *description, struct buffer *file,
                              struct error *error)
{
    struct profile profile;
    profile_init(&profile);
    enum status status = ingest_decode(bytes, &profile, error);
    if (status == STATUS_OK) status = write_pprof(&profile, description, file, error);
    profile_fini(&profile);
    return status;
}

/* --- Collapsed stacks --------------------------------------------------------------------------------------------- */

static void name_values(struct profile *profile, const struct description *description, const struct request *request)
{
    struct slice units = request_slice(request, "units"), type = description->type;
    bool is_sample = units.size == 0 || slice_equals_text(units, "samples");
    bool is_time = slice_equals_text(units, "lock_nanoseconds") || slice_equals_text(units, "nanoseconds");
    const char *unit = is_time ? "nanoseconds" : slice_equals_text(units, "bytes") ? "bytes" : "count";
    const char *rate_text = request_parameter(request, "sampleRate");
    double rate = rate_text ? strtod(rate_text, NULL) : 0;
    if (type.size == 0 || is_sample) type = is_sample ? slice_of_text("samples") : units;
    profile->value_types[0] =
        (struct value_type){profile_string(profile, ingest_cut_name(type)), profile_text(profile, unit)};
    profile->default_value_type = profile->value_types[0].type;
    if (is_sample && profile->period == 0) {
        profile->period_type = (struct value_type){profile_text(profile, "cpu"), profile_text(profile, "nanoseconds")};
        profile->period = rate >= 1 && rate <= 1e6 ? (int64_t)(1e9 / rate) : 10 * 1000 * 1000;
    }
    profile->time_ns = (int64_t)description->sent.start_ns;
    profile->duration_ns = description->sent.end_ns - description->sent.start_ns;
}

/* Returns what the request calls its body: its parameter, or else the end of "binary/octet-stream+trie". */
static struct slice format_of(const struct request *request)
{
    struct slice format = request_slice(request, "format");
    const char *suffix = format.size == 0 && request->content ? strrchr(request->content, '+') : NULL;
    return suffix ? slice_of_text(suffix + 1) : format;
}

static enum status convert_stacks(const struct request *request, struct slice text,
                                  const struct description *description, struct buffer *file, struct error *error)
{
    struct slice format = format_of(request);
    struct profile profile;
    struct buffer counted;
    bool is_trie = slice_equals_text(format, "trie"), is_tree = is_trie || slice_equals_text(format, "tree");
    profile_init(&profile);
    buffer_init(&counted, is_tree ? FOLDED_BYTES_MAX : 3 * text.size + 16);
    enum status status = STATUS_OK;
    if (is_tree) {
        status = pyroscope_tree_fold(text, is_trie, &counted, error);
        text = buffer_slice(&counted);
    } else if (slice_equals_text(format, "lines")) {
        while (text.size > 0) { /* lines without counts: each is one sample */
            struct slice line = text_take_line(&text);
            if (line.size == 0) continue;
            buffer_append(&counted, line.data, line.size);
            buffer_append_text(&counted, " 1\n");
        }
        text = buffer_slice(&counted);
        if (counted.failed) status = error_set(error, STATUS_NO_MEMORY, 0, "not enough memory");
    }
    if (status == STATUS_OK) status = format_collapsed.decode(text, &profile, error);
    if (status == STATUS_OK && profile.value_type_count != 1)
        status = error_set(error, STATUS_MALFORMED, 0, "lines with two numbers are no profile");
    if (status == STATUS_OK) {
        name_values(&profile, description, request);
        status = write_pprof(&profile, description, file, error);
    }
    buffer_fini(&counted);
    profile_fini(&profile);
    return status;
}

/* --- POST /ingest ------------------------------------------------------------------------------------------------- */

/* Sets RET_NS to the UNIX time of the parameter NAME: seconds, or as many digits as milliseconds, microseconds or
 * nanoseconds have; a time of RFC 3339; or one before now. It is 0 without the parameter. False after an error. */
static bool read_time(struct request *request, const char *name, uint64_t *ret_ns)
{
    const char *text = request_parameter(request, name);
    uint64_t time = 0;
    *ret_ns = 0;
    if (!text || !text[0]) return true;
    size_t digits = strspn(text, "0123456789");
    if (text[digits] == '\0' && digits < 20) {
        time = strtoull(text, NULL, 10);
        while (time > 0 && time < (uint64_t)100 * 1000 * 1000 * SECOND_NS) time *= 1000;
        *ret_ns = time;
        if (time <= INT64_MAX) return true;
    } else if (time_before_parse(text, request->received_ns, ret_ns)) {
        return true;
    } else if (time_parse(text, ret_ns) && *ret_ns <= INT64_MAX) {
        return true;
    }
    answer_error(request, 400, "%s: a UNIX time is needed, in seconds, milliseconds, microseconds or nanoseconds",
                 name);
    return false;
}

static struct slice platform_of_spy(struct slice spy)
{
    static const char *const platforms[][2] = {{"gospy", "go"},     {"pyspy", "python"},   {"rbspy", "ruby"},
                                               {"nodespy", "node"}, {"javaspy", "java"},   {"dotnetspy", "csharp"},
                                               {"phpspy", "php"},   {"ebpfspy", "native"}, {"pyroscope-rs", "rust"}};
    for (size_t i = 0; i < sizeof(platforms) / sizeof(platforms[0]); i++) {
        if (slice_equals_text(spy, platforms[i][0])) return slice_of_text(platforms[i][1]);
    }
    return spy;
}

static bool describe(struct request *request, struct description *description)
{
    struct slice name = request_slice(request, "name");
    *description = (struct description){0};
    if (name.size == 0) {
        answer_error(request, 400, "the parameter name is needed: name=APPLICATION{label=value}");
        return false;
    }
    description_read_name(description, name);
    description->sent.platform = platform_of_spy(request_slice(request, "spyName"));
    uint64_t start_ns, end_ns;
    if (!read_time(request, "from", &start_ns) || !read_time(request, "until", &end_ns)) return false;
    description->sent.start_ns = start_ns;
    description->sent.end_ns = end_ns > start_ns ? end_ns : start_ns;
    if (slice_equals_text(request_slice(request, "aggregationType"), "average"))
        description_add_rule(description, description->type, KIND_AVERAGE);
    return true;
}

static void store_file(struct request *request, const struct sent_profile *sent)
{
    struct error error = {0};
    struct ingest_file file;
    enum status status = ingest_file_init(&file, request, sent, &error);
    size_t count = file.profile.samples.count > 0; /* nothing ran: that is no error of the client */
    if (status != STATUS_OK)
        answer_failure(request, &error);
    else if (ingest_files_store(request, &file, count))
        ingest_answer_id(request, file.described.chunk.chunk_id);
    ingest_file_fini(&file);
}

/* The profile in BODY. False: answered. */
static bool find_profile(struct request *request, struct slice body, struct slice *ret_profile)
{
    *ret_profile = body;
    bool is_found = !multipart_is_form(request->content) ||
                    multipart_find(body, request->content, "profile", ret_profile) ||
                    multipart_find(body, request->content, "jfr", ret_profile);
    if (!is_found) answer_error(request, 400, "the form has no part \"profile\" or \"jfr\"");
    return is_found;
}

static void take_ingest(struct request *request, struct slice body)
{
    static const char *const files[] = {"pprof", "jfr", "speedscope", NULL};
    static const char *const stacks[] = {"folded", "groups", "lines", "collapsed", "trie", "tree", "", NULL};
    struct description description;
    struct slice profile, sample_types, format = format_of(request);
    struct error error = {0};
    struct buffer file;
    if (!describe(request, &description) || !find_profile(request, body, &profile)) return;
    if (multipart_is_form(request->content) &&
        multipart_find(body, request->content, "sample_type_config", &sample_types))
        description_read_sample_types(&description, sample_types);
    description_finish(&description);
    bool is_file = slice_is_one_of(format, files) || multipart_is_form(request->content) ||
                   (format.size == 0 && !format_collapsed.detect(profile));
    if (!is_file && !slice_is_one_of(format, stacks)) {
        answer_error(request, 400, "format=%.*s is not read; use pprof, jfr, speedscope, folded, lines, trie or tree",
                     (int)(format.size < 50 ? format.size : 50), (const char *)format.data);
        return;
    }
    if (profile.size == 0) {
        ingest_answer_id(request, slice_of(NULL, 0)); /* clients send what they have at the end of each interval */
        return;
    }
    enum status status = STATUS_OK;
    buffer_init(&file, STORE_PAYLOAD_BYTES_MAX);
    description.sent.payload = profile;
    if (!is_file)
        status = convert_stacks(request, profile, &description, &file, &error);
    else if (description.other_count > 0)
        status = add_labels(profile, &description, &file, &error);
    if (file.size > 0) description.sent.payload = buffer_slice(&file);
    if (status == STATUS_OK)
        store_file(request, &description.sent);
    else
        answer_failure(request, &error);
    buffer_fini(&file);
}

void ingest_pyroscope(struct request *request)
{
    struct buffer bytes;
    if (!body_decompress(request, SERVE_FILE_BYTES_MAX, &bytes)) return;
    take_ingest(request, buffer_slice(&bytes));
    buffer_fini(&bytes);
}

/* --- POST /push.v1.PusherService/Push -------------------------------------------------------------------------------
 * The Connect protocol: the request is one message, as protobuf or JSON, and so is the answer, which has no fields.
 */

/* The profiles of a request, and the memory of those that got labels. */
struct push {
    struct request *request;
    struct ingest_file files[PUSHED_MAX];
    struct buffer labelled[PUSHED_MAX];
    size_t count;
    uint64_t source_bytes;
};

/* The fields FIRST and SECOND of MESSAGE, which are texts or bytes. */
static bool read_pair(struct slice message, uint32_t first, uint32_t second, struct slice *ret_first,
                      struct slice *ret_second)
{
    struct protobuf_field field;
    struct cursor cursor = cursor_of(message);
    *ret_first = *ret_second = slice_of(NULL, 0);
    while (protobuf_next(&cursor, &field)) {
        if (field.wire_type != PROTOBUF_BYTES) continue;
        if (field.number == first) *ret_first = field.bytes;
        if (field.number == second) *ret_second = field.bytes;
    }
    return !cursor.failed;
}

/* Several profiles of a request are decompressed at the same time. */
static enum status take_pushed(struct push *push, const struct description *description, struct slice profile,
                               struct slice id, struct error *error)
{
    struct sent_profile sent = description->sent;
    struct ingest_file *file = &push->files[push->count];
    struct buffer *labelled = &push->labelled[push->count];
    enum status status = STATUS_OK;
    if (push->count == PUSHED_MAX || push->source_bytes > SERVE_SMALL_BYTES_MAX)
        return error_set(error, STATUS_TOO_LARGE, 0, "too many profiles in one request; send fewer at once");
    buffer_init(labelled, STORE_PAYLOAD_BYTES_MAX);
    sent.payload = profile;
    sent.id = id;
    if (description->other_count > 0) {
        status = add_labels(profile, description, labelled, error);
        sent.payload = buffer_slice(labelled);
    }
    if (status == STATUS_OK) {
        status = ingest_file_init(file, push->request, &sent, error);
        push->source_bytes += file->profile.source_bytes;
        if (status == STATUS_OK && file->profile.samples.count > 0) {
            push->count++;
            return STATUS_OK;
        }
        if (file->is_misdated) status = STATUS_OK; /* the other profiles of the push are stored */
        ingest_file_fini(file);
    }
    buffer_fini(labelled);
    return status;
}

static enum status take_series(struct push *push, struct slice series, struct error *error)
{
    struct protobuf_field field;
    struct description description = {0};
    struct slice first, second;
    enum status status = STATUS_OK;
    bool is_fine = true;
    struct cursor cursor = cursor_of(series);
    while (is_fine && protobuf_next(&cursor, &field)) {
        if (field.number != SERIES_LABELS || field.wire_type != PROTOBUF_BYTES) continue;
        is_fine = read_pair(field.bytes, LABEL_NAME, LABEL_VALUE, &first, &second);
        description_add_label(&description, first, second);
    }
    is_fine &= !cursor.failed;
    description_finish(&description);
    cursor = cursor_of(series);
    while (is_fine && status == STATUS_OK && protobuf_next(&cursor, &field)) {
        if (field.number != SERIES_SAMPLES || field.wire_type != PROTOBUF_BYTES) continue;
        is_fine = read_pair(field.bytes, SAMPLE_PROFILE, SAMPLE_ID, &first, &second);
        if (is_fine) status = take_pushed(push, &description, first, second, error);
    }
    return is_fine ? status : error_set(error, STATUS_MALFORMED, 0, "not protobuf");
}

static bool is_json_push(const struct request *request)
{
    return request_has_type(request, "application/json");
}

static void answer_push(struct request *request)
{
    if (is_json_push(request)) buffer_append_text(&request->answer, "{}");
    answer_finish(request, is_json_push(request) ? "application/json" : "application/proto");
}

static void take_push(struct push *push, struct slice message)
{
    struct request *request = push->request;
    struct protobuf_field field;
    struct error error = {0};
    enum status status = STATUS_OK;
    struct cursor cursor = cursor_of(message);
    while (status == STATUS_OK && protobuf_next(&cursor, &field)) {
        if (field.number == PUSH_SERIES && field.wire_type == PROTOBUF_BYTES)
            status = take_series(push, field.bytes, &error);
    }
    if (cursor.failed) status = error_set(&error, STATUS_MALFORMED, cursor_offset(&cursor), "not protobuf");
    if (status != STATUS_OK)
        answer_failure(request, &error);
    else if (ingest_files_store(request, push->files, push->count))
        answer_push(request);
}

/* The JSON of a push is read as the message that it stands for. */
static void take_push_of_json(struct push *push, struct slice json)
{
    struct buffer message;
    struct error error = {0};
    buffer_init(&message, SERVE_FILE_BYTES_MAX);
    if (push_json_read(json, &message, &error) == STATUS_OK)
        take_push(push, buffer_slice(&message));
    else
        answer_failure(push->request, &error);
    buffer_fini(&message);
}

void ingest_push(struct request *request)
{
    struct buffer bytes;
    bool is_json = is_json_push(request);
    if (!is_json && !request_has_type(request, "application/proto")) {
        answer_error(request, 415, "the Content-Type must be application/proto or application/json");
        return;
    }
    struct push *push = calloc(1, sizeof(*push));
    if (!push) {
        answer_error(request, 503, "not enough memory");
    } else if (body_decompress(request, SERVE_FILE_BYTES_MAX, &bytes)) {
        push->request = request;
        if (is_json)
            take_push_of_json(push, buffer_slice(&bytes));
        else
            take_push(push, buffer_slice(&bytes));
        buffer_fini(&bytes);
    }
    for (size_t i = 0; push && i < push->count; i++) {
        ingest_file_fini(&push->files[i]);
        buffer_fini(&push->labelled[i]);
    }
    free(push);
}
