/* Sample Format V2 chunks, read and written (FMT-1 FMT-2 FMT-3 FMT-4 FMT-5 FMT-6 FMT-7 FMT-8,
 * V2-1 V2-2 V2-3 V2-4 V2-5 V2-6 V2-7, PPF-4; facts §1.2, §1.3, §3.5, §4.2).
 * test/cli/check_chunk.py holds test/data/sentry-v2-chunk.json, which the first test compares with, against every rule
 * of the server.  SPDX-License-Identifier: MIT */
#include "test.h"

#include "base/file.h"
#include "format/sentry/envelope.h"
#include "format/sentry/envelope_profile.h"
#include "format/sentry/sentry_v2.h"

#define WRITTEN_CHUNK TEST_SOURCE_ROOT "/test/data/sentry-v2-chunk.json"
#define SECOND 1000000000u
#define START_NS (1700000000u * (uint64_t)SECOND)

/* --- Making profiles ---------------------------------------------------------------------------------------------- */

static struct function_id function_of(struct profile *profile, const char *name, const char *system_name,
                                      const char *file_name)
{
    return profile_add_function(profile, &(struct function){.name = profile_text(profile, name),
                                                            .system_name = profile_text(profile, system_name),
                                                            .file_name = profile_text(profile, file_name)});
}

static struct location_id location_of(struct profile *profile, struct mapping_id mapping, uint64_t address,
                                      struct function_id function, int64_t line)
{
    struct line lines[] = {{.function = function, .line = line}};
    return profile_add_location(profile, &(struct location){.mapping = mapping, .address = address}, lines,
                                function.index ? 1 : 0);
}

static struct thread_id thread_of(struct profile *profile, const char *id, const char *name)
{
    return profile_add_thread(profile,
                              &(struct thread){.id = profile_text(profile, id), .name = profile_text(profile, name)});
}

static void add_sample(struct profile *profile, struct thread_id thread, struct stack_id stack, uint64_t time_ns,
                       int64_t count)
{
    int64_t values[] = {count, count * 10000000};
    profile_add_sample(profile, &(struct sample){.stack = stack, .thread = thread, .time_ns = time_ns}, values);
}

/* A profile with times, a release and a period of 10 ms, and no samples. */
static void begin_profile(struct profile *profile)
{
    profile_init(profile);
    profile->release = profile_text(profile, "service@1.2.3");
    profile->has_times = true;
    profile->period = SECOND / 100;
    profile_add_value_type(profile, "samples", "count");
    profile_add_value_type(profile, "wall", "nanoseconds");
    profile->period_type = profile->value_types[1];
}

/* Everything that a chunk can hold, and some that it must not. */
static void make_full_profile(struct profile *profile)
{
    begin_profile(profile);
    profile->profiler_id = profile_text(profile, "0b167bf84f9e4b84b384f321756d51e0");
    profile->chunk_id = profile_text(profile, "9723ec98a59b4cf9a8321939aa98f852");
    profile->sdk_name = profile_text(profile, "test");
    profile->sdk_version = profile_text(profile, "0");

    struct mapping program = {
        .start = 0x555500001000,
        .limit = 0x555500003000,
        .file_offset = 0x1000,
        .file_name = profile_text(profile, "/usr/lib/service/service"),
        .build_id = profile_text(profile, "f1c3bcc0279865fe3058404b2831d9e64135386c"),
        .image_start = 0x555500000000,
        .image_size = 0x5000,
    };
    struct mapping_id text = profile_add_mapping(profile, &program);
    program.start = 0x555500003000;
    program.limit = 0x555500004000;
    program.file_offset = 0x3000;
    struct mapping_id more_text = profile_add_mapping(profile, &program);
    struct mapping_id libc = profile_add_mapping(
        profile, &(struct mapping){.start = 0x7fff00000000,
                                   .limit = 0x7fff00100000,
                                   .file_name = profile_text(profile, "/usr/lib/x86_64-linux-gnu/libc.so.6"),
                                   .debug_id = profile_text(profile, "1cc8ef1f-c2a2-e14d-ce2e-848c620ef422"),
                                   .image_vmaddr = 0x10000});
    struct mapping_id vdso = profile_add_mapping(
        profile, &(struct mapping){
                     .start = 0x7fffff000000, .limit = 0x7fffff001000, .file_name = profile_text(profile, "[vdso]")});
    (void)profile_add_mapping(profile, &(struct mapping){.start = 1, .limit = 2, .build_id = program.build_id});

    struct function_id main_function = function_of(profile, "main", "", "/srv/service/main.c");
    struct function_id work = function_of(profile, "work(int)", "_Z4worki", "src/work.cc");
    struct function_id inlined = function_of(profile, "step\t\"quoted\" \xC3\xA9\xFF", "", "");
    struct function_id lock = function_of(profile, "lock", "", "");
    struct stack_id root =
        profile_add_stack(profile, (struct stack_id){0}, location_of(profile, text, 0x555500001010, main_function, 40));
    struct line lines[] = {{.function = inlined, .line = 7, .column = 3}, {.function = work, .line = 12}};
    struct location_id in_work =
        profile_add_location(profile, &(struct location){.mapping = more_text, .address = 0x555500003020}, lines, 2);
    struct stack_id working = profile_add_stack(profile, root, in_work);
    struct stack_id locking = profile_add_stack(profile, working, location_of(profile, libc, 0x7fff00000100, lock, 0));
    struct stack_id in_vdso =
        profile_add_stack(profile, root, location_of(profile, vdso, 0x7fffff000200, (struct function_id){0}, 0));
    (void)profile_add_stack(profile, locking, in_work);

    struct thread_id main_thread = thread_of(profile, "101", "main");
    struct thread_id worker = profile_add_thread(profile, &(struct thread){.id = profile_text(profile, "102"),
                                                                           .name = profile_text(profile, "worker"),
                                                                           .priority = -5,
                                                                           .has_priority = true});
    struct thread_id nice = profile_add_thread(
        profile, &(struct thread){.id = profile_text(profile, "103"), .priority = 19, .has_priority = true});
    (void)thread_of(profile, "104", "never sampled");

    add_sample(profile, main_thread, working, START_NS + 1499, 1);
    add_sample(profile, worker, locking, START_NS + 5000000, 3); /* two of its ticks are after the next sample */
    add_sample(profile, main_thread, in_vdso, START_NS + 10001500, 1);
    add_sample(profile, nice, (struct stack_id){0}, START_NS + 10001500, 1);
    add_sample(profile, worker, locking, START_NS + 40000000, 0);

    struct measurement *cpu = profile_measurement(profile, "cpu_usage", "percent");
    profile_measure(profile, cpu, START_NS + 20000000, 12.5);
    profile_measure(profile, cpu, START_NS + 30000000, 1.0 / 0.0);
    profile_measure(profile, profile_measurement(profile, "energy", "joule"), START_NS, 1);
    profile_add_metadata_number(profile, "ticks", 4);
    profile_add_metadata_text(profile, "engine", "signals");
}

