/* SPDX-License-Identifier: MIT */
#include "deliver/request_file.h"

#include "base/array.h"
#include "base/json_reader.h"
#include "base/json_writer.h"

#include <stdlib.h>
#include <string.h>

/* --- Strings, by name ------------------------------------------------------------------------------------------- */

struct member {
    const char *name;
    size_t offset;
};

#define TEXT(name)                                                                                                     \
    {                                                                                                                  \
#name, offsetof(struct chunk_request, name)                                                                    \
    }
#define TRANSACTION_TEXT(name)                                                                                         \
    {                                                                                                                  \
#name, offsetof(struct chunk_request, transaction.name)                                                        \
    }

static const struct member texts[] = {
    TEXT(release),
    TEXT(environment),
    TEXT(dist),
    TEXT(platform),
    TEXT(in_app_include),
    TEXT(in_app_exclude),
    TRANSACTION_TEXT(event_id),
    TRANSACTION_TEXT(profile_id),
    TRANSACTION_TEXT(name),
    TRANSACTION_TEXT(trace_id),
    TRANSACTION_TEXT(thread_id),
};
enum { TEXT_COUNT = sizeof(texts) / sizeof(texts[0]) };

static const char *text_of(const struct chunk_request *request, size_t index)
{
    const char *text;
    memcpy(&text, (const char *)request + texts[index].offset, sizeof(text));
    return text;
}

static void set_text(struct chunk_request *request, size_t index, const char *text)
{
    memcpy((char *)request + texts[index].offset, &text, sizeof(text));
}

/* --- Writing ------------------------------------------------------------------------------------------------------ */

static void write_measurement(struct json_writer *writer, const struct chunk_measurement *measurement)
{
    json_begin_array(writer);
    json_write_text(writer, measurement->name);
    json_write_text(writer, measurement->unit);
    json_write_u64(writer, measurement->time_ns);
    json_write_double(writer, measurement->value);
    json_end_array(writer);
}

void chunk_request_write(const struct chunk_request *request, struct buffer *out)
{
    struct json_writer writer = json_writer_of(out);
    json_begin_object(&writer);
    for (size_t i = 0; i < TEXT_COUNT; i++) {
        if (!text_of(request, i)) continue;
        json_member_text(&writer, texts[i].name, text_of(request, i));
    }
    json_member_u64(&writer, "start_ns", request->transaction.start_ns);
    json_member_u64(&writer, "end_ns", request->transaction.end_ns);
    json_member_bool(&writer, "repeats_idle", request->repeats_idle);
    json_member_bool(&writer, "has_names", request->has_names);
    json_member_bool(&writer, "asks", request->asks);
    json_member_bool(&writer, "is_v1", request->is_v1);
    json_begin_array_member(&writer, "recordings");
    for (size_t i = 0; i < request->recording_count; i++) json_write_text(&writer, request->recordings[i]);
    json_end_array(&writer);
    json_begin_array_member(&writer, "measurements");
    for (size_t i = 0; i < request->measurement_count; i++) write_measurement(&writer, &request->measurements[i]);
    json_end_array(&writer);
    json_end_object(&writer);
}

/* --- Reading ------------------------------------------------------------------------------------------------------ */

struct reading {
    struct json_reader reader;
    struct request_file *file;
    size_t measurement_capacity;
};

/* A copy that ends with a NUL. The buffer has room for all strings, so that it never moves. */
static const char *read_text(struct reading *reading)
{
    struct slice text = json_string(&reading->reader);
    struct buffer *texts_buffer = &reading->file->texts;
    const char *copy = (const char *)texts_buffer->data + texts_buffer->size;
    buffer_append(texts_buffer, text.data, text.size);
    buffer_append_byte(texts_buffer, 0);
    return copy;
}

static bool read_known_text(struct reading *reading, struct slice key)
{
    for (size_t i = 0; i < TEXT_COUNT; i++) {
        if (!slice_equals_text(key, texts[i].name)) continue;
        set_text(&reading->file->request, i, read_text(reading));
        return true;
    }
    return false;
}

