/* Reads the stack of a Ruby thread: an array of frames at the end of the virtual machine's own stack, the innermost
 * first. Flags of a frame, and the method of one that runs C, are in its environment, elsewhere on that stack.
 *
 * Runs in the signal handler: no libc, no locks, little stack. SPDX-License-Identifier: MIT */
#include "interpreters/ruby_private.h"

#include "interpreters/block_view.h"

/* Places of what belongs to one frame in the working memory. */
enum {
    AT_ENVIRONMENT = 0,
    AT_CODE = AT_ENVIRONMENT + RUBY_ENVIRONMENT_BYTES,
    AT_BODY = AT_CODE + RUBY_CODE_BYTES,
    AT_LABEL = AT_BODY + RUBY_BODY_BYTES + 4,
    AT_END = AT_LABEL + RUBY_STRING_BYTES - RUBY_STRING_CONTENT,
    FRAMES_A_PART = 64,
};
_Static_assert((int)AT_END <= (int)INTERPRETED_CODE_BYTES, "all of it has room");
_Static_assert((int)FRAMES_A_PART <= (int)INTERPRETED_CODES, "each frame of a part has room for its code");

/* --- Code --------------------------------------------------------------------------------------------------------- */

/* Adds pieces of SIZE bytes at the addresses at POINTER of each of COUNT frames, and reads them to TO. Frames that have
 * no body have none. */
static bool gather_next(const struct process_memory *memory, struct interpreted_work *work, size_t count,
                        unsigned pointer, unsigned skip, unsigned to, size_t size)
{
    struct memory_pieces *pieces = &work->pieces;
    pieces->count = 0;
    for (size_t i = 0; i < count; i++) {
        uint8_t *bytes = work->codes[i];
        if (ruby_is_internal(word_at(bytes, AT_CODE), RUBY_CODE))
            memory_pieces_add(pieces, word_at(bytes, pointer) + skip, bytes + to, size);
    }
    return pieces->count == 0 || memory->gather(memory, pieces);
}

/* Computes the key of the frame that BYTES describe, and the place of its instruction: bytes from the first one. */
static void take_code(struct interpreted_frame *frame, const uint8_t *bytes)
{
    if (!ruby_is_internal(word_at(bytes, AT_CODE), RUBY_CODE)) {
        frame->instruction = 0;
        frame->key =
            mix_key(word_at(bytes, AT_CODE + RUBY_METHOD_IDENTIFIER), word_at(bytes, AT_CODE + RUBY_METHOD_OWNER));
        return;
    }
    uint64_t first = word_at(bytes, AT_BODY + RUBY_BODY_INSTRUCTIONS);
    uint64_t size = (word_at(bytes, AT_BODY) >> 8 * RUBY_BODY_SIZE) * sizeof(uint64_t);
    uint64_t key = mix_key(first, word_at(bytes, AT_BODY + RUBY_BODY_PATH));
    key = mix_key(key, word_at(bytes, AT_BODY + RUBY_BODY_LABEL));
    key = mix_key(key, word_at(bytes, AT_BODY + RUBY_BODY_FIRST_LINE) & UINT32_MAX);
    for (unsigned i = AT_LABEL; i < AT_END; i += sizeof(uint64_t)) key = mix_key(key, word_at(bytes, i));
    frame->key = key;
    frame->instruction = frame->instruction - first <= size ? frame->instruction - first : 0;
}

bool ruby_read_code(const struct process_memory *memory, struct interpreted_work *work,
                    struct interpreted_frame *frames, size_t count)
{
    struct memory_pieces *pieces = &work->pieces;
    pieces->count = 0;
    for (size_t i = 0; i < count; i++)
        memory_pieces_add(pieces, frames[i].code, work->codes[i] + AT_CODE, RUBY_CODE_BYTES);
    if (count == 0) return true;
    if (!memory->gather(memory, pieces)) return false;
    for (size_t i = 0; i < count; i++) {
        uint64_t flags = word_at(work->codes[i], AT_CODE);
        if (!ruby_is_internal(flags, RUBY_CODE) && !ruby_is_internal(flags, RUBY_METHOD_ENTRY)) return false;
    }
    if (!gather_next(memory, work, count, AT_CODE + RUBY_CODE_BODY, 0, AT_BODY, RUBY_BODY_BYTES) ||
        !gather_next(memory, work, count, AT_BODY + RUBY_BODY_LABEL, RUBY_STRING_CONTENT, AT_LABEL, AT_END - AT_LABEL))
        return false;
    for (size_t i = 0; i < count; i++) take_code(&frames[i], work->codes[i]);
    return true;
}

/* --- The array ---------------------------------------------------------------------------------------------------- */

