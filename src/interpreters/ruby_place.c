/* Names and lines of Ruby code. A method in C has the name of its identifier, which is in a table that no symbol leads
 * to. SPDX-License-Identifier: MIT */
#include "interpreters/ruby_private.h"

#include "interpreters/block_view.h"
#include "interpreters/cut_text.h"

#include <elf.h>
#include <string.h>

static bool read_bytes(const struct process_memory *memory, struct interpreted_work *work, uint64_t address,
                       void *bytes, size_t size)
{
    return process_memory_read(memory, &work->pieces, address, bytes, size);
}

/* --- Objects ------------------------------------------------------------------------------------------------------ */

/* Finds the words of the array at ADDRESS. */
static bool find_words(uint64_t address, const struct process_memory *memory, struct interpreted_work *work,
                       struct memory_range *ret_words)
{
    enum { SHORT = 1 << 13, SHORT_LENGTH_SHIFT = 15, SHORT_LENGTH_MASK = 3, WORDS = 16, LENGTH = 16, POINTER = 32 };
    uint8_t array[POINTER + sizeof(uint64_t)];
    if (!read_bytes(memory, work, address, array, sizeof(array))) return false;
    uint64_t flags = word_at(array, 0);
    if (ruby_type(flags) != RUBY_ARRAY) return false;
    if (flags & SHORT)
        *ret_words = (struct memory_range){address + WORDS, flags >> SHORT_LENGTH_SHIFT & SHORT_LENGTH_MASK};
    else
        *ret_words = (struct memory_range){word_at(array, POINTER), word_at(array, LENGTH)};
    return true;
}

/* Reads word I of the array at ADDRESS. */
static bool read_word_of(uint64_t address, uint64_t i, const struct process_memory *memory,
                         struct interpreted_work *work, uint64_t *ret_word)
{
    struct memory_range words;
    return find_words(address, memory, work, &words) && i < words.size &&
           read_bytes(memory, work, words.address + i * sizeof(*ret_word), ret_word, sizeof(*ret_word));
}

/* Copies the string at ADDRESS to TEXT; a longer one ends with "…". Bytes that are no UTF-8 become question marks. */
static bool copy_string(const struct ruby_offsets *offsets, uint64_t address, const struct process_memory *memory,
                        struct interpreted_work *work, char *text, size_t text_size)
{
    enum { LONG = 1 << 13, SHORT_LENGTH_SHIFT = 14, SHORT_LENGTH_MASK = 31, POINTER = 24 };
    uint8_t string[RUBY_STRING_BYTES], *bytes = work->blocks[0].bytes;
    if (!read_bytes(memory, work, address, string, sizeof(string))) return false;
    uint64_t flags = word_at(string, 0), length = word_at(string, RUBY_STRING_CONTENT), content;
    if (ruby_type(flags) != RUBY_STRING) return false;
    if (flags & LONG) {
        content = word_at(string, POINTER);
    } else {
        content = address + RUBY_STRING_CONTENT + (offsets->short_has_length ? sizeof(length) : 0);
        if (!offsets->short_has_length) length = flags >> SHORT_LENGTH_SHIFT & SHORT_LENGTH_MASK;
    }
    size_t kept = length < text_size ? (size_t)length : text_size;
    if (kept > sizeof(work->blocks[0].bytes)) return false;
    if (kept > 0 && !read_bytes(memory, work, content, bytes, kept)) return false;
    text[0] = '\0';
    text_append_cut(text, text_size, slice_of(bytes, kept), length);
    return true;
}

/* --- Names of identifiers ----------------------------------------------------------------------------------------- */

enum { NAMES_LAST = 0, NAMES_STRINGS = 8, NAMES_ARRAYS = 16, NAMES_SYMBOLS = 24, NAMES_BYTES = 32, NAMES_A_PART = 512 };

static bool has_type(uint64_t address, unsigned type, const struct process_memory *memory,
                     struct interpreted_work *work)
{
    uint64_t flags = 0;
    return read_bytes(memory, work, address, &flags, sizeof(flags)) && ruby_type(flags) == type;
}

/* Returns true if BYTES are the table: the number of the last identifier, a hash table, arrays with names of as many
 * identifiers, and a hash of symbols. */
