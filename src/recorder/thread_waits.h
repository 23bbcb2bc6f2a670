/* The waits of a thread, in off-CPU mode. The stack comes when a wait begins, how long it took when it ends. Waits that
 * have not ended are written when the recording ends, or as far as they are when a profile is written meanwhile.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_RECORDER_THREAD_WAITS_H
#define OFFBEAT_RECORDER_THREAD_WAITS_H

#include "base/array.h"
#include "recorder/engine.h"

struct recorded_thread;
struct tick;
struct walked_stack;

struct thread_waits {
    bool is_open;    /* true from the beginning of a wait to its end */
    bool is_running; /* true if the thread had a processor when it was observed last */
    enum recording_wait reason;
    uint64_t began_ns, written_ns;              /* beginning, and time up to which the wait is written; 0: nothing is */
    uint64_t runnable_rest_ns, blocked_rest_ns; /* parts of a microsecond that are not written yet */
    enum unwind_outcome outcome;
    ARRAY_OF(uint64_t) addresses;             /* stack of the wait, the innermost frame first; none: it is not known */
    struct engine_other_waits others, closed; /* waits without records, and the part of them in earlier recordings */
};

/* Notes that THREAD waits since BEGAN_NS, at STACK. */
void thread_waits_begin(struct recorded_thread *thread, uint64_t began_ns, const struct walked_stack *stack);

/* Writes WAIT, which has ended. WAKER says who ended it; "": that is not asked for. */
void thread_waits_end(struct recorded_thread *thread, const struct tick *tick, const struct engine_wait *wait,
                      const char *waker);

/* Writes the open wait up to the time NOW_NS. */
void thread_waits_flush(struct recorded_thread *thread, const struct tick *tick, uint64_t now_ns);

/* Writes what is left, because THREAD or the recording ends. */
void thread_waits_close(struct recorded_thread *thread, const struct tick *tick, uint64_t now_ns);

#endif
