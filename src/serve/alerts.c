/* The server asks itself what a client could ask: the share of a function, or the functions of the newest release that
 * are slower than in the release before by more than chance explains.
 *
 * A change of a rule's state is sent until the web hook accepts it; one that comes while the hook does not answer
 * replaces the one before, so that nothing waits in a queue.  SPDX-License-Identifier: MIT */
#include "serve/alerts.h"

#include "base/json_reader.h"
#include "serve/serve_private.h"
#include "serve/symbolication.h"
#include "transport/curl_library.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    WORD_SIZE = 256,
    FUNCTIONS_SHOWN = 10,
    TEXT_BYTES_MAX = 4096,
    URL_BYTES_MAX = 16384,
    BODY_BYTES_MAX = 65536, /* a byte of a name takes up to 6 in JSON */
    REASON_SIZE = 256,
    TRIES = 3,
    CONNECT_SECONDS = 5,
    ANSWER_SECONDS = 10,
    MINUTES_MAX = 7 * 24 * 60,
};

struct alert_rule {
    char name[WORD_SIZE], service[WORD_SIZE], environment[WORD_SIZE], function[WORD_SIZE], release[WORD_SIZE],
        base_release[WORD_SIZE]; /* the releases are those that were compared last */
    char seconds[24];
    uint64_t project;
    double bound; /* percent; 0: the rule is about regressions */
    bool is_firing, is_sent;
    struct buffer text; /* the sentence about the state */
    double share;       /* percent that was found last */
};

struct alerts {
    struct server *server;
    pthread_t thread;
    pthread_mutex_t lock; /* lock of IS_FIRING of the rules */
    const struct curl_library *curl;
    struct alert_rule rules[SERVE_ALERTS_MAX];
    size_t rule_count;
};

/* --- Rules -------------------------------------------------------------------------------------------------------- */

/* Takes a word, in which quotes keep blanks: function="operator new". False at the end. */
static bool take_word(const char **text, char word[WORD_SIZE])
{
    size_t size = 0;
    bool is_quoted = false;
    while (isspace((unsigned char)**text)) ++*text;
    if (!**text) return false;
    for (; **text && (is_quoted || !isspace((unsigned char)**text)); ++*text) {
        if (**text == '"')
            is_quoted = !is_quoted;
        else if (size + 1 < WORD_SIZE)
            word[size++] = **text;
    }
    word[size] = '\0';
    return true;
}

static enum status read_word(const char *word, struct alert_rule *rule, uint64_t *minutes, struct error *error)
{
    char *end = NULL;
    const struct {
        const char *name;
        char *value;
    } texts[] = {{"name=", rule->name},
                 {"service=", rule->service},
                 {"environment=", rule->environment},
                 {"function=", rule->function}};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        size_t size = strlen(texts[i].name);
        if (strncmp(word, texts[i].name, size) != 0) continue;
        (void)snprintf(texts[i].value, WORD_SIZE, "%s", word + size);
        return STATUS_OK;
    }
    if (strcmp(word, "regression") == 0) return STATUS_OK;
    if (strncmp(word, "share>", 6) == 0) {
        rule->bound = strtod(word + 6, &end);
        if (*end == '%') end++;
        if (!*end && rule->bound > 0 && rule->bound < 100) return STATUS_OK;
    } else if (strncmp(word, "minutes=", 8) == 0) {
        *minutes = strtoull(word + 8, &end, 10);
        if (!*end && isdigit((unsigned char)word[8]) && *minutes > 0 && *minutes <= MINUTES_MAX) return STATUS_OK;
    } else if (strncmp(word, "project=", 8) == 0) {
        rule->project = strtoull(word + 8, &end, 10);
        if (!*end && isdigit((unsigned char)word[8]) && rule->project > 0) return STATUS_OK;
    }
    return error_set(error, STATUS_MALFORMED, 0,
                     "\"%.80s\" is none of name=, project=, service=, environment=, function= with share>PERCENT, "
                     "regression and minutes=",
                     word);
}

