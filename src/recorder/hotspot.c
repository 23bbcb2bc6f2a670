/* The code cache is a few heaps of blocks, each of which has a blob: a compiled method, the interpreter, or a stub. For
 * each blob call frame information is written, of which the ordinary builder makes a table.
 * SPDX-License-Identifier: MIT */
#include "recorder/hotspot.h"

#include "base/array.h"
#include "interpreters/dynamic_symbols.h"

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

/* --- Call frame information --------------------------------------------------------------------------------------- */

/* DWARF's numbers of registers. */
enum { X86_64_RBP = 6, X86_64_RSP = 7, X86_64_RETURN = 16 };

enum {
    CFA_OFFSET = 0x80,
    CFA_RESTORE = 0xc0,
    CFA_ADVANCE_4 = 0x04,
    CFA_REMEMBER_STATE = 0x0a,
    CFA_RESTORE_STATE = 0x0b,
    CFA_DEFINE = 0x0c,
    CFA_DEFINE_OFFSET = 0x0e,
    RETURN_PLACE = 1, /* words below the CFA */
    FP_PLACE = 2,
    SENDER_SP_PLACE = 3,
};

struct section {
    ARRAY_OF(uint8_t) bytes;
    bool has_failed;
};

static void put(struct section *section, uint64_t value, size_t size)
{
    if (!ARRAY_RESERVE(&section->bytes, size, SECTION_BYTES_MAX)) {
        section->has_failed = true;
        return;
    }
    memcpy(section->bytes.items + section->bytes.count, &value, size); /* little-endian, like its processor */
    section->bytes.count += size;
}

static void put_number(struct section *section, uint64_t value)
{
    for (; value >= 0x80; value >>= 7) put(section, value | 0x80, 1);
    put(section, value, 1);
}

static void put_saved(struct section *section, unsigned dwarf, unsigned place)
{
    put(section, CFA_OFFSET | dwarf, 1);
    put_number(section, place);
}

static void put_cfa(struct section *section, uint64_t size)
{
    put(section, CFA_DEFINE_OFFSET, 1);
    put_number(section, size);
}

/* Goes on at PLACE, an offset in the code; *AT is the place so far. */
static void put_place(struct section *section, size_t place, size_t *at)
{
    put(section, CFA_ADVANCE_4, 1);
    put(section, place - *at, 4);
    *at = place;
}

/* Begins an entry whose length is not known yet. Returns its place. */
static size_t begin_entry(struct section *section)
{
    put(section, 0, 4);
    return section->bytes.count;
}

static void end_entry(struct section *section, size_t start)
{
    while (section->bytes.count % 4 != 0) put(section, 0, 1);
    uint32_t length = (uint32_t)(section->bytes.count - start);
    if (!section->has_failed) memcpy(section->bytes.items + start - sizeof(length), &length, sizeof(length));
}

/* Writes the common entry: at the start of a function the return address is at SP. */
static void put_common(struct section *section)
{
    enum { VERSION = 1, MINUS_8 = 0x78 };
    size_t start = begin_entry(section);
    put(section, 0, 4);
    put(section, VERSION, 1);
    put(section, 0, 1); /* no augmentation */
    put_number(section, 1);
    put(section, MINUS_8, 1);
    put(section, X86_64_RETURN, 1);
    put(section, CFA_DEFINE, 1);
    put_number(section, X86_64_RSP);
    put_number(section, WORD);
    put_saved(section, X86_64_RETURN, RETURN_PLACE);
    end_entry(section, start);
}

static size_t begin_function(struct section *section, uint64_t start, uint64_t size)
{
    size_t place = begin_entry(section);
    put(section, place, 4); /* distance to the common entry, which is the first */
    put(section, start, WORD);
    put(section, size, WORD);
    return place;
}

/* --- Blobs -------------------------------------------------------------------------------------------------------- */

struct blob {
    uint64_t code_begin, code_end, name;
    int32_t frame_words, frame_complete; /* a negative number: there is none */
};

/* Writes the frame of a stub or the interpreter, which keep a frame pointer. */
static void put_with_frame_pointer(struct section *section, const struct blob *blob, bool is_interpreter)
{
    size_t start = begin_function(section, blob->code_begin, blob->code_end - blob->code_begin);
    put(section, CFA_DEFINE, 1);
    put_number(section, X86_64_RBP);
    put_number(section, (uint64_t)FP_PLACE * WORD);
    put_saved(section, X86_64_RBP, FP_PLACE);
    /* The interpreter has moved the arguments of its caller: it keeps the stack pointer that this had. */
    if (is_interpreter) put_saved(section, X86_64_RSP, SENDER_SP_PLACE);
    end_entry(section, start);
}

/* Returns the length of "add SIZE, %rsp; pop %rbp" at CODE without the pop; 0: there is other code. */
static size_t epilogue_at(const uint8_t *code, uint64_t size)
{
    enum { REX = 0x48, SHORT = 0x83, LONG = 0x81, ADD_RSP = 0xc4, POP_RBP = 0x5d };
    uint32_t value = 0;
    if (code[0] != REX || code[2] != ADD_RSP) return 0;
    if (code[1] == SHORT) return code[3] == size && code[4] == POP_RBP ? 4 : 0;
    memcpy(&value, code + 3, sizeof(value));
    return code[1] == LONG && value == size && code[7] == POP_RBP ? 7 : 0;
}

/* Returns the place after the return instruction behind PLACE, between which a safepoint may be polled. */
static size_t after_return(const uint8_t *code, size_t size, size_t place)
{
    enum { RETURN = 0xc3, POLL_BYTES_MAX = 24 };
    for (size_t i = place; i < size && i < place + POLL_BYTES_MAX; i++) {
        if (code[i] == RETURN) return i + 1;
    }
    return place;
}

