/* The code cache is a few heaps of blocks, each of which has a blob: a compiled method, the interpreter, or a stub. Of
 * the call frame information that is written for each, the ordinary builder makes a table. SPDX-License-Identifier: MIT
 */
#include "recorder/hotspot.h"

#include "interpreters/dynamic_symbols.h"
#include "recorder/java_frames.h"

#include <stdlib.h>
#include <string.h>

enum {
    ENTRIES_MAX = 1 << 14, /* entries of the table of structures */
    NAME_BYTES = 64,
    BLOBS_MAX = 1 << 18,
    BLOB_BYTES = 256, /* room for the members that are read */
    HEAP_BYTES_MAX = 1 << 30,
    FRAME_WORDS_MAX = 1 << 16,
    SECTION_BYTES_MAX = 1 << 28,
    WORD = 8,
};

/* --- Tables ------------------------------------------------------------------------------------------------------- */

struct reader {
    const struct process_memory *memory;
    struct memory_pieces pieces;
};

static bool read_bytes(struct reader *reader, uint64_t address, void *bytes, size_t size)
{
    return process_memory_read(reader->memory, &reader->pieces, address, bytes, size);
}

/* Reads the text whose address is at PLACE. Texts lie among others, so that some bytes behind them can be read. */
static bool read_text(struct reader *reader, uint64_t place, char text[NAME_BYTES])
{
    uint64_t address = 0;
    text[0] = '\0';
    if (!read_bytes(reader, place, &address, sizeof(address))) return false;
    if (address == 0) return true;
    if (!read_bytes(reader, address, text, NAME_BYTES - 1)) return false;
    text[NAME_BYTES - 1] = '\0';
    return true;
}

/* A member that is wanted, and where its offset or address goes. */
struct wanted {
    const char *type, *field;
    uint32_t *offset;
    uint64_t *address;
};

/* Description of the table of structures: its own members, as the machine exports them. */
struct structures {
    uint64_t first, stride, type_name, field_name, offset, address;
};

static bool read_exported(struct reader *reader, const struct dynamic_symbols *symbols, const char *name,
                          uint64_t *ret_value)
{
    struct memory_range range;
    return dynamic_symbols_find(symbols, reader->memory, &reader->pieces, name, &range) &&
           read_bytes(reader, range.address, ret_value, sizeof(*ret_value));
}

static bool find_structures(struct reader *reader, const struct interpreter_image *image, struct structures *found)
{
    struct dynamic_symbols symbols;
    return dynamic_symbols_open(image, reader->memory, &reader->pieces, &symbols) &&
           read_exported(reader, &symbols, "gHotSpotVMStructs", &found->first) &&
           read_exported(reader, &symbols, "gHotSpotVMStructEntryArrayStride", &found->stride) &&
           read_exported(reader, &symbols, "gHotSpotVMStructEntryTypeNameOffset", &found->type_name) &&
           read_exported(reader, &symbols, "gHotSpotVMStructEntryFieldNameOffset", &found->field_name) &&
           read_exported(reader, &symbols, "gHotSpotVMStructEntryOffsetOffset", &found->offset) &&
           read_exported(reader, &symbols, "gHotSpotVMStructEntryAddressOffset", &found->address) && found->first != 0;
}

/* Fills in the COUNT members of WANTED. Returns the number of those that there are. */
static size_t find_members(struct reader *reader, const struct structures *structures, const struct wanted *wanted,
                           size_t count)
{
    size_t found = 0;
    for (unsigned i = 0; i < ENTRIES_MAX && found < count; i++) {
        char type[NAME_BYTES], field[NAME_BYTES];
        uint64_t entry = structures->first + i * structures->stride;
        if (!read_text(reader, entry + structures->type_name, type) || type[0] == '\0') return found;
        for (size_t at = 0; at < count; at++) {
            const struct wanted *one = &wanted[at];
            if (strcmp(type, one->type) != 0) continue;
            if (!read_text(reader, entry + structures->field_name, field)) return found;
            if (strcmp(field, one->field) != 0) continue;
            uint64_t offset = 0;
            if (one->offset && !read_bytes(reader, entry + structures->offset, &offset, sizeof(offset))) return found;
            if (one->offset) *one->offset = (uint32_t)offset;
            if (one->address && !read_bytes(reader, entry + structures->address, one->address, sizeof(uint64_t)))
                return found;
            found++;
        }
    }
    return found;
}

