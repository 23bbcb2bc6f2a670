/* Stepping aside: doc/decisions/sdk.md says why.
 *
 * LOCK_TURN is held until the threads are back, so that the library neither begins nor ends meanwhile.
 * SPDX-License-Identifier: MIT */
#include "sdk/aside.h"

#include "base/descriptor_table.h"
#include "base/invariant.h"
#include "base/futex.h"
#include "base/kernel.h"
#include "sampler/record/finished_recordings.h"
#include "sampler/sampler.h"
#include "sdk/callbacks.h"
#include "sdk/profiler.h"
#include "sdk/sdk_private.h"
#include "sdk/worker.h"

#include <linux/capability.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

enum { RAW_THREADS_MAX = 8 };

static struct {
    _Atomic uint32_t alive; /* number of threads that were started and have not ended; a futex */
    _Atomic pid_t tids[RAW_THREADS_MAX];
    atomic_bool is_wanted;  /* threads shall step aside */
    atomic_bool may_differ; /* the program changed rights of its threads one by one */
} aside;

static __thread bool is_own_thread __attribute__((tls_model("initial-exec")));
static __thread bool has_own_descriptors __attribute__((tls_model("initial-exec")));

/* --- The library's threads ---------------------------------------------------------------------------------------- */

void own_threads_expect(void)
{
    atomic_fetch_add(&aside.alive, 1);
}

void own_threads_end_one(void)
{
    uint32_t alive = atomic_load(&aside.alive); /* 0 in a child that a thread of the library forked */
    while (alive > 0 && !atomic_compare_exchange_weak(&aside.alive, &alive, alive - 1)) continue;
    futex_wake(&aside.alive);
}

void own_threads_begin(const char *name)
{
    is_own_thread = true;
    memory_sanitizer_enter();
    (void)prctl(PR_SET_NAME, name);
    pid_t tid = sampler_leave_out();
    for (size_t i = 0; i < RAW_THREADS_MAX; i++) {
        pid_t none = 0;
        if (atomic_compare_exchange_strong(&aside.tids[i], &none, tid)) return;
    }
}

bool own_threads_are_calling(void)
{
    return is_own_thread;
}

/* Opens /dev/null as 0, 1 and 2, so that code that writes there does not write into one of the library's files. */
void own_threads_take_descriptors(void)
{
    if (atomic_load(&library.calls_program) || !descriptor_table_take(-1)) return;
    has_own_descriptors = true;
    for (int number = 0; number <= STDERR_FILENO; number++) (void)kernel_open("/dev/null", O_RDWR, 0);
}

bool own_threads_have_descriptors(void)
{
    return has_own_descriptors;
}

int own_threads_open_standard_error(void)
{
    if (!has_own_descriptors) return STDERR_FILENO;
    int process = (int)kernel_call3(SYS_pidfd_open, atomic_load(&library.pid), 0, 0);
    if (process < 0) return -1;
    long error = kernel_call3(SYS_pidfd_getfd, process, STDERR_FILENO, 0);
    kernel_close(process);
    return error < 0 ? -1 : (int)error;
}

void own_threads_forget(void)
{
    atomic_store(&aside.alive, 0);
    atomic_store(&aside.is_wanted, false);
    atomic_store(&aside.may_differ, false);
    for (size_t i = 0; i < RAW_THREADS_MAX; i++) atomic_store(&aside.tids[i], 0);
    is_own_thread = has_own_descriptors = false;
}

bool own_threads_shall_leave(void)
{
    return atomic_load(&aside.is_wanted);
}

bool sdk_has_threads(void)
{
    return atomic_load(&aside.alive) > 0 && sdk_is_ours() &&
           kernel_call3(SYS_getpid, 0, 0, 0) == atomic_load(&library.pid);
}

/* True if the kernel still has a thread of the library. Forgets the ids of the others. */
static bool has_tids(void)
{
    bool has = false;
    for (size_t i = 0; i < RAW_THREADS_MAX; i++) {
        pid_t tid = atomic_load(&aside.tids[i]);
        if (tid == 0) continue;
        if (kernel_call3(SYS_tgkill, atomic_load(&library.pid), tid, 0) == -ESRCH) {
            sampler_take_in(tid);
            atomic_store(&aside.tids[i], 0);
        } else {
            has = true;
        }
    }
    return has;
}

