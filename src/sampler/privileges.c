/* /proc/self/status says what the leader has, /proc/thread-self/status what this thread has. Both files stay open: they
 * can be read after a chroot. The order of the steps in take_over is that of a program that gives up root: groups
 * first, then users, capabilities last. SPDX-License-Identifier: MIT */
#include "sampler/privileges.h"

#include "base/kernel.h"
#include "base/plain_text.h"
#include "sampler/self.h"

#include <errno.h>
#include <linux/capability.h>
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
    const char *supplementary; /* "1 2 3 ", in the text */
    size_t supplementary_size;
};

/* The sampler thread's alone. */
static char leader_text[STATUS_SIZE], own_text[STATUS_SIZE];
static int leader_file = -1, own_file = -1; /* kept open only in a table of our own */
static uint64_t filters_at_start, mode_at_start;
static bool was_confined; /* a filter may kill for an unusual system call */
static uint64_t thread_count;
static bool leader_has_ended;
static struct __user_cap_data_struct seen_capabilities[2];
static long seen_dumpable;

/* --- Reading ------------------------------------------------------------------------------------------------------ */

static bool read_text(int file, const char *path, char *text)
{
    ssize_t got = file >= 0 ? kernel_read_at(file, text, STATUS_SIZE - 1, 0) : self_read_file(path, text, STATUS_SIZE);
    text[got > 0 ? got : 0] = '\0';
    return got > 0 && got < STATUS_SIZE - 1; /* one that was cut says nothing reliable */
}

static void read_ids(const char *text, const char *key, uint32_t ids[IDS])
{
    const char *line = self_status_line(text, key);
    for (unsigned i = 0; i < IDS && line; i++) {
        ids[i] = (uint32_t)plain_parse(&line, 10);
        while (*line == '\t') line++;
    }
}

static struct privileges parse(const char *text)
{
    struct privileges privileges = {0};
    read_ids(text, "Uid", privileges.users);
    read_ids(text, "Gid", privileges.groups);
    const char *groups = self_status_line(text, "Groups"), *end = groups ? strchr(groups, '\n') : NULL;
    privileges.supplementary = groups ? groups : "";
    privileges.supplementary_size = end ? (size_t)(end - groups) : 0;
    const char *rest = end ? end : text; /* the keys that follow come after the groups */
    privileges.inheritable = self_status_number(rest, "CapInh", 16);
    privileges.permitted = self_status_number(rest, "CapPrm", 16);
    privileges.effective = self_status_number(rest, "CapEff", 16);
    privileges.bounding = self_status_number(rest, "CapBnd", 16);
    privileges.has_no_new_privileges = self_status_number(rest, "NoNewPrivs", 10) != 0;
    privileges.seccomp_mode = self_status_number(rest, "Seccomp", 10);
    privileges.seccomp_filters = self_status_number(rest, "Seccomp_filters", 10);
    return privileges;
}

static bool read_leader(struct privileges *ret_privileges)
{
    if (!read_text(leader_file, "/proc/self/status", leader_text)) return false;
    *ret_privileges = parse(leader_text);
    thread_count = self_status_number(leader_text, "Threads", 10);
    const char *state = self_status_line(leader_text, "State");
    leader_has_ended = state && (*state == 'Z' || *state == 'X');
    return true;
}

static bool read_own(struct privileges *ret_privileges)
{
    if (!read_text(own_file, "/proc/thread-self/status", own_text)) return false;
    *ret_privileges = parse(own_text);
    return true;
}

static void read_capabilities(struct __user_cap_data_struct ret_capabilities[2])
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, self_pid()};
    memset(ret_capabilities, 0, 2 * sizeof(*ret_capabilities));
    (void)kernel_call3(SYS_capget, kernel_address(&header), kernel_address(ret_capabilities), 0);
}

static long read_dumpable(void)
{
    return kernel_call3(SYS_prctl, PR_GET_DUMPABLE, 0, 0);
}

static void note_cheap_signs(void)
{
    if (was_confined) return;
    read_capabilities(seen_capabilities);
    seen_dumpable = read_dumpable();
}

void privileges_open(void)
{
    struct privileges leader;
    was_confined = self_is_confined();
    leader_file = own_file = -1;
    thread_count = 0;
    leader_has_ended = false;
    if (self_has_own_descriptors()) {
        leader_file = kernel_open("/proc/self/status", O_RDONLY, 0);
        own_file = kernel_open("/proc/thread-self/status", O_RDONLY, 0);
    }
    bool is_read = read_leader(&leader);
    mode_at_start = is_read ? leader.seccomp_mode : 0;
    filters_at_start = is_read ? leader.seccomp_filters : 0;
    note_cheap_signs();
}

