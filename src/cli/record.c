/* offbeat record: runs a program, samples it and its children, and writes what was found.
 *
 * liboffbeat.so is preloaded into the program and leaves one recording a process in a temporary folder; the
 * expensive work (names, formats, files) is done here, when the program has ended.  SPDX-License-Identifier: MIT */
#include "base/array.h"
#include "base/clocks.h"
#include "base/environment.h"
#include "base/file.h"
#include "base/percent.h"
#include "base/unsigned.h"
#include "cli/commands.h"
#include "cli/convert_profile.h"
#include "cli/interpreter_message.h"
#include "cli/message.h"
#include "cli/open_profile.h"
#include "cli/options.h"
#include "cli/process_starts.h"
#include "cli/record.h"
#include "cli/record_attach.h"
#include "cli/record_folder.h"
#include "cli/record_library.h"
#include "cli/record_outputs.h"
#include "cli/record_run.h"
#include "deliver/program_script.h"
#include "profile/processes.h"
#include "report/completeness_text.h"
#include "symbolize/index_store.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DURATION_NS_MIN ((uint64_t)1000000)
#define DURATION_NS_MAX (365 * 86400 * SECOND_NS)

enum {
    CPU_PPM_MIN = 1000,
    RECORDINGS_MAX = 100000,
    CPU_UNSEEN_NS_MAX = 100000000,
    CPU_UNSEEN_PART = 20, /* 5 % */
    BETWEEN_TICKS_NS = 12000000,
    FIRST_SAMPLE_PERIODS = 2, /* ticks fall at random in their period */
};

struct record {
    const char *command; /* program as on the command line, for messages */
    char *program;       /* path of the program */
    struct record_outputs outputs;
    struct run_options run;
    const char *release, *environment;
    char script[NAME_MAX + 1]; /* name of the script that PROGRAM, an interpreter, runs; "": none */
    pid_t own_pid;             /* parent of the program's process */
    char library[PATH_MAX], cache_directory[PATH_MAX];
    bool has_folder, has_run; /* state that record_end has to end */
    int exit_status;          /* status, unless the program has run */
    struct record_folder folder;
    struct descendants *descendants;
    struct run_result result;
    struct decoding decoding; /* files are read once for all processes */
    struct process_starts starts;
    uint64_t sampled_cpu_ns; /* CPU time of the processes that were sampled, as long as they were */
    struct {
        char (*names)[256];
        size_t count, capacity;
    } recordings;
    size_t process_count, thread_count;
    uint64_t tick_count, stack_count, lost_ticks;
    char deleted[PATH_MAX]; /* first file that was gone when its functions were to be named; "": none */
    size_t deleted_count;   /* number of such files, in all processes */
    bool is_quiet;
    bool is_failed;
    bool is_running;                      /* true while the program runs: empty recordings may still grow */
    bool is_written;                      /* true if everything was written while the program ran */
    const struct record_watcher *watcher; /* NULL: none */
    struct attach_options attach;
    struct attachment *attachment; /* processes that are recorded from outside; NULL: none */
    char attached_name[PATH_MAX];
    bool is_outside; /* true if the command is recorded from outside */
};

struct record_arguments {
    struct option_texts outputs;
    unsigned format_choice; /* choice as in struct convert_target */
    bool thins_idle;
};

/* --- Afterwards --------------------------------------------------------------------------------------------------- */

static uint64_t metadata_number(const struct profile *profile, const char *key)
{
    return (uint64_t)profile_metadata_number(profile, key);
}

/* A process that ended as soon as it had made its recording was there to be sampled. */
static bool is_empty(const struct record *record, const char *name)
{
    if (record->is_running || !record_folder_delete_empty(&record->folder, name)) return false;
    descendants_note_empty_recording(record->descendants, (pid_t)strtol(name, NULL, 10));
    return true;
}

static void list_recordings(struct record *record)
{
    DIR *directory = opendir(record->folder.path);
    for (const struct dirent *entry; directory && (entry = readdir(directory));) {
        if (format_of_path(entry->d_name) != &format_recording || is_empty(record, entry->d_name)) continue;
        if (!array_reserve(&record->recordings.names, &record->recordings.capacity, record->recordings.count + 1,
                           sizeof(*record->recordings.names), RECORDINGS_MAX)) {
            message("over %d processes; the rest is left in %s", RECORDINGS_MAX, record->folder.path);
            record->is_failed = true;
            break;
        }
        (void)snprintf(record->recordings.names[record->recordings.count++], sizeof(*record->recordings.names), "%s",
                       entry->d_name);
    }
    if (directory) (void)closedir(directory);
    if (record->recordings.count > 1)
        qsort(record->recordings.names, record->recordings.count, sizeof(*record->recordings.names),
              record_folder_compare);
}

