/* Copies the chain of frames by which an interpreter runs the functions of a program, as struct interpreter_chain
 * describes it: a thread that is interrupted reads itself, so that nothing changes meanwhile. User space reads the copy
 * as it would read the memory. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_RECORDER_BPF_FUNCTION_COPY_BPF_H
#define OFFBEAT_RECORDER_BPF_FUNCTION_COPY_BPF_H

#include "recorder/bpf/bpf_layout.h"
#include "recorder/bpf/kernel.bpf.h"

struct {
    __uint(type, BPF_MAP_TYPE_HASH);
    __uint(max_entries, BPF_INTERPRETED_MAX);
    __type(key, uint32_t); /* number of the thread in the namespace of user space */
    __type(value, struct bpf_interpreted_thread);
} interpreted_threads SEC(".maps");

/* Memory for copies, one for each processor: too large for a per-CPU map. The number is set at load. */
struct {
    __uint(type, BPF_MAP_TYPE_ARRAY);
    __uint(max_entries, 1);
    __type(key, uint32_t);
    __type(value, struct bpf_functions);
} function_copies SEC(".maps");

struct function_walk {
    struct bpf_functions *copy;
    const struct bpf_interpreted_thread *thread;
    uint64_t record; /* record of the next frame, if that is the first one in it; else 0 */
    uint64_t frame;  /* address of the next frame */
    uint64_t record_previous;
    uint64_t end; /* end of the array of frames; 0: they are linked */
};

/* Copies SIZE bytes at ADDRESS of the program to BYTES, which has room for MAX. */
static __always_inline bool copy_user(void *bytes, uint32_t size, uint32_t max, uint64_t address)
{
    if (size > max) return false;
    return bpf_probe_read_user(bytes, size, (const void *)address) == 0;
}

/* Returns the word at OFFSET of BYTES, whose size is SIZE. */
static __always_inline uint64_t copied_word(const uint8_t *bytes, uint32_t offset, uint32_t size)
{
    uint64_t word = 0;
    if (offset <= size - sizeof(word)) bpf_probe_read_kernel(&word, sizeof(word), bytes + offset);
    return word;
}

/* Copies the record at RECORD, and makes its frame the next one. */
static __always_inline bool begin_record(struct function_walk *walk, struct bpf_function *into, uint64_t record)
{
    const struct interpreter_chain *chain = &walk->thread->chain;
    into->record = record;
    if (!copy_user(into->record_bytes, chain->record_size, BPF_RECORD_BYTES, record)) return false;
    walk->frame = copied_word(into->record_bytes, chain->record_frame, BPF_RECORD_BYTES);
    walk->record_previous = copied_word(into->record_bytes, chain->record_previous, BPF_RECORD_BYTES);
    if (chain->frame_is_next)
        walk->end = copied_word(into->record_bytes, chain->record_stack, BPF_RECORD_BYTES) +
                    copied_word(into->record_bytes, chain->record_words, BPF_RECORD_BYTES) * sizeof(uint64_t);
    return true;
}

/* Copies the head of the string of the file of the code in INTO, and the end of its text. */
static __always_inline void copy_file(struct bpf_function *into, const struct interpreter_chain *chain)
{
    enum { KIND_SHIFT = 2, KIND_MASK = 7, IS_ASCII = 1 << 6 };
    uint64_t file = copied_word(into->code_bytes, chain->code_file, BPF_CODE_BYTES);
    uint64_t head = file + chain->file_head;
    if (!copy_user(into->file_bytes, BPF_FILE_BYTES, BPF_FILE_BYTES, head)) return;
    into->file = head;
    uint64_t state = copied_word(into->file_bytes, chain->file_state, BPF_FILE_BYTES);
    uint64_t size = copied_word(into->file_bytes, 0, BPF_FILE_BYTES) * (state >> KIND_SHIFT & KIND_MASK);
    uint64_t kept = size < BPF_FILE_END_BYTES ? size : BPF_FILE_END_BYTES;
    uint64_t end = file + (state & IS_ASCII ? chain->file_ascii : chain->file_other) + size - kept;
    if (copy_user(into->file_end_bytes, (uint32_t)kept, BPF_FILE_END_BYTES, end)) into->file_end = end;
}

