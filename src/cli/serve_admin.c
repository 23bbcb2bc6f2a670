/* SPDX-License-Identifier: MIT */
#include "cli/serve_admin.h"

#include "base/environment.h"
#include "base/json_reader.h"
#include "base/printable.h"
#include "cli/error_detail.h"
#include "cli/message.h"
#include "cli/options.h"
#include "cli/public_url.h"
#include "cli/store_folder.h"
#include "serve/admin.h"
#include "transport/curl_library.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { PARAMETERS_MAX = 16, COLUMNS_MAX = 16, URL_BYTES_MAX = 1 << 16, WAIT_SECONDS = 3600 };

/* --- The answer as text --------------------------------------------------------------------------------------------
 */

struct column {
    char name[32];
    size_t width;
};

/* Cells of objects with the same members, or some of them. */
struct table {
    struct column columns[COLUMNS_MAX];
    size_t column_count;
};

/* Appends the next value of READER, without quotes. */
static void take_cell(struct json_reader *reader, struct buffer *cell)
{
    if (json_peek(reader) == JSON_STRING) {
        printable_append(cell, json_string(reader), "");
        return;
    }
    const uint8_t *start = reader->position;
    json_skip(reader);
    buffer_append(cell, start, (size_t)(reader->position - start));
}

static size_t find_column(struct table *table, struct slice name)
{
    size_t i = 0;
    while (i < table->column_count && !slice_equals_text(name, table->columns[i].name)) i++;
    if (i < table->column_count || i == COLUMNS_MAX) return i;
    struct column *column = &table->columns[table->column_count++];
    (void)snprintf(column->name, sizeof(column->name), "%.*s", SLICE_ARGUMENTS(name));
    column->width = strlen(column->name);
    return i;
}

/* Takes an object. Without OUT it widens the columns, else it appends a line. */
static void take_row(struct json_reader *reader, struct table *table, struct buffer *out)
{
    struct buffer cells[COLUMNS_MAX] = {{0}};
    struct slice key;
    json_object_begin(reader);
    while (json_object_next(reader, &key)) {
        size_t place = find_column(table, key);
        if (place == COLUMNS_MAX) {
            json_skip(reader);
            continue;
        }
        buffer_init(&cells[place], URL_BYTES_MAX);
        take_cell(reader, &cells[place]);
        if (cells[place].size > table->columns[place].width) table->columns[place].width = cells[place].size;
    }
    size_t blanks = 0;
    for (size_t i = 0; i < table->column_count; i++) {
        if (out && cells[i].size)
            buffer_append_format(out, "%*s%.*s", (int)blanks, "", SLICE_ARGUMENTS(buffer_slice(&cells[i])));
        blanks = (cells[i].size ? 0 : blanks) + table->columns[i].width - cells[i].size + 2;
        buffer_fini(&cells[i]);
    }
    if (out) buffer_append_text(out, "\n");
}

/* Takes the array in ANSWER, {"projects": [{…}, …]}. */
static void take_rows(struct slice answer, struct table *table, struct buffer *out)
{
    struct json_reader reader;
    struct slice key;
    json_reader_init(&reader, answer);
    json_object_begin(&reader);
    while (json_object_next(&reader, &key)) {
        json_array_begin(&reader);
        while (json_array_next(&reader)) take_row(&reader, table, out);
    }
    json_reader_fini(&reader);
}

static void append_list(struct slice answer, struct buffer *out)
{
    struct table table = {.column_count = 0};
    take_rows(answer, &table, NULL);
    for (size_t i = 0; i < table.column_count; i++)
        buffer_append_format(out, "%s%-*s", i ? "  " : "",
                             i + 1 == table.column_count ? 0 : (int)table.columns[i].width, table.columns[i].name);
    if (table.column_count) buffer_append_text(out, "\n");
    take_rows(answer, &table, out);
}