/* Two samples of one thread, TIMES_NS[0] and [1] after START_NS. */
static void make_small_profile(struct profile *profile, const uint64_t times_ns[2])
{
    begin_profile(profile);
    struct stack_id stack =
        profile_add_stack(profile, (struct stack_id){0},
                          location_of(profile, (struct mapping_id){0}, 0, function_of(profile, "f", "", ""), 0));
    for (int i = 0; i < 2; i++) add_sample(profile, thread_of(profile, "1", ""), stack, START_NS + times_ns[i], 1);
}

/* --- Writing ------------------------------------------------------------------------------------------------------ */

/* Run with UPDATE=1 to write what came as what must come, and look at the difference. */
TEST(a_chunk_is_written_byte_for_byte_as_expected)
{
    struct profile profile;
    struct buffer written, expected;
    struct error error = {.message = ""};
    buffer_init(&written, 1 << 20);
    buffer_init(&expected, 1 << 20);
    make_full_profile(&profile);
    CHECK_UINT(sentry_v2_encode(&profile, NULL, &written, &error), STATUS_OK);
    buffer_append_byte(&written, '\n');
    if (getenv("UPDATE")) CHECK_UINT(file_write(WRITTEN_CHUNK, buffer_slice(&written), NULL), STATUS_OK);
    CHECK_UINT(file_read(WRITTEN_CHUNK, &expected, NULL), STATUS_OK);
    buffer_append_byte(&written, 0);
    buffer_append_byte(&expected, 0);
    CHECK_TEXT((const char *)written.data, (const char *)expected.data);
    buffer_fini(&written);
    buffer_fini(&expected);
    profile_fini(&profile);
}

/* Returns the result of encoding PROFILE as a chunk. */
static enum status try_encoding(const struct profile *profile, struct error *error)
{
    struct buffer out;
    buffer_init(&out, 1 << 26);
    enum status status = sentry_v2_encode(profile, NULL, &out, error);
    buffer_fini(&out);
    return status;
}

static enum status check_times(uint64_t first_ns, uint64_t second_ns, struct error *error)
{
    struct profile profile;
    make_small_profile(&profile, (uint64_t[]){first_ns, second_ns});
    enum status status = try_encoding(&profile, error);
    profile_fini(&profile);
    return status;
}

TEST(samples_that_are_over_66_seconds_apart_are_rejected_before_sending)
{
    struct error error = {.message = ""};
    CHECK_UINT(check_times(0, 66u * (uint64_t)SECOND, &error), STATUS_OK);
    CHECK_UINT(check_times(0, 66u * (uint64_t)SECOND + 1000, &error), STATUS_MALFORMED);
    CHECK(strstr(error.message, "profiling_duration_is_too_long:") == error.message);
}

TEST(a_chunk_needs_a_thread_with_two_samples_that_have_frames)
{
    struct profile profile;
    struct error error = {.message = ""};
    make_small_profile(&profile, (uint64_t[]){0, 1000});
    struct stack_id stack = profile.samples.stack[0];
    profile.samples.stack[1] = (struct stack_id){0};
    CHECK_UINT(try_encoding(&profile, &error), STATUS_MALFORMED);
    CHECK(strstr(error.message, "profiling_not_enough_samples:") == error.message);
    add_sample(&profile, thread_of(&profile, "2", ""), stack, START_NS + 100u * (uint64_t)SECOND, 1);
    CHECK_UINT(try_encoding(&profile, NULL), STATUS_MALFORMED); /* one each */
    add_sample(&profile, thread_of(&profile, "1", ""), stack, START_NS + 2000, 1);
    CHECK_UINT(try_encoding(&profile, NULL), STATUS_OK); /* thread 2, far away, is dropped by the server */
    profile_fini(&profile);
}

