/* offbeat: profiles this process continuously and sends the profiles to any Sentry-compatible server.
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
 * Build with `cc program.c $(pkg-config --cflags --libs offbeat)`. The library sends the rest when the process
 * exits; calling offbeat_shutdown is optional.
 *
 * These promises hold for every function:
 *   - Any thread may call it at any time. Before offbeat_init and after offbeat_shutdown it does nothing, except
 *     offbeat_counts. A signal handler must not call it.
 *   - It never aborts, never prints on standard output, and does not change errno. If an option is invalid, the library
 *     prints one line on standard error (or calls LOG), and the program runs unprofiled.
 *   - Callbacks (samplers, before_send…, log) must not call the library, must not exit, and must not wait for a thread
 *     that is in offbeat_shutdown. Only offbeat_before_send_span may call some functions.
 *   - Strings are copied. NULL means not set. Strings are UTF-8; invalid bytes are replaced.
 *   - Times are in nanoseconds.
 *   - In a child of fork the library starts again automatically, one second after the fork, with a new profiler id. The
 *     child has no spans of its parent. In a child of _Fork or clone, every function does nothing. A child of vfork
 * must not call any function.
 *   - exit takes at most shutdown_timeout_ms and 3 s longer, even if a signal handler calls it that interrupted malloc
 *     or a function of the library. Unsent data stays in the spool, where offbeat-helper sends it.
 *   - A function rejects an invalid argument (NULL, a value outside its enum, a number that is not finite) and does
 *     nothing; with DEBUG it logs a line.
 *   - In a program with raised privileges (set-user-ID, set-group-ID, file capabilities: AT_SECURE) the library ignores
 *     all environment variables.
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

/* The version of this header. Within a major version, programs built with an older header run with a newer library. */
#define OFFBEAT_VERSION_MAJOR 0
#define OFFBEAT_VERSION_MINOR 1
#define OFFBEAT_VERSION_PATCH 0

/* The version of the library that the program runs with, "MAJOR.MINOR.PATCH". Never NULL. */
OFFBEAT_API const char *offbeat_version(void);

/* --- Options ------------------------------------------------------------------------------------------------------ */

enum offbeat_lifecycle {
    OFFBEAT_LIFECYCLE_MANUAL, /* offbeat_start_profiler, offbeat_stop_profiler */
    OFFBEAT_LIFECYCLE_TRACE,  /* runs during sampled transactions; needs traces_sample_rate or traces_sampler */
};

enum offbeat_mode {
    OFFBEAT_MODE_WALL, /* wall time of every thread, running or waiting */
    OFFBEAT_MODE_CPU,  /* CPU time only */
};

enum offbeat_symbols {
    OFFBEAT_SYMBOLS_LOCAL,    /* a helper program on this machine adds names, files and lines */
    OFFBEAT_SYMBOLS_RECEIVER, /* the library sends addresses; the server adds names from debug files that it has */
};

enum offbeat_decision {
    OFFBEAT_DECISION_OPEN,
    OFFBEAT_DECISION_NO,
    OFFBEAT_DECISION_YES,
};

/* The input of a sampling decision. The strings are valid only during the call. */
struct offbeat_sampling {
    const char *name, *op;        /* name and operation of the transaction, or "" */
    enum offbeat_decision parent; /* the decision of the calling service */
    double parent_rate;           /* negative if unknown */
    const void *custom;           /* the member of struct offbeat_transaction */
};

/* Returns a probability, from 0 to 1. Called on the thread that starts the transaction. */
typedef double (*offbeat_sampler)(void *data, const struct offbeat_sampling *sampling);

/* Returns whether to send an item of TYPE ("profile_chunk", "profile", "transaction"). PAYLOAD is its JSON, with a NUL
 * at the end, and is valid only during the call. The library calls it for profiles on its own thread, and for a
 * transaction on the thread that finishes it. With it, what a killed program recorded last is not sent. */
typedef bool (*offbeat_before_send)(void *data, const char *type, const char *payload, size_t size);