static enum status parse_rule(const char *text, struct alert_rule *rule, struct error *error)
{
    char word[WORD_SIZE];
    uint64_t minutes = 10;
    bool has_regression = false;
    enum status status = STATUS_OK;
    *rule = (struct alert_rule){.project = 1};
    while (status == STATUS_OK && take_word(&text, word)) {
        has_regression |= strcmp(word, "regression") == 0;
        status = read_word(word, rule, &minutes, error);
        if (strlen(word) == WORD_SIZE - 1) /* the rest is cut off */
            status = error_set(error, STATUS_MALFORMED, 0, "\"%.80s…\" is longer than %d bytes", word, WORD_SIZE - 2);
    }
    if (status != STATUS_OK) return status;
    (void)snprintf(rule->seconds, sizeof(rule->seconds), "%" PRIu64, minutes * 60);
    bool has_share = rule->bound > 0 && rule->function[0];
    bool is_half = (rule->bound > 0) != (rule->function[0] != '\0');
    if (!rule->name[0] || !rule->service[0] || is_half || has_share == has_regression)
        return error_set(error, STATUS_MALFORMED, 0,
                         "a rule needs name=, service=, and either regression or function= with share>PERCENT");
    return STATUS_OK;
}

enum status alert_rule_check(const char *text, struct error *error)
{
    struct alert_rule rule;
    return parse_rule(text, &rule, error);
}

/* --- Checking ----------------------------------------------------------------------------------------------------- */

/* A question of a rule, as the context of its query. */
struct question {
    struct server *server;
    uint64_t project;
};

static enum status check_end(void *context, struct error *error)
{
    const struct question *question = context;
    if (!atomic_load(&question->server->is_ending)) return STATUS_OK;
    return error_set(error, STATUS_IO, 0, "the server is stopping");
}

static enum status name_places(void *context, struct profile *profile, struct error *error)
{
    const struct question *question = context;
    return symbols_name(question->server->symbols, question->project, profile, NULL, error);
}

static void add_parameter(struct query *query, const char *name, char *value)
{
    if (value[0]) query->parameters[query->parameter_count++] = (struct parameter){(char *)(uintptr_t)name, value};
}

/* Appends what ANSWER writes about the selection of RULE to OUT. False if there is none, or if it lacks a shard. */
static bool ask(struct alerts *alerts, struct alert_rule *rule, query_answer *answer, struct buffer *out)
{
    static const struct query_calls calls = {.check = check_end, .name_places = name_places};
    struct question question = {.server = alerts->server, .project = rule->project};
    struct error error = {0};
    struct query *query = calloc(1, sizeof(*query));
    if (!query) return false;
    query->store = alerts->server->store;
    query->calls = &calls;
    query->context = &question;
    query->project = rule->project;
    query->now_ns = clock_utc_ns();
    add_parameter(query, "service", rule->service);
    add_parameter(query, "environment", rule->environment);
    add_parameter(query, "seconds", rule->seconds);
    add_parameter(query, "name", rule->function);
    add_parameter(query, "release", rule->release);
    add_parameter(query, "base_release", rule->base_release);
    bool is_answered = answer(query, out, &error) == STATUS_OK && !out->failed && !query->missing_shards;
    kind_choice_fini(&query->kind);
    free(query);
    return is_answered;
}

/* Returns whether the function has more than its share. */
static bool check_share(struct alert_rule *rule, struct slice answer)
{
    struct json_reader reader;
    struct slice key;
    double all = 0, total = 0;
    json_reader_init(&reader, answer);
    json_object_begin(&reader);
    while (json_object_next(&reader, &key)) {
        if (slice_equals_text(key, "all"))
            all = json_double(&reader);
        else if (slice_equals_text(key, "total"))
            total = json_double(&reader);
        else
            json_skip(&reader);
    }
    json_reader_fini(&reader);
    rule->share = all > 0 ? 100 * total / all : 0;
    buffer_clear(&rule->text);
    buffer_append_format(&rule->text, "%s takes %.1f %% of %s in the last %llu minutes; the bound is %g %%",
                         rule->function, rule->share, rule->service, strtoull(rule->seconds, NULL, 10) / 60,
                         rule->bound);
    return rule->share > rule->bound;
}

static void append_name(struct buffer *text, const char *before, struct slice name)
{
    enum { NAME_BYTES_MAX = 200 };
    buffer_append_text(text, before);
    buffer_append(text, name.data, name.size < NAME_BYTES_MAX ? name.size : NAME_BYTES_MAX);
}

