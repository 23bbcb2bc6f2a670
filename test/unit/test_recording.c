/* The reader sees exactly the samples that the sampler writes: recordings of random stacks, written and read back.
 * SPDX-License-Identifier: MIT */
#include "test.h"

#include "base/maps.h"
#include "format/recording/recording.h"
#include "profile/profile.h"
#include "sampler/record/recording_writer.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SAMPLES = 2000, THREADS = 3, DEPTH_MAX = 40 };

static struct recording_writer writer;
static struct recording_stack last[THREADS];
static uint64_t written[SAMPLES][DEPTH_MAX];
static size_t depths[SAMPLES];
static uint64_t random_state;
static enum recording_mode mode;

static uint64_t random_below(uint64_t limit)
{
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return (random_state >> 33) % limit;
}

/* Mostly one of a few callees per caller, as in programs; sometimes any address. */
static uint64_t random_callee(uint64_t caller)
{
    if (random_below(20) == 0) return random_below(1u << 31) << 33 | random_below(1u << 31) << 2 | 1;
    return 0x400000 + (caller * 31 + random_below(6) * 0x1357) % 0x2000000;
}

static void make_stack(size_t index)
{
    depths[index] = 1 + random_below(DEPTH_MAX);
    uint64_t caller = 0;
    for (size_t i = depths[index]; i > 0; i--) caller = written[index][i - 1] = random_callee(caller);
}

static void write_start(void)
{
    static const uint8_t profiler_id[RECORDING_PROFILER_ID_SIZE] = {1};
    struct recording_process process = {
        .pid = 10,
        .parent_pid = 1,
        .mode = mode,
        .period_ns = 1000000,
        .wall_offset_ns = 1000000000,
        .start_ns = 5000,
        .profiler_id = profiler_id,
        .name = "program",
        .path = "/program",
    };
    recording_process(&writer, &process);
    for (uint32_t i = 0; i < THREADS; i++) recording_thread(&writer, i, (pid_t)(10 + i), "");
}

/* One sample a tick, and in CPU mode, so that samples come back in the order in which they were written. */
static void write_samples(void)
{
    for (size_t i = 0; i < SAMPLES; i++) {
        uint32_t thread = (uint32_t)random_below(THREADS);
        make_stack(i);
        recording_tick(&writer, 1000000);
        recording_sample(&writer, thread, (struct recording_time){.cpu_ns = 1000000}, 0, written[i], depths[i],
                         &last[thread]);
        if (random_below(10) == 0) recording_writer_flush(&writer);
    }
}

/* Returns what WRITE writes. The caller frees it. */
static struct slice recording_of(enum recording_mode chosen, void (*write)(void))
{
    char path[] = "/tmp/offbeat-test-recording-XXXXXX";
    struct stat status = {0};
    int file = mkstemp(path);
    CHECK(file >= 0 && unlink(path) == 0);
    random_state = 1;
    mode = chosen;
    memset(last, 0, sizeof(last));
    recording_writer_init(&writer, path, false);
    write_start();
    write();
    recording_writer_close(&writer);
    (void)close(file);
    FILE *opened = fopen(path, "rb");
    CHECK(opened && fstat(fileno(opened), &status) == 0 && unlink(path) == 0);
    uint8_t *bytes = malloc((size_t)status.st_size);
    CHECK(bytes && fread(bytes, 1, (size_t)status.st_size, opened) == (size_t)status.st_size);
    (void)fclose(opened);
    return slice_of(bytes, (size_t)status.st_size);
}

static void check_stack(const struct profile *profile, struct stack_id id, size_t index)
{
    CHECK_UINT(profile_stack_depth(profile, id), depths[index]);
    for (size_t i = 0; i < depths[index]; i++, id = profile_stack(profile, id).parent) {
        uint64_t address = profile->locations.items[profile_stack(profile, id).location.index].address;
        CHECK_UINT(address, written[index][i] - (i > 0));
    }
}

TEST(stacks_come_back_as_they_were_written)
{
    struct slice bytes = recording_of(RECORDING_CPU, write_samples);
    struct profile profile = {0};
    profile_init(&profile);
    CHECK_UINT(recording_decode(bytes, &profile, NULL), STATUS_OK);
    CHECK_UINT(profile.samples.count, SAMPLES);
    for (size_t i = 0; i < SAMPLES; i++) check_stack(&profile, profile.samples.stack[i], i);
    profile_fini(&profile);
    free((void *)(uintptr_t)bytes.data);
}

