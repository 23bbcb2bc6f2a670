/* All code that runs inside a signal handler, and the slots through which it hands its stacks over.
 *
 * A slot belongs to the sampler thread while it is FREE or DONE, and to the signalled thread from REQUESTED on. A
 * request has a generation; the signal carries slot and generation, so that an answer which comes after the request was
 * taken back finds another generation and goes away without touching anything. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SAMPLER_SIGNAL_HANDLER_H
#define OFFBEAT_SAMPLER_SIGNAL_HANDLER_H

#include "format/recording_layout.h"
#include "unwind/unwind.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/types.h>
#include <ucontext.h>

enum { SLOTS_MAX = 1024 };

enum slot_phase {
    SLOT_FREE,
    SLOT_REQUESTED,
    SLOT_WRITING,
    SLOT_DONE,
};

struct slot {
    _Atomic uint64_t state;               /* generation << 2 | enum slot_phase */
    const struct unwind_modules *modules; /* to walk with; the sampler keeps it alive until the slot is FREE */
    /* The answer: */
    uint32_t outcome;                  /* enum unwind_outcome */
    uint64_t time_ns;                  /* CLOCK_MONOTONIC */
    struct unwind_registers registers; /* that the walk began with */
    size_t address_count;
    uint64_t addresses[RECORDING_FRAMES_MAX];
    struct unwind_past past; /* of the walk before: the handler's alone */
};

/* What a request's signal carries in its value. */
static inline uint64_t slot_cookie(uint32_t index, uint64_t generation)
{
    return generation << 16 | index;
}

static inline uint64_t slot_state(uint64_t generation, enum slot_phase phase)
{
    return generation << 2 | phase;
}

/* Ignored by default, so that one which arrives after exec does no harm; nearly nobody uses out-of-band data. */
#define SIGNAL_USUAL SIGURG
/* For threads that block all signals, as the workers of many libraries do: the second one that glibc keeps for itself
 * (nptl's SIGSETXID), which its sigfillset leaves out and its sigprocmask does not block. glibc's handler is called for
 * what is not ours; itself, it ignores ours. One that arrives after exec ends the new program, so it is not for threads
 * that may call exec: see choose_signal. */
#define SIGNAL_NEVER_BLOCKED 33

/* Installs the handlers, unless they are installed already; answers go to SLOTS (SLOT_COUNT of them), which must stay
 * for as long as the process lives, because an answer can come at any time. Again in a forked child, where requests of
 * the parent mean nothing. A program's own handlers are called for signals that are not ours. Call it on a thread of
 * libc's, before the program installs handlers. False if the usual signal cannot be had. */
bool signal_handler_install(struct slot *slots, uint32_t slot_count);

/* What the handler does for a request: the answer of SLOT, for a thread that was interrupted at CONTEXT. */
void signal_handler_answer(struct slot *slot, const ucontext_t *context);

/* Puts the handlers back in front where the program has installed one of its own since. */
void signal_handler_keep(void);

#endif