/* Copies the code of the frame in INTO, with its name. */
static __always_inline void copy_code(struct bpf_function *into, const struct interpreter_chain *chain)
{
    uint64_t code = copied_word(into->frame_bytes, chain->frame_code, BPF_FRAME_BYTES) & ~(uint64_t)7;
    if (chain->frame_environment) {
        uint64_t end = copied_word(into->frame_bytes, chain->frame_environment, BPF_FRAME_BYTES) + sizeof(uint64_t);
        uint64_t start = end - BPF_ENVIRONMENT_BYTES;
        if (!copy_user(into->environment_bytes, BPF_ENVIRONMENT_BYTES, BPF_ENVIRONMENT_BYTES, start)) return;
        into->environment = start;
        if (code == 0) code = copied_word(into->environment_bytes, 0, BPF_ENVIRONMENT_BYTES);
    }
    if (copy_user(into->code_bytes, chain->code_size, BPF_CODE_BYTES, code)) into->code = code;
    uint64_t name = copied_word(into->code_bytes, chain->code_name, BPF_CODE_BYTES);
    if (into->code && copy_user(into->name_bytes, chain->name_size, BPF_NAME_BYTES, name)) into->name = name;
    if (chain->code_file && into->code) copy_file(into, chain);
    if (chain->text_size == 0 || into->name == 0) return;
    uint64_t text = copied_word(into->name_bytes, chain->name_text, BPF_NAME_BYTES);
    if (copy_user(into->text_bytes, chain->text_size, BPF_TEXT_BYTES, text)) into->text = text;
}

/* Copies the next frame with its code. Returns 1 at the end of the chain: the callback of bpf_loop. */
static long copy_function(uint32_t index, void *data)
{
    struct function_walk *walk = data;
    const struct interpreter_chain *chain = &walk->thread->chain;
    struct bpf_function *into = &walk->copy->functions[index & (BPF_FUNCTIONS_MAX - 1)];
    into->record = into->frame = into->code = into->name = into->text = into->environment = 0;
    into->file = into->file_end = 0;
    if (walk->record != 0 && !begin_record(walk, into, walk->record)) return 1;
    walk->record = 0;
    into->frame = walk->frame;
    if (walk->frame == 0 || !copy_user(into->frame_bytes, chain->frame_size, BPF_FRAME_BYTES, walk->frame)) {
        into->frame = 0;
        walk->copy->count = index + 1;
        return 1;
    }
    walk->copy->count = index + 1;
    copy_code(into, chain);
    if (chain->frame_is_next) {
        walk->frame += chain->frame_size;
        return walk->frame >= walk->end;
    }
    walk->frame = copied_word(into->frame_bytes, chain->frame_previous, BPF_FRAME_BYTES);
    uint32_t ends_at = chain->frame_ends_record;
    uint8_t ends = 0;
    if (ends_at != 0 && ends_at < BPF_FRAME_BYTES)
        bpf_probe_read_kernel(&ends, sizeof(ends), into->frame_bytes + ends_at);
    if (ends == 1) walk->record = walk->record_previous;
    return walk->frame == 0 && walk->record == 0;
}

/* Copies the functions of THREAD, the running one, to COPY. Returns the size of what is filled; 0: there is nothing. */
static __always_inline uint32_t copy_functions(struct bpf_functions *copy, const struct bpf_interpreted_thread *thread)
{
    struct function_walk walk = {.copy = copy, .thread = thread};
    copy->record = BPF_FUNCTIONS;
    copy->state = thread->state;
    copy->chain = thread->chain;
    copy->count = 0;
    if (!copy_user(copy->state_bytes, thread->chain.state_size, BPF_STATE_BYTES, thread->state)) return 0;
    uint64_t start = copied_word(copy->state_bytes, thread->chain.start, BPF_STATE_BYTES);
    if (start == 0) return 0;
    if (thread->chain.record_size > 0)
        walk.record = start;
    else
        walk.frame = start;
    bpf_loop(BPF_FUNCTIONS_MAX, copy_function, &walk, 0);
    uint32_t count = copy->count < BPF_FUNCTIONS_MAX ? copy->count : BPF_FUNCTIONS_MAX;
    return offsetof(struct bpf_functions, functions) + count * sizeof(copy->functions[0]);
}

#endif
