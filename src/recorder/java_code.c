/* SPDX-License-Identifier: MIT */
#include "recorder/java_code.h"

#include "base/clocks.h"
#include "recorder/remote_memory.h"

enum { SHARE = 20 }; /* reading takes at most one part in so many of the time, while code is compiled */

bool java_code_read(struct java_code *java, struct code_files *files, pid_t pid, const struct interpreter_image *image)
{
    const struct process_memory memory = {.gather = remote_gather, .context = &pid};
    if ((java->file && !java->is_wanted) || clock_monotonic_ns() < java->next_ns) return java->file != NULL;
    uint64_t start_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    java->is_wanted = false;
    if (java->image != image->start && hotspot_attach(image, &memory, &java->hotspot)) java->image = image->start;
    struct frame_table table;
    bool is_read =
        java->image == image->start && hotspot_read_code(&java->hotspot, &memory, &table, &java->start, &java->end);
    java->next_ns = clock_monotonic_ns() + SHARE * (clock_ns(CLOCK_THREAD_CPUTIME_ID) - start_ns);
    if (is_read && !java->file) java->file = code_files_add_generated(files);
    if (is_read && !java->file) frame_table_fini(&table);
    if (!is_read || !java->file) return java->file != NULL;
    if (java->file->state == CODE_FILE_HAS_TABLE) frame_table_fini(&java->file->table);
    java->file->table = table;
    java->file->state = CODE_FILE_HAS_TABLE;
    java->is_changed = true;
    return true;
}
