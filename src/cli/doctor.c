/* offbeat doctor: which engines can record on this machine, by trying, and the rights and settings that decide it.
 * SPDX-License-Identifier: MIT */
#include "base/buffer.h"
#include "base/json_writer.h"
#include "cli/commands.h"
#include "cli/options.h"
#include "cli/output.h"
#include "recorder/engines.h"
#include "recorder/rights.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

/* A report as text, or as the members of a JSON object. */
struct report {
    struct buffer *out;
    struct json_writer *json; /* NULL: text */
};

static void report_engine(const struct report *report, const char *name, const struct engine_denial *denial)
{
    bool works = denial->reason[0] == '\0';
    if (report->json) {
        json_begin_object(report->json);
        json_member_text(report->json, "name", name);
        json_member_bool(report->json, "works", works);
        json_member_text(report->json, "reason", denial->reason);
        json_member_text(report->json, "remedy", denial->remedy);
        json_end_object(report->json);
        return;
    }
    buffer_append_format(report->out, "  %-7s %s%s\n", name, works ? "works" : "does not work: ", denial->reason);
    if (denial->remedy[0]) buffer_append_format(report->out, "          the remedy: %s\n", denial->remedy);
}

/* Reports which engines can be used. Returns true if one of them sees running threads. */
static bool report_engines(const struct report *report)
{
    bool sees_running = false;
    struct engine_denial denial;
    if (report->json) json_begin_array_member(report->json, "engines");
    if (!report->json) buffer_append_text(report->out, "Engines\n");
    for (size_t i = 0; engines_at(i); i++) {
        const struct engine_ops *engine = engines_at(i);
        bool works = engines_probe(engine, &denial);
        sees_running |= works && engine->sees_running;
        if (works) denial = (struct engine_denial){0};
        report_engine(report, engine->name, &denial);
    }
    if (report->json) json_end_array(report->json);
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

static void write_rights(struct json_writer *json, const struct rlimit *files)
{
    json_member_u64(json, "user", geteuid());
    json_begin_object_member(json, "capabilities");
    for (size_t i = 0; i < sizeof(capabilities) / sizeof(capabilities[0]); i++)
        json_member_bool(json, capabilities[i].name, rights_have(capabilities[i].number));
    json_end_object(json);
    json_member_u64(json, "open_files", files->rlim_cur);
    json_member_u64(json, "open_files_max", files->rlim_max);
}

static void report_rights(const struct report *report)
{
    struct rlimit files = {0};
    (void)getrlimit(RLIMIT_NOFILE, &files);
    if (report->json) {
        write_rights(report->json, &files);
        return;
    }
    buffer_append_format(report->out, "Rights\n  user %u\n", (unsigned)geteuid());
    for (size_t i = 0; i < sizeof(capabilities) / sizeof(capabilities[0]); i++)
        buffer_append_format(report->out, "  %-22s %-4s %s\n", capabilities[i].name,
                             rights_have(capabilities[i].number) ? "yes" : "no", capabilities[i].use);
    buffer_append_format(report->out,
                         "  open files: %llu, at most %llu; perf needs one for each thread and processor\n",
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

static void report_setting(const struct report *report, const char *name, const char *value, const char *use)
{
    if (report->json)
        json_member_text(report->json, name, value);
    else
        buffer_append_format(report->out, "  %-34s %-10s %s\n", name, value, use);
}

static void report_settings(const struct report *report)
{
    char text[128];
    struct utsname kernel;
    bool has_kernel = uname(&kernel) == 0;
    if (report->json) json_member_text(report->json, "kernel", has_kernel ? kernel.release : "");
    if (report->json) json_begin_object_member(report->json, "settings");
    if (!report->json) buffer_append_text(report->out, "Settings\n");
    if (!report->json && has_kernel)
        buffer_append_format(report->out, "  Linux %s %s\n", kernel.release, kernel.machine);
    report_setting(report, "type information (BTF)", access("/sys/kernel/btf/vmlinux", R_OK) == 0 ? "yes" : "no",
                   "bpf needs it");
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        read_setting(settings[i].path, text, sizeof(text));
        report_setting(report, settings[i].name, text, settings[i].use);
    }
    if (report->json) json_end_object(report->json);
}

/* Writes all parts of the report into OUT. Returns true if an engine sees running threads. */
static bool report_machine(struct buffer *out, bool as_json)
{
    struct json_writer json = json_writer_of(out);
    const struct report report = {.out = out, .json = as_json ? &json : NULL};
    if (as_json) json_begin_object(&json);
    bool sees_running = report_engines(&report);
    report_rights(&report);
    report_settings(&report);
    if (as_json) json_end_object(&json);
    if (as_json) buffer_append_byte(out, '\n');
    return sees_running;
}

int command_doctor(int argc, char **argv)
{
    bool as_json = false;
    const struct option options[] = {
        {"json", 0, OPTION_SWITCH, &as_json, .help = "one JSON object, for programs"},
        {0},
    };
    const struct command_syntax syntax = {
        .name = "doctor",
        .usage = "[--json]",
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
    bool sees_running = report_machine(&report, as_json);
    status = output_report(&report);
    buffer_fini(&report);
    return status == EXIT_DONE && !sees_running ? EXIT_NO : (int)status;
}
