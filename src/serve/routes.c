/* The routes: paths, their functions, and the access that they need.  SPDX-License-Identifier: MIT */
#include "serve/serve_private.h"

#include <string.h>

enum access {
    ACCESS_ALL,
    ACCESS_READ,
    ACCESS_QUERY, /* may read; computes for long */
    ACCESS_READ_ALL,
    ACCESS_METRICS,
    ACCESS_WRITE,
    ACCESS_WRITE_BY_KEY, /* the project is that of the key */
    ACCESS_UPLOAD,       /* upload of debug files */
    ACCESS_ADMIN,
};

struct route {
    const char *method;
    const char *name; /* begins with '/': the path, where {x} is any word; else what follows /api/N/ */
    enum access access;
    void (*run)(struct request *request);
};

static void show_health(struct request *request)
{
    buffer_append_text(&request->answer, "{\"status\":\"ok\"}\n");
    answer_finish(request, "application/json");
}

/* Ready: the store can be read and written. */
static void show_readiness(struct request *request)
{
    struct store_usage usage;
    store_usage(request->server->store, &usage);
    if (usage.waiting >= STORE_WAITING_MAX / 2)
        answer_error(request, 503, "too much waits for the disk");
    else if (!store_has_room(request->server->store))
        answer_error(request, 503, "the disk is full: what is stored can be read, and nothing more is stored");
    else
        show_health(request);
}

/* Routes whose answers query/ computes. */
static void answer_query(struct request *request)
{
    static const struct {
        const char *route;
        query_answer *answer;
        const char *content_type;
    } answers[] = {
        {"profile.pb.gz", query_pprof, "application/octet-stream"},
        {"export", query_export, "application/octet-stream"},
        {"top", query_top, "application/json"},
        {"flame", query_flame, "application/json"},
        {"diff", query_diff, "application/json"},
        {"flame-diff", query_flame_diff, "application/json"},
        {"regressions", query_regressions, "application/json"},
        {"function", query_function, "application/json"},
        {"trend", query_trend, "application/json"},
        {"flamechart", query_flamechart, "application/json"},
        {"page", query_page, "application/octet-stream"},
        {"types", query_types, "application/json"},
        {"tags", query_tags, "application/json"},
    };
    size_t place = 0;
    while (strcmp(answers[place].route, request->route) != 0) place++;
    request_query(request, answers[place].answer, answers[place].content_type);
}

/* clang-format off */
static const struct route routes[] = {
    {"POST", "envelope",     ACCESS_WRITE, ingest_envelope},
    {"POST", "profiles",     ACCESS_WRITE, ingest_profile},
    {"GET",  "profile.pb.gz", ACCESS_QUERY, answer_query},
    {"GET",  "export",       ACCESS_QUERY, answer_query},
    {"GET",  "top",          ACCESS_QUERY, answer_query},
    {"GET",  "flame",        ACCESS_QUERY, answer_query},
    {"GET",  "diff",         ACCESS_QUERY, answer_query},
    {"GET",  "flame-diff",   ACCESS_QUERY, answer_query},
    {"GET",  "regressions",  ACCESS_QUERY, answer_query},
    {"GET",  "function",     ACCESS_QUERY, answer_query},
    {"GET",  "trend",        ACCESS_QUERY, answer_query},
    {"GET",  "flamechart",   ACCESS_QUERY, answer_query},
    {"GET",  "page",         ACCESS_QUERY, answer_query},
    {"POST", "page",         ACCESS_QUERY, open_file},
    {"GET",  "activity",     ACCESS_QUERY,  list_activity},
    {"GET",  "chunks",       ACCESS_READ,  list_chunks},
    {"GET",  "raw",          ACCESS_READ,  show_raw},
    {"GET",  "services",     ACCESS_READ,  list_values},
    {"GET",  "environments", ACCESS_READ,  list_values},
    {"GET",  "releases",     ACCESS_READ,  list_values},
    {"GET",  "hosts",        ACCESS_READ,  list_values},
    {"GET",  "platforms",    ACCESS_READ,  list_values},
    {"GET",  "sessions",     ACCESS_READ,  list_values},
    {"GET",  "types",        ACCESS_READ,  answer_query},
    {"GET",  "tags",         ACCESS_READ,  answer_query},
    {"GET",  "transactions", ACCESS_READ,  list_spans},
    {"GET",  "spans",        ACCESS_READ,  list_spans},
    {"GET",  "rejected",     ACCESS_READ,  list_rejected},
    {"GET",  "outcomes",     ACCESS_READ,  list_outcomes},
    {"POST", "/ingest",      ACCESS_WRITE_BY_KEY, ingest_pyroscope},
    {"POST", "/push.v1.PusherService/Push", ACCESS_WRITE_BY_KEY, ingest_push},
    {"POST", "/v1development/profiles", ACCESS_WRITE_BY_KEY, ingest_otlp},
    {"GET",  "debug-files",  ACCESS_READ,  debug_list},
    {"GET",  "/api/0",       ACCESS_UPLOAD, debug_show_version},
    {"GET",  "/api/0/organizations/{organization}/chunk-upload", ACCESS_UPLOAD, debug_show_options},
    {"POST", "/api/0/organizations/{organization}/chunk-upload", ACCESS_UPLOAD, debug_take_chunks},
    {"POST", "/api/0/projects/{organization}/{project}/files/difs/assemble", ACCESS_UPLOAD, debug_assemble},
    {"GET",  "/api/admin/{command}", ACCESS_ADMIN, administer},
    {"POST", "/api/admin/{command}", ACCESS_ADMIN, administer},
    {"GET",  "/api/projects", ACCESS_READ_ALL, list_projects},
    {"GET",  "/metrics",     ACCESS_METRICS, show_metrics},
    {"GET",  "/healthz",     ACCESS_ALL,   show_health},
    {"GET",  "/readyz",      ACCESS_ALL,   show_readiness},
    {"GET",  "/ready",       ACCESS_ALL,   show_readiness},
};
/* clang-format on */

