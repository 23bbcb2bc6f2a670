/* Runs each program given one instruction at a time, and after every one of them compares our stack with libunwind's:
 *
 *   steps [--limit STEPS] [--verbose] PROGRAM…
 *
 * What is looked at is between the programs' two int3 instructions. One TAP line for each program.
 * SPDX-License-Identifier: MIT */
#include "peer.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SHOWN_MAX = 10, EXCUSED_MAX = 250 };

static struct tracee tracee;
static struct stack ours, theirs, without_registers;
static bool is_verbose;

struct figures {
    unsigned long steps, equal, excused, wrong, wrong_without_registers, resolved_without_registers, recovered;
    uint64_t frames;
    bool is_complete;
};

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

static const struct tracee_module *innermost_module(void)
{
    for (size_t i = 0; i < tracee.module_count; i++) {
        const struct tracee_module *module = &tracee.modules[i];
        if (tracee.registers.rip >= module->start && tracee.registers.rip < module->end) return module;
    }
    return NULL;
}

/* True at "lea -8(%r10), %rsp; ret", or at its second instruction. */
static bool is_after_pops_of_a_realigned_frame(void)
{
    const uint64_t bytes = 0xc3f8628d49, mask = 0xffffffffff;
    uint64_t word = 0;
    return (tracee_read_word(&tracee, tracee.registers.rip, &word) && (word & mask) == bytes) ||
           (tracee_read_word(&tracee, tracee.registers.rip - 4, &word) && (word & mask) == bytes);
}

/* Returns the reason why the stacks may differ here or ours may be incomplete, or NULL. The reasons come from the
 * disassembly or from both walks. */
static const char *excuse(void)
{
    const struct tracee_module *module = innermost_module();
    if (!module || module->table.row_count == 0) return NULL;
    const struct frame_table *table = &module->table;
    const struct machine_rule *rule =
        &table->rules[frame_table_rule_at(table, (uint32_t)(tracee.registers.rip - module->bias))];
    if (rule->kind == RULE_WIDE && table->wide[rule->value].saved[MACHINE_SP].kind == WIDE_IN_REGISTER &&
        ours.reached_root) {
        return "longjmp has the registers that it restores in others, which libunwind does not follow";
    }
    if (strstr(module->path, "/libgcc_s.so")) {
        return "libgcc writes the registers of the frame that catches over its own saved ones before it jumps there";
    }
    if (is_after_pops_of_a_realigned_frame() && !theirs.reached_root) {
        return "gcc does not describe a frame that was realigned and has alloca after the pop of its frame pointer";
    }
    return NULL;
}

static void compare(struct peer *peer, struct figures *figures)
{
    tracee_walk(&tracee, &ours);
    peer_walk(peer, &theirs);
    figures->steps++;
    figures->frames += ours.count;
    if (!is_equal(&ours, &theirs)) {
        /* Its cache takes a return address and the same address that is about to be executed for one. */
        peer_forget(peer);
        peer_walk(peer, &theirs);
    }
    bool equal = is_equal(&ours, &theirs) && ours.reached_root;
    const char *reason = equal ? NULL : excuse();
    figures->equal += equal;
    figures->excused += reason != NULL;
    if (reason && is_verbose) printf("# instruction %lu: %s\n", figures->steps, reason);
    if (!equal && !reason && (figures->wrong++ < SHOWN_MAX || is_verbose)) {
        printf("# instruction %lu, outcome %d\n", figures->steps, (int)ours.outcome);
        print_stack("ours", &ours);
        print_stack("libunwind", &theirs);
    }
    bool is_recovered = tracee_walk_without_registers(&tracee, &without_registers) > 0;
    if (!without_registers.reached_root) return;
    figures->resolved_without_registers++;
    figures->recovered += is_recovered;
    if (is_equal(&ours, &without_registers)) return;
    figures->wrong_without_registers++;
    print_stack("ours", &ours);
    print_stack("without registers", &without_registers);
}

