/* The sampler thread: a tick every period, at which every thread is looked at (look.c).
 * SPDX-License-Identifier: MIT */
#include "sampler/sampler_private.h"

#include "base/kernel.h"
#include "base/plain_text.h"
#include "sampler/own_thread.h"
#include "sampler/self.h"
#include "sampler/slots.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <unistd.h>

enum {
    NANOSECONDS = 1000000000,
    STOP_WAIT_NS = 500000000,
    FLUSHES_A_SECOND_MAX = 200,
    ANSWERS_WAIT_NS = 20000000, /* for the last answers when it stops */
};

static struct sampler sampler;
static struct recording_writer writer;
static char directory[3072], cache_directory[1024];
static bool has_thread;
static _Atomic uint32_t stop_wanted, stopped; /* futexes */

/* --- What is written ---------------------------------------------------------------------------------------------- */

static void fill_random(uint8_t bytes[RECORDING_PROFILER_ID_SIZE])
{
    uint64_t unlikely[2] = {self_wall_ns(), (uint64_t)getpid()};
    memcpy(bytes, unlikely, sizeof(unlikely));
    (void)kernel_call3(SYS_getrandom, kernel_address(bytes), RECORDING_PROFILER_ID_SIZE, GRND_NONBLOCK);
}

static void write_start(void)
{
    uint8_t profiler_id[RECORDING_PROFILER_ID_SIZE];
    char name[32] = "", path[MODULE_PATH_MAX] = "";
    fill_random(profiler_id);
    if (self_read_file("/proc/self/comm", name, sizeof(name)) > 0) name[strlen(name) - 1] = '\0';
    long length = kernel_call4(SYS_readlinkat, AT_FDCWD, kernel_address("/proc/self/exe"), kernel_address(path),
                               sizeof(path) - 1);
    recording_begin(&writer, RECORDING_START, 2 * RECORDING_TEXT_MAX);
    recording_number(&writer, (uint64_t)getpid());
    recording_number(&writer, (uint64_t)getppid());
    recording_number(&writer, sampler.options.mode);
    recording_number(&writer, sampler.period_ns);
    uint64_t wall_ns = self_wall_ns();
    sampler.start_ns = self_monotonic_ns();
    recording_signed(&writer, (int64_t)(wall_ns - sampler.start_ns));
    recording_number(&writer, sampler.start_ns);
    recording_bytes(&writer, profiler_id, sizeof(profiler_id));
    recording_text(&writer, name, strlen(name));
    recording_text(&writer, path, length > 0 ? (size_t)length : 0);
}

static void write_counters(void)
{
    uint64_t *perf_refusal = &sampler.counters[RECORDING_PERF_ERRNO];
    if (*perf_refusal == 0 && self_is_confined())
        *perf_refusal = EPERM; /* nobody slept long enough to ask for a page */
    sampler.counters[RECORDING_BYTES_LOST] = writer.bytes_lost;
    sampler.counters[RECORDING_MODULES_WITHOUT_TABLE] = sampler.modules.without_table;
    sampler.counters[RECORDING_TABLE_BYTES] = sampler.modules.table_bytes;
    sampler.counters[RECORDING_TABLE_NS] = sampler.modules.table_ns;
    sampler.counters[RECORDING_THREADS_MISSED] = sampler.threads.missed;
    (void)thread_cpu_ns(sampler.threads.sampler_tid, &sampler.counters[RECORDING_SAMPLER_CPU_NS]);
    recording_begin(&writer, RECORDING_COUNTERS, (RECORDING_COUNTER_COUNT + 1) * 10);
    recording_number(&writer, RECORDING_COUNTER_COUNT);
    for (unsigned i = 0; i < RECORDING_COUNTER_COUNT; i++) recording_number(&writer, sampler.counters[i]);
}

/* --- The thread --------------------------------------------------------------------------------------------------- */

static void thread_gone(void *context, struct watched_thread *thread)
{
    look_thread_gone(context, thread);
}

static void refresh_threads(void)
{
    threads_refresh(&sampler.threads, &writer, thread_gone, &sampler);
}

