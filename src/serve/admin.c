/* SPDX-License-Identifier: MIT */
#include "serve/admin.h"

#include "base/clocks.h"
#include "base/json_writer.h"
#include "base/rfc3339.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

enum { DAYS_MAX = 36500, MEGABYTES_MAX = 1 << 30 };

static const char *const roles[STORE_ROLES] = {[STORE_ROLE_READ] = "read",
                                               [STORE_ROLE_METRICS] = "metrics",
                                               [STORE_ROLE_UPLOAD] = "upload",
                                               [STORE_ROLE_ADMIN] = "admin",
                                               [STORE_ROLE_WRITE] = "write"};

/* --- Parameters --------------------------------------------------------------------------------------------------- */

/* NULL if the call has no such parameter. */
static const char *parameter_of(const struct admin_call *call, const char *name)
{
    for (size_t i = 0; i < call->parameter_count; i++) {
        if (strcmp(call->parameters[i].name, name) == 0) return call->parameters[i].value;
    }
    return NULL;
}

/* Reads a number of at most MAXIMUM. Without the parameter RET_NUMBER stays as it is. */
static enum status read_number(const struct admin_call *call, const char *name, uint64_t maximum, uint64_t *ret_number,
                               struct error *error)
{
    const char *text = parameter_of(call, name);
    size_t digits = text ? strspn(text, "0123456789") : 0;
    uint64_t number = digits > 0 && digits < 19 ? strtoull(text, NULL, 10) : 0;
    if (!text) return STATUS_OK;
    if (digits == 0 || digits >= 19 || text[digits] || number > maximum)
        return error_set(error, STATUS_MALFORMED, 0, "%s must be a number up to %" PRIu64 ", not \"%.50s\"", name,
                         maximum, text);
    *ret_number = number;
    return STATUS_OK;
}

/* Reads the number of a project or key. */
static enum status read_id(const struct admin_call *call, const char *name, uint64_t *ret_id, struct error *error)
{
    *ret_id = 0;
    enum status status = read_number(call, name, INT64_MAX, ret_id, error);
    if (status == STATUS_OK && *ret_id == 0)
        return error_set(error, STATUS_MALFORMED, 0, "the number of a %s is needed; \"%ss\" lists them", name, name);
    return status;
}

static enum status read_time(const struct admin_call *call, const char *name, uint64_t *ret_ns, struct error *error)
{
    const char *text = parameter_of(call, name);
    if (!text || time_parse(text, ret_ns)) return STATUS_OK;
    return error_set(error, STATUS_MALFORMED, 0,
                     "%s must be a time, in seconds since 1970 or as 2026-11-23T04:00:00Z, not \"%.50s\"", name, text);
}

static enum status finish(struct json_writer *json, enum status status, struct error *error)
{
    buffer_append_text(json->out, "\n");
    if (status == STATUS_OK && json->out->failed)
        return error_set(error, STATUS_TOO_LARGE, 0, "the answer is too large");
    return status;
}

/* --- Projects ----------------------------------------------------------------------------------------------------- */

/* Writes the DSN of PROJECT: the URL of the server with its key in front of the host. */
static void write_dsn(const struct admin_call *call, struct json_writer *json, uint64_t project, const char *key)
{
    char text[1024];
    const char *rest = strstr(call->base_url, "://");
    if (!rest || !key[0]) return;
    rest += strlen("://");
    (void)snprintf(text, sizeof(text), "%.*s%s@%s/%" PRIu64, (int)(rest - call->base_url), call->base_url, key, rest,
                   project);
    json_member_text(json, "dsn", text);
}

struct listing {
    const struct admin_call *call;
    struct json_writer *json;
    uint64_t project; /* 0: all */
};

static bool write_project(void *context, const struct store_project *project)
{
    struct listing *listing = context;
    struct json_writer *json = listing->json;
    json_begin_object(json);
    json_member_u64(json, "project", project->id);
    json_member_text(json, "name", project->name);
    if (project->keep_ns) {
        uint64_t days = project->keep_ns == STORE_FOREVER ? 0 : project->keep_ns / (86400 * SECOND_NS);
        json_member_u64(json, "keep_days", days);
    }
    if (project->bytes_max) json_member_u64(json, "disk_megabytes", project->bytes_max >> 20);
    write_dsn(listing->call, json, project->id, project->key);
    json_end_object(json);
    return true;
}

static enum status list_projects(const struct admin_call *call, struct buffer *answer, struct error *error)
{
    struct json_writer json = json_writer_of(answer);
    struct listing listing = {.call = call, .json = &json};
    json_begin_object(&json);
    json_begin_array_member(&json, "projects");
    enum status status = store_each_project(call->store, write_project, &listing, error);
    json_end_array(&json);
    json_end_object(&json);
    return finish(&json, status, error);
}

