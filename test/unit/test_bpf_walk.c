/* The walk in the kernel on the stack of this program: its known frames, and the frames that the walk in user space
 * finds. Needs the rights to load BPF programs; with OFFBEAT_TEST_BPF=1 it is a failure that they are missing.
 * SPDX-License-Identifier: MIT */
#include "test.h"

#include "binary/elf_file.h"
#include "recorder/bpf/bpf_programs.h"
#include "unwind/context.h"
#include "unwind/unwind.h"

#include <alloca.h>
#include <link.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

enum { DEPTH = 100, TOO_DEEP = 2 * BPF_FRAMES_MAX, MODULES_MAX = 64, REPEAT = 1000, ROUNDS = 20 };

static struct bpf_programs *programs;
static char problem[BPF_PROBLEM_SIZE];
static struct bpf_module_entry modules[MODULES_MAX];
static struct frame_table tables[MODULES_MAX];
static uint32_t module_count;
static struct bpf_process_entry process; /* entry of this process */

static struct {
    struct bpf_sample sample;
    uint64_t addresses[BPF_FRAMES_MAX];
    uint64_t registers[BPF_REGISTERS];
    unsigned count;
} received;
static uint64_t walk_ns;

static void receive(void *context, const struct bpf_sample *sample, const uint64_t *words)
{
    received.sample = *sample;
    received.count++;
    memcpy(received.addresses, words, sample->count * sizeof(words[0]));
    if (sample->outcome == UNWIND_PENDING)
        memcpy(received.registers, words + BPF_KERNEL_FRAMES_MAX, sizeof(received.registers));
}

static void ignore_change(void *context, const struct bpf_change *change)
{
}

static const struct bpf_receiver receiver = {.sample = receive, .change = ignore_change};

/* --- This program for the kernel ---------------------------------------------------------------------------------- */

static bool build_table(const char *path, struct frame_table *ret_table)
{
    struct elf_file file;
    if (elf_file_open(&file, path, NULL) != STATUS_OK) return false;
    struct buffer frames, header;
    buffer_init(&frames, 64 << 20);
    buffer_init(&header, 64 << 20);
    const struct elf_section *eh_frame = elf_file_section(&file, ".eh_frame");
    const struct elf_section *eh_frame_hdr = elf_file_section(&file, ".eh_frame_hdr");
    bool is_built = false;
    if (eh_frame && eh_frame_hdr && elf_file_read_section(&file, eh_frame, &frames, NULL) == STATUS_OK &&
        elf_file_read_section(&file, eh_frame_hdr, &header, NULL) == STATUS_OK) {
        struct frame_table_source source = {
            .eh_frame = {.bytes = buffer_slice(&frames),
                         .address = eh_frame->address,
                         .data_address = eh_frame_hdr->address},
            .header = buffer_slice(&header),
            .header_address = eh_frame_hdr->address,
        };
        is_built = frame_table_build(&source, ret_table);
    }
    buffer_fini(&frames);
    buffer_fini(&header);
    elf_file_close(&file);
    return is_built;
}

static int add_object(struct dl_phdr_info *info, size_t size, void *data)
{
    const char *path = info->dlpi_name[0] ? info->dlpi_name : "/proc/self/exe";
    if (module_count == MODULES_MAX || !build_table(path, &tables[module_count])) return 0;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        if (segment->p_type != PT_LOAD || !(segment->p_flags & PF_X)) continue;
        uint64_t start = info->dlpi_addr + segment->p_vaddr;
        modules[module_count] = (struct bpf_module_entry){.start = start,
                                                          .end = start + segment->p_memsz,
                                                          .base = info->dlpi_addr,
                                                          .table = module_count,
                                                          .version = 1};
    }
    module_count++;
    return 0;
}

static int by_start(const void *a, const void *b)
{
    const struct bpf_module_entry *first = a, *second = b;
    return (first->start > second->start) - (first->start < second->start);
}

static bool sample_now(uint32_t repeat)
{
    received.count = 0;
    if (!bpf_programs_sample_caller(programs, repeat, &walk_ns)) return false;
    bpf_programs_read(programs, &receiver);
    return received.count == 1 && received.sample.pid == (uint32_t)getpid();
}

