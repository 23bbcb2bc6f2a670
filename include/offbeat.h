/* offbeat: profiles this process, all the time, and sends what it finds to any Sentry-compatible receiver.
 *
 *     #include <offbeat.h>
 *
 *     int main(void)
 *     {
 *         offbeat_init(&(struct offbeat_options){.size = sizeof(struct offbeat_options),
 *                                                .dsn = "https://KEY@HOST/PROJECT",
 *                                                .profile_session_sample_rate = 1.0});
 *         offbeat_start_profiler();
 *         …
 *     }
 *
 * Build with `cc program.c $(pkg-config --cflags --libs offbeat)`. At the end of the process what is left is sent;
 * there is no need to shut down.
 *
 * Promises, for every function here:
 *   - Any thread may call it at any time, also before offbeat_init and after offbeat_shutdown, where it does nothing
 *     (but offbeat_counts).
 * No function may be called in a signal handler.
 *   - It never aborts, never prints on standard output, and leaves errno as it was. What is wrong with an option is
 *     said once on standard error (or to LOG), and the program goes on unprofiled.
 *   - Functions of the program that the library calls (samplers, before_send, log) must not call it, nor exit, nor wait
 *     for who is in offbeat_shutdown.
 *   - Texts are copied and may be NULL, which is the same as not set. They are UTF-8; what is not is replaced.
 *   - Time that the program hands in is in nanoseconds.
 *   - In a child of fork the library starts again automatically, a second after the fork: with a new profiler id, and
 * with spans of its own. What the parent had begun stays the parent's. In a child of _Fork or clone, every function
 * does nothing. A child of vfork must call no function.
 *   - exit ends within shutdown_timeout_ms and 3 s, also when a signal handler calls it that interrupted malloc or a
 *     function of the library. What could not be sent by then waits for the next launch, if there is a spool.
 *   - An argument that is wrong (NULL, a value that is none of its enum, a number that is not finite) is refused; DEBUG
 * says so.
 *   - In a program with raised privileges (set-user-ID, set-group-ID, file capabilities: AT_SECURE) no environment
 * variable counts.
 *
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_H
#define OFFBEAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define OFFBEAT_API __attribute__((visibility("default")))

/* --- Options ------------------------------------------------------------------------------------------------------ */

enum offbeat_lifecycle {
    OFFBEAT_LIFECYCLE_MANUAL, /* offbeat_start_profiler, offbeat_stop_profiler */
    OFFBEAT_LIFECYCLE_TRACE, /* runs while there is a sampled transaction; needs traces_sample_rate or traces_sampler */
};

enum offbeat_mode {
    OFFBEAT_MODE_WALL, /* what every thread does, also when it waits */
    OFFBEAT_MODE_CPU,  /* what processors do: threads that wait are not seen */
};

enum offbeat_symbols {
    OFFBEAT_SYMBOLS_LOCAL,    /* names, files and lines are found on this machine, by a helper program */
    OFFBEAT_SYMBOLS_RECEIVER, /* addresses are sent, and the receiver finds the names in debug files that it has */
};

enum offbeat_decision {
    OFFBEAT_DECISION_OPEN,
    OFFBEAT_DECISION_NO,
    OFFBEAT_DECISION_YES,
};

/* What a sampler decides by. Texts live as long as the call. */
struct offbeat_sampling {
    const char *name, *op;        /* of the transaction; "" if there is none */
    enum offbeat_decision parent; /* what the service that called this one decided */
    double parent_rate;           /* negative if unknown */
    const void *custom;           /* of struct offbeat_transaction */
};

/* The probability, from 0 to 1, with which something is sampled. Called on the thread that starts the transaction. */
typedef double (*offbeat_sampler)(void *data, const struct offbeat_sampling *sampling);

/* True: PAYLOAD, the JSON of an item of TYPE ("profile_chunk", "profile", "transaction"), is to be sent. Called by the
 * library's own thread for profiles, by the thread that finishes it for a transaction. PAYLOAD ends with a NUL and
 * lives as long as the call. */
typedef bool (*offbeat_before_send)(void *data, const char *type, const char *payload, size_t size);

/* MESSAGE is one line without its end. May be called by any thread, also the library's own. */
typedef void (*offbeat_log)(void *data, const char *message);

/* A rate of 0 that counts before the environment, too: a rate that is plainly 0 is not set. */
#define OFFBEAT_RATE_ZERO (-0.0)

