/* offbeat doctor: which engines can record on this machine, by trying, and the rights and settings that decide it.
 * SPDX-License-Identifier: MIT */
#include "base/buffer.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "recorder/engines.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

/* Appends which engines can be used. Returns true if one of them sees running threads. */
static bool append_engines(struct buffer *out)
{
    bool sees_running = false;
    struct engine_denial denial;
    buffer_append_text(out, "Engines\n");
    for (size_t i = 0; engines_at(i); i++) {
        const struct engine_ops *engine = engines_at(i);
        bool works = engines_probe(engine, &denial);
        sees_running |= works && engine->sees_running;
        buffer_append_format(out, "  %-7s %s%s\n", engine->name,
                             works ? "works" : "does not work: ", works ? "" : denial.reason);
        if (!works && denial.remedy[0]) buffer_append_format(out, "          the remedy: %s\n", denial.remedy);
    }
    return sees_running;
}

/* --- Rights ------------------------------------------------------------------------------------------------------- */

/* The capabilities that the engines use. */
static const struct {
    const char *name;
    unsigned number;
    const char *use;
} capabilities[] = {
    {"CAP_BPF", CAP_BPF, "programs in the kernel"},
    {"CAP_PERFMON", CAP_PERFMON, "perf events of other users' processes, and of the kernel"},
    {"CAP_SYS_PTRACE", CAP_SYS_PTRACE, "stacks of other users' processes"},
    {"CAP_DAC_READ_SEARCH", CAP_DAC_READ_SEARCH, "files of other users' processes"},
    {"CAP_CHECKPOINT_RESTORE", CAP_CHECKPOINT_RESTORE, "deleted files, and files in containers"},
};

/* Returns the value after KEY in /proc/self/status, in base 16; 0 if there is none. */
static uint64_t effective_capabilities(void)
{
    char line[256];
    static const char key[] = "CapEff:";
    uint64_t set = 0;
    FILE *file = fopen("/proc/self/status", "re");
    while (file && fgets(line, sizeof(line), file)) {
        if (strncmp(line, key, sizeof(key) - 1) == 0) set = strtoull(line + sizeof(key) - 1, NULL, 16);
    }
    if (file) (void)fclose(file);
    return set;
}

static void append_rights(struct buffer *out)
{
    uint64_t set = effective_capabilities();
    struct rlimit files = {0};
    (void)getrlimit(RLIMIT_NOFILE, &files);
    buffer_append_format(out, "Rights\n  user %u\n", (unsigned)geteuid());
    for (size_t i = 0; i < sizeof(capabilities) / sizeof(capabilities[0]); i++)
        buffer_append_format(out, "  %-22s %-4s %s\n", capabilities[i].name,
                             set >> capabilities[i].number & 1 ? "yes" : "no", capabilities[i].use);
    buffer_append_format(out, "  open files: %llu, at most %llu; perf needs one for each thread and processor\n",
                         (unsigned long long)files.rlim_cur, (unsigned long long)files.rlim_max);
}

/* --- Settings ----------------------------------------------------------------------------------------------------- */

static const struct {
    const char *name, *path, *use;
} settings[] = {
    {"kernel.perf_event_paranoid", "/proc/sys/kernel/perf_event_paranoid",
     "perf for ordinary users: at most 2; with system calls: at most 1"},
    {"kernel.yama.ptrace_scope", "/proc/sys/kernel/yama/ptrace_scope", "stacks of own blocked threads: 0"},
    {"kernel.unprivileged_bpf_disabled", "/proc/sys/kernel/unprivileged_bpf_disabled", "bpf needs capabilities anyway"},
    {"kernel.perf_event_mlock_kb", "/proc/sys/kernel/perf_event_mlock_kb", "buffers of perf for ordinary users"},
    {"lockdown", "/sys/kernel/security/lockdown", "\"confidentiality\" forbids bpf"},
};

/* Reads the first line of the file at PATH; "unknown" if it cannot be read. */
static void read_setting(const char *path, char *ret_text, size_t size)
{
    FILE *file = fopen(path, "re");
    bool is_read = file && fgets(ret_text, (int)size, file);
    if (file) (void)fclose(file);
    if (!is_read) (void)snprintf(ret_text, size, "unknown");
    ret_text[strcspn(ret_text, "\n")] = '\0';
}

static void append_settings(struct buffer *out)
{
    char text[128];
    struct utsname kernel;
    buffer_append_text(out, "Settings\n");
    if (uname(&kernel) == 0) buffer_append_format(out, "  Linux %s %s\n", kernel.release, kernel.machine);
    buffer_append_format(out, "  %-34s %-10s %s\n", "type information (BTF)",
                         access("/sys/kernel/btf/vmlinux", R_OK) == 0 ? "yes" : "no", "bpf needs it");
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        read_setting(settings[i].path, text, sizeof(text));
        buffer_append_format(out, "  %-34s %-10s %s\n", settings[i].name, text, settings[i].use);
    }
}

int command_doctor(int argc, char **argv)
{
    const struct option options[] = {{0}};
    const struct command_syntax syntax = {
        .name = "doctor",
        .usage = "",
        .example = "offbeat doctor",
        .about =
            "Tries which engines of offbeat record -p can be used by this user on this machine, names what the others\n"
            "need and the command that grants it, and lists the rights and settings that decide it. The exit status\n"
            "is 1 if no engine sees running threads.",
        .options = options,
    };
    struct operands operands;
    enum exit_status status;
    struct buffer report;
    if (!options_parse(&syntax, argc, argv, &operands, &status)) return (int)status;
    buffer_init(&report, REPORT_BYTES_MAX);
    bool sees_running = append_engines(&report);
    append_rights(&report);
    append_settings(&report);
    status = output_report(&report);
    buffer_fini(&report);
    return status == EXIT_DONE && !sees_running ? EXIT_NO : (int)status;
}