static pid_t start(const char *program)
{
    pid_t pid = fork();
    if (pid != 0) return pid;
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) _exit(77);
    (void)execl(program, program, (char *)NULL);
    _exit(127);
}

/* Lets it run until its next stop. The signal it stopped by; 0 when it is gone. */
static int resume(pid_t pid, int how, int signal)
{
    int status;
    if (ptrace(how, pid, NULL, (long)signal) != 0 || waitpid(pid, &status, 0) != pid) return 0;
    return WIFSTOPPED(status) ? WSTOPSIG(status) : 0;
}

/* True at the int3 of steps_end, which is followed by "nopl 0x5e(%rax)". */
static bool is_at_the_end(void)
{
    uint64_t word = 0;
    return tracee_read_word(&tracee, tracee.registers.rip - 1, &word) && (word & 0xffffffffff) == 0x5e401f0fcc;
}

static void step_through(struct figures *figures, unsigned long limit)
{
    struct peer *peer = peer_new(&tracee);
    int signal = 0;
    tracee_refresh_modules(&tracee);
    while (peer && figures->steps < limit && !figures->is_complete) {
        int stopped_by = resume(tracee.pid, PTRACE_SINGLESTEP, signal);
        if (stopped_by == 0 || !tracee_look(&tracee)) break;
        signal = stopped_by == SIGTRAP ? 0 : stopped_by;
        figures->is_complete = is_at_the_end();
        compare(peer, figures);
    }
    peer_free(peer);
}

/* False if ptrace is denied. */
static bool run_program(const char *program, unsigned long limit, struct figures *figures)
{
    int status;
    tracee.pid = start(program);
    if (waitpid(tracee.pid, &status, 0) != tracee.pid || !WIFSTOPPED(status)) return false;
    if (resume(tracee.pid, PTRACE_CONT, 0) == SIGTRAP && tracee_look(&tracee)) step_through(figures, limit);
    (void)kill(tracee.pid, SIGKILL);
    (void)waitpid(tracee.pid, &status, 0);
    tracee_fini(&tracee);
    return true;
}

int main(int argc, char **argv)
{
    unsigned long limit = 10000000;
    unsigned number = 0, failed = 0;
    static const struct option options[] = {
        {"limit", required_argument, NULL, 'l'}, {"verbose", no_argument, NULL, 'v'}, {NULL, 0, NULL, 0}};
    for (int option; (option = getopt_long(argc, argv, "l:v", options, NULL)) >= 0;) {
        if (option == 'l')
            limit = strtoul(optarg, NULL, 10);
        else if (option == 'v')
            is_verbose = true;
        else
            return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (char **program = argv + optind; *program; program++) {
        const char *name = strrchr(*program, '/') ? strrchr(*program, '/') + 1 : *program;
        struct figures figures = {0};
        number++;
        if (access(*program, X_OK) != 0) {
            printf("ok %u - %s # SKIP was not built here\n", number, name);
            continue;
        }
        if (!run_program(*program, limit, &figures)) {
            printf("ok %u - %s # SKIP ptrace is denied\n", number, name);
            continue;
        }
        printf("# %s: %lu instructions, %.1f frames, %lu equal, %lu excused; without registers %lu resolved (%lu "
               "recovered), %lu wrong\n",
               name, figures.steps, figures.steps ? (double)figures.frames / (double)figures.steps : 0.0, figures.equal,
               figures.excused, figures.resolved_without_registers, figures.recovered, figures.wrong_without_registers);
        bool passed = (figures.is_complete || figures.steps == limit) && figures.wrong == 0 &&
                      figures.wrong_without_registers == 0 && figures.excused <= EXCUSED_MAX;
        failed += !passed;
        printf("%s %u - the stack at every instruction of %s\n", passed ? "ok" : "not ok", number, name);
    }
    printf("1..%u\n", number);
    return failed > 0;
}
