/* The replies of the signal handler: what it reads of a thread that it has interrupted at the end of a system call
 * which may have added a seccomp filter, and which of a timer's signals it keeps. SPDX-License-Identifier: MIT */
#include "sampler/source/signal_handler.h"
#include "test.h"

#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <math.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CODE_SIZE = 16, UNREADABLE = 1, READ = 2, HITS_AN_ANSWER = 8 };

/* A thread after the last bytes of CODE, with the arguments of a call that adds a filter. */
struct interrupted {
    uint8_t code[CODE_SIZE];
    uint64_t frame[2]; /* target of the frame pointer: the next one, and a return address */
    struct unwind_module module;
    struct unwind_modules modules;
    struct sample_request request;
    ucontext_t context;
};

static struct interrupted *interrupt_after(const char *code, size_t size, bool is_of_file)
{
    static struct interrupted at;
    uint64_t start = (uintptr_t)at.code, end = start + CODE_SIZE;
    memset(&at, 0, sizeof(at));
    memcpy(at.code + CODE_SIZE - size, code, size);
    at.frame[1] = end;
    at.module = (struct unwind_module){.start = start, .end = end + 1};
    at.modules = (struct unwind_modules){.items = &at.module, .count = is_of_file};
    at.request.modules = &at.modules;
    at.request.thread = getpid();
    at.request.timer.timing.signals_a_reply = HITS_AN_ANSWER;
    greg_t *registers = at.context.uc_mcontext.gregs;
    registers[REG_RIP] = registers[REG_RCX] = (greg_t)end;
    registers[REG_RSP] = registers[REG_RBP] = (greg_t)(uintptr_t)at.frame;
    registers[REG_RDI] = PR_SET_SECCOMP;
    registers[REG_RSI] = SECCOMP_MODE_STRICT;
    return &at;
}

static size_t frames_after(const char *code, size_t size, bool is_of_file)
{
    struct interrupted *at = interrupt_after(code, size, is_of_file);
    signal_handler_reply(&at->request, &at->context, ORIGIN_ANY, 1);
    return at->request.replies[0].address_count;
}

#define AFTER(code, is_of_file) frames_after(code, sizeof(code) - 1, is_of_file)

static const char epoll_ctl_call[] = "\xb8\xe9\x00\x00\x00\x0f\x05", prctl_call[] = "\xb8\x9d\x00\x00\x00\x0f\x05",
                  seccomp_call[] = "\xb8\x3d\x01\x00\x00\x0f\x05", any_call[] = "\x4c\x8b\x4c\x24\x08\x0f\x05";

TEST(the_stack_is_read_after_a_call_of_another_number)
{
    CHECK_INT(AFTER(epoll_ctl_call, true), READ);
}

TEST(no_stack_is_read_after_a_call_that_may_have_added_a_filter)
{
    CHECK_INT(AFTER(prctl_call, true), UNREADABLE);
    CHECK_INT(AFTER(seccomp_call, true), UNREADABLE);
    CHECK_INT(AFTER(any_call, true), UNREADABLE);
    CHECK_INT(AFTER(epoll_ctl_call, false), UNREADABLE);
}

/* Strict mode kills for all but read, write, exit and sigreturn. */
TEST(the_handler_makes_no_system_call_under_a_new_filter)
{
    pid_t child = fork();
    if (child == 0) {
        struct interrupted *at = interrupt_after(prctl_call, sizeof(prctl_call) - 1, true);
        if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT) != 0) _exit(2);
        signal_handler_reply(&at->request, &at->context, ORIGIN_ANY, 1);
        syscall(SYS_exit, at->request.replies[0].address_count == UNREADABLE ? 0 : 1);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK_INT(WEXITSTATUS(status), 0);
}

/* --- Which signals are kept ------------------------------------------------------------------------------------------
 */

enum { HITS_MAX = 100, SCANS = 4000 };

/* Simulates SCANS scans with COUNT signals each, every other one in a call. Sets RET_KEPT to how often each was kept.
 * Returns the number of replies. */
static uint32_t keep(uint32_t count, enum signal_origin preferred, uint32_t ret_kept[HITS_MAX])
{
    struct interrupted *at = interrupt_after(prctl_call, sizeof(prctl_call) - 1, true);
    uint32_t replies = 0;
    memset(ret_kept, 0, HITS_MAX * sizeof(*ret_kept));
    at->request.timer.preferred = preferred;
    for (uint32_t scan = 0; scan < SCANS; scan++) {
        at->request.reply_count = 0;
        at->request.timer.signals[ORIGIN_OUTSIDE] = 0;
        at->request.timer.signals[ORIGIN_IN_CALL] = 0;
        for (uint32_t i = 0; i < count; i++) {
            enum signal_origin kind = i % 2 ? ORIGIN_IN_CALL : ORIGIN_OUTSIDE;
            at->context.uc_mcontext.gregs[REG_R15] = i;
            at->request.timer.signals[kind]++;
            signal_handler_reply(&at->request, &at->context, kind, 1);
        }
        for (uint32_t i = 0; i < at->request.reply_count; i++)
            ret_kept[at->request.replies[i].registers.values[MACHINE_R15]]++;
        replies += at->request.reply_count;
    }
    return replies;
}

