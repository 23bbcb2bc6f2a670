/* Replays a recording tick by tick. The times of a thread follow each other without a gap. If a tick has no record of a
 * thread, the time since the previous tick belongs to the thread's last blocked stack.  SPDX-License-Identifier: MIT */
#include "format/recording/borrowed_stacks.h"
#include "format/recording/recorded_waits.h"
#include "format/recording/recorder_metadata.h"
#include "format/recording/recording.h"

#include "base/array.h"
#include "base/cursor.h"
#include "base/hex.h"
#include "base/unsigned.h"
#include "format/common/format_ops.h"
#include "format/recording/recording_layout.h"
#include "profile/incomplete.h"
#include "profile/own_frames.h"

#include <stdio.h>

enum {
    MODULES_MAX = 1 << 20,
    THREADS_MAX = 4 << 20,
    NAMING_NS_MAX = 125000000, /* a thread that gives itself a name so soon had that name from its start */
    SPLITS_MIN = 1 << 14,
    STEPS_MIN = 1 << 24, /* over modules, in search of an address; a second is some 10^9 */
    STEPS_A_BYTE = 500,
    RUN_NS_MAX = 1000000000, /* a sample stands for a second at most, so that a profile can be cut into chunks */
};

static const char *const incomplete_names[RECORDER_OUTCOMES] = {
    "",
    INCOMPLETE_TOO_DEEP,
    INCOMPLETE_NO_TABLE,
    INCOMPLETE_BAD_MEMORY,
    INCOMPLETE_BAD_FRAME,
    INCOMPLETE_UNKNOWN_REGISTER,
};
static const char *const loss_names[RECORDING_LOSSES] = {NO_STACK_LATE,     NO_STACK_UNANSWERED, NO_STACK_IN_KERNEL,
                                                         NO_STACK_NO_TABLE, NO_STACK_UNREADABLE, NO_STACK_RUNNING,
                                                         NO_STACK_WAIT};
struct replayed_module {
    uint64_t start, end;
    struct mapping_id mapping;
    bool is_loaded;
};

/* Times in a row with one stack. */
struct run {
    struct stack_id stack;
    uint64_t start_ns;
    struct recording_time time;
    bool is_open;
};

#define NO_SAMPLE SIZE_MAX

struct replayed_thread {
    struct thread_id id;
    uint64_t since_ns;
    struct label_set_id first_labels, labels; /* none: it has had one name */
    bool is_named;
    bool is_live;
    /* The last tick with a record of it, and its time. Later ticks without a record are added up to the open one. */
    uint64_t recorded_tick, recorded_tick_ns;
    struct run run;
    double rest_of_period; /* part of a period that is not counted as a sample yet */
    uint64_t covered_until_ns;
    uint64_t routine; /* address where it started; 0: not known */
    bool has_running, has_blocked;
    struct stack_id running, blocked; /* the last stacks of each kind */
    size_t last_blocked;              /* sample of the profile, or NO_SAMPLE */
    uint64_t early_waits_ns;          /* waits for a processor after sleeps before the first stack of a sleep */
    uint64_t *addresses;              /* addresses of the last sample, innermost first */
    size_t address_count, address_capacity;
    struct stack_id *stacks; /* each address with its callers, as of STACKS_EPOCH */
    size_t stack_capacity;
    uint32_t stacks_epoch;
    unsigned stacks_outcome;
    struct recorded_wait wait; /* description of the next sample, in off-CPU mode */
};

struct replay {
    struct profile *profile;
    struct process_id process;
    struct cursor cursor;
    bool has_start;
    unsigned label_count;
    uint64_t mode, period_ns, now_ns;
    int64_t wall_offset_ns;
    uint64_t tick;                    /* the number of the open one; 0: there was none */
    uint64_t tick_span_ns;            /* ns since the tick before */
    uint64_t splits_left, steps_left; /* limits on work, by the size of the input */
    bool has_usage;
    uint64_t usage_ns; /* time of the last record */
    struct {
        struct replayed_module *items;
        size_t count, capacity;
    } modules;
    struct {
        struct replayed_thread *items;
        size_t count, capacity;
    } threads;
    struct {
        struct stack_id *items;
        size_t count, capacity;
    } slept; /* stacks where threads were seen asleep; a stack can be there more than once */
    struct {
        struct location_id ids[8192];
        uint64_t addresses[8192];
        uint32_t epoch[8192];
    } cache;
    struct recording_followers followers;
    struct {
        struct function_id *items;
        size_t count, capacity;
    } functions; /* functions of an interpreter */
    struct {
        struct location_id *items;
        size_t count, capacity;
    } places; /* lines of these functions */
    struct {
        struct recorded_other_waits *items;
        size_t count, capacity;
    } other_waits;
    struct replayed_thread short_lived; /* stands for the threads that no tick met */
    uint32_t epoch;                     /* version of the modules: counts up when one is loaded or unloaded */
    struct location start;              /* place of frames that are not known, as of START_EPOCH */
    uint32_t start_epoch;
    struct recorder_counts counts;
};

static void replay_fail(struct replay *replay)
{
    replay->cursor.failed = true;
}

static uint64_t read_number(struct replay *replay)
{
    return cursor_uleb128(&replay->cursor);
}

static int64_t unzigzag(uint64_t value)
{
    return (int64_t)(value >> 1 ^ (0 - (value & 1)));
}

static struct slice read_text(struct replay *replay)
{
    uint64_t size = read_number(replay);
    if (size > RECORDING_TEXT_MAX) replay_fail(replay);
    return cursor_take(&replay->cursor, size);
}

static struct string_id hex_string(struct profile *profile, struct slice bytes)
{
    char hex[2 * RECORDING_BUILD_ID_MAX + 1];
    (void)hex_write(hex, slice_of(bytes.data, least(bytes.size, RECORDING_BUILD_ID_MAX)));
    return profile_text(profile, hex);
}

/* --- Samples ------------------------------------------------------------------------------------------------------ */

enum wall_column { COUNT, WALL, CPU, RUNNABLE, BLOCKED, WALL_COLUMNS };