/* Returns whether some function grew. */
static bool check_regressions(struct alert_rule *rule, struct slice answer)
{
    struct json_reader reader;
    struct slice key;
    size_t count = 0;
    buffer_clear(&rule->text);
    buffer_append_format(&rule->text, "%s: slower in release %s than in %s:", rule->service, rule->release,
                         rule->base_release);
    json_reader_init(&reader, answer);
    json_object_begin(&reader);
    while (json_object_next(&reader, &key)) {
        if (!slice_equals_text(key, "functions")) {
            json_skip(&reader);
            continue;
        }
        json_array_begin(&reader);
        while (json_array_next(&reader)) {
            json_object_begin(&reader);
            while (json_object_next(&reader, &key)) {
                if (slice_equals_text(key, "name") && count++ < FUNCTIONS_SHOWN)
                    append_name(&rule->text, count > 1 ? ", " : " ", json_string(&reader));
                else
                    json_skip(&reader);
            }
        }
    }
    json_reader_fini(&reader);
    if (count > FUNCTIONS_SHOWN) buffer_append_format(&rule->text, " and %zu others", count - FUNCTIONS_SHOWN);
    return count > 0;
}

/* The two releases that began last. */
struct release_search {
    struct alert_rule *rule;
    uint64_t first_ns, base_first_ns;
};

static bool compare_release(void *context, const struct store_value *value)
{
    struct release_search *search = context;
    struct alert_rule *rule = search->rule;
    if (value->value.size == 0 || value->value.size >= WORD_SIZE || value->first_ns <= search->base_first_ns)
        return true;
    bool is_newest = value->first_ns > search->first_ns;
    if (is_newest) {
        (void)memcpy(rule->base_release, rule->release, WORD_SIZE);
        search->base_first_ns = search->first_ns;
        search->first_ns = value->first_ns;
    } else {
        search->base_first_ns = value->first_ns;
    }
    (void)snprintf(is_newest ? rule->release : rule->base_release, WORD_SIZE, "%.*s", SLICE_ARGUMENTS(value->value));
    return true;
}

/* False if the service has no two releases. */
static bool find_releases(struct alerts *alerts, struct alert_rule *rule)
{
    struct release_search search = {.rule = rule};
    const struct store_query query = {.project = rule->project,
                                      .service = slice_of_text(rule->service),
                                      .environment = slice_of_text(rule->environment)};
    rule->release[0] = rule->base_release[0] = '\0';
    struct error error;
    enum status status =
        store_each_value(alerts->server->store, &query, STORE_RELEASE, compare_release, &search, &error);
    return status == STATUS_OK && rule->base_release[0];
}

/* Returns whether RULE holds. An answer without profiles changes nothing: *RET_IS_KNOWN is false. */
static bool check_rule(struct alerts *alerts, struct alert_rule *rule, bool *ret_is_known)
{
    bool has_share = rule->bound > 0, holds = false;
    *ret_is_known = false;
    if (!has_share && !find_releases(alerts, rule)) return false;
    struct buffer answer;
    buffer_init(&answer, ANSWER_BYTES_MAX);
    *ret_is_known = ask(alerts, rule, has_share ? query_function : query_regressions, &answer);
    if (*ret_is_known && has_share) holds = check_share(rule, buffer_slice(&answer));
    if (*ret_is_known && !has_share) holds = check_regressions(rule, buffer_slice(&answer));
    buffer_fini(&answer);
    return holds && !rule->text.failed;
}

/* --- Notifications ------------------------------------------------------------------------------------------------ */

/* Drops the answer of the hook. */
static size_t drop_answer(char *bytes, size_t size, size_t count, void *context)
{
    (void)bytes;
    (void)context;
    return size * count;
}

/* Gives the transfer up when the server ends. */
static int watch_end(void *context, curl_off_t all, curl_off_t done, curl_off_t up_all, curl_off_t up_done)
{
    const struct alerts *alerts = context;
    (void)all;
    (void)done;
    (void)up_all;
    (void)up_done;
    return atomic_load(&alerts->server->is_ending);
}

static void append_parameter(struct buffer *url, const char *name, const char *value)
{
    if (!value[0]) return;
    buffer_append_format(url, "&%s=", name);
    buffer_append_url_text(url, slice_of_text(value));
}

/* Appends the address of the page that shows what RULE is about: the function in the flame graph of the time that was
 * checked, or the comparison of the two releases. */
static void append_page_url(const struct alerts *alerts, const struct alert_rule *rule, uint64_t now_ns,
                            struct buffer *url)
{
    uint64_t now = now_ns / SECOND_NS + 1, seconds = strtoull(rule->seconds, NULL, 10);
    buffer_append_format(url, "%s/?place=profile&project=%" PRIu64 "&from=%" PRIu64 "&to=%" PRIu64,
                         alerts->server->base_url, rule->project, now > seconds ? now - seconds : 0, now);
    append_parameter(url, "service", rule->service);
    append_parameter(url, "environment", rule->environment);
    append_parameter(url, "release", rule->release);
    append_parameter(url, "base_release", rule->base_release);
    if (rule->bound > 0) {
        buffer_append_text(url, "#v=1");
        append_parameter(url, "search", rule->function);
    } else {
        buffer_append_format(url, "&base_from=1&base_to=%" PRIu64, now);
    }
}

