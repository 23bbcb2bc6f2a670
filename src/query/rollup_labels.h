/* Labels in sums of the store: those that all samples of a profile have. Sums name the keys of the other ones, so that
 * a query which needs these decodes the profiles.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_QUERY_ROLLUP_LABELS_H
#define OFFBEAT_QUERY_ROLLUP_LABELS_H

#include "base/buffer.h"
#include "base/cursor.h"
#include "profile/profile.h"

struct rollup_labels {
    struct buffer common; /* labels that each sample has, as store_rollup.labels */
    struct buffer others; /* number of keys of other labels, and the keys; 0 and none: they are not known */
    bool has_others;
};

/* Finds the labels of PROFILE, whose samples may have any. LABELS is to be finished in every case; false without
 * memory.
 */
bool rollup_labels_init(struct rollup_labels *labels, const struct profile *profile);
void rollup_labels_fini(struct rollup_labels *labels);

/* Returns the labels COMMON of a sum as a set of PROFILE. */
struct label_set_id rollup_labels_read(struct slice common, struct profile *profile);
/* Takes the next label from COMMON. False at the end. */
bool rollup_labels_next(struct cursor *common, struct slice *ret_key, struct slice *ret_value);
/* Takes the keys of other labels from HEADER. Returns whether a label with the key KEY may be among them. */
bool rollup_labels_may_lack(struct cursor header, struct slice key);
void rollup_labels_skip_others(struct cursor *header);

#endif