/* Set SIZE, and what differs from the default, which is 0 or NULL everywhere. Where a member is not set, the
 * environment variable named behind it counts; flags are on with "1" or "true". */
struct offbeat_options {
    size_t size; /* sizeof(struct offbeat_options): later versions append members */

    const char *dsn;         /* OFFBEAT_DSN. Where profiles go; none: nothing is done */
    const char *release;     /* OFFBEAT_RELEASE; default: the program's name and build id */
    const char *environment; /* OFFBEAT_ENVIRONMENT; default "production" */
    const char *dist;        /* OFFBEAT_DIST */
    const char *server_name; /* OFFBEAT_SERVER_NAME; default: the host's name */

    /* When the profiler runs (doc/lifecycle.md). A session is the process, or with IS_UI what is between two times in
     * the background; whether it is profiled is decided once, by profile_session_sample_rate. */
    double profile_session_sample_rate;       /* OFFBEAT_PROFILE_SESSION_SAMPLE_RATE: 0 to 1 */
    enum offbeat_lifecycle profile_lifecycle; /* OFFBEAT_PROFILE_LIFECYCLE: "manual" or "trace" */
    /* OFFBEAT_START_PROFILER_ON_APP_START: from the next launch of this program in this release on; needs a
     * spool_directory */
    bool start_profiler_on_app_start;
    bool is_ui; /* OFFBEAT_IS_UI */

    double traces_sample_rate; /* OFFBEAT_TRACES_SAMPLE_RATE: of transactions that continue no other service's trace */
    offbeat_sampler traces_sampler; /* overrules it */
    void *traces_sampler_data;

    /* Deprecated: profiles of single transactions, of at most 30 s. If either is set, sessions are not profiled. */
    double profiles_sample_rate; /* OFFBEAT_PROFILES_SAMPLE_RATE: of sampled transactions */
    offbeat_sampler profiles_sampler;
    void *profiles_sampler_data;

    /* How. */
    uint32_t frequency_hz;        /* OFFBEAT_FREQUENCY: 1 to 10000; default 101 */
    enum offbeat_mode mode;       /* OFFBEAT_MODE: "wall" or "cpu" */
    uint32_t chunk_seconds;       /* OFFBEAT_CHUNK_SECONDS: 1 to 60; default 60 */
    enum offbeat_symbols symbols; /* OFFBEAT_SYMBOLS: "local" or "receiver" */
    bool repeats_idle; /* OFFBEAT_REPEATS_IDLE: of a thread that stays where it is send a sample each tick, instead
                        * of the first, the last and one a second; the sums are the same */
    /* Which code is the program's own: prefixes of file paths and of function names, separated by ','. The longest
     * prefix counts; without any, what does not lie in a folder of the system is. */
    const char *in_app_include; /* OFFBEAT_IN_APP_INCLUDE */
    const char *in_app_exclude; /* OFFBEAT_IN_APP_EXCLUDE */
    double frame_rate_hz;       /* of the screen; default 60: offbeat_frame_rendered */

    /* How it gets there. */
    const char *spool_directory;  /* OFFBEAT_SPOOL_DIRECTORY: what is not sent yet waits here, also for the next launch;
                                   * default: offbeat/spool in the user's cache folder. "" = memory only */
    uint64_t spool_bytes_max;     /* OFFBEAT_SPOOL_BYTES_MAX: default 100 MiB; the oldest goes first */
    const char *proxy;            /* OFFBEAT_PROXY: default as http_proxy, https_proxy, all_proxy say; "" = none */
    const char *ca_file;          /* OFFBEAT_CA_FILE: PEM; default: the system's */
    uint32_t shutdown_timeout_ms; /* OFFBEAT_SHUTDOWN_TIMEOUT_MS: how long the end of the process may send; 2000.
                                   * Storing the rest and ending what TLS computes may take up to 3 s more */
    const char *helper;           /* OFFBEAT_HELPER: path of offbeat-helper; default: where it was installed */

    offbeat_before_send before_send;
    void *before_send_data;

    bool debug;      /* OFFBEAT_DEBUG: say what is done and why */
    offbeat_log log; /* default: standard error, each line after "offbeat: " */
    void *log_data;

    double cpu_max_percent; /* OFFBEAT_CPU_MAX: of a processor, what the sampler may use, 0.1 to 100; default 20. It
                             * samples less often where it would use more; the times of profiles stay right */
};

