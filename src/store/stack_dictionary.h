/* A stack dictionary: the frames and stacks of one service, as dense numbers. The rollups of the service name stacks by
 * these numbers, so rollups are short and can be added without looking anything up.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_STORE_STACK_DICTIONARY_H
#define OFFBEAT_STORE_STACK_DICTIONARY_H

#include "base/buffer.h"
#include "base/index_table.h"
#include "store/store.h"

enum {
    DICTIONARY_FRAMES_MAX = 1 << 18,
    DICTIONARY_NODES_MAX = 1 << 20,
    DICTIONARY_TEXT_MAX = 32 << 20, /* bytes of all frames */
};

/* {0} is a valid empty dictionary. Its node 0 is the empty stack. */
struct stack_dictionary {
    struct buffer text; /* the frames, one after the other */
    uint32_t *ends;     /* end of each frame in TEXT */
    struct store_node *nodes;
    size_t frame_count, frame_capacity, node_count, node_capacity;
    struct index_table frame_index, node_index; /* empty in a dictionary that was read without */
};

void stack_dictionary_fini(struct stack_dictionary *dictionary);
struct slice stack_dictionary_frame(const struct stack_dictionary *dictionary, uint32_t frame);
/* Returns about how much memory DICTIONARY has. */
size_t stack_dictionary_bytes(const struct stack_dictionary *dictionary);

/* Sets RET_NODES to the number that each node of ROLLUP has in DICTIONARY, and adds the nodes that are new. False if
 * there is no room. */
bool stack_dictionary_number(struct stack_dictionary *dictionary, const struct store_rollup *rollup,
                             uint32_t *ret_nodes);

/* Appends the frames from FRAME on and the nodes from NODE on to OUT. */
void stack_dictionary_write(const struct stack_dictionary *dictionary, size_t frame, size_t node, struct buffer *out);
/* Adds what stack_dictionary_write wrote. False if it does not continue DICTIONARY, is damaged, or there is no memory.
 */
bool stack_dictionary_read(struct stack_dictionary *dictionary, struct slice bytes, bool is_indexed);

#endif