TEST(a_chunk_needs_a_release)
{
    struct profile profile;
    struct buffer out;
    struct error error = {.message = ""};
    buffer_init(&out, 1 << 20);
    make_small_profile(&profile, (uint64_t[]){0, 1000});
    profile.release.index = 0;
    CHECK_UINT(sentry_v2_encode(&profile, NULL, &out, &error), STATUS_MALFORMED);
    CHECK(strstr(error.message, "release") != NULL);
    CHECK_UINT(out.size, 0);
    profile_fini(&profile);
    buffer_fini(&out);
}

TEST(a_chunk_over_50_mib_is_rejected_and_nothing_of_it_is_given_out)
{
    struct profile profile;
    struct buffer out;
    struct error error = {.message = ""};
    buffer_init(&out, (size_t)200 << 20);
    make_small_profile(&profile, (uint64_t[]){0, 1000});
    profile.samples.values[0] = 900000;
    profile.period = 10000;
    CHECK_UINT(sentry_v2_encode(&profile, NULL, &out, &error), STATUS_MALFORMED);
    CHECK(strstr(error.message, "profiling_exceed_size_limit:") == error.message);
    profile.samples.values[0] = INT64_MAX;
    CHECK_UINT(sentry_v2_encode(&profile, NULL, &out, &error), STATUS_MALFORMED);
    CHECK(strstr(error.message, "profiling_exceed_size_limit:") == error.message);
    CHECK_UINT(out.size, 0);
    profile_fini(&profile);
    buffer_fini(&out);
}

/* --- Reading ------------------------------------------------------------------------------------------------------ */

static enum status decode(const char *text, struct profile *profile, struct error *error)
{
    profile_init(profile);
    return sentry_v2_decode(slice_of_text(text), profile, error);
}

static void encode_and_decode(const struct profile *from, const struct sentry_v2_options *options,
                              struct profile *ret_profile)
{
    struct buffer out;
    struct error error = {.message = ""};
    buffer_init(&out, 1 << 20);
    if (sentry_v2_encode(from, options, &out, &error) != STATUS_OK) TEST_FAIL("%s", error.message);
    profile_init(ret_profile);
    if (sentry_v2_decode(buffer_slice(&out), ret_profile, &error) != STATUS_OK) TEST_FAIL("%s", error.message);
    buffer_fini(&out);
}

/* The functions of a stack, leaf first, "a,b;c": a is inlined in b. */
static const char *stack_text(const struct profile *profile, struct stack_id stack)
{
    static char text[400];
    int used = 0;
    for (; stack.index; stack = profile_stack(profile, stack).parent) {
        const struct location *location = profile_location(profile, profile_stack(profile, stack).location);
        const struct line *lines = profile_lines(profile, location);
        used += snprintf(text + used, sizeof(text) - (size_t)used, "%s", used ? ";" : "");
        for (uint32_t i = 0; i < location->line_count; i++) {
            used += snprintf(text + used, sizeof(text) - (size_t)used, "%s%s", i ? "," : "",
                             profile_c_string(profile, profile_function(profile, lines[i].function)->name));
        }
        if (location->address)
            used += snprintf(text + used, sizeof(text) - (size_t)used, "@%" PRIx64, location->address);
    }
    text[used] = 0;
    return text;
}

TEST(what_a_chunk_can_hold_survives_being_written_and_read)
{
    struct profile written, read;
    make_full_profile(&written);
    encode_and_decode(&written, NULL, &read);

    CHECK_TEXT(profile_c_string(&read, read.profiler_id), "0b167bf84f9e4b84b384f321756d51e0");
    CHECK_TEXT(profile_c_string(&read, read.chunk_id), "9723ec98a59b4cf9a8321939aa98f852");
    CHECK_TEXT(profile_c_string(&read, read.platform), "native");
    CHECK_TEXT(profile_c_string(&read, read.environment), "production");
    CHECK_TEXT(profile_c_string(&read, read.release), "service@1.2.3");
    CHECK_INT(read.period, SECOND / 100);
    CHECK_UINT(read.samples.count, 6 + 2); /* three ticks of one sample, none of the last; the ends of two threads */
    CHECK_UINT((profile_sample_values(&read, 6)[1] + 500) / 1000, 10000); /* as long as it lasted */
    CHECK_TEXT(stack_text(&read, read.samples.stack[0]),
               "step\t\"quoted\" \xC3\xA9\xEF\xBF\xBD,work(int)@555500003020;main@555500001010");
    CHECK_TEXT(stack_text(&read, read.samples.stack[1]), "lock@7fff00000100;step\t\"quoted\" \xC3\xA9\xEF\xBF\xBD,"
                                                         "work(int)@555500003020;main@555500001010");
    CHECK_TEXT(stack_text(&read, read.samples.stack[2]), "@7fffff000200;main@555500001010");
    CHECK_UINT(read.samples.stack[3].index, 0);

    const struct thread *worker = profile_thread(&read, read.samples.thread[1]);
    CHECK_TEXT(profile_c_string(&read, worker->id), "102");
    CHECK_TEXT(profile_c_string(&read, worker->name), "worker");
    CHECK_INT(worker->priority, -5); /* our own name (FMT-5) */
    const struct location *work = profile_location(&read, profile_stack(&read, read.samples.stack[0]).location);
    const struct mapping *program = profile_mapping(&read, work->mapping);
    CHECK_UINT(program->image_start, 0x555500000000);
    CHECK_UINT(program->image_size, 0x5000);
    CHECK_TEXT(profile_c_string(&read, program->file_name), "/usr/lib/service/service");
    CHECK_TEXT(profile_c_string(&read, program->debug_id), "c0bcc3f1-9827-fe65-3058-404b2831d9e6");
    CHECK_TEXT(profile_c_string(&read, program->build_id), "f1c3bcc0279865fe3058404b2831d9e64135386c");
    const struct function *function = profile_function(&read, profile_lines(&read, work)[1].function);
    CHECK_TEXT(profile_c_string(&read, function->system_name), "_Z4worki");
    CHECK_TEXT(profile_c_string(&read, function->file_name), "src/work.cc");
    CHECK_UINT(function->in_app, IN_APP_YES);
    CHECK_UINT(read.measurements.count, 1);
    CHECK(read.measurements.items[0].count == 1 && read.measurements.items[0].values[0].value == 12.5);
    CHECK_UINT(read.metadata.count, 2);
    CHECK_INT(read.metadata.items[0].number, 4);
    CHECK_TEXT(profile_c_string(&read, read.metadata.items[1].text), "signals");
    profile_fini(&written);
    profile_fini(&read);
}

