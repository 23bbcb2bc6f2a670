/* The part of an envelope that is sent.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_TRANSPORT_OUTGOING_H
#define OFFBEAT_TRANSPORT_OUTGOING_H

#include "spool/discards.h"
#include "spool/rate_limits.h"

struct outgoing {
    size_t item_count;       /* number of items in it */
    size_t counted_count;    /* number of items without client reports */
    struct discards limited; /* items that were left out because their category is limited */
};

/* Appends ENVELOPE to OUT with SENT_AT_NS in its header, without its dsn (the request names the server), and without
 * items under a limit; a profile is sent or left out together with its transaction. More items may be appended. A
 * failed OUT stays failed. An envelope that envelope_open or envelope_next rejects is rejected. */
enum status outgoing_build(struct slice envelope, const struct rate_limits *limits, uint64_t now_ns,
                           uint64_t sent_at_ns, struct buffer *out, struct outgoing *ret_outgoing, struct error *error);

#endif
