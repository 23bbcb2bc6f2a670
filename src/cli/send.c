/* offbeat send: sends envelopes to a server, one after the other over one connection, and prints the answers. A server
 * answers 200 also to a profile that it drops later, so each envelope is validated first.
 * SPDX-License-Identifier: MIT */
#include "base/environment.h"
#include "base/clocks.h"
#include "base/json_writer.h"
#include "base/timespec.h"
#include "cli/commands.h"
#include "cli/envelope_rules.h"
#include "cli/message.h"
#include "cli/open_profile.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "format/sentry/envelope.h"
#include "transport/transport.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

/* The result of one file. The transport's thread writes it, the main thread reads it when that is done. */
struct sender {
    struct transport *transport;
    uint64_t timeout_ns;
    bool as_json, is_forced, is_quiet;
    bool is_rejected; /* the file holds a profile that servers reject */
    bool has_reported_failure;
    enum transport_outcome outcome;
    long status;
    uint64_t withheld;
    char body[1024], rate_limits[256], retry_after[64], failure[1024];
};

static void copy(char *to, size_t size, const char *text)
{
    (void)snprintf(to, size, "%s", text);
}

static void take_answer(void *context, const struct transport_answer *answer)
{
    struct sender *sender = context;
    if (answer->is_report) return;
    sender->outcome = answer->outcome;
    sender->status = answer->status;
    sender->withheld = answer->withheld;
    copy(sender->body, sizeof(sender->body), answer->body);
    copy(sender->rate_limits, sizeof(sender->rate_limits), answer->rate_limits);
    copy(sender->retry_after, sizeof(sender->retry_after), answer->retry_after);
    copy(sender->failure, sizeof(sender->failure), answer->failure);
    if (answer->outcome != TRANSPORT_NO_ANSWER || sender->has_reported_failure) return;
    message("no answer: %s; trying again", answer->failure);
    sender->has_reported_failure = true;
}

/* Notes why a server rejects ITEM, the first of the file. CONTEXT is the sender. */
static void take_result(void *context, const struct rules_result *result, const char *item)
{
    struct sender *sender = context;
    char text[512];
    if (result->accepted || sender->is_rejected) return;
    rules_result_print(result, text, sizeof(text));
    (void)snprintf(sender->failure, sizeof(sender->failure), "%s%s%s", item, item[0] ? ": " : "", text);
    sender->is_rejected = true;
}

/* --- Printing ----------------------------------------------------------------------------------------------------- */

/* Returns whether the file is not sent, because servers reject it. */
static bool is_kept_back(const struct sender *sender)
{
    return sender->is_rejected && !sender->is_forced;
}

static const char *outcome_name(const struct sender *sender)
{
    static const char *const names[] = {
        [TRANSPORT_SENT] = "accepted",      [TRANSPORT_REJECTED] = "rejected", [TRANSPORT_LIMITED] = "limited",
        [TRANSPORT_WITHHELD] = "withheld",  [TRANSPORT_BROKEN] = "broken",     [TRANSPORT_NO_ANSWER] = "no answer",
        [TRANSPORT_GIVEN_UP] = "no answer",
    };
    return is_kept_back(sender) ? "not sent" : names[sender->outcome];
}

static void print_text(const struct sender *sender, const char *path)
{
    struct buffer line = {.maximum = REPORT_BYTES_MAX};
    const char *said = sender->status ? sender->body : sender->failure;
    buffer_append_format(&line, "%s: %s", message_name(path, false), outcome_name(sender));
    if (sender->status) buffer_append_format(&line, " (%ld)", sender->status);
    if (said[0]) buffer_append_format(&line, ": %s%s", said, is_kept_back(sender) ? "; --force sends it" : "");
    if (sender->withheld && sender->outcome == TRANSPORT_SENT)
        buffer_append_format(&line, "; withheld by a rate limit: %" PRIu64 " items", sender->withheld);
    if (sender->rate_limits[0]) buffer_append_format(&line, "; rate limits: %s", sender->rate_limits);
    if (sender->retry_after[0]) buffer_append_format(&line, "; retry after: %s", sender->retry_after);
    for (size_t i = 0; i < line.size; i++) {
        if (line.data[i] < ' ' || line.data[i] == 0x7f) line.data[i] = ' '; /* a stranger's text on a terminal */
    }
    buffer_append_byte(&line, '\n');
    (void)fwrite(line.data, 1, line.size, stdout);
    buffer_fini(&line);
}

