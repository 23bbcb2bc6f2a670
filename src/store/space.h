/* A space: the frames and stacks that the summaries of one service have in common, as dense numbers. Summaries name
 * stacks by them, so that they are short and can be added without looking anything up.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_STORE_SPACE_H
#define OFFBEAT_STORE_SPACE_H

#include "base/buffer.h"
#include "base/index_table.h"
#include "store/store.h"

enum {
    SPACE_FRAMES_MAX = 1 << 18,
    SPACE_NODES_MAX = 1 << 20,
    SPACE_TEXT_MAX = 32 << 20, /* bytes of all frames */
};

/* {0} is a valid empty space. Its node 0 is the empty stack. */
struct space {
    struct buffer text; /* the frames, one after the other */
    uint32_t *ends;     /* of each frame, in TEXT */
    struct store_node *nodes;
    size_t frame_count, frame_capacity, node_count, node_capacity;
    struct index_table frame_index, node_index; /* empty in a space that was read without */
};

void space_fini(struct space *space);
struct slice space_frame(const struct space *space, uint32_t frame);
size_t space_bytes(const struct space *space); /* of memory, about */

/* The number of each node of SUM in SPACE, which grows by those that it does not have. False if it has no room. */
bool space_number(struct space *space, const struct store_sum *sum, uint32_t *ret_nodes);

/* Appends the frames from FRAME on and the nodes from NODE on. */
void space_write(const struct space *space, size_t frame, size_t node, struct buffer *out);
/* Adds what space_write wrote. False if it does not continue SPACE, is damaged, or there is no memory. */
bool space_read(struct space *space, struct slice bytes, bool is_indexed);

#endif