/* True if each STEPth signal from FIRST on, before END, was kept in CHANCE of all scans, within five standard
 * deviations.
 */
static bool are_kept(const uint32_t *kept, uint32_t first, uint32_t end, uint32_t step, double chance)
{
    double expected = SCANS * chance, bound = 5 * sqrt(expected * (1 - chance));
    for (uint32_t i = first; i < end; i += step) {
        if (fabs(kept[i] - expected) > bound) return false;
    }
    return true;
}

TEST(one_hit_is_kept_where_scans_are_in_time)
{
    uint32_t kept[HITS_MAX];
    CHECK_INT(keep(5, ORIGIN_ANY, kept), SCANS);
    CHECK(are_kept(kept, 0, 5, 1, 1.0 / 5));
}

TEST(one_of_each_eight_hits_is_kept_where_scans_are_late)
{
    uint32_t kept[HITS_MAX];
    CHECK_INT(keep(20, ORIGIN_ANY, kept), 3 * SCANS);
    CHECK(are_kept(kept, 0, 16, 1, 1.0 / 8));
    CHECK(are_kept(kept, 16, 20, 1, 1.0 / 4));
}

TEST(all_hits_have_the_same_chance_where_there_is_no_room_for_more)
{
    uint32_t kept[HITS_MAX];
    CHECK_INT(keep(100, ORIGIN_ANY, kept), REPLIES_MAX * SCANS);
    CHECK(are_kept(kept, 0, 100, 1, REPLIES_MAX / 100.0));
}

TEST(one_hit_of_the_preferred_kind_is_kept)
{
    uint32_t kept[HITS_MAX];
    CHECK_INT(keep(60, ORIGIN_IN_CALL, kept), SCANS);
    CHECK(are_kept(kept, 1, 60, 2, 1.0 / 30));
    CHECK(are_kept(kept, 0, 60, 2, 0));
    CHECK_INT(keep(1, ORIGIN_IN_CALL, kept), SCANS); /* there is none of that kind */
    CHECK(are_kept(kept, 0, 1, 1, 1));
}

/* Two of ten signals end calls of 30 and 60 intervals. */
TEST(long_calls_have_an_answer_apart_for_all_their_time)
{
    enum { FIRST = 3, SECOND = 7, SIGNALS = 10, LONG = 20 };
    struct interrupted *at = interrupt_after(prctl_call, sizeof(prctl_call) - 1, true);
    uint32_t kept[HITS_MAX] = {0}, kept_long[HITS_MAX] = {0};
    at->request.timer.timing.long_call_intervals = LONG;
    for (uint32_t scan = 0; scan < SCANS; scan++) {
        at->request.reply_count = 0;
        at->request.timer.signals[ORIGIN_OUTSIDE] = 0;
        at->request.timer.signals[ORIGIN_IN_CALL] = 0;
        at->request.long_calls = (struct long_calls_total){0};
        for (uint32_t i = 0; i < SIGNALS; i++) {
            uint32_t intervals = i == FIRST ? 30 : i == SECOND ? 60 : LONG - 1;
            at->context.uc_mcontext.gregs[REG_R15] = i;
            at->request.timer.signals[ORIGIN_IN_CALL]++;
            signal_handler_reply(&at->request, &at->context, ORIGIN_IN_CALL, intervals);
        }
        CHECK_INT(at->request.long_calls.count, 2);
        CHECK_INT(at->request.long_calls.intervals, 90);
        CHECK_INT(at->request.reply_count, 1);
        kept[at->request.replies[0].registers.values[MACHINE_R15]]++;
        kept_long[at->request.long_call_reply.registers.values[MACHINE_R15]]++;
    }
    CHECK_INT(kept[FIRST] + kept[SECOND], 0);
    CHECK(are_kept(kept, 0, FIRST, 1, 1.0 / 8));
    CHECK(are_kept(kept_long, FIRST, FIRST + 1, 1, 1.0 / 3));
    CHECK(are_kept(kept_long, SECOND, SECOND + 1, 1, 2.0 / 3));
}

TEST(only_long_calls_are_long_calls)
{
    struct interrupted *at = interrupt_after(prctl_call, sizeof(prctl_call) - 1, true);
    at->request.timer.signals[ORIGIN_IN_CALL] = 1;
    signal_handler_reply(&at->request, &at->context, ORIGIN_IN_CALL, 1000); /* none is wanted */
    CHECK_INT(at->request.long_calls.count, 0);
    at->request.timer.timing.long_call_intervals = 20;
    at->request.timer.signals[ORIGIN_OUTSIDE] = 1;
    signal_handler_reply(&at->request, &at->context, ORIGIN_OUTSIDE, 1000);
    CHECK_INT(at->request.long_calls.count, 0);
    signal_handler_reply(&at->request, &at->context, ORIGIN_ANY, 1000);
    CHECK_INT(at->request.long_calls.count, 0);
}

TEST_MAIN()
