/* The sampler thread: a tick every period, at which every thread is looked at.
 *
 * Wall clock. A thread whose CPU clock stands still is where it was at the tick before: nothing is done and nothing is
 * written. One that ran and is blocked now is unwound from outside (blocked.c). One that is running is sent a signal
 * and unwinds itself (signal_handler.c); the answer is fetched at the next tick. A thread that waits for a processor
 * answers when it gets one, from the place where it was stopped: its answer counts for all the ticks that it waited.
 * CPU time. A timer on each thread's CPU clock sends the signal; a tick only fetches the answers.
 * SPDX-License-Identifier: MIT */
#include "sampler/sampler.h"

#include "sampler/blocked.h"
#include "sampler/modules.h"
#include "sampler/self.h"
#include "sampler/signal_handler.h"
#include "sampler/threads.h"

#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <unistd.h>

enum {
    SAMPLER_STACK_BYTES = 256 << 10,
    UNANSWERED_TICKS_MAX = 2, /* of a thread that runs meanwhile: it has blocked the signal since we looked */
    NANOSECONDS = 1000000000,
    STOP_WAIT_NS = 500000000,
    ANSWERS_WAIT_NS = 20000000, /* for the last answers when it stops */
};

struct sampler {
    struct sampler_options options;
    char directory[3072];
    uint64_t period_ns;
    uint64_t start_ns;
    uint32_t tick; /* number of the tick that is open */
    uint32_t ticks_a_second;
    bool has_news; /* a sample was written since the last flush */
    uint32_t requests_in_tick, requests_in_tick_max, pages_in_tick;
    uint32_t free_slots[SLOTS_MAX];
    uint32_t free_slot_count;
    uint64_t counters[RECORDING_COUNTER_COUNT];
    struct threads threads;
    struct modules modules;
    pthread_t thread;
    bool has_thread;
    _Atomic uint32_t stop_wanted; /* futex */
    _Atomic uint32_t stopped;     /* futex */
};

static struct sampler sampler;
static struct recording_writer writer;
static struct slot *slots; /* stay for ever: a late answer may come at any time */

/* --- Slots -------------------------------------------------------------------------------------------------------- */

static bool prepare_slots(void)
{
    if (!slots) slots = pages_allocate(SLOTS_MAX * sizeof(struct slot));
    if (!slots) return false;
    sampler.free_slot_count = 0;
    for (uint32_t i = SLOTS_MAX; i > 0; i--) sampler.free_slots[sampler.free_slot_count++] = i - 1;
    return true;
}

static uint64_t slot_generation(const struct slot *slot)
{
    return atomic_load_explicit(&slot->state, memory_order_relaxed) >> 2;
}

static enum slot_phase slot_phase_of(const struct slot *slot)
{
    return (enum slot_phase)(atomic_load_explicit(&slot->state, memory_order_acquire) & 3);
}

static struct slot *take_slot(void)
{
    if (sampler.free_slot_count == 0) return NULL;
    struct slot *slot = &slots[sampler.free_slots[--sampler.free_slot_count]];
    slot->modules = sampler.modules.current;
    slot->reads_cpu_clock = sampler.options.mode == RECORDING_CPU;
    atomic_store_explicit(&slot->state, slot_state(slot_generation(slot) + 1, SLOT_REQUESTED), memory_order_release);
    return slot;
}

/* A slot that is not being written to is given back under a new generation; one that is, at this instant, by a thread
 * that we wait for no longer, is left to itself. */
static void give_back_slot(struct slot *slot)
{
    uint64_t generation = slot_generation(slot);
    uint64_t expected = slot_state(generation, SLOT_REQUESTED);
    if (!atomic_compare_exchange_strong(&slot->state, &expected, slot_state(generation, SLOT_FREE)) &&
        (expected & 3) == SLOT_WRITING)
        return;
    atomic_store_explicit(&slot->state, slot_state(generation, SLOT_FREE), memory_order_relaxed);
    sampler.free_slots[sampler.free_slot_count++] = (uint32_t)(slot - slots);
}

static bool any_slot_in_use(void)
{
    return sampler.free_slot_count < SLOTS_MAX;
}

static bool send_request(const struct watched_thread *thread, const struct slot *slot)
{
    siginfo_t information = {0};
    information.si_signo = thread->signal_number;
    information.si_code = SI_QUEUE;
    information.si_pid = getpid();
    information.si_uid = getuid();
    information.si_value.sival_ptr = (void *)(uintptr_t)slot_cookie((uint32_t)(slot - slots), slot_generation(slot));
    sampler.counters[RECORDING_SIGNALS]++;
    return syscall(SYS_rt_tgsigqueueinfo, getpid(), thread->tid, thread->signal_number, &information) == 0;
}

