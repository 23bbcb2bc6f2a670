/* Off-CPU time: when a thread leaves a processor its stack is sent, and when it has one again how long that took, for
 * what, and who woke it. Stacks are bounded in number for each processor: one in so many waits is chosen then, and says
 * so. The time of the others, and of waits below the threshold, is summed by thread.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_RECORDER_BPF_WAITS_BPF_H
#define OFFBEAT_RECORDER_BPF_WAITS_BPF_H

#include "recorder/bpf/records.bpf.h"

#include <bpf/bpf_tracing.h>

enum {
    WAIT_WINDOW_NS = 10000000,
    NEAR_NS = 10000, /* time that a switch takes at most */
};

/* Set at load. */
const volatile bool records_waits;
const volatile uint64_t wait_ns_min;      /* duration from which on a wait has a record */
const volatile uint64_t long_wait_ns;     /* duration from which on it has one although it was not chosen */
const volatile uint32_t window_waits = 1; /* waits of a processor in a window that are all chosen */

/* A thread's wait and switches. The kernel frees it with the thread. */
struct thread_state {
    uint64_t seen_switches; /* number of its switches when it was last sent, plus one */
    uint64_t began_ns;      /* time when its wait began, CLOCK_MONOTONIC; 0: it does not wait, as far as is known */
    uint64_t ran_since_ns;  /* time when it got a processor last; 0: it is not known */
    uint64_t cpu_ns;        /* CPU time then */
    uint64_t woken_ns;      /* time when it was woken; 0: it was not */
    uint32_t reason;        /* enum recording_wait */
    uint32_t one_in;        /* the wait was chosen as one of so many */
    uint32_t is_chosen;     /* 1: its stack was sent */
    uint32_t has_ended;     /* 1: its end was sent */
    uint32_t waker_pid, waker_tid;
    char waker[16];
    struct bpf_wait_sums sums;
};

struct {
    __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
    __uint(map_flags, BPF_F_NO_PREALLOC);
    __type(key, int);
    __type(value, struct thread_state);
} threads SEC(".maps");

/* The number of switches of a processor. */
struct wait_rate {
    uint64_t window;
    uint32_t count, previous; /* number of waits in this window, and in the one before */
};

struct {
    __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
    __uint(max_entries, 1);
    __type(key, uint32_t);
    __type(value, struct wait_rate);
} wait_rates SEC(".maps");

/* --- Reasons ------------------------------------------------------------------------------------------------------ */

/* Returns what a thread waits for that uses file NUMBER. */
static uint32_t reason_of_file(struct task_struct *task, uint64_t number)
{
    enum { TYPE = 0170000, SOCKET = 0140000, PIPE = 0010000, CHARACTERS = 0020000, FOLDER = 0040000 };
    struct fdtable *table = BPF_CORE_READ(task, files, fdt);
    struct file **files = BPF_CORE_READ(table, fd);
    struct file *file = NULL;
    if (number >= BPF_CORE_READ(table, max_fds)) return RECORDING_WAIT_OTHER;
    bpf_probe_read_kernel(&file, sizeof(file), files + number);
    switch (BPF_CORE_READ(file, f_inode, i_mode) & TYPE) {
    case SOCKET:
        return RECORDING_WAIT_NETWORK;
    case PIPE:
        return RECORDING_WAIT_PIPE;
    case CHARACTERS:
        return RECORDING_WAIT_DEVICE;
    case 0: /* eventfd, timerfd, inotify */
        return RECORDING_WAIT_POLL;
    default:
        return RECORDING_WAIT_DISK;
    }
}

/* Calls that are newer than Debian 12's headers. */
enum { FUTEX_WAKE = 454, FUTEX_WAIT = 455 };

