/* Whatever is in .eh_frame, building a table from it and walking through that table reads nothing but what it was
 * given.  SPDX-License-Identifier: MIT */
#include "unwind/unwind.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ADDRESS = 0x40000000, WORDS = 512, FRAMES_MAX = 64 };

static bool reject(struct unwind_memory *memory, uint64_t address)
{
    return false;
}

/* A stack that holds addresses of code and of itself in turns. */
static void fill_stack(uint64_t words[WORDS], const struct frame_table *table)
{
    for (size_t i = 0; i < WORDS; i++)
        words[i] = i % 2 ? (uint64_t)(uintptr_t)&words[(i * 7) % WORDS]
                         : table->start + (uint32_t)(i * 37) % (table->end - table->start) + 1;
}

static void walk_from(uint64_t pc, const struct unwind_modules *modules, uint64_t words[WORDS])
{
    uint64_t addresses[FRAMES_MAX];
    size_t count;
    struct unwind_registers registers = {.known = (1u << MACHINE_REGISTERS) - 1};
    for (size_t i = 0; i < MACHINE_REGISTERS; i++) registers.values[i] = (uint64_t)(uintptr_t)&words[i * 8];
    registers.values[MACHINE_IP] = pc;
    struct unwind_memory memory = {
        .low = (uint64_t)(uintptr_t)words, .high = (uint64_t)(uintptr_t)(words + WORDS), .extend = reject};
    (void)unwind_walk(modules, &registers, &memory, NULL, addresses, FRAMES_MAX, &count);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct frame_table table;
    struct frame_table_source source = {.eh_frame = {.bytes = slice_of(data, size), .address = ADDRESS}};
    if (!frame_table_build(&source, &table)) return 0;

    struct unwind_module module = {.start = 1, .end = UINT64_MAX / 2, .table = &table};
    static struct rule_cache cache;
    memset(&cache, 0, sizeof(cache));
    struct unwind_modules modules = {.items = &module, .count = 1, .cache = &cache};
    uint64_t words[WORDS];
    if (table.row_count > 0) {
        fill_stack(words, &table);
        for (size_t i = 0; i < 16; i++)
            walk_from(table.start + (uint32_t)(i * 31) % (table.end - table.start), &modules, words);
    }
    frame_table_fini(&table);
    return 0;
}