static bool add_process(struct record *record, struct profile *all, struct profile *profile)
{
    struct profile_extra_labels labels = {.count = 2};
    labels.items[0].key = "pid";
    labels.items[0].number = strtoll(profile_metadata_text(profile, "pid"), NULL, 10);
    labels.items[0].is_number = true;
    labels.items[1].key = "process";
    labels.items[1].text = profile_metadata_text(profile, "process");
    processes_add_place(&labels, profile);
    struct error error;
    if (profile_merge(all, profile, &labels, &error) == STATUS_OK) return true;
    message("%s", error.message);
    record->is_failed = true;
    return false;
}

/* Says what a full disk has cost. On one that stays full, the sampler cannot write how much that is. */
static void print_unwritten(const struct record *record, const struct profile *profile)
{
    const char *process = profile_metadata_text(profile, "process"), *pid = profile_metadata_text(profile, "pid");
    uint64_t bytes = metadata_number(profile, "bytes_lost");
    bool is_cut_off = !record->is_running && metadata_number(profile, "processes_cut_off") > 0;
    if (bytes > 0)
        message("%s (pid %s): %llu bytes of samples could not be written to %s; is the disk full?", process, pid,
                (unsigned long long)bytes, record->folder.path);
    else if (is_cut_off && record_folder_is_full(&record->folder))
        message("%s (pid %s): the recording ends early, and %s has no room left; set TMPDIR to a larger file system",
                process, pid, record->folder.path);
}

static void count_process(struct record *record, const struct profile *profile)
{
    static const char *const losses[] = {"lost_late", "lost_unanswered", "lost_in_kernel", "lost_no_table",
                                         "lost_before_first_stack"};
    static const char *const stacks[] = {"stacks_root",       "stacks_too_deep",  "stacks_no_table",
                                         "stacks_bad_memory", "stacks_bad_frame", "stacks_unknown_register"};
    record->process_count++;
    record->thread_count += profile->threads.count - 1;
    for (size_t i = 0; i < profile->samples.count; i++) {
        record->tick_count += (uint64_t)profile_sample_values(profile, i)[0];
    }
    for (size_t i = 0; i < sizeof(losses) / sizeof(losses[0]); i++)
        record->lost_ticks += metadata_number(profile, losses[i]);
    for (size_t i = 0; i < sizeof(stacks) / sizeof(stacks[0]); i++)
        record->stack_count += metadata_number(profile, stacks[i]);
    interpreter_message(profile);
    print_unwritten(record, profile);
}

/* The library writes down once a second how much CPU time its process has used. SEEN_NS is what was seen from outside,
 * for a process that was killed, that called _exit, or that another program replaced: the last scan can be a
 * tenth of a second old, and its samples may be newer. It is rather too much than too little, so that nothing is called
 * missing that is there. */
static uint64_t cpu_ns_of(const struct profile *profile, uint64_t seen_ns)
{
    uint64_t known_ns = greatest(metadata_number(profile, "process_cpu_ns"), recorded_cpu_ns(profile));
    if (metadata_number(profile, "processes_cut_off") == 0) return known_ns;
    return greatest(known_ns, seen_ns ? seen_ns : profile->duration_ns) + BETWEEN_TICKS_NS;
}

static bool has_unnamed_location(const struct profile *profile, size_t mapping)
{
    for (size_t i = 1; i < profile->locations.count; i++) {
        const struct location *location = &profile->locations.items[i];
        if (location->mapping.index == mapping && location->line_count == 0) return true;
    }
    return false;
}

/* Notes the files that are gone, so that nothing names their functions. */
static void note_deleted(struct record *record, const struct profile *profile)
{
    for (size_t i = 1; i < profile->mappings.count && !record->decoding.drops_symbols; i++) {
        const char *path = profile_c_string(profile, profile->mappings.items[i].file_name);
        bool is_gone = path[0] == '/' && access(path, F_OK) != 0 && errno == ENOENT;
        if (!is_gone || !has_unnamed_location(profile, i)) continue;
        if (record->deleted_count++ == 0) (void)snprintf(record->deleted, sizeof(record->deleted), "%s", path);
    }
}

/* Names the release of the program's own process by its script, which is the last one that it has executed; other
 * processes may run other scripts. A process is named by its script, if that is known. */
static void add_script(struct record *record, struct profile *profile)
{
    const char *name = profile_metadata_text(profile, "process");
    const char *file = path_base_name_text(profile_metadata_text(profile, "executable"));
    bool is_first = strtol(profile_metadata_text(profile, "parent_pid"), NULL, 10) == record->own_pid;
    if (is_first && profile_metadata_text(profile, "interpreter")[0])
        (void)snprintf(record->script, sizeof(record->script), "%s", name);
    if (is_first && record->script[0] && strcmp(name, file) == 0)
        profile_add_metadata_text(profile, "script", record->script);
}

