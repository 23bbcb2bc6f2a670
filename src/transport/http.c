/* libcurl's multi interface with a single handle, because that can be waited for together with something else, and
 * ended at any time.  SPDX-License-Identifier: MIT */
#include "transport/http.h"

#include "base/clocks.h"
#include "transport/curl_library.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <time.h>

enum { REQUEST_TIMEOUTS = 20, AUTH_LINE_SIZE = 320 };

struct http {
    const struct curl_library *curl;
    struct http_options options;
    CURLM *multi;
    CURL *easy;
    struct curl_slist *headers;
    struct http_response response;
    char curl_message[CURL_ERROR_SIZE];
    bool is_busy;
    uint64_t moved_at_ns; /* time of the last moved byte */
    curl_off_t moved_bytes;
};

/* --- The response ------------------------------------------------------------------------------------------------- */

/* The value of LINE, "Name: value\r\n", if that is its NAME. */
static bool find_value(struct slice line, const char *name, struct slice *ret_value)
{
    size_t length = strlen(name);
    if (line.size <= length || line.data[length] != ':' || strncasecmp((const char *)line.data, name, length) != 0)
        return false;
    struct slice value = slice_of(line.data + length + 1, line.size - length - 1);
    while (value.size && strchr(" \t", value.data[0])) value = slice_of(value.data + 1, value.size - 1);
    while (value.size && strchr(" \t\r\n", value.data[value.size - 1])) value.size--;
    *ret_value = value;
    return true;
}

static void append_limits(struct http_response *response, struct slice value)
{
    char *limits = response->rate_limits;
    size_t size = strlen(limits);
    int written = snprintf(limits + size, HTTP_HEADER_SIZE - size, "%s%.*s", size ? "," : "", SLICE_ARGUMENTS(value));
    if (written < 0 || (size_t)written < HTTP_HEADER_SIZE - size) return;
    char *last = strrchr(limits, ',');
    if (last) *last = 0;
}

static size_t take_header(char *data, size_t size, size_t count, void *context)
{
    struct http_response *response = context;
    struct slice line = slice_of(data, size * count), value;
    if (line.size >= 5 && memcmp(line.data, "HTTP/", 5) == 0) { /* another response: the first one was preliminary */
        response->rate_limits[0] = 0;
        response->retry_after[0] = 0;
    } else if (find_value(line, "X-Sentry-Rate-Limits", &value)) {
        append_limits(response, value);
    } else if (find_value(line, "Retry-After", &value)) {
        (void)snprintf(response->retry_after, sizeof(response->retry_after), "%.*s", SLICE_ARGUMENTS(value));
    }
    return line.size;
}

static size_t take_body(char *data, size_t size, size_t count, void *context)
{
    struct http_response *response = context;
    size_t have = strlen(response->body), taken = size * count;
    size_t room = sizeof(response->body) - 1 - have;
    memcpy(response->body + have, data, taken < room ? taken : room);
    return taken;
}

/* --- The connection ----------------------------------------------------------------------------------------------- */

static bool add_header(struct http *http, const char *line)
{
    struct curl_slist *longer = http->curl->slist_append(http->headers, line);
    if (longer) http->headers = longer;
    return longer != NULL;
}

static bool add_headers(struct http *http)
{
    char auth[AUTH_LINE_SIZE];
    int length = snprintf(auth, sizeof(auth), "X-Sentry-Auth: %s", http->options.auth);
    return length > 0 && (size_t)length < sizeof(auth) && add_header(http, auth) &&
           add_header(http, "Content-Type: application/x-sentry-envelope") &&
           add_header(http, "Content-Encoding: gzip") &&
           add_header(http, "Expect:"); /* do not ask first: many servers do not answer that */
}

/* Options that an older libcurl does not know are left out; those that a request cannot be without are not new. */
static bool set_options(struct http *http)
{
    const struct curl_library *curl = http->curl;
    const struct http_options *options = &http->options;
    CURL *easy = http->easy;
    long timeout_ms = (long)(options->timeout_ns / 1000000);
    bool is_set = curl->easy_setopt(easy, CURLOPT_URL, options->url) == CURLE_OK &&
                  curl->easy_setopt(easy, CURLOPT_POST, 1L) == CURLE_OK &&
                  curl->easy_setopt(easy, CURLOPT_HTTPHEADER, http->headers) == CURLE_OK &&
                  curl->easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header) == CURLE_OK &&
                  curl->easy_setopt(easy, CURLOPT_HEADERDATA, &http->response) == CURLE_OK &&
                  curl->easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body) == CURLE_OK &&
                  curl->easy_setopt(easy, CURLOPT_WRITEDATA, &http->response) == CURLE_OK;
    if (is_set && options->proxy) is_set = curl->easy_setopt(easy, CURLOPT_PROXY, options->proxy) == CURLE_OK;
    if (is_set && options->no_proxy) is_set = curl->easy_setopt(easy, CURLOPT_NOPROXY, options->no_proxy) == CURLE_OK;
    if (is_set && options->ca_file) is_set = curl->easy_setopt(easy, CURLOPT_CAINFO, options->ca_file) == CURLE_OK;
    (void)curl->easy_setopt(easy, CURLOPT_USERAGENT, options->user_agent);
    (void)curl->easy_setopt(easy, CURLOPT_ERRORBUFFER, http->curl_message);
    (void)curl->easy_setopt(easy, CURLOPT_NOSIGNAL, 1L); /* there are other threads */
    (void)curl->easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, timeout_ms);
    (void)curl->easy_setopt(easy, CURLOPT_TIMEOUT_MS, timeout_ms * REQUEST_TIMEOUTS);
    (void)curl->easy_setopt(easy, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    (void)curl->easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
    (void)curl->easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L); /* do not wait for a name that is being looked up */
    return is_set;
}

