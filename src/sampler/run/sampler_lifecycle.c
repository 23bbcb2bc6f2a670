/* Starts and stops the sampler thread, and has it step aside.
 *
 * Calls that need a process of one thread, or that change what a new thread inherits, are made while the sampler thread
 * is away: it ends, and a new one continues with the same recording. The new thread is a clone of the calling thread,
 * so it has exactly the namespaces, the root and the rights of that thread. Several threads of the program can make
 * such calls at once: the last one to finish brings the sampler back. Signals are blocked while LOCK is held, because
 * setuid and its relatives may be called in signal handlers. SPDX-License-Identifier: MIT */
#include "sampler/run/sampler_lifecycle.h"

#include "base/futex.h"
#include "sampler/kernel/raw_thread.h"
#include "sampler/kernel/stack_reader.h"
#include "sampler/source/signal_gate.h"
#include "sampler/source/signal_stacks.h"
#include "sampler/source/sample_requests.h"
#include "sampler/run/threads.h"

#include <signal.h>
#include <string.h>

enum {
    STOP_WAIT_NS = 500000000,
    STARVED_STOP_WAIT_NS = 2000000000,
    ASIDE_WAIT_NS = 500000000,
    READY_WAIT_NS = 50000000,
    FOLLOW_WAIT_NS = 100000000,
    FLUSH_WAIT_NS = 100000000,
};

enum state { STATE_ABSENT, STATE_PRESENT, STATE_ASIDE, STATE_ENDED };

struct lifecycle lifecycle;

static struct {
    _Atomic uint32_t lock;       /* futex: 0 free, 1 held, 2 held and waited for */
    _Atomic uint32_t state;      /* enum state */
    _Atomic pid_t pid;           /* process of the sampler thread: a child of vfork shares this memory */
    uint32_t aside_count;        /* threads of the program for which the sampler is away */
    uint64_t kept_mask;          /* signal mask of the thread that holds LOCK */
    _Atomic uint64_t flushed_ns; /* last COMMAND_FLUSH, CLOCK_MONOTONIC */
    bool was_confined;           /* true if a seccomp filter has ended the thread; forked children are under it, too */
} life;

/* The last fork of this thread, CLOCK_MONOTONIC. */
static __thread uint64_t fork_ns __attribute__((tls_model("initial-exec")));

/* --- Futexes ------------------------------------------------------------------------------------------------------ */

void futex_set(_Atomic uint32_t *word)
{
    atomic_store(word, 1);
    futex_wake(word);
}

static void command(enum lifecycle_command bit)
{
    atomic_fetch_or(&lifecycle.commands, bit);
    futex_wake(&lifecycle.commands);
}

/* Waits until WORD is set. Returns false after LIMIT_NS. */
static bool await(_Atomic uint32_t *word, uint64_t limit_ns)
{
    uint64_t deadline_ns = monotonic_ns() + limit_ns;
    while (!atomic_load(word)) {
        if (monotonic_ns() >= deadline_ns) return false;
        futex_wait(word, 0, deadline_ns);
    }
    return true;
}

static void lock_lifecycle(void)
{
    enum { WAIT_NS = 100000000 };
    uint64_t all = UINT64_MAX, mask = 0;
    (void)kernel_call4(SYS_rt_sigprocmask, SIG_SETMASK, kernel_address(&all), kernel_address(&mask), sizeof(mask));
    uint32_t before = 0;
    if (!atomic_compare_exchange_strong(&life.lock, &before, 1)) {
        while (atomic_exchange(&life.lock, 2) != 0) futex_wait(&life.lock, 2, monotonic_ns() + WAIT_NS);
    }
    life.kept_mask = mask;
}

static void unlock_lifecycle(void)
{
    uint64_t mask = life.kept_mask;
    if (atomic_exchange(&life.lock, 0) == 2) futex_wake(&life.lock);
    (void)kernel_call4(SYS_rt_sigprocmask, SIG_SETMASK, kernel_address(&mask), 0, sizeof(mask));
}

/* --- Start and stop ----------------------------------------------------------------------------------------------- */

