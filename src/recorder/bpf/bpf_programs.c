/* SPDX-License-Identifier: MIT */
#include "recorder/bpf/bpf_programs.h"

#include "base/environment.h"
#include "recorder/bpf/table_words.h"
#include "unwind/unwind.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <sampler_bpf.skel.h>

enum { CHANGE_PROGRAMS = 6, THREADS_AT_ONCE = 64, RECORDS_AT_ONCE = 1 << 16 };

struct bpf_programs {
    struct bpf_program_options options;
    struct sampler_bpf *object;
    struct ring_buffer *ring;
    struct bpf_module_entry *modules; /* the map's memory */
    struct bpf_table_entry *tables;   /* the map's memory */
    struct bpf_link **timers;         /* one for each processor; NULL: it is offline */
    int *timer_events;                /* perf events of the timers, which own them */
    int timer_count;
    uint64_t fixed_bytes, table_bytes;     /* memory of the object's maps, and of the tables */
    uint32_t value_counts[BPF_TABLES_MAX]; /* length of each table, in values */
    struct bpf_link *changes[CHANGE_PROGRAMS];
    const struct bpf_receiver *receiver; /* receiver of the current read */
    unsigned records_left;               /* records that the current read may take */
};

static int keep_quiet(enum libbpf_print_level level, const char *format, va_list arguments)
{
    return 0;
}

static void *map_memory(const struct bpf_map *map, size_t size)
{
    void *memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);
    return memory == MAP_FAILED ? NULL : memory;
}

static void receive_sample(const struct bpf_receiver *receiver, const struct bpf_sample *sample, size_t size)
{
    if (size < sizeof(*sample)) return;
    bool is_walked = sample->outcome != UNWIND_PENDING;
    size_t word_count = is_walked ? sample->count + sample->kernel_count : BPF_KERNEL_FRAMES_MAX + BPF_REGISTERS;
    if (sample->kernel_count > BPF_KERNEL_FRAMES_MAX) return;
    if (size - sizeof(*sample) < word_count * sizeof(uint64_t) + sample->copy_size) return;
    receiver->sample(receiver->context, sample, (const uint64_t *)(const void *)(sample + 1));
}

static void receive_functions(const struct bpf_receiver *receiver, const struct bpf_functions *functions, size_t size)
{
    size_t head = offsetof(struct bpf_functions, functions);
    if (size < head || functions->count > BPF_FUNCTIONS_MAX || !receiver->functions) return;
    if (size - head < functions->count * sizeof(functions->functions[0])) return;
    receiver->functions(receiver->context, functions, size);
}

static int receive_record(void *context, void *record, size_t size)
{
    struct bpf_programs *programs = context;
    const struct bpf_receiver *receiver = programs->receiver;
    uint32_t kind = BPF_SAMPLE;
    if (size >= sizeof(kind)) memcpy(&kind, record, sizeof(kind));
    if (kind == BPF_SAMPLE || kind == BPF_WAIT_BEGAN)
        receive_sample(receiver, record, size);
    else if (kind == BPF_FUNCTIONS)
        receive_functions(receiver, record, size);
    else if (kind == BPF_WAITED && size >= sizeof(struct bpf_wait))
        receiver->wait(receiver->context, record);
    else if (size >= sizeof(struct bpf_change))
        receiver->change(receiver->context, record);
    programs->records_left--;
    return programs->records_left > 0 ? 0 : -1; /* a read ends although processors go on sending */
}

/* Returns the memory of the map DESCRIPTOR, as the kernel counts it. */
static uint64_t map_bytes(int descriptor)
{
    char path[64], line[128];
    unsigned long long bytes = 0;
    (void)snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", descriptor);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof(line), file) && sscanf(line, "memlock: %llu", &bytes) != 1) {
    }
    if (file) (void)fclose(file);
    return bytes;
}

static void count_bytes(struct bpf_programs *programs)
{
    struct bpf_map *map;
    bpf_object__for_each_map(map, programs->object->obj) programs->fixed_bytes += map_bytes(bpf_map__fd(map));
}

/* Opens what user space reads and writes of the loaded object. */
static bool open_maps(struct bpf_programs *programs)
{
    struct sampler_bpf *object = programs->object;
    programs->modules = map_memory(object->maps.modules, BPF_MODULE_ENTRIES_MAX * sizeof(*programs->modules));
    programs->tables = map_memory(object->maps.tables, BPF_TABLES_MAX * sizeof(*programs->tables));
    programs->ring = ring_buffer__new(bpf_map__fd(object->maps.ring), receive_record, programs, NULL);
    return programs->modules && programs->tables && programs->ring;
}

static void explain(char *ret_problem, int error)
{
    (void)snprintf(ret_problem, BPF_PROBLEM_SIZE, "the kernel does not load BPF programs: %s", strerror(error));
    errno = error;
}

