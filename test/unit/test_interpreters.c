/* Stacks of interpreted programs from stored memory (keep_interpreted.c, sleeps.* in test/data/), without an
 * interpreter. SPDX-License-Identifier: MIT */
#include "stored_memory.h"
#include "test.h"

#include "base/slice.h"
#include "interpreters/cpython_offsets.h"
#include "interpreters/merged_stack.h"
#include "interpreters/recalled_memory.h"
#include "interpreters/thread_number.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static uint8_t file[STORED_BYTES_MAX];
static size_t file_size;
static struct stored_header header;
static struct stored_piece pieces[STORED_PIECES_MAX];
static uint8_t *piece_bytes;

static bool gather(const struct process_memory *memory, const struct memory_pieces *wanted)
{
    (void)memory;
    for (size_t i = 0; i < wanted->count; i++) {
        const struct memory_range *from = &wanted->from[i];
        size_t at = 0;
        while (at < header.piece_count &&
               (from->address < pieces[at].address || from->address - pieces[at].address > pieces[at].size ||
                from->size > pieces[at].size - (from->address - pieces[at].address)))
            at++;
        if (at == header.piece_count) return false;
        memcpy((void *)(uintptr_t)wanted->to[i].address,
               piece_bytes + pieces[at].offset + (from->address - pieces[at].address), from->size);
    }
    return true;
}

static const struct process_memory stored = {.gather = gather};

/* Reads the stored memory NAME, a language and a version. Returns the text at its end. */
static const char *load(const char *name)
{
    char path[512];
    (void)snprintf(path, sizeof(path), TEST_SOURCE_ROOT "/test/data/%s.memory", name);
    FILE *in = fopen(path, "rb");
    CHECK(in);
    file_size = fread(file, 1, sizeof(file) - 1, in);
    file[file_size] = '\0';
    (void)fclose(in);
    memcpy(&header, file, sizeof(header));
    CHECK(header.piece_count > 0 && header.piece_count <= STORED_PIECES_MAX);
    memcpy(pieces, file + sizeof(header), header.piece_count * sizeof(pieces[0]));
    piece_bytes = file + sizeof(header) + header.piece_count * sizeof(pieces[0]);
    const struct stored_piece *last = &pieces[header.piece_count - 1];
    return (const char *)piece_bytes + last->offset + last->size;
}

static enum interpreter_attached attach(struct interpreter_state *state)
{
    static struct interpreted_work work;
    *state = (struct interpreter_state){0};
    return interpreter_attach(&header.image, &stored, &work, state);
}

static char *stacks_of(const struct interpreter_state *state)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    write_stacks(out, state, &stored);
    (void)fclose(out);
    return text;
}

static const char *const versions[] = {"python/3.8",  "python/3.9",  "python/3.10", "python/3.11", "python/3.12",
                                       "python/3.13", "python/3.14", "ruby/2.7",    "ruby/3.1",    "php/8.2"};
enum { VERSIONS = sizeof(versions) / sizeof(versions[0]), PYTHONS = 7 };

TEST(a_stack_of_each_version_has_its_functions_and_lines)
{
    for (size_t i = 0; i < VERSIONS; i++) {
        struct interpreter_state state;
        const char *expected = load(versions[i]);
        CHECK_INT(attach(&state), INTERPRETER_ATTACHED);
        char *text = stacks_of(&state);
        CHECK_TEXT(text, expected);
        CHECK(strstr(text, "descend sleeps."));
        if (i >= PYTHONS) CHECK(strstr(text, "\nsleep :0 from 0\n"));
        if (i < PYTHONS) {
            CHECK(strstr(text, "réveil sleeps.py:7 from 6\n") && strstr(text, "key sleeps.py:23 from 21"));
            CHECK(strstr(text, "descend sleeps.py:28 from 27\n<module> sleeps.py:32 from "));
        }
        free(text);
    }
}

TEST(a_runtime_of_another_size_is_refused)
{
    CHECK(cpython_offsets_of(11, 166688));
    CHECK(!cpython_offsets_of(11, 166696));
    CHECK(!cpython_offsets_of(12, 166688));
    CHECK(!cpython_offsets_of(7, 1464));
    CHECK(!cpython_offsets_of(0, 0));
}

