/* Gives up rights in the way that the first argument names, and looks at once (libc's function, or "syscall") or after
 * 300 ms ("raw": the instruction itself) whether some thread of this process still has more than the first one.
 *
 *   rights WAY libc|syscall|raw
 *
 * Prints each difference, and "sampler MS" if a thread named offbeat is there at the end. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

extern int capset(void *, const void *);
static const char *how;

static void sleep_ms(long ms)
{
    struct timespec t = {ms / 1000, ms % 1000 * 1000000};
    nanosleep(&t, NULL);
}

static long raw(long number, long a, long b, long c)
{
    long result;
    register long d __asm__("r10") = 0;
    register long e __asm__("r8") = 0;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(d), "r"(e)
                     : "rcx", "r11", "memory");
    return result;
}

#define CALL(libc, number, a, b, c)                                                                                    \
    (how[0] == 'l'   ? (long)(libc)                                                                                    \
     : how[0] == 's' ? syscall(number, (long)(a), (long)(b), (long)(c), 0L, 0L)                                        \
                     : raw(number, (long)(a), (long)(b), (long)(c)))

static int drop_capabilities(void)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct none[2] = {{0}};
    return (int)CALL(capset(&header, none), SYS_capset, &header, none, 0);
}

static int become_user(void)
{
    return CALL(setgid(65534), SYS_setgid, 65534, 0, 0) != 0 || CALL(setuid(65534), SYS_setuid, 65534, 0, 0) != 0;
}

static int go(const char *way)
{
    static const gid_t groups[] = {7, 8, 9};
    if (!strcmp(way, "setuid")) return become_user();
    if (!strcmp(way, "setgid")) return (int)CALL(setgid(12), SYS_setgid, 12, 0, 0);
    if (!strcmp(way, "seteuid")) return (int)CALL(seteuid(12), SYS_setresuid, -1, 12, -1);
    if (!strcmp(way, "setreuid")) return (int)CALL(setreuid(12, 12), SYS_setreuid, 12, 12, 0);
    if (!strcmp(way, "setresuid")) return (int)CALL(setresuid(12, 13, 14), SYS_setresuid, 12, 13, 14);
    if (!strcmp(way, "setresgid")) return (int)CALL(setresgid(12, 13, 14), SYS_setresgid, 12, 13, 14);
    if (!strcmp(way, "setgroups")) return (int)CALL(setgroups(3, groups), SYS_setgroups, 3, groups, 0);
    if (!strcmp(way, "initgroups")) return initgroups("nobody", 65534);
    if (!strcmp(way, "setfsuid")) return (int)CALL(setfsuid(12), SYS_setfsuid, 12, 0, 0);
    if (!strcmp(way, "capset")) return drop_capabilities();
    if (!strcmp(way, "no_new_privs"))
        return (int)CALL(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0);
    if (!strcmp(way, "keepcaps"))
        return prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) != 0 || become_user() || drop_capabilities();
    if (!strcmp(way, "chroot")) {
        mkdir("/tmp/offbeat-jail", 0755);
        return CALL(chroot("/tmp/offbeat-jail"), SYS_chroot, "/tmp/offbeat-jail", 0, 0) != 0 || chdir("/") ||
               become_user();
    }
    return 2;
}

static void read_status(int tasks, const char *tid, char text[16384])
{
    char path[64];
    snprintf(path, sizeof path, "%s/status", tid);
    int file = openat(tasks, path, O_RDONLY);
    ssize_t got = file < 0 ? -1 : read(file, text, 16383);
    text[got > 0 ? got : 0] = 0;
    if (file >= 0) close(file);
}

static const char *line(const char *text, const char *key, char value[4096])
{
    const char *at = strstr(text, key);
    value[0] = 0;
    if (at) sscanf(at + strlen(key), "%4095[^\n]", value);
    return value;
}

static int compare(const char *leader, const char *other)
{
    static const char *const same[] = {"\nUid:", "\nGid:", "\nGroups:", "\nNoNewPrivs:", "\nSeccomp:"};
    static const char *const less[] = {"\nCapPrm:", "\nCapEff:", "\nCapInh:"};
    char name[4096], a[4096], b[4096];
    int is_sampler = !strcmp(line(other, "Name:\t", name), "offbeat");
    if (!*other) return 0;
    for (unsigned i = 0; i < sizeof same / sizeof *same; i++)
        if (strcmp(line(leader, same[i], a), line(other, same[i], b)))
            printf("%s has%s%s, the first thread%s\n", name, same[i], b, a);
    for (unsigned i = 0; i < sizeof less / sizeof *less; i++)
        if (strtoull(line(other, less[i], b), NULL, 16) & ~strtoull(line(leader, less[i], a), NULL, 16))
            printf("%s has%s%s, the first thread%s\n", name, less[i], b, a);
    return is_sampler;
}

static int look(int tasks)
{
    static char leader[16384], other[16384];
    char tid[32];
    int samplers = 0;
    snprintf(tid, sizeof tid, "%d", getpid());
    read_status(tasks, tid, leader);
    DIR *directory = fdopendir(dup(tasks));
    rewinddir(directory);
    for (struct dirent *entry; (entry = readdir(directory));) {
        if (entry->d_name[0] == '.' || !strcmp(entry->d_name, tid)) continue;
        read_status(tasks, entry->d_name, other);
        samplers += compare(leader, other);
    }
    closedir(directory);
    return samplers;
}

int main(int count, char **words)
{
    how = words[2];
    int tasks = open("/proc/self/task", O_RDONLY | O_DIRECTORY);
    sleep_ms(300);
    if (!look(tasks)) puts("no sampler at the start");
    struct timespec before, after;
    clock_gettime(CLOCK_MONOTONIC, &before);
    if (go(words[1])) return perror(words[1]), 2;
    clock_gettime(CLOCK_MONOTONIC, &after);
    if (how[0] == 'r') sleep_ms(300);
    int samplers = look(tasks);
    sleep_ms(300);
    samplers += look(tasks);
    puts(samplers ? "sampler" : "no sampler");
    fprintf(stderr, "took %ld us\n",
            (after.tv_sec - before.tv_sec) * 1000000 + (after.tv_nsec - before.tv_nsec) / 1000);
    return 0;
}
