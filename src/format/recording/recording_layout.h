/* The bytes of a recording: what liboffbeat writes while it samples a program, and what recording.c reads. Made so that
 * writing is cheap, that idle threads cost nothing, and that a file which ends anywhere is good up to there.
 *
 *   file   = RECORDING_MAGIC batch*
 *   batch  = u32 size (little-endian, of what follows), record*
 *   record = u8 kind, fields
 *
 * A batch is written with one write(2). The first batch is START alone; it is written together with the second.
 * A field is a ULEB128 number unless a note says otherwise; a text is its length and its bytes; SIGNED is zigzag.
 * Numbers of modules and threads count up from 0 and are not used again. Times are nanoseconds of CLOCK_MONOTONIC.
 *
 * In wall-clock mode a tick is the moment at which the sampler checks all threads. A thread's time has three parts:
 * CPU, runnable (it waited for a processor) and blocked. If a tick has neither a SAMPLE nor a WAITING record of a
 * thread, the thread was blocked since the previous tick, at the stack of its last sample with RECORDING_BLOCKED. In
 * CPU mode there is only CPU time, and in off-CPU mode only waits. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_RECORDING_RECORDING_LAYOUT_H
#define OFFBEAT_FORMAT_RECORDING_RECORDING_LAYOUT_H

#include <stdint.h>

/* Parts of a thread's time. The sum is the wall clock's. Whole microseconds, which take half the bytes. */
enum { RECORDING_TIME_UNIT_NS = 1000 };
struct recording_time {
    uint64_t cpu_ns, runnable_ns, blocked_ns;
};

#define RECORDING_MAGIC "OFFBEAT\3"

enum {
    RECORDING_MAGIC_SIZE = 8,
    RECORDING_BATCH_MAX = 1 << 20,
    RECORDING_FRAMES_MAX = 1024,
    RECORDING_TEXT_MAX = 4096,
    RECORDING_BUILD_ID_MAX = 64,
    RECORDING_PROFILER_ID_SIZE = 16,
};

enum recording_kind {
    /* pid, parent pid, mode (enum recording_mode), period ns, SIGNED wall clock minus CLOCK_MONOTONIC, monotonic ns,
     * 16 bytes profiler id, text name, text executable path */
    RECORDING_START = 1,
    /* number, start, end, file offset of start, image start, image size, image vmaddr, text build id (bytes), text path
     */
    RECORDING_MODULE,
    RECORDING_MODULE_GONE, /* number */
    RECORDING_THREAD,      /* number, tid, text name; again when the name changes */
    RECORDING_THREAD_GONE, /* number */
    RECORDING_TICK,        /* ns since the tick before; since START for the first */
    /* thread number, CPU µs, runnable µs, blocked µs that the stack stands for, flags (enum unwind_outcome
     * | RECORDING_WITHOUT_SIGNAL | RECORDING_BLOCKED), frames in all, frames shared at the root with this thread's
     * sample before, then each new frame, outermost first (struct recording_followers): its place among its caller's
     * followers, or RECORDING_FOLLOWERS more than the zigzag difference to its caller. Addresses as unwind_walk gives
     * them; the caller of the outermost is 0. */
    RECORDING_SAMPLE,
    RECORDING_WAITING, /* thread number: its time since the previous tick comes in a later record */
    RECORDING_LOST, /* thread number, cause (enum recording_loss), CPU µs, runnable µs, blocked µs without a stack */
    /* thread number, enum recording_share, CPU µs, runnable µs, blocked µs: more of the thread's last stack of that
     * kind. If it has none, the thread was too short to be sampled. */
    RECORDING_MORE,
    /* thread number, ns: part of the last blocked time of the thread that was in fact a wait for a processor, at the
     * same stack. The kernel counts a wait when it ends. */
    RECORDING_WOKEN,
    RECORDING_COUNTERS, /* count, then so many: enum recording_counter, all since the sampler started */
    RECORDING_STOP,     /* nothing: the recording is whole */
    RECORDING_USAGE,    /* CPU ns of the process since it began, bytes resident in memory */
    /* address of the start routine or 0, threads that ended, thread number + 1 or 0, enum recording_share, CPU µs,
     * runnable µs, blocked µs: of threads that no tick met. The last stack of that kind of the thread, which had the
     * same start routine and a short life, too, stands for them; 0: none does. */
    RECORDING_SHORT,
    RECORDING_ROUTINE, /* thread number, address of its start routine: before its first time, if it is known by then */
    /* enum recording_interpreter, text name with version: an interpreter that runs in the process, or one that is not
     * known. Later records of this kind replace earlier ones. */
    RECORDING_INTERPRETER,
    RECORDING_FUNCTION, /* number, first line, text name, text file: a function that an interpreter runs */
    RECORDING_LINE,     /* number, number of its function, line: a place that samples name */
    RECORDING_LABEL,    /* text key, text value: what is known of the process, "unit" and "nginx.service" */
    /* thread number, enum recording_wait, number of waits, SIGNED ns from the last tick to its start, text waker or "":
     * describes the thread's next SAMPLE or LOST record. In mode RECORDING_OFF_CPU only. */
    RECORDING_WAIT,
    /* thread number, waits below the threshold, their µs, waits that were left out at random, their µs. The waits that
     * have stacks stand for the latter. */
    RECORDING_OTHER_WAITS,
};

