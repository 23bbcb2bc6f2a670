/* Headers that a request carries from process to process: sentry-trace, traceparent, baggage; and which transactions
 * are sampled (facts §3.8).  SPDX-License-Identifier: MIT */
#include "test.h"

#include "trace/propagation.h"

#include <math.h>

#define TRACE "8450ef61f4aa4d4d976c50a41715229d"
#define SPAN "abd71dabf8bde62b"

static const struct trace_continuation anyone;

static bool reads(const char *header, struct trace_parent *parent)
{
    return trace_parent_read(slice_of_text(header), parent);
}

static bool reads_w3c(const char *header, struct trace_parent *parent)
{
    return trace_parent_read_w3c(slice_of_text(header), parent);
}

/* --- sentry-trace, traceparent ------------------------------------------------------------------------------------ */

TEST(sentry_trace_is_read_and_written_with_and_without_a_decision)
{
    static const struct {
        const char *header;
        enum trace_decision decision;
    } cases[] = {{TRACE "-" SPAN, TRACE_UNDECIDED},
                 {TRACE "-" SPAN "-0", TRACE_NOT_SAMPLED},
                 {TRACE "-" SPAN "-1", TRACE_SAMPLED}};
    for (size_t i = 0; i < 3; i++) {
        struct trace_parent parent;
        char header[TRACE_HEADER_SIZE];
        CHECK(reads(cases[i].header, &parent));
        CHECK_TEXT(parent.trace_id, TRACE);
        CHECK_TEXT(parent.span_id, SPAN);
        CHECK_UINT(parent.decision, cases[i].decision);
        trace_parent_write(&parent, header);
        CHECK_TEXT(header, cases[i].header);
    }
}

TEST(white_space_and_capitals_in_sentry_trace_do_no_harm)
{
    struct trace_parent parent;
    CHECK(reads(" 8450EF61F4AA4D4D976C50A41715229D-" SPAN "-1\t", &parent));
    CHECK_TEXT(parent.trace_id, TRACE);
}

TEST(a_broken_sentry_trace_is_rejected)
{
    static const char *const headers[] = {"",
                                          "-",
                                          TRACE,
                                          TRACE "-",
                                          TRACE "-" SPAN "-",
                                          TRACE "-" SPAN "-2",
                                          TRACE "-" SPAN "-1-",
                                          TRACE "-" SPAN "1",
                                          TRACE "_" SPAN,
                                          "8450ef61f4aa4d4d976c50a41715229-" SPAN,
                                          "x450ef61f4aa4d4d976c50a41715229d-" SPAN,
                                          "00000000000000000000000000000000-" SPAN,
                                          TRACE "-0000000000000000"};
    for (size_t i = 0; i < sizeof(headers) / sizeof(*headers); i++) {
        struct trace_parent parent = {.span_id = "unchanged"};
        if (reads(headers[i], &parent)) TEST_FAIL("taken: %s", headers[i]);
        CHECK_TEXT(parent.span_id, "unchanged");
    }
}

TEST(traceparent_is_read_and_written)
{
    struct trace_parent parent;
    char header[TRACE_HEADER_SIZE];
    CHECK(reads_w3c("00-" TRACE "-" SPAN "-01", &parent));
    CHECK_UINT(parent.decision, TRACE_SAMPLED);
    trace_parent_write_w3c(&parent, header);
    CHECK_TEXT(header, "00-" TRACE "-" SPAN "-01");
    CHECK(reads_w3c("00-" TRACE "-" SPAN "-02", &parent));
    CHECK_UINT(parent.decision, TRACE_NOT_SAMPLED);
    parent.decision = TRACE_UNDECIDED;
    trace_parent_write_w3c(&parent, header);
    CHECK_TEXT(header, "00-" TRACE "-" SPAN "-00");
}

TEST(a_later_version_of_traceparent_may_have_more_but_version_00_not)
{
    struct trace_parent parent;
    CHECK(reads_w3c("cc-" TRACE "-" SPAN "-01-what-else", &parent));
    CHECK(!reads_w3c("00-" TRACE "-" SPAN "-01-what-else", &parent));
    CHECK(!reads_w3c("cc-" TRACE "-" SPAN "-01what", &parent));
    CHECK(!reads_w3c("ff-" TRACE "-" SPAN "-01", &parent));
    CHECK(!reads_w3c("00-" TRACE "-" SPAN "-0", &parent));
    CHECK(!reads_w3c("00-" TRACE "-" SPAN "-0x", &parent));
    CHECK(!reads_w3c("00-" TRACE "-0000000000000000-01", &parent));
}

/* --- baggage ------------------------------------------------------------------------------------------------------ */

