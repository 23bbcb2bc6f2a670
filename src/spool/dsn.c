/* A DSN is a URL of a few fixed parts; it comes from people and their configuration, and each part that is wrong has
 * its message.  SPDX-License-Identifier: MIT */
#include "spool/dsn.h"

#include "base/hex.h"

#include <inttypes.h>
#include <stdio.h>

enum { KEY_DIGITS = 32, PORT_HTTP = 80, PORT_HTTPS = 443 };

static enum status reject_dsn(struct error *error, const char *what)
{
    return error_set(error, STATUS_MALFORMED, 0, "the DSN %s; it looks like https://KEY@HOST/PROJECT", what);
}

static bool parse_number(const char *text, size_t length, uint64_t maximum, uint64_t *ret_number)
{
    uint64_t number = 0;
    for (size_t i = 0; i < length; i++) {
        if (text[i] < '0' || text[i] > '9' || __builtin_mul_overflow(number, 10, &number) ||
            __builtin_add_overflow(number, (uint64_t)(text[i] - '0'), &number))
            return false;
    }
    if (length == 0 || number == 0 || number > maximum) return false;
    *ret_number = number;
    return true;
}

static const char *parse_scheme(const char *text, struct dsn *dsn)
{
    dsn->is_https = strncmp(text, "https://", 8) == 0;
    dsn->port = dsn->is_https ? PORT_HTTPS : PORT_HTTP;
    if (dsn->is_https) return text + 8;
    return strncmp(text, "http://", 7) == 0 ? text + 7 : NULL;
}

static const char *parse_key(const char *text, struct dsn *dsn)
{
    size_t length = strcspn(text, ":@/");
    if (length != KEY_DIGITS) return NULL;
    for (size_t i = 0; i < length; i++) {
        if (hex_digit((uint8_t)text[i]) < 0) return NULL;
    }
    memcpy(dsn->public_key, text, length);
    text += length;
    if (*text == ':') text += strcspn(text, "@/");
    return *text == '@' ? text + 1 : NULL;
}

/* True if TEXT has only letters, digits and OTHERS: other bytes could end a line of the request. */
static bool is_plain(const char *text, size_t length, const char *others)
{
    for (size_t i = 0; i < length; i++) {
        bool is_letter = (text[i] | 0x20) >= 'a' && (text[i] | 0x20) <= 'z';
        bool is_digit = text[i] >= '0' && text[i] <= '9';
        if (!is_letter && !is_digit && !strchr(others, text[i])) return false;
    }
    return true;
}

static const char *parse_host(const char *text, struct dsn *dsn)
{
    bool is_address = *text == '[';
    size_t length = is_address ? strcspn(text, "]/") + 1 : strcspn(text, ":/");
    if (length <= (is_address ? 2 : 0) || length >= DSN_HOST_SIZE) return NULL;
    if (is_address ? text[length - 1] != ']' || !is_plain(text + 1, length - 2, ":.") : !is_plain(text, length, "-._"))
        return NULL;
    memcpy(dsn->host, text, length);
    return text + length;
}

static const char *parse_port(const char *text, struct dsn *dsn)
{
    uint64_t port;
    if (*text != ':') return text;
    size_t length = strcspn(++text, "/");
    if (!parse_number(text, length, UINT16_MAX, &port)) return NULL;
    dsn->port = (uint16_t)port;
    return text + length;
}

/* The last part is the project, all before it the path. */
static bool parse_project(const char *text, struct dsn *dsn, enum status *status, struct error *error)
{
    const char *last = strrchr(text, '/');
    size_t path_length = last ? (size_t)(last - text) : 0;
    if (!last || !parse_number(last + 1, strlen(last + 1), UINT64_MAX, &dsn->project)) {
        *status = reject_dsn(error, "does not end with the number of a project");
        return false;
    }
    if (path_length >= DSN_PATH_SIZE || !is_plain(text, path_length, "/-._~%")) {
        *status = reject_dsn(error, "has a path that is too long or no path of a URL");
        return false;
    }
    memcpy(dsn->path, text, path_length);
    return true;
}

enum status dsn_parse(const char *text, struct dsn *ret_dsn, struct error *error)
{
    struct dsn dsn = {0};
    enum status status = STATUS_OK;
    text = parse_scheme(text, &dsn);
    if (!text) return reject_dsn(error, "does not begin with https:// or http://");
    text = parse_key(text, &dsn);
    if (!text) return reject_dsn(error, "has no key of 32 hex digits and an @ after it");
    text = parse_host(text, &dsn);
    if (!text) return reject_dsn(error, "has no host, or not a valid one");
    text = parse_port(text, &dsn);
    if (!text) return reject_dsn(error, "has a port that is not a number from 1 to 65535");
    if (parse_project(text, &dsn, &status, error)) *ret_dsn = dsn;
    return status;
}

void dsn_url(const struct dsn *dsn, char ret_url[DSN_URL_SIZE])
{
    bool is_usual = dsn->port == (dsn->is_https ? PORT_HTTPS : PORT_HTTP);
    char port[8] = "";
    if (!is_usual) (void)snprintf(port, sizeof(port), ":%u", (unsigned)dsn->port);
    (void)snprintf(ret_url, DSN_URL_SIZE, "%s://%s%s%s/api/%" PRIu64 "/envelope/", dsn->is_https ? "https" : "http",
                   dsn->host, port, dsn->path, dsn->project);
}

void dsn_user_agent(const char *client, char ret_plain[DSN_CLIENT_SIZE])
{
    size_t length = 0;
    for (; *client && length < DSN_CLIENT_SIZE - 1; client++) {
        if (is_plain(client, 1, "/-._+")) ret_plain[length++] = *client;
    }
    ret_plain[length] = 0;
}

void dsn_auth(const struct dsn *dsn, const char *client, char ret_auth[DSN_AUTH_SIZE])
{
    char plain[DSN_CLIENT_SIZE];
    dsn_user_agent(client, plain);
    (void)snprintf(ret_auth, DSN_AUTH_SIZE, "Sentry sentry_version=7, sentry_client=%s, sentry_key=%s", plain,
                   dsn->public_key);
}

/* FNV-1a: names in a file system must be the same in every version. */
static uint64_t hash_text(uint64_t hash, const char *text)
{
    for (; *text; text++) hash = (hash ^ (uint8_t)*text) * 0x100000001b3;
    return hash;
}

void dsn_folder_name(const struct dsn *dsn, char ret_name[DSN_HOST_SIZE])
{
    char url[DSN_URL_SIZE];
    dsn_url(dsn, url);
    uint64_t hash = hash_text(hash_text(0xcbf29ce484222325, dsn->public_key), url);
    /* A host's name may be as long as a file's, so that only its front is for people. */
    (void)snprintf(ret_name, DSN_HOST_SIZE, "%.100s-%" PRIu64 "-%016" PRIx64, dsn->host, dsn->project, hash);
}
