/* Finds CPython in a process, and its threads. SPDX-License-Identifier: MIT */
#include "interpreters/cpython_private.h"

#include "interpreters/dynamic_symbols.h"
#include "interpreters/thread_number.h"

enum { MINOR_FREE_TABLE = 13, INTERPRETERS_MAX = 64 };

static bool read_word(const struct process_memory *memory, struct memory_pieces *pieces, uint64_t address,
                      uint64_t *ret_word)
{
    return process_memory_read(memory, pieces, address, ret_word, sizeof(*ret_word));
}

/* Reads the version that the interpreter exports since 3.11. */
static void read_version(const struct dynamic_symbols *symbols, const struct process_memory *memory,
                         struct memory_pieces *pieces, struct interpreter_state *state)
{
    struct memory_range version;
    uint32_t number;
    if (!dynamic_symbols_find(symbols, memory, pieces, "Py_Version", &version)) return;
    if (!process_memory_read(memory, pieces, version.address, &number, sizeof(number))) return;
    state->minor = number >> 16 & 0xff;
    state->patch = number >> 8 & 0xff;
}

static enum interpreter_attached attach(const struct interpreter_image *image, const struct process_memory *memory,
                                        struct interpreted_work *work, struct interpreter_state *ret_state)
{
    struct dynamic_symbols symbols;
    struct memory_range runtime, code_type;
    struct memory_pieces *pieces = &work->pieces;
    uint64_t head = 0;
    if (!dynamic_symbols_open(image, memory, pieces, &symbols) ||
        !dynamic_symbols_find(&symbols, memory, pieces, "_PyRuntime", &runtime) ||
        !dynamic_symbols_find(&symbols, memory, pieces, "PyCode_Type", &code_type))
        return INTERPRETER_ABSENT;
    struct interpreter_state state = {
        .interpreter = &cpython, .image = *image, .root = runtime.address, .major = 3, .code_type = code_type.address};
    read_version(&symbols, memory, pieces, &state);
    state.offsets = state.minor >= MINOR_FREE_TABLE ? cpython_offsets_read(state.minor, &runtime, memory, pieces)
                                                    : cpython_offsets_of(state.minor, runtime.size);
    if (state.offsets) state.minor = state.offsets->minor;
    if (state.offsets && state.offsets->frames == CPYTHON_FRAME_OBJECTS)
        (void)dynamic_symbols_find(&symbols, memory, pieces, "_PyEval_EvalFrameDefault", &state.evaluation);
    *ret_state = state;
    if (!state.offsets) return INTERPRETER_UNKNOWN;
    bool has_begun =
        read_word(memory, pieces, runtime.address + state.offsets->runtime.interpreters, &head) && head != 0;
    return has_begun ? INTERPRETER_ATTACHED : INTERPRETER_LATER;
}

/* Returns the kernel's number of the thread whose pthread_t is IDENTITY. The interpreter's own note of it is wrong
 * after a fork. */
static int tid_of(uint64_t identity, uint64_t native_id, const struct process_memory *memory,
                  struct memory_pieces *pieces)
{
    int tid = thread_number(identity, memory, pieces);
    return tid > 0 ? tid : (int)native_id;
}

/* Adds the threads of the interpreter at ADDRESS to the first COUNT. */
static size_t add_threads(const struct interpreter_state *state, uint64_t address, const struct process_memory *memory,
                          struct memory_pieces *pieces, struct interpreted_thread *threads, int *tids, size_t count,
                          size_t max)
{
    const struct cpython_offsets *offsets = state->offsets;
    uint64_t thread = 0;
    if (!read_word(memory, pieces, address + offsets->interpreter.threads, &thread)) return count;
    while (thread != 0 && count < max) {
        uint64_t next = 0, identity = 0, native_id = 0, interpreter = 0;
        pieces->count = 0;
        memory_pieces_add(pieces, thread + offsets->thread.next, &next, sizeof(next));
        memory_pieces_add(pieces, thread + offsets->thread.interpreter, &interpreter, sizeof(interpreter));
        memory_pieces_add(pieces, thread + offsets->thread.identity, &identity, sizeof(identity));
        if (offsets->thread.native_id)
            memory_pieces_add(pieces, thread + offsets->thread.native_id, &native_id, sizeof(native_id));
        if (!memory->gather(memory, pieces) || interpreter != address) return count;
        threads[count] = (struct interpreted_thread){.state = thread, .identity = identity};
        tids[count] = identity ? tid_of(identity, native_id, memory, pieces) : 0;
        count++;
        thread = next;
    }
    return count;
}

static size_t list_threads(const struct interpreter_state *state, const struct process_memory *memory,
                           struct interpreted_work *work, struct interpreted_thread *ret_threads, int *ret_tids,
                           size_t max)
{
    struct memory_pieces *pieces = &work->pieces;
    uint64_t interpreter = 0;
    size_t count = 0;
    if (!read_word(memory, pieces, state->root + state->offsets->runtime.interpreters, &interpreter)) return 0;
    for (unsigned i = 0; interpreter != 0 && i < INTERPRETERS_MAX; i++) {
        count = add_threads(state, interpreter, memory, pieces, ret_threads, ret_tids, count, max);
        if (!read_word(memory, pieces, interpreter + state->offsets->interpreter.next, &interpreter)) break;
    }
    return count;
}

static struct memory_range lock(const struct interpreter_state *state, const struct process_memory *memory,
                                struct interpreted_work *work)
{
    enum { LOCK_BYTES = 208 };
    const struct cpython_offsets *offsets = state->offsets;
    uint64_t address = state->root + offsets->runtime.lock, interpreter = 0;
    bool is_known = offsets->runtime.lock != 0 ||
                    (read_word(memory, &work->pieces, state->root + offsets->runtime.interpreters, &interpreter) &&
                     read_word(memory, &work->pieces, interpreter + offsets->interpreter.lock, &address));
    return (struct memory_range){address, is_known ? LOCK_BYTES : 0};
}

const struct interpreter cpython = {
    .name = "CPython",
    .platform = "python",
    .attach = attach,
    .threads = list_threads,
    .read = cpython_read,
    .chain = cpython_chain,
    .lock = lock,
    .waiting = "[waiting for the GIL]",
    .place = cpython_place,
};