struct offbeat_span;

/* Changes a finished transaction (SPAN is its root) or one of its spans, or returns false to drop it. In this callback
 * SPAN is accepted by offbeat_span_set_…, offbeat_span_remove…, and the functions that read it; other functions must
 * not be called. Called on the thread that finishes the transaction: first for each span, then for the transaction.
 * Then before_send receives the result. */
typedef bool (*offbeat_before_send_span)(void *data, struct offbeat_span *span);

/* MESSAGE is one line without a newline. Called on any thread, including the library's own. */
typedef void (*offbeat_log)(void *data, const char *message);

/* A rate of 0 that takes precedence over the environment. A plain 0 means that the rate is not set. */
#define OFFBEAT_RATE_ZERO (-0.0)

/* A flag is true, OFFBEAT_FALSE, which takes precedence over the environment, or 0, which means not set. */
typedef uint8_t offbeat_flag;
#define OFFBEAT_FALSE 2

/* Set SIZE, and each member that shall differ from its default. A member that is 0 or NULL is not set: then the library
 * uses the environment variable in its comment, or the default. A flag's variable is "1" or "true", "0" or "false". */
struct offbeat_options {
    size_t size; /* sizeof(struct offbeat_options): later versions append members */

    const char *dsn;         /* OFFBEAT_DSN, SENTRY_DSN: the server. Without it the library does nothing */
    const char *release;     /* OFFBEAT_RELEASE, SENTRY_RELEASE: "SERVICE@VERSION"; default: the program's name and its
                              * build id. See SERVICE below */
    const char *environment; /* OFFBEAT_ENVIRONMENT, SENTRY_ENVIRONMENT; default "production" */
    const char *dist;        /* OFFBEAT_DIST */
    const char *server_name; /* OFFBEAT_SERVER_NAME; default: the host's name */

    /* The times at which the profiler runs (doc/lifecycle.md). profile_session_sample_rate decides once per session. A
     * session lasts as long as the process, or with IS_UI until the program moves to the background. */
    double profile_session_sample_rate;       /* OFFBEAT_PROFILE_SESSION_SAMPLE_RATE: 0 to 1 */
    enum offbeat_lifecycle profile_lifecycle; /* OFFBEAT_PROFILE_LIFECYCLE: "manual" or "trace" */
    /* OFFBEAT_START_PROFILER_ON_APP_START: the profiler starts in offbeat_init, so call it first in main. It takes
     * effect at the next launch of this program in this release; needs a spool_directory */
    offbeat_flag start_profiler_on_app_start;
    offbeat_flag is_ui; /* OFFBEAT_IS_UI */

    double traces_sample_rate;      /* OFFBEAT_TRACES_SAMPLE_RATE: of transactions that start a trace */
    offbeat_sampler traces_sampler; /* takes precedence over traces_sample_rate */
    void *traces_sampler_data;

    /* Deprecated: profiles of single transactions, up to 30 s. If either is set, the library does not profile sessions.
     */
    double profiles_sample_rate; /* OFFBEAT_PROFILES_SAMPLE_RATE: of sampled transactions */
    offbeat_sampler profiles_sampler;
    void *profiles_sampler_data;

    /* Sampling. */
    uint32_t frequency_hz;        /* OFFBEAT_FREQUENCY: 1 to 10000; default 101 */
    enum offbeat_mode mode;       /* OFFBEAT_MODE: "wall" or "cpu" */
    uint32_t chunk_seconds;       /* OFFBEAT_CHUNK_SECONDS: 1 to 60; default 60 */
    enum offbeat_symbols symbols; /* OFFBEAT_SYMBOLS: "local" or "receiver" */
    offbeat_flag repeats_idle; /* OFFBEAT_REPEATS_IDLE: send a sample per tick of a waiting thread, too, instead of the
                                * first, the last and one a second; a running thread always has one per tick */
    /* Prefixes of file paths and of function names of in-app code, separated by ','. The longest matching prefix
     * decides. Code that matches no prefix is in-app unless its file is in a system folder. */
    const char *in_app_include; /* OFFBEAT_IN_APP_INCLUDE */
    const char *in_app_exclude; /* OFFBEAT_IN_APP_EXCLUDE */
    double frame_rate_hz;       /* rate of the screen; default 60. See offbeat_frame_rendered */