/* Returns what a thread waits for in a system call. */
static uint32_t reason_of_call(struct task_struct *task, uint64_t call, uint64_t argument)
{
    uint32_t reason = reason_of_old_call(call);
    switch (call) {
    case __NR_read:
    case __NR_write:
    case __NR_pread64:
    case __NR_pwrite64:
    case __NR_readv:
    case __NR_writev:
    case __NR_preadv:
    case __NR_pwritev:
    case __NR_preadv2:
    case __NR_pwritev2:
    case __NR_sendfile:
    case __NR_splice:
    case __NR_tee:
    case __NR_vmsplice:
    case __NR_copy_file_range:
        return reason_of_file(task, argument);
    case __NR_futex:
    case __NR_futex_waitv:
    case FUTEX_WAIT:
    case __NR_flock:
    case __NR_semop:
    case __NR_semtimedop:
        return RECORDING_WAIT_LOCK;
    case __NR_nanosleep:
    case __NR_clock_nanosleep:
        return RECORDING_WAIT_SLEEP;
    case __NR_io_getevents:
    case __NR_pselect6:
    case __NR_ppoll:
    case __NR_epoll_pwait:
    case __NR_io_pgetevents:
    case __NR_io_uring_enter:
    case __NR_epoll_pwait2:
        return RECORDING_WAIT_POLL;
    case __NR_connect:
    case __NR_accept:
    case __NR_sendto:
    case __NR_recvfrom:
    case __NR_sendmsg:
    case __NR_recvmsg:
    case __NR_accept4:
    case __NR_recvmmsg:
    case __NR_sendmmsg:
        return RECORDING_WAIT_NETWORK;
    case __NR_wait4:
    case __NR_waitid:
    case __NR_clone:
    case __NR_clone3:
        return RECORDING_WAIT_CHILD;
    case __NR_rt_sigtimedwait:
    case __NR_rt_sigsuspend:
        return RECORDING_WAIT_SIGNAL;
    case __NR_msync:
    case __NR_fsync:
    case __NR_fdatasync:
    case __NR_sync:
    case __NR_sync_file_range:
    case __NR_syncfs:
        return RECORDING_WAIT_DISK;
    default:
        if (reason != RECORDING_WAIT_OTHER) return reason;
        return BPF_CORE_READ_BITFIELD_PROBED(task, in_iowait) ? RECORDING_WAIT_DISK : RECORDING_WAIT_OTHER;
    }
}

/* Returns what TASK waits for, which gives up its processor in STATE. */
static uint32_t reason_of(struct task_struct *task, uint32_t state)
{
    enum { STOPPED = 4, TRACED = 8, FROZEN = 0x8000 };
    uint64_t argument = 0, call = system_call_of(task, &argument);
    if (state == 0) return RECORDING_WAIT_PREEMPTED;
    if (state & (STOPPED | TRACED | FROZEN)) return RECORDING_WAIT_STOPPED;
    if (call > INT32_MAX) return RECORDING_WAIT_PAGE; /* no system call */
    return reason_of_call(task, call, argument);
}

/* --- Beginnings and ends ------------------------------------------------------------------------------------------ */

/* Returns N if one in N waits of this processor is to be chosen. */
static __always_inline uint32_t choose_one_in(uint64_t now_ns)
{
    uint32_t zero = 0;
    struct wait_rate *rate = bpf_map_lookup_elem(&wait_rates, &zero);
    uint64_t window = now_ns / WAIT_WINDOW_NS;
    if (!rate) return 1;
    if (rate->window != window) {
        rate->previous = rate->window + 1 == window ? rate->count : 0;
        rate->window = window;
        rate->count = 0;
    }
    rate->count++;
    uint32_t busy = rate->previous > rate->count ? rate->previous : rate->count;
    return busy <= window_waits ? 1 : (busy + window_waits - 1) / window_waits;
}

/* Returns the time when TASK, which leaves its processor, stopped running by its CPU clock: near NOW_NS. So the waits
 * are all the time that the clock does not count. */
static __always_inline uint64_t stop_time(const struct thread_state *thread, const struct task_struct *task,
                                          uint64_t now_ns)
{
    uint64_t stopped_ns = thread->ran_since_ns + task->se.sum_exec_runtime - thread->cpu_ns;
    bool is_near = thread->ran_since_ns != 0 && stopped_ns + NEAR_NS >= now_ns && stopped_ns <= now_ns + NEAR_NS;
    return is_near ? stopped_ns : now_ns;
}

