/* A child of the host would be the host's: its SIGCHLD handler would run, and its wait(2) for any child would return
 * ours. So a process between the two starts the helper and ends at once; the helper's parent is then init, or the
 * nearest subreaper. The one between sends no signal when it ends, and only a wait that asks for such children sees it
 * (__WCLONE, wait(2)). Both share the host's memory until the helper's exec, while the calling thread is stopped
 * (CLONE_VFORK).
 * SPDX-License-Identifier: MIT */
#include "sdk/helper_process.h"

#include "base/environment.h"
#include "base/kernel.h"
#include "format/recording/record_environment.h"

#include <dlfcn.h>
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    STACK_BYTES = 64 << 10,
    SIGRTMAX_OF_KERNEL = 64,
    VARIABLES_MAX = 16,
    VARIABLE_SIZE = 4200,
};

struct start {
    const char *arguments[5];
    char *variables[VARIABLES_MAX + 1];
    uint8_t *memory; /* stacks of the two processes, then the variables */
    int error;       /* errno of what failed; 0: the helper runs */
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

/* The helper itself closes the descriptors that exec keeps open. */
static int become_helper(void *context)
{
    struct start *start = context;
    const struct rlimit no_core = {0};
    uint64_t none = 0;
    for (int number = 1; number <= SIGRTMAX_OF_KERNEL; number++)
        kernel_handle_as_usual(number); /* exec would keep ignored signals ignored */
    (void)kernel_call4(SYS_rt_sigprocmask, SIG_SETMASK, kernel_address(&none), 0, sizeof(none));
    (void)kernel_call4(SYS_prlimit64, 0, RLIMIT_CORE, kernel_address(&no_core), 0);
    int nothing = kernel_open("/dev/null", O_RDWR, 0);
    for (int number = 0; number <= STDERR_FILENO; number++) (void)kernel_dup2(nothing, number);
    long failed = kernel_call3(SYS_execve, kernel_address(start->arguments[0]), kernel_address(start->arguments),
                               kernel_address(start->variables));
    start->error = (int)-failed;
    (void)kernel_call3(SYS_exit, 1, 0, 0);
    return 1;
}

static int run_between(void *context)
{
    struct start *start = context;
    long child = kernel_clone(become_helper, start, start->memory + 2 * STACK_BYTES, CLONE_VM | CLONE_VFORK | SIGCHLD,
                              NULL, NULL);
    if (child < 0) start->error = (int)-child;
    (void)kernel_call3(SYS_exit, 0, 0, 0);
    return 0;
}

/* --- The host's side ---------------------------------------------------------------------------------------------- */

/* Writes the helper's environment to MEMORY. Other variables are left out: LD_PRELOAD would make the library profile
 * the helper, too, and DEBUGINFOD_URLS would make the helper ask the network. With AT_SECURE it has no variables. */
static void choose_variables(struct start *start, char *memory)
{
    static const char *const names[] = {"PATH",   "HOME", "XDG_CACHE_HOME", RECORD_ENVIRONMENT_CACHE_DIRECTORY,
                                        "TMPDIR", "LANG", "LD_LIBRARY_PATH"};
    size_t count = 0;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *value = environment_get(names[i]);
        char *variable = memory + count * VARIABLE_SIZE;
        if (!value || snprintf(variable, VARIABLE_SIZE, "%s=%s", names[i], value) >= VARIABLE_SIZE) continue;
        start->variables[count++] = variable;
    }
    start->variables[count] = NULL;
}

int helper_start(const char *path, const char *root)
{
    struct start start = {.arguments = {path, "--spool", root, "--ends"}};
    start.memory = malloc(2 * STACK_BYTES + (size_t)VARIABLES_MAX * VARIABLE_SIZE);
    if (!start.memory) return ENOMEM;
    choose_variables(&start, (char *)start.memory + (size_t)2 * STACK_BYTES);
    long between = kernel_clone(run_between, &start, start.memory + STACK_BYTES, CLONE_VM | CLONE_VFORK, NULL, NULL);
    if (between < 0) start.error = (int)-between;
    while (between >= 0 && waitpid((pid_t)between, NULL, (int)__WCLONE) < 0 && errno == EINTR) continue;
    free(start.memory);
    return start.error;
}
