/* Transactions and spans: what is sent of them reads back with the reader of the receiving side, links to the profile
 * (LNK-1, LNK-2, LNK-3), and everything made is either handed over or reported.  SPDX-License-Identifier: MIT */
#include "test.h"

#include "base/json_reader.h"
#include "format/sentry/transaction.h"
#include "trace/trace.h"

#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROFILER "396db3692b7746b88f609446f08703ae"
#define PROFILER_2 "71bba98d90b545c39f2ae73f702d7ef4"
#define TRACE "8450ef61f4aa4d4d976c50a41715229d"
#define SPAN "abd71dabf8bde62b"
#define CHECK_SLICE(slice, text) CHECK(slice_equals_text((slice), (text)))

/* --- A listener that keeps what it hears -------------------------------------------------------------------------- */

static struct heard {
    pthread_mutex_t lock;
    struct tracer *tracer;
    struct trace_transaction *last; /* complete */
    size_t finished, finished_spans;
    size_t transactions_discarded, spans_discarded;
    char reasons[512]; /* "REASON CATEGORY QUANTITY;" */
    char roots[512];   /* "+2" a second sampled root, "-1" one is left, lower case u for unsampled ones */
    uint32_t tokens, last_token;
    double sampler_rate;
    struct trace_sampling_context asked;
    const char *debug;
    const char *profiler_from_first_root;
} heard;

static void on_finished(void *data, struct trace_transaction *transaction)
{
    (void)pthread_mutex_lock(&heard.lock);
    struct trace_transaction *before = heard.last;
    heard.last = transaction;
    heard.finished++;
    heard.finished_spans += trace_transaction_facts(transaction).span_count + 1;
    (void)pthread_mutex_unlock(&heard.lock);
    trace_transaction_free(before); /* it may report */
}

static void on_discarded(void *data, const char *reason, const char *category, uint64_t quantity)
{
    char text[64];
    bool is_span = strcmp(category, "span") == 0;
    (void)pthread_mutex_lock(&heard.lock);
    (void)snprintf(text, sizeof(text), "%s %s %" PRIu64 ";", reason, category, quantity);
    if (strlen(heard.reasons) + strlen(text) < sizeof(heard.reasons)) strcat(heard.reasons, text);
    *(is_span ? &heard.spans_discarded : &heard.transactions_discarded) += quantity;
    (void)pthread_mutex_unlock(&heard.lock);
}

static void hear_root(char sign, bool is_sampled, size_t open)
{
    char text[16];
    (void)snprintf(text, sizeof(text), "%s%c%zu ", is_sampled ? "" : "u", sign, open);
    if (strlen(heard.roots) + strlen(text) < sizeof(heard.roots)) strcat(heard.roots, text);
}

static uint32_t on_root_started(void *data, bool is_sampled, const char *trace_id, size_t open)
{
    hear_root('+', is_sampled, open);
    if (is_sampled && open == 1 && heard.profiler_from_first_root) {
        tracer_set_profiler(heard.tracer, heard.profiler_from_first_root);
    }
    return ++heard.tokens;
}

static void on_root_ended(void *data, uint32_t token, bool is_sampled, size_t open)
{
    hear_root('-', is_sampled, open);
    heard.last_token = token;
    if (is_sampled && open == 0 && heard.profiler_from_first_root) tracer_set_profiler(heard.tracer, NULL);
}

static double on_sample(void *data, const struct trace_sampling_context *context)
{
    heard.asked = *context;
    return heard.sampler_rate;
}

static void on_debug(void *data, const char *message)
{
    heard.debug = message;
}

static struct tracer *begin_with(struct tracer_options options)
{
    trace_transaction_free(heard.last);
    heard = (struct heard){.lock = PTHREAD_MUTEX_INITIALIZER};
    options.listener.root_started = on_root_started;
    options.listener.root_ended = on_root_ended;
    options.listener.finished = on_finished;
    options.listener.discarded = on_discarded;
    options.listener.debug = on_debug;
    heard.tracer = tracer_new(&options);
    return heard.tracer;
}

static struct tracer *begin_at_rate(double rate)
{
    return begin_with((struct tracer_options){.release = "a@1",
                                              .public_key = "49d0f7386ad645858ae85020e393bef3",
                                              .has_traces_sample_rate = true,
                                              .traces_sample_rate = rate});
}

static void end(struct tracer *tracer)
{
    tracer_free(tracer);
    trace_transaction_free(heard.last);
    heard.last = NULL;
}

static struct trace_span *start_root(struct tracer *tracer)
{
    return trace_transaction_start(tracer,
                                   &(struct trace_start){.name = "GET /", .op = "http", .source = TRACE_SOURCE_ROUTE});
}

/* The last complete transaction as it is sent, and as it is read. */
static struct sent {
    struct buffer payload;
    struct transaction transaction;
} sent;

static const struct transaction *send_last(void)
{
    transaction_fini(&sent.transaction);
    buffer_fini(&sent.payload);
    buffer_init(&sent.payload, 2 * TRACE_PAYLOAD_BYTES_MAX);
    if (!heard.last) return NULL;
    trace_transaction_encode(heard.last, &sent.payload);
    bool is_read = transaction_decode(buffer_slice(&sent.payload), &sent.transaction, NULL) == STATUS_OK;
    return is_read && !sent.payload.failed ? &sent.transaction : NULL;
}

static bool payload_has(const char *text)
{
    return memmem(sent.payload.data, sent.payload.size, text, strlen(text));
}

static const char *raw_thread(void)
{
    static __thread char id[16];
    (void)snprintf(id, sizeof(id), "%d", (int)gettid());
    return id;
}

/* --- What is sent ------------------------------------------------------------------------------------------------- */

