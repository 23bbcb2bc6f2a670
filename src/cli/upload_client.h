/* Sends debug files to a server: the protocol of `sentry-cli debug-files upload`, of which src/serve/debug_uploads.c is
 * the other side.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_UPLOAD_CLIENT_H
#define OFFBEAT_CLI_UPLOAD_CLIENT_H

#include "base/buffer.h"
#include "base/sha1.h"
#include "base/status.h"

enum { UPLOAD_CHUNKS_MAX = 4096, UPLOAD_ANSWER_BYTES_MAX = 4 << 20, UPLOAD_WAIT_SECONDS = 600 };

struct upload_client;

struct upload_options {
    const char *url;             /* http://TOKEN@HOST:PORT/PROJECT; without a TOKEN, token_read has it */
    const char *proxy, *ca_file; /* NULL: as libcurl finds them */
};

enum upload_state { UPLOAD_DONE, UPLOAD_WAS_THERE, UPLOAD_REJECTED };

/* Asks the server for its limits. STATUS_MALFORMED if the URL is wrong, STATUS_UNSUPPORTED without libcurl. */
enum status upload_client_open(const struct upload_options *options, struct upload_client **ret_client,
                               struct error *error);
void upload_client_close(struct upload_client *client); /* accepts NULL */

struct upload_file {
    int descriptor;
    uint64_t size;
    const char *name, *debug_id;
    void (*progress)(void *context, uint64_t sent); /* bytes of the file that the server already has */
    void *context;
};
/* Returns when the server has the file, or has rejected it: then ERROR has the reason. */
enum status upload_client_send(struct upload_client *client, const struct upload_file *file,
                               enum upload_state *ret_state, struct error *error);

#endif
