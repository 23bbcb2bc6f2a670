/* A program with liboffbeat that does what its arguments say, one after the other; COMMANDS below is all that there is.
 * Options come from OFFBEAT_ variables. What it finds out is written to standard output, a JSON object a line; nothing
 * else may be there. Each call of the library must leave errno alone, which is counted.
 * SPDX-License-Identifier: MIT */
#include <offbeat.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FRAME __attribute__((noinline, noclone))
#define TRACE_ID "8450ef61f4aa4d4d976c50a41715229d"
#define STAY_A_FRAME() __asm__ volatile("" ::: "memory")

enum { SPANS_MAX = 16, THREADS_MAX = 16, FILES_MAX = 64 };

static struct offbeat_options options = {.size = sizeof(options)};
static struct {
    const char *name;
    struct offbeat_span *span;
} spans[SPANS_MAX];
static pthread_t threads[THREADS_MAX];
static size_t thread_count;
static int files[FILES_MAX];
static size_t file_count;
static volatile sig_atomic_t signal_count;
static unsigned errno_changes;
static volatile uint64_t sink;
static char **words; /* the remaining commands */

#define CALL(call)                                                                                                     \
    do {                                                                                                               \
        errno = EXDEV;                                                                                                 \
        call;                                                                                                          \
        if (errno != EXDEV) errno_changes++;                                                                           \
    } while (0)

static const char *next_word(void)
{
    if (*words) return *words++;
    (void)fprintf(stderr, "sdk_drives: a word is missing\n");
    exit(2);
}

static uint64_t next_number(void)
{
    return strtoull(next_word(), NULL, 10);
}

static uint64_t now_ns(clockid_t clock)
{
    struct timespec now;
    (void)clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* --- Time ------------------------------------------------------------------------------------------------------- */

static inline __attribute__((always_inline)) void is_inlined(uint64_t salt)
{
    for (uint64_t i = 0; i < 20000; i++) sink = sink * 31 + (i ^ salt);
}

/* Works for MILLISECONDS, and for at least a quarter of them by the processor: on a busy machine there is time for the
 * library's threads, too. */
FRAME static void works_deeper(uint64_t milliseconds)
{
    uint64_t wall_ns = now_ns(CLOCK_MONOTONIC) + milliseconds * 1000000;
    uint64_t processor_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) + milliseconds * 250000;
    while (now_ns(CLOCK_MONOTONIC) < wall_ns || now_ns(CLOCK_THREAD_CPUTIME_ID) < processor_ns) is_inlined(wall_ns);
    STAY_A_FRAME();
}

FRAME static void works(uint64_t milliseconds)
{
    works_deeper(milliseconds);
    STAY_A_FRAME();
}

FRAME static void works_in_the_child(uint64_t milliseconds)
{
    sink = 1; /* two functions that do the same would become one */
    works_deeper(milliseconds);
    STAY_A_FRAME();
}

static void pause_for(uint64_t milliseconds)
{
    struct timespec rest = {.tv_sec = (time_t)(milliseconds / 1000), .tv_nsec = (long)(milliseconds % 1000) * 1000000};
    while (nanosleep(&rest, &rest) != 0) continue;
}

/* Works in a span of this thread, which is part of the transaction, if there is one. */
static void *work_in_thread(void *milliseconds)
{
    (void)pthread_setname_np(pthread_self(), "second");
    struct offbeat_span *span = offbeat_span_start_child(spans[0].span, "test.part", "elsewhere");
    works((uint64_t)(uintptr_t)milliseconds);
    offbeat_span_finish(span);
    return NULL;
}

static void do_work(void)
{
    works(next_number());
}

static void do_work_in_child(void)
{
    works_in_the_child(next_number());
}

static void do_thread(void)
{
    void *milliseconds = (void *)(uintptr_t)next_number();
    if (thread_count < THREADS_MAX && pthread_create(&threads[thread_count], NULL, work_in_thread, milliseconds) == 0)
        thread_count++;
}

static bool has_sampler(void)
{
    char path[64], name[32];
    bool has = false;
    DIR *tasks = opendir("/proc/self/task");
    for (const struct dirent *task; tasks && (task = readdir(tasks));) {
        (void)snprintf(path, sizeof(path), "/proc/self/task/%.20s/comm", task->d_name);
        FILE *file = fopen(path, "re");
        if (file && fgets(name, sizeof(name), file) && strcmp(name, "offbeat\n") == 0) has = true;
        if (file) (void)fclose(file);
    }
    if (tasks) (void)closedir(tasks);
    return has;
}