/* Returns true if the members are where they are read. */
static bool is_sound(const struct hotspot_layout *layout)
{
    const uint32_t offsets[] = {layout->blob_name,       layout->blob_frame_size, layout->blob_frame_complete,
                                layout->blob_code_begin, layout->blob_code_end,   layout->blob_code_offset,
                                layout->blob_data_offset};
    for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
        if (offsets[i] > BLOB_BYTES - WORD) return false;
    }
    uint32_t length_size = layout->block_used - layout->block_length;
    return length_size <= WORD && layout->block_used < BLOB_BYTES;
}

bool hotspot_attach(const struct interpreter_image *image, const struct process_memory *memory,
                    struct hotspot *ret_hotspot)
{
    struct reader reader = {.memory = memory};
    struct structures structures;
    struct hotspot found = {0};
    struct hotspot_layout *layout = &found.layout;
    struct wanted wanted[] = {
        {"CodeCache", "_heaps", NULL, &found.heaps},
        {"CodeHeap", "_memory", &layout->heap_memory, NULL},
        {"CodeHeap", "_log2_segment_size", &layout->heap_log2_segment, NULL},
        {"VirtualSpace", "_low", &layout->space_low, NULL},
        {"VirtualSpace", "_high", &layout->space_high, NULL},
        {"HeapBlock::Header", "_length", &layout->block_length, NULL},
        {"HeapBlock::Header", "_used", &layout->block_used, NULL},
        {"CodeBlob", "_name", &layout->blob_name, NULL},
        {"CodeBlob", "_frame_size", &layout->blob_frame_size, NULL},
        {"CodeBlob", "_frame_complete_offset", &layout->blob_frame_complete, NULL},
        {"CodeBlob", "_data_offset", &layout->blob_data_offset, NULL},
        {"CodeBlob", "_code_begin", &layout->blob_code_begin, NULL},
        {"CodeBlob", "_code_end", &layout->blob_code_end, NULL},
        {"CodeBlob", "_code_offset", &layout->blob_code_offset, NULL},
    };
    enum { COUNT = sizeof(wanted) / sizeof(wanted[0]), OF_ONE_VERSION = 2 };
    if (MACHINE_LINK_REGISTER != MACHINE_REGISTER_OTHER || !find_structures(&reader, image, &structures)) return false;
    size_t count = find_members(&reader, &structures, wanted, COUNT);
    bool has_code = layout->blob_code_end != 0 || layout->blob_code_offset != 0;
    layout->block_header_size = (layout->block_used / WORD + 1) * WORD;
    if (count < COUNT - OF_ONE_VERSION || !has_code || found.heaps == 0 || !is_sound(layout)) return false;
    *ret_hotspot = found;
    return true;
}

/* --- Blobs ----------------------------------------------------------------------------------------------------------
 */

/* The code of one heap, and what is written of it. */
struct heap {
    uint64_t low, high;
    uint8_t *bytes; /* copy of its memory */
    unsigned log2_segment;
};

static void put_blob(struct buffer *section, struct reader *reader, const struct heap *heap,
                     const struct java_blob *blob)
{
    char name[NAME_BYTES] = "";
    (void)read_bytes(reader, blob->name, name, sizeof(name) - 1);
    bool is_interpreter = text_begins_with(slice_of_text(name), "Interpreter");
    if (is_interpreter || text_begins_with(slice_of_text(name), "StubRoutines"))
        java_frames_with_pointer(section, blob, is_interpreter);
    else if (blob->frame_words >= JAVA_FRAME_WORDS_MIN)
        java_frames_compiled(section, blob, heap->bytes + (blob->code_begin - heap->low));
    else
        java_frames_none(section, blob);
}

/* Returns the blob that is at ADDRESS, where the memory is BYTES. */
static struct java_blob blob_at(const struct hotspot_layout *layout, uint64_t address, const uint8_t *bytes)
{
    struct java_blob blob;
    memcpy(&blob.name, bytes + layout->blob_name, WORD);
    memcpy(&blob.frame_words, bytes + layout->blob_frame_size, sizeof(blob.frame_words));
    if (layout->blob_code_offset == 0) {
        memcpy(&blob.code_begin, bytes + layout->blob_code_begin, WORD);
        memcpy(&blob.code_end, bytes + layout->blob_code_end, WORD);
        memcpy(&blob.frame_complete, bytes + layout->blob_frame_complete, sizeof(blob.frame_complete));
        return blob;
    }
    uint32_t begin = 0, end = 0;
    int16_t complete = 0;
    memcpy(&begin, bytes + layout->blob_code_offset, sizeof(begin));
    memcpy(&end, bytes + layout->blob_data_offset, sizeof(end));
    memcpy(&complete, bytes + layout->blob_frame_complete, sizeof(complete));
    blob.code_begin = address + begin;
    blob.code_end = address + end;
    blob.frame_complete = complete;
    return blob;
}

