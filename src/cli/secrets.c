/* SPDX-License-Identifier: MIT */
#include "cli/secrets.h"

#include "base/buffer.h"
#include "base/environment.h"
#include "base/file.h"
#include "transport/curl_library.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

const char *token_file;

static const char url_mark[] = "://", token_mark[] = "token=", word_ends[] = " \t\n\"'";

static bool begins(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* Returns the size of the user's part of a URL, from after "://" to before "@"; 0 for the words of our own examples. */
static size_t user_size(const char *text)
{
    size_t size = strcspn(text, "/?# \t\n\"'");
    const char *at = memrchr(text, '@', size);
    bool is_example = begins(text, "TOKEN@") || begins(text, "KEY@");
    return at && !is_example ? (size_t)(at - text) : 0;
}

bool url_has_user(const char *url)
{
    const char *mark = strstr(url, url_mark);
    return mark && user_size(mark + strlen(url_mark)) > 0;
}

size_t secrets_hide(char *text)
{
    enum { SHOWN = 3 };
    char *out = text;
    bool is_in_url = false;
    for (const char *in = text; *in;) {
        bool is_url_mark = begins(in, url_mark), is_token_mark = is_in_url && begins(in, token_mark);
        size_t size = is_url_mark ? strlen(url_mark) : is_token_mark ? strlen(token_mark) : 1;
        is_in_url = is_url_mark || (is_in_url && !strchr(word_ends, *in));
        size_t secret_size = is_url_mark ? user_size(in + size) : is_token_mark ? strcspn(in + size, "&:, \t\n\"'") : 0;
        size_t shown = secret_size < SHOWN ? secret_size : SHOWN;
        memmove(out, in, size);
        memset(out + size, '*', shown);
        out += size + shown;
        in += size + secret_size;
    }
    *out = '\0';
    return (size_t)(out - text);
}

const char *without_secrets(const char *text)
{
    if (!strstr(text, url_mark)) return text;
    char *copy = strdup(text);
    if (!copy) return "a URL";
    (void)secrets_hide(copy);
    return copy;
}

void secrets_hide_title(int argc, char **argv)
{
    for (int i = 0; i < argc; i++) {
        char *title = argv[i], *copy = strstr(title, url_mark) ? strdup(title) : NULL;
        if (!copy) continue;
        size_t size = strlen(title), left = secrets_hide(title);
        memset(title + left, 0, size - left);
        argv[i] = copy;
    }
}

static enum status take_token(struct slice text, char ret_token[TOKEN_SIZE], struct error *error)
{
    size_t size = 0;
    while (size < text.size && text.data[size] > ' ' && text.data[size] < 0x7F) size++;
    bool is_line = size == text.size || text.data[size] == '\n' || text.data[size] == '\r';
    if (size == 0 || size >= TOKEN_SIZE || !is_line)
        return error_set(error, STATUS_MALFORMED, 0, "%s has no token in its first line",
                         token_file ? token_file : "OFFBEAT_TOKEN");
    memcpy(ret_token, text.data, size);
    ret_token[size] = '\0';
    return STATUS_OK;
}

/* True if URL and OTHER have the same scheme, host and port, as libcurl reads them when it connects. */
static bool is_same_server(const struct curl_library *curl, const char *url, const char *other)
{
    static const CURLUPart parts[] = {CURLUPART_SCHEME, CURLUPART_HOST, CURLUPART_PORT};
    CURLU *one = curl->url(), *two = curl->url();
    bool is_same = one && two && curl->url_set(one, CURLUPART_URL, url, CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK &&
                   curl->url_set(two, CURLUPART_URL, other, CURLU_NON_SUPPORT_SCHEME) == CURLUE_OK;
    for (size_t i = 0; is_same && i < sizeof(parts) / sizeof(parts[0]); i++) {
        char *here = NULL, *there = NULL;
        (void)curl->url_get(one, parts[i], &here, CURLU_DEFAULT_PORT);
        (void)curl->url_get(two, parts[i], &there, CURLU_DEFAULT_PORT);
        is_same = here && there && strcasecmp(here, there) == 0;
        curl->free(here);
        curl->free(there);
    }
    curl->url_cleanup(one);
    curl->url_cleanup(two);
    return is_same;
}

/* Reads OFFBEAT_TOKEN, which is for the servers that the two variables name, and no other. */
static enum status read_variable(const char *url, char ret_token[TOKEN_SIZE], struct error *error)
{
    static const char *const names[] = {"OFFBEAT_URL", "OFFBEAT_UPLOAD_URL"};
    const char *token = environment_get("OFFBEAT_TOKEN");
    if (!token || !token[0]) return STATUS_OK;
    const struct curl_library *curl = curl_library_get(error);
    if (!curl) return STATUS_UNSUPPORTED;
    bool is_named = false;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *server = environment_get(names[i]);
        is_named = is_named || (server && is_same_server(curl, server, url));
    }
    return is_named ? take_token(slice_of_text(token), ret_token, error) : STATUS_OK;
}

enum status token_read(const char *url, char ret_token[TOKEN_SIZE], struct error *error)
{
    enum { FILE_BYTES_MAX = 64 << 10 };
    ret_token[0] = '\0';
    if (!token_file) return read_variable(url, ret_token, error);
    struct buffer bytes;
    buffer_init(&bytes, FILE_BYTES_MAX);
    struct error reason;
    enum status status = file_read(token_file, &bytes, &reason);
    if (status != STATUS_OK) (void)error_set(error, status, 0, "--token-file %s: %s", token_file, reason.message);
    if (status == STATUS_OK) status = take_token(buffer_slice(&bytes), ret_token, error);
    buffer_fini(&bytes);
    return status;
}