    /* Sending. */
    const char *spool_directory;  /* OFFBEAT_SPOOL_DIRECTORY: keeps what is to be sent; default: the first of
                                   * $XDG_STATE_HOME/offbeat, /var/tmp/offbeat-UID, /tmp/offbeat-UID and
                                   * /dev/shm/offbeat-UID that can be written. "" = one that is deleted at the end */
    uint64_t spool_bytes_max;     /* OFFBEAT_SPOOL_BYTES_MAX: default 100 MiB; the oldest is dropped first */
    const char *proxy;            /* OFFBEAT_PROXY: default as http_proxy, https_proxy, all_proxy say; "" = none */
    const char *ca_file;          /* OFFBEAT_CA_FILE: PEM; default: the system's */
    uint32_t shutdown_timeout_ms; /* OFFBEAT_SHUTDOWN_TIMEOUT_MS: how long the library may wait at exit until the helper
                                   * has sent; default 2000. Storing the rest may take up to 3 s more */
    const char *helper;           /* OFFBEAT_HELPER: path of offbeat-helper, which sends; default: the installed one */

    offbeat_before_send before_send;
    void *before_send_data;

    offbeat_flag debug; /* OFFBEAT_DEBUG: log each action and its reason */
    offbeat_log log;    /* default: standard error, each line after "offbeat: " */
    void *log_data;

    double cpu_max_percent; /* OFFBEAT_CPU_MAX: the sampler's limit, in percent of a processor, 0.1 to 100; default
                             * 20. At the limit it samples less often; times in profiles stay right */
    const char *platform;   /* OFFBEAT_PLATFORM: of profiles; default "native", or "other" without images. Servers count
                             * chunks of "javascript", "android" and "cocoa" as profiles of user interfaces */

    /* OFFBEAT_SERVICE, OTEL_SERVICE_NAME: the part of the release before '@', unless RELEASE has one. Default: the name
     * that was started (of a link, not of its target; of an interpreter, the script). */
    const char *service;
    const char *org_id; /* OFFBEAT_ORG_ID: the organization; default: the number in a DSN's host "o123.…" */
    /* OFFBEAT_STRICT_TRACE_CONTINUATION: do not continue a trace if only one of both organizations is known. A trace of
     * another organization is never continued. */
    offbeat_flag strict_trace_continuation;

    offbeat_before_send_span before_send_transaction;
    void *before_send_transaction_data;
    offbeat_before_send_span before_send_span; /* filter of the spans below the root */
    void *before_send_span_data;
};

/* --- Start and end ------------------------------------------------------------------------------------------------ */

/* OPTIONS may be NULL: then all options come from the environment. Starts no thread and opens no file until there is
 * something to sample or to send. A second call first does what offbeat_shutdown does. Returns false if there is no DSN
 * or an option is invalid; then it logs one line, and the library does nothing. */
OFFBEAT_API bool offbeat_init(const struct offbeat_options *options);

/* Sends all data, including the current chunk. Returns false if that takes longer than TIMEOUT_MS, or if it cannot be
 * sent before. A process makes each chunk: do not call this on a hot path. */
OFFBEAT_API bool offbeat_flush(uint32_t timeout_ms);

/* Stops profiling, sends for at most shutdown_timeout_ms, and writes the rest to the spool, which may take 3 s more on
 * a slow disk. Called automatically when the process calls exit, when main returns, and when the library is unloaded.
 * It waits for running callbacks; after it has returned, the library calls none. */
OFFBEAT_API void offbeat_shutdown(void);

/* Envelope items since offbeat_init. Items that are not yet sent, limited or discarded are pending; after
 * offbeat_shutdown these are in the spool. Items of earlier launches count when they are sent or discarded. The struct
 * never grows: further counts will have their own function. */