static __always_inline void note_wait(struct thread_state *thread, struct task_struct *task, uint32_t state,
                                      uint64_t now_ns)
{
    thread->began_ns = now_ns;
    thread->woken_ns = 0;
    thread->waker_tid = thread->waker_pid = 0;
    thread->reason = reason_of(task, state);
}

static __always_inline void send_wait(const struct thread_state *thread, struct task_struct *task, uint64_t now_ns)
{
    struct bpf_wait wait = {
        .record = BPF_WAITED,
        .reason = thread->reason,
        .pid = process_of(task),
        .tid = number_of(task),
        .began_ns = thread->began_ns,
        .woken_ns = thread->woken_ns,
        .ended_ns = now_ns,
        .one_in = now_ns >= thread->began_ns + long_wait_ns ? 1 : thread->one_in,
        .waker_pid = thread->waker_pid,
        .waker_tid = thread->waker_tid,
    };
    __builtin_memcpy(wait.waker, thread->waker, sizeof(wait.waker));
    send(&wait, sizeof(wait));
}

/* TASK, the running one, leaves its processor. */
static __always_inline void begin_wait(void *context, struct task_struct *task, bool is_preempted, uint64_t now_ns)
{
    enum { DEAD = 0x80 };
    uint32_t pid = process_of(task), zero = 0, state = task->__state;
    const struct bpf_process_entry *process = bpf_map_lookup_elem(&processes, &pid);
    struct walk *walk = bpf_map_lookup_elem(&switch_walk, &zero);
    struct stack_copy *copy = bpf_map_lookup_elem(&switch_copy, &zero);
    if (!process || !walk || !copy || (state & DEAD)) return;
    struct thread_state *thread = bpf_task_storage_get(&threads, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
    if (!thread) __sync_fetch_and_add(&samples_lost, 1);
    if (!thread || thread->has_ended) return;
    note_wait(thread, task, is_preempted ? 0 : state, stop_time(thread, task, now_ns));
    thread->one_in = choose_one_in(now_ns);
    thread->is_chosen = thread->one_in == 1 || bpf_get_prandom_u32() % thread->one_in == 0;
    if (!thread->is_chosen) return;
    walk_task(walk, task, process);
    walk->sample.record = BPF_WAIT_BEGAN;
    walk->sample.time_ns = thread->began_ns;
    send_sample(context, walk, copy, task);
}

static __always_inline void start_running(struct thread_state *thread, const struct task_struct *task, uint64_t now_ns)
{
    thread->began_ns = 0;
    thread->ran_since_ns = now_ns;
    thread->cpu_ns = task->se.sum_exec_runtime;
}

/* A thread that runs for the first time has waited since it was made. */
static __always_inline void begin_life(struct task_struct *task, uint64_t now_ns)
{
    if (task->nvcsw + task->nivcsw != 0) return;
    struct thread_state *thread = bpf_task_storage_get(&threads, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);
    if (!thread || thread->seen_switches != 0 || now_ns < task->start_time) return;
    thread->began_ns = task->start_time;
    thread->reason = RECORDING_WAIT_STARTING;
    thread->one_in = 1;
    send_wait(thread, task, now_ns);
    start_running(thread, task, now_ns);
}

/* TASK gets the processor. */
static __always_inline void end_wait(struct task_struct *task, uint64_t now_ns)
{
    uint32_t pid = process_of(task);
    if (!bpf_map_lookup_elem(&processes, &pid)) return;
    struct thread_state *thread = bpf_task_storage_get(&threads, task, NULL, 0);
    if (!thread || thread->began_ns == 0) {
        begin_life(task, now_ns);
        return;
    }
    uint64_t duration_ns = now_ns > thread->began_ns ? now_ns - thread->began_ns : 0;
    if (duration_ns < wait_ns_min) {
        thread->sums.short_count++;
        thread->sums.short_ns += duration_ns;
    } else if (thread->is_chosen || duration_ns >= long_wait_ns) {
        send_wait(thread, task, now_ns);
    } else {
        thread->sums.left_out_count++;
        thread->sums.left_out_ns += duration_ns;
    }
    start_running(thread, task, now_ns);
}

SEC("tp_btf/sched_switch")
int BPF_PROG(thread_switch, bool is_preempted, struct task_struct *previous, struct task_struct *next)
{
    uint64_t now_ns = bpf_ktime_get_ns();
    begin_wait(ctx, previous, is_preempted, now_ns);
    end_wait(next, now_ns);
    return 0;
}

/* Returns true if system call CALL writes, sends or closes. */
static __always_inline bool is_sending_call(uint64_t call)
{
    switch (call) {
    case __NR_write:
    case __NR_close:
    case __NR_pwrite64:
    case __NR_writev:
    case __NR_sendfile:
    case __NR_connect:
    case __NR_sendto:
    case __NR_sendmsg:
    case __NR_shutdown:
    case __NR_splice:
    case __NR_tee:
    case __NR_vmsplice:
    case __NR_pwritev:
    case __NR_sendmmsg:
    case __NR_pwritev2:
        return true;
    default:
        return false;
    }
}

/* Returns true if TASK, the running one, can be who ends a wait for REASON. An interrupt wakes threads, too, and whom
 * it interrupts has nothing to do with it; but a thread that wakes another one on purpose is in a system call for that.
 */
static __always_inline bool may_wake(struct task_struct *task, uint32_t reason)
{
    enum { EXITING = 4 };
    uint64_t argument = 0, call = system_call_of(task, &argument);
    bool is_asked_for =
        reason != RECORDING_WAIT_SLEEP && reason != RECORDING_WAIT_DISK && reason != RECORDING_WAIT_PAGE;
    if (bpf_get_current_pid_tgid() == 0 || !is_asked_for) return false;
    if (task->flags & EXITING || call == __NR_exit || call == __NR_exit_group) return true;
    switch (reason) {
    case RECORDING_WAIT_LOCK:
        return call == __NR_futex || call == FUTEX_WAKE || call == __NR_flock || call == __NR_semop;
    case RECORDING_WAIT_POLL:
    case RECORDING_WAIT_NETWORK:
    case RECORDING_WAIT_PIPE:
    case RECORDING_WAIT_DEVICE:
        return is_sending_call(call);
    default:
        return call <= INT32_MAX;
    }
}

SEC("tp_btf/sched_waking")
int BPF_PROG(thread_waking, struct task_struct *task)
{
    uint32_t pid = process_of(task);
    if (!bpf_map_lookup_elem(&processes, &pid)) return 0;
    struct thread_state *thread = bpf_task_storage_get(&threads, task, NULL, 0);
    if (!thread || thread->began_ns == 0 || thread->woken_ns != 0 || thread->reason == RECORDING_WAIT_PREEMPTED)
        return 0;
    thread->woken_ns = bpf_ktime_get_ns();
    struct task_struct *waker = bpf_get_current_task_btf();
    if (!may_wake(waker, thread->reason)) return 0;
    thread->waker_pid = process_of(waker);
    thread->waker_tid = number_of(waker);
    bpf_core_read(thread->waker, sizeof(thread->waker), &waker->comm);
    return 0;
}

/* Begins the wait of TASK, which an iterator finds and which may have been waiting before the recording began. */
static __always_inline void find_wait(struct thread_state *thread, struct task_struct *task, struct bpf_thread *row)
{
    bool is_seen = thread->seen_switches != 0 || thread->ran_since_ns != 0;
    if (!records_waits || is_seen || thread->began_ns != 0 || task->on_cpu) return;
    row->needs_stack = 1;
    note_wait(thread, task, task->__state, bpf_ktime_get_ns());
    thread->one_in = thread->is_chosen = 1;
    if (task->on_cpu) thread->began_ns = 0; /* it has got a processor meanwhile */
}

#endif
