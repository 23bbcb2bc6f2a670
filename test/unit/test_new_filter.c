/* What the handler reads of a thread that it has interrupted at the end of a system call which may have added a seccomp
 * filter. SPDX-License-Identifier: MIT */
#include "sampler/signal_handler.h"
#include "test.h"

#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CODE_SIZE = 16, UNREADABLE = 1, READ = 2 };

/* A thread after the last bytes of CODE, with the arguments of a call that adds a filter. */
struct interrupted {
    uint8_t code[CODE_SIZE];
    uint64_t frame[2]; /* where its frame pointer is: the next one, and a return address */
    struct unwind_module module;
    struct unwind_modules modules;
    struct slot slot;
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
    at.slot.modules = &at.modules;
    at.slot.thread = getpid();
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
    signal_handler_answer(&at->slot, &at->context);
    return at->slot.address_count;
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
        signal_handler_answer(&at->slot, &at->context);
        syscall(SYS_exit, at->slot.address_count == UNREADABLE ? 0 : 1);
    }
    int status = -1;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK_INT(WEXITSTATUS(status), 0);
}

TEST_MAIN()
