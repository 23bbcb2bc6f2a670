/* /proc/self/status shows the leader's rights. It stays open, so that it can be read after a chroot. System calls show
 * the rights of this thread: an open file would leave an entry in the kernel (threads.c). The order of the steps in
 * take_over_rights is that of a program that gives up root: groups first, then users, capabilities last.
 * SPDX-License-Identifier: MIT */
#include "sampler/run/privileges.h"

#include "base/kernel.h"
#include "base/plain_text.h"
#include "base/seccomp_filter.h"
#include "sampler/kernel/own_descriptors.h"
#include "sampler/kernel/proc_files.h"

#include <errno.h>
#include <linux/capability.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>

enum {
    IDS = 4, /* real, effective, saved, of the file system */
    STATUS_SIZE = 64 << 10,
    GROUPS_MAX = 8192,
};

struct privileges {
    uint32_t users[IDS], groups[IDS];
    uint64_t inheritable, permitted, effective, bounding;
    bool has_no_new_privileges;
    uint64_t seccomp_mode, seccomp_filters;
    uint32_t supplementary_count;
    uint32_t supplementary[GROUPS_MAX + 1]; /* first groups if there are more than GROUPS_MAX */
};

/* The sampler thread's alone. */
static char status_text[STATUS_SIZE];
static struct privileges leader, own;
static int leader_file = -1; /* kept open only in a table of our own */
static uint64_t filters_at_start, mode_at_start;
static bool was_confined; /* a filter may kill for an unusual system call */
static uint64_t thread_count;
static bool leader_has_ended;
static struct __user_cap_data_struct seen_capabilities[2];
static long seen_dumpable;

/* --- Reading ------------------------------------------------------------------------------------------------------ */

static bool read_status(int file, const char *path)
{
    ssize_t got = file >= 0 ? kernel_read_at(file, status_text, STATUS_SIZE - 1, 0)
                            : read_small_file(path, status_text, STATUS_SIZE);
    status_text[got > 0 ? got : 0] = '\0';
    return got > 0 && got < STATUS_SIZE - 1; /* a text that was cut is not reliable */
}

static void read_ids(const char *text, const char *key, uint32_t ids[IDS])
{
    const char *line = status_line(text, key);
    for (unsigned i = 0; i < IDS && line; i++) {
        ids[i] = (uint32_t)plain_parse(&line, 10);
        while (*line == '\t') line++;
    }
}

/* All but the list of groups, which is long. */
static void clear_rights(struct privileges *privileges)
{
    memset(privileges, 0, offsetof(struct privileges, supplementary));
}

static void parse_groups(const char *text, struct privileges *privileges)
{
    while (*text == ' ' || *text == '\t') text++;
    while (*text >= '0' && *text <= '9' && privileges->supplementary_count <= GROUPS_MAX) {
        privileges->supplementary[privileges->supplementary_count++] = (uint32_t)plain_parse(&text, 10);
        while (*text == ' ') text++;
    }
}

static void parse_status(struct privileges *privileges)
{
    clear_rights(privileges);
    read_ids(status_text, "Uid", privileges->users);
    read_ids(status_text, "Gid", privileges->groups);
    const char *groups = status_line(status_text, "Groups"), *end = groups ? strchr(groups, '\n') : NULL;
    if (groups) parse_groups(groups, privileges);
    const char *rest = end ? end : status_text; /* the keys that follow come after the groups */
    privileges->inheritable = status_number(rest, "CapInh", 16);
    privileges->permitted = status_number(rest, "CapPrm", 16);
    privileges->effective = status_number(rest, "CapEff", 16);
    privileges->has_no_new_privileges = status_number(rest, "NoNewPrivs", 10) != 0;
    privileges->seccomp_mode = status_number(rest, "Seccomp", 10);
    privileges->seccomp_filters = status_number(rest, "Seccomp_filters", 10);
}

static bool read_leader(void)
{
    if (!read_status(leader_file, "/proc/self/status")) return false;
    parse_status(&leader);
    thread_count = status_number(status_text, "Threads", 10);
    const char *state = status_line(status_text, "State");
    leader_has_ended = state && (*state == 'Z' || *state == 'X');
    return true;
}

/* Reads the capabilities of THREAD: kernel_process_id() is the leader, 0 is this thread. */
static bool read_capabilities(int thread, struct __user_cap_data_struct ret_capabilities[2])
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, thread};
    memset(ret_capabilities, 0, 2 * sizeof(*ret_capabilities));
    return kernel_call3(SYS_capget, kernel_address(&header), kernel_address(ret_capabilities), 0) == 0;
}

static uint64_t both_halves(uint32_t low, uint32_t high)
{
    return (uint64_t)high << 32 | low;
}

/* setfsuid and setfsgid give the present id, and change nothing if the new one cannot be. */
static bool ask_kernel(void)
{
    struct __user_cap_data_struct sets[2];
    clear_rights(&own);
    long users = kernel_call3(SYS_getresuid, kernel_address(&own.users[0]), kernel_address(&own.users[1]),
                              kernel_address(&own.users[2]));
    long groups = kernel_call3(SYS_getresgid, kernel_address(&own.groups[0]), kernel_address(&own.groups[1]),
                               kernel_address(&own.groups[2]));
    own.users[3] = (uint32_t)kernel_call3(SYS_setfsuid, -1, 0, 0);
    own.groups[3] = (uint32_t)kernel_call3(SYS_setfsgid, -1, 0, 0);
    long count = kernel_call3(SYS_getgroups, GROUPS_MAX, kernel_address(own.supplementary), 0);
    if (users != 0 || groups != 0 || count < 0 || !read_capabilities(0, sets)) return false;
    own.supplementary_count = (uint32_t)count;
    own.inheritable = both_halves(sets[0].inheritable, sets[1].inheritable);
    own.permitted = both_halves(sets[0].permitted, sets[1].permitted);
    own.effective = both_halves(sets[0].effective, sets[1].effective);
    own.has_no_new_privileges = kernel_call6(SYS_prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0, 0) == 1;
    return true;
}

