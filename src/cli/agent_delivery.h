/* Turns the recordings of offbeat agent into chunks for a server, or files in a folder.
 *
 * A recording that has ended waits in DATA/recordings. Every few seconds a process of its own turns those that wait
 * into envelopes in the spool (spool/spool.h), which a thread of this process sends, or into files. It deletes a
 * recording when all of it is stored: what a crash leaves behind, the next agent delivers. SPDX-License-Identifier: MIT
 */
#ifndef OFFBEAT_CLI_AGENT_DELIVERY_H
#define OFFBEAT_CLI_AGENT_DELIVERY_H

#include "format/format.h"
#include "transport/transport.h"

#include <limits.h>

struct agent_delivery_options {
    const char *data;                  /* folder of all that waits */
    const char *dsn, *proxy, *ca_file; /* DSN NULL: files are written */
    const char *output;                /* folder for files */
    const struct format *format;       /* format of the files */
    uint64_t keep_bytes, keep_ns;      /* files beyond are removed, the oldest first; 0: no limit */
    uint64_t disk_bytes_max;           /* most that waits for the server */
    const char *environment;           /* environment of the profiles */
    bool is_verbose;
};

/* Counts since the start. */
struct agent_counts {
    uint64_t stored; /* chunks or files */
    uint64_t empty;  /* recordings with too few stacks for a profile */
    uint64_t cut;    /* recordings of which a part could not be written */
    uint64_t failed; /* recordings that could not be delivered */
};

struct agent_delivery;

/* Opens the folders, and begins to send what waits there. Returns NULL after one line on standard error. */
struct agent_delivery *agent_delivery_open(const struct agent_delivery_options *options);

/* Returns the folders for recordings, and for links to files that their paths do not lead to. */
const char *agent_delivery_recordings(const struct agent_delivery *delivery);
const char *agent_delivery_images(const struct agent_delivery *delivery);

/* Takes over the recording at PATH, which has ended with STACK_COUNT stacks, and lacks BYTES_LOST. */
void agent_delivery_take(struct agent_delivery *delivery, const char *path, uint64_t stack_count, uint64_t bytes_lost);

/* Works on what waits, if it is time. Returns at once. */
void agent_delivery_work(struct agent_delivery *delivery);

/* Delivers what waits within TIMEOUT_NS, and frees DELIVERY; the rest stays in the folder. */
void agent_delivery_close(struct agent_delivery *delivery, uint64_t timeout_ns);

struct agent_counts agent_delivery_counts(const struct agent_delivery *delivery);
/* Returns the counts of the transport; zeros without a server. */
struct transport_counts agent_delivery_sent(const struct agent_delivery *delivery);

#endif
