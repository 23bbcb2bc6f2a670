/* SHA-1 (FIPS 180-4): the name that the upload protocol of debug files gives to bytes. It proves nothing against
 * somebody who makes two files with one checksum.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BASE_SHA1_H
#define OFFBEAT_BASE_SHA1_H

#include "base/slice.h"

enum { SHA1_BLOCK_BYTES = 64, SHA1_TEXT_SIZE = 41 };

struct sha1 {
    uint32_t state[5];
    uint64_t size;
    uint8_t block[SHA1_BLOCK_BYTES];
};

void sha1_init(struct sha1 *sha1);
void sha1_add(struct sha1 *sha1, struct slice bytes);
/* 40 lowercase hex digits and a NUL. */
void sha1_finish(struct sha1 *sha1, char ret_text[SHA1_TEXT_SIZE]);

void sha1_of(struct slice bytes, char ret_text[SHA1_TEXT_SIZE]);

#endif