TEST(a_transaction_reads_back_as_it_was_made)
{
    struct tracer *tracer = begin_at_rate(1);
    struct trace_span *root = start_root(tracer), *child = trace_span_start_child(root, "db", "SELECT 1");
    trace_span_set_status(child, TRACE_STATUS_NOT_FOUND);
    trace_span_set_status(root, TRACE_STATUS_OK);
    trace_span_finish(child);
    trace_span_finish(root);
    const struct transaction *transaction = send_last();
    CHECK(transaction);
    struct trace_facts facts = trace_transaction_facts(heard.last);
    CHECK_TEXT(transaction->event_id, facts.event_id);
    CHECK_SLICE(transaction->root.trace_id, facts.trace_id);
    CHECK_SLICE(transaction->name, facts.name);
    CHECK(facts.start_ns == transaction->root.start_ns && facts.end_ns == transaction->root.end_ns);
    CHECK_INT(facts.thread, gettid());
    CHECK_UINT(facts.span_count, 1);
    CHECK_SLICE(transaction->name, "GET /");
    CHECK_SLICE(transaction->platform, "native");
    CHECK_SLICE(transaction->release, "a@1");
    CHECK_SLICE(transaction->environment, "production");
    CHECK_SLICE(transaction->root.op, "http");
    CHECK_SLICE(transaction->root.status, "ok");
    CHECK_SLICE(transaction->root.parent_span_id, "");
    CHECK_UINT(transaction->spans.count, 1);
    const struct span *span = &transaction->spans.items[0];
    CHECK_SLICE(span->op, "db");
    CHECK_SLICE(span->description, "SELECT 1");
    CHECK_SLICE(span->status, "not_found");
    CHECK(slice_equal(span->parent_span_id, transaction->root.span_id));
    CHECK(slice_equal(span->trace_id, transaction->root.trace_id));
    CHECK(!slice_equal(span->span_id, transaction->root.span_id));
    CHECK(transaction->root.start_ns <= span->start_ns && span->start_ns <= span->end_ns);
    CHECK(span->end_ns <= transaction->root.end_ns);
    CHECK(transaction->root.start_ns > 1700000000000000000u);
    CHECK(payload_has("\"transaction_info\":{\"source\":\"route\"}"));
    CHECK(payload_has("\"sdk\":{\"name\":\"offbeat\",\"version\":\"" OFFBEAT_VERSION "\"}"));
    end(tracer);
}

TEST(data_and_tags_are_sent_and_the_last_value_of_a_key_counts)
{
    struct tracer *tracer = begin_at_rate(1);
    struct trace_span *root = start_root(tracer), *child = trace_span_start_child(root, "op", NULL);
    CHECK(trace_span_set_text(child, "text", "old"));
    CHECK(trace_span_set_text(child, "text", "new \"\n"));
    CHECK(trace_span_set_number(child, "number", 0.25));
    CHECK(!trace_span_set_number(child, "infinite", INFINITY));
    CHECK(!trace_span_set_number(child, "no number", NAN));
    CHECK(trace_span_set_bool(child, "flag", true));
    CHECK(trace_span_set_tag(child, "text", "tag"));
    CHECK(trace_span_set_tag(root, "zone", "eu"));
    CHECK(trace_span_set_text(root, "url", "/x"));
    trace_span_set_description(child, "described later");
    trace_span_finish(child);
    trace_span_set_transaction_name(root, "renamed", TRACE_SOURCE_TASK);
    trace_span_finish(root);
    const struct transaction *transaction = send_last();
    CHECK(transaction);
    CHECK(payload_has("\"text\":\"new \\\"\\n\",\"number\":0.25,\"flag\":true}"));
    CHECK(payload_has("\"tags\":{\"text\":\"tag\"}"));
    CHECK(payload_has("\"tags\":{\"zone\":\"eu\"},\"contexts\""));
    CHECK(payload_has("\"url\":\"/x\"}}},\"spans\""));
    CHECK(payload_has("\"source\":\"task\""));
    CHECK_SLICE(transaction->name, "renamed");
    CHECK_SLICE(transaction->spans.items[0].description, "described later");
    end(tracer);
}

static bool keeps_all_but_named_dropped(void *context, struct trace_span *span)
{
    bool is_dropped = strcmp(trace_span_description(span), "dropped") == 0;
    CHECK(trace_span_set_tag(span, "tag", context));
    return !is_dropped;
}

TEST(a_complete_transaction_is_changed_only_while_it_is_edited)
{
    char tag[] = "new";
    struct tracer *tracer = begin_at_rate(1);
    struct trace_span *root = trace_span_ref(start_root(tracer));
    CHECK(trace_span_set_user(root, &(struct trace_user){.id = "first", .email = "a@b"}));
    CHECK(trace_span_set_user(root, &(struct trace_user){.id = "7"}));
    CHECK(trace_span_set_integer(root, "count", INT64_MIN));
    CHECK(trace_span_set_text(root, "secret", "x"));
    trace_span_finish(trace_span_start_child(root, "op", "dropped"));
    trace_span_finish(trace_span_start_child(root, "op", "kept"));
    CHECK(!trace_span_op(root) && !trace_span_entry(root, 0)); /* other threads may change it */
    trace_span_finish(root);
    CHECK(!trace_span_set_text(root, "late", "x"));
    trace_transaction_begin_edit(heard.last);
    CHECK(trace_transaction_root(heard.last) == root);
    CHECK_UINT(trace_transaction_filter(heard.last, keeps_all_but_named_dropped, tag), 1);
    CHECK_TEXT(trace_span_transaction_name(root), "GET /");
    CHECK_TEXT(trace_span_entry(root, 1)->key, "secret");
    CHECK(trace_span_remove(root, "secret", false) && !trace_span_remove(root, "secret", false));
    CHECK(!trace_span_remove(root, "count", true) && !trace_span_entry(root, 1));
    trace_span_set_transaction_name(root, "edited", TRACE_SOURCE_ROUTE);
    trace_transaction_end_edit(heard.last);
    CHECK(!trace_span_set_text(root, "late", "x") && !trace_span_op(root));
    const struct transaction *transaction = send_last();
    CHECK(transaction);
    CHECK_SLICE(transaction->name, "edited");
    CHECK_UINT(transaction->spans.count, 1);
    CHECK_UINT(trace_transaction_facts(heard.last).span_count, 1);
    CHECK(payload_has("\"user\":{\"id\":\"7\"}") && payload_has("\"count\":-9223372036854775808}"));
    CHECK(payload_has("\"tags\":{\"tag\":\"new\"}") && !payload_has("secret") && !payload_has("late"));
    trace_span_unref(root);
    end(tracer);
}

