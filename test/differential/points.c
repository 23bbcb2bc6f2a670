/* Stops programs at random points and compares our stack with libunwind's:
 *
 *   points [--points COUNT] [--every MICROSECONDS] [--verbose] -- COMMAND…
 *   points --attach PID
 *
 * Prints one line of figures. "without-table" are points in code without frame information (libgmp has some in
 * assembler), where the stack ends with its first frame. "worse" are other points where libunwind reaches the root and
 * we do not; an .init section without frame information is a root for libunwind, and not for us. Fails if a stack of
 * ours differs from libunwind's and both reach the root. SPDX-License-Identifier: MIT */
#include "peer.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

struct figures {
    unsigned points, ours_root, without_table, peer_root, equal, different, worse;
    unsigned blocked_points, blocked_equal, blocked_wrong, recovered;
    uint64_t frames;
};

static struct tracee tracee;
static struct stack ours, theirs, blocked;
static struct figures figures;
static bool is_verbose;

static void print_stack(const char *name, const struct stack *stack)
{
    printf("#   %s:", name);
    for (size_t i = 0; i < stack->count && i < 40; i++) printf(" %s", tracee_place(&tracee, stack->addresses[i]));
    printf("%s\n", stack->reached_root ? "" : " …");
}

static bool is_equal(const struct stack *a, const struct stack *b)
{
    return a->count == b->count && memcmp(a->addresses, b->addresses, a->count * sizeof(a->addresses[0])) == 0;
}

/* Ours may know of modules that came since. */
static void walk_both(struct peer *peer)
{
    tracee_walk(&tracee, &ours);
    peer_walk(peer, &theirs);
    if (ours.reached_root && theirs.reached_root && is_equal(&ours, &theirs)) return;
    tracee_refresh_modules(&tracee);
    peer_forget(peer);
    tracee_walk(&tracee, &ours);
    peer_walk(peer, &theirs);
}

static void compare(struct peer *peer)
{
    walk_both(peer);
    figures.points++;
    figures.frames += ours.count;
    figures.ours_root += ours.reached_root;
    bool is_without_table = ours.outcome == UNWIND_NO_TABLE && ours.count == 1;
    figures.without_table += is_without_table;
    figures.peer_root += theirs.reached_root;
    bool equal = is_equal(&ours, &theirs);
    figures.equal += equal;
    if (ours.reached_root && (equal || !theirs.reached_root)) return;
    figures.different += ours.reached_root;
    figures.worse += !ours.reached_root && !is_without_table && theirs.reached_root && !equal;
    if (is_verbose) {
        printf("# point %u, outcome %d\n", figures.points, (int)ours.outcome);
        print_stack("ours", &ours);
        print_stack("libunwind", &theirs);
    }
}

/* Compares the walk without registers in a system call: it must give the same stack or give up. */
static void compare_blocked(void)
{
    uint64_t word = 0;
    if (!tracee_read_word(&tracee, tracee.registers.rip - 2, &word) || (word & 0xffff) != 0x050f) return;
    if ((long long)tracee.registers.orig_rax < 0) return;
    figures.blocked_points++;
    figures.recovered += tracee_walk_without_registers(&tracee, &blocked) > 0;
    bool equal = is_equal(&blocked, &ours);
    figures.blocked_equal += equal;
    if (blocked.reached_root && !equal) figures.blocked_wrong++;
}

static uint32_t random_number(void)
{
    static uint32_t state = 1;
    state = state * 1664525 + 1013904223;
    return state >> 8;
}

