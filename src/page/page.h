/* The web page and what it shows: a profile as compact bytes that the page decodes (doc/decisions/page.md).
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_PAGE_PAGE_H
#define OFFBEAT_PAGE_PAGE_H

#include "analyze/grouping.h"
#include "base/buffer.h"

enum {
    PAGE_NODES_MAX = 8 << 20, /* the page has 32 bytes for each */
    PAGE_SAMPLES_MAX = 32 << 20,
    PAGE_DATA_BYTES_MAX = 1 << 30,
    PAGE_POINTS_MAX = 20000, /* points shown of a measurement; of more, the largest one of several is shown */
};

struct page_options {
    const char *title; /* the profiled program or the file; shown as text */
    size_t column;     /* the value that the page shows first */
    struct grouping_options grouping;
};

/* The Content-Security-Policy of a server of the page: its own files and answers, nothing inline, no other site. */
#define PAGE_POLICY                                                                                                    \
    "default-src 'none'; script-src 'self'; style-src 'self'; worker-src 'self'; connect-src 'self'; "                 \
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

/* Appends the data of PROFILE, one gzip member, to OUT. Samples of one thread and stack are added up if the profile has
 * no times. STATUS_UNSUPPORTED if a value is negative, STATUS_TOO_LARGE above the maxima. */
enum status page_data_encode(const struct profile *profile, const struct page_options *options, struct buffer *out,
                             struct error *error);

/* Appends one HTML file that shows DATA, which page_data_encode has written, compared with BASE unless that is empty.
 * It needs no other file and no network. */
enum status page_file_write(struct slice data, struct slice base, struct buffer *out, struct error *error);

/* A file of the page. */
struct page_asset {
    const char *path; /* "page-0123456789abcdef.js"; of the page itself "" */
    const char *content_type;
    struct slice gzip;
};

enum { PAGE_ASSETS_MAX = 3 };

/* None if offbeat was built without the page: page_is_built() is false. */
bool page_is_built(void);
size_t page_assets(struct page_asset ret_assets[PAGE_ASSETS_MAX]);

#endif
