/* The requests through which signalled threads hand over their stacks, from the sampler thread's side. A process has
 * one set of them. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_SAMPLE_REQUESTS_H
#define OFFBEAT_SAMPLER_SAMPLE_REQUESTS_H

#include "sampler/source/signal_handler.h"

/* Makes all requests free; in a forked child, once more. */
void sample_requests_prepare(void);
void sample_requests_forget(void); /* drops the parent's requests, in a forked child */

/* Installs the signal handler, on a thread of libc. Returns false if no signal is available. */
bool sample_requests_install_handler(void);

/* Returns a request to THREAD for a walk with MODULES, or NULL if all are in use or there is no memory. */
struct sample_request *sample_request_take(pid_t thread, const struct unwind_modules *modules,
                                           enum stack_reading reading);

/* Frees REQUEST, whose reply was read or is not wanted. */
void sample_request_give_back(struct sample_request *request);

/* Sends signal NUMBER to REQUEST's thread. Returns false if the kernel denies it. Only signal_gate.c calls this and
 * sample_request_arm. */
bool sample_request_send(struct sample_request *request, int number);

/* Has the kernel send signal NUMBER to REQUEST's thread at the first kernel tick that meets the thread running when an
 * interval of its CPU time has passed since the last one, until the request is given back. Such a signal comes from the
 * thread's CPU clock (timer_create), so it interrupts no other processor; and since Linux 5.9 the kernel sends it when
 * the thread leaves the kernel, so it ends no wait (POSIX_CPU_TIMERS_TASK_WORK). TIMING says how many signals have one
 * reply; REPLIES_MAX bounds the replies. Returns false if the kernel denies it. */
bool sample_request_arm(struct sample_request *request, int number, struct request_timing timing);
bool sample_request_is_armed(const struct sample_request *request); /* false after sample_requests_disarm */

/* Signals that replies stand for. */
struct timer_signals {
    uint32_t count;
    uint32_t in_call;   /* signals inside system calls */
    bool are_all;       /* true for all signals of a timer since its last reply; false for one request */
    uint64_t intervals; /* intervals of the timer from its start to the last signal */
};

/* Holds the replies of an armed REQUEST, some of *RET_SIGNALS at random, for the sampler thread until
 * sample_request_release. Returns false if there are none. */
bool sample_request_hold(struct sample_request *request, struct timer_signals *ret_signals);
void sample_request_release(struct sample_request *request);

/* Has the next reply come from signals of the origin PREFERRED if there are any; ORIGIN_ANY allows several replies.
 * Called before sample_request_arm and before sample_request_release. */
void sample_request_prefer(struct sample_request *request, enum signal_origin preferred);

/* Has the next replies use MODULES. Returns false if a reply is being written at this instant. */
bool sample_request_renew(struct sample_request *request, const struct unwind_modules *modules);

/* Stops the timer signals to THREAD; 0: to all threads. From any thread, at any time. */
void sample_requests_disarm(pid_t thread);

/* Returns true if a signal of sample_request_send has not reached its thread yet. From any thread, at any time. */
bool sample_requests_are_sent(void);

/* Returns true if a thread with this stack pointer runs our handler. */
bool sample_requests_hold_stack(uint64_t stack_pointer);

enum request_phase sample_request_phase(const struct sample_request *request);
uint32_t sample_requests_used(void);

#endif