TEST(a_recording_that_is_cut_anywhere_is_good_up_to_there)
{
    struct slice bytes = recording_of(RECORDING_CPU, write_samples);
    /* The first write has two batches. The process may be killed during it. */
    uint32_t first = 0;
    memcpy(&first, bytes.data + RECORDING_MAGIC_SIZE, sizeof(first));
    size_t least = RECORDING_MAGIC_SIZE + sizeof(first) + first;
    CHECK(least < 200);
    for (size_t size = bytes.size; size >= least; size -= size > 5000 ? 997 : 1) {
        struct profile profile = {0};
        profile_init(&profile);
        CHECK_UINT(recording_decode(slice_of(bytes.data, size), &profile, NULL), STATUS_OK);
        for (size_t i = 0; i < profile.samples.count; i++) check_stack(&profile, profile.samples.stack[i], i);
        profile_fini(&profile);
    }
    free((void *)(uintptr_t)bytes.data);
}

static void write_number(void)
{
    static const uint64_t stack[] = {0x401234, RECORDING_PLACES + 7, 0x405678};
    recording_tick(&writer, 1000000);
    recording_sample(&writer, 0, (struct recording_time){.cpu_ns = 1000000}, 0, stack, 3, &last[0]);
}

TEST(a_number_that_a_walk_took_for_an_address_is_no_place)
{
    struct slice bytes = recording_of(RECORDING_CPU, write_number);
    struct profile profile = {0};
    profile_init(&profile);
    CHECK_UINT(recording_decode(bytes, &profile, NULL), STATUS_OK);
    CHECK_UINT(profile.samples.count, 1);
    CHECK_UINT(profile_stack_depth(&profile, profile.samples.stack[0]), 3);
    struct stack_id caller = profile_stack(&profile, profile.samples.stack[0]).parent;
    struct location_id place = profile_stack(&profile, caller).location;
    CHECK_UINT(profile.locations.items[place.index].address, RECORDING_PLACES + 6);
    profile_fini(&profile);
    free((void *)(uintptr_t)bytes.data);
}

TEST(frames_that_came_before_take_a_byte)
{
    static const uint64_t one[] = {0x401234, 0x405678, 0x409abc}, other[] = {0x40aaaa, 0x40bbbb, 0x409abc};
    memset(last, 0, sizeof(last));
    recording_writer_init(&writer, "/nowhere/at-all", false);
    recording_sample(&writer, 0, (struct recording_time){.cpu_ns = 1000}, 0, one, 3, &last[0]);
    recording_sample(&writer, 0, (struct recording_time){.cpu_ns = 1000}, 0, other, 3, &last[0]);
    size_t before = writer.size;
    recording_sample(&writer, 0, (struct recording_time){.cpu_ns = 1000}, 0, one, 3, &last[0]);
    CHECK_UINT(writer.size - before, 8 + 2); /* kind, thread, three times, flags, two counts */
}

static void tick(uint64_t span_ns)
{
    recording_begin(&writer, RECORDING_TICK, 16);
    recording_number(&writer, span_ns);
}

static void more(uint32_t thread, bool is_blocked, struct recording_time time)
{
    recording_begin(&writer, RECORDING_MORE, 64);
    recording_number(&writer, thread);
    recording_number(&writer, is_blocked);
    recording_time(&writer, time);
}

static void waiting(uint32_t thread)
{
    recording_begin(&writer, RECORDING_WAITING, 16);
    recording_number(&writer, thread);
}

/* Thread 0 sleeps, wakes up and runs; thread 1 is never seen; thread 2 is gone after a tick. */
static void write_times(void)
{
    static const uint64_t sleeps[] = {0x401234, 0x405678}, runs[] = {0x402222, 0x405678};
    tick(2000000);
    recording_sample(&writer, 0, (struct recording_time){.blocked_ns = 2000000}, RECORDING_BLOCKED, sleeps, 2,
                     &last[0]);
    waiting(1);
    recording_sample(&writer, 2, (struct recording_time){.blocked_ns = 2000000}, RECORDING_BLOCKED, sleeps, 2,
                     &last[2]);
    tick(1000000);
    waiting(1);
    recording_begin(&writer, RECORDING_THREAD_GONE, 16);
    recording_number(&writer, 2);
    tick(3000000);
    recording_begin(&writer, RECORDING_WOKEN, 32);
    recording_number(&writer, 0);
    recording_number(&writer, 500000);
    more(0, true, (struct recording_time){.runnable_ns = 1000000});
    recording_sample(&writer, 0, (struct recording_time){.cpu_ns = 1500000, .runnable_ns = 500000}, 0, runs, 2,
                     &last[0]);
    more(1, false, (struct recording_time){.cpu_ns = 2000000, .runnable_ns = 4000000});
    recording_begin(&writer, RECORDING_STOP, 0);
}

