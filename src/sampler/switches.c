/* Which of a thread's waits for a processor followed a wake-up, where no timer records its context switches: by the
 * kernel's counts of them (/proc/self/task/TID/status). After each voluntary switch the thread sleeps and then waits,
 * after each other one it waits. SPDX-License-Identifier: MIT */
#include "sampler/sampler_private.h"

#include "sampler/self.h"

enum { STATUS_SIZE = 4096 };

/* How much shorter waits after a wake-up are than others: the kernel lets who has slept run soon. From the times
 * between two readings that had one kind only. */
static double woken_length(const struct sampler *sampler)
{
    enum { WAITS_MIN = 8 };
    const double usual = 0.25;
    const struct wait_kind *woken = &sampler->waits_woken, *others = &sampler->waits_preempted;
    if (woken->count < WAITS_MIN || others->count < WAITS_MIN) return usual;
    return (woken->ns / woken->count) / (others->ns / others->count);
}

/* What kind of wait THREAD is in, or will be in when it wakes up, if it does not run: it has not ended yet. If it was
 * both preempted and asleep since the time before, the longer kind is more likely. */
static struct thread_owes owed(const struct watched_thread *thread, uint64_t slept, uint64_t preempted, double length,
                               bool is_asleep)
{
    uint64_t cpu_ns = thread->cpu_ns_seen;
    if (is_asleep) return (struct thread_owes){.woken = 1};
    if (thread_cpu_ns(thread->tid, &cpu_ns) && cpu_ns != thread->cpu_ns_seen) return (struct thread_owes){0};
    if (slept + preempted == 0) return thread->switches.owes;
    if (slept > 0 && preempted > 0) return (struct thread_owes){length / (1 + length), 1 / (1 + length)};
    return slept > 0 ? (struct thread_owes){.woken = 1} : (struct thread_owes){.preempted = 1};
}

static double positive(double number)
{
    return number > 0 ? number : 0;
}

static void learn(struct sampler *sampler, double woken, double others, uint64_t wait_ns)
{
    if (woken > 0 && others > 0) return;
    struct wait_kind *kind = woken > 0 ? &sampler->waits_woken : &sampler->waits_preempted;
    kind->count += woken + others;
    kind->ns += (double)wait_ns;
}

bool switches_woken_part(struct sampler *sampler, struct watched_thread *thread, uint64_t wait_ns, double *ret_part)
{
    static char text[STATUS_SIZE]; /* the sampler thread's alone */
    struct thread_switches *before = &thread->switches, now = {.is_known = true};
    if (!thread_read_status(thread, text, sizeof(text))) return false;
    const char *state = self_status_line(text, "State");
    double length = woken_length(sampler);
    now.sleeps = self_status_number(text, "voluntary_ctxt_switches", 10);
    now.preemptions = self_status_number(text, "nonvoluntary_ctxt_switches", 10);
    uint64_t slept = now.sleeps - before->sleeps, preempted = now.preemptions - before->preemptions;
    now.owes = owed(thread, slept, preempted, length, state && *state != 'R');
    double woken = positive((double)slept + before->owes.woken - now.owes.woken);
    double others = positive((double)preempted + before->owes.preempted - now.owes.preempted);
    bool is_known = before->is_known && woken + others > 0;
    *before = now;
    if (!is_known) return false;
    learn(sampler, woken, others, wait_ns);
    *ret_part = woken * length / (woken * length + others);
    return true;
}
