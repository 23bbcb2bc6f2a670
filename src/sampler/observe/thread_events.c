/* A ring whose places have numbers (D. Vyukov's bounded queue): a writer takes a number, fills the place, and publishes
 * it by the place's own number. When the ring is full, ends are added up by start routine. SPDX-License-Identifier: MIT
 */
#include "sampler/observe/thread_events.h"

#include "base/kernel.h"
#include "base/unsigned.h"
#include "sampler/kernel/vdso_clock.h"

#include <stdatomic.h>
#include <sys/resource.h>
#include <string.h>

/* Half of the places are for ends, which carry the time of a thread: a begin that is lost costs little. */
enum { PLACES = 2048, PLACES_OF_BEGINS = PLACES / 2, SUMS = 32 };

static struct {
    struct {
        _Atomic uint32_t published; /* number of the event in this place, plus 1 */
        struct thread_event event;
    } places[PLACES];
    _Atomic uint32_t written, taken;
} ring;

/* Sums by routine; the last one is for all further routines. */
static struct {
    _Atomic uint64_t routine, wall_ns, cpu_ns, start_wait_ns, sleeps, preemptions;
    _Atomic uint32_t ends;
} sums[SUMS];
static atomic_bool has_sums;

/* --- Writing ------------------------------------------------------------------------------------------------------ */

static bool take_number(uint32_t places, uint32_t *ret_number)
{
    uint32_t number = atomic_load(&ring.written);
    do {
        if (number - atomic_load(&ring.taken) >= places) return false;
    } while (!atomic_compare_exchange_weak(&ring.written, &number, number + 1));
    *ret_number = number;
    return true;
}

static unsigned sum_of(uint64_t routine)
{
    unsigned i = 0;
    for (; i < SUMS - 1; i++) {
        uint64_t present = 0;
        if (atomic_compare_exchange_strong(&sums[i].routine, &present, routine) || present == routine) break;
    }
    return i;
}

static void add_to_sum(const struct thread_event *event)
{
    unsigned sum = sum_of(event->routine);
    atomic_fetch_add(&sums[sum].wall_ns, event->wall_ns);
    atomic_fetch_add(&sums[sum].cpu_ns, event->cpu_ns);
    atomic_fetch_add(&sums[sum].start_wait_ns, event->start_wait_ns);
    atomic_fetch_add(&sums[sum].sleeps, event->sleeps);
    atomic_fetch_add(&sums[sum].preemptions, event->preemptions);
    atomic_fetch_add(&sums[sum].ends, 1);
    atomic_store(&has_sums, true);
}

static void write_event(const struct thread_event *event)
{
    uint32_t number;
    if (take_number(event->ends > 0 ? PLACES : PLACES_OF_BEGINS, &number)) {
        ring.places[number % PLACES].event = *event;
        atomic_store(&ring.places[number % PLACES].published, number + 1);
    } else if (event->ends > 0) {
        add_to_sum(event);
    }
}

/* --- On the thread itself ----------------------------------------------------------------------------------------- */

/* Event of the calling thread; TID is 0 while it writes none. */
static __thread struct thread_event life __attribute__((tls_model("initial-exec")));

void thread_events_begin(uint64_t routine, uint64_t created_ns)
{
    life = (struct thread_event){.routine = routine, .created_ns = created_ns};
    life.tid = kernel_thread_id();
    life.start_wait_ns = difference(monotonic_ns(), created_ns);
    write_event(&life);
}

void thread_events_end(void)
{
    if (life.tid == 0) return;
    struct thread_event event = life;
    life.tid = 0;
    event.ends = 1;
    (void)kernel_clock_ns(CLOCK_THREAD_CPUTIME_ID, &event.cpu_ns);
    event.wall_ns = difference(monotonic_ns(), event.created_ns);
    /* The kernel shows waits for a processor only in /proc, and an open file would take a number of the program. */
    struct rusage usage = {.ru_nvcsw = 1}; /* kept if the call fails */
    (void)kernel_call3(SYS_getrusage, RUSAGE_THREAD, kernel_address(&usage), 0);
    event.sleeps = (uint64_t)usage.ru_nvcsw;
    event.preemptions = (uint64_t)usage.ru_nivcsw;
    write_event(&event);
}

void thread_events_stay_silent(void)
{
    life.tid = 0;
}

/* --- Reading ------------------------------------------------------------------------------------------------------ */

bool thread_events_are_pending(void)
{
    return atomic_load(&ring.taken) != atomic_load(&ring.written) || atomic_load(&has_sums);
}

static bool take_sum(struct thread_event *ret)
{
    if (!atomic_exchange(&has_sums, false)) return false;
    for (unsigned i = 0; i < SUMS; i++) {
        uint32_t ends = atomic_exchange(&sums[i].ends, 0);
        if (ends == 0) continue;
        *ret = (struct thread_event){.ends = ends, .routine = i < SUMS - 1 ? atomic_load(&sums[i].routine) : 0};
        ret->wall_ns = atomic_exchange(&sums[i].wall_ns, 0);
        ret->cpu_ns = atomic_exchange(&sums[i].cpu_ns, 0);
        ret->start_wait_ns = atomic_exchange(&sums[i].start_wait_ns, 0);
        ret->sleeps = atomic_exchange(&sums[i].sleeps, 0);
        ret->preemptions = atomic_exchange(&sums[i].preemptions, 0);
        atomic_store(&has_sums, true); /* other routines may have sums */
        return true;
    }
    return false;
}

bool thread_events_take(struct thread_event *ret)
{
    uint32_t number = atomic_load(&ring.taken);
    if (atomic_load(&ring.places[number % PLACES].published) != number + 1) return take_sum(ret);
    *ret = ring.places[number % PLACES].event;
    atomic_store(&ring.taken, number + 1);
    return true;
}

void thread_events_forget(void)
{
    memset(&ring, 0, sizeof(ring));
    memset(&sums, 0, sizeof(sums));
    atomic_store(&has_sums, false);
    if (life.tid == 0) return;
    life.tid = kernel_thread_id();
    life.created_ns = monotonic_ns();
    life.start_wait_ns = 0;
}