struct offbeat_item_counts {
    uint64_t made, sent, limited, discarded;
};
/* After offbeat_shutdown it returns the last counts, until the next offbeat_init. */
OFFBEAT_API struct offbeat_item_counts offbeat_counts(void);

/* --- The profiler ------------------------------------------------------------------------------------------------- */

/* For the lifecycle manual. They do nothing if the session is not sampled, if the profiler already runs (or does not
 * run), or with the lifecycle trace; with DEBUG they log a line. */
OFFBEAT_API void offbeat_start_profiler(void);
OFFBEAT_API void offbeat_stop_profiler(void);

enum { OFFBEAT_ID_SIZE = 33 };
/* Writes 32 hex digits and a NUL. Returns false and writes "" if no profiler runs. */
OFFBEAT_API bool offbeat_profiler_id(char ret_id[OFFBEAT_ID_SIZE]);

/* With IS_UI: the program moves to the background, or comes to the foreground, which starts a session. */
OFFBEAT_API void offbeat_background(void);
OFFBEAT_API void offbeat_foreground(void);

/* Reports a frame that took DURATION_NS to render and has appeared on the screen. The library keeps frozen frames (over
 * 700 ms) and slow frames (over 1.1 frames of frame_rate_hz). */
OFFBEAT_API void offbeat_frame_rendered(uint64_t duration_ns);

/* Adds a measurement: NAME (at most 64 bytes) has VALUE now, in UNIT: "nanosecond", "hertz", "byte" or "percent". The
 * library keeps measurements while a profiler runs, at most 10 000 per chunk. */
OFFBEAT_API void offbeat_measure(const char *name, const char *unit, double value);

/* --- Transactions and spans --------------------------------------------------------------------------------------- */

/* A span lasts from its start to its finish. A transaction is the outermost span of this service; it is sent with all
 * its spans when it finishes. Spans are linked to the profile of the thread that started them.
 *
 *     struct offbeat_span *request = offbeat_transaction_start("GET /users", "http.server");
 *     struct offbeat_span *query = offbeat_span_start_child(request, "db", "SELECT …");
 *     offbeat_span_finish(query);
 *     offbeat_span_finish(request);
 *
 * The start functions return a reference. Release it once, with offbeat_span_finish or offbeat_span_unref. They return
 * NULL if there is no memory, if there are too many spans, or before offbeat_init; every function accepts NULL. */
enum offbeat_source {
    OFFBEAT_SOURCE_CUSTOM,
    OFFBEAT_SOURCE_URL, /* has ids in it: not for baggage */
    OFFBEAT_SOURCE_ROUTE,
    OFFBEAT_SOURCE_VIEW,
    OFFBEAT_SOURCE_COMPONENT,
    OFFBEAT_SOURCE_TASK,
};

struct offbeat_transaction {
    size_t size; /* sizeof(struct offbeat_transaction) */
    const char *name, *op;
    enum offbeat_source source;
    /* Headers of the incoming request, unchanged: the transaction continues their trace. */
    const char *sentry_trace, *traceparent, *baggage;
    enum offbeat_decision decision; /* takes precedence over samplers, rates and the calling service */
    const void *custom;             /* passed to the samplers */
};

OFFBEAT_API struct offbeat_span *offbeat_transaction_start(const char *name, const char *op);
OFFBEAT_API struct offbeat_span *offbeat_transaction_start_with(const struct offbeat_transaction *transaction);

/* Starts a child of PARENT. The child belongs to the calling thread, which may be another one than PARENT's. A
 * transaction has at most 1 000 spans; further spans, and spans that finish after it, are counted as discarded. */
OFFBEAT_API struct offbeat_span *offbeat_span_start_child(struct offbeat_span *parent, const char *op,
                                                          const char *description);
/* Starts a child of the calling thread's current span and makes it current until it finishes. NULL if there is no
 * current span. */
OFFBEAT_API struct offbeat_span *offbeat_span_start(const char *op, const char *description);
OFFBEAT_API void offbeat_span_finish(struct offbeat_span *span);

