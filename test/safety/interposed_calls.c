/* Makes the calls that liboffbeat.so interposes, also such that fail, and prints what each gives. The output must be
 * the same with and without it. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern int capset(void *, const void *);

#define SHOW(call)                                                                                                     \
    do {                                                                                                               \
        errno = 7;                                                                                                     \
        long result = (long)(call);                                                                                    \
        show(#call, result, errno);                                                                                    \
    } while (0)

static void show(const char *what, long result, int error)
{
    printf("%s = %ld, errno %d\n", what, result, error);
    fflush(stdout);
}

static void *become(void *unused)
{
    for (int i = 0; i < 200; i++)
        if (seteuid(0) != 0) abort();
    return NULL;
}

static void change_ids_at_once(void)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, become, NULL);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
}

static void in_child(int (*call)(void))
{
    int status;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) _exit(call());
    waitpid(child, &status, 0);
    printf("child: %x\n", status);
}

static int to_user_namespace(void)
{
    struct timespec wait = {0, 50000000};
    nanosleep(&wait, NULL); /* the child's own sampler is there then */
    int result = unshare(CLONE_NEWUSER);
    show("unshare(CLONE_NEWUSER)", result, result ? errno : 0);
    return 3;
}

static int to_user_and_pid_namespace(void)
{
    int result = syscall(SYS_unshare, CLONE_NEWUSER | CLONE_NEWPID);
    show("syscall(SYS_unshare, user and pid)", result, result ? errno : 0);
    fflush(stdout);
    if (fork() == 0) {
        printf("pid %d\n", getpid());
        fflush(stdout);
        _exit(0);
    }
    int status;
    wait(&status);
    return 4;
}

static int to_user_after_vfork(void)
{
    int status;
    pid_t child = vfork();
    if (child == 0) {
        if (setgid(65534) || setuid(65534)) _exit(5);
        execlp("id", "id", "-u", NULL);
        _exit(6);
    }
    waitpid(child, &status, 0);
    show("vfork", status, 0);
    return (int)geteuid();
}

static int again_and_again(void)
{
    for (int i = 0; i < 300; i++)
        if (unshare(CLONE_FS) != 0) return 1;
    int file = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC), other = open("/dev/null", O_RDONLY);
    close(other);
    for (int i = 0; i < 100; i++)
        if (setns(file, i % 2 ? CLONE_NEWNS : 0) != 0) return 2;
    return open("/dev/null", O_RDONLY) == other ? 0 : 3;
}

int main(void)
{
    struct timespec wait = {0, 100000000};
    nanosleep(&wait, NULL);
    SHOW(unshare(0x7fffffff));
    SHOW(unshare(0));
    SHOW(setns(-1, 0));
    SHOW(setns(0, CLONE_NEWNET));
    SHOW(setuid(0));
    SHOW(setresuid(-1, -1, -1));
    SHOW(setresgid(0, 0, 0));
    SHOW(setregid(-1, 0));
    SHOW(setreuid(-1, 0));
    SHOW(setegid(0));
    SHOW(setfsuid(0));
    SHOW(setfsgid(-1));
    SHOW(setgroups(100000, NULL));
    SHOW(capset(NULL, NULL));
    SHOW(chroot("/nowhere"));
    SHOW(prctl(PR_SET_SECCOMP, 2, NULL));
    SHOW(prctl(PR_SET_SECCOMP, 2, 1));
    SHOW(prctl(-1, 0, 0, 0, 0));
    SHOW(prctl(PR_GET_DUMPABLE));
    SHOW(syscall(SYS_seccomp, 1, 0, NULL));
    SHOW(syscall(SYS_seccomp, 1, 0, 1));
    SHOW(syscall(SYS_seccomp, 99, 0, 1));
    SHOW(syscall(100000));
    SHOW(syscall(-1));
    SHOW(syscall(SYS_setuid, 0));
    SHOW(syscall(SYS_chroot, "/nowhere"));
    SHOW(syscall(SYS_prctl, PR_GET_DUMPABLE, 0, 0, 0, 0));
    SHOW(syscall(446, -1, 0));
    SHOW((syscall(SYS_mmap, NULL, 8192L, (long)PROT_READ, (long)(MAP_PRIVATE | MAP_ANONYMOUS), -1L, 0L) > 0));
    SHOW(syscall(SYS_mmap, NULL, 8192L, (long)PROT_READ, (long)MAP_PRIVATE, 0L, 123L));
    SHOW(syscall(SYS_close, 1000));
    in_child(to_user_namespace);
    in_child(to_user_and_pid_namespace);
    in_child(to_user_after_vfork);
    in_child(again_and_again);
    change_ids_at_once();
    SHOW(setuid(65534));
    SHOW(setuid(0));
    SHOW(chroot("/"));
    return 0;
}
