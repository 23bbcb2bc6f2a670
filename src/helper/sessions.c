/* A request, NAME.request, becomes envelopes in steps that a kill at any moment may interrupt:
 *   1. NAME-0.part, NAME-1.part, … are written: an envelope each.
 *   2. NAME.request is renamed to NAME.done: from here on nothing is made again.
 *   3. The parts move into the spool, one after the other; then all files of NAME are deleted.
 * SPDX-License-Identifier: MIT */
#include "helper/sessions.h"

#include "base/array.h"
#include "base/file.h"
#include "deliver/request_file.h"
#include "format/common/text_line.h"
#include "format/sentry/chunk_envelope.h"
#include "format/sentry/envelope.h"
#include "format/sentry/rules.h"
#include "helper/make.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES_MAX = 16384, SESSIONS_MAX = 4096, PARTS_MAX = DELIVER_CHUNKS_MAX };

/* --- Files -------------------------------------------------------------------------------------------------------- */

struct names {
    char (*items)[NAME_MAX + 1]; /* sorted: names of recordings have the time */
    size_t count, capacity;
};

static int compare_names(const void *a, const void *b)
{
    return strcmp(a, b);
}

/* Lists the entries of FOLDER that end with SUFFIX, without it. */
static struct names list_names(const char *folder, const char *suffix, size_t count_max)
{
    struct names names = {0};
    DIR *directory = opendir(folder);
    for (const struct dirent *entry; directory && (entry = readdir(directory));) {
        if (!exchange_has_suffix(entry->d_name, suffix)) continue;
        if (!array_reserve(&names.items, &names.capacity, names.count + 1, sizeof(*names.items), count_max)) break;
        size_t size = strlen(entry->d_name) - strlen(suffix);
        (void)snprintf(names.items[names.count++], sizeof(*names.items), "%.*s", (int)size, entry->d_name);
    }
    if (directory) (void)closedir(directory);
    if (names.count > 0) qsort(names.items, names.count, sizeof(*names.items), compare_names);
    return names;
}

/* One request. */
struct task {
    struct server *server;
    const char *folder; /* folder of the session */
    const char *owner;
    char name[NAME_MAX + 1]; /* name of the request without its suffix */
    struct request_file file;
};

static bool task_path(const struct task *task, const char *suffix, char ret_path[PATH_MAX])
{
    return (size_t)snprintf(ret_path, PATH_MAX, "%s/%s%s", task->folder, task->name, suffix) < PATH_MAX;
}

static bool part_path(const struct task *task, unsigned number, char ret_path[PATH_MAX])
{
    return (size_t)snprintf(ret_path, PATH_MAX, "%s/%s-%u.part", task->folder, task->name, number) < PATH_MAX;
}

static void unlink_file(const struct task *task, const char *suffix)
{
    char path[PATH_MAX];
    if (task_path(task, suffix, path)) (void)unlink(path);
}

static bool is_v1(const struct task *task)
{
    return task->file.request.transaction.event_id != NULL;
}

static bool read_task(struct task *task, const char *suffix, struct error *error)
{
    char path[PATH_MAX];
    struct buffer text = {.maximum = REQUEST_BYTES_MAX};
    bool is_read = task_path(task, suffix, path) && file_read(path, &text, error) == STATUS_OK &&
                   chunk_request_read(buffer_slice(&text), &task->file, error) == STATUS_OK;
    buffer_fini(&text);
    return is_read;
}

static void delete_recordings(const struct task *task)
{
    char path[PATH_MAX];
    const struct chunk_request *request = &task->file.request;
    for (size_t i = 0; i < request->recording_count; i++) {
        bool is_name =
            !strchr(request->recordings[i], '/') && exchange_path(path, task->folder, request->recordings[i]);
        if (is_name) (void)unlink(path);
    }
}

/* --- Envelopes ---------------------------------------------------------------------------------------------------- */

/* Appends the envelope of TASK's transaction, and PROFILE unless it is empty. */
static void add_transaction(const struct task *task, struct slice profile, struct buffer *envelope)
{
    char path[PATH_MAX];
    if (!task_path(task, ".envelope", path) || file_read(path, envelope, NULL) != STATUS_OK)
        envelope->failed = true;
    else if (profile.size > 0)
        envelope_add_item(envelope, "profile", NULL, profile);
}

static void make_envelope(const struct task *task, struct slice payload, struct buffer *envelope)
{
    if (is_v1(task))
        add_transaction(task, payload, envelope);
    else
        chunk_envelope_write(payload, envelope);
}

