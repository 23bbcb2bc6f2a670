/* A child of the host itself would be the host's: its SIGCHLD handler would run, and its wait(2) for any child would
 * return ours. So a process between the two, which shares the host's memory and sends no signal when it ends, starts
 * the helper and waits for it; only a wait that asks for such children sees it (__WCLONE, wait(2)). The thread that
 * starts such a process is stopped until the process ends (CLONE_VFORK), so the library has a separate thread for it.
 * SPDX-License-Identifier: MIT */
#include "sdk/helper_process.h"

#include "base/environment.h"
#include "base/kernel.h"
#include "base/thread_denial.h"
#include "format/recording/record_environment.h"
#include "sampler/sampler.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    STACK_BYTES = 64 << 10,
    THREAD_STACK_BYTES = 256 << 10,
    FIRST_PAUSE_NS = 1000000, /* the first pause between two checks whether the helper has ended; it grows */
    LAST_PAUSE_NS = 50000000,
    EXEC_FAILED = 127,
    SIGRTMAX_OF_KERNEL = 64,
    VARIABLES_MAX = 16,
    VARIABLE_SIZE = 4200,
};

struct helper {
    const char *arguments[4];
    char *variables[VARIABLES_MAX + 1];
    uint64_t timeout_ns;
    pthread_t thread;
    pid_t thread_id;
    uint8_t
        *memory; /* memory of the two processes; here a leak checker finds it, which cannot stop a thread in vfork */
    int status;  /* wait status of the helper; -1: it was not run, or had to be killed */
    atomic_bool has_ended, is_cancelled;
};

/* --- Finding ------------------------------------------------------------------------------------------------------ */

static bool is_executable(const char *path)
{
    struct stat status;
    return access(path, X_OK) == 0 && stat(path, &status) == 0 && S_ISREG(status.st_mode);
}

/* Returns the file that this code was loaded from; false if its folder cannot be trusted. For a program that has the
 * static library inside, dladdr gives what the caller of exec put into argv[0], so the kernel is asked instead; and a
 * user who starts a set-user-ID program may link it into their own folder. */
static bool find_own_file(char ret_path[PATH_MAX])
{
    Dl_info own, program;
    const void *entry = (const void *)(uintptr_t)getauxval(AT_ENTRY);
    if (!dladdr((const void *)helper_find, &own) || !own.dli_fname) return false;
    bool is_in_program = dladdr(entry, &program) && program.dli_fbase == own.dli_fbase;
    if (!is_in_program) return snprintf(ret_path, PATH_MAX, "%s", own.dli_fname) < PATH_MAX;
    if (!environment_is_trusted()) return false;
    ssize_t length = readlink("/proc/self/exe", ret_path, PATH_MAX - 1);
    if (length <= 0) return false;
    ret_path[length] = '\0';
    return true;
}

bool helper_find(const char *chosen, char ret_path[PATH_MAX])
{
    static const char *const places[] = {"offbeat-helper", "../libexec/offbeat/offbeat-helper",
                                         "../../libexec/offbeat/offbeat-helper"};
    char own[PATH_MAX];
    if (chosen && *chosen) {
        int length = snprintf(ret_path, PATH_MAX, "%s", chosen);
        return length < PATH_MAX && is_executable(ret_path);
    }
    const char *slash = find_own_file(own) ? strrchr(own, '/') : NULL;
    for (size_t i = 0; slash && i < sizeof(places) / sizeof(places[0]); i++) {
        int length = snprintf(ret_path, PATH_MAX, "%.*s/%s", (int)(slash - own), own, places[i]);
        if (length > 0 && length < PATH_MAX && is_executable(ret_path)) return true;
    }
    (void)snprintf(ret_path, PATH_MAX, "%s", OFFBEAT_HELPER_PATH);
    return is_executable(ret_path);
}

/* --- The two processes: no libc in them, for they share the host's memory ----------------------------------------- */

/* Makes the kernel kill the calling process with its parent: nobody needs the result of the helper then, and shared
 * memory lives as long as its last user. */
static void end_with_parent(void)
{
    (void)kernel_call3(SYS_prctl, PR_SET_PDEATHSIG, SIGKILL, 0);
}

static int become_helper(void *context)
{
    struct helper *helper = context;
    uint64_t none = 0;
    end_with_parent();
    for (int number = 1; number <= SIGRTMAX_OF_KERNEL; number++)
        kernel_handle_as_usual(number); /* exec would keep ignored signals ignored */
    (void)kernel_call4(SYS_rt_sigprocmask, SIG_SETMASK, kernel_address(&none), 0, sizeof(none));
    int nothing = kernel_open("/dev/null", O_RDWR, 0);
    for (int number = 0; number <= STDERR_FILENO; number++) (void)kernel_call3(SYS_dup2, nothing, number, 0);
    (void)kernel_call3(SYS_close_range, STDERR_FILENO + 1, UINT32_MAX, 0);
    (void)kernel_call3(SYS_execve, kernel_address(helper->arguments[0]), kernel_address(helper->arguments),
                       kernel_address(helper->variables));
    (void)kernel_call3(SYS_exit, EXEC_FAILED, 0, 0);
    return EXEC_FAILED;
}