/* --- What is written ---------------------------------------------------------------------------------------------- */

static void write_start(void)
{
    uint8_t profiler_id[RECORDING_PROFILER_ID_SIZE];
    char name[32] = "", path[MODULE_PATH_MAX] = "";
    if (getrandom(profiler_id, sizeof(profiler_id), GRND_NONBLOCK) != sizeof(profiler_id)) {
        uint64_t unlikely[2] = {self_wall_ns(), (uint64_t)getpid()};
        memcpy(profiler_id, unlikely, sizeof(profiler_id));
    }
    if (self_read_file("/proc/self/comm", name, sizeof(name)) > 0) name[strcspn(name, "\n")] = '\0';
    ssize_t length = readlink("/proc/self/exe", path, sizeof(path) - 1);
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
    sampler.counters[RECORDING_BYTES_LOST] = writer.bytes_lost;
    sampler.counters[RECORDING_MODULES_WITHOUT_TABLE] = sampler.modules.without_table;
    sampler.counters[RECORDING_TABLE_BYTES] = sampler.modules.table_bytes;
    sampler.counters[RECORDING_TABLE_NS] = sampler.modules.table_ns;
    sampler.counters[RECORDING_THREADS_MISSED] = sampler.threads.missed;
    recording_begin(&writer, RECORDING_COUNTERS, (RECORDING_COUNTER_COUNT + 1) * 10);
    recording_number(&writer, RECORDING_COUNTER_COUNT);
    for (unsigned i = 0; i < RECORDING_COUNTER_COUNT; i++) recording_number(&writer, sampler.counters[i]);
}

static void write_lost(const struct watched_thread *thread, uint32_t ticks, enum recording_loss cause)
{
    recording_begin(&writer, RECORDING_LOST, 32);
    recording_number(&writer, thread->number);
    recording_number(&writer, ticks);
    recording_number(&writer, cause);
}

static void write_waiting(struct watched_thread *thread)
{
    thread->waiting_ticks++;
    recording_begin(&writer, RECORDING_WAITING, 16);
    recording_number(&writer, thread->number);
}

static void write_sample(struct watched_thread *thread, uint32_t flags, const uint64_t *addresses, size_t count)
{
    uint32_t ticks = thread->waiting_ticks + 1;
    if (thread->ran_while_waiting && thread->waiting_ticks > 0) {
        write_lost(thread, thread->waiting_ticks, RECORDING_LOST_LATE);
        ticks = 1;
    }
    recording_sample(&writer, RECORDING_SAMPLE, thread->number, ticks, flags, addresses, count, thread->last);
    thread->waiting_ticks = 0;
    thread->ran_while_waiting = false;
    thread->has_stack = thread->ran = sampler.has_news = true;
}

/* --- Wall clock --------------------------------------------------------------------------------------------------- */

/* A walk met a module for the first time, at its last address. */
static void build_table_for(const uint64_t *addresses, size_t count)
{
    modules_build(&sampler.modules, addresses[count - 1] - (count > 1));
}

/* The next answer counts for this tick, too. */
static void ask_again(struct watched_thread *thread, const struct slot *slot)
{
    build_table_for(slot->addresses, slot->address_count);
    thread->has_stack = false;
    write_waiting(thread);
}

/* Fetches the answers to the requests of the open tick, which ends thereby. */
static void fetch_answers(void)
{
    for (size_t i = 0; i < sampler.threads.count; i++) {
        struct watched_thread *thread = sampler.threads.items[i];
        struct slot *slot = thread->slot;
        if (!slot) continue;
        if (slot_phase_of(slot) != SLOT_DONE) {
            write_waiting(thread);
            continue;
        }
        sampler.counters[RECORDING_ANSWERS]++;
        if (slot->outcome == UNWIND_PENDING)
            ask_again(thread, slot);
        else
            write_sample(thread, slot->outcome, slot->addresses, slot->address_count);
        thread->cpu_ns_at_stack = thread->cpu_ns_at_request;
        thread->slot = NULL;
        give_back_slot(slot);
    }
}

/* A signal that a thread blocks would stay with it, and surprise it in sigwait. Masks seldom change, so one look a
 * second is enough, save at a thread that blocks everything: it may be one that is just starting. The first thread gets
 * the usual signal only: it is the one that a forked child calls exec on. */