TEST(a_table_of_offsets_that_leave_their_structures_is_refused)
{
    enum { INTERPRETERS = 5, INTERPRETER_NEXT = 8, THREAD_NEXT = 21, FRAME_PREVIOUS = 29, CODE_FILE = 35, CODE_NAME };
    static const struct {
        unsigned word;
        uint64_t value;
    } wrong[] = {{INTERPRETERS, UINT64_MAX - 3},   {INTERPRETER_NEXT, UINT64_MAX - 3}, {THREAD_NEXT, UINT64_MAX - 3},
                 {FRAME_PREVIOUS, UINT64_MAX - 3}, {CODE_FILE, UINT64_MAX - 3},        {CODE_NAME, 0}};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct interpreter_state state;
        (void)load("python/3.13");
        uint8_t *table = memmem(piece_bytes, file_size - (size_t)(piece_bytes - file), "xdebugpy", 8);
        CHECK(table);
        memcpy(table + wrong[i].word * sizeof(uint64_t), &wrong[i].value, sizeof(uint64_t));
        CHECK_INT(attach(&state), INTERPRETER_UNKNOWN);
    }
}

static uint64_t random_state = 1;

static uint64_t random_number(void)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return random_state >> 33;
}

TEST(garbage_in_memory_ends_in_a_refusal_or_a_bounded_stack)
{
    const unsigned rounds = getenv("OFFBEAT_TEST_LONG") ? 40000 : 400;
    for (size_t i = 0; i < VERSIONS; i++) {
        struct interpreter_state state;
        for (unsigned round = 0; round < rounds; round++) {
            (void)load(versions[i]);
            size_t piece_size = file_size - (size_t)(piece_bytes - file);
            for (unsigned j = 0; j < 1u << round % 8; j++)
                piece_bytes[random_number() % piece_size] = (uint8_t)random_number();
            if (attach(&state) == INTERPRETER_ATTACHED) free(stacks_of(&state));
        }
    }
}

/* --- Keys, and what is read again ------------------------------------------------------------------------------- */

/* Writes WORD to each stored piece that has ADDRESS. */
static void poke(uint64_t address, uint64_t word)
{
    for (size_t i = 0; i < header.piece_count; i++) {
        uint64_t skipped = address - pieces[i].address;
        if (skipped < pieces[i].size && pieces[i].size - skipped >= sizeof(word))
            memcpy(piece_bytes + pieces[i].offset + skipped, &word, sizeof(word));
    }
}

static uint64_t peek(uint64_t address)
{
    static struct memory_pieces work;
    uint64_t word = 0;
    CHECK(process_memory_read(&stored, &work, address, &word, sizeof(word)));
    return word;
}

/* Reads the stack of the thread that was first of MEMORY's process. */
static const struct interpreted_stack *read_first(const struct interpreter_state *state,
                                                  const struct process_memory *memory)
{
    static struct interpreted_work work;
    static struct interpreted_stack stack;
    struct interpreted_thread threads[8];
    int tids[8];
    size_t count = state->interpreter->threads(state, &stored, &work, threads, tids, 8);
    CHECK(count > 0);
    CHECK_INT(state->interpreter->read(state, threads[count - 1], memory, &work, &stack), INTERPRETED_READ);
    CHECK(stack.count > 4);
    return &stack;
}

TEST(a_code_object_that_was_freed_has_no_place)
{
    static struct interpreted_work work;
    static struct interpreted_place place;
    static const uint64_t freed[] = {0, 0x7f0012345678, 0x7f0000000000}; /* a count, and pointers to a free block */
    for (size_t i = 0; i < PYTHONS; i++) {
        struct interpreter_state state;
        (void)load(versions[i]);
        CHECK_INT(attach(&state), INTERPRETER_ATTACHED);
        const struct interpreted_frame frame = read_first(&state, &stored)->frames[0];
        CHECK(state.interpreter->place(&state, &frame, &stored, &work, &place));
        for (size_t j = 0; j < sizeof(freed) / sizeof(freed[0]); j++) {
            poke(frame.code, freed[j]);
            CHECK(!state.interpreter->place(&state, &frame, &stored, &work, &place));
        }
    }
}