static void put_heap(struct buffer *section, struct reader *reader, const struct hotspot_layout *layout,
                     const struct heap *heap)
{
    uint64_t size = heap->high - heap->low, place = 0;
    for (unsigned i = 0; i < BLOBS_MAX && place + layout->block_header_size + BLOB_BYTES < size; i++) {
        uint64_t length = 0, header = place + layout->block_header_size;
        memcpy(&length, heap->bytes + place + layout->block_length, layout->block_used - layout->block_length);
        if (length == 0 || length > size >> heap->log2_segment) return;
        bool is_used = heap->bytes[place + layout->block_used] != 0;
        struct java_blob blob = blob_at(layout, heap->low + header, heap->bytes + header);
        uint64_t end = heap->low + place + (length << heap->log2_segment);
        bool is_sound = blob.code_begin >= heap->low + place && blob.code_begin < blob.code_end &&
                        blob.code_end <= end && end <= heap->high && blob.frame_words < FRAME_WORDS_MAX &&
                        blob.frame_complete < (int64_t)(blob.code_end - blob.code_begin);
        if (is_used && is_sound) put_blob(section, reader, heap, &blob);
        place += length << heap->log2_segment;
    }
}

static bool read_heap(struct reader *reader, const struct hotspot_layout *layout, uint64_t address, struct heap *heap)
{
    uint32_t log2_segment = 0;
    uint64_t space = address + layout->heap_memory;
    *heap = (struct heap){.low = 0};
    if (!read_bytes(reader, space + layout->space_low, &heap->low, WORD) ||
        !read_bytes(reader, space + layout->space_high, &heap->high, WORD) ||
        !read_bytes(reader, address + layout->heap_log2_segment, &log2_segment, sizeof(log2_segment)))
        return false;
    if (log2_segment > 16 || heap->high <= heap->low || heap->high - heap->low > HEAP_BYTES_MAX) return false;
    heap->log2_segment = log2_segment;
    heap->bytes = malloc((size_t)(heap->high - heap->low));
    return heap->bytes && read_bytes(reader, heap->low, heap->bytes, (size_t)(heap->high - heap->low));
}

bool hotspot_read_code(const struct hotspot *hotspot, const struct process_memory *memory,
                       struct frame_table *ret_table, uint64_t *ret_base, uint64_t *ret_end)
{
    struct {
        int32_t count, capacity;
        uint64_t items;
    } list = {0}; /* HotSpot's GrowableArray */
    struct reader reader = {.memory = memory};
    struct buffer section = {.maximum = SECTION_BYTES_MAX};
    uint64_t address = 0, low = UINT64_MAX, high = 0;
    bool is_read = read_bytes(&reader, hotspot->heaps, &address, sizeof(address)) && address != 0 &&
                   read_bytes(&reader, address, &list, sizeof(list)) && list.count > 0 &&
                   list.count <= HOTSPOT_HEAPS_MAX;
    java_frames_begin(&section);
    for (int32_t i = 0; is_read && i < list.count; i++) {
        struct heap heap = {0};
        is_read = read_bytes(&reader, list.items + (uint64_t)i * WORD, &address, sizeof(address)) &&
                  read_heap(&reader, &hotspot->layout, address, &heap);
        if (is_read) put_heap(&section, &reader, &hotspot->layout, &heap);
        if (heap.low < low) low = heap.low;
        if (heap.high > high) high = heap.high;
        free(heap.bytes);
    }
    is_read = is_read && !section.failed && high - low <= HEAP_BYTES_MAX;
    const struct frame_table_source source = {.eh_frame = {.bytes = buffer_slice(&section)}, .base = low};
    if (is_read) is_read = frame_table_build(&source, ret_table);
    buffer_fini(&section);
    if (!is_read) return false;
    *ret_base = low;
    *ret_end = high;
    return true;
}