TEST(a_status_or_source_out_of_range_changes_nothing)
{
    static const int wrong[] = {-1, 18, 25, 300000, INT_MAX, INT_MIN};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        struct tracer *tracer = begin_at_rate(1);
        struct trace_start start = {
            .name = "kept", .source = (enum trace_source)wrong[i], .decision = (enum trace_decision)wrong[i]};
        trace_span_unref(trace_transaction_start(tracer, &start));
        struct trace_span *root = start_root(tracer);
        trace_span_set_status(root, TRACE_STATUS_NOT_FOUND);
        trace_span_set_status(root, (enum trace_status)wrong[i]);
        trace_span_set_transaction_name(root, "kept", TRACE_SOURCE_TASK);
        trace_span_set_transaction_name(root, "changed", (enum trace_source)wrong[i]);
        trace_span_finish(root);
        const struct transaction *transaction = send_last();
        CHECK(transaction);
        CHECK_SLICE(transaction->name, "kept");
        CHECK(payload_has("\"source\":\"task\""));
        CHECK(payload_has("\"status\":\"not_found\""));
        end(tracer);
    }
}

TEST(texts_are_cut_between_characters_and_entries_have_a_maximum)
{
    struct tracer *tracer = begin_at_rate(1);
    struct trace_span *root = start_root(tracer);
    char name[2 * TRACE_NAME_BYTES_MAX], key[16];
    memset(name, 'x', sizeof(name));
    memcpy(name + TRACE_NAME_BYTES_MAX - 1, "\xC3\xA4", 2);
    name[sizeof(name) - 1] = '\0';
    trace_span_set_transaction_name(root, name, TRACE_SOURCE_CUSTOM);
    for (unsigned i = 0; i < 2 * TRACE_ENTRIES_MAX; i++) {
        (void)snprintf(key, sizeof(key), "key%u", i);
        CHECK_UINT(trace_span_set_bool(root, key, true), i < TRACE_ENTRIES_MAX);
    }
    CHECK(!trace_span_set_text(root, "thread.id", "1"));
    CHECK(!trace_span_set_text(root, "", "1"));
    CHECK(!trace_span_set_text(root, NULL, "1"));
    trace_span_finish(root);
    CHECK(send_last());
    CHECK_UINT(sent.transaction.name.size, TRACE_NAME_BYTES_MAX - 1);
    end(tracer);
}

TEST(a_key_that_is_set_again_and_again_uses_nothing_up)
{
    struct tracer *tracer = begin_at_rate(1);
    struct trace_span *root = start_root(tracer);
    char text[TRACE_DATA_BYTES_MAX + 1];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    for (unsigned i = 0; i < 3 * TRACE_TEXT_BYTES_MAX / TRACE_DATA_BYTES_MAX; i++) {
        CHECK(trace_span_set_text(root, "progress", text));
        trace_span_set_description(root, text);
    }
    trace_span_finish(root);
    end(tracer);
}

/* --- Links to the profile ----------------------------------------------------------------------------------------- */

/* Longer than all else that these tests do. */
static void rest(void)
{
    (void)usleep(20000);
}

/* A root that begins may restart the profiler (SES-9). */
TEST(a_transaction_names_the_profiler_that_ran_longest_in_it_LNK_1)
{
    struct tracer *tracer = begin_at_rate(1);
    tracer_set_profiler(tracer, PROFILER);
    rest();
    struct trace_span *root = start_root(tracer);
    tracer_set_profiler(tracer, PROFILER_2);
    rest();
    trace_span_finish(root);
    CHECK_SLICE(send_last()->root.profiler_id, PROFILER_2);
    end(tracer);
}

TEST(transactions_and_spans_name_their_profilers_LNK_1_LNK_3)
{
    struct tracer *tracer = begin_at_rate(1);
    tracer_set_profiler(tracer, PROFILER);
    struct trace_span *root = start_root(tracer), *first = trace_span_start_child(root, "first", NULL);
    rest();
    tracer_set_profiler(tracer, PROFILER_2);
    struct trace_span *second = trace_span_start_child(root, "second", NULL);
    tracer_set_profiler(tracer, NULL);
    trace_span_finish(first);
    trace_span_finish(second);
    trace_span_finish(trace_span_start_child(root, "after", NULL));
    trace_span_finish(root);
    const struct transaction *transaction = send_last();
    CHECK_SLICE(transaction->root.profiler_id, PROFILER);
    CHECK_SLICE(transaction->spans.items[0].profiler_id, PROFILER);
    CHECK_SLICE(transaction->spans.items[1].profiler_id, PROFILER_2);
    CHECK_SLICE(transaction->spans.items[2].profiler_id, "");
    end(tracer);
}

TEST(spans_name_one_of_many_profilers_unless_forgotten_LNK_1_LNK_3)
{
    struct tracer *tracer = begin_at_rate(1);
    char id[UUID_TEXT_SIZE];
    tracer_set_profiler(tracer, PROFILER);
    struct trace_span *old = start_root(tracer), *child = trace_span_start_child(old, "old", NULL);
    for (unsigned i = 0; i < TRACE_PROFILERS_KEPT_MAX + 7; i++) {
        (void)usleep(2);
        CHECK(uuid_new(id));
        tracer_set_profiler(tracer, id);
        (void)usleep(2);
        trace_span_finish(start_root(tracer));
        CHECK_SLICE(send_last()->root.profiler_id, id);
    }
    trace_span_finish(child);
    trace_span_finish(old);
    CHECK_SLICE(send_last()->spans.items[0].profiler_id, "");
    CHECK(sent.transaction.root.profiler_id.size > 0); /* the oldest one that is still known */
    end(tracer);
}

