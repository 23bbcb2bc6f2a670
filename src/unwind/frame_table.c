/* Builds a table: lists the FDEs in the order of their code (from .eh_frame_hdr, which is sorted already, else from
 * .eh_frame itself), runs each, drops rows that repeat the one before, and packs all of it into one block of memory.
 * SPDX-License-Identifier: MIT */
#include "unwind/frame_table.h"

#include "base/sort.h"
#include "unwind/machine.h"


struct fde_place {
    uint64_t start;
    uint64_t offset; /* in .eh_frame */
};

struct row {
    uint32_t pc, rule;
};

struct build {
    const struct frame_table_source *source;
    struct rule_builder rules;
    struct pages_array places; /* of struct fde_place */
    struct pages_array rows;   /* of struct row */
    struct cfi_fde fde;
    struct cfi_machine machine;
    uint64_t end; /* of the last row, relative to the base */
    uint32_t fde_count, broken_count;
    bool full;
};

enum { FDES_MAX = 16 << 20, HEADER_DATA_RELATIVE_4 = 0x3b };

static bool add_place(struct build *build, uint64_t start, uint64_t offset)
{
    struct fde_place *place = pages_array_add(&build->places, sizeof(*place), FDES_MAX);
    if (!place) return false;
    *place = (struct fde_place){.start = start, .offset = offset};
    return true;
}

/* .eh_frame_hdr: version, three encodings, the address of .eh_frame, a count, and pairs of (code, FDE), sorted. */
static bool list_places_by_header(struct build *build)
{
    const struct frame_table_source *source = build->source;
    struct cfi_section header = {
        .bytes = source->header, .address = source->header_address, .data_address = source->header_address};
    struct cursor cursor = cursor_of(source->header);
    if (cursor_u8(&cursor) != 1) return false;
    uint8_t eh_frame_encoding = cursor_u8(&cursor);
    uint8_t count_encoding = cursor_u8(&cursor);
    if (cursor_u8(&cursor) != HEADER_DATA_RELATIVE_4) return false;
    (void)cfi_encoded_pointer(&cursor, &header, eh_frame_encoding);
    uint64_t count = cfi_encoded_pointer(&cursor, &header, count_encoding);
    if (cursor.failed || count == 0 || count > cursor_left(&cursor) / 8) return false;
    for (uint64_t i = 0; i < count; i++) {
        uint64_t start = source->header_address + (uint64_t)(int64_t)(int32_t)cursor_u32(&cursor);
        uint64_t fde = source->header_address + (uint64_t)(int64_t)(int32_t)cursor_u32(&cursor);
        if (!add_place(build, start, fde - source->eh_frame.address)) return false;
    }
    return true;
}

static bool list_places_by_section(struct build *build)
{
    const struct cfi_section *section = &build->source->eh_frame;
    for (size_t offset = 0, next; offset != SIZE_MAX; offset = next) {
        if (cfi_read_fde(section, offset, &build->fde, &next) && !add_place(build, build->fde.start, offset)) return false;
    }
    return build->places.count > 0;
}

static int compare_places(const void *a, const void *b)
{
    const struct fde_place *left = a, *right = b;
    return (left->start > right->start) - (left->start < right->start);
}

/* Most lists are sorted already. */
static void sort_places(struct build *build)
{
    const struct fde_place *places = build->places.items;
    for (size_t i = 1; i < build->places.count; i++) {
        if (places[i - 1].start <= places[i].start) continue;
        sort_in_place(build->places.items, build->places.count, sizeof(struct fde_place), compare_places);
        return;
    }
}

static void add_row(struct build *build, uint64_t pc, uint32_t rule)
{
    struct row *rows = build->rows.items;
    size_t count = build->rows.count;
    if (count > 0 && rows[count - 1].rule == rule) return;
    if (count > 0 && rows[count - 1].pc == pc) {
        rows[count - 1].rule = rule;
        return;
    }
    struct row *row = pages_array_add(&build->rows, sizeof(*row), FRAME_TABLE_ROWS_MAX);
    if (!row) build->full = true;
    else *row = (struct row){.pc = (uint32_t)pc, .rule = rule};
}

static bool take_row(void *context, uint64_t start, uint64_t end, const struct cfi_row *row)
{
    struct build *build = context;
    uint64_t base = build->source->base;
    if (start < base + build->end) start = base + build->end; /* overlaps the function before: that one stays */
    if (start >= end) return true;
    add_row(build, start - base, machine_compile_rule(&build->fde, row, &build->rules));
    build->end = end - base;
    return !build->full;
}