static void take_recording(struct record *record, struct profile *all, const char *name)
{
    struct buffer bytes;
    struct profile profile;
    profile_init(&profile);
    enum record_file found = record_folder_read(&record->folder, name, &bytes);
    bool is_open =
        found == RECORD_FILE_READ && decode_one_of_many(name, &format_recording, &bytes, &record->decoding, &profile);
    record->is_failed |= !is_open && found != RECORD_FILE_LEFT_OUT;
    if (is_open) {
        note_deleted(record, &profile);
        bool was_sampled = profile.samples.count > 0; /* its start alone is too little for Sentry */
        pid_t pid = (pid_t)strtol(profile_metadata_text(&profile, "pid"), NULL, 10);
        uint64_t seen_ns =
            descendants_note_recorded(record->descendants, pid, profile_metadata_text(&profile, "executable"));
        record->sampled_cpu_ns += cpu_ns_of(&profile, seen_ns);
        struct process_start before = {.cpu_ns = metadata_number(&profile, "process_cpu_before_ns"),
                                       .wait_ns = metadata_number(&profile, "wait_before_ns")};
        record->sampled_cpu_ns += process_starts_add(&record->starts, &profile, pid, before);
        if (was_sampled) {
            count_process(record, &profile);
            add_script(record, &profile);
            if (record->release) profile.release = profile_text(&profile, record->release);
            if (record->environment) profile.environment = profile_text(&profile, record->environment);
            /* Some outputs hold one process in each file. */
            struct profile labelled;
            profile_init(&labelled);
            bool is_ready = !record->outputs.splits_processes || add_process(record, &labelled, &profile);
            if (is_ready) record->is_failed |= !record_outputs_write_process(&record->outputs, &profile, &labelled);
            profile_fini(&labelled);
        }
        (void)add_process(record, all, &profile);
    }
    buffer_fini(&bytes);
    profile_fini(&profile);
}

static void print_end(const char *program, int status)
{
    if (!WIFSIGNALED(status)) return;
    message("%s was ended by signal %d (%s); what was sampled until then is kept", program, WTERMSIG(status),
            strsignal(WTERMSIG(status)));
}

static void print_result(const struct record *record)
{
    char files[1024] = "";
    size_t length = 0;
    for (size_t i = 0; i < record->outputs.count && length < sizeof(files); i++) {
        const struct record_output *output = &record->outputs.items[i];
        char count[32] = "";
        if (output->series.number > 2) (void)snprintf(count, sizeof(count), " (%u files)", output->series.number - 1);
        int written = snprintf(files + length, sizeof(files) - length, "%s%s%s", i ? ", " : "",
                               message_name(output->path, true), count);
        length += written > 0 ? (size_t)written : 0;
    }
    message("%llu sample%s of %zu thread%s in %zu process%s%s → %s", (unsigned long long)record->tick_count,
            record->tick_count == 1 ? "" : "s", record->thread_count, record->thread_count == 1 ? "" : "s",
            record->process_count, record->process_count == 1 ? "" : "es",
            record->lost_ticks ? " (some lost, see offbeat info)" : "", files);
}

/* CPU time that is neither in a recording nor of a process that was seen: of processes that ended too soon, or before
 * the library is loaded and after it has ended. */
static uint64_t cpu_ns_unseen(const struct record *record, uint64_t seen_ns)
{
    uint64_t all_ns = record->result.cpu_ns, known_ns = record->sampled_cpu_ns + seen_ns;
    if (record->run.no_children || record->run.duration_ns || known_ns >= all_ns) return 0;
    uint64_t unseen_ns = all_ns - known_ns;
    return unseen_ns > CPU_UNSEEN_NS_MAX && unseen_ns > all_ns / CPU_UNSEEN_PART ? unseen_ns : 0;
}

/* The processes of the program that have no recording. */
struct missing {
    struct not_sampled processes;
    struct buffer names; /* names of these, NUL-terminated; failed without memory */
    uint64_t unseen_ns;
};

static void find_missing(const struct record *record, struct missing *missing)
{
    buffer_init(&missing->names, 1 << 14);
    missing->processes = descendants_not_sampled(record->descendants, &missing->names);
    missing->unseen_ns = cpu_ns_unseen(record, missing->processes.cpu_ns);
    buffer_append_byte(&missing->names, '\0');
}

static const char *names_of(const struct missing *missing)
{
    return missing->names.failed ? "" : (const char *)missing->names.data;
}

/* Adds a comment, so that the file says it, too. */
static void add_missing(const struct missing *missing, struct profile *all)
{
    profile_add_metadata_number(all, "processes_not_sampled", (int64_t)missing->processes.count);
    profile_add_metadata_number(all, "cpu_not_sampled_ns", (int64_t)(missing->processes.cpu_ns + missing->unseen_ns));
    if (missing->processes.count > 0) profile_add_metadata_text(all, "not_sampled", names_of(missing));
}