/* --- The whole ---------------------------------------------------------------------------------------------------- */

/* OPTIONS may be NULL: all from the environment. Starts no thread and opens nothing until there is something to sample
 * or to send. Once more: ends the first as offbeat_shutdown does, and begins anew. False if nothing will be done: no
 * DSN, or an option that cannot be understood, about which one line is logged. */
OFFBEAT_API bool offbeat_init(const struct offbeat_options *options);

/* Sends what there is, the samples of the chunk that has begun included. False if that took longer than TIMEOUT_MS. For
 * each chunk a process is run that finds names: not for places that a program often comes by. */
OFFBEAT_API bool offbeat_flush(uint32_t timeout_ms);

/* Stops, sends what there is for shutdown_timeout_ms at most, keeps the rest in the spool, which may take 3 s more if
 * a disk or TLS is slow. Comes by itself when the process calls exit or main returns, and when the library is unloaded.
 * When it has returned, functions of the program (samplers, before_send, log) are not called any more; it waits for
 * calls that go on. */
OFFBEAT_API void offbeat_shutdown(void);

/* Envelope items made since offbeat_init and what became of them: what was made and is none of the others waits, after
 * offbeat_shutdown in the spool. What waited there before counts too once it is sent or discarded. */
struct offbeat_item_counts {
    uint64_t made, sent, limited, discarded;
};
/* After offbeat_shutdown the last ones, until the next offbeat_init. */
OFFBEAT_API struct offbeat_item_counts offbeat_counts(void);

/* --- The profiler ------------------------------------------------------------------------------------------------- */

/* Lifecycle manual. They do nothing, and say so where DEBUG is set, if the session is not sampled, if the profiler runs
 * already (does not run), or with the lifecycle trace. */
OFFBEAT_API void offbeat_start_profiler(void);
OFFBEAT_API void offbeat_stop_profiler(void);

enum { OFFBEAT_ID_SIZE = 33 };
/* 32 hex digits and a NUL. False, and "", if no profiler runs. */
OFFBEAT_API bool offbeat_profiler_id(char ret_id[OFFBEAT_ID_SIZE]);

/* With IS_UI: the user leaves the program, and comes back to it, which begins a session. */
OFFBEAT_API void offbeat_background(void);
OFFBEAT_API void offbeat_foreground(void);

/* A frame took DURATION_NS to render and is on the screen now. Longer than 700 ms is frozen, longer than a frame of
 * frame_rate_hz (and a tenth) is slow; others are not kept. */
OFFBEAT_API void offbeat_frame_rendered(uint64_t duration_ns);

/* VALUE now, of what the program measures by NAME (at most 64 bytes), in UNIT: "nanosecond", "hertz", "byte" or
 * "percent". Kept while a profiler runs, at most 10 000 a chunk. */
OFFBEAT_API void offbeat_measure(const char *name, const char *unit, double value);

/* --- Transactions and spans --------------------------------------------------------------------------------------- */

/* A span lasts from its start to its finish; a transaction is one without a parent here, and all below it, and is sent
 * when it finishes. What they say of themselves is linked to the profile of the thread that started them.
 *
 *     struct offbeat_span *request = offbeat_transaction_start("GET /users", "http.server");
 *     struct offbeat_span *query = offbeat_span_start_child(request, "db", "SELECT …");
 *     offbeat_span_finish(query);
 *     offbeat_span_finish(request);
 *
 * A span is a reference that is given up once: by offbeat_span_finish or offbeat_span_unref. Starts may return NULL (no
 * memory, too many, not initialised), which every function accepts. */
struct offbeat_span;

enum offbeat_source {
    OFFBEAT_SOURCE_CUSTOM,
    OFFBEAT_SOURCE_URL, /* too many names to be of use elsewhere */
    OFFBEAT_SOURCE_ROUTE,
    OFFBEAT_SOURCE_VIEW,
    OFFBEAT_SOURCE_COMPONENT,
    OFFBEAT_SOURCE_TASK,
};

struct offbeat_transaction {
    size_t size; /* sizeof(struct offbeat_transaction) */
    const char *name, *op;
    enum offbeat_source source;
    /* Headers of the request that it serves, as received: whose trace is continued. */
    const char *sentry_trace, *traceparent, *baggage;
    enum offbeat_decision decision; /* overrules samplers, rates and the caller's decision */
    const void *custom;             /* for samplers alone */
};