TEST(writing_what_was_read_gives_the_same_bytes)
{
    struct profile first, second;
    struct buffer once, again;
    struct error error = {.message = ""};
    buffer_init(&once, 1 << 20);
    buffer_init(&again, 1 << 20);
    make_full_profile(&first);
    CHECK_UINT(sentry_v2_encode(&first, NULL, &once, &error), STATUS_OK);
    profile_init(&second);
    CHECK_UINT(sentry_v2_decode(buffer_slice(&once), &second, &error), STATUS_OK);
    CHECK_UINT(sentry_v2_encode(&second, NULL, &again, &error), STATUS_OK);
    buffer_append_byte(&once, 0);
    buffer_append_byte(&again, 0);
    CHECK_TEXT((const char *)again.data, (const char *)once.data);
    buffer_fini(&once);
    buffer_fini(&again);
    profile_fini(&first);
    profile_fini(&second);
}

TEST(only_the_ticks_of_the_range_that_is_asked_for_are_written)
{
    struct profile written, read;
    make_full_profile(&written);
    struct sentry_v2_options options = {
        .from_ns = START_NS + 5000001, .to_ns = START_NS + 25000000, .chunk_id = "11111111111141118111111111111111"};
    struct stack_id working = written.samples.stack[0];
    add_sample(&written, written.samples.thread[0], working, START_NS + 24999000, 1);
    encode_and_decode(&written, &options, &read);
    /* 10 ms twice, the worker's second tick at 15 ms, 25 ms less a microsecond; and the ends of two threads */
    CHECK_UINT(read.samples.count, 4 + 2);
    CHECK_UINT(read.time_ns / 1000000, (START_NS + 10001500) / 1000000);
    CHECK_TEXT(profile_c_string(&read, read.chunk_id), "11111111111141118111111111111111");
    profile_fini(&written);
    profile_fini(&read);
}

TEST(idle_ticks_can_be_thinned_to_their_ends_and_one_a_second)
{
    struct profile written, read;
    make_small_profile(&written, (uint64_t[]){0, 3u * (uint64_t)SECOND});
    written.samples.values[0] = 250; /* 2.5 s at 100 Hz: 0, 1, 2 and 2.49 s */
    written.samples.values[1] = 250 * (SECOND / 100);
    struct sentry_v2_options options = {.thins_idle = true};
    encode_and_decode(&written, &options, &read);
    CHECK_UINT(read.samples.count, 4 + 1 + 1 + 1); /* an end at 2.5 s, the other sample, and its end */
    CHECK_UINT((read.samples.time_ns[1] - START_NS + 500) / 1000, 1000000);
    CHECK_UINT((read.samples.time_ns[3] - START_NS + 500) / 1000, 2490000);
    profile_fini(&written);
    profile_fini(&read);
}

/* The number of samples is the time in which a thread ran; the columns are the columns of a recording. */
TEST(ticks_in_which_a_thread_ran_are_never_thinned_SES_12)
{
    enum { TICKS = 250, COLUMNS = 5 };
    static const char *const times[] = {"wall", "cpu", "runnable", "blocked"};
    const int64_t period_ns = (int64_t)(SECOND / 100), all_ns = TICKS * period_ns, some_ns = period_ns / 4;
    const struct {
        int64_t cpu_ns, runnable_ns;
        size_t samples; /* events to write, without the end */
    } cases[] = {{all_ns, 0, TICKS}, {0, all_ns, TICKS}, {period_ns, 0, TICKS}, {some_ns, some_ns, 4}, {0, 0, 4}};
    struct sentry_v2_options options = {.thins_idle = true};
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        struct profile written, read;
        begin_profile(&written);
        written.value_type_count = 1;
        for (size_t k = 0; k < COLUMNS - 1; k++) profile_add_value_type(&written, times[k], "nanoseconds");
        struct stack_id at = profile_add_stack(
            &written, (struct stack_id){0},
            location_of(&written, (struct mapping_id){0}, 0, function_of(&written, "spin", "", ""), 0));
        struct sample sample = {.stack = at, .thread = thread_of(&written, "1", ""), .time_ns = START_NS};
        int64_t blocked_ns = all_ns - cases[i].cpu_ns - cases[i].runnable_ns;
        profile_add_sample(&written, &sample,
                           (const int64_t[]){TICKS, all_ns, cases[i].cpu_ns, cases[i].runnable_ns, blocked_ns});
        encode_and_decode(&written, &options, &read);
        CHECK_UINT(read.samples.count, cases[i].samples + 1);
        profile_fini(&written);
        profile_fini(&read);
    }
}