static void check_values(const struct profile *profile, size_t sample, const int64_t expected[5])
{
    for (unsigned i = 0; i < 5; i++) CHECK_INT(profile_sample_values(profile, sample)[i], expected[i]);
}

TEST(the_times_of_a_thread_follow_without_a_gap)
{
    struct slice bytes = recording_of(RECORDING_WALL, write_times);
    struct profile profile = {0};
    profile_init(&profile);
    CHECK_UINT(recording_decode(bytes, &profile, NULL), STATUS_OK);
    CHECK_UINT(profile.samples.count, 4);
    uint64_t start_ns = 1000000000 + 5000;
    static const int64_t thread_0[5] = {4, 4000000, 0, 1500000, 2500000};
    static const int64_t thread_0_runs[5] = {2, 2000000, 1500000, 500000, 0};
    static const int64_t thread_1[5] = {6, 6000000, 2000000, 4000000, 0};
    static const int64_t thread_2[5] = {3, 3000000, 0, 0, 3000000};
    for (size_t i = 0; i < profile.samples.count; i++) {
        uint64_t at_ns = profile.samples.time_ns[i] - start_ns;
        uint32_t thread = profile.samples.thread[i].index;
        const int64_t *expected = thread == 2 ? thread_1 : thread == 3 ? thread_2 : at_ns ? thread_0_runs : thread_0;
        check_values(&profile, i, expected);
        CHECK(at_ns == 0 || (thread == 1 && at_ns == 4000000));
    }
    profile_fini(&profile);
    free((void *)(uintptr_t)bytes.data);
}

static void short_lived_threads(uint64_t routine, uint64_t ends, uint64_t thread, bool is_blocked,
                                struct recording_time time)
{
    recording_begin(&writer, RECORDING_SHORT, 80);
    recording_number(&writer, routine);
    recording_number(&writer, ends);
    recording_number(&writer, thread);
    recording_number(&writer, is_blocked);
    recording_time(&writer, time);
}

/* Thread 0 stands for two of three threads that no tick met. It has no stack of blocked time. */
static void write_short_lives(void)
{
    static const uint64_t runs[] = {0x402222, 0x405678};
    tick(2000000);
    recording_sample(&writer, 0, (struct recording_time){.cpu_ns = 2000000}, 0, runs, 2, &last[0]);
    short_lived_threads(0x405000, 2, 1, false, (struct recording_time){.cpu_ns = 300000, .runnable_ns = 700000});
    short_lived_threads(0x405000, 1, 1, true, (struct recording_time){.blocked_ns = 400000});
    short_lived_threads(0x406000, 0, 0, false, (struct recording_time){.cpu_ns = 500000});
    recording_begin(&writer, RECORDING_STOP, 0);
}

static const char *leaf_name(const struct profile *profile, struct stack_id stack)
{
    struct location_id leaf = profile_stack(profile, stack).location;
    const struct location *location = &profile->locations.items[leaf.index];
    if (location->line_count == 0) return "";
    const struct line *line = profile_lines(profile, location);
    return profile_c_string(profile, profile->functions.items[line->function.index].name);
}

TEST(a_thread_stands_for_those_that_no_tick_met)
{
    struct slice bytes = recording_of(RECORDING_WALL, write_short_lives);
    struct profile profile = {0};
    profile_init(&profile);
    CHECK_UINT(recording_decode(bytes, &profile, NULL), STATUS_OK);
    static const int64_t met[5] = {2, 2000000, 2000000, 0, 0}, stood_for[5] = {1, 1000000, 300000, 700000, 0};
    static const int64_t blocked[5] = {1, 400000, 0, 0, 400000}, other[5] = {1, 500000, 500000, 0, 0};
    const int64_t *expected[] = {met, stood_for, blocked, other};
    CHECK_UINT(profile.samples.count, 4);
    for (size_t i = 0; i < 4; i++) {
        check_values(&profile, i, expected[i]);
        CHECK_TEXT(leaf_name(&profile, profile.samples.stack[i]), i < 2 ? "" : "[too short to sample]");
    }
    CHECK(profile.samples.stack[0].index == profile.samples.stack[1].index);
    CHECK(profile.samples.stack[2].index != profile.samples.stack[3].index);
    profile_fini(&profile);
    free((void *)(uintptr_t)bytes.data);
}