static const char *written(const struct trace_members *members, const char *others)
{
    static char text[TRACE_BAGGAGE_BYTES_MAX + 1];
    struct buffer out = {.maximum = TRACE_BAGGAGE_BYTES_MAX};
    trace_members_write_baggage(members, slice_of_text(others), &out);
    (void)snprintf(text, sizeof(text), "%.*s", (int)out.size, (const char *)out.data);
    if (out.failed) text[0] = '\0';
    buffer_fini(&out);
    return text;
}

TEST(baggage_gives_the_members_of_sentry_decoded)
{
    struct trace_members members = {0};
    trace_members_read_baggage(
        &members, slice_of_text("other=1;p=2 , sentry-release=a%40b%2C1 ;p=q,\tsentry-environment = "
                                "t\xC3\xA4st,sentry-broken,sentry-=x,sentry-bad=%zz%4,"
                                "sentry-release=last,sentry-nul=a%00b,sentry-k\xFF=1,sentry-a%20b=1,sentry-a b=1"));
    CHECK_UINT(members.count, 3);
    CHECK_TEXT(trace_members_find(&members, "release"), "last");
    CHECK_TEXT(trace_members_find(&members, "environment"), "t\xC3\xA4st");
    CHECK_TEXT(trace_members_find(&members, "bad"), "%zz%4");
    CHECK(!trace_members_find(&members, "other"));
    CHECK_TEXT(written(&members, ""), "sentry-environment=t%C3%A4st,sentry-bad=%25zz%254,sentry-release=last");
    trace_members_fini(&members);
}

TEST(baggage_that_is_there_already_is_kept_but_for_the_members_of_sentry)
{
    struct trace_members members = {0};
    CHECK(trace_members_set(&members, slice_of_text("trace_id"), slice_of_text(TRACE)));
    CHECK_TEXT(written(&members, "a=1;x, sentry-trace_id=old ,,b=%20"), "a=1;x,b=%20,sentry-trace_id=" TRACE);
    trace_members_fini(&members);
    CHECK_TEXT(written(&members, "a=1"), "a=1");
    CHECK_TEXT(written(&members, ""), "");
}

TEST(baggage_has_at_most_64_members_and_8192_bytes_and_others_give_way)
{
    struct trace_members members = {0};
    char others[3 * TRACE_BAGGAGE_BYTES_MAX] = "", key[16];
    for (unsigned i = 0; i < 2 * TRACE_MEMBERS_MAX; i++) {
        (void)snprintf(key, sizeof(key), "k%u", i);
        bool is_taken = trace_members_set(&members, slice_of_text(key), slice_of_text("v"));
        CHECK_UINT(is_taken, i < TRACE_MEMBERS_MAX);
    }
    CHECK(!strstr(written(&members, "a=1"), "a=1"));
    trace_members_fini(&members);

    CHECK(trace_members_set(&members, slice_of_text("trace_id"), slice_of_text(TRACE)));
    memset(others, 'x', TRACE_BAGGAGE_BYTES_MAX);
    memcpy(others, "a=1,b=", 6);
    CHECK_TEXT(written(&members, others), "a=1,sentry-trace_id=" TRACE);
    trace_members_fini(&members);
}

TEST(a_value_that_is_too_long_when_it_is_encoded_is_left_out_whole)
{
    struct trace_members members = {0};
    char spaces[4001];
    memset(spaces, ' ', 4000);
    spaces[4000] = '\0';
    CHECK(trace_members_set(&members, slice_of_text("release"), slice_of_text(spaces)));
    CHECK(trace_members_set(&members, slice_of_text("environment"), slice_of_text("test")));
    CHECK_TEXT(written(&members, ""), "sentry-environment=test");
    trace_members_fini(&members);
}

TEST(members_of_others_that_break_the_grammar_are_left_out)
{
    static const struct trace_members none;
    CHECK_TEXT(written(&none, "a=1\r\nX-Evil: 1,b=2"), "b=2");
    CHECK_TEXT(written(&none, "a=1\nb=2,c=\xC3\xA4,d=\"q\",e=\\,f g=1,=1,noval,h=a b,i=1;p=\x7F,k\xFF=1"), "");
    CHECK_TEXT(written(&none, "a = 1 ; p = 2 ;q,b=%0D%0A,c=,d=1=2,e=:/?#[]@!$&'()*+-._~"),
               "a = 1 ; p = 2 ;q,b=%0D%0A,c=,d=1=2,e=:/?#[]@!$&'()*+-._~");
}

