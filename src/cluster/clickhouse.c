/* The server holds an answer back until it has all of it (wait_end_of_query): else a failure in its middle is text
 * behind the bytes, with the status 200. Settings are in the URL, because 18.16 takes none in a statement.
 * SPDX-License-Identifier: MIT */
#include "cluster/clickhouse.h"

#include "base/clocks.h"
#include "base/file.h"
#include "base/hex.h"
#include "transport/curl_library.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    FAILURE_BYTES_MAX = 4096,
    STATEMENT_BYTES_MAX = 1 << 20,
    PING_AFTER_MS = 900, /* then a server that sends nothing is asked something else; libcurl looks once a second */
    SILENCE_SECONDS_MAX = 60,
    ANSWER_BYTES_MAX = 2000000000, /* bytes of the answer to one statement */
};

void clickhouse_init(struct clickhouse *clickhouse)
{
    *clickhouse = (struct clickhouse){.scheme = "http", .user = "default"};
    (void)pthread_mutex_init(&clickhouse->lock, NULL);
}

void clickhouse_fini(struct clickhouse *clickhouse)
{
    const struct curl_library *curl = clickhouse->idle_count ? curl_library_get(NULL) : NULL;
    while (clickhouse->idle_count > 0) curl->easy_cleanup(clickhouse->idle[--clickhouse->idle_count]);
    (void)pthread_mutex_destroy(&clickhouse->lock);
}

enum status clickhouse_read_login(struct clickhouse *clickhouse, const char *path, struct error *error)
{
    struct buffer text = {.maximum = 2 * LOGIN_SIZE};
    enum status status = file_read(path, &text, error);
    if (status == STATUS_OK) {
        struct slice rest = buffer_slice(&text), user = text_trim(text_take_until(&rest, '\n')),
                     password = text_take_until(&rest, '\n');
        if (user.size == 0 || user.size >= LOGIN_SIZE || password.size >= LOGIN_SIZE ||
            memchr(password.data ? password.data : user.data, 0, password.size)) {
            status = error_set(error, STATUS_MALFORMED, 0, "two lines are needed: a user and a password");
        } else {
            (void)snprintf(clickhouse->user, LOGIN_SIZE, "%.*s", SLICE_ARGUMENTS(user));
            (void)snprintf(clickhouse->password, LOGIN_SIZE, "%.*s", SLICE_ARGUMENTS(password));
        }
    }
    buffer_fini(&text);
    return status;
}

void sql_append_literal(struct buffer *out, struct slice text)
{
    buffer_append_byte(out, '\'');
    for (size_t i = 0; i < text.size; i++) {
        uint8_t byte = text.data[i];
        if (byte == '\'' || byte == '\\') buffer_append_byte(out, '\\');
        if (byte == 0)
            buffer_append_text(out, "\\0");
        else
            buffer_append_byte(out, byte);
    }
    buffer_append_byte(out, '\'');
}

void sql_append_bytes(struct buffer *out, struct slice bytes)
{
    buffer_append_text(out, "unhex('");
    for (size_t i = 0; i < bytes.size; i++) {
        char digits[3];
        (void)hex_write(digits, slice_of(bytes.data + i, 1));
        buffer_append_text(out, digits);
    }
    buffer_append_text(out, "')");
}

/* --- The exchange ------------------------------------------------------------------------------------------------- */

struct exchange {
    const struct curl_library *curl;
    CURL *easy;
    const struct clickhouse_request *request;
    struct buffer failure; /* front of an answer that is no success */
    struct clickhouse *clickhouse;
    uint64_t moved_ns, pinged_ns; /* monotonic times of the last byte and ping */
    curl_off_t moved_bytes;
    bool is_silent, is_ended; /* no byte in time; the receiver wants no more */
    bool has_head;            /* whether the headers of the answer are whole */
};

static size_t take_body(char *data, size_t size, size_t count, void *context)
{
    struct exchange *exchange = context;
    long status = 0;
    size *= count;
    (void)exchange->curl->easy_getinfo(exchange->easy, CURLINFO_RESPONSE_CODE, &status);
    if (status != 200) {
        size_t room = exchange->failure.maximum - 1 - exchange->failure.size; /* for a NUL */
        buffer_append(&exchange->failure, data, size < room ? size : room);
    } else if (exchange->request->receive) {
        exchange->is_ended = !exchange->request->receive(exchange->request->context, slice_of(data, size));
    }
    return exchange->is_ended ? 0 : size;
}

/* libcurl takes an answer that is cut between two headers for one without a body. */
static size_t take_header(char *data, size_t size, size_t count, void *context)
{
    struct exchange *exchange = context;
    struct slice line = slice_of(data, size * count);
    if (text_begins_with(line, "HTTP/")) exchange->has_head = false;
    if (text_begins_with(line, "\r\n")) exchange->has_head = true;
    return line.size;
}

/* Returns whether the server, which may compute an answer for long, answers something else within PING_MS: "too many
 * queries" is an answer, too. */
