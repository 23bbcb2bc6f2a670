/* The shared memory is written backward, and over what is old (perf_event_open(2), write_backward): the newest record
 * is where the head points.  SPDX-License-Identifier: MIT */
#include "sampler/perf_timer.h"

#include "base/kernel.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>

enum {
    PAGE = 4096,
    RING_STACKS = 4, /* room for three records, and whole pages a power of two of them, as the kernel wants */
    BESIDE_STACK = 256,
    PERIOD_NS_MIN = 10000, /* the kernel waits no less */
    REGISTERS = 17,
};

/* Registers in the order of their numbers in asm/perf_regs.h, in which a record holds them. */
static const uint8_t register_order[REGISTERS] = {
    MACHINE_RAX, MACHINE_RBX, MACHINE_RCX, MACHINE_RDX, MACHINE_RSI, MACHINE_RDI, MACHINE_FP,  MACHINE_SP,  MACHINE_IP,
    MACHINE_R8,  MACHINE_R9,  MACHINE_R10, MACHINE_R11, MACHINE_R12, MACHINE_R13, MACHINE_R14, MACHINE_R15,
};
static const uint64_t register_mask = 0x1ff | 0xff0000; /* without flags and segments */

/* What the attributes below make of a PERF_RECORD_SAMPLE. */
struct record {
    struct perf_event_header header;
    uint64_t time_ns;
    uint64_t register_abi; /* PERF_SAMPLE_REGS_ABI_NONE: no registers follow */
    uint64_t registers[REGISTERS];
    uint64_t stack_room;
    uint64_t stack[]; /* STACK_ROOM bytes; then, how many of them are filled */
};

int perf_timer_open(struct perf_timer *timer, pid_t tid, enum perf_timer_sight sight, uint64_t period_ns,
                    uint32_t stack_size)
{
    struct perf_event_attr attributes = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof(attributes),
        .config = PERF_COUNT_SW_CPU_CLOCK,
        .sample_period = period_ns ? period_ns : PERIOD_NS_MIN,
        .disabled = period_ns == 0,
        .sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
        .sample_regs_user = register_mask,
        .sample_stack_user = stack_size,
        .exclude_kernel = sight == PERF_TIMER_SEES_USER_CODE,
        .exclude_hv = 1,
        .use_clockid = 1,
        .clockid = CLOCK_MONOTONIC,
        .write_backward = 1,
    };
    long descriptor =
        kernel_call6(SYS_perf_event_open, kernel_address(&attributes), tid, -1, -1, PERF_FLAG_FD_CLOEXEC, 0);
    if (descriptor < 0) return (int)-descriptor;
    size_t ring_size = (size_t)RING_STACKS * stack_size;
    /* Not to be written by us: that is what lets the kernel write over what is old. */
    void *shared = kernel_map(PAGE + ring_size, PROT_READ, MAP_SHARED, (int)descriptor);
    *timer = (struct perf_timer){.control = shared,
                                 .descriptor = (int)descriptor,
                                 .ring_size = ring_size,
                                 .stack_size = stack_size,
                                 .sight = sight};
    bool is_kept = period_ns == 0 || sight == PERF_TIMER_SEES_USER_CODE;
    if (!shared || !is_kept) {
        kernel_close(timer->descriptor); /* the mapping keeps the event */
        timer->descriptor = -1;
    }
    return shared ? 0 : EPERM; /* what it says when there is no locked memory left */
}

bool perf_timer_active_ns(const struct perf_timer *timer, uint64_t *ret_ns)
{
    return timer->descriptor >= 0 && kernel_read(timer->descriptor, ret_ns, sizeof(*ret_ns)) == sizeof(*ret_ns);
}

void perf_timer_ask(struct perf_timer *timer)
{
    if (timer->descriptor < 0 || timer->is_asked) return;
    timer->is_asked = kernel_call3(SYS_ioctl, timer->descriptor, PERF_EVENT_IOC_REFRESH, 1) == 0;
}

void perf_timer_close(struct perf_timer *timer)
{
    if (timer->control && timer->descriptor >= 0) kernel_close(timer->descriptor);
    if (timer->control) kernel_unmap(timer->control, PAGE + timer->ring_size);
    *timer = (struct perf_timer){0};
}

static uint64_t load_head(const struct perf_timer *timer)
{
    return __atomic_load_n(&timer->control->data_head, __ATOMIC_ACQUIRE);
}

/* The record at HEAD in one piece. */
static const struct record *record_at(const struct perf_timer *timer, uint64_t head)
{
    static uint64_t straight[(PERF_TIMER_STACK_MAX + BESIDE_STACK) / 8]; /* the sampler thread's alone */
    const uint8_t *ring = (const uint8_t *)timer->control + PAGE;
    size_t at = head & (timer->ring_size - 1), up_to_end = timer->ring_size - at;
    const struct perf_event_header *header = (const void *)(ring + at); /* 8 bytes, aligned to 8: never in two pieces */
    size_t size = header->size;
    if (size <= up_to_end) return (const void *)header;
    if (size > sizeof(straight)) return NULL;
    memcpy(straight, header, up_to_end);
    memcpy((uint8_t *)straight + up_to_end, ring, size - up_to_end);
    return (const void *)straight;
}

bool perf_timer_newest(struct perf_timer *timer, struct perf_timer_sample *ret_sample)
{
    uint64_t head = load_head(timer);
    uint64_t new_bytes = timer->head - head; /* it is written backward */
    if (head == 0) return false;
    timer->head = head;
    if (new_bytes > 0) timer->is_asked = false;
    const struct record *record = record_at(timer, head);
    if (!record || record->header.type != PERF_RECORD_SAMPLE || record->header.size < sizeof(*record)) return false;
    size_t room = record->header.size - sizeof(*record);
    if (record->register_abi != PERF_SAMPLE_REGS_ABI_64 || record->stack_room > room) return false;
    uint64_t filled = 0;
    if (record->stack_room + sizeof(filled) <= room) filled = record->stack[record->stack_room / 8];
    *ret_sample = (struct perf_timer_sample){.time_ns = record->time_ns, .registers = {.known = MACHINE_ALL_KNOWN}};
    for (unsigned i = 0; i < REGISTERS; i++) ret_sample->registers.values[register_order[i]] = record->registers[i];
    ret_sample->new_count = (uint32_t)((new_bytes + record->header.size - 1) / record->header.size);
    ret_sample->stack = record->stack;
    ret_sample->stack_bytes = filled < record->stack_room ? filled : record->stack_room;
    return true;
}

bool perf_timer_holds(const struct perf_timer *timer)
{
    return timer->head - load_head(timer) <= timer->ring_size - timer->stack_size - BESIDE_STACK;
}
