/* The files of web/, as web/assets.py compresses them into C.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_PAGE_PAGE_ASSETS_H
#define OFFBEAT_PAGE_PAGE_ASSETS_H

#include <stddef.h>

struct embedded_file {
    const char *path; /* path with a hash of the content; "" for the page itself */
    const char *content_type;
    const char *csp_hash; /* hash of a script or style, as Content-Security-Policy names it */
    const unsigned char *gzip;
    size_t gzip_size;
};

enum { EMBEDDED_PAGE, EMBEDDED_STYLE, EMBEDDED_SCRIPT, EMBEDDED_FILES };

/* All sizes are 0 if the page was not built. */
extern const struct embedded_file embedded_files[EMBEDDED_FILES];

#endif
