/* POST of one envelope after the other to one address, over a connection that is kept.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_TRANSPORT_HTTP_H
#define OFFBEAT_TRANSPORT_HTTP_H

#include "base/slice.h"
#include "base/status.h"

enum { HTTP_HEADER_SIZE = 2048, HTTP_TEXT_SIZE = 1024 };

/* Texts stay the caller's and must live as long as the connection. */
struct http_options {
    const char *url, *auth, *user_agent;
    const char *proxy;    /* NULL: by http_proxy, https_proxy, all_proxy; "": none */
    const char *no_proxy; /* names of hosts that need no proxy; NULL: by no_proxy */
    const char *ca_file;  /* PEM; NULL: the system's */
    uint64_t timeout_ns;  /* longest time without a moved byte; a request may take 20 times as long */
};

/* Strings end with a NUL. Longer ones are truncated, RATE_LIMITS between two limits. */
struct http_response {
    long status;                        /* 0: there was no response */
    char rate_limits[HTTP_HEADER_SIZE]; /* X-Sentry-Rate-Limits, several joined by commas; "" = none */
    char retry_after[64];
    char body[HTTP_TEXT_SIZE];    /* front of the body */
    char failure[HTTP_TEXT_SIZE]; /* reason why there was no response, for people */
    bool was_sent;                /* a part of the request was sent, so its content may be the cause */
};

struct http;

/* Loads libcurl. NULL: ERROR says why. One thread at a time; http_free takes NULL. */
struct http *http_new(const struct http_options *options, struct error *error);
void http_free(struct http *http);

/* Begins to send BODY, gzip, which must live until http_step gives true, or http_cancel. */
enum status http_begin(struct http *http, struct slice body, struct error *error);
/* Continues the request, and waits for the network TIMEOUT_MS at most. True when the request is done, with a response
 * or without. */
bool http_step(struct http *http, int timeout_ms);
/* Returns the response of the last request. */
const struct http_response *http_last_response(const struct http *http);
/* Ends a request at once; without effect where there is none. */
void http_cancel(struct http *http);

#endif
