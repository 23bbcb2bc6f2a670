/* Lines about what happens in a server.  SPDX-License-Identifier: MIT */
#include "serve/serve_private.h"

#include <stdarg.h>
#include <stdio.h>

void server_log(const struct server *server, const char *format, ...)
{
    char text[600];
    va_list arguments;
    if (!server->options.log) return;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    server->options.log(server->options.log_context, text);
}

void server_log_failure(struct server *server, const char *message)
{
    unsigned long long now_ns = clock_monotonic_ns(), before_ns = atomic_load(&server->failed_ns);
    bool is_time = before_ns == 0 || now_ns - before_ns >= 60 * SECOND_NS;
    if (!is_time || !atomic_compare_exchange_strong(&server->failed_ns, &before_ns, now_ns)) return;
    server_log(server, "%s; what is stored can be read, and what is sent is answered with 503", message);
}