/* What seldom changes, and then mostly at the start: threads give themselves names, daemons give up rights. */
static bool is_time_for_rare_changes(void)
{
    uint32_t second = sampler.ticks_a_second;
    return sampler.tick % second == 0 || (sampler.tick < second && sampler.tick % (second / 10 + 1) == 0);
}

static void open_tick(uint64_t now_ns, uint64_t before_ns)
{
    sampler.tick++;
    sampler.counters[RECORDING_TICKS]++;
    recording_begin(&writer, RECORDING_TICK, 16);
    recording_number(&writer, now_ns - before_ns);
}

static void once_a_second(void)
{
    if (sampler.tick % sampler.ticks_a_second != 0) return;
    write_counters();
    signal_handler_keep();
    timer_forget_sleepers(&sampler);
}

/* A tick at which nothing changed is a few bytes: ten of them are one write. */
static void flush_sometimes(void)
{
    bool is_time = sampler.tick % (sampler.ticks_a_second / 10 + 1) == 0;
    bool is_time_for_news = sampler.tick % (sampler.ticks_a_second / FLUSHES_A_SECOND_MAX + 1) == 0;
    if (!is_time && !(sampler.has_news && is_time_for_news)) return;
    recording_writer_flush(&writer);
    sampler.has_news = false;
}

static void run_tick(uint64_t now_ns, uint64_t before_ns)
{
    look_fetch_answers(&sampler);
    flush_sometimes();
    if (!slots_in_use()) modules_release_retired(&sampler.modules);
    modules_refresh(&sampler.modules, sampler.tick % sampler.ticks_a_second == 0, &writer);
    if (threads_changed(&sampler.threads)) refresh_threads();
    if (is_time_for_rare_changes()) {
        self_follow_credentials();
        threads_refresh_names(&sampler.threads, &writer);
    }
    open_tick(now_ns, before_ns);
    if (!look_at_all(&sampler)) {
        refresh_threads();
        look_at_new(&sampler);
    }
    once_a_second();
}

static void futex_wait_until(_Atomic uint32_t *word, uint32_t value, uint64_t deadline_ns)
{
    struct timespec deadline = {.tv_sec = (time_t)(deadline_ns / NANOSECONDS),
                                .tv_nsec = (long)(deadline_ns % NANOSECONDS)};
    (void)kernel_call6(SYS_futex, (long)(uintptr_t)word, FUTEX_WAIT_BITSET_PRIVATE, value, kernel_address(&deadline), 0,
                       FUTEX_BITSET_MATCH_ANY);
}

static void futex_set(_Atomic uint32_t *word)
{
    atomic_store(word, 1);
    (void)kernel_call3(SYS_futex, (long)(uintptr_t)word, FUTEX_WAKE_PRIVATE, INT32_MAX);
}

/* False once it is to stop. */
static bool sleep_until(uint64_t deadline_ns)
{
    while (!atomic_load(&stop_wanted)) {
        if (self_monotonic_ns() >= deadline_ns) return true;
        futex_wait_until(&stop_wanted, 0, deadline_ns);
    }
    return false;
}

static uint64_t random_below(uint64_t limit)
{
    uint8_t bytes[RECORDING_PROFILER_ID_SIZE];
    uint64_t random;
    fill_random(bytes);
    memcpy(&random, bytes, sizeof(random));
    return random % limit;
}

static void run_ticks(void)
{
    /* The first tick falls anywhere in the first period, so that programs shorter than it have their share of samples.
     */
    uint64_t before_ns = sampler.start_ns, deadline_ns = sampler.start_ns + random_below(sampler.period_ns);
    uint64_t end_ns = sampler.options.duration_ns ? sampler.start_ns + sampler.options.duration_ns : UINT64_MAX;
    while (before_ns < end_ns && sleep_until(deadline_ns)) {
        uint64_t now_ns = self_monotonic_ns();
        run_tick(now_ns, before_ns);
        before_ns = now_ns;
        uint64_t late = (self_monotonic_ns() - deadline_ns) / sampler.period_ns;
        sampler.counters[RECORDING_TICKS_MISSED] += late;
        deadline_ns += (late + 1) * sampler.period_ns;
    }
}

