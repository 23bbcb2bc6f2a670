/* Builds a table in steps: lists the FDEs in the order of their code (from .eh_frame_hdr, which is sorted already, else
 * from .eh_frame itself), runs each, drops rows that repeat the previous one, and packs all of it into one block of
 * memory. SPDX-License-Identifier: MIT */
#include "unwind/frame_build.h"

#include "base/sort.h"
#include "unwind/frame_table_private.h"
#include "unwind/machine.h"

struct fde_place {
    uint64_t start;
    uint64_t offset; /* offset in its section, times 2, plus 1 if that is .debug_frame */
};

struct row {
    uint32_t pc;     /* address of the code, relative to the base */
    uint32_t number; /* number of the rule, with FRAME_TABLE_FUNCTION_START */
};

enum phase { LIST_HEADER, LIST_EH_FRAME, LIST_DEBUG_FRAME, RUN, PACK, DONE, FAILED };

struct frame_build {
    struct frame_table_source source;
    enum phase phase;
    enum frame_build_failure failure;
    struct cursor header;     /* LIST_HEADER: position after the last pair that is listed */
    uint64_t header_left;     /* LIST_HEADER: pairs that are left */
    size_t offset;            /* LIST_EH_FRAME, LIST_DEBUG_FRAME: offset of the next entry; SIZE_MAX: there is none */
    size_t next_place;        /* RUN: index of the next FDE */
    struct frame_table table; /* PACK: the table */
    uint32_t next_block, packed_row_count, packed_number;
    size_t next_row;
    struct pages_array places;         /* struct fde_place */
    struct pages_array rows;           /* struct row */
    const struct cfi_section *section; /* section of FDE */
    struct cfi_fde fde;
    struct cfi_machine machine;
    uint64_t end; /* end of the last row, relative to the base */
    uint32_t fde_count, broken_count;
    bool full;
    struct rule_builder rules; /* the largest member, so the last one */
};

enum {
    FDES_MAX = 16 << 20,
    ROWS_PER_FDE_USUAL = 10,
    HEADER_DATA_RELATIVE_4 = 0x3b,
    /* The most that a step does, 20 to 100 µs each. */
    STEP_PAIRS = 8192,
    STEP_ENTRIES = 1024,
    STEP_FUNCTIONS = 128,
    STEP_BLOCKS = 1024,
};

static void fail_build(struct frame_build *build, enum frame_build_failure failure)
{
    build->phase = FAILED;
    build->failure = failure;
}

static bool add_place(struct frame_build *build, uint64_t start, uint64_t offset)
{
    struct fde_place *place = pages_array_add(&build->places, sizeof(*place), FDES_MAX);
    if (!place) return false;
    *place = (struct fde_place){.start = start, .offset = offset};
    return true;
}

bool frame_header_pairs(const struct frame_table_source *source, struct cursor *ret_pairs, uint64_t *ret_count)
{
    struct cfi_section header = {
        .bytes = source->header, .address = source->header_address, .data_address = source->header_address};
    /* The header is a version, three encodings, the address of .eh_frame, a count, and sorted pairs of (code, FDE). */
    struct cursor cursor = cursor_of(source->header);
    if (cursor_u8(&cursor) != 1) return false;
    uint8_t eh_frame_encoding = cursor_u8(&cursor);
    uint8_t count_encoding = cursor_u8(&cursor);
    if (cursor_u8(&cursor) != HEADER_DATA_RELATIVE_4) return false;
    (void)cfi_encoded_pointer(&cursor, &header, eh_frame_encoding);
    uint64_t count = cfi_encoded_pointer(&cursor, &header, count_encoding);
    if (cursor.failed || count == 0 || count > cursor_left(&cursor) / 8) return false;
    *ret_pairs = cursor;
    *ret_count = count;
    return true;
}

static void begin_listing_section(struct frame_build *build, enum phase phase)
{
    build->phase = phase;
    build->offset = 0;
    build->fde = (struct cfi_fde){.start = 0};
}