static bool is_emulated;

/* Gives the kernel the modules of this process. */
static void identify(void)
{
    dl_iterate_phdr(add_object, NULL);
    for (uint32_t i = 0; i < module_count; i++) CHECK(bpf_programs_load_table(programs, i, &tables[i]));
    qsort(modules, module_count, sizeof(modules[0]), by_start);
    bpf_programs_write_modules(programs, 0, modules, module_count);
    CHECK(bpf_programs_set_process(programs, (uint32_t)getpid(), &process));
    CHECK(sample_now(1)); /* says how the kernel identifies this process */
    CHECK_UINT(received.sample.is_known, 0);
    uint64_t frame = (uint64_t)(uintptr_t)__builtin_frame_address(0), sp = received.registers[MACHINE_SP];
    is_emulated = sp > frame || frame - sp > 1 << 16; /* valgrind, for example */
    process = (struct bpf_process_entry){.count = module_count,
                                         .version = 1,
                                         .start_boottime = received.sample.start_boottime,
                                         .self_exec_id = received.sample.self_exec_id};
    CHECK(bpf_programs_set_process(programs, (uint32_t)getpid(), &process));
}

/* Loads the programs, and gives them the modules of this process once. */
static void prepare(void)
{
    const struct bpf_program_options options = {
        .period_ns = 10000000, .follows_children = true, .samples_caller = true};
    if (!programs) programs = bpf_programs_load(&options, problem);
    if (!programs) {
        const char *is_needed = getenv("OFFBEAT_TEST_BPF");
        if (is_needed && strcmp(is_needed, "1") == 0) TEST_FAIL("%s", problem);
        SKIP(problem);
    }
    if (module_count == 0) identify();
    if (is_emulated) SKIP("the stack that the kernel sees is that of an emulator");
}

/* --- Known stacks ------------------------------------------------------------------------------------------------- */

static uint64_t expected[TOO_DEEP + 1]; /* return addresses, the innermost first */

static void walk_in_user_space(void);

/* Calls itself with frames of different shapes, and samples at the end, in both ways. */
__attribute__((noinline)) static bool descend(unsigned depth)
{
    expected[depth] = (uint64_t)(uintptr_t)__builtin_return_address(0);
    volatile char *room = depth % 3 == 0 ? alloca(16 + depth * 8) : NULL;
    if (room) room[0] = 1;
    if (depth == 0) walk_in_user_space();
    bool is_sampled = depth == 0 ? sample_now(1) : descend(depth - 1);
    __asm__ volatile("" ::: "memory"); /* no tail call */
    return is_sampled && (!room || room[0] == 1);
}

static void check_stack(const uint64_t *inner, size_t count)
{
    CHECK_UINT(received.sample.is_known, 1);
    CHECK_UINT(received.sample.outcome, UNWIND_ROOT);
    size_t at = 0;
    while (at < received.sample.count && received.addresses[at] != inner[0]) at++;
    CHECK(at + count < received.sample.count);
    for (size_t i = 0; i < count; i++) CHECK_UINT(received.addresses[at + i], inner[i]);
}

TEST(walks_known_frames_to_the_root)
{
    prepare();
    CHECK(descend(DEPTH));
    check_stack(expected, DEPTH + 1);
}

TEST(leaves_stacks_that_are_too_deep_to_user_space)
{
    prepare();
    CHECK(descend(TOO_DEEP));
    CHECK_UINT(received.sample.outcome, UNWIND_PENDING);
    CHECK_UINT(received.sample.count, 0);
}

static volatile bool is_sampled_in_handler;
static uint64_t handler_caller;

static void sample_in_handler(int number)
{
    is_sampled_in_handler = sample_now(1);
}

__attribute__((noinline)) static void raise_signal(void)
{
    handler_caller = (uint64_t)(uintptr_t)__builtin_return_address(0);
    raise(SIGUSR1);
}

TEST(walks_through_a_signal_frame)
{
    prepare();
    signal(SIGUSR1, sample_in_handler);
    raise_signal();
    CHECK(is_sampled_in_handler);
#if defined(__aarch64__)
    CHECK_UINT(received.sample.outcome,
               UNWIND_PENDING); /* the frame has no rule there: user space walks such a stack */
#else
    check_stack(&handler_caller, 1);
#endif
}

