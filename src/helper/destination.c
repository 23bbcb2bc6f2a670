/* SPDX-License-Identifier: MIT */
#include "helper/destination.h"

#include "base/clocks.h"
#include "base/file.h"
#include "base/printable.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINE_SIZE = 1024, ENVELOPES_MAX = 1000 /* each transaction is one */ };

/* --- Counts and logs that programs read --------------------------------------------------------------------------- */

void server_count(const char *session_folder, const struct item_counts *change)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&mutex);
    struct item_counts counts = item_counts_read(session_folder);
    counts.made += change->made;
    counts.sent += change->sent;
    counts.limited += change->limited;
    counts.discarded += change->discarded;
    item_counts_write(session_folder, &counts);
    pthread_mutex_unlock(&mutex);
}

void server_discard(struct server *server, const char *session_folder, enum discard_reason reason,
                    enum category category)
{
    transport_discard(server->transport, reason, category, 1);
    server_count(session_folder, &(struct item_counts){.made = 1, .discarded = 1});
}

static void append_line(const char *session_folder, struct slice line)
{
    char path[PATH_MAX];
    struct stat facts;
    if (!exchange_path(path, session_folder, "log")) return;
    int file = open(path, O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC); /* a program that debugs has made it */
    if (file < 0) return;
    if (fstat(file, &facts) == 0 && facts.st_size < SESSION_LOG_BYTES_MAX)
        (void)file_write_descriptor(file, line, NULL);
    (void)close(file);
}

void server_log(const char *session_folder, const char *format, ...)
{
    char text[LINE_SIZE];
    struct buffer line = {.maximum = 8 * LINE_SIZE}; /* with escapes */
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    printable_append(&line, slice_of_text(text), ""); /* a server's text must not begin a line */
    buffer_append_byte(&line, '\n');
    if (!line.failed) append_line(session_folder, buffer_slice(&line));
    buffer_fini(&line);
}

/* Finds the session of OWNER. With OWNER NULL, adds MESSAGE to the logs of all sessions instead. */
static bool find_session(const char *folder, const char *owner, const char *message, char ret_session[PATH_MAX])
{
    char found[SPOOL_OWNER_SIZE];
    bool is_found = false;
    DIR *directory = opendir(folder);
    for (const struct dirent *entry; directory && !is_found && (entry = readdir(directory));) {
        if (!session_is_name(entry->d_name, found) || !exchange_path(ret_session, folder, entry->d_name)) continue;
        is_found = owner && strcmp(found, owner) == 0;
        if (message) server_log(ret_session, "%s", message);
    }
    if (directory) (void)closedir(directory);
    return is_found;
}

static void debug(void *context, const char *message)
{
    const struct server *server = context;
    char session[PATH_MAX];
    (void)find_session(server->folder, NULL, message, session);
}

/* --- What the server answers -------------------------------------------------------------------------------------- */

static uint64_t moved(uint64_t time_ns, uint64_t from_ns, uint64_t to_ns)
{
    return time_ns > from_ns ? to_ns + (time_ns - from_ns) : 0;
}

/* Returns LIMITS, of a clock that is at FROM_NS, as times of one that is at TO_NS. */
static struct rate_limits limits_moved(const struct rate_limits *limits, uint64_t from_ns, uint64_t to_ns)
{
    struct rate_limits result = {.all_until_ns = moved(limits->all_until_ns, from_ns, to_ns)};
    for (unsigned i = 0; i < CATEGORY_COUNT; i++) result.until_ns[i] = moved(limits->until_ns[i], from_ns, to_ns);
    return result;
}

static void publish_state(struct server *server, const struct transport_answer *answer)
{
    uint64_t now_ns = clock_monotonic_ns(), utc_ns = clock_utc_ns();
    struct server_state state = {.limits = limits_moved(&answer->limits, now_ns, utc_ns)};
    if (answer->outcome == TRANSPORT_NO_ANSWER) {
        state.failed_at_ns = utc_ns;
        state.next_try_ns = moved(answer->next_try_ns, now_ns, utc_ns);
    }
    server_state_write(server->folder, &state);
}

static struct item_counts counts_of(const struct transport_answer *answer)
{
    struct item_counts counts = {.discarded = answer->withheld};
    switch (answer->outcome) {
    case TRANSPORT_SENT:
        counts.sent = answer->item_count;
        break;
    case TRANSPORT_LIMITED:
        counts.limited = answer->item_count;
        break;
    case TRANSPORT_REJECTED:
    case TRANSPORT_GIVEN_UP:
    case TRANSPORT_BROKEN:
        counts.discarded += answer->item_count;
        break;
    case TRANSPORT_WITHHELD:
        break;
    case TRANSPORT_NO_ANSWER:
        counts = (struct item_counts){0};
        break;
    }
    return counts;
}

