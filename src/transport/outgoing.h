/* What is sent of an envelope now.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_TRANSPORT_OUTGOING_H
#define OFFBEAT_TRANSPORT_OUTGOING_H

#include "transport/discards.h"
#include "transport/rate_limits.h"

struct outgoing {
    size_t item_count;       /* that are in it */
    size_t counted_count;    /* of these, all but client reports */
    struct discards limited; /* that were left out because their category is limited */
};

/* Appends ENVELOPE to OUT with SENT_AT_NS in its header, without the dsn that it may have (the request says where it
 * goes), and without items under a limit; a profile goes where its transaction goes. More items may be appended. The
 * failure of OUT is OUT's. What envelope_open and envelope_next refuse is refused. */
enum status outgoing_build(struct slice envelope, const struct rate_limits *limits, uint64_t now_ns,
                           uint64_t sent_at_ns, struct buffer *out, struct outgoing *ret_outgoing, struct error *error);

#endif
