/* The binary bodies of Pyroscope's older clients.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SERVE_PYROSCOPE_TREE_H
#define OFFBEAT_SERVE_PYROSCOPE_TREE_H

#include "base/buffer.h"

enum { PYROSCOPE_TREE_DEPTH_MAX = 4096, PYROSCOPE_PATH_BYTES_MAX = 1 << 18 };

/* Appends the stacks in BYTES to FOLDED as lines "a;b 3". Of a tree, a node is a function; of a trie, a part of the
 * text of a stack. False if BYTES are not one whole tree, or FOLDED has failed. */
bool pyroscope_tree_fold(struct slice bytes, bool is_trie, struct buffer *folded);

#endif