static uint64_t sum_of(struct recording_time time)
{
    return time.cpu_ns + time.runnable_ns + time.blocked_ns;
}

/* Samples are periods of time, however many stacks were taken, so that counts have the same shares as times. The rest
 * of a period is added to the thread's next run. */
static int64_t count_periods(const struct replay *replay, struct replayed_thread *thread, uint64_t ns)
{
    const double rest_max = 8; /* runs of less than a period count for one, but not at the cost of all others */
    double periods = (double)ns / (double)replay->period_ns + thread->rest_of_period;
    int64_t count = periods >= 1 ? (int64_t)(periods + 0.5) : 1;
    double rest = periods - (double)count;
    thread->rest_of_period = rest > -rest_max ? rest : -rest_max;
    return count;
}

static void end_run(struct replay *replay, struct replayed_thread *thread)
{
    const struct run *run = &thread->run;
    if (!run->is_open) return;
    struct sample sample = {
        .stack = run->stack,
        .thread = thread->id,
        .labels = thread->labels,
        .time_ns = run->start_ns + (uint64_t)replay->wall_offset_ns,
    };
    /* In CPU mode the sum is CPU time, and the other columns do not exist. */
    int64_t values[WALL_COLUMNS] = {
        [COUNT] = count_periods(replay, thread, sum_of(run->time)),
        [WALL] = (int64_t)sum_of(run->time),
        [CPU] = (int64_t)run->time.cpu_ns,
        [RUNNABLE] = (int64_t)run->time.runnable_ns,
        [BLOCKED] = (int64_t)run->time.blocked_ns,
    };
    if (thread->has_blocked && run->stack.index == thread->blocked.index)
        thread->last_blocked = replay->profile->samples.count;
    profile_add_sample(replay->profile, &sample, values);
    thread->run = (struct run){0};
}

/* Times come from a file: sums must not wrap around. */
static bool is_time_too_large(const struct replayed_thread *thread, struct recording_time time)
{
    const uint64_t limit_ns = INT64_MAX / 4;
    return time.cpu_ns > limit_ns || time.runnable_ns > limit_ns || time.blocked_ns > limit_ns ||
           thread->covered_until_ns > limit_ns * 3;
}

/* Adds TIME at STACK as the wait that a record before has described. */
static void add_wait(struct replay *replay, struct replayed_thread *thread, struct stack_id stack,
                     struct recording_time time)
{
    const struct sample sample = {.stack = stack, .thread = thread->id, .labels = thread->labels};
    if (!thread->wait.is_set) {
        replay_fail(replay);
        return;
    }
    recorded_waits_add(replay->profile, sample, &thread->wait, time, &replay->splits_left);
    thread->wait.is_set = false;
}

static void add_time(struct replay *replay, struct replayed_thread *thread, struct stack_id stack,
                     struct recording_time time)
{
    bool is_cpu = replay->mode == RECORDING_CPU;
    struct run *run = &thread->run;
    if (is_time_too_large(thread, time)) {
        replay_fail(replay);
        return;
    }
    if (replay->mode == RECORDING_OFF_CPU) {
        add_wait(replay, thread, stack, time);
        return;
    }
    if (is_cpu || stack.index != run->stack.index) end_run(replay, thread);
    /* In CPU mode, no record covers the time in which a thread does not run. CPU time begins with the open tick's span,
     * or after the part of the span that earlier records cover. */
    uint64_t span_start_ns = replay->now_ns - replay->tick_span_ns;
    if (is_cpu && thread->covered_until_ns < span_start_ns) thread->covered_until_ns = span_start_ns;
    if (!run->is_open) run->start_ns = thread->covered_until_ns;
    run->stack = stack;
    run->is_open = true;
    run->time.cpu_ns += time.cpu_ns;
    run->time.runnable_ns += time.runnable_ns;
    run->time.blocked_ns += time.blocked_ns;
    thread->covered_until_ns += sum_of(time);
    if (is_cpu || sum_of(run->time) >= RUN_NS_MAX) end_run(replay, thread);
}

static void add_blocked_ticks(struct replay *replay, struct replayed_thread *thread, uint64_t ticks, uint64_t time_ns)
{
    if (!thread->has_blocked) {
        replay->counts.unseen += ticks;
        return;
    }
    replay->counts.repeated += ticks;
    while (time_ns > RUN_NS_MAX && replay->splits_left > 0) {
        add_time(replay, thread, thread->blocked, (struct recording_time){.blocked_ns = RUN_NS_MAX});
        end_run(replay, thread);
        replay->splits_left--;
        time_ns -= RUN_NS_MAX;
    }
    add_time(replay, thread, thread->blocked, (struct recording_time){.blocked_ns = time_ns});
}

/* A thread without a record at the ticks after RECORDED_TICK, up to TICK at NOW_NS, stayed blocked. */
static void extend_blocked_time(struct replay *replay, struct replayed_thread *thread, uint64_t tick, uint64_t now_ns)
{
    if (!thread->is_live || replay->mode != RECORDING_WALL || tick <= thread->recorded_tick) return;
    uint64_t ticks = tick - thread->recorded_tick, time_ns = now_ns - thread->recorded_tick_ns;
    thread->recorded_tick = tick;
    thread->recorded_tick_ns = now_ns;
    add_blocked_ticks(replay, thread, ticks, time_ns);
}

static void extend_to_previous_tick(struct replay *replay, struct replayed_thread *thread)
{
    if (replay->tick > 0) extend_blocked_time(replay, thread, replay->tick - 1, replay->now_ns - replay->tick_span_ns);
}

/* Notes that the open tick has a record of THREAD. */
static void note_record_in_tick(struct replay *replay, struct replayed_thread *thread)
{
    thread->recorded_tick = replay->tick;
    thread->recorded_tick_ns = replay->now_ns;
}

