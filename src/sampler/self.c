/* SPDX-License-Identifier: MIT */
#include "sampler/self.h"

#include "base/kernel.h"
#include "base/plain_text.h"
#include "sampler/clock.h"

#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/prctl.h>

uint64_t self_monotonic_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

uint64_t self_wall_ns(void)
{
    return clock_ns(CLOCK_REALTIME);
}

pid_t self_pid(void)
{
    return (pid_t)kernel_call3(SYS_getpid, 0, 0, 0);
}

uint32_t self_processor_count(void)
{
    uint64_t allowed[1024] = {0}; /* room for 65536 processors */
    uint32_t count = 0;
    long size = kernel_call3(SYS_sched_getaffinity, 0, sizeof(allowed), kernel_address(allowed));
    for (long i = 0; i < size / (long)sizeof(*allowed); i++) {
        for (uint64_t word = allowed[i]; word != 0; word &= word - 1) count++;
    }
    return count > 0 ? count : 1;
}

static bool has_own_descriptors;
static int memory_file = -1; /* kept open only in a table of our own */

bool self_own_descriptors(void)
{
    enum { CLOSE_RANGE_UNSHARE_FLAG = 1u << 1 };
    memory_file = -1;
    has_own_descriptors =
        !self_is_confined() && kernel_call3(SYS_close_range, 0, UINT32_MAX, CLOSE_RANGE_UNSHARE_FLAG) == 0;
    if (has_own_descriptors) memory_file = kernel_open("/proc/self/mem", O_RDONLY, 0); /* while we may */
    return has_own_descriptors;
}

bool self_has_own_descriptors(void)
{
    return has_own_descriptors;
}

void self_close_descriptors(void)
{
    if (memory_file >= 0) kernel_close(memory_file);
    memory_file = -1;
}

/* A process that is not dumpable may not open its /proc/self/mem, but may ask for its own memory all the same. */
static size_t read_without_file(uint64_t address, void *buffer, size_t size)
{
    struct {
        uint64_t address, size;
    } from = {address, size}, to = {(uint64_t)(uintptr_t)buffer, size};
    if (self_is_confined()) return 0;
    long got = kernel_call6(SYS_process_vm_readv, self_pid(), kernel_address(&to), 1, kernel_address(&from), 1, 0);
    return got < 0 ? 0 : (size_t)got;
}

/* A shorter slice than others have lets a thread preempt them (Linux 6.12; before, this does nothing). */
void self_wake_promptly(void)
{
    enum { SLICE_NS = 100000, NICE_OF_ZERO = 20 };
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
    } attributes = {.size = sizeof(attributes), .policy = SCHED_OTHER, .runtime = SLICE_NS};
    if (self_is_confined()) return;
    long nice = kernel_call3(SYS_getpriority, PRIO_PROCESS, 0, 0);
    if (nice < 0 || kernel_call3(SYS_sched_getscheduler, 0, 0, 0) != SCHED_OTHER) return;
    attributes.nice = (int32_t)(NICE_OF_ZERO - nice);
    (void)kernel_call3(SYS_sched_setattr, 0, kernel_address(&attributes), 0);
}

size_t self_read_memory(uint64_t address, void *buffer, size_t size)
{
    int file = memory_file >= 0 ? memory_file : kernel_open("/proc/self/mem", O_RDONLY, 0);
    if (file < 0) return read_without_file(address, buffer, size);
    ssize_t got = kernel_read_at(file, buffer, size, address);
    if (has_own_descriptors)
        memory_file = file;
    else
        kernel_close(file);
    return got < 0 ? 0 : (size_t)got;
}

ssize_t self_read_file(const char *path, char *buffer, size_t size)
{
    int descriptor = kernel_open(path, O_RDONLY, 0);
    if (descriptor < 0) return -1;
    size_t filled = 0;
    while (filled < size - 1) {
        ssize_t got = kernel_read(descriptor, buffer + filled, size - 1 - filled);
        if (got <= 0) break;
        filled += (size_t)got;
    }
    kernel_close(descriptor);
    buffer[filled] = '\0';
    return (ssize_t)filled;
}