static void print_missing(const struct record *record, const struct missing *missing)
{
    double all_seconds = (double)record->result.cpu_ns / 1e9;
    size_t count = missing->processes.count;
    if (count > 0)
        message("%zu process%s could not be sampled (%.1f s of %.1f s of CPU time): %s; offbeat-record(1) says what to "
                "do",
                count, count == 1 ? "" : "es", (double)missing->processes.cpu_ns / 1e9, all_seconds, names_of(missing));
    if (missing->unseen_ns > 0)
        message("%.1f s of %.1f s of CPU time are not in the profile: processes spent them before the sampler started, "
                "after it ended, or lived too shortly to be seen",
                (double)missing->unseen_ns / 1e9, all_seconds);
}

/* Prints and empties LINE if HAS_SENTENCE. */
static void print_sentence(bool has_sentence, struct buffer *line)
{
    if (has_sentence) message("%.*s", SLICE_ARGUMENTS(buffer_slice(line)));
    buffer_clear(line);
}

static void print_completeness(const struct profile *all)
{
    struct completeness completeness;
    struct error error;
    struct buffer line;
    if (completeness_compute(all, &completeness, &error) != STATUS_OK) return;
    buffer_init(&line, 1 << 14);
    print_sentence(completeness_append_stacks(all, &completeness, &line), &line);
    print_sentence(completeness_append_calls(all, &line), &line);
    print_sentence(completeness_append_waits(all, &completeness, &line), &line);
    print_sentence(completeness_append_losses(all, &completeness, &line), &line);
    print_sentence(completeness_append_woken(all, &completeness, &line), &line);
    print_sentence(completeness_append_too_short(all, &completeness, &line) || completeness_append_late(all, &line),
                   &line);
    if (*profile_metadata_text(all, "sampler_ended"))
        message("the sampler ended before the program did: %s", profile_metadata_text(all, "sampler_ended"));
    print_sentence(completeness_append_unfollowed(&completeness, &line), &line);
    buffer_fini(&line);
}

static void print_deleted(const struct record *record)
{
    if (record->deleted_count == 0) return;
    char more[48] = "";
    if (record->deleted_count > 1) (void)snprintf(more, sizeof(more), " and %zu more", record->deleted_count - 1);
    message("%s%s was deleted while it was mapped, or exists only in memory or in another root directory: its "
            "functions have no names; keep it until the profile is written, or record with CAP_CHECKPOINT_RESTORE, as "
            "root has it outside of containers",
            message_name(record->deleted, true), more);
}

static void print_no_sample(const struct record *record)
{
    const char *command = record->command;
    uint64_t period_ns = 1000000000 / record->run.frequency_hz;
    double seconds = (double)record->result.wall_ns / 1e9, cpu_seconds = (double)record->result.cpu_ns / 1e9;
    if (record->result.wall_ns <= FIRST_SAMPLE_PERIODS * period_ns)
        message(record->is_running || !record->program ? "no sample of %s was taken; one is taken every %.1f ms"
                                                       : "%s ended before the first sample; one is taken every %.1f ms",
                command, (double)period_ns / 1e6);
    else if (record->run.is_cpu_mode && record->result.cpu_ns <= FIRST_SAMPLE_PERIODS * period_ns)
        message("%s used too little CPU time for a sample (%.3f s); --mode wall samples waiting, too", command,
                cpu_seconds);
    else
        message(
            "no stack was taken in the %.3f s that %s ran (%.3f s of CPU time); see offbeat info for the recorder's "
            "counters",
            seconds, command, cpu_seconds);
}

static void print_why_empty(const struct record *record, const struct missing *missing)
{
    if (record->recordings.count == 0 && missing->processes.count == 0 && !record->is_outside) {
        message("%s left no samples: it ended within a moment, or did not load %s; what it leaves running is not "
                "waited for: a daemon must stay in the foreground",
                record->command, record->run.library);
    } else if (record->stack_count == 0 && missing->processes.count == 0) {
        print_no_sample(record);
    }
}

/* Reports an error. If a file could not be written, the error is the only message. */
static void write_outputs(struct record *record, struct profile *all)
{
    struct missing missing;
    find_missing(record, &missing);
    if (record->is_running || !record->program)
        record->result.cpu_ns = record->sampled_cpu_ns + missing.processes.cpu_ns;
    add_missing(&missing, all);
    if (record->script[0] && profile_metadata_text(all, "script")[0] == '\0')
        profile_add_metadata_text(all, "script", record->script);
    if (record->recordings.count > 0) record->is_failed |= !record_outputs_write_all(&record->outputs, all);
    progress_end(&record->decoding.progress);
    if (!record->is_failed) {
        print_why_empty(record, &missing);
        print_missing(record, &missing);
        print_completeness(all);
        print_deleted(record);
    }
    buffer_fini(&missing.names);
}