static void end_listing(struct frame_build *build);

static void end_listing_eh_frame(struct frame_build *build)
{
    if (build->source.debug_frame.bytes.size > 0)
        begin_listing_section(build, LIST_DEBUG_FRAME);
    else
        end_listing(build);
}

static void list_header(struct frame_build *build)
{
    const struct frame_table_source *source = &build->source;
    for (unsigned i = 0; i < STEP_PAIRS && build->header_left > 0; i++, build->header_left--) {
        uint64_t start = source->header_address + (uint64_t)(int64_t)(int32_t)cursor_u32(&build->header);
        uint64_t fde = source->header_address + (uint64_t)(int64_t)(int32_t)cursor_u32(&build->header);
        if (!add_place(build, start, (fde - source->eh_frame.address) * 2)) {
            fail_build(build, FRAME_BUILD_TOO_LARGE);
            return;
        }
    }
    if (build->header_left == 0) end_listing_eh_frame(build);
}

static void list_section(struct frame_build *build, const struct cfi_section *section)
{
    for (unsigned i = 0; i < STEP_ENTRIES && build->offset != SIZE_MAX; i++) {
        size_t offset = build->offset;
        if (!cfi_read_fde(section, offset, &build->fde, &build->offset)) continue;
        /* Code that the linker left out is still described, at 0. */
        if (section->is_debug_frame && build->fde.start == section->bias) continue;
        if (!add_place(build, build->fde.start, offset * 2 + section->is_debug_frame)) {
            fail_build(build, FRAME_BUILD_TOO_LARGE);
            return;
        }
    }
    if (build->offset != SIZE_MAX) return;
    if (section->is_debug_frame)
        end_listing(build);
    else
        end_listing_eh_frame(build);
}

static int compare_places(const void *a, const void *b)
{
    const struct fde_place *left = a, *right = b;
    if (left->start != right->start) return left->start < right->start ? -1 : 1;
    return (int)(left->offset & 1) - (int)(right->offset & 1);
}

static void end_listing(struct frame_build *build)
{
    const struct fde_place *places = build->places.items;
    size_t sorted = 1; /* most lists are sorted already */
    while (sorted < build->places.count && places[sorted - 1].start <= places[sorted].start) sorted++;
    if (sorted < build->places.count)
        sort_in_place(build->places.items, build->places.count, sizeof(struct fde_place), compare_places);
    pages_array_reserve(&build->rows, sizeof(struct row), build->places.count * ROWS_PER_FDE_USUAL);
    build->phase = RUN;
}

/* Adds a row, unless it only repeats the previous one and begins no function. */
static void add_row(struct frame_build *build, uint64_t pc, uint32_t number)
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

static bool add_cfi_row(void *context, uint64_t start, uint64_t end, const struct cfi_row *row)
{
    struct frame_build *build = context;
    uint64_t base = build->source.base;
    if (start < base + build->end) start = base + build->end; /* the previous function overlaps, and stays */
    if (start >= end) return true;
    uint32_t number = machine_compile_rule(&build->fde, row, &build->rules);
    if (start == build->fde.start) number |= FRAME_TABLE_FUNCTION_START;
    add_row(build, start - base, number);
    build->end = end - base;
    return !build->full;
}

/* Gives the row GAP between two FDEs a rule, if the code there is known. */
static void fill_gap(struct frame_build *build, size_t gap)
{
    enum { GAP_MAX = 16, RULE = FRAME_TABLE_FUNCTION_START - 1 };
    struct row *rows = build->rows.items;
    if (gap == 0 || gap + 1 >= build->rows.count || rows[gap].number != RULE_NONE) return;
    if (rows[gap + 1].pc - rows[gap].pc >= GAP_MAX) return;
    rows[gap].number = machine_rule_between(rows[gap - 1].number & RULE, rows[gap + 1].number & RULE, &build->rules);
}

