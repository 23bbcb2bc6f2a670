/* The slots through which signalled threads hand over their stacks, from the sampler thread's side. One set a process.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_SLOTS_H
#define OFFBEAT_SAMPLER_SLOTS_H

#include "sampler/signal_handler.h"

/* Makes them, all free; in a forked child, again. False without memory. */
bool slots_prepare(void);
void slots_forget(void); /* the parent's, in a forked child */

/* Installs the signal handler; on a thread of libc's. False if no signal is available. */
bool slots_install_handler(void);

/* A slot that asks THREAD for a walk with MODULES, or NULL if all are in use. */
struct slot *slot_take(pid_t thread, const struct unwind_modules *modules, enum slot_reading reading);

/* The answer was read, or is no longer wanted. */
void slot_give_back(struct slot *slot);

/* Sends signal NUMBER to SLOT's thread. False if the kernel denies it. This and slot_arm are for signal_gate.c only. */
bool slot_send(struct slot *slot, int number);

/* From now on the kernel sends signal NUMBER to SLOT's thread at the first tick of the kernel that meets the thread
 * running when an interval of its CPU time has passed since the time before, until the slot is given back. Such a
 * signal comes from the thread's CPU clock (timer_create), so it interrupts no other processor; and since Linux 5.9 the
 * kernel sends it when the thread leaves the kernel, so that it ends no wait (POSIX_CPU_TIMERS_TASK_WORK). One of
 * as many hits as TIMING says is answered, up to SLOT_ANSWERS_MAX of them. False if the kernel denies it. */
bool slot_arm(struct slot *slot, int number, struct slot_timing timing);
bool slot_is_armed(const struct slot *slot); /* and was not disarmed since */

/* The answers of such a slot, which are some of HITS by chance, are the sampler thread's until slot_release. False if
 * there are none. */
struct slot_hits {
    uint32_t count, in_call; /* of these in system calls */
    bool are_all;            /* all that the timer had since the answer before; else the answer to a request */
    uint64_t intervals;      /* of the timer, since it was armed, up to the last hit */
};
bool slot_hold(struct slot *slot, struct slot_hits *ret_hits);
void slot_release(struct slot *slot);

/* The next answer is by chance among hits of this kind, if there are any; HIT_ANY: there can be several. To be called
 * before slot_arm, and before slot_release. */
void slot_prefer(struct slot *slot, enum hit_kind preferred);

/* The next answers are walks with MODULES. False if one is being written at this instant. */
bool slot_renew(struct slot *slot, const struct unwind_modules *modules);

/* No such signal is sent to THREAD any more; 0: to any thread. From any thread, at any time. */
void slots_disarm(pid_t thread);

/* True if a signal of slot_send has not reached its thread yet. From any thread, at any time. */
bool slots_are_sent(void);

/* True if a thread with this stack pointer runs our handler. */
bool slots_hold_stack(uint64_t stack_pointer);

enum slot_phase slot_phase_of(const struct slot *slot);
uint32_t slots_used(void);

#endif