/* A record of a thread may come after the module of its stack was unloaded: the last module at the address counts. */
static struct mapping_id mapping_of(struct replay *replay, uint64_t address)
{
    struct mapping_id gone = {0};
    if (replay->steps_left < replay->modules.count) {
        replay_fail(replay);
        return gone;
    }
    replay->steps_left -= replay->modules.count;
    for (size_t i = replay->modules.count; i > 0; i--) {
        const struct replayed_module *module = &replay->modules.items[i - 1];
        if (address < module->start || address >= module->end) continue;
        if (module->is_loaded) return module->mapping;
        if (gone.index == 0) gone = module->mapping;
    }
    return gone;
}

/* Returns true if ADDRESS stands for a place. Without one it is a number that a walk took for a return address. */
static bool is_place(const struct replay *replay, uint64_t address)
{
    return address - RECORDING_PLACES < replay->places.count;
}

static struct location_id location_of(struct replay *replay, uint64_t address)
{
    if (is_place(replay, address)) return replay->places.items[address - RECORDING_PLACES];
    size_t place = (address ^ address >> 13) % 8192;
    if (replay->cache.addresses[place] == address && replay->cache.epoch[place] == replay->epoch) {
        return replay->cache.ids[place];
    }
    struct location location = {.mapping = mapping_of(replay, address), .address = address};
    struct location_id id = profile_add_location(replay->profile, &location, NULL, 0);
    replay->cache.addresses[place] = address;
    replay->cache.epoch[place] = replay->epoch;
    replay->cache.ids[place] = id;
    return id;
}

static struct location_id named_location_at(struct replay *replay, const char *name, struct location place)
{
    struct function function = {.name = profile_text(replay->profile, name), .in_app = IN_APP_NO};
    struct line line = {.function = profile_add_function(replay->profile, &function)};
    const struct location location = {.mapping = place.mapping, .address = place.address};
    return profile_add_location(replay->profile, &location, &line, 1);
}

/* Returns the location NAME, which stands for frames that are not known, at the place of a process's start. */
static struct location_id named_location(struct replay *replay, const char *name)
{
    if (replay->start_epoch != replay->epoch) replay->start = incomplete_location(replay->profile);
    replay->start_epoch = replay->epoch;
    return named_location_at(replay, name, replay->start);
}

/* Returns the stack NAME, for time without a stack. */
static struct stack_id named_stack(struct replay *replay, const char *name)
{
    return profile_add_stack(replay->profile, (struct stack_id){0}, named_location(replay, name));
}

/* Returns the stack of the last sample. The innermost FRESH frames are new, the others have their stacks from the
 * sample before. */
static struct stack_id stack_of(struct replay *replay, struct replayed_thread *thread, size_t fresh, unsigned outcome)
{
    struct stack_id stack = {0};
    bool is_known = thread->stacks_epoch == replay->epoch && thread->stacks_outcome == outcome;
    if (!is_known) fresh = thread->address_count;
    if (fresh < thread->address_count)
        stack = thread->stacks[fresh];
    else if (outcome != 0)
        stack = profile_add_stack(replay->profile, stack, named_location(replay, incomplete_names[outcome]));
    for (size_t i = fresh; i > 0; i--) {
        bool is_exact = i == 1 || is_place(replay, thread->addresses[i - 1]); /* the others are return addresses */
        uint64_t address = thread->addresses[i - 1] - !is_exact;
        stack = profile_add_stack(replay->profile, stack, location_of(replay, address));
        thread->stacks[i - 1] = stack;
    }
    thread->stacks_epoch = replay->epoch;
    thread->stacks_outcome = outcome;
    return stack;
}

static uint64_t read_frame(struct replay *replay, uint64_t caller)
{
    uint64_t *followers = recording_followers_of(&replay->followers, caller);
    uint64_t place = read_number(replay);
    uint64_t address =
        place < RECORDING_FOLLOWERS ? followers[place] : caller + (uint64_t)unzigzag(place - RECORDING_FOLLOWERS);
    recording_follow(followers, place, address);
    return address;
}

/* Reads the new frames, and shares the others at the root with this thread's sample before. *RET_FRESH is the number of
 * innermost frames whose stack differs from the one before. */
static bool read_addresses(struct replay *replay, struct replayed_thread *thread, size_t *ret_fresh)
{
    uint64_t count = read_number(replay), shared = read_number(replay);
    if (count == 0 || count > RECORDING_FRAMES_MAX || shared > count || shared > thread->address_count) return false;
    size_t fresh = (size_t)(count - shared);
    /* Only the innermost address is no return address, and so stands for itself. */
    bool changes_kind = fresh > 0 ? shared == thread->address_count : count != thread->address_count;
    *ret_fresh = changes_kind && shared > 0 ? fresh + 1 : fresh;
    if (!array_reserve(&thread->addresses, &thread->address_capacity, (size_t)count, sizeof(uint64_t),
                       RECORDING_FRAMES_MAX) ||
        !array_reserve(&thread->stacks, &thread->stack_capacity, (size_t)count, sizeof(*thread->stacks),
                       RECORDING_FRAMES_MAX)) {
        return false;
    }
    size_t shared_at = (size_t)(thread->address_count - shared);
    memmove(thread->addresses + fresh, thread->addresses + shared_at, shared * sizeof(uint64_t));
    memmove(thread->stacks + fresh, thread->stacks + shared_at, shared * sizeof(*thread->stacks));
    for (size_t i = fresh; i > 0; i--) {
        thread->addresses[i - 1] = read_frame(replay, i < count ? thread->addresses[i] : 0);
    }
    thread->address_count = (size_t)count;
    return true;
}

static struct replayed_thread *known_thread(struct replay *replay)
{
    uint64_t index = read_number(replay);
    if (index >= replay->threads.count) {
        replay_fail(replay);
        return NULL;
    }
    struct replayed_thread *thread = &replay->threads.items[index];
    extend_to_previous_tick(replay, thread);
    return thread;
}

static uint64_t read_nanoseconds(struct replay *replay)
{
    uint64_t ns = 0;
    if (__builtin_mul_overflow(read_number(replay), (uint64_t)RECORDING_TIME_UNIT_NS, &ns)) replay_fail(replay);
    return ns;
}