/* Adds the function that FRAME runs to STACK, if it runs one. FLAGS and METHOD are from its environment. */
static void add_frame(struct interpreted_stack *stack, const uint8_t *frame, uint64_t flags, uint64_t method)
{
    enum { FINISHES = 0x20, RUNS_C = 0x80, KIND_MASK = 0x7fff0001, KIND_OF_C = 0x55550001, KIND_OF_NONE = 0x79990001 };
    uint64_t instruction = word_at(frame, RUBY_FRAME_INSTRUCTION), code = word_at(frame, RUBY_FRAME_CODE);
    bool is_method = (flags & KIND_MASK) == KIND_OF_C, is_code = !is_method && code != 0 && instruction != 0;
    if ((flags & KIND_MASK) == KIND_OF_NONE) return;
    if (!is_method && (!is_code || (flags & RUNS_C))) return;
    stack->frames[stack->count++] = (struct interpreted_frame){
        .code = is_code ? code : method, .instruction = instruction, .is_entry = is_code && (flags & FINISHES) != 0};
}

/* Reads COUNT frames at ADDRESS. Returns false if they are none. */
static bool read_part(uint64_t address, size_t count, size_t frame_size, const struct process_memory *memory,
                      struct interpreted_work *work, struct interpreted_stack *stack)
{
    uint8_t *bytes = work->blocks[0].bytes;
    struct memory_pieces *pieces = &work->pieces;
    uint32_t first = stack->count;
    if (!process_memory_read(memory, pieces, address, bytes, count * frame_size)) return false;
    pieces->count = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t environment = word_at(bytes + i * frame_size, RUBY_FRAME_ENVIRONMENT);
        memory_pieces_add(pieces, environment + (uint64_t)RUBY_ENVIRONMENT_METHOD, work->codes[i],
                          RUBY_ENVIRONMENT_BYTES);
    }
    if (!memory->gather(memory, pieces)) return false;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *environment = work->codes[i];
        stack->is_cut = stack->count == INTERPRETED_FRAMES_MAX;
        if (stack->is_cut) break;
        add_frame(stack, bytes + i * frame_size, word_at(environment, 16), word_at(environment, 0));
    }
    return ruby_read_code(memory, work, stack->frames + first, stack->count - first);
}

enum interpreted_result ruby_read(const struct interpreter_state *state, struct interpreted_thread thread,
                                  const struct process_memory *memory, struct interpreted_work *work,
                                  struct interpreted_stack *ret_stack)
{
    const struct ruby_offsets *offsets = state->ruby;
    uint8_t bytes[RUBY_CONTEXT_BYTES];
    ret_stack->count = 0;
    ret_stack->is_cut = false;
    uint64_t object = 0, context = 0;
    work->pieces.count = 0;
    memory_pieces_add(&work->pieces, thread.state + RUBY_THREAD_OBJECT, &object, sizeof(object));
    memory_pieces_add(&work->pieces, thread.state + offsets->thread.context, &context, sizeof(context));
    if (!memory->gather(memory, &work->pieces) || object != thread.identity) return INTERPRETED_GONE;
    if (!process_memory_read(memory, &work->pieces, context, bytes, sizeof(bytes))) return INTERPRETED_TORN;
    uint64_t stack = word_at(bytes, RUBY_CONTEXT_STACK), words = word_at(bytes, RUBY_CONTEXT_WORDS);
    uint64_t frame = word_at(bytes, RUBY_CONTEXT_FRAME), size = words * sizeof(uint64_t);
    if (words == 0) return INTERPRETED_NOTHING;
    if (words > UINT32_MAX || frame - stack > size || (stack + size - frame) % offsets->frame_size != 0)
        return INTERPRETED_TORN;
    for (uint64_t left = (stack + size - frame) / offsets->frame_size; left > 0 && !ret_stack->is_cut;) {
        uint64_t count = left < FRAMES_A_PART ? left : FRAMES_A_PART;
        if (!read_part(frame, (size_t)count, offsets->frame_size, memory, work, ret_stack)) {
            ret_stack->is_cut = memory->is_part && ret_stack->count > 0;
            return ret_stack->is_cut ? INTERPRETED_READ : INTERPRETED_TORN;
        }
        frame += count * offsets->frame_size;
        left -= count;
    }
    return ret_stack->count > 0 ? INTERPRETED_READ : INTERPRETED_NOTHING;
}

struct interpreter_chain ruby_chain(const struct interpreter_state *state)
{
    return (struct interpreter_chain){.state_size = state->ruby->thread.context + sizeof(uint64_t),
                                      .start = state->ruby->thread.context,
                                      .record_size = RUBY_CONTEXT_BYTES,
                                      .record_frame = RUBY_CONTEXT_FRAME,
                                      .record_stack = RUBY_CONTEXT_STACK,
                                      .record_words = RUBY_CONTEXT_WORDS,
                                      .frame_size = state->ruby->frame_size,
                                      .frame_is_next = true,
                                      .frame_code = RUBY_FRAME_CODE,
                                      .frame_environment = RUBY_FRAME_ENVIRONMENT,
                                      .code_size = RUBY_CODE_BYTES,
                                      .code_name = RUBY_CODE_BODY,
                                      .name_size = RUBY_BODY_BYTES,
                                      .name_text = RUBY_BODY_LABEL,
                                      .text_size = RUBY_STRING_BYTES};
}
