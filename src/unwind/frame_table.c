/* Builds a table: lists the FDEs in the order of their code (from .eh_frame_hdr, which is sorted already, else from
 * .eh_frame itself), runs each, drops rows that repeat the one before, and packs all of it into one block of memory.
 * SPDX-License-Identifier: MIT */
#include "unwind/frame_table_private.h"

#include "base/sort.h"
#include "unwind/machine.h"

struct fde_place {
    uint64_t start;
    uint64_t offset; /* in its section, times 2, plus 1 if that is .debug_frame */
};

struct row {
    uint32_t pc, number; /* and FRAME_TABLE_FUNCTION_START */
};

struct build {
    const struct frame_table_source *source;
    struct rule_builder rules;
    struct pages_array places;         /* of struct fde_place */
    struct pages_array rows;           /* of struct row */
    const struct cfi_section *section; /* of the FDE */
    struct cfi_fde fde;
    struct cfi_machine machine;
    uint64_t end; /* of the last row, relative to the base */
    uint32_t fde_count, broken_count;
    bool full;
};

enum { FDES_MAX = 16 << 20, ROWS_PER_FDE_USUAL = 10, HEADER_DATA_RELATIVE_4 = 0x3b };

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
    pages_array_reserve(&build->places, sizeof(struct fde_place), count);
    for (uint64_t i = 0; i < count; i++) {
        uint64_t start = source->header_address + (uint64_t)(int64_t)(int32_t)cursor_u32(&cursor);
        uint64_t fde = source->header_address + (uint64_t)(int64_t)(int32_t)cursor_u32(&cursor);
        if (!add_place(build, start, (fde - source->eh_frame.address) * 2)) return false;
    }
    return true;
}

static bool list_places_by_section(struct build *build, const struct cfi_section *section)
{
    build->fde = (struct cfi_fde){.start = 0};
    for (size_t offset = 0, next; offset != SIZE_MAX; offset = next) {
        if (!cfi_read_fde(section, offset, &build->fde, &next)) continue;
        /* Code that the linker left out stays described, as if it lay at 0. */
        if (section->is_debug_frame && build->fde.start == section->bias) continue;
        if (!add_place(build, build->fde.start, offset * 2 + section->is_debug_frame)) return false;
    }
    return true;
}