TEST(names_a_profiler_only_if_it_overlaps_the_transaction_LNK_1)
{
    struct tracer *tracer = begin_at_rate(1);
    struct trace_span *root = start_root(tracer);
    tracer_set_profiler(tracer, PROFILER);
    tracer_set_profiler(tracer, NULL);
    trace_span_finish(root);
    CHECK_SLICE(send_last()->root.profiler_id, PROFILER);
    (void)usleep(2);
    trace_span_finish(start_root(tracer));
    CHECK_SLICE(send_last()->root.profiler_id, "");
    CHECK(!payload_has("profile"));
    end(tracer);
}

TEST(the_profiler_that_the_first_root_starts_is_linked_to_that_root_LNK_1)
{
    struct tracer *tracer = begin_at_rate(1);
    heard.profiler_from_first_root = PROFILER;
    trace_span_finish(start_root(tracer));
    CHECK_SLICE(send_last()->root.profiler_id, PROFILER);
    end(tracer);
}

static void *work_on_another_thread(void *parent)
{
    trace_span_unref(trace_span_current());
    (void)prctl(PR_SET_NAME, "worker"); /* after it was looked at: seen when it enters a span */
    struct trace_span *span = trace_span_start_child(parent, "work", raw_thread());
    (void)trace_span_enter(span);
    trace_span_finish(trace_span_start("inner", raw_thread()));
    trace_span_finish(span);
    trace_span_unref(parent);
    return NULL;
}

static void on_other_thread(void *(*run)(void *), void *argument)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, argument) == 0) (void)pthread_join(thread, NULL);
}

TEST(spans_have_the_last_name_that_their_thread_had_LNK_4)
{
    struct tracer *tracer = begin_at_rate(1);
    (void)prctl(PR_SET_NAME, "at start");
    struct trace_span *root = start_root(tracer);
    trace_span_finish(trace_span_start_child(root, "before", NULL));
    (void)prctl(PR_SET_NAME, "later");
    rest();
    trace_span_finish(root);
    const struct transaction *transaction = send_last();
    CHECK_SLICE(transaction->root.thread_name, "later");
    CHECK_SLICE(transaction->spans.items[0].thread_name, "later");
    end(tracer);
}

TEST(root_and_spans_name_the_thread_they_started_on_LNK_2_LNK_3)
{
    struct tracer *tracer = begin_at_rate(1);
    (void)prctl(PR_SET_NAME, "at start");
    struct trace_span *root = start_root(tracer);
    on_other_thread(work_on_another_thread, trace_span_ref(root));
    trace_span_finish(trace_span_start_child(root, "here", NULL));
    trace_span_finish(root);
    const struct transaction *transaction = send_last();
    CHECK_UINT(transaction->spans.count, 3);
    CHECK_SLICE(transaction->root.thread_id, raw_thread());
    CHECK_SLICE(transaction->root.thread_name, "at start");
    for (size_t i = 0; i < 2; i++) {
        const struct span *span = &transaction->spans.items[i];
        CHECK(slice_equal(span->thread_id, span->description)); /* the thread's own description */
        CHECK(!slice_equal(span->thread_id, transaction->root.thread_id));
        CHECK_SLICE(span->thread_name, "worker");
    }
    CHECK_SLICE(transaction->spans.items[0].op, "inner");
    CHECK(slice_equal(transaction->spans.items[0].parent_span_id, transaction->spans.items[1].span_id));
    CHECK_SLICE(transaction->spans.items[2].thread_id, raw_thread());
    end(tracer);
}

/* --- Nesting ------------------------------------------------------------------------------------------------------ */

TEST(the_current_span_is_the_last_entered_that_is_not_finished)
{
    struct tracer *tracer = begin_at_rate(1);
    CHECK(!trace_span_current() && !trace_span_start("orphan", NULL));
    struct trace_span *root = start_root(tracer);
    CHECK(!trace_span_current());
    CHECK(trace_span_enter(root));
    CHECK(!trace_span_enter(root)); /* once is enough */
    struct trace_span *outer = trace_span_start("outer", NULL), *inner = trace_span_start("inner", NULL);
    trace_span_finish(outer); /* before what is in it */
    struct trace_span *current = trace_span_current();
    CHECK(current == inner);
    trace_span_unref(current);
    trace_span_leave(inner);
    current = trace_span_current();
    CHECK(current == root);
    trace_span_unref(current);
    trace_span_finish(inner);
    trace_span_finish(root);
    CHECK(!trace_span_current());
    CHECK_UINT(send_last()->spans.count, 2);
    CHECK(slice_equal(sent.transaction.spans.items[1].parent_span_id, sent.transaction.spans.items[0].span_id));
    end(tracer);
}

static void *finish_here(void *span)
{
    trace_span_finish(span);
    return NULL;
}

static void *enter_and_end(void *span)
{
    (void)trace_span_enter(span);
    return NULL;
}

TEST(finishing_a_span_or_ending_a_thread_clears_the_current_span)
{
    struct tracer *tracer = begin_at_rate(1);
    struct trace_span *root = start_root(tracer), *child = trace_span_start_child(root, "op", NULL);
    CHECK(trace_span_enter(root) && trace_span_enter(child));
    on_other_thread(finish_here, child);
    struct trace_span *current = trace_span_current();
    CHECK(current == root);
    trace_span_unref(current);
    trace_span_leave(root);
    on_other_thread(enter_and_end, root);
    CHECK(trace_span_enter(root));
    trace_span_finish(root);
    end(tracer);
}