static bool choose_signal(struct watched_thread *thread)
{
    if (sampler.tick < thread->signal_until_tick) return true;
    thread->signal_number = 0;
    uint64_t blocked = thread_blocked_signals(thread->tid);
    if (!(blocked >> (SIGNAL_USUAL - 1) & 1)) {
        thread->signal_number = SIGNAL_USUAL;
    } else if (thread->tid != getpid() && !(blocked >> (SIGNAL_NEVER_BLOCKED - 1) & 1)) {
        thread->signal_number = SIGNAL_NEVER_BLOCKED;
    }
    if (thread->signal_number != 0) thread->signal_until_tick = sampler.tick + sampler.ticks_a_second;
    return thread->signal_number != 0;
}

static void take_back_request(struct watched_thread *thread)
{
    give_back_slot(thread->slot);
    thread->slot = NULL;
    thread->signal_until_tick = 0;
    write_lost(thread, thread->waiting_ticks, RECORDING_LOST_UNANSWERED);
    thread->waiting_ticks = 0;
    thread->ran_while_waiting = false;
}

/* The handler runs before anything else that a thread does when it gets a processor: one that has run and has not
 * answered blocks the signal. CPU_NS was read before the slot is looked at. */
static void watch_waiting(struct watched_thread *thread, uint64_t cpu_ns)
{
    if (slot_phase_of(thread->slot) != SLOT_REQUESTED) return;
    if (cpu_ns > thread->cpu_ns_at_request + sampler.period_ns / 4) thread->ran_while_waiting = true;
    if (thread->ran_while_waiting && thread->waiting_ticks > UNANSWERED_TICKS_MAX) take_back_request(thread);
}

static void request(struct watched_thread *thread, uint64_t cpu_ns)
{
    if (!choose_signal(thread)) {
        write_lost(thread, 1, RECORDING_LOST_UNANSWERED);
        return;
    }
    struct slot *slot = sampler.requests_in_tick < sampler.requests_in_tick_max ? take_slot() : NULL;
    if (!slot) {
        if (thread->waiting_ticks > 0) thread->ran_while_waiting = true;
        write_waiting(thread);
        return;
    }
    sampler.requests_in_tick++;
    thread->slot = slot;
    thread->cpu_ns_at_request = cpu_ns;
    if (!send_request(thread, slot)) {
        thread->slot = NULL;
        give_back_slot(slot);
        write_lost(thread, 1, RECORDING_LOST_UNANSWERED);
    }
}

static bool try_blocked(struct watched_thread *thread, uint64_t cpu_ns)
{
    static uint64_t addresses[RECORDING_FRAMES_MAX];
    size_t count = 0;
    enum unwind_outcome outcome = UNWIND_ROOT;
    enum blocked_result result = BLOCKED_PENDING;
    for (unsigned i = 0; result == BLOCKED_PENDING && i < MODULES_MAX; i++) {
        result = blocked_walk(thread, cpu_ns, sampler.modules.current, addresses, &count, &outcome);
        if (result == BLOCKED_PENDING) build_table_for(addresses, count);
    }
    switch (result) {
    case BLOCKED_WALKED:
        break;
    case BLOCKED_PENDING:
    case BLOCKED_RUNNING:
        return false;
    case BLOCKED_NEEDS_SIGNAL:
    case BLOCKED_REFUSED:
        sampler.counters[RECORDING_BLOCKED_REFUSED]++;
        return false;
    }
    sampler.counters[RECORDING_BLOCKED_READ]++;
    write_sample(thread, outcome | RECORDING_WITHOUT_SIGNAL, addresses, count);
    thread->cpu_ns_at_stack = cpu_ns;
    return true;
}

/* A page is for threads that sleep for long: it makes each wake-up a little dearer. */
static void consider_page(struct watched_thread *thread)
{
    enum { ASLEEP_TICKS_FOR_PAGE = 2, PAGES_A_TICK_MAX = 64 };
    if (thread->asleep_ticks < ASLEEP_TICKS_FOR_PAGE) {
        thread->asleep_ticks++;
        return;
    }
    if (thread->page || sampler.counters[RECORDING_PERF_ERRNO] || sampler.tick < thread->no_page_until_tick) return;
    if (sampler.pages_in_tick == 0 && self_is_confined())
        errno = EPERM;
    else if (sampler.pages_in_tick++ < PAGES_A_TICK_MAX)
        thread->page = perf_page_open(thread->tid);
    else
        return;
    if (thread->page)
        sampler.counters[RECORDING_PERF_PAGES]++;
    else if (errno != ESRCH)
        sampler.counters[RECORDING_PERF_ERRNO] = (uint64_t)errno;
}