static bool is_alive(const struct exchange *exchange)
{
    bool has_answered = false;
    struct error ignored;
    const struct clickhouse_request ping = {.place = exchange->request->place,
                                            .statement = slice_of_text("SELECT 1"),
                                            .is_without_database = true,
                                            .answer_ms = exchange->request->ping_ms,
                                            .has_answered = &has_answered};
    (void)clickhouse_run(exchange->clickhouse, &ping, &ignored);
    return has_answered;
}

/* Ends an exchange with a server that is not alive. */
static int look_at_progress(void *context, curl_off_t all, curl_off_t received, curl_off_t up_all, curl_off_t sent)
{
    struct exchange *exchange = context;
    uint64_t now_ns = clock_monotonic_ns();
    (void)all, (void)up_all;
    if (received + sent != exchange->moved_bytes) {
        exchange->moved_bytes = received + sent;
        exchange->moved_ns = now_ns;
    }
    if (atomic_load(&exchange->clickhouse->is_ending)) exchange->is_silent = true;
    if (exchange->request->answer_ms) return exchange->is_silent; /* libcurl ends it */
    if (now_ns - exchange->moved_ns > SILENCE_SECONDS_MAX * SECOND_NS) exchange->is_silent = true;
    if (now_ns - exchange->moved_ns > PING_AFTER_MS * 1000000ull &&
        now_ns - exchange->pinged_ns > PING_AFTER_MS * 1000000ull) {
        exchange->pinged_ns = now_ns;
        exchange->is_silent |= !is_alive(exchange);
    }
    return exchange->is_silent;
}

static void write_url(const struct clickhouse *clickhouse, const struct clickhouse_request *request, struct buffer *url)
{
    buffer_append_format(url, "%s://%s/?wait_end_of_query=1&max_result_bytes=%d", clickhouse->scheme, request->place,
                         ANSWER_BYTES_MAX);
    if (!request->is_without_database) {
        buffer_append_text(url, "&database=");
        buffer_append_url_text(url, slice_of_text(clickhouse->database));
    }
    if (request->body.size > 0) {
        buffer_append_text(url, "&query=");
        buffer_append_url_text(url, request->statement);
    }
    buffer_append(url, "", 1);
}

static CURL *take_connection(struct clickhouse *clickhouse, const struct curl_library *curl)
{
    CURL *easy = NULL;
    (void)pthread_mutex_lock(&clickhouse->lock);
    if (clickhouse->idle_count > 0) easy = clickhouse->idle[--clickhouse->idle_count];
    (void)pthread_mutex_unlock(&clickhouse->lock);
    return easy ? easy : curl->easy_init();
}

static void give_connection(struct clickhouse *clickhouse, const struct curl_library *curl, CURL *easy)
{
    (void)pthread_mutex_lock(&clickhouse->lock);
    bool is_kept = clickhouse->idle_count < IDLE_CONNECTIONS_MAX;
    if (is_kept) clickhouse->idle[clickhouse->idle_count++] = easy;
    (void)pthread_mutex_unlock(&clickhouse->lock);
    if (!is_kept) curl->easy_cleanup(easy);
}

/* The login is in headers: the URL would be in the logs of the server. */
static struct curl_slist *make_headers(const struct clickhouse *clickhouse, const struct curl_library *curl)
{
    const char *const names[] = {"X-ClickHouse-User", "X-ClickHouse-Key"};
    const char *const values[] = {clickhouse->user, clickhouse->password};
    struct curl_slist *headers = curl->slist_append(NULL, "Expect:");
    for (size_t i = 0; i < 2 && headers; i++) {
        char line[LOGIN_SIZE + 32];
        if (!values[i][0]) continue;
        (void)snprintf(line, sizeof(line), "%s: %s", names[i], values[i]);
        struct curl_slist *longer = curl->slist_append(headers, line);
        if (longer) headers = longer;
    }
    return headers;
}

static bool set_options(struct exchange *exchange, const struct clickhouse *clickhouse, const char *url,
                        const struct curl_slist *headers)
{
    const struct curl_library *curl = exchange->curl;
    const struct clickhouse_request *request = exchange->request;
    struct slice body = request->body.size > 0 ? request->body : request->statement;
    CURL *easy = exchange->easy;
    if (clickhouse->authority && curl->easy_setopt(easy, CURLOPT_CAINFO, clickhouse->authority) != CURLE_OK)
        return false;
    return curl->easy_setopt(easy, CURLOPT_URL, url) == CURLE_OK &&
           curl->easy_setopt(easy, CURLOPT_PROXY, "") == CURLE_OK &&
           curl->easy_setopt(easy, CURLOPT_POST, 1L) == CURLE_OK &&
           curl->easy_setopt(easy, CURLOPT_POSTFIELDS, body.data) == CURLE_OK &&
           curl->easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.size) == CURLE_OK &&
           curl->easy_setopt(easy, CURLOPT_HTTPHEADER, headers) == CURLE_OK &&
           curl->easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
           curl->easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS,
                             (long)(request->answer_ms ? request->answer_ms : request->ping_ms)) == CURLE_OK &&
           curl->easy_setopt(easy, CURLOPT_TIMEOUT_MS, (long)request->answer_ms) == CURLE_OK &&
           curl->easy_setopt(easy, CURLOPT_NOPROGRESS, 0L) == CURLE_OK &&
           curl->easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, look_at_progress) == CURLE_OK &&
           curl->easy_setopt(easy, CURLOPT_XFERINFODATA, exchange) == CURLE_OK &&
           curl->easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header) == CURLE_OK &&
           curl->easy_setopt(easy, CURLOPT_HEADERDATA, exchange) == CURLE_OK &&
           curl->easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body) == CURLE_OK &&
           curl->easy_setopt(easy, CURLOPT_WRITEDATA, exchange) == CURLE_OK;
}

