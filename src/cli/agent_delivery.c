/* SPDX-License-Identifier: MIT */
#include "cli/agent_delivery.h"

#include "base/array.h"
#include "base/clocks.h"
#include "base/file.h"
#include "cli/agent_files.h"
#include "cli/message.h"
#include "cli/open_profile.h"
#include "cli/record_folder.h"
#include "cli/write_profile.h"
#include "deliver/complete.h"
#include "format/recording/recording.h"
#include "spool/dsn.h"
#include "spool/exchange.h"
#include "spool/spool.h"
#include "symbolize/index_store.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define BATCH_NS (5 * SECOND_NS) /* time between two processes that deliver */
enum {
    WAITING_MAX = 1 << 16,
    RECORDING_SECONDS_MAX = 300, /* time for one recording */
    WORKER_NICE = 10,
    STACKS_MIN = 2, /* a chunk with fewer samples is rejected by servers */
};

/* Memory that the process which delivers shares with this one. */
struct shared {
    struct agent_counts counts;
    struct discards dropped;
    size_t done;  /* recordings of the batch that are done */
    bool is_full; /* true if the latest profile could not be stored for want of room, which was said */
};

struct agent_delivery {
    struct agent_delivery_options options;
    char recordings[PATH_MAX], images[PATH_MAX], server[DSN_HOST_SIZE];
    int lock;
    struct transport *transport; /* NULL: files are written */
    ARRAY_OF(char *) waiting;    /* paths of recordings, the oldest first */
    size_t batch;                /* recordings of the running process, the first ones that wait */
    pid_t worker;                /* process that delivers; 0: none */
    bool has_failed;             /* true if the latest one could not store a recording */
    bool is_missing;             /* true if the latest recording could not be written */
    uint64_t next_ns;
    struct shared *shared;
    struct discards reported; /* part of SHARED's that the transport has */
};

/* --- The process that delivers ------------------------------------------------------------------------------------ */

struct work {
    const struct agent_delivery *delivery;
    struct decoding decoding;
    struct spool spool;
    struct error error;
};

static void note_room(struct shared *shared)
{
    if (shared->is_full) message("agent: profiles are stored again");
    shared->is_full = false;
}

static bool store_chunk(void *context, struct slice envelope)
{
    struct work *work = context;
    struct shared *shared = work->delivery->shared;
    struct discards dropped = {0};
    enum status status = spool_store(&work->spool, envelope, &dropped, &work->error);
    if (status == STATUS_TOO_LARGE) discards_add_envelope(&dropped, DISCARD_CACHE_OVERFLOW, envelope);
    discards_add_all(&shared->dropped, &dropped);
    shared->counts.stored += status == STATUS_OK;
    return status == STATUS_OK || status == STATUS_TOO_LARGE;
}

/* Returns false if PROFILE is to be tried again. */
static bool store_chunks(struct work *work, struct profile *profile)
{
    const struct deliver_options options = {
        .tries_one_chunk = true, .thins_idle = true, .may_thin_idle = true, .wraps = true};
    struct deliver_summary summary = {0};
    struct error error = {0};
    (void)deliver_complete_v2(profile);
    enum status status = deliver_chunks(profile, &options, store_chunk, work, &summary, &error);
    if (status == STATUS_OK) note_room(work->delivery->shared);
    if (status == STATUS_OK && summary.chunk_count > 0) return true;
    struct agent_counts *counts = &work->delivery->shared->counts;
    if (status == STATUS_OK) {
        counts->empty++;
        return true;
    }
    const struct error *cause = status == STATUS_IO && work->error.status != STATUS_OK ? &work->error : &error;
    if (!work->delivery->shared->is_full) message("agent: a profile cannot be stored: %s", cause->message);
    work->delivery->shared->is_full = status == STATUS_IO;
    counts->failed += status != STATUS_IO;
    return status != STATUS_IO;
}

static bool has_room(const char *folder, uint64_t bytes)
{
    struct statvfs status;
    if (access(folder, W_OK | X_OK) != 0 || statvfs(folder, &status) != 0) return false;
    bool has_names = status.f_files == 0 || status.f_favail > 0; /* 0: the file system has no limit */
    return has_names && (uint64_t)status.f_bavail * status.f_frsize >= bytes;
}