static struct recording_time read_time(struct replay *replay)
{
    struct recording_time time = {.cpu_ns = read_nanoseconds(replay)};
    time.runnable_ns = read_nanoseconds(replay);
    time.blocked_ns = read_nanoseconds(replay);
    return time;
}

/* Notes that THREAD slept at STACK, before STACK becomes its last one. */
static void note_slept(struct replay *replay, const struct replayed_thread *thread, struct stack_id stack)
{
    if (thread->has_blocked && thread->blocked.index == stack.index) return;
    struct stack_id *added = ARRAY_ADD(&replay->slept, SIZE_MAX);
    if (added)
        *added = stack;
    else
        replay->profile->failed = STATUS_NO_MEMORY;
}

static void replay_sample(struct replay *replay)
{
    struct replayed_thread *thread = known_thread(replay);
    struct recording_time time = read_time(replay);
    uint64_t flags = read_number(replay);
    unsigned outcome = flags & RECORDING_OUTCOME_MASK;
    size_t fresh = 0;
    if (!thread || outcome >= RECORDER_OUTCOMES || !read_addresses(replay, thread, &fresh)) {
        replay_fail(replay);
        return;
    }
    replay->counts.outcomes[outcome]++;
    replay->counts.taken++;
    struct stack_id stack = stack_of(replay, thread, fresh, outcome);
    if (flags & RECORDING_BLOCKED) {
        note_slept(replay, thread, stack);
        replay->counts.woken_waits_ns += time.runnable_ns;
        thread->has_blocked = true;
        thread->blocked = stack;
        time.runnable_ns += thread->early_waits_ns;
        thread->early_waits_ns = 0;
    } else {
        thread->has_running = true;
        thread->running = stack;
    }
    note_record_in_tick(replay, thread);
    if (sum_of(time) > 0) add_time(replay, thread, stack, time);
}

/* Reads what the next sample of a thread stands for. */
static void replay_wait(struct replay *replay)
{
    struct replayed_thread *thread = known_thread(replay);
    uint64_t reason = read_number(replay), count = read_number(replay), since_ns = read_number(replay);
    struct slice waker = read_text(replay);
    if (!thread || reason >= RECORDING_WAITS || count > UINT32_MAX || replay->mode != RECORDING_OFF_CPU) {
        replay_fail(replay);
        return;
    }
    uint64_t start_ns = replay->now_ns + (uint64_t)unzigzag(since_ns) + (uint64_t)replay->wall_offset_ns;
    thread->wait = (struct recorded_wait){.is_set = true,
                                          .reason = reason,
                                          .count = count,
                                          .start_ns = start_ns,
                                          .waker = profile_string(replay->profile, waker)};
}

static void replay_other_waits(struct replay *replay)
{
    const uint64_t limit_ns = INT64_MAX / 4;
    const struct replayed_thread *thread = known_thread(replay);
    struct recorded_other_waits others = {.short_count = read_number(replay)};
    others.short_ns = read_nanoseconds(replay);
    others.left_out_count = read_number(replay);
    others.left_out_ns = read_nanoseconds(replay);
    bool is_read = thread && replay->mode == RECORDING_OFF_CPU && others.short_ns <= limit_ns &&
                   others.left_out_ns <= limit_ns && others.short_count <= limit_ns &&
                   others.left_out_count <= limit_ns;
    if (is_read) others.thread = thread->id;
    if (!is_read || !ARRAY_PUSH(&replay->other_waits, THREADS_MAX, others)) replay_fail(replay);
    replay->counts.short_waits += others.short_count;
    replay->counts.waits_left_out += others.left_out_count;
}

static void replay_waiting(struct replay *replay)
{
    struct replayed_thread *thread = known_thread(replay);
    if (thread) note_record_in_tick(replay, thread);
}

static void replay_lost(struct replay *replay)
{
    struct replayed_thread *thread = known_thread(replay);
    uint64_t cause = read_number(replay);
    struct recording_time time = read_time(replay);
    if (!thread || cause >= RECORDING_LOSSES) {
        replay_fail(replay);
        return;
    }
    bool is_start = thread->wait.is_set && thread->wait.reason == RECORDING_WAIT_STARTING;
    add_time(replay, thread, named_stack(replay, is_start ? STARTING : loss_names[cause]), time);
    if (!is_start) replay->counts.lost_ns[cause] += sum_of(time);
}

/* Returns the last stack of THREAD that TIME belongs to. ROUTINE is 0 if it is not known. */
static struct stack_id stack_of_share(struct replay *replay, const struct replayed_thread *thread, uint64_t share,
                                      uint64_t routine, struct recording_time time)
{
    if (share == RECORDING_OF_START) {
        replay->counts.started_cpu_ns += time.cpu_ns;
        return named_stack(replay, STARTING);
    }
    if (share == RECORDING_OF_STOPPED) return named_stack(replay, STOPPED);
    bool is_blocked = share == RECORDING_OF_BLOCKED;
    if (is_blocked ? thread->has_blocked : thread->has_running) return is_blocked ? thread->blocked : thread->running;
    replay->counts.too_short_ns += sum_of(time);
    if (routine == 0) return named_stack(replay, NO_STACK_TOO_SHORT);
    struct location_id start = location_of(replay, routine);
    struct stack_id stack = profile_add_stack(replay->profile, (struct stack_id){0}, start);
    struct location place = *profile_location(replay->profile, start);
    return profile_add_stack(replay->profile, stack, named_location_at(replay, NO_STACK_TOO_SHORT, place));
}

static void add_early_wait(struct replay *replay, struct replayed_thread *thread, struct recording_time time)
{
    if (!is_time_too_large(thread, time)) time.runnable_ns += thread->early_waits_ns;
    if (is_time_too_large(thread, time)) replay_fail(replay);
    thread->early_waits_ns = time.runnable_ns;
}

/* Adds the waits of a thread whose sleeps were too short to be seen, as a separate sample: borrow_stacks recognizes it
 * because it has no CPU time. */