static void run_place(struct build *build, const struct fde_place *place)
{
    uint64_t base = build->source->base;
    build->fde_count++;
    if (!cfi_read_fde(&build->source->eh_frame, place->offset, &build->fde, NULL) || build->fde.start < base ||
        build->fde.end - base >= UINT32_MAX) {
        build->broken_count++;
        return;
    }
    if (build->fde.start - base > build->end && build->rows.count > 0) add_row(build, build->end, RULE_NONE);
    if (build->rows.count == 0) build->end = build->fde.start - base;
    if (!cfi_run(&build->source->eh_frame, &build->fde, &build->machine, take_row, build)) build->broken_count++;
    /* What a broken FDE left out stays without a rule. */
    if (build->end < build->fde.end - base && build->end > 0) add_row(build, build->end, RULE_NONE);
}

static uint32_t *fill_blocks(uint32_t *blocks, const uint32_t *pcs, uint32_t row_count, uint32_t block_count)
{
    uint32_t row = 0;
    for (uint32_t i = 0; i < block_count; i++) {
        uint64_t first = (uint64_t)pcs[0] + ((uint64_t)i << FRAME_TABLE_BLOCK_SHIFT);
        while (row + 1 < row_count && pcs[row + 1] <= first) row++;
        blocks[i] = row;
    }
    return blocks;
}

static bool pack(const struct build *build, struct frame_table *ret_table)
{
    const struct row *rows = build->rows.items;
    uint32_t row_count = (uint32_t)build->rows.count;
    uint32_t first = rows[0].pc;
    uint32_t block_count = (uint32_t)(((build->end - first) >> FRAME_TABLE_BLOCK_SHIFT) + 1);
    size_t wide_size = build->rules.wide.count * sizeof(struct wide_rule);
    size_t size = wide_size + (row_count * (size_t)2 + 1 + block_count) * sizeof(uint32_t) + build->rules.expressions.count;
    uint8_t *memory = pages_allocate(size);
    if (!memory) return false;

    struct wide_rule *wide = (struct wide_rule *)(void *)memory;
    if (wide_size > 0) memcpy(wide, build->rules.wide.items, wide_size);
    uint32_t *pcs = (uint32_t *)(void *)(memory + wide_size);
    uint32_t *rules = pcs + row_count + 1;
    for (uint32_t i = 0; i < row_count; i++) {
        pcs[i] = rows[i].pc;
        rules[i] = rows[i].rule;
    }
    pcs[row_count] = (uint32_t)build->end;
    uint32_t *blocks = fill_blocks(rules + row_count, pcs, row_count, block_count);
    uint8_t *expressions = (uint8_t *)(blocks + block_count);
    if (build->rules.expressions.count > 0) {
        memcpy(expressions, build->rules.expressions.items, build->rules.expressions.count);
    }
    *ret_table = (struct frame_table){
        .pcs = pcs,
        .rules = rules,
        .blocks = blocks,
        .wide = wide,
        .expressions = expressions,
        .row_count = row_count,
        .block_count = block_count,
        .wide_count = (uint32_t)build->rules.wide.count,
        .expression_bytes = (uint32_t)build->rules.expressions.count,
        .fde_count = build->fde_count,
        .broken_fde_count = build->broken_count,
        .memory = memory,
        .memory_size = size,
    };
    return true;
}

static bool build_rows(struct build *build)
{
    if (!list_places_by_header(build)) {
        build->places.count = 0;
        if (!list_places_by_section(build)) return false;
    }
    sort_places(build);
    const struct fde_place *places = build->places.items;
    for (size_t i = 0; i < build->places.count && !build->full; i++) run_place(build, &places[i]);
    return build->rows.count > 0 && !build->full;
}

bool frame_table_build(const struct frame_table_source *source, struct frame_table *ret_table)
{
    struct build *build = pages_allocate(sizeof(*build));
    if (!build) return false;
    build->source = source;
    build->rules.section = &source->eh_frame;
    bool built = build_rows(build) && pack(build, ret_table);
    pages_array_fini(&build->places);
    pages_array_fini(&build->rows);
    pages_array_fini(&build->rules.wide);
    pages_array_fini(&build->rules.expressions);
    pages_free(build, sizeof(*build));
    return built;
}

void frame_table_fini(struct frame_table *table)
{
    pages_free(table->memory, table->memory_size);
    *table = (struct frame_table){0};
}
