/* SPDX-License-Identifier: MIT */
#include "cli/upload_client.h"

#include "base/array.h"
#include "base/gzip.h"
#include "base/json_reader.h"
#include "base/json_writer.h"
#include "cli/error_detail.h"
#include "cli/secrets.h"
#include "transport/curl_library.h"
#include "spool/dsn.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TRIES_MAX = 5, FORM_BYTES_MAX = 64 << 20, CHUNK_BYTES_MAX = 64 << 20, STALL_SECONDS = 60, STALL_BYTES = 100 };

static const char boundary[] =
    "offbeat-7d1f0c92a64be835"; /* cannot end a line of gzip by chance that matters: 2^-192 */

struct upload_chunk {
    char checksum[SHA1_TEXT_SIZE];
    uint64_t offset;
    size_t size;
    bool is_missing;
};

struct upload_client {
    const struct curl_library *curl;
    CURL *easy;
    struct curl_slist *json_headers, *form_headers;
    struct dsn server;
    char base[DSN_URL_SIZE];
    char said[CURL_ERROR_SIZE];
    uint64_t chunk_size, chunks_per_request, request_size, file_size;
    struct buffer answer;
    bool has_answered;           /* the server, at least once */
    struct upload_chunk *chunks; /* chunks of the file to send */
    size_t chunk_count;
    char checksum[SHA1_TEXT_SIZE];
};

/* --- Requests -------------------------------------------------------------------------------------------------------
 */

static size_t take_answer(char *bytes, size_t size, size_t count, void *context)
{
    struct buffer *answer = context;
    buffer_append(answer, bytes, size * count);
    return answer->failed ? 0 : size * count;
}