/* A server gives a sample the time until the next one of its thread: after work of 50 ms and a sleep of 200 ms it gave
 * the work 250 ms. */
TEST(an_idle_sample_ends_every_run_of_cpu_time)
{
    enum { RUNS = 4, TICKS = 5, TICK_NS = 10000000 };
    struct profile written, read;
    begin_profile(&written);
    written.value_types[1].type = profile_text(&written, "cpu");
    struct stack_id stack =
        profile_add_stack(&written, (struct stack_id){0},
                          location_of(&written, (struct mapping_id){0}, 0, function_of(&written, "spin", "", ""), 0));
    struct thread_id thread = thread_of(&written, "1", "");
    for (uint64_t run = 0; run < RUNS; run++) {
        for (uint64_t tick = 0; tick < TICKS; tick++) {
            /* Ticks are never exact: half of them come a little late. */
            uint64_t late_ns = tick % 2 * 100000;
            add_sample(&written, thread, stack, START_NS + run * 250000000 + tick * TICK_NS + late_ns, 1);
        }
    }
    encode_and_decode(&written, NULL, &read);
    CHECK_UINT(read.samples.count, RUNS * (TICKS + 1));
    int64_t busy_ns = 0;
    for (size_t i = 0; i < read.samples.count; i++) {
        if (read.samples.stack[i].index) busy_ns += profile_sample_values(&read, i)[1];
    }
    CHECK(busy_ns > RUNS * TICKS * (int64_t)TICK_NS * 99 / 100 &&
          busy_ns < RUNS * TICKS * (int64_t)TICK_NS * 101 / 100);
    profile_fini(&written);
    profile_fini(&read);
}

/* A sample after missed ticks lasts longer: that time is nobody's sleep. */
TEST(missed_ticks_of_wall_time_are_no_gap)
{
    struct profile written, read;
    make_small_profile(&written, (uint64_t[]){0, 5 * (uint64_t)(SECOND / 100)});
    written.samples.values[3] = 5 * (SECOND / 100);
    encode_and_decode(&written, NULL, &read);
    CHECK_UINT(read.samples.count, 2 + 1);
    profile_fini(&written);
    profile_fini(&read);
}

TEST(a_profile_without_times_is_laid_out_one_sample_after_the_other)
{
    struct profile written, read;
    make_small_profile(&written, (uint64_t[]){0, 0});
    written.has_times = false;
    written.time_ns = START_NS;
    written.samples.values[0] = 2;
    add_sample(&written, thread_of(&written, "2", ""), written.samples.stack[0], 0, 4);
    encode_and_decode(&written, NULL, &read);
    CHECK_UINT(read.samples.count, 7 + 2); /* the ends of two threads */
    CHECK_UINT(read.time_ns, START_NS);
    CHECK_UINT((read.duration_ns + 500) / 1000, 40000);
    profile_fini(&written);
    profile_fini(&read);
}

#define CHUNK_START                                                                                                    \
    "{\"version\":\"2\",\"platform\":\"native\",\"profiler_id\":\"0B167BF8-4F9E-4B84-B384-F321756D51E0\",\"chunk_"     \
    "id\":"                                                                                                            \
    "\"9723ec98a59b4cf9a8321939aa98f852\","
#define CHUNK(profile) CHUNK_START "\"profile\":{" profile "}}"

TEST(a_sample_lasts_until_the_next_one_of_its_thread_in_doubles_of_seconds)
{
    struct profile profile;
    CHECK_UINT(decode(CHUNK("\"samples\":[{\"timestamp\":1700000000.5,\"stack_id\":0,\"thread_id\":\"b\"},"
                            "{\"timestamp\":1700000000.1,\"stack_id\":0,\"thread_id\":\"a\"},"
                            "{\"timestamp\":1700000000.3,\"stack_id\":0,\"thread_id\":\"a\"},"
                            "{\"timestamp\":1700000000.5,\"stack_id\":0,\"thread_id\":\"b\"},"
                            "{\"timestamp\":1700000001,\"stack_id\":0,\"thread_id\":7}],"
                            "\"frames\":[{\"function\":\"f\"}],\"stacks\":[[0]]"),
                      &profile, NULL),
               STATUS_OK);
    CHECK_UINT(profile.samples.count, 5);
    CHECK_UINT(profile.samples.time_ns[0], (uint64_t)(1700000000.1 * 1e9));
    CHECK_INT(profile_sample_values(&profile, 0)[0], 1);
    CHECK_INT(profile_sample_values(&profile, 0)[1],
              (int64_t)((uint64_t)(1700000000.3 * 1e9) - (uint64_t)(1700000000.1 * 1e9)));
    for (size_t i = 1; i < 5; i++) CHECK_INT(profile_sample_values(&profile, i)[1], 0);
    CHECK_TEXT(profile_c_string(&profile, profile_thread(&profile, profile.samples.thread[4])->id), "7");
    CHECK_TEXT(profile_c_string(&profile, profile.profiler_id), "0b167bf84f9e4b84b384f321756d51e0");
    CHECK(profile.has_times);
    profile_fini(&profile);
}