static void drop_page(struct watched_thread *thread)
{
    if (!thread->page) return;
    perf_page_close(thread->page);
    thread->page = NULL;
    sampler.counters[RECORDING_PERF_PAGES]--;
}

static void note_asleep(struct watched_thread *thread, uint32_t page_count)
{
    thread->is_asleep = true;
    thread->page_count_asleep = page_count;
    if (thread->wakes > 0) thread->wakes--;
    consider_page(thread);
}

static void note_awake(struct watched_thread *thread)
{
    enum { WAKE_WEIGHT = 4, WAKES_MAX = 64 };
    thread->is_asleep = false;
    thread->asleep_ticks = 0;
    if (!thread->page) return;
    thread->wakes = (uint8_t)(thread->wakes + WAKE_WEIGHT);
    if (thread->wakes < WAKES_MAX) return;
    drop_page(thread);
    thread->wakes = 0;
    thread->no_page_until_tick = sampler.tick + 10 * sampler.ticks_a_second;
}

/* False if the thread has ended. The cheapest proof that it is where it was comes first. The count of the page is read
 * before the clock: if the clock stands still, the thread has not run since, and the count was that of a sleeping one.
 */
static bool look_at(struct watched_thread *thread)
{
    uint64_t cpu_ns = 0;
    uint32_t page_count = thread->page ? perf_page_count(thread->page) : 0;
    if (thread->page && thread->is_asleep && page_count == thread->page_count_asleep) {
        if (thread->wakes > 0) thread->wakes--;
        return true;
    }
    if (!thread_cpu_ns(thread->tid, &cpu_ns)) return false;
    if (thread->slot) {
        watch_waiting(thread, cpu_ns);
    } else if (thread->has_stack && cpu_ns == thread->cpu_ns_at_stack) {
        note_asleep(thread, page_count);
    } else {
        note_awake(thread);
        if (!try_blocked(thread, cpu_ns)) request(thread, cpu_ns);
    }
    return true;
}

/* Of a thousand sleeping threads each costs two cache misses: asked for ahead, they overlap. */
static void prefetch(size_t next, size_t after_next)
{
    const struct watched_thread *thread = sampler.threads.items[next];
    __builtin_prefetch(sampler.threads.items[after_next]);
    if (thread->page) __builtin_prefetch(thread->page);
}

/* The threads that were put off for want of room come first in some later tick: it begins at another one each time. */
static bool look_at_all(void)
{
    enum { AHEAD = 8 };
    bool all_live = true;
    size_t count = sampler.threads.count;
    sampler.requests_in_tick = sampler.pages_in_tick = 0;
    for (size_t i = 0, at = count ? sampler.tick % count : 0; i < count; i++, at = at + 1 < count ? at + 1 : 0) {
        prefetch((at + AHEAD) % count, (at + 2 * AHEAD) % count);
        if (!look_at(sampler.threads.items[at])) all_live = false;
    }
    return all_live;
}

/* --- CPU time ----------------------------------------------------------------------------------------------------- */

static void arm_cpu_timer(struct watched_thread *thread)
{
    enum { PER_THREAD = 4, SCHEDULER_CLOCK = 2 };
    struct slot *slot = take_slot();
    if (!slot) {
        write_lost(thread, 1, RECORDING_LOST_NO_ROOM);
        return;
    }
    if (!choose_signal(thread)) {
        give_back_slot(slot);
        return;
    }
    struct sigevent event = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = thread->signal_number};
    event.sigev_value.sival_ptr = (void *)(uintptr_t)slot_cookie((uint32_t)(slot - slots), slot_generation(slot));
    event._sigev_un._tid = thread->tid;
    clockid_t clock = (clockid_t)(~(unsigned)thread->tid << 3 | PER_THREAD | SCHEDULER_CLOCK);
    struct timespec period = {.tv_sec = (time_t)(sampler.period_ns / NANOSECONDS),
                              .tv_nsec = (long)(sampler.period_ns % NANOSECONDS)};
    struct itimerspec interval = {.it_interval = period, .it_value = period};
    /* A thread that began under our eyes has all of its time told; others begin now. */
    if (sampler.tick <= 1) (void)thread_cpu_ns(thread->tid, &thread->cpu_ns_recorded);
    if (timer_create(clock, &event, &thread->cpu_timer) != 0) {
        give_back_slot(slot);
        return;
    }
    (void)timer_settime(thread->cpu_timer, 0, &interval, NULL);
    thread->slot = slot;
    thread->has_cpu_timer = true;
}

