/* While the command runs, a thread reads the recordings that grow, and gives the page a new profile about once a
 * second. It takes a tenth of a processor at most, at a low priority: what takes longer to read is read less often.
 * SPDX-License-Identifier: MIT */
#include "cli/live_view.h"

#include "base/array.h"
#include "base/clocks.h"
#include "cli/browser_page.h"
#include "cli/message.h"
#include "cli/open_profile.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#define PERIOD_NS SECOND_NS
#define FIRST_NS ((uint64_t)300000000)
enum { PAUSE_FACTOR = 9, NICE = 10, RECORDINGS_MAX = 100000 };

struct recording_names {
    char (*items)[256];
    size_t count, capacity;
};

struct live_view {
    struct report_request *request;
    const char *command;
    struct browser_page *page;
    const struct record_folder *folder;
    struct profile final;
    struct recording_names names; /* names of the recordings at the last update */
    uint64_t read_bytes;          /* their sizes, added up */
    bool has_thread;
    pthread_t thread;
    pthread_mutex_t lock; /* lock of IS_ENDED */
    pthread_cond_t wake;
    bool is_ended; /* the command */
};

static bool is_ended(struct live_view *live)
{
    (void)pthread_mutex_lock(&live->lock);
    bool is_ended = live->is_ended;
    (void)pthread_mutex_unlock(&live->lock);
    return is_ended;
}

/* --- Updates ------------------------------------------------------------------------------------------------------ */

static bool is_recording(const struct live_view *live, const char *name, struct stat *ret_status)
{
    char path[PATH_MAX + 260];
    (void)snprintf(path, sizeof(path), "%s/%s", live->folder->path, name);
    return format_of_path(name) == &format_recording && lstat(path, ret_status) == 0 && S_ISREG(ret_status->st_mode) &&
           ret_status->st_size > 0;
}

/* The recordings, the program's first. False if nothing was written since the last update. */
static bool list_recordings(struct live_view *live)
{
    uint64_t bytes = 0;
    struct recording_names *names = &live->names;
    DIR *folder = opendir(live->folder->path);
    names->count = 0;
    for (const struct dirent *entry; folder && (entry = readdir(folder));) {
        struct stat status;
        if (!is_recording(live, entry->d_name, &status)) continue;
        bytes += (uint64_t)status.st_size;
        if (!array_reserve(&names->items, &names->capacity, names->count + 1, sizeof(*names->items), RECORDINGS_MAX))
            break;
        (void)snprintf(names->items[names->count++], sizeof(*names->items), "%s", entry->d_name);
    }
    if (folder) (void)closedir(folder);
    if (names->count > 1) qsort(names->items, names->count, sizeof(*names->items), record_folder_compare);
    bool has_grown = bytes != live->read_bytes;
    live->read_bytes = bytes;
    return has_grown;
}

/* Adds a recording. One that is incomplete or gone is left out without a message: the next update has it. */
static void add_recording(const struct live_view *live, const char *name, struct decoding *decoding,
                          struct profile *all)
{
    struct error ignored;
    struct buffer bytes;
    struct profile one, labelled;
    profile_init(&one);
    profile_init(&labelled);
    if (record_folder_read(live->folder, name, &bytes) == RECORD_FILE_READ &&
        decode_one_of_many(name, &format_recording, &bytes, decoding, &one) && one.samples.count > 0 &&
        label_process(&labelled, &one, &ignored) == STATUS_OK)
        (void)profile_merge(all, &labelled, NULL, &ignored);
    buffer_fini(&bytes);
    profile_fini(&labelled);
    profile_fini(&one);
}

/* False if the profile cannot be shown: a line on standard error says why, and the next update would say the same. */
static bool update(struct live_view *live, struct decoding *decoding)
{
    struct report_request request = *live->request;
    struct profile all;
    enum exit_status status = EXIT_DONE;
    if (!list_recordings(live)) return true;
    request.browser.page = live->page;
    request.browser.is_update = true;
    profile_init(&all);
    for (size_t i = 0; i < live->names.count && !is_ended(live); i++)
        add_recording(live, live->names.items[i], decoding, &all);
    if (all.samples.count > 0 && !is_ended(live)) status = report_run_opened(&request, live->command, &all);
    profile_fini(&all);
    return status == EXIT_DONE;
}