/* One of the threads of PID, at random; one that runs, if there is one. */
static pid_t choose_thread(pid_t pid)
{
    char path[96], text[256];
    pid_t chosen = 0;
    bool is_running = false;
    unsigned seen = 0;
    (void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *threads = opendir(path);
    for (struct dirent *entry; threads && (entry = readdir(threads));) {
        if (entry->d_name[0] == '.') continue;
        (void)snprintf(path, sizeof(path), "/proc/%d/task/%.16s/stat", (int)pid, entry->d_name);
        FILE *file = fopen(path, "re");
        size_t got = file ? fread(text, 1, sizeof(text) - 1, file) : 0;
        if (file) (void)fclose(file);
        text[got] = '\0';
        const char *name_end = strrchr(text, ')');
        bool runs = name_end && name_end[1] == ' ' && name_end[2] == 'R';
        if (is_running && !runs) continue;
        if (runs && !is_running) seen = 0;
        is_running = runs;
        if (random_number() % ++seen == 0) chosen = (pid_t)strtol(entry->d_name, NULL, 10);
    }
    if (threads) (void)closedir(threads);
    return chosen;
}

/* Stops THREAD; a signal that it was about to get is delivered when it is let go. */
static bool stop(pid_t thread, int *ret_signal)
{
    int status;
    *ret_signal = 0;
    if (ptrace(PTRACE_SEIZE, thread, NULL, NULL) != 0) return false;
    if (ptrace(PTRACE_INTERRUPT, thread, NULL, NULL) != 0) return false;
    if (waitpid(thread, &status, __WALL) != thread || !WIFSTOPPED(status)) return false;
    if (status >> 16 == 0) *ret_signal = WSTOPSIG(status);
    return true;
}

static pid_t start(char **command)
{
    pid_t pid = fork();
    if (pid != 0) return pid;
    int nowhere = open("/dev/null", O_RDWR);
    (void)dup2(nowhere, STDOUT_FILENO);
    (void)dup2(nowhere, STDERR_FILENO);
    (void)execvp(command[0], command);
    _exit(127);
}

static bool has_ended(pid_t pid, bool is_child)
{
    return is_child ? waitpid(pid, NULL, WNOHANG) != 0 : kill(pid, 0) != 0;
}

static void take_points(pid_t pid, bool is_child, unsigned wanted, unsigned every_us)
{
    struct peer *peer = NULL;
    while (figures.points < wanted && !has_ended(pid, is_child)) {
        const struct timespec pause = {.tv_nsec = (long)(every_us / 2 + random_number() % (every_us + 1)) * 1000};
        (void)nanosleep(&pause, NULL);
        tracee.pid = choose_thread(pid);
        int signal = 0;
        if (tracee.pid == 0) continue;
        if (!stop(tracee.pid, &signal)) {
            if (errno == EPERM) return;
            continue;
        }
        if (!peer) peer = peer_new(&tracee);
        if (peer && tracee_look(&tracee)) {
            compare(peer);
            compare_blocked();
        }
        (void)ptrace(PTRACE_DETACH, tracee.pid, NULL, (long)signal);
    }
    peer_free(peer);
}

int main(int argc, char **argv)
{
    unsigned wanted = 2000, every_us = 2000;
    pid_t attached = 0;
    static const struct option options[] = {{"points", required_argument, NULL, 'p'},
                                            {"every", required_argument, NULL, 'e'},
                                            {"attach", required_argument, NULL, 'a'},
                                            {"verbose", no_argument, NULL, 'v'},
                                            {NULL, 0, NULL, 0}};
    for (int option; (option = getopt_long(argc, argv, "+p:e:a:v", options, NULL)) >= 0;) {
        if (option == 'p')
            wanted = (unsigned)strtoul(optarg, NULL, 10);
        else if (option == 'e')
            every_us = (unsigned)strtoul(optarg, NULL, 10);
        else if (option == 'a')
            attached = (pid_t)strtol(optarg, NULL, 10);
        else if (option == 'v')
            is_verbose = true;
        else
            return 2;
    }
    pid_t pid = attached ? attached : optind < argc ? start(argv + optind) : 0;
    if (pid <= 0) return 2;
    take_points(pid, !attached, wanted, every_us);
    if (!attached) (void)kill(pid, SIGKILL);
    if (figures.points == 0) {
        printf("nothing seen: %s\n", strerror(errno));
        return 77;
    }
    printf("points %u frames %.1f root %u without-table %u libunwind %u equal %u different %u worse %u "
           "in-system-calls %u same-without-registers %u recovered %u wrong %u\n",
           figures.points, figures.points ? (double)figures.frames / figures.points : 0.0, figures.ours_root,
           figures.without_table, figures.peer_root, figures.equal, figures.different, figures.worse,
           figures.blocked_points, figures.blocked_equal, figures.recovered, figures.blocked_wrong);
    tracee_fini(&tracee);
    return figures.different == 0 ? 0 : 1;
}
