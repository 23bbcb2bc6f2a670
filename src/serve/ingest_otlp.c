/* POST /v1development/profiles: OTLP over HTTP, in protobuf and JSON (doc/serve.md).
 *
 * A chunk of the store is of one service, and a request may have resources of many: then each service's chunk gets the
 * dictionary of the request with the resources of that service.  SPDX-License-Identifier: MIT */
#include "base/json_reader.h"
#include "base/protobuf.h"
#include "format/otlp/otlp.h"
#include "serve/ingest.h"

#include <stdlib.h>

enum { SERVICES_MAX = 256, RESOURCES_MAX = 1 << 16, STRINGS_MAX = 1 << 20 };

/* Fields of opentelemetry-proto that distinguish resources; the decoder reads everything else. */
enum { REQUEST_RESOURCES = 1, REQUEST_DICTIONARY = 2, DICTIONARY_STRINGS = 5, RESOURCES_RESOURCE = 1 };
enum { RESOURCES_SCOPES = 2, SCOPE_PROFILES = 2, RESOURCE_ATTRIBUTES = 1 };
enum { ATTRIBUTE_KEY = 1, ATTRIBUTE_VALUE = 2, ATTRIBUTE_KEY_STRING = 3, VALUE_TEXT = 1, VALUE_STRING = 8 };
/* Fields of the answers. */
enum { ANSWER_PARTIAL = 1, PARTIAL_REJECTED = 1, PARTIAL_MESSAGE = 2 };

/* The resources of one service. */
struct service {
    struct sent_profile sent;
    struct slice program;    /* instead of a service's name */
    struct buffer resources; /* fields of the request */
    uint64_t profiles;
};

struct otlp {
    struct request *request;
    struct slice message; /* the request, in protobuf */
    struct slice *strings;
    size_t string_count;
    struct service *services;
    size_t service_count, resource_count;
    struct slice dictionary; /* the field with its tag */
    struct ingest_file *files;
    size_t file_count;
    uint64_t rejected; /* profiles */
    bool is_full;
    struct error error; /* reason of the last rejection */
};

/* --- Resources ---------------------------------------------------------------------------------------------------- */

/* False if there are too many, or memory is short. */
static bool read_strings(struct otlp *otlp, struct slice dictionary)
{
    struct protobuf_field field;
    size_t count = 0;
    struct cursor cursor = cursor_of(dictionary);
    while (protobuf_next(&cursor, &field)) count += field.number == DICTIONARY_STRINGS;
    free(otlp->strings);
    otlp->strings = count <= STRINGS_MAX ? calloc(count + 1, sizeof(*otlp->strings)) : NULL;
    otlp->string_count = 0;
    if (!otlp->strings) return false;
    cursor = cursor_of(dictionary);
    while (protobuf_next(&cursor, &field) && otlp->string_count < count) {
        if (field.number == DICTIONARY_STRINGS) otlp->strings[otlp->string_count++] = field.bytes;
    }
    return true;
}

static struct slice string_at(const struct otlp *otlp, uint64_t index)
{
    return index < otlp->string_count ? otlp->strings[index] : slice_of(NULL, 0);
}

static struct slice read_text(const struct otlp *otlp, struct slice value)
{
    struct cursor cursor = cursor_of(value);
    struct protobuf_field field;
    struct slice text = slice_of(NULL, 0);
    while (protobuf_next(&cursor, &field)) {
        if (field.number == VALUE_TEXT) text = field.bytes;
        if (field.number == VALUE_STRING) text = string_at(otlp, field.value);
    }
    return ingest_cut_name(text);
}

static void read_attribute(const struct otlp *otlp, struct slice attribute, struct service *service)
{
    const struct {
        const char *key;
        struct slice *text;
    } names[] = {
        {"service.name", &service->sent.service},
        {"service.version", &service->sent.release},
        {"deployment.environment.name", &service->sent.environment},
        {"deployment.environment", &service->sent.environment},
        {"host.name", &service->sent.host},
        {"process.executable.name", &service->program},
    };
    struct cursor cursor = cursor_of(attribute);
    struct protobuf_field field;
    struct slice key = slice_of(NULL, 0), text = slice_of(NULL, 0);
    while (protobuf_next(&cursor, &field)) {
        if (field.number == ATTRIBUTE_KEY) key = field.bytes;
        if (field.number == ATTRIBUTE_KEY_STRING) key = string_at(otlp, field.value);
        if (field.number == ATTRIBUTE_VALUE) text = read_text(otlp, field.bytes);
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (text.size && slice_equals_text(key, names[i].key)) *names[i].text = text;
    }
}

