/* The engine for ordinary users: perf events with the registers and a piece of the stack of running threads.
 *
 * An event belongs to one thread and one processor, because only such events can be inherited by new threads and still
 * have a ring. All events of a processor share one ring. The recorder unwinds each copy at once, and reads what lies
 * beyond it from the memory of the process, so that copies stay small and are never stored.
 * SPDX-License-Identifier: MIT */
#include "recorder/engine.h"

#include "base/array.h"
#include "base/unsigned.h"
#include "recorder/rights.h"
#include "recorder/task_files.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum {
    RING_BYTES_MAX = 1 << 20,
    RING_BYTES_MIN = 32 << 10,
    STACK_BYTES = 8 << 10,
    RECORD_BYTES_MAX = 1 << 16,
    PROCESSORS_MAX = 1 << 13,
    EVENTS_MAX = 1 << 20,
    THREADS_MAX = 1 << 16,
    OWN_THREAD = 0,    /* for perf_event_open */
    LISTINGS_MAX = 10, /* listings of a process's threads until no new one is found */
};

/* The ring of a processor. */
struct ring {
    struct perf_event_mmap_page *control; /* NULL: no event is on this processor */
    size_t size;                          /* bytes of its data, a power of two */
    int descriptor;                       /* event that has the ring */
};

/* The events of a process. */
struct perf_process {
    ARRAY_OF(int) events;
    ARRAY_OF(pid_t) threads; /* threads with events; later ones inherit them */
    uint64_t period_ns;
};

struct engine {
    struct engine_options options;
    bool excludes_kernel;
    unsigned processor_count;
    size_t page_bytes, ring_bytes; /* size of a page, and of the data of a ring */
    struct ring *rings;            /* rings by processor */
    uint64_t lost;
    _Alignas(uint64_t) uint8_t record[RECORD_BYTES_MAX]; /* a record that goes around the end of its ring */
};

/* --- Events ------------------------------------------------------------------------------------------------------- */

static int open_event(const struct engine *engine, pid_t tid, int processor)
{
    struct perf_event_attr attributes = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof(attributes),
        .config = PERF_COUNT_SW_CPU_CLOCK,
        .sample_period = engine->options.period_ns,
        .sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
        .sample_regs_user = perf_registers_mask,
        .sample_stack_user = STACK_BYTES,
        .inherit = 1,
        .disabled = tid == OWN_THREAD,
        .exclude_kernel = engine->excludes_kernel,
        .exclude_hv = 1,
        .mmap2 = 1,
        .mmap = 1,
        .comm = 1,
        .comm_exec = 1,
        .task = 1,
        .watermark = 1, /* no wake-ups: the ring is polled */
        .wakeup_watermark = UINT32_MAX,
        .use_clockid = 1,
        .clockid = CLOCK_MONOTONIC,
    };
    return (int)syscall(SYS_perf_event_open, &attributes, tid, processor, -1, PERF_FLAG_FD_CLOEXEC);
}

static void deny(struct engine_denial *denial, int error)
{
    int paranoid = rights_kernel_setting("perf_event_paranoid");
    bool is_exempt = rights_have(CAP_PERFMON) || rights_have(CAP_SYS_ADMIN);
    *denial = (struct engine_denial){0};
    if (paranoid > 2 && !is_exempt && (error == EACCES || error == EPERM)) {
        (void)snprintf(denial->reason, sizeof(denial->reason), "kernel.perf_event_paranoid is %d", paranoid);
        (void)snprintf(denial->remedy, sizeof(denial->remedy), "sudo sysctl kernel.perf_event_paranoid=2");
    } else if (error == EPERM || error == ENOSYS) {
        (void)snprintf(denial->reason, sizeof(denial->reason),
                       "a container or a seccomp filter forbids perf_event_open");
        (void)snprintf(denial->remedy, sizeof(denial->remedy), "docker run --cap-add PERFMON …");
    } else if (error == EMFILE) {
        (void)snprintf(denial->reason, sizeof(denial->reason),
                       "the limit of open files is too low for an event per thread and processor");
        (void)snprintf(denial->remedy, sizeof(denial->remedy), "ulimit -n 100000");
    } else if (error == ENOBUFS) {
        (void)snprintf(denial->reason, sizeof(denial->reason),
                       "other programs of this user use up kernel.perf_event_mlock_kb, the memory for perf's buffers");
        (void)snprintf(denial->remedy, sizeof(denial->remedy), "sudo sysctl kernel.perf_event_mlock_kb=4096");
    } else {
        (void)snprintf(denial->reason, sizeof(denial->reason), "perf_event_open: %s", strerror(error));
    }
}