/* Parameters of requests that read. Another name is a mistake, and would choose too much if it were ignored. */
static const char *const numbers[] = {"limit", "buckets", NULL};
static const char *const texts[] = {
    "focus",      "ignore", "hide",      "show",   "show_from", "type", "order", "prune_from", "tag_focus", "at",
    "tag_ignore", "by",     "normalize", "format", "inverted",  "name", "times", "after",      NULL,
};
/* The base of a comparison has them, too, with "base_" in front. */
static const char *const selectors[] = {
    "service", "environment", "release", "host", "platform", "profiler",    "chunk", "thread",
    "trace",   "span",        "from",    "to",   "seconds",  "transaction", NULL,
};

/* The values of parameters that have few. */
static const char *const choices[][4] = {
    {"by", "thread"}, {"order", "self", "total"}, {"normalize", "1"}, {"inverted", "1"}, {"times", "1"},
};
static const char *const comparisons[] = {"diff", "flame-diff", "regressions", NULL};

/* False after an error: PARAMETER has few values, and this is none of them. */
static bool check_choice(struct request *request, const struct parameter *parameter)
{
    for (size_t i = 0; i < sizeof(choices) / sizeof(choices[0]); i++) {
        const char *const *values = choices[i] + 1;
        struct slice value = slice_of_text(parameter->value);
        if (strcmp(choices[i][0], parameter->name) != 0 || slice_is_one_of(value, values)) continue;
        answer_error(request, 400, "%s: %s%s%s is needed", parameter->name, values[0], values[1] ? " or " : "",
                     values[1] ? values[1] : "");
        return false;
    }
    return true;
}

static bool check_base(struct request *request, const char *name)
{
    if (slice_is_one_of(slice_of_text(request->route), comparisons)) return true;
    answer_error(request, 400, "%.100s: only diff, flame-diff and regressions have a base", name);
    return false;
}

static bool check_parameter(struct request *request, const struct parameter *parameter)
{
    static const char base[] = "base_";
    struct slice name = slice_of_text(parameter->name);
    if (slice_is_one_of(name, numbers)) {
        size_t digits = strspn(parameter->value, "0123456789");
        bool is_number = digits > 0 && digits < 10 && parameter->value[digits] == '\0';
        if (!is_number) answer_error(request, 400, "%s: a number is needed", parameter->name);
        return is_number;
    }
    if (slice_is_one_of(name, selectors)) return true;
    if (slice_is_one_of(name, texts)) return check_choice(request, parameter);
    if (text_begins_with(name, base) && slice_is_one_of(text_from(name, strlen(base)), selectors))
        return check_base(request, parameter->name);
    answer_error(request, 400, "there is no parameter %.100s; see doc/serve.md", parameter->name);
    return false;
}

