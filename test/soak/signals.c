/* Storms of the program's own signals, which must all arrive as without a sampler, and of threads that must see none of
 * the sampler's.  SPDX-License-Identifier: MIT */
#include "storm.h"

#include <errno.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>

static void handle(int number, void (*handler)(int, siginfo_t *, void *), int flags)
{
    struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO | flags};
    CHECK(sigaction(number, &action, NULL) == 0);
}

static void start_timer(int which, long microseconds)
{
    struct itimerval timer = {{.tv_usec = microseconds}, {.tv_usec = microseconds}};
    CHECK(setitimer(which, &timer, NULL) == 0);
}

/* --- Out of a handler by longjmp ---------------------------------------------------------------------------------- */

static sigjmp_buf back;
static volatile sig_atomic_t may_jump, jumps;

static void jump(int number, siginfo_t *information, void *context)
{
    if (!may_jump) return;
    may_jump = 0;
    jumps++;
    siglongjmp(back, number);
}

__attribute__((noinline)) static void work_until_jumped(void)
{
    for (unsigned i = 0;; i++) {
        may_jump = 1;
        storm_work(i);
        may_jump = 0;
    }
}

static void storm_longjmp(void)
{
    sigset_t alarms, present;
    (void)sigemptyset(&alarms);
    (void)sigaddset(&alarms, SIGALRM);
    (void)sigaddset(&alarms, SIGPROF);
    (void)pthread_sigmask(SIG_BLOCK, &alarms, NULL);
    storm_crowd(2);
    (void)pthread_sigmask(SIG_UNBLOCK, &alarms, NULL);
    handle(SIGALRM, jump, 0);
    handle(SIGPROF, jump, SA_RESTART);
    start_timer(ITIMER_REAL, 700);
    start_timer(ITIMER_PROF, 5000);
    while (storm_continues()) {
        if (sigsetjmp(back, 1) == 0) work_until_jumped();
        CHECK(pthread_sigmask(SIG_SETMASK, NULL, &present) == 0 && sigisemptyset(&present));
    }
    start_timer(ITIMER_REAL, 0);
    start_timer(ITIMER_PROF, 0);
    CHECK(jumps > 0);
    storm_crowd_join();
    storm_note("jumps", jumps);
}

/* --- Queued signals: none lost, none too many --------------------------------------------------------------------- */

static _Atomic uint64_t sum_received;
static _Atomic unsigned count_received;

static void add_up(int number, siginfo_t *information, void *context)
{
    sum_received += (uint64_t)information->si_value.sival_int;
    count_received++;
}

static void storm_queued_signals(void)
{
    uint64_t sum_sent = 0;
    unsigned count_sent = 0;
    handle(SIGRTMIN + 3, add_up, SA_RESTART);
    storm_crowd(3);
    for (int i = 1; storm_continues(); i++) {
        union sigval value = {.sival_int = i % 1000};
        if (sigqueue(getpid(), SIGRTMIN + 3, value) == 0) {
            sum_sent += (uint64_t)value.sival_int;
            count_sent++;
        }
        if (i % 100 == 0) storm_work(1);
    }
    for (unsigned i = 0; count_received < count_sent && i < 5000; i++) sleep_ns(1000000);
    CHECK(count_received == count_sent && sum_received == sum_sent);
    storm_crowd_join();
    storm_note("signals", count_sent);
}

/* --- The program's own use of the signal that the sampler has chosen ---------------------------------------------- */

static _Atomic unsigned own_calls, strange_calls;
static struct sigaction next_in_chain;

static bool is_own(const siginfo_t *information)
{
    return information->si_code == SI_TKILL || information->si_code == SI_USER;
}

static void count_own(int number, siginfo_t *information, void *context)
{
    if (is_own(information))
        own_calls++;
    else
        strange_calls++;
}

/* Counts its own signals and passes others to the earlier handler, as well-behaved libraries do. */
static void count_and_chain(int number, siginfo_t *information, void *context)
{
    if (is_own(information)) own_calls++;
    if (next_in_chain.sa_flags & SA_SIGINFO)
        next_in_chain.sa_sigaction(number, information, context);
    else if (next_in_chain.sa_handler != SIG_DFL && next_in_chain.sa_handler != SIG_IGN)
        next_in_chain.sa_handler(number);
}

static unsigned raised, missed, doubled;

static void raise_and_count(unsigned times)
{
    for (unsigned i = 0; i < times; i++) {
        unsigned before = own_calls;
        CHECK(raise(SIGURG) == 0);
        CHECK(own_calls <= before + 2);
        if (own_calls == before) missed++;
        if (own_calls == before + 2) doubled++;
        storm_work(i);
    }
    raised += times;
}

