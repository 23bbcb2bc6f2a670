/* Transactions and spans of this process.
 *
 * A span lasts from its start to its finish. A transaction is a span without a parent in this process, its root, and
 * all spans below it; when the root finishes, the transaction is handed to the creator of the tracer, to be encoded
 * and sent.
 *
 *     struct trace_span *root = trace_transaction_start(tracer, &(struct trace_start){.name = "GET /", .op = "http"});
 *     struct trace_span *child = trace_span_start_child(root, "db", "SELECT 1");
 *     trace_span_finish(child);
 *     trace_span_finish(root);
 *
 * A span is a reference, which the caller gives up once: with trace_span_finish or trace_span_unref. All functions
 * may be called by any thread, also at the same time, as long as the caller holds a reference; none in a signal
 * handler. All accept NULL and then do nothing, so a start that returned NULL (no memory, too many transactions, the
 * tracer is closed) needs no check. In a forked child the spans of its parent do nothing either. Strings are copied;
 * longer ones than stated are cut between characters. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_TRACE_TRACE_H
#define OFFBEAT_TRACE_TRACE_H

#include "base/buffer.h"
#include "trace/propagation.h"

#include <sys/types.h>

struct tracer;
struct trace_span;
struct trace_transaction;

enum {
    TRACE_SPANS_MAX = 1000, /* spans of a transaction, without its root; more are counted */
    TRACE_TRANSACTIONS_OPEN_MAX = 1 << 14,
    TRACE_ENTRIES_MAX = 64,     /* data and tags of a span */
    TRACE_NAME_BYTES_MAX = 200, /* transaction's name, op, key, tag */
    TRACE_DESCRIPTION_BYTES_MAX = 4096,
    TRACE_DATA_BYTES_MAX = 1024,
    TRACE_TEXT_BYTES_MAX = 1 << 20,    /* all texts of a transaction; more data and tags are rejected */
    TRACE_PROFILERS_KEPT_MAX = 64,     /* number of last profilers to which a span can be linked */
    TRACE_PAYLOAD_BYTES_MAX = 1 << 20, /* maximum of a server; spans that do not fit are counted */
};

enum trace_source {
    TRACE_SOURCE_CUSTOM,
    TRACE_SOURCE_URL, /* the names are too many to pass on */
    TRACE_SOURCE_ROUTE,
    TRACE_SOURCE_VIEW,
    TRACE_SOURCE_COMPONENT,
    TRACE_SOURCE_TASK,
};

enum trace_status {
    TRACE_STATUS_UNSET,
    TRACE_STATUS_OK,
    TRACE_STATUS_CANCELLED,
    TRACE_STATUS_UNKNOWN_ERROR,
    TRACE_STATUS_INVALID_ARGUMENT,
    TRACE_STATUS_DEADLINE_EXCEEDED,
    TRACE_STATUS_NOT_FOUND,
    TRACE_STATUS_ALREADY_EXISTS,
    TRACE_STATUS_PERMISSION_DENIED,
    TRACE_STATUS_RESOURCE_EXHAUSTED,
    TRACE_STATUS_FAILED_PRECONDITION,
    TRACE_STATUS_ABORTED,
    TRACE_STATUS_OUT_OF_RANGE,
    TRACE_STATUS_UNIMPLEMENTED,
    TRACE_STATUS_INTERNAL_ERROR,
    TRACE_STATUS_UNAVAILABLE,
    TRACE_STATUS_DATA_LOSS,
    TRACE_STATUS_UNAUTHENTICATED,
};

bool trace_source_is_known(enum trace_source source);
bool trace_status_is_known(enum trace_status status);

/* The arguments of traces_sampler. */
struct trace_sampling_context {
    const char *name, *op;
    enum trace_decision parent;
    double parent_rate; /* negative if unknown */
    const void *custom; /* the program's own, out of struct trace_start */
};

/* The callbacks of a tracer. DATA is their first argument; a function may be NULL. They are called by threads of the
 * program that start, finish or give up spans. None is called after tracer_close has returned. */
