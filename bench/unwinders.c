/* Preloaded into a large program, interrupts it a thousand times a second of CPU time and lets every unwinder walk the
 * same stack: ours, glibc's backtrace and, where it is installed, libunwind. Their order changes from one interrupt to
 * the next, so that none of them always finds the caches warm. Writes one line for each to the file that
 * OFFBEAT_BENCH_UNWINDERS names, at the end of the program:
 *
 *   NAME STACKS FRAMES MEDIAN_NS P99_NS TOTAL_NS REACHED_THE_ROOT
 *
 * Walks the main thread alone. A measuring tool: what it calls in its handler is not all safe there.
 * SPDX-License-Identifier: MIT */
#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "unwind/context.h"
#include "unwind/unwind.h"

enum { MODULES_MAX = 64, FRAMES_MAX = 512, STACKS_MAX = 1 << 17 };

static struct unwind_module modules[MODULES_MAX];
static struct frame_table tables[MODULES_MAX];
static size_t module_count;
static uint64_t build_ns;
static uint64_t stack_end;
static pid_t own_pid;
static const char *output_path;

struct unwinder {
    const char *name;
    int (*walk)(void **addresses, const ucontext_t *context);
    size_t stack_count, frame_count, root_count;
    uint64_t total_ns;
    uint32_t times_ns[STACKS_MAX];
};

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* --- ours --------------------------------------------------------------------------------------------------------- */

static bool extend_to_the_end_of_the_stack(struct unwind_memory *memory, uint64_t address)
{
    if (address < memory->low || address > stack_end - 8) return false;
    memory->high = stack_end;
    return true;
}

static enum unwind_outcome last_outcome;

static int walk_ours(void **addresses, const ucontext_t *context)
{
    struct unwind_registers registers = unwind_registers_of(context);
    uint64_t stack_pointer = registers.values[MACHINE_SP];
    struct unwind_memory memory = {
        .low = stack_pointer - 128, .high = stack_pointer + 4096, .extend = extend_to_the_end_of_the_stack};
    if (memory.high > stack_end) memory.high = stack_end;
    const struct unwind_modules all = {.items = modules, .count = module_count};
    size_t count = 0;
    last_outcome = unwind_walk(&all, &registers, &memory, (uint64_t *)addresses, FRAMES_MAX, &count);
    return (int)count;
}

/* --- the peers ---------------------------------------------------------------------------------------------------- */

static int (*libunwind_backtrace)(void **, int);

static int walk_glibc(void **addresses, const ucontext_t *context)
{
    return backtrace(addresses, FRAMES_MAX);
}

static int walk_libunwind(void **addresses, const ucontext_t *context)
{
    return libunwind_backtrace(addresses, FRAMES_MAX);
}

static struct unwinder unwinders[] = {
    {.name = "ours", .walk = walk_ours},
    {.name = "glibc", .walk = walk_glibc},
    {.name = "libunwind", .walk = walk_libunwind},
};
static size_t unwinder_count = sizeof(unwinders) / sizeof(unwinders[0]);

/* --- measuring ---------------------------------------------------------------------------------------------------- */

static void measure(struct unwinder *unwinder, const ucontext_t *context)
{
    static void *addresses[FRAMES_MAX];
    if (unwinder->stack_count == STACKS_MAX) return;
    uint64_t start_ns = now_ns();
    int count = unwinder->walk(addresses, context);
    uint64_t lasted_ns = now_ns() - start_ns;
    unwinder->times_ns[unwinder->stack_count++] = (uint32_t)lasted_ns;
    unwinder->total_ns += lasted_ns;
    unwinder->frame_count += (size_t)count;
    if (unwinder->walk == walk_ours && last_outcome == UNWIND_ROOT) unwinder->root_count++;
}

static void interrupt(int number, siginfo_t *information, void *context)
{
    static unsigned turn;
    if (gettid() != own_pid) return;
    turn++;
    for (size_t i = 0; i < unwinder_count; i++) measure(&unwinders[(turn + i) % unwinder_count], context);
}

/* --- start and end ------------------------------------------------------------------------------------------------ */

static int32_t signed_word(const uint8_t *bytes)
{
    int32_t word;
    memcpy(&word, bytes, sizeof(word));
    return word;
}