static bool wait_for_end(long child, struct helper *helper)
{
    struct timespec pause = {.tv_nsec = FIRST_PAUSE_NS};
    uint64_t waited_ns = 0;
    for (; waited_ns < helper->timeout_ns && !atomic_load(&helper->is_cancelled);
         waited_ns += (uint64_t)pause.tv_nsec) {
        long ended = kernel_call4(SYS_wait4, child, kernel_address(&helper->status), WNOHANG, 0);
        if (ended != 0) return ended == child;
        (void)kernel_call3(SYS_nanosleep, kernel_address(&pause), 0, 0);
        pause.tv_nsec += pause.tv_nsec / 4;
        if (pause.tv_nsec > LAST_PAUSE_NS) pause.tv_nsec = LAST_PAUSE_NS;
    }
    (void)kernel_call3(SYS_kill, child, SIGKILL, 0);
    (void)kernel_call4(SYS_wait4, child, 0, 0, 0);
    return false;
}

static int run_between(void *context)
{
    struct helper *helper = context;
    end_with_parent();
    (void)kernel_call3(SYS_close_range, 0, UINT32_MAX, 0); /* keeps nothing open that the host closes */
    kernel_handle_as_usual(SIGCHLD);                       /* a process that ignores it receives no status */
    long child = kernel_clone(become_helper, helper, helper->memory + 2 * STACK_BYTES, CLONE_VM | CLONE_VFORK | SIGCHLD,
                              NULL, NULL);
    if (child < 0 || !wait_for_end(child, helper)) helper->status = -1;
    (void)kernel_call3(SYS_exit, 0, 0, 0);
    return 0;
}

/* --- The host's side ---------------------------------------------------------------------------------------------- */

/* Writes the helper's environment to MEMORY. Other variables are left out: LD_PRELOAD would make the library profile
 * the helper, too, and DEBUGINFOD_URLS would make the helper ask the network. With AT_SECURE it has no variables. */
static void choose_variables(struct helper *helper, char *memory)
{
    static const char *const names[] = {"PATH",   "HOME", "XDG_CACHE_HOME", RECORD_ENVIRONMENT_CACHE_DIRECTORY,
                                        "TMPDIR", "LANG", "LD_LIBRARY_PATH"};
    size_t count = 0;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *value = environment_get(names[i]);
        char *variable = memory + count * VARIABLE_SIZE;
        if (!value || snprintf(variable, VARIABLE_SIZE, "%s=%s", names[i], value) >= VARIABLE_SIZE) continue;
        helper->variables[count++] = variable;
    }
    helper->variables[count] = NULL;
}

static void run_helper(struct helper *helper)
{
    helper->memory = malloc(2 * STACK_BYTES + (size_t)VARIABLES_MAX * VARIABLE_SIZE);
    if (!helper->memory) return;
    choose_variables(helper, (char *)helper->memory + (size_t)2 * STACK_BYTES);
    long between = kernel_clone(run_between, helper, helper->memory + STACK_BYTES, CLONE_VM | CLONE_VFORK, NULL, NULL);
    while (between >= 0 && waitpid((pid_t)between, NULL, (int)__WCLONE) < 0 && errno == EINTR) continue;
    free(helper->memory);
}

static void *see_to_helper(void *context)
{
    struct helper *helper = context;
    (void)prctl(PR_SET_NAME, "offbeat-helper");
    helper->thread_id = sampler_leave_out();
    run_helper(helper);
    atomic_store(&helper->has_ended, true);
    sampler_wake();
    return NULL;
}

struct helper *helper_start(const char *path, const char *request, const char *payloads, uint64_t timeout_ns)
{
    pthread_attr_t attributes;
    struct helper *helper = calloc(1, sizeof(*helper));
    if (!helper) return NULL;
    *helper = (struct helper){.arguments = {path, request, payloads}, .timeout_ns = timeout_ns, .status = -1};
    (void)pthread_attr_init(&attributes);
    (void)pthread_attr_setstacksize(&attributes, THREAD_STACK_BYTES);
    struct thread_denial denial = {0};
    int error;
    do error = pthread_create(&helper->thread, &attributes, see_to_helper, helper);
    while (thread_denial_may_end(&denial, error));
    (void)pthread_attr_destroy(&attributes);
    if (error == 0) return helper;
    free(helper);
    return NULL;
}

bool helper_has_ended(const struct helper *helper)
{
    return atomic_load(&helper->has_ended);
}

void helper_cancel(struct helper *helper)
{
    atomic_store(&helper->is_cancelled, true);
}

int helper_finish(struct helper *helper)
{
    (void)pthread_join(helper->thread, NULL);
    int status = helper->status;
    sampler_take_in(helper->thread_id);
    free(helper);
    if (status == -1 || !WIFEXITED(status) || WEXITSTATUS(status) == EXEC_FAILED) return -1;
    return WEXITSTATUS(status);
}