/* Writes the frame of a compiled method: below its return address and the caller's frame pointer it has a fixed size,
 * from where it is complete to each epilogue. */
static void put_compiled(struct section *section, const struct blob *blob, const uint8_t *code)
{
    enum { EPILOGUE_BYTES = 8, PUSH_RBP = 0x55, SUB_SHORT_BYTES = 4, SUB_LONG_BYTES = 7 };
    size_t size = (size_t)(blob->code_end - blob->code_begin), at = 0;
    size_t complete = blob->frame_complete > 0 ? (size_t)blob->frame_complete : 0;
    uint64_t frame = (uint64_t)blob->frame_words * WORD;
    size_t start = begin_function(section, blob->code_begin, size);
    size_t push = 0;
    if (complete > SUB_LONG_BYTES && code[complete - SUB_LONG_BYTES - 1] == PUSH_RBP) push = complete - SUB_LONG_BYTES;
    if (complete > SUB_SHORT_BYTES && code[complete - SUB_SHORT_BYTES - 1] == PUSH_RBP)
        push = complete - SUB_SHORT_BYTES;
    if (push > 0) {
        put_place(section, push, &at);
        put_cfa(section, (uint64_t)FP_PLACE * WORD);
        put_saved(section, X86_64_RBP, FP_PLACE);
    }
    put_place(section, complete, &at);
    put_cfa(section, frame);
    put_saved(section, X86_64_RBP, FP_PLACE);
    for (size_t i = complete; i + EPILOGUE_BYTES < size; i++) {
        size_t added = epilogue_at(code + i, frame - (uint64_t)FP_PLACE * WORD);
        if (added == 0) continue;
        size_t end = after_return(code, size, i + added + 1);
        put(section, CFA_REMEMBER_STATE, 1);
        put_place(section, i + added, &at);
        put_cfa(section, (uint64_t)FP_PLACE * WORD);
        put_place(section, i + added + 1, &at);
        put_cfa(section, WORD);
        put(section, CFA_RESTORE | X86_64_RBP, 1);
        put_place(section, end, &at);
        put(section, CFA_RESTORE_STATE, 1);
        i = end - 1;
    }
    end_entry(section, start);
}

/* Writes the frame of a blob that has none: it jumps on. */
static void put_frameless(struct section *section, const struct blob *blob)
{
    end_entry(section, begin_function(section, blob->code_begin, blob->code_end - blob->code_begin));
}

static bool has_start(const char *name, const char *start)
{
    return strncmp(name, start, strlen(start)) == 0;
}

/* The code of one heap, and what is written of it. */
struct heap {
    uint64_t low, high;
    uint8_t *bytes; /* copy of its memory */
    unsigned log2_segment;
};

static void put_blob(struct section *section, struct reader *reader, const struct heap *heap, const struct blob *blob)
{
    char name[NAME_BYTES] = "";
    (void)read_bytes(reader, blob->name, name, sizeof(name) - 1);
    bool is_interpreter = has_start(name, "Interpreter");
    if (is_interpreter || has_start(name, "StubRoutines"))
        put_with_frame_pointer(section, blob, is_interpreter);
    else if (blob->frame_words >= FP_PLACE)
        put_compiled(section, blob, heap->bytes + (blob->code_begin - heap->low));
    else
        put_frameless(section, blob);
}

/* Returns the blob that is at ADDRESS, where the memory is BYTES. */
static struct blob blob_at(const struct hotspot_layout *layout, uint64_t address, const uint8_t *bytes)
{
    struct blob blob;
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

static void put_heap(struct section *section, struct reader *reader, const struct hotspot_layout *layout,
                     const struct heap *heap)
{
    uint64_t size = heap->high - heap->low, place = 0;
    for (unsigned i = 0; i < BLOBS_MAX && place + layout->block_header_size + BLOB_BYTES < size; i++) {
        uint64_t length = 0, header = place + layout->block_header_size;
        memcpy(&length, heap->bytes + place + layout->block_length, layout->block_used - layout->block_length);
        if (length == 0 || length > size >> heap->log2_segment) return;
        bool is_used = heap->bytes[place + layout->block_used] != 0;
        struct blob blob = blob_at(layout, heap->low + header, heap->bytes + header);
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
    struct section section = {0};
    uint64_t address = 0, low = UINT64_MAX, high = 0;
    bool is_read = read_bytes(&reader, hotspot->heaps, &address, sizeof(address)) && address != 0 &&
                   read_bytes(&reader, address, &list, sizeof(list)) && list.count > 0 &&
                   list.count <= HOTSPOT_HEAPS_MAX;
    put_common(&section);
    for (int32_t i = 0; is_read && i < list.count; i++) {
        struct heap heap = {0};
        is_read = read_bytes(&reader, list.items + (uint64_t)i * WORD, &address, sizeof(address)) &&
                  read_heap(&reader, &hotspot->layout, address, &heap);
        if (is_read) put_heap(&section, &reader, &hotspot->layout, &heap);
        if (heap.low < low) low = heap.low;
        if (heap.high > high) high = heap.high;
        free(heap.bytes);
    }
    is_read = is_read && !section.has_failed && high - low <= HEAP_BYTES_MAX;
    const struct frame_table_source source = {.eh_frame = {.bytes = {section.bytes.items, section.bytes.count}},
                                              .base = low};
    if (is_read) is_read = frame_table_build(&source, ret_table);
    free(section.bytes.items);
    if (!is_read) return false;
    *ret_base = low;
    *ret_end = high;
    return true;
}
