/* The members of tracers, transactions and spans.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_TRACE_TRACE_PRIVATE_H
#define OFFBEAT_TRACE_TRACE_PRIVATE_H

#include "base/clocks.h"
#include "trace/current_thread.h"
#include "trace/trace.h"

#include <pthread.h>

/* Times at which a profiler started and stopped, on the monotonic clock. */
struct trace_profiler {
    char id[UUID_TEXT_SIZE];
    uint32_t number; /* 1, 2, 3, …; 0: this place is free */
    uint64_t start_ns, end_ns;
};

struct tracer {
    struct tracer_options options; /* texts point into TEXTS, NULs between them; "" for a missing one */
    struct buffer texts;
    struct buffer contexts; /* JSON of OPTIONS */
    unsigned process;
    atomic_size_t references; /* one for the creator and one for each transaction */
    atomic_size_t open;       /* number of transactions that have not ended */

    pthread_rwlock_t listening; /* held for reading: a call of the listener runs; for writing: none runs */
    atomic_bool is_closed;

    pthread_mutex_t roots_lock; /* keeps the calls of the listener in order */
    size_t sampled_open;

    pthread_mutex_t profilers_lock;
    struct trace_profiler profilers[TRACE_PROFILERS_KEPT_MAX]; /* number N at N % TRACE_PROFILERS_KEPT_MAX */
    uint32_t last_profiler;
    _Atomic uint32_t running_profiler; /* 0: none */
};

struct trace_span {
    struct trace_transaction *transaction;
    atomic_uint references;
    bool is_recordable; /* the span is sampled, and not over the maximum */
    bool is_recorded;   /* the span is in the transaction's list, which owns it */
    bool is_left_out;   /* dropped from the complete transaction, by the program or for the payload's maximum */
    atomic_bool is_finished;
    _Atomic(struct trace_thread *) entered_by; /* thread on which the span is current */
    struct trace_span *previous;               /* the next current span there; a reference */
    struct trace_span *next;                   /* next span in the list */

    uint64_t id, parent_id; /* 0: no parent */
    uint64_t start_ns, end_ns;
    uint32_t profiler; /* number of the profiler */
    pid_t tid;
    char thread_name[TRACE_THREAD_NAME_SIZE];
    enum trace_status status;
    struct trace_entry *entries;
    size_t entry_count, entry_capacity;
    char *description; /* follows the op in TEXTS, or has its own memory */
    char texts[];      /* op NUL description NUL */
};

/* Reads the thread's name when SPAN finishes on its own thread, under the lock (LNK-4). */
void trace_span_read_thread_name(struct trace_span *span, uint64_t now_ns);

/* LOCK holds what changes until the root has finished; afterwards only MEMBERS does. */
struct trace_transaction {
    struct tracer *tracer;
    unsigned process;
    atomic_size_t holders; /* spans with references, and the listener that received it */
    pthread_mutex_t lock;
    bool is_complete;
    bool is_abandoned;    /* the root was given up unfinished */
    _Atomic pid_t editor; /* thread that edits the complete transaction; 0: none */

    struct trace_span *root; /* lives as long as the transaction */
    struct trace_span *finished, *last_finished;
    size_t finished_count;
    atomic_size_t started;           /* number of spans without the root */
    atomic_size_t text_bytes;        /* bytes of all texts */
    atomic_size_t lost_over_maximum; /* number of spans over a maximum */
    atomic_size_t lost_late;         /* number of spans that were unfinished when the root finished */

    char *name;
    char *user[4]; /* id, username, email, ip_address; NULL: not known */
    enum trace_source source;
    char event_id[UUID_TEXT_SIZE];
    char trace_id[UUID_TEXT_SIZE];
    char profiler_id[UUID_TEXT_SIZE]; /* "" = none; set when it is complete */
    struct trace_sampling sampling;
    enum trace_decision passed_on;
    uint32_t rand_millionths;
    uint32_t token;
    struct trace_members members;
    bool is_frozen;
    uint64_t anchor_ns; /* UTC minus the monotonic clock, taken once so that no step of a clock reorders spans */
};

/* Begins a call of the listener; false if it must not be called. tracer_end_call must follow after true. */
bool tracer_begin_call(struct tracer *tracer);
void tracer_end_call(struct tracer *tracer);
void tracer_report(struct tracer *tracer, const char *reason, const char *category, uint64_t quantity);
uint32_t tracer_root_started(struct tracer *tracer, bool is_sampled, const char *trace_id);
void tracer_root_ended(struct tracer *tracer, uint32_t token, bool is_sampled);
/* Returns the id of profiler NUMBER; false if it is 0 or too long ago. */
bool tracer_profiler_id(struct tracer *tracer, uint32_t number, char ret_id[UUID_TEXT_SIZE]);
/* Returns the kept profiler that ran longest between START_NS and END_NS, the first of equals; 0 if no profiler ran. A
 * profiler that ended when a transaction began, because its root restarted the profiler, is not meant. */
uint32_t tracer_profiler_within(struct tracer *tracer, uint64_t start_ns, uint64_t end_ns);

/* Makes a span with one reference, which counts among the transaction's holders. NULL without memory. */
struct trace_span *trace_span_new(struct trace_transaction *transaction, const char *op, const char *description);
void trace_span_free(struct trace_span *span);
void trace_transaction_complete(struct trace_transaction *transaction);
void trace_transaction_abandon(struct trace_transaction *transaction);
void trace_transaction_drop_holder(struct trace_transaction *transaction);
/* Builds the trace's own members unless they exist. Under the lock. */
void trace_transaction_freeze(struct trace_transaction *transaction);

/* Returns the number of bytes of TEXT (NULL = "") to keep, at most MAXIMUM, without cutting a character. */
size_t trace_text_size(const char *text, size_t maximum);
/* Returns a copy of at most MAXIMUM bytes of TEXT; NULL without memory. */
char *trace_text_copy(const char *text, size_t maximum);

/* Gives each span the last name that its thread had in a span of TRANSACTION, which is complete (LNK-4). */
void trace_transaction_give_thread_names(struct trace_transaction *transaction);

#endif