/* Returns the service of RESOURCES, without the list of them. */
static struct service read_resources(const struct otlp *otlp, struct slice resources)
{
    struct service service = {0};
    struct cursor cursor = cursor_of(resources);
    struct protobuf_field field, part;
    while (protobuf_next(&cursor, &field)) {
        struct cursor inner = cursor_of(field.bytes);
        while (field.number == RESOURCES_RESOURCE && protobuf_next(&inner, &part)) {
            if (part.number == RESOURCE_ATTRIBUTES) read_attribute(otlp, part.bytes, &service);
        }
        while (field.number == RESOURCES_SCOPES && protobuf_next(&inner, &part))
            service.profiles += part.number == SCOPE_PROFILES;
    }
    if (service.sent.service.size == 0) service.sent.service = service.program;
    return service;
}

static bool is_same_service(const struct sent_profile *a, const struct sent_profile *b)
{
    return slice_equal(a->service, b->service) && slice_equal(a->release, b->release) &&
           slice_equal(a->environment, b->environment) && slice_equal(a->host, b->host);
}

/* RESOURCES: with the tag in front of them. */
static void add_resources(struct otlp *otlp, struct slice whole, struct slice resources)
{
    struct service service = read_resources(otlp, resources);
    size_t i = 0;
    while (i < otlp->service_count && !is_same_service(&otlp->services[i].sent, &service.sent)) i++;
    if (i == SERVICES_MAX || ++otlp->resource_count > RESOURCES_MAX) {
        otlp->is_full = true;
        return;
    }
    if (i == otlp->service_count) {
        buffer_init(&service.resources, STORE_PAYLOAD_BYTES_MAX);
        otlp->services[otlp->service_count++] = service;
    } else {
        otlp->services[i].profiles += service.profiles;
    }
    buffer_append(&otlp->services[i].resources, whole.data, whole.size);
}

/* The dictionary is last in what most clients send, so it is read first. */
static enum status split(struct otlp *otlp, struct error *error)
{
    struct protobuf_field field;
    struct cursor cursor = cursor_of(otlp->message);
    bool has_strings = true;
    while (protobuf_next(&cursor, &field)) {
        if (field.number == REQUEST_DICTIONARY && field.wire_type == PROTOBUF_BYTES)
            has_strings = read_strings(otlp, field.bytes);
    }
    if (cursor.failed) return error_set(error, STATUS_MALFORMED, cursor_offset(&cursor), "not protobuf");
    if (!has_strings) return error_set(error, STATUS_TOO_LARGE, 0, "too many strings");
    cursor = cursor_of(otlp->message);
    const uint8_t *start = cursor.position;
    while (protobuf_next(&cursor, &field)) {
        struct slice whole = slice_of(start, (size_t)(cursor.position - start));
        start = cursor.position;
        if (field.wire_type != PROTOBUF_BYTES) continue;
        if (field.number == REQUEST_DICTIONARY) otlp->dictionary = whole;
        if (field.number == REQUEST_RESOURCES) add_resources(otlp, whole, field.bytes);
    }
    size_t copied = 0;
    for (size_t i = 0; i < otlp->service_count; i++) copied += otlp->dictionary.size;
    if (otlp->service_count > 1 && copied > SERVE_SMALL_BYTES_MAX) otlp->is_full = true;
    return otlp->is_full ? error_set(error, STATUS_TOO_LARGE, 0,
                                     "too many resources or services in one request; send fewer at once")
                         : STATUS_OK;
}

/* --- Storing ------------------------------------------------------------------------------------------------------ */