static bool set_up(struct upload_client *client, const struct upload_options *options)
{
    const struct curl_library *curl = client->curl;
    char bearer[64];
    (void)snprintf(bearer, sizeof(bearer), "Authorization: Bearer %s", client->server.public_key);
    static const char type[] = "Content-Type: multipart/form-data; boundary=";
    char form[sizeof(type) + sizeof(boundary)];
    (void)snprintf(form, sizeof(form), "%s%s", type, boundary);
    client->json_headers = curl->slist_append(NULL, bearer);
    client->form_headers = curl->slist_append(NULL, bearer);
    return client->json_headers && client->form_headers &&
           curl->slist_append(client->json_headers, "Content-Type: application/json") &&
           curl->slist_append(client->form_headers, form) && curl->slist_append(client->form_headers, "Expect:") &&
           curl->easy_setopt(client->easy, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
           curl->easy_setopt(client->easy, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
           curl->easy_setopt(client->easy, CURLOPT_USERAGENT, "offbeat/" OFFBEAT_VERSION) == CURLE_OK &&
           curl->easy_setopt(client->easy, CURLOPT_ERRORBUFFER, client->said) == CURLE_OK &&
           curl->easy_setopt(client->easy, CURLOPT_LOW_SPEED_TIME, (long)STALL_SECONDS) == CURLE_OK &&
           curl->easy_setopt(client->easy, CURLOPT_LOW_SPEED_LIMIT, (long)STALL_BYTES) == CURLE_OK &&
           curl->easy_setopt(client->easy, CURLOPT_WRITEFUNCTION, take_answer) == CURLE_OK &&
           curl->easy_setopt(client->easy, CURLOPT_WRITEDATA, &client->answer) == CURLE_OK &&
           (!options->proxy || curl->easy_setopt(client->easy, CURLOPT_PROXY, options->proxy) == CURLE_OK) &&
           (!options->ca_file || curl->easy_setopt(client->easy, CURLOPT_CAINFO, options->ca_file) == CURLE_OK);
}

static void pause_ms(long milliseconds)
{
    const struct timespec pause = {.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000};
    (void)nanosleep(&pause, NULL);
}

static enum status reject_answer(struct upload_client *client, long status, struct error *error)
{
    struct json_reader reader;
    struct slice detail = error_detail(&reader, buffer_slice(&client->answer));
    enum status result = error_set(error, status == 413 || status == 400 ? STATUS_MALFORMED : STATUS_IO, 0,
                                   "the server answered with status %ld%s%.*s", status, detail.size ? ": " : "",
                                   SLICE_ARGUMENTS(detail));
    json_reader_fini(&reader);
    return result;
}

/* BODY NULL: GET. *RET_AGAIN: the same may work later. */
static enum status request_once(struct upload_client *client, const char *url, struct curl_slist *headers,
                                const struct buffer *body, bool *ret_again, struct error *error)
{
    const struct curl_library *curl = client->curl;
    long status = 0;
    buffer_clear(&client->answer);
    client->said[0] = '\0';
    *ret_again = false;
    bool is_set = curl->easy_setopt(client->easy, CURLOPT_URL, url) == CURLE_OK &&
                  curl->easy_setopt(client->easy, CURLOPT_HTTPHEADER, headers) == CURLE_OK &&
                  curl->easy_setopt(client->easy, CURLOPT_HTTPGET, 1L) == CURLE_OK;
    if (body)
        is_set = is_set && curl->easy_setopt(client->easy, CURLOPT_POST, 1L) == CURLE_OK &&
                 curl->easy_setopt(client->easy, CURLOPT_POSTFIELDS, body->data) == CURLE_OK &&
                 curl->easy_setopt(client->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body->size) == CURLE_OK;
    if (!is_set) return error_set(error, STATUS_NO_MEMORY, 0, "libcurl cannot be set up");
    CURLcode code = curl->easy_perform(client->easy);
    (void)curl->easy_getinfo(client->easy, CURLINFO_RESPONSE_CODE, &status);
    if (code != CURLE_OK) {
        /* A server that never answered is not restarted: its address is wrong. */
        *ret_again = (code == CURLE_COULDNT_CONNECT && client->has_answered) || code == CURLE_RECV_ERROR ||
                     code == CURLE_SEND_ERROR || code == CURLE_GOT_NOTHING || code == CURLE_OPERATION_TIMEDOUT;
        return error_set(error, STATUS_IO, 0, "%s", client->said[0] ? client->said : curl->easy_strerror(code));
    }
    client->has_answered = true;
    *ret_again = status == 429 || status == 503 || status == 502 || status == 504;
    return status == 200 ? STATUS_OK : reject_answer(client, status, error);
}

static enum status request(struct upload_client *client, const char *url, struct curl_slist *headers,
                           const struct buffer *body, struct error *error)
{
    enum status status = STATUS_OK;
    bool again = true;
    for (int i = 0; i < TRIES_MAX && again; i++) {
        if (i > 0) pause_ms(500L << i);
        status = request_once(client, url, headers, body, &again, error);
        if (status == STATUS_OK) break;
    }
    return status;
}

/* --- The server's limits --------------------------------------------------------------------------------------------
 */

static enum status read_options(struct upload_client *client, struct error *error)
{
    struct json_reader reader;
    struct slice key;
    json_reader_init(&reader, buffer_slice(&client->answer));
    json_object_begin(&reader);
    while (json_object_next(&reader, &key)) {
        if (slice_equals_text(key, "chunkSize"))
            client->chunk_size = json_u64(&reader);
        else if (slice_equals_text(key, "chunksPerRequest"))
            client->chunks_per_request = json_u64(&reader);
        else if (slice_equals_text(key, "maxRequestSize"))
            client->request_size = json_u64(&reader);
        else if (slice_equals_text(key, "maxFileSize"))
            client->file_size = json_u64(&reader);
        else
            json_skip(&reader);
    }
    enum status status = json_reader_finish(&reader, error);
    json_reader_fini(&reader);
    bool is_usable = client->chunk_size > 0 && client->chunk_size <= CHUNK_BYTES_MAX && client->chunks_per_request > 0;
    if (status == STATUS_OK && !is_usable)
        status = error_set(error, STATUS_UNSUPPORTED, 0, "the server accepts no debug files");
    return status;
}

/* Parses the URL of OPTIONS, with the token of --token-file if it has none. */
static enum status parse_url(const struct upload_options *options, struct dsn *ret_server, struct error *error)
{
    char token[TOKEN_SIZE], url[DSN_URL_SIZE];
    const char *mark = strstr(options->url, "://");
    if (!mark || url_has_user(options->url)) return dsn_parse(options->url, ret_server, error);
    enum status status = token_read(options->url, token, error);
    if (status != STATUS_OK) return status;
    if (!token[0])
        return error_set(
            error, STATUS_MALFORMED, 0,
            "the URL has no token: http://TOKEN@HOST/PROJECT or --token-file FILE gives it, or OFFBEAT_TOKEN if "
            "OFFBEAT_URL names the server");
    mark += strlen("://");
    int size = snprintf(url, sizeof(url), "%.*s%s@%s", (int)(mark - options->url), options->url, token, mark);
    if (size >= (int)sizeof(url)) return error_set(error, STATUS_MALFORMED, 0, "the URL is too long");
    return dsn_parse(url, ret_server, error);
}

enum status upload_client_open(const struct upload_options *options, struct upload_client **ret_client,
                               struct error *error)
{
    struct dsn server;
    char url[DSN_URL_SIZE + 64];
    enum status status = parse_url(options, &server, error);
    if (status != STATUS_OK) return status;
    const struct curl_library *curl = curl_library_get(error);
    if (!curl) return STATUS_UNSUPPORTED;
    struct upload_client *client = calloc(1, sizeof(*client));
    if (!client) return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory");
    client->curl = curl;
    client->server = server;
    buffer_init(&client->answer, UPLOAD_ANSWER_BYTES_MAX);
    (void)snprintf(client->base, sizeof(client->base), "%s://%s:%u%s/api/0", server.is_https ? "https" : "http",
                   server.host, server.port, server.path);
    client->easy = curl->easy_init();
    if (!client->easy || !set_up(client, options))
        status = error_set(error, STATUS_NO_MEMORY, 0, "libcurl cannot be set up");
    (void)snprintf(url, sizeof(url), "%s/organizations/offbeat/chunk-upload/", client->base);
    if (status == STATUS_OK) status = request(client, url, client->json_headers, NULL, error);
    if (status == STATUS_OK) status = read_options(client, error);
    if (status == STATUS_OK)
        *ret_client = client;
    else
        upload_client_close(client);
    return status;
}

void upload_client_close(struct upload_client *client)
{
    if (!client) return;
    if (client->easy) client->curl->easy_cleanup(client->easy);
    client->curl->slist_free_all(client->json_headers);
    client->curl->slist_free_all(client->form_headers);
    buffer_fini(&client->answer);
    free(client->chunks);
    free(client);
}

/* --- A file ---------------------------------------------------------------------------------------------------------
 */

static bool read_at(int descriptor, uint64_t offset, struct buffer *out, size_t size)
{
    uint8_t *room = buffer_reserve(out, size);
    for (size_t done = 0; room && done < size;) {
        ssize_t got = pread(descriptor, room + done, size - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        done += (size_t)got;
    }
    if (room) buffer_grow(out, size);
    return room != NULL;
}

static enum status read_chunks(struct upload_client *client, const struct upload_file *file, struct error *error)
{
    struct sha1 whole;
    struct buffer bytes;
    size_t capacity = 0;
    enum status status = STATUS_OK;
    free(client->chunks);
    client->chunks = NULL;
    client->chunk_count = 0;
    buffer_init(&bytes, CHUNK_BYTES_MAX);
    sha1_init(&whole);
    for (uint64_t offset = 0; offset < file->size && status == STATUS_OK; offset += client->chunk_size) {
        uint64_t left = file->size - offset;
        size_t size = (size_t)(left < client->chunk_size ? left : client->chunk_size);
        buffer_clear(&bytes);
        if (!array_reserve(&client->chunks, &capacity, client->chunk_count + 1, sizeof(*client->chunks),
                           UPLOAD_CHUNKS_MAX))
            status = error_set(error, STATUS_TOO_LARGE, 0, "the file has too many chunks");
        else if (!read_at(file->descriptor, offset, &bytes, size))
            status = error_set(error, STATUS_IO, 0, "the file cannot be read, or is being changed");
        if (status != STATUS_OK) break;
        struct upload_chunk *chunk = &client->chunks[client->chunk_count++];
        *chunk = (struct upload_chunk){.offset = offset, .size = size};
        sha1_add(&whole, buffer_slice(&bytes));
        sha1_of(buffer_slice(&bytes), chunk->checksum);
    }
    sha1_finish(&whole, client->checksum);
    buffer_fini(&bytes);
    return status;
}

static void write_assembly(const struct upload_client *client, const struct upload_file *file, struct buffer *out)
{
    struct json_writer json = json_writer_of(out);
    json_begin_object(&json);
    json_begin_object_member(&json, client->checksum);
    json_member_text(&json, "name", file->name);
    json_member_text(&json, "debug_id", file->debug_id);
    json_begin_array_member(&json, "chunks");
    for (size_t i = 0; i < client->chunk_count; i++) json_write_text(&json, client->chunks[i].checksum);
    json_end_array(&json);
    json_end_object(&json);
    json_end_object(&json);
}

struct assembly_answer {
    char state[16], detail[200];
};

static void mark_missing(struct upload_client *client, struct slice checksum)
{
    for (size_t i = 0; i < client->chunk_count; i++)
        if (slice_equals_text(checksum, client->chunks[i].checksum)) client->chunks[i].is_missing = true;
}

static void copy(char *into, size_t size, struct slice text)
{
    (void)snprintf(into, size, "%.*s", SLICE_ARGUMENTS(text));
}

static void read_state(struct upload_client *client, struct json_reader *reader, struct assembly_answer *answer)
{
    struct slice key;
    json_object_begin(reader);
    while (json_object_next(reader, &key)) {
        if (slice_equals_text(key, "state")) {
            copy(answer->state, sizeof(answer->state), json_string(reader));
        } else if (slice_equals_text(key, "detail") && !json_null(reader)) {
            copy(answer->detail, sizeof(answer->detail), json_string(reader));
        } else if (slice_equals_text(key, "missingChunks")) {
            json_array_begin(reader);
            while (json_array_next(reader)) mark_missing(client, json_string(reader));
        } else if (!slice_equals_text(key, "detail")) {
            json_skip(reader);
        }
    }
}

static enum status ask(struct upload_client *client, const struct upload_file *file, struct assembly_answer *ret_answer,
                       struct error *error)
{
    struct buffer body;
    struct json_reader reader;
    struct slice key;
    char url[DSN_URL_SIZE + 96];
    *ret_answer = (struct assembly_answer){.state = ""};
    for (size_t i = 0; i < client->chunk_count; i++) client->chunks[i].is_missing = false;
    (void)snprintf(url, sizeof(url), "%s/projects/offbeat/%llu/files/difs/assemble/", client->base,
                   (unsigned long long)client->server.project);
    buffer_init(&body, UPLOAD_ANSWER_BYTES_MAX);
    write_assembly(client, file, &body);
    enum status status = request(client, url, client->json_headers, &body, error);
    buffer_fini(&body);
    if (status != STATUS_OK) return status;
    json_reader_init(&reader, buffer_slice(&client->answer));
    json_object_begin(&reader);
    while (json_object_next(&reader, &key)) {
        if (slice_equals_text(key, client->checksum))
            read_state(client, &reader, ret_answer);
        else
            json_skip(&reader);
    }
    status = json_reader_finish(&reader, error);
    json_reader_fini(&reader);
    return status;
}

static enum status add_part(struct upload_client *client, const struct upload_file *file,
                            const struct upload_chunk *chunk, struct buffer *form, struct error *error)
{
    struct buffer bytes;
    buffer_init(&bytes, CHUNK_BYTES_MAX);
    enum status status = STATUS_OK;
    if (!read_at(file->descriptor, chunk->offset, &bytes, chunk->size))
        status = error_set(error, STATUS_IO, 0, "the file cannot be read, or is being changed");
    buffer_append_format(form,
                         "--%s\r\nContent-Disposition: form-data; name=\"file_gzip\"; filename=\"%s\"\r\n"
                         "Content-Type: application/octet-stream\r\n\r\n",
                         boundary, chunk->checksum);
    if (status == STATUS_OK) status = gzip_compress(buffer_slice(&bytes), GZIP_LEVEL_DEFAULT, form, error);
    buffer_append_text(form, "\r\n");
    buffer_fini(&bytes);
    return status;
}

/* Sends missing chunks from *PLACE on, as many as fit. */
static enum status send_form(struct upload_client *client, const struct upload_file *file, size_t *place,
                             struct error *error)
{
    struct buffer form;
    char url[DSN_URL_SIZE + 64];
    enum status status = STATUS_OK;
    uint64_t count = 0;
    buffer_init(&form, FORM_BYTES_MAX);
    for (; *place < client->chunk_count && status == STATUS_OK; ++*place) {
        const struct upload_chunk *chunk = &client->chunks[*place];
        bool fits =
            count < client->chunks_per_request && (count == 0 || form.size + chunk->size + 1024 < client->request_size);
        if (!fits) break;
        if (!chunk->is_missing) continue;
        status = add_part(client, file, chunk, &form, error);
        count++;
    }
    buffer_append_format(&form, "--%s--\r\n", boundary);
    if (status == STATUS_OK && form.failed) status = error_set(error, STATUS_NO_MEMORY, 0, "not enough memory");
    (void)snprintf(url, sizeof(url), "%s/organizations/offbeat/chunk-upload/", client->base);
    if (status == STATUS_OK && count > 0) status = request(client, url, client->form_headers, &form, error);
    buffer_fini(&form);
    return status;
}

static enum status send_missing(struct upload_client *client, const struct upload_file *file, struct error *error)
{
    enum status status = STATUS_OK;
    for (size_t place = 0; place < client->chunk_count && status == STATUS_OK;) {
        status = send_form(client, file, &place, error);
        uint64_t sent = place < client->chunk_count ? client->chunks[place].offset : file->size;
        if (file->progress) file->progress(file->context, sent);
    }
    return status;
}

/* Asks until the server has joined and read the file. A chunk that it lost meanwhile is sent again. */
static enum status wait_for(struct upload_client *client, const struct upload_file *file,
                            struct assembly_answer *answer, struct error *error)
{
    enum status status = STATUS_OK;
    time_t end = time(NULL) + UPLOAD_WAIT_SECONDS;
    for (long milliseconds = 20; status == STATUS_OK; milliseconds = milliseconds < 1000 ? 2 * milliseconds : 1000) {
        if (strcmp(answer->state, "not_found") == 0)
            status = send_missing(client, file, error);
        else if (strcmp(answer->state, "created") == 0 || strcmp(answer->state, "assembling") == 0)
            pause_ms(milliseconds);
        else
            return STATUS_OK;
        if (status == STATUS_OK && time(NULL) > end)
            status = error_set(error, STATUS_IO, 0, "the server did not finish within %d s", UPLOAD_WAIT_SECONDS);
        if (status == STATUS_OK) status = ask(client, file, answer, error);
    }
    return status;
}

enum status upload_client_send(struct upload_client *client, const struct upload_file *file,
                               enum upload_state *ret_state, struct error *error)
{
    struct assembly_answer answer;
    *ret_state = UPLOAD_REJECTED;
    if (file->size == 0 || (client->file_size && file->size > client->file_size)) {
        (void)error_set(error, STATUS_TOO_LARGE, 0, "the file is empty or larger than the server accepts (%llu MB)",
                        (unsigned long long)(client->file_size >> 20));
        return STATUS_OK;
    }
    enum status status = read_chunks(client, file, error);
    if (status == STATUS_OK) status = ask(client, file, &answer, error);
    if (status == STATUS_OK && strcmp(answer.state, "ok") == 0) {
        *ret_state = UPLOAD_WAS_THERE;
        return STATUS_OK;
    }
    if (status == STATUS_OK) status = wait_for(client, file, &answer, error);
    if (status == STATUS_OK && strcmp(answer.state, "ok") == 0)
        *ret_state = UPLOAD_DONE;
    else if (status == STATUS_OK)
        (void)error_set(error, STATUS_UNSUPPORTED, 0, "%s",
                        answer.detail[0] ? answer.detail : "rejected by the server");
    return status;
}
