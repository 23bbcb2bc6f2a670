/* SPDX-License-Identifier: MIT */
#include "cli/fetch.h"

#include "cli/fetched_file.h"
#include "cli/progress.h"
#include "cli/secrets.h"
#include "format/common/text_line.h"
#include "transport/curl_library.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

enum { SECONDS_MIN = 60, SECONDS_MAX = 86400, REDIRECTIONS_MAX = 10, PLACE_CHARACTERS_MAX = 200 };

static const char insecure_scheme[] = "https+insecure://", secure_scheme[] = "https://", scheme[] = "http://";

static struct fetch_settings settings;

void fetch_set(const struct fetch_settings *wanted)
{
    settings = *wanted;
}

bool fetch_is_url(const char *path)
{
    return text_begins_with(slice_of_text(path), scheme) || text_begins_with(slice_of_text(path), secure_scheme) ||
           text_begins_with(slice_of_text(path), insecure_scheme);
}

/* --- A request ---------------------------------------------------------------------------------------------------- */

struct request {
    struct buffer *out;
    struct fetch_losses *losses;
    struct progress progress;
};

static size_t take_body(char *data, size_t size, size_t count, void *context)
{
    struct request *request = context;
    buffer_append(request->out, data, size * count);
    return request->out->failed ? 0 : size * count;
}

/* Takes a line of a header. The first one of each answer forgets what an answer before it, a redirection, said. */
static size_t take_header(char *data, size_t size, size_t count, void *context)
{
    static const char missing[] = "x-offbeat-incomplete:", damaged[] = "x-offbeat-damaged:", first[] = "HTTP/";
    struct fetch_losses *losses = ((struct request *)context)->losses;
    size_t length = size * count, text_length = length;
    while (text_length > 0 && (data[text_length - 1] == '\n' || data[text_length - 1] == '\r')) text_length--;
    if (length >= strlen(first) && strncasecmp(data, first, strlen(first)) == 0) *losses = (struct fetch_losses){0};
    if (length >= strlen(damaged) && strncasecmp(data, damaged, strlen(damaged)) == 0) losses->is_damaged = true;
    if (length >= strlen(missing) && strncasecmp(data, missing, strlen(missing)) == 0) {
        size_t start = strlen(missing);
        while (start < text_length && data[start] == ' ') start++;
        (void)snprintf(losses->missing, sizeof(losses->missing), "%.*s", (int)(text_length - start), data + start);
    }
    return length;
}

static int show_progress(void *context, curl_off_t all, curl_off_t done, curl_off_t up_all, curl_off_t up_done)
{
    struct request *request = context;
    (void)up_all, (void)up_done;
    progress_step(&request->progress, (size_t)done, (size_t)(all > done ? all : done));
    return 0;
}

/* The value of "seconds" in the query of URL; 0 if there is none. */
static uint64_t seconds_of(const char *url)
{
    static const char name[] = "seconds=";
    for (const char *at = strchr(url, '?'); at; at = strchr(at, '&')) {
        at++;
        if (text_begins_with(slice_of_text(at), name)) return strtoull(at + strlen(name), NULL, 10);
    }
    return 0;
}

static long timeout_seconds(const char *url)
{
    if (settings.timeout_seconds > 0) return (long)settings.timeout_seconds;
    uint64_t seconds = seconds_of(url);
    if (seconds > SECONDS_MAX) seconds = SECONDS_MAX;
    return seconds * 3 / 2 > SECONDS_MIN ? (long)(seconds * 3 / 2) : SECONDS_MIN;
}

static bool set_tls(const struct curl_library *curl, CURL *easy)
{
    const char *authority = settings.authority, *certificate = settings.certificate, *key = settings.key;
    return (!authority || curl->easy_setopt(easy, CURLOPT_CAINFO, authority) == CURLE_OK) &&
           (!certificate || curl->easy_setopt(easy, CURLOPT_SSLCERT, certificate) == CURLE_OK) &&
           (!key || curl->easy_setopt(easy, CURLOPT_SSLKEY, key) == CURLE_OK);
}

/* Sets TOKEN for a URL without a user. libcurl sends it to no other server that this one names. */
static bool set_token(const struct curl_library *curl, CURL *easy, const char *url, const char *token)
{
    if (!token[0] || url_has_user(url)) return true;
    return curl->easy_setopt(easy, CURLOPT_HTTPAUTH, CURLAUTH_BEARER) == CURLE_OK &&
           curl->easy_setopt(easy, CURLOPT_XOAUTH2_BEARER, token) == CURLE_OK;
}