/* SPAN becomes the calling thread's current span, until it finishes, offbeat_span_leave is called, or the thread ends.
 */
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

/* These do nothing after the span's finish. They return false if a maximum is exceeded (64 keys per span, 200 bytes per
 * key or tag, 1 024 per text) or a number is not finite. */
OFFBEAT_API void offbeat_span_set_status(struct offbeat_span *span, enum offbeat_status status);
OFFBEAT_API void offbeat_span_set_description(struct offbeat_span *span, const char *description);
/* Renames the transaction that SPAN belongs to. */
OFFBEAT_API void offbeat_span_set_transaction_name(struct offbeat_span *span, const char *name,
                                                   enum offbeat_source source);
OFFBEAT_API bool offbeat_span_set_text(struct offbeat_span *span, const char *key, const char *value);
OFFBEAT_API bool offbeat_span_set_number(struct offbeat_span *span, const char *key, double value);
OFFBEAT_API bool offbeat_span_set_integer(struct offbeat_span *span, const char *key, int64_t value);
OFFBEAT_API bool offbeat_span_set_bool(struct offbeat_span *span, const char *key, bool value);
OFFBEAT_API bool offbeat_span_set_tag(struct offbeat_span *span, const char *key, const char *value);
/* Removes a value, or a tag. False if there is none. */
OFFBEAT_API bool offbeat_span_remove(struct offbeat_span *span, const char *key);
OFFBEAT_API bool offbeat_span_remove_tag(struct offbeat_span *span, const char *key);
OFFBEAT_API bool offbeat_span_is_sampled(const struct offbeat_span *span);

/* The user whom a transaction serves. NULL members are not sent. */
struct offbeat_user {
    size_t size; /* sizeof(struct offbeat_user) */
    const char *id, *username, *email, *ip_address;
};
/* Sets the user of SPAN's transaction; NULL removes it. Strings have at most 200 bytes; longer ones are cut. */
OFFBEAT_API bool offbeat_span_set_user(struct offbeat_span *span, const struct offbeat_user *user);

/* Return strings of SPAN in an offbeat_before_send_span, and NULL elsewhere. The strings are valid until the span is
 * changed, at most until the callback returns. */
OFFBEAT_API const char *offbeat_span_transaction_name(const struct offbeat_span *span);
OFFBEAT_API const char *offbeat_span_op(const struct offbeat_span *span);
OFFBEAT_API const char *offbeat_span_description(const struct offbeat_span *span);

enum offbeat_kind { OFFBEAT_KIND_TEXT, OFFBEAT_KIND_NUMBER, OFFBEAT_KIND_INTEGER, OFFBEAT_KIND_BOOL, OFFBEAT_KIND_TAG };

/* A value or a tag of a span. The struct never grows. */
struct offbeat_attribute {
    const char *key;
    enum offbeat_kind kind;
    const char *text; /* value of a text or a tag; NULL otherwise */
    double number;    /* value of a number */
    int64_t integer;  /* value of an integer; 0 or 1 for a bool */
};
/* Reads value or tag number INDEX, from 0, in an offbeat_before_send_span. False after the last one, and elsewhere. */
OFFBEAT_API bool offbeat_span_attribute(const struct offbeat_span *span, size_t index,
                                        struct offbeat_attribute *ret_attribute);

/* Headers for a request to another service, whose transaction then continues this trace. The program decides which
 * requests have them. The struct never grows: further headers will have their own function. */
struct offbeat_headers {
    char sentry_trace[64];
    char traceparent[64];
    char baggage[8193];
};
/* OTHERS is the baggage that the request already has, or NULL. Its members of other vendors are kept if they follow the
 * grammar of W3C Baggage. Returns false and writes empty strings if there is nothing to send. */
OFFBEAT_API bool offbeat_span_headers(struct offbeat_span *span, const char *others,
                                      struct offbeat_headers *ret_headers);

#ifdef __cplusplus
}
#endif

#endif