/* SENT: all of the request, if it is of one service. */
static void take_service(struct otlp *otlp, struct service *service, struct slice sent)
{
    struct ingest_file *file = &otlp->files[otlp->file_count];
    struct error error = {0};
    buffer_append(&service->resources, otlp->dictionary.data, otlp->dictionary.size);
    service->sent.payload = otlp->service_count == 1 ? sent : buffer_slice(&service->resources);
    enum status status = service->resources.failed ? error_set(&error, STATUS_NO_MEMORY, 0, "not enough memory")
                                                   : ingest_file_init(file, otlp->request, &service->sent, &error);
    if (status == STATUS_OK && file->profile.samples.count > 0) {
        otlp->file_count++;
        return;
    }
    if (!service->resources.failed) ingest_file_fini(file);
    if (status == STATUS_OK) return; /* nothing ran */
    otlp->rejected += service->profiles;
    otlp->error = error;
}

/* ExportProfilesServiceResponse. */
static void answer_export(struct otlp *otlp)
{
    struct request *request = otlp->request;
    struct json_writer json = json_writer_of(&request->answer);
    buffer_clear(&request->answer);
    if (request_has_type(request, "application/json")) {
        json_begin_object(&json);
        if (otlp->rejected) {
            json_begin_object_member(&json, "partialSuccess");
            json_member_u64(&json, "rejectedProfiles", otlp->rejected);
            json_member_text(&json, "errorMessage", otlp->error.message);
            json_end_object(&json);
        }
        json_end_object(&json);
    } else if (otlp->rejected) {
        size_t begin = protobuf_begin_message(&request->answer, ANSWER_PARTIAL);
        protobuf_append_number(&request->answer, PARTIAL_REJECTED, otlp->rejected);
        protobuf_append_bytes(&request->answer, PARTIAL_MESSAGE, slice_of_text(otlp->error.message));
        protobuf_end_message(&request->answer, begin);
    }
    answer_finish(request,
                  request_has_type(request, "application/json") ? "application/json" : "application/x-protobuf");
}

/* JSON as protobuf in OUT. */
static enum status convert(struct slice json, struct buffer *out, struct error *error)
{
    struct json_reader reader;
    json_reader_init(&reader, json);
    otlp_json_take(&reader, out);
    enum status status = json_reader_status(&reader, error);
    json_reader_fini(&reader);
    if (status == STATUS_OK && out->failed) status = error_set(error, STATUS_NO_MEMORY, 0, "not enough memory");
    return status;
}

static void take_export(struct request *request, struct slice sent)
{
    struct error error = {0};
    struct buffer converted;
    struct otlp otlp = {.request = request, .message = sent};
    otlp.services = calloc(SERVICES_MAX, sizeof(*otlp.services));
    otlp.files = calloc(SERVICES_MAX, sizeof(*otlp.files));
    enum status status = STATUS_OK;
    if (!otlp.services || !otlp.files) status = error_set(&error, STATUS_NO_MEMORY, 0, "not enough memory");
    buffer_init(&converted, 2 * sent.size + 64);
    if (status == STATUS_OK && request_has_type(request, "application/json")) {
        status = convert(sent, &converted, &error);
        otlp.message = buffer_slice(&converted);
    }
    if (status == STATUS_OK) status = split(&otlp, &error);
    for (size_t i = 0; i < otlp.service_count && status == STATUS_OK; i++) take_service(&otlp, &otlp.services[i], sent);
    if (status != STATUS_OK)
        answer_failure(request, &error);
    else if (otlp.file_count == 0 && otlp.error.status != STATUS_OK)
        answer_failure(request, &otlp.error);
    else if (ingest_files_store(request, otlp.files, otlp.file_count))
        answer_export(&otlp);
    for (size_t i = 0; i < otlp.file_count; i++) ingest_file_fini(&otlp.files[i]);
    for (size_t i = 0; i < otlp.service_count; i++) buffer_fini(&otlp.services[i].resources);
    free(otlp.services);
    free(otlp.files);
    free(otlp.strings);
    buffer_fini(&converted);
}

void ingest_otlp(struct request *request)
{
    struct buffer bytes;
    if (!request_has_type(request, "application/json") && !request_has_type(request, "application/x-protobuf")) {
        answer_error(request, 415, "the Content-Type must be application/x-protobuf or application/json");
        return;
    }
    if (!body_decompress(request, SERVE_FILE_BYTES_MAX, &bytes)) return;
    take_export(request, buffer_slice(&bytes));
    buffer_fini(&bytes);
}