static void starts_at(uint32_t thread, uint64_t routine)
{
    recording_begin(&writer, RECORDING_ROUTINE, 32);
    recording_number(&writer, thread);
    recording_number(&writer, routine);
}

static void ticks_missed(uint64_t count)
{
    recording_begin(&writer, RECORDING_COUNTERS, 32);
    recording_number(&writer, 2);
    recording_number(&writer, 30); /* RECORDING_TICKS */
    recording_number(&writer, count);
}

static uint64_t missed;

/* Thread 0 is sampled, in turn at two stacks; threads 1 and 2 never are, and only 1 has its routine. */
static void write_starved(void)
{
    static const uint64_t computes[] = {0x402222, 0x405678}, waits[] = {0x402444, 0x405678};
    starts_at(0, 0x405000);
    for (unsigned i = 0; i < 30; i++) {
        tick(2000000);
        recording_sample(&writer, 0, (struct recording_time){.cpu_ns = 2000000}, 0, computes, 2, &last[0]);
        waiting(1);
        waiting(2);
        tick(2000000);
        recording_sample(&writer, 0, (struct recording_time){.cpu_ns = 1000000, .runnable_ns = 1000000}, 0, waits, 2,
                         &last[0]);
        waiting(1);
        waiting(2);
    }
    starts_at(1, 0x405000);
    more(1, false, (struct recording_time){.cpu_ns = 3000000, .runnable_ns = 100000000});
    more(1, true, (struct recording_time){.blocked_ns = 17000000});
    starts_at(2, 0x406000);
    more(2, false, (struct recording_time){.cpu_ns = 120000000});
    ticks_missed(missed);
    recording_begin(&writer, RECORDING_STOP, 0);
}

/* Adds up the samples of THREAD with the address LEAF, or with a name instead (0). Returns those with borrowed labels.
 */
static unsigned add_of_thread(const struct profile *profile, uint32_t thread, uint64_t leaf, int64_t ret_sum[5])
{
    unsigned borrowed = 0;
    memset(ret_sum, 0, 5 * sizeof(*ret_sum));
    for (size_t i = 0; i < profile->samples.count; i++) {
        struct stack_id stack = profile->samples.stack[i];
        const struct location *location = &profile->locations.items[profile_stack(profile, stack).location.index];
        uint64_t address = location->line_count > 0 ? 0 : location->address;
        if (profile->samples.thread[i].index != thread + 1 || address != leaf) continue;
        for (unsigned j = 0; j < 5; j++) ret_sum[j] += profile_sample_values(profile, i)[j];
        borrowed += profile->samples.labels[i].index != 0;
    }
    return borrowed;
}

static void check_of_thread(const struct profile *profile, uint32_t thread, uint64_t leaf, unsigned borrowed,
                            const int64_t expected[5])
{
    int64_t sum[5];
    CHECK_UINT(add_of_thread(profile, thread, leaf, sum), borrowed);
    for (unsigned i = 0; i < 5; i++) CHECK_INT(sum[i], expected[i]);
}

TEST(where_most_ticks_are_missed_threads_borrow_stacks_of_their_routine)
{
    static const int64_t cpu[5] = {2, 2000000, 2000000, 0, 0};
    static const int64_t waits[5] = {101, 101000000, 1000000, 100000000, 0};
    static const int64_t without[5] = {17, 17000000, 0, 0, 17000000}, other[5] = {120, 120000000, 120000000, 0, 0};
    static const int64_t all[5] = {103, 103000000, 3000000, 100000000, 0}, none[5] = {0};
    for (missed = 29; missed <= 31; missed += 2) {
        bool borrows = missed > 30;
        struct slice bytes = recording_of(RECORDING_WALL, write_starved);
        struct profile profile = {0};
        profile_init(&profile);
        CHECK_UINT(recording_decode(bytes, &profile, NULL), STATUS_OK);
        check_of_thread(&profile, 1, 0x402222, borrows, borrows ? cpu : none);
        check_of_thread(&profile, 1, 0x402444, borrows, borrows ? waits : none);
        if (borrows) check_of_thread(&profile, 1, 0, 0, without); /* no stack is of blocked time */
        check_of_thread(&profile, 2, 0, 0, other);
        int64_t sum[5] = {0};
        if (!borrows) CHECK_UINT(add_of_thread(&profile, 1, 0, sum), 0);
        for (unsigned i = 0; i < 5 && !borrows; i++) CHECK_INT(sum[i], all[i] + without[i]);
        profile_fini(&profile);
        free((void *)(uintptr_t)bytes.data);
    }
}

