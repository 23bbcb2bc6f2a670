/* Works in user code and inside the kernel in turns, for about two seconds of CPU time, and prints which part of it was
 * spent inside the kernel, in per cent. The argument names the signals that it blocks: none, usual (SIGURG), all.
 * SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static volatile uint64_t sink;
static char buffer[1 << 20];
static int zeros, reads = 1;

static uint64_t cpu_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

__attribute__((noinline)) static void works_in_user_code(void)
{
    for (uint64_t i = 0; i < 400000; i++) sink = sink * 31 + i;
    __asm__ volatile("");
}

__attribute__((noinline)) static void works_inside_the_kernel(void)
{
    for (int i = 0; i < reads; i++) (void)!read(zeros, buffer, sizeof(buffer));
    __asm__ volatile("");
}

/* The clock is a system call, so the rounds that measure are few. */
static void measure(int rounds, uint64_t *all_ns, uint64_t *kernel_ns)
{
    for (int i = 0; i < rounds; i++) {
        uint64_t start_ns = cpu_ns();
        works_in_user_code();
        uint64_t middle_ns = cpu_ns();
        works_inside_the_kernel();
        uint64_t end_ns = cpu_ns();
        *kernel_ns += end_ns - middle_ns;
        *all_ns += end_ns - start_ns;
    }
}

/* The speed at which the kernel clears memory differs by a factor of five between machines, so the program measures it:
 * the reads take half as long as the user code. */
static void choose_reads(void)
{
    uint64_t all_ns = 0, kernel_ns = 0;
    measure(20, &all_ns, &kernel_ns);
    reads = 1 + (int)((all_ns - kernel_ns) / 2 / (kernel_ns + 1));
}

int main(int count, char **words)
{
    enum { MEASURED = 40 };
    const char *blocks = count > 1 ? words[1] : "none";
    sigset_t blocked;
    sigemptyset(&blocked);
    if (!strcmp(blocks, "usual")) sigaddset(&blocked, SIGURG);
    if (!strcmp(blocks, "all")) sigfillset(&blocked);
    sigprocmask(SIG_BLOCK, &blocked, NULL);
    zeros = open("/dev/zero", O_RDONLY);
    choose_reads();
    uint64_t all_ns = 0, kernel_ns = 0;
    measure(MEASURED, &all_ns, &kernel_ns);
    uint64_t rounds = 2000000000u / (all_ns / MEASURED);
    for (uint64_t i = 0; i < rounds; i++) {
        works_in_user_code();
        works_inside_the_kernel();
    }
    measure(MEASURED, &all_ns, &kernel_ns);
    printf("%.1f\n", 100.0 * (double)kernel_ns / (double)all_ns);
    return 0;
}