static struct {
    uint64_t addresses[BPF_FRAMES_MAX];
    size_t count;
    enum unwind_outcome outcome;
} walked; /* the same stack from user space */

static bool all_is_readable(struct unwind_memory *memory, uint64_t address)
{
    memory->low = 0;
    memory->high = UINT64_MAX - 8;
    return true;
}

static void walk_in_user_space(void)
{
    struct unwind_module items[MODULES_MAX];
    for (uint32_t i = 0; i < module_count; i++) {
        items[i] = (struct unwind_module){.start = modules[i].start,
                                          .end = modules[i].end,
                                          .base = modules[i].base,
                                          .table = &tables[modules[i].table]};
    }
    struct unwind_modules list = {.items = items, .count = module_count};
    struct unwind_memory memory = {.extend = all_is_readable};
    ucontext_t context;
    CHECK_INT(getcontext(&context), 0);
    struct unwind_registers registers = unwind_registers_of(&context);
    walked.outcome = unwind_walk(&list, &registers, &memory, NULL, walked.addresses, BPF_FRAMES_MAX, &walked.count);
}

TEST(agrees_with_the_walk_in_user_space)
{
    prepare();
    CHECK(descend(DEPTH));
    CHECK_UINT(walked.outcome, UNWIND_ROOT);
    size_t count = walked.count - 1; /* the first two frames differ: each walk begins in functions of its own */
    CHECK(count > DEPTH && received.sample.count > count);
    for (size_t i = 1; i < count; i++)
        CHECK_UINT(received.addresses[received.sample.count - i], walked.addresses[walked.count - i]);
}

static void set_process(uint32_t count, uint64_t boottime_less, uint64_t exec_less)
{
    struct bpf_process_entry entry = process;
    entry.count = count;
    entry.start_boottime -= boottime_less;
    entry.self_exec_id -= exec_less;
    CHECK(bpf_programs_set_process(programs, (uint32_t)getpid(), &entry));
}

/* Checks that the last sample has registers and the innermost part of the stack. */
static void check_copy(void)
{
    CHECK_UINT(received.sample.outcome, UNWIND_PENDING);
    uint64_t frame = (uint64_t)(uintptr_t)__builtin_frame_address(0), sp = received.registers[MACHINE_SP];
    CHECK(received.sample.copy_size <= BPF_COPY_BYTES);
    CHECK(sp < frame && frame - sp < received.sample.copy_size);
}

TEST(code_of_an_unknown_module_gives_a_copy_of_the_stack)
{
    prepare();
    set_process(1, 0, 0); /* the first module is this program; libc is unknown */
    CHECK(sample_now(1));
    CHECK_UINT(received.sample.is_known, 1);
    check_copy();
    set_process(module_count, 0, 0);
}

TEST(a_process_that_is_another_one_is_not_unwound)
{
    prepare();
    set_process(module_count, 1, 0);
    CHECK(sample_now(1));
    CHECK_UINT(received.sample.is_known, 0);
    check_copy();
    set_process(module_count, 0, 1);
    CHECK(sample_now(1));
    CHECK_UINT(received.sample.is_known, 0);
    check_copy();
    set_process(module_count, 0, 0);
}

__attribute__((noinline)) static bool descend_and_repeat(unsigned depth)
{
    bool is_sampled = depth == 0 ? sample_now(REPEAT) : descend_and_repeat(depth - 1);
    __asm__ volatile("" ::: "memory"); /* no tail call */
    return is_sampled;
}

TEST(walks_the_same_stack_each_time)
{
    prepare();
    double best = 1e9;
    for (unsigned i = 0; i < ROUNDS; i++) {
        CHECK(descend_and_repeat(DEPTH));
        CHECK_UINT(received.sample.outcome, UNWIND_ROOT);
        double ns = (double)walk_ns / REPEAT / received.sample.count;
        best = ns < best ? ns : best;
    }
    printf("# %.1f ns a frame, the best of %u rounds; %u frames\n", best, ROUNDS, received.sample.count);
}

TEST_MAIN()
