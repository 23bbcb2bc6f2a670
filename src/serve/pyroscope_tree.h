/* The binary bodies of Pyroscope's older clients.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SERVE_PYROSCOPE_TREE_H
#define OFFBEAT_SERVE_PYROSCOPE_TREE_H

#include "base/buffer.h"
#include "base/status.h"

enum { PYROSCOPE_TREE_DEPTH_MAX = 4096, PYROSCOPE_PATH_BYTES_MAX = 1 << 18 };

/* Appends the stacks in BYTES to FOLDED as lines "a;b 3". Of a tree, a node is a function; of a trie, a part of the
 * text of a stack. */
enum status pyroscope_tree_fold(struct slice bytes, bool is_trie, struct buffer *folded, struct error *error);

#endif