/* Appends the members of ANSWER, one on each line. */
static void append_members(struct slice answer, struct buffer *out)
{
    struct json_reader reader;
    struct slice key;
    json_reader_init(&reader, answer);
    json_object_begin(&reader);
    while (json_object_next(&reader, &key)) {
        bool is_dsn = slice_equals_text(key, "dsn"), is_plain = slice_equals_text(key, "done");
        if (is_dsn)
            buffer_append_text(out, "DSN: ");
        else if (!is_plain)
            buffer_append_format(out, "%.*s: ", SLICE_ARGUMENTS(key));
        if (is_plain) {
            json_skip(&reader);
        } else {
            take_cell(&reader, out);
            buffer_append_text(out, "\n");
        }
    }
    json_reader_fini(&reader);
}

static enum exit_status print_answer(const struct admin_command *command, struct slice answer, bool as_json)
{
    struct buffer out;
    buffer_init(&out, 4 * ADMIN_ANSWER_BYTES_MAX);
    if (as_json)
        buffer_append(&out, answer.data, answer.size);
    else if (command->changes)
        append_members(answer, &out);
    else
        append_list(answer, &out);
    bool is_written = !out.failed && fwrite(out.data, 1, out.size, stdout) == out.size && fflush(stdout) == 0;
    buffer_fini(&out);
    if (!is_written) message("serve admin: cannot write the answer: %s", strerror(errno));
    return is_written ? EXIT_DONE : EXIT_FAILED;
}

/* --- A server that runs ---------------------------------------------------------------------------------------------
 */

static size_t take_answer(char *bytes, size_t size, size_t count, void *context)
{
    struct buffer *answer = context;
    buffer_append(answer, bytes, size * count);
    return answer->failed ? 0 : size * count;
}

static enum status read_problem(struct slice answer, long status, struct error *error)
{
    struct json_reader reader;
    struct slice detail = error_detail(&reader, answer);
    enum status result = error_set(error,
                                   status == 400   ? STATUS_MALFORMED
                                   : status == 404 ? STATUS_NOT_FOUND
                                                   : STATUS_IO,
                                   0, "%.*s", SLICE_ARGUMENTS(detail));
    json_reader_fini(&reader);
    return result;
}

/* Runs COMMAND in the server that listens at ADDRESS. STATUS_NOT_THIS_FORMAT: none does. */
static enum status ask_server(const struct admin_command *command, const struct admin_call *call,
                              const struct sockaddr_un *address, struct buffer *answer, struct error *error)
{
    const struct curl_library *curl = curl_library_get(error);
    struct buffer url;
    long status = 0;
    if (!curl) return STATUS_UNSUPPORTED;
    CURL *easy = curl->easy_init();
    buffer_init(&url, URL_BYTES_MAX);
    buffer_append_format(&url, "http://localhost/api/admin/%s", command->name);
    for (size_t i = 0; i < call->parameter_count; i++) {
        buffer_append_format(&url, "%c%s=", i ? '&' : '?', call->parameters[i].name);
        buffer_append_url_text(&url, slice_of_text(call->parameters[i].value));
    }
    buffer_append_byte(&url, '\0');
    bool is_set = easy && !url.failed &&
                  curl->easy_setopt(easy, CURLOPT_UNIX_SOCKET_PATH, address->sun_path) == CURLE_OK &&
                  curl->easy_setopt(easy, CURLOPT_URL, (const char *)url.data) == CURLE_OK &&
                  curl->easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
                  curl->easy_setopt(easy, CURLOPT_PROXY, "") == CURLE_OK &&
                  curl->easy_setopt(easy, CURLOPT_TIMEOUT, (long)WAIT_SECONDS) == CURLE_OK &&
                  curl->easy_setopt(easy, CURLOPT_WRITEFUNCTION, take_answer) == CURLE_OK &&
                  curl->easy_setopt(easy, CURLOPT_WRITEDATA, answer) == CURLE_OK;
    if (is_set && command->changes)
        is_set = curl->easy_setopt(easy, CURLOPT_POST, 1L) == CURLE_OK &&
                 curl->easy_setopt(easy, CURLOPT_POSTFIELDSIZE, 0L) == CURLE_OK;
    CURLcode code = is_set ? curl->easy_perform(easy) : CURLE_OUT_OF_MEMORY;
    if (code == CURLE_OK) (void)curl->easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    enum status result = STATUS_OK;
    if (code != CURLE_OK)
        result = error_set(error, code == CURLE_COULDNT_CONNECT ? STATUS_NOT_THIS_FORMAT : STATUS_IO, 0, "%s",
                           curl->easy_strerror(code));
    else if (status != 200)
        result = read_problem(buffer_slice(answer), status, error);
    if (easy) curl->easy_cleanup(easy);
    buffer_fini(&url);
    return result;
}