/* Waits until the sampler runs, which takes a while on a busy machine. */
static void do_await(void)
{
    for (unsigned i = 0; i < 2000 && !has_sampler(); i++) pause_for(5);
}

static void do_sleep(void)
{
    pause_for(next_number());
}

/* --- The library ------------------------------------------------------------------------------------------------ */

static bool drops(void *type, const char *of, const char *payload, size_t size)
{
    return strcmp(type, of) != 0 || payload[size] != '\0';
}

/* Transactions whose names begin with one of LETTERS, always; others never. */
static double sample(const char *who, const char *letters, const struct offbeat_sampling *sampling)
{
    (void)printf("{\"%s\": [\"%s\", \"%s\", %d, %g, \"%s\"]}\n", who, sampling->name, sampling->op,
                 (int)sampling->parent, sampling->parent_rate, sampling->custom ? (const char *)sampling->custom : "");
    errno = ERANGE; /* a program's function may */
    return strchr(letters, sampling->name[0]) ? 1 : 0;
}

static double sample_traces(void *letters, const struct offbeat_sampling *sampling)
{
    return sample("traces_sampler", letters, sampling);
}

static double sample_profiles(void *letters, const struct offbeat_sampling *sampling)
{
    return sample("profiles_sampler", letters, sampling);
}

/* Changes everything that <offbeat.h> says can be changed. Drops spans whose description begins with "dropped", and
 * transactions named NAME. */
static bool changes_span(void *name, struct offbeat_span *span)
{
    struct offbeat_attribute attribute;
    for (size_t i = 0; offbeat_span_attribute(span, i, &attribute); i++)
        (void)printf("{\"attribute\": [\"%s\", %d, \"%s\", %ld]}\n", attribute.key, (int)attribute.kind,
                     attribute.text ? attribute.text : "", (long)attribute.integer);
    if (strncmp(offbeat_span_description(span), "dropped", 7) == 0) return false;
    if (strcmp(offbeat_span_transaction_name(span), name) == 0 && strcmp(offbeat_span_op(span), "test") == 0)
        return false;
    (void)offbeat_span_remove(span, "secret");
    (void)offbeat_span_remove_tag(span, "secret");
    (void)offbeat_span_set_tag(span, "tag", "changed");
    (void)offbeat_span_set_text(span, "added", "a text");
    offbeat_span_set_description(span, "changed description");
    offbeat_span_set_transaction_name(span, "changed name", OFFBEAT_SOURCE_ROUTE);
    return true;
}

/* Calls, and ends of calls, after offbeat_shutdown has returned. */
static atomic_uint late_calls;
static atomic_bool has_ended;

static void takes_its_time(const char *milliseconds)
{
    if (has_ended) late_calls++;
    pause_for(strtoull(milliseconds, NULL, 10));
    if (has_ended) late_calls++;
}

static bool sends_slowly(void *milliseconds, const char *type, const char *payload, size_t size)
{
    takes_its_time(milliseconds);
    return true;
}

static void logs_slowly(void *milliseconds, const char *message)
{
    takes_its_time(milliseconds);
    (void)fprintf(stderr, "logged: %s\n", message);
}

static void *traces_and_ends(void *unused)
{
    offbeat_span_finish(offbeat_transaction_start("in another thread", "test"));
    return NULL;
}

/* Waits for another thread that starts and finishes a transaction meanwhile. */
static void logs_after_a_transaction(void *unused, const char *message)
{
    static __thread bool is_logging;
    static atomic_bool is_busy;
    pthread_t thread;
    (void)fprintf(stderr, "logged: %s\n", message);
    if (is_logging || is_busy) return;
    is_logging = true;
    is_busy = true;
    if (pthread_create(&thread, NULL, traces_and_ends, NULL) == 0) (void)pthread_join(thread, NULL);
    is_logging = false;
    is_busy = false;
}

static void do_late(void)
{
    (void)printf("{\"late_calls\": %u}\n", late_calls);
}

