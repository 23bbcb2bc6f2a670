/* Debug files of projects: what names the addresses in their profiles.
 *
 * A file arrives as chunks, each called by its SHA-1, in any order. They wait in a folder of the token that sent them
 * until a file is joined. A file is in debug/PROJECT/IMAGE/SHA1.debug, where IMAGE is the first 32 hex digits of its
 * build id, and SHA1.names beside it is its symbol index, which may be lost at any time. The control file knows each
 * file; one that it does not know is removed when the store is opened.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_STORE_DEBUG_FILES_H
#define OFFBEAT_STORE_DEBUG_FILES_H

#include "base/sha1.h"
#include "store/store.h"

enum {
    STORE_DEBUG_CHUNK_BYTES_MAX = 4 << 20,
    STORE_DEBUG_CHUNKS_MAX = 512,  /* chunks of a file: 2 GiB */
    STORE_DEBUG_FILES_MAX = 10000, /* files of a project */
    STORE_IMAGE_SIZE = 33,
    STORE_BUILD_ID_SIZE = 129,
    STORE_DEBUG_PATH_SIZE = 4096 + 160,
};
/* Chunks that wait, of one token's project; the oldest are removed above that, and after a day. */
#define STORE_DEBUG_WAITING_BYTES_MAX ((uint64_t)8 << 30)

struct store_debug_file {
    uint64_t id, project;
    char checksum[SHA1_TEXT_SIZE]; /* SHA-1 of the whole file */
    char image[STORE_IMAGE_SIZE];
    char build_id[STORE_BUILD_ID_SIZE];
    char name[STORE_NAME_BYTES_MAX + 1]; /* name that the sender gave; nothing is opened by it */
    uint64_t machine, contents;          /* the caller's; of several files of an image the highest CONTENTS is used */
    uint64_t size, added_ns, used_ns;
};

/* SCOPE: the project of the token, 0 for all. CHECKSUM is that of BYTES: the caller compares it. */
enum status store_debug_add_chunk(struct store *store, uint64_t scope, const char checksum[SHA1_TEXT_SIZE],
                                  struct slice bytes, struct error *error);
bool store_debug_has_chunk(struct store *store, uint64_t scope, const char checksum[SHA1_TEXT_SIZE]);

struct store_debug_parts {
    uint64_t scope;
    const char (*checksums)[SHA1_TEXT_SIZE];
    size_t count;
    uint64_t bytes_max;
};
/* A file that is joined and not yet added. */
struct store_debug_joined {
    char path[STORE_DEBUG_PATH_SIZE]; /* temporary place */
    int descriptor;
    uint64_t size;
};
/* Joins PARTS to the file CHECKSUM. STATUS_NOT_FOUND if a part is missing or damaged (it is removed),
 * STATUS_MALFORMED if the checksum is another. */
enum status store_debug_join(struct store *store, const struct store_debug_parts *parts,
                             const char checksum[SHA1_TEXT_SIZE], struct store_debug_joined *ret_joined,
                             struct error *error);
/* Removes what was not added. */
void store_debug_drop(struct store_debug_joined *joined);
/* Returns when FILE, with the bytes of JOINED, is on disk; JOINED is no more. INDEX: the path of its symbol index,
 * which is kept beside it; "" for none. Its chunks are removed. */
enum status store_debug_add(struct store *store, const struct store_debug_parts *parts,
                            struct store_debug_joined *joined, const char *index, const struct store_debug_file *file,
                            struct error *error);

bool store_debug_find(struct store *store, uint64_t project, const char checksum[SHA1_TEXT_SIZE],
                      struct store_debug_file *ret_file);
/* The best file of IMAGE; notes that it is used now. */
bool store_debug_find_image(struct store *store, uint64_t project, const char image[STORE_IMAGE_SIZE], uint64_t now_ns,
                            struct store_debug_file *ret_file);
/* RET_FILES: the file; its symbol index for reading and for writing, which is made if there is none. */
enum status store_debug_open(struct store *store, const struct store_debug_file *file, int ret_files[3],
                             struct error *error);

/* Removes FILE, unless it was added again since it was found. */
void store_debug_remove(struct store *store, const struct store_debug_file *file);

typedef bool store_visit_debug_file(void *context, const struct store_debug_file *file);
enum status store_each_debug_file(struct store *store, uint64_t project, store_visit_debug_file *visit, void *context,
                                  struct error *error);

/* Removes files that were not used for AGE_NS (0: never), then of each project those that were not used for the longest
 * time, until its files have at most BYTES_MAX (0: no limit); and chunks that wait for over a day. */
enum status store_debug_expire(struct store *store, uint64_t now_ns, uint64_t age_ns, uint64_t bytes_max,
                               uint64_t *ret_removed, struct error *error);
enum status store_debug_delete(struct store *store, uint64_t project, struct error *error); /* all of PROJECT's files */
/* The files of all projects. */
void store_debug_usage(struct store *store, uint64_t *ret_files, uint64_t *ret_bytes);

/* The project of TOKEN, which may upload; 0: all. False if there is no such token. */
bool store_may_upload(struct store *store, struct slice token, uint64_t *ret_project);

#endif
