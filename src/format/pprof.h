/* pprof's profile.proto (requirements PPF-1…9).  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_PPROF_H
#define OFFBEAT_FORMAT_PPROF_H

#include "base/buffer.h"
#include "profile/profile.h"

/* BYTES are raw or gzip. See format_decode for the rest of the contract. */
enum status pprof_decode(struct slice bytes, struct profile *profile, struct error *error);

/* Gzipped. A sample's thread becomes the labels "thread" (name), "thread_id" (text), unless it has labels of those keys;
 * samples that are equal in stack and labels are summed (PPF-2); times of samples are not kept. */
enum status pprof_encode(const struct profile *profile, struct buffer *out, struct error *error);

#endif
