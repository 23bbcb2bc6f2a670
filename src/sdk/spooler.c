/* SPDX-License-Identifier: MIT */
#include "sdk/spooler.h"

#include "base/file.h"
#include "base/folder_names.h"
#include "base/seccomp_filter.h"
#include "base/uuid.h"
#include "deliver/request_file.h"
#include "format/common/text_line.h"
#include "format/sentry/chunk_envelope.h"
#include "format/sentry/envelope.h"
#include "sdk/callbacks.h"
#include "sdk/helper_process.h"
#include "sdk/sender.h"
#include "spool/exchange.h"
#include "spool/session.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum { ENVELOPES_MAX = 1000, STARTS_PAUSE_MAX_SECONDS = 60, REPORT_SECONDS = 30, LINES_BYTES_MAX = 16 << 10 };
enum { LOG_READS_MAX = SESSION_LOG_BYTES_MAX / LINES_BYTES_MAX + 1 };

#define FIRST_PAUSE_NS MILLISECOND_NS /* the first pause between two looks for an answer; it grows */
#define LAST_PAUSE_NS (20 * MILLISECOND_NS)

static struct session session;

/* --- The session -------------------------------------------------------------------------------------------------- */

const char *spooler_session(void)
{
    return session.folder;
}

static bool begin_session(const struct spooler *spooler, const struct chunk_request *metadata, struct error *error)
{
    char path[PATH_MAX];
    struct buffer text = {.maximum = REQUEST_BYTES_MAX};
    chunk_request_write(metadata, &text);
    enum status status = text.failed ? error_set(error, STATUS_NO_MEMORY, 0, "not enough memory")
                                     : session_begin(&session, spooler->folder.server, buffer_slice(&text), error);
    buffer_fini(&text);
    /* The helper writes into a log that is there. */
    if (status == STATUS_OK && sdk_options()->debug && exchange_path(path, session.folder, "log"))
        (void)file_write(path, slice_of(NULL, 0), NULL);
    return status == STATUS_OK;
}

void spooler_begin(struct spooler *spooler, const struct chunk_request *metadata, struct error *error)
{
    const struct offbeat_options *options = sdk_options();
    *spooler = (struct spooler){.start_pause_ns = SECOND_NS};
    spooler->spool.folder.number = -1;
    spooler->has_stored = spool_folder_has_rest(sdk_settings());
    spooler->has_helper = helper_find(options->helper, spooler->helper);
    spooler->has_folder =
        spool_folder_choose(sdk_settings(), &spooler->folder, error) && begin_session(spooler, metadata, error);
    const char *name = strrchr(spooler->folder.server, '/');
    if (!spooler->has_folder) return;
    (void)spool_init(&spooler->spool, spooler->folder.root, name + 1); /* the session's path is longer, and fits */
    spooler->spool.bytes_max = options->spool_bytes_max;
    spooler->spool.count_max = ENVELOPES_MAX;
    memcpy(spooler->spool.owner, session.owner, sizeof(spooler->spool.owner));
    sender_set_session(session.folder);
    spooler->has_news = spooler->has_stored;
}

static void forget_flush(struct spooler *spooler)
{
    if (spooler->flush_path[0]) (void)unlink(spooler->flush_path);
    spooler->flush_path[0] = '\0';
}

static void close_session(struct spooler *spooler)
{
    forget_flush(spooler);
    spooler_read_state(spooler);
    sender_set_session(NULL);
    spool_fini(&spooler->spool);
    spooler->has_folder = false;
}

void spooler_end(struct spooler *spooler)
{
    if (!spooler->has_folder) return;
    close_session(spooler);
    session_end(&session);
    if (spooler->has_stored) (void)exchange_wake(spooler->folder.root);
}

void spooler_leave(struct spooler *spooler)
{
    if (!spooler->has_folder) return;
    close_session(spooler);
    session_forget(&session);
}

