/* A file without a name disappears with the process, however that ends.  SPDX-License-Identifier: MIT */
#include "cli/staging.h"

#include "base/array.h"
#include "base/file.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

void staging_init(struct staging *staging)
{
    *staging = (struct staging){.descriptor = -1};
    buffer_init(&staging->memory, STAGING_MEMORY_BYTES_MAX);
}

void staging_fini(struct staging *staging)
{
    buffer_fini(&staging->memory);
    if (staging->descriptor >= 0) (void)close(staging->descriptor);
    free(staging->items);
    *staging = (struct staging){.descriptor = -1};
}

static enum status add_to_file(struct staging *staging, const char *folder, struct slice bytes, struct error *error)
{
    if (staging->descriptor < 0) staging->descriptor = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (staging->descriptor < 0) staging->descriptor = memfd_create("offbeat", MFD_CLOEXEC);
    if (staging->descriptor < 0) return error_set_errno(error, "cannot create a temporary file");
    enum status status = file_write_descriptor(staging->descriptor, bytes, error);
    staging->file_size += status == STATUS_OK ? bytes.size : 0;
    return status;
}

enum status staging_add(struct staging *staging, const char *folder, struct slice bytes, struct error *error)
{
    bool is_in_file = bytes.size > STAGING_MEMORY_BYTES_MAX - staging->memory.size;
    struct staged item = {
        .is_in_file = is_in_file, .offset = is_in_file ? staging->file_size : staging->memory.size, .size = bytes.size};
    if (!array_reserve(&staging->items, &staging->capacity, staging->count + 1, sizeof(item), STAGING_ITEMS_MAX))
        return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory");
    if (is_in_file) {
        enum status status = add_to_file(staging, folder, bytes, error);
        if (status != STATUS_OK) return status;
    } else {
        buffer_append(&staging->memory, bytes.data, bytes.size);
        if (staging->memory.failed) return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory");
    }
    staging->items[staging->count++] = item;
    return STATUS_OK;
}

enum status staging_get(const struct staging *staging, size_t number, struct buffer *scratch, struct slice *ret_bytes,
                        struct error *error)
{
    const struct staged *item = &staging->items[number];
    size_t size = (size_t)item->size, done = 0;
    *ret_bytes = slice_of(staging->memory.data + item->offset, size);
    if (!item->is_in_file) return STATUS_OK;
    uint8_t *place = buffer_reserve(scratch, size);
    if (!place) return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory");
    while (done < size) {
        ssize_t got = pread(staging->descriptor, place + done, size - done, (off_t)(item->offset + done));
        if (got <= 0) return error_set_errno(error, "cannot read a temporary file");
        done += (size_t)got;
    }
    *ret_bytes = slice_of(place, size);
    return STATUS_OK;
}