static unsigned met_count;

/* Ticks meet so many threads of a routine, here all as thread 0, in turn at two stacks. Others of it end afterwards. */
static void write_unmet(void)
{
    static const uint64_t computes[][2] = {{0x402222, 0x405678}, {0x402444, 0x405678}};
    starts_at(0, 0x405000);
    for (unsigned i = 0; i < met_count; i++) {
        tick(2000000);
        recording_sample(&writer, 0, (struct recording_time){.cpu_ns = 1000000}, 0, computes[i % 2], 2, &last[0]);
        waiting(1);
    }
    short_lived_threads(0x405000, 5, 0, false, (struct recording_time){.cpu_ns = 6000000});
    short_lived_threads(0x406000, 1, 0, false, (struct recording_time){.cpu_ns = 500000});
    starts_at(1, 0x405000);
    more(1, false, (struct recording_time){.cpu_ns = 2000000});
    starts_at(2, 0x405000);
    more(2, false, (struct recording_time){.cpu_ns = 1500000});
    recording_begin(&writer, RECORDING_STOP, 0);
}

/* Thread 1 lived for two periods: ticks were in time, so it may do something else than the others. Thread 2 was met,
 * and ended before it gave a stack. */
TEST(threads_that_live_for_too_short_borrow_stacks_of_their_routine)
{
    enum { SHORT_LIVED = 3 };
    static const int64_t half[5] = {3, 3000000, 3000000, 0, 0}, none[5] = {0};
    static const int64_t all[5] = {7, 6500000, 6500000, 0, 0}, rest[5] = {1, 500000, 500000, 0, 0};
    static const int64_t other[5] = {2, 2000000, 2000000, 0, 0}, met[5] = {2, 1500000, 1500000, 0, 0};
    static const int64_t half_of_met[5] = {1, 750000, 750000, 0, 0};
    for (met_count = 6; met_count <= 8; met_count += 2) {
        bool borrows = met_count == 8;
        struct slice bytes = recording_of(RECORDING_WALL, write_unmet);
        struct profile profile = {0};
        profile_init(&profile);
        CHECK_UINT(recording_decode(bytes, &profile, NULL), STATUS_OK);
        check_of_thread(&profile, SHORT_LIVED, 0x402222, borrows, borrows ? half : none);
        check_of_thread(&profile, SHORT_LIVED, 0x402444, borrows, borrows ? half : none);
        check_of_thread(&profile, SHORT_LIVED, 0, 0, borrows ? rest : all);
        check_of_thread(&profile, 1, 0, 0, other);
        check_of_thread(&profile, 2, 0x402222, borrows, borrows ? half_of_met : none);
        check_of_thread(&profile, 2, 0x402444, borrows, borrows ? half_of_met : none);
        check_of_thread(&profile, 2, 0, 0, borrows ? none : met);
        profile_fini(&profile);
        free((void *)(uintptr_t)bytes.data);
    }
}

static bool is_seen_asleep;