static void begin_commands(void)
{
    atomic_store(&lifecycle.commands, 0);
    atomic_store(&lifecycle.gone, 0);
    atomic_store(&lifecycle.ready, 0);
    atomic_store(&lifecycle.is_too_late, 0);
    atomic_store(&lifecycle.sampler_starved, 0);
    atomic_store(&lifecycle.stop_ns, 0);
    atomic_store(&lifecycle.followed, atomic_load(&lifecycle.follow_wanted));
    atomic_store(&lifecycle.flushed, atomic_load(&lifecycle.flush_wanted));
}

bool sampler_start(const struct sampler_options *options)
{
    static bool was_started;
    if (atomic_load(&life.state) != STATE_ABSENT || (was_started && !atomic_load(&lifecycle.gone))) return false;
    if (!sampler_prepare(options)) return false;
    begin_commands();
    atomic_store(&life.pid, kernel_process_id());
    life.aside_count = 0;
    was_started = raw_thread_start(sampler_run, NULL);
    if (was_started)
        atomic_store(&life.state, STATE_PRESENT);
    else
        atomic_store(&lifecycle.gone, 1);
    return was_started;
}

void sampler_stop(void)
{
    if (atomic_load(&life.state) == STATE_ABSENT) return;
    if (atomic_load(&life.state) == STATE_ENDED) {
        atomic_store(&life.state, STATE_ABSENT);
        return;
    }
    lock_lifecycle();
    bool is_aside = atomic_load(&life.state) == STATE_ASIDE && atomic_load(&lifecycle.gone);
    if (is_aside && !sampler_has_finished()) sampler_finish_in_its_place(-1);
    atomic_store(&life.state, STATE_ABSENT);
    atomic_store(&lifecycle.stop_ns, monotonic_ns());
    if (!is_aside) command(COMMAND_STOP);
    unlock_lifecycle();
    (void)await(&lifecycle.gone, atomic_load(&lifecycle.sampler_starved) ? STARVED_STOP_WAIT_NS : STOP_WAIT_NS);
}

void sampler_before_fork(void)
{
    fork_ns = monotonic_ns();
}

void sampler_after_fork_in_child(void)
{
    uint32_t state = atomic_load(&life.state);
    sampler_forget_finished();
    sampler_forget_left_out();
    signal_stacks_after_fork();
    signal_gate_after_fork();
    atomic_store(&life.lock, 0);
    atomic_store(&life.state, STATE_ABSENT);
    atomic_store(&lifecycle.gone, 1);
    /* The parent's requests are for its threads. It may have been about to start its sampler. */
    sample_requests_forget();
    raw_thread_forget();
    if (state == STATE_ABSENT) return;
    struct sampler_options options = *sampler_present_options();
    memset(options.profiler_id, 0, sizeof(options.profiler_id));
    options.forked_ns = fork_ns;
    if (fork_ns >= sampler_end_ns()) return;
    if (options.duration_ns) options.duration_ns = sampler_end_ns() - fork_ns;
    if (!options.ignores_children && !life.was_confined && !sampler_ended_by_filter()) (void)sampler_start(&options);
}

/* --- Stepping aside ----------------------------------------------------------------------------------------------- */

bool sampler_is_present(void)
{
    uint32_t state = atomic_load(&life.state);
    return (state == STATE_PRESENT || state == STATE_ASIDE) && atomic_load(&life.pid) == kernel_process_id();
}

/* Opens the recording before a call that can make the path mean another file, or take away the right to open it. */
static struct handed_file open_recording(void)
{
    struct stat status = {0};
    struct handed_file file = {.descriptor = kernel_open(sampler_recording_path(), O_WRONLY | O_APPEND, 0)};
    if (file.descriptor < 0) return (struct handed_file){.descriptor = -1};
    if (kernel_call3(SYS_fstat, file.descriptor, kernel_address(&status), 0) == 0) {
        file.device = status.st_dev;
        file.inode = status.st_ino;
    }
    return file;
}

static void close_recording(struct handed_file file)
{
    if (file.descriptor >= 0) kernel_close(file.descriptor);
}

