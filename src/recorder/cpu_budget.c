/* SPDX-License-Identifier: MIT */
#include "recorder/cpu_budget.h"

#include "base/clocks.h"
#include "base/unsigned.h"

#include <sys/resource.h>
#include <time.h>

#define SLOWNESS_MAX 64.0
#define DEBT_SECONDS_MAX 20.0 /* seconds of the share; a burst slows for so long at most */
#define SAVED_SECONDS_MAX 5.0

static uint64_t nanoseconds_of(struct timeval time)
{
    return (uint64_t)time.tv_sec * SECOND_NS + (uint64_t)time.tv_usec * 1000;
}

static uint64_t used_ns(void)
{
    struct timespec own = {0};
    struct rusage children = {0};
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own);
    (void)getrusage(RUSAGE_CHILDREN, &children);
    return (uint64_t)own.tv_sec * SECOND_NS + (uint64_t)own.tv_nsec + nanoseconds_of(children.ru_utime) +
           nanoseconds_of(children.ru_stime);
}

void cpu_budget_begin(struct cpu_budget *budget, uint64_t share_ppm, uint64_t now_ns)
{
    *budget = (struct cpu_budget){
        .share_ppm = share_ppm, .time_ns = now_ns, .used_ns = share_ppm ? used_ns() : 0, .slowness = 1};
}

static double within(double value, double low, double high)
{
    return value < low ? low : value > high ? high : value;
}

bool cpu_budget_note(struct cpu_budget *budget, uint64_t now_ns, uint64_t used)
{
    const double faster = 0.9;
    double share = (double)budget->share_ppm / 1e6, before = budget->slowness;
    double given_ns = (double)difference(now_ns, budget->time_ns) * share;
    double taken_ns = (double)difference(used, budget->used_ns);
    budget->time_ns = now_ns;
    budget->used_ns = used;
    budget->debt_ns = within(budget->debt_ns + taken_ns - given_ns, -SAVED_SECONDS_MAX * share * (double)SECOND_NS,
                             DEBT_SECONDS_MAX * share * (double)SECOND_NS);
    if (budget->debt_ns > 0 && taken_ns > given_ns)
        budget->slowness *= within(taken_ns / given_ns, 1, 2);
    else if (budget->debt_ns <= 0)
        budget->slowness *= faster;
    budget->slowness = within(budget->slowness, 1, SLOWNESS_MAX);
    budget->is_exceeded = budget->slowness > 1;
    return budget->slowness != before;
}

bool cpu_budget_check(struct cpu_budget *budget, uint64_t now_ns)
{
    if (budget->share_ppm == 0 || now_ns < budget->time_ns + SECOND_NS) return false;
    return cpu_budget_note(budget, now_ns, used_ns());
}