/* Threads 0 and 1 are woken, and wait, before any is seen asleep; thread 1 never is, and no stack of it is taken. */
static void write_early_waits(void)
{
    static const uint64_t computes[][2] = {{0x402222, 0x405678}, {0x402222, 0x405688}};
    static const uint64_t sleeps[] = {0x402444, 0x405678};
    starts_at(0, 0x405000);
    starts_at(1, 0x405000);
    for (unsigned i = 0; i < 10; i++) {
        tick(2000000);
        more(0, true, (struct recording_time){.runnable_ns = 500000});
        recording_sample(&writer, 0, (struct recording_time){.cpu_ns = 1000000, .runnable_ns = 500000}, 0,
                         computes[i % 2], 2, &last[0]);
        more(1, true, (struct recording_time){.runnable_ns = 2000000});
    }
    tick(2000000);
    if (is_seen_asleep)
        recording_sample(&writer, 0, (struct recording_time){.blocked_ns = 2000000}, RECORDING_BLOCKED, sleeps, 2,
                         &last[0]);
    waiting(1);
    more(1, false, (struct recording_time){.cpu_ns = 3000000, .runnable_ns = 9000000});
    more(1, true, (struct recording_time){.blocked_ns = 4000000});
    ticks_missed(31);
    recording_begin(&writer, RECORDING_STOP, 0);
}

TEST(waits_after_a_sleep_that_no_tick_saw_have_stacks_of_sleeps)
{
    static const int64_t runs[5] = {15, 15000000, 10000000, 5000000, 0}, none[5] = {0};
    static const int64_t slept[5] = {7, 7000000, 0, 5000000, 2000000}, woken[5] = {5, 5000000, 0, 5000000, 0};
    static const int64_t lent[5] = {12, 12000000, 3000000, 9000000, 0}, waits[5] = {24, 24000000, 0, 20000000, 4000000};
    for (unsigned i = 0; i < 2; i++) {
        is_seen_asleep = i == 1;
        struct slice bytes = recording_of(RECORDING_WALL, write_early_waits);
        struct profile profile = {0};
        profile_init(&profile);
        CHECK_UINT(recording_decode(bytes, &profile, NULL), STATUS_OK);
        check_of_thread(&profile, 0, 0x402222, 0, runs);
        check_of_thread(&profile, 0, 0x402444, 0, is_seen_asleep ? slept : none);
        check_of_thread(&profile, 0, 0, 0, is_seen_asleep ? none : woken);
        check_of_thread(&profile, 1, 0x402222, 2, lent);
        check_of_thread(&profile, 1, 0x402444, is_seen_asleep ? 2 : 0, is_seen_asleep ? waits : none);
        check_of_thread(&profile, 1, 0, 0, is_seen_asleep ? none : waits);
        profile_fini(&profile);
        free((void *)(uintptr_t)bytes.data);
    }
}

/* --- Off-CPU time --------------------------------------------------------------------------------------------------
 */

static void wait_of(uint32_t thread, uint64_t count)
{
    recording_begin(&writer, RECORDING_WAIT, 64);
    recording_number(&writer, thread);
    recording_number(&writer, RECORDING_WAIT_LOCK);
    recording_number(&writer, count);
    recording_signed(&writer, 0);
    recording_text(&writer, "", 0);
}

/* Writes a wait of THREAD that stands for COUNT of them, with a stack. */
static void waits_for(uint32_t thread, uint64_t count, uint64_t blocked_ns)
{
    static const uint64_t waits[] = {0x402222, 0x405678};
    wait_of(thread, count);
    recording_sample(&writer, thread, (struct recording_time){.blocked_ns = blocked_ns}, RECORDING_WITHOUT_SIGNAL,
                     waits, 2, &last[thread]);
}

static void other_waits(uint32_t thread, uint64_t short_count, uint64_t short_us, uint64_t left_out_count,
                        uint64_t left_out_us)
{
    recording_begin(&writer, RECORDING_OTHER_WAITS, 64);
    recording_number(&writer, thread);
    recording_number(&writer, short_count);
    recording_number(&writer, short_us);
    recording_number(&writer, left_out_count);
    recording_number(&writer, left_out_us);
}

/* One of four waits of thread 0 was recorded, 1 ms; the others took 2 ms. No wait of thread 1 was recorded. */
static void write_left_out(void)
{
    tick(2000000);
    waits_for(0, 4, 4000000);
    other_waits(0, 5, 700, 1, 500);
    other_waits(0, 0, 0, 2, 1500);
    other_waits(1, 0, 0, 2, 300);
    recording_begin(&writer, RECORDING_STOP, 0);
}

