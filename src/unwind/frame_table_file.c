/* SPDX-License-Identifier: MIT */
#include "unwind/frame_table_file.h"

#include "base/kernel.h"
#include "base/pages.h"
#include "base/plain_text.h"
#include "unwind/frame_table_private.h"
#include "unwind/machine.h"

#include <errno.h>

enum { VERSION = 5, PATH_SIZE = 4096 };

static const char magic[8] = "offbeatT";

struct file_header {
    char magic[8];
    uint32_t version;
    uint32_t key_size;
    uint8_t key[FRAME_TABLE_KEY_MAX];
    uint32_t start, end;
    uint32_t row_count, block_count, rule_count, wide_count, expression_bytes;
    uint32_t fde_count, broken_fde_count, rejected_row_count;
    uint64_t block_size;
    uint64_t checksum; /* sum of the header with 0 here, and of the block */
};
_Static_assert(sizeof(struct file_header) == 136, "is written to files");

/* Returns a sum against damage, not against intent: the contents are checked as well. Each step waits for the previous
 * one, so that four sums take little longer than one. */
static uint64_t checksum_of(uint64_t sum, const void *bytes, size_t size)
{
    enum { SUMS = 4 };
    const uint8_t *at = bytes;
    uint64_t sums[SUMS] = {sum, sum + 1, sum + 2, sum + 3}, words[SUMS];
    for (; size >= sizeof(words); size -= sizeof(words), at += sizeof(words)) {
        memcpy(words, at, sizeof(words));
        for (unsigned i = 0; i < SUMS; i++) {
            sums[i] = (sums[i] ^ words[i]) * 0x9e3779b97f4a7c15;
            sums[i] ^= sums[i] >> 29;
        }
    }
    memset(words, 0, sizeof(words));
    memcpy(words, at, size);
    sum = size;
    for (unsigned i = 0; i < SUMS; i++)
        sum = ((sum ^ sum >> 29) * 0x9e3779b97f4a7c15 ^ sums[i]) * 0xff51afd7ed558ccd + words[i];
    return sum;
}

static uint64_t checksum_of_file(struct file_header header, const uint8_t *block)
{
    header.checksum = 0;
    return checksum_of(checksum_of(1, &header, sizeof(header)), block, header.block_size);
}

static bool write_all(int descriptor, const void *bytes, size_t size)
{
    const uint8_t *at = bytes;
    while (size > 0) {
        ssize_t written = kernel_write(descriptor, at, size);
        if (written == -EINTR) continue;
        if (written <= 0) return false;
        at += written;
        size -= (size_t)written;
    }
    return true;
}

static bool read_all(int descriptor, void *bytes, size_t size)
{
    uint8_t *at = bytes;
    while (size > 0) {
        ssize_t got = kernel_read(descriptor, at, size);
        if (got == -EINTR) continue;
        if (got <= 0) return false;
        at += got;
        size -= (size_t)got;
    }
    return true;
}

bool frame_table_save(const struct frame_table *table, const char *path, struct slice key)
{
    struct file_header header = {
        .version = VERSION,
        .key_size = (uint32_t)key.size,
        .start = table->start,
        .end = table->end,
        .row_count = table->row_count,
        .block_count = table->block_count,
        .rule_count = table->rule_count,
        .wide_count = table->wide_count,
        .expression_bytes = table->expression_bytes,
        .fde_count = table->fde_count,
        .broken_fde_count = table->broken_fde_count,
        .rejected_row_count = table->rejected_row_count,
        .block_size = table->memory_size,
    };
    char beside[PATH_SIZE];
    const char *end = beside + sizeof(beside);
    (void)plain_number(plain_text(plain_text(beside, end, path), end, "."), end,
                       (uint64_t)kernel_call3(SYS_getpid, 0, 0, 0), 10);
    if (key.size > sizeof(header.key) || strlen(beside) + 1 >= sizeof(beside)) return false;
    memcpy(header.magic, magic, sizeof(magic));
    if (key.size > 0) memcpy(header.key, key.data, key.size);
    header.checksum = checksum_of_file(header, table->memory);

    int descriptor = kernel_open(beside, O_WRONLY | O_CREAT | O_EXCL, 0600);
    if (descriptor < 0) return false;
    bool written =
        write_all(descriptor, &header, sizeof(header)) && write_all(descriptor, table->memory, table->memory_size);
    kernel_close(descriptor);
    if (written && kernel_rename(beside, path) == 0) return true;
    (void)kernel_unlink(beside);
    return false;
}

