/* Two binary searches, and a walk from the innermost scope to the outermost.  SPDX-License-Identifier: MIT */
#include "symbolize/symbol_index.h"

#include <errno.h>
#include <fcntl.h>
#include <libdeflate.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/pages.h"
#include "symbolize/symbol_index_private.h"
#include "symbolize/place.h"

/* --- Bytes -------------------------------------------------------------------------------------------------------- */

static bool read_at(int descriptor, uint64_t offset, void *into, size_t size)
{
    for (size_t done = 0; done < size;) {
        ssize_t got = pread(descriptor, (uint8_t *)into + done, size - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        done += (size_t)got;
    }
    return true;
}

static bool read_block(const struct symbol_index *index, uint64_t block, uint8_t *into)
{
    uint64_t offset = block * SYMBOL_INDEX_BLOCK_BYTES, left = index->header.size - offset;
    size_t size = left < SYMBOL_INDEX_BLOCK_BYTES ? (size_t)left : SYMBOL_INDEX_BLOCK_BYTES;
    return read_at(index->descriptor, offset, into, size) && libdeflate_crc32(0, into, size) == index->checksums[block];
}

/* The bytes from OFFSET on, up to the end of the block at least, and how many these are; valid until the next call.
 * NULL if they are not there or not what was written. */
static const uint8_t *bytes_at(struct symbol_index *index, uint64_t offset, size_t *ret_size)
{
    if (index->failed || offset >= index->header.size) {
        index->failed = true;
        return NULL;
    }
    *ret_size = (size_t)(index->header.size - offset);
    if (index->descriptor < 0) return index->bytes + offset;
    uint64_t block = offset / SYMBOL_INDEX_BLOCK_BYTES, slot = block % SYMBOL_INDEX_SLOTS;
    size_t within = offset % SYMBOL_INDEX_BLOCK_BYTES;
    uint8_t *bytes = index->bytes + slot * SYMBOL_INDEX_BLOCK_BYTES;
    if (index->block_in_slot[slot] != block) {
        index->block_in_slot[slot] = 0; /* no part begins in the first block */
        if (block == 0 || !read_block(index, block, bytes)) {
            index->failed = true;
            return NULL;
        }
        index->block_in_slot[slot] = (uint32_t)block;
    }
    if (*ret_size > SYMBOL_INDEX_BLOCK_BYTES - within) *ret_size = SYMBOL_INDEX_BLOCK_BYTES - within;
    return bytes + within;
}

static void read_item(struct symbol_index *index, const struct symbol_index_part *part, uint64_t item, void *into,
                      size_t size)
{
    size_t there;
    memset(into, 0, size);
    if (item >= part->count) index->failed = true;
    const uint8_t *bytes = index->failed ? NULL : bytes_at(index, part->offset + item * size, &there);
    if (bytes && there >= size)
        memcpy(into, bytes, size);
    else
        index->failed = true;
}

static uint32_t read_u32(struct symbol_index *index, const struct symbol_index_part *part, uint64_t item)
{
    uint32_t value;
    read_item(index, part, item, &value, sizeof(value));
    return value;
}

/* --- Opening ------------------------------------------------------------------------------------------------------ */

static bool part_is_inside(const struct symbol_index_header *header, const struct symbol_index_part *part,
                           uint64_t size)
{
    return part->offset <= header->size && part->count <= (header->size - part->offset) / size;
}

static bool header_is_right(const struct symbol_index_header *header)
{
    return memcmp(header->magic, SYMBOL_INDEX_MAGIC, sizeof(header->magic)) == 0 &&
           strncmp(header->version, OFFBEAT_VERSION, sizeof(header->version)) == 0 &&
           header->size <= SYMBOL_INDEX_BYTES_MAX && header->size >= sizeof(*header) &&
           header->block_count == (header->size + SYMBOL_INDEX_BLOCK_BYTES - 1) / SYMBOL_INDEX_BLOCK_BYTES &&
           part_is_inside(header, &header->scope_starts, sizeof(uint32_t)) &&
           part_is_inside(header, &header->scope_numbers, sizeof(uint32_t)) &&
           part_is_inside(header, &header->line_starts, sizeof(uint32_t)) &&
           part_is_inside(header, &header->line_places, sizeof(uint64_t)) &&
           part_is_inside(header, &header->scopes, sizeof(struct symbol_index_scope)) &&
           part_is_inside(header, &header->functions, sizeof(struct symbol_index_function)) &&
           part_is_inside(header, &header->texts, sizeof(uint32_t)) && part_is_inside(header, &header->text_bytes, 1);
}

uint32_t symbol_index_checksum(const struct symbol_index_header *header, const uint32_t *checksums)
{
    struct symbol_index_header copy = *header;
    copy.checksum = 0;
    uint32_t checksum = libdeflate_crc32(0, &copy, sizeof(copy));
    return libdeflate_crc32(checksum, checksums, header->block_count * sizeof(*checksums));
}

/* The checksums are at the end of the file, after what they describe. */
static bool read_front(struct symbol_index *index, const struct symbol_index_input inputs[SYMBOL_INDEX_INPUTS])
{
    struct symbol_index_header *header = &index->header;
    off_t file_size = lseek(index->descriptor, 0, SEEK_END); /* fails for a pipe */
    if (file_size < 0 || !read_at(index->descriptor, 0, header, sizeof(*header)) || !header_is_right(header) ||
        memcmp(header->inputs, inputs, sizeof(header->inputs)) != 0)
        return false;
    size_t size = header->block_count * sizeof(*index->checksums);
    if ((uint64_t)file_size != header->size + size) return false;
    index->checksums = malloc(size);
    index->block_in_slot = calloc(SYMBOL_INDEX_SLOTS, sizeof(*index->block_in_slot));
    index->mapped_size = SYMBOL_INDEX_SLOTS * SYMBOL_INDEX_BLOCK_BYTES;
    index->bytes = pages_allocate(index->mapped_size);
    if (index->bytes) pages_prefer_large(index->bytes, index->mapped_size);
    return index->checksums && index->block_in_slot && index->bytes &&
           read_at(index->descriptor, header->size, index->checksums, size) &&
           symbol_index_checksum(header, index->checksums) == header->checksum;
}

bool symbol_index_open(struct symbol_index *index, const char *path,
                       const struct symbol_index_input inputs[SYMBOL_INDEX_INPUTS])
{
    return symbol_index_open_descriptor(index, open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), inputs);
}

