/* The shared memory is written backward, and over what is old (perf_event_open(2), write_backward): the newest record
 * is where the head points.  SPDX-License-Identifier: MIT */
#include "sampler/source/perf_timer.h"

#include "base/kernel.h"
#include "base/pages.h"
#include "base/unsigned.h"
#include "sampler/source/chance.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>

enum {
    RING_SIZE_MAX = 256 << 10,
    BESIDE_STACK = 256,
    PERIOD_NS_MIN = 10000, /* shortest period of the kernel */
};

/* A PERF_RECORD_SAMPLE with the attributes below. */
struct record {
    struct perf_event_header header;
    uint64_t time_ns;
    uint64_t register_abi; /* PERF_SAMPLE_REGS_ABI_NONE: no registers follow */
    uint64_t registers[PERF_REGISTERS];
    uint64_t stack_room;
    uint64_t stack[]; /* STACK_ROOM bytes, then the number of filled ones */
};

int perf_timer_open(struct perf_timer *timer, pid_t tid, enum perf_timer_sight sight, uint64_t period_ns,
                    uint32_t stack_size, uint32_t ring_size)
{
    struct perf_event_attr attributes = {
        .type = PERF_TYPE_SOFTWARE,
        .size = sizeof(attributes),
        .config = sight == PERF_TIMER_SEES_STOPS ? PERF_COUNT_SW_CONTEXT_SWITCHES : PERF_COUNT_SW_CPU_CLOCK,
        .sample_period = period_ns ? period_ns : PERIOD_NS_MIN,
        .disabled = period_ns == 0,
        .sample_type = PERF_SAMPLE_TIME | PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER,
        .sample_regs_user = perf_registers_mask,
        .sample_stack_user = stack_size,
        .exclude_kernel = sight == PERF_TIMER_SEES_USER_CODE,
        .exclude_hv = 1,
        .context_switch = 1,
        .watermark = 1, /* no wake-ups: each is an interrupt, though no thread waits */
        .wakeup_watermark = UINT32_MAX,
        .sample_id_all = 1,
        .use_clockid = 1,
        .clockid = CLOCK_MONOTONIC,
        .write_backward = 1,
    };
    long descriptor =
        kernel_call6(SYS_perf_event_open, kernel_address(&attributes), tid, -1, -1, PERF_FLAG_FD_CLOEXEC, 0);
    if (descriptor < 0) return (int)-descriptor;
    size_t page = pages_size(), size = page; /* times a power of two, as the kernel wants */
    while (size < ring_size && size < RING_SIZE_MAX) size *= 2;
    /* Only a mapping without PROT_WRITE lets the kernel overwrite old records. */
    void *shared = pages_map(page + size, PROT_READ, MAP_SHARED, (int)descriptor);
    *timer = (struct perf_timer){.control = shared,
                                 .descriptor = (int)descriptor,
                                 .control_bytes = page,
                                 .ring_size = size,
                                 .stack_size = stack_size,
                                 .is_free = period_ns != 0,
                                 .sight = sight};
    bool is_kept = period_ns == 0 || sight != PERF_TIMER_SEES_ALL;
    if (!shared || !is_kept) {
        kernel_close(timer->descriptor); /* the mapping keeps the event */
        timer->descriptor = -1;
    }
    return shared ? 0 : EPERM; /* the kernel's errno when there is no locked memory left */
}