void spooler_keep(struct spooler *spooler)
{
    if (spooler->has_folder) session_keep(&session);
}

void spooler_forget(void)
{
    session_forget(&session);
}

/* --- The helper --------------------------------------------------------------------------------------------------- */

/* Says once why nothing is sent. */
static void say_waits(struct spooler *spooler, const char *reason)
{
    if (!spooler->has_said)
        sdk_say("%s: profiles wait in %s, until `offbeat-helper --spool` sends them", reason, spooler->folder.root);
    spooler->has_said = true;
}

static bool start_helper(struct spooler *spooler)
{
    char reason[PATH_MAX + 100];
    if (!spooler->has_helper) {
        say_waits(spooler, "offbeat-helper was not found; OFFBEAT_HELPER can name it");
        return false;
    }
    if (!filter_try_use(FILTER_HELPER)) {
        say_waits(spooler, "a seccomp filter lets no helper start");
        return false;
    }
    int error = helper_start(spooler->helper, spooler->folder.root);
    if (error == 0) {
        sdk_debug("%s is started, for %s", spooler->helper, spooler->folder.root);
        return true;
    }
    (void)snprintf(reason, sizeof(reason), "%s cannot be started: %s", spooler->helper, strerror(error));
    say_waits(spooler, reason);
    return false;
}

/* Wakes the helper, or starts it. False if there can be none. */
static bool wake_helper(struct spooler *spooler)
{
    uint64_t now_ns = clock_monotonic_ns();
    bool is_first = spooler->woken_at_ns == 0;
    spooler->has_news = false;
    spooler->woken_at_ns = now_ns;
    if (exchange_wake(spooler->folder.root)) {
        if (is_first) sdk_debug("an offbeat-helper for %s is running", spooler->folder.root);
        spooler->start_pause_ns = SECOND_NS;
        return true;
    }
    if (spooler->started_at_ns > 0 && now_ns - spooler->started_at_ns < spooler->start_pause_ns) return true;
    if (spooler->started_at_ns > 0) spooler->start_pause_ns *= 2;
    if (spooler->start_pause_ns > STARTS_PAUSE_MAX_SECONDS * SECOND_NS)
        spooler->start_pause_ns = STARTS_PAUSE_MAX_SECONDS * SECOND_NS;
    spooler->started_at_ns = now_ns;
    if (start_helper(spooler)) return true;
    spooler->started_at_ns = 0;
    return false;
}

/* --- Requests ----------------------------------------------------------------------------------------------------- */

/* Writes REQUEST as NAME.request. */
static bool write_request(struct spooler *spooler, const struct chunk_request *request, const char *name)
{
    char path[PATH_MAX];
    struct buffer text = {.maximum = REQUEST_BYTES_MAX};
    chunk_request_write(request, &text);
    bool is_written = spooler->has_folder && !text.failed &&
                      (size_t)snprintf(path, sizeof(path), "%s/%s.request", session.folder, name) < sizeof(path) &&
                      file_write(path, buffer_slice(&text), NULL) == STATUS_OK;
    buffer_fini(&text);
    if (!is_written) return false;
    sdk_debug("a recording is complete: offbeat-helper makes %s of it", request->is_v1 ? "a profile" : "a chunk");
    spooler->has_news = spooler->has_stored = true;
    spooler->question_count += request->asks;
    return true;
}

bool spooler_request(struct spooler *spooler, const struct chunk_request *request)
{
    char name[NAME_MAX + 1];
    const char *recording = request->recordings[0], *dot = strrchr(recording, '.');
    (void)snprintf(name, sizeof(name), "%.*s", dot ? (int)(dot - recording) : NAME_MAX, recording);
    return write_request(spooler, request, name);
}