bool symbol_index_open_descriptor(struct symbol_index *index, int descriptor,
                                  const struct symbol_index_input inputs[SYMBOL_INDEX_INPUTS])
{
    *index = (struct symbol_index){.descriptor = descriptor};
    if (index->descriptor < 0) return false;
    index->is_open = true;
    buffer_init(&index->text, SYMBOL_INDEX_TEXT_BYTES_MAX);
    if (read_front(index, inputs)) return true;
    symbol_index_close(index);
    return false;
}

void symbol_index_close(struct symbol_index *index)
{
    if (!index->is_open) return;
    if (index->descriptor >= 0) (void)close(index->descriptor);
    pages_free(index->bytes, index->mapped_size);
    free(index->block_in_slot);
    buffer_fini(&index->text);
    free(index->checksums);
    *index = (struct symbol_index){0};
}

/* --- Finding ------------------------------------------------------------------------------------------------------ */

/* Returns the number of starts that are not above ADDRESS. *LAST is the result for the last address; from there the
 * search takes growing steps: addresses come in ascending order, so most of their starts are near and in memory. */
static uint64_t count_up_to(struct symbol_index *index, const struct symbol_index_part *starts, uint32_t address,
                            uint64_t *last)
{
    uint64_t low = *last, high = starts->count;
    if (low > 0 && read_u32(index, starts, low - 1) > address) low = 0;
    for (uint64_t step = 1; low + step <= starts->count && !index->failed; step *= 2) {
        if (read_u32(index, starts, low + step - 1) > address) {
            high = low + step - 1;
            break;
        }
        low += step;
    }
    while (low < high && !index->failed) {
        uint64_t middle = low + (high - low) / 2;
        if (read_u32(index, starts, middle) <= address)
            low = middle + 1;
        else
            high = middle;
    }
    *last = low;
    return low;
}

