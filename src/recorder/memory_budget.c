/* SPDX-License-Identifier: MIT */
#include "recorder/memory_budget.h"

#include "base/unsigned.h"
#include "recorder/task_files.h"

#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum {
    FILES_MAX = 3 << 10, /* three quarters of the tables that the kernel can have */
    PART = 4,            /* the fourth part of the files is closed at a time if there is too little memory */
    PART_MAX = 32,       /* most of these: the kernel takes up to 20 ms for each table, for which nothing is recorded */
};

uint64_t memory_budget_own_bytes(void)
{
    char text[128];
    char *at = text;
    if (task_read_text(getpid(), "statm", text, sizeof(text)) == 0) return 0;
    (void)strtoull(at, &at, 10);
    uint64_t resident = strtoull(at, &at, 10), shared = strtoull(at, NULL, 10);
    return (resident > shared ? resident - shared : 0) * (uint64_t)sysconf(_SC_PAGESIZE);
}

size_t memory_budget_files_max(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur / 2 > FILES_MAX) return FILES_MAX;
    return limit.rlim_cur / 2;
}

size_t memory_budget_note(struct memory_budget *budget, uint64_t bytes, size_t open, size_t files_max)
{
    size_t beyond = open > files_max ? open - files_max : 0;
    budget->bytes = bytes;
    budget->is_exceeded = budget->bytes_max != 0 && bytes > budget->bytes_max;
    size_t part = budget->is_exceeded ? least(open / PART + 1, PART_MAX) : 0;
    return greatest(beyond, part);
}
