/* Requests to the process that reads debug files, and its answers. Both sides use this header;
 * neither trusts the bytes of the other.
 *
 * A request is the number of keys, then each key's distance to the one before, ascending. An answer is a status, with
 * a message unless it is STATUS_OK; then what the file is; then, for each key, the number of its frames and the frames.
 * Numbers are LEB128. A text is its number; the first time, where that is one more than those before, its size and
 * bytes follow; 0 is the empty text.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SERVE_SYMBOL_ANSWER_H
#define OFFBEAT_SERVE_SYMBOL_ANSWER_H

#include "base/buffer.h"
#include "base/cursor.h"
#include "base/status.h"
#include "query/image_place.h"

enum {
    SYMBOL_KEYS_MAX = 1 << 18,
    SYMBOL_FRAMES_MAX = 512, /* at one address */
    SYMBOL_TEXTS_MAX = 1 << 20,
    SYMBOL_TEXT_BYTES_MAX = 1 << 16, /* bytes of one name or path; longer ones are cut */
    SYMBOL_REQUEST_BYTES_MAX = SYMBOL_KEYS_MAX * 10 + 16,
    SYMBOL_ANSWER_BYTES_MAX = 64 << 20,
    SYMBOL_BUILD_ID_SIZE = 129, /* hex digits and a NUL */
};

enum { SYMBOL_FILE_SYMBOLS = 1, SYMBOL_FILE_DWARF = 2, SYMBOL_FILE_CODE = 4 };

struct symbol_file {
    char build_id[SYMBOL_BUILD_ID_SIZE]; /* build id or its substitute (binary/contents_id.h); "" = none */
    uint64_t machine;                    /* EM_… */
    uint64_t contents;                   /* SYMBOL_FILE_… */
};

struct symbol_frame {
    struct slice name, system_name, file; /* empty: not known */
    int64_t line, column, start_line;     /* 0: not known */
};

/* Reads an answer. The slices live as long as its bytes. */
struct symbol_answer {
    struct cursor cursor;
    struct slice *texts;
    size_t text_count, text_capacity;
    struct symbol_file file;
};

/* The status of the answer, and its message; STATUS_MALFORMED if the bytes are no answer. ANSWER is to be closed in
 * every case. */
enum status symbol_answer_open(struct symbol_answer *answer, struct slice bytes, struct error *error);
void symbol_answer_close(struct symbol_answer *answer);
/* The frames of the next key, innermost first. False if the answer is damaged. */
bool symbol_answer_next(struct symbol_answer *answer, struct symbol_frame frames[SYMBOL_FRAMES_MAX], size_t *ret_count);

/* KEYS ascend. */
void symbol_request_write(const uint64_t *keys, size_t count, struct buffer *out);
/* The keys, to be freed; NULL if BYTES are no request, or without memory. */
uint64_t *symbol_request_read(struct slice bytes, size_t *ret_count);

#endif