TEST(another_file_or_version_in_the_same_place_has_another_key)
{
    for (size_t i = 0; i < PYTHONS; i++) {
        struct interpreter_state state;
        (void)load(versions[i]);
        CHECK_INT(attach(&state), INTERPRETER_ATTACHED);
        const struct interpreted_frame frame = read_first(&state, &stored)->frames[2];
        uint32_t version = state.offsets->code.version;
        uint64_t text = peek(frame.code + state.offsets->code.file);
        uint64_t last = text + state.offsets->string.ascii + peek(text + 16) - sizeof(uint64_t);
        uint64_t changed = version ? frame.code + version : last;
        poke(changed, peek(changed) ^ 1);
        CHECK(read_first(&state, &stored)->frames[2].key != frame.key);
        poke(changed, peek(changed) ^ 1);
        CHECK_UINT(read_first(&state, &stored)->frames[2].key, frame.key);
    }
}

TEST(without_a_version_the_hash_of_the_name_is_in_the_key)
{
    for (size_t i = 0; i < PYTHONS; i++) {
        struct interpreter_state state;
        (void)load(versions[i]);
        CHECK_INT(attach(&state), INTERPRETER_ATTACHED);
        uint64_t code = read_first(&state, &stored)->frames[2].code;
        uint64_t hash = peek(code + state.offsets->code.name) + 24, version = code + state.offsets->code.version;
        if (version != code) poke(version, peek(version) & ~(uint64_t)UINT32_MAX);
        uint64_t key = read_first(&state, &stored)->frames[2].key;
        poke(hash, peek(hash) ^ 1);
        CHECK(read_first(&state, &stored)->frames[2].key != key);
    }
}

static unsigned gather_count;

static bool gather_counted(const struct process_memory *memory, const struct memory_pieces *wanted)
{
    gather_count++;
    for (size_t i = 1; i < wanted->count; i++)
        CHECK_UINT(wanted->to[i].address, wanted->to[i - 1].address + wanted->to[i - 1].size);
    return gather(memory, wanted);
}

TEST(a_stack_that_was_read_before_takes_one_call_to_one_place)
{
    static struct recalled_memory recalled;
    static const struct process_memory counted = {.gather = gather_counted};
    for (size_t i = 0; i < PYTHONS; i++) {
        struct interpreter_state state;
        struct recalled_parts parts = {0};
        struct interpreted_frame first = {0};
        (void)load(versions[i]);
        CHECK_INT(attach(&state), INTERPRETER_ATTACHED);
        for (unsigned round = 0; round < 3; round++) {
            gather_count = 0;
            const struct interpreted_frame found =
                read_first(&state, recalled_memory_begin(&recalled, &counted, &parts))->frames[1];
            recalled_memory_end(&recalled, &parts);
            CHECK(round == 0 || gather_count == 1);
            CHECK(round == 0 || memcmp(&first, &found, sizeof(first)) == 0);
            first = found;
        }
        parts.parts[parts.count / 2].address = 16; /* is gone */
        (void)read_first(&state, recalled_memory_begin(&recalled, &counted, &parts));
    }
}

/* --- Merging ------------------------------------------------------------------------------------------------------ */

enum { FIRST = 0x1000000, EVALUATION = 0x5000, LIBRARY = 0x9000, LIBC = 0xa000 };
static const struct native_view view = {.interpreter = {EVALUATION, 0x1000}, .libc = {LIBC, 0x1000}};

static size_t merge(const uint64_t *addresses, size_t count, const uint64_t *records, size_t record_count,
                    const struct native_view *shown, bool has_root, uint64_t *merged)
{
    static struct interpreted_stack stack;
    uint64_t stack_pointers[16];
    for (size_t i = 0; i < count; i++) stack_pointers[i] = 100 * i;
    stack.count = (uint32_t)record_count;
    for (size_t i = 0; i < record_count; i++)
        stack.frames[i] = (struct interpreted_frame){.record = records[i], .is_entry = true};
    const struct native_stack native = {addresses, stack_pointers, count, has_root};
    return merge_stacks(&native, &stack, shown, FIRST, merged, 16);
}

