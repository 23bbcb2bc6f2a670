/* Whatever is in the memory of a process, reading a stack there ends, and stays within its own buffers. The input is
 * the memory, again and again at all addresses but the lowest. SPDX-License-Identifier: MIT */
#include "interpreters/cpython_offsets.h"
#include "interpreters/merged_stack.h"
#include "interpreters/recalled_memory.h"
#include "interpreters/ruby_private.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LOWEST = 65536, NATIVE_FRAMES = 16, MINOR_MIN = 8, MINORS = 5, RUBY_MINORS = 3 };

struct input {
    const uint8_t *data;
    size_t size;
};

static bool gather(const struct process_memory *memory, const struct memory_pieces *pieces)
{
    const struct input *input = memory->context;
    for (size_t i = 0; i < pieces->count; i++) {
        uint8_t *to = (uint8_t *)(uintptr_t)pieces->to[i].address;
        if (pieces->from[i].address < LOWEST) return false;
        for (uint64_t j = 0; j < pieces->from[i].size; j++)
            to[j] = input->data[(pieces->from[i].address + j) % input->size];
    }
    return true;
}

static void read_stacks(const struct interpreter_state *state, const struct process_memory *memory,
                        struct interpreted_work *work)
{
    enum { THREADS = 4, PLACES = 16, ROUNDS = 2 };
    static struct recalled_memory recalled;
    static struct interpreted_stack stack;
    static struct interpreted_place place;
    struct interpreted_thread threads[THREADS] = {0};
    int tids[THREADS];
    uint64_t addresses[NATIVE_FRAMES], stack_pointers[NATIVE_FRAMES], merged[NATIVE_FRAMES];
    for (size_t i = 0; i < NATIVE_FRAMES; i++) addresses[i] = stack_pointers[i] = LOWEST * (i + 1);
    const struct native_view view = {.interpreter = {0, LOWEST * 4}, .libc = {LOWEST * 4, LOWEST}};
    size_t count = state->interpreter->threads(state, memory, work, threads, tids, THREADS);
    for (size_t i = 0; i < count; i++) {
        struct recalled_parts parts = {0};
        enum interpreted_result result = INTERPRETED_NOTHING;
        for (unsigned round = 0; round < ROUNDS; round++) {
            const struct process_memory *again = recalled_memory_begin(&recalled, memory, &parts);
            result = state->interpreter->read(state, threads[i], again, work, &stack);
            recalled_memory_end(&recalled, &parts);
        }
        if (result != INTERPRETED_READ) continue;
        for (size_t j = 0; j < stack.count && j < PLACES; j++)
            (void)state->interpreter->place(state, &stack.frames[j], memory, work, &place);
        const struct native_stack native = {addresses, stack_pointers, NATIVE_FRAMES, i % 2 == 0};
        (void)merge_stacks(&native, &stack, &view, LOWEST, merged, NATIVE_FRAMES);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint64_t runtime_sizes[MINORS] = {1464, 656, 672, 166688, 459944};
    static struct interpreted_work work;
    struct input input = {data, size};
    const struct process_memory memory = {.gather = gather, .context = &input};
    struct interpreter_image image = {.start = LOWEST, .size = 1 << 20, .bias = LOWEST};
    struct interpreter_state state = {0};
    if (size < sizeof(uint64_t)) return 0;
    if (cpython.attach(&image, &memory, &work, &state) == INTERPRETER_ATTACHED) read_stacks(&state, &memory, &work);
    state = (struct interpreter_state){.interpreter = &cpython, .image = image, .root = LOWEST};
    memcpy(&state.code_type, data, sizeof(state.code_type));
    uint32_t minor = data[size - 1] % (MINORS + 2);
    const struct memory_range runtime = {LOWEST, size};
    state.offsets = minor < MINORS ? cpython_offsets_of(MINOR_MIN + minor, runtime_sizes[minor])
                                   : cpython_offsets_read(MINOR_MIN + minor, &runtime, &memory, &work.pieces);
    state.minor = MINOR_MIN + minor;
    if (state.offsets) read_stacks(&state, &memory, &work);
    state = (struct interpreter_state){.interpreter = &ruby, .image = image, .root = LOWEST, .names = LOWEST};
    state.ruby = minor < RUBY_MINORS ? ruby_offsets_of(3, minor) : ruby_offsets_of(2, 7);
    read_stacks(&state, &memory, &work);
    state = (struct interpreter_state){.interpreter = &php, .image = image, .root = LOWEST};
    read_stacks(&state, &memory, &work);
    return 0;
}