TEST(frees_finished_spans_at_once_or_when_their_thread_returns)
{
    struct tracer *tracer = begin_at_rate(0);
    struct trace_span *first = start_root(tracer), *second = start_root(tracer);
    CHECK(trace_span_enter(first) && trace_span_enter(second));
    on_other_thread(finish_here, first);
    CHECK_UINT(heard.transactions_discarded, 0);
    struct trace_span *current = trace_span_current();
    CHECK(current == second);
    CHECK_UINT(heard.transactions_discarded, 1); /* from below the current one */
    trace_span_unref(current);
    trace_span_finish(second);
    CHECK_UINT(heard.transactions_discarded, 2);
    end(tracer);
}

TEST(a_child_may_outlive_its_parent_but_not_the_root)
{
    struct tracer *tracer = begin_at_rate(1);
    struct trace_span *root = start_root(tracer), *parent = trace_span_start_child(root, "parent", NULL);
    struct trace_span *child = trace_span_start_child(parent, "child", NULL);
    struct trace_span *late = trace_span_start_child(parent, "late", NULL);
    trace_span_finish(parent);
    trace_span_finish(child);
    trace_span_ref(root);
    trace_span_finish(root);
    CHECK(!trace_span_set_bool(root, "after", true));
    struct trace_span *later = trace_span_start_child(root, "later", NULL);
    trace_span_finish(late);
    trace_span_finish(later);
    trace_span_finish(root); /* again: nothing */
    const struct transaction *transaction = send_last();
    CHECK_UINT(transaction->spans.count, 2);
    CHECK(transaction->spans.items[1].end_ns >= transaction->spans.items[0].end_ns);
    CHECK_UINT(heard.finished, 1);
    end(tracer);
}

/* --- Everything is accounted for ---------------------------------------------------------------------------------- */

/* The data that is kept until the last reference is released. */
static void let_go(void)
{
    trace_transaction_free(heard.last);
    heard.last = NULL;
}

TEST(spans_that_are_unfinished_at_the_end_of_the_root_are_reported)
{
    struct tracer *tracer = begin_at_rate(1);
    struct trace_span *root = start_root(tracer), *late = trace_span_start_child(root, "late", NULL);
    trace_span_unref(trace_span_start_child(root, "given up", NULL));
    trace_span_finish(root);
    trace_span_finish(late);
    let_go();
    CHECK_TEXT(heard.reasons, "no_parent_span span 2;");
    end(tracer);
}

TEST(a_transaction_has_at_most_1000_spans_and_the_others_are_reported)
{
    struct tracer *tracer = begin_at_rate(1);
    struct trace_span *root = start_root(tracer);
    for (size_t i = 0; i < TRACE_SPANS_MAX + 7; i++) trace_span_finish(trace_span_start_child(root, "op", NULL));
    struct trace_parent parent;
    struct trace_span *beyond = trace_span_start_child(root, "op", NULL);
    CHECK(trace_span_parent(beyond, &parent)); /* the functions that it calls still belong to the trace */
    trace_span_finish(beyond);
    trace_span_finish(root);
    CHECK_UINT(send_last()->spans.count, TRACE_SPANS_MAX);
    let_go();
    CHECK_TEXT(heard.reasons, "buffer_overflow span 8;");
    end(tracer);
}

TEST(limits_a_payload_to_one_mebibyte_and_reports_dropped_spans)
{
    struct tracer *tracer = begin_at_rate(1);
    struct trace_span *root = start_root(tracer);
    char text[TRACE_DATA_BYTES_MAX + 1], key[16];
    memset(text, 1, sizeof(text) - 1); /* six bytes of JSON each */
    text[sizeof(text) - 1] = '\0';
    for (unsigned i = 0; i < TRACE_ENTRIES_MAX; i++) {
        (void)snprintf(key, sizeof(key), "%u", i);
        CHECK(trace_span_set_text(root, key, text));
    }
    for (size_t i = 0; i < TRACE_SPANS_MAX; i++) trace_span_finish(trace_span_start_child(root, "op", text));
    trace_span_finish(root);
    const struct transaction *transaction = send_last();
    CHECK(transaction);
    CHECK(sent.payload.size <= TRACE_PAYLOAD_BYTES_MAX && sent.payload.size > TRACE_PAYLOAD_BYTES_MAX * 9 / 10);
    size_t count = transaction->spans.count;
    CHECK(count > 10 && count < TRACE_SPANS_MAX);
    CHECK_UINT(trace_transaction_facts(heard.last).span_count, count); /* the others are counted once */
    let_go();
    CHECK_UINT(heard.spans_discarded, TRACE_SPANS_MAX - count);
    end(tracer);
}

TEST(an_unsampled_transaction_is_reported_with_its_spans_and_not_sent)
{
    struct tracer *tracer = begin_at_rate(0);
    struct trace_span *root = start_root(tracer);
    CHECK(!trace_span_is_sampled(root));
    trace_span_finish(trace_span_start_child(root, "op", NULL));
    CHECK(trace_span_set_tag(root, "a", "b"));
    trace_span_finish(root);
    CHECK_UINT(heard.finished, 0);
    CHECK_TEXT(heard.reasons, "sample_rate transaction 1;sample_rate span 2;");
    end(tracer);
}

TEST(reports_an_abandoned_transaction_and_ends_it_for_the_profiler)
{
    struct tracer *tracer = begin_at_rate(1);
    struct trace_span *root = start_root(tracer);
    trace_span_finish(trace_span_start_child(root, "op", NULL));
    trace_span_unref(root);
    CHECK_TEXT(heard.reasons, "invalid transaction 1;invalid span 2;");
    CHECK_TEXT(heard.roots, "+1 -0 ");
    end(tracer);
}