static bool set_options(const struct curl_library *curl, CURL *easy, const char *url, struct request *request,
                        char message[CURL_ERROR_SIZE])
{
    bool is_insecure = text_begins_with(slice_of_text(url), insecure_scheme);
    char *place = NULL;
    if (is_insecure && asprintf(&place, "%s%s", secure_scheme, url + strlen(insecure_scheme)) < 0) return false;
    bool is_set = curl->easy_setopt(easy, CURLOPT_URL, place ? place : url) == CURLE_OK &&
                  curl->easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
                  curl->easy_setopt(easy, CURLOPT_REDIR_PROTOCOLS_STR, "http,https") == CURLE_OK &&
                  curl->easy_setopt(easy, CURLOPT_FOLLOWLOCATION, 1L) == CURLE_OK &&
                  curl->easy_setopt(easy, CURLOPT_MAXREDIRS, (long)REDIRECTIONS_MAX) == CURLE_OK &&
                  curl->easy_setopt(easy, CURLOPT_TIMEOUT, timeout_seconds(url)) == CURLE_OK &&
                  curl->easy_setopt(easy, CURLOPT_SSL_VERIFYPEER, is_insecure ? 0L : 1L) == CURLE_OK &&
                  curl->easy_setopt(easy, CURLOPT_SSL_VERIFYHOST, is_insecure ? 0L : 2L) == CURLE_OK &&
                  curl->easy_setopt(easy, CURLOPT_ERRORBUFFER, message) == CURLE_OK &&
                  curl->easy_setopt(easy, CURLOPT_NOPROGRESS, 0L) == CURLE_OK &&
                  curl->easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, show_progress) == CURLE_OK &&
                  curl->easy_setopt(easy, CURLOPT_XFERINFODATA, request) == CURLE_OK &&
                  curl->easy_setopt(easy, CURLOPT_HEADERFUNCTION, take_header) == CURLE_OK &&
                  curl->easy_setopt(easy, CURLOPT_HEADERDATA, request) == CURLE_OK &&
                  curl->easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_body) == CURLE_OK &&
                  curl->easy_setopt(easy, CURLOPT_WRITEDATA, request) == CURLE_OK;
    free(place); /* libcurl has a copy */
    return is_set;
}

/* The first line of an answer that is no profile: "Could not enable CPU profiling: already in use". */
static enum status reject_status(long status, const struct buffer *body, struct error *error)
{
    struct slice text = buffer_slice(body);
    size_t size = 0;
    while (size < text.size && size < PLACE_CHARACTERS_MAX && text.data[size] != '\n' && text.data[size] != '\r')
        size++;
    return error_set(
        error, STATUS_IO, 0, "the server answered with status %ld%s%.*s%s", status, size ? ": " : "", (int)size,
        size ? (const char *)text.data : "",
        status == 401 ? "; --token-file FILE gives the token, or OFFBEAT_TOKEN if OFFBEAT_URL names the server" : "");
}

static enum status perform_request(const struct curl_library *curl, CURL *easy, struct request *request,
                                   const char *said, struct error *error)
{
    CURLcode code = curl->easy_perform(easy);
    long status = 0;
    (void)curl->easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    if (request->out->failed)
        return error_set(error, STATUS_TOO_LARGE, 0, "the server's answer is larger than %zu bytes",
                         request->out->maximum);
    if (code != CURLE_OK) return error_set(error, STATUS_IO, 0, "%s", said[0] ? said : curl->easy_strerror(code));
    return status == 200 ? STATUS_OK : reject_status(status, request->out, error);
}

enum status fetch(const char *url, struct buffer *out, struct fetch_losses *ret_losses, struct error *error)
{
    *ret_losses = (struct fetch_losses){0};
    char said[CURL_ERROR_SIZE] = "", token[TOKEN_SIZE];
    if (token_read(url, token, error) != STATUS_OK) return error->status;
    const struct curl_library *curl = curl_library_get(error);
    if (!curl) return STATUS_UNSUPPORTED;
    CURL *easy = curl->easy_init();
    struct request request = {out, ret_losses, progress_begin("fetching the profile")};
    enum status status = STATUS_NO_MEMORY;
    if (easy && set_tls(curl, easy) && set_token(curl, easy, url, token) &&
        set_options(curl, easy, url, &request, said))
        status = perform_request(curl, easy, &request, said, error);
    else
        (void)error_set(error, status, 0, "libcurl cannot be set up for this address");
    progress_end(&request.progress);
    if (easy) curl->easy_cleanup(easy);
    if (status == STATUS_OK && settings.keeps_copies && out->size > 0) fetched_file_keep(out);
    return status;
}

size_t fetch_losses_say(const struct fetch_losses *losses, char ret_lines[FETCH_LINES_MAX][FETCH_LINE_SIZE])
{
    size_t count = 0;
    if (losses->missing[0])
        (void)snprintf(ret_lines[count++], FETCH_LINE_SIZE, "the server's answer lacks what is on %s", losses->missing);
    if (losses->is_damaged)
        (void)snprintf(ret_lines[count++], FETCH_LINE_SIZE, "the server's answer lacks data that are damaged there");
    return count;
}

/* --- A source of pprof -------------------------------------------------------------------------------------------- */

/* "host:6060", with or without a path. */
static bool names_a_port(const char *source)
{
    size_t host = strcspn(source, ":/?");
    if (host == 0 || source[host] != ':') return false;
    size_t digits = strspn(source + host + 1, "0123456789");
    return digits > 0 && strchr("/?", source[host + 1 + digits]) && access(source, F_OK) != 0;
}

char *fetch_source(const char *source, uint64_t seconds)
{
    char *result = NULL;
    bool is_url = fetch_is_url(source), is_place = !is_url && names_a_port(source);
    const char *start = is_place ? scheme : "";
    if ((!is_url && !is_place) || seconds == 0) return asprintf(&result, "%s%s", start, source) < 0 ? NULL : result;
    /* The first one counts, where the query has another. */
    int place = (int)strcspn(source, "?");
    const char *query = source[place] ? source + place + 1 : "";
    int size =
        asprintf(&result, "%s%.*s?seconds=%" PRIu64 "%s%s", start, place, source, seconds, query[0] ? "&" : "", query);
    return size < 0 ? NULL : result;
}
