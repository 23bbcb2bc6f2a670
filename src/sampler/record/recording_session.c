/* SPDX-License-Identifier: MIT */
#include "sampler/record/recording_session.h"

#include "base/kernel.h"
#include "base/plain_text.h"
#include "sampler/kernel/proc_files.h"
#include "sampler/kernel/process_info.h"
#include "sampler/kernel/vdso_clock.h"
#include "sampler/record/finished_recordings.h"

#include <string.h>

enum {
    PATH_MAX_SIZE = 1024,
    PAUSE_NS_MAX = 2000000000,
    TICKS_OF_CUT = 6, /* least ticks of a recording: servers want two samples of a thread, and tables may be missing */
};

void recording_session_choose_clock(struct recording_session *session,
                                    const uint8_t profiler_id[RECORDING_PROFILER_ID_SIZE])
{
    static const uint8_t none[RECORDING_PROFILER_ID_SIZE];
    memcpy(session->profiler_id, profiler_id, sizeof(session->profiler_id));
    if (memcmp(session->profiler_id, none, sizeof(none)) == 0) process_random_bytes(session->profiler_id);
    uint64_t wall_ns = wall_clock_ns();
    session->wall_offset_ns = (int64_t)(wall_ns - monotonic_ns());
}

/* Writes DIRECTORY/PID-START-RANDOM.recording to PATH: other processes with our number, in other namespaces, may use
 * the same folder. */
static void name_recording(const struct recording_session *session, char path[RECORDING_PATH_SIZE])
{
    const char *end = path + RECORDING_PATH_SIZE;
    char *at = plain_text(path, end, session->directory);
    at = plain_number(plain_text(at, end, "/"), end, (uint64_t)kernel_process_id(), 10);
    at = plain_number(plain_text(at, end, "-"), end, session->start_ns, 16);
    at = plain_number(plain_text(at, end, "-"), end, process_random_number(), 16);
    (void)plain_text(at, end, ".recording");
}

static void write_start(struct recording_session *session)
{
    char name[32] = "", path[PATH_MAX_SIZE] = "";
    if (read_small_file("/proc/self/comm", name, sizeof(name)) > 0) name[strlen(name) - 1] = '\0';
    long length = kernel_call4(SYS_readlinkat, AT_FDCWD, kernel_address("/proc/self/exe"), kernel_address(path),
                               sizeof(path) - 1);
    path[length > 0 ? length : 0] = '\0';
    plain_path(path);
    struct recording_process process = {
        .pid = kernel_process_id(),
        .parent_pid = (pid_t)kernel_call3(SYS_getppid, 0, 0, 0),
        .mode = session->mode,
        .period_ns = session->period_ns,
        .wall_offset_ns = session->wall_offset_ns,
        .start_ns = session->start_ns,
        .profiler_id = session->profiler_id,
        .name = session->script[0] ? session->script : name,
        .path = path,
    };
    recording_process(&session->writer, &process);
}

void recording_session_begin(struct recording_session *session, uint64_t start_ns, bool keeps_descriptor)
{
    char path[RECORDING_PATH_SIZE];
    session->start_ns = start_ns;
    session->tick_count = 0;
    name_recording(session, path);
    recording_writer_init(&session->writer, path, keeps_descriptor);
    write_start(session);
}

bool recording_session_is_over(struct recording_session *session, uint64_t now_ns, uint64_t before_ns,
                               uint64_t *ret_start_ns)
{
    uint64_t end_ns = session->start_ns + session->length_ns;
    if (session->length_ns == 0) return false;
    bool is_cut = session->tick_count >= TICKS_OF_CUT && atomic_exchange(&session->is_cut_wanted, false);
    if (!is_cut && before_ns < end_ns && now_ns < end_ns + PAUSE_NS_MAX) return false;
    *ret_start_ns = now_ns > before_ns + PAUSE_NS_MAX ? now_ns - session->period_ns : before_ns;
    return true;
}

static void hand_over(const struct recording_writer *writer)
{
    if (!writer->is_created)
        finished_recordings_note_lost();
    else if (!finished_recordings_add(writer->path))
        (void)kernel_unlink(writer->path);
}

void recording_session_end(struct recording_session *session)
{
    recording_stop(&session->writer);
    recording_writer_close(&session->writer);
    if (session->length_ns > 0) hand_over(&session->writer);
}
