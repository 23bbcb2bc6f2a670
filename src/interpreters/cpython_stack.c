/* Reads the stack of a Python thread. The chain of frames lies in the chunks of the thread's data stack, except frames
 * of generators, which lie in their objects, and entry frames, on the C stack. Memory is copied block by block, so that
 * nothing is loaded from an address that the process could unmap.
 *
 * Runs in the signal handler: no libc, no locks, little stack. SPDX-License-Identifier: MIT */
#include "interpreters/cpython_private.h"

#include "interpreters/block_view.h"

enum { TYPE = 8, STRING_LENGTH = 16, STRING_HASH = 24, STRING_STATE = 32 }; /* offsets in an object and in a string */
enum { OWNER_ENTRY = 3, TAG_MASK = 7, MINOR_WITH_CLEANUP_FRAMES = 13 };

/* --- Keys --------------------------------------------------------------------------------------------------------- */

/* A key is of a code object from its type on, with a version that no other one has. Where code objects have none, or it
 * is 0 because the interpreter has run out of them, it is also of the hash of the name; and where they have none, of
 * the head of the string of the file from its length on, and the end of its text. */
enum { FILE_HEAD_BYTES = 24, FILE_END_BYTES = 32 };

/* Returns the end of the part of a code object that a key is of. */
static uint32_t code_end(const struct cpython_offsets *offsets)
{
    uint32_t end = offsets->code.line_table;
    if (end < offsets->code.qualified_name) end = offsets->code.qualified_name;
    return end + (uint32_t)sizeof(uint64_t);
}

static uint64_t key_of(const struct cpython_offsets *offsets, const uint8_t *code, uint64_t name_hash)
{
    uint64_t key = mix_key(name_hash, word_at(code, offsets->code.name - TYPE));
    key = mix_key(key, word_at(code, offsets->code.qualified_name - TYPE));
    key = mix_key(key, word_at(code, offsets->code.file - TYPE));
    key = mix_key(key, word_at(code, offsets->code.line_table - TYPE));
    key = mix_key(key, word_at(code, offsets->code.first_line - TYPE) & UINT32_MAX);
    if (offsets->code.version) return mix_key(key, word_at(code, offsets->code.version - TYPE) & UINT32_MAX);
    const uint8_t *head = code + code_end(offsets) - TYPE, *end = head + FILE_HEAD_BYTES;
    key = mix_key(key, word_at(head, 0));
    for (uint32_t at = 0; at < FILE_END_BYTES; at += sizeof(uint64_t)) key = mix_key(key, word_at(end, at));
    return key;
}

/* Adds the end of the text of the file of CODE to PIECES. */
static void add_file_end(const struct cpython_offsets *offsets, uint8_t *code, struct memory_pieces *pieces)
{
    uint8_t *head = code + code_end(offsets) - TYPE, *end = head + FILE_HEAD_BYTES;
    uint32_t state = (uint32_t)word_at(head, STRING_STATE - STRING_LENGTH), width = cpython_string_width(state);
    uint64_t size = word_at(head, 0) * width;
    uint64_t kept = size < FILE_END_BYTES ? size : FILE_END_BYTES;
    for (uint32_t i = 0; i < FILE_END_BYTES; i++) end[i] = 0;
    if (kept > 0)
        memory_pieces_add(pieces,
                          word_at(code, offsets->code.file - TYPE) + cpython_string_text(offsets, state) + size - kept,
                          end, kept);
}

bool cpython_read_keys(const struct interpreter_state *state, const struct process_memory *memory,
                       struct interpreted_work *work, struct interpreted_frame *frames, size_t count)
{
    _Static_assert(2 * (int)INTERPRETED_CODES <= (int)MEMORY_PIECES_MAX, "a frame has two pieces");
    const struct cpython_offsets *offsets = state->offsets;
    bool has_version = offsets->code.version != 0;
    size_t size = code_end(offsets) - TYPE;
    if (size + (has_version ? 0 : FILE_HEAD_BYTES + FILE_END_BYTES) > INTERPRETED_CODE_BYTES) return false;
    struct memory_pieces *pieces = &work->pieces;
    for (size_t done = 0; done < count;) {
        size_t part = count - done < INTERPRETED_CODES ? count - done : INTERPRETED_CODES;
        pieces->count = 0;
        for (size_t i = 0; i < part; i++) memory_pieces_add(pieces, frames[done + i].code + TYPE, work->codes[i], size);
        if (!memory->gather(memory, pieces)) return false;
        pieces->count = 0;
        for (size_t i = 0; i < part; i++) {
            if (word_at(work->codes[i], 0) != state->code_type) return false;
            uint64_t name = word_at(work->codes[i], offsets->code.name - TYPE);
            work->hashes[i] = 0;
            if (has_version && (uint32_t)word_at(work->codes[i], offsets->code.version - TYPE) != 0) continue;
            uint64_t file = word_at(work->codes[i], offsets->code.file - TYPE);
            memory_pieces_add(pieces, name + STRING_HASH, &work->hashes[i], sizeof(work->hashes[i]));
            if (!has_version) memory_pieces_add(pieces, file + STRING_LENGTH, work->codes[i] + size, FILE_HEAD_BYTES);
        }
        if (pieces->count > 0 && !memory->gather(memory, pieces)) return false;
        pieces->count = 0;
        for (size_t i = 0; i < part && !has_version; i++) add_file_end(offsets, work->codes[i], pieces);
        if (pieces->count > 0 && !memory->gather(memory, pieces)) return false;
        for (size_t i = 0; i < part; i++) frames[done + i].key = key_of(offsets, work->codes[i], work->hashes[i]);
        done += part;
    }
    return true;
}