static void write_everything(struct record *record)
{
    struct profile all;
    profile_init(&all);
    record->decoding.progress = progress_begin("writing the profile");
    record->decoding.progress.is_quiet = record->is_quiet;
    list_recordings(record);
    size_t count = record->recordings.count;
    record->decoding.modules = symbol_module_cache_new();
    record->decoding.image_directory = record_folder_arrange_images(&record->folder);
    for (size_t i = 0; i < count; i++) {
        progress_part(&record->decoding.progress, i, count + 1); /* the last part is the writing */
        take_recording(record, &all, record->recordings.names[i]);
    }
    symbol_module_cache_free(record->decoding.modules);
    progress_part(&record->decoding.progress, count, count + 1);
    write_outputs(record, &all);
    for (size_t i = 0; i < record->outputs.count; i++)
        report_left_out(record->outputs.items[i].path, &record->outputs.items[i].series);
    if (!record->is_failed && !record->is_quiet && record->stack_count > 0) print_result(record);
    if (record->watcher) record->watcher->written(record->watcher->context, &all);
    profile_fini(&all);
}

static void *write_in_thread(void *context)
{
    write_everything(context);
    return NULL;
}

/* Writes everything on a stack of the usual size, where the limit of this process's own stack is smaller. */
static void write_with_room(struct record *record)
{
    const rlim_t stack_bytes = 8 << 20;
    struct rlimit limit = {.rlim_cur = RLIM_INFINITY};
    pthread_attr_t attributes;
    pthread_t thread;
    (void)getrlimit(RLIMIT_STACK, &limit);
    bool has_thread = limit.rlim_cur < stack_bytes && pthread_attr_init(&attributes) == 0 &&
                      pthread_attr_setstacksize(&attributes, stack_bytes) == 0 &&
                      pthread_setattr_default_np(&attributes) == 0 && /* for all threads that the writing starts */
                      pthread_create(&thread, NULL, write_in_thread, record) == 0;
    if (has_thread)
        (void)pthread_join(thread, NULL);
    else
        write_everything(record);
}

/* --- While the program runs --------------------------------------------------------------------------------------- */

/* Waits for WRITER and returns its status. If the recording GOES_ON, samples from outside are taken meanwhile. */
static int await_writer(const struct record *record, pid_t writer, bool goes_on)
{
    const uint64_t pause_ns_max = 10000000;
    bool samples = record->attachment && goes_on;
    int status = 0;
    for (;;) {
        pid_t ended = waitpid(writer, &status, samples ? WNOHANG : 0);
        if (ended > 0 || (ended < 0 && errno != EINTR)) return status;
        if (!samples) continue;
        const struct timespec pause = {.tv_nsec = (long)least(attach_work(record->attachment), pause_ns_max)};
        (void)nanosleep(&pause, NULL);
    }
}

/* Writes a profile in another process, so that the one at the end does not count anything twice. This process waits:
 * signals come later. */
static void write_meanwhile(void *context, bool has_ended)
{
    struct record *record = context;
    int status = 0;
    pid_t writer = fork();
    if (writer == 0) {
        record->is_running = true;
        record->result.wall_ns = clock_monotonic_ns() - record->result.started_ns;
        write_with_room(record);
        (void)fflush(NULL);
        _exit(record->is_failed ? EXIT_FAILED : EXIT_SUCCESS);
    }
    if (writer < 0) message("cannot start a process that writes the profile: %s", strerror(errno));
    if (writer > 0) status = await_writer(record, writer, !has_ended);
    if (!has_ended || writer < 0) return;
    record->is_written = true;
    record->is_failed = !WIFEXITED(status) || WEXITSTATUS(status) != EXIT_SUCCESS;
    record_folder_close(&record->folder, !record->is_failed);
}

/* --- Beginning and end -------------------------------------------------------------------------------------------- */

/* Removes the folder, unless something could not be written: then the recordings are all there is. */
static void remove_recordings(const struct record *record)
{
    if (record->is_failed) {
        record_folder_remove_library(&record->folder);
        message("the recordings are kept in %s; offbeat convert and offbeat top read them", record->folder.path);
        return;
    }
    for (size_t i = 0; i < record->recordings.count; i++)
        record_folder_delete(&record->folder, record->recordings.names[i]);
    record_folder_remove(&record->folder);
}

static bool prepare_outputs(struct record *record, const struct record_arguments *arguments)
{
    struct record_outputs *outputs = &record->outputs;
    record->exit_status = EXIT_WRONG_USE;
    if (!record_outputs_choose(outputs, &arguments->outputs, arguments->format_choice,
                               record->program ? record->program : record->command))
        return false;
    record->exit_status = EXIT_FAILED;
    for (size_t i = 0; i < outputs->count; i++) outputs->items[i].series.thins_idle = arguments->thins_idle;
    record->run.stdout_is_taken = record_outputs_use_stdout(outputs);
    return record_outputs_check(outputs);
}