static void print_json(const struct sender *sender, const char *path)
{
    struct buffer line = {.maximum = REPORT_BYTES_MAX};
    struct json_writer writer = json_writer_of(&line);
    const struct {
        const char *key, *text;
    } texts[] = {{"outcome", outcome_name(sender)},    {"answer", sender->body},
                 {"rate_limits", sender->rate_limits}, {"retry_after", sender->retry_after},
                 {"failure", sender->failure},         {"file", path}};
    json_begin_object(&writer);
    json_member_i64(&writer, "status", sender->status);
    json_member_u64(&writer, "withheld", sender->withheld);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        json_member_text(&writer, texts[i].key, texts[i].text);
    }
    json_end_object(&writer);
    buffer_append_byte(&line, '\n');
    (void)fwrite(line.data, 1, line.size, stdout);
    buffer_fini(&line);
}

static enum exit_status print_outcome(const struct sender *sender, const char *path)
{
    bool is_sent = sender->outcome == TRANSPORT_SENT && !sender->withheld && !is_kept_back(sender);
    if (!sender->is_quiet || !is_sent) (sender->as_json ? print_json : print_text)(sender, path);
    (void)fflush(stdout);
    if (is_kept_back(sender)) return EXIT_NO;
    if (sender->outcome == TRANSPORT_SENT) return sender->withheld ? EXIT_NO : EXIT_DONE;
    return sender->outcome == TRANSPORT_NO_ANSWER || sender->outcome == TRANSPORT_GIVEN_UP ? EXIT_FAILED : EXIT_NO;
}

/* --- Sending ------------------------------------------------------------------------------------------------------ */

/* Reads the envelope at PATH and validates it. False if there is nothing that could be sent. */
static bool read_envelope(struct sender *sender, const char *path, struct buffer *bytes)
{
    struct error error;
    struct opened_file file;
    size_t count;
    if (!read_input(path, bytes, &file) || file.is_cut) return false;
    if (!envelope_detect(buffer_slice(bytes))) {
        message("%s: is no envelope; offbeat convert makes one (-o x.envelope)", message_name(path, false));
        return false;
    }
    if (envelope_check(buffer_slice(bytes), &error) == STATUS_OK &&
        envelope_rules_validate(buffer_slice(bytes), RULES_RELAY, take_result, sender, &count, &error) == STATUS_OK)
        return true;
    message_error(path, &error, false);
    return false;
}

/* Ends the transport if there was no answer in time: the other files would get no answer, either. */
static enum exit_status send_file(struct sender *sender, const char *path)
{
    struct buffer bytes;
    sender->outcome = TRANSPORT_NO_ANSWER;
    sender->status = 0;
    sender->withheld = 0;
    sender->has_reported_failure = false;
    sender->body[0] = sender->rate_limits[0] = sender->retry_after[0] = 0;
    sender->is_rejected = false;
    bool is_read = read_envelope(sender, path, &bytes);
    if (!is_read || is_kept_back(sender)) {
        buffer_fini(&bytes);
        return is_read ? print_outcome(sender, path) : EXIT_FAILED;
    }
    if (sender->is_rejected)
        message("%s: servers drop this, also after the answer 200: %s", message_name(path, false), sender->failure);
    copy(sender->failure, sizeof(sender->failure), "not in time");
    (void)transport_send(sender->transport, &bytes);
    if (!transport_flush(sender->transport, sender->timeout_ns)) {
        (void)transport_stop(sender->transport, 0);
        sender->transport = NULL;
    }
    return print_outcome(sender, path);
}