/* The sampler sends no signal that the program handles: the kernel keeps only the first of two signals of one number.
 * It may do so while the handlers change places. */
static void check_raised(void)
{
    storm_note("raised", raised);
    storm_note("missed", missed);
    storm_note("doubled", doubled);
    CHECK(missed <= 2 && doubled <= 2);
}

static void storm_own_urg(void)
{
    storm_crowd(2);
    for (unsigned i = 0; storm_continues(); i++) {
        handle(SIGURG, count_own, SA_RESTART | SA_ONSTACK);
        raise_and_count(500);
        CHECK(signal(SIGURG, i % 2 ? SIG_IGN : SIG_DFL) != SIG_ERR);
        CHECK(raise(SIGURG) == 0);
        sleep_ns(20000000);
        CHECK(raise(SIGURG) == 0);
    }
    storm_crowd_join();
    check_raised();
    storm_note("calls for what was not raised", strange_calls);
    CHECK(strange_calls <= 2 + raised / 500);
}

static void storm_chained_urg(void)
{
    struct sigaction action = {.sa_sigaction = count_and_chain, .sa_flags = SA_SIGINFO | SA_RESTART};
    storm_crowd(2);
    sleep_ns(20000000); /* until the sampler has its own */
    CHECK(sigaction(SIGURG, &action, &next_in_chain) == 0);
    while (storm_continues()) raise_and_count(100);
    check_raised();
    storm_crowd_join();
}

/* A handler that is called for its own signal finds the mask that the kernel gives it, with the sampler in between. */
static _Atomic unsigned masks_wrong;

static void check_mask(int number, siginfo_t *information, void *context)
{
    sigset_t present;
    if (!is_own(information)) return;
    own_calls++;
    (void)pthread_sigmask(SIG_SETMASK, NULL, &present);
    if (!sigismember(&present, SIGURG) || !sigismember(&present, SIGUSR2) || sigismember(&present, SIGALRM))
        masks_wrong++;
}

static void storm_mask_of_urg_handler(void)
{
    struct sigaction action = {.sa_sigaction = check_mask, .sa_flags = SA_SIGINFO | SA_RESTART};
    (void)sigaddset(&action.sa_mask, SIGUSR2);
    CHECK(sigaction(SIGURG, &action, NULL) == 0);
    storm_crowd(2);
    while (storm_continues()) raise_and_count(20);
    storm_crowd_join();
    check_raised();
    CHECK(masks_wrong == 0);
}

/* --- Small alternate stacks --------------------------------------------------------------------------------------- */

/* Maps an alternate stack for FRAMES signals: each has the kernel's frame, 1 KB for the sampler and 1 KB for the
 * handler here. */