static void prepare_attach_options(struct record *record)
{
    struct attach_options *attach = &record->attach;
    attach->frequency_hz = record->run.frequency_hz;
    attach->cpu_max_ppm = record->run.cpu_max_ppm;
    attach->duration_ns = record->run.duration_ns;
    attach->is_cpu_mode = record->run.is_cpu_mode;
    attach->no_children = record->run.no_children;
    attach->directory = record->folder.path;
    attach->image_directory = record_folder_arrange_images(&record->folder);
    attach->cache_directory = index_store_folder(record->cache_directory) ? record->cache_directory : NULL;
}

static void attach_forked(void *context, pid_t pid)
{
    const struct record *record = context;
    attach_add(record->attachment, pid);
}

static uint64_t attach_work_of(void *context)
{
    const struct record *record = context;
    return attach_work(record->attachment);
}

static void write_attached_meanwhile(void *context, bool has_ended)
{
    const struct record *record = context;
    if (has_ended)
        attach_end(record->attachment);
    else
        attach_flush(record->attachment);
    write_meanwhile(context, has_ended);
}

/* Prepares the recording of a program from outside. */
static bool prepare_run_outside(struct record *record)
{
    record->has_folder = record_folder_make(&record->folder);
    if (!record->has_folder) return false;
    prepare_attach_options(record);
    record->attachment = attach_open(&record->attach);
    record->run.directory = record->folder.path;
    record->run.forked = attach_forked;
    record->run.work = attach_work_of;
    record->run.write = write_attached_meanwhile;
    return record->attachment != NULL;
}

static bool prepare_run(struct record *record)
{
    if (record->is_outside) return prepare_run_outside(record);
    if (!record_library_find(record->library)) return false;
    record->has_folder = record_folder_make(&record->folder);
    if (!record->has_folder || !record_folder_add_library(&record->folder, record->library)) return false;
    record->run.library = record->library;
    record->run.cache_directory = index_store_folder(record->cache_directory) ? record->cache_directory : NULL;
    record->run.directory = record->folder.path;
    if (!record->run.no_children) record->descendants = descendants_new(record->folder.path, record->library);
    return true;
}

static void note_started(void *context, pid_t pid)
{
    const struct record *record = context;
    record->watcher->started(record->watcher->context, &record->folder);
}

/* Writes everything. */
static void write_kept(struct record *record)
{
    /* A user who interrupts the writing learns where the recordings are. */
    char words[PATH_MAX + 160];
    (void)snprintf(words, sizeof(words),
                   "%soffbeat: stopped before all was written; the recordings are kept in %s; offbeat convert and "
                   "offbeat top read them\n",
                   isatty(STDERR_FILENO) ? "\r\033[K" : "" /* over the progress line */, record->folder.path);
    run_end_with_words(words);
    write_with_room(record);
}

static void write_attached(void *context)
{
    write_meanwhile(context, false);
}

static bool prepare_attach(struct record *record, const struct record_arguments *arguments)
{
    struct attach_options *attach = &record->attach;
    record->exit_status = EXIT_WRONG_USE;
    record->attachment = attach_find(attach, record->attached_name);
    if (!record->attachment) return false;
    record->command = record->attached_name;
    if (!prepare_outputs(record, arguments)) return false;
    record->has_folder = record_folder_make(&record->folder);
    if (!record->has_folder) return false;
    prepare_attach_options(record);
    attach->write = write_attached;
    attach->context = record;
    return true;
}

static void note_attached(void *context)
{
    const struct record *record = context;
    record->watcher->started(record->watcher->context, &record->folder);
}

/* Records processes that run already. Returns early as record_begin. */
static void record_attached(struct record *record, const struct record_arguments *arguments)
{
    if (!prepare_attach(record, arguments)) return;
    record->result.started_ns = clock_monotonic_ns();
    if (record->watcher) record->attach.started = note_attached;
    record->has_run = attach_run(record->attachment, &record->attach, &record->result.wall_ns);
    if (record->has_run && record->watcher) record->watcher->ended(record->watcher->context);
    if (record->has_run) write_kept(record);
}

static void note_script(struct record *record, char **command)
{
    struct buffer arguments;
    buffer_init(&arguments, 1 << 20);
    for (char **word = command; *word; word++) buffer_append(&arguments, *word, strlen(*word) + 1);
    struct slice script = program_script(path_base_name_text(command[0]), buffer_slice(&arguments));
    (void)snprintf(record->script, sizeof(record->script), "%.*s", SLICE_ARGUMENTS(script));
    record->own_pid = getpid();
    buffer_fini(&arguments);
}