bool spooler_request_v1(struct spooler *spooler, const struct chunk_request *request, const char *const *paths,
                        size_t count, const struct buffer *envelope)
{
    char names[CHUNK_RECORDINGS_MAX][NAME_MAX + 1], path[PATH_MAX], envelope_path[PATH_MAX];
    struct chunk_request complete = *request;
    const char *name = request->transaction.event_id;
    int length = snprintf(envelope_path, sizeof(envelope_path), "%s/%s.envelope", session.folder, name);
    if (!spooler->has_folder || envelope->failed || count > CHUNK_RECORDINGS_MAX || length >= PATH_MAX) return false;
    bool is_written = file_write(envelope_path, buffer_slice(envelope), NULL) == STATUS_OK;
    for (size_t i = 0; is_written && i < count; i++) {
        (void)snprintf(names[i], sizeof(names[i]), "%s-%zu.linked", name, i);
        is_written = exchange_path(path, session.folder, names[i]) && link(paths[i], path) == 0;
        complete.recordings[complete.recording_count++] = names[i];
    }
    if (is_written && write_request(spooler, &complete, name)) return true;
    (void)unlink(envelope_path);
    for (size_t i = 0; i < complete.recording_count; i++) {
        if (exchange_path(path, session.folder, names[i])) (void)unlink(path);
    }
    return false;
}

/* --- Envelopes ---------------------------------------------------------------------------------------------------- */

/* Writes ENVELOPE and the report that is due to the spool. */
static enum status store_with_report(struct spooler *spooler, struct slice envelope, struct discards *ret_reported,
                                     struct discards *dropped, struct error *error)
{
    struct buffer whole = {.maximum = ENVELOPE_BYTES_MAX};
    buffer_append(&whole, envelope.data, envelope.size);
    (void)sender_take_report(&whole, ret_reported);
    enum status status = whole.failed ? error_set(error, STATUS_NO_MEMORY, 0, "not enough memory")
                                      : spool_store(&spooler->spool, buffer_slice(&whole), dropped, error);
    buffer_fini(&whole);
    return status;
}

/* Stores ENVELOPE with the report that is due. False if the spool cannot be written. */
static bool store_envelope(struct spooler *spooler, struct slice envelope)
{
    struct discards reported, dropped = {0};
    struct error error;
    enum status status = store_with_report(spooler, envelope, &reported, &dropped, &error);
    sender_add_discards(&dropped, true);
    spooler->has_news = spooler->has_stored = true;
    spooler->is_unwritable = status != STATUS_OK && status != STATUS_TOO_LARGE;
    if (status == STATUS_OK) {
        sdk_debug("an envelope of %zu bytes is stored in %s", envelope.size, spooler->folder.server);
        spooler->report_at_ns = clock_monotonic_ns() + REPORT_SECONDS * SECOND_NS;
        return true;
    }
    sender_add_discards(&reported, false);
    if (status == STATUS_TOO_LARGE) { /* it would never fit */
        struct discards lost = {0};
        discards_add_envelope(&lost, DISCARD_CACHE_OVERFLOW, envelope);
        sender_add_discards(&lost, true);
        return true;
    }
    if (!spooler->has_said) sdk_debug("%s; envelopes stay in memory", error.message);
    spooler->has_said = true;
    return false;
}

/* Stores a report alone, at the end, for a flush, and after some time without an envelope. */
static void store_report(struct spooler *spooler)
{
    struct buffer envelope = {.maximum = 1 << 20};
    envelope_begin_with(&envelope, slice_of_text("{}"));
    (void)store_envelope(spooler, buffer_slice(&envelope));
    buffer_fini(&envelope);
}

void spooler_store(struct spooler *spooler)
{
    struct queued *queued;
    if (!spooler->has_folder) return;
    while ((queued = sender_take())) {
        if (!store_envelope(spooler, buffer_slice(&queued->bytes))) {
            sender_give_back(queued);
            break;
        }
        queued_free(queued);
    }
    bool is_due = clock_monotonic_ns() >= spooler->report_at_ns || spooler->flush_number > 0;
    if (!queued && is_due && sender_has_work()) store_report(spooler);
    if (spooler->has_news) (void)wake_helper(spooler);
}