TEST(waits_that_stand_for_others_have_their_exact_sum)
{
    static const int64_t taken[4] = {4, 3000000, 0, 3000000}, all_short[4] = {5, 700000, 0, 700000};
    static const int64_t left_out[4] = {2, 300000, 0, 300000};
    struct slice bytes = recording_of(RECORDING_OFF_CPU, write_left_out);
    struct profile profile = {0};
    profile_init(&profile);
    CHECK_UINT(recording_decode(bytes, &profile, NULL), STATUS_OK);
    CHECK_UINT(profile.samples.count, 3);
    for (size_t i = 0; i < 3; i++) {
        const char *name = leaf_name(&profile, profile.samples.stack[i]);
        const int64_t *expected = name[0] == '\0' ? taken : strcmp(name, "[short waits]") == 0 ? all_short : left_out;
        for (unsigned k = 0; k < 4; k++) CHECK_INT(profile_sample_values(&profile, i)[k], expected[k]);
    }
    profile_fini(&profile);
    free((void *)(uintptr_t)bytes.data);
}

/* No recorder writes this: thread 1 waits without a stack, and thread 0 has eight stacks of its routine. */
static void write_wait_without_stack(void)
{
    starts_at(0, 0x405000);
    starts_at(1, 0x405000);
    tick(2000000);
    wait_of(1, 1);
    more(1, false, (struct recording_time){.runnable_ns = 1000000});
    for (unsigned i = 0; i < 8; i++) waits_for(0, 1, 1000000);
    recording_begin(&writer, RECORDING_STOP, 0);
}

TEST(waits_borrow_no_stacks)
{
    static const int64_t runnable[4] = {1, 1000000, 1000000, 0}, blocked[4] = {1, 1000000, 0, 1000000};
    struct slice bytes = recording_of(RECORDING_OFF_CPU, write_wait_without_stack);
    struct profile profile = {0};
    profile_init(&profile);
    CHECK_UINT(recording_decode(bytes, &profile, NULL), STATUS_OK);
    CHECK_UINT(profile.samples.count, 9);
    for (size_t i = 0; i < 9; i++) {
        const int64_t *expected = profile.samples.thread[i].index == 2 ? runnable : blocked;
        for (unsigned k = 0; k < 4; k++) CHECK_INT(profile_sample_values(&profile, i)[k], expected[k]);
    }
    profile_fini(&profile);
    free((void *)(uintptr_t)bytes.data);
}

/* --- The process ---------------------------------------------------------------------------------------------------
 */

static void usage(uint64_t cpu_ns, uint64_t bytes)
{
    recording_begin(&writer, RECORDING_USAGE, 32);
    recording_number(&writer, cpu_ns);
    recording_number(&writer, bytes);
}

static void write_usages(void)
{
    usage(7000000, 4096);
    tick(2000000);
    usage(8000000, 8192);
    recording_begin(&writer, RECORDING_STOP, 0);
}

TEST(what_the_process_uses_becomes_measurements)
{
    struct slice bytes = recording_of(RECORDING_WALL, write_usages);
    struct profile profile = {0};
    profile_init(&profile);
    CHECK_UINT(recording_decode(bytes, &profile, NULL), STATUS_OK);
    const struct measurement *memory = profile_measurement(&profile, "memory_footprint", "byte");
    CHECK_UINT(memory->count, 2);
    CHECK(memory->values[0].value == 4096 && memory->values[1].value == 8192);
    const struct measurement *processors = profile_measurement(&profile, "cpu_usage", "percent");
    CHECK_UINT(processors->count, 1);
    CHECK(processors->values[0].value == 50);
    CHECK_UINT(processors->values[0].time_ns, 1000000000 + 5000 + 2000000);
    profile_fini(&profile);
    free((void *)(uintptr_t)bytes.data);
}

static enum recording_end end_reason;

static void write_end(void)
{
    const uint64_t counters[RECORDING_COUNTER_COUNT] = {[RECORDING_END_REASON] = end_reason};
    recording_counters(&writer, counters);
    recording_begin(&writer, RECORDING_STOP, 0);
}

TEST(names_the_reason_for_which_the_sampler_ended)
{
    static const char *const expected[] = {
        [RECORDING_END_NONE] = "",
        [RECORDING_END_DESCRIPTORS] = "the limit of open files leaves it none to read the threads; raise it "
                                      "(ulimit -n)",
        [RECORDING_END_NO_THREAD] = "the limit of threads leaves none for it; raise it (ulimit -u)",
    };
    for (end_reason = 0; end_reason <= RECORDING_END_NO_THREAD; end_reason++) {
        if (!expected[end_reason]) continue;
        struct slice bytes = recording_of(RECORDING_WALL, write_end);
        struct profile profile = {0};
        profile_init(&profile);
        CHECK_UINT(recording_decode(bytes, &profile, NULL), STATUS_OK);
        CHECK_TEXT(profile_metadata_text(&profile, "sampler_ended"), expected[end_reason]);
        profile_fini(&profile);
        free((void *)(uintptr_t)bytes.data);
    }
}