static enum status add_project(const struct admin_call *call, struct buffer *answer, struct error *error)
{
    struct json_writer json = json_writer_of(answer);
    struct listing listing = {.call = call, .json = &json};
    struct store_project project;
    enum status status = store_add_project(call->store, parameter_of(call, "name"), &project, error);
    if (status == STATUS_OK) (void)write_project(&listing, &project);
    return finish(&json, status, error);
}

/* Writes {"done": true}: nothing is to be said. */
static enum status write_done(struct buffer *answer, enum status status)
{
    if (status == STATUS_OK) buffer_append_text(answer, "{\"done\":true}\n");
    return status;
}

static enum status rename_project(const struct admin_call *call, struct buffer *answer, struct error *error)
{
    uint64_t project;
    enum status status = read_id(call, "project", &project, error);
    if (status == STATUS_OK) status = store_rename_project(call->store, project, parameter_of(call, "name"), error);
    return write_done(answer, status);
}

static enum status limit_project(const struct admin_call *call, struct buffer *answer, struct error *error)
{
    uint64_t project, days = 14, megabytes = 0;
    enum status status = read_id(call, "project", &project, error);
    if (status == STATUS_OK) status = read_number(call, "keep", DAYS_MAX, &days, error);
    if (status == STATUS_OK) status = read_number(call, "disk", MEGABYTES_MAX, &megabytes, error);
    uint64_t keep_ns = days ? days * 86400 * SECOND_NS : STORE_FOREVER;
    if (status == STATUS_OK) status = store_limit_project(call->store, project, keep_ns, megabytes << 20, error);
    return write_done(answer, status);
}

static enum status write_deleted(struct buffer *answer, enum status status, uint64_t chunks)
{
    struct json_writer json = json_writer_of(answer);
    if (status != STATUS_OK) return status;
    json_begin_object(&json);
    json_member_u64(&json, "deleted_chunks", chunks);
    json_end_object(&json);
    buffer_append_text(answer, "\n");
    return status;
}

static enum status delete_project(const struct admin_call *call, struct buffer *answer, struct error *error)
{
    uint64_t project, chunks = 0;
    enum status status = read_id(call, "project", &project, error);
    if (status == STATUS_OK) status = store_delete_project(call->store, project, &chunks, error);
    return write_deleted(answer, status, chunks);
}

static enum status delete_data(const struct admin_call *call, struct buffer *answer, struct error *error)
{
    struct store_query query = {.service = slice_of_text(parameter_of(call, "service")),
                                .environment = slice_of_text(parameter_of(call, "environment")),
                                .release = slice_of_text(parameter_of(call, "release")),
                                .host = slice_of_text(parameter_of(call, "host"))};
    uint64_t chunks = 0;
    enum status status = read_id(call, "project", &query.project, error);
    if (status == STATUS_OK) status = read_time(call, "from", &query.from_ns, error);
    if (status == STATUS_OK) status = read_time(call, "to", &query.to_ns, error);
    if (status != STATUS_OK) return status;
    bool is_empty = query.service.size + query.environment.size + query.release.size + query.host.size == 0 &&
                    query.from_ns == 0 && query.to_ns == 0;
    if (is_empty)
        return error_set(error, STATUS_MALFORMED, 0,
                         "a service, environment, release, host or range of time is needed; \"delete-project\" "
                         "deletes all data of a project");
    if (query.to_ns && query.to_ns <= query.from_ns)
        return error_set(error, STATUS_MALFORMED, 0, "to is not after from");
    status = store_delete(call->store, &query, &chunks, error);
    return write_deleted(answer, status, chunks);
}

/* --- Keys --------------------------------------------------------------------------------------------------------- */

static bool write_key(void *context, const struct store_key *key)
{
    struct listing *listing = context;
    struct json_writer *json = listing->json;
    if (listing->project && key->project != listing->project) return true;
    json_begin_object(json);
    json_member_u64(json, "key", key->id);
    json_write_key(json, "project");
    if (key->project)
        json_write_u64(json, key->project);
    else
        json_write_text(json, "all");
    json_member_text(json, "role", key->role < STORE_ROLES ? roles[key->role] : "unknown");
    json_member_time(json, "created", key->created_ns);
    json_member_text(json, "name", key->name);
    if (key->role == STORE_ROLE_WRITE) write_dsn(listing->call, json, key->project, key->secret);
    json_end_object(json);
    return true;
}