/* --- before_send -------------------------------------------------------------------------------------------------- */

static void send_chunk(struct slice payload)
{
    struct buffer envelope = {.maximum = ENVELOPE_BYTES_MAX};
    char platform[SENTRY_PLATFORM_SIZE];
    sentry_payload_platform(payload, platform);
    if (!sender_may_send("profile_chunk", category_of_chunk(slice_of_text(platform)), payload)) return;
    chunk_envelope_write(payload, &envelope);
    sender_send(&envelope);
    buffer_fini(&envelope);
}

/* Sends the transaction in the file at PATH with PROFILE, unless before_send rejects that. */
static void send_with_profile(const char *path, struct slice profile)
{
    struct buffer envelope = {.maximum = ENVELOPE_BYTES_MAX};
    if (file_read(path, &envelope, NULL) != STATUS_OK) return;
    if (profile.size > 0 && sender_may_send("profile", CATEGORY_PROFILE, profile))
        envelope_add_item(&envelope, "profile", NULL, profile);
    sender_send(&envelope);
    buffer_fini(&envelope);
}

/* Asks about the payloads in the file NAME.made. */
static void ask_about(struct spooler *spooler, const char *name)
{
    char made[PATH_MAX], transaction[PATH_MAX];
    struct buffer payloads = {.maximum = CHUNK_PAYLOADS_BYTES_MAX};
    size_t size = strlen(name) - strlen(".made");
    if (!exchange_path(made, session.folder, name)) return;
    if ((size_t)snprintf(transaction, PATH_MAX, "%s/%.*s.envelope", session.folder, (int)size, name) >= PATH_MAX)
        return;
    bool is_read = file_read(made, &payloads, NULL) == STATUS_OK;
    struct slice rest = is_read ? buffer_slice(&payloads) : slice_of(NULL, 0);
    if (exchange_is_there(transaction)) {
        send_with_profile(transaction, text_take_line(&rest));
    } else {
        while (rest.size > 0) send_chunk(text_take_line(&rest));
    }
    buffer_fini(&payloads);
    spooler_store(spooler);
    (void)unlink(transaction);
    (void)unlink(made);
    if (spooler->question_count > 0) spooler->question_count--;
    spooler->question_pause_ns = 0;
}

void spooler_ask(struct spooler *spooler)
{
    if (!spooler->has_folder || spooler->question_count == 0) return;
    struct folder_names names;
    folder_open(&names, session.folder);
    for (const char *name; (name = folder_next(&names));) {
        if (exchange_has_suffix(name, ".made")) ask_about(spooler, name);
    }
    spooler->question_pause_ns = spooler->question_pause_ns * 3 / 2 + FIRST_PAUSE_NS;
}

bool spooler_has_questions(const struct spooler *spooler)
{
    return spooler->has_folder && spooler->question_count > 0;
}

/* --- Waiting ------------------------------------------------------------------------------------------------------ */

void spooler_restart_flush(struct spooler *spooler, uint64_t number)
{
    forget_flush(spooler);
    spooler->flush_number = number;
}

static bool begin_flush(struct spooler *spooler)
{
    char uuid[UUID_TEXT_SIZE];
    bool has_path = uuid_new(uuid) && (size_t)snprintf(spooler->flush_path, PATH_MAX, "%s/%s.flush",
                                                       spooler->folder.server, uuid) < PATH_MAX;
    int file = has_path ? open(spooler->flush_path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600) : -1;
    if (file < 0) spooler->flush_path[0] = '\0';
    if (file < 0) return false;
    (void)close(file);
    spooler->flush_at_utc_ns = clock_utc_ns();
    spooler->flush_pause_ns = FIRST_PAUSE_NS;
    return wake_helper(spooler);
}