/* --- A recorder outside of the process ---------------------------------------------------------------------------- */

enum { CHILD_TICKS = 50, TICK_NS = 10000000 };

static pid_t child;
static uint64_t child_code; /* in its program */

/* A module from the list of mappings alone. */
static void write_mapping(const struct maps_entry *entry, uint32_t number)
{
    struct recording_module module = {.number = number,
                                      .start = entry->start,
                                      .end = entry->end,
                                      .file_offset = entry->file_offset,
                                      .image_start = entry->start - entry->file_offset,
                                      .path = entry->path};
    recording_module(&writer, &module);
}

static void write_mappings(const char *program)
{
    char path[64];
    static char buffer[64 << 10];
    (void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)child);
    struct maps_reader reader = {.descriptor = open(path, O_RDONLY), .buffer = buffer, .size = sizeof(buffer)};
    struct maps_entry entry;
    uint32_t count = 0;
    CHECK(reader.descriptor >= 0);
    while (maps_next(&reader, &entry)) {
        CHECK(entry.start < entry.end);
        if (!entry.is_executable || entry.path[0] != '/') continue;
        if (strcmp(entry.path, program) == 0) {
            struct stat status;
            CHECK(stat(program, &status) == 0 && status.st_ino == entry.inode && status.st_dev == entry.device);
            child_code = entry.start + 16;
        }
        write_mapping(&entry, count++);
    }
    CHECK(count > 1 && child_code != 0);
    (void)close(reader.descriptor);
}

/* The kernel gives the program's path; a real recorder would take stacks from a ring that the kernel fills. */
static void record_child(const char *path)
{
    static const uint8_t profiler_id[RECORDING_PROFILER_ID_SIZE] = {2};
    static struct recording_stack stack;
    char program[4096] = "", link[64];
    (void)snprintf(link, sizeof(link), "/proc/%d/exe", (int)child);
    CHECK(readlink(link, program, sizeof(program) - 1) > 0);
    struct recording_process process = {.pid = child,
                                        .parent_pid = getpid(),
                                        .mode = RECORDING_CPU,
                                        .period_ns = TICK_NS,
                                        .profiler_id = profiler_id,
                                        .name = "outside",
                                        .path = program};
    recording_writer_init(&writer, path, true);
    recording_process(&writer, &process);
    write_mappings(program);
    recording_thread(&writer, 0, child, "outside");
    for (int i = 0; i < CHILD_TICKS; i++) {
        const uint64_t addresses[] = {child_code, child_code + 32};
        recording_tick(&writer, TICK_NS);
        recording_sample(&writer, 0, (struct recording_time){.cpu_ns = TICK_NS}, 0, addresses, 2, &stack);
    }
    recording_stop(&writer);
    recording_writer_close(&writer);
}

static void check_prints(const char *command, const char *path, const char *expected)
{
    char line[8192] = "", text[8192];
    (void)snprintf(line, sizeof(line), "%s %s %s", OFFBEAT_PROGRAM, command, path);
    FILE *output = popen(line, "r");
    CHECK(output);
    text[fread(text, 1, sizeof(text) - 1, output)] = '\0';
    CHECK_INT(pclose(output), 0);
    if (!strstr(text, expected)) TEST_FAIL("%s does not print \"%s\":\n# %s", line, expected, text);
}

TEST(a_recorder_outside_of_a_process_writes_what_offbeat_reads)
{
    char path[64], expected[64];
    (void)snprintf(path, sizeof(path), "/tmp/offbeat-test-outside-%d.recording", (int)getpid());
    child = fork();
    CHECK(child >= 0);
    if (child == 0) {
        for (;;) (void)pause();
    }
    record_child(path);
    (void)kill(child, SIGKILL);
    (void)waitpid(child, NULL, 0);
    (void)snprintf(expected, sizeof(expected), "%d outside  50 samples", (int)child);
    check_prints("info", path, expected);
    check_prints("top", path, "500ms");
    (void)unlink(path);
}

TEST_MAIN()