void privileges_close(void)
{
    if (leader_file >= 0) kernel_close(leader_file);
    if (own_file >= 0) kernel_close(own_file);
    leader_file = own_file = -1;
}

bool privileges_have_changed(void)
{
    struct __user_cap_data_struct capabilities[2];
    if (was_confined) return false;
    read_capabilities(capabilities);
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

static bool has_same_ids(const struct privileges *a, const struct privileges *b)
{
    return memcmp(a->users, b->users, sizeof(a->users)) == 0 && memcmp(a->groups, b->groups, sizeof(a->groups)) == 0 &&
           a->supplementary_size == b->supplementary_size &&
           memcmp(a->supplementary, b->supplementary, a->supplementary_size) == 0;
}

static bool is_no_more_powerful(const struct privileges *own, const struct privileges *leader)
{
    return has_same_ids(own, leader) && (own->permitted & ~leader->permitted) == 0 &&
           (own->effective & ~leader->effective) == 0 && (own->inheritable & ~leader->inheritable) == 0 &&
           (own->has_no_new_privileges || !leader->has_no_new_privileges);
}

static void set_groups(const struct privileges *leader)
{
    static uint32_t groups[GROUPS_MAX]; /* the sampler thread's alone */
    const char *at = leader->supplementary;
    long count = 0;
    while (at && *at >= '0' && *at <= '9' && count < GROUPS_MAX) {
        groups[count++] = (uint32_t)plain_parse(&at, 10);
        while (*at == ' ') at++;
    }
    (void)kernel_call3(SYS_setgroups, count, kernel_address(groups), 0);
}

static void set_capabilities(const struct privileges *leader)
{
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct sets[2] = {
        {(uint32_t)leader->effective, (uint32_t)leader->permitted, (uint32_t)leader->inheritable},
        {(uint32_t)(leader->effective >> 32), (uint32_t)(leader->permitted >> 32),
         (uint32_t)(leader->inheritable >> 32)},
    };
    (void)kernel_call3(SYS_capset, kernel_address(&header), kernel_address(sets), 0);
}

/* The permitted capabilities are kept while the users change, as a program that keeps some of them does; those that the
 * leader does not have go last. A change of the effective user makes the process not dumpable: if the program has made
 * itself dumpable again since its own change, it stays so. */
static void take_over(const struct privileges *leader, const struct privileges *own)
{
    enum { IS_DUMPABLE = 1 };
    long dumpable = read_dumpable();
    if (!has_same_ids(leader, own)) {
        (void)kernel_call3(SYS_prctl, PR_SET_KEEPCAPS, 1, 0);
        set_groups(leader);
        (void)kernel_call3(SYS_setresgid, leader->groups[0], leader->groups[1], leader->groups[2]);
        (void)kernel_call3(SYS_setresuid, leader->users[0], leader->users[1], leader->users[2]);
        (void)kernel_call3(SYS_setfsgid, leader->groups[3], 0, 0);
        (void)kernel_call3(SYS_setfsuid, leader->users[3], 0, 0);
        set_capabilities(leader);
        (void)kernel_call3(SYS_prctl, PR_SET_KEEPCAPS, 0, 0);
    } else {
        set_capabilities(leader);
    }
    if (leader->has_no_new_privileges) (void)kernel_call6(SYS_prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0);
    if (dumpable == IS_DUMPABLE && read_dumpable() != IS_DUMPABLE)
        (void)kernel_call3(SYS_prctl, PR_SET_DUMPABLE, IS_DUMPABLE, 0);
}

enum recording_end privileges_follow(void)
{
    struct privileges leader, own;
    note_cheap_signs(); /* before the leader is read: what changes later is seen at the next tick */
    if (!read_leader(&leader) || !read_own(&own)) return RECORDING_END_UNKNOWN_RIGHTS;
    if (leader.seccomp_mode != mode_at_start || leader.seccomp_filters != filters_at_start)
        return RECORDING_END_SECCOMP;
    if (is_no_more_powerful(&own, &leader)) return RECORDING_END_NONE;
    take_over(&leader, &own);
    note_cheap_signs();
    if (!read_leader(&leader) || !read_own(&own)) return RECORDING_END_UNKNOWN_RIGHTS;
    return is_no_more_powerful(&own, &leader) ? RECORDING_END_NONE : RECORDING_END_RIGHTS;
}