static void write_early_waits(struct replay *replay, struct replayed_thread *thread)
{
    struct recording_time time = {.runnable_ns = thread->early_waits_ns};
    if (time.runnable_ns == 0) return;
    end_run(replay, thread);
    add_time(replay, thread, stack_of_share(replay, thread, RECORDING_OF_BLOCKED, thread->routine, time), time);
    end_run(replay, thread);
}

static void replay_more(struct replay *replay)
{
    struct replayed_thread *thread = known_thread(replay);
    uint64_t share = read_number(replay);
    struct recording_time time = read_time(replay);
    if (!thread) return;
    if (share == RECORDING_OF_BLOCKED) replay->counts.woken_waits_ns += time.runnable_ns;
    bool is_early_wait = share == RECORDING_OF_BLOCKED && !thread->has_blocked && time.cpu_ns + time.blocked_ns == 0;
    if (is_early_wait)
        add_early_wait(replay, thread, time);
    else
        add_time(replay, thread, stack_of_share(replay, thread, share, thread->routine, time), time);
}

/* Moves blocked time to runnable time, in the open run and the sample before it. Earlier blocked time stays. */
static void replay_woken(struct replay *replay)
{
    struct replayed_thread *thread = known_thread(replay);
    uint64_t wait_ns = read_number(replay);
    if (!thread || !thread->has_blocked || replay->mode != RECORDING_WALL) return;
    replay->counts.woken_waits_ns += wait_ns;
    if (thread->run.is_open && thread->run.stack.index == thread->blocked.index) {
        uint64_t moved_ns = least(wait_ns, thread->run.time.blocked_ns);
        thread->run.time.blocked_ns -= moved_ns;
        thread->run.time.runnable_ns += moved_ns;
        wait_ns -= moved_ns;
    }
    if (wait_ns == 0 || thread->last_blocked >= replay->profile->samples.count) return;
    int64_t *values = &replay->profile->samples.values[thread->last_blocked * WALL_COLUMNS];
    int64_t moved_ns = (int64_t)least(wait_ns, (uint64_t)values[BLOCKED]);
    values[BLOCKED] -= moved_ns;
    values[RUNNABLE] += moved_ns;
}

/* Adds the time of short threads, which lived at an unknown time before now. */
static void add_short_time(struct replay *replay, struct stack_id stack, struct recording_time time)
{
    struct replayed_thread *thread = &replay->short_lived;
    if (thread->id.index == 0) {
        struct profile *profile = replay->profile;
        struct thread short_lived = {
            .process = replay->process, .id = profile_text(profile, "0"), .name = profile_text(profile, SHORT_THREADS)};
        *thread = (struct replayed_thread){.id = profile_add_thread(profile, &short_lived), .last_blocked = NO_SAMPLE};
    }
    thread->covered_until_ns = replay->now_ns;
    add_time(replay, thread, stack, time);
    end_run(replay, thread);
}

static void replay_short(struct replay *replay)
{
    uint64_t routine = read_number(replay), ends = read_number(replay), number_of_thread = read_number(replay);
    uint64_t share = read_number(replay);
    struct recording_time time = read_time(replay);
    if (number_of_thread > replay->threads.count || ends > UINT32_MAX) {
        replay_fail(replay);
        return;
    }
    replay->counts.short_threads += ends;
    const struct replayed_thread *met =
        number_of_thread ? &replay->threads.items[number_of_thread - 1] : &(struct replayed_thread){0};
    add_short_time(replay, stack_of_share(replay, met, share, routine, time), time);
}

static void replay_routine(struct replay *replay)
{
    struct replayed_thread *thread = known_thread(replay);
    uint64_t routine = read_number(replay);
    if (thread) thread->routine = routine;
}

/* --- What is there ------------------------------------------------------------------------------------------------ */

/* Adds ID as a text, because numbers are summed when profiles are merged. */
static void add_id(struct profile *profile, const char *key, uint64_t id)
{
    char digits[24];
    (void)snprintf(digits, sizeof(digits), "%llu", (unsigned long long)id);
    profile_add_metadata_text(profile, key, digits);
}

static void declare_columns(const struct replay *replay)
{
    static const char *const columns[WALL_COLUMNS] = {"samples", "wall", "cpu", "runnable", "blocked"};
    struct profile *profile = replay->profile;
    if (replay->mode == RECORDING_OFF_CPU) {
        recorded_waits_declare(profile);
        return;
    }
    bool is_cpu = replay->mode == RECORDING_CPU;
    profile_add_value_type(profile, "samples", "count");
    if (is_cpu) profile_add_value_type(profile, "cpu", "nanoseconds");
    for (size_t i = WALL; i < WALL_COLUMNS && !is_cpu; i++) profile_add_value_type(profile, columns[i], "nanoseconds");
}

static void replay_start(struct replay *replay)
{
    struct profile *profile = replay->profile;
    uint64_t pid = read_number(replay), parent = read_number(replay);
    replay->mode = read_number(replay);
    replay->period_ns = read_number(replay);
    replay->wall_offset_ns = unzigzag(read_number(replay));
    replay->now_ns = read_number(replay);
    struct slice profiler_id = cursor_take(&replay->cursor, RECORDING_PROFILER_ID_SIZE);
    struct slice name = read_text(replay), path = read_text(replay);
    if (replay->cursor.failed || profiler_id.size == 0 || replay->has_start || replay->mode > RECORDING_OFF_CPU ||
        replay->period_ns == 0) {
        replay_fail(replay);
        return;
    }
    replay->has_start = true;
    declare_columns(replay);
    profile->period_type = profile->value_types[1];
    profile->default_value_type = profile->value_types[1].type;
    profile->period = (int64_t)replay->period_ns;
    profile->has_times = true;
    profile->time_ns = profile_start_at(replay->now_ns + (uint64_t)replay->wall_offset_ns);
    profile->platform = profile_text(profile, "native");
    /* RFC 4122: a random uuid says so in two places. */
    uint8_t uuid[RECORDING_PROFILER_ID_SIZE];
    memcpy(uuid, profiler_id.data, sizeof(uuid));
    uuid[6] = (uint8_t)((uuid[6] & 0x0f) | 0x40);
    uuid[8] = (uint8_t)((uuid[8] & 0x3f) | 0x80);
    profile->profiler_id = hex_string(profile, slice_of(uuid, sizeof(uuid)));
    profile_add_metadata_text(profile, "process", profile_c_string(profile, profile_string(profile, name)));
    profile_add_metadata_text(profile, "executable", profile_c_string(profile, profile_string(profile, path)));
    add_id(profile, "pid", pid);
    if (pid > 0 && pid <= INT64_MAX)
        replay->process =
            profile_add_process(profile, &(struct process){.pid = (int64_t)pid,
                                                           .parent_pid = parent <= INT64_MAX ? (int64_t)parent : 0,
                                                           .name = profile_string(profile, name),
                                                           .profiler_id = profile->profiler_id});
    add_id(profile, "parent_pid", parent);
}