/* Takes .eh_frame_hdr as every linker writes it: version 1, a 4-byte relative pointer to .eh_frame. */
static bool build_table(const struct dl_phdr_info *information, const ElfW(Phdr) * header, uint64_t end,
                        struct frame_table *table)
{
    uint64_t header_address = information->dlpi_addr + header->p_vaddr;
    const uint8_t *bytes = (const uint8_t *)header_address;
    if (bytes[0] != 1 || bytes[1] != 0x1b) return false;
    uint64_t frame_address = header_address + 4 + (uint64_t)(int64_t)signed_word(bytes + 4);
    struct frame_table_source source = {
        .eh_frame = {.bytes = slice_of((const void *)frame_address, end - frame_address), .address = frame_address},
        .header = slice_of(bytes, header->p_memsz),
        .header_address = header_address,
        .base = information->dlpi_addr,
    };
    return frame_table_build(&source, table);
}

static int add_module(struct dl_phdr_info *information, size_t size, void *unused)
{
    const ElfW(Phdr) *code = NULL, *frames = NULL;
    uint64_t end = 0;
    for (unsigned i = 0; i < information->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &information->dlpi_phdr[i];
        if (header->p_type == PT_LOAD && header->p_flags & PF_X) code = header;
        if (header->p_type == PT_GNU_EH_FRAME) frames = header;
    }
    for (unsigned i = 0; frames && i < information->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &information->dlpi_phdr[i];
        if (header->p_type == PT_LOAD && frames->p_vaddr - header->p_vaddr < header->p_memsz)
            end = information->dlpi_addr + header->p_vaddr + header->p_memsz;
    }
    if (!code || !frames || module_count == MODULES_MAX) return 0;
    struct frame_table *table = &tables[module_count];
    if (!build_table(information, frames, end, table)) return 0;
    uint64_t start = information->dlpi_addr + code->p_vaddr;
    modules[module_count++] = (struct unwind_module){
        .start = start, .end = start + code->p_memsz, .base = information->dlpi_addr, .table = table};
    return 0;
}

static int by_start(const void *a, const void *b)
{
    const struct unwind_module *left = a, *right = b;
    return (left->start > right->start) - (left->start < right->start);
}

static uint64_t find_stack_end(void)
{
    uint64_t low, high, end = 0;
    char line[512];
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps && fgets(line, sizeof(line), maps))
        if (strstr(line, "[stack]") && sscanf(line, "%lx-%lx", &low, &high) == 2) end = high;
    if (maps) fclose(maps);
    return end;
}

static void find_libunwind(void)
{
    void *library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
    void *found = library ? dlsym(library, "unw_backtrace") : NULL;
    if (found)
        memcpy(&libunwind_backtrace, &found, sizeof(found));
    else
        unwinder_count--;
}

__attribute__((constructor)) static void start(void)
{
    output_path = getenv("OFFBEAT_BENCH_UNWINDERS");
    if (!output_path) return;
    unsetenv("LD_PRELOAD");
    own_pid = getpid();
    stack_end = find_stack_end();
    find_libunwind();
    void *first[4];
    backtrace(first, 4); /* loads what it needs, outside of the handler */

    uint64_t start_ns = now_ns();
    dl_iterate_phdr(add_module, NULL);
    build_ns = now_ns() - start_ns;
    qsort(modules, module_count, sizeof(modules[0]), by_start);

    struct sigaction action = {.sa_sigaction = interrupt, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGPROF, &action, NULL);
    struct itimerval every = {.it_interval = {.tv_usec = 997}, .it_value = {.tv_usec = 997}};
    setitimer(ITIMER_PROF, &every, NULL);
}

static int by_time(const void *a, const void *b)
{
    const uint32_t *left = a, *right = b;
    return (*left > *right) - (*left < *right);
}

static void write_unwinder(FILE *output, struct unwinder *unwinder)
{
    size_t count = unwinder->stack_count;
    if (!count) return;
    qsort(unwinder->times_ns, count, sizeof(unwinder->times_ns[0]), by_time);
    fprintf(output, "%s %zu %zu %u %u %lu %zu\n", unwinder->name, count, unwinder->frame_count,
            unwinder->times_ns[count / 2], unwinder->times_ns[count - 1 - count / 100], unwinder->total_ns,
            unwinder->root_count);
}

__attribute__((destructor)) static void finish(void)
{
    if (!output_path || getpid() != own_pid) return;
    struct itimerval never = {0};
    setitimer(ITIMER_PROF, &never, NULL);
    FILE *output = fopen(output_path, "we");
    if (!output) return;
    size_t rows = 0, bytes = 0;
    for (size_t i = 0; i < module_count; i++) {
        rows += tables[i].row_count;
        bytes += tables[i].memory_size;
    }
    fprintf(output, "tables %zu %zu %zu %lu\n", module_count, rows, bytes, build_ns);
    for (size_t i = 0; i < unwinder_count; i++) write_unwinder(output, &unwinders[i]);
    fclose(output);
}