static bool check_parameters(struct request *request)
{
    for (size_t i = 0; i < request->query.parameter_count; i++) {
        if (!check_parameter(request, &request->query.parameters[i])) return false;
    }
    return true;
}

/* "/api/1/envelope/": project 1, route "envelope". False: not of that form. */
static bool split_path(struct request *request)
{
    char *rest = request->path;
    size_t size = strlen(rest);
    while (size > 1 && rest[size - 1] == '/') rest[--size] = '\0';
    request->route = rest;
    /* Paths of sentry-cli for debug files; other paths of /api/0/ name a project that does not exist. */
    bool is_upload = strncmp(rest, "/api/0/organizations/", 21) == 0 || strncmp(rest, "/api/0/projects/", 16) == 0;
    bool is_admin = strncmp(rest, "/api/admin/", 11) == 0;
    if (strncmp(rest, "/api/", 5) != 0 || is_upload || is_admin) return true;
    char *slash = strchr(rest + 5, '/');
    if (!slash) return true;
    uint64_t project = 0;
    for (const char *digit = rest + 5; digit < slash; digit++) {
        if (*digit < '0' || *digit > '9' || __builtin_mul_overflow(project, 10, &project) ||
            __builtin_add_overflow(project, (uint64_t)(*digit - '0'), &project))
            return false;
    }
    request->project = project;
    request->route = slash + 1;
    return project != 0;
}

/* Whether PATH is NAME, in which {x} is one or more characters without a slash. */
static bool matches(const char *name, const char *path)
{
    while (*name && *path) {
        if (*name == '{') {
            size_t size = strcspn(path, "/");
            name = strchr(name, '}') + 1;
            path += size;
            if (size == 0) return false;
        } else if (*name++ != *path++) {
            return false;
        }
    }
    return *name == *path;
}

/* NULL, and REQUEST answered, if there is none. */
static const struct route *find_route(struct request *request)
{
    static const struct route page = {"GET", "/", ACCESS_ALL, show_page};
    bool is_get = strcmp(request->method, "GET") == 0 || strcmp(request->method, "HEAD") == 0;
    bool is_known = page_host_has(request->route);
    if (is_known && is_get) return &page;
    for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
        if (!matches(routes[i].name, request->route)) continue;
        is_known = true;
        bool is_head = strcmp(request->method, "HEAD") == 0 && strcmp(routes[i].method, "GET") == 0;
        if (is_head || strcmp(routes[i].method, request->method) == 0) return &routes[i];
    }
    if (is_known)
        answer_error(request, 405, "%s is not for this path", request->method);
    else
        answer_error(request, 404, "there is no such path; see doc/serve.md");
    return NULL;
}

bool request_check_early(struct request *request)
{
    if (!split_path(request)) {
        answer_error(request, 400, "the path names no project: a number is needed, as in /api/1/envelope/");
        return false;
    }
    bool is_envelope = request->project != 0 && strcmp(request->route, "envelope") == 0;
    request->allows_origins = is_envelope;
    if (is_envelope && strcmp(request->method, "OPTIONS") == 0) {
        request->status = 200;
        return false;
    }
    const struct route *route = find_route(request);
    if (!route) return false;
    request->is_query = route->access == ACCESS_QUERY;
    switch (route->access) {
    case ACCESS_READ:
    case ACCESS_QUERY:
        if (!access_may_read(request, STORE_ROLE_READ, request->project)) return false;
        request->has_key = request_is_post(request);
        return check_parameters(request);
    case ACCESS_READ_ALL:
        return access_may_read(request, STORE_ROLE_READ, 0);
    case ACCESS_ADMIN:
        return access_may_administer(request);
    case ACCESS_METRICS:
        return access_may_read(request, STORE_ROLE_METRICS, 0);
    case ACCESS_WRITE:
        /* An envelope may carry its key inside. */
        return is_envelope && !access_names_key(request) ? true : access_may_write(request, slice_of(NULL, 0));
    case ACCESS_UPLOAD:
        return access_may_upload(request);
    case ACCESS_WRITE_BY_KEY:
        if (route->run == ingest_otlp) request->error_form = ERRORS_OF_OTLP;
        if (route->run == ingest_push) request->error_form = ERRORS_OF_CONNECT;
        return access_may_write_by_key(request);
    case ACCESS_ALL:
    default:
        return true;
    }
}

void request_run(struct request *request)
{
    const struct route *route = find_route(request);
    if (route) route->run(request);
    decode_budget_release(request);
}