static void replay_module(struct replay *replay)
{
    struct profile *profile = replay->profile;
    uint64_t index = read_number(replay);
    struct mapping mapping = {0};
    mapping.start = read_number(replay);
    mapping.limit = read_number(replay);
    mapping.file_offset = read_number(replay);
    mapping.image_start = read_number(replay);
    mapping.image_size = read_number(replay);
    mapping.image_vmaddr = read_number(replay);
    struct slice build_id = read_text(replay), path = read_text(replay);
    if (replay->cursor.failed || index != replay->modules.count || !ARRAY_RESERVE(&replay->modules, 1, MODULES_MAX)) {
        replay_fail(replay);
        return;
    }
    mapping.build_id = hex_string(profile, build_id);
    mapping.file_name = profile_string(profile, path);
    replay->modules.items[replay->modules.count++] = (struct replayed_module){
        .start = mapping.start,
        .end = mapping.limit,
        .mapping = profile_add_mapping(profile, &mapping),
        .is_loaded = true,
    };
    replay->epoch++;
}

static void replay_module_gone(struct replay *replay)
{
    uint64_t index = read_number(replay);
    if (index >= replay->modules.count)
        replay_fail(replay);
    else
        replay->modules.items[index].is_loaded = false;
    replay->epoch++;
}

static struct label_set_id name_labels(struct profile *profile, struct string_id name)
{
    struct label label = {.key = profile_text(profile, PROFILE_THREAD_NAME_LABEL), .text = name};
    return profile_add_labels(profile, &label, 1);
}

/* A thread of the profile has its last name. Where a thread has had several, each sample has that of its time as a
 * label. The first name of many threads is what they inherited, until they name themselves. */
static void rename_thread(struct replay *replay, struct replayed_thread *thread, struct string_id name)
{
    struct string_id *present = &replay->profile->threads.items[thread->id.index].name;
    bool is_first = !thread->is_named && replay->now_ns < thread->since_ns + NAMING_NS_MAX;
    if (present->index == name.index) return;
    if (!is_first) {
        end_run(replay, thread);
        if (thread->first_labels.index == 0) thread->first_labels = name_labels(replay->profile, *present);
        thread->labels = name_labels(replay->profile, name);
    }
    thread->is_named = true;
    *present = name;
}

/* Labels the samples before the first change of a thread's name, in one pass for all threads. */
static void label_first_samples(struct replay *replay)
{
    struct profile *profile = replay->profile;
    struct label_set_id *labels = calloc(profile->threads.count, sizeof(*labels)); /* labels by thread */
    if (!labels) {
        profile->failed = STATUS_NO_MEMORY;
        return;
    }
    for (size_t i = 0; i < replay->threads.count; i++)
        labels[replay->threads.items[i].id.index] = replay->threads.items[i].first_labels;
    for (size_t i = 0; i < profile->samples.count; i++) {
        struct label_set_id first = labels[profile->samples.thread[i].index];
        if (profile->samples.labels[i].index == 0) profile->samples.labels[i] = first;
    }
    free(labels);
}

static void replay_thread(struct replay *replay)
{
    struct profile *profile = replay->profile;
    uint64_t index = read_number(replay), tid = read_number(replay);
    struct slice name = read_text(replay);
    char id[24];
    (void)snprintf(id, sizeof(id), "%llu", (unsigned long long)tid);
    if (replay->cursor.failed || index > replay->threads.count) {
        replay_fail(replay);
        return;
    }
    struct thread thread = {
        .process = replay->process, .id = profile_text(profile, id), .name = profile_string(profile, name)};
    if (index < replay->threads.count) {
        rename_thread(replay, &replay->threads.items[index], thread.name);
        return;
    }
    struct replayed_thread *added = ARRAY_ADD(&replay->threads, THREADS_MAX);
    if (!added) {
        replay_fail(replay);
        return;
    }
    *added = (struct replayed_thread){.id = profile_add_thread(profile, &thread),
                                      .since_ns = replay->now_ns,
                                      .is_live = true,
                                      .recorded_tick = replay->tick, /* it was not there yet in the open tick */
                                      .recorded_tick_ns = replay->now_ns,
                                      .covered_until_ns = replay->now_ns,
                                      .last_blocked = NO_SAMPLE};
}

static void replay_thread_gone(struct replay *replay)
{
    struct replayed_thread *thread = known_thread(replay);
    if (!thread) return;
    extend_blocked_time(replay, thread, replay->tick, replay->now_ns);
    end_run(replay, thread);
    thread->is_live = false;
}

static void replay_counters(struct replay *replay)
{
    uint64_t count = read_number(replay);
    for (uint64_t i = 0; i < count && !replay->cursor.failed; i++) {
        uint64_t value = read_number(replay);
        if (i < RECORDING_COUNTER_COUNT) replay->counts.counters[i] = value;
    }
}