static void *map_alternate_stack(size_t frames, stack_t *ret_stack)
{
    size_t size = frames * (getauxval(AT_MINSIGSTKSZ) + 1024) + 1024;
    size_t pages = (size + 4095) / 4096 * 4096;
    uint8_t *memory = mmap(NULL, pages + 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(memory != MAP_FAILED && mprotect(memory + 4096, pages, PROT_READ | PROT_WRITE) == 0);
    *ret_stack = (stack_t){.ss_sp = memory + 4096 + (pages - size) / 16 * 16, .ss_size = size};
    memset(memory + 4096, 0xA5, pages);
    return memory;
}

static void check_alternate_stack(const uint8_t *memory, const stack_t *stack)
{
    for (const uint8_t *byte = memory + 4096; byte < (const uint8_t *)stack->ss_sp; byte++) CHECK(*byte == 0xA5);
}

static _Atomic unsigned on_alternate;

static void work_on_alternate(int number, siginfo_t *information, void *context)
{
    volatile unsigned value = 1;
    for (unsigned i = 0; i < 20000; i++) value = value * 3 + 1;
    on_alternate++;
}

static void *run_on_alternate(void *argument)
{
    size_t frames = (size_t)(uintptr_t)argument;
    stack_t stack;
    const uint8_t *memory = map_alternate_stack(frames, &stack);
    CHECK(sigaltstack(&stack, NULL) == 0);
    for (unsigned i = 0; storm_continues(); i++) {
        storm_work(i);
        if (frames > 1) CHECK(raise(SIGUSR1) == 0);
    }
    check_alternate_stack(memory, &stack);
    return NULL;
}

/* Half of the threads take none but the sampler's signal, and have room for that one. The others have room for it in
 * addition to their own signals. */
static void storm_alternate_stacks(void)
{
    pthread_t threads[4];
    handle(SIGUSR1, work_on_alternate, SA_ONSTACK | SA_RESTART);
    for (uintptr_t i = 0; i < 4; i++) threads[i] = storm_thread(run_on_alternate, (void *)(i % 2 + 1));
    for (unsigned i = 0; i < 4; i++) storm_join(threads[i]);
    CHECK(on_alternate > 0);
}

/* --- Threads that take every signal ------------------------------------------------------------------------------- */

enum { PAYLOAD = 4711 };

static _Atomic unsigned taken, taken_in_error;

static void note_taken(const siginfo_t *information)
{
    taken++;
    if (information->si_signo != SIGRTMIN + 1 || information->si_value.sival_int != PAYLOAD) taken_in_error++;
}

static void take_some(uint64_t set)
{
    for (unsigned i = 0; i < 20; i++) {
        struct timespec limit = {.tv_nsec = 1000000};
        siginfo_t information;
        storm_work(i); /* time enough for a signal */
        if (syscall(SYS_rt_sigtimedwait, &set, &information, &limit, 8) > 0) note_taken(&information);
    }
}

/* Blocks what libc lets it block, or all that there is, from its beginning to its end. */
static void *run_sigwait(void *argument)
{
    uint64_t libc = ~((uint64_t)3 << 31), all = UINT64_MAX;
    uint64_t *mask = argument ? &all : &libc;
    (void)syscall(SYS_rt_sigprocmask, SIG_SETMASK, mask, NULL, 8);
    while (storm_continues()) take_some(*mask);
    return NULL;
}

static void *run_sigwait_at_times(void *unused)
{
    sigset_t all, none;
    (void)sigfillset(&all);
    (void)sigemptyset(&none);
    while (storm_continues()) {
        for (unsigned i = 0; i < 100; i++) storm_work(i);
        (void)pthread_sigmask(SIG_SETMASK, &all, NULL);
        take_some(~((uint64_t)3 << 31));
        (void)pthread_sigmask(SIG_SETMASK, &none, NULL);
    }
    (void)pthread_sigmask(SIG_SETMASK, &all, NULL);
    return NULL;
}

static void *run_signalfd(void *unused)
{
    sigset_t all;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, NULL);
    int file = signalfd(-1, &all, SFD_NONBLOCK | SFD_CLOEXEC);
    CHECK(file >= 0);
    for (unsigned i = 0; storm_continues(); i++) {
        struct signalfd_siginfo information;
        storm_work(i);
        if (read(file, &information, sizeof(information)) < 0) continue;
        taken++;
        if (information.ssi_signo != (uint32_t)SIGRTMIN + 1) taken_in_error++;
    }
    close(file);
    return NULL;
}

static void ignore_it(int number, siginfo_t *information, void *context)
{
}

/* The storm's own signal is for the process, so that any of the threads may take it. */
static void run_takers(void *(*first)(void *), void *(*second)(void *), bool blocks_always)
{
    sigset_t all;
    (void)sigfillset(&all);
    handle(SIGRTMIN + 1, ignore_it, SA_RESTART);
    if (blocks_always) (void)pthread_sigmask(SIG_SETMASK, &all, NULL);
    pthread_t threads[2] = {storm_thread(first, NULL), storm_thread(second, (void *)1)};
    (void)pthread_sigmask(SIG_SETMASK, &all, NULL);
    while (storm_continues()) {
        union sigval value = {.sival_int = PAYLOAD};
        (void)sigqueue(getpid(), SIGRTMIN + 1, value);
        sleep_ns(3000000);
    }
    storm_join(threads[0]);
    storm_join(threads[1]);
    storm_note("taken", taken);
    storm_note("of these not ours", taken_in_error);
}

/* A thread that a signal or the clock has called back from sigwait, but that has got no processor yet, looks as if it
 * blocked nothing: where processors are scarce the sampler can be wrong about it, once in a very long while. */
static void storm_sigwait(void)
{
    run_takers(run_sigwait, run_sigwait, true);
    CHECK(taken_in_error <= taken / 1000);
}

static void storm_signalfd(void)
{
    run_takers(run_sigwait, run_signalfd, true);
    CHECK(taken_in_error <= taken / 1000);
}

/* Waits for signals at random times: some microseconds pass between the sampler's check of blocked signals and its
 * signal. */
static void storm_sigwait_at_times(void)
{
    run_takers(run_sigwait_at_times, run_sigwait_at_times, false);
    CHECK(taken_in_error <= 1 + taken / 100);
}

const struct storm storms_of_signals[] = {
    {"longjmp", storm_longjmp},
    {"queued_signals", storm_queued_signals},
    {"own_urg", storm_own_urg},
    {"chained_urg", storm_chained_urg},
    {"mask_of_urg_handler", storm_mask_of_urg_handler},
    {"alternate_stacks", storm_alternate_stacks},
    {"sigwait", storm_sigwait},
    {"signalfd", storm_signalfd},
    {"sigwait_at_times", storm_sigwait_at_times},
    {0},
};