/* --- A server that is stopped ---------------------------------------------------------------------------------------
 */

static void say(void *context, const char *text)
{
    (void)context;
    message("serve admin: %s", text);
}

static enum status run_in_folder(const char *folder, const struct admin_command *command, struct admin_call *call,
                                 struct buffer *answer, struct error *error)
{
    enum status status = store_open(folder, say, NULL, &call->store, error);
    if (status != STATUS_OK) return status;
    status = admin_run(command, call, answer, error);
    store_close(call->store);
    return status;
}

static enum exit_status run(const char *folder, const struct admin_command *command, struct admin_call *call,
                            bool as_json)
{
    struct buffer answer;
    struct error error = {0};
    struct sockaddr_un address;
    int folder_file;
    enum status status = STATUS_NOT_THIS_FORMAT;
    buffer_init(&answer, ADMIN_ANSWER_BYTES_MAX);
    if (admin_socket_address(folder, &address, &folder_file)) {
        if (access(address.sun_path, F_OK) == 0) status = ask_server(command, call, &address, &answer, &error);
        (void)close(folder_file);
    }
    if (status == STATUS_NOT_THIS_FORMAT) status = run_in_folder(folder, command, call, &answer, &error);
    enum exit_status result = EXIT_DONE;
    if (status == STATUS_OK)
        result = print_answer(command, buffer_slice(&answer), as_json);
    else
        message("serve admin: %s", error.message);
    buffer_fini(&answer);
    if (status == STATUS_OK) return result;
    return status == STATUS_MALFORMED || status == STATUS_NOT_FOUND ? EXIT_WRONG_USE : EXIT_FAILED;
}

/* --- The command line -----------------------------------------------------------------------------------------------
 */

/* The parameters that options give. */
enum { ROLE, NAME, KEEP, DISK, SERVICE, ENVIRONMENT, RELEASE, HOST, FROM, TO, PROJECT, GIVEN };
static const char *const names[GIVEN] = {"role",    "name", "keep", "disk", "service", "environment",
                                         "release", "host", "from", "to",   "project"};

static void add_parameter(struct parameter *parameters, size_t *count, const char *name, const char *value)
{
    parameters[(*count)++] = (struct parameter){.name = (char *)(uintptr_t)name, .value = (char *)(uintptr_t)value};
}

/* False after a message. */
static bool collect_parameters(const struct admin_command *command, const struct operands *operands,
                               const char *const given[GIVEN], struct parameter parameters[PARAMETERS_MAX],
                               size_t *ret_count)
{
    unsigned needed = 0;
    *ret_count = 0;
    while (needed < ADMIN_OPERANDS_MAX && command->operands[needed]) needed++;
    if (operands->count != 1 + needed) {
        message("usage: offbeat serve admin %s%s%s%s%s; offbeat serve admin --help lists the commands", command->name,
                needed > 0 ? " " : "", needed > 0 ? command->operands[0] : "", needed > 1 ? " " : "",
                needed > 1 ? command->operands[1] : "");
        return false;
    }
    for (unsigned i = 0; i < needed; i++)
        add_parameter(parameters, ret_count, command->operands[i], operands->items[1 + i]);
    for (size_t i = 0; i < GIVEN; i++) {
        if (given[i]) add_parameter(parameters, ret_count, names[i], given[i]);
    }
    return true;
}

/* Appends a line for each command to the text of the help. */
static void describe_commands(struct buffer *about)
{
    buffer_append_text(about,
                       "Manages projects, keys and data while the server runs, over a socket in its data folder,\n"
                       "or while it is stopped. A key that writes is that of a DSN; the others are tokens.\n\n"
                       "Commands:\n");
    for (const struct admin_command *command = admin_commands; command->name; command++) {
        char usage[64];
        (void)snprintf(usage, sizeof(usage), "%s%s%s%s%s", command->name, command->operands[0] ? " " : "",
                       command->operands[0] ? command->operands[0] : "", command->operands[1] ? " " : "",
                       command->operands[1] ? command->operands[1] : "");
        buffer_append_format(about, "  %-30s%s%s", usage, command->help, command[1].name ? "\n" : "");
    }
    buffer_append_byte(about, '\0');
}