static enum category category_of_task(const struct task *task)
{
    const char *platform = task->file.request.platform;
    return is_v1(task) ? CATEGORY_PROFILE : category_of_chunk(slice_of_text(platform ? platform : ""));
}

/* Counts a profile that could not be made, by the reasons of client reports (facts §2.7). */
static void discard(const struct task *task, enum status status, const char *message)
{
    bool has_too_few = reject_reason_of_message(message) == REJECT_NOT_ENOUGH_SAMPLES;
    enum discard_reason reason = has_too_few                  ? DISCARD_INSUFFICIENT_DATA
                                 : status == STATUS_MALFORMED ? DISCARD_INVALID
                                                              : DISCARD_INTERNAL_SDK_ERROR;
    server_log(task->folder, "a profile is not sent: %s", message);
    server_discard(task->server, task->folder, reason, category_of_task(task));
}

/* --- The steps ---------------------------------------------------------------------------------------------------- */

/* Counts the items of the file at PATH, which the spool has no room for, and deletes it. */
static void drop_part(const char *path, struct discards *dropped)
{
    struct buffer envelope = {.maximum = ENVELOPE_BYTES_MAX};
    if (file_read(path, &envelope, NULL) == STATUS_OK)
        discards_add_envelope(dropped, DISCARD_CACHE_OVERFLOW, buffer_slice(&envelope));
    buffer_fini(&envelope);
    (void)unlink(path);
}

/* Moves the file NAME, a part of TASK, into the spool. False if it stays, for a failure of the disk. */
static bool take_part(struct task *task, const char *name)
{
    char path[PATH_MAX];
    struct discards dropped = {0};
    struct error error;
    if (!exchange_path(path, task->folder, name)) return false;
    enum status status = spool_take_file(&task->server->spool, path, task->owner, &dropped, &error);
    if (!discards_are_empty(&dropped))
        server_log(task->folder, "the oldest envelopes are dropped: the spool is full; items: %llu",
                   (unsigned long long)discards_item_count(&dropped));
    if (status == STATUS_OK)
        server_log(task->folder, "the envelope of a %s is made, and stored in %s",
                   is_v1(task) ? "transaction" : "chunk", task->server->folder);
    if (status == STATUS_TOO_LARGE) {
        server_log(task->folder, "a profile is not sent: %s", error.message);
        drop_part(path, &dropped);
    }
    transport_add_discards(task->server->transport, &dropped);
    server_count(task->folder, &(struct item_counts){.discarded = discards_item_count(&dropped)});
    return status == STATUS_OK || status == STATUS_TOO_LARGE;
}

/* Moves the parts of TASK into the spool, and deletes its files. Parts stay after a failure of the disk. */
static void finish(struct task *task)
{
    struct names names = list_names(task->folder, ".part", FILES_MAX);
    size_t size = strlen(task->name);
    bool is_taken = true;
    for (size_t i = 0; i < names.count; i++) {
        char name[NAME_MAX + sizeof(".part")];
        if (strncmp(names.items[i], task->name, size) != 0 || names.items[i][size] != '-') continue;
        (void)snprintf(name, sizeof(name), "%s.part", names.items[i]);
        is_taken = take_part(task, name) && is_taken;
    }
    free(names.items);
    if (!is_taken) return;
    delete_recordings(task);
    unlink_file(task, ".envelope");
    unlink_file(task, ".done");
}

/* Writes each line of PAYLOADS as a part. False on a failure of the disk. */
static bool write_parts(struct task *task, struct slice payloads, unsigned *ret_count)
{
    char path[PATH_MAX];
    bool is_written = true;
    for (*ret_count = 0; is_written && *ret_count < PARTS_MAX; ++*ret_count) {
        struct slice payload = text_take_line(&payloads);
        if (payload.size == 0 && (*ret_count > 0 || !is_v1(task))) break;
        struct buffer envelope = {.maximum = ENVELOPE_BYTES_MAX};
        make_envelope(task, payload, &envelope);
        is_written = !envelope.failed && part_path(task, *ret_count, path) &&
                     file_write(path, buffer_slice(&envelope), NULL) == STATUS_OK;
        buffer_fini(&envelope);
    }
    return is_written;
}

static void delete_parts(const struct task *task)
{
    char path[PATH_MAX];
    for (unsigned i = 0; i < PARTS_MAX && part_path(task, i, path) && unlink(path) == 0; i++) continue;
}