/* SplitMix64; the seed is printed by nobody, for it is always the same. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t mixed = *state += 0x9E3779B97F4A7C15u;
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9u;
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EBu;
    return mixed ^ mixed >> 31;
}

/* Bytes that mean something to the parsers are as frequent as all others together. */
static struct slice random_header(uint64_t *state, uint8_t *bytes, size_t size_max)
{
    static const char parts[] = "=,;\r\n\t %-0aAz\"\\:";
    size_t size = next_random(state) % size_max;
    for (size_t i = 0; i < size; i++) {
        uint64_t random = next_random(state);
        bytes[i] = random & 1 ? (uint8_t)(random >> 8) : (uint8_t)parts[(random >> 8) % (sizeof(parts) - 1)];
        if ((random >> 32) % 16 == 0 && i + 8 < size) {
            memcpy(bytes + i, "sentry-a=", 8);
            i += 7;
        }
    }
    return slice_of(bytes, size);
}

static bool is_one_header(const uint8_t *text, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        if ((text[i] < ' ' && text[i] != '\t') || text[i] >= 0x7F) return false;
    }
    return true;
}

TEST(an_incoming_header_puts_no_control_character_into_outgoing_ones)
{
    enum { ROUNDS = 200000, SIZE_MAX_OF_HEADER = 96 };
    uint64_t state = 12;
    unsigned written_count = 0;
    for (unsigned i = 0; i < ROUNDS; i++) {
        uint8_t bytes[3][SIZE_MAX_OF_HEADER];
        struct slice texts[3];
        struct trace_members members = {0};
        struct trace_parent parent;
        struct buffer out = {.maximum = TRACE_BAGGAGE_BYTES_MAX};
        char header[TRACE_HEADER_SIZE];
        for (unsigned j = 0; j < 3; j++) texts[j] = random_header(&state, bytes[j], SIZE_MAX_OF_HEADER);
        trace_members_read_baggage(&members, texts[0]);
        (void)trace_members_set(&members, slice_of_text("release"), texts[1]);
        trace_members_write_baggage(&members, texts[2], &out);
        CHECK(!out.failed);
        CHECK(is_one_header(out.data, out.size));
        written_count += out.size > 0;
        if (trace_parent_read(texts[0], &parent) || trace_parent_read_w3c(texts[0], &parent)) {
            trace_parent_write(&parent, header);
            CHECK(is_one_header((const uint8_t *)header, strlen(header)));
        }
        buffer_fini(&out);
        trace_members_fini(&members);
    }
    CHECK(written_count > ROUNDS / 2);
}

/* --- What came in ------------------------------------------------------------------------------------------------- */

static struct trace_incoming incoming(const char *sentry_trace, const char *traceparent, const char *baggage,
                                      struct trace_continuation continuation)
{
    struct trace_incoming result = {0};
    struct trace_headers headers = {slice_of_text(sentry_trace), slice_of_text(traceparent), slice_of_text(baggage)};
    trace_incoming_read(&result, &headers, &continuation);
    return result;
}

TEST(sentry_trace_counts_before_traceparent_which_counts_alone_too)
{
    struct trace_incoming got = incoming(TRACE "-" SPAN "-1", "00-" TRACE "-1111111111111111-00", "", anyone);
    CHECK(got.has_parent);
    CHECK_TEXT(got.parent.span_id, SPAN);
    trace_incoming_fini(&got);
    got = incoming("broken", "00-" TRACE "-1111111111111111-00", "sentry-trace_id=" TRACE ",sentry-release=r", anyone);
    CHECK_TEXT(got.parent.span_id, "1111111111111111");
    CHECK_TEXT(trace_members_find(&got.members, "release"), "r");
    trace_incoming_fini(&got);
}

TEST(without_a_parent_or_of_another_trace_baggage_means_nothing)
{
    struct trace_incoming got = incoming("", "", "sentry-trace_id=" TRACE, anyone);
    CHECK(!got.has_parent && got.members.count == 0);
    trace_incoming_fini(&got);
    got = incoming(TRACE "-" SPAN, "", "sentry-trace_id=11111111111111111111111111111111,sentry-release=r", anyone);
    CHECK(got.has_parent);
    CHECK_UINT(got.members.count, 0);
    trace_incoming_fini(&got);
}

