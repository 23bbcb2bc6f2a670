/* Whatever allocation fails, the model and the formats say STATUS_NO_MEMORY, and nothing is lost or touched twice (the
 * sanitizers see to that). The linker puts our allocator before libc's (--wrap).  SPDX-License-Identifier: MIT */
#include "test.h"

#include "failing_allocator.h"

#include "format/sentry/client_report.h"
#include "format/sentry/envelope.h"
#include "format/sentry/envelope_profile.h"
#include "format/viewer/firefox.h"
#include "format/format.h"
#include "format/pprof/pprof.h"
#include "format/sentry/rules.h"
#include "format/viewer/speedscope.h"
#include "format/sentry/transaction.h"
#include "profile/time_labels.h"

static bool may_allocate(void)
{
    if (allocations_left < 0) return true;
    if (allocations_left > 0) {
        allocations_left--;
        return true;
    }
    has_failed = true;
    return false;
}

/* Enough of everything that tables grow more than once. */
static void build(struct profile *profile)
{
    enum { SAMPLES = 300 };
    profile_add_value_type(profile, "samples", "count");
    struct mapping mapping = {.start = 4096, .limit = 8192, .file_name = profile_text(profile, "/bin/program")};
    struct mapping_id mapping_id = profile_add_mapping(profile, &mapping);
    for (uint32_t i = 0; i < SAMPLES; i++) {
        char name[32];
        (void)snprintf(name, sizeof(name), "function-%u", i % 100);
        struct function function = {.name = profile_text(profile, name), .in_app = (enum in_app)(i % 3)};
        struct line line = {.function = profile_add_function(profile, &function)};
        struct location location = {.mapping = mapping_id, .address = 4096 + i % 150};
        struct location_id place = profile_add_location(profile, &location, &line, 1);
        struct stack_id root = profile_add_stack(profile, (struct stack_id){0}, place);
        struct label label = {.key = profile_text(profile, "request"), .is_number = true, .number = i % 90};
        struct sample sample = {
            .stack = profile_add_stack(profile, root, place),
            .thread = profile_add_thread(profile, &(struct thread){.id = function.name, .name = function.name}),
            .labels = profile_add_labels(profile, &label, 1),
            .time_ns = SAMPLES - i,
        };
        int64_t value = i;
        profile_add_sample(profile, &sample, &value);
    }
    profile_add_metadata_number(profile, "ticks", SAMPLES);
    profile_add_comment(profile, slice_of_text("hello"));
    struct measurement *measurement = profile_measurement(profile, "cpu", "percent");
    if (measurement) profile_measure(profile, measurement, 1, 0.5);
}

static enum status merge_and_convert(const struct profile *profile, struct profile *merged, struct buffer *bytes)
{
    struct profile_extra_labels extra = {.items = {{.key = "pid", .number = 1, .is_number = true}}, .count = 1};
    enum status status = profile_merge(merged, profile, &extra, NULL);
    if (status == STATUS_OK) status = profile_sort_by_time(merged, NULL);
    if (status == STATUS_OK) status = profile_aggregate(merged, NULL);
    if (status == STATUS_OK) status = format_collapsed.encode(merged, bytes, NULL);
    if (status != STATUS_OK) return status;
    buffer_clear(bytes);
    return pprof_encode(merged, bytes, NULL);
}

static enum status run(void)
{
    struct profile profile, merged, decoded;
    struct buffer bytes;
    profile_init(&profile);
    profile_init(&merged);
    profile_init(&decoded);
    buffer_init(&bytes, 1 << 24);
    build(&profile);
    enum status status = profile_failed(&profile, NULL);
    if (status == STATUS_OK) status = merge_and_convert(&profile, &merged, &bytes);
    if (status == STATUS_OK) status = format_decode(buffer_slice(&bytes), &decoded, NULL, NULL);
    profile_fini(&profile);
    profile_fini(&merged);
    profile_fini(&decoded);
    buffer_fini(&bytes);
    return status;
}

/* Texts of the formats that are read into the model, each with all that makes a decoder allocate. */
static const struct {
    const struct format *format;
    const char *text;
} texts[] = {
    {&format_speedscope,
     "{\"shared\":{\"frames\":[{\"name\":\"\\u0066\"}]},\"profiles\":[{\"type\":\"evented\",\"name\":\"a\",\"unit\":"
     "\"seconds\",\"startValue\":0,\"endValue\":3,\"events\":[{\"type\":\"O\",\"frame\":0,\"at\":1}]},{\"type\":"
     "\"sampled\","
     "\"name\":\"a\",\"unit\":\"seconds\",\"startValue\":0,\"endValue\":1,\"samples\":[[0]],\"weights\":[1]}]}"},
    {&format_perf_script, "a 1/1 [0] 2.5: cycles: \n\t10 f (inlined)\n\t10 g (/a)\n\nb 2/3 1.5: 7 faults: 20 h (/b)\n"},
    {&format_chrome,
     "{\"traceEvents\":[{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":7,\"tid\":9,\"args\":{\"name\":\"\\u0057\"}},"
     "{\"ph\":\"P\",\"name\":\"Profile\",\"pid\":7,\"tid\":9,\"args\":{\"data\":{\"startTime\":100,\"cpuProfile\":{"
     "\"nodes\":"
     "[{\"id\":1,\"callFrame\":{\"functionName\":\"f\"},\"children\":[2]},{\"id\":2,\"callFrame\":{}}],\"samples\":[2,"
     "1]},"
     "\"timeDeltas\":[5,-1]}}}]}"},
    {&format_collapsed, "main;outer;inner_[i];call_[k] 3\nmain;made_[j] 1\n"},
};

