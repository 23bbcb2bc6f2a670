/* SPDX-License-Identifier: MIT */
#include "symbolize/function_bounds.h"

#include <stdlib.h>

#include "base/array.h"
#include "base/partition_point.h"
#include "unwind/cfi.h"

static int compare_bounds(const void *left, const void *right)
{
    const struct function_bound *a = left, *b = right;
    return (a->start > b->start) - (a->start < b->start);
}

static bool collect_bounds(struct function_bounds *bounds, const struct cfi_section *section)
{
    struct cfi_fde fde = {0};
    for (size_t offset = 0, next; offset != SIZE_MAX; offset = next) {
        bool is_function = cfi_read_fde(section, offset, &fde, &next);
        if (!is_function || fde.start == 0 || fde.end <= fde.start) continue;
        if (!ARRAY_PUSH(bounds, FUNCTION_BOUNDS_MAX, (struct function_bound){fde.start, fde.end})) return false;
    }
    return true;
}

bool function_bounds_read(struct function_bounds *bounds, const struct elf_file *file)
{
    const struct elf_section *table = elf_file_section(file, ".eh_frame");
    const struct elf_section *header = elf_file_section(file, ".eh_frame_hdr");
    if (!table || !table->has_bytes) return true;
    struct buffer bytes;
    buffer_init(&bytes, ELF_SECTION_BYTES_MAX + 1);
    bool ok = true;
    if (elf_file_read_section(file, table, &bytes, NULL) == STATUS_OK) {
        struct cfi_section section = {
            .bytes = buffer_slice(&bytes),
            .address = table->address,
            .data_address = header ? header->address : 0,
        };
        ok = collect_bounds(bounds, &section);
    }
    ok = ok && !bytes.failed;
    buffer_fini(&bytes);
    if (bounds->count > 0) qsort(bounds->items, bounds->count, sizeof(*bounds->items), compare_bounds);
    return ok;
}

const struct function_bound *function_bounds_find(const struct function_bounds *bounds, uint64_t address)
{
    size_t after = PARTITION_POINT(bounds->count, i, bounds->items[i].start <= address);
    return after > 0 && address < bounds->items[after - 1].end ? &bounds->items[after - 1] : NULL;
}

void function_bounds_fini(struct function_bounds *bounds)
{
    free(bounds->items);
    *bounds = (struct function_bounds){0};
}