static void wait_for_last_answers(void)
{
    uint64_t deadline_ns = self_monotonic_ns() + ANSWERS_WAIT_NS;
    for (size_t i = 0; i < sampler.threads.count; i++) {
        const struct slot *slot = sampler.threads.items[i].thread->slot;
        while (slot && slot_phase_of(slot) != SLOT_DONE && self_monotonic_ns() < deadline_ns) {
            struct timespec moment = {.tv_nsec = 200000};
            (void)kernel_call3(SYS_nanosleep, kernel_address(&moment), 0, 0);
        }
    }
}

static void finish(void)
{
    sampler.is_ending = true;
    wait_for_last_answers();
    look_fetch_answers(&sampler);
    threads_fini(&sampler.threads, thread_gone, &sampler);
    recording_writer_flush(&writer);
    write_counters();
    recording_begin(&writer, RECORDING_STOP, 0);
    recording_writer_close(&writer);
    self_close_descriptors();
}

/* DIRECTORY/PID-TIME.recording, as nobody else in the system calls one. */
static void name_recording(char *path, size_t size)
{
    const char *end = path + size;
    char *at = plain_text(path, end, directory);
    at = plain_number(plain_text(at, end, "/"), end, (uint64_t)getpid(), 10);
    at = plain_number(plain_text(at, end, "-"), end, self_monotonic_ns(), 16);
    (void)plain_text(at, end, ".recording");
}

static int run(void *unused)
{
    (void)kernel_call3(SYS_prctl, PR_SET_NAME, kernel_address("offbeat"), 0);
    sampler.threads.sampler_tid = (pid_t)kernel_call3(SYS_gettid, 0, 0, 0);
    self_wake_promptly();
    bool own_descriptors = self_own_descriptors();
    char path[4096];
    name_recording(path, sizeof(path));
    recording_writer_init(&writer, path, own_descriptors);
    sampler.threads.directory = -1;
    sampler.threads.keeps_descriptor = own_descriptors;
    write_start();
    modules_refresh(&sampler.modules, true, &writer);
    refresh_threads();
    run_ticks();
    finish();
    futex_set(&stopped);
    return 0;
}

bool sampler_start(const struct sampler_options *options)
{
    if (has_thread) return false;
    memset(&sampler, 0, sizeof(sampler));
    sampler.options = *options;
    sampler.writer = &writer;
    stop_wanted = stopped = 0;
    if (options->directory != directory) {
        (void)plain_text(directory, directory + sizeof(directory), options->directory);
    }
    sampler.options.directory = directory;
    if (options->cache_directory && strlen(options->cache_directory) < sizeof(cache_directory)) {
        if (options->cache_directory != cache_directory) {
            (void)plain_text(cache_directory, cache_directory + sizeof(cache_directory), options->cache_directory);
        }
        sampler.options.cache_directory = sampler.modules.cache_directory = cache_directory;
    }
    sampler.period_ns = NANOSECONDS / options->frequency_hz;
    sampler.ticks_a_second = options->frequency_hz;
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    sampler.requests_in_tick_max = processors > 0 ? 4 * (uint32_t)processors : 8;
    has_thread = slots_prepare() && slots_install_handler() && own_thread_start(run, NULL);
    return has_thread;
}

void sampler_stop(void)
{
    if (!has_thread) return;
    has_thread = false;
    futex_set(&stop_wanted);
    uint64_t deadline_ns = self_monotonic_ns() + STOP_WAIT_NS;
    while (!atomic_load(&stopped) && self_monotonic_ns() < deadline_ns) {
        futex_wait_until(&stopped, 0, deadline_ns);
    }
}

void sampler_after_fork_in_child(void)
{
    if (!has_thread) return;
    /* The parent's threads are not here, and its requests and its file are not ours. */
    struct sampler_options options = sampler.options;
    slots_forget();
    has_thread = false;
    if (!options.ignores_children) (void)sampler_start(&options);
}