TEST(more_open_transactions_than_the_maximum_are_rejected_and_reported)
{
    static struct trace_span *roots[TRACE_TRANSACTIONS_OPEN_MAX];
    struct tracer *tracer = begin_at_rate(0);
    for (size_t i = 0; i < TRACE_TRANSACTIONS_OPEN_MAX; i++) CHECK((roots[i] = start_root(tracer)));
    CHECK(!start_root(tracer));
    CHECK_TEXT(heard.reasons, "buffer_overflow transaction 1;buffer_overflow span 1;");
    for (size_t i = 0; i < TRACE_TRANSACTIONS_OPEN_MAX; i++) trace_span_finish(roots[i]);
    struct trace_span *root = start_root(tracer);
    CHECK(root);
    trace_span_finish(root);
    end(tracer);
}

/* --- Who listens -------------------------------------------------------------------------------------------------- */

TEST(reports_the_first_and_last_sampled_root_if_they_overlap)
{
    struct tracer *tracer = begin_at_rate(1);
    struct trace_span *first = start_root(tracer), *second = start_root(tracer);
    struct trace_span *unsampled =
        trace_transaction_start(tracer, &(struct trace_start){.name = "u", .decision = TRACE_NOT_SAMPLED});
    trace_span_finish(first);
    CHECK_UINT(heard.last_token, 1);
    CHECK_UINT(trace_transaction_facts(heard.last).token, 1);
    struct trace_span *third = start_root(tracer);
    trace_span_finish(second);
    trace_span_finish(unsampled);
    trace_span_finish(third);
    CHECK_TEXT(heard.roots, "+1 +2 u+2 -1 +2 -1 u-1 -0 ");
    trace_span_finish(start_root(tracer));
    CHECK_TEXT(heard.roots + strlen("+1 +2 u+2 -1 +2 -1 u-1 -0 "), "+1 -0 ");
    end(tracer);
}

TEST(a_closed_tracer_starts_and_reports_nothing)
{
    struct tracer *tracer = begin_at_rate(1);
    struct trace_span *root = start_root(tracer), *child = trace_span_start_child(root, "op", NULL);
    tracer_close(tracer);
    tracer_close(tracer);
    CHECK(!start_root(tracer));
    trace_span_finish(child);
    tracer_free(tracer);
    trace_span_finish(root);
    CHECK_UINT(heard.finished, 0);
    CHECK_TEXT(heard.reasons, "");
    CHECK_TEXT(heard.roots, "+1 ");
    end(NULL);
}

TEST(everything_accepts_NULL)
{
    struct trace_parent parent;
    struct buffer out = {.maximum = 10};
    tracer_free(NULL);
    tracer_set_profiler(NULL, PROFILER);
    CHECK(!trace_transaction_start(NULL, &(struct trace_start){.name = "n"}));
    CHECK(!trace_span_start_child(NULL, "op", "d") && !trace_span_ref(NULL) && !trace_span_enter(NULL));
    CHECK(!trace_span_set_tag(NULL, "k", "v") && !trace_span_set_bool(NULL, "k", true) && !trace_span_is_sampled(NULL));
    CHECK(!trace_span_parent(NULL, &parent) && !trace_span_baggage(NULL, (struct slice){0}, &out));
    trace_span_set_status(NULL, TRACE_STATUS_OK);
    trace_span_set_description(NULL, "d");
    trace_span_set_transaction_name(NULL, "n", TRACE_SOURCE_URL);
    trace_span_leave(NULL);
    trace_span_unref(NULL);
    trace_span_finish(NULL);
    trace_transaction_free(NULL);
}

/* --- Sampling and propagation ------------------------------------------------------------------------------------- */

static struct tracer *begin_with_sampler(double rate)
{
    struct tracer *tracer = begin_with((struct tracer_options){.listener = {.sample = on_sample}});
    heard.sampler_rate = rate;
    return tracer;
}

static struct trace_incoming incoming_of(const char *sentry_trace, const char *baggage)
{
    struct trace_incoming incoming = {0};
    struct trace_headers headers = {.sentry_trace = slice_of_text(sentry_trace), .baggage = slice_of_text(baggage)};
    trace_incoming_read(&incoming, &headers, &(struct trace_continuation){0});
    return incoming;
}

static const char *baggage_of(struct trace_span *span)
{
    static char text[512];
    struct buffer out = {.maximum = sizeof(text) - 1};
    (void)trace_span_baggage(span, slice_of_text("other=1"), &out);
    (void)snprintf(text, sizeof(text), "%.*s", (int)out.size, (const char *)out.data);
    buffer_fini(&out);
    return text;
}

TEST(the_sampler_gets_what_starts_and_decides_before_the_parent)
{
    struct tracer *tracer = begin_with_sampler(1);
    struct trace_incoming incoming =
        incoming_of(TRACE "-" SPAN "-0", "sentry-trace_id=" TRACE ",sentry-sample_rate=0.25,sentry-sample_rand=0.5");
    struct trace_span *root = trace_transaction_start(
        tracer, &(struct trace_start){.name = "n", .op = "o", .incoming = &incoming, .custom = tracer});
    CHECK(trace_span_is_sampled(root));
    CHECK_UINT(heard.asked.parent, TRACE_NOT_SAMPLED);
    CHECK(heard.asked.custom == tracer && heard.asked.parent_rate == 0.25);
    CHECK_TEXT(baggage_of(root), "other=1,sentry-trace_id=" TRACE ",sentry-sample_rand=0.5,sentry-sample_rate=1");
    trace_span_finish(root);
    CHECK_SLICE(send_last()->root.trace_id, TRACE);
    CHECK_SLICE(sent.transaction.root.parent_span_id, SPAN);
    trace_incoming_fini(&incoming);
    end(tracer);
}