TEST(the_trace_of_another_organisation_is_not_continued)
{
    static const struct {
        const char *ours, *theirs;
        bool is_continued, is_strictly_continued;
    } cases[] = {{NULL, "", true, true},
                 {"1", "", true, false},
                 {NULL, ",sentry-org_id=1", true, false},
                 {"1", ",sentry-org_id=1", true, true},
                 {"1", ",sentry-org_id=2", false, false}};
    static const char *const starts[] = {"sentry-trace_id=" TRACE, "other=1"};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        for (int is_strict = 0; is_strict < 2; is_strict++) {
            for (size_t j = 0; j < sizeof(starts) / sizeof(*starts); j++) {
                char baggage[128];
                (void)snprintf(baggage, sizeof(baggage), "%s%s", starts[j], cases[i].theirs);
                struct trace_incoming got =
                    incoming(TRACE "-" SPAN, "", baggage, (struct trace_continuation){cases[i].ours, is_strict});
                CHECK_UINT(got.has_parent, is_strict ? cases[i].is_strictly_continued : cases[i].is_continued);
                CHECK(got.has_parent || got.members.count == 0);
                trace_incoming_fini(&got);
            }
        }
    }
}

/* --- Sampling ----------------------------------------------------------------------------------------------------- */

static struct trace_sampling decide(enum trace_decision wanted, double sampler_rate, enum trace_decision parent,
                                    double rate)
{
    struct trace_evidence evidence = {.wanted = wanted,
                                      .sampler_rate = sampler_rate,
                                      .parent = parent,
                                      .parent_rate = 0.75,
                                      .rate = rate,
                                      .is_tracing_on = true,
                                      .rand_millionths = 500000};
    return trace_decide(&evidence);
}

TEST(explicit_counts_before_the_sampler_before_the_parent_before_the_rate)
{
    static const enum trace_decision undecided = TRACE_UNDECIDED, no = TRACE_NOT_SAMPLED, yes = TRACE_SAMPLED;
    CHECK(decide(yes, 0, no, 0).is_sampled);
    CHECK(!decide(no, 1, yes, 1).is_sampled);
    CHECK(decide(undecided, 1, no, 0).is_sampled);
    CHECK(!decide(undecided, 0, yes, 1).is_sampled);
    CHECK(decide(undecided, -1, yes, 0).is_sampled);
    CHECK(!decide(undecided, -1, no, 1).is_sampled);
    CHECK(decide(undecided, -1, undecided, 1).is_sampled);
    CHECK(!decide(undecided, -1, undecided, 0).is_sampled);
    CHECK(decide(yes, 0, no, 0).rate == 1 && decide(undecided, 0.25, yes, 1).rate == 0.25);
    CHECK(decide(undecided, -1, yes, 0).rate == 0.75 && !decide(undecided, -1, yes, 0).is_own);
}

TEST(sampled_is_what_is_below_the_rate)
{
    CHECK(!decide(TRACE_UNDECIDED, 0.5, TRACE_UNDECIDED, 1).is_sampled);
    CHECK(decide(TRACE_UNDECIDED, 0.500001, TRACE_UNDECIDED, 0).is_sampled);
}

TEST(an_invalid_rate_samples_nothing_and_is_reported)
{
    static const double rates[] = {1.5, INFINITY, NAN};
    for (size_t i = 0; i < 3; i++) {
        CHECK(!decide(TRACE_UNDECIDED, rates[i], TRACE_SAMPLED, 1).is_sampled);
        CHECK(decide(TRACE_UNDECIDED, rates[i], TRACE_SAMPLED, 1).is_faulty);
        CHECK(decide(TRACE_UNDECIDED, -1, TRACE_UNDECIDED, rates[i]).is_faulty);
    }
}

TEST(without_tracing_nothing_is_decided)
{
    struct trace_evidence evidence = {.wanted = TRACE_SAMPLED, .sampler_rate = -1, .parent = TRACE_SAMPLED, .rate = -1};
    struct trace_sampling sampling = trace_decide(&evidence);
    CHECK(!sampling.is_sampled && !sampling.is_decided);
}

TEST(the_number_of_a_trace_that_says_none_agrees_with_its_decision)
{
    static const double rates[] = {0.000001, 0.29, 0.3000004, 0.5, 0.9999999};
    static const uint32_t fresh[] = {0, 1, 123456, 999998, 999999};
    for (size_t i = 0; i < 5; i++) {
        for (size_t k = 0; k < 5; k++) {
            double sampled = trace_rand_of_decision(TRACE_SAMPLED, rates[i], fresh[k]);
            double others = trace_rand_of_decision(TRACE_NOT_SAMPLED, rates[i], fresh[k]);
            CHECK(sampled / TRACE_RAND_END < rates[i]);
            if (rates[i] < 0.9999) CHECK(others / TRACE_RAND_END >= rates[i] && others < TRACE_RAND_END);
        }
    }
    CHECK_UINT(trace_rand_of_decision(TRACE_UNDECIDED, 0.5, 777), 777);
    CHECK_UINT(trace_rand_of_decision(TRACE_SAMPLED, -1, 777), 777);
}

TEST_MAIN()
