/* Finds Ruby in a process, and its threads. The numbers are from the header that 3.1 installs for its compiler, and
 * from the declarations of the other versions. SPDX-License-Identifier: MIT */
#include "interpreters/ruby_private.h"

#include "interpreters/block_view.h"
#include "interpreters/dynamic_symbols.h"
#include "interpreters/thread_number.h"

/* --- Versions ----------------------------------------------------------------------------------------------------- */

static const struct ruby_offsets known[] = {
    {.major = 2,
     .minor = 7,
     .vm_threads = 312,
     .thread = {.vm = 24, .context = 32, .pthread = 72},
     .frame_size = 56,
     .lines = {.lines = 120, .count = 136, .index = 144},
     .line_size = 8,
     .last_operator = 168,
     .line_bits = 1},
    {.major = 3,
     .minor = 0,
     .vm_threads = 8,
     .has_ractors = true,
     .thread = {.vm = 32, .context = 40, .pthread = 80},
     .frame_size = 56,
     .lines = {.lines = 120, .count = 136, .index = 144},
     .line_size = 8,
     .last_operator = 168,
     .line_bits = 1},
    {.major = 3,
     .minor = 1,
     .vm_threads = 8,
     .has_ractors = true,
     .thread = {.vm = 32, .context = 40, .pthread = 80},
     .frame_size = 64,
     .lines = {.lines = 120, .count = 136, .index = 144},
     .line_size = 12,
     .last_operator = 169,
     .line_bits = 1},
    {.major = 3,
     .minor = 2,
     .vm_threads = 8,
     .has_ractors = true,
     .thread = {.vm = 32, .context = 48, .native = 40, .pthread = 8},
     .frame_size = 64,
     .lines = {.lines = 112, .count = 128, .index = 136},
     .line_size = 12,
     .last_operator = 169,
     .short_has_length = true},
};

const struct ruby_offsets *ruby_offsets_of(uint32_t major, uint32_t minor)
{
    for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (known[i].major == major && known[i].minor == minor) return &known[i];
    }
    return NULL;
}

/* Reads "3.1.2" at ADDRESS. */
static bool read_version(uint64_t address, const struct process_memory *memory, struct memory_pieces *pieces,
                         struct interpreter_state *state)
{
    enum { VERSION_BYTES = 6 }; /* versions with more digits are none of these */
    char text[VERSION_BYTES];
    if (!process_memory_read(memory, pieces, address, text, sizeof(text))) return false;
    uint32_t *numbers[] = {&state->major, &state->minor, &state->patch};
    for (size_t i = 0; i < sizeof(text); i += 2) {
        if (text[i] < '0' || text[i] > '9') return false;
        *numbers[i / 2] = (uint32_t)(text[i] - '0');
    }
    return text[1] == '.' && text[3] == '.';
}

/* --- Threads ------------------------------------------------------------------------------------------------------ */

enum { RACTOR_NODE = 568, RACTOR_THREADS = 304, THREAD_NODE = 0, LIST_MAX = 1 << 16 };

static bool read_word(const struct process_memory *memory, struct memory_pieces *pieces, uint64_t address,
                      uint64_t *ret_word)
{
    return process_memory_read(memory, pieces, address, ret_word, sizeof(*ret_word));
}

/* The search for threads. */
struct search {
    const struct interpreter_state *state;
    const struct process_memory *memory;
    struct memory_pieces *pieces;
    uint64_t vm;
    struct interpreted_thread *threads;
    int *tids;
    size_t count, max;
};

/* Adds THREAD. Returns false if it is none. */
static bool add_thread(struct search *search, uint64_t thread)
{
    const struct ruby_offsets *offsets = search->state->ruby;
    uint64_t vm = 0, object = 0, pthread = 0, native = thread;
    if (!read_word(search->memory, search->pieces, thread + offsets->thread.vm, &vm) || vm != search->vm) return false;
    if (!read_word(search->memory, search->pieces, thread + RUBY_THREAD_OBJECT, &object)) return false;
    if (offsets->thread.native && !read_word(search->memory, search->pieces, thread + offsets->thread.native, &native))
        return false;
    if (native != 0 && !read_word(search->memory, search->pieces, native + offsets->thread.pthread, &pthread))
        return false;
    if (pthread == 0) return true; /* it has not begun */
    search->threads[search->count] = (struct interpreted_thread){.state = thread, .identity = object};
    search->tids[search->count++] = thread_number(pthread, search->memory, search->pieces);
    return true;
}