/* --- Failures ----------------------------------------------------------------------------------------------------- */

/* Returns the number in "Code: 60, e.displayText() = …"; 0 if there is none. */
static unsigned long code_of(struct slice text)
{
    static const char start[] = "Code: ";
    const char *found = text.size ? memmem(text.data, text.size, start, strlen(start)) : NULL;
    return found ? strtoul(found + strlen(start), NULL, 10) : 0;
}

/* FAILURE ends with a NUL. */
static enum status reject(const struct clickhouse *clickhouse, const struct clickhouse_request *request,
                          struct slice failure, struct error *error)
{
    enum { SAID_MAX = 120 };
    unsigned long code = code_of(failure);
    switch (code) {
    case 192: /* unknown user */
    case 193: /* wrong password */
    case 194: /* password needed */
    case 516: /* authentication failed */
        return error_set(error, STATUS_MALFORMED, 0,
                         "%s rejects the user \"%s\" or the password; --store-login FILE has both", request->place,
                         clickhouse->user);
    case 60: /* unknown table */
    case 81: /* unknown database */
        return error_set(error, STATUS_NOT_FOUND, 0,
                         "%s has no tables in the database %s; offbeat store create makes them", request->place,
                         clickhouse->database);
    case 16: /* no such column */
    case 47: /* unknown identifier */
    case 53: /* type mismatch */
    case 62: /* syntax */
        return error_set(error, STATUS_UNSUPPORTED, 0,
                         "the tables of %s are of another version; offbeat store check says how they differ (code "
                         "%lu)",
                         request->place, code);
    default:
        break;
    }
    size_t size = 0;
    while (size < failure.size && size < SAID_MAX && failure.data[size] != '\n') size++;
    return error_set(error, STATUS_IO, 0, "%s: %.*s", request->place, (int)size, (const char *)failure.data);
}

static enum status finish(struct exchange *exchange, const struct clickhouse *clickhouse, CURLcode code,
                          struct error *error)
{
    const struct clickhouse_request *request = exchange->request;
    long status = 0;
    (void)exchange->curl->easy_getinfo(exchange->easy, CURLINFO_RESPONSE_CODE, &status);
    if (exchange->is_ended) return STATUS_OK;
    exchange->is_silent |= code == CURLE_OPERATION_TIMEDOUT;
    if (exchange->is_silent && request->is_silent) *request->is_silent = true;
    if (exchange->is_silent) return error_set(error, STATUS_IO, 0, "%s does not answer in time", request->place);
    if (code != CURLE_OK)
        return error_set(error, STATUS_IO, 0, "%s: %s", request->place, exchange->curl->easy_strerror(code));
    if (!exchange->has_head) return error_set(error, STATUS_IO, 0, "%s: the answer is cut", request->place);
    if (request->has_answered) *request->has_answered = true;
    if (status == 200) return STATUS_OK;
    buffer_append(&exchange->failure, "", 1);
    if (exchange->failure.size < 2)
        return error_set(error, STATUS_IO, 0, "%s answers with status %ld", request->place, status);
    return reject(clickhouse, request, slice_of(exchange->failure.data, exchange->failure.size - 1), error);
}

enum status clickhouse_run(struct clickhouse *clickhouse, const struct clickhouse_request *request, struct error *error)
{
    const struct curl_library *curl = curl_library_get(error);
    if (!curl) return STATUS_UNSUPPORTED;
    struct exchange exchange = {.curl = curl,
                                .easy = take_connection(clickhouse, curl),
                                .request = request,
                                .failure = {.maximum = FAILURE_BYTES_MAX},
                                .clickhouse = clickhouse,
                                .moved_ns = clock_monotonic_ns()};
    struct buffer url = {.maximum = STATEMENT_BYTES_MAX};
    struct curl_slist *headers = make_headers(clickhouse, curl);
    write_url(clickhouse, request, &url);
    enum status status;
    if (exchange.easy && headers && !url.failed && set_options(&exchange, clickhouse, (const char *)url.data, headers))
        status = finish(&exchange, clickhouse, curl->easy_perform(exchange.easy), error);
    else
        status = error_set(error, STATUS_NO_MEMORY, 0, "libcurl cannot be set up for %s", request->place);
    if (exchange.easy) give_connection(clickhouse, curl, exchange.easy);
    if (headers) curl->slist_free_all(headers);
    buffer_fini(&url);
    buffer_fini(&exchange.failure);
    return status;
}
