/* The parts of the transport that need no network: DSNs, rate limits, what is counted, what is left of an envelope, and
 * the spool (requirements ENV-1, ENV-2; facts §2.4, §2.6, §2.7).  SPDX-License-Identifier: MIT */
#include "test.h"

#include "format/sentry/client_report.h"
#include "spool/dsn.h"
#include "transport/outgoing.h"
#include "spool/queue.h"
#include "spool/spool.h"
#include "transport/transport.h"

#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEY "0123456789abcdef0123456789abcdef"
#define S ((uint64_t)1000000000)

/* --- DSNs --------------------------------------------------------------------------------------------------------- */

static const char *url_of(const char *text)
{
    static char url[DSN_URL_SIZE];
    struct dsn dsn;
    struct error error = {0};
    if (dsn_parse(text, &dsn, &error) != STATUS_OK) TEST_FAIL("%s", error.message);
    dsn_url(&dsn, url);
    return url;
}

TEST(a_dsn_gives_the_address_of_its_project)
{
    CHECK_TEXT(url_of("https://" KEY "@o1.example.org/42"), "https://o1.example.org/api/42/envelope/");
    CHECK_TEXT(url_of("http://" KEY "@localhost:9000/1"), "http://localhost:9000/api/1/envelope/");
    CHECK_TEXT(url_of("https://" KEY ":" KEY "@h:443/a/b-c/7"), "https://h/a/b-c/api/7/envelope/");
    CHECK_TEXT(url_of("http://" KEY "@[::1]:8080/7"), "http://[::1]:8080/api/7/envelope/");
    CHECK_TEXT(url_of("http://" KEY "@h/18446744073709551615"), "http://h/api/18446744073709551615/envelope/");
}

TEST(rejects_an_invalid_dsn)
{
    static const char *const wrong[] = {
        "",
        "https",
        "ftp://" KEY "@h/1",
        "https://h/1",
        "https://abc@h/1",
        "https://" KEY "0@h/1",
        "https://g123456789abcdef0123456789abcdef@h/1",
        "https://" KEY "@/1",
        "https://" KEY "@h",
        "https://" KEY "@h/",
        "https://" KEY "@h/0",
        "https://" KEY "@h/-1",
        "https://" KEY "@h/x",
        "https://" KEY "@h/18446744073709551616",
        "https://" KEY "@h:0/1",
        "https://" KEY "@h:65536/1",
        "https://" KEY "@h:/1",
        "https://" KEY "@h\r\nX: y/1",
        "https://" KEY "@h/a b/1",
        "https://" KEY "@h/1?x=y",
        "https://" KEY "@[::1/1",
        "https://" KEY "@[]/1",
        "https://" KEY "@evil@h/1",
    };
    struct dsn dsn;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct error error = {0};
        if (dsn_parse(wrong[i], &dsn, &error) != STATUS_MALFORMED) TEST_FAIL("accepted: %s", wrong[i]);
        CHECK(error.message[0] && !strstr(error.message, KEY));
    }
}

TEST(the_auth_header_has_version_client_key_and_no_injected_text)
{
    struct dsn dsn;
    char auth[DSN_AUTH_SIZE];
    CHECK_INT(dsn_parse("https://" KEY "@h/1", &dsn, NULL), STATUS_OK);
    dsn_auth(&dsn, "offbeat/1.0", auth);
    CHECK_TEXT(auth, "Sentry sentry_version=7, sentry_client=offbeat/1.0, sentry_key=" KEY);
    dsn_auth(&dsn, "a\r\nb, sentry_key=c", auth);
    CHECK_TEXT(auth, "Sentry sentry_version=7, sentry_client=absentry_keyc, sentry_key=" KEY);
    char agent[DSN_CLIENT_SIZE];
    dsn_user_agent("offbeat/1.0\r\nX-Evil: 1\xC3\xA4", agent);
    CHECK_TEXT(agent, "offbeat/1.0X-Evil1");
}

