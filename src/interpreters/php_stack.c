/* Reads the stack of a PHP program: a chain of frames on the interpreter's own stack. A frame is marked if the function
 * execute_ex was called for it.
 *
 * Runs in the signal handler: no libc, no locks, little stack. SPDX-License-Identifier: MIT */
#include "interpreters/php_private.h"

#include "interpreters/block_view.h"

_Static_assert((int)PHP_FUNCTION_BYTES <= (int)INTERPRETED_CODE_BYTES, "a function fits into the working memory");

/* Computes the key of a function and the place of the operation at FRAME's instruction: bytes from the first one plus
 * one; 0: it is none of the function. */
static void take_function(struct interpreted_frame *frame, const uint8_t *function, uint64_t name_hash)
{
    uint8_t type = function[PHP_FUNCTION_TYPE];
    uint64_t key = mix_key(name_hash, word_at(function, PHP_FUNCTION_NAME));
    key = mix_key(key, word_at(function, PHP_FUNCTION_CLASS));
    key = mix_key(key, type);
    uint64_t operation = frame->instruction, place = 0;
    if (php_is_user(type)) {
        uint64_t first = word_at(function, PHP_FUNCTION_OPERATIONS);
        uint64_t size = (word_at(function, PHP_FUNCTION_OPERATION_COUNT) & UINT32_MAX) * PHP_OPERATION_BYTES;
        key = mix_key(key, first);
        key = mix_key(key, word_at(function, PHP_FUNCTION_FILE));
        key = mix_key(key, word_at(function, PHP_FUNCTION_FIRST_LINE) & UINT32_MAX);
        if (operation - first < size) place = operation - first + 1;
    } else {
        frame->is_entry = false; /* no evaluation function runs it */
    }
    frame->key = key;
    frame->instruction = place;
}

bool php_read_functions(const struct process_memory *memory, struct interpreted_work *work,
                        struct interpreted_frame *frames, size_t count)
{
    struct memory_pieces *pieces = &work->pieces;
    for (size_t done = 0; done < count;) {
        size_t part = count - done < INTERPRETED_CODES ? count - done : INTERPRETED_CODES;
        pieces->count = 0;
        for (size_t i = 0; i < part; i++)
            memory_pieces_add(pieces, frames[done + i].code, work->codes[i], PHP_FUNCTION_BYTES);
        if (!memory->gather(memory, pieces)) return false;
        pieces->count = 0;
        for (size_t i = 0; i < part; i++) {
            uint8_t type = work->codes[i][PHP_FUNCTION_TYPE];
            uint64_t name = word_at(work->codes[i], PHP_FUNCTION_NAME);
            if (!php_is_user(type) && type != PHP_INTERNAL) return false;
            work->hashes[i] = 0;
            if (name) memory_pieces_add(pieces, name + PHP_STRING_HASH, &work->hashes[i], sizeof(work->hashes[i]));
        }
        if (pieces->count > 0 && !memory->gather(memory, pieces)) return false;
        for (size_t i = 0; i < part; i++) take_function(&frames[done + i], work->codes[i], work->hashes[i]);
        done += part;
    }
    return true;
}

/* Walks the chain from FRAME. Returns false if a frame cannot be read. */
static bool walk_chain(uint64_t frame, const struct process_memory *memory, struct interpreted_work *work,
                       struct interpreted_stack *stack)
{
    enum { STEPS_MAX = 4 * INTERPRETED_FRAMES_MAX, CALLED_BY_EXECUTE = 1 << 17 };
    for (unsigned i = 0; frame != 0; i++) {
        const uint8_t *bytes = view_memory(work, memory, frame, PHP_FRAME_BYTES);
        stack->is_cut = stack->count == INTERPRETED_FRAMES_MAX || (!bytes && memory->is_part && stack->count > 0);
        if (stack->is_cut) return true;
        if (!bytes || i == STEPS_MAX) return false;
        uint64_t function = word_at(bytes, PHP_FRAME_FUNCTION);
        bool is_entry = (word_at(bytes, PHP_FRAME_FLAGS) & CALLED_BY_EXECUTE) != 0;
        if (function != 0) /* some frames only link others */
            stack->frames[stack->count++] = (struct interpreted_frame){
                .code = function, .instruction = word_at(bytes, PHP_FRAME_OPERATION), .is_entry = is_entry};
        frame = word_at(bytes, PHP_FRAME_PREVIOUS);
    }
    return true;
}

enum interpreted_result php_read(const struct interpreter_state *state, struct interpreted_thread thread,
                                 const struct process_memory *memory, struct interpreted_work *work,
                                 struct interpreted_stack *ret_stack)
{
    ret_stack->count = 0;
    ret_stack->is_cut = false;
    view_begin(work);
    const uint8_t *current = view_memory(work, memory, thread.state, sizeof(uint64_t));
    if (!current) return INTERPRETED_GONE;
    if (!walk_chain(word_at(current, 0), memory, work, ret_stack)) return INTERPRETED_TORN;
    if (ret_stack->count == 0) return INTERPRETED_NOTHING;
    return php_read_functions(memory, work, ret_stack->frames, ret_stack->count) ? INTERPRETED_READ : INTERPRETED_TORN;
}

struct interpreter_chain php_chain(const struct interpreter_state *state)
{
    return (struct interpreter_chain){.state_size = sizeof(uint64_t),
                                      .frame_size = PHP_FRAME_BYTES,
                                      .frame_previous = PHP_FRAME_PREVIOUS,
                                      .frame_code = PHP_FRAME_FUNCTION,
                                      .code_size = PHP_FUNCTION_BYTES,
                                      .code_name = PHP_FUNCTION_NAME,
                                      .name_size = PHP_STRING_HASH + sizeof(uint64_t)};
}