static const char *decoded_stack(const char *text)
{
    static char copy[400];
    struct profile profile;
    struct error error;
    if (decode(text, &profile, &error) != STATUS_OK) TEST_FAIL("%s", error.message);
    (void)snprintf(copy, sizeof(copy), "%s", stack_text(&profile, profile.samples.stack[0]));
    profile_fini(&profile);
    return copy;
}

#define NATIVE_CHUNK(stack)                                                                                            \
    CHUNK(                                                                                                             \
        "\"samples\":[{\"timestamp\":1,\"stack_id\":0,\"thread_id\":\"1\"}],\"stacks\":[" stack "],\"frames\":["       \
        "{\"function\":\"leaf\",\"instruction_addr\":\"0x100\"},{\"function\":\"a\",\"instruction_addr\":\"0x200\"},"  \
        "{\"function\":\"b\",\"instruction_addr\":512},{\"function\":\"c\",\"instruction_addr\":\"768\"},"             \
        "{\"function\":\"script\",\"instruction_addr\":null}]")

TEST(return_addresses_are_stored_less_one_and_the_leaf_as_it_is_PPF_4)
{
    CHECK_TEXT(decoded_stack(NATIVE_CHUNK("[0,1,3]")), "leaf@100;a@1ff;c@2ff");
    CHECK_TEXT(decoded_stack(NATIVE_CHUNK("[1,0]")), "a@200;leaf@ff");
    CHECK_TEXT(decoded_stack(NATIVE_CHUNK("[0,4,4]")), "leaf@100;script;script");
}

TEST(equal_addresses_are_inlined_frames_but_recursion_is_not)
{
    CHECK_TEXT(decoded_stack(NATIVE_CHUNK("[1,2,3]")), "a,b@200;c@2ff");
    CHECK_TEXT(decoded_stack(NATIVE_CHUNK("[0,1,2,3]")), "leaf@100;a,b@1ff;c@2ff");
    CHECK_TEXT(decoded_stack(NATIVE_CHUNK("[0,3,3,3]")), "leaf@100;c@2ff;c@2ff;c@2ff");
    CHECK_TEXT(decoded_stack(NATIVE_CHUNK("[1,2,1,2,3]")), "a,b@200;a,b@1ff;c@2ff");
}

TEST(reading_is_as_liberal_as_the_server_and_more)
{
    struct profile profile;
    struct error error = {.message = ""};
    enum status status = decode(
        CHUNK_START
        "\"unknown\":[{\"x\":null}],\"release\":null,\"environment\":null,\"debug_meta\":{\"images\":["
        "{\"type\":\"elf\",\"code_id\":\"deadbeef\",\"image_addr\":\"0x1000\",\"image_size\":\"4096\",\"arch\":\"x\"},"
        "{\"type\":\"sourcemap\",\"debug_id\":\"1cc8ef1f-c2a2-e14d-ce2e-848c620ef422\",\"code_file\":\"a.js\"}]},"
        "\"measurements\":{\"m\":{\"values\":[{\"timestamp\":1700000000123.5,\"value\":\"1e3\"}],\"unit\":\"byte\"}},"
        "\"profile\":{\"thread_metadata\":{\"1\":{\"name\":null,\"priority\":-5}},"
        "\"stacks\":[[],[0]],\"samples\":[{\"thread_id\":\"1\",\"timestamp\":1,\"stack_id\":1},"
        "{\"thread_id\":\"1\",\"timestamp\":2,\"stack_id\":0}],"
        "\"frames\":[{\"name\":\"f\",\"file\":\"a.c\",\"line\":-3,\"column\":4,\"instruction_addr\":\"0x2000\"}]}}",
        &profile, &error);
    CHECK_TEXT(error.message, "");
    CHECK_UINT(status, STATUS_OK);
    CHECK_UINT(profile.mappings.count, 2);
    CHECK_UINT(profile.mappings.items[1].limit, 0x2000);
    CHECK_UINT(profile_location(&profile, (struct location_id){1})->mapping.index, 1); /* a call at the image's end */
    CHECK_INT(profile_thread(&profile, profile.samples.thread[0])->priority, -5);
    CHECK_UINT(profile.measurements.items[0].values[0].time_ns / 1000000, 1700000000123u);
    CHECK(profile.measurements.items[0].values[0].value == 1000);
    CHECK_TEXT(profile_c_string(&profile, profile.measurements.items[0].unit), "byte");
    profile_fini(&profile);
}

