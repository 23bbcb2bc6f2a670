/* SPDX-License-Identifier: MIT */
#include "cli/thread_text.h"

#include "cli/message.h"
#include "profile/processes.h"

#include <stdlib.h>

enum { THREADS_LISTED = 20 };

bool has_several_processes(const struct profile *profile)
{
    return profile->processes.count > 2; /* entry 0 means "not known" */
}

void append_thread_name(const struct profile *profile, struct thread_id thread, struct buffer *out)
{
    const struct thread *named = profile_thread(profile, thread);
    const char *name = profile_c_string(profile, named->name), *id = profile_c_string(profile, named->id);
    char process[PROCESS_LABEL_SIZE];
    if (name[0] == '\0' && id[0] == '\0') {
        buffer_append_text(out, "(none)");
        return;
    }
    if (name[0] != '\0') buffer_append_format(out, "%s (", name);
    if (has_several_processes(profile) && process_label(profile, named->process, process))
        buffer_append_format(out, "%s/", process);
    buffer_append_format(out, "%s%s", id, name[0] != '\0' ? ")" : "");
}

size_t count_threads(const struct profile *profile)
{
    bool *has_samples = calloc(profile->threads.count, sizeof(*has_samples));
    size_t count = 0;
    if (!has_samples) return 0;
    for (size_t i = 0; i < profile->samples.count; i++) {
        bool *has = &has_samples[profile->samples.thread[i].index];
        count += !*has;
        *has = true;
    }
    free(has_samples);
    return count;
}

void message_unknown_thread(const struct profile *profile, const char *pattern)
{
    struct buffer list = {.maximum = SIZE_MAX};
    size_t count = profile->threads.count;
    for (uint32_t i = 1; i < count && i <= THREADS_LISTED; i++) {
        if (i > 1) buffer_append_text(&list, ", ");
        append_thread_name(profile, (struct thread_id){i}, &list);
    }
    if (count > THREADS_LISTED + 1) buffer_append_format(&list, " and %zu more", count - 1 - THREADS_LISTED);
    if (count <= 1)
        message("no thread matches \"%s\"; the profile names no threads", pattern);
    else
        message("no thread matches \"%s\"; the threads are %.*s", pattern, SLICE_ARGUMENTS(buffer_slice(&list)));
    buffer_fini(&list);
}