bool bpf_programs_may_load(char *ret_problem)
{
    static const struct bpf_insn instructions[] = {
        {.code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0},
        {.code = BPF_JMP | BPF_EXIT},
    };
    int program = bpf_prog_load(BPF_PROG_TYPE_PERF_EVENT, "probe", "Dual MIT/GPL", instructions,
                                sizeof(instructions) / sizeof(instructions[0]), NULL);
    if (program < 0) explain(ret_problem, -program);
    if (program >= 0) close(program);
    return program >= 0;
}

/* Returns the inode of the namespace of process numbers that this process is in; 0: the initial one. */
static uint32_t own_namespace(void)
{
    const uint64_t initial = 0xeffffffc; /* PROC_PID_INIT_INO of the kernel */
    struct stat status;
    if (stat("/proc/self/ns/pid", &status) != 0 || status.st_ino == initial) return 0;
    return (uint32_t)status.st_ino;
}

/* Chooses the programs and what they do. */
static void set_options(struct sampler_bpf *object, const struct bpf_program_options *options)
{
    enum { WAITS_A_SECOND = 8000, WINDOWS_A_SECOND = 100, WINDOW_WAITS_MIN = 4, LONG_PERIODS = 2 };
    int processors = libbpf_num_possible_cpus();
    uint32_t window_waits = WAITS_A_SECOND / WINDOWS_A_SECOND / (uint32_t)(processors > 0 ? processors : 1);
    object->rodata->follows_children = options->follows_children;
    object->rodata->own_namespace = own_namespace();
    object->rodata->takes_kernel_stacks = options->takes_kernel_stacks;
    object->rodata->records_waits = options->records_waits;
    object->rodata->wait_ns_min = options->wait_ns_min;
    object->rodata->long_wait_ns = LONG_PERIODS * options->period_ns; /* ticks find the stacks of such waits */
    object->rodata->window_waits = window_waits > WINDOW_WAITS_MIN ? window_waits : WINDOW_WAITS_MIN;
    (void)bpf_program__set_autoload(object->progs.sample_caller, options->samples_caller);
    (void)bpf_program__set_autoload(object->progs.timer_tick, !options->records_waits);
    (void)bpf_program__set_autoload(object->progs.thread_switch, options->records_waits);
    (void)bpf_program__set_autoload(object->progs.thread_waking, options->records_waits);
}

/* Returns true if PROGRAM is to be denied, as by a kernel that lacks what it needs. */
static bool is_denied(const struct bpf_program *program)
{
    const char *denied = environment_get(BPF_PROGRAMS_DENIED);
    if (!denied || !strstr(denied, bpf_program__name(program))) return false;
    errno = EOPNOTSUPP;
    return true;
}

/* Returns 0, or a negative error. SEES_MAPPINGS: with the optional program. */
static int load_object(struct bpf_programs *programs, bool sees_mappings)
{
    sampler_bpf__destroy(programs->object);
    programs->object = sampler_bpf__open();
    if (!programs->object) return -errno;
    set_options(programs->object, &programs->options);
    int processors = libbpf_num_possible_cpus();
    if (processors > 0) (void)bpf_map__set_max_entries(programs->object->maps.function_copies, (uint32_t)processors);
    (void)bpf_program__set_autoload(programs->object->progs.place_chosen, sees_mappings);
    return sampler_bpf__load(programs->object);
}

struct bpf_programs *bpf_programs_load(const struct bpf_program_options *options, char *ret_problem)
{
    struct bpf_programs *programs = calloc(1, sizeof(*programs));
    if (!programs) abort();
    programs->options = *options;
    libbpf_set_print(keep_quiet);
    int error = load_object(programs, true);
    if (error != 0) error = load_object(programs, false);
    if (error == 0 && !open_maps(programs)) error = -errno;
    if (error == 0) count_bytes(programs);
    if (error == 0) return programs;
    bpf_programs_unload(programs);
    explain(ret_problem, -error);
    return NULL;
}

void bpf_programs_unload(struct bpf_programs *programs)
{
    if (!programs) return;
    for (int i = 0; i < programs->timer_count; i++) bpf_link__destroy(programs->timers[i]);
    free(programs->timers);
    free(programs->timer_events);
    for (unsigned i = 0; i < CHANGE_PROGRAMS; i++) bpf_link__destroy(programs->changes[i]);
    ring_buffer__free(programs->ring);
    if (programs->modules) munmap(programs->modules, BPF_MODULE_ENTRIES_MAX * sizeof(*programs->modules));
    if (programs->tables) munmap(programs->tables, BPF_TABLES_MAX * sizeof(*programs->tables));
    sampler_bpf__destroy(programs->object);
    free(programs);
}