/* False if the command has ended. */
static bool pause_for(struct live_view *live, uint64_t pause_ns)
{
    uint64_t end_ns = clock_monotonic_ns() + pause_ns;
    const struct timespec end = {.tv_sec = (time_t)(end_ns / SECOND_NS), .tv_nsec = (long)(end_ns % SECOND_NS)};
    (void)pthread_mutex_lock(&live->lock);
    int result = 0;
    while (!live->is_ended && result == 0) result = pthread_cond_timedwait(&live->wake, &live->lock, &end);
    bool is_running = !live->is_ended;
    (void)pthread_mutex_unlock(&live->lock);
    return is_running;
}

static void *update_often(void *context)
{
    struct live_view *live = context;
    struct decoding decoding = {.modules = symbol_module_cache_new()};
    decoding.progress.is_quiet = true;
    (void)setpriority(PRIO_PROCESS, 0, NICE); /* priority of this thread: Linux has one for each */
    bool is_shown = true;
    for (uint64_t pause_ns = FIRST_NS; is_shown && pause_for(live, pause_ns);) {
        uint64_t start_ns = clock_monotonic_ns();
        is_shown = update(live, &decoding);
        uint64_t taken_ns = clock_monotonic_ns() - start_ns;
        pause_ns = PAUSE_FACTOR * taken_ns > PERIOD_NS ? PAUSE_FACTOR * taken_ns : PERIOD_NS;
    }
    symbol_module_cache_free(decoding.modules);
    return NULL;
}

/* --- The command -------------------------------------------------------------------------------------------------- */

static void started(void *context, const struct record_folder *folder)
{
    struct live_view *live = context;
    struct error error = {0};
    const struct browser_page_options options = {.is_live = true, .opens_browser = !live->request->browser.no_browser};
    live->folder = folder;
    if (browser_page_open(&options, &live->page, &error) != STATUS_OK) {
        message("the command is recorded, and not shown: %s", error.message);
        return;
    }
    live->has_thread = pthread_create(&live->thread, NULL, update_often, live) == 0;
    if (!live->has_thread) message("the page shows the profile when the command has ended: there is no thread");
}

static void ended(void *context)
{
    struct live_view *live = context;
    (void)pthread_mutex_lock(&live->lock);
    live->is_ended = true;
    (void)pthread_cond_signal(&live->wake);
    (void)pthread_mutex_unlock(&live->lock);
    if (live->has_thread) (void)pthread_join(live->thread, NULL);
}

static void written(void *context, struct profile *all)
{
    struct live_view *live = context;
    live->final = *all;
    profile_init(all);
}

/* Shows the final profile until Ctrl-C; without a sample there is nothing to stay for. */
static void last(void *context)
{
    struct live_view *live = context;
    if (live->page && live->final.samples.count > 0) {
        message("the recording has ended; its profile is shown until Ctrl-C");
        live->request->browser.page = live->page; /* closes it, unless it fails */
        if (report_run_opened(live->request, live->command, &live->final) == EXIT_DONE) live->page = NULL;
    }
    browser_page_close(live->page);
    profile_fini(&live->final);
    free(live->names.items);
}

int live_view_run(struct report_request *request, const struct record_request *recording, char **command)
{
    struct live_view live = {
        .request = request, .command = command[0] ? command[0] : "processes", .lock = PTHREAD_MUTEX_INITIALIZER};
    const struct record_watcher watcher = {
        .context = &live, .started = started, .ended = ended, .written = written, .last = last};
    pthread_condattr_t clock;
    (void)pthread_condattr_init(&clock);
    (void)pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&live.wake, &clock);
    (void)pthread_condattr_destroy(&clock);
    profile_init(&live.final);
    return record_watched(command, recording, &watcher);
}