TEST(each_server_has_its_own_folder)
{
    static const char *const dsns[] = {"https://" KEY "@h/1", "https://" KEY "@h/2", "http://" KEY "@h/1",
                                       "https://f123456789abcdef0123456789abcdef@h/1", "https://" KEY "@h/p/1"};
    char names[5][DSN_HOST_SIZE] = {{0}};
    for (unsigned i = 0; i < 5; i++) {
        struct dsn dsn;
        CHECK_INT(dsn_parse(dsns[i], &dsn, NULL), STATUS_OK);
        dsn_folder_name(&dsn, names[i]);
        CHECK(!strchr(names[i], '/'));
        for (unsigned j = 0; j < i; j++) CHECK(strcmp(names[i], names[j]) != 0);
    }
    CHECK_TEXT(names[0], "h-1-d3fd6d1614c4f6cb");
}

/* --- Rate limits -------------------------------------------------------------------------------------------------- */

static struct rate_limits limits_of(long status, const char *limits, const char *retry_after)
{
    struct rate_limits found = {0};
    const struct rate_limit_answer answer = {.status = status,
                                             .rate_limits = slice_of_text(limits),
                                             .retry_after = slice_of_text(retry_after),
                                             .time_ns = 1445412420 * S}; /* Wed, 21 Oct 2015 07:27:00 GMT */
    rate_limits_update(&found, 100 * S, &answer);
    return found;
}

static uint64_t left(const struct rate_limits *limits, enum category category)
{
    uint64_t until = rate_limits_until(limits, 100 * S, category);
    return until ? until - 100 * S : 0;
}

#define CHECK_LEFT(status, header, retry_after, category, expected)                                                    \
    do {                                                                                                               \
        struct rate_limits check_limits = limits_of(status, header, retry_after);                                      \
        CHECK_UINT(left(&check_limits, category), expected);                                                           \
    } while (0)

TEST(a_limit_holds_for_the_categories_that_it_names)
{
    const char *header = "60:transaction;profile_chunk:organization:quota, 2.5:error:key";
    CHECK_LEFT(200, header, "", CATEGORY_TRANSACTION, 60 * S);
    CHECK_LEFT(200, header, "", CATEGORY_PROFILE_CHUNK, 60 * S);
    CHECK_LEFT(200, header, "", CATEGORY_ERROR, 2500000000);
    CHECK_LEFT(200, header, "", CATEGORY_PROFILE, 0);
    CHECK_LEFT(200, header, "", CATEGORY_PROFILE_CHUNK_UI, 0);
}

TEST(a_limit_without_categories_holds_for_everything_but_client_reports)
{
    CHECK_LEFT(200, "60::organization", "", CATEGORY_PROFILE_CHUNK, 60 * S);
    CHECK_LEFT(200, "60", "", CATEGORY_DEFAULT, 60 * S);
    CHECK_LEFT(200, " 60 : : organization ", "", CATEGORY_SPAN, 60 * S);
    CHECK_LEFT(200, "60::organization", "", CATEGORY_INTERNAL, 0);
}

TEST(a_limit_for_nothing_that_is_known_is_ignored)
{
    CHECK_LEFT(200, "60:brand_new;metric_bucket:organization", "", CATEGORY_DEFAULT, 0);
    CHECK_LEFT(200, "60:brand_new;profile:organization", "", CATEGORY_PROFILE, 60 * S);
    CHECK_LEFT(429, "60:brand_new:organization", "90", CATEGORY_PROFILE,
               0); /* the header came: Retry-After is not asked */
}

TEST(parts_that_are_not_known_are_ignored_and_spaces_too)
{
    CHECK_LEFT(200, " 10 : profile ; error : organization : reason : a;b : more ,,", "", CATEGORY_ERROR, 10 * S);
    CHECK_LEFT(200, ",  ,20:profile", "", CATEGORY_PROFILE, 20 * S);
}

