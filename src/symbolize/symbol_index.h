/* All names of one module in one piece of bytes, in memory or in a file: address → functions, inlined functions, lines.
 *
 * The bytes depend neither on where they are nor on the file that they describe. They are read in blocks, each when it
 * is first needed and checked by its checksum: a file that is damaged, cut short or rewritten meanwhile makes the index
 * FAILED, and nothing out of it is believed that was not checked. (It is not mapped, for the reason stated in
 * binary/elf_file.h.)
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SYMBOLIZE_SYMBOL_INDEX_H
#define OFFBEAT_SYMBOLIZE_SYMBOL_INDEX_H

#include "binary/elf_file.h"

enum { SYMBOL_INDEX_FRAMES_MAX = 512, SYMBOL_INDEX_INPUTS = 3 };

#define SYMBOL_INDEX_BYTES_MAX ((uint64_t)8 << 30)

/* Files with the same build id may differ in what they hold: a program, its debug file, what dwz moved out of that. */
struct symbol_index_input {
    uint64_t size;                             /* 0 = there is none */
    char build_id[ELF_BUILD_ID_TEXT_SIZE + 7]; /* no padding follows: two inputs are equal if their bytes are */
};

struct symbol_index_part {
    uint64_t offset, count;
};

enum name_source { NAME_BY_NOTHING, NAME_BY_BOUNDARY, NAME_BY_SYMBOL, NAME_BY_DWARF };

/* The front of the bytes; after it come the checksums of the blocks, then the parts. Little-endian, as its host. */
struct symbol_index_header {
    char magic[8];
    char version[24];  /* version of offbeat */
    uint64_t size;     /* size of all parts */
    uint64_t base;     /* address that others count from */
    uint32_t checksum; /* checksum of the header, with 0 here, and of the checksums of the blocks */
    uint32_t block_count;
    struct symbol_index_input inputs[SYMBOL_INDEX_INPUTS];
    /* Ascending starts, each with what is there up to the next one. */
    struct symbol_index_part scope_starts, scope_numbers; /* u32 each; number of a scope + 1, or 0 */
    struct symbol_index_part line_starts, line_places;    /* u32; u64 as in place.h, or 0 */
    struct symbol_index_part scopes, functions, texts, text_bytes;
};

struct symbol_index_scope {
    uint32_t caller;   /* number + 1 of a scope that comes earlier; 0 = it was not inlined */
    uint32_t function; /* number + 1; 0 = not known */
    uint64_t call;     /* place of the call, of inlined ones; NAME_BY_BOUNDARY: first address, from the base */
};

struct symbol_index_function {
    uint32_t name, system_name; /* numbers of texts */
    uint32_t file;              /* file of the declaration; number of a text */
    uint32_t line_and_source;   /* the line in the lower 24 bits */
};

/* {0} is valid and empty. */
struct symbol_index {
    struct symbol_index_header header;
    uint8_t *bytes; /* pages: all of it, or of a file the blocks that were read last */
    size_t mapped_size;
    uint32_t *block_in_slot; /* number of the block in each slot of BYTES, of a file; 0 = none */
    uint32_t *checksums;
    struct buffer text;             /* one that is in several blocks */
    uint64_t last_scope, last_line; /* place where the last search ended */
    int descriptor;
    bool is_open, failed;
};

/* Numbers are indexes into this symbol index; numbers of strings are for symbol_index_text. */
struct name_frame {
    uint32_t function;          /* number of the function; equal numbers have equal names and declarations */
    uint32_t name, system_name; /* texts: for people, 0 for NAME_BY_BOUNDARY; as the linker knows it, 0 = the same */
    uint32_t file;              /* text; 0 = not known */
    int64_t line, column, start_line; /* 0 = not known; START_LINE only where FILE is the one that declares it */
};

/* The names at an address, innermost first. */
struct name_answer {
    enum name_source source;
    uint32_t frame_count;
    uint64_t boundary; /* start of the function if SOURCE is NAME_BY_BOUNDARY */
    struct name_frame frames[SYMBOL_INDEX_FRAMES_MAX];
};

/* Opens PATH. False if there is none, or it was not made by this version of offbeat of these INPUTS. */
bool symbol_index_open(struct symbol_index *index, const char *path,
                       const struct symbol_index_input inputs[SYMBOL_INDEX_INPUTS]);

/* The same of an open file, which the index closes, as a failure does. No path is opened. */
bool symbol_index_open_descriptor(struct symbol_index *index, int descriptor,
                                  const struct symbol_index_input inputs[SYMBOL_INDEX_INPUTS]);

void symbol_index_close(struct symbol_index *index);

/* False if the index has failed. */
bool symbol_index_find(struct symbol_index *index, uint64_t address, struct name_answer *ret_answer);

/* Valid until the next call of any of these; empty if the index has failed. */
struct slice symbol_index_text(struct symbol_index *index, uint32_t number);

#endif