/* True if the server did not answer, and the next try comes after DEADLINE_NS. */
static bool is_too_late(const struct spooler *spooler, uint64_t deadline_ns)
{
    struct server_state state = server_state_read(spooler->folder.server);
    uint64_t now_ns = clock_monotonic_ns(), left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
    return state.failed_at_ns >= spooler->flush_at_utc_ns && state.next_try_ns > clock_utc_ns() + left_ns;
}

enum spooler_flush spooler_flush(struct spooler *spooler, uint64_t deadline_ns)
{
    uint64_t now_ns = clock_monotonic_ns();
    if (!spooler->has_folder || !spooler->has_stored) return sender_has_work() ? SPOOLER_FAILED : SPOOLER_FLUSHED;
    bool is_late = now_ns >= deadline_ns;
    /* On a full disk the helper may make room: it is waited for, and then stored again. */
    bool can_begin = !spooler_has_questions(spooler) && (spooler->is_unwritable || !sender_has_work());
    if (!spooler->flush_path[0] && !is_late && !can_begin) return SPOOLER_WAITS;
    if (!spooler->flush_path[0] && !is_late && !begin_flush(spooler)) is_late = true;
    if (!is_late && spooler->flush_path[0] && !exchange_is_there(spooler->flush_path)) {
        spooler->flush_path[0] = '\0';
        if (sender_has_work()) spooler_store(spooler);
        if (!sender_has_work()) return SPOOLER_FLUSHED;
        return spooler->is_unwritable ? SPOOLER_FAILED : SPOOLER_WAITS;
    }
    if (is_late || is_too_late(spooler, deadline_ns)) {
        forget_flush(spooler);
        return SPOOLER_FAILED;
    }
    if (now_ns - spooler->woken_at_ns > SECOND_NS) (void)wake_helper(spooler); /* it may have been killed */
    if (spooler->flush_pause_ns < LAST_PAUSE_NS) spooler->flush_pause_ns += FIRST_PAUSE_NS;
    return SPOOLER_WAITS;
}

/* Prints the next lines of the log in FILE. False if there is none. */
static bool print_lines(struct spooler *spooler, int file)
{
    char bytes[LINES_BYTES_MAX];
    uint64_t before = spooler->log_at;
    ssize_t got = pread(file, bytes, sizeof(bytes), (off_t)spooler->log_at);
    struct slice rest = slice_of(bytes, got > 0 ? (size_t)got : 0);
    while (rest.size > 0 && memchr(rest.data, '\n', rest.size)) {
        struct slice line = text_take_line(&rest);
        spooler->log_at += line.size + 1;
        sdk_debug("%.*s", (int)line.size, (const char *)line.data);
    }
    return spooler->log_at > before;
}

/* Prints the lines of the log that are new. The helper gets an empty log before this one is full. */
static void print_log(struct spooler *spooler)
{
    char path[PATH_MAX];
    if (!sdk_options()->debug || !exchange_path(path, session.folder, "log")) return;
    int file = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0) return;
    bool is_replaced =
        spooler->log_at > SESSION_LOG_BYTES_MAX / 2 && file_write(path, slice_of(NULL, 0), NULL) == STATUS_OK;
    for (unsigned i = 0; i < LOG_READS_MAX && print_lines(spooler, file); i++) continue;
    (void)close(file);
    if (is_replaced) spooler->log_at = 0;
}

void spooler_read_state(struct spooler *spooler)
{
    if (!spooler->has_folder) return;
    struct server_state state = server_state_read(spooler->folder.server);
    sender_set_limits(&state.limits);
    print_log(spooler);
}

uint64_t spooler_pause_ns(const struct spooler *spooler)
{
    uint64_t pause_ns = REPORT_SECONDS * SECOND_NS;
    if (spooler->flush_path[0]) pause_ns = spooler->flush_pause_ns;
    bool asks = spooler_has_questions(spooler) && spooler->question_pause_ns < pause_ns;
    if (asks) pause_ns = spooler->question_pause_ns;
    return pause_ns > 0 ? pause_ns : FIRST_PAUSE_NS;
}
