/* SPDX-License-Identifier: MIT */
#include "cli/record_attach.h"

#include "base/clocks.h"
#include "base/unsigned.h"
#include "cli/agent_service.h"
#include "cli/message.h"
#include "cli/record_run.h"
#include "recorder/engines.h"
#include "recorder/recorder.h"
#include "recorder/task_files.h"
#include "symbolize/kernel_names.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct attachment {
    pid_t pids[ATTACH_PIDS_MAX];
    size_t count;
    struct recorder *recorder;
    char kernel_build_id[KERNEL_BUILD_ID_SIZE]; /* "": it is not known, or the kernel's functions are not asked for */
};

/* --- Which processes ---------------------------------------------------------------------------------------------- */

bool attach_is_wanted(const struct attach_options *options)
{
    return options->pids.count > 0 || process_choice_is_given(&options->choice);
}

static bool add_pid(struct attachment *attachment, pid_t pid)
{
    for (size_t i = 0; i < attachment->count; i++) {
        if (attachment->pids[i] == pid) return true;
    }
    if (attachment->count == ATTACH_PIDS_MAX) {
        message("--pid names over %d processes", ATTACH_PIDS_MAX);
        return false;
    }
    attachment->pids[attachment->count++] = pid;
    return true;
}

/* Adds the numbers in TEXT, which commas separate. */
static bool add_pids(struct attachment *attachment, const char *text)
{
    for (const char *at = text;;) {
        char *end;
        long pid = strtol(at, &end, 10);
        if (end == at || (*end != ',' && *end != '\0') || *at < '0' || *at > '9' || pid <= 0 || pid > INT_MAX) {
            message("--pid %s: not a process number; pgrep NAME prints the numbers of processes", text);
            return false;
        }
        if (!add_pid(attachment, (pid_t)pid)) return false;
        if (*end == '\0') return true;
        at = end + 1;
    }
}

/* Names the profile after the first process, or after what was chosen. */
static bool find_name(const struct attachment *attachment, const struct attach_options *options,
                      char ret_name[PATH_MAX])
{
    struct task_status status = {0};
    const struct process_choice *choice = &options->choice;
    bool has_pid = attachment->count > 0;
    if (has_pid && !task_read_status(attachment->pids[0], &status)) {
        if (task_read_status(getpid(), &status))
            message("there is no process %d", (int)attachment->pids[0]);
        else
            message("/proc does not show processes; the remedy: mount -t proc proc /proc");
        return false;
    }
    const char *chosen = choice->user ? choice->user : "processes";
    (void)snprintf(ret_name, PATH_MAX, "%s", has_pid ? status.name : chosen);
    for (char *at = ret_name; *at; at++) *at = *at == '/' ? '-' : *at;
    return true;
}

struct attachment *attach_find(struct attach_options *options, char ret_name[PATH_MAX])
{
    struct attachment *attachment = calloc(1, sizeof(*attachment));
    bool is_found = attachment && process_choice_begin(&options->choice);
    for (size_t i = 0; i < options->pids.count && is_found; i++)
        is_found = add_pids(attachment, options->pids.items[i]);
    if (is_found && find_name(attachment, options, ret_name)) return attachment;
    free(attachment);
    return NULL;
}

/* --- Engine ------------------------------------------------------------------------------------------------------- */

static void print_denial(const char *before, const struct engine_denial *denial)
{
    message("%s%s%s%s", before, denial->reason, denial->remedy[0] ? "; the remedy: " : "", denial->remedy);
}

static bool wants(void *context, pid_t pid, const char *name)
{
    return process_choice_takes(context, pid, name);
}

struct recorder *attach_open_recorder(const struct recorder_options *options, const char *engine)
{
    struct engine_denial denial = {0}, first = {0};
    struct recorder_options complete = *options;
    char text[64];
    complete.name_process = agent_command_name;
    for (size_t i = 0; engines_at(i); i++) {
        struct recorder *recorder = NULL;
        complete.engine = engines_at(i);
        if (engine && strcmp(engine, complete.engine->name) != 0) continue;
        if ((options->records_waits || options->takes_kernel_stacks) && !complete.engine->sees_waits) continue;
        if (engines_probe(complete.engine, &denial)) recorder = recorder_new(&complete, &denial);
        (void)snprintf(text, sizeof(text), "recording by %s, because ", complete.engine->name);
        if (recorder && first.reason[0]) print_denial(text, &first);
        if (recorder) return recorder;
        if (!first.reason[0]) first = denial;
    }
    (void)snprintf(text, sizeof(text), "no engine can record%s%s: ", engine ? " by " : "", engine ? engine : "");
    print_denial(text, &first);
    return NULL;
}

static bool open_engine(struct attachment *attachment, struct attach_options *options)
{
    if (options->takes_kernel_stacks) (void)kernel_build_id(attachment->kernel_build_id);
    const struct recorder_options recorder_options = {
        .frequency_hz = options->frequency_hz,
        .is_cpu_mode = options->is_cpu_mode,
        .cpu_max_ppm = options->cpu_max_ppm,
        .records_waits = options->records_waits,
        .wait_ns_min = options->wait_ns_min,
        .names_wakers = options->names_wakers,
        .takes_kernel_stacks = options->takes_kernel_stacks,
        .shows_interpreter = options->shows_interpreter,
        .kernel_build_id = attachment->kernel_build_id,
        .follows_children = !options->no_children,
        .watches_all = options->choice.takes_all,
        .wants = process_choice_is_given(&options->choice) ? wants : NULL,
        .context = &options->choice,
        .directory = options->directory,
        .image_directory = options->image_directory,
        .cache_directory = options->cache_directory,
    };
    attachment->recorder = attach_open_recorder(&recorder_options, options->engine);
    return attachment->recorder != NULL;
}