/* Logs what has become of an envelope, by ANSWER. */
static void log_answer(const char *session, const struct transport_answer *answer)
{
    static const char *const outcomes[] = {
        [TRANSPORT_SENT] = "is sent",
        [TRANSPORT_REJECTED] = "is dropped: the server rejects it",
        [TRANSPORT_LIMITED] = "is dropped: the server limits the rate",
        [TRANSPORT_WITHHELD] = "is dropped: a rate limit is in force",
        [TRANSPORT_BROKEN] = "is dropped: it is damaged",
        [TRANSPORT_GIVEN_UP] = "is dropped after the last try",
    };
    char text[LINE_SIZE];
    struct buffer line = {.data = (uint8_t *)text, .capacity = sizeof(text), .maximum = sizeof(text)};
    uint64_t count = answer->item_count + answer->withheld;
    buffer_append_format(&line, "%s %s", count > 0 ? "an envelope" : "a client report", outcomes[answer->outcome]);
    if (count > 0) buffer_append_format(&line, "; items: %llu", (unsigned long long)count);
    if (answer->withheld && answer->status)
        buffer_append_format(&line, ", without %llu under a rate limit", (unsigned long long)answer->withheld);
    if (answer->status) buffer_append_format(&line, "; status: %ld", answer->status);
    if (answer->outcome != TRANSPORT_SENT && answer->body[0])
        buffer_append_format(&line, "; answer: %.500s", answer->body);
    if (!answer->status && answer->outcome != TRANSPORT_WITHHELD)
        buffer_append_format(&line, "; reason: %.200s", answer->failure);
    if (answer->rate_limits[0]) buffer_append_format(&line, "; rate limits: %.100s", answer->rate_limits);
    if (answer->retry_after[0]) buffer_append_format(&line, "; retry after: %s", answer->retry_after);
    server_log(session, "%.*s", (int)line.size, (const char *)line.data);
}

static void answered(void *context, const struct transport_answer *answer)
{
    struct server *server = context;
    char owner[SPOOL_OWNER_SIZE], session[PATH_MAX];
    struct item_counts counts = counts_of(answer);
    bool has_news = answer->outcome == TRANSPORT_NO_ANSWER || answer->status == 429 || answer->rate_limits[0] ||
                    answer->retry_after[0] || server_state_read(server->folder).failed_at_ns != 0;
    if (has_news) publish_state(server, answer);
    spool_owner_of(answer->spool_name, owner);
    if (!owner[0] || !find_session(server->folder, owner, NULL, session)) return;
    server_count(session, &counts);
    if (answer->outcome != TRANSPORT_NO_ANSWER) log_answer(session, answer);
}

/* --- Its life ----------------------------------------------------------------------------------------------------- */

/* Reads the file "server" again. True if it has changed; OPTIONS then has what it says. */
static bool read_facts(struct server *server, struct transport_options *options, struct error *error)
{
    char path[PATH_MAX];
    struct buffer bytes = {.maximum = SERVER_FACTS_BYTES_MAX}, texts = {0};
    struct server_facts facts;
    bool is_new = exchange_path(path, server->folder, "server") && file_read(path, &bytes, error) == STATUS_OK &&
                  !slice_equal(buffer_slice(&bytes), buffer_slice(&server->facts));
    is_new = is_new && server_facts_read(buffer_slice(&bytes), &texts, &facts, error) == STATUS_OK;
    if (!is_new) {
        buffer_fini(&bytes);
        buffer_fini(&texts);
        return false;
    }
    buffer_fini(&server->facts);
    buffer_fini(&server->texts);
    server->facts = bytes;
    server->texts = texts;
    options->dsn = facts.dsn; /* the same always: the folder's name depends on it */
    options->proxy = facts.proxy;
    options->no_proxy = facts.no_proxy;
    options->ca_file = facts.ca_file;
    options->spool_bytes_max = facts.spool_bytes_max;
    return true;
}

static bool changed(void *context, struct transport_options *options)
{
    return read_facts(context, options, NULL);
}

static bool start(struct server *server, const char *root, const char *name, struct error *error)
{
    struct transport_options options = {.spool_folder = root,
                                        .spool_count_max = ENVELOPES_MAX,
                                        .queue_count_max = ENVELOPES_MAX,
                                        .debug = debug,
                                        .answered = answered,
                                        .changed = changed,
                                        .context = server};
    if (!exchange_path(server->folder, root, name) || !spool_init(&server->spool, root, name)) {
        (void)error_set(error, STATUS_TOO_LARGE, 0, "the path is too long");
        return false;
    }
    if (!read_facts(server, &options, error)) return false;
    struct server_state state = server_state_read(server->folder);
    options.limits = limits_moved(&state.limits, clock_utc_ns(), clock_monotonic_ns());
    server->spool.bytes_max = options.spool_bytes_max;
    server->spool.count_max = ENVELOPES_MAX;
    server->transport = transport_start(&options, error);
    return server->transport != NULL;
}

struct server *server_start(const char *root, const char *name, struct error *error)
{
    struct server *server = calloc(1, sizeof(*server));
    if (server && start(server, root, name, error)) return server;
    if (!server) (void)error_set(error, STATUS_NO_MEMORY, 0, "not enough memory");
    server_stop(server, 0);
    return NULL;
}

void server_stop(struct server *server, uint64_t timeout_ns)
{
    if (!server) return;
    if (server->transport) (void)transport_stop(server->transport, timeout_ns);
    spool_fini(&server->spool);
    buffer_fini(&server->facts);
    buffer_fini(&server->texts);
    free(server);
}