static void read_recordings(struct reading *reading)
{
    struct chunk_request *request = &reading->file->request;
    json_array_begin(&reading->reader);
    while (json_array_next(&reading->reader)) {
        if (request->recording_count == CHUNK_RECORDINGS_MAX) {
            json_reader_reject(&reading->reader, STATUS_TOO_LARGE, "too many recordings");
            return;
        }
        request->recordings[request->recording_count++] = read_text(reading);
    }
}

static void copy_text(struct json_reader *reader, char *into, size_t size)
{
    struct slice text = json_string(reader);
    if (text.size >= size) text.size = size - 1;
    memcpy(into, text.data, text.size);
    into[text.size] = '\0';
}

static struct chunk_measurement read_measurement(struct json_reader *reader)
{
    struct chunk_measurement measurement = {.name = ""};
    json_array_begin(reader);
    if (json_array_next(reader)) copy_text(reader, measurement.name, sizeof(measurement.name));
    if (json_array_next(reader)) copy_text(reader, measurement.unit, sizeof(measurement.unit));
    if (json_array_next(reader)) measurement.time_ns = json_u64(reader);
    if (json_array_next(reader)) measurement.value = json_double(reader);
    while (json_array_next(reader)) json_skip(reader);
    return measurement;
}

static void read_measurements(struct reading *reading)
{
    struct request_file *file = reading->file;
    json_array_begin(&reading->reader);
    while (json_array_next(&reading->reader)) {
        if (!array_reserve(&file->measurements, &reading->measurement_capacity, file->request.measurement_count + 1,
                           sizeof(*file->measurements), CHUNK_MEASUREMENTS_MAX)) {
            json_reader_reject(&reading->reader, STATUS_TOO_LARGE, "too many measurements");
            return;
        }
        file->measurements[file->request.measurement_count++] = read_measurement(&reading->reader);
    }
}

static void read_member(struct reading *reading, struct slice key)
{
    struct chunk_request *request = &reading->file->request;
    struct json_reader *reader = &reading->reader;
    if (read_known_text(reading, key)) return;
    if (slice_equals_text(key, "recordings"))
        read_recordings(reading);
    else if (slice_equals_text(key, "measurements"))
        read_measurements(reading);
    else if (slice_equals_text(key, "start_ns"))
        request->transaction.start_ns = json_u64(reader);
    else if (slice_equals_text(key, "end_ns"))
        request->transaction.end_ns = json_u64(reader);
    else if (slice_equals_text(key, "repeats_idle"))
        request->repeats_idle = json_bool(reader);
    else if (slice_equals_text(key, "has_names"))
        request->has_names = json_bool(reader);
    else if (slice_equals_text(key, "asks"))
        request->asks = json_bool(reader);
    else if (slice_equals_text(key, "is_v1"))
        request->is_v1 = json_bool(reader);
    else
        json_skip(reader);
}

enum status chunk_request_read(struct slice bytes, struct request_file *ret_file, struct error *error)
{
    *ret_file = (struct request_file){0};
    struct reading reading = {.file = ret_file};
    /* A string is not longer than its JSON with the quotes. */
    buffer_init(&ret_file->texts, bytes.size + 1);
    if (!buffer_reserve(&ret_file->texts, bytes.size + 1)) {
        return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory for the request");
    }
    json_reader_init(&reading.reader, bytes);
    json_object_begin(&reading.reader);
    for (struct slice key; json_object_next(&reading.reader, &key);) read_member(&reading, key);
    enum status status = json_reader_finish(&reading.reader, error);
    json_reader_fini(&reading.reader);
    ret_file->request.measurements = ret_file->measurements;
    if (status != STATUS_OK) chunk_request_fini(ret_file);
    return status;
}

void chunk_request_fini(struct request_file *file)
{
    buffer_fini(&file->texts);
    free(file->measurements);
    *file = (struct request_file){0};
}