/* Writes the notification. The member "text" is what chat programs show. */
static void write_notification(const struct alerts *alerts, const struct alert_rule *rule, struct buffer *out)
{
    struct json_writer json = json_writer_of(out);
    uint64_t now_ns = clock_utc_ns();
    json_begin_object(&json);
    json_member_text(&json, "alert", rule->name);
    json_member_text(&json, "state", rule->is_firing ? "firing" : "resolved");
    json_member_time(&json, "time", now_ns);
    json_member_u64(&json, "project", rule->project);
    json_member_text(&json, "service", rule->service);
    if (rule->bound > 0) {
        json_member_text(&json, "function", rule->function);
        json_write_key(&json, "share_percent");
        json_write_double(&json, rule->share);
        json_write_key(&json, "bound_percent");
        json_write_double(&json, rule->bound);
    } else {
        json_member_text(&json, "release", rule->release);
        json_member_text(&json, "base_release", rule->base_release);
    }
    json_write_key(&json, "text");
    json_write_string(&json, buffer_slice(&rule->text));
    json_member_text(&json, "server", alerts->server->base_url);
    struct buffer url;
    buffer_init(&url, URL_BYTES_MAX);
    append_page_url(alerts, rule, now_ns, &url);
    json_member_string(&json, "url", buffer_slice(&url));
    buffer_fini(&url);
    json_end_object(&json);
}

/* False, with REASON, if the hook did not accept BODY. */
static bool post_once(const struct alerts *alerts, const struct buffer *body, char reason[REASON_SIZE])
{
    const struct curl_library *curl = alerts->curl;
    CURL *easy = curl->easy_init();
    struct curl_slist *headers = curl->slist_append(NULL, "Content-Type: application/json");
    long status = 0;
    bool is_set = easy && headers &&
                  curl->easy_setopt(easy, CURLOPT_URL, alerts->server->options.alert_webhook) == CURLE_OK &&
                  curl->easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https") == CURLE_OK &&
                  curl->easy_setopt(easy, CURLOPT_HTTPHEADER, headers) == CURLE_OK &&
                  curl->easy_setopt(easy, CURLOPT_POSTFIELDS, body->data) == CURLE_OK &&
                  curl->easy_setopt(easy, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body->size) == CURLE_OK &&
                  curl->easy_setopt(easy, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
                  curl->easy_setopt(easy, CURLOPT_USERAGENT, "offbeat/" OFFBEAT_VERSION) == CURLE_OK &&
                  curl->easy_setopt(easy, CURLOPT_CONNECTTIMEOUT, (long)CONNECT_SECONDS) == CURLE_OK &&
                  curl->easy_setopt(easy, CURLOPT_TIMEOUT, (long)ANSWER_SECONDS) == CURLE_OK &&
                  curl->easy_setopt(easy, CURLOPT_NOPROGRESS, 0L) == CURLE_OK &&
                  curl->easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, watch_end) == CURLE_OK &&
                  curl->easy_setopt(easy, CURLOPT_XFERINFODATA, alerts) == CURLE_OK &&
                  curl->easy_setopt(easy, CURLOPT_WRITEFUNCTION, drop_answer) == CURLE_OK;
    CURLcode code = is_set ? curl->easy_perform(easy) : CURLE_FAILED_INIT;
    if (code == CURLE_OK) code = curl->easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    if (code == CURLE_OK)
        (void)snprintf(reason, REASON_SIZE, "status %ld", status);
    else
        (void)snprintf(reason, REASON_SIZE, "%s", curl->easy_strerror(code));
    curl->slist_free_all(headers);
    if (easy) curl->easy_cleanup(easy);
    return code == CURLE_OK && status / 100 == 2;
}

/* Waits for SECONDS, or until the server ends: then false. */
static bool wait_seconds(const struct alerts *alerts, uint64_t seconds)
{
    const struct timespec pause = {.tv_nsec = 100 * 1000000};
    for (uint64_t i = 0; i < 10 * seconds && !atomic_load(&alerts->server->is_ending); i++)
        (void)nanosleep(&pause, NULL);
    return !atomic_load(&alerts->server->is_ending);
}