static bool read_own(void)
{
    if (!was_confined) return ask_kernel();
    if (!read_status(-1, "/proc/thread-self/status")) return false;
    parse_status(&own);
    return true;
}

static long read_dumpable(void)
{
    return kernel_call3(SYS_prctl, PR_GET_DUMPABLE, 0, 0);
}

static void note_cheap_signs(void)
{
    if (was_confined) return;
    (void)read_capabilities(kernel_process_id(), seen_capabilities);
    seen_dumpable = read_dumpable();
}

void privileges_open(void)
{
    was_confined = filter_is_there();
    thread_count = 0;
    leader_has_ended = false;
    leader_file = process_may_keep(0) ? process_keep(process_open("/proc/self/status", O_RDONLY)) : -1;
    bool is_read = read_leader();
    mode_at_start = is_read ? leader.seccomp_mode : 0;
    filters_at_start = is_read ? leader.seccomp_filters : 0;
    note_cheap_signs();
}

void privileges_close(void)
{
    if (leader_file >= 0) kernel_close(leader_file);
    leader_file = -1;
}

bool privileges_have_changed(void)
{
    struct __user_cap_data_struct capabilities[2];
    if (was_confined) return false;
    (void)read_capabilities(kernel_process_id(), capabilities);
    return memcmp(capabilities, seen_capabilities, sizeof(capabilities)) != 0 || read_dumpable() != seen_dumpable;
}

uint64_t privileges_thread_count(void)
{
    return thread_count;
}

bool privileges_leader_has_ended(void)
{
    return leader_has_ended;
}

/* --- Taking over -------------------------------------------------------------------------------------------------- */

static bool has_same_ids(void)
{
    size_t groups_size = own.supplementary_count * sizeof(*own.supplementary);
    return memcmp(own.users, leader.users, sizeof(own.users)) == 0 &&
           memcmp(own.groups, leader.groups, sizeof(own.groups)) == 0 &&
           own.supplementary_count == leader.supplementary_count &&
           memcmp(own.supplementary, leader.supplementary, groups_size) == 0;
}

static bool is_no_more_powerful(void)
{
    return has_same_ids() && (own.permitted & ~leader.permitted) == 0 && (own.effective & ~leader.effective) == 0 &&
           (own.inheritable & ~leader.inheritable) == 0 && (own.has_no_new_privileges || !leader.has_no_new_privileges);
}

static void set_capabilities(void)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct sets[2] = {
        {(uint32_t)leader.effective, (uint32_t)leader.permitted, (uint32_t)leader.inheritable},
        {(uint32_t)(leader.effective >> 32), (uint32_t)(leader.permitted >> 32), (uint32_t)(leader.inheritable >> 32)},
    };
    (void)kernel_call3(SYS_capset, kernel_address(&header), kernel_address(sets), 0);
}

/* The permitted capabilities are kept while the users change, as a program that keeps some of them does; those that the
 * leader does not have go last. A change of the effective user makes the process not dumpable: if the program has made
 * itself dumpable again since its own change, it stays so. */
static void take_over_rights(void)
{
    enum { IS_DUMPABLE = 1 };
    long dumpable = read_dumpable();
    if (!has_same_ids()) {
        (void)kernel_call3(SYS_prctl, PR_SET_KEEPCAPS, 1, 0);
        (void)kernel_call3(SYS_setgroups, leader.supplementary_count, kernel_address(leader.supplementary), 0);
        (void)kernel_call3(SYS_setresgid, leader.groups[0], leader.groups[1], leader.groups[2]);
        (void)kernel_call3(SYS_setresuid, leader.users[0], leader.users[1], leader.users[2]);
        (void)kernel_call3(SYS_setfsgid, leader.groups[3], 0, 0);
        (void)kernel_call3(SYS_setfsuid, leader.users[3], 0, 0);
        set_capabilities();
        (void)kernel_call3(SYS_prctl, PR_SET_KEEPCAPS, 0, 0);
    } else {
        set_capabilities();
    }
    if (leader.has_no_new_privileges) (void)kernel_call6(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0);
    if (dumpable == IS_DUMPABLE && read_dumpable() != IS_DUMPABLE)
        (void)kernel_call3(SYS_prctl, PR_SET_DUMPABLE, IS_DUMPABLE, 0);
}

enum recording_end privileges_follow(void)
{
    note_cheap_signs(); /* before the leader is read: what changes later is seen at the next tick */
    if (!read_leader()) return RECORDING_END_UNKNOWN_RIGHTS;
    if (leader.seccomp_mode != mode_at_start || leader.seccomp_filters != filters_at_start)
        return RECORDING_END_SECCOMP;
    if (!read_own()) return RECORDING_END_UNKNOWN_RIGHTS;
    if (is_no_more_powerful()) return RECORDING_END_NONE;
    take_over_rights();
    note_cheap_signs();
    if (!read_leader() || !read_own()) return RECORDING_END_UNKNOWN_RIGHTS;
    return is_no_more_powerful() ? RECORDING_END_NONE : RECORDING_END_RIGHTS;
}
