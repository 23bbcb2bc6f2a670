/* A request may be any bytes, and so may its parameters: the server answers each with a status and, where it says so,
 * with JSON. The first line is what the client authenticates with ("ok": what is right for the route), the second one
 * the Content-Encoding and, after a tab, the Content-Type, the third one "METHOD PATH?QUERY", the rest is the body.
 * SPDX-License-Identifier: MIT */
#include "base/json_reader.h"
#include "serve/serve_private.h"

#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LINE_SIZE = 8192, CHUNKS_MAX = 300, FOLDERS_OPEN_MAX = 8 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static char folder[PATH_MAX];
static char token[STORE_KEY_SIZE];
static struct store_project project;
static struct server server;

static void demand(bool holds)
{
    if (!holds) __builtin_trap();
}

static int remove_one(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    return remove(path);
}

static void close_store(void)
{
    store_close(server.store);
    server.store = NULL;
    (void)nftw(folder, remove_one, FOLDERS_OPEN_MAX, FTW_DEPTH | FTW_PHYS);
}

static void give_request(const char *text);

/* Something to find: a chunk, a transaction in it, and a file of another format. */
static void fill_store(void)
{
    static const char chunk[] =
        "{\"version\":\"2\",\"profiler_id\":\"00000000000000000000000000000001\",\"chunk_id\":"
        "\"00000000000000000000000000000001\",\"platform\":\"python\",\"release\":\"shop@1.0\",\"environment\":"
        "\"test\","
        "\"client_sdk\":{\"name\":\"test\",\"version\":\"1\"},\"profile\":{\"frames\":[{\"function\":\"main\",\"in_"
        "app\":true},"
        "{\"function\":\"work\",\"in_app\":true}],\"stacks\":[[0],[1,0]],\"samples\":[{\"timestamp\":1700000000.0,"
        "\"stack_id\":0,\"thread_id\":\"1\"},{\"timestamp\":1700000000.01,\"stack_id\":1,\"thread_id\":\"1\"},"
        "{\"timestamp\":1700000000.02,\"stack_id\":0,\"thread_id\":\"2\"}]}}";
    static const char transaction[] =
        "{\"type\":\"transaction\",\"event_id\":\"bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb\",\"transaction\":\"GET "
        "/\",\"release\":"
        "\"shop@1.0\",\"environment\":\"test\",\"start_timestamp\":1700000000.0,\"timestamp\":1700000000.02,"
        "\"platform\":"
        "\"python\",\"contexts\":{\"trace\":{\"trace_id\":\"cccccccccccccccccccccccccccccccc\",\"span_id\":"
        "\"dddddddddddddddd\",\"op\":\"http\",\"data\":{\"thread.id\":\"1\"}},\"profile\":{\"profiler_id\":"
        "\"00000000000000000000000000000001\"}},\"spans\":[]}";
    static char request[LINE_SIZE];
    (void)snprintf(request, sizeof(request),
                   "ok\n\nPOST /api/1/envelope/\n{}\n{\"type\":\"profile_chunk\",\"platform\":\"python\"}\n%s\n",
                   chunk);
    give_request(request);
    (void)snprintf(request, sizeof(request), "ok\n\nPOST /api/1/envelope/\n{}\n{\"type\":\"transaction\"}\n%s\n",
                   transaction);
    give_request(request);
    give_request("ok\n\nPOST /api/1/profiles?service=bank&release=2\nmain;work 3\nmain;wait 4\n");
    demand(atomic_load(&server.chunks) == 2);
}

/* A new one when much was stored: queries would take longer and longer. */
static void open_store(void)
{
    if (server.store && atomic_load(&server.chunks) < CHUNKS_MAX) return;
    const char *parent = getenv("TMPDIR");
    if (server.store)
        close_store();
    else
        (void)atexit(close_store);
    (void)snprintf(folder, sizeof(folder), "%s/fuzz_serve.XXXXXX", parent ? parent : "/tmp");
    demand(mkdtemp(folder) != NULL);
    atomic_store(&server.chunks, 0);
    demand(store_open(folder, NULL, NULL, &server.store, NULL) == STATUS_OK);
    demand(store_add_project(server.store, "fuzz", &project, NULL) == STATUS_OK);
    demand(store_add_key(server.store, &(struct store_key){.role = STORE_ROLE_READ}, token, NULL) == STATUS_OK);
    fill_store();
}

/* The next line of BYTES, without what does not fit. */
static void take_line(struct slice *bytes, char line[LINE_SIZE])
{
    const uint8_t *end = bytes->size ? memchr(bytes->data, '\n', bytes->size) : NULL;
    size_t size = end ? (size_t)(end - bytes->data) : bytes->size, kept = size < LINE_SIZE ? size : LINE_SIZE - 1;
    if (kept) memcpy(line, bytes->data, kept);
    line[kept] = '\0';
    size_t taken = end ? size + 1 : size;
    *bytes = slice_of(bytes->data + taken, bytes->size - taken);
}

static void take_parameters(struct request *request, char *query)
{
    char *saved;
    for (char *pair = strtok_r(query, "&", &saved); pair && request->query.parameter_count < QUERY_PARAMETERS_MAX;
         pair = strtok_r(NULL, "&", &saved)) {
        char *value = strchr(pair, '=');
        if (value) *value++ = '\0';
        request->query.parameters[request->query.parameter_count++] =
            (struct parameter){pair, value ? value : pair + strlen(pair)};
    }
}

static void check_answer(const struct request *request)
{
    demand(request->status >= 200 && request->status < STATUS_CODES_MAX);
    bool is_json = request->content_type && strcmp(request->content_type, "application/json") == 0;
    if (!is_json) return;
    struct json_reader reader;
    json_reader_init(&reader, buffer_slice(&request->answer));
    json_skip(&reader);
    demand(json_reader_finish(&reader, NULL) == STATUS_OK);
    json_reader_fini(&reader);
}

static void run(struct request *request, struct slice body)
{
    bool is_allowed = request_check_early(request);
    if (is_allowed && request_is_post(request)) buffer_append(&request->body, body.data, body.size);
    if (is_allowed) request_run(request);
    check_answer(request);
}

static void give(struct slice rest)
{
    static char target[LINE_SIZE], encoding[LINE_SIZE], access[LINE_SIZE], right[64];
    take_line(&rest, access);
    take_line(&rest, encoding);
    take_line(&rest, target);
    char *path = strchr(target, ' ');
    if (!path) return;
    *path++ = '\0';
    char *type = strchr(encoding, '\t');
    if (type) *type++ = '\0';
    char *query = strchr(path, '?');
    if (query) *query++ = '\0';
    struct request *request = calloc(1, sizeof(*request));
    demand(request != NULL);
    *request = (struct request){.server = &server,
                                .socket = -1,
                                .method = target,
                                .path = path,
                                .encoding = encoding,
                                .content = type,
                                .authorization = access,
                                .status = 200,
                                .received_ns = clock_utc_ns()};
    if (strcmp(access, "ok") == 0) {
        bool writes = strcmp(target, "POST") == 0;
        (void)snprintf(right, sizeof(right), writes ? "Sentry sentry_key=%s" : "Bearer %s",
                       writes ? project.key : token);
        request->authorization = right;
    }
    buffer_init(&request->body, SERVE_BODY_BYTES_MAX);
    buffer_init(&request->answer, ANSWER_BYTES_MAX);
    if (query) take_parameters(request, query);
    run(request, rest);
    request_free_answer(request);
    free(request);
}

static void give_request(const char *text)
{
    give(slice_of_text(text));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    open_store();
    give(slice_of(data, size));
    return 0;
}