/* Reads the FDE at PLACE. If an empty function has the same start as the next one, the linker's sorted list may have
 * only the empty one. */
static bool read_place(struct frame_build *build, const struct fde_place *place)
{
    enum { EMPTY_MAX = 4 };
    size_t offset = place->offset / 2, next = SIZE_MAX;
    for (unsigned i = 0; i < EMPTY_MAX; i++, offset = next) {
        build->fde.start = build->fde.end = 0;
        if (cfi_read_fde(build->section, offset, &build->fde, &next)) return i == 0 || build->fde.start == place->start;
        bool is_empty = build->fde.start == place->start && build->fde.end == place->start;
        if (!is_empty || next == SIZE_MAX) return false;
    }
    return false;
}

static void run_place(struct frame_build *build, const struct fde_place *place)
{
    uint64_t base = build->source.base;
    const struct cfi_section *section = place->offset & 1 ? &build->source.debug_frame : &build->source.eh_frame;
    build->fde_count++;
    if (build->section != section) {
        build->section = build->rules.section = section;
        build->fde = (struct cfi_fde){.start = 0}; /* its CIE is in the other section */
        build->machine.initial_of = NULL;
    }
    if (!read_place(build, place) || build->fde.start < base || build->fde.end - base > FRAME_TABLE_CODE_MAX) {
        build->broken_count++;
        return;
    }
    size_t gap = build->rows.count;
    bool has_gap = build->fde.start - base > build->end && gap > 0;
    if (has_gap) add_row(build, build->end, RULE_NONE);
    if (build->rows.count == 0) build->end = build->fde.start - base;
    if (!cfi_run(build->section, &build->fde, &build->machine, add_cfi_row, build)) build->broken_count++;
    if (has_gap) fill_gap(build, gap);
    /* Code that a broken FDE leaves out has no rule. */
    if (build->end < build->fde.end - base && build->rows.count > 0) {
        add_row(build, build->end, RULE_NONE);
        build->end = build->fde.end - base;
    }
}

static void copy_items(void *to, const struct pages_array *from, size_t item_size)
{
    if (from->count > 0) memcpy(to, from->items, from->count * item_size);
}

static bool begin_packing(struct frame_build *build)
{
    const struct row *rows = build->rows.items;
    uint32_t start = rows[0].pc & ~(uint32_t)(FRAME_TABLE_BLOCK_SIZE - 1);
    uint32_t block_count = (((uint32_t)build->end - 1 - start) >> FRAME_TABLE_BLOCK_SHIFT) + 1;
    /* Each block begins with a row, a new one or the previous one, which continues. */
    uint32_t row_count = (uint32_t)build->rows.count + block_count;
    for (size_t i = 0; i < build->rows.count; i++) row_count -= rows[i].pc % FRAME_TABLE_BLOCK_SIZE == 0;
    struct frame_table table = {
        .start = start,
        .end = (uint32_t)build->end,
        .row_count = row_count,
        .block_count = block_count,
        .rule_count = build->rules.rule_count,
        .wide_count = (uint32_t)build->rules.wide.count,
        .expression_bytes = (uint32_t)build->rules.expressions.count,
        .fde_count = build->fde_count,
        .broken_fde_count = build->broken_count,
        .rejected_row_count = build->rules.rejected_count,
    };
    struct frame_table_layout layout = frame_table_layout(&table);
    uint8_t *memory = pages_allocate(layout.size);
    if (!memory) return false;
    pages_prefer_large(memory, layout.size);
    pages_populate(memory, layout.size);
    frame_table_take_block(&table, memory);
    memcpy(memory + layout.rules, build->rules.rules, table.rule_count * sizeof(struct machine_rule));
    copy_items(memory + layout.wide, &build->rules.wide, sizeof(struct wide_rule));
    copy_items(memory + layout.expressions, &build->rules.expressions, 1);
    build->table = table;
    build->packed_number = RULE_NONE;
    build->phase = PACK;
    return true;
}