TEST(durations_that_are_limited_limit_chunks)
{
    CHECK_LEFT(200, "60:profile_duration", "", CATEGORY_PROFILE_CHUNK, 60 * S);
    CHECK_LEFT(200, "60:profile_duration", "", CATEGORY_PROFILE_CHUNK_UI, 0);
    CHECK_LEFT(200, "60:profile_duration_ui", "", CATEGORY_PROFILE_CHUNK_UI, 60 * S);
}

TEST(a_bare_429_and_retry_after_limit_everything)
{
    CHECK_LEFT(429, "", "", CATEGORY_PROFILE, 60 * S);
    CHECK_LEFT(429, "", "7", CATEGORY_PROFILE, 7 * S);
    CHECK_LEFT(429, "", "0", CATEGORY_PROFILE, 0);
    CHECK_LEFT(429, "", "soon", CATEGORY_PROFILE, 60 * S);
    CHECK_LEFT(429, "", "Wed, 21 Oct 2015 07:28:00 GMT", CATEGORY_PROFILE, 60 * S);
    CHECK_LEFT(429, "", "Wed, 21 Oct 2015 07:26:00 GMT", CATEGORY_PROFILE, 0);
    CHECK_LEFT(200, "", "7", CATEGORY_PROFILE, 0);
    CHECK_LEFT(503, "", "7", CATEGORY_PROFILE, 0);
}

TEST(seconds_that_cannot_be_read_are_60_and_none_is_longer_than_a_day)
{
    CHECK_LEFT(200, "x:profile", "", CATEGORY_PROFILE, 60 * S);
    CHECK_LEFT(200, "-5:profile", "", CATEGORY_PROFILE, 60 * S);
    CHECK_LEFT(200, "99999999999999999999999:profile", "", CATEGORY_PROFILE, 86400 * S);
    CHECK_LEFT(429, "", "999999999", CATEGORY_PROFILE, 86400 * S);
    CHECK_LEFT(429, "", "Wed, 21 Oct 2099 07:28:00 GMT", CATEGORY_PROFILE, 86400 * S);
}

TEST(a_later_limit_does_not_shorten_an_earlier_one_and_each_ends)
{
    struct rate_limits limits = limits_of(200, "60:profile", "");
    const struct rate_limit_answer shorter = {.status = 200, .rate_limits = slice_of_text("5:profile")};
    rate_limits_update(&limits, 110 * S, &shorter);
    CHECK_UINT(rate_limits_until(&limits, 110 * S, CATEGORY_PROFILE), 160 * S);
    CHECK_UINT(rate_limits_until(&limits, 160 * S, CATEGORY_PROFILE), 0);
}

/* --- What is counted ---------------------------------------------------------------------------------------------- */

static const char transaction_envelope[] =
    "{\"event_id\":\"0123456789abcdef0123456789abcdef\",\"dsn\":\"https://" KEY "@h/1\",\"x\":{\"a\":[1]},"
    "\"sent_at\":\"2020-01-01T00:00:00Z\"}\n"
    "{\"type\":\"transaction\"}\n"
    "{\"type\":\"transaction\",\"spans\":[{\"span_id\":\"0123456789abcdef\"},{\"span_id\":\"1123456789abcdef\"}]}\n"
    "{\"type\":\"profile\",\"length\":2,\"own\":7}\n"
    "{}\n"
    "{\"type\":\"client_report\"}\n"
    "{\"discarded_events\":[{\"reason\":\"sample_rate\",\"category\":\"profile\",\"quantity\":5}]}\n";

TEST(all_items_of_a_lost_envelope_are_counted_and_its_report_is_sent_again)
{
    struct discards discards = {0};
    CHECK(discards_are_empty(&discards));
    discards_add_envelope(&discards, DISCARD_SEND_ERROR, slice_of_text(transaction_envelope));
    CHECK_UINT(discards.counts[DISCARD_SEND_ERROR][CATEGORY_TRANSACTION], 1);
    CHECK_UINT(discards.counts[DISCARD_SEND_ERROR][CATEGORY_SPAN], 3);
    CHECK_UINT(discards.counts[DISCARD_SEND_ERROR][CATEGORY_PROFILE], 1);
    CHECK_UINT(discards.counts[DISCARD_SEND_ERROR][CATEGORY_INTERNAL], 0);
    CHECK_UINT(discards.counts[DISCARD_SAMPLE_RATE][CATEGORY_PROFILE], 5);
    CHECK_UINT(discards_item_count(&discards), 7);
}