/* Returns early where something fails: record_end stops and frees whatever was begun. */
static void record_begin(struct record *record, const struct record_arguments *arguments, char **command)
{
    record->exit_status = EXIT_FAILED;
    record->command = command[0];
    note_script(record, command);
    record->program = run_find_program(command[0], !record->is_outside);
    if (!record->program || !prepare_outputs(record, arguments) || !prepare_run(record)) return;
    if (record->watcher) record->run.started = note_started;
    record->run.context = record;
    record->has_run = run_program(record->program, command, &record->run, record->descendants, &record->result);
    if (!record->has_run) return;
    if (record->watcher) record->watcher->ended(record->watcher->context);
    if (record->is_written) return;
    if (record->attachment) attach_end(record->attachment);
    print_end(command[0], record->result.status);
    write_kept(record);
}

/* The only way out: as the program ended, unless it ended well and we failed. */
static int record_end(struct record *record)
{
    int status = record->result.status;
    run_end_without_words();
    if (record->has_folder) remove_recordings(record);
    if (record->has_run) index_store_make_room();
    if (record->watcher && record->has_run) record->watcher->last(record->watcher->context);
    attach_free(record->attachment);
    process_choice_fini(&record->attach.choice);
    free(record->program);
    record_outputs_fini(&record->outputs);
    free(record->recordings.names);
    descendants_free(record->descendants);
    process_starts_fini(&record->starts);
    bool hides_failure = WIFEXITED(status) && WEXITSTATUS(status) == 0;
    if (record->has_run && !(record->is_failed && hides_failure)) run_end_alike(status);
    return record->exit_status;
}

int record_watched(char **command, const struct record_request *request, const struct record_watcher *watcher)
{
    struct record record = {.run = {.frequency_hz = request->frequency_hz}, .watcher = watcher};
    const struct record_arguments arguments = {.outputs = request->outputs, .format_choice = CONVERT_TARGET_COUNT};
    record.attach.pids = request->pids;
    if (request->pids.count > 0)
        record_attached(&record, &arguments);
    else
        record_begin(&record, &arguments, command);
    return record_end(&record);
}

enum engine_choice { ENGINE_AUTO, ENGINE_INSIDE, ENGINE_BPF };
enum mode_choice { MODE_WALL, MODE_CPU, MODE_OFF_CPU };

static const char *const engine_names[] = {NULL, "inside", "bpf", "perf", "proc"};

/* Returns false, after one line, if the command line names both a command and processes, or neither. */
static bool check_use(const struct record *record, const struct operands *command, unsigned engine)
{
    bool attaches = attach_is_wanted(&record->attach);
    if (record->attach.pids.count > 0 && process_choice_is_given(&record->attach.choice))
        message("--pid and --all, --name, --user or --cgroup exclude each other");
    else if (attaches && command->count > 0)
        message("processes that run already are recorded, so %s cannot be started, too", command->items[0]);
    else if (!attaches && command->count == 0)
        message("record needs a COMMAND to run, or --pid PID; see offbeat record --help");
    else if (!record->attach.records_waits && (record->attach.names_wakers || record->attach.wait_ns_min > 0))
        message("--wakers and --min-wait need --mode off-cpu");
    else if (engine != ENGINE_AUTO && engine != ENGINE_BPF &&
             (record->attach.records_waits || record->attach.takes_kernel_stacks))
        message("%s needs the engine bpf; leave --engine out",
                record->attach.records_waits ? "--mode off-cpu" : "--kernel");
    else if (attaches && engine == ENGINE_INSIDE)
        message("--engine inside cannot record a process that runs already; leave it out");
    else
        return true;
    return false;
}

