/* All code that runs inside a signal handler, and the requests through which it hands its stacks over.
 *
 * A request belongs to the sampler thread while it is FREE or DONE, and to the signalled thread from OPEN on. A request
 * has a generation; the signal carries request and generation, so that a reply which comes after the request was taken
 * back finds another generation and goes away without touching anything. A timer replies again and again: a later reply
 * is added to those that were not read yet, or replaces one at random. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_SIGNAL_HANDLER_H
#define OFFBEAT_SAMPLER_SIGNAL_HANDLER_H

#include "format/recording/recording_layout.h"
#include "sampler/source/interpreted_request.h"
#include "unwind/unwind.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/types.h>
#include <ucontext.h>

enum { REQUESTS_MAX = 1024, REQUEST_WORDS = 512, REQUEST_STACK_WORDS = 1024, REPLIES_MAX = 4 };

enum request_phase { REQUEST_FREE, REQUEST_OPEN, REQUEST_WRITING, REQUEST_DONE };

/* Where a timer's signal finds its thread: inside a system call, or not. ORIGIN_ANY: no preference, or no timer. */
enum signal_origin { ORIGIN_OUTSIDE, ORIGIN_IN_CALL, ORIGIN_ANY };

_Static_assert((int)INTERPRETED_STACKS_MAX > (int)REPLIES_MAX, "a stack for each reply, and for that of long calls");

/* Ways to read the stack of the interrupted thread. */
enum stack_reading {
    READ_BY_COPY,  /* process_vm_readv, which never faults */
    READ_BY_PROBE, /* rt_sigprocmask, then a load; for a thread with an inherited seccomp filter */
};

struct sample_reply {
    uint32_t outcome; /* enum unwind_outcome */
    enum interpreted_result functions_result;
    const struct interpreted_stack *functions; /* functions of an interpreter that are in ADDRESSES; NULL: none */
    struct unwind_registers registers;         /* registers at the start of the walk */
    size_t address_count;
    uint64_t addresses[RECORDING_FRAMES_MAX];
};

/* A timer on the CPU clock of a request's thread. */
struct request_timing {
    uint64_t interval_ns;
    uint32_t signals_a_reply;     /* signals for each reply, as long as there is room for more replies */
    uint32_t long_call_intervals; /* least length of a long system call, in intervals; 0: no call is a long one */
};

/* System calls that several kernel ticks have met. Each gives a single signal, at its end, so they have a reply of
 * their own: that of one of them, chosen at random in proportion to their lengths. */
struct long_calls_total {
    uint32_t count;
    uint64_t intervals; /* intervals of the timer in all of them */
};

/* A timer on the CPU clock of a request's thread (sample_requests.h). */
struct request_timer {
    _Atomic uint32_t signals[2]; /* signals since the replies were last read, by enum signal_origin */
    _Atomic uint64_t intervals;  /* intervals of the timer from its start to the last signal */
    uint64_t chance;             /* random state of the handler */
    struct request_timing timing;
    _Atomic uint32_t preferred; /* enum signal_origin */
    _Atomic int number;         /* kernel's number of the timer, plus 1; 0: there is none */
};

/* Memory of the handler alone. */
struct handler_memory {
    uint64_t words[REQUEST_WORDS];    /* a copied part of the program's stack */
    struct resume_cache resume_cache; /* the previous walk */
    struct frame_lookup_work work;
    uint64_t stack[REQUEST_STACK_WORDS] __attribute__((aligned(16)));
};

struct sample_request {
    _Atomic uint64_t state; /* generation << 2 | enum request_phase */
    struct request_timer timer;
    uint32_t index;                       /* number of the request */
    const struct unwind_modules *modules; /* snapshot to walk with; the sampler keeps it until the request is FREE */
    _Atomic pid_t thread;                 /* thread that is asked */
    enum stack_reading reading;
    bool is_left;        /* true if it was given back while its thread wrote to it */
    atomic_bool is_sent; /* true if the sampler thread has sent the signal, not a timer */
    uint32_t reply_count;
    struct sample_reply replies[REPLIES_MAX];
    struct long_calls_total long_calls; /* long calls since the replies were last read */
    struct sample_reply long_call_reply;
    struct interpreted_request *_Atomic interpreted; /* work on functions of an interpreter; may be NULL */
    struct handler_memory handler;
};

/* Returns the value that the signal of a request carries. */
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
/* The substitute, for threads that block the usual one and programs that handle it. A terminal sends it when its size
 * changes. */
#define SIGNAL_SUBSTITUTE SIGWINCH

/* The si_code of requests. The kernel uses no such number, and sigqueue and its like always use SI_QUEUE. */
enum { SIGNAL_CODE = -0x4f42 };

/* Prepares the handler. Replies are written to the requests in REQUESTS (REQUEST_COUNT entries, NULL: none yet), which
 * must exist as long as the process, because a reply can come at any time. Called again in a forked child, where
 * requests of the parent mean nothing, and always on a thread of libc. Returns false if libc fails. */
bool signal_handler_install(struct sample_request *const *requests, uint32_t request_count);

enum signal_user {
    SIGNAL_OF_NOBODY, /* it is ignored */
    SIGNAL_OF_SAMPLER,
    SIGNAL_OF_PROGRAM,
};

/* Returns whose handler signal NUMBER has at this moment. */
enum signal_user signal_handler_user(int number);

/* Returns true if a request by signal NUMBER would reach our handler. Installs it if the program leaves the signal
 * ignored; a handler of the program stays in place, and the program then receives all its signals from the kernel
 * directly. Called before each request, while the program installs no handler (signal_gate.h): it may do so at any
 * time.
 */
bool signal_handler_is_ready(int number);

/* Returns the process that installed the handler last. */
pid_t signal_handler_owner(void);

/* Writes the reply to REQUEST for a thread that was interrupted at CONTEXT. A timer's signal, of origin ORIGIN, is
 * counted already, and its reply may be dropped; ORIGIN_ANY is a request by the sampler thread, whose reply is kept.
 * INTERVALS of the timer have passed since the last signal. */
void signal_handler_reply(struct sample_request *request, const ucontext_t *context, enum signal_origin origin,
                          uint64_t intervals);

#endif
