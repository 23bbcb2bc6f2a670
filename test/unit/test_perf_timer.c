/* Reads the memory that the kernel writes stacks to, and may overwrite at any moment: nothing in it leads
 * outside of it. The page after it cannot be read.  SPDX-License-Identifier: MIT */
#include "sampler/source/perf_timer.h"
#include "sampler/source/chance.h"
#include "test.h"

#include <linux/perf_event.h>
#include <sys/mman.h>

enum { PAGE = 4096, RING = 32 << 10, STACK = 8 << 10, BEFORE_STACK = 21, WORDS = BEFORE_STACK + STACK / 8 + 1 };

static uint8_t *memory;
static struct perf_timer timer;

static void begin(void)
{
    if (!memory) memory = mmap(NULL, PAGE + RING + PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED);
    CHECK_INT(mprotect(memory + PAGE + RING, PAGE, PROT_NONE), 0);
    memset(memory, 0, PAGE + RING);
    timer = (struct perf_timer){
        .control = (void *)memory, .descriptor = -1, .control_bytes = PAGE, .ring_size = RING, .stack_size = STACK};
}

static void put_word(uint64_t position, uint64_t word)
{
    memcpy(memory + PAGE + position % RING, &word, sizeof(word));
}

static void put_header(uint64_t position, uint16_t size)
{
    struct perf_event_header header = {.type = PERF_RECORD_SAMPLE, .size = size};
    uint64_t word;
    memcpy(&word, &header, sizeof(word));
    put_word(position, word);
}

/* Writes a sample in front of the last one, as the kernel does. */
static void put_sample(uint64_t filled)
{
    uint64_t at = timer.control->data_head - WORDS * 8;
    for (uint64_t i = 1; i < WORDS; i++) put_word(at + i * 8, i);
    put_header(at, WORDS * 8);
    put_word(at + 2 * 8, PERF_SAMPLE_REGS_ABI_64);
    put_word(at + (BEFORE_STACK - 1) * 8, STACK);
    put_word(at + (WORDS - 1) * 8, filled);
    timer.control->data_head = at;
}

static bool is_readable(const struct perf_timer_sample *sample)
{
    volatile uint64_t sum = 0;
    for (size_t i = 0; i < sample->stack_bytes / 8; i++) sum += sample->stack[i];
    return sample->stack_bytes <= RING;
}

TEST(a_sample_is_read_also_where_it_goes_around_the_end)
{
    begin();
    for (unsigned i = 0; i < 20; i++) {
        struct perf_timer_news news;
        struct perf_timer_sample sample;
        put_sample(STACK / 2);
        CHECK_UINT(perf_timer_read(&timer, &news), 1);
        CHECK(perf_timer_sample(&timer, &news, 0, &sample));
        CHECK_UINT(sample.time_ns, 1);
        CHECK_UINT(sample.registers.values[MACHINE_RAX], 3);
        CHECK_UINT(sample.stack_bytes, STACK / 2);
        CHECK_UINT(sample.stack[0], BEFORE_STACK);
        CHECK_UINT(sample.stack[STACK / 16], BEFORE_STACK + STACK / 16);
        CHECK(perf_timer_holds(&timer));
    }
}

TEST(the_size_of_a_sample_that_was_written_over_leads_nowhere)
{
    begin();
    for (unsigned i = 0; i < 20; i++) {
        struct perf_timer_news news;
        put_sample(STACK);
        CHECK_UINT(perf_timer_read(&timer, &news), 1);
        for (unsigned size = 0; size <= UINT16_MAX; size += 8) {
            struct perf_timer_sample sample;
            put_header(news.positions[0], (uint16_t)size);
            if (perf_timer_sample(&timer, &news, 0, &sample)) CHECK(is_readable(&sample));
        }
        put_header(news.positions[0], WORDS * 8);
    }
}