/* Returns true if the header is of this version and of KEY, and fits a file of FILE_SIZE bytes. */
static bool is_wanted(const struct file_header *header, struct slice key, uint64_t file_size)
{
    return memcmp(header->magic, magic, sizeof(magic)) == 0 && header->version == VERSION &&
           key.size == header->key_size && key.size <= sizeof(header->key) &&
           (key.size == 0 || memcmp(header->key, key.data, key.size) == 0) && header->row_count > 0 &&
           header->row_count <= FRAME_TABLE_ROWS_MAX && header->rule_count > 0 &&
           header->rule_count <= FRAME_TABLE_RULES_MAX && header->wide_count <= FRAME_TABLE_WIDE_MAX &&
           header->expression_bytes <= FRAME_TABLE_EXPRESSIONS_MAX &&
           header->block_size <= FRAME_TABLE_FILE_BYTES_MAX && header->block_size == file_size - sizeof(*header);
}

static bool is_block_valid(const struct frame_table *table, const uint32_t *rows, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t offset = rows[i] >> FRAME_TABLE_OFFSET_SHIFT;
        bool rises = i == 0 ? offset == 0 : offset > rows[i - 1] >> FRAME_TABLE_OFFSET_SHIFT;
        if (!rises || offset >= FRAME_TABLE_BLOCK_SIZE) return false;
        if ((rows[i] & (FRAME_TABLE_FUNCTION_START - 1)) >= table->rule_count) return false;
    }
    return true;
}

/* Checks everything that frame_table_find relies on. */
static bool are_rows_valid(const struct frame_table *table)
{
    if (table->end <= table->start || table->end > FRAME_TABLE_CODE_MAX) return false;
    if (table->start % FRAME_TABLE_BLOCK_SIZE != 0 || table->blocks[0] != 0) return false;
    if (table->block_count != ((table->end - 1 - table->start) >> FRAME_TABLE_BLOCK_SHIFT) + 1) return false;
    for (uint32_t i = 0; i < table->block_count; i++) {
        uint32_t first = table->blocks[i], next = table->blocks[i + 1];
        if (next <= first || next > table->row_count) return false;
        if (!is_block_valid(table, table->rows + first, next - first)) return false;
    }
    return table->blocks[table->block_count] == table->row_count;
}

static bool read_table(int descriptor, const struct file_header *header, struct frame_table *ret_table)
{
    struct frame_table table = {
        .start = header->start,
        .end = header->end,
        .row_count = header->row_count,
        .block_count = header->block_count,
        .rule_count = header->rule_count,
        .wide_count = header->wide_count,
        .expression_bytes = header->expression_bytes,
        .fde_count = header->fde_count,
        .broken_fde_count = header->broken_fde_count,
        .rejected_row_count = header->rejected_row_count,
    };
    if (frame_table_layout(&table).size != header->block_size) return false;
    uint8_t *block = pages_allocate(header->block_size);
    if (!block) return false;
    pages_populate(block, header->block_size);
    frame_table_take_block(&table, block);
    if (read_all(descriptor, block, header->block_size) && checksum_of_file(*header, block) == header->checksum &&
        are_rows_valid(&table) && machine_rules_are_valid(&table)) {
        *ret_table = table;
        return true;
    }
    frame_table_fini(&table);
    return false;
}

bool frame_table_load(const char *path, struct slice key, struct frame_table *ret_table)
{
    struct file_header header;
    struct stat status = {0};
    int descriptor = kernel_open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
    if (descriptor < 0) return false;
    bool loaded = kernel_call3(SYS_fstat, descriptor, kernel_address(&status), 0) == 0 && S_ISREG(status.st_mode) &&
                  status.st_size > (off_t)sizeof(header) && read_all(descriptor, &header, sizeof(header)) &&
                  is_wanted(&header, key, (uint64_t)status.st_size) && read_table(descriptor, &header, ret_table);
    kernel_close(descriptor);
    return loaded;
}