/* Tries an event on this thread. The kernel's part of it is asked for first. */
static bool try_event(struct engine *engine, struct engine_denial *ret_denial)
{
    int descriptor = open_event(engine, OWN_THREAD, -1);
    if (descriptor < 0 && (errno == EACCES || errno == EPERM)) {
        engine->excludes_kernel = true;
        descriptor = open_event(engine, OWN_THREAD, -1);
    }
    if (descriptor < 0)
        deny(ret_denial, errno);
    else
        (void)close(descriptor);
    return descriptor >= 0;
}

static bool probe(struct engine_denial *ret_denial)
{
    struct engine *engine = calloc(1, sizeof(*engine));
    bool is_there = engine && try_event(engine, ret_denial);
    free(engine);
    return is_there;
}

static bool sees_user_code_only(const struct engine *engine)
{
    return engine->excludes_kernel;
}

/* --- Rings -------------------------------------------------------------------------------------------------------- */

/* Makes the ring of PROCESSOR, with SIZE bytes of data, in an event of this thread that never runs. A processor that is
 * switched off gets none. False with errno: ENOBUFS if the user may not lock so much memory. */
static bool make_ring(struct engine *engine, unsigned processor, size_t size)
{
    int descriptor = open_event(engine, OWN_THREAD, (int)processor);
    if (descriptor < 0) return errno == ENODEV;
    void *shared = mmap(NULL, engine->page_bytes + size, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (shared != MAP_FAILED) {
        engine->rings[processor] = (struct ring){.control = shared, .size = size, .descriptor = descriptor};
        return true;
    }
    int errno_value = errno;
    (void)close(descriptor);
    errno = errno_value == EPERM ? ENOBUFS : errno_value; /* EPERM is for rights that are missing */
    return false;
}

static void free_rings(struct engine *engine)
{
    for (unsigned i = 0; engine->rings && i < engine->processor_count; i++) {
        if (!engine->rings[i].control) continue;
        (void)munmap(engine->rings[i].control, engine->page_bytes + engine->rings[i].size);
        (void)close(engine->rings[i].descriptor);
        engine->rings[i] = (struct ring){0};
    }
}

/* Makes a ring for each processor. The memory that a user may lock is for all of them: half the size is tried next.
 * False with errno. */
static bool make_rings(struct engine *engine)
{
    engine->ring_bytes = RING_BYTES_MAX;
    for (;;) {
        unsigned made = 0;
        while (made < engine->processor_count && make_ring(engine, made, engine->ring_bytes)) made++;
        bool has_too_little = made < engine->processor_count && errno == ENOBUFS;
        if (!has_too_little || engine->ring_bytes / 2 < greatest(RING_BYTES_MIN, engine->page_bytes))
            return made == engine->processor_count;
        free_rings(engine);
        engine->ring_bytes /= 2;
    }
}

/* Sends the records of the event DESCRIPTOR to the ring of PROCESSOR, which may have been switched on just now. */
static bool join_ring(struct engine *engine, unsigned processor, int descriptor)
{
    const struct ring *ring = &engine->rings[processor];
    if (!ring->control && (!make_ring(engine, processor, engine->ring_bytes) || !ring->control)) return false;
    return ioctl(descriptor, PERF_EVENT_IOC_SET_OUTPUT, ring->descriptor) == 0;
}

/* --- Processes ---------------------------------------------------------------------------------------------------- */

/* Opens the events of thread TID. A thread that has ended has none. Returns false if one is denied, with errno. */
static bool add_thread(struct engine *engine, struct perf_process *process, pid_t tid)
{
    if (!ARRAY_PUSH(&process->threads, THREADS_MAX, tid)) return true;
    for (unsigned i = 0; i < engine->processor_count; i++) {
        int descriptor = open_event(engine, tid, (int)i);
        if (descriptor < 0 && errno == ESRCH) return true;
        if (descriptor < 0 && errno == ENODEV) continue; /* the processor is switched off */
        if (descriptor < 0) return false;
        if (join_ring(engine, i, descriptor) && ARRAY_PUSH(&process->events, EVENTS_MAX, descriptor)) continue;
        int errno_value = errno;
        (void)close(descriptor);
        errno = errno_value;
        return false;
    }
    return true;
}

struct listing {
    struct engine *engine;
    struct perf_process *process;
    bool has_new, is_denied;
    int errno_value;
};

static bool take_thread(void *context, pid_t tid)
{
    struct listing *listing = context;
    for (size_t i = 0; i < listing->process->threads.count; i++) {
        if (listing->process->threads.items[i] == tid) return true;
    }
    listing->has_new = true;
    listing->is_denied = !add_thread(listing->engine, listing->process, tid);
    listing->errno_value = errno;
    return !listing->is_denied;
}

static void free_process(struct perf_process *process)
{
    for (size_t i = 0; i < process->events.count; i++) {
        /* It may be the event of a ring, which stays open. This ends those that were inherited from it, too. */
        (void)ioctl(process->events.items[i], PERF_EVENT_IOC_DISABLE, 0);
        (void)close(process->events.items[i]);
    }
    free(process->events.items);
    free(process->threads.items);
    free(process);
}

/* Lists the threads until there is no new one: a thread that was born meanwhile may have inherited nothing. */
static bool add_process(struct engine *engine, struct watched_process *watched, struct engine_denial *ret_denial)
{
    char directory[48];
    struct listing listing = {.engine = engine, .process = calloc(1, sizeof(*listing.process)), .has_new = true};
    if (!listing.process) {
        deny(ret_denial, ENOMEM);
        return false;
    }
    (void)snprintf(directory, sizeof(directory), "/proc/%d/task", (int)watched->pid);
    for (unsigned i = 0; i < LISTINGS_MAX && listing.has_new && !listing.is_denied; i++) {
        listing.has_new = false;
        (void)task_list(directory, take_thread, &listing);
    }
    watched->engine_data = listing.process;
    listing.process->period_ns = engine->options.period_ns;
    if (!listing.is_denied) return true;
    deny(ret_denial, listing.errno_value);
    watched->engine_data = NULL;
    free_process(listing.process);
    return false;
}

static void remove_process(struct engine *engine, struct watched_process *watched)
{
    (void)engine;
    if (watched->engine_data) free_process(watched->engine_data);
    watched->engine_data = NULL;
}

/* Returns true if A is at least half as large again as B, or the other way round. */
static bool is_other_period(uint64_t a, uint64_t b)
{
    return 2 * a >= 3 * b || 2 * b >= 3 * a;
}

/* A new period does not reach the events that threads have inherited: all threads get new events, unless the period is
 * nearly the same. */
static void set_period(struct engine *engine, struct watched_process *watched, uint64_t period_ns)
{
    struct engine_denial denial;
    struct perf_process *old = watched ? watched->engine_data : NULL;
    if (!watched) engine->options.period_ns = period_ns;
    if (!old || !is_other_period(old->period_ns, period_ns)) return;
    if (!add_process(engine, watched, &denial)) { /* no descriptors are left for two events of a thread */
        watched->engine_data = old;
        return;
    }
    free_process(old);
}

/* --- Records ------------------------------------------------------------------------------------------------------ */

/* A PERF_RECORD_SAMPLE with the attributes above. */
struct sample {
    struct perf_event_header header;
    uint32_t pid, tid;
    uint64_t time_ns;
    uint64_t register_abi; /* PERF_SAMPLE_REGS_ABI_NONE: no registers follow */
    uint64_t registers[PERF_REGISTERS];
    uint64_t stack_room;
    uint64_t stack[]; /* STACK_ROOM bytes, then the number of filled ones */
};

static void deliver_sample(const struct perf_event_header *record, const struct engine_sink *sink)
{
    const struct sample *sample = (const struct sample *)(const void *)record;
    if (record->size < sizeof(*sample) || sample->register_abi != PERF_SAMPLE_REGS_ABI_64) return;
    uint64_t room = sample->stack_room;
    bool has_stack =
        room > 0 && room % sizeof(uint64_t) == 0 && room + sizeof(uint64_t) <= record->size - sizeof(*sample);
    uint64_t filled = has_stack ? least(sample->stack[room / sizeof(uint64_t)], room) : 0;
    struct engine_stack stack = {.pid = (pid_t)sample->pid, .tid = (pid_t)sample->tid, .time_ns = sample->time_ns};
    stack.registers.known = MACHINE_ALL_KNOWN;
    for (size_t i = 0; i < PERF_REGISTERS; i++) stack.registers.values[machine_of_perf[i]] = sample->registers[i];
    stack.copy = (struct copied_stack){.start = stack.registers.values[MACHINE_SP],
                                       .words = sample->stack,
                                       .size = filled / sizeof(uint64_t) * sizeof(uint64_t)};
    sink->stack(sink->context, &stack);
}

/* PERF_RECORD_FORK and PERF_RECORD_EXIT. */
struct task_record {
    struct perf_event_header header;
    uint32_t pid, parent_pid, tid, parent_tid;
    uint64_t time_ns;
};

/* PERF_RECORD_COMM, PERF_RECORD_MMAP2 and PERF_RECORD_MMAP begin so. */
struct process_record {
    struct perf_event_header header;
    uint32_t pid, tid;
};

static void deliver_record(struct engine *engine, const struct perf_event_header *record,
                           const struct engine_sink *sink)
{
    const struct task_record *task = (const struct task_record *)(const void *)record;
    const struct process_record *process = (const struct process_record *)(const void *)record;
    bool is_process = record->size >= sizeof(*process), is_task = record->size >= sizeof(*task);
    if (record->type == PERF_RECORD_SAMPLE)
        deliver_sample(record, sink);
    else if (record->type == PERF_RECORD_FORK && is_task && task->pid != task->parent_pid)
        sink->process(sink->context, (pid_t)task->pid, (pid_t)task->parent_pid, PROCESS_FORKED);
    else if (record->type == PERF_RECORD_COMM && is_process && (record->misc & PERF_RECORD_MISC_COMM_EXEC))
        sink->process(sink->context, (pid_t)process->pid, 0, PROCESS_EXECUTED);
    else if ((record->type == PERF_RECORD_MMAP2 || record->type == PERF_RECORD_MMAP) && is_process)
        sink->process(sink->context, (pid_t)process->pid, 0, PROCESS_MAPPED);
    else if (record->type == PERF_RECORD_LOST && record->size >= sizeof(*record) + 2 * sizeof(uint64_t))
        engine->lost += ((const uint64_t *)(const void *)(record + 1))[1];
}

/* Returns the record at OFFSET of RING, in one piece. */
static const struct perf_event_header *record_at(struct engine *engine, const struct ring *ring, uint64_t offset)
{
    const uint8_t *data = (const uint8_t *)ring->control + engine->page_bytes;
    size_t place = (size_t)(offset & (ring->size - 1));
    const struct perf_event_header *header = (const struct perf_event_header *)(const void *)(data + place);
    size_t size = header->size, before_end = ring->size - place;
    if (size <= before_end) return header;
    memcpy(engine->record, data + place, before_end);
    memcpy(engine->record + before_end, data, size - before_end);
    return (const struct perf_event_header *)(const void *)engine->record;
}

static void read_ring(struct engine *engine, const struct ring *ring, const struct engine_sink *sink)
{
    uint64_t head = __atomic_load_n(&ring->control->data_head, __ATOMIC_ACQUIRE), tail = ring->control->data_tail;
    while (tail < head) {
        const struct perf_event_header *record = record_at(engine, ring, tail);
        size_t size = record->size;
        if (size < sizeof(*record)) break;
        deliver_record(engine, record, sink);
        tail += size;
    }
    __atomic_store_n(&ring->control->data_tail, head, __ATOMIC_RELEASE);
}

static void poll_rings(struct engine *engine, const struct engine_sink *sink)
{
    for (unsigned i = 0; i < engine->processor_count; i++) {
        if (engine->rings[i].control) read_ring(engine, &engine->rings[i], sink);
    }
}

/* --- Beginning and end -------------------------------------------------------------------------------------------- */

static void close_engine(struct engine *engine)
{
    if (!engine) return;
    free_rings(engine);
    free(engine->rings);
    free(engine);
}

static struct engine *open_engine(const struct engine_options *options, struct engine_denial *ret_denial)
{
    struct engine *engine = calloc(1, sizeof(*engine));
    long processors = sysconf(_SC_NPROCESSORS_CONF);
    if (!engine) {
        deny(ret_denial, ENOMEM);
        return NULL;
    }
    engine->options = *options;
    engine->page_bytes = (size_t)sysconf(_SC_PAGESIZE);
    engine->processor_count = processors > 0 && processors < PROCESSORS_MAX ? (unsigned)processors : 1;
    engine->rings = calloc(engine->processor_count, sizeof(*engine->rings));
    bool has_events = engine->rings && try_event(engine, ret_denial);
    if (has_events && make_rings(engine)) return engine;
    if (has_events) deny(ret_denial, errno);
    close_engine(engine);
    return NULL;
}

static void count_losses(const struct engine *engine, struct engine_losses *ret_losses)
{
    *ret_losses = (struct engine_losses){.stacks_lost = engine->lost};
}

const struct engine_ops engine_perf = {
    .name = "perf",
    .sees_running = true,
    .sees_user_code_only = sees_user_code_only,
    .probe = probe,
    .open = open_engine,
    .close = close_engine,
    .set_period = set_period,
    .add_process = add_process,
    .remove_process = remove_process,
    .poll = poll_rings,
    .losses = count_losses,
};