/* --- Recording ---------------------------------------------------------------------------------------------------- */

int attach_await_signal(const sigset_t *signals, uint64_t until_ns)
{
    uint64_t now_ns = clock_monotonic_ns(), left_ns = until_ns > now_ns ? until_ns - now_ns : 0;
    const struct timespec timeout = {.tv_sec = (time_t)(left_ns / SECOND_NS), .tv_nsec = (long)(left_ns % SECOND_NS)};
    int number = sigtimedwait(signals, NULL, &timeout);
    return number > 0 ? number : 0;
}

uint64_t attach_work(struct attachment *attachment)
{
    struct recorder *recorder = attachment->recorder;
    if (recorder_process_count(recorder) == 0) return UINT64_MAX;
    if (clock_monotonic_ns() >= recorder_next_ns(recorder)) recorder_tick(recorder);
    recorder_work(recorder, recorder_next_ns(recorder));
    return difference(recorder_next_ns(recorder), clock_monotonic_ns());
}

void attach_flush(struct attachment *attachment)
{
    recorder_flush(attachment->recorder);
}

/* Records until the end. Returns true if a signal ended it. */
static bool record_until_end(struct attachment *attachment, const struct attach_options *options,
                             const sigset_t *signals)
{
    struct recorder *recorder = attachment->recorder;
    uint64_t end_ns = options->duration_ns ? clock_monotonic_ns() + options->duration_ns : UINT64_MAX;
    bool awaits_more = process_choice_is_given(&options->choice);
    while ((awaits_more || recorder_process_count(recorder) > 0) && clock_monotonic_ns() < end_ns) {
        uint64_t next_ns = recorder_next_ns(recorder);
        recorder_work(recorder, next_ns);
        int number = attach_await_signal(signals, next_ns);
        if (number == SIGUSR1 || number == SIGQUIT) {
            attach_flush(attachment);
            options->write(options->context);
        } else if (number != 0) {
            return true;
        } else {
            recorder_tick(recorder);
        }
    }
    return false;
}

/* CPU time is counted by clocks: lost stacks make shares less exact, and no time smaller. */
void attach_end(struct attachment *attachment)
{
    struct engine_losses losses = {0};
    recorder_end(attachment->recorder);
    recorder_losses(attachment->recorder, &losses);
    uint64_t lost = losses.stacks_lost + losses.runs_missed;
    if (lost > 0)
        message(
            "%llu stacks of running threads were lost, because the recorder did not run for too long: the machine is "
            "overloaded, or somebody stopped it; lower --frequency",
            (unsigned long long)lost);
    if (losses.outdated > 0)
        message(
            "%llu stacks were left out, because their code was unloaded before they were read; the others stand for "
            "them",
            (unsigned long long)losses.outdated);
}

/* Adds process PID, which the user has named, or which is a child that may have ended. */
static void add(struct attachment *attachment, pid_t pid, bool is_named)
{
    struct engine_denial denial;
    struct task_status status;
    (void)recorder_add(attachment->recorder, pid, &denial);
    bool is_zombie = denial.reason[0] && task_read_status(pid, &status) && status.state == 'Z';
    if (is_zombie && is_named) message("process %d has ended, and its parent has not read its exit status", (int)pid);
    if (denial.reason[0] && !is_zombie) print_denial("", &denial);
}

/* A child may have been born before. */
void attach_add(struct attachment *attachment, pid_t pid)
{
    add(attachment, pid, false);
    recorder_find(attachment->recorder);
}

/* Adds the processes to the recorder. A process that is gone or denied is named; the others are recorded. */
static bool add_all(struct attachment *attachment)
{
    for (size_t i = 0; i < attachment->count; i++) add(attachment, attachment->pids[i], true);
    recorder_find(attachment->recorder);
    if (recorder_process_count(attachment->recorder) == 0 && attachment->count == 0)
        message("no process has that name, user and control group, or this user may not record it");
    return recorder_process_count(attachment->recorder) > 0;
}

bool attach_run(struct attachment *attachment, struct attach_options *options, uint64_t *ret_wall_ns)
{
    static const int watched[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1};
    sigset_t signals, before;
    struct sigaction hangup;
    (void)sigemptyset(&signals);
    for (size_t i = 0; i < sizeof(watched) / sizeof(watched[0]); i++) (void)sigaddset(&signals, watched[i]);
    bool ignores_hangup = sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler == SIG_IGN;
    if (ignores_hangup) (void)sigdelset(&signals, SIGHUP); /* nohup(1) */
    (void)sigprocmask(SIG_BLOCK, &signals, &before);
    bool is_recorded = open_engine(attachment, options) && add_all(attachment);
    uint64_t start_ns = clock_monotonic_ns(); /* engines take seconds to open */
    if (is_recorded && options->started) options->started(options->context);
    bool was_signalled = is_recorded && record_until_end(attachment, options, &signals);
    if (is_recorded) attach_end(attachment);
    *ret_wall_ns = clock_monotonic_ns() - start_ns;
    run_take_signals(&signals, was_signalled);
    (void)sigprocmask(SIG_SETMASK, &before, NULL);
    return is_recorded;
}

void attach_free(struct attachment *attachment)
{
    if (!attachment) return;
    recorder_free(attachment->recorder);
    free(attachment);
}

struct attachment *attach_open(struct attach_options *options)
{
    struct attachment *attachment = calloc(1, sizeof(*attachment));
    if (attachment && open_engine(attachment, options)) return attachment;
    attach_free(attachment);
    return NULL;
}