static void do_option(void)
{
    const char *name = next_word(), *value = next_word();
    void *data = (void *)(uintptr_t)value;
    if (strcmp(name, "size") == 0) options.size = strtoull(value, NULL, 10);
    if (strcmp(name, "profile_session_sample_rate") == 0) options.profile_session_sample_rate = strtod(value, NULL);
    if (strcmp(name, "traces_sample_rate") == 0) options.traces_sample_rate = strtod(value, NULL);
    if (strcmp(name, "profiles_sample_rate") == 0) options.profiles_sample_rate = strtod(value, NULL);
    if (strcmp(name, "profile_lifecycle") == 0 && strcmp(value, "trace") == 0)
        options.profile_lifecycle = OFFBEAT_LIFECYCLE_TRACE;
    if (strcmp(name, "drops") == 0) options.before_send = drops, options.before_send_data = data;
    if (strcmp(name, "changes") == 0) {
        options.before_send_transaction = options.before_send_span = changes_span;
        options.before_send_transaction_data = options.before_send_span_data = data;
    }
    if (strcmp(name, "log_after_a_transaction") == 0) options.log = logs_after_a_transaction;
    if (strcmp(name, "log") == 0) options.log = logs_slowly, options.log_data = data;
    if (strcmp(name, "before_send") == 0) options.before_send = sends_slowly, options.before_send_data = data;
    if (strcmp(name, "traces_sampler") == 0) options.traces_sampler = sample_traces, options.traces_sampler_data = data;
    if (strcmp(name, "profiles_sampler") == 0)
        options.profiles_sampler = sample_profiles, options.profiles_sampler_data = data;
}

static void do_init(void)
{
    bool is_on, had_ended = has_ended;
    has_ended = false;
    CALL(is_on = offbeat_init(&options));
    has_ended = had_ended && !is_on;
    (void)printf("{\"init\": %s}\n", is_on ? "true" : "false");
}

static void do_start(void)
{
    CALL(offbeat_start_profiler());
}

static void do_stop(void)
{
    CALL(offbeat_stop_profiler());
}

static void do_background(void)
{
    CALL(offbeat_background());
}

static void do_foreground(void)
{
    CALL(offbeat_foreground());
}

static void do_frame(void)
{
    CALL(offbeat_frame_rendered(next_number()));
}

static void do_measure(void)
{
    const char *name = next_word(), *unit = next_word();
    CALL(offbeat_measure(name, unit, strtod(next_word(), NULL)));
}

static void do_flush(void)
{
    bool is_done;
    uint64_t began_ns = now_ns(CLOCK_MONOTONIC);
    CALL(is_done = offbeat_flush((uint32_t)next_number()));
    (void)printf("{\"flush\": %s, \"flush_ms\": %.0f}\n", is_done ? "true" : "false",
                 (double)(now_ns(CLOCK_MONOTONIC) - began_ns) / 1e6);
}

static void do_shutdown(void)
{
    uint64_t began_ns = now_ns(CLOCK_MONOTONIC);
    CALL(offbeat_shutdown());
    has_ended = true;
    (void)printf("{\"shutdown_ms\": %.0f}\n", (double)(now_ns(CLOCK_MONOTONIC) - began_ns) / 1e6);
}

static void do_atexit(void)
{
    (void)atexit(offbeat_shutdown);
}

static void do_id(void)
{
    char id[OFFBEAT_ID_SIZE];
    bool runs;
    CALL(runs = offbeat_profiler_id(id));
    (void)printf("{\"id\": \"%s\", \"runs\": %s}\n", id, runs ? "true" : "false");
}

static void do_counts(void)
{
    struct offbeat_item_counts counts;
    CALL(counts = offbeat_counts());
    (void)printf("{\"made\": %lu, \"sent\": %lu, \"limited\": %lu, \"discarded\": %lu}\n", (unsigned long)counts.made,
                 (unsigned long)counts.sent, (unsigned long)counts.limited, (unsigned long)counts.discarded);
}

/* Waits until so many chunks and transactions were made, which the helper does when it comes to it. */
static void do_made(void)
{
    uint64_t wanted = next_number();
    for (unsigned i = 0; i < 2000 && offbeat_counts().made < wanted; i++) pause_for(5);
}

/* --- Spans: the newest is the one that a child is of ---------------------------------------------------------------
 */

static void keep(const char *name, struct offbeat_span *span)
{
    for (size_t i = 0; i < SPANS_MAX; i++) {
        if (spans[i].span) continue;
        spans[i].name = name;
        spans[i].span = span;
        return;
    }
}

static struct offbeat_span *take(const char *name)
{
    for (size_t i = SPANS_MAX; i-- > 0;) {
        if (!spans[i].span || strcmp(spans[i].name, name) != 0) continue;
        struct offbeat_span *span = spans[i].span;
        spans[i].span = NULL;
        return span;
    }
    return NULL;
}

/* SENTRY_TRACE is that of a service that decided by a rate of a quarter, or NULL. */
static void start_transaction(enum offbeat_decision decision, const char *sentry_trace)
{
    struct offbeat_transaction transaction = {
        .size = sizeof(transaction), .name = next_word(), .op = "test", .decision = decision};
    struct offbeat_span *span;
    transaction.custom = transaction.name;
    transaction.sentry_trace = sentry_trace;
    transaction.baggage = sentry_trace ? "sentry-trace_id=" TRACE_ID ",sentry-sample_rate=0.25" : NULL;
    CALL(span = offbeat_transaction_start_with(&transaction));
    keep(transaction.name, span);
}