TEST(a_ring_of_any_bytes_is_read_safely)
{
    enum { ROUNDS = 2000 };
    uint64_t random = 7, answers = 0;
    begin();
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct perf_timer_news news;
        timer.control->data_head -= chance_number(&random) % (RING / 8) * 8;
        for (unsigned i = 0; i < RING / 8; i++)
            put_word(i * 8, chance_number(&random) % 3 ? 2 : chance_number(&random));
        for (unsigned i = 0; i < 64; i++)
            put_header(chance_number(&random) % RING / 8 * 8, (uint16_t)(chance_number(&random) & 0xfff8));
        put_header(timer.control->data_head, (uint16_t)(chance_number(&random) % 1024 * 8));
        struct perf_timer copy = timer;
        struct perf_timer_stops stops;
        struct perf_timer_sample stop;
        perf_timer_read_stops(&copy, &random, &stops);
        if (perf_timer_stop(&copy, &stops, &stop)) CHECK(is_readable(&stop));
        (void)perf_timer_read(&timer, &news);
        CHECK(news.kept_count <= PERF_TIMER_NEWS_MAX && news.kept_count <= news.count);
        for (unsigned i = 0; i < news.kept_count; i++) {
            struct perf_timer_sample sample;
            if (round % 2) put_header(news.positions[i], (uint16_t)chance_number(&random));
            if (!perf_timer_sample(&timer, &news, i, &sample)) continue;
            CHECK(is_readable(&sample));
            answers++;
        }
    }
    CHECK(answers > 10);
}

/* --- When the thread ran ------------------------------------------------------------------------------------------ */

enum { US = 1000, MS = 1000000, START = 0, STOP = PERF_RECORD_MISC_SWITCH_OUT };
enum { PREEMPTED = PERF_RECORD_MISC_SWITCH_OUT | PERF_RECORD_MISC_SWITCH_OUT_PREEMPT };

static uint64_t clock_ns;

static void put_switch(int misc, uint64_t after_ns)
{
    enum { SIZE = 16 };
    struct perf_event_header header = {.type = PERF_RECORD_SWITCH, .size = SIZE, .misc = (uint16_t)misc};
    uint64_t word, at = timer.control->data_head - SIZE;
    memcpy(&word, &header, sizeof(word));
    put_word(at, word);
    put_word(at + 8, clock_ns += after_ns);
    timer.control->data_head = at;
}

static uint64_t preempted_ns(void)
{
    struct perf_timer_news news;
    (void)perf_timer_read(&timer, &news);
    return timer.preempted_ns;
}

static void begin_asleep(void)
{
    begin();
    clock_ns = 1000 * MS;
    put_switch(STOP, 0);
    put_switch(START, 5 * MS);
}

TEST(a_thread_is_preempted_from_a_stop_to_the_next_start)
{
    begin_asleep();
    put_switch(PREEMPTED, 3 * MS);
    CHECK_UINT(preempted_ns(), 0);
    put_switch(START, 20 * MS);
    put_switch(PREEMPTED, 2 * US); /* its quota is spent */
    put_switch(START, 40 * MS);
    CHECK_UINT(preempted_ns(), 60 * MS);
    put_switch(STOP, 1 * MS);
    put_switch(START, 7 * MS);
    CHECK_UINT(preempted_ns(), 60 * MS);
}

TEST(a_thread_that_was_just_woken_and_has_no_quota_is_still_in_its_call)
{
    for (unsigned reads = 0; reads < 16; reads++) {
        begin_asleep();
        if (reads & 1) CHECK_UINT(preempted_ns(), 0);
        put_switch(PREEMPTED, 2 * US);
        if (reads & 2) CHECK_UINT(preempted_ns(), 0);
        put_switch(START, 20 * MS);
        if (reads & 4) CHECK_UINT(preempted_ns(), 0);
        put_switch(PREEMPTED, 2 * US); /* again */
        if (reads & 8) CHECK_UINT(preempted_ns(), 0);
        put_switch(START, 20 * MS);
        CHECK_UINT(preempted_ns(), 0);
        put_switch(PREEMPTED, 1 * MS);
        put_switch(START, 3 * MS);
        CHECK_UINT(preempted_ns(), 3 * MS);
    }
}

TEST(a_short_wait_of_a_thread_that_was_just_woken_is_for_one_that_it_woke)
{
    begin_asleep();
    put_switch(PREEMPTED, 5 * US);
    put_switch(START, 20 * US);
    CHECK_UINT(preempted_ns(), 20 * US);
}

/* The same forward in time. */
struct slow_count {
    uint64_t preempted_ns, started_ns, stopped_ns;
    bool is_in_call, was_preempted;
};

static void count_slowly(struct slow_count *count, int misc)
{
    uint64_t run_ns = clock_ns - count->started_ns, wait_ns = clock_ns - count->stopped_ns;
    if (misc == START) {
        if (count->was_preempted && wait_ns < MS) count->is_in_call = false;
        if (count->was_preempted && !count->is_in_call) count->preempted_ns += wait_ns;
        count->started_ns = clock_ns;
        return;
    }
    if (run_ns > 8 * US) count->is_in_call = false;
    if (misc == STOP) count->is_in_call = true;
    count->was_preempted = misc == PREEMPTED;
    count->stopped_ns = clock_ns;
}