int command_record(int argc, char **argv)
{
    struct record record = {.run = {.frequency_hz = RECORD_FREQUENCY_DEFAULT}};
    struct record_arguments arguments = {.format_choice = CONVERT_TARGET_COUNT};
    unsigned mode = 0, engine = ENGINE_AUTO;
    /* clang-format off */
    const struct option options[] = {
        {"output", 'o', OPTION_TEXTS, &arguments.outputs, .argument = "FILE",
         .help = "the file to write, - for standard output; may be repeated (default: NAME.pb.gz)"},
        {"to", 0, OPTION_CHOICE, &arguments.format_choice, .argument = CONVERT_TARGETS,
         .help = "the format, if the name of FILE does not choose it (default: pprof)"},
        {"frequency", 'F', OPTION_NUMBER, &record.run.frequency_hz, .argument = "HZ",
         .help = "samples of each thread a second (default: 101)", .minimum = 1, .maximum = RECORD_FREQUENCY_MAX},
        {"cpu-max", 0, OPTION_PERCENT, &record.run.cpu_max_ppm, .argument = "PERCENT",
         .help = "what the sampler may use of a processor, in each process (default: 20%)", .minimum = CPU_PPM_MIN,
         .maximum = 100 * PERCENT_PPM},
        {"pid", 'p', OPTION_TEXTS, &record.attach.pids, .argument = "PID",
         .help = "record a process that runs already, and its children; may be repeated, or be 12,34"},
        {"all", 'a', OPTION_SWITCH, &record.attach.choice.takes_all, .help = "record all processes, new ones, too"},
        {"name", 0, OPTION_TEXT, &record.attach.choice.name, .argument = "REGEX",
         .help = "record all processes whose name matches"},
        {"user", 0, OPTION_TEXT, &record.attach.choice.user, .argument = "USER",
         .help = "record all processes of a user: a name or number"},
        {"cgroup", 0, OPTION_TEXT, &record.attach.choice.cgroup, .argument = "PATH",
         .help = "record all processes of a control group: a container, a service"},
        {"engine", 0, OPTION_CHOICE, &engine, .argument = "auto|inside|bpf|perf|proc",
         .help = "how to sample: with the library inside, or from outside (default: auto)"},
        {"mode", 0, OPTION_CHOICE, &mode, .argument = "wall|cpu|off-cpu",
         .help = "time that passes, time on a processor, or waits (default: wall)"},
        {"wakers", 0, OPTION_SWITCH, &record.attach.names_wakers, .help = "off-cpu: label each wait with who ended it"},
        {"min-wait", 0, OPTION_SECONDS, &record.attach.wait_ns_min, .argument = "SECONDS",
         .help = "off-cpu: sum up waits shorter than this without stacks", .minimum = 1000, .maximum = SECOND_NS},
        {"kernel", 0, OPTION_SWITCH, &record.attach.takes_kernel_stacks,
         .help = "include the functions of the kernel; with the engine bpf only"},
        {"native", 0, OPTION_SWITCH, &record.run.shows_interpreter,
         .help = "Python, PHP, Ruby: keep the interpreter's own frames between the functions of the program"},
        {"duration", 'd', OPTION_SECONDS, &record.run.duration_ns, .argument = "SECONDS",
         .help = "sample only so long, then write the profile; the program runs on", .minimum = DURATION_NS_MIN,
         .maximum = DURATION_NS_MAX},
        {"no-inherit", 0, OPTION_SWITCH, &record.run.no_children, .help = "leave the program's children alone"},
        {"thin-idle", 0, OPTION_SWITCH, &arguments.thins_idle,
         .help = "in envelopes, threads that wait give a sample a second, not one a tick"},
        {"split-processes", 0, OPTION_SWITCH, &record.outputs.splits_processes,
         .help = "a file for each process: x.pb.gz, x.2.pb.gz, … in the order of their starts"},
        {"no-symbols", 0, OPTION_SWITCH, &record.decoding.drops_symbols,
         .help = "only addresses of code in files; offbeat symbolize names it"},
        {"quiet", 'q', OPTION_SWITCH, &record.is_quiet, .help = "say only what went wrong"},
        {"release", 0, OPTION_TEXT, &record.release, .argument = "TEXT",
         .help = "release in the envelope (default: the program's name and build id)"},
        {"environment", 0, OPTION_TEXT, &record.environment, .argument = "TEXT",
         .help = "environment in the envelope (default: production)"},
        {0},
    };
    /* clang-format on */
    const struct command_syntax syntax = {
        .name = "record",
        .usage = "[options] [--] COMMAND [ARGUMENT]… | [options] -p PID",
        .example = "offbeat record -- xz -9 -T2 -k -c /usr/bin/perl > perl.xz",
        .about = "Runs COMMAND, samples every thread of it and of its children, and writes one pprof file of all\n"
                 "processes when COMMAND has ended, or the FILEs that -o names: x.pb.gz is pprof,\n"
                 "x.speedscope.json speedscope, x.firefox.json firefox, x.collapsed collapsed, x.envelope and\n"
                 "x.json Sentry's formats, one file for each process and minute. The program's input, output,\n"
                 "signals and exit status are unchanged; with -o -, the program writes to standard error. Ctrl-C ends\n"
                 "the program, not the writing. Ctrl-\\, or SIGUSR1 to offbeat, writes what was sampled so far.\n"
                 "With -p, -a, --name, --user or --cgroup, records processes that run already, from outside.",
        .options = options,
        .operands_max = INT_MAX,
        .stops_at_operand = true,
    };
    struct operands command;
    enum exit_status status;
    if (!options_parse(&syntax, argc, argv, &command, &status)) return (int)status;
    record.run.is_cpu_mode = mode == MODE_CPU;
    record.attach.records_waits = mode == MODE_OFF_CPU;
    record.run.write = write_meanwhile;
    record.attach.engine = engine_names[engine];
    record.attach.shows_interpreter = record.run.shows_interpreter;
    bool needs_bpf = record.attach.records_waits || record.attach.takes_kernel_stacks;
    record.is_outside = (engine > ENGINE_INSIDE || needs_bpf) && !attach_is_wanted(&record.attach);
    if (!check_use(&record, &command, engine)) return EXIT_WRONG_USE;
    if (attach_is_wanted(&record.attach))
        record_attached(&record, &arguments);
    else
        record_begin(&record, &arguments, command.items);
    return record_end(&record);
}
