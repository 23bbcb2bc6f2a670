/* offbeat validate: whether a server accepts what is in a file, and if not, why.  SPDX-License-Identifier: MIT */
#include "base/json_writer.h"
#include "cli/commands.h"
#include "cli/envelope_rules.h"
#include "cli/message.h"
#include "cli/open_profile.h"
#include "cli/output.h"
#include "format/sentry/envelope.h"
#include "format/common/json_kind.h"
#include "format/sentry/sentry_v1.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>

struct validation {
    const char *path;
    enum rules rules;
    bool as_json, is_quiet;
    struct buffer *report;
    enum exit_status status;
};

/* --- Printing ------------------------------------------------------------------------------------------------------
 */

static void print_text(const struct validation *validation, const struct rules_result *result, const char *item)
{
    char text[512];
    struct buffer *report = validation->report;
    rules_result_print(result, text, sizeof(text));
    buffer_append_format(report, "%s: %s%s%s%s", message_name(validation->path, false), item, item[0] ? ": " : "",
                         result->accepted ? "" : "rejected: ", text);
    for (uint32_t i = 0; i < result->repairs.count; i++) {
        const struct repair *repair = &result->repairs.items[i];
        buffer_append_format(report, "; repaired: %" PRIu64 " %s", repair->count, repair->what);
    }
    buffer_append_byte(report, '\n');
}

static void print_json(const struct validation *validation, const struct rules_result *result, const char *item)
{
    struct json_writer writer = json_writer_of(validation->report);
    const struct {
        const char *key, *text;
    } texts[] = {{"reason", reject_reason_name(result->reason)},
                 {"place", result->place},
                 {"found", result->found},
                 {"expected", result->expected}};
    json_begin_object(&writer);
    json_member_bool(&writer, "accepted", result->accepted);
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        json_member_text(&writer, texts[i].key, texts[i].text);
    }
    json_begin_array_member(&writer, "repaired");
    for (uint32_t i = 0; i < result->repairs.count; i++) {
        char text[160];
        const struct repair *repair = &result->repairs.items[i];
        (void)snprintf(text, sizeof(text), "%" PRIu64 " %s", repair->count, repair->what);
        json_write_text(&writer, text);
    }
    json_end_array(&writer);
    json_member_text(&writer, "file", validation->path);
    json_member_text(&writer, "item", item);
    json_end_object(&writer);
    buffer_append_byte(validation->report, '\n');
}

/* Reports the result of ITEM. CONTEXT is the validation. */
static void report_result(void *context, const struct rules_result *result, const char *item)
{
    struct validation *validation = context;
    if (!result->accepted && validation->status == EXIT_DONE) validation->status = EXIT_NO;
    if (validation->is_quiet && result->accepted) return;
    if (validation->as_json)
        print_json(validation, result, item);
    else
        print_text(validation, result, item);
}

/* --- Validating ------------------------------------------------------------------------------------------------------
 */

/* Reports a payload outside of an envelope. */
static enum status validate_payload(struct validation *validation, struct slice payload, struct error *error)
{
    struct rules_result result;
    enum status status = sentry_v1_detect(payload)
                             ? rules_validate_profile(payload, NULL, validation->rules, &result, error)
                             : rules_validate_chunk(payload, NULL, validation->rules, &result, error);
    if (status == STATUS_OK) report_result(validation, &result, "");
    return status;
}

/* Returns whether BYTES are an object that may be Sentry's, or is nobody's. */
static bool is_payload(struct slice bytes)
{
    size_t i = 0;
    while (i < bytes.size && memchr(" \t\r\n", bytes.data[i], 4)) i++;
    if (i == bytes.size || bytes.data[i] != '{') return false;
    enum json_kind_of_profile kind = json_kind_of_profile(bytes);
    return kind == JSON_PROFILE_SENTRY || kind == JSON_PROFILE_UNKNOWN;
}

static void validate_file(struct validation *validation)
{
    struct buffer bytes;
    struct opened_file file;
    struct error error;
    size_t validated = 1;
    enum status status = STATUS_OK;
    if (!read_input(validation->path, &bytes, &file) || file.is_cut) { /* a server rejects what is cut short */
        validation->status = EXIT_FAILED;
        buffer_fini(&bytes);
        return;
    }
    struct slice slice = buffer_slice(&bytes);
    if (envelope_detect(slice))
        status = envelope_rules_validate(slice, validation->rules, report_result, validation, &validated, &error);
    else if (is_payload(slice))
        status = validate_payload(validation, slice, &error);
    else
        validated = 0;
    if (status != STATUS_OK) message_error(validation->path, &error, false);
    if (validated == 0)
        message("%s: holds no profile of Sentry's, and only those have rules", message_name(validation->path, false));
    if (status != STATUS_OK || validated == 0) validation->status = EXIT_FAILED;
    buffer_fini(&bytes);
}

int command_validate(int argc, char **argv)
{
    bool as_json = false, is_quiet = false;
    unsigned rules = RULES_RELAY;
    const struct option options[] = {
        {"rules", 0, OPTION_CHOICE, &rules, "spec|relay",
         .help = "what the documents say, or what the real service does (the default)"},
        {"json", 0, OPTION_SWITCH, &as_json, .help = "one JSON object a profile, each on a line, for programs"},
        {"quiet", 'q', OPTION_SWITCH, &is_quiet, .help = "print only what is rejected"},
        OPTION_TOKEN_FILE,
        OUTPUT_OPTION_PAGER,
        {0},
    };
    const struct command_syntax syntax = {
        .name = "validate",
        .usage = "FILE… [--rules spec|relay] [--json] [-q]",
        .example = "offbeat validate xz.envelope",
        .about =
            "Prints for each profile in FILE…, Sentry's chunks (V2), profiles (V1) and envelopes with either, whether\n"
            "a server accepts it and what it would repair, or why it rejects it: the reason, the place, what it\n"
            "expects there. Sentry's own server reports no such error. FILE may be - for standard input.\n"

            "The exit status is 1 if one is rejected.",
        .options = options,
        .operands_min = 1,
        .operands_max = INT_MAX,
    };
    struct operands files;
    enum exit_status status;
    if (!options_parse(&syntax, argc, argv, &files, &status)) return (int)status;

    struct buffer report;
    buffer_init(&report, REPORT_BYTES_MAX);
    struct validation validation = {
        .rules = (enum rules)rules, .as_json = as_json, .is_quiet = is_quiet, .report = &report, .status = EXIT_DONE};
    for (unsigned i = 0; i < files.count; i++) {
        validation.path = files.items[i];
        validate_file(&validation);
    }
    status = output_report(&report);
    buffer_fini(&report);
    return (int)(status > validation.status ? status : validation.status);
}