TEST(reports_contain_every_count_once_and_fit_into_4_KiB)
{
    struct discards discards = {0};
    uint64_t reported = 0;
    unsigned reports = 0;
    for (unsigned i = 0; i < DISCARD_REASON_COUNT; i++) {
        for (unsigned j = 0; j < CATEGORY_COUNT; j++)
            discards_add(&discards, (enum discard_reason)i, (enum category)j, UINT64_MAX / 1000);
    }
    while (!discards_are_empty(&discards)) {
        struct buffer payload = {.maximum = 4096};
        struct discards taken;
        struct client_report report = {0};
        discards_take_report(&discards, 1700000000 * S, &taken, &payload);
        CHECK(!payload.failed);
        CHECK_INT(client_report_decode(buffer_slice(&payload), &report, NULL), STATUS_OK);
        CHECK_UINT(report.time_ns, 1700000000 * S);
        for (size_t i = 0; i < report.count; i++) CHECK(report.items[i].is_known_reason);
        reported += report.count;
        reports++;
        client_report_fini(&report);
        buffer_fini(&payload);
    }
    CHECK_UINT(reported, DISCARD_REASON_COUNT * CATEGORY_COUNT);
    CHECK(reports > 1);
}

/* --- What is sent of an envelope ---------------------------------------------------------------------------------- */

static const char *build(const char *limits_header, struct outgoing *outgoing)
{
    static char text[2048];
    struct buffer out = {.maximum = sizeof(text) - 1};
    struct rate_limits limits = limits_of(200, limits_header, "");
    struct error error = {0};
    enum status status =
        outgoing_build(slice_of_text(transaction_envelope), &limits, 100 * S, 1700000000 * S, &out, outgoing, &error);
    if (status != STATUS_OK) TEST_FAIL("%s", error.message);
    CHECK_INT(envelope_check(buffer_slice(&out), &error), STATUS_OK);
    memcpy(text, out.data, out.size);
    text[out.size] = 0;
    buffer_fini(&out);
    return text;
}

TEST(an_envelope_has_its_sending_time_and_no_dsn_ENV_1_ENV_2)
{
    struct outgoing outgoing;
    const char *text = build("", &outgoing);
    CHECK(strstr(text, "{\"event_id\":\"0123456789abcdef0123456789abcdef\",\"x\":{\"a\":[1]},"
                       "\"sent_at\":\"2023-11-14T22:13:20.000000Z\"}\n") == text);
    CHECK(strstr(text, "{\"type\":\"profile\",\"length\":2,\"own\":7}\n{}\n"));
    CHECK_UINT(outgoing.item_count, 3);
    CHECK_UINT(outgoing.counted_count, 2);
    CHECK(discards_are_empty(&outgoing.limited));
}

TEST(items_under_a_limit_stay_after_and_a_profile_with_its_transaction)
{
    struct outgoing outgoing;
    const char *text = build("60:profile", &outgoing);
    CHECK(strstr(text, "\"transaction\"") && !strstr(text, "\"profile\",\"length\""));
    CHECK_UINT(outgoing.limited.counts[DISCARD_RATELIMIT_BACKOFF][CATEGORY_PROFILE], 1);
    text = build("60:transaction", &outgoing);
    CHECK(!strstr(text, "\"transaction\"") && !strstr(text, "\"profile\",\"length\"") && strstr(text, "client_report"));
    CHECK_UINT(outgoing.limited.counts[DISCARD_RATELIMIT_BACKOFF][CATEGORY_TRANSACTION], 1);
    CHECK_UINT(outgoing.limited.counts[DISCARD_RATELIMIT_BACKOFF][CATEGORY_SPAN], 3);
    CHECK_UINT(outgoing.limited.counts[DISCARD_RATELIMIT_BACKOFF][CATEGORY_PROFILE], 1);
    CHECK_UINT(outgoing.item_count, 1);
    CHECK_UINT(outgoing.counted_count, 0);
}