static enum exit_status send_files(struct sender *sender, const struct operands *files)
{
    struct progress progress = progress_begin("sending");
    enum exit_status worst = EXIT_DONE;
    for (unsigned i = 0; i < files->count; i++) {
        if (!sender->transport) {
            message("%u more files were not tried", files->count - i);
            break;
        }
        progress_step(&progress, i, files->count);
        enum exit_status status = send_file(sender, files->items[i]);
        if (status > worst) worst = status;
    }
    progress_end(&progress);
    return worst;
}

int command_send(int argc, char **argv)
{
    const char *dsn = environment_get("OFFBEAT_DSN"), *proxy = NULL, *ca_file = NULL;
    if (!dsn) dsn = environment_get("SENTRY_DSN");
    struct sender sender = {.timeout_ns = 30 * SECOND_NS};
    const struct option options[] = {
        {"dsn", 0, OPTION_TEXT, &dsn, "DSN",
         .help = "where to, https://KEY@HOST/PROJECT (default: $OFFBEAT_DSN, $SENTRY_DSN)"},
        {"force", 0, OPTION_SWITCH, &sender.is_forced, .help = "send a profile that servers reject, too"},
        {"proxy", 0, OPTION_TEXT, &proxy, "URL",
         .help = "through this one, \"\" for none (default: $https_proxy, $http_proxy)"},
        {"ca-file", 0, OPTION_TEXT, &ca_file, "FILE", .help = "certificates that are trusted (default: the system's)"},
        {"timeout", 0, OPTION_SECONDS, &sender.timeout_ns, "SECONDS",
         .help = "for each file, with all tries (default: 30)", .minimum = SECOND_NS / 100,
         .maximum = 86400 * SECOND_NS},
        {"json", 0, OPTION_SWITCH, &sender.as_json, .help = "one JSON object a file, each on a line, for programs"},
        {"quiet", 'q', OPTION_SWITCH, &sender.is_quiet, .help = "print only what was not sent as it is"},
        {0},
    };
    const struct command_syntax syntax = {
        .name = "send",
        .usage = "FILE… [--dsn DSN] [options]",
        .example = "offbeat send xz.envelope --dsn https://0123456789abcdef0123456789abcdef@example.org/1",
        .about = "Sends the envelopes in FILE… to a Sentry-compatible server, and prints each answer in a line.\n"
                 "It validates each first, as offbeat validate, because servers answer 200 also to what they drop.\n"
                 "If there is no answer, it tries again; it honours rate limits. FILE may be - for standard input.\n"
                 "The exit status is 1 if one was rejected or withheld, 3 if one could not be sent.",
        .options = options,
        .operands_min = 1,
        .operands_max = INT_MAX,
    };
    struct operands files;
    enum exit_status status;
    if (!options_parse(&syntax, argc, argv, &files, &status)) return (int)status;
    if (!dsn) {
        message("send: --dsn says where to, or OFFBEAT_DSN in the environment; see offbeat send --help");
        return EXIT_WRONG_USE;
    }
    const struct transport_options transport_options = {.dsn = dsn,
                                                        .proxy = proxy,
                                                        .ca_file = ca_file,
                                                        .queue_bytes_max = ENVELOPE_BYTES_MAX,
                                                        .request_timeout_ns = sender.timeout_ns,
                                                        .retry_first_ns = SECOND_NS,
                                                        .retry_max_ns = 10 * SECOND_NS,
                                                        .answered = take_answer,
                                                        .context = &sender};
    struct error error;
    sender.transport = transport_start(&transport_options, &error);
    if (!sender.transport) {
        message("%s", error.message);
        return error.status == STATUS_MALFORMED ? EXIT_WRONG_USE : EXIT_FAILED;
    }
    status = send_files(&sender, &files);
    (void)transport_stop(sender.transport, sender.timeout_ns < SECOND_NS ? sender.timeout_ns : SECOND_NS);
    return (int)status;
}
