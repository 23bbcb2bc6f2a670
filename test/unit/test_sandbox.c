/* SPDX-License-Identifier: MIT */
#include "sandbox/sandbox.h"
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static const struct sandbox_limits limits = {
    .memory_bytes = (uint64_t)256 << 20, .file_bytes = 1 << 20, .cpu_seconds = 1, .descriptors = 5};

/* Runs TRY in another process, in the sandbox, with the empty temporary file as descriptor 4; the status of
 * waitpid. */
static int run_inside(int (*try)(void))
{
    char path[] = "/tmp/offbeat-sandbox-XXXXXX";
    int file = mkstemp(path), status = -1;
    (void)unlink(path);
    pid_t pid = fork();
    if (pid == 0) {
        (void)dup2(file, 4);
        _exit(sandbox_enter(&limits, NULL) == STATUS_OK ? try() : 99);
    }
    (void)waitpid(pid, &status, 0);
    (void)close(file);
    return status;
}

static bool is_denied(long result)
{
    return result == -1 && errno == EPERM;
}

static int try_everything(void)
{
    struct stat facts;
    if (!is_denied(open("/etc/passwd", O_RDONLY)) || !is_denied(syscall(SYS_open, "/etc/passwd", O_RDONLY))) return 1;
    if (!is_denied(stat("/", &facts)) || !is_denied(access("/", F_OK)) || !is_denied(unlink("/tmp/none"))) return 2;
    if (!is_denied(syscall(SYS_fork)) || !is_denied(syscall(SYS_execve, "/bin/true", NULL, NULL))) return 3;
    if (!is_denied(socket(AF_INET, SOCK_STREAM, 0)) || !is_denied(socket(AF_UNIX, SOCK_STREAM, 0))) return 4;
    if (!is_denied(kill(1, 0)) || !is_denied(syscall(SYS_ptrace, 16, 1, 0, 0))) return 5;
    if (!is_denied((long)mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) return 6;
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED || !is_denied(mprotect(page, 4096, PROT_READ | PROT_EXEC))) return 7;
    if (!is_denied(dup(4)) || !is_denied(fcntl(4, F_DUPFD, 10)) || fcntl(4, F_GETFD) != -1) return 8;
    if (!is_denied(syscall(SYS_openat2, AT_FDCWD, "/", NULL, 0)) || !is_denied(syscall(SYS_memfd_create, "x", 0)))
        return 9;
    if (!is_denied(setrlimit(RLIMIT_NOFILE, &(struct rlimit){100, 100}))) return 10;
    return 0;
}

static int write_some(void)
{
    return write(4, "abc", 3) == 3 && lseek(4, 0, SEEK_SET) == 0 && ftruncate(4, 1) == 0 && lseek(4, 0, SEEK_END) == 1
               ? 0
               : 1;
}

TEST(denies_files_networks_processes_and_code)
{
    int status = run_inside(try_everything);
    CHECK(WIFEXITED(status));
    CHECK_UINT((unsigned)WEXITSTATUS(status), 0);
    CHECK_UINT((unsigned)run_inside(write_some), 0);
}

static int write_much(void)
{
    static char block[64 << 10];
    for (int i = 0; i < 17; i++)
        if (write(4, block, sizeof(block)) < 0) return errno == EFBIG && i == 16 ? 0 : 1;
    return 2;
}

static int allocate_much(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return 0; /* sandbox.c sets no limit */
#else
    return malloc((size_t)512 << 20) ? 1 : 0;
#endif
}

TEST(limits_memory_and_what_is_written)
{
    CHECK_UINT((unsigned)run_inside(write_much), 0);
    CHECK_UINT((unsigned)run_inside(allocate_much), 0);
}

static int loop(void)
{
    static atomic_uint count;
    while (atomic_load(&count) <= UINT_MAX) atomic_fetch_add(&count, 1);
    return 0;
}

TEST(ends_a_process_that_computes_for_too_long)
{
    int status = run_inside(loop);
    CHECK(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == SIGXCPU || WTERMSIG(status) == SIGKILL);
}

TEST_MAIN()
