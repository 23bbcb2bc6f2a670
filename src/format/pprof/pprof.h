/* pprof's profile.proto (requirements PPF-1…9; doc/formats/pprof.md).  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_PPROF_PPROF_H
#define OFFBEAT_FORMAT_PPROF_PPROF_H

#include "base/buffer.h"
#include "profile/profile.h"

enum {
    PPROF_BYTES_MAX = 1 << 30,   /* decompressed, read or written */
    PPROF_DEPTH_MAX = 1 << 20,   /* locations of one sample */
    PPROF_LABELS_MAX = 1 << 16,  /* labels of one sample */
    PPROF_INLINED_MAX = 1 << 16, /* lines of one location */
};

/* True if BYTES, decompressed, begin as a profile.proto does. */
bool pprof_detect(struct slice bytes);

/* BYTES are not compressed. See format_decode for the rest of the contract. Labels stay labels; a sample that has a
 * label "thread_id", or one of thread_labels.h's other keys, gets a thread as well, named by its label "thread".
 * Comments that pprof_encode made of metadata become metadata again. */
enum status pprof_decode(struct slice bytes, struct profile *profile, struct error *error);

/* Gzipped. A sample's thread becomes the labels "thread" (name), "thread_id" (number, or text), unless it has labels
 * that say so; samples that are equal in stack and labels are summed (PPF-2); times of samples are not kept. What was
 * decoded from this output is encoded to the same bytes again. */
enum status pprof_encode(const struct profile *profile, struct buffer *out, struct error *error);

#endif