/* Returns false if PROFILE is to be tried again: the folder takes no files. One that cannot be written for another
 * reason would hold up all others. Only the first failure is said. */
static bool write_as_file(struct work *work, struct profile *profile)
{
    enum { ROOM_BYTES = 64 << 20, ROOM_AGAIN_BYTES = 1 << 20 };
    const struct agent_delivery_options *options = &work->delivery->options;
    struct agent_counts *counts = &work->delivery->shared->counts;
    char path[PATH_MAX];
    unsigned number = 1;
    struct shared *shared = work->delivery->shared;
    if (shared->is_full && !has_room(options->output, ROOM_AGAIN_BYTES)) return false;
    bool is_named = agent_files_name(options->output, profile, format_written_suffix(options->format), path);
    if (!is_named) message("agent: a profile is dropped: its path in %s is too long", options->output);
    if (is_named) (void)unlink(path); /* it may be a link that another user made */
    bool is_written = is_named && write_profile(profile, path, options->format, &number);
    shared->is_full |= is_named && !is_written && !has_room(options->output, ROOM_BYTES);
    if (is_written) note_room(shared);
    if (shared->is_full) return false;
    counts->stored += is_written;
    counts->failed += !is_written;
    return true;
}

static void describe(struct profile *profile, const struct agent_delivery_options *options)
{
    if (options->environment) profile->environment = profile_text(profile, options->environment);
}

/* Delivers the recording at PATH. Returns false if it stays for a later try. */
static bool deliver(struct work *work, const char *path)
{
    struct buffer bytes;
    struct profile profile;
    struct error error;
    buffer_init(&bytes, FORMAT_BYTES_MAX);
    profile_init(&profile);
    bool is_read = file_read(path, &bytes, &error) == STATUS_OK;
    if (!is_read) message_error(path, &error, false);
    bool is_open =
        is_read && bytes.size > 0 && decode_one_of_many(path, &format_recording, &bytes, &work->decoding, &profile);
    bool is_done = true;
    if (!is_open) {
        work->delivery->shared->counts.failed++;
    } else if (profile.samples.count < STACKS_MIN) {
        work->delivery->shared->counts.empty++;
    } else {
        describe(&profile, &work->delivery->options);
        is_done = work->delivery->transport ? store_chunks(work, &profile) : write_as_file(work, &profile);
    }
    buffer_fini(&bytes);
    profile_fini(&profile);
    return is_done;
}

static bool begin_work(struct work *work)
{
    const struct agent_delivery_options *options = &work->delivery->options;
    work->decoding = (struct decoding){.modules = symbol_module_cache_new(), .image_directory = work->delivery->images};
    work->decoding.progress.is_quiet = true;
    if (!work->delivery->transport) return true;
    if (!spool_init(&work->spool, options->data, work->delivery->server)) return false;
    work->spool.bytes_max = options->disk_bytes_max;
    return true;
}

static void run_worker(const struct agent_delivery *delivery)
{
    struct work work = {.delivery = delivery};
    sigset_t none;
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM); /* it has the lock, too, and the next agent needs that */
    for (int number = 1; number < SIGRTMIN; number++) (void)signal(number, number == SIGALRM ? SIG_DFL : SIG_IGN);
    (void)signal(SIGTERM, SIG_DFL);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)setpriority(PRIO_PROCESS, 0, WORKER_NICE);
    bool goes_on = begin_work(&work);
    for (size_t i = 0; goes_on && i < delivery->batch; i++) {
        (void)alarm(RECORDING_SECONDS_MAX);
        goes_on = deliver(&work, delivery->waiting.items[i]);
        if (!goes_on) break;
        (void)unlink(delivery->waiting.items[i]);
        delivery->shared->done++;
    }
    if (!delivery->transport)
        agent_files_trim(delivery->options.output, delivery->options.keep_bytes, delivery->options.keep_ns);
    index_store_make_room();
    (void)fflush(NULL);
    _exit(goes_on ? EXIT_SUCCESS : EXIT_FAILURE);
}