static bool is_names(const uint8_t *bytes, const struct process_memory *memory, struct interpreted_work *work)
{
    enum { LAST_MAX = 1 << 26, LAST_MIN = 256, ALIGNMENT = 7 };
    uint64_t last = word_at(bytes, NAMES_LAST), arrays = word_at(bytes, NAMES_ARRAYS),
             symbols = word_at(bytes, NAMES_SYMBOLS), strings = word_at(bytes, NAMES_STRINGS);
    struct memory_range words;
    uint64_t first = 0;
    if (last < LAST_MIN || last > LAST_MAX || !arrays || !symbols || !strings) return false;
    if ((arrays | symbols | strings) & ALIGNMENT) return false;
    return has_type(symbols, RUBY_HASH, memory, work) && find_words(arrays, memory, work, &words) &&
           words.size == last / NAMES_A_PART + 1 && read_word_of(arrays, 0, memory, work, &first) &&
           has_type(first, RUBY_ARRAY, memory, work);
}

/* Returns the data of IMAGE. */
static struct memory_range find_data(const struct interpreter_image *image, const struct process_memory *memory,
                                     struct interpreted_work *work)
{
    enum { SEGMENTS_MAX = 32 };
    Elf64_Ehdr header;
    Elf64_Phdr segments[SEGMENTS_MAX];
    if (!read_bytes(memory, work, image->start, &header, sizeof(header)) || header.e_phnum > SEGMENTS_MAX ||
        header.e_phnum == 0 ||
        !read_bytes(memory, work, image->start + header.e_phoff, segments, header.e_phnum * sizeof(segments[0])))
        return (struct memory_range){0};
    for (unsigned i = 0; i < header.e_phnum; i++) {
        if (segments[i].p_type == PT_LOAD && (segments[i].p_flags & PF_W))
            return (struct memory_range){image->bias + segments[i].p_vaddr, segments[i].p_memsz};
    }
    return (struct memory_range){0};
}

uint64_t ruby_find_names(const struct interpreter_image *image, const struct process_memory *memory,
                         struct interpreted_work *work)
{
    enum { DATA_MAX = 1 << 20, STEP = sizeof(work->blocks[0].bytes) - NAMES_BYTES };
    const struct memory_range data = find_data(image, memory, work);
    uint8_t *bytes = work->blocks[0].bytes;
    for (uint64_t at = 0; at + NAMES_BYTES <= data.size && at < DATA_MAX; at += STEP) {
        uint64_t left = data.size - at;
        size_t size = left < sizeof(work->blocks[0].bytes) ? (size_t)left : sizeof(work->blocks[0].bytes);
        if (!read_bytes(memory, work, data.address + at, bytes, size)) continue;
        for (size_t i = 0; i + NAMES_BYTES <= size; i += sizeof(uint64_t)) {
            if (is_names(bytes + i, memory, work)) return data.address + at + i;
        }
    }
    return 0;
}

/* Copies the name of IDENTIFIER to TEXT. */
static bool name_identifier(const struct interpreter_state *state, uint64_t identifier,
                            const struct process_memory *memory, struct interpreted_work *work, char *text, size_t size)
{
    enum { KIND_BITS = 4, WORDS_A_NAME = 2 };
    uint64_t number = identifier > state->ruby->last_operator ? identifier >> KIND_BITS : identifier;
    uint64_t arrays = 0, part = 0, string = 0;
    return state->names != 0 && read_bytes(memory, work, state->names + NAMES_ARRAYS, &arrays, sizeof(arrays)) &&
           read_word_of(arrays, number / NAMES_A_PART, memory, work, &part) &&
           read_word_of(part, number % NAMES_A_PART * WORDS_A_NAME, memory, work, &string) &&
           copy_string(state->ruby, string, memory, work, text, size);
}

/* --- Lines -------------------------------------------------------------------------------------------------------- */

static uint32_t count_bits(uint64_t word)
{
    uint32_t count = 0;
    for (; word; word &= word - 1) count++;
    return count;
}

/* Returns how many entries of the table of lines begin at or before instruction POSITION: the bits that are set in a
 * row of bits, counted in steps of three sizes. */