/* Attaches the timer's program to PROCESSOR. Returns NULL with errno; ENODEV: it is offline. */
static struct bpf_link *start_timer(const struct bpf_programs *programs, uint64_t period_ns, int processor,
                                    int *ret_event)
{
    struct perf_event_attr attributes = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof(attributes),
        .config = PERF_COUNT_SW_CPU_CLOCK,
        .sample_period = period_ns,
    };
    if (is_denied(programs->object->progs.timer_tick)) return NULL;
    int descriptor = (int)syscall(SYS_perf_event_open, &attributes, -1, processor, -1, PERF_FLAG_FD_CLOEXEC);
    if (descriptor < 0) return NULL;
    struct bpf_link *link = bpf_program__attach_perf_event(programs->object->progs.timer_tick, descriptor);
    int error = errno;
    if (!link) close(descriptor);
    *ret_event = descriptor;
    errno = error;
    return link;
}

static bool start_changes(struct bpf_programs *programs, char *ret_problem)
{
    struct bpf_program *const all[CHANGE_PROGRAMS] = {
        programs->object->progs.process_fork,  programs->object->progs.process_exec,
        programs->object->progs.thread_exit,   programs->object->progs.place_chosen,
        programs->object->progs.thread_waking, programs->object->progs.thread_switch};
    for (unsigned i = 0; i < CHANGE_PROGRAMS; i++) {
        if (!bpf_program__autoload(all[i])) continue;
        programs->changes[i] = is_denied(all[i]) ? NULL : bpf_program__attach(all[i]);
        if (programs->changes[i] || all[i] == programs->object->progs.place_chosen) continue;
        explain(ret_problem, errno);
        return false;
    }
    return true;
}

static bool start_timers(struct bpf_programs *programs, char *ret_problem)
{
    int count = libbpf_num_possible_cpus();
    programs->timers = count > 0 ? calloc((size_t)count, sizeof(struct bpf_link *)) : NULL;
    programs->timer_events = count > 0 ? calloc((size_t)count, sizeof(int)) : NULL;
    if (!programs->timers || !programs->timer_events) abort();
    programs->timer_count = count;
    for (int i = 0; i < count; i++) {
        programs->timers[i] = start_timer(programs, programs->options.period_ns, i, &programs->timer_events[i]);
        if (programs->timers[i] || errno == ENODEV) continue;
        int error = errno;
        (void)snprintf(ret_problem, BPF_PROBLEM_SIZE, "no timer on processor %d: %s", i, strerror(error));
        errno = error;
        return false;
    }
    return true;
}

bool bpf_programs_start(struct bpf_programs *programs, char *ret_problem)
{
    return start_changes(programs, ret_problem) &&
           (programs->options.records_waits || start_timers(programs, ret_problem));
}

void bpf_programs_set_period(struct bpf_programs *programs, uint64_t period_ns)
{
    programs->options.period_ns = period_ns;
    for (int i = 0; i < programs->timer_count; i++) {
        if (programs->timers[i]) (void)ioctl(programs->timer_events[i], PERF_EVENT_IOC_PERIOD, &period_ns);
    }
}

void bpf_programs_read(struct bpf_programs *programs, const struct bpf_receiver *receiver)
{
    programs->receiver = receiver;
    programs->records_left = RECORDS_AT_ONCE;
    (void)ring_buffer__consume(programs->ring);
}

int bpf_programs_open_iterator(const struct bpf_programs *programs, uint32_t pid)
{
    union bpf_iter_link_info filter = {.task = {.pid = pid}};
    LIBBPF_OPTS(bpf_link_create_opts, options);
    if (is_denied(programs->object->progs.observe_thread)) return -1;
    if (pid != 0) {
        options.iter_info = &filter;
        options.iter_info_len = sizeof(filter);
    }
    return bpf_link_create(bpf_program__fd(programs->object->progs.observe_thread), 0, BPF_TRACE_ITER, &options);
}

bool bpf_programs_iterate(int iterator, bpf_thread_function receive, void *context)
{
    struct bpf_thread threads[THREADS_AT_ONCE];
    int descriptor = bpf_iter_create(iterator);
    if (descriptor < 0) return false;
    size_t filled = 0;
    ssize_t size;
    do {
        size = read(descriptor, (uint8_t *)threads + filled, sizeof(threads) - filled);
        filled += size > 0 ? (size_t)size : 0;
        size_t count = filled / sizeof(threads[0]), rest = filled % sizeof(threads[0]);
        for (size_t i = 0; i < count; i++) receive(context, &threads[i]);
        memmove(threads, &threads[count], rest);
        filled = rest;
    } while (size > 0 || (size < 0 && (errno == EAGAIN || errno == EINTR)));
    close(descriptor);
    return size == 0;
}