struct http *http_new(const struct http_options *options, struct error *error)
{
    const struct curl_library *curl = curl_library_get(error);
    struct http *http = curl ? calloc(1, sizeof(*http)) : NULL;
    if (!curl) return NULL;
    if (http) {
        http->curl = curl;
        http->options = *options;
        http->multi = curl->multi_init();
        http->easy = curl->easy_init();
        bool is_set_up = http->multi && http->easy && add_headers(http) && set_options(http);
        if (is_set_up) return http;
    }
    (void)error_set(error, STATUS_NO_MEMORY, 0, "libcurl cannot be set up with this proxy, CA file or memory");
    http_free(http);
    return NULL;
}

void http_free(struct http *http)
{
    if (!http) return;
    http_cancel(http);
    http->curl->slist_free_all(http->headers);
    if (http->easy) http->curl->easy_cleanup(http->easy);
    if (http->multi) (void)http->curl->multi_cleanup(http->multi);
    free(http);
}

/* --- A request ---------------------------------------------------------------------------------------------------- */

enum status http_begin(struct http *http, struct slice body, struct error *error)
{
    const struct curl_library *curl = http->curl;
    http->response = (struct http_response){0};
    http->curl_message[0] = 0;
    http->moved_at_ns = clock_monotonic_ns();
    http->moved_bytes = 0;
    (void)curl->easy_setopt(http->easy, CURLOPT_POSTFIELDS, body.data);
    (void)curl->easy_setopt(http->easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.size);
    CURLMcode added = curl->multi_add_handle(http->multi, http->easy);
    if (added != CURLM_OK) return error_set(error, STATUS_NO_MEMORY, 0, "libcurl cannot begin a request");
    http->is_busy = true;
    return STATUS_OK;
}

void http_cancel(struct http *http)
{
    if (!http->is_busy) return;
    (void)http->curl->multi_remove_handle(http->multi, http->easy);
    http->is_busy = false;
}

static void finish(struct http *http, const char *failure)
{
    struct http_response *response = &http->response;
    long status = 0, request_size = 0;
    (void)http->curl->easy_getinfo(http->easy, CURLINFO_RESPONSE_CODE, &status);
    (void)http->curl->easy_getinfo(http->easy, CURLINFO_REQUEST_SIZE, &request_size);
    /* An answer counts even if the connection broke after it. */
    response->status = status >= 200 ? status : 0;
    response->was_sent = request_size > 0;
    if (response->status == 0)
        (void)snprintf(response->failure, sizeof(response->failure), "%s", failure ? failure : "no response");
    http_cancel(http);
}

/* libcurl's own limit on slowness looks at averages of five seconds. */
static bool is_stalled(struct http *http)
{
    curl_off_t sent = 0, received = 0;
    uint64_t now = clock_monotonic_ns();
    (void)http->curl->easy_getinfo(http->easy, CURLINFO_SIZE_UPLOAD_T, &sent);
    (void)http->curl->easy_getinfo(http->easy, CURLINFO_SIZE_DOWNLOAD_T, &received);
    if (sent + received != http->moved_bytes) {
        http->moved_bytes = sent + received;
        http->moved_at_ns = now;
    }
    return now - http->moved_at_ns > http->options.timeout_ns;
}

static bool is_done(struct http *http)
{
    int left;
    for (CURLMsg *report = http->curl->multi_info_read(http->multi, &left); report;
         report = http->curl->multi_info_read(http->multi, &left)) {
        if (report->msg != CURLMSG_DONE) continue;
        CURLcode code = report->data.result;
        const char *said = http->curl_message[0] ? http->curl_message : http->curl->easy_strerror(code);
        finish(http, code == CURLE_OK ? NULL : said);
        return true;
    }
    return false;
}

bool http_step(struct http *http, int timeout_ms)
{
    int running;
    CURLMcode performed = http->curl->multi_perform(http->multi, &running);
    if (performed != CURLM_OK) {
        finish(http, "libcurl failed");
        return true;
    }
    if (is_done(http)) return true;
    if (is_stalled(http)) {
        finish(http, "no answer in time");
        return true;
    }
    (void)http->curl->multi_poll(http->multi, NULL, 0, timeout_ms, NULL);
    return false;
}

const struct http_response *http_last_response(const struct http *http)
{
    return &http->response;
}