static void do_transaction(void)
{
    start_transaction(OFFBEAT_DECISION_OPEN, NULL);
}

static void do_sampled(void)
{
    start_transaction(OFFBEAT_DECISION_YES, NULL);
}

static void do_unsampled(void)
{
    start_transaction(OFFBEAT_DECISION_NO, NULL);
}

static void do_caller_sampled(void)
{
    start_transaction(OFFBEAT_DECISION_OPEN, TRACE_ID "-abd71dabf8bde62b-1");
}

static void do_caller_unsampled(void)
{
    start_transaction(OFFBEAT_DECISION_OPEN, TRACE_ID "-abd71dabf8bde62b-0");
}

static void do_span(void)
{
    struct offbeat_span *span, *parent = NULL;
    const char *name = next_word(), *of = next_word();
    for (size_t i = 0; i < SPANS_MAX; i++) {
        if (spans[i].span && strcmp(spans[i].name, of) == 0) parent = spans[i].span;
    }
    CALL(span = offbeat_span_start_child(parent, "test.part", name));
    keep(name, span);
}

static struct offbeat_span *find(const char *name)
{
    struct offbeat_span *span = take(name);
    keep(name, span);
    return span;
}

static void do_tag(void)
{
    struct offbeat_span *span = find(next_word());
    const char *key = next_word();
    CALL((void)offbeat_span_set_tag(span, key, next_word()));
}

static void do_integer(void)
{
    struct offbeat_span *span = find(next_word());
    const char *key = next_word();
    CALL((void)offbeat_span_set_integer(span, key, strtoll(next_word(), NULL, 10)));
}

static void do_user(void)
{
    struct offbeat_span *span = find(next_word());
    const struct offbeat_user user = {.size = sizeof(user), .id = next_word(), .ip_address = "192.0.2.1"};
    CALL((void)offbeat_span_set_user(span, &user));
}

static void do_finish(void)
{
    CALL(offbeat_span_finish(take(next_word())));
}

/* --- Processes and signals ------------------------------------------------------------------------------------------
 */

static void count_signal(int number)
{
    signal_count++;
}

static void do_handle(void)
{
    (void)signal(SIGCHLD, count_signal);
}

static void do_ignore(void)
{
    (void)signal(SIGCHLD, SIG_IGN);
}

static void do_words(void);

/* The next N words are the child's, who then exits. */
static void do_fork(void)
{
    uint64_t count = next_number();
    if (fork() == 0) {
        char **end = words + count;
        *end = NULL;
        do_words();
        exit(0);
    }
    for (uint64_t i = 0; i < count; i++) (void)next_word();
}

static void do_join(void)
{
    while (thread_count > 0) (void)pthread_join(threads[--thread_count], NULL);
}

/* Waits for any child as long as there is one, and prints the last status of a child that failed. */
static void do_wait(void)
{
    int status, failure = 0, count = 0;
    for (; wait(&status) > 0; count++)
        if (status != 0) failure = status;
    (void)printf("{\"waited\": %d, \"failure\": %d}\n", count, failure);
}

static void do_exec(void)
{
    (void)execvp(words[0], words);
    _exit(127);
}

/* Becomes a daemon: the parent exits at once, and none of its descriptors stays open. */
static void do_daemon(void)
{
    if (fork() != 0) _exit(0);
    (void)setsid();
    for (int number = 0; number < 1024; number++) (void)close(number);
    (void)open("/dev/null", O_RDWR);
    for (int number = 1; number <= 2; number++) (void)dup2(0, number);
}

/* Closes descriptors as a daemon does, but in the middle of its life. */
static void do_close_others(void)
{
    closefrom(3);
}

static void write_line(int descriptor)
{
    static const char line[] = "the program's\n";
    if (write(descriptor, line, sizeof(line) - 1) != sizeof(line) - 1)
        (void)printf("{\"lost_file\": %d}\n", descriptor);
}

static int open_folder(size_t number)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "folder-%zu", number);
    (void)mkdir(path, 0700);
    (void)snprintf(path, sizeof(path), "folder-%zu/kept.tmp", number);
    (void)close(open(path, O_WRONLY | O_CREAT, 0600));
    *strrchr(path, '/') = '\0';
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static int open_file(size_t number)
{
    char path[64];
    (void)snprintf(path, sizeof(path), "file-%zu", number);
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    write_line(file);
    return file;
}