/* --- The queue ---------------------------------------------------------------------------------------------------- */

static struct buffer bytes_of(const char *text)
{
    struct buffer bytes = {.maximum = 1 << 20};
    buffer_append_text(&bytes, text);
    return bytes;
}

TEST(the_queue_is_bounded_in_count_and_bytes)
{
    struct queue queue = {.count_max = 2, .bytes_max = 5};
    struct buffer three = bytes_of("abc"), other = bytes_of("abc"), two = bytes_of("de"), none = bytes_of("");
    CHECK(queue_push(&queue, &three) && !three.data);
    CHECK(!queue_push(&queue, &other) && other.size == 3);
    CHECK(queue_push(&queue, &two));
    CHECK(!queue_push(&queue, &none));
    struct queued *first = queue_pop(&queue);
    CHECK_UINT(first->bytes.size, 3);
    queue_push_front(&queue, first);
    CHECK(queue_pop(&queue) == first);
    queued_free(first);
    buffer_fini(&other);
    buffer_fini(&none);
    queue_fini(&queue);
    CHECK_UINT(queue.bytes + queue.count, 0);
}

/* --- The spool ---------------------------------------------------------------------------------------------------- */

static char folder[64];

static struct spool new_spool(void)
{
    struct spool spool;
    (void)snprintf(folder, sizeof(folder), "/tmp/offbeat-spool-XXXXXX");
    CHECK(mkdtemp(folder));
    CHECK(spool_init(&spool, folder, "server"));
    return spool;
}

static unsigned count_files(const struct spool *spool)
{
    unsigned count = 0;
    DIR *opened = opendir(spool->path);
    for (struct dirent *entry = opened ? readdir(opened) : NULL; entry; entry = readdir(opened))
        count += entry->d_name[0] != '.';
    if (opened) (void)closedir(opened);
    return count;
}

static void delete_spool(struct spool *spool)
{
    char command[PATH_MAX + 16];
    spool_fini(spool);
    (void)snprintf(command, sizeof(command), "rm -rf %s", folder);
    CHECK_INT(system(command), 0);
}

static void store(struct spool *spool, const char *text, struct discards *dropped)
{
    struct error error = {0};
    if (spool_store(spool, slice_of_text(text), dropped, &error) != STATUS_OK) TEST_FAIL("%s", error.message);
}

static enum status claim(struct spool *spool, struct spool_claim *ret_claim, const char *expected)
{
    struct buffer bytes = {.maximum = 1 << 20};
    enum status status = spool_claim(spool, 0, ret_claim, &bytes, NULL);
    bool is_expected = status != STATUS_OK || slice_equals_text(buffer_slice(&bytes), expected);
    buffer_fini(&bytes);
    CHECK(is_expected);
    return status;
}

#define CHUNK "{}\n{\"type\":\"profile_chunk\",\"length\":2}\n{}\n"

TEST(the_spool_gives_the_oldest_first_and_each_to_one_alone)
{
    struct spool spool = new_spool(), other = spool;
    struct discards dropped = {0};
    struct spool_claim first, second, third;
    CHECK_INT(claim(&spool, &first, ""), STATUS_NOT_FOUND);
    store(&spool, "one", &dropped);
    store(&spool, "two", &dropped);
    CHECK_INT(claim(&spool, &first, "one"), STATUS_OK);
    CHECK_INT(claim(&other, &second, "two"), STATUS_OK);
    CHECK_INT(claim(&other, &third, ""), STATUS_NOT_FOUND);
    spool_release(&second);
    spool_remove(&spool, &first);
    CHECK_INT(claim(&spool, &third, "two"), STATUS_OK);
    spool_remove(&spool, &third);
    CHECK_UINT(count_files(&spool), 0);
    spool_fini(&other);
    delete_spool(&spool);
}