/* --- This process ------------------------------------------------------------------------------------------------- */

static void start_worker(struct agent_delivery *delivery)
{
    delivery->batch = delivery->waiting.count;
    delivery->shared->done = 0;
    pid_t worker = fork();
    if (worker == 0) run_worker(delivery);
    delivery->worker = worker > 0 ? worker : 0;
    if (worker < 0) message("agent: no process can be started: %s; recordings wait", strerror(errno));
}

static void forget_first(struct agent_delivery *delivery, size_t count)
{
    if (count == 0) return;
    for (size_t i = 0; i < count; i++) free(delivery->waiting.items[i]);
    delivery->waiting.count -= count;
    memmove(delivery->waiting.items, delivery->waiting.items + count,
            delivery->waiting.count * sizeof(*delivery->waiting.items));
}

/* Gives the transport the new counts of what was dropped. */
static void report_dropped(struct agent_delivery *delivery)
{
    struct discards news = delivery->shared->dropped;
    for (size_t i = 0; i < sizeof(news.counts) / sizeof(uint64_t); i++)
        ((uint64_t *)news.counts)[i] -= ((const uint64_t *)delivery->reported.counts)[i];
    delivery->reported = delivery->shared->dropped;
    if (!discards_are_empty(&news)) transport_add_discards(delivery->transport, &news);
}

/* Takes over what the process has done, which ended with STATUS. A recording at which a signal ended it is deleted. */
static void end_worker(struct agent_delivery *delivery, int status)
{
    size_t done = delivery->shared->done;
    delivery->has_failed = WIFEXITED(status) && WEXITSTATUS(status) != EXIT_SUCCESS;
    if (WIFSIGNALED(status) && WTERMSIG(status) != SIGTERM && done < delivery->batch) {
        message("agent: the recording %s is dropped: the process that reads it was ended by signal %d",
                delivery->waiting.items[done], WTERMSIG(status));
        (void)unlink(delivery->waiting.items[done]);
        delivery->shared->counts.failed++;
        done++;
    }
    forget_first(delivery, done);
    delivery->worker = 0;
    delivery->next_ns = clock_monotonic_ns() + BATCH_NS;
    if (!delivery->transport) return;
    report_dropped(delivery);
    transport_look(delivery->transport);
}

void agent_delivery_work(struct agent_delivery *delivery)
{
    int status;
    if (delivery->worker != 0 && waitpid(delivery->worker, &status, WNOHANG) == delivery->worker)
        end_worker(delivery, status);
    if (delivery->worker != 0 || delivery->waiting.count == 0 || clock_monotonic_ns() < delivery->next_ns) return;
    start_worker(delivery);
}

static bool add_waiting(struct agent_delivery *delivery, const char *path)
{
    char *copy = strdup(path);
    if (copy && ARRAY_PUSH(&delivery->waiting, WAITING_MAX, copy)) return true;
    free(copy);
    return false;
}

/* Returns why nothing can be written to the recordings; 0 if something can. */
static int try_to_write(const struct agent_delivery *delivery)
{
    static const char block[4096];
    char path[PATH_MAX + 8];
    (void)snprintf(path, sizeof(path), "%s/tried", delivery->recordings);
    int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    int errno_value = file < 0 || write(file, block, sizeof(block)) < 0 ? errno : 0;
    if (file < 0) return errno_value;
    (void)close(file);
    (void)unlink(path);
    return errno_value;
}

/* Says why a recording is missing or cut short: what writes it says nothing. A series of them has one line. */
static void note_missing(const struct agent_delivery *delivery)
{
    if (delivery->is_missing) return;
    int errno_value = try_to_write(delivery);
    message("agent: recordings cannot be written to %s: %s; what runs meanwhile is not recorded", delivery->recordings,
            strerror(errno_value ? errno_value : ENOSPC));
}