TEST(what_is_no_chunk_or_a_broken_one_is_rejected)
{
    static const struct {
        const char *text;
        enum status status;
        const char *message;
    } cases[] = {
        {"", STATUS_NOT_THIS_FORMAT, ""},
        {"[]", STATUS_NOT_THIS_FORMAT, ""},
        {"{\"a\":1}", STATUS_NOT_THIS_FORMAT, ""},
        {"{\"version\":\"1\",\"profile\":{\"samples\":[{\"elapsed_since_start_ns\":\"1\"}]}}", STATUS_UNSUPPORTED,
         "profiling_platform_not_supported"},
        {"{\"version\":\"2\"}", STATUS_MALFORMED, "profiling_invalid_json"},
        {"{\"profile\":{}}", STATUS_MALFORMED, "profiling_invalid_json"},
        {"{\"version\":\"2\",\"version\":\"2\"}", STATUS_MALFORMED, "duplicate key"},
        {"{\"version\":\"2\",\"profiler_id\":\"x\"}", STATUS_MALFORMED, "uuid"},
        {CHUNK("\"samples\":[{\"timestamp\":1,\"stack_id\":0,\"thread_id\":\"1\"},"
               "{\"timestamp\":2,\"stack_id\":0,\"thread_id\":\"1\"},{\"timestamp\":3,\"stack_id\":1,\"thread_id\":"
               "\"1\"}],"
               "\"stacks\":[[0]],\"frames\":[{\"function\":\"f\"}]"),
         STATUS_MALFORMED, "profiling_malformed_samples"},
        {CHUNK("\"stacks\":[[0]]"), STATUS_MALFORMED, "profiling_malformed_stacks"},
        {CHUNK("\"samples\":[{\"timestamp\":null,\"stack_id\":0,\"thread_id\":\"1\"}],\"stacks\":[[]]"),
         STATUS_MALFORMED, "timestamp"},
        {CHUNK("\"samples\":[{\"timestamp\":\"1\",\"stack_id\":0,\"thread_id\":\"1\"}],\"stacks\":[[]]"),
         STATUS_MALFORMED, "number"},
        {CHUNK("\"stacks\":[[1.0]]"), STATUS_MALFORMED, "integer"},
        {CHUNK("\"frames\":[{\"instruction_addr\":\"0x\"}]"), STATUS_MALFORMED, "address"},
        {CHUNK("\"frames\":[{\"line\":1,\"lineno\":1}]"), STATUS_MALFORMED, "duplicate key"},
        {CHUNK("") "x", STATUS_MALFORMED, "more bytes"},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct profile profile;
        struct error error = {.message = ""};
        enum status status = decode(cases[i].text, &profile, &error);
        profile_fini(&profile);
        if (status != cases[i].status) TEST_FAIL("%s: status %d", cases[i].text, (int)status);
        if (!strstr(error.message, cases[i].message)) TEST_FAIL("%s: %s", cases[i].text, error.message);
    }
}

TEST(a_damaged_chunk_is_read_without_harm)
{
    struct profile profile;
    struct buffer out;
    buffer_init(&out, 1 << 20);
    make_full_profile(&profile);
    CHECK_UINT(sentry_v2_encode(&profile, NULL, &out, NULL), STATUS_OK);
    profile_fini(&profile);
    static const char interesting[] = "0123456789-.eE\"\\[]{},:untfx ";
    uint64_t state = 1;
    unsigned readable = 0;
    for (int round = 0; round < 5000; round++) {
        uint8_t *damaged = malloc(out.size);
        memcpy(damaged, out.data, out.size);
        for (int hits = 0; hits < 1 + round % 3; hits++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            damaged[(state >> 33) % out.size] = (uint8_t)interesting[(state >> 20) % (sizeof(interesting) - 1)];
        }
        size_t size = round % 5 ? out.size : (state >> 40) % out.size;
        profile_init(&profile);
        if (sentry_v2_decode(slice_of(damaged, size), &profile, NULL) == STATUS_OK) {
            readable++;
            (void)try_encoding(&profile, NULL);
        }
        profile_fini(&profile);
        free(damaged);
    }
    CHECK(readable > 500);
    buffer_fini(&out);
}

/* Decodes TEXT and encodes it again. The caller frees it. */
static struct buffer rewritten(const char *text)
{
    struct profile profile;
    struct error error = {.message = ""};
    struct buffer out;
    buffer_init(&out, 1 << 20);
    if (decode(text, &profile, &error) != STATUS_OK) TEST_FAIL("%s", error.message);
    profile.release = profile_text(&profile, "r");
    if (sentry_v2_encode(&profile, NULL, &out, &error) != STATUS_OK) TEST_FAIL("%s", error.message);
    buffer_append_byte(&out, 0);
    profile_fini(&profile);
    return out;
}

#define TWO_SAMPLES                                                                                                    \
    "\"samples\":[{\"timestamp\":1,\"stack_id\":0,\"thread_id\":\"1\"},"                                               \
    "{\"timestamp\":2,\"stack_id\":1,\"thread_id\":\"1\"}],"

TEST(stacks_are_leaf_first_and_stacks_and_frames_are_written_once_FMT_2)
{
    struct profile profile;
    CHECK_UINT(decode(CHUNK(TWO_SAMPLES "\"stacks\":[[0,1],[2,3]],\"frames\":[{\"function\":\"leaf\"},{\"function\":"
                                        "\"root\"},{\"function\":\"leaf\"},{\"function\":\"root\"}]"),
                      &profile, NULL),
               STATUS_OK);
    CHECK_TEXT(stack_text(&profile, profile.samples.stack[0]), "leaf;root");
    CHECK_UINT(profile.samples.stack[1].index, profile.samples.stack[0].index);
    profile_fini(&profile);
    struct buffer out = rewritten(CHUNK(TWO_SAMPLES "\"stacks\":[[0,1],[2,1]],\"frames\":[{\"function\":\"leaf\"},"
                                                    "{\"function\":\"root\"},{\"function\":\"leaf\"}]"));
    CHECK(strstr((const char *)out.data, "\"stacks\":[[0,1]]") != NULL);
    buffer_fini(&out);
}

