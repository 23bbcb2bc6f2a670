/* The requests through which signalled threads hand over their stacks, from the sampler thread's side. One set a
 * process. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_SAMPLE_REQUESTS_H
#define OFFBEAT_SAMPLER_SAMPLE_REQUESTS_H

#include "sampler/signal_handler.h"

/* Makes them, all free; in a forked child, again. False without memory. */
bool sample_requests_prepare(void);
void sample_requests_forget(void); /* the parent's, in a forked child */

/* Installs the signal handler; on a thread of libc's. False if no signal is available. */
bool sample_requests_install_handler(void);

/* A request that asks THREAD for a walk with MODULES, or NULL if all are in use. */
struct sample_request *sample_request_take(pid_t thread, const struct unwind_modules *modules,
                                           enum stack_reading reading);

/* The reply was read, or is no longer wanted. */
void sample_request_give_back(struct sample_request *request);

/* Sends signal NUMBER to REQUEST's thread. False if the kernel denies it. This and sample_request_arm are for
 * signal_gate.c only. */
bool sample_request_send(struct sample_request *request, int number);

/* From now on the kernel sends signal NUMBER to REQUEST's thread at the first tick of the kernel that meets the thread
 * running when an interval of its CPU time has passed since the time before, until the request is given back. Such a
 * signal comes from the thread's CPU clock (timer_create), so it interrupts no other processor; and since Linux 5.9 the
 * kernel sends it when the thread leaves the kernel, so that it ends no wait (POSIX_CPU_TIMERS_TASK_WORK). One of
 * as many signals as TIMING says is replied, up to REPLIES_MAX of them. False if the kernel denies it. */
bool sample_request_arm(struct sample_request *request, int number, struct request_timing timing);
bool sample_request_is_armed(const struct sample_request *request); /* and was not disarmed since */

/* The replies of such a request, which are some of SIGNALS by chance, are the sampler thread's until
 * sample_request_release. False if there are none. */
struct timer_signals {
    uint32_t count, in_call; /* of these in system calls */
    bool are_all;            /* all that the timer had since the reply before; else the reply to a request */
    uint64_t intervals;      /* of the timer, since it was armed, up to the last signal */
};
bool sample_request_hold(struct sample_request *request, struct timer_signals *ret_signals);
void sample_request_release(struct sample_request *request);

/* The next reply is by chance among signals of this kind, if there are any; ORIGIN_ANY: there can be several. To be
 * called before sample_request_arm, and before sample_request_release. */
void sample_request_prefer(struct sample_request *request, enum signal_origin preferred);

/* The next replies are walks with MODULES. False if one is being written at this instant. */
bool sample_request_renew(struct sample_request *request, const struct unwind_modules *modules);

/* No such signal is sent to THREAD any more; 0: to any thread. From any thread, at any time. */
void sample_requests_disarm(pid_t thread);

/* True if a signal of sample_request_send has not reached its thread yet. From any thread, at any time. */
bool sample_requests_are_sent(void);

/* True if a thread with this stack pointer runs our handler. */
bool sample_requests_hold_stack(uint64_t stack_pointer);

enum request_phase sample_request_phase(const struct sample_request *request);
uint32_t sample_requests_used(void);

#endif