/* --- The chain ---------------------------------------------------------------------------------------------------- */

/* The state of a walk. */
struct walk {
    const struct interpreter_state *state;
    const struct cpython_offsets *offsets;
    const struct process_memory *memory;
    struct interpreted_work *work;
    struct interpreted_stack *stack;
    uint64_t frame;   /* address of the next frame */
    uint64_t c_frame; /* 3.11: the record on the C stack that it belongs to */
};

/* Returns the size of the part of a record on the C stack that is read. */
static uint32_t record_size(const struct cpython_offsets *offsets)
{
    uint32_t last = offsets->c_frame.previous;
    if (last < offsets->c_frame.frame) last = offsets->c_frame.frame;
    return last + (uint32_t)sizeof(uint64_t);
}

/* Begins at the record on the C stack. The innermost one may not be complete yet, if the evaluation function has just
 * begun: then its frame is none that the previous record leads to. */
static bool begin_at_c_frame(struct walk *walk, uint64_t c_frame)
{
    const struct cpython_offsets *offsets = walk->offsets;
    const uint8_t *record = view_memory(walk->work, walk->memory, c_frame, record_size(offsets));
    if (!record) return false;
    walk->c_frame = c_frame;
    walk->frame = word_at(record, offsets->c_frame.frame);
    return true;
}

/* Goes to the record before that of WALK, whose frames end with one that returns to PREVIOUS. */
static bool step_c_frame(struct walk *walk, uint64_t previous)
{
    const struct cpython_offsets *offsets = walk->offsets;
    const uint8_t *record =
        view_memory(walk->work, walk->memory, walk->c_frame, offsets->c_frame.previous + sizeof(uint64_t));
    uint64_t before = record ? word_at(record, offsets->c_frame.previous) : 0;
    return before != 0 && begin_at_c_frame(walk, before) && walk->frame == previous;
}

static void add_frame(struct walk *walk, uint64_t code, uint64_t instruction)
{
    const struct interpreter_image *image = &walk->state->image;
    /* The interpreter has a frame of its own under a constructor, whose code is in its data. */
    bool is_cleanup = walk->state->minor >= MINOR_WITH_CLEANUP_FRAMES && code - image->start < image->size;
    struct interpreted_stack *stack = walk->stack;
    if (is_cleanup) return;
    if (stack->count == INTERPRETED_FRAMES_MAX) {
        stack->is_cut = true;
        return;
    }
    uint64_t start = code + walk->offsets->code.instructions;
    if (walk->offsets->frame.instruction_unit) /* -1: the frame has not begun */
        instruction = (int32_t)instruction > 0 ? (instruction & INT32_MAX) * walk->offsets->frame.instruction_unit : 0;
    else
        instruction = instruction > start ? instruction - start : 0;
    stack->frames[stack->count++] = (struct interpreted_frame){
        .code = code, .instruction = instruction, .is_entry = walk->offsets->frames == CPYTHON_FRAME_OBJECTS};
}

/* Notes that the evaluation function whose native frame holds RECORD was called for the frame that was added last. */
static void note_record(struct walk *walk, uint64_t record)
{
    struct interpreted_stack *stack = walk->stack;
    if (stack->count > 0 && !stack->is_cut && stack->frames[stack->count - 1].record == 0)
        stack->frames[stack->count - 1].record = record;
}

