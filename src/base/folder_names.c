/* SPDX-License-Identifier: MIT */
#include "base/folder_names.h"

#include "base/kernel.h"

#include <fcntl.h>
#include <string.h>

void folder_of(struct folder_names *folder, int descriptor)
{
    *folder = (struct folder_names){.descriptor = descriptor};
}

void folder_open(struct folder_names *folder, const char *path)
{
    folder_of(folder, kernel_open(path, O_RDONLY | O_DIRECTORY, 0));
}

static bool read_entries(struct folder_names *folder)
{
    if (folder->descriptor < 0) return false;
    folder->at = 0;
    folder->size =
        kernel_call3(SYS_getdents64, folder->descriptor, kernel_address(folder->entries), sizeof(folder->entries));
    if (folder->size <= 0) folder_close(folder);
    return folder->size > 0;
}

const char *folder_next(struct folder_names *folder)
{
    while (folder->at < folder->size || read_entries(folder)) {
        const struct kernel_entry *entry = (const void *)(folder->entries + folder->at);
        folder->at += entry->size;
        if (strcmp(entry->name, ".") != 0 && strcmp(entry->name, "..") != 0) return entry->name;
    }
    return NULL;
}

void folder_close(struct folder_names *folder)
{
    if (folder->descriptor >= 0) kernel_close(folder->descriptor);
    *folder = (struct folder_names){.descriptor = -1};
}