static void arm_again(struct slot *slot)
{
    slot->modules = sampler.modules.current;
    atomic_store_explicit(&slot->state, slot_state(slot_generation(slot), SLOT_REQUESTED), memory_order_release);
}

/* What a thread spent after its last sample, as far as the ticks saw it, was most likely spent there. */
static void write_cpu_rest(struct watched_thread *thread)
{
    if (thread->last->count == 0 || thread->cpu_ns_seen <= thread->cpu_ns_recorded) return;
    recording_sample(&writer, RECORDING_CPU_SAMPLE, thread->number, thread->cpu_ns_seen - thread->cpu_ns_recorded,
                     UNWIND_ROOT, thread->last->addresses, thread->last->count, thread->last);
}

static void fetch_cpu_answers(void)
{
    for (size_t i = 0; i < sampler.threads.count; i++) {
        struct watched_thread *thread = sampler.threads.items[i];
        if (!thread->has_cpu_timer) arm_cpu_timer(thread);
        (void)thread_cpu_ns(thread->tid, &thread->cpu_ns_seen);
        struct slot *slot = thread->slot;
        if (!slot || slot_phase_of(slot) != SLOT_DONE) continue;
        sampler.counters[RECORDING_ANSWERS]++;
        if (slot->outcome == UNWIND_PENDING) {
            build_table_for(slot->addresses, slot->address_count);
            arm_again(slot);
            continue;
        }
        uint64_t spent = slot->cpu_ns > thread->cpu_ns_recorded ? slot->cpu_ns - thread->cpu_ns_recorded : 0;
        recording_sample(&writer, RECORDING_CPU_SAMPLE, thread->number, spent, slot->outcome, slot->addresses,
                         slot->address_count, thread->last);
        thread->cpu_ns_recorded = slot->cpu_ns;
        thread->ran = true;
        arm_again(slot);
    }
}

/* --- The thread --------------------------------------------------------------------------------------------------- */

static void thread_gone(void *context, struct watched_thread *thread)
{
    if (thread->has_cpu_timer) {
        write_cpu_rest(thread);
        (void)timer_delete(thread->cpu_timer);
    }
    if (thread->slot) give_back_slot(thread->slot);
    if (thread->syscall_file >= 0) (void)close(thread->syscall_file);
    drop_page(thread);
}

static void refresh_threads(void)
{
    threads_refresh(&sampler.threads, &writer, thread_gone, NULL);
}

/* Thread names are mostly set by the thread itself, soon after it starts. */
static bool is_time_for_names(void)
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
}

/* A tick at which nothing changed is a few bytes: ten of them are one write. */
static void flush_sometimes(void)
{
    bool is_time = sampler.tick % (sampler.ticks_a_second / 10 + 1) == 0;
    if (sampler.has_news || is_time) recording_writer_flush(&writer);
    sampler.has_news = false;
}

static void tick_wall(uint64_t now_ns, uint64_t before_ns)
{
    fetch_answers();
    flush_sometimes();
    if (!any_slot_in_use()) modules_release_retired(&sampler.modules);
    modules_refresh(&sampler.modules, &writer);
    if (threads_changed(&sampler.threads)) refresh_threads();
    if (is_time_for_names()) threads_refresh_names(&sampler.threads, &writer);
    open_tick(now_ns, before_ns);
    if (!look_at_all()) refresh_threads();
    once_a_second();
}

static void tick_cpu(uint64_t now_ns, uint64_t before_ns)
{
    modules_refresh(&sampler.modules, &writer);
    if (threads_changed(&sampler.threads)) refresh_threads();
    if (is_time_for_names()) threads_refresh_names(&sampler.threads, &writer);
    open_tick(now_ns, before_ns);
    fetch_cpu_answers();
    once_a_second();
    recording_writer_flush(&writer);
}

static void futex_wait_until(_Atomic uint32_t *word, uint32_t value, uint64_t deadline_ns)
{
    struct timespec deadline = {.tv_sec = (time_t)(deadline_ns / NANOSECONDS),
                                .tv_nsec = (long)(deadline_ns % NANOSECONDS)};
    (void)syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, value, &deadline, NULL, FUTEX_BITSET_MATCH_ANY);
}

static void futex_set(_Atomic uint32_t *word)
{
    atomic_store(word, 1);
    (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT32_MAX, NULL, NULL, 0);
}