/* Adds the threads of the list at HEAD. Returns false if that is none. */
static bool add_threads(struct search *search, uint64_t head)
{
    uint64_t node = 0;
    if (!read_word(search->memory, search->pieces, head, &node)) return false;
    for (unsigned i = 0; node != head && i < LIST_MAX && search->count < search->max; i++) {
        if (!add_thread(search, node - THREAD_NODE)) return false;
        if (!read_word(search->memory, search->pieces, node, &node)) return false;
    }
    return true;
}

static bool search_threads(struct search *search)
{
    const struct ruby_offsets *offsets = search->state->ruby;
    uint64_t head = 0, node = 0;
    if (!read_word(search->memory, search->pieces, search->state->root, &search->vm) || search->vm == 0) return false;
    head = search->vm + offsets->vm_threads;
    if (!offsets->has_ractors) return add_threads(search, head);
    if (!read_word(search->memory, search->pieces, head, &node)) return false;
    for (unsigned i = 0; node != head && i < LIST_MAX; i++) {
        if (!add_threads(search, node - RACTOR_NODE + RACTOR_THREADS)) return false;
        if (!read_word(search->memory, search->pieces, node, &node)) return false;
    }
    return true;
}

static size_t list_threads(const struct interpreter_state *state, const struct process_memory *memory,
                           struct interpreted_work *work, struct interpreted_thread *ret_threads, int *ret_tids,
                           size_t max)
{
    struct search search = {.state = state,
                            .memory = memory,
                            .pieces = &work->pieces,
                            .threads = ret_threads,
                            .tids = ret_tids,
                            .max = max};
    (void)search_threads(&search); /* the list changes meanwhile: what was found is right */
    return search.count;
}

/* --- The interpreter ---------------------------------------------------------------------------------------------- */

static enum interpreter_attached attach(const struct interpreter_image *image, const struct process_memory *memory,
                                        struct interpreted_work *work, struct interpreter_state *ret_state)
{
    struct dynamic_symbols symbols;
    struct memory_range version, vm, execute, object;
    struct memory_pieces *pieces = &work->pieces;
    uint64_t has_objects = 0;
    if (!dynamic_symbols_open(image, memory, pieces, &symbols) ||
        !dynamic_symbols_find(&symbols, memory, pieces, "ruby_version", &version) ||
        !dynamic_symbols_find(&symbols, memory, pieces, "rb_cObject", &object))
        return INTERPRETER_ABSENT;
    *ret_state = (struct interpreter_state){.interpreter = &ruby, .image = *image};
    if (!read_version(version.address, memory, pieces, ret_state)) return INTERPRETER_UNKNOWN;
    ret_state->ruby = ruby_offsets_of(ret_state->major, ret_state->minor);
    if (!ret_state->ruby || !dynamic_symbols_find(&symbols, memory, pieces, "ruby_current_vm_ptr", &vm) ||
        !dynamic_symbols_find(&symbols, memory, pieces, "rb_vm_exec", &execute))
        return INTERPRETER_UNKNOWN;
    ret_state->root = vm.address;
    ret_state->evaluation = execute;
    if (!read_word(memory, pieces, object.address, &has_objects) || has_objects == 0) return INTERPRETER_LATER;
    struct interpreted_thread thread;
    int tid;
    struct search search = {
        .state = ret_state, .memory = memory, .pieces = pieces, .threads = &thread, .tids = &tid, .max = 1};
    if (!search_threads(&search)) return INTERPRETER_UNKNOWN;
    if (search.count == 0) return INTERPRETER_LATER;
    ret_state->names = ruby_find_names(image, memory, work);
    return INTERPRETER_ATTACHED;
}

const struct interpreter ruby = {
    .name = "Ruby",
    .platform = "ruby",
    .links_first = true,
    .attach = attach,
    .threads = list_threads,
    .read = ruby_read,
    .chain = ruby_chain,
    .place = ruby_place,
};