/* Sends the payloads from memory where the disk has no room for envelopes; without the recordings it may have some. */
static void send_from_memory(struct task *task, struct slice payloads)
{
    struct item_counts made = {0};
    bool has_profile = payloads.size > 0;
    struct buffer transaction = {.maximum = ENVELOPE_BYTES_MAX};
    server_log(task->folder, "the disk has no room for envelopes: they are sent from memory");
    delete_parts(task);
    if (is_v1(task)) {
        make_envelope(task, text_take_line(&payloads), &transaction);
        made.made = (uint64_t)1 + has_profile;
        payloads.size = 0;
        (void)transport_send(task->server->transport, &transaction);
    }
    buffer_fini(&transaction);
    delete_recordings(task);
    unlink_file(task, ".envelope");
    unlink_file(task, ".request");
    while (payloads.size > 0) {
        struct buffer envelope = {.maximum = ENVELOPE_BYTES_MAX};
        make_envelope(task, text_take_line(&payloads), &envelope);
        (void)transport_send(task->server->transport, &envelope);
        buffer_fini(&envelope);
        made.made++;
    }
    server_count(task->folder, &made);
}

static bool rename_task(const struct task *task, const char *from, const char *to)
{
    char before[PATH_MAX], after[PATH_MAX];
    return task_path(task, from, before) && task_path(task, to, after) && rename(before, after) == 0;
}

/* Makes the envelopes of TASK from PAYLOADS. */
static void commit(struct task *task, struct slice payloads)
{
    unsigned count = 0;
    bool has_profile = payloads.size > 0;
    delete_parts(task);
    if (!write_parts(task, payloads, &count)) {
        send_from_memory(task, payloads);
        return;
    }
    uint64_t made = is_v1(task) ? (uint64_t)1 + has_profile : count;
    server_count(task->folder, &(struct item_counts){.made = made});
    if (rename_task(task, ".request", ".done")) finish(task);
}

/* Leaves PAYLOADS to the program, which asks its before_send. */
static void leave_to_program(const struct task *task, struct slice payloads)
{
    char path[PATH_MAX];
    if (!task_path(task, ".made", path) || file_write(path, payloads, NULL) != STATUS_OK)
        discard(task, STATUS_IO, "the disk has no room for it");
    else
        server_log(task->folder, "a profile is made: before_send is asked about it");
    delete_recordings(task);
    unlink_file(task, ".request");
}

/* Makes the payloads of TASK, empty if there can be none. */
static void make(struct task *task, struct buffer *payloads)
{
    char path[PATH_MAX];
    struct error error = {0};
    if (!task_path(task, ".request", path)) return;
    struct make_options options = {task->file.request.has_names, task->server->flush_count > 0};
    int outcome = make_in_process(path, options, payloads, &error);
    if (outcome == MAKE_FAILED && options.has_names) {
        server_log(task->folder, "functions have no names this time: %s", error.message);
        buffer_clear(payloads);
        options.has_names = false;
        outcome = make_in_process(path, options, payloads, &error);
    }
    if (outcome == MAKE_DONE) return;
    if (outcome == MAKE_REJECTED)
        (void)error_set(&error, STATUS_MALFORMED, 0, "%.*s", (int)payloads->size, (const char *)payloads->data);
    discard(task, outcome == MAKE_REJECTED ? STATUS_MALFORMED : STATUS_UNSUPPORTED, error.message);
    buffer_clear(payloads);
}

static void drop_request(struct task *task)
{
    delete_recordings(task);
    unlink_file(task, ".envelope");
    unlink_file(task, ".request");
}

static void work_on_request(struct task *task, bool is_over)
{
    struct buffer payloads = {.maximum = CHUNK_PAYLOADS_BYTES_MAX};
    struct error error;
    if (!read_task(task, ".request", &error)) {
        server_log(task->folder, "a request cannot be read: %s", error.message);
        drop_request(task);
        return;
    }
    make(task, &payloads);
    if (task->file.request.asks && is_over && payloads.size > 0) {
        discard(task, STATUS_UNSUPPORTED, "the program has ended, and its before_send cannot be asked");
        buffer_clear(&payloads);
    }
    if (task->file.request.asks && !is_over)
        leave_to_program(task, buffer_slice(&payloads));
    else if (is_v1(task) || payloads.size > 0)
        commit(task, buffer_slice(&payloads));
    else
        drop_request(task);
    buffer_fini(&payloads);
}

/* Drops the payloads that nobody can be asked about; a transaction is sent alone. */
static void end_made(struct task *task)
{
    char path[PATH_MAX];
    struct stat facts;
    bool has_payload = task_path(task, ".made", path) && stat(path, &facts) == 0 && facts.st_size > 0;
    bool has_transaction = task_path(task, ".envelope", path) && exchange_is_there(path);
    if (has_payload)
        server_discard(task->server, task->folder, DISCARD_INTERNAL_SDK_ERROR,
                       has_transaction ? CATEGORY_PROFILE : CATEGORY_PROFILE_CHUNK);
    if (has_transaction && rename_task(task, ".envelope", "-0.part")) {
        server_count(task->folder, &(struct item_counts){.made = 1});
        finish(task);
    }
    unlink_file(task, ".made");
}