static uint32_t count_entries(uint64_t index, uint64_t position, const struct process_memory *memory,
                              struct interpreted_work *work)
{
    enum { COUNTS_A_WORD = 9, COUNT_BITS = 7, COUNT_MASK = 0x7f, COUNTED = 54 };
    enum { BLOCK = 512, BLOCK_BYTES = 80, PART = 64, PART_BITS = 9, PART_MASK = 0x1ff };
    uint64_t words[BLOCK_BYTES / sizeof(uint64_t)]; /* rank, ranks of the parts, the parts */
    if (position < COUNTED) {
        if (!read_bytes(memory, work, index + position / COUNTS_A_WORD * sizeof(words[0]), words, sizeof(words[0])))
            return 0;
        return words[0] >> position % COUNTS_A_WORD * COUNT_BITS & COUNT_MASK;
    }
    uint64_t at = position - COUNTED, part = at % BLOCK / PART;
    uint64_t block = index + COUNTED / COUNTS_A_WORD * sizeof(words[0]) + at / BLOCK * BLOCK_BYTES;
    if (!read_bytes(memory, work, block, words, sizeof(words))) return 0;
    uint32_t before = part == 0 ? 0 : (uint32_t)(words[1] >> (part - 1) * PART_BITS & PART_MASK);
    return (uint32_t)words[0] + before + count_bits(words[2 + part] << (PART - 1 - at % PART));
}

/* Returns the line of the instruction that FRAME has begun; the instruction behind it is noted there. */
static uint32_t line_of(const struct ruby_offsets *offsets, uint64_t body, uint64_t instruction,
                        const struct process_memory *memory, struct interpreted_work *work)
{
    uint64_t lines = 0, index = 0, position = instruction / sizeof(uint64_t);
    uint32_t count = 0, line = 0;
    if (!read_bytes(memory, work, body + offsets->lines.lines, &lines, sizeof(lines)) ||
        !read_bytes(memory, work, body + offsets->lines.count, &count, sizeof(count)) ||
        !read_bytes(memory, work, body + offsets->lines.index, &index, sizeof(index)) || count == 0 || instruction == 0)
        return 0;
    uint32_t entry = count == 1 ? 1 : count_entries(index, position - 1, memory, work);
    if (entry == 0 || entry > count ||
        !read_bytes(memory, work, lines + (uint64_t)(entry - 1) * offsets->line_size, &line, sizeof(line)))
        return 0;
    return line <= INT32_MAX ? line : 0;
}

/* --- Places ------------------------------------------------------------------------------------------------------- */

/* Copies the file of the code object with BODY to PLACE: the whole path, if there is one, and not that of the call. */
static bool name_file(const struct ruby_offsets *offsets, uint64_t path, const struct process_memory *memory,
                      struct interpreted_work *work, struct interpreted_place *place)
{
    uint64_t string = 0;
    if (has_type(path, RUBY_ARRAY, memory, work)) {
        bool has_whole = read_word_of(path, 1, memory, work, &string) && has_type(string, RUBY_STRING, memory, work);
        if (!has_whole && !read_word_of(path, 0, memory, work, &string)) return false;
        path = string;
    }
    return copy_string(offsets, path, memory, work, place->file, sizeof(place->file));
}

static bool place_code(const struct ruby_offsets *offsets, uint64_t body, uint64_t instruction,
                       const struct process_memory *memory, struct interpreted_work *work,
                       struct interpreted_place *place)
{
    uint8_t bytes[RUBY_BODY_BYTES + 4];
    if (!read_bytes(memory, work, body, bytes, sizeof(bytes))) return false;
    uint64_t first = (word_at(bytes, RUBY_BODY_FIRST_LINE) & UINT32_MAX) >> offsets->line_bits;
    place->first_line = first <= INT32_MAX ? (uint32_t)first : 0;
    place->line = line_of(offsets, body, instruction, memory, work);
    return copy_string(offsets, word_at(bytes, RUBY_BODY_LABEL), memory, work, place->function,
                       sizeof(place->function)) &&
           name_file(offsets, word_at(bytes, RUBY_BODY_PATH), memory, work, place);
}

bool ruby_place(const struct interpreter_state *state, const struct interpreted_frame *frame,
                const struct process_memory *memory, struct interpreted_work *work, struct interpreted_place *ret_place)
{
    static const char unknown[] = "[method in C]";
    uint8_t code[RUBY_CODE_BYTES];
    struct interpreted_frame again = *frame;
    ret_place->file[0] = '\0';
    ret_place->first_line = ret_place->line = 0;
    if (!read_bytes(memory, work, frame->code, code, sizeof(code))) return false;
    bool is_code = ruby_is_internal(word_at(code, 0), RUBY_CODE);
    if (is_code && !place_code(state->ruby, word_at(code, RUBY_CODE_BODY), frame->instruction, memory, work, ret_place))
        return false;
    if (!is_code && !name_identifier(state, word_at(code, RUBY_METHOD_IDENTIFIER), memory, work, ret_place->function,
                                     sizeof(ret_place->function)))
        memcpy(ret_place->function, unknown, sizeof(unknown));
    return ruby_read_code(memory, work, &again, 1) && again.key == frame->key;
}
