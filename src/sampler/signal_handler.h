/* All code that runs inside a signal handler, and the requests through which it hands its stacks over.
 *
 * A request belongs to the sampler thread while it is FREE or DONE, and to the signalled thread from REQUESTED on. A
 * request has a generation; the signal carries request and generation, so that an reply which comes after the request
 * was taken back finds another generation and goes away without touching anything. A timer replies again and again: a
 * later reply is added to those that were not read yet, or replaces one, by chance. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_SIGNAL_HANDLER_H
#define OFFBEAT_SAMPLER_SIGNAL_HANDLER_H

#include "format/recording/recording_layout.h"
#include "unwind/unwind.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/types.h>
#include <ucontext.h>

enum { REQUESTS_MAX = 1024 };

enum request_phase {
    REQUEST_FREE,
    REQUEST_OPEN,
    REQUEST_WRITING,
    REQUEST_DONE,
};

/* Where a timer's signal meets its thread. */
enum signal_origin {
    ORIGIN_OUTSIDE, /* of system calls */
    ORIGIN_IN_CALL,
    ORIGIN_ANY, /* no preference */
};

enum { REQUEST_WORDS = 512, REQUEST_STACK_WORDS = 1024, REPLIES_MAX = 4 };

/* How the handler reads the stack of its thread. */
enum stack_reading {
    READ_BY_COPY,  /* process_vm_readv, which never faults */
    READ_BY_PROBE, /* for a thread with an inherited seccomp filter: asks first, then reads */
};

struct sample_reply {
    uint32_t outcome;                  /* enum unwind_outcome */
    struct unwind_registers registers; /* that the walk began with */
    size_t address_count;
    uint64_t addresses[RECORDING_FRAMES_MAX];
};

/* A timer on the CPU clock of a request's thread. */
struct request_timing {
    uint64_t interval_ns;
    uint32_t signals_a_reply;     /* as long as there is room for more replies */
    uint32_t long_call_intervals; /* from which on a system call is a long one; 0: none is */
};

/* System calls that several ticks of the kernel have met. Each is a single signal, at its end, so they have an reply
 * apart, of one of them by chance: the longer it was, the likelier. */
struct long_calls_total {
    uint32_t count;
    uint64_t intervals; /* of the timer, in all of them */
};

struct sample_request {
    _Atomic uint64_t state; /* generation << 2 | enum request_phase */
    /* Of one that a timer replies (sample_requests.h): */
    _Atomic uint32_t signals[2]; /* since its replies were last read: ORIGIN_OUTSIDE and ORIGIN_IN_CALL */
    _Atomic uint64_t intervals;  /* of the timer, since it was armed, up to the last signal */
    uint64_t chance;             /* the handler's alone */
    struct request_timing timing;
    _Atomic uint32_t preferred;           /* enum signal_origin */
    const struct unwind_modules *modules; /* to walk with; the sampler keeps it alive until the request is FREE */
    _Atomic pid_t thread;                 /* the one that is asked */
    enum stack_reading reading;
    bool is_left;        /* it was given back while its thread wrote to it */
    atomic_bool is_sent; /* by the sampler thread, not by a timer */
    _Atomic int timer;   /* the kernel's number of one that is armed for this request, + 1; 0: none */
    uint32_t reply_count;
    struct sample_reply replies[REPLIES_MAX];
    struct long_calls_total long_calls; /* since the replies were last read */
    struct sample_reply long_call_reply;
    uint64_t words[REQUEST_WORDS];    /* a copied part of the stack: the handler's alone */
    struct resume_cache resume_cache; /* of the walk before: the handler's alone */
    struct frame_lookup_work work;    /* the handler's alone */
    uint64_t stack[REQUEST_STACK_WORDS] __attribute__((aligned(16))); /* that the handler runs on */
};

/* What a request's signal carries in its value. */
static inline uint64_t request_cookie(uint32_t index, uint64_t generation)
{
    return generation << 16 | index;
}

static inline uint64_t request_state(uint64_t generation, enum request_phase phase)
{
    return generation << 2 | phase;
}

/* The kernel ignores these two signals by default, so a request that is still pending when its thread calls exec does
 * nothing to the new program. No other signal is used: a real-time signal would end the new program.
 * The usual one is for out-of-band data, which nearly no program uses. */
#define SIGNAL_USUAL SIGURG
/* For threads that block the usual one, or in programs that handle it. A terminal sends it when its size changes. */
#define SIGNAL_SUBSTITUTE SIGWINCH

/* The si_code of requests. The kernel uses no such number, and sigqueue and its like always use SI_QUEUE. */
enum { SIGNAL_CODE = -0x4f42 };

/* Prepares the handler. Answers are written to REQUESTS (REQUEST_COUNT of them), which must exist as long as the
 * process, because an reply can come at any time. Call it again in a forked child, where requests of the parent mean
 * nothing. Call it on a thread of libc's. False if libc fails. */
bool signal_handler_install(struct sample_request *requests, uint32_t request_count);

enum signal_user {
    SIGNAL_OF_NOBODY, /* it is ignored */
    SIGNAL_OF_SAMPLER,
    SIGNAL_OF_PROGRAM,
};

/* Whose handler signal NUMBER has at this moment. */
enum signal_user signal_handler_user(int number);

/* True if a request by signal NUMBER would reach our handler. Installs it if the program leaves the signal ignored; a
 * handler of the program's own stays in place, and the program then receives all its signals from the kernel directly.
 * To be asked before each request, while the program installs none (signal_gate.h): it may do so at any time. */
bool signal_handler_is_ready(int number);

/* The process that installed it last. */
pid_t signal_handler_owner(void);

/* What the handler does for a request: the reply of REQUEST, for a thread that was interrupted at CONTEXT. KIND: of a
 * timer's signal, which is counted already, and which may be kept or not; ORIGIN_ANY: of a request, which is kept.
 * INTERVALS of the timer have passed since the signal before. */
void signal_handler_reply(struct sample_request *request, const ucontext_t *context, enum signal_origin kind,
                          uint64_t intervals);

#endif