/* Whether TRACER samples what continues a trace of the number 0.4; ends it. */
static bool continues_sampled(struct tracer *tracer)
{
    struct trace_incoming incoming = incoming_of(TRACE "-" SPAN, "sentry-trace_id=" TRACE ",sentry-sample_rand=0.4");
    struct trace_span *root =
        trace_transaction_start(tracer, &(struct trace_start){.name = "n", .incoming = &incoming});
    bool is_sampled = trace_span_is_sampled(root);
    trace_span_finish(root);
    end(tracer);
    trace_incoming_fini(&incoming);
    return is_sampled;
}

TEST(the_number_of_a_trace_that_was_received_decides_here_too)
{
    CHECK(!continues_sampled(begin_at_rate(0.4)));
    CHECK(continues_sampled(begin_at_rate(0.400001)));
}

TEST(the_number_of_a_trace_decides_by_the_samplers_rate_too)
{
    CHECK(!continues_sampled(begin_with_sampler(0.3)));
    CHECK(!heard.debug);
    CHECK(continues_sampled(begin_with_sampler(0.5)));
    CHECK(!heard.debug);
}

TEST(the_number_the_rate_and_the_decision_of_a_trace_fit_together)
{
    struct tracer *tracer = begin_at_rate(0.5);
    struct trace_parent parent;
    size_t sampled = 0;
    for (int i = 0; i < 64; i++) {
        struct trace_span *root = start_root(tracer);
        const char *number = strstr(baggage_of(root), "sentry-sample_rand=");
        CHECK(number && trace_span_parent(root, &parent));
        bool is_sampled = trace_span_is_sampled(root);
        CHECK_UINT(is_sampled, strtod(number + strlen("sentry-sample_rand="), NULL) < 0.5);
        CHECK_UINT(parent.decision, is_sampled ? TRACE_SAMPLED : TRACE_NOT_SAMPLED);
        sampled += is_sampled;
        trace_span_finish(root);
    }
    CHECK(sampled > 6 && sampled < 58); /* otherwise about once in 2^53 times */
    CHECK(!heard.debug);
    end(tracer);
}

TEST(a_rate_of_nought_is_a_rate)
{
    struct tracer *tracer = begin_at_rate(0);
    struct trace_span *root = start_root(tracer);
    CHECK(!trace_span_is_sampled(root) && !heard.debug);
    trace_span_finish(root);
    CHECK_TEXT(heard.reasons, "sample_rate transaction 1;sample_rate span 1;");
    end(tracer);
}

/* Compares with a decision by rate. */
static void check_received(const char *decision, enum trace_decision own, bool is_sampled, const char *baggage)
{
    char header[TRACE_HEADER_SIZE];
    struct trace_parent parent;
    (void)snprintf(header, sizeof(header), "%s-%s-%s", TRACE, SPAN, decision);
    struct trace_incoming incoming =
        incoming_of(header, "sentry-trace_id=" TRACE ",sentry-sample_rand=0.1,sentry-sample_rate=0.25");
    struct tracer *tracer = begin_at_rate(is_sampled ? 0 : 1);
    struct trace_span *root =
        trace_transaction_start(tracer, &(struct trace_start){.name = "n", .incoming = &incoming, .decision = own});
    CHECK_UINT(trace_span_is_sampled(root), is_sampled);
    CHECK(trace_span_parent(root, &parent) && parent.decision == (is_sampled ? TRACE_SAMPLED : TRACE_NOT_SAMPLED));
    CHECK_TEXT(baggage_of(root), baggage);
    trace_span_finish(root);
    CHECK_UINT(heard.finished, is_sampled);
    CHECK_TEXT(heard.reasons, is_sampled ? "" : "sample_rate transaction 1;sample_rate span 1;");
    trace_incoming_fini(&incoming);
    end(tracer);
}

TEST(the_caller_decides_before_the_rate_and_the_program_before_the_caller)
{
#define RECEIVED "other=1,sentry-trace_id=" TRACE ",sentry-sample_rand=0.1,sentry-sample_rate="
    check_received("1", TRACE_UNDECIDED, true, RECEIVED "0.25");
    check_received("0", TRACE_UNDECIDED, false, RECEIVED "0.25");
    check_received("0", TRACE_SAMPLED, true, RECEIVED "1");
    check_received("1", TRACE_NOT_SAMPLED, false, RECEIVED "0");
#undef RECEIVED
}

TEST(a_sampler_that_gives_no_rate_samples_nothing_and_says_so)
{
    static const double rates[] = {-0.5, 2, NAN};
    for (size_t i = 0; i < 3; i++) {
        struct tracer *tracer = begin_with_sampler(rates[i]);
        struct trace_span *root = start_root(tracer);
        CHECK(!trace_span_is_sampled(root) && heard.debug);
        trace_span_finish(root);
        end(tracer);
    }
}

TEST(a_trace_of_our_own_says_what_it_is_and_is_frozen_when_it_leaves)
{
    struct tracer *tracer = begin_at_rate(1);
    struct trace_span *root = start_root(tracer);
    struct trace_parent parent;
    char expected[512], header[TRACE_HEADER_SIZE];
    CHECK(trace_span_parent(root, &parent));
    (void)snprintf(expected, sizeof(expected),
                   "other=1,sentry-trace_id=%s,sentry-public_key=49d0f7386ad645858ae85020e393bef3,"
                   "sentry-release=a%%401,sentry-transaction=GET%%20%%2F,sentry-sample_rand=0.",
                   parent.trace_id);
    CHECK(strncmp(baggage_of(root), expected, strlen(expected)) == 0);
    CHECK(strstr(baggage_of(root), ",sentry-sampled=true,sentry-sample_rate=1"));
    trace_span_set_transaction_name(root, "renamed", TRACE_SOURCE_ROUTE);
    CHECK(strncmp(baggage_of(root), expected, strlen(expected)) == 0);
    trace_parent_write(&parent, header);
    CHECK_TEXT(header + strlen(header) - 2, "-1");
    trace_span_finish(root);
    struct buffer json = {.maximum = 1024};
    struct json_writer writer = json_writer_of(&json);
    trace_transaction_write_context(heard.last, &writer);
    CHECK(!json.failed && memmem(json.data, json.size, "\"transaction\":\"GET /\"", 21));
    buffer_fini(&json);
    end(tracer);
}