TEST(a_full_spool_drops_the_oldest_that_nobody_sends_and_counts_it)
{
    struct spool spool = new_spool();
    struct discards dropped = {0};
    struct spool_claim held;
    spool.count_max = 2;
    spool.bytes_max = 4 * strlen(CHUNK);
    store(&spool, "being sent", &dropped);
    CHECK_INT(claim(&spool, &held, "being sent"), STATUS_OK);
    store(&spool, CHUNK, &dropped);
    CHECK(discards_are_empty(&dropped));
    store(&spool, CHUNK, &dropped);
    CHECK_UINT(dropped.counts[DISCARD_CACHE_OVERFLOW][CATEGORY_PROFILE_CHUNK], 1);
    CHECK_UINT(count_files(&spool), 2);
    spool_release(&held);
    spool.count_max = 100;
    for (unsigned i = 0; i < 10; i++) store(&spool, CHUNK, &dropped);
    CHECK_UINT(count_files(&spool), 4);
    spool.bytes_max = strlen(CHUNK) - 1;
    CHECK_INT(spool_store(&spool, slice_of_text(CHUNK), &dropped, NULL), STATUS_TOO_LARGE);
    delete_spool(&spool);
}

TEST(deletes_partial_files_of_dead_processes_only)
{
    struct spool spool = new_spool();
    struct spool_claim none;
    CHECK_INT(spool_open(&spool, NULL), STATUS_OK);
    int dead = openat(spool.folder.number, "dead.tmp", O_CREAT | O_WRONLY, 0600);
    int living = openat(spool.folder.number, "living.tmp", O_CREAT | O_WRONLY, 0600);
    CHECK(dead >= 0 && living >= 0 && flock(living, LOCK_EX) == 0);
    (void)close(dead);
    CHECK_INT(claim(&spool, &none, ""), STATUS_NOT_FOUND);
    CHECK(faccessat(spool.folder.number, "dead.tmp", F_OK, 0) != 0);
    CHECK(faccessat(spool.folder.number, "living.tmp", F_OK, 0) == 0);
    (void)close(living);
    delete_spool(&spool);
}

/* Closes all descriptors and opens FOLDER, as some programs do. */
static void take_number(int number, const char *path)
{
    int other = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    CHECK(other >= 0 && dup2(other, number) == number);
    (void)close(other);
}

TEST(a_number_that_the_program_has_given_another_file_is_left_alone)
{
    char others[] = "/tmp/offbeat-test-XXXXXX";
    struct spool spool = new_spool();
    struct spool_claim held;
    struct discards dropped = {0};
    CHECK(mkdtemp(others));
    store(&spool, CHUNK, &dropped);
    take_number(spool.folder.number, others);
    int number = spool.folder.number;
    store(&spool, CHUNK, &dropped);
    CHECK_UINT(count_files(&spool), 2);
    CHECK_INT(claim(&spool, &held, CHUNK), STATUS_OK);
    take_number(held.file.number, others);
    int second = held.file.number;
    spool_remove(&spool, &held);
    CHECK_UINT(count_files(&spool), 1);
    delete_spool(&spool);
    CHECK(close(number) == 0 && close(second) == 0); /* both are still open */
    CHECK(rmdir(others) == 0);                       /* the other folder is empty */
}

/* Runs in its own process, as the limit stays. */
TEST(a_disk_without_room_leaves_nothing_after)
{
    struct spool spool = new_spool();
    pid_t child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        struct discards dropped = {0};
        struct error error = {0};
        const struct rlimit limit = {.rlim_cur = 10, .rlim_max = 10};
        (void)signal(SIGXFSZ, SIG_IGN);
        (void)setrlimit(RLIMIT_FSIZE, &limit);
        _exit(spool_store(&spool, slice_of_text(CHUNK), &dropped, &error) == STATUS_IO ? 0 : 1);
    }
    int status;
    CHECK_INT(waitpid(child, &status, 0), child);
    CHECK_INT(status, 0);
    CHECK_UINT(count_files(&spool), 0);
    delete_spool(&spool);
}