void agent_delivery_take(struct agent_delivery *delivery, const char *path, uint64_t stack_count, uint64_t bytes_lost)
{
    bool is_missing = access(path, F_OK) != 0;
    if (is_missing) delivery->shared->counts.failed++;
    if (!is_missing) delivery->shared->counts.cut += bytes_lost > 0;
    if (is_missing || bytes_lost > 0)
        note_missing(delivery);
    else if (delivery->is_missing)
        message("agent: recordings are written again");
    delivery->is_missing = is_missing || bytes_lost > 0;
    if (is_missing) return;
    if (stack_count < STACKS_MIN) {
        (void)unlink(path);
        delivery->shared->counts.empty++;
        return;
    }
    if (add_waiting(delivery, path)) return;
    message("agent: over %d recordings wait; %s is dropped", WAITING_MAX, path);
    (void)unlink(path);
    delivery->shared->counts.failed++;
}

/* --- Beginning and end -------------------------------------------------------------------------------------------- */

/* Makes the folder NAME in the agent's own. Nobody else may put recordings and images there. */
static bool make_folder(const struct agent_delivery *delivery, const char *name, char ret_path[PATH_MAX])
{
    struct stat facts;
    if ((size_t)snprintf(ret_path, PATH_MAX, "%s/%s", delivery->options.data, name) >= PATH_MAX) return false;
    file_make_folders(ret_path);
    if (access(ret_path, W_OK | X_OK) != 0 || stat(ret_path, &facts) != 0) {
        message("agent: cannot write to %s: %s; --data names another folder", ret_path, strerror(errno));
        return false;
    }
    if (facts.st_uid == geteuid() && (facts.st_mode & (S_IWGRP | S_IWOTH)) == 0) return true;
    message("agent: another user can write to %s; --data names another folder", ret_path);
    return false;
}

/* One agent has the folder at a time. */
static bool take_lock(struct agent_delivery *delivery)
{
    char path[PATH_MAX + 8];
    (void)snprintf(path, sizeof(path), "%s/lock", delivery->recordings);
    delivery->lock = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    if (delivery->lock >= 0 && flock(delivery->lock, LOCK_EX | LOCK_NB) == 0) return true;
    if (delivery->lock >= 0 && errno == EWOULDBLOCK)
        message("agent: another agent uses %s; --data names another folder", delivery->options.data);
    else
        message("agent: cannot lock %s: %s", path, strerror(errno));
    return false;
}