/* The reason why a thread has no processor. */
enum recording_wait {
    RECORDING_WAIT_OTHER,
    RECORDING_WAIT_PREEMPTED, /* another thread has the processor */
    RECORDING_WAIT_STARTING,  /* a new thread has had none yet */
    RECORDING_WAIT_LOCK,
    RECORDING_WAIT_SLEEP,
    RECORDING_WAIT_POLL,
    RECORDING_WAIT_NETWORK, /* a socket, a local one, too */
    RECORDING_WAIT_PIPE,
    RECORDING_WAIT_DEVICE, /* a terminal, or another device of characters */
    RECORDING_WAIT_DISK,
    RECORDING_WAIT_PAGE, /* wait for a page of memory: it is read from disk or swap, or made */
    RECORDING_WAIT_CHILD,
    RECORDING_WAIT_SIGNAL,
    RECORDING_WAIT_STOPPED,
    RECORDING_WAITS,
};

/* Addresses of places that an interpreter runs, in samples: this plus the number of RECORDING_LINE. No code is there.
 */
#define RECORDING_PLACES (UINT64_C(1) << 58)
enum { RECORDING_PLACES_MAX = 1 << 20 };

enum recording_interpreter {
    RECORDING_INTERPRETER_READ,    /* samples have its functions */
    RECORDING_INTERPRETER_UNKNOWN, /* a build that is not known: samples have native frames only */
    RECORDING_INTERPRETERS,
};

/* The addresses that lately followed a caller in the new frames of samples, latest first. Writer and reader learn them
 * alike, one table for all threads, zero at the start: two frames of three are one of them, and so a single byte. */
enum { RECORDING_CALLERS_BITS = 10, RECORDING_FOLLOWERS = 4 };

struct recording_followers {
    uint64_t of_callers[1 << RECORDING_CALLERS_BITS][RECORDING_FOLLOWERS];
};

static inline uint64_t *recording_followers_of(struct recording_followers *followers, uint64_t caller)
{
    return followers->of_callers[caller * 0x9E3779B97F4A7C15u >> (64 - RECORDING_CALLERS_BITS)];
}

/* ADDRESS, which was at PLACE (RECORDING_FOLLOWERS: nowhere), is the latest now. */
static inline void recording_follow(uint64_t *followers, uint64_t place, uint64_t address)
{
    if (place >= RECORDING_FOLLOWERS) place = RECORDING_FOLLOWERS - 1;
    for (; place > 0; place--) followers[place] = followers[place - 1];
    followers[0] = address;
}

/* Stack that a time belongs to. A thread that waits for its first processor has none yet, and a forked child has none
 * before its sampler starts. */
enum recording_share {
    RECORDING_OF_RUNNING,
    RECORDING_OF_BLOCKED,
    RECORDING_OF_START,
    RECORDING_OF_STOPPED, /* the process was stopped: by a signal, a debugger, or the freezer of its container */
    RECORDING_SHARES
};

enum recording_mode { RECORDING_WALL, RECORDING_CPU, RECORDING_OFF_CPU };

enum { RECORDING_OUTCOME_MASK = 0x0f, RECORDING_WITHOUT_SIGNAL = 0x10, RECORDING_BLOCKED = 0x20 };

enum recording_loss {
    RECORDING_LOST_LATE,       /* not written */
    RECORDING_LOST_UNANSWERED, /* the thread can be sent no signal: it blocks them, or has a seccomp filter */
    RECORDING_LOST_IN_KERNEL,  /* the same, while its perf timer, which sees user code only, missed it */
    RECORDING_LOST_NO_TABLE,   /* call frame information of a module in the stack was being read */
    RECORDING_LOST_UNREADABLE, /* a blocked thread, whose registers and stack the kernel does not show */
    RECORDING_LOST_RUNNING,    /* the engine sees no stacks of running threads */
    RECORDING_LOST_WAIT,       /* the stack of a wait found no room, or its beginning was not seen */
    RECORDING_LOSSES,
};

