/* libmicrohttpd, loaded when the server starts (doc/decisions/libmicrohttpd.md).  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SERVE_HTTP_LIBRARY_H
#define OFFBEAT_SERVE_HTTP_LIBRARY_H

#include "base/status.h"

#include <microhttpd.h>

/* Its functions by their names without "MHD_". */
#define HTTP_FUNCTIONS(FUNCTION)                                                                                       \
    FUNCTION(start_daemon)                                                                                             \
    FUNCTION(stop_daemon)                                                                                              \
    FUNCTION(quiesce_daemon)                                                                                           \
    FUNCTION(get_connection_info)                                                                                      \
    FUNCTION(get_daemon_info)                                                                                          \
    FUNCTION(lookup_connection_value)                                                                                  \
    FUNCTION(get_connection_values)                                                                                    \
    FUNCTION(suspend_connection)                                                                                       \
    FUNCTION(resume_connection)                                                                                        \
    FUNCTION(create_response_from_buffer)                                                                              \
    FUNCTION(add_response_header)                                                                                      \
    FUNCTION(queue_response)                                                                                           \
    FUNCTION(destroy_response)

struct http_library {
#define HTTP_MEMBER(name) __typeof__(MHD_##name) *name;
    HTTP_FUNCTIONS(HTTP_MEMBER)
#undef HTTP_MEMBER
};

/* The same for every caller, from any thread; loaded by the first one and never unloaded. NULL, at every later call
 * too, if the library is not installed. */
const struct http_library *http_library_get(struct error *error);

#endif