static enum status list_keys(const struct admin_call *call, struct buffer *answer, struct error *error)
{
    struct json_writer json = json_writer_of(answer);
    struct listing listing = {.call = call, .json = &json};
    enum status status = read_number(call, "project", INT64_MAX, &listing.project, error);
    if (status != STATUS_OK) return status;
    json_begin_object(&json);
    json_begin_array_member(&json, "keys");
    status = store_each_key(call->store, write_key, &listing, error);
    json_end_array(&json);
    json_end_object(&json);
    return finish(&json, status, error);
}

static enum status read_role(const struct admin_call *call, enum store_role *ret_role, struct error *error)
{
    const char *text = parameter_of(call, "role");
    *ret_role = STORE_ROLE_READ;
    for (size_t i = 0; text && i < STORE_ROLES; i++) {
        *ret_role = (enum store_role)i;
        if (strcmp(text, roles[i]) == 0) return STATUS_OK;
    }
    if (!text) return STATUS_OK;
    return error_set(error, STATUS_MALFORMED, 0, "role must be read, metrics, upload, admin or write, not \"%.50s\"",
                     text);
}

/* Writes SECRET, which is shown once: as a DSN if it writes, else as a token. */
static void write_secret(const struct admin_call *call, struct buffer *answer, const struct store_key *key,
                         const char *secret)
{
    struct json_writer json = json_writer_of(answer);
    json_begin_object(&json);
    if (key->role == STORE_ROLE_WRITE)
        write_dsn(call, &json, key->project, secret);
    else
        json_member_text(&json, "token", secret);
    json_end_object(&json);
}

static enum status add_key(const struct admin_call *call, struct buffer *answer, struct error *error)
{
    struct json_writer json = json_writer_of(answer);
    struct store_key key = {0};
    char secret[STORE_KEY_SIZE];
    const char *project = parameter_of(call, "project"), *name = parameter_of(call, "name");
    bool is_for_all = strcmp(project, "all") == 0;
    enum status status = is_for_all ? STATUS_OK : read_id(call, "project", &key.project, error);
    if (status == STATUS_OK) status = read_role(call, &key.role, error);
    if (status != STATUS_OK) return status;
    if (name && strlen(name) >= sizeof(key.name))
        return error_set(error, STATUS_MALFORMED, 0, "a name of at most %zu bytes is needed", sizeof(key.name) - 1);
    (void)snprintf(key.name, sizeof(key.name), "%s", name ? name : "");
    if (is_for_all && key.role == STORE_ROLE_WRITE)
        return error_set(error, STATUS_MALFORMED, 0, "a key that writes is for one project; give its number");
    if (!is_for_all && (key.role == STORE_ROLE_METRICS || key.role == STORE_ROLE_ADMIN))
        return error_set(error, STATUS_MALFORMED, 0, "the role %s is for all projects; give \"all\"", roles[key.role]);
    status = store_add_key(call->store, &key, secret, error);
    if (status == STATUS_OK) write_secret(call, answer, &key, secret);
    return finish(&json, status, error);
}

static enum status rename_key(const struct admin_call *call, struct buffer *answer, struct error *error)
{
    uint64_t key;
    enum status status = read_id(call, "key", &key, error);
    if (status == STATUS_OK) status = store_rename_key(call->store, key, parameter_of(call, "name"), error);
    return write_done(answer, status);
}

static enum status revoke_key(const struct admin_call *call, struct buffer *answer, struct error *error)
{
    uint64_t key;
    enum status status = read_id(call, "key", &key, error);
    if (status == STATUS_OK) status = store_revoke_key(call->store, key, error);
    return write_done(answer, status);
}

static enum status rotate_key(const struct admin_call *call, struct buffer *answer, struct error *error)
{
    struct json_writer json = json_writer_of(answer);
    struct store_key key;
    uint64_t id;
    char secret[STORE_KEY_SIZE];
    enum status status = read_id(call, "key", &id, error);
    if (status == STATUS_OK) status = store_rotate_key(call->store, id, &key, secret, error);
    if (status == STATUS_OK) write_secret(call, answer, &key, secret);
    return finish(&json, status, error);
}

/* --- Usage -------------------------------------------------------------------------------------------------------- */

static bool write_usage(void *context, const struct store_service_usage *usage)
{
    struct json_writer *json = context;
    json_begin_object(json);
    json_member_u64(json, "project", usage->project);
    json_member_text(json, "service", usage->service);
    json_member_u64(json, "chunks", usage->chunk_count);
    json_member_u64(json, "samples", usage->sample_count);
    json_member_u64(json, "bytes", usage->bytes);
    json_member_time(json, "first", usage->first_ns);
    json_member_time(json, "last", usage->last_ns);
    json_end_object(json);
    return true;
}