TEST(it_does_not_matter_when_switches_are_read)
{
    enum { ROUNDS = 200, SWITCHES = 400 };
    uint64_t random = 3;
    for (unsigned round = 0; round < ROUNDS; round++) {
        static const uint64_t lengths[] = {2 * US, 8 * US, 9 * US, 999 * US, 1 * MS, 30 * MS};
        struct slow_count slow = {.is_in_call = true};
        begin_asleep();
        slow.started_ns = clock_ns;
        for (unsigned i = 0; i < SWITCHES; i++) {
            bool is_stop = i % 2 == 0;
            int misc = is_stop ? (chance_number(&random) % 4 ? PREEMPTED : STOP) : START;
            put_switch(misc, lengths[chance_number(&random) % 6]);
            count_slowly(&slow, misc);
            if (chance_number(&random) % (1 + round % 50) == 0) CHECK_UINT(preempted_ns(), slow.preempted_ns);
        }
        CHECK_UINT(preempted_ns(), slow.preempted_ns);
    }
}

/* --- Where it was stopped ----------------------------------------------------------------------------------------- */

/* The sample is written right before the record of the stop. */
static void put_stop(int misc, uint64_t after_ns, bool is_sampled)
{
    clock_ns += after_ns;
    if (is_sampled) put_sample(STACK);
    put_switch(misc, 0);
}

static struct perf_timer_stops read_stops(void)
{
    static uint64_t random = 5;
    struct perf_timer_stops stops;
    perf_timer_read_stops(&timer, &random, &stops);
    return stops;
}

TEST(a_stop_stands_for_the_wait_that_it_begins)
{
    struct perf_timer_sample sample;
    begin_asleep();
    put_stop(PREEMPTED, 1 * MS, true);
    uint64_t position = timer.control->data_head + 16;
    put_switch(START, 3 * MS);
    put_stop(PREEMPTED, 1 * MS, false);
    put_switch(START, 40 * MS);
    put_stop(STOP, 1 * MS, true); /* it sleeps */
    put_switch(START, 7 * MS);
    struct perf_timer_stops stops = read_stops();
    CHECK_UINT(stops.count, 2);
    CHECK_UINT(stops.wait_ns, 3 * MS);
    CHECK_UINT(stops.its_wait_ns, 3 * MS);
    CHECK_UINT(stops.position, position);
    CHECK(perf_timer_stop(&timer, &stops, &sample));
    CHECK_UINT(sample.stack_bytes, STACK);
    CHECK_UINT(read_stops().count, 0);
}

TEST(a_wait_that_has_not_ended_is_read_when_it_has)
{
    for (unsigned part = 0; part < 3; part++) {
        begin_asleep();
        (void)read_stops();
        put_sample(STACK);
        if (part == 0) CHECK_UINT(read_stops().count, 0);
        put_switch(PREEMPTED, 1 * MS);
        if (part == 1) CHECK_UINT(read_stops().count, 0);
        if (part == 1) CHECK_UINT(read_stops().wait_ns, 0);
        put_switch(START, 9 * MS);
        struct perf_timer_stops stops = read_stops();
        CHECK_UINT(stops.count, 1);
        CHECK_UINT(stops.wait_ns, 9 * MS);
    }
}

TEST(a_stop_is_chosen_as_often_as_its_wait_is_long)
{
    enum { ROUNDS = 20000 };
    unsigned longer = 0;
    for (unsigned round = 0; round < ROUNDS; round++) {
        begin_asleep();
        put_stop(PREEMPTED, 1 * MS, true);
        put_switch(START, (round % 2 ? 1 : 3) * MS);
        put_stop(PREEMPTED, 1 * MS, true);
        put_switch(START, (round % 2 ? 3 : 1) * MS);
        struct perf_timer_stops stops = read_stops();
        CHECK_UINT(stops.wait_ns, 4 * MS);
        longer += stops.its_wait_ns == 3 * MS;
    }
    CHECK(longer > ROUNDS * 0.735 && longer < ROUNDS * 0.765); /* five standard deviations */
}

TEST(stops_are_counted_also_where_records_were_written_over)
{
    enum { A_READING = 10 };
    begin_asleep();
    for (unsigned reading = 0; reading < 100; reading++) {
        for (unsigned i = 0; i < A_READING; i++) {
            put_stop(PREEMPTED, 1 * MS, reading % 2);
            put_switch(START, 1 * MS);
        }
        (void)preempted_ns();
    }
    double stops = perf_timer_stops_in(&timer, 100 * MS);
    CHECK(stops > 45 && stops < 55);
}

TEST_MAIN()
