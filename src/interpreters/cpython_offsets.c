/* The numbers up to 3.12 are from the headers of each minor version, on x86-64; patch releases change the size of the
 * runtime, not these fields. From 3.13 on, the runtime begins with a table of its own offsets (_Py_DebugOffsets), whose
 * layout is that of the minor version. SPDX-License-Identifier: MIT */
#include "interpreters/cpython_offsets.h"

#include <string.h>

#define STRING_TO_3_11                                                                                                 \
    {                                                                                                                  \
        .ascii = 48, .other = 72                                                                                       \
    }
#define STRING_FROM_3_12                                                                                               \
    {                                                                                                                  \
        .ascii = 40, .other = 56                                                                                       \
    }
#define OBJECTS_OF_3_8                                                                                                 \
    .frames = CPYTHON_FRAME_OBJECTS, .interpreter = {.next = 0, .threads = 8},                                         \
    .thread = {.next = 8, .interpreter = 16, .frame = 24, .identity = 176, .size = 184},                               \
    .code = {.name = 112, .qualified_name = 112, .file = 104, .first_line = 40, .line_table = 120},                    \
    .string = STRING_TO_3_11

static const struct cpython_offsets known[] = {
    {
        .minor = 8,
        .runtime_sizes = {1464},
        .runtime = {.interpreters = 32, .lock = 1152},
        .lines = CPYTHON_SIGNED_PAIRS,
        .frame = {.size = 112, .code = 32, .previous = 24, .instruction = 104, .instruction_unit = 1},
        OBJECTS_OF_3_8,
    },
    {
        .minor = 9,
        .runtime_sizes = {656},
        .runtime = {.interpreters = 32, .lock = 352},
        .lines = CPYTHON_SIGNED_PAIRS,
        .frame = {.size = 112, .code = 32, .previous = 24, .instruction = 104, .instruction_unit = 1},
        OBJECTS_OF_3_8,
    },
    {
        .minor = 10,
        .runtime_sizes = {672},
        .runtime = {.interpreters = 32, .lock = 352},
        .lines = CPYTHON_RANGES,
        .frame = {.size = 112, .code = 32, .previous = 24, .instruction = 96, .instruction_unit = 2},
        OBJECTS_OF_3_8,
    },
    {
        .minor = 11,
        .runtime_sizes = {166688},
        .frames = CPYTHON_C_FRAMES,
        .lines = CPYTHON_LOCATIONS,
        .runtime = {.interpreters = 40, .lock = 360},
        .interpreter = {.next = 0, .threads = 16},
        .thread = {.next = 8, .interpreter = 16, .identity = 152, .native_id = 160, .frame = 56, .size = 168},
        .c_frame = {.frame = 8, .previous = 16},
        .frame = {.size = 80, .code = 32, .previous = 48, .instruction = 56, .owner = 69, .is_entry = 68},
        .code =
            {.name = 120, .qualified_name = 128, .file = 112, .first_line = 72, .line_table = 136, .instructions = 184},
        .string = STRING_TO_3_11,
    },
    {
        .minor = 12,
        .runtime_sizes = {459944},
        .frames = CPYTHON_ENTRY_FRAMES,
        .lines = CPYTHON_LOCATIONS,
        .runtime = {.interpreters = 40},
        .interpreter = {.next = 0, .threads = 72, .lock = 384},
        .thread = {.next = 8, .interpreter = 16, .identity = 136, .native_id = 144, .frame = 56, .size = 152},
        .c_frame = {.frame = 0, .previous = 8},
        .frame = {.size = 80, .code = 0, .previous = 8, .instruction = 56, .owner = 70},
        .code = {.name = 120,
                 .qualified_name = 128,
                 .file = 112,
                 .first_line = 68,
                 .line_table = 136,
                 .instructions = 192,
                 .version = 92},
        .string = STRING_FROM_3_12,
    },
};

const struct cpython_offsets *cpython_offsets_of(uint32_t minor, uint64_t runtime_size)
{
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        const struct cpython_offsets *offsets = &known[i];
        bool is_it = minor == 0 || offsets->minor == minor;
        for (size_t j = 0; is_it && j < sizeof(offsets->runtime_sizes) / sizeof(offsets->runtime_sizes[0]); j++) {
            if (runtime_size != 0 && offsets->runtime_sizes[j] == runtime_size) return offsets;
        }
    }
    return NULL;
}

/* --- What the runtime says of itself ------------------------------------------------------------------------------ */

/* Places of numbers in the runtime's own table, in words from its start. */
struct table_layout {
    uint32_t minor;
    uint32_t interpreters;
    uint32_t interpreter_size, interpreter_next, threads;
    uint32_t thread_size; /* followed by prev, next, interp, current frame, thread id, native id */
    uint32_t frame_size;  /* followed by previous, code, instruction, locals, owner */
    uint32_t code_size;   /* followed by file, name, qualified name, line table, first line, …, instructions (9) */
};

enum { LOCK_FROM_3_13 = 16, FILE_BEHIND_VERSION = 20 };
enum { COOKIE, VERSION, FREE_THREADED, TABLE_WORDS = 64, OFFSET_MAX = 4096, INTERPRETER_MAX = 1 << 24 };

static const struct table_layout layouts[] = {
    {13, 5, 6, 8, 9, 19, 28, 34},
    {14, 5, 6, 8, 9, 22, 31, 39},
};