static int compare_paths(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

/* Takes over the recordings of an agent that was killed. */
static void adopt(struct agent_delivery *delivery)
{
    char path[PATH_MAX + NAME_MAX + 2];
    DIR *folder = opendir(delivery->recordings);
    for (const struct dirent *entry; folder && (entry = readdir(folder));) {
        if (format_of_path(entry->d_name) != &format_recording) continue;
        (void)snprintf(path, sizeof(path), "%s/%s", delivery->recordings, entry->d_name);
        if (!add_waiting(delivery, path)) break;
    }
    if (folder) (void)closedir(folder);
    if (delivery->waiting.count > 1)
        qsort(delivery->waiting.items, delivery->waiting.count, sizeof(*delivery->waiting.items), compare_paths);
}

static void say(void *context, const char *text)
{
    const struct agent_delivery *delivery = context;
    if (delivery->options.is_verbose) message("agent: %s", text);
}

/* Says once why nothing is sent, and when it is again. */
static void note_answer(void *context, const struct transport_answer *answer)
{
    static bool is_silent; /* used by the thread of the transport only */
    if (answer->outcome == TRANSPORT_NO_ANSWER && !is_silent)
        message("agent: the server does not answer: %s; profiles wait on disk", answer->failure);
    if (answer->outcome == TRANSPORT_REJECTED)
        message("agent: the server rejects a profile (%ld): %s", answer->status, answer->body);
    if (answer->outcome == TRANSPORT_SENT && is_silent) message("agent: the server answers");
    is_silent = answer->outcome == TRANSPORT_NO_ANSWER;
}

static bool start_transport(struct agent_delivery *delivery)
{
    const struct agent_delivery_options *options = &delivery->options;
    const struct transport_options transport = {.dsn = options->dsn,
                                                .spool_folder = options->data,
                                                .spool_bytes_max = options->disk_bytes_max,
                                                .spool_count_max = SPOOL_FILES_MAX,
                                                .proxy = options->proxy,
                                                .ca_file = options->ca_file,
                                                .debug = say,
                                                .answered = note_answer,
                                                .context = delivery};
    struct error error;
    struct dsn dsn;
    if (dsn_parse(options->dsn, &dsn, &error) == STATUS_OK) {
        dsn_folder_name(&dsn, delivery->server);
        delivery->transport = transport_start(&transport, &error);
    }
    if (!delivery->transport) message("agent: %s", error.message);
    return delivery->transport != NULL;
}

static bool check_output(const char *output)
{
    char path[PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s", output);
    file_make_folders(path);
    if (access(output, W_OK | X_OK) == 0) return true;
    message("agent: cannot write to %s: %s", output, strerror(errno));
    return false;
}

struct agent_delivery *agent_delivery_open(const struct agent_delivery_options *options)
{
    struct agent_delivery *delivery = calloc(1, sizeof(*delivery));
    if (!delivery) abort();
    delivery->options = *options;
    delivery->lock = -1;
    delivery->shared = mmap(NULL, sizeof(*delivery->shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (delivery->shared == MAP_FAILED) abort();
    bool is_open = make_folder(delivery, "recordings", delivery->recordings) &&
                   make_folder(delivery, "images", delivery->images) && take_lock(delivery) &&
                   (options->dsn ? start_transport(delivery) : check_output(options->output));
    if (is_open) {
        record_folder_remove_images(delivery->images); /* links to descriptors of an agent that has ended */
        adopt(delivery);
        return delivery;
    }
    agent_delivery_close(delivery, 0);
    return NULL;
}

const char *agent_delivery_recordings(const struct agent_delivery *delivery)
{
    return delivery->recordings;
}

const char *agent_delivery_images(const struct agent_delivery *delivery)
{
    return delivery->images;
}

/* Waits until DEADLINE_NS. A process that a signal to the group has ended is followed by another one. */
static bool await_worker(struct agent_delivery *delivery, uint64_t deadline_ns)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    delivery->next_ns = 0;
    while (delivery->waiting.count > 0 && clock_monotonic_ns() < deadline_ns) {
        bool had_worker = delivery->worker != 0;
        agent_delivery_work(delivery);
        if (had_worker && delivery->worker == 0 && delivery->has_failed) return false;
        if (delivery->worker == 0) delivery->next_ns = 0;
        (void)nanosleep(&pause, NULL);
    }
    return delivery->waiting.count == 0;
}

void agent_delivery_close(struct agent_delivery *delivery, uint64_t timeout_ns)
{
    uint64_t deadline_ns = clock_monotonic_ns() + timeout_ns;
    size_t left = 0;
    if (timeout_ns > 0 && !await_worker(delivery, deadline_ns)) left = delivery->waiting.count;
    if (delivery->worker != 0) {
        (void)kill(delivery->worker, SIGTERM);
        (void)waitpid(delivery->worker, NULL, 0);
    }
    if (timeout_ns > 0 && delivery->options.is_verbose)
        message("agent: %llu profiles made in all", (unsigned long long)delivery->shared->counts.stored);
    uint64_t now_ns = clock_monotonic_ns();
    bool is_sent = transport_stop(delivery->transport, deadline_ns > now_ns ? deadline_ns - now_ns : 0);
    if (timeout_ns > 0 && (left > 0 || (delivery->transport && !is_sent)))
        message("agent: what is not delivered waits in %s for the next agent", delivery->options.data);
    forget_first(delivery, delivery->waiting.count);
    free(delivery->waiting.items);
    if (delivery->lock >= 0) (void)close(delivery->lock);
    (void)munmap(delivery->shared, sizeof(*delivery->shared));
    free(delivery);
}

struct agent_counts agent_delivery_counts(const struct agent_delivery *delivery)
{
    return delivery->shared->counts;
}

struct transport_counts agent_delivery_sent(const struct agent_delivery *delivery)
{
    if (!delivery->transport) return (struct transport_counts){0};
    return transport_counts(delivery->transport);
}
