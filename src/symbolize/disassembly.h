/* Machine code as text, by Capstone.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SYMBOLIZE_DISASSEMBLY_H
#define OFFBEAT_SYMBOLIZE_DISASSEMBLY_H

#include "binary/elf_file.h"

enum { DISASSEMBLY_BYTES_MAX = 4 << 20 }; /* bytes of one function */

struct instruction {
    uint64_t address; /* address as the file has it */
    uint64_t target;  /* target of a call or jump to a fixed address; 0: none */
    size_t text;      /* place in the text, which ends with a NUL */
};

/* Instructions that follow one another without gaps. Bytes that are no instruction are ".byte". */
struct disassembly {
    struct instruction *items;
    size_t count, capacity;
    struct buffer text;
};

void disassembly_init(struct disassembly *disassembly);
void disassembly_fini(struct disassembly *disassembly);

/* Replaces the content of DISASSEMBLY by the code of FILE from START to END, which are addresses as FILE has them.
 * Syntax of x86 is AT&T's, or Intel's. STATUS_TOO_LARGE past the maximum, STATUS_NOT_FOUND if the code is not in the
 * file, STATUS_UNSUPPORTED if it is for another processor than x86-64 and AArch64, STATUS_NO_MEMORY. */
enum status disassemble(struct disassembly *disassembly, const struct elf_file *file, uint64_t start, uint64_t end,
                        bool is_intel_syntax, struct error *error);

/* The instruction that ADDRESS is in: the last one that does not start after it. COUNT must not be 0. */
size_t disassembly_find(const struct disassembly *disassembly, uint64_t address);

static inline const char *instruction_text(const struct disassembly *disassembly, const struct instruction *instruction)
{
    return (const char *)disassembly->text.data + instruction->text;
}

#endif