static enum interpreted_result walk_chain(struct walk *walk)
{
    enum { STEPS_MAX = 4 * INTERPRETED_FRAMES_MAX };
    const struct cpython_offsets *offsets = walk->offsets;
    bool ends_at_entry = true;
    for (unsigned i = 0; walk->frame != 0; i++) {
        uint64_t address = walk->frame;
        const uint8_t *frame = view_memory(walk->work, walk->memory, address, offsets->frame.size);
        if (!frame && walk->memory->is_part && walk->stack->count > 0) {
            walk->stack->is_cut = true;
            return INTERPRETED_READ;
        }
        if (!frame || i == STEPS_MAX) return INTERPRETED_TORN;
        uint64_t previous = word_at(frame, offsets->frame.previous);
        uint64_t code = word_at(frame, offsets->frame.code) & ~(uint64_t)TAG_MASK;
        uint64_t instruction = word_at(frame, offsets->frame.instruction);
        bool is_entry = offsets->frames == CPYTHON_ENTRY_FRAMES && frame[offsets->frame.owner] >= OWNER_ENTRY;
        bool ends_record = offsets->frames == CPYTHON_C_FRAMES && frame[offsets->frame.is_entry] == 1;
        ends_at_entry = is_entry || ends_record || offsets->frames == CPYTHON_FRAME_OBJECTS;
        walk->frame = previous;
        if (is_entry)
            note_record(walk, address);
        else
            add_frame(walk, code, instruction);
        if (walk->stack->is_cut) return INTERPRETED_READ;
        if (ends_record) note_record(walk, walk->c_frame);
        if (ends_record && !step_c_frame(walk, previous)) return INTERPRETED_TORN;
    }
    return ends_at_entry ? INTERPRETED_READ : INTERPRETED_TORN;
}

static enum interpreted_result read_chain(struct walk *walk)
{
    enum interpreted_result result = walk_chain(walk);
    if (result != INTERPRETED_READ) return result;
    if (walk->stack->count == 0) return INTERPRETED_NOTHING;
    bool has_keys = cpython_read_keys(walk->state, walk->memory, walk->work, walk->stack->frames, walk->stack->count);
    return has_keys ? INTERPRETED_READ : INTERPRETED_TORN;
}

enum interpreted_result cpython_read(const struct interpreter_state *state, struct interpreted_thread thread,
                                     const struct process_memory *memory, struct interpreted_work *work,
                                     struct interpreted_stack *ret_stack)
{
    const struct cpython_offsets *offsets = state->offsets;
    struct walk walk = {.state = state, .offsets = offsets, .memory = memory, .work = work, .stack = ret_stack};
    ret_stack->count = 0;
    ret_stack->is_cut = false;
    view_begin(work);
    const uint8_t *description = view_memory(work, memory, thread.state, offsets->thread.size);
    if (!description || word_at(description, offsets->thread.identity) != thread.identity) return INTERPRETED_GONE;
    uint64_t start = word_at(description, offsets->thread.frame);
    if (offsets->c_frame.previous == 0) {
        walk.frame = start;
        return read_chain(&walk);
    }
    if (!begin_at_c_frame(&walk, start)) return INTERPRETED_TORN;
    enum interpreted_result result = read_chain(&walk);
    if (result != INTERPRETED_TORN) return result;
    const uint8_t *record = view_memory(work, memory, start, offsets->c_frame.previous + sizeof(uint64_t));
    uint64_t before = record ? word_at(record, offsets->c_frame.previous) : 0;
    ret_stack->count = 0;
    ret_stack->is_cut = false;
    return before != 0 && begin_at_c_frame(&walk, before) ? read_chain(&walk) : INTERPRETED_TORN;
}

struct interpreter_chain cpython_chain(const struct interpreter_state *state)
{
    const struct cpython_offsets *offsets = state->offsets;
    bool has_record = offsets->c_frame.previous != 0;
    return (struct interpreter_chain){.state_size = offsets->thread.size,
                                      .start = offsets->thread.frame,
                                      .record_size = has_record ? record_size(offsets) : 0,
                                      .record_frame = offsets->c_frame.frame,
                                      .record_previous = offsets->c_frame.previous,
                                      .frame_size = offsets->frame.size,
                                      .frame_previous = offsets->frame.previous,
                                      .frame_code = offsets->frame.code,
                                      .frame_ends_record = offsets->frame.is_entry,
                                      .code_size = code_end(offsets),
                                      .code_name = offsets->code.name,
                                      .name_size = STRING_HASH + sizeof(uint64_t),
                                      .code_file = offsets->code.version ? 0 : offsets->code.file,
                                      .file_head = STRING_LENGTH,
                                      .file_state = STRING_STATE - STRING_LENGTH,
                                      .file_ascii = offsets->string.ascii,
                                      .file_other = offsets->string.other};
}