/* False once it is to stop. */
static bool sleep_until(uint64_t deadline_ns)
{
    while (!atomic_load(&sampler.stop_wanted)) {
        if (self_monotonic_ns() >= deadline_ns) return true;
        futex_wait_until(&sampler.stop_wanted, 0, deadline_ns);
    }
    return false;
}

static uint64_t random_below(uint64_t limit)
{
    uint64_t random = sampler.start_ns;
    (void)!getrandom(&random, sizeof(random), GRND_NONBLOCK);
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
        if (sampler.options.mode == RECORDING_CPU)
            tick_cpu(now_ns, before_ns);
        else
            tick_wall(now_ns, before_ns);
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
        const struct slot *slot = sampler.threads.items[i]->slot;
        while (slot && slot_phase_of(slot) != SLOT_DONE && self_monotonic_ns() < deadline_ns) {
            struct timespec moment = {.tv_nsec = 200000};
            (void)nanosleep(&moment, NULL);
        }
    }
}

static void finish(void)
{
    if (sampler.options.mode == RECORDING_WALL) {
        wait_for_last_answers();
        fetch_answers();
    } else {
        fetch_cpu_answers();
    }
    write_counters();
    threads_fini(&sampler.threads, thread_gone, NULL);
    recording_begin(&writer, RECORDING_STOP, 0);
    recording_writer_close(&writer);
    self_close_descriptors();
}

static void *run(void *unused)
{
    (void)prctl(PR_SET_NAME, "offbeat");
    if (!signal_handler_install(slots, SLOTS_MAX)) {
        futex_set(&sampler.stopped);
        return NULL;
    }
    sampler.threads.sampler_tid = (pid_t)syscall(SYS_gettid);
    bool own_descriptors = self_own_descriptors();
    char path[4096];
    (void)snprintf(path, sizeof(path), "%s/%d-%llx.recording", sampler.directory, (int)getpid(),
                   (unsigned long long)self_monotonic_ns());
    recording_writer_init(&writer, path, own_descriptors);
    sampler.threads.directory = -1;
    sampler.threads.keeps_descriptor = own_descriptors;
    write_start();
    modules_refresh(&sampler.modules, &writer);
    refresh_threads();
    run_ticks();
    finish();
    futex_set(&sampler.stopped);
    return NULL;
}

static bool start_thread(void)
{
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) return false;
    (void)pthread_attr_setstacksize(&attributes, SAMPLER_STACK_BYTES);
    (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    sigset_t all, kept;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &kept);
    sampler.has_thread = pthread_create(&sampler.thread, &attributes, run, NULL) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &kept, NULL);
    (void)pthread_attr_destroy(&attributes);
    return sampler.has_thread;
}

bool sampler_start(const struct sampler_options *options)
{
    if (sampler.has_thread) return false;
    memset(&sampler, 0, sizeof(sampler));
    sampler.options = *options;
    (void)strncpy(sampler.directory, options->directory, sizeof(sampler.directory) - 1);
    sampler.options.directory = sampler.directory;
    sampler.period_ns = NANOSECONDS / options->frequency_hz;
    sampler.ticks_a_second = options->frequency_hz;
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    sampler.requests_in_tick_max = processors > 0 ? 4 * (uint32_t)processors : 8;
    return prepare_slots() && start_thread();
}

void sampler_stop(void)
{
    if (!sampler.has_thread) return;
    sampler.has_thread = false;
    futex_set(&sampler.stop_wanted);
    uint64_t deadline_ns = self_monotonic_ns() + STOP_WAIT_NS;
    while (!atomic_load(&sampler.stopped) && self_monotonic_ns() < deadline_ns) {
        futex_wait_until(&sampler.stopped, 0, deadline_ns);
    }
}

void sampler_before_fork(void)
{
    if (sampler.has_thread) modules_before_fork();
}

void sampler_after_fork_in_parent(void)
{
    if (sampler.has_thread) modules_after_fork();
}

void sampler_after_fork_in_child(void)
{
    if (!sampler.has_thread) return;
    modules_after_fork();
    /* The parent's threads are not here, and its requests and its file are not ours. */
    struct sampler_options options = sampler.options;
    char directory[sizeof(sampler.directory)];
    memcpy(directory, sampler.directory, sizeof(directory));
    options.directory = directory;
    pages_free(slots, SLOTS_MAX * sizeof(struct slot));
    slots = NULL;
    sampler.has_thread = false;
    if (!options.ignores_children) (void)sampler_start(&options);
}