OFFBEAT_API struct offbeat_span *offbeat_transaction_start(const char *name, const char *op);
OFFBEAT_API struct offbeat_span *offbeat_transaction_start_with(const struct offbeat_transaction *transaction);

/* A child, which belongs to the thread that calls: this is how work is handed to another thread. At most 1 000 a
 * transaction are sent; further ones, and those that finish after it, are counted as discarded. */
OFFBEAT_API struct offbeat_span *offbeat_span_start_child(struct offbeat_span *parent, const char *op,
                                                          const char *description);
/* A child of the calling thread's current span, and current itself until it finishes. NULL if there is none. */
OFFBEAT_API struct offbeat_span *offbeat_span_start(const char *op, const char *description);
OFFBEAT_API void offbeat_span_finish(struct offbeat_span *span);

/* SPAN is the calling thread's current one until it finishes, is left, or the thread ends. */
OFFBEAT_API bool offbeat_span_enter(struct offbeat_span *span);
OFFBEAT_API void offbeat_span_leave(struct offbeat_span *span);
/* A new reference, or NULL. */
OFFBEAT_API struct offbeat_span *offbeat_span_current(void);
OFFBEAT_API struct offbeat_span *offbeat_span_ref(struct offbeat_span *span);
OFFBEAT_API void offbeat_span_unref(struct offbeat_span *span);

enum offbeat_status {
    OFFBEAT_STATUS_UNSET,
    OFFBEAT_STATUS_OK,
    OFFBEAT_STATUS_CANCELLED,
    OFFBEAT_STATUS_UNKNOWN_ERROR,
    OFFBEAT_STATUS_INVALID_ARGUMENT,
    OFFBEAT_STATUS_DEADLINE_EXCEEDED,
    OFFBEAT_STATUS_NOT_FOUND,
    OFFBEAT_STATUS_ALREADY_EXISTS,
    OFFBEAT_STATUS_PERMISSION_DENIED,
    OFFBEAT_STATUS_RESOURCE_EXHAUSTED,
    OFFBEAT_STATUS_FAILED_PRECONDITION,
    OFFBEAT_STATUS_ABORTED,
    OFFBEAT_STATUS_OUT_OF_RANGE,
    OFFBEAT_STATUS_UNIMPLEMENTED,
    OFFBEAT_STATUS_INTERNAL_ERROR,
    OFFBEAT_STATUS_UNAVAILABLE,
    OFFBEAT_STATUS_DATA_LOSS,
    OFFBEAT_STATUS_UNAUTHENTICATED,
};

/* After the finish these change nothing. Those that return bool give false where a maximum is reached (64 keys a span,
 * 200 bytes a key or tag, 1 024 a text), or a number is not finite. */
OFFBEAT_API void offbeat_span_set_status(struct offbeat_span *span, enum offbeat_status status);
OFFBEAT_API void offbeat_span_set_description(struct offbeat_span *span, const char *description);
/* Renames the transaction that SPAN belongs to. */
OFFBEAT_API void offbeat_span_set_transaction_name(struct offbeat_span *span, const char *name,
                                                   enum offbeat_source source);
OFFBEAT_API bool offbeat_span_set_text(struct offbeat_span *span, const char *key, const char *value);
OFFBEAT_API bool offbeat_span_set_number(struct offbeat_span *span, const char *key, double value);
OFFBEAT_API bool offbeat_span_set_bool(struct offbeat_span *span, const char *key, bool value);
OFFBEAT_API bool offbeat_span_set_tag(struct offbeat_span *span, const char *key, const char *value);
OFFBEAT_API bool offbeat_span_is_sampled(const struct offbeat_span *span);

/* What to send along with a request to another service, so that its transaction continues this one's trace. Whom to
 * tell is the program's choice. */
struct offbeat_headers {
    char sentry_trace[64];
    char traceparent[64];
    char baggage[8193];
};
/* OTHERS is the baggage that the request has already, or NULL: members of it that are not Sentry's are kept, unless
 * they break the grammar of W3C Baggage. False, and all empty, where there is nothing to send. */
OFFBEAT_API bool offbeat_span_headers(struct offbeat_span *span, const char *others,
                                      struct offbeat_headers *ret_headers);

#ifdef __cplusplus
}
#endif

#endif