static void work_on(struct task *task, const char *suffix, bool is_over)
{
    struct error error;
    if (strcmp(suffix, ".request") == 0)
        work_on_request(task, is_over);
    else if (strcmp(suffix, ".made") == 0)
        end_made(task);
    else if (read_task(task, ".done", &error))
        finish(task);
    chunk_request_fini(&task->file);
}

/* --- All of a session --------------------------------------------------------------------------------------------- */

/* Works on the files of the session in FOLDER that end with SUFFIX. Returns their number. */
static size_t work_on_all(struct server *server, const char *folder, const char *owner, const char *suffix,
                          bool is_over)
{
    struct names names = list_names(folder, suffix, FILES_MAX);
    for (size_t i = 0; i < names.count; i++) {
        struct task task = {.server = server, .folder = folder, .owner = owner};
        memcpy(task.name, names.items[i], sizeof(task.name));
        work_on(&task, suffix, is_over);
    }
    free(names.items);
    return names.count;
}

/* Writes the request for a recording whose process ended before it wrote one. */
static void request_recording(const char *folder, const char *name, struct chunk_request *request)
{
    char recording[NAME_MAX + 1 + sizeof(".recording")], done[NAME_MAX + 1 + sizeof(".done")];
    char wanted[NAME_MAX + 1 + sizeof(".request")], path[PATH_MAX];
    struct stat facts;
    struct buffer text = {.maximum = REQUEST_BYTES_MAX};
    (void)snprintf(recording, sizeof(recording), "%s.recording", name);
    (void)snprintf(done, sizeof(done), "%s.done", name);
    (void)snprintf(wanted, sizeof(wanted), "%s.request", name);
    if (!exchange_path(path, folder, done) || exchange_is_there(path)) return; /* its envelopes are complete */
    bool has_content = exchange_path(path, folder, recording) && stat(path, &facts) == 0 && facts.st_size > 0;
    if (!has_content || request->is_v1) return;
    request->recordings[0] = recording;
    request->recording_count = 1;
    chunk_request_write(request, &text);
    bool is_new = exchange_path(path, folder, wanted) && !exchange_is_there(path);
    if (!text.failed && is_new) (void)file_write(path, buffer_slice(&text), NULL);
    buffer_fini(&text);
}

static void request_rest(const char *folder)
{
    struct buffer text = {.maximum = REQUEST_BYTES_MAX};
    struct request_file file = {0};
    bool is_read = session_read(folder, &text, NULL) == STATUS_OK &&
                   chunk_request_read(buffer_slice(&text), &file, NULL) == STATUS_OK;
    struct names names = list_names(folder, ".recording", FILES_MAX);
    for (size_t i = 0; is_read && i < names.count; i++) request_recording(folder, names.items[i], &file.request);
    free(names.items);
    chunk_request_fini(&file);
    buffer_fini(&text);
}

static bool is_empty(const char *folder, const char *suffix)
{
    struct names names = list_names(folder, suffix, 1);
    free(names.items);
    return names.count == 0;
}

static void work_on_session(struct server *server, const char *name, const char *owner, struct sessions_found *found)
{
    char folder[PATH_MAX];
    if (!exchange_path(folder, server->folder, name)) return;
    bool is_over = session_is_over(server->folder, name);
    size_t count = work_on_all(server, folder, owner, ".done", is_over);
    count += work_on_all(server, folder, owner, ".request", is_over);
    if (is_over) {
        request_rest(folder);
        count += work_on_all(server, folder, owner, ".request", true);
        count += work_on_all(server, folder, owner, ".made", true);
        bool is_left = !is_empty(folder, ".request") || !is_empty(folder, ".done");
        if (!is_left) session_remove(folder);
    }
    found->has_programs = found->has_programs || !is_over;
    found->has_done = found->has_done || count > 0;
}

struct sessions_found sessions_work(struct server *server)
{
    struct sessions_found found = {0};
    char owner[SPOOL_OWNER_SIZE];
    struct names names = list_names(server->folder, ".session", SESSIONS_MAX);
    for (size_t i = 0; i < names.count; i++) {
        char name[NAME_MAX + sizeof(".session")];
        (void)snprintf(name, sizeof(name), "%s.session", names.items[i]);
        if (session_is_name(name, owner)) work_on_session(server, name, owner, &found);
    }
    free(names.items);
    return found;
}