/* Without addresses a chunk does not distinguish an inlined function from one that was called. */
TEST(stacks_that_differ_only_in_the_model_are_written_once_FMT_2)
{
    struct profile profile;
    struct buffer out;
    buffer_init(&out, 1 << 16);
    begin_profile(&profile);
    struct line lines[] = {{.function = function_of(&profile, "leaf", "", "")},
                           {.function = function_of(&profile, "root", "", "")}};
    struct location_id both = profile_add_location(&profile, &(struct location){0}, lines, 2);
    struct location_id leaf = profile_add_location(&profile, &(struct location){0}, &lines[0], 1);
    struct location_id root = profile_add_location(&profile, &(struct location){0}, &lines[1], 1);
    struct stack_id inlined = profile_add_stack(&profile, (struct stack_id){0}, both);
    struct stack_id called = profile_add_stack(&profile, profile_add_stack(&profile, (struct stack_id){0}, root), leaf);
    struct thread_id thread = thread_of(&profile, "1", "");
    add_sample(&profile, thread, inlined, START_NS, 1);
    add_sample(&profile, thread, called, START_NS + SECOND / 100, 1);
    CHECK(inlined.index != called.index);
    CHECK_UINT(sentry_v2_encode(&profile, NULL, &out, NULL), STATUS_OK);
    CHECK(memmem(out.data, out.size, "\"stacks\":[[0,1],[]]", 19) != NULL);
    buffer_fini(&out);
    profile_fini(&profile);
}

TEST(writes_a_function_for_a_frame_that_has_no_field_FMT_3)
{
    struct profile profile;
    struct buffer out;
    buffer_init(&out, 1 << 16);
    begin_profile(&profile);
    struct function function = {.module = profile_text(&profile, "m")};
    struct line line = {.function = profile_add_function(&profile, &function)};
    struct location_id place = profile_add_location(&profile, &(struct location){0}, &line, 1);
    struct stack_id stack = profile_add_stack(&profile, (struct stack_id){0}, place);
    for (uint64_t i = 0; i < 2; i++)
        add_sample(&profile, thread_of(&profile, "1", ""), stack, START_NS + i * SECOND, 1);
    CHECK_UINT(sentry_v2_encode(&profile, NULL, &out, NULL), STATUS_OK);
    CHECK(memmem(out.data, out.size, "{\"function\":\"<unknown>\",\"module\":\"m\",", 36) != NULL);
    buffer_fini(&out);
    profile_fini(&profile);
}

TEST(a_chunk_has_its_own_envelope_that_names_its_platform_V2_7)
{
    const uint64_t times_ns[2] = {0, SECOND};
    struct profile profile;
    struct envelope_reader reader;
    struct envelope_item item;
    struct buffer out;
    buffer_init(&out, 1 << 16);
    make_small_profile(&profile, times_ns);
    profile.platform = profile_text(&profile, "python");
    CHECK_UINT(envelope_profile_encode(&profile, &out, NULL), STATUS_OK);
    CHECK_UINT(envelope_open(&reader, buffer_slice(&out), NULL), STATUS_OK);
    CHECK(envelope_next(&reader, &item, NULL));
    CHECK(slice_equals_text(item.type, "profile_chunk"));
    CHECK(slice_equals_text(item.platform, "python"));
    CHECK(!envelope_next(&reader, &item, NULL));
    envelope_close(&reader);
    buffer_fini(&out);
    profile_fini(&profile);
}

TEST(module_and_package_of_a_frame_are_kept_apart_FMT_4)
{
    struct buffer out = rewritten(CHUNK(TWO_SAMPLES "\"stacks\":[[0],[1]],\"frames\":[{\"function\":\"f\",\"module\":"
                                                    "\"m\"},{\"function\":\"f\",\"package\":\"m\"}]"));
    CHECK(strstr((const char *)out.data, "{\"function\":\"f\",\"module\":\"m\",") != NULL);
    CHECK(strstr((const char *)out.data, "{\"function\":\"f\",\"package\":\"m\",") != NULL);
    buffer_fini(&out);
}

/* test/cli/chunks.py has all of them; here, that what is not there costs nothing. */
TEST(unknown_attributes_stay_with_their_frame_FMT_8)
{
    static const char chunk[] =
        CHUNK(TWO_SAMPLES "\"stacks\":[[0],[1]],\"frames\":[{\"function\":\"f\",\"vars\":{\"a\":"
                          "1}},{\"function\":\"f\"}]");
    struct profile profile;
    CHECK_UINT(decode(chunk, &profile, NULL), STATUS_OK);
    CHECK_UINT(profile.lines.count, 2);
    CHECK_TEXT(profile_c_string(&profile, profile.lines.items[0].attributes), "{\"vars\":{\"a\":1}}");
    CHECK_UINT(profile.lines.items[1].attributes.index, 0);
    CHECK_UINT(profile.samples.labels[0].index, 0);
    profile_fini(&profile);
}

TEST_MAIN()