static void notify(struct alerts *alerts, struct alert_rule *rule)
{
    struct buffer body;
    char reason[REASON_SIZE] = "not enough memory";
    buffer_init(&body, BODY_BYTES_MAX);
    write_notification(alerts, rule, &body);
    for (unsigned i = 0; i < TRIES && !body.failed && !rule->is_sent; i++) {
        if (i > 0 && !wait_seconds(alerts, 1U << (i - 1))) break;
        rule->is_sent = post_once(alerts, &body, reason);
    }
    if (!rule->is_sent && !atomic_load(&alerts->server->is_ending))
        server_log(alerts->server,
                   "the web hook did not accept the alert %s (%s); it is sent again after the next check", rule->name,
                   reason);
    buffer_fini(&body);
}

/* --- The thread --------------------------------------------------------------------------------------------------- */

static void update_rule(struct alerts *alerts, struct alert_rule *rule)
{
    bool is_known, holds = check_rule(alerts, rule, &is_known);
    if (atomic_load(&alerts->server->is_ending)) return;
    if (is_known && holds != rule->is_firing) {
        (void)pthread_mutex_lock(&alerts->lock);
        rule->is_firing = holds;
        (void)pthread_mutex_unlock(&alerts->lock);
        rule->is_sent = false;
        server_log(alerts->server, "alert %s %s: %.*s", rule->name, holds ? "fires" : "is over",
                   SLICE_ARGUMENTS(buffer_slice(&rule->text)));
    }
    if (!rule->is_sent && alerts->curl) notify(alerts, rule);
}

static void *run_alerts(void *context)
{
    struct alerts *alerts = context;
    do {
        for (size_t i = 0; i < alerts->rule_count; i++) update_rule(alerts, &alerts->rules[i]);
    } while (wait_seconds(alerts, alerts->server->options.alert_seconds));
    return NULL;
}

enum status alerts_start(struct server *server, struct alerts **ret_alerts, struct error *error)
{
    const struct serve_options *options = &server->options;
    if (options->alert_count == 0) return STATUS_OK;
    struct alerts *alerts = calloc(1, sizeof(*alerts));
    if (!alerts) return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory");
    alerts->server = server;
    (void)pthread_mutex_init(&alerts->lock, NULL);
    enum status status = STATUS_OK;
    for (size_t i = 0; i < options->alert_count && status == STATUS_OK; i++) {
        struct alert_rule *rule = &alerts->rules[alerts->rule_count];
        status = parse_rule(options->alerts[i], rule, error);
        buffer_init(&rule->text, TEXT_BYTES_MAX);
        rule->is_sent = true; /* nothing is to be said while it does not fire */
        alerts->rule_count++;
    }
    if (status == STATUS_OK && options->alert_webhook) {
        alerts->curl = curl_library_get(error);
        if (!alerts->curl) status = STATUS_UNSUPPORTED;
    }
    if (status == STATUS_OK && pthread_create(&alerts->thread, NULL, run_alerts, alerts) != 0)
        status = error_set(error, STATUS_NO_MEMORY, 0, "cannot start a thread");
    if (status == STATUS_OK) {
        *ret_alerts = alerts;
        return STATUS_OK;
    }
    (void)pthread_mutex_destroy(&alerts->lock);
    free(alerts);
    return status;
}

void alerts_stop(struct alerts *alerts)
{
    if (!alerts) return;
    (void)pthread_join(alerts->thread, NULL);
    for (size_t i = 0; i < alerts->rule_count; i++) buffer_fini(&alerts->rules[i].text);
    (void)pthread_mutex_destroy(&alerts->lock);
    free(alerts);
}

void alerts_write_metrics(struct alerts *alerts, struct buffer *out)
{
    if (!alerts) return;
    buffer_append_text(out, "# HELP offbeat_alert_firing Whether the rule holds.\n# TYPE offbeat_alert_firing gauge\n");
    (void)pthread_mutex_lock(&alerts->lock);
    for (size_t i = 0; i < alerts->rule_count; i++) {
        buffer_append_text(out, "offbeat_alert_firing{name=\"");
        for (const char *c = alerts->rules[i].name; *c; c++)
            buffer_append_format(out, strchr("\\\"\n", *c) ? "\\%c" : "%c", *c == '\n' ? 'n' : *c);
        buffer_append_format(out, "\"} %d\n", alerts->rules[i].is_firing);
    }
    (void)pthread_mutex_unlock(&alerts->lock);
}
