/* libcurl, loaded when it is first needed (doc/decisions/libcurl.md).  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_TRANSPORT_CURL_LIBRARY_H
#define OFFBEAT_TRANSPORT_CURL_LIBRARY_H

#include "base/status.h"

#include <curl/curl.h>

/* Its functions by their names without "curl_", which may be macros in its header. */
#define CURL_FUNCTIONS(FUNCTION)                                                                                       \
    FUNCTION(global_init)                                                                                              \
    FUNCTION(easy_init)                                                                                                \
    FUNCTION(easy_cleanup)                                                                                             \
    FUNCTION(easy_setopt)                                                                                              \
    FUNCTION(easy_getinfo)                                                                                             \
    FUNCTION(easy_perform)                                                                                             \
    FUNCTION(easy_strerror)                                                                                            \
    FUNCTION(slist_append)                                                                                             \
    FUNCTION(slist_free_all)                                                                                           \
    FUNCTION(multi_init)                                                                                               \
    FUNCTION(multi_cleanup)                                                                                            \
    FUNCTION(multi_add_handle)                                                                                         \
    FUNCTION(multi_remove_handle)                                                                                      \
    FUNCTION(multi_perform)                                                                                            \
    FUNCTION(multi_poll)                                                                                               \
    FUNCTION(multi_info_read)                                                                                          \
    FUNCTION(url)                                                                                                      \
    FUNCTION(url_set)                                                                                                  \
    FUNCTION(url_get)                                                                                                  \
    FUNCTION(url_cleanup)                                                                                              \
    FUNCTION(free)

struct curl_library {
#define CURL_MEMBER(name) __typeof__(curl_##name) *name;
    CURL_FUNCTIONS(CURL_MEMBER)
#undef CURL_MEMBER
};

/* The same for every caller, from any thread; loaded and initialised by the first one and never unloaded. NULL, at
 * every later call too, if there is no libcurl. */
const struct curl_library *curl_library_get(struct error *error);

#endif
