/* Names and line numbers of Python code objects. SPDX-License-Identifier: MIT */
#include "interpreters/cpython_private.h"

#include "base/utf8.h"

#include <string.h>

enum { STRING_LENGTH = 16, STRING_STATE = 32, BYTES_SIZE = 16, BYTES_DATA = 32 };

/* --- Texts -------------------------------------------------------------------------------------------------------- */

/* Returns the character at INDEX. Python's strings may have halves of surrogate pairs, which UTF-8 has not. */
static uint32_t character_at(const uint8_t *bytes, unsigned width, size_t index)
{
    enum { REPLACEMENT = 0xFFFD };
    uint32_t value = 0;
    __builtin_memcpy(&value, bytes + index * width, width);
    bool is_character = value < 0xD800 || (value > 0xDFFF && value <= 0x10FFFF);
    return is_character ? value : REPLACEMENT;
}

/* Copies the string at ADDRESS to TEXT as UTF-8; a longer one ends with "…". */
static bool read_string(const struct cpython_offsets *offsets, uint64_t address, const struct process_memory *memory,
                        struct interpreted_work *work, char *text, size_t text_size)
{
    static const char more[] = "…";
    uint64_t length = 0;
    uint32_t state = 0;
    struct memory_pieces *pieces = &work->pieces;
    pieces->count = 0;
    memory_pieces_add(pieces, address + STRING_LENGTH, &length, sizeof(length));
    memory_pieces_add(pieces, address + STRING_STATE, &state, sizeof(state));
    if (!memory->gather(memory, pieces)) return false;
    unsigned width = cpython_string_width(state);
    if (width == 0 || length > INT64_MAX / 8) return false;
    uint64_t data = address + cpython_string_text(offsets, state);
    uint8_t *bytes = work->blocks[0].bytes;
    size_t kept = length < INTERPRETED_BLOCK / width ? (size_t)length : INTERPRETED_BLOCK / width;
    work->blocks[0].high = 0;
    if (kept > 0 && !process_memory_read(memory, pieces, data, bytes, kept * width)) return false;
    size_t at = 0, end = text_size - sizeof(more), i = 0;
    for (; i < kept; i++) {
        uint8_t encoded[4];
        size_t size = utf8_write(character_at(bytes, width, i), encoded);
        if (at + size > end) break;
        memcpy(text + at, encoded, size);
        at += size;
    }
    if (i < length)
        memcpy(text + at, more, sizeof(more));
    else
        text[at] = '\0';
    return true;
}

/* --- Line numbers ------------------------------------------------------------------------------------------------- */

/* A line table, read piece by piece: it can be much larger than a block. */
struct table_reader {
    const struct process_memory *memory;
    struct interpreted_work *work;
    uint64_t address, left; /* part that is not copied yet: address and size, bytes */
    size_t at, filled;
};

static bool next_byte(struct table_reader *reader, uint8_t *ret_byte)
{
    uint8_t *bytes = reader->work->blocks[1].bytes;
    if (reader->at == reader->filled) {
        size_t size = reader->left < INTERPRETED_BLOCK ? (size_t)reader->left : INTERPRETED_BLOCK;
        reader->work->blocks[1].high = 0;
        if (size == 0 || !process_memory_read(reader->memory, &reader->work->pieces, reader->address, bytes, size))
            return false;
        reader->address += size;
        reader->left -= size;
        reader->filled = size;
        reader->at = 0;
    }
    *ret_byte = bytes[reader->at++];
    return true;
}

/* Reads a number in groups of six bits, the lowest first. */
static bool next_number(struct table_reader *reader, uint32_t *ret_number)
{
    enum { BITS = 6, MORE = 0x40, SHIFT_MAX = 30 };
    uint32_t number = 0;
    for (unsigned shift = 0; shift <= SHIFT_MAX; shift += BITS) {
        uint8_t byte;
        if (!next_byte(reader, &byte)) return false;
        number |= (uint32_t)(byte & (MORE - 1)) << shift;
        if (byte & MORE) continue;
        *ret_number = number;
        return true;
    }
    return false;
}

static bool next_signed(struct table_reader *reader, int32_t *ret_number)
{
    uint32_t number;
    if (!next_number(reader, &number)) return false;
    *ret_number = number & 1 ? -(int32_t)(number >> 1) : (int32_t)(number >> 1);
    return true;
}

/* Reads the rest of an entry of CODE. *RET_STEP is its line less that of the entry before. */
static bool next_location(struct table_reader *reader, unsigned code, int32_t *ret_step, bool *ret_has_line)
{
    enum { ONE_LINE = 10, NO_COLUMN = 13, LONG = 14, NO_LINE = 15 };
    uint8_t byte;
    uint32_t number;
    *ret_step = 0;
    *ret_has_line = code != NO_LINE;
    if (code == NO_LINE) return true;
    if (code < ONE_LINE) return next_byte(reader, &byte);
    if (code < NO_COLUMN) {
        *ret_step = (int32_t)code - ONE_LINE;
        return next_byte(reader, &byte) && next_byte(reader, &byte);
    }
    if (!next_signed(reader, ret_step)) return false;
    return code == NO_COLUMN ||
           (next_number(reader, &number) && next_number(reader, &number) && next_number(reader, &number));
}