uint32_t perf_timer_room(const struct perf_timer *timer)
{
    return (uint32_t)(timer->ring_size / (sizeof(struct record) + timer->stack_size + sizeof(uint64_t)));
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

void perf_timer_run_freely(struct perf_timer *timer, uint64_t period_ns)
{
    if (timer->descriptor < 0) return;
    bool is_set = kernel_call3(SYS_ioctl, timer->descriptor, PERF_EVENT_IOC_PERIOD, kernel_address(&period_ns)) == 0;
    if (timer->is_free) return;
    timer->is_free = is_set && kernel_call3(SYS_ioctl, timer->descriptor, PERF_EVENT_IOC_ENABLE, 0) == 0;
}

void perf_timer_close(struct perf_timer *timer)
{
    if (timer->control && timer->descriptor >= 0) kernel_close(timer->descriptor);
    pages_free(timer->control, timer->control_bytes + timer->ring_size);
    *timer = (struct perf_timer){0};
}

static uint64_t load_head(const struct perf_timer *timer)
{
    return __atomic_load_n(&timer->control->data_head, __ATOMIC_ACQUIRE);
}

/* A PERF_RECORD_SWITCH. */
struct switch_record {
    struct perf_event_header header;
    uint64_t time_ns;
};

/* Reads WORD once, because it bounds something, and the kernel may be overwriting it. */
static uint64_t read_once(const uint64_t *word)
{
    return __atomic_load_n(word, __ATOMIC_RELAXED);
}

/* Headers are 8 bytes, aligned to 8, and so never in two pieces. */
static struct perf_event_header header_at(const struct perf_timer *timer, uint64_t position)
{
    const uint8_t *ring = (const uint8_t *)timer->control + timer->control_bytes;
    uint64_t word = read_once((const void *)(ring + (position & (timer->ring_size - 1))));
    struct perf_event_header header;
    memcpy(&header, &word, sizeof(header));
    return header;
}

/* Returns SIZE bytes at POSITION in one piece, or NULL if no record is so long: the kernel has overwritten it. */
static const struct record *record_at(const struct perf_timer *timer, uint64_t position, size_t size)
{
    static uint64_t straight[(PERF_TIMER_STACK_MAX + BESIDE_STACK) / 8]; /* the sampler thread's alone */
    const uint8_t *ring = (const uint8_t *)timer->control + timer->control_bytes;
    size_t at = position & (timer->ring_size - 1), up_to_end = timer->ring_size - at;
    if (size < sizeof(struct record) || size > timer->ring_size || size > sizeof(straight)) return NULL;
    if (size <= up_to_end) return (const void *)(ring + at);
    memcpy(straight, ring + at, up_to_end);
    memcpy((uint8_t *)straight + up_to_end, ring, size - up_to_end);
    return (const void *)straight;
}

static uint64_t time_of_switch(const struct perf_timer *timer, uint64_t position)
{
    const uint8_t *ring = (const uint8_t *)timer->control + timer->control_bytes;
    uint64_t time_ns;
    memcpy(&time_ns, ring + ((position + sizeof(struct perf_event_header)) & (timer->ring_size - 1)), sizeof(time_ns));
    return time_ns;
}

/* From Linux 6.18 on, a thread whose quota is spent is stopped when it leaves the kernel, for some milliseconds. The
 * records look as if it had been preempted, but if it was woken just before, it is still in the call in which it slept.
 * A thread that ran for a moment only may be in this state: of 100 such threads, 2 ran for longer. */
enum { MOMENT_NS = 8000, QUOTA_WAIT_NS_MIN = 1000000 };

/* A reading of the records, from the newest one backward in time. */
struct reading {
    uint64_t started_ns; /* time of the last switch read, if it was a start, ns; else 0 */
    uint64_t stopped_ns; /* time of the last switch read, if it was a preemption, ns; else 0 */
    uint64_t waits_ns;   /* waits with only moments between them, whose cause is further back, ns */
    bool has_newest;     /* true if NEWEST is set */
    bool has_origin;     /* true if the cause of the newest waits is known */
    bool is_whole;       /* true if no record was overwritten */
    uint32_t sleeps;     /* voluntary context switches */
    uint32_t stops;      /* all stops */
    uint64_t oldest_ns;  /* time of the oldest switch read, ns */
    struct perf_timer_news news;
    struct perf_timer_switch newest;
};

/* Attributes the waits of READING to a sleep or a preemption, the cause that precedes them. */
static void end_waits(struct perf_timer *timer, struct reading *reading, bool is_sleep)
{
    if (!is_sleep) timer->preempted_ns += reading->waits_ns;
    reading->waits_ns = 0;
    if (!reading->has_origin) reading->newest.is_in_call = is_sleep;
    reading->has_origin = true;
}

static void read_start(struct perf_timer *timer, struct reading *reading, uint64_t time_ns)
{
    if (reading->stopped_ns > time_ns + MOMENT_NS) end_waits(timer, reading, false);
    reading->started_ns = time_ns;
    reading->stopped_ns = 0;
}

static void read_stop(struct perf_timer *timer, struct reading *reading, uint64_t time_ns, bool is_preempted)
{
    uint64_t wait_ns = is_preempted ? difference(reading->started_ns, time_ns) : 0; /* 0: it has not run since */
    bool is_short = wait_ns > 0 && wait_ns < QUOTA_WAIT_NS_MIN;
    reading->waits_ns += wait_ns;
    if (!is_preempted || is_short) end_waits(timer, reading, !is_preempted);
    reading->stopped_ns = is_preempted ? time_ns : 0;
    reading->started_ns = 0;
}

static void read_switch(struct perf_timer *timer, struct reading *reading, uint16_t misc, uint64_t time_ns)
{
    bool is_stop = misc & PERF_RECORD_MISC_SWITCH_OUT, is_preempted = misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
    if (!reading->has_newest) {
        reading->newest = (struct perf_timer_switch){
            .time_ns = time_ns, .is_stop = is_stop, .was_preempted = is_stop && is_preempted};
        reading->has_newest = true;
    }
    reading->sleeps += is_stop && !is_preempted;
    reading->oldest_ns = time_ns;
    reading->stops += is_stop;
    if (is_stop)
        read_stop(timer, reading, time_ns, is_preempted);
    else
        read_start(timer, reading, time_ns);
}

/* Connects READING to the last one, whose newest switch precedes the oldest one of this. */
static void end_reading(struct perf_timer *timer, struct reading *reading)
{
    const double new_part = 0.125; /* weight of this reading in the averages */
    const struct perf_timer_switch *before = &timer->newest;
    timer->sleeps = reading->sleeps;
    if (!reading->has_newest) return;
    uint64_t from_ns = reading->is_whole && before->time_ns ? before->time_ns : reading->oldest_ns;
    double ns = (double)difference(reading->newest.time_ns, from_ns);
    timer->rate.stops += new_part * (reading->stops - timer->rate.stops);
    timer->rate.ns += new_part * (ns - timer->rate.ns);
    if (before->is_stop)
        read_stop(timer, reading, before->time_ns, before->was_preempted);
    else
        read_start(timer, reading, before->time_ns);
    end_waits(timer, reading, before->is_in_call);
    timer->has_seen_switch = timer->is_free;
    timer->newest = reading->newest;
}

/* Returns the number of samples in BYTES that were overwritten before they were read: records of switches are small. */
static uint32_t overwritten(const struct perf_timer *timer, uint64_t bytes)
{
    return (uint32_t)(bytes / (sizeof(struct record) + timer->stack_size));
}

/* Returns the end of the new records that are still in memory. The ring is written backward. */
static uint64_t end_of_new(const struct perf_timer *timer, uint64_t head)
{
    return head + least(timer->head - head, timer->ring_size);
}

/* Reads the header of the record at AT. Returns false at END, or where a record was overwritten. */
static bool has_record(const struct perf_timer *timer, uint64_t at, uint64_t end, struct perf_event_header *ret_header)
{
    if (at == end) return false;
    *ret_header = header_at(timer, at);
    return ret_header->size >= sizeof(*ret_header) && ret_header->size % 8 == 0 && ret_header->size <= end - at;
}

static bool is_switch(const struct perf_event_header *header)
{
    return header->type == PERF_RECORD_SWITCH && header->size >= sizeof(struct switch_record);
}

static struct reading read_new(struct perf_timer *timer, uint64_t head)
{
    struct reading reading = {0};
    struct perf_event_header header;
    uint64_t at = head, end = end_of_new(timer, head);
    for (; has_record(timer, at, end, &header); at += header.size) {
        if (is_switch(&header)) read_switch(timer, &reading, header.misc, time_of_switch(timer, at));
        if (header.type != PERF_RECORD_SAMPLE) continue;
        struct perf_timer_news *news = &reading.news;
        news->count++;
        if (news->kept_count < PERF_TIMER_NEWS_MAX) news->positions[news->kept_count++] = at;
    }
    reading.news.count += overwritten(timer, timer->head - at);
    reading.is_whole = at == timer->head;
    end_reading(timer, &reading);
    timer->head = head;
    return reading;
}

static bool decode_sample(struct perf_timer *timer, uint64_t position, struct perf_timer_sample *ret_sample)
{
    size_t size = header_at(timer, position).size;
    const struct record *record = record_at(timer, position, size);
    if (!record) return false;
    uint64_t room = size - sizeof(*record), stack_room = read_once(&record->stack_room), filled = 0;
    if (record->register_abi != PERF_SAMPLE_REGS_ABI_64 || stack_room > room) return false;
    if (stack_room + sizeof(filled) <= room) filled = read_once(&record->stack[stack_room / 8]);
    *ret_sample = (struct perf_timer_sample){
        .timer = timer, .time_ns = record->time_ns, .registers = {.known = MACHINE_ALL_KNOWN}};
    for (unsigned i = 0; i < PERF_REGISTERS; i++)
        ret_sample->registers.values[machine_of_perf[i]] = record->registers[i];
    ret_sample->stack = record->stack;
    ret_sample->stack_bytes = filled < stack_room ? filled : stack_room;
    timer->sample_end = position + size;
    return true;
}

uint32_t perf_timer_read(struct perf_timer *timer, struct perf_timer_news *ret_news)
{
    uint64_t head = load_head(timer);
    *ret_news = (struct perf_timer_news){0};
    timer->sleeps = 0;
    if (head != timer->head) *ret_news = read_new(timer, head).news;
    if (ret_news->count > 0) timer->is_asked = false;
    return ret_news->count;
}

bool perf_timer_sample(struct perf_timer *timer, const struct perf_timer_news *news, uint32_t number,
                       struct perf_timer_sample *ret_sample)
{
    return decode_sample(timer, news->positions[news->kept_count - 1 - number], ret_sample);
}

/* --- Stops --------------------------------------------------------------------------------------------------------
 * The kernel writes a sample, if it takes one, right before the record of the stop; the next start ends the wait. */

struct stops_reading {
    uint64_t started_ns; /* time of the last record read, if it was a start, ns; else 0 */
    uint64_t wait_ns;    /* wait that began at the last stop read, ns */
    bool is_open;        /* true if that wait has not ended */
    struct perf_timer_stops stops;
};

static void read_switch_of_wait(struct stops_reading *reading, uint16_t misc, uint64_t time_ns)
{
    bool is_stop = misc & PERF_RECORD_MISC_SWITCH_OUT, is_preempted = misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
    reading->is_open = is_stop && reading->started_ns == 0;
    reading->wait_ns = is_stop && is_preempted ? difference(reading->started_ns, time_ns) : 0;
    reading->started_ns = is_stop ? 0 : time_ns;
}

static void note_stop(struct stops_reading *reading, uint64_t position, uint64_t *random_state)
{
    struct perf_timer_stops *stops = &reading->stops;
    stops->count++;
    stops->wait_ns += reading->wait_ns;
    if (chance_below(random_state, (double)stops->wait_ns) >= (double)reading->wait_ns) return;
    stops->position = position;
    stops->its_wait_ns = reading->wait_ns;
}

double perf_timer_stops_in(const struct perf_timer *timer, uint64_t period_ns)
{
    return timer->rate.ns > 0 ? timer->rate.stops * (double)period_ns / timer->rate.ns : 0;
}

void perf_timer_read_stops(struct perf_timer *timer, uint64_t *random_state, struct perf_timer_stops *ret_stops)
{
    struct stops_reading reading = {.is_open = true};
    struct perf_event_header header;
    uint64_t head = load_head(timer), at = head, end = end_of_new(timer, head);
    for (; has_record(timer, at, end, &header); at += header.size) {
        if (is_switch(&header)) read_switch_of_wait(&reading, header.misc, time_of_switch(timer, at));
        if (header.type != PERF_RECORD_SAMPLE) continue;
        if (reading.is_open)
            head = at + header.size; /* the sample is read again when its wait has ended */
        else
            note_stop(&reading, at, random_state);
        reading.is_open = false;
        reading.wait_ns = 0;
    }
    reading.stops.count += overwritten(timer, timer->head - at);
    timer->head = head;
    *ret_stops = reading.stops;
}

bool perf_timer_stop(struct perf_timer *timer, const struct perf_timer_stops *stops,
                     struct perf_timer_sample *ret_sample)
{
    return stops->wait_ns > 0 && decode_sample(timer, stops->position, ret_sample);
}

bool perf_timer_holds(const struct perf_timer *timer)
{
    /* The sample's words must be read before the head is read again. */
    kernel_order_loads();
    return timer->sample_end - load_head(timer) <= timer->ring_size;
}