TEST(a_transaction_named_by_its_url_does_not_pass_its_name_on)
{
    struct tracer *tracer = begin_at_rate(1);
    struct trace_span *root =
        trace_transaction_start(tracer, &(struct trace_start){.name = "/user/17", .source = TRACE_SOURCE_URL});
    CHECK(!strstr(baggage_of(root), "sentry-transaction"));
    trace_span_finish(root);
    end(tracer);
}

TEST(a_trace_received_without_baggage_stays_without)
{
    struct tracer *tracer = begin_at_rate(1);
    struct trace_incoming incoming = incoming_of(TRACE "-" SPAN "-1", "");
    struct trace_span *root =
        trace_transaction_start(tracer, &(struct trace_start){.name = "n", .incoming = &incoming});
    CHECK_TEXT(baggage_of(root), "other=1");
    trace_span_finish(root);
    trace_incoming_fini(&incoming);
    end(tracer);
}

TEST(without_tracing_a_trace_is_passed_on_undecided)
{
    struct tracer *tracer = begin_with((struct tracer_options){0});
    struct trace_span *root = start_root(tracer);
    struct trace_parent parent;
    CHECK(!trace_span_is_sampled(root) && trace_span_parent(root, &parent));
    CHECK_UINT(parent.decision, TRACE_UNDECIDED);
    CHECK(!strstr(baggage_of(root), "sampled"));
    trace_span_finish(root);
    CHECK_TEXT(heard.reasons, "");
    end(tracer);
}

/* --- Processes and threads ---------------------------------------------------------------------------------------- */

static int in_child(struct tracer *tracer, struct trace_span *root)
{
    if (trace_span_current() || trace_span_start_child(root, "op", NULL) || start_root(tracer)) return 1;
    trace_span_finish(root);
    tracer_free(tracer);
    tracer = begin_at_rate(1);
    trace_span_finish(start_root(tracer));
    if (heard.finished != 1 || !send_last()) return 2;
    return slice_equals_text(sent.transaction.root.thread_id, raw_thread()) ? 0 : 3;
}

TEST(a_forked_child_ignores_spans_of_the_parent)
{
    struct tracer *tracer = begin_at_rate(1);
    struct trace_span *root = start_root(tracer);
    int status = -1;
    CHECK(trace_span_enter(root));
    pid_t child = fork();
    if (child == 0) _exit(in_child(tracer, root));
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_INT(WEXITSTATUS(status), 0);
    trace_span_finish(root);
    CHECK_UINT(heard.finished, 1);
    end(tracer);
}

enum { CROWD = 4, ROUNDS = 300 };

static void *one_of_a_crowd(void *shared)
{
    for (int i = 0; i < ROUNDS; i++) {
        struct trace_span *own = start_root(heard.tracer);
        (void)trace_span_enter(own);
        struct trace_span *common = trace_span_start_child(shared, "common", NULL);
        (void)trace_span_set_number(shared, "round", i);
        (void)trace_span_set_tag(common, "round", "x");
        trace_span_set_description(shared, "busy");
        trace_span_finish(trace_span_start("inner", "text"));
        struct trace_span *left = trace_span_start("left", NULL);
        if (i % 16 == 0) tracer_set_profiler(heard.tracer, i % 32 ? PROFILER : NULL);
        trace_span_finish(common);
        trace_span_finish(own);
        trace_span_finish(left);
    }
    trace_span_unref(shared);
    return NULL;
}

TEST(of_many_threads_everything_made_is_handed_over_or_reported)
{
    struct tracer *tracer = begin_at_rate(0.5);
    pthread_t threads[CROWD];
    struct trace_span *shared =
        trace_transaction_start(tracer, &(struct trace_start){.name = "shared", .decision = TRACE_SAMPLED});
    for (size_t i = 0; i < CROWD; i++)
        CHECK(pthread_create(&threads[i], NULL, one_of_a_crowd, trace_span_ref(shared)) == 0);
    for (size_t i = 0; i < CROWD / 2; i++) (void)pthread_join(threads[i], NULL);
    trace_span_finish(shared); /* while the others still work in it */
    for (size_t i = CROWD / 2; i < CROWD; i++) (void)pthread_join(threads[i], NULL);
    CHECK(send_last());
    let_go();
    CHECK_UINT(heard.finished + heard.transactions_discarded, CROWD * ROUNDS + 1);
    CHECK_UINT(heard.finished_spans + heard.spans_discarded, CROWD * ROUNDS * 4 + 1);
    end(tracer);
}

static atomic_bool is_over;
static atomic_size_t reported_too_late;

static void on_anything(void *data, const char *reason, const char *category, uint64_t quantity)
{
    if (atomic_load(&is_over)) atomic_fetch_add(&reported_too_late, 1);
}

static void *start_until_it_is_over(void *tracer)
{
    for (int i = 0; i < 100000 && !atomic_load(&is_over); i++) trace_span_finish(start_root(tracer));
    trace_span_finish(start_root(tracer));
    return NULL;
}

TEST(a_tracer_closed_while_others_trace_reports_nothing_later)
{
    struct tracer *tracer =
        tracer_new(&(struct tracer_options){.has_traces_sample_rate = true, .listener = {.discarded = on_anything}});
    pthread_t threads[CROWD];
    for (size_t i = 0; i < CROWD; i++) CHECK(pthread_create(&threads[i], NULL, start_until_it_is_over, tracer) == 0);
    (void)usleep(2000);
    tracer_close(tracer);
    atomic_store(&is_over, true);
    for (size_t i = 0; i < CROWD; i++) (void)pthread_join(threads[i], NULL);
    CHECK_UINT(reported_too_late, 0);
    tracer_free(tracer);
}

TEST_MAIN()
