/* Searches the list that the linker sorted, and runs the instructions of one function up to the address.
 * SPDX-License-Identifier: MIT */
#include "unwind/frame_lookup.h"

#include "unwind/frame_table_private.h"

enum { PAIR_BYTES = 8, EMPTY_MAX = 4 };

bool frame_lookup_init(const struct frame_table_source *source, struct frame_lookup *ret_lookup)
{
    struct cursor pairs;
    uint64_t count = 0;
    if (!frame_header_pairs(source, &pairs, &count)) return false;
    *ret_lookup = (struct frame_lookup){
        .eh_frame = source->eh_frame,
        .header_address = source->header_address,
        .pairs = slice_of(pairs.position, count * PAIR_BYTES),
    };
    return true;
}

/* Returns the address of the code (WHICH 0) or the FDE (WHICH 1) in pair INDEX. */
static uint64_t pair_address(const struct frame_lookup *lookup, size_t index, unsigned which)
{
    int32_t distance;
    memcpy(&distance, lookup->pairs.data + index * PAIR_BYTES + which * sizeof(distance), sizeof(distance));
    return lookup->header_address + (uint64_t)(int64_t)distance;
}

/* Finds the last pair whose code begins at ADDRESS or before. */
static bool find_pair(const struct frame_lookup *lookup, uint64_t address, size_t *ret_index)
{
    size_t low = 0, high = lookup->pairs.size / PAIR_BYTES;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (pair_address(lookup, middle, 0) <= address)
            low = middle + 1;
        else
            high = middle;
    }
    *ret_index = low - 1;
    return low > 0;
}

/* Reads the FDE of PAIR, or the next one with the same start: an empty function may hide it (frame_build.c). */
static bool read_function(const struct frame_lookup *lookup, size_t pair, struct frame_lookup_work *work)
{
    uint64_t start = pair_address(lookup, pair, 0);
    uint64_t offset = pair_address(lookup, pair, 1) - lookup->eh_frame.address;
    for (unsigned i = 0; i < EMPTY_MAX && offset < lookup->eh_frame.bytes.size; i++) {
        size_t next = SIZE_MAX;
        work->fde.start = work->fde.end = 0;
        if (cfi_read_fde(&lookup->eh_frame, offset, &work->fde, &next)) return true;
        if (work->fde.start != start || work->fde.end != start) return false;
        offset = next;
    }
    return false;
}

static bool compile_row(void *context, uint64_t start, uint64_t end, const struct cfi_row *row)
{
    struct frame_lookup_work *work = context;
    if (work->address < start || work->address >= end) return true;
    work->is_found = machine_compile_one_rule(&work->lookup->eh_frame, &work->fde, row, &work->rule, &work->wide);
    return false;
}

bool frame_lookup_find(const struct frame_lookup *lookup, uint64_t address, struct frame_lookup_work *work)
{
    size_t pair = 0;
    if (!find_pair(lookup, address, &pair)) return false;
    work->fde.cie.instructions = slice_of(NULL, 0); /* drops the CIE of an earlier lookup */
    work->machine.initial_of = NULL;
    work->machine.versions = 0;
    work->lookup = lookup;
    work->address = address;
    work->is_found = false;
    if (!read_function(lookup, pair, work) || address < work->fde.start || address >= work->fde.end) return false;
    (void)cfi_run(&lookup->eh_frame, &work->fde, &work->machine, compile_row, work);
    work->table = (struct frame_table){
        .rules = &work->rule, .wide = &work->wide, .wide_count = 1, .expressions = lookup->eh_frame.bytes.data};
    return work->is_found;
}