bool bpf_programs_sample_caller(struct bpf_programs *programs, uint32_t repeat, uint64_t *ret_walk_ns)
{
    struct bpf_self_sample argument = {.repeat = repeat};
    LIBBPF_OPTS(bpf_test_run_opts, options, .ctx_in = &argument, .ctx_size_in = sizeof(argument));
    int program = bpf_program__fd(programs->object->progs.sample_caller);
    if (bpf_prog_test_run_opts(program, &options) != 0 || options.retval != 0) return false;
    *ret_walk_ns = argument.walk_ns;
    return true;
}

void bpf_programs_losses(const struct bpf_programs *programs, struct bpf_losses *ret_losses)
{
    struct bpf_prog_info info = {0};
    uint32_t size = sizeof(info);
    const struct sampler_bpf *object = programs->object;
    const struct bpf_program *program =
        programs->options.records_waits ? object->progs.thread_switch : object->progs.timer_tick;
    int error = bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &size);
    *ret_losses = (struct bpf_losses){
        .samples_lost = __atomic_load_n(&programs->object->bss->samples_lost, __ATOMIC_RELAXED),
        .runs_missed = error == 0 ? info.recursion_misses : 0,
    };
}

bool bpf_programs_load_table(struct bpf_programs *programs, uint32_t number, const struct frame_table *table)
{
    struct table_words_layout layout;
    if (!table_words_layout(table, &layout)) return false;
    LIBBPF_OPTS(bpf_map_create_opts, options, .map_flags = BPF_F_MMAPABLE | BPF_F_INNER_MAP);
    int map = bpf_map_create(BPF_MAP_TYPE_ARRAY, "frame_table", sizeof(uint32_t), sizeof(struct bpf_table_value),
                             layout.value_count, &options);
    if (map < 0) return false;
    size_t size = layout.value_count * sizeof(struct bpf_table_value);
    uint32_t *words = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, map, 0);
    bool is_filled = words != MAP_FAILED;
    if (is_filled) {
        table_words_fill(table, &layout, words);
        munmap(words, size);
        is_filled = bpf_map_update_elem(bpf_map__fd(programs->object->maps.table_words), &number, &map, BPF_ANY) == 0;
    }
    close(map);
    if (!is_filled) return false;
    struct bpf_table_entry *entry = &programs->tables[number];
    entry->start = table->start;
    entry->blocks = layout.blocks;
    entry->wide = layout.wide;
    __atomic_store_n(&entry->end, table->end, __ATOMIC_RELEASE);
    programs->value_counts[number] = layout.value_count;
    programs->table_bytes += size;
    return true;
}

void bpf_programs_unload_table(struct bpf_programs *programs, uint32_t number)
{
    __atomic_store_n(&programs->tables[number].end, 0, __ATOMIC_RELEASE);
    /* Returns after all programs that may read the table have ended. */
    (void)bpf_map_delete_elem(bpf_map__fd(programs->object->maps.table_words), &number);
    programs->table_bytes -= programs->value_counts[number] * sizeof(struct bpf_table_value);
    programs->value_counts[number] = 0;
}

uint64_t bpf_programs_kernel_bytes(const struct bpf_programs *programs)
{
    return programs->fixed_bytes + programs->table_bytes;
}

void bpf_programs_write_modules(struct bpf_programs *programs, uint32_t first, const struct bpf_module_entry *entries,
                                uint32_t count)
{
    memcpy(&programs->modules[first], entries, count * sizeof(*entries));
}

bool bpf_programs_set_process(struct bpf_programs *programs, uint32_t pid, const struct bpf_process_entry *entry)
{
    return bpf_map_update_elem(bpf_map__fd(programs->object->maps.processes), &pid, entry, BPF_ANY) == 0;
}

uint32_t bpf_programs_mapping_count(const struct bpf_programs *programs, uint32_t pid)
{
    uint32_t count = 0;
    return bpf_map_lookup_elem(bpf_map__fd(programs->object->maps.mapping_counts), &pid, &count) == 0 ? count : 0;
}

bool bpf_programs_set_interpreted(struct bpf_programs *programs, uint32_t tid,
                                  const struct bpf_interpreted_thread *thread)
{
    int map = bpf_map__fd(programs->object->maps.interpreted_threads);
    if (!thread) return bpf_map_delete_elem(map, &tid) == 0;
    return bpf_map_update_elem(map, &tid, thread, BPF_ANY) == 0;
}

void bpf_programs_remove_process(struct bpf_programs *programs, uint32_t pid)
{
    bpf_map_delete_elem(bpf_map__fd(programs->object->maps.processes), &pid);
    bpf_map_delete_elem(bpf_map__fd(programs->object->maps.mapping_counts), &pid);
}
