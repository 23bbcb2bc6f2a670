/* SPDX-License-Identifier: MIT */
#include "spool/exchange.h"

#include "base/environment.h"
#include "base/file.h"
#include "base/json_reader.h"
#include "base/json_writer.h"
#include "base/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool exchange_path(char ret_path[PATH_MAX], const char *folder, const char *name)
{
    return (size_t)snprintf(ret_path, PATH_MAX, "%s/%s", folder, name) < PATH_MAX;
}

bool exchange_has_suffix(const char *name, const char *suffix)
{
    size_t size = strlen(name), suffix_size = strlen(suffix);
    return size > suffix_size && strcmp(name + size - suffix_size, suffix) == 0;
}

bool exchange_is_there(const char *path)
{
    struct stat facts;
    return lstat(path, &facts) == 0 || (errno != ENOENT && errno != ENOTDIR);
}

/* Reads SIZE bytes, all of the file NAME in FOLDER. */
static bool read_record(const char *folder, const char *name, void *ret_record, size_t size)
{
    char path[PATH_MAX];
    if (!exchange_path(path, folder, name)) return false;
    int descriptor = kernel_open(path, O_RDONLY | O_NOFOLLOW, 0);
    if (descriptor < 0) return false;
    ssize_t got = kernel_read(descriptor, ret_record, size);
    kernel_close(descriptor);
    return got == (ssize_t)size;
}

static void write_record(const char *folder, const char *name, const void *record, size_t size)
{
    char path[PATH_MAX];
    if (exchange_path(path, folder, name)) (void)file_write(path, slice_of(record, size), NULL);
}

/* --- How to reach a server ---------------------------------------------------------------------------------------- */

static const char *first_variable(const char *const names[])
{
    const char *value = NULL;
    for (size_t i = 0; !value && names[i]; i++) value = environment_get(names[i]);
    return value ? value : "";
}

void server_facts_complete(struct server_facts *facts, bool is_https)
{
    /* HTTP_PROXY does not count: in a CGI program, a header of the request sets it. */
    static const char *const of_http[] = {"http_proxy", "all_proxy", "ALL_PROXY", NULL};
    static const char *const of_https[] = {"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", NULL};
    static const char *const of_none[] = {"no_proxy", "NO_PROXY", NULL};
    if (!facts->proxy) facts->proxy = first_variable(is_https ? of_https : of_http);
    facts->no_proxy = first_variable(of_none);
}

static void encode_facts(const struct server_facts *facts, struct buffer *out)
{
    struct json_writer writer = json_writer_of(out);
    json_begin_object(&writer);
    json_member_text(&writer, "dsn", facts->dsn);
    json_member_text(&writer, "proxy", facts->proxy);
    json_member_text(&writer, "no_proxy", facts->no_proxy);
    if (facts->ca_file) json_member_text(&writer, "ca_file", facts->ca_file);
    json_member_u64(&writer, "spool_bytes_max", facts->spool_bytes_max);
    json_end_object(&writer);
}

enum status server_facts_write(const char *folder, const struct server_facts *facts, struct error *error)
{
    char path[PATH_MAX];
    struct buffer text = {.maximum = SERVER_FACTS_BYTES_MAX}, before = {.maximum = SERVER_FACTS_BYTES_MAX};
    encode_facts(facts, &text);
    enum status status = STATUS_OK;
    if (text.failed || !exchange_path(path, folder, "server"))
        status = error_set(error, STATUS_TOO_LARGE, 0, "the options for sending are too long");
    bool is_same = status == STATUS_OK && file_read(path, &before, NULL) == STATUS_OK && before.size == text.size &&
                   memcmp(before.data, text.data, text.size) == 0;
    if (status == STATUS_OK && !is_same) status = file_write(path, buffer_slice(&text), error);
    buffer_fini(&text);
    buffer_fini(&before);
    return status;
}

/* Returns a copy in TEXTS, which has room for all and never moves. */
static const char *keep_text(struct buffer *texts, struct slice text)
{
    const char *copy = (const char *)texts->data + texts->size;
    buffer_append(texts, text.data, text.size);
    buffer_append_byte(texts, 0);
    return copy;
}

static void read_fact(struct json_reader *reader, struct slice key, struct buffer *texts, struct server_facts *facts)
{
    const char **text = NULL;
    if (slice_equals_text(key, "dsn")) text = &facts->dsn;
    if (slice_equals_text(key, "proxy")) text = &facts->proxy;
    if (slice_equals_text(key, "ca_file")) text = &facts->ca_file;
    if (slice_equals_text(key, "no_proxy")) text = &facts->no_proxy;
    if (text)
        *text = keep_text(texts, json_string(reader));
    else if (slice_equals_text(key, "spool_bytes_max"))
        facts->spool_bytes_max = json_u64(reader);
    else
        json_skip(reader);
}

enum status server_facts_read(struct slice bytes, struct buffer *texts, struct server_facts *ret_facts,
                              struct error *error)
{
    struct json_reader reader;
    struct slice key;
    *ret_facts = (struct server_facts){0};
    buffer_init(texts, bytes.size + 1); /* a string is not longer than its JSON with the quotes */
    if (!buffer_reserve(texts, bytes.size + 1)) return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory");
    json_reader_init(&reader, bytes);
    json_object_begin(&reader);
    while (json_object_next(&reader, &key)) read_fact(&reader, key, texts, ret_facts);
    enum status status = json_reader_finish(&reader, error);
    json_reader_fini(&reader);
    bool has_all = ret_facts->dsn && ret_facts->proxy && ret_facts->no_proxy;
    if (status == STATUS_OK && !has_all) status = error_set(error, STATUS_MALFORMED, 0, "a member is missing");
    return status;
}

/* --- Records ------------------------------------------------------------------------------------------------------ */

struct server_state server_state_read(const char *folder)
{
    struct server_state state;
    return read_record(folder, "state", &state, sizeof(state)) ? state : (struct server_state){0};
}

void server_state_write(const char *folder, const struct server_state *state)
{
    write_record(folder, "state", state, sizeof(*state));
}

struct item_counts item_counts_read(const char *session_folder)
{
    struct item_counts counts;
    return read_record(session_folder, "counts", &counts, sizeof(counts)) ? counts : (struct item_counts){0};
}

void item_counts_write(const char *session_folder, const struct item_counts *counts)
{
    write_record(session_folder, "counts", counts, sizeof(*counts));
}

/* --- Waking ------------------------------------------------------------------------------------------------------- */

bool exchange_wake(const char *root)
{
    char path[PATH_MAX];
    if (!exchange_path(path, root, "helper.wake")) return false;
    int fifo = kernel_open(path, O_WRONLY | O_NONBLOCK | O_NOFOLLOW, 0);
    if (fifo < 0) return false; /* ENXIO: nobody reads */
    ssize_t written = kernel_write(fifo, "", 1);
    kernel_close(fifo);
    return written != -EPIPE; /* a full one wakes, too */
}