bool sampler_step_aside(enum recording_end reason, struct sampler_absence *ret_absence)
{
    *ret_absence = (struct sampler_absence){.descriptor = -1};
    if (!sampler_is_present()) return false;
    lock_lifecycle();
    uint32_t state = atomic_load(&life.state);
    bool takes_part = state == STATE_PRESENT || state == STATE_ASIDE;
    if (takes_part) life.aside_count++;
    if (state == STATE_PRESENT) {
        sampler_expect_end(reason);
        atomic_store(&life.state, STATE_ASIDE);
        command(COMMAND_STEP_ASIDE);
    }
    unlock_lifecycle();
    if (!takes_part) return false;
    (void)raw_thread_await_end(ASIDE_WAIT_NS);
    if (reason == RECORDING_END_SECCOMP) return true; /* the descriptor could not be closed again under the filter */
    struct handed_file file = open_recording();
    *ret_absence = (struct sampler_absence){file.descriptor, file.device, file.inode};
    return true;
}

/* Starts the sampler thread again, with the recording in FILE, and closes FILE. */
static void bring_back(struct handed_file file)
{
    if (sampler_has_finished()) {
        atomic_store(&life.state, STATE_ENDED);
        close_recording(file);
        return;
    }
    if (!raw_thread_await_end(ASIDE_WAIT_NS)) { /* it had no time to look at its commands */
        atomic_fetch_and(&lifecycle.commands, ~(uint32_t)COMMAND_STEP_ASIDE);
        atomic_store(&life.state, STATE_PRESENT);
        close_recording(file);
        return;
    }
    begin_commands();
    sampler_prepare_resume(file);
    if (raw_thread_start(sampler_run, NULL)) {
        atomic_store(&life.state, STATE_PRESENT);
        (void)await(&lifecycle.ready, READY_WAIT_NS); /* it has its own copy of the descriptor then */
        close_recording(file);
    } else {
        sampler_finish_in_its_place(file.descriptor);
        atomic_store(&lifecycle.gone, 1);
        atomic_store(&life.state, STATE_ENDED);
    }
}

void sampler_come_back(const struct sampler_absence *absence)
{
    struct handed_file file = {absence->descriptor, absence->device, absence->inode};
    lock_lifecycle();
    if (--life.aside_count == 0 && atomic_load(&life.state) == STATE_ASIDE)
        bring_back(file);
    else
        close_recording(file);
    unlock_lifecycle();
}

void sampler_stay_away(void)
{
    life.was_confined = true;
    atomic_store(&life.state, STATE_ENDED);
}

/* --- Following ---------------------------------------------------------------------------------------------------- */

/* Gives the sampler thread a command, and waits until DONE has reached the command's number in WANTED. Returns false
 * after LIMIT_NS. */
static bool have_done(enum lifecycle_command bit, _Atomic uint32_t *wanted, _Atomic uint32_t *done, uint64_t limit_ns)
{
    uint32_t own = atomic_fetch_add(wanted, 1) + 1;
    uint64_t deadline_ns = monotonic_ns() + limit_ns;
    command(bit);
    for (;;) {
        uint32_t present = atomic_load(done);
        if ((int32_t)(present - own) >= 0 || atomic_load(&lifecycle.gone)) return true;
        if (monotonic_ns() >= deadline_ns) return false;
        futex_wait(done, present, deadline_ns);
    }
}

void sampler_follow(void)
{
    if (atomic_load(&life.state) != STATE_PRESENT || !sampler_is_present()) return;
    if (have_done(COMMAND_FOLLOW, &lifecycle.follow_wanted, &lifecycle.followed, FOLLOW_WAIT_NS)) return;
    atomic_store(&lifecycle.is_too_late, 1);
    command(COMMAND_STOP);
}

/* --- Flushing ----------------------------------------------------------------------------------------------------- */

void sampler_flush(void)
{
    enum { FLUSH_EVERY_NS = 5000000 }; /* a program may call exec again and again, where it fails */
    if (atomic_load(&life.state) != STATE_PRESENT || !sampler_is_present()) return;
    uint64_t now_ns = monotonic_ns();
    if (now_ns < atomic_load(&life.flushed_ns) + FLUSH_EVERY_NS || !sampler_is_worth_a_flush()) return;
    atomic_store(&life.flushed_ns, now_ns);
    (void)have_done(COMMAND_FLUSH, &lifecycle.flush_wanted, &lifecycle.flushed, FLUSH_WAIT_NS);
}

void sampler_note_jump(uint64_t from, uint64_t to)
{
    stack_reader_note_jump(from, to);
}