struct trace_listener {
    void *data;
    /* Returns a rate from 0 to 1 for a new transaction; other numbers sample nothing. */
    double (*sample)(void *data, const struct trace_sampling_context *context);
    /* Called when a root begins; OPEN counts the sampled ones, this one included, so that the first has 1. Called one
     * at a time; a profiler that it starts is the root's. Returns the token for root_ended. Must not start
     * transactions.
     */
    uint32_t (*root_started)(void *data, bool is_sampled, const char *trace_id, size_t open);
    /* Called when a root ended, or was given up unfinished; OPEN counts the sampled ones that are left, so that the
     * last has 0. */
    void (*root_ended)(void *data, uint32_t token, bool is_sampled, size_t open);
    /* Called when a sampled transaction is complete. It belongs to the listener, until trace_transaction_free. */
    void (*finished)(void *data, struct trace_transaction *transaction);
    /* QUANTITY of CATEGORY ("transaction", "span") will not be sent, for a REASON of client reports (facts §2.7). */
    void (*discarded)(void *data, const char *reason, const char *category, uint64_t quantity);
    /* MESSAGE, a constant string, for people who debug the program. */
    void (*debug)(void *data, const char *message);
};

/* The user of a transaction; NULL: not known. */
struct trace_user {
    const char *id, *username, *email, *ip_address;
};

/* A value of a span, as <offbeat.h> has it. */
enum trace_entry_kind {
    TRACE_ENTRY_TEXT,
    TRACE_ENTRY_NUMBER,
    TRACE_ENTRY_INTEGER,
    TRACE_ENTRY_BOOL,
    TRACE_ENTRY_TAG,
};
struct trace_entry {
    enum trace_entry_kind kind;
    char *key;        /* one piece of memory with the text after it */
    const char *text; /* texts and tags only */
    double number;
    int64_t integer; /* 0 or 1 for a bool */
};

/* Texts may be NULL; all are copied. */
struct tracer_options {
    const char *release, *environment, *dist, *server_name;
    const char *public_key; /* key of the DSN */
    struct slice contexts;  /* JSON: members of a transaction's contexts, separated by commas; may be empty */
    struct trace_continuation continuation;
    bool has_traces_sample_rate;
    double traces_sample_rate;
    struct trace_listener listener; /* SAMPLE is traces_sampler: if it is set, the rate has no effect */
};

/* NULL without memory. */
struct tracer *tracer_new(const struct tracer_options *options);
/* Waits until the running functions of the listener have returned. After that none is called, and no
 * transaction starts. A second call does nothing. Must not be called by the listener. */
void tracer_close(struct tracer *tracer);
/* Closes TRACER, but waits only until DEADLINE_NS of CLOCK_MONOTONIC. False if a function was still running. */
bool tracer_close_until(struct tracer *tracer, uint64_t deadline_ns);
/* Adds a reference, which tracer_unref gives up, for a caller that starts a transaction while another may free. */
struct tracer *tracer_ref(struct tracer *tracer);
void tracer_unref(struct tracer *tracer);
/* Closes TRACER and gives it up: nobody may use it afterwards, but spans and complete transactions stay valid. In a
 * forked child it frees nothing: the parent does. Accepts NULL, as tracer_close does. */
void tracer_free(struct tracer *tracer);

/* Sets the running profiler: its id (32 hex digits), or NULL when it has stopped. Spans that start are linked to it
 * (LNK-3); transactions are linked to the first profiler that they overlap (LNK-1). May be called out of the listener's
 * functions. */
void tracer_set_profiler(struct tracer *tracer, const char *profiler_id);

/* Returns the traces that TRACER continues. */
const struct trace_continuation *tracer_continuation(const struct tracer *tracer);

/* --- Starting, finishing ------------------------------------------------------------------------------------------ */

struct trace_start {
    const char *name, *op; /* NULL = "" */
    enum trace_source source;
    const struct trace_incoming *incoming; /* trace of the request; NULL: a new trace */
    enum trace_decision decision;          /* takes precedence over sampler, parent and rate */
    const void *custom;                    /* argument of the sampler */
};

/* Starts a transaction. Its root is not current on any thread until trace_span_enter. */
struct trace_span *trace_transaction_start(struct tracer *tracer, const struct trace_start *start);

/* Starts a child of PARENT on the calling thread (LNK-3), also where another thread handed the work over. PARENT may
 * have finished; after its root has, the child is not sent. */
struct trace_span *trace_span_start_child(struct trace_span *parent, const char *op, const char *description);
/* Starts a child of the calling thread's current span, and makes it current. NULL if there is none. */
struct trace_span *trace_span_start(const char *op, const char *description);

/* Ends SPAN now and gives the caller's reference up. A second finish through another reference changes nothing.
 * Children may finish after their parent and are sent with the times that they had, but those that are unfinished when
 * the root finishes are not sent; they are counted as discarded ("no_parent_span"). */
void trace_span_finish(struct trace_span *span);

/* Add a reference for another owner, and give one up. The first returns SPAN. */
struct trace_span *trace_span_ref(struct trace_span *span);
void trace_span_unref(struct trace_span *span);

