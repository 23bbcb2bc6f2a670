/* Counts a thread's waits for a processor after wake-ups and after preemptions, where no timer records its context
 * switches, by the kernel's counts of these (/proc/self/task/TID/status). After each voluntary switch the thread sleeps
 * and then waits; after each other one it waits. SPDX-License-Identifier: MIT */
#include "sampler/run/context_switches.h"

#include "base/unsigned.h"

enum { STATUS_SIZE = 4096 };

/* Returns the kind of wait that THREAD is in, or will be in when it wakes up; none if it runs. */
static struct open_wait open_wait_of(const struct target_thread *thread, uint64_t slept, uint64_t preempted,
                                     bool is_asleep)
{
    uint64_t cpu_ns = thread->ledger.cpu_ns;
    if (is_asleep) return (struct open_wait){.woken = 1};
    if (thread_cpu_ns(thread->files.tid, &cpu_ns) && cpu_ns != thread->ledger.cpu_ns) return (struct open_wait){0};
    if (slept + preempted == 0) return thread->switches.open;
    if (slept > 0 && preempted > 0) return (struct open_wait){0.5, 0.5};
    return slept > 0 ? (struct open_wait){.woken = 1} : (struct open_wait){.preempted = 1};
}

static double positive(double number)
{
    return number > 0 ? number : 0;
}

bool context_switches_count_waits(struct target_thread *thread, struct ended_waits *ret)
{
    static char text[STATUS_SIZE]; /* the sampler thread's alone */
    struct context_switches *before = &thread->switches, now = {.is_known = true};
    if (!thread_read_status(&thread->files, text, sizeof(text))) return false;
    const char *state = status_line(text, "State");
    now.sleeps = status_number(text, "voluntary_ctxt_switches", 10);
    now.preemptions = status_number(text, "nonvoluntary_ctxt_switches", 10);
    uint64_t slept = now.sleeps - before->sleeps, preempted = now.preemptions - before->preemptions;
    now.open = open_wait_of(thread, slept, preempted, state && *state != 'R');
    ret->woken = positive((double)slept + before->open.woken - now.open.woken);
    ret->others = positive((double)preempted + before->open.preempted - now.open.preempted);
    bool is_known = before->is_known || !thread->ledger.beginning.was_there;
    *before = now;
    return is_known && ret->woken + ret->others > 0;
}

bool context_switches_count_last_waits(const struct target_thread *thread, struct ended_waits *ret)
{
    const struct context_switches *before = &thread->switches;
    const struct thread_event *life = &thread->ledger.life;
    if (!before->is_known && thread->ledger.beginning.was_there) return false;
    ret->woken = (double)difference(life->sleeps, before->sleeps) + before->open.woken;
    ret->others = (double)difference(life->preemptions, before->preemptions) + before->open.preempted;
    return true;
}
