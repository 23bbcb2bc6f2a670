/* Names of images that are in memory: by project, image and debug file. Those that were not used for the longest time
 * are dropped; an image that is in use is pinned and stays. One thread at a time.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SERVE_SYMBOL_IMAGES_H
#define OFFBEAT_SERVE_SYMBOL_IMAGES_H

#include "profile/profile.h"
#include "serve/symbol_answer.h"
#include "store/debug_files.h"

enum {
    SYMBOL_IMAGES_MAX = 4096,
    /* Bytes of all images, about. Images in use may have more until they are released; one that has more itself is
     * used by no further query. */
    SYMBOL_IMAGES_BYTES_MAX = 64 << 20,
};

/* The functions at one address of an image; in its LINES. */
struct symbol_place {
    uint64_t key;
    uint32_t first, count;
};

struct symbol_image {
    uint64_t project, used;
    char id[STORE_IMAGE_SIZE];
    char checksum[SHA1_TEXT_SIZE]; /* checksum of the debug file that the names are from */
    unsigned pins;                 /* queries that use it */
    uint64_t read_since_ms;        /* a process reads names for it since then; 0: none */
    struct profile names;          /* strings and functions */
    struct line *lines;
    size_t line_count, line_capacity;
    struct symbol_place *places;
    size_t place_count, place_capacity;
    struct index_table by_key;
    size_t text_bytes, bytes; /* bytes of the strings of NAMES; bytes of everything */
};

/* Zeros are no images. */
struct symbol_images {
    struct symbol_image *items[SYMBOL_IMAGES_MAX];
    size_t count, bytes;
    uint64_t uses;
};

void symbol_images_fini(struct symbol_images *images);

/* The names that came from FILE, pinned until they are released. NULL without memory. */
struct symbol_image *symbol_images_take(struct symbol_images *images, const struct store_debug_file *file);
void symbol_images_release(struct symbol_images *images, struct symbol_image *image);

/* NULL: KEY was not asked for. A place without functions: the file has no name for it. */
const struct symbol_place *symbol_image_find(const struct symbol_image *image, uint64_t key);

/* Adds the ANSWER (serve/symbol_answer.h) to KEYS, which IMAGE does not have. STATUS_MALFORMED if it is damaged; what
 * precedes the damage is added. */
enum status symbol_images_add(struct symbol_images *images, struct symbol_image *image, struct slice answer,
                              const uint64_t *keys, size_t count, struct error *error);
/* Adds the KEYS that IMAGE does not have as places without functions. */
void symbol_images_add_nameless(struct symbol_images *images, struct symbol_image *image, const uint64_t *keys,
                                size_t count);

#endif