TEST(a_spool_that_was_deleted_is_made_again)
{
    struct spool spool = new_spool();
    struct discards dropped = {0};
    store(&spool, "one", &dropped);
    char command[PATH_MAX + 16];
    (void)snprintf(command, sizeof(command), "rm -rf %s", spool.path);
    CHECK_INT(system(command), 0);
    store(&spool, "two", &dropped);
    CHECK_UINT(count_files(&spool), 1);
    delete_spool(&spool);
}

/* --- Threads and forks
 * -------------------------------------------------------------------------------------------------------- */

enum { SENDERS = 4, SENT_BY_EACH = 250, QUEUE_COUNT = 10 };

static void *send_many(void *transport)
{
    for (unsigned i = 0; i < SENT_BY_EACH; i++) {
        struct buffer envelope = bytes_of(CHUNK);
        (void)transport_send(transport, &envelope);
        CHECK(!envelope.data);
    }
    return NULL;
}

TEST(threads_may_send_at_once_and_each_envelope_is_counted)
{
    const struct transport_options options = {.dsn = "http://" KEY "@127.0.0.1:9/1", .queue_count_max = QUEUE_COUNT};
    struct transport *transport = transport_start(&options, NULL);
    pthread_t threads[SENDERS];
    CHECK(transport);
    for (unsigned i = 0; i < SENDERS; i++) CHECK_INT(pthread_create(&threads[i], NULL, send_many, transport), 0);
    for (unsigned i = 0; i < SENDERS; i++) CHECK_INT(pthread_join(threads[i], NULL), 0);
    struct transport_counts counts = transport_counts(transport);
    CHECK_UINT(counts.made, SENDERS * SENT_BY_EACH);
    CHECK(counts.discarded <= counts.made && counts.discarded >= counts.made - QUEUE_COUNT - 1); /* 1 is being sent */
    CHECK(!transport_stop(transport, 0));
}

TEST(starting_and_stopping_leaves_nothing_after)
{
    const struct transport_options options = {.dsn = "http://" KEY "@127.0.0.1:9/1"};
    for (unsigned i = 0; i < 50; i++) {
        struct transport *transport = transport_start(&options, NULL);
        struct buffer envelope = bytes_of(CHUNK);
        CHECK(transport);
        if (i % 2) CHECK(transport_send(transport, &envelope));
        buffer_fini(&envelope);
        CHECK(transport_stop(transport, i % 3 ? 0 : 1000000) == (i % 2 == 0));
    }
    CHECK(!transport_stop(NULL, 0));
}

struct told {
    struct transport *transport; /* set while the mutex is held */
    pthread_mutex_t mutex;
    bool has_answer, is_concluding;
};

static void told_outcome(void *context, const struct transport_answer *answer)
{
    struct told *told = context;
    pthread_mutex_lock(&told->mutex);
    if (answer->outcome == TRANSPORT_WITHHELD) { /* a client report follows, with an outcome of its own */
        told->has_answer = true;
        told->is_concluding = transport_is_concluding(told->transport);
    }
    pthread_mutex_unlock(&told->mutex);
}

TEST(an_envelope_that_is_gone_is_concluding_until_its_outcome_is_told)
{
    struct told told = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    const struct transport_options options = {.dsn = "http://" KEY "@127.0.0.1:9/1",
                                              .limits = {.all_until_ns = UINT64_MAX},
                                              .answered = told_outcome,
                                              .context = &told};
    struct buffer envelope = bytes_of(CHUNK);
    pthread_mutex_lock(&told.mutex);
    told.transport = transport_start(&options, NULL);
    CHECK(told.transport && transport_send(told.transport, &envelope));
    pthread_mutex_unlock(&told.mutex);
    (void)transport_flush(told.transport, 10 * S);
    CHECK(told.has_answer && told.is_concluding);
    CHECK(!transport_is_concluding(told.transport));
    (void)transport_stop(told.transport, S);
    pthread_mutex_destroy(&told.mutex);
}

TEST_MAIN()