static enum status show_usage(const struct admin_call *call, struct buffer *answer, struct error *error)
{
    struct json_writer json = json_writer_of(answer);
    uint64_t project = 0;
    enum status status = read_number(call, "project", INT64_MAX, &project, error);
    if (status != STATUS_OK) return status;
    json_begin_object(&json);
    json_begin_array_member(&json, "services");
    status = store_each_usage(call->store, project, write_usage, &json, error);
    json_end_array(&json);
    json_end_object(&json);
    return finish(&json, status, error);
}

/* --- The table ---------------------------------------------------------------------------------------------------- */

/* clang-format off */
const struct admin_command admin_commands[] = {
    {"projects", {NULL}, {NULL}, "projects with their limits and DSNs", false, list_projects},
    {"add-project", {"name"}, {NULL}, "a new project with a key; prints its DSN", true, add_project},
    {"rename-project", {"project", "name"}, {NULL}, "another name for a project", true, rename_project},
    {"limit-project", {"project"}, {"keep", "disk"}, "keep its data as --keep and --disk say", true, limit_project},
    {"delete-project", {"project"}, {NULL}, "delete a project with its keys and data", true, delete_project},
    {"keys", {NULL}, {"project"}, "keys and tokens, without their secrets", false, list_keys},
    {"add-key", {"project"}, {"role", "name"}, "a new key of --role for a project, or for \"all\"; prints it", true, add_key},
    {"rename-key", {"key", "name"}, {NULL}, "another name for a key", true, rename_key},
    {"revoke-key", {"key"}, {NULL}, "end a key; it is invalid at once", true, revoke_key},
    {"rotate-key", {"key"}, {NULL}, "replace the secret of a key; prints it", true, rotate_key},
    {"delete", {"project"}, {"service", "environment", "release", "host", "from", "to"}, "delete the data of --service, --release, --host, --from, --to …", true, delete_data},
    {"usage", {NULL}, {"project"}, "chunks, samples and bytes on disk of each service", false, show_usage},
    {NULL, {NULL}, {NULL}, NULL, false, NULL},
};
/* clang-format on */

const struct admin_command *admin_command_find(const char *name)
{
    const struct admin_command *command = admin_commands;
    while (command->name && strcmp(command->name, name) != 0) command++;
    return command->name ? command : NULL;
}

static bool is_among(const char *const *names, size_t names_max, const char *name)
{
    size_t i = 0;
    while (i < names_max && names[i] && strcmp(names[i], name) != 0) i++;
    return i < names_max && names[i];
}

/* Rejects a parameter that would be ignored: it may be what keeps a deletion from taking more. */
static enum status check_parameter(const struct admin_command *command, const struct admin_call *call,
                                   const struct parameter *parameter, struct error *error)
{
    const char *name = parameter->name;
    if (!is_among(command->operands, ADMIN_OPERANDS_MAX, name) && !is_among(command->options, ADMIN_OPTIONS_MAX, name))
        return error_set(error, STATUS_MALFORMED, 0, "%s takes no %.50s", command->name, name);
    if (parameter_of(call, name) != parameter->value)
        return error_set(error, STATUS_MALFORMED, 0, "%s: %s is given twice", command->name, name);
    if (!parameter->value[0]) return error_set(error, STATUS_MALFORMED, 0, "%s: %s is empty", command->name, name);
    return STATUS_OK;
}

enum status admin_run(const struct admin_command *command, const struct admin_call *call, struct buffer *answer,
                      struct error *error)
{
    for (size_t i = 0; i < ADMIN_OPERANDS_MAX && command->operands[i]; i++) {
        if (!parameter_of(call, command->operands[i]))
            return error_set(error, STATUS_MALFORMED, 0, "%s: the parameter %s is needed", command->name,
                             command->operands[i]);
    }
    enum status status = STATUS_OK;
    for (size_t i = 0; i < call->parameter_count && status == STATUS_OK; i++)
        status = check_parameter(command, call, &call->parameters[i], error);
    return status == STATUS_OK ? command->run(call, answer, error) : status;
}

bool admin_socket_address(const char *folder, struct sockaddr_un *address, int *ret_folder)
{
    /* The path of a socket has at most 107 bytes; that of a data folder may be longer. */
    *address = (struct sockaddr_un){.sun_family = AF_UNIX};
    *ret_folder = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (*ret_folder < 0) return false;
    (void)snprintf(address->sun_path, sizeof(address->sun_path), "/proc/self/fd/%d/" ADMIN_SOCKET, *ret_folder);
    return true;
}