/* Finds the line of INSTRUCTION in a table of locations; 0: it has none. */
static uint32_t line_by_locations(struct table_reader *reader, uint32_t first_line, uint64_t instruction)
{
    enum { UNIT = 2, CODE_SHIFT = 3, CODE_MASK = 15, LENGTH_MASK = 7 };
    int64_t line = first_line;
    uint64_t end = 0;
    uint8_t head;
    while (next_byte(reader, &head)) {
        int32_t step;
        bool has_line;
        if (!next_location(reader, head >> CODE_SHIFT & CODE_MASK, &step, &has_line)) break;
        line += step;
        end += (uint64_t)((head & LENGTH_MASK) + 1) * UNIT;
        if (instruction < end) return has_line && line > 0 && line <= INT32_MAX ? (uint32_t)line : 0;
    }
    return first_line;
}

/* Finds the line of INSTRUCTION in a table of pairs: bytes of code, and the step of the line. LINE_FIRST: the step
 * precedes its code, as in 3.10, where NO_LINE is a step. */
static uint32_t line_by_pairs(struct table_reader *reader, uint32_t first_line, uint64_t instruction, bool line_first)
{
    enum { NO_LINE = -128 };
    int64_t line = first_line;
    uint64_t end = 0;
    uint8_t size, step;
    while (next_byte(reader, &size) && next_byte(reader, &step)) {
        int8_t lines = (int8_t)step;
        end += size;
        if (!line_first && instruction < end) break;
        if (lines != NO_LINE || !line_first) line += lines;
        if (line_first && instruction < end) return lines == NO_LINE ? 0 : (uint32_t)line;
    }
    return line > 0 && line <= INT32_MAX ? (uint32_t)line : first_line;
}

static uint32_t find_line(const struct cpython_offsets *offsets, uint64_t table, uint32_t first_line,
                          uint64_t instruction, const struct process_memory *memory, struct interpreted_work *work)
{
    struct table_reader reader = {.memory = memory, .work = work, .address = table + BYTES_DATA};
    enum { TABLE_BYTES_MAX = 4 << 20 };
    if (!process_memory_read(memory, &work->pieces, table + BYTES_SIZE, &reader.left, sizeof(reader.left)) ||
        reader.left > TABLE_BYTES_MAX)
        return first_line;
    if (offsets->lines == CPYTHON_LOCATIONS) return line_by_locations(&reader, first_line, instruction);
    return line_by_pairs(&reader, first_line, instruction, offsets->lines == CPYTHON_RANGES);
}

/* --- A place ------------------------------------------------------------------------------------------------------ */

/* Returns true if the object whose first word is REFERENCES is not freed. A freed one keeps its content for a while:
 * its count is 0, or a pointer to the next free block is there. Since 3.14, the upper 16 bits are flags. */
static bool is_alive(uint64_t references)
{
    enum { COUNT_BITS = 32, FLAG_BITS = 16 };
    return (uint32_t)references != 0 && references << FLAG_BITS >> FLAG_BITS >> COUNT_BITS == 0;
}

/* Returns true if the code object of FRAME is the one that was running. */
static bool is_still_there(const struct interpreter_state *state, const struct interpreted_frame *frame,
                           const struct process_memory *memory, struct interpreted_work *work)
{
    struct interpreted_frame again = *frame;
    uint64_t references;
    return cpython_read_keys(state, memory, work, &again, 1) && again.key == frame->key &&
           process_memory_read(memory, &work->pieces, frame->code, &references, sizeof(references)) &&
           is_alive(references);
}

bool cpython_place(const struct interpreter_state *state, const struct interpreted_frame *frame,
                   const struct process_memory *memory, struct interpreted_work *work,
                   struct interpreted_place *ret_place)
{
    const struct cpython_offsets *offsets = state->offsets;
    uint64_t name = 0, file = 0, table = 0;
    uint32_t first_line = 0;
    struct memory_pieces *pieces = &work->pieces;
    pieces->count = 0;
    memory_pieces_add(pieces, frame->code + offsets->code.qualified_name, &name, sizeof(name));
    memory_pieces_add(pieces, frame->code + offsets->code.file, &file, sizeof(file));
    memory_pieces_add(pieces, frame->code + offsets->code.line_table, &table, sizeof(table));
    memory_pieces_add(pieces, frame->code + offsets->code.first_line, &first_line, sizeof(first_line));
    if (!memory->gather(memory, pieces)) return false;
    ret_place->first_line = first_line <= INT32_MAX ? first_line : 0;
    if (!read_string(offsets, name, memory, work, ret_place->function, sizeof(ret_place->function))) return false;
    if (!read_string(offsets, file, memory, work, ret_place->file, sizeof(ret_place->file))) return false;
    ret_place->line = find_line(offsets, table, ret_place->first_line, frame->instruction, memory, work);
    return is_still_there(state, frame, memory, work);
}
