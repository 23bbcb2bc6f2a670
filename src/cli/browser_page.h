/* The web page on a port of this machine, for a browser that is started.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_BROWSER_PAGE_H
#define OFFBEAT_CLI_BROWSER_PAGE_H

#include "base/buffer.h"
#include "base/status.h"

struct browser_page;

/* Appends JSON for a function called NAME, of the profile's value TYPE; false, with nothing appended: it has no lines.
 */
typedef bool browser_page_source(void *context, const char *name, size_t type, struct buffer *out);

struct browser_page_options {
    uint16_t port; /* 0: a free one */
    bool is_live;  /* a command runs, whose output standard output has: the URL is printed on standard error */
    bool opens_browser;
};

/* Starts the server, prints the URL and opens the browser. Blocks the signals that browser_page_wait waits for. */
enum status browser_page_open(const struct browser_page_options *options, struct browser_page **ret_page,
                              struct error *error);

/* The profile that the page compares its own with: takes the bytes of DATA. Before browser_page_publish. */
void browser_page_compare(struct browser_page *page, struct buffer *data);

/* Shows DATA, which page_data_encode wrote, from this call on, and takes its bytes. After the final one there must be
 * no other. */
void browser_page_publish(struct browser_page *page, struct buffer *data, bool is_final);

/* Lets the page ask for source lines. Of the final data only; SOURCE runs in the thread of the server. */
void browser_page_give_source(struct browser_page *page, browser_page_source *source, void *context);

/* Waits until Ctrl-C or another request to end. */
void browser_page_wait(struct browser_page *page);
void browser_page_close(struct browser_page *page); /* accepts NULL */

#endif