TEST(functions_stand_where_their_evaluation_is_and_libraries_between_them)
{
    const uint64_t addresses[] = {LIBC + 8, EVALUATION + 1, LIBRARY + 1, EVALUATION + 2, EVALUATION + 3, LIBC + 1};
    const uint64_t records[] = {0, 150, 0, 350};
    uint64_t merged[16];
    CHECK_UINT(merge(addresses, 6, records, 4, &view, true, merged), 6);
    const uint64_t expected[] = {LIBC + 8, FIRST, FIRST + 1, LIBRARY + 1, FIRST + 2, FIRST + 3};
    for (size_t i = 0; i < 6; i++) CHECK_UINT(merged[i], expected[i]);
}

TEST(a_program_that_embeds_the_interpreter_keeps_its_own_callers)
{
    const uint64_t addresses[] = {EVALUATION + 1, EVALUATION + 2, LIBRARY + 1, LIBC + 1};
    const uint64_t records[] = {50};
    uint64_t merged[16];
    CHECK_UINT(merge(addresses, 4, records, 1, &view, true, merged), 3);
    CHECK_UINT(merged[1], LIBRARY + 1);
    CHECK_UINT(merged[2], LIBC + 1);
}

TEST(native_frames_of_the_interpreter_are_shown_if_wanted)
{
    const uint64_t addresses[] = {EVALUATION + 1, EVALUATION + 2, LIBC + 1};
    const uint64_t records[] = {0, 120};
    const struct native_view all = {.interpreter = view.interpreter, .libc = view.libc, .shows_all = true};
    uint64_t merged[16];
    CHECK_UINT(merge(addresses, 3, records, 2, &all, true, merged), 5);
    const uint64_t expected[] = {EVALUATION + 1, FIRST, FIRST + 1, EVALUATION + 2, LIBC + 1};
    for (size_t i = 0; i < 5; i++) CHECK_UINT(merged[i], expected[i]);
}

TEST(a_record_in_no_native_frame_contradicts_a_whole_stack)
{
    const uint64_t addresses[] = {EVALUATION + 1, EVALUATION + 2};
    const uint64_t records[] = {50, 40};
    uint64_t merged[16];
    CHECK_UINT(merge(addresses, 2, records, 2, &view, true, merged), 0);
    CHECK_UINT(merge(addresses, 2, records, 2, &view, false, merged), 2);
}

TEST(without_records_each_function_has_a_native_frame_of_the_evaluation)
{
    const uint64_t addresses[] = {LIBC + 8, EVALUATION + 1, LIBRARY + 1, EVALUATION + 2, LIBC + 1};
    const uint64_t records[] = {0, 0, 0};
    const struct native_view old = {.interpreter = view.interpreter, .evaluation = {EVALUATION, 16}, .libc = view.libc};
    uint64_t merged[16];
    CHECK_UINT(merge(addresses, 5, records, 2, &old, true, merged), 4);
    CHECK_UINT(merged[1], FIRST);
    CHECK_UINT(merged[2], LIBRARY + 1);
    CHECK_UINT(merged[3], FIRST + 1);
    CHECK_UINT(merge(addresses, 5, records, 3, &old, true, merged), 0);
}

TEST(a_frame_that_is_linked_before_its_evaluation_joins_its_caller)
{
    const uint64_t addresses[] = {LIBC + 8, LIBRARY + 1, EVALUATION + 2, LIBC + 1};
    const uint64_t records[] = {0, 0, 0};
    const struct native_view early = {
        .interpreter = view.interpreter, .evaluation = {EVALUATION, 16}, .libc = view.libc, .links_first = true};
    uint64_t merged[16];
    CHECK_UINT(merge(addresses, 4, records, 2, &early, true, merged), 4);
    const uint64_t expected[] = {LIBC + 8, LIBRARY + 1, FIRST, FIRST + 1};
    for (size_t i = 0; i < 4; i++) CHECK_UINT(merged[i], expected[i]);
    CHECK_UINT(merge(addresses, 4, records, 3, &early, true, merged), 0);
}

TEST(glibc_has_the_number_of_a_thread_where_it_is_read)
{
    int tid;
    memcpy(&tid, (const char *)(uintptr_t)pthread_self() + GLIBC_THREAD_ID, sizeof(tid));
    CHECK_INT(tid, getpid());
}

TEST_MAIN()