bool own_threads_await_end(uint64_t deadline_ns)
{
    const struct timespec pause = {.tv_nsec = 50000};
    for (uint32_t alive = atomic_load(&aside.alive); alive > 0; alive = atomic_load(&aside.alive)) {
        if (clock_monotonic_ns() >= deadline_ns) return false;
        futex_wait(&aside.alive, alive, deadline_ns);
    }
    while (has_tids()) {
        if (clock_monotonic_ns() >= deadline_ns) return false;
        (void)kernel_call3(SYS_nanosleep, kernel_address(&pause), 0, 0);
    }
    return true;
}

/* --- Stepping aside ----------------------------------------------------------------------------------------------- */

/* Ends the threads. False after DEADLINE_NS. */
static bool end_threads(uint64_t deadline_ns)
{
    bool is_in_time = true;
    lock_take(LOCK_PROFILER);
    atomic_store(&aside.is_wanted, true);
    finished_recordings_wake();
    rebirth_wake();
    while (is_in_time && (worker_is_running() || rebirth_is_there())) is_in_time = profiler_wait_until(deadline_ns);
    callbacks_give_lock(LOCK_PROFILER);
    return is_in_time && own_threads_await_end(deadline_ns);
}

/* Gives LOCK_TURN, which this thread took in sdk_step_aside. */
static void give_turn(void)
{
    (void)lock_check_held(LOCK_TURN);
    lock_give(LOCK_TURN);
}

/* Ends the library without a lock: a thread of the program that holds one may be under the filter, too. */
static void end_without_locks(void)
{
    atomic_store(&library.is_on, false);
    callbacks_forbid();
}

bool sdk_step_aside(enum sdk_absence absence)
{
    KEEP_ERRNO;
    if (!sdk_has_threads() || lock_any_is_held() || is_own_thread) return false;
    uint64_t limit_ms = absence == SDK_ASIDE ? 500 : 2000; /* it takes 1 ms on an idle machine */
    uint64_t deadline_ns = clock_monotonic_ns() + limit_ms * MILLISECOND_NS;
    bool has_ended = false;
    if (lock_take_until(LOCK_TURN, deadline_ns)) {
        has_ended = end_threads(deadline_ns);
        if (!has_ended) sdk_come_back();
    }
    if (!has_ended)
        sdk_debug("the library's threads did not end in time for a call of the program; the call runs nevertheless");
    return has_ended;
}

void sdk_come_back(void)
{
    KEEP_ERRNO;
    lock_take(LOCK_PROFILER);
    atomic_store(&aside.is_wanted, false);
    atomic_store(&aside.may_differ, false);
    bool is_started = worker_come_back() && rebirth_come_back();
    if (!is_started) {
        sdk_debug("no thread can be made any more: the next launch sends what is left");
        atomic_store(&library.is_without_threads, true);
        end_without_locks();
    }
    callbacks_give_lock(LOCK_PROFILER);
    give_turn();
}

void sdk_stay_away(void)
{
    end_without_locks();
    atomic_store(&library.is_running, false);
    atomic_store(&library.is_confined, true);
    give_turn();
}

/* --- Rights ------------------------------------------------------------------------------------------------------- */

struct capabilities {
    struct __user_cap_data_struct words[_LINUX_CAPABILITY_U32S_3];
};

/* Reads the capabilities of the thread TID; 0 is the calling thread. */
static bool read_capabilities(pid_t tid, struct capabilities *ret)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3, .pid = tid};
    return kernel_call3(SYS_capget, kernel_address(&header), kernel_address(ret->words), 0) == 0;
}

static bool read_both(struct capabilities *ret_ours, struct capabilities *ret_callers)
{
    pid_t tid = 0;
    for (size_t i = 0; i < RAW_THREADS_MAX && tid == 0; i++) tid = atomic_load(&aside.tids[i]);
    return tid != 0 && read_capabilities(tid, ret_ours) && read_capabilities(0, ret_callers);
}

bool sdk_step_aside_if_rights_differ(void)
{
    struct capabilities ours, callers;
    if (!sdk_has_threads()) return false;
    bool differ = atomic_load(&aside.may_differ);
    if (!differ) differ = read_both(&ours, &callers) && memcmp(&ours, &callers, sizeof(ours)) != 0;
    return differ && sdk_step_aside(SDK_ASIDE_RIGHTS);
}

void sdk_follow_rights(void)
{
    struct capabilities ours, callers;
    if (!sdk_has_threads()) return;
    atomic_store(&aside.may_differ, true);
    if (!read_both(&ours, &callers)) return;
    bool has_fewer = false;
    for (size_t i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
        has_fewer = has_fewer || (ours.words[i].permitted & ~callers.words[i].permitted) != 0;
    if (has_fewer && sdk_step_aside(SDK_ASIDE)) sdk_come_back();
}
