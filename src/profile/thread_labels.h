/* Threads as labels of samples, under the keys of the writers of pprof files (doc/formats/pprof.md).
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_PROFILE_THREAD_LABELS_H
#define OFFBEAT_PROFILE_THREAD_LABELS_H

#include "profile/profile.h"

/* Our own keys, written where a sample has none of the others. */
#define THREAD_NAME_LABEL PROFILE_THREAD_NAME_LABEL
#define THREAD_ID_LABEL "thread_id"

enum { THREAD_LABEL_KEYS = 4 };

/* In the order in which they count where a sample has several. */
extern const char *const thread_id_keys[THREAD_LABEL_KEYS];
extern const char *const thread_name_keys[THREAD_LABEL_KEYS];

/* The place of KEY in KEYS, or -1. */
int thread_label_place(const char *const keys[THREAD_LABEL_KEYS], struct slice key);

/* True if ID is a number as printf writes it, which is then written as a number. */
bool thread_id_is_number(struct slice id, int64_t *ret_number);

#endif
