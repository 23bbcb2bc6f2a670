/* The server and the key of a DSN (facts §2.4).  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SPOOL_DSN_H
#define OFFBEAT_SPOOL_DSN_H

#include "base/slice.h"
#include "base/status.h"

enum {
    DSN_KEY_SIZE = 33,
    DSN_HOST_SIZE = 256,
    DSN_PATH_SIZE = 512,
    DSN_URL_SIZE = 1024,
    DSN_AUTH_SIZE = 256,
    DSN_CLIENT_SIZE = 129
};

struct dsn {
    bool is_https;
    char public_key[DSN_KEY_SIZE];
    char host[DSN_HOST_SIZE]; /* an IPv6 address with its brackets */
    uint16_t port;            /* default 80 or 443 */
    char path[DSN_PATH_SIZE]; /* "" or "/prefix", without a slash at its end */
    uint64_t project;
};

/* {http|https}://{32 hex digits}[:{secret}]@{host}[:{port}][/{path}]/{project}. A secret, which is deprecated, is
 * accepted and ignored. STATUS_MALFORMED with a message for people, which does not repeat the key; RET_DSN is set on
 * success. */
enum status dsn_parse(const char *text, struct dsn *ret_dsn, struct error *error);

/* Returns https://host[:port][/path]/api/{project}/envelope/. */
void dsn_url(const struct dsn *dsn, char ret_url[DSN_URL_SIZE]);
/* Returns the value of X-Sentry-Auth. CLIENT is "name/version"; characters that are no plain text of a header, and
 * characters that do not fit, are left out. */
void dsn_auth(const struct dsn *dsn, const char *client, char ret_auth[DSN_AUTH_SIZE]);
/* Returns the value of User-Agent: CLIENT without the characters that dsn_auth leaves out. */
void dsn_user_agent(const char *client, char ret_plain[DSN_CLIENT_SIZE]);
/* Returns a name for a folder of files for this server: equal DSNs have equal names, different DSNs different names,
 * except by a chance of 2^-64. */
void dsn_folder_name(const struct dsn *dsn, char ret_name[DSN_HOST_SIZE]);

#endif