static enum status read_and_write(size_t place)
{
    static const struct format *const encoders[] = {&format_speedscope, &format_firefox, &format_collapsed,
                                                    &format_pprof};
    struct profile profile;
    struct buffer bytes;
    profile_init(&profile);
    buffer_init(&bytes, 1 << 24);
    enum status status = texts[place].format->decode(slice_of_text(texts[place].text), &profile, NULL);
    time_labels_put(&profile);
    if (status == STATUS_OK) status = profile_failed(&profile, NULL);
    for (size_t i = 0; i < sizeof(encoders) / sizeof(encoders[0]) && status == STATUS_OK; i++) {
        buffer_clear(&bytes);
        status = encoders[i]->encode(&profile, &bytes, NULL);
    }
    profile_fini(&profile);
    buffer_fini(&bytes);
    return status;
}

static enum status read_and_write_all(void)
{
    enum status status = STATUS_OK;
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]) && status == STATUS_OK; i++) status = read_and_write(i);
    return status;
}

/* An envelope with a profile of V1, its transaction, a span, a report and something else; texts with escapes. */
static const char envelope_text[] =
    "{\"dsn\":\"http:\\/\\/k@h\\/1\"}\n{\"type\":\"transaction\"}\n{\"event_id\":\"30976f2ddbe04ac9b6bffe6e35d4710c\","
    "\"transaction\":\"\\u0061\",\"spans\":[{\"span_id\":\"b1\"}]}\n{\"type\":\"span\"}\n{\"items\":[{\"name\":\"x\"}]}"
    "\n"
    "{\"type\":\"client_report\"}\n{\"discarded_events\":[{\"reason\":\"invalid\"}]}\n{\"type\":\"new\"}\nold\n"
    "{\"type\":\"profile\"}\n"
    "{\"version\":\"1\",\"event_id\":\"41fed0925670468bb0457f61a74688ec\",\"platform\":\"\\u0070\",\"release\":\"a@1\","
    "\"timestamp\":\"2023-01-01T00:00:00Z\",\"device\":{\"architecture\":\"x\"},\"os\":{\"name\":\"l\",\"version\":"
    "\"6\"},"
    "\"transaction\":{\"id\":\"30976f2ddbe04ac9b6bffe6e35d4710c\",\"name\":\"a\",\"trace_id\":"
    "\"4b25bc58f14243d8b208d1e22a054164\",\"active_thread_id\":\"7\"},"
    "\"profile\":{\"samples\":[{\"elapsed_since_start_ns\":\"0\",\"stack_id\":0,\"thread_id\":\"7\"},"
    "{\"elapsed_since_start_ns\":\"1\",\"stack_id\":1,\"thread_id\":\"7\"},"
    "{\"elapsed_since_start_ns\":\"2\",\"stack_id\":0,\"thread_id\":\"7\"}],\"stacks\":[[0],[]],"
    "\"frames\":[{\"function\":\"f\"}],\"thread_metadata\":{\"7\":{\"name\":\"main\"}}}}";

static enum status understand(const struct envelope_item *item)
{
    struct transaction transaction = {0};
    struct span_list spans = {0};
    struct client_report report = {0};
    struct rules_result result = {.accepted = true};
    enum status status = STATUS_OK;
    if (slice_equals_text(item->type, "transaction")) status = transaction_decode(item->payload, &transaction, NULL);
    if (slice_equals_text(item->type, "span")) status = spans_decode(item->payload, &spans, NULL);
    if (slice_equals_text(item->type, "client_report")) status = client_report_decode(item->payload, &report, NULL);
    if (slice_equals_text(item->type, "profile"))
        status = rules_validate_profile(item->payload, NULL, RULES_RELAY, &result, NULL);
    if (status == STATUS_OK) CHECK(result.accepted);
    transaction_fini(&transaction);
    spans_fini(&spans);
    client_report_fini(&report);
    return status;
}

static enum status read_items(void)
{
    struct envelope_reader reader;
    struct envelope_item item;
    struct error framing = {.status = STATUS_OK};
    enum status status = envelope_open(&reader, slice_of_text(envelope_text), NULL);
    while (status == STATUS_OK && envelope_next(&reader, &item, &framing)) status = understand(&item);
    envelope_close(&reader);
    return status == STATUS_OK ? framing.status : status;
}

static enum status read_and_write_envelope(void)
{
    struct profile profile;
    struct buffer bytes;
    profile_init(&profile);
    buffer_init(&bytes, 1 << 24);
    enum status status = read_items();
    if (status == STATUS_OK) status = envelope_profile_decode(slice_of_text(envelope_text), &profile, NULL);
    if (status == STATUS_OK) status = profile_failed(&profile, NULL);
    if (status == STATUS_OK) status = profile_fill_idle(&profile, NULL);
    if (status == STATUS_OK) status = envelope_profile_encode_v1(&profile, &bytes, NULL);
    profile_fini(&profile);
    buffer_fini(&bytes);
    return status;
}

static void fail_each_allocation(enum status (*run_once)(void))
{
    long allocations = 0;
    do {
        allocations_left = allocations++;
        has_failed = false;
        enum status status = run_once();
        allocations_left = -1;
        if (has_failed && status != STATUS_NO_MEMORY)
            TEST_FAIL("allocation %ld failed: status %d", allocations, status);
        if (!has_failed) CHECK_UINT(status, STATUS_OK);
    } while (has_failed);
    CHECK(allocations > 100);
}

TEST(each_allocation_that_fails_is_reported_and_nothing_is_lost)
{
    fail_each_allocation(run);
}

TEST(each_failed_allocation_in_a_foreign_format_is_reported)
{
    fail_each_allocation(read_and_write_all);
}

TEST(each_failed_allocation_in_sentrys_formats_is_reported)
{
    fail_each_allocation(read_and_write_envelope);
}

TEST_MAIN()