static bool is_inside(uint64_t offset, uint64_t field, uint64_t size)
{
    return field <= size && offset <= size - field;
}

/* Returns true if each of the COUNT offsets after WORDS[SIZE] leaves room for FIELD bytes in the size that is there. */
static bool are_inside(const uint64_t *words, uint32_t size, uint32_t count, uint64_t field)
{
    if (words[size] > OFFSET_MAX) return false;
    for (uint32_t i = 1; i <= count; i++) {
        if (!is_inside(words[size + i], field, words[size])) return false;
    }
    return true;
}

/* Returns true if the COUNT offsets after CODE are in the part of a code object that a key is of: from its type on. */
static bool are_in_key(const uint64_t *code, uint32_t count)
{
    for (uint32_t i = 1; i <= count; i++) {
        if (code[i] < sizeof(uint64_t) || code[i] > INTERPRETED_CODE_BYTES) return false;
    }
    return true;
}

static bool is_credible(const uint64_t *words, const struct table_layout *layout, uint64_t runtime_size)
{
    enum { THREAD_FIELDS = 6, FRAME_FIELDS = 4, CODE_FIELDS = 5, MINOR_SHIFT = 16, MINOR_MASK = 0xff };
    uint64_t interpreter_size = words[layout->interpreter_size];
    return (words[VERSION] >> MINOR_SHIFT & MINOR_MASK) == layout->minor &&
           is_inside(words[layout->interpreters], sizeof(uint64_t), runtime_size) &&
           interpreter_size <= INTERPRETER_MAX &&
           is_inside(words[layout->interpreter_next], sizeof(uint64_t), interpreter_size) &&
           is_inside(words[layout->threads], sizeof(uint64_t), interpreter_size) &&
           are_inside(words, layout->thread_size, THREAD_FIELDS, sizeof(uint64_t)) &&
           are_inside(words, layout->frame_size, FRAME_FIELDS, sizeof(uint64_t)) &&
           words[layout->frame_size + FRAME_FIELDS + 1] < words[layout->frame_size] &&
           are_inside(words, layout->code_size, CODE_FIELDS, sizeof(uint32_t)) &&
           are_in_key(words + layout->code_size, CODE_FIELDS) &&
           words[layout->code_size + 1] >= FILE_BEHIND_VERSION + sizeof(uint64_t) &&
           words[layout->code_size + 9] <= words[layout->code_size];
}

static void take_over(const uint64_t *words, const struct table_layout *layout, struct cpython_offsets *ret)
{
    const uint64_t *thread = words + layout->thread_size, *frame = words + layout->frame_size;
    const uint64_t *code = words + layout->code_size;
    *ret = (struct cpython_offsets){
        .minor = layout->minor,
        .frames = CPYTHON_ENTRY_FRAMES,
        .lines = CPYTHON_LOCATIONS,
        .runtime = {.interpreters = (uint32_t)words[layout->interpreters]},
        .interpreter = {.next = (uint32_t)words[layout->interpreter_next],
                        .threads = (uint32_t)words[layout->threads],
                        .lock = LOCK_FROM_3_13},
        .thread = {.next = (uint32_t)thread[2],
                   .interpreter = (uint32_t)thread[3],
                   .frame = (uint32_t)thread[4],
                   .identity = (uint32_t)thread[5],
                   .native_id = (uint32_t)thread[6]},
        .frame = {.size = (uint32_t)frame[0],
                  .previous = (uint32_t)frame[1],
                  .code = (uint32_t)frame[2],
                  .instruction = (uint32_t)frame[3],
                  .owner = (uint32_t)frame[5]},
        .code = {.file = (uint32_t)code[1],
                 .name = (uint32_t)code[2],
                 .qualified_name = (uint32_t)code[3],
                 .line_table = (uint32_t)code[4],
                 .first_line = (uint32_t)code[5],
                 .instructions = (uint32_t)code[9],
                 .version = (uint32_t)code[1] - FILE_BEHIND_VERSION},
        .string = STRING_FROM_3_12,
    };
    ret->thread.size = ret->thread.frame;
    if (ret->thread.size < ret->thread.identity) ret->thread.size = ret->thread.identity;
    if (ret->thread.size < ret->thread.interpreter) ret->thread.size = ret->thread.interpreter;
    if (ret->thread.size < ret->thread.native_id) ret->thread.size = ret->thread.native_id;
    ret->thread.size += (uint32_t)sizeof(uint64_t);
}

const struct cpython_offsets *cpython_offsets_read(uint32_t minor, const struct memory_range *runtime,
                                                   const struct process_memory *memory, struct memory_pieces *pieces)
{
    static struct cpython_offsets
        of_layouts[sizeof(layouts) / sizeof(layouts[0])]; /* offsets of one version are equal */
    uint64_t words[TABLE_WORDS];
    if (runtime->size < sizeof(words) || !process_memory_read(memory, pieces, runtime->address, words, sizeof(words)))
        return NULL;
    if (memcmp(words, "xdebugpy", sizeof(words[COOKIE])) != 0 || words[FREE_THREADED] != 0) return NULL;
    for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
        if (layouts[i].minor != minor || !is_credible(words, &layouts[i], runtime->size)) continue;
        struct cpython_offsets offsets;
        take_over(words, &layouts[i], &offsets);
        of_layouts[i] = offsets; /* at once: a handler may be reading the same ones */
        return &of_layouts[i];
    }
    return NULL;
}