/* --- The current span of a thread --------------------------------------------------------------------------------- */

/* Makes SPAN current on the calling thread until it finishes, is left, or the thread ends; then the previous one is
 * current again. False, with nothing changed, if it is finished, or current on a thread already. */
bool trace_span_enter(struct trace_span *span);
/* Does nothing if SPAN is not among the current spans of this thread. */
void trace_span_leave(struct trace_span *span);
/* Returns a new reference, or NULL. */
struct trace_span *trace_span_current(void);

/* --- The data of a span ------------------------------------------------------------------------------------------- */

/* Change a span until it finishes, and while its transaction is edited. Functions that return bool return false at a
 * maximum, without memory, for one of our own names ("thread.id", "thread.name", "profiler_id"), or if the number is
 * not finite. A key that is there already is replaced. A status or source outside its enum changes nothing. */
void trace_span_set_status(struct trace_span *span, enum trace_status status);
void trace_span_set_description(struct trace_span *span, const char *description);
/* Renames the transaction of SPAN, any of its spans. Requests that were already sent keep the old name. */
void trace_span_set_transaction_name(struct trace_span *span, const char *name, enum trace_source source);
bool trace_span_set_text(struct trace_span *span, const char *key, const char *value);
bool trace_span_set_number(struct trace_span *span, const char *key, double value);
bool trace_span_set_integer(struct trace_span *span, const char *key, int64_t value);
bool trace_span_set_bool(struct trace_span *span, const char *key, bool value);
/* A tag of the root is one of the transaction. */
bool trace_span_set_tag(struct trace_span *span, const char *key, const char *value);

/* Removes a value, or a tag. False if there is none. */
bool trace_span_remove(struct trace_span *span, const char *key, bool is_tag);
/* Sets the user of SPAN's transaction. NULL: removes it. */
bool trace_span_set_user(struct trace_span *span, const struct trace_user *user);

bool trace_span_is_sampled(const struct trace_span *span);

/* --- To other processes ------------------------------------------------------------------------------------------- */

/* Returns SPAN as the parent of a request. False, with RET_PARENT unchanged, for NULL and in a forked child. */
bool trace_span_parent(const struct trace_span *span, struct trace_parent *ret_parent);
/* Appends the header `baggage`, keeping the members of OTHERS that are not Sentry's. Freezes the trace's own members.
 * False if nothing was appended. */
bool trace_span_baggage(struct trace_span *span, struct slice others, struct buffer *out);

/* --- A transaction that is complete ------------------------------------------------------------------------------- */

/* Begin and end a time in which the calling thread alone changes and reads the spans of TRANSACTION, which has not been
 * encoded. */
void trace_transaction_begin_edit(struct trace_transaction *transaction);
void trace_transaction_end_edit(struct trace_transaction *transaction);
struct trace_span *trace_transaction_root(struct trace_transaction *transaction);
/* Calls KEEP for each span except the root, and leaves out those for which it returns false. Returns their number. */
size_t trace_transaction_filter(struct trace_transaction *transaction,
                                bool (*keep)(void *context, struct trace_span *span), void *context);

/* Return data of SPAN while its transaction is edited, and NULL elsewhere. The next change of the span may free it. */
const char *trace_span_transaction_name(const struct trace_span *span);
const char *trace_span_op(const struct trace_span *span);
const char *trace_span_description(const struct trace_span *span);
const struct trace_entry *trace_span_entry(const struct trace_span *span, size_t index); /* NULL after the last one */

/* Appends the payload of a `transaction` item, at most TRACE_PAYLOAD_BYTES_MAX, which OUT must have room for; spans
 * that do not fit are counted as discarded ("buffer_overflow"). To be called once. OUT's failure says whether there
 * was no memory. */
void trace_transaction_encode(struct trace_transaction *transaction, struct buffer *out);
/* Appends the object for the envelope's header `trace`. */
void trace_transaction_write_context(struct trace_transaction *transaction, struct json_writer *writer);
/* Data of a transaction for its envelope, a profile of V1 and client reports. Texts belong to the transaction. */
struct trace_facts {
    const char *event_id, *name, *trace_id;
    pid_t thread;              /* thread on which the root started */
    uint64_t start_ns, end_ns; /* UTC */
    size_t span_count;         /* number of spans without the root, which are lost if the transaction is not sent */
    uint32_t token;            /* result of root_started */
};
struct trace_facts trace_transaction_facts(const struct trace_transaction *transaction);
/* May call the listener's DISCARDED. Accepts NULL. */
void trace_transaction_free(struct trace_transaction *transaction);

#endif