static int compare_places(const void *a, const void *b)
{
    const struct fde_place *left = a, *right = b;
    if (left->start != right->start) return left->start < right->start ? -1 : 1;
    return (int)(left->offset & 1) - (int)(right->offset & 1);
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

/* A row that only repeats the one before is dropped; one that begins a function is kept. */
static void add_row(struct build *build, uint64_t pc, uint32_t number)
{
    struct row *rows = build->rows.items;
    size_t count = build->rows.count;
    bool begins = number & FRAME_TABLE_FUNCTION_START;
    if (count > 0 && !begins && (rows[count - 1].number & (FRAME_TABLE_FUNCTION_START - 1)) == number) return;
    struct row *row = pages_array_add(&build->rows, sizeof(*row), FRAME_TABLE_ROWS_MAX);
    if (!row)
        build->full = true;
    else
        *row = (struct row){.pc = (uint32_t)pc, .number = number};
}

static bool take_row(void *context, uint64_t start, uint64_t end, const struct cfi_row *row)
{
    struct build *build = context;
    uint64_t base = build->source->base;
    if (start < base + build->end) start = base + build->end; /* overlaps the function before: that one stays */
    if (start >= end) return true;
    uint32_t number = machine_compile_rule(&build->fde, row, &build->rules);
    if (start == build->fde.start) number |= FRAME_TABLE_FUNCTION_START;
    add_row(build, start - base, number);
    build->end = end - base;
    return !build->full;
}

static void use_section(struct build *build, const struct cfi_section *section)
{
    if (build->section == section) return;
    build->section = section;
    build->rules.section = section;
    build->fde = (struct cfi_fde){.start = 0}; /* its CIE is of the other one */
    build->machine.initial_of = NULL;
}

/* The row number GAP says that nothing is known between two FDEs. */
static void fill_gap(struct build *build, size_t gap)
{
    enum { GAP_MAX = 16, RULE = FRAME_TABLE_FUNCTION_START - 1 };
    struct row *rows = build->rows.items;
    if (gap == 0 || gap + 1 >= build->rows.count || rows[gap].number != RULE_NONE) return;
    if (rows[gap + 1].pc - rows[gap].pc >= GAP_MAX) return;
    rows[gap].number = machine_rule_between(rows[gap - 1].number & RULE, rows[gap + 1].number & RULE, &build->rules);
}

static void run_place(struct build *build, const struct fde_place *place)
{
    uint64_t base = build->source->base;
    build->fde_count++;
    use_section(build, place->offset & 1 ? &build->source->debug_frame : &build->source->eh_frame);
    if (!cfi_read_fde(build->section, place->offset / 2, &build->fde, NULL) || build->fde.start < base ||
        build->fde.end - base > FRAME_TABLE_CODE_MAX) {
        build->broken_count++;
        return;
    }
    size_t gap = build->rows.count;
    bool has_gap = build->fde.start - base > build->end && gap > 0;
    if (has_gap) add_row(build, build->end, RULE_NONE);
    if (build->rows.count == 0) build->end = build->fde.start - base;
    if (!cfi_run(build->section, &build->fde, &build->machine, take_row, build)) build->broken_count++;
    if (has_gap) fill_gap(build, gap);
    /* What a broken FDE left out stays without a rule. */
    if (build->end < build->fde.end - base && build->rows.count > 0) {
        add_row(build, build->end, RULE_NONE);
        build->end = build->fde.end - base;
    }
}

struct frame_table_layout frame_table_layout(const struct frame_table *table)
{
    struct frame_table_layout layout = {.rules = 0};
    layout.wide = layout.rules + table->rule_count * sizeof(struct machine_rule);
    layout.blocks = layout.wide + table->wide_count * sizeof(struct wide_rule);
    layout.rows = layout.blocks + (table->block_count + (size_t)1) * sizeof(uint32_t);
    layout.expressions = layout.rows + table->row_count * sizeof(uint32_t);
    layout.size = layout.expressions + table->expression_bytes;
    return layout;
}

void frame_table_take_block(struct frame_table *table, uint8_t *memory)
{
    struct frame_table_layout layout = frame_table_layout(table);
    table->memory = memory;
    table->memory_size = layout.size;
    table->rules = (const struct machine_rule *)(void *)(memory + layout.rules);
    table->wide = (const struct wide_rule *)(void *)(memory + layout.wide);
    table->rows = (const uint32_t *)(void *)(memory + layout.rows);
    table->blocks = (const uint32_t *)(void *)(memory + layout.blocks);
    table->expressions = memory + layout.expressions;
}

/* Each block begins with a row: a new one, or the one before goes on. */
static uint32_t count_rows(const struct build *build, uint32_t block_count)
{
    const struct row *rows = build->rows.items;
    uint32_t count = (uint32_t)build->rows.count + block_count;
    for (size_t i = 0; i < build->rows.count; i++) count -= rows[i].pc % FRAME_TABLE_BLOCK_SIZE == 0;
    return count;
}

static void fill_rows(const struct build *build, const struct frame_table *table, uint32_t *rows, uint32_t *blocks)
{
    const struct row *from = build->rows.items;
    uint32_t count = 0, number = RULE_NONE;
    size_t next = 0;
    for (uint32_t i = 0; i < table->block_count; i++) {
        uint64_t start = table->start + ((uint64_t)i << FRAME_TABLE_BLOCK_SHIFT);
        blocks[i] = count;
        if (next == build->rows.count || from[next].pc != start) rows[count++] = number;
        for (; next < build->rows.count && from[next].pc < start + FRAME_TABLE_BLOCK_SIZE; next++) {
            rows[count++] = (uint32_t)(from[next].pc - start) << FRAME_TABLE_OFFSET_SHIFT | from[next].number;
            number = from[next].number & (FRAME_TABLE_FUNCTION_START - 1);
        }
    }
    blocks[table->block_count] = count;
}

static void copy_items(void *to, const struct pages_array *from, size_t item_size)
{
    if (from->count > 0) memcpy(to, from->items, from->count * item_size);
}

static bool pack(const struct build *build, struct frame_table *ret_table)
{
    const struct row *rows = build->rows.items;
    uint32_t start = rows[0].pc & ~(uint32_t)(FRAME_TABLE_BLOCK_SIZE - 1);
    uint32_t block_count = (((uint32_t)build->end - 1 - start) >> FRAME_TABLE_BLOCK_SHIFT) + 1;
    struct frame_table table = {
        .start = start,
        .end = (uint32_t)build->end,
        .row_count = count_rows(build, block_count),
        .block_count = block_count,
        .rule_count = (uint32_t)build->rules.rules.count,
        .wide_count = (uint32_t)build->rules.wide.count,
        .expression_bytes = (uint32_t)build->rules.expressions.count,
        .fde_count = build->fde_count,
        .broken_fde_count = build->broken_count,
        .refused_row_count = build->rules.refused_count,
    };
    struct frame_table_layout layout = frame_table_layout(&table);
    uint8_t *memory = pages_allocate(layout.size);
    if (!memory) return false;
    pages_prefer_large(memory, layout.size);
    pages_populate(memory, layout.size);
    frame_table_take_block(&table, memory);
    copy_items(memory + layout.rules, &build->rules.rules, sizeof(struct machine_rule));
    copy_items(memory + layout.wide, &build->rules.wide, sizeof(struct wide_rule));
    copy_items(memory + layout.expressions, &build->rules.expressions, 1);
    fill_rows(build, &table, (uint32_t *)(void *)(memory + layout.rows), (uint32_t *)(void *)(memory + layout.blocks));
    *ret_table = table;
    return true;
}

static bool build_rows(struct build *build)
{
    const struct frame_table_source *source = build->source;
    if (!list_places_by_header(build)) {
        build->places.count = 0;
        if (!list_places_by_section(build, &source->eh_frame)) return false;
    }
    if (source->debug_frame.bytes.size > 0 && !list_places_by_section(build, &source->debug_frame)) return false;
    sort_places(build);
    pages_array_reserve(&build->rows, sizeof(struct row), build->places.count * ROWS_PER_FDE_USUAL);
    const struct fde_place *places = build->places.items;
    for (size_t i = 0; i < build->places.count && !build->full; i++) run_place(build, &places[i]);
    return build->rows.count > 0 && !build->full && build->end > 0;
}

bool frame_table_build(const struct frame_table_source *source, struct frame_table *ret_table)
{
    struct build *build = pages_allocate(sizeof(*build));
    if (!build) return false;
    build->source = source;
    bool built = rule_builder_init(&build->rules) && build_rows(build) && pack(build, ret_table);
    rule_builder_fini(&build->rules);
    pages_array_fini(&build->places);
    pages_array_fini(&build->rows);
    pages_free(build, sizeof(*build));
    return built;
}

bool frame_table_function_start(const struct frame_table *table, uint32_t pc, uint32_t *ret_start)
{
    enum { ROWS_BACK_MAX = 4096 };
    const uint32_t *found = frame_table_find(table, pc);
    if (!found || (*found & (FRAME_TABLE_FUNCTION_START - 1)) == RULE_NONE) return false;
    uint32_t block = (pc - table->start) >> FRAME_TABLE_BLOCK_SHIFT;
    uint32_t row = (uint32_t)(found - table->rows);
    for (unsigned back = 0; back < ROWS_BACK_MAX; back++) {
        if (table->rows[row] & FRAME_TABLE_FUNCTION_START) {
            *ret_start =
                table->start + (block << FRAME_TABLE_BLOCK_SHIFT) + (table->rows[row] >> FRAME_TABLE_OFFSET_SHIFT);
            return true;
        }
        if (row == 0) return false;
        if (row == table->blocks[block]) block--;
        row--;
    }
    return false;
}

void frame_table_fini(struct frame_table *table)
{
    pages_free(table->memory, table->memory_size);
    *table = (struct frame_table){0};
}
