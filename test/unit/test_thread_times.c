/* The time of threads that are seen from outside, as the reader of recordings shows it.  SPDX-License-Identifier: MIT
 */
#include "test.h"

#include "format/recording/recording.h"
#include "profile/profile.h"
#include "recorder/thread_times.h"
#include "recorder/thread_waits.h"

#include <sys/stat.h>
#include <unistd.h>

#define MS UINT64_C(1000000)

static struct recording_writer writer;
static struct recorded_thread thread;
static struct tick tick;
static struct profile profile;
static enum recording_mode recording_mode = RECORDING_WALL;

static void begin(bool sees_running)
{
    static const uint8_t profiler_id[RECORDING_PROFILER_ID_SIZE] = {1};
    const struct recording_process process = {.pid = 10,
                                              .mode = recording_mode,
                                              .period_ns = 10 * MS,
                                              .start_ns = MS,
                                              .profiler_id = profiler_id,
                                              .name = "program",
                                              .path = "/program"};
    char path[] = "/tmp/offbeat-test-thread-times-XXXXXX";
    int file = mkstemp(path);
    CHECK(file >= 0 && close(file) == 0 && unlink(path) == 0);
    recording_writer_init(&writer, path, false);
    recording_process(&writer, &process);
    recording_thread(&writer, 0, 10, "thread");
    thread = (struct recorded_thread){.tid = 10};
    tick = (struct tick){.writer = &writer, .time_ns = 21 * MS, .period_ns = 10 * MS, .sees_running = sees_running};
    recording_tick(&writer, 20 * MS);
}

static void next_tick(void)
{
    tick.time_ns += 10 * MS;
    recording_tick(&writer, 10 * MS);
}

/* Ends the recording and reads it into PROFILE. */
static void end(void)
{
    uint8_t bytes[4096];
    thread_times_close(&thread, &tick);
    recording_stop(&writer);
    recording_writer_close(&writer);
    FILE *file = fopen(writer.path, "rb");
    CHECK(file && unlink(writer.path) == 0);
    size_t size = fread(bytes, 1, sizeof(bytes), file);
    (void)fclose(file);
    profile_init(&profile);
    CHECK_UINT(recording_decode(slice_of(bytes, size), &profile, NULL), STATUS_OK);
}

static bool has_only_stack(const char *name)
{
    for (size_t i = 0; i < profile.samples.count; i++) {
        struct location_id id = profile_stack(&profile, profile.samples.stack[i]).location;
        const struct location *location = &profile.locations.items[id.index];
        CHECK_UINT(location->line_count, 1);
        struct function_id function = profile.lines.items[location->line_first].function;
        if (strcmp(profile_c_string(&profile, profile.functions.items[function.index].name), name) != 0) return false;
    }
    return profile.samples.count > 0;
}

/* A thread that has run for 3 ms in the last tick, and for more before, if it is older. */
static void see(bool is_new)
{
    const struct engine_thread seen = {.pid = 10, .tid = 10, .cpu_ns = is_new ? 3 * MS : 300 * MS};
    thread_times_begin(&thread, &tick, &seen, is_new);
}

TEST(a_thread_that_ends_before_a_stack_was_taken_was_too_short_to_sample)
{
    begin(true);
    see(true);
    thread.has_ended = true;
    end();
    CHECK(has_only_stack("[too short to sample]"));
    CHECK_UINT(profile_metadata_number(&profile, "too_short_ns"), 3 * MS);
    profile_fini(&profile);
}

TEST(cpu_time_before_a_thread_was_seen_counts_only_if_it_is_new)
{
    begin(true);
    see(false);
    thread.has_ended = true;
    end();
    CHECK_UINT(profile.samples.count, 0);
    profile_fini(&profile);
}

TEST(a_blocked_thread_whose_stack_is_never_read_is_not_shown_by_the_kernel)
{
    begin(true);
    see(false);
    const struct engine_thread seen = {.pid = 10, .tid = 10, .cpu_ns = 300 * MS, .state = THREAD_BLOCKED};
    next_tick();
    thread_times_add(&thread, &tick, &seen);
    end();
    CHECK(has_only_stack("[no stack: not shown by the kernel]"));
    profile_fini(&profile);
}

TEST(a_new_recording_has_no_blocked_time_of_the_one_before)
{
    static const uint64_t address = 0x1000;
    const struct walked_stack stack = {.addresses = &address, .count = 1, .outcome = UNWIND_ROOT};
    struct engine_thread seen = {.pid = 10, .tid = 10, .cpu_ns = 300 * MS, .state = THREAD_BLOCKED};
    begin(true);
    see(false);
    thread_times_write_blocked(&thread, &tick, &stack);
    for (unsigned i = 0; i < 5; i++) {
        thread_times_end_tick(&thread, &tick);
        next_tick();
    }
    thread_times_end_tick(&thread, &tick);
    thread.is_resting = false; /* it executes another program */
    next_tick();
    seen.cpu_ns += MS;
    thread_times_add(&thread, &tick, &seen);
    CHECK_UINT(thread.unwritten.blocked_ns, 9 * MS);
    end();
    profile_fini(&profile);
}

TEST(waits_without_a_record_are_in_one_recording_only)
{
    recording_mode = RECORDING_OFF_CPU;
    begin(true);
    thread.waits.others = (struct engine_other_waits){.short_count = 3, .short_ns = 6 * MS};
    thread_waits_close(&thread, &tick, tick.time_ns);
    thread.waits.others = (struct engine_other_waits){.short_count = 5, .short_ns = 8 * MS};
    thread_waits_close(&thread, &tick, tick.time_ns);
    end();
    CHECK_UINT(profile_metadata_number(&profile, "short_waits"), 5);
    profile_fini(&profile);
    recording_mode = RECORDING_WALL;
}

TEST(idle_threads_lose_nothing_in_cpu_mode)
{
    begin(true);
    tick.is_cpu_mode = true;
    see(false);
    next_tick();
    thread_times_add(&thread, &tick, NULL);
    end();
    CHECK_UINT(profile_metadata_number(&profile, "lost_unreadable") + profile_metadata_number(&profile, "lost_late"),
               0);
    profile_fini(&profile);
}

TEST(an_engine_without_stacks_of_running_threads_says_so)
{
    begin(false);
    see(true);
    thread.has_ended = true;
    end();
    CHECK(has_only_stack("[no stack: it was running]"));
    profile_fini(&profile);
}

TEST_MAIN()
