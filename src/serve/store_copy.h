/* Copies what one store has to another one, of any engine.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SERVE_STORE_COPY_H
#define OFFBEAT_SERVE_STORE_COPY_H

#include "store/store.h"

struct store_copy_counts {
    uint64_t chunks, copied; /* chunks of the source; those that the target lacked */
    uint64_t spans;          /* spans that the target lacked */
    uint64_t different;      /* chunks that the target has not, or not as the source has them */
};

/* Copies projects with their keys, chunks and spans from SOURCE to TARGET, as far as TARGET lacks them, and then reads
 * both and compares them. Sums are made as for chunks that arrive. Rejected items, counts of outcomes and debug files
 * are not copied. */
enum status store_copy(struct store *source, struct store *target, struct store_copy_counts *ret_counts,
                       struct error *error);

#endif
