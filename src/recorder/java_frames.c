/* SPDX-License-Identifier: MIT */
#include "recorder/java_frames.h"

#include "base/leb128.h"

#include <string.h>

/* DWARF's numbers of registers. */
enum { X86_64_RBP = 6, X86_64_RSP = 7, X86_64_RETURN = 16 };

enum {
    CFA_OFFSET = 0x80,
    CFA_RESTORE = 0xc0,
    CFA_ADVANCE_4 = 0x04,
    CFA_REMEMBER_STATE = 0x0a,
    CFA_RESTORE_STATE = 0x0b,
    CFA_DEFINE = 0x0c,
    CFA_DEFINE_OFFSET = 0x0e,
    WORD = 8,
    RETURN_PLACE = 1, /* words below the CFA */
    FP_PLACE = 2,
    SENDER_SP_PLACE = 3,
};

/* Appends SIZE bytes of VALUE, the lowest first. */
static void put(struct buffer *section, uint64_t value, size_t size)
{
    buffer_append(section, &value, size); /* both processors are little-endian */
}

static void put_saved(struct buffer *section, uint8_t dwarf, unsigned place)
{
    buffer_append_byte(section, (uint8_t)(CFA_OFFSET | dwarf));
    leb128_append(section, place);
}

static void put_cfa(struct buffer *section, uint64_t size)
{
    buffer_append_byte(section, CFA_DEFINE_OFFSET);
    leb128_append(section, size);
}

/* Goes on at PLACE, an offset in the code; *AT is the place so far. */
static void put_place(struct buffer *section, size_t place, size_t *at)
{
    buffer_append_byte(section, CFA_ADVANCE_4);
    put(section, place - *at, 4);
    *at = place;
}

/* Begins an entry whose length is not known yet. Returns its place. */
static size_t begin_entry(struct buffer *section)
{
    put(section, 0, 4);
    return section->size;
}

static void end_entry(struct buffer *section, size_t start)
{
    while (section->size % 4 != 0 && !section->failed) buffer_append_byte(section, 0);
    uint32_t length = (uint32_t)(section->size - start);
    if (!section->failed) memcpy(section->data + start - sizeof(length), &length, sizeof(length));
}

void java_frames_begin(struct buffer *section)
{
    /* at the start of a function the return address is at SP */
    enum { VERSION = 1, MINUS_8 = 0x78 };
    size_t start = begin_entry(section);
    put(section, 0, 4);
    buffer_append_byte(section, VERSION);
    buffer_append_byte(section, 0); /* no augmentation */
    leb128_append(section, 1);
    buffer_append_byte(section, MINUS_8);
    buffer_append_byte(section, X86_64_RETURN);
    buffer_append_byte(section, CFA_DEFINE);
    leb128_append(section, X86_64_RSP);
    leb128_append(section, WORD);
    put_saved(section, X86_64_RETURN, RETURN_PLACE);
    end_entry(section, start);
}

static size_t begin_function(struct buffer *section, uint64_t start, uint64_t size)
{
    size_t place = begin_entry(section);
    put(section, place, 4); /* distance to the common entry, which is the first */
    put(section, start, WORD);
    put(section, size, WORD);
    return place;
}

void java_frames_with_pointer(struct buffer *section, const struct java_blob *blob, bool is_interpreter)
{
    size_t start = begin_function(section, blob->code_begin, blob->code_end - blob->code_begin);
    buffer_append_byte(section, CFA_DEFINE);
    leb128_append(section, X86_64_RBP);
    leb128_append(section, (uint64_t)FP_PLACE * WORD);
    put_saved(section, X86_64_RBP, FP_PLACE);
    /* The interpreter has moved the arguments of its caller: it keeps the stack pointer that this had. */
    if (is_interpreter) put_saved(section, X86_64_RSP, SENDER_SP_PLACE);
    end_entry(section, start);
}

/* Returns the length of "add SIZE, %rsp; pop %rbp" at CODE without the pop; 0: there is other code. */
static size_t epilogue_at(const uint8_t *code, uint64_t size)
{
    enum { REX = 0x48, SHORT = 0x83, LONG = 0x81, ADD_RSP = 0xc4, POP_RBP = 0x5d };
    uint32_t value = 0;
    if (code[0] != REX || code[2] != ADD_RSP) return 0;
    if (code[1] == SHORT) return code[3] == size && code[4] == POP_RBP ? 4 : 0;
    memcpy(&value, code + 3, sizeof(value));
    return code[1] == LONG && value == size && code[7] == POP_RBP ? 7 : 0;
}

/* Returns the place after the return instruction behind PLACE, between which a safepoint may be polled. */
static size_t after_return(const uint8_t *code, size_t size, size_t place)
{
    enum { RETURN = 0xc3, POLL_BYTES_MAX = 24 };
    for (size_t i = place; i < size && i < place + POLL_BYTES_MAX; i++) {
        if (code[i] == RETURN) return i + 1;
    }
    return place;
}

void java_frames_compiled(struct buffer *section, const struct java_blob *blob, const uint8_t *code)
{
    enum { EPILOGUE_BYTES = 8, PUSH_RBP = 0x55, SUB_SHORT_BYTES = 4, SUB_LONG_BYTES = 7 };
    size_t size = (size_t)(blob->code_end - blob->code_begin), at = 0;
    size_t complete = blob->frame_complete > 0 ? (size_t)blob->frame_complete : 0;
    uint64_t frame = (uint64_t)blob->frame_words * WORD;
    size_t start = begin_function(section, blob->code_begin, size);
    size_t push = 0;
    if (complete > SUB_LONG_BYTES && code[complete - SUB_LONG_BYTES - 1] == PUSH_RBP) push = complete - SUB_LONG_BYTES;
    if (complete > SUB_SHORT_BYTES && code[complete - SUB_SHORT_BYTES - 1] == PUSH_RBP)
        push = complete - SUB_SHORT_BYTES;
    if (push > 0) {
        put_place(section, push, &at);
        put_cfa(section, (uint64_t)FP_PLACE * WORD);
        put_saved(section, X86_64_RBP, FP_PLACE);
    }
    put_place(section, complete, &at);
    put_cfa(section, frame);
    put_saved(section, X86_64_RBP, FP_PLACE);
    for (size_t i = complete; i + EPILOGUE_BYTES < size; i++) {
        size_t added = epilogue_at(code + i, frame - (uint64_t)FP_PLACE * WORD);
        if (added == 0) continue;
        size_t end = after_return(code, size, i + added + 1);
        buffer_append_byte(section, CFA_REMEMBER_STATE);
        put_place(section, i + added, &at);
        put_cfa(section, (uint64_t)FP_PLACE * WORD);
        put_place(section, i + added + 1, &at);
        put_cfa(section, WORD);
        buffer_append_byte(section, CFA_RESTORE | X86_64_RBP);
        put_place(section, end, &at);
        buffer_append_byte(section, CFA_RESTORE_STATE);
        i = end - 1;
    }
    end_entry(section, start);
}

void java_frames_none(struct buffer *section, const struct java_blob *blob)
{
    end_entry(section, begin_function(section, blob->code_begin, blob->code_end - blob->code_begin));
}