/* The share of a processor since the last time, and the memory. */
static void replay_usage(struct replay *replay)
{
    struct profile *profile = replay->profile;
    uint64_t cpu_ns = read_number(replay), bytes = read_number(replay), time_ns = replay->now_ns;
    uint64_t utc_ns = time_ns + (uint64_t)replay->wall_offset_ns;
    profile_measure(profile, profile_measurement(profile, "memory_footprint", "byte"), utc_ns, (double)bytes);
    if (replay->has_usage && time_ns > replay->usage_ns && cpu_ns >= replay->counts.usage_cpu_ns) {
        double percent = 100.0 * (double)(cpu_ns - replay->counts.usage_cpu_ns) / (double)(time_ns - replay->usage_ns);
        profile_measure(profile, profile_measurement(profile, "cpu_usage", "percent"), utc_ns, percent);
    }
    if (!replay->has_usage) replay->counts.first_usage_cpu_ns = cpu_ns;
    replay->has_usage = true;
    replay->usage_ns = time_ns;
    replay->counts.usage_cpu_ns = cpu_ns;
}

static void replay_tick(struct replay *replay)
{
    replay->tick++;
    replay->tick_span_ns = read_number(replay);
    if (__builtin_add_overflow(replay->now_ns, replay->tick_span_ns, &replay->now_ns)) replay_fail(replay);
}

/* Returns true if FILE is part of the interpreter or of what was installed beside it, not of the program. */
static bool is_of_library(struct slice file)
{
    static const char *const parts[] = {"/site-packages/", "/dist-packages/", "/lib/python3", "<frozen ",
                                        "/lib/ruby/",      "/rubygems-",      "<internal:"};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (memmem(file.data, file.size, parts[i], strlen(parts[i]))) return true;
    }
    return file.size == 0;
}

static void replay_interpreter(struct replay *replay)
{
    uint64_t state = read_number(replay);
    struct slice name = read_text(replay);
    if (replay->cursor.failed || state >= RECORDING_INTERPRETERS) {
        replay_fail(replay);
        return;
    }
    replay->counts.interpreter = profile_string(replay->profile, name);
    replay->counts.is_unknown_interpreter = state == RECORDING_INTERPRETER_UNKNOWN;
}

static void replay_function(struct replay *replay)
{
    struct profile *profile = replay->profile;
    uint64_t number = read_number(replay), first_line = read_number(replay);
    struct slice name = read_text(replay), file = read_text(replay);
    if (replay->cursor.failed || number != replay->functions.count || first_line > INT32_MAX ||
        !ARRAY_RESERVE(&replay->functions, 1, RECORDING_PLACES_MAX)) {
        replay_fail(replay);
        return;
    }
    struct function function = {.name = profile_string(profile, name),
                                .file_name = profile_string(profile, file),
                                .in_app = is_of_library(file) ? IN_APP_NO : IN_APP_YES,
                                .start_line = (int64_t)first_line};
    replay->functions.items[replay->functions.count++] = profile_add_function(profile, &function);
}

static void replay_line(struct replay *replay)
{
    uint64_t number = read_number(replay), function = read_number(replay), at = read_number(replay);
    if (replay->cursor.failed || number != replay->places.count || function >= replay->functions.count ||
        at > INT32_MAX || !ARRAY_RESERVE(&replay->places, 1, RECORDING_PLACES_MAX)) {
        replay_fail(replay);
        return;
    }
    struct line line = {.function = replay->functions.items[function], .line = (int64_t)at};
    const struct location location = {.kind = FRAME_INTERPRETED};
    replay->places.items[replay->places.count++] = profile_add_location(replay->profile, &location, &line, 1);
}

/* A writer has a few; the keys are names of the offbeat metadata. */
static void replay_label(struct replay *replay)
{
    enum { LABELS_MAX = 64 };
    struct profile *profile = replay->profile;
    struct slice key = read_text(replay), value = read_text(replay);
    if (replay->cursor.failed || key.size == 0 || replay->label_count++ == LABELS_MAX) {
        replay_fail(replay);
        return;
    }
    profile_add_metadata_text(profile, profile_c_string(profile, profile_string(profile, key)),
                              profile_c_string(profile, profile_string(profile, value)));
}

static void replay_stop(struct replay *replay)
{
    replay->counts.is_stopped = true;
}

static void replay_record(struct replay *replay)
{
    static void (*const kinds[])(struct replay *) = {
        [RECORDING_START] = replay_start,
        [RECORDING_MODULE] = replay_module,
        [RECORDING_MODULE_GONE] = replay_module_gone,
        [RECORDING_THREAD] = replay_thread,
        [RECORDING_THREAD_GONE] = replay_thread_gone,
        [RECORDING_TICK] = replay_tick,
        [RECORDING_SAMPLE] = replay_sample,
        [RECORDING_WAITING] = replay_waiting,
        [RECORDING_LOST] = replay_lost,
        [RECORDING_MORE] = replay_more,
        [RECORDING_WOKEN] = replay_woken,
        [RECORDING_COUNTERS] = replay_counters,
        [RECORDING_STOP] = replay_stop,
        [RECORDING_USAGE] = replay_usage,
        [RECORDING_SHORT] = replay_short,
        [RECORDING_ROUTINE] = replay_routine,
        [RECORDING_INTERPRETER] = replay_interpreter,
        [RECORDING_FUNCTION] = replay_function,
        [RECORDING_LINE] = replay_line,
        [RECORDING_LABEL] = replay_label,
        [RECORDING_WAIT] = replay_wait,
        [RECORDING_OTHER_WAITS] = replay_other_waits,
    };
    uint8_t kind = cursor_u8(&replay->cursor);
    bool is_known = kind < sizeof(kinds) / sizeof(kinds[0]) && kinds[kind];
    if (is_known && (replay->has_start || kind == RECORDING_START))
        kinds[kind](replay);
    else
        replay_fail(replay);
}

/* --- All of it ---------------------------------------------------------------------------------------------------- */

/* Finds the threads that may borrow stacks. If the sampler came to most ticks too late, these are all. Otherwise, those
 * that ended since ticks met the last one of their routine have none, and those that were met and ended before they
 * gave one. */
static bool find_borrowers(const struct replay *replay, bool *ret_borrows)
{
    enum { PERIODS_OF_SHORT = 2 };
    const struct profile *profile = replay->profile;
    bool is_starved = replay->counts.counters[RECORDING_TICKS_MISSED] > replay->counts.counters[RECORDING_TICKS];
    ret_borrows[replay->short_lived.id.index] = true;
    for (size_t i = 0; is_starved && i < profile->threads.count; i++) ret_borrows[i] = true;
    return is_starved || find_short_borrowers(profile, PERIODS_OF_SHORT * replay->period_ns, ret_borrows);
}