/* Reason for which the sampler ended before the program. */
enum recording_end {
    RECORDING_END_NONE,
    RECORDING_END_SECCOMP,        /* the program installed a seccomp filter */
    RECORDING_END_RIGHTS,         /* the program gave up rights, and the sampler could not follow */
    RECORDING_END_UNKNOWN_RIGHTS, /* the program's rights cannot be read, or the sampler was too slow to follow */
    RECORDING_END_NAMESPACE,      /* the process can have no new thread: its children have another pid namespace */
    RECORDING_END_NO_PROC,        /* threads came or went where there is no /proc to list them */
    RECORDING_END_LAST_THREAD,    /* the program's own threads had all ended */
    RECORDING_END_DESCRIPTORS,    /* the limit of open files left none for what the sampler must read */
    RECORDING_END_NO_THREAD,      /* the limit of threads left none for the sampler */
};

/* The recorder: the sampler inside the process, or an engine that sees it from outside. */
enum recording_engine {
    RECORDING_ENGINE_INSIDE,
    RECORDING_ENGINE_BPF,
    RECORDING_ENGINE_PERF,
    RECORDING_ENGINE_PERF_USER, /* time in system calls has no stacks */
    RECORDING_ENGINE_PROC,
    RECORDING_ENGINES,
};

enum recording_counter {
    RECORDING_TICKS,
    RECORDING_TICKS_MISSED, /* the sampler came too late: the next tick stands for them */
    RECORDING_SIGNALS,
    RECORDING_ANSWERS,
    RECORDING_BLOCKED_READ,   /* stacks of blocked threads read without a signal */
    RECORDING_BLOCKED_DENIED, /* blocked threads whose stack was read only in part */
    RECORDING_BYTES_LOST,     /* batches that could not be written: the disk was full */
    RECORDING_MODULES_WITHOUT_TABLE,
    RECORDING_TABLE_BYTES,
    RECORDING_TABLE_NS,             /* time spent building tables */
    RECORDING_THREADS_MISSED,       /* more threads than the sampler follows */
    RECORDING_PERF_PAGES,           /* sleeping threads that are observed through a perf event's page, now */
    RECORDING_PERF_ERRNO,           /* error that denies (more) such pages; 0: none */
    RECORDING_TIMERS,               /* running threads that have a timer (perf's cpu-clock event), now */
    RECORDING_TIMER_STACKS,         /* stacks that such timers took */
    RECORDING_TIMER_ERRNO,          /* error that denies (more) such timers; 0: none */
    RECORDING_SAMPLER_CPU_NS,       /* CPU time of the sampler thread */
    RECORDING_TIMES_ASIDE,          /* calls of the program for which the sampler thread stepped aside */
    RECORDING_ASIDE_NS,             /* time of these calls; their ticks are in TICKS_MISSED, too */
    RECORDING_END_REASON,           /* enum recording_end */
    RECORDING_TIMERS_SEE_USER_CODE, /* 1: the kernel denies perf timers that see system calls, too */
    RECORDING_TICKS_SPARED,   /* there was nothing to see: the kernel sampled all threads that ran, and the others slept
                               */
    RECORDING_TICKS_LEFT_OUT, /* part of TICKS_MISSED that keeps the sampler within its share of a processor */
    RECORDING_CPU_MAX_PPM,    /* requested share, millionths of a processor; 0: none was requested */
    RECORDING_ANSWERS_IN_CALL, /* part of ANSWERS from inside of a system call */
    RECORDING_SYSTEM_CPU_NS,   /* CPU time of the process inside the kernel since the sampler started */
    RECORDING_WAIT_BEFORE_NS,  /* time for which the thread that started the sampler had waited for a processor by then;
                                  0 in a forked process, whose recording begins at the fork */
    RECORDING_CLOCK_TICK_NS,   /* between stacks by the threads' CPU clocks, where perf timers are denied; 0: none */
    RECORDING_UNSEEN_WAITS_NS, /* waits for a processor after preemptions, with a stack from where the thread ran:
                                  nobody saw where it was stopped */
    RECORDING_LATE_NS,         /* lateness of the ticks that were late by a tenth of a second or more */
    RECORDING_STOPPED_NS,      /* time for which the process was stopped; it is in no other counter */
    RECORDING_PRIORITY,        /* 1: the sampler thread had the highest priority of ordinary threads */
    RECORDING_FILE_ERRNO,      /* error that denied a file of /proc; 0: none */
    RECORDING_ENGINE,          /* enum recording_engine */
    RECORDING_INTERPRETED,     /* stacks with functions of an interpreter */
    RECORDING_INTERPRETED_TORN, /* stacks whose functions contradicted each other, or the native frames: these have
                                   native frames only */
    RECORDING_INTERPRETED_GONE, /* functions that were freed before they were named */
    RECORDING_CODE_UNSEEN,      /* stacks that end in code whose file could not be read: the process had ended */
    RECORDING_COUNTER_COUNT,
};

#endif