static uint64_t find_place(struct symbol_index *index, uint32_t address)
{
    uint64_t place = 0, count = count_up_to(index, &index->header.line_starts, address, &index->last_line);
    if (count > 0) read_item(index, &index->header.line_places, count - 1, &place, sizeof(place));
    return place;
}

static void set_place(struct name_frame *frame, uint64_t place, const struct symbol_index_function *function)
{
    uint32_t file = place_file(place) ? place_file(place) : function->file;
    frame->file = file;
    frame->line = place_line(place);
    frame->column = place_column(place);
    frame->start_line = file == function->file ? function->line_and_source & SYMBOL_INDEX_LINE_MASK : 0;
}

/* Adds the frame of SCOPE, where PLACE is executing, unless it has no name. */
static void add_frame(struct symbol_index *index, struct name_answer *answer, const struct symbol_index_scope *scope,
                      uint64_t place)
{
    struct symbol_index_function function;
    if (scope->function == 0) return;
    read_item(index, &index->header.functions, scope->function - 1, &function, sizeof(function));
    struct name_frame *frame = &answer->frames[answer->frame_count++];
    *frame = (struct name_frame){
        .function = scope->function,
        .name = function.name,
        .system_name = function.system_name,
    };
    answer->source = function.line_and_source >> SYMBOL_INDEX_LINE_BITS;
    bool is_boundary = answer->source == NAME_BY_BOUNDARY;
    if (is_boundary) answer->boundary = index->header.base + scope->call;
    set_place(frame, place, &function);
}

bool symbol_index_find(struct symbol_index *index, uint64_t address, struct name_answer *ret_answer)
{
    ret_answer->source = NAME_BY_NOTHING;
    ret_answer->frame_count = 0;
    uint64_t distance = address - index->header.base;
    if (address < index->header.base || distance > UINT32_MAX) return !index->failed;
    uint64_t count = count_up_to(index, &index->header.scope_starts, (uint32_t)distance, &index->last_scope);
    uint32_t number = count > 0 ? read_u32(index, &index->header.scope_numbers, count - 1) : 0;
    uint64_t place = number ? find_place(index, (uint32_t)distance) : 0;
    while (number != 0 && ret_answer->frame_count < SYMBOL_INDEX_FRAMES_MAX && !index->failed) {
        struct symbol_index_scope scope;
        read_item(index, &index->header.scopes, number - 1, &scope, sizeof(scope));
        add_frame(index, ret_answer, &scope, place);
        place = scope.call;
        if (scope.caller >= number) index->failed = true; /* a circle */
        number = scope.caller;
    }
    return !index->failed;
}

struct slice symbol_index_text(struct symbol_index *index, uint32_t number)
{
    if (number == 0) return slice_of(NULL, 0);
    const struct symbol_index_part *bytes = &index->header.text_bytes;
    uint64_t offset = read_u32(index, &index->header.texts, number);
    buffer_clear(&index->text);
    while (offset < bytes->count && !index->failed && !index->text.failed) {
        size_t there;
        const uint8_t *place = bytes_at(index, bytes->offset + offset, &there);
        if (!place) break;
        const uint8_t *end = memchr(place, '\0', there);
        if (end && index->text.size == 0) return slice_of(place, (size_t)(end - place));
        buffer_append(&index->text, place, end ? (size_t)(end - place) : there);
        if (end && !index->text.failed) return buffer_slice(&index->text);
        offset += there;
    }
    index->failed = true;
    return slice_of(NULL, 0);
}