static void borrow_for_short_threads(struct replay *replay, size_t samples_max)
{
    struct profile *profile = replay->profile;
    bool has_other_columns = replay->mode == RECORDING_OFF_CPU;
    if (replay->counts.too_short_ns == 0 || has_other_columns) return;
    struct location_id *routines = calloc(profile->threads.count, sizeof(*routines)); /* routines by thread */
    bool *borrows = calloc(profile->threads.count, sizeof(*borrows));
    bool *slept = calloc((size_t)profile_stack_limit(profile) + 1, sizeof(*slept));
    if (routines && borrows && slept && find_borrowers(replay, borrows)) {
        for (size_t i = 0; i < replay->slept.count; i++) slept[replay->slept.items[i].index] = true;
        for (size_t i = 0; i < replay->threads.count; i++) {
            const struct replayed_thread *thread = &replay->threads.items[i];
            if (thread->routine) routines[thread->id.index] = location_of(replay, thread->routine);
        }
        replay->counts.borrowed_ns = borrow_stacks(profile, routines, borrows, slept, samples_max);
        replay->counts.too_short_ns = difference(replay->counts.too_short_ns, replay->counts.borrowed_ns);
    } else {
        profile->failed = STATUS_NO_MEMORY;
    }
    free(slept);
    free(borrows);
    free(routines);
}

static void replay_end(struct replay *replay, size_t samples_max)
{
    for (size_t i = 0; i < replay->threads.count; i++) {
        extend_blocked_time(replay, &replay->threads.items[i], replay->tick, replay->now_ns);
        end_run(replay, &replay->threads.items[i]);
        write_early_waits(replay, &replay->threads.items[i]);
    }
    if (replay->mode == RECORDING_OFF_CPU)
        recorded_waits_add_others(replay->profile, replay->other_waits.items, replay->other_waits.count,
                                  replay->now_ns + (uint64_t)replay->wall_offset_ns, named_stack(replay, SHORT_WAITS),
                                  named_stack(replay, NO_STACK_WAIT));
    label_first_samples(replay);
    borrow_for_short_threads(replay, samples_max);
    struct profile *profile = replay->profile;
    profile->duration_ns = replay->now_ns + (uint64_t)replay->wall_offset_ns - profile_start_ns(profile);
    recorder_metadata_add(profile, &replay->counts, replay->mode, replay->period_ns);
}

/* A batch that is cut off at the end of the file was being written when the program died. */
static enum status replay_batches(struct replay *replay, struct slice bytes, struct error *error)
{
    struct cursor file = cursor_of(bytes);
    cursor_skip(&file, RECORDING_MAGIC_SIZE);
    while (cursor_left(&file) >= 4) {
        uint32_t size = cursor_u32(&file);
        uint64_t offset = cursor_offset(&file);
        if (size > RECORDING_BATCH_MAX) return error_set(error, STATUS_MALFORMED, offset, "a batch of %u bytes", size);
        replay->cursor = cursor_of(cursor_take(&file, size));
        if (file.failed) break;
        while (!cursor_at_end(&replay->cursor)) replay_record(replay);
        if (replay->cursor.failed) {
            offset += cursor_offset(&replay->cursor);
            return error_set(error, STATUS_MALFORMED, offset, "a broken record in the recording");
        }
    }
    if (!replay->has_start)
        return error_set(error, STATUS_MALFORMED, bytes.size, "the recording ends before it begins");
    return STATUS_OK;
}

bool recording_detect(struct slice bytes)
{
    return bytes.size >= RECORDING_MAGIC_SIZE && memcmp(bytes.data, RECORDING_MAGIC, RECORDING_MAGIC_SIZE) == 0;
}

int recording_other_version(struct slice bytes)
{
    size_t version = RECORDING_MAGIC_SIZE - 1; /* place of the version, the last byte */
    bool is_recording = bytes.size >= RECORDING_MAGIC_SIZE && memcmp(bytes.data, RECORDING_MAGIC, version) == 0;
    /* A text that begins with the name has a letter or a blank there. */
    if (!is_recording || recording_detect(bytes) || bytes.data[version] >= ' ') return 0;
    return bytes.data[version];
}

int recording_version(void)
{
    return RECORDING_MAGIC[RECORDING_MAGIC_SIZE - 1];
}

enum status recording_decode(struct slice bytes, struct profile *profile, struct error *error)
{
    if (!recording_detect(bytes)) return error_set(error, STATUS_NOT_THIS_FORMAT, 0, "not a recording");
    struct replay *replay = calloc(1, sizeof(*replay));
    if (!replay) return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory");
    replay->profile = profile;
    replay->epoch = 1;
    replay->splits_left = SPLITS_MIN + bytes.size / 16;
    replay->steps_left = STEPS_MIN + bytes.size * STEPS_A_BYTE;
    enum status status = replay_batches(replay, bytes, error);
    if (status == STATUS_OK) replay_end(replay, SPLITS_MIN + bytes.size);
    for (size_t i = 0; i < replay->threads.count; i++) {
        free(replay->threads.items[i].addresses);
        free(replay->threads.items[i].stacks);
    }
    free(replay->threads.items);
    free(replay->functions.items);
    free(replay->places.items);
    free(replay->slept.items);
    free(replay->other_waits.items);
    free(replay->modules.items);
    free(replay);
    if (status == STATUS_OK) profile_hide_own_frames(profile);
    if (status == STATUS_OK) status = profile_failed(profile, error);
    if (status == STATUS_OK) status = profile_sort_by_time(profile, error);
    return status;
}

const struct format format_recording = {
    .name = "recording",
    .suffixes = {".recording"},
    .detect = recording_detect,
    .decode = recording_decode,
    .samples_a_byte = 16, /* a recording says only that a thread kept its stack */
};