void self_task_path(char path[SELF_PATH_SIZE], pid_t tid, const char *file)
{
    const char *end = path + SELF_PATH_SIZE;
    char *at = plain_text(path, end, "/proc/self/task/");
    at = plain_number(at, end, (uint64_t)tid, 10);
    at = plain_text(at, end, "/");
    (void)plain_text(at, end, file);
}

/* --- What /proc/…/status says ------------------------------------------------------------------------------------- */

const char *self_status_line(const char *status, const char *key)
{
    for (const char *line = status; line; line = strchr(line, '\n')) {
        if (*line == '\n') line++;
        if (strncmp(line, key, strlen(key)) == 0 && line[strlen(key)] == ':') {
            for (line += strlen(key) + 1; *line == '\t' || *line == ' ';) line++;
            return line;
        }
    }
    return NULL;
}

uint64_t self_status_number(const char *status, const char *key, unsigned base)
{
    const char *line = self_status_line(status, key);
    return line ? plain_parse(&line, base) : 0;
}

/* Not by way of a file: it is asked before there is a table of descriptors to open one in. */
bool self_is_confined(void)
{
    return kernel_call3(SYS_prctl, PR_GET_SECCOMP, 0, 0) != 0;
}

/* --- Credentials -------------------------------------------------------------------------------------------------- */

enum { IDS = 3, GROUPS_MAX = 4096 };

/* Real, effective and saved. */
static void read_ids(const char *status, const char *key, uint32_t ids[IDS])
{
    const char *line = self_status_line(status, key);
    for (unsigned i = 0; i < IDS && line; i++) {
        ids[i] = (uint32_t)plain_parse(&line, 10);
        while (*line == '\t') line++;
    }
}

static void follow_groups(const char *status)
{
    static uint32_t groups[GROUPS_MAX]; /* the sampler thread's alone */
    const char *line = self_status_line(status, "Groups");
    long count = 0;
    while (line && *line >= '0' && *line <= '9' && count < GROUPS_MAX) {
        groups[count++] = (uint32_t)plain_parse(&line, 10);
        while (*line == ' ') line++;
    }
    (void)kernel_call3(SYS_setgroups, count, kernel_address(groups), 0);
}

static void follow_capabilities(const char *leader, const char *own)
{
    enum { VERSION_3 = 0x20080522 };
    uint64_t effective = self_status_number(leader, "CapEff", 16), permitted = self_status_number(leader, "CapPrm", 16);
    uint64_t inheritable = self_status_number(leader, "CapInh", 16);
    if (effective == self_status_number(own, "CapEff", 16) && permitted == self_status_number(own, "CapPrm", 16))
        return;
    struct {
        uint32_t version;
        int thread;
    } header = {VERSION_3, 0};
    uint32_t sets[2][3] = {
        {(uint32_t)effective, (uint32_t)permitted, (uint32_t)inheritable},
        {(uint32_t)(effective >> 32), (uint32_t)(permitted >> 32), (uint32_t)(inheritable >> 32)},
    };
    (void)kernel_call3(SYS_capset, kernel_address(&header), kernel_address(sets), 0);
}

void self_follow_credentials(void)
{
    static char leader[8192], own[8192]; /* the sampler thread's alone */
    uint32_t users[IDS] = {0}, own_users[IDS] = {0}, groups[IDS] = {0}, own_groups[IDS] = {0};
    if (self_read_file("/proc/self/status", leader, sizeof(leader)) <= 0) return;
    if (self_read_file("/proc/thread-self/status", own, sizeof(own)) <= 0) return;
    read_ids(leader, "Uid", users);
    read_ids(own, "Uid", own_users);
    read_ids(leader, "Gid", groups);
    read_ids(own, "Gid", own_groups);
    if (memcmp(users, own_users, sizeof(users)) != 0 || memcmp(groups, own_groups, sizeof(groups)) != 0) {
        follow_groups(leader);
        (void)kernel_call3(SYS_setresgid, groups[0], groups[1], groups[2]);
        (void)kernel_call3(SYS_setresuid, users[0], users[1], users[2]);
    }
    follow_capabilities(leader, own);
}
