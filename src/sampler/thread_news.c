/* A ring whose places have numbers (D. Vyukov's bounded queue): a writer takes a number, fills the place, and publishes
 * it by the place's own number. Where the ring is full, ends are added up by start routine.
 * SPDX-License-Identifier: MIT */
#include "sampler/thread_news.h"

#include "base/kernel.h"
#include "base/unsigned.h"
#include "sampler/process_info.h"

#include <stdatomic.h>
#include <sys/resource.h>
#include <string.h>

/* A begin that is lost costs little: half of the places are for ends, which say what a thread spent. */
enum { PLACES = 2048, PLACES_OF_BEGINS = PLACES / 2, SUMS = 32 };

static struct {
    struct {
        _Atomic uint32_t published; /* number + 1 of the news that it holds */
        struct thread_news news;
    } places[PLACES];
    _Atomic uint32_t written, taken;
} ring;

/* The last one is for all routines that have no separate entry. */
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

static void add_to_sum(const struct thread_news *news)
{
    unsigned sum = sum_of(news->routine);
    atomic_fetch_add(&sums[sum].wall_ns, news->wall_ns);
    atomic_fetch_add(&sums[sum].cpu_ns, news->cpu_ns);
    atomic_fetch_add(&sums[sum].start_wait_ns, news->start_wait_ns);
    atomic_fetch_add(&sums[sum].sleeps, news->sleeps);
    atomic_fetch_add(&sums[sum].preemptions, news->preemptions);
    atomic_fetch_add(&sums[sum].ends, 1);
    atomic_store(&has_sums, true);
}

static void write_news(const struct thread_news *news)
{
    uint32_t number;
    if (take_number(news->ends > 0 ? PLACES : PLACES_OF_BEGINS, &number)) {
        ring.places[number % PLACES].news = *news;
        atomic_store(&ring.places[number % PLACES].published, number + 1);
    } else if (news->ends > 0) {
        add_to_sum(news);
    }
}

/* --- On the thread itself ----------------------------------------------------------------------------------------- */

/* TID is 0 while nothing is written of it. */
static __thread struct thread_news life __attribute__((tls_model("initial-exec")));

/* How long the thread waited for a processor is only in /proc, and an open file would take a number of the program. */
static void count_switches(struct thread_news *news)
{
    struct rusage usage = {.ru_nvcsw = 1}; /* if it is not known */
    (void)kernel_call3(SYS_getrusage, RUSAGE_THREAD, kernel_address(&usage), 0);
    news->sleeps = (uint64_t)usage.ru_nvcsw;
    news->preemptions = (uint64_t)usage.ru_nivcsw;
}

void thread_news_begin(uint64_t routine, uint64_t created_ns)
{
    life = (struct thread_news){.routine = routine, .created_ns = created_ns};
    life.tid = thread_id();
    life.start_wait_ns = difference(monotonic_ns(), created_ns);
    write_news(&life);
}

void thread_news_end(void)
{
    if (life.tid == 0) return;
    struct thread_news news = life;
    life.tid = 0;
    news.ends = 1;
    (void)kernel_clock_ns(CLOCK_THREAD_CPUTIME_ID, &news.cpu_ns);
    news.wall_ns = difference(monotonic_ns(), news.created_ns);
    count_switches(&news);
    write_news(&news);
}

void thread_news_stay_silent(void)
{
    life.tid = 0;
}

/* --- Reading ------------------------------------------------------------------------------------------------------ */

bool thread_news_are_there(void)
{
    return atomic_load(&ring.taken) != atomic_load(&ring.written) || atomic_load(&has_sums);
}

static bool take_sum(struct thread_news *ret)
{
    if (!atomic_exchange(&has_sums, false)) return false;
    for (unsigned i = 0; i < SUMS; i++) {
        uint32_t ends = atomic_exchange(&sums[i].ends, 0);
        if (ends == 0) continue;
        *ret = (struct thread_news){.ends = ends, .routine = i < SUMS - 1 ? atomic_load(&sums[i].routine) : 0};
        ret->wall_ns = atomic_exchange(&sums[i].wall_ns, 0);
        ret->cpu_ns = atomic_exchange(&sums[i].cpu_ns, 0);
        ret->start_wait_ns = atomic_exchange(&sums[i].start_wait_ns, 0);
        ret->sleeps = atomic_exchange(&sums[i].sleeps, 0);
        ret->preemptions = atomic_exchange(&sums[i].preemptions, 0);
        atomic_store(&has_sums, true); /* there may be others */
        return true;
    }
    return false;
}

bool thread_news_take(struct thread_news *ret)
{
    uint32_t number = atomic_load(&ring.taken);
    if (atomic_load(&ring.places[number % PLACES].published) != number + 1) return take_sum(ret);
    *ret = ring.places[number % PLACES].news;
    atomic_store(&ring.taken, number + 1);
    return true;
}

void thread_news_forget(void)
{
    memset(&ring, 0, sizeof(ring));
    memset(&sums, 0, sizeof(sums));
    atomic_store(&has_sums, false);
    if (life.tid == 0) return;
    life.tid = thread_id();
    life.created_ns = monotonic_ns();
    life.start_wait_ns = 0;
}