/* The next N free numbers are the program's, each third one a folder. */
static void do_open(void)
{
    uint64_t count = next_number();
    for (file_count = 0; file_count < count && file_count < FILES_MAX; file_count++)
        files[file_count] = file_count % 3 == 2 ? open_folder(file_count) : open_file(file_count);
}

/* One line more into each of them: the one who reads from them moves the place of the next write. */
static void do_write(void)
{
    for (size_t i = 0; i < file_count; i++) {
        if (i % 3 == 2 && fcntl(files[i], F_GETFD) < 0) (void)printf("{\"lost_file\": %d}\n", files[i]);
        if (i % 3 != 2) write_line(files[i]);
    }
}

static void do_die(void)
{
    (void)raise(SIGKILL);
}

static void do_quit(void)
{
    _exit(0);
}

/* --- What the program sees of itself --------------------------------------------------------------------------------
 */

static long count_in(const char *path)
{
    long count = 0;
    DIR *folder = opendir(path);
    while (folder && readdir(folder)) count++;
    if (folder) (void)closedir(folder);
    return count;
}

static long anonymous_kib(void)
{
    char line[128];
    long kib = 0;
    FILE *status = fopen("/proc/self/status", "re");
    while (status && fgets(line, sizeof(line), status)) (void)sscanf(line, "RssAnon: %ld", &kib);
    if (status) (void)fclose(status);
    return kib;
}

static void do_look(void)
{
    int status;
    long threads_there = count_in("/proc/self/task") - 2, descriptors = count_in("/proc/self/fd") - 3;
    long signals = signal_count;
    pid_t child = waitpid(-1, &status, WNOHANG);
    (void)printf("{\"threads\": %ld, \"descriptors\": %ld, \"signals\": %ld, \"child\": %d}\n", threads_there,
                 descriptors, signals, child);
}

static void do_pid(void)
{
    (void)printf("{\"pid\": %d}\n", getpid());
}

/* Reads nothing else, which would cost memory itself. */
static void do_memory(void)
{
    (void)printf("{\"anonymous_kib\": %ld, \"cpu_us\": %lu}\n", anonymous_kib(),
                 (unsigned long)(now_ns(CLOCK_PROCESS_CPUTIME_ID) / 1000));
}

static void do_rename(void)
{
    (void)pthread_setname_np(pthread_self(), next_word());
}

/* --- All commands ---------------------------------------------------------------------------------------------------
 */

static const struct {
    const char *name;
    void (*run)(void);
} commands[] = {
    {"option", do_option},
    {"init", do_init},
    {"start", do_start},
    {"stop", do_stop},
    {"background", do_background},
    {"foreground", do_foreground},
    {"work", do_work},
    {"work_in_child", do_work_in_child},
    {"thread", do_thread},
    {"join", do_join},
    {"rename", do_rename},
    {"await", do_await},
    {"sleep", do_sleep},
    {"transaction", do_transaction},
    {"sampled", do_sampled},
    {"unsampled", do_unsampled},
    {"caller_sampled", do_caller_sampled},
    {"caller_unsampled", do_caller_unsampled},
    {"span", do_span},
    {"finish", do_finish},
    {"tag", do_tag},
    {"integer", do_integer},
    {"user", do_user},
    {"frame", do_frame},
    {"measure", do_measure},
    {"flush", do_flush},
    {"shutdown", do_shutdown},
    {"late", do_late},
    {"atexit", do_atexit},
    {"id", do_id},
    {"counts", do_counts},
    {"made", do_made},
    {"handle", do_handle},
    {"ignore", do_ignore},
    {"fork", do_fork},
    {"wait", do_wait},
    {"exec", do_exec},
    {"daemon", do_daemon},
    {"close_others", do_close_others},
    {"open", do_open},
    {"write", do_write},
    {"die", do_die},
    {"quit", do_quit},
    {"look", do_look},
    {"pid", do_pid},
    {"memory", do_memory},
};

static bool do_word(const char *word)
{
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        if (strcmp(commands[i].name, word) != 0) continue;
        commands[i].run();
        return true;
    }
    return false;
}

static void do_words(void)
{
    while (*words) {
        const char *word = next_word();
        if (do_word(word)) continue;
        (void)fprintf(stderr, "sdk_drives: no such command: %s\n", word);
        exit(2);
    }
}

int main(int argument_count, char **arguments)
{
    (void)setvbuf(stdout, NULL, _IOLBF, 0);
    words = arguments + 1;
    do_words();
    do_join();
    (void)printf("{\"errno_changes\": %u}\n", errno_changes);
    return 0;
}