static void pack(struct frame_build *build)
{
    struct frame_table *table = &build->table;
    struct frame_table_layout layout = frame_table_layout(table);
    uint32_t *rows = (uint32_t *)(void *)((uint8_t *)table->memory + layout.rows);
    uint32_t *blocks = (uint32_t *)(void *)((uint8_t *)table->memory + layout.blocks);
    const struct row *from = build->rows.items;
    uint32_t count = build->packed_row_count, number = build->packed_number;
    size_t next = build->next_row;
    for (unsigned i = 0; i < STEP_BLOCKS && build->next_block < table->block_count; i++) {
        uint64_t start = table->start + ((uint64_t)build->next_block << FRAME_TABLE_BLOCK_SHIFT);
        blocks[build->next_block++] = count;
        if (next == build->rows.count || from[next].pc != start) rows[count++] = number;
        for (; next < build->rows.count && from[next].pc < start + FRAME_TABLE_BLOCK_SIZE; next++) {
            rows[count++] = (uint32_t)(from[next].pc - start) << FRAME_TABLE_OFFSET_SHIFT | from[next].number;
            number = from[next].number & (FRAME_TABLE_FUNCTION_START - 1);
        }
    }
    build->packed_row_count = count;
    build->packed_number = number;
    build->next_row = next;
    if (build->next_block < table->block_count) return;
    blocks[table->block_count] = count;
    build->phase = DONE;
}

static void run_some(struct frame_build *build)
{
    const struct fde_place *places = build->places.items;
    for (unsigned i = 0; i < STEP_FUNCTIONS && build->next_place < build->places.count && !build->full; i++) {
        run_place(build, &places[build->next_place++]);
    }
    if (build->full)
        fail_build(build, FRAME_BUILD_TOO_LARGE);
    else if (build->next_place < build->places.count)
        return;
    else if (build->rows.count == 0 || build->end == 0)
        fail_build(build, FRAME_BUILD_NOTHING);
    else if (!begin_packing(build))
        fail_build(build, FRAME_BUILD_NO_MEMORY);
}

struct frame_build *frame_build_begin(const struct frame_table_source *source)
{
    struct frame_build *build = pages_allocate(sizeof(*build));
    if (!build) return NULL;
    build->source = *source;
    rule_builder_begin(&build->rules);
    if (frame_header_pairs(&build->source, &build->header, &build->header_left))
        pages_array_reserve(&build->places, sizeof(struct fde_place), build->header_left);
    else
        begin_listing_section(build, LIST_EH_FRAME);
    return build;
}

bool frame_build_step(struct frame_build *build)
{
    switch (build->phase) {
    case LIST_HEADER:
        list_header(build);
        break;
    case LIST_EH_FRAME:
        list_section(build, &build->source.eh_frame);
        break;
    case LIST_DEBUG_FRAME:
        list_section(build, &build->source.debug_frame);
        break;
    case RUN:
        run_some(build);
        break;
    case PACK:
        pack(build);
        break;
    case DONE:
    case FAILED:
        return false;
    }
    return build->phase < DONE;
}

enum frame_build_failure frame_build_take(struct frame_build *build, struct frame_table *ret_table)
{
    if (build->phase != DONE) return build->failure;
    *ret_table = build->table;
    build->table = (struct frame_table){0};
    return FRAME_BUILD_SUCCEEDED;
}

void frame_build_free(struct frame_build *build)
{
    if (!build) return;
    rule_builder_fini(&build->rules);
    pages_array_fini(&build->places);
    pages_array_fini(&build->rows);
    frame_table_fini(&build->table);
    pages_free(build, sizeof(*build));
}

bool frame_table_build(const struct frame_table_source *source, struct frame_table *ret_table)
{
    struct frame_build *build = frame_build_begin(source);
    if (!build) return false;
    while (frame_build_step(build)) {
    }
    bool built = frame_build_take(build, ret_table) == FRAME_BUILD_SUCCEEDED;
    frame_build_free(build);
    return built;
}