int serve_admin(int argc, char **argv)
{
    const char *folder = environment_get("OFFBEAT_SERVE_DATA"),
               *public_url = environment_get("OFFBEAT_SERVE_PUBLIC_URL");
    const char *given[GIVEN] = {NULL};
    bool as_json = false;
    const struct option options[] = {
        {"data", 0, OPTION_TEXT, &folder, .argument = "DIR",
         .help = "the data of the server (default: $OFFBEAT_SERVE_DATA, else $XDG_STATE_HOME/offbeat)"},
        {"json", 0, OPTION_SWITCH, &as_json, .help = "print JSON"},
        {"project", 0, OPTION_TEXT, &given[PROJECT], .argument = "PROJECT",
         .help = "keys, usage: of that project alone"},
        {"role", 0, OPTION_TEXT, &given[ROLE], .argument = "ROLE",
         .help = "add-key: read (default), metrics (/metrics alone), upload (debug files), admin, or write (a DSN)"},
        {"name", 0, OPTION_TEXT, &given[NAME], .argument = "NAME", .help = "add-key: who uses it"},
        {"keep", 0, OPTION_TEXT, &given[KEEP], .argument = "DAYS", .help = "limit-project: 0 for ever (default: 14)"},
        {"disk", 0, OPTION_TEXT, &given[DISK], .argument = "MEGABYTES",
         .help = "limit-project: of payloads, 0 for no limit (default: 0)"},
        {"service", 0, OPTION_TEXT, &given[SERVICE], .argument = "NAME", .help = "delete: of that service"},
        {"environment", 0, OPTION_TEXT, &given[ENVIRONMENT], .argument = "NAME", .help = "delete: of that environment"},
        {"release", 0, OPTION_TEXT, &given[RELEASE], .argument = "NAME", .help = "delete: of that release"},
        {"host", 0, OPTION_TEXT, &given[HOST], .argument = "NAME", .help = "delete: of that host"},
        {"from", 0, OPTION_TEXT, &given[FROM], .argument = "TIME",
         .help = "delete: what ended later; seconds since 1970, or 2026-11-23T04:00:00Z"},
        {"to", 0, OPTION_TEXT, &given[TO], .argument = "TIME", .help = "delete: what began earlier"},
        {"public-url", 0, OPTION_TEXT, &public_url, .argument = "URL",
         .help = "for DSNs, if no server runs (default: http://127.0.0.1:7117)"},
        {0},
    };
    struct buffer about;
    buffer_init(&about, URL_BYTES_MAX);
    describe_commands(&about);
    const struct command_syntax syntax = {
        .name = "serve admin",
        .usage = "COMMAND [WORDS] [options]",
        .example = "offbeat serve admin add-key all --role read --name grafana",
        .about = about.failed ? "" : (const char *)about.data,
        .options = options,
        .operands_min = 1,
        .operands_max = 1 + ADMIN_OPERANDS_MAX,
    };
    struct operands operands;
    struct parameter parameters[PARAMETERS_MAX];
    struct admin_call call = {.parameters = parameters};
    enum exit_status status;
    char path[PATH_MAX], public[PUBLIC_URL_SIZE];
    bool is_parsed = options_parse(&syntax, argc, argv, &operands, &status);
    buffer_fini(&about);
    if (!is_parsed) return (int)status;
    if (!public_url_take("serve admin", &public_url, public)) return EXIT_WRONG_USE;
    call.base_url = public_url ? public_url : "http://127.0.0.1:7117";
    const struct admin_command *command = admin_command_find(operands.items[0]);
    if (!command) {
        message("serve admin: there is no command %s; see offbeat serve admin --help", operands.items[0]);
        return EXIT_WRONG_USE;
    }
    if (!collect_parameters(command, &operands, given, parameters, &call.parameter_count)) return EXIT_WRONG_USE;
    folder = store_folder_choose("serve admin", folder, path);
    return (int)(folder ? run(folder, command, &call, as_json) : EXIT_WRONG_USE);
}
