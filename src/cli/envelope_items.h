/* Facts about the items of an envelope, for offbeat info.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_ENVELOPE_ITEMS_H
#define OFFBEAT_CLI_ENVELOPE_ITEMS_H

#include "report/info_report.h"

struct envelope_items {
    struct info_item *items;
    size_t count, capacity;
    size_t profile_count; /* number of chunks and profiles among them */
};

/* Lists the items of the envelope in BYTES; their texts become strings of PROFILE. An item of a known type that is
 * broken is listed without what is known of it. ITEMS is {0}; finish it in every case. */
enum status envelope_items_read(struct slice bytes, struct profile *profile, struct envelope_items *items,
                                struct error *error);
void envelope_items_fini(struct envelope_items *items); /* accepts {0} */

#endif
