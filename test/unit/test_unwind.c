/* Call frame information by hand-assembled bytes: what each instruction says, what damaged ones do, what becomes of
 * them in a table, and where a walk over a made-up stack leads.  SPDX-License-Identifier: MIT */
#include "test.h"

#include "unwind/copied_stack.h"
#include "unwind/cross_code.h"
#include "unwind/elf_sections.h"
#include "unwind/frame_table_file.h"
#include "unwind/unwind.h"

#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

/* --- An assembler ------------------------------------------------------------------------------------------------- */

enum { SECTION_ADDRESS = 0x10000, CODE = 0x400000, BYTES_MAX = 1 << 16, END = -1 };

enum { RAX = 0, RBX = 3, RBP = 6, RSP = 7, R10 = 10, R12 = 12, R15 = 15, RIP = 16 };

struct assembled {
    uint8_t bytes[BYTES_MAX];
    size_t size, entry, cie;
    bool is_debug_frame;
};

static struct assembled *fresh(void)
{
    static struct assembled assembled;
    memset(&assembled, 0, sizeof(assembled));
    return &assembled;
}

static void put(struct assembled *to, uint64_t value, size_t size)
{
    memcpy(to->bytes + to->size, &value, size);
    to->size += size;
}

static void put_bytes(struct assembled *to, va_list bytes)
{
    for (int byte = va_arg(bytes, int); byte != END; byte = va_arg(bytes, int)) put(to, (uint64_t)byte, 1);
}

static void begin(struct assembled *to, uint64_t id)
{
    to->entry = to->size;
    put(to, 0, 4);
    put(to, id, 4);
}

static void finish(struct assembled *to)
{
    uint32_t length = (uint32_t)(to->size - to->entry - 4);
    memcpy(to->bytes + to->entry, &length, 4);
}

/* Code in units of 1, data in units of -8, absolute addresses: CFA = RSP + 8, return address below it, and then BYTES.
 */
static void put_cie(struct assembled *to, const char *augmentation, ...)
{
    va_list bytes;
    to->cie = to->size;
    begin(to, to->is_debug_frame ? UINT32_MAX : 0);
    put(to, 1, 1);
    for (const char *letter = augmentation; *letter; letter++) put(to, (uint8_t)*letter, 1);
    put(to, 0, 1);
    put(to, 1, 1);
    put(to, 0x78, 1);
    put(to, RIP, 1);
    if (augmentation[0] == 'z') put(to, 0, 1);
    put(to, 0x0c, 1);
    put(to, RSP, 1);
    put(to, 8, 1);
    put(to, 0x80 | RIP, 1);
    put(to, 1, 1);
    va_start(bytes, augmentation);
    put_bytes(to, bytes);
    va_end(bytes);
    finish(to);
}

static void begin_fde(struct assembled *to, uint64_t start, uint64_t size)
{
    begin(to, to->is_debug_frame ? to->cie : to->size + 4 - to->cie);
    put(to, start, 8);
    put(to, size, 8);
}

static void put_fde(struct assembled *to, uint64_t start, uint64_t size, ...)
{
    va_list bytes;
    begin_fde(to, start, size);
    va_start(bytes, size);
    put_bytes(to, bytes);
    va_end(bytes);
    finish(to);
}

static struct cfi_section section_of(const struct assembled *from)
{
    return (struct cfi_section){
        .bytes = slice_of(from->bytes, from->size), .address = SECTION_ADDRESS, .is_debug_frame = from->is_debug_frame};
}

/* --- Instructions ------------------------------------------------------------------------------------------------- */

struct taken_rows {
    unsigned count;
    uint64_t starts[16];
    struct cfi_row rows[16];
};

static bool take(void *context, uint64_t start, uint64_t end, const struct cfi_row *row)
{
    struct taken_rows *taken = context;
    if (taken->count == 16) return false;
    taken->starts[taken->count] = start;
    taken->rows[taken->count++] = *row;
    return true;
}

/* Runs the instructions given, up to END, as an FDE of 0x100 bytes. */
static bool run(struct taken_rows *ret_taken, ...)
{
    struct assembled *assembled = fresh();
    static struct cfi_machine machine;
    struct cfi_fde fde = {0};
    va_list bytes;
    put_cie(assembled, "", 0x80 | R15, 9, END);
    size_t place = assembled->size;
    begin_fde(assembled, CODE, 0x100);
    va_start(bytes, ret_taken);
    put_bytes(assembled, bytes);
    va_end(bytes);
    finish(assembled);
    struct cfi_section section = section_of(assembled);
    memset(ret_taken, 0, sizeof(*ret_taken));
    memset(&machine, 0, sizeof(machine));
    return cfi_read_fde(&section, place, &fde, NULL) && cfi_run(&section, &fde, &machine, take, ret_taken);
}

#define CHECK_RULE(row, number, expected_kind, expected_value)                                                         \
    do {                                                                                                               \
        CHECK_UINT((row).registers[number].kind, expected_kind);                                                       \
        CHECK_INT((row).registers[number].value, expected_value);                                                      \
    } while (0)

TEST(a_row_begins_as_the_cie_says)
{
    struct taken_rows rows;
    CHECK(run(&rows, 0, END));
    CHECK_UINT(rows.count, 1);
    CHECK_UINT(rows.starts[0], CODE);
    CHECK_UINT(rows.rows[0].cfa_register, RSP);
    CHECK_INT(rows.rows[0].cfa_offset, 8);
    CHECK_RULE(rows.rows[0], RIP, CFI_OFFSET, -8);
    CHECK_RULE(rows.rows[0], R15, CFI_OFFSET, -72);
    CHECK_RULE(rows.rows[0], RBX, CFI_SAME_VALUE, 0);
}

TEST(every_instruction_that_moves_the_location_ends_a_row)
{
    struct taken_rows rows;
    CHECK(run(&rows, 0x41, 0x02, 2, 0x03, 3, 0, 0x04, 4, 0, 0, 0, END));
    CHECK_UINT(rows.count, 5);
    CHECK_UINT(rows.starts[1], CODE + 1);
    CHECK_UINT(rows.starts[2], CODE + 3);
    CHECK_UINT(rows.starts[3], CODE + 6);
    CHECK_UINT(rows.starts[4], CODE + 10);
    CHECK(run(&rows, 0x01, 0x20, 0, 0x40, 0, 0, 0, 0, 0, END)); /* set_loc */
    CHECK_UINT(rows.starts[1], CODE + 0x20);
    CHECK(run(&rows, 0x42, 0x40, 0x02, 0, END)); /* steps of nothing give no row */
    CHECK_UINT(rows.count, 2);
    CHECK(run(&rows, 0x03, 0, 2, 0x0e, 16, END)); /* past the end: the rest is cut */
    CHECK_UINT(rows.count, 1);
}

TEST(every_instruction_that_defines_the_cfa_does)
{
    struct taken_rows rows;
    CHECK(run(&rows, 0x0c, RBP, 0x90, 1, END));
    CHECK_UINT(rows.rows[0].cfa_register, RBP);
    CHECK_INT(rows.rows[0].cfa_offset, 0x90);
    CHECK(run(&rows, 0x12, RBX, 0x7e, END)); /* -2 units of -8 */
    CHECK_UINT(rows.rows[0].cfa_register, RBX);
    CHECK_INT(rows.rows[0].cfa_offset, 16);
    CHECK(run(&rows, 0x0d, RBP, END));
    CHECK_UINT(rows.rows[0].cfa_register, RBP);
    CHECK_INT(rows.rows[0].cfa_offset, 8);
    CHECK(run(&rows, 0x0e, 48, END));
    CHECK_UINT(rows.rows[0].cfa_register, RSP);
    CHECK_INT(rows.rows[0].cfa_offset, 48);
    CHECK(run(&rows, 0x13, 0x7d, END));
    CHECK_INT(rows.rows[0].cfa_offset, 24);
    CHECK(run(&rows, 0x0f, 2, 0x76, 0x10, END));
    CHECK(rows.rows[0].cfa_is_expression);
    CHECK_UINT(rows.rows[0].cfa_expression_size, 2);
    CHECK(run(&rows, 0x0f, 2, 0x76, 0x10, 0x0c, RSP, 8, END));
    CHECK(!rows.rows[0].cfa_is_expression);
    CHECK(run(&rows, 0x0e, 48, 0x0f, 2, 0x76, 0x10, 0x0d, RBP, END)); /* the offset is that of before, as in libgcc */
    CHECK(!rows.rows[0].cfa_is_expression);
    CHECK_UINT(rows.rows[0].cfa_register, RBP);
    CHECK_INT(rows.rows[0].cfa_offset, 48);
}

TEST(every_instruction_that_says_where_a_register_is_does)
{
    struct taken_rows rows;
    CHECK(run(&rows, 0x80 | RBX, 3, 0x05, RBP, 2, 0x11, R12, 4, 0x2f, R10, 5, END));
    CHECK_RULE(rows.rows[0], RBX, CFI_OFFSET, -24);
    CHECK_RULE(rows.rows[0], RBP, CFI_OFFSET, -16);
    CHECK_RULE(rows.rows[0], R12, CFI_OFFSET, -32);
    CHECK_RULE(rows.rows[0], R10, CFI_OFFSET, 40);
    CHECK(run(&rows, 0x14, RBX, 3, 0x15, RBP, 0x7e, 0x09, R12, R10, 0x07, R15, END));
    CHECK_RULE(rows.rows[0], RBX, CFI_VALUE_OFFSET, -24);
    CHECK_RULE(rows.rows[0], RBP, CFI_VALUE_OFFSET, 16);
    CHECK_RULE(rows.rows[0], R12, CFI_REGISTER, R10);
    CHECK_RULE(rows.rows[0], R15, CFI_UNDEFINED, 0);
    CHECK(run(&rows, 0x10, RBX, 2, 0x77, 8, 0x16, RBP, 1, 0x30, 0x08, R15, END));
    CHECK_UINT(rows.rows[0].registers[RBX].kind, CFI_EXPRESSION);
    CHECK_UINT(rows.rows[0].registers[RBX].expression_size, 2);
    CHECK_UINT(rows.rows[0].registers[RBP].kind, CFI_VALUE_EXPRESSION);
    CHECK_RULE(rows.rows[0], R15, CFI_SAME_VALUE, 0);
}

TEST(restoring_gives_back_the_cies_rule_and_remembering_the_entire_row)
{
    struct taken_rows rows;
    CHECK(run(&rows, 0x07, R15, 0x80 | RBX, 2, 0x41, 0xc0 | R15, 0x06, RBX, END));
    CHECK_RULE(rows.rows[0], R15, CFI_UNDEFINED, 0);
    CHECK_RULE(rows.rows[1], R15, CFI_OFFSET, -72);
    CHECK_RULE(rows.rows[1], RBX, CFI_SAME_VALUE, 0);
    CHECK(run(&rows, 0x0e, 16, 0x0a, 0x0c, RBP, 32, 0x80 | RBX, 2, 0x41, 0x0b, END));
    CHECK_UINT(rows.rows[0].cfa_register, RBP);
    CHECK_UINT(rows.rows[1].cfa_register, RSP);
    CHECK_INT(rows.rows[1].cfa_offset, 16);
    CHECK_RULE(rows.rows[1], RBX, CFI_SAME_VALUE, 0);
}

TEST(ignores_unused_registers_and_the_size_of_arguments)
{
    struct taken_rows rows;
    CHECK(run(&rows, 0x05, 17, 1, 0x05, 0xff, 1, 1, 0x07, 40, 0x2e, 0x90, 1, 0x10, 60, 1, 0x30, 0x0e, 16, END));
    CHECK_INT(rows.rows[0].cfa_offset, 16);
}

TEST(offsets_that_do_not_fit_are_not_believed)
{
    struct taken_rows rows;
    CHECK(run(&rows, 0x80 | RBX, 0xff, 0xff, 0xff, 0xff, 0x7f, 0x0e, 0xff, 0xff, 0xff, 0xff, 0x7f, END));
    CHECK_RULE(rows.rows[0], RBX, CFI_UNDEFINED, 0);
    CHECK_UINT(rows.rows[0].cfa_register, UINT16_MAX);
}

TEST(broken_instructions_are_rejected)
{
    struct taken_rows rows;
    CHECK(!run(&rows, 0x3f, END));      /* no such instruction */
    CHECK(!run(&rows, 0x1d, END));      /* another vendor's */
    CHECK(!run(&rows, 0x0c, RSP, END)); /* an operand is missing */
    CHECK(!run(&rows, 0x03, 1, END));
    CHECK(!run(&rows, 0x0e, 0x80, 0x80, END));                                     /* a number without an end */
    CHECK(!run(&rows, 0x0b, END));                                                 /* nothing remembered */
    CHECK(!run(&rows, 0x0f, 9, 0x30, END));                                        /* an expression past the end */
    CHECK(!run(&rows, 0x01, 0, 0, 0, 0, 0, 0, 0, 0, END));                         /* backwards */
    CHECK(!run(&rows, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, END)); /* nine deep */
    CHECK(run(&rows, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, 0x0a, END));
}

TEST(the_rows_before_a_broken_instruction_have_been_given)
{
    struct taken_rows rows;
    CHECK(!run(&rows, 0x0e, 16, 0x50, 0x3f, END));
    CHECK_UINT(rows.count, 1);
    CHECK_INT(rows.rows[0].cfa_offset, 16);
}

TEST(broken_entries_are_rejected)
{
    struct assembled *assembled = fresh();
    struct cfi_fde fde = {0};
    size_t next = 0;
    put_cie(assembled, "", END);
    size_t place = assembled->size;
    put_fde(assembled, CODE, 0x10, END);
    struct cfi_section section = section_of(assembled);
    CHECK(cfi_read_fde(&section, place, &fde, &next));
    CHECK_UINT(fde.start, CODE);
    CHECK_UINT(fde.end, CODE + 0x10);
    CHECK_UINT(next, SIZE_MAX);
    CHECK(!cfi_read_fde(&section, 0, &fde, &next)); /* a CIE */
    CHECK_UINT(next, place);
    CHECK(!cfi_read_fde(&section, section.bytes.size - 3, &fde, &next));
    CHECK(!cfi_read_fde(&section, SIZE_MAX - 1, &fde, &next));

    struct cfi_fde none = {0};
    assembled->bytes[place + 4] ^= 0x40; /* its CIE is nowhere */
    CHECK(!cfi_read_fde(&section, place, &none, &next));
    assembled->bytes[place + 4] ^= 0x40;
    assembled->bytes[8] = 9; /* a version that nobody knows */
    CHECK(!cfi_read_fde(&section, place, &none, &next));
    assembled->bytes[8] = 1;
    assembled->bytes[place + 16] = 0; /* no code at all */
    CHECK(!cfi_read_fde(&section, place, &none, &next));
    assembled->bytes[place] = 0; /* the terminator */
    CHECK(!cfi_read_fde(&section, place, &none, &next));
    CHECK_UINT(next, SIZE_MAX);
}

TEST(an_augmentation_is_followed_as_far_as_it_is_known)
{
    struct assembled *assembled = fresh();
    struct cfi_fde fde = {0};
    begin(assembled, 0);
    put(assembled, 3, 1);
    for (const char *letter = "zPLRS"; *letter; letter++) put(assembled, (uint8_t)*letter, 1);
    put(assembled, 0, 1);
    put(assembled, 4, 1);    /* code in units of 4 */
    put(assembled, 0x7c, 1); /* data in units of -4 */
    put(assembled, 0x90, 1); /* RIP, as a long LEB128 */
    put(assembled, 0, 1);
    put(assembled, 7, 1);    /* size of the augmentation, bytes */
    put(assembled, 0x9b, 1); /* personality: indirect, relative, 4 bytes */
    put(assembled, 0x12345678, 4);
    put(assembled, 0x1b, 1); /* encoding of exception tables */
    put(assembled, 0x1b, 1); /* encoding of addresses: relative, 4 bytes */
    finish(assembled);
    size_t place = assembled->size;
    begin(assembled, place + 4);
    put(assembled, (uint64_t)(CODE - (SECTION_ADDRESS + assembled->size)), 4);
    put(assembled, 0x20, 4);
    put(assembled, 2, 1);
    put(assembled, 0xffff, 2); /* exception tables */
    put(assembled, 0x0e, 1);
    put(assembled, 16, 1);
    finish(assembled);
    struct cfi_section section = section_of(assembled);
    CHECK(cfi_read_fde(&section, place, &fde, NULL));
    CHECK_UINT(fde.start, CODE);
    CHECK_UINT(fde.end, CODE + 0x20);
    CHECK(fde.cie.is_signal_frame);
    CHECK_UINT(fde.cie.code_alignment, 4);
    CHECK_INT(fde.cie.data_alignment, -4);
    CHECK_UINT(fde.cie.return_register, RIP);
    CHECK_UINT(fde.instructions.size, 2);
}

/* --- Tables ------------------------------------------------------------------------------------------------------- */

static bool build_table(const struct assembled *from, struct frame_table *ret_table)
{
    struct frame_table_source source = {.eh_frame = section_of(from), .base = CODE};
    return frame_table_build(&source, ret_table);
}

static const struct machine_rule *rule_at(const struct frame_table *table, uint32_t pc)
{
    return &table->rules[frame_table_rule_at(table, pc)];
}

TEST(gaps_and_broken_functions_have_no_rule_and_overlaps_keep_the_first)
{
    struct assembled *assembled = fresh();
    struct frame_table table;
    put_cie(assembled, "", END);
    put_fde(assembled, CODE + 0x300, 0x10, 0x0e, 48, 0x44, 0x3f, END); /* breaks at 0x304 */
    put_fde(assembled, CODE + 0x200, 0x10, 0x0e, 32, END);
    put_fde(assembled, CODE + 0x100, 0x10, 0x0e, 16, END);
    put_fde(assembled, CODE + 0x108, 0x18, 0x0e, 24, END);
    put_fde(assembled, CODE + 0x310, 0x10, 0x0e, 56, END);
    CHECK(build_table(assembled, &table));
    CHECK_UINT(table.fde_count, 5);
    CHECK_UINT(table.broken_fde_count, 1);
    CHECK_UINT(rule_at(&table, 0xff)->kind, RULE_NONE);
    CHECK_INT(rule_at(&table, 0x100)->value, 16);
    CHECK_INT(rule_at(&table, 0x10f)->value, 16);
    CHECK_INT(rule_at(&table, 0x110)->value, 24);
    CHECK_INT(rule_at(&table, 0x11f)->value, 24);
    CHECK_UINT(rule_at(&table, 0x120)->kind, RULE_NONE);
    CHECK_INT(rule_at(&table, 0x200)->value, 32);
    CHECK_UINT(rule_at(&table, 0x210)->kind, RULE_NONE);
    CHECK_INT(rule_at(&table, 0x303)->value, 48);
    CHECK_UINT(rule_at(&table, 0x304)->kind, RULE_NONE);
    CHECK_UINT(rule_at(&table, 0x30f)->kind, RULE_NONE);
    CHECK_INT(rule_at(&table, 0x310)->value, 56);
    CHECK_UINT(rule_at(&table, 0x320)->kind, RULE_NONE);
    CHECK_UINT(rule_at(&table, UINT32_MAX)->kind, RULE_NONE);
    frame_table_fini(&table);
}

static void put_header(struct assembled *header, uint64_t address, const uint64_t (*pairs)[2], uint32_t count)
{
    put(header, 0x3b031b01, 4);
    put(header, SECTION_ADDRESS - (address + 4), 4);
    put(header, count, 4);
    for (uint32_t i = 0; i < count; i++) {
        put(header, pairs[i][0] - address, 4);
        put(header, pairs[i][1] - address, 4);
    }
}

TEST(reads_a_header_that_is_missing_or_unsorted)
{
    enum { HEADER_ADDRESS = 0x20000 };
    static struct assembled header;
    struct assembled *assembled = fresh();
    struct frame_table table, without;
    put_cie(assembled, "", END);
    uint64_t second = SECTION_ADDRESS + assembled->size;
    put_fde(assembled, CODE + 0x40, 0x40, 0x0e, 32, END);
    uint64_t first = SECTION_ADDRESS + assembled->size;
    put_fde(assembled, CODE, 0x40, 0x0e, 16, END);
    put_fde(assembled, CODE + 0x80, 0x40, 0x0e, 48, END);
    const uint64_t pairs[2][2] = {{CODE + 0x40, second}, {CODE, first}};
    put_header(&header, HEADER_ADDRESS, pairs, 2);
    struct frame_table_source source = {.eh_frame = section_of(assembled),
                                        .header = slice_of(header.bytes, header.size),
                                        .header_address = HEADER_ADDRESS,
                                        .base = CODE};
    CHECK(frame_table_build(&source, &table));
    CHECK_INT(rule_at(&table, 0)->value, 16);
    CHECK_INT(rule_at(&table, 0x40)->value, 32);
    CHECK_UINT(rule_at(&table, 0x80)->kind, RULE_NONE);
    frame_table_fini(&table);
    for (size_t size = 0; size < header.size; size++) { /* cut anywhere, it is not believed */
        source.header = slice_of(header.bytes, size);
        CHECK(frame_table_build(&source, &without));
        CHECK_INT(rule_at(&without, 0x80)->value, 48);
        frame_table_fini(&without);
    }
}

TEST(an_empty_function_hides_no_other_that_begins_where_it_does)
{
    enum { HEADER_ADDRESS = 0x20000 };
    static struct assembled header;
    struct assembled *assembled = fresh();
    struct frame_table table;
    struct frame_lookup lookup;
    static struct frame_lookup_work work;
    put_cie(assembled, "", END);
    uint64_t empty = SECTION_ADDRESS + assembled->size;
    put_fde(assembled, CODE, 0, END);
    put_fde(assembled, CODE, 0x40, 0x0e, 32, END);
    const uint64_t pairs[1][2] = {{CODE, empty}};
    put_header(&header, HEADER_ADDRESS, pairs, 1);
    struct frame_table_source source = {.eh_frame = section_of(assembled),
                                        .header = slice_of(header.bytes, header.size),
                                        .header_address = HEADER_ADDRESS,
                                        .base = CODE};
    CHECK(frame_table_build(&source, &table));
    CHECK_INT(rule_at(&table, 0x3f)->value, 32);
    frame_table_fini(&table);
    CHECK(frame_lookup_init(&source, &lookup));
    CHECK(frame_lookup_find(&lookup, CODE + 0x3f, &work));
    CHECK_INT(work.rule.value, 32);
}

TEST(a_lookup_gives_the_rule_that_the_table_has)
{
    enum { HEADER_ADDRESS = 0x20000, FUNCTIONS = 20, SIZE = 0x40 };
    static struct assembled header;
    struct assembled *assembled = fresh();
    static struct frame_lookup_work work;
    struct frame_table table;
    struct frame_lookup lookup;
    uint64_t pairs[FUNCTIONS][2];
    put_cie(assembled, "zS", END);
    for (unsigned i = 0; i < FUNCTIONS; i++) {
        if (i == FUNCTIONS / 2) put_cie(assembled, "", END);
        pairs[i][0] = CODE + i * 2 * SIZE; /* a gap after it */
        pairs[i][1] = SECTION_ADDRESS + assembled->size;
        begin_fde(assembled, pairs[i][0], SIZE);
        if (i < FUNCTIONS / 2) put(assembled, 0, 1);
        static const uint8_t code[] = {0x41, 0x0e, 16,   0x86, 2, 0x43, 0x0d, RBP,  0x48, 0x0f, 2,
                                       0x76, 0x10, 0x10, RBX,  2, 0x77, 8,    0x48, 0x07, RIP};
        for (size_t at = 0; at < sizeof(code); at++) put(assembled, code[at], 1);
        finish(assembled);
    }
    put_header(&header, HEADER_ADDRESS, (const uint64_t(*)[2])pairs, FUNCTIONS);
    struct frame_table_source source = {.eh_frame = section_of(assembled),
                                        .header = slice_of(header.bytes, header.size),
                                        .header_address = HEADER_ADDRESS,
                                        .base = CODE};
    CHECK(frame_table_build(&source, &table));
    CHECK(frame_lookup_init(&source, &lookup));
    for (uint32_t pc = 0; pc < FUNCTIONS * 2 * SIZE; pc++) {
        const struct machine_rule *rule = rule_at(&table, pc);
        bool is_found = frame_lookup_find(&lookup, CODE + pc, &work);
        CHECK(is_found == (rule->kind != RULE_NONE));
        if (!is_found) continue;
        CHECK_UINT(work.rule.kind, rule->kind);
        if (rule->kind != RULE_WIDE) {
            CHECK(memcmp(rule, &work.rule, sizeof(*rule)) == 0);
            continue;
        }
        const struct wide_rule *wide = &table.wide[rule->value];
        CHECK_UINT(work.table.wide[work.rule.value].cfa_kind, wide->cfa_kind);
        CHECK_UINT(work.wide.is_signal_frame, wide->is_signal_frame);
        if (wide->cfa_kind != WIDE_CFA_EXPRESSION) continue;
        CHECK(memcmp(work.table.expressions + work.wide.cfa_value, table.expressions + wide->cfa_value, 2) == 0);
    }
    CHECK(!frame_lookup_find(&lookup, CODE - 1, &work));
    frame_table_fini(&table);
}

TEST(a_row_takes_less_than_5_bytes)
{
    struct assembled *assembled = fresh();
    struct frame_table table;
    put_cie(assembled, "", END);
    for (unsigned i = 0; i < 1000; i++) {
        put_fde(assembled, CODE + i * 0x40, 0x40, 0x41, 0x0e, 16, 0x86, 2, 0x44, 0x0d, RBP, 0x60, 0x0c, RSP, 8, END);
    }
    CHECK(build_table(assembled, &table));
    CHECK_UINT(table.row_count, 4000); /* functions begin where blocks do */
    CHECK_UINT(table.rule_count, 1 + 4);
    CHECK(table.memory_size <= 5 * (size_t)table.row_count);
    frame_table_fini(&table);
}

TEST(has_the_first_row_of_a_function_with_the_same_rule_as_before)
{
    struct assembled *assembled = fresh();
    struct frame_table table;
    put_cie(assembled, "", END);
    put_fde(assembled, CODE, 0x10, 0x44, 0x0e, 16, 0x44, 0x0e, 8, END);
    put_fde(assembled, CODE + 0x10, 0x10, END);
    CHECK(build_table(assembled, &table));
    uint32_t start = 0;
    CHECK(frame_table_function_start(&table, 0xf, &start));
    CHECK_UINT(start, 0);
    CHECK(frame_table_function_start(&table, 0x1f, &start));
    CHECK_UINT(start, 0x10);
    CHECK(!frame_table_function_start(&table, 0x20, &start));
    frame_table_fini(&table);
}

TEST(debug_frame_describes_what_eh_frame_does_not)
{
    enum { BIAS = 0x1000 };
    static struct assembled debug;
    struct frame_table table;
    debug.is_debug_frame = true;
    put_cie(&debug, "", END);
    put_fde(&debug, CODE - BIAS + 0x10, 0x10, 0x0e, 16, END);
    put_fde(&debug, CODE - BIAS + 0x30, 0x10, 0x0e, 40, END); /* .eh_frame knows better */
    put_cie(&debug, "", 0x0e, 24, END);
    put_fde(&debug, CODE - BIAS + 0x20, 0x10, 0x0f, 3, 0x76, 8, 0x06, END);
    struct assembled *assembled = fresh();
    put_cie(assembled, "", END);
    put_fde(assembled, CODE + 0x30, 0x10, 0x0e, 32, END);
    struct frame_table_source source = {
        .eh_frame = section_of(assembled), .debug_frame = section_of(&debug), .base = CODE};
    source.debug_frame.bias = BIAS;
    CHECK(frame_table_build(&source, &table));
    CHECK_UINT(table.fde_count, 4);
    CHECK_UINT(table.broken_fde_count, 0);
    CHECK_INT(rule_at(&table, 0x10)->value, 16);
    CHECK_UINT(rule_at(&table, 0x20)->kind, RULE_WIDE);
    CHECK_UINT(table.wide[rule_at(&table, 0x20)->value].cfa_kind, WIDE_CFA_DEREFERENCE);
    CHECK_INT(rule_at(&table, 0x30)->value, 32);
    frame_table_fini(&table);
}

/* The CIEs alternate, so that nothing of one is used for the next. */
TEST(functions_of_several_cies_begin_with_their_own_rules)
{
    struct assembled *assembled = fresh();
    struct frame_table table;
    put_cie(assembled, "", 0x0e, 24, END);
    put_fde(assembled, CODE, 0x10, END);
    put_fde(assembled, CODE + 0x10, 0x10, 0x42, 0x83, 2, 0x42, 0xc3, END);
    put_cie(assembled, "", 0x0e, 40, 0x83, 3, END);
    put_fde(assembled, CODE + 0x20, 0x10, 0x42, 0x83, 2, 0x42, 0xc3, END);
    CHECK(build_table(assembled, &table));
    CHECK_INT(rule_at(&table, 0)->value, 24);
    CHECK_UINT(rule_at(&table, 0x13)->saved_words[MACHINE_RBX - MACHINE_FP], 2);
    CHECK_UINT(rule_at(&table, 0x14)->saved_mask, 0);
    CHECK_INT(rule_at(&table, 0x20)->value, 40);
    CHECK_UINT(rule_at(&table, 0x20)->saved_words[MACHINE_RBX - MACHINE_FP], 3);
    CHECK_UINT(rule_at(&table, 0x23)->saved_words[MACHINE_RBX - MACHINE_FP], 2);
    CHECK_UINT(rule_at(&table, 0x24)->saved_words[MACHINE_RBX - MACHINE_FP], 3);
    frame_table_fini(&table);
}

TEST(code_that_the_linker_left_out_hides_no_other)
{
    static struct assembled debug;
    struct frame_table table;
    debug.is_debug_frame = true;
    put_cie(&debug, "", END);
    put_fde(&debug, 0, 0x100, 0x0e, 16, END);
    put_fde(&debug, 0x10, 0x10, 0x0e, 40, END);
    struct frame_table_source source = {.debug_frame = section_of(&debug), .base = CODE};
    source.debug_frame.bias = CODE;
    CHECK(frame_table_build(&source, &table));
    CHECK_INT(rule_at(&table, 0x10)->value, 40);
    frame_table_fini(&table);
}

TEST(a_section_without_functions_gives_no_table)
{
    struct assembled *assembled = fresh();
    struct frame_table table = {0};
    CHECK(!build_table(assembled, &table));
    put_cie(assembled, "", END);
    CHECK(!build_table(assembled, &table));
    put(assembled, 0, 4);
    put_fde(assembled, CODE, 0x10, END); /* after the terminator */
    CHECK(!build_table(assembled, &table));
    frame_table_fini(&table);
}

/* --- Walks -------------------------------------------------------------------------------------------------------- */

enum { STACK = 0x7fff0000, STACK_WORDS = 512, FRAMES_MAX = 32 };

/* A stack of STACK_WORDS words at STACK; a write below zero words is an error of the test. */
struct scene {
    struct assembled *assembled;
    struct frame_table table;
    struct unwind_registers registers;
    uint64_t stack[STACK_WORDS];
    uint64_t addresses[FRAMES_MAX];
    size_t count;
    bool whole; /* all of the stack can be read without asking */
    unsigned asked;
    uint64_t *stack_pointers; /* receives those of the frames; NULL: not wanted */
};

/* A page holds 16 words here. */
static bool extend(struct unwind_memory *memory, uint64_t address)
{
    struct scene *scene = memory->context;
    scene->asked++;
    if (address < STACK || address >= STACK + 8 * STACK_WORDS || address % 8 != 0) return false;
    memory->low = address & ~(uint64_t)127;
    memory->high = memory->low + 128;
    return true;
}

static enum unwind_outcome walk_with(struct scene *scene, struct rule_cache *cache)
{
    struct unwind_module module = {.start = CODE, .end = CODE + 0x10000, .base = CODE, .table = &scene->table};
    struct unwind_modules modules = {.items = &module, .count = 1, .cache = cache};
    struct unwind_memory memory = {
        .shift = (uint64_t)(uintptr_t)scene->stack - STACK, .extend = extend, .context = scene};
    if (scene->whole) {
        memory.low = STACK;
        memory.high = STACK + 8 * STACK_WORDS;
    }
    return unwind_walk(&modules, &scene->registers, &memory, NULL, scene->addresses, FRAMES_MAX, &scene->count);
}

/* Walks without a cache, with an empty one and with a filled one; the results must be equal. */
static enum unwind_outcome walk(struct scene *scene)
{
    static struct rule_cache cache;
    static struct scene first;
    memset(&cache, 0, sizeof(cache));
    struct unwind_registers registers = scene->registers;
    enum unwind_outcome outcome = walk_with(scene, NULL);
    first = *scene;
    for (unsigned turn = 0; turn < 2; turn++) {
        scene->registers = registers;
        memset(scene->addresses, 0, sizeof(scene->addresses));
        CHECK_UINT(walk_with(scene, &cache), outcome);
        CHECK_UINT(scene->count, first.count);
        CHECK(memcmp(scene->addresses, first.addresses, first.count * sizeof(first.addresses[0])) == 0);
        CHECK(memcmp(&scene->registers, &first.registers, sizeof(registers)) == 0);
    }
    return outcome;
}

/* Functions at CODE + 0x100, 0x200, …, the last of which is the root; INSTRUCTIONS of others are put by the caller. */
static struct scene *fresh_scene(void)
{
    static struct scene scene;
    memset(&scene, 0, sizeof(scene));
    scene.whole = true;
    scene.assembled = fresh();
    put_cie(scene.assembled, "", END);
    put_fde(scene.assembled, CODE + 0xf00, 0x100, 0x07, RIP, END);
    return &scene;
}

static void enter(struct scene *scene, uint64_t pc, uint64_t sp_words)
{
    CHECK(build_table(scene->assembled, &scene->table));
    scene->registers = (struct unwind_registers){.known = MACHINE_ALL_KNOWN};
    scene->registers.values[MACHINE_IP] = CODE + pc;
    scene->registers.values[MACHINE_SP] = STACK + 8 * sp_words;
}

TEST(a_walk_follows_sp_fp_and_every_other_register_to_the_root)
{
    for (int whole = 0; whole < 2; whole++) {
        struct scene *scene = fresh_scene();
        scene->whole = whole;
        put_fde(scene->assembled, CODE + 0x100, 0x100, 0x0e, 32, 0x83, 2, 0x86, 3, END); /* saves RBX and RBP */
        put_fde(scene->assembled, CODE + 0x200, 0x100, 0x0c, RBP, 16, 0x86, 2, END);
        put_fde(scene->assembled, CODE + 0x300, 0x100, 0x0c, RBX, 8, END);
        enter(scene, 0x110, 0);
        scene->stack[1] = STACK + 8 * 20; /* RBP */
        scene->stack[2] = STACK + 8 * 90; /* RBX */
        scene->stack[3] = CODE + 0x210;
        scene->stack[20] = 7;
        scene->stack[21] = CODE + 0x310;
        scene->stack[90] = CODE + 0xf10;
        CHECK_UINT(walk(scene), UNWIND_ROOT);
        CHECK_UINT(scene->count, 4);
        CHECK_UINT(scene->addresses[0], CODE + 0x110);
        CHECK_UINT(scene->addresses[1], CODE + 0x210);
        CHECK_UINT(scene->addresses[2], CODE + 0x310);
        CHECK_UINT(scene->addresses[3], CODE + 0xf10);
        CHECK_UINT(scene->registers.values[MACHINE_FP], 7);
        CHECK_UINT(scene->asked > 0, !whole);
        frame_table_fini(&scene->table);
    }
}

TEST(a_return_address_after_a_noreturn_call_belongs_to_the_caller)
{
    struct scene *scene = fresh_scene();
    put_fde(scene->assembled, CODE + 0x100, 0x100, 0x0e, 16, END);
    put_fde(scene->assembled, CODE + 0x200, 0x100, 0x0e, 24, END);
    put_fde(scene->assembled, CODE + 0x300, 0x100, 0x0e, 48, END);
    enter(scene, 0x200, 0);          /* the innermost frame is looked up as it is */
    scene->stack[2] = CODE + 0x200;  /* a call at the very end of the function at 0x100 */
    scene->stack[4] = CODE + 0x1000; /* the root */
    CHECK_UINT(walk(scene), UNWIND_ROOT);
    CHECK_UINT(scene->count, 3);
    frame_table_fini(&scene->table);
}

TEST(a_return_address_that_is_the_start_of_a_function_is_the_root)
{
    struct scene *scene = fresh_scene(); /* as makecontext leaves it: the code before 0x300 is in no function */
    put_fde(scene->assembled, CODE + 0x100, 0x100, 0x0e, 16, END);
    put_fde(scene->assembled, CODE + 0x300, 0x100, 0x0e, 16, END);
    enter(scene, 0x110, 10);
    scene->stack[11] = CODE + 0x300;
    CHECK_UINT(walk(scene), UNWIND_ROOT);
    CHECK_UINT(scene->count, 2);
    CHECK_UINT(scene->addresses[1], CODE + 0x301); /* less one, it is in the function */

    scene->stack[11] = CODE + 0x2f0; /* in no function, and no start of one */
    enter(scene, 0x110, 10);
    scene->registers.known = 1u << MACHINE_IP | 1u << MACHINE_SP;
    CHECK_UINT(walk(scene), UNWIND_NO_TABLE);
    frame_table_fini(&scene->table);
}

TEST(a_zero_return_address_is_the_root)
{
    struct scene *scene = fresh_scene();
    put_fde(scene->assembled, CODE + 0x100, 0x100, END);
    enter(scene, 0x100, 0);
    CHECK_UINT(walk(scene), UNWIND_ROOT);
    CHECK_UINT(scene->count, 1);
    frame_table_fini(&scene->table);
}

TEST(a_plt_entry_has_pushed_from_its_limit_on)
{
    for (unsigned pc = 0x100; pc < 0x110; pc++) {
        struct scene *scene = fresh_scene();
        put_fde(scene->assembled, CODE + 0x100, 0x100, 0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24,
                0x22, END);
        enter(scene, pc, 4);
        CHECK_UINT(rule_at(&scene->table, pc)->kind, RULE_PLT);
        scene->stack[pc >= 0x10b ? 5 : 4] = CODE + 0xf10;
        CHECK_UINT(walk(scene), UNWIND_ROOT);
        CHECK_UINT(scene->count, 2);
        frame_table_fini(&scene->table);
    }
}

/* GCC's way to realign a stack: R10 holds the CFA, and is itself saved at a place relative to RBP. */
/* A function without frame information from its system call on, up to where it says that this is the outermost frame.
 */
static struct scene *clone_scene(unsigned gap, uint8_t first_instruction)
{
    struct scene *scene = fresh_scene();
    put_fde(scene->assembled, CODE + 0x100, 0x20, END);
    put_fde(scene->assembled, CODE + 0x120 + gap, 0x20, first_instruction, RIP, END);
    enter(scene, 0x122, 0);
    scene->stack[0] = CODE + 0xf10;
    return scene;
}

TEST(a_clone_call_begins_the_new_thread_and_returns_in_the_old)
{
    enum { UNDEFINED = 0x07, SAME = 0x08 };
    struct scene *scene = clone_scene(10, UNDEFINED);
    scene->registers.values[MACHINE_RAX] = 4321;
    CHECK_UINT(walk(scene), UNWIND_ROOT);
    CHECK_UINT(scene->count, 2);
    CHECK_UINT(scene->addresses[1], CODE + 0xf10);
    frame_table_fini(&scene->table);
    enter(scene, 0x122, 0);
    scene->registers.known &= ~(1u << MACHINE_RAX);
    CHECK_UINT(walk(scene), UNWIND_ROOT);
    CHECK_UINT(scene->count, 2);
    frame_table_fini(&scene->table);
    enter(scene, 0x122, 0);
    scene->registers.values[MACHINE_RAX] = 0;
    scene->registers.values[MACHINE_FP] = STACK + 8;
    CHECK_UINT(walk(scene), UNWIND_ROOT);
    CHECK_UINT(scene->count, 1);
    frame_table_fini(&scene->table);

    scene = clone_scene(16, UNDEFINED); /* the distance is too large for one function */
    scene->registers.values[MACHINE_FP] = 1;
    CHECK_UINT(walk(scene), UNWIND_NO_TABLE);
    frame_table_fini(&scene->table);
    scene = clone_scene(10, SAME);
    scene->registers.values[MACHINE_FP] = 1;
    CHECK_UINT(walk(scene), UNWIND_NO_TABLE);
    frame_table_fini(&scene->table);
}

TEST(a_realigned_stack_is_found_through_memory)
{
    struct scene *scene = fresh_scene();
    put_fde(scene->assembled, CODE + 0x100, 0x100, 0x0c, R10, 0, 0x50, 0x10, RBP, 2, 0x76, 0, 0x0f, 3, 0x76, 0x78, 0x06,
            END);
    enter(scene, 0x110, 0);
    scene->registers.values[MACHINE_FP] = STACK + 8 * 10;
    scene->stack[9] = STACK + 8 * 20;
    scene->stack[10] = 0x1234;
    scene->stack[19] = CODE + 0xf10;
    CHECK_UINT(walk(scene), UNWIND_ROOT);
    CHECK_UINT(scene->count, 2);
    CHECK_UINT(scene->registers.values[MACHINE_FP], 0x1234);

    enter(scene, 0x100, 0);
    scene->registers.values[MACHINE_R10] = STACK + 8 * 20;
    CHECK_UINT(walk(scene), UNWIND_ROOT);
    CHECK_UINT(scene->count, 2);
    scene->registers.known = 1u << MACHINE_IP | 1u << MACHINE_SP;
    scene->registers.values[MACHINE_IP] = CODE + 0x100;
    CHECK_UINT(walk(scene), UNWIND_UNKNOWN_REGISTER);
    frame_table_fini(&scene->table);
}

/* 0x100 is a handler, 0x200 the trampoline that it returns to, 0x300 the code that was interrupted. As libc has it, the
 * entry of the trampoline begins a byte early, so that "less one" finds it. */
static struct scene *signal_scene(void)
{
    struct scene *scene = fresh_scene();
    put_fde(scene->assembled, CODE + 0x100, 0xf0, END);
    put_fde(scene->assembled, CODE + 0x300, 0x100, 0x0c, RAX, 8, END);
    put_cie(scene->assembled, "zS", END);
    begin_fde(scene->assembled, CODE + 0x1ff, 0x101);
    put(scene->assembled, 0, 1); /* no augmentation data */
    const uint8_t instructions[] = {0x0f, 3, 0x77, 8 * 5, 0x06, 0x10, RIP, 2, 0x77, 8 * 6, 0x10, RAX, 2, 0x77, 8 * 7};
    for (size_t i = 0; i < sizeof(instructions); i++) put(scene->assembled, instructions[i], 1);
    finish(scene->assembled);
    return scene;
}

TEST(looks_up_the_caller_of_a_signal_frame_with_all_registers)
{
    struct scene *scene = signal_scene();
    enter(scene, 0x200, 10);
    scene->stack[15] = STACK + 8 * 2; /* the interrupted stack is below */
    scene->stack[16] = CODE + 0x300;  /* its first instruction */
    scene->stack[17] = STACK + 8 * 4; /* RAX */
    scene->stack[4] = CODE + 0xf10;
    CHECK_UINT(walk(scene), UNWIND_ROOT);
    CHECK_UINT(scene->count, 3);
    CHECK_UINT(scene->addresses[1], CODE + 0x301); /* plus one: less one is right for all but the first */
    CHECK_UINT(scene->addresses[2], CODE + 0xf10);
    frame_table_fini(&scene->table);
}

TEST(the_trampoline_of_a_signal_handler_has_an_exact_address)
{
    struct scene *scene = signal_scene();
    enter(scene, 0x110, 9);
    scene->stack[9] = CODE + 0x200;   /* the handler returns to the first instruction: nobody called it */
    scene->stack[15] = STACK + 8 * 2; /* the rest is as in the test above */
    scene->stack[16] = CODE + 0x300;
    scene->stack[17] = STACK + 8 * 4;
    scene->stack[4] = CODE + 0xf10;
    CHECK_UINT(walk(scene), UNWIND_ROOT);
    CHECK_UINT(scene->count, 4);
    CHECK_UINT(scene->addresses[0], CODE + 0x110);
    CHECK_UINT(scene->addresses[1], CODE + 0x201); /* plus one: less one is right for all but the first */
    CHECK_UINT(scene->addresses[2], CODE + 0x301);
    CHECK_UINT(scene->addresses[3], CODE + 0xf10);
    frame_table_fini(&scene->table);
}

TEST(uses_caller_saved_registers_in_the_innermost_frame_only)
{
    struct scene *scene = fresh_scene();
    put_fde(scene->assembled, CODE + 0x100, 0x100, END);
    put_fde(scene->assembled, CODE + 0x200, 0x100, 0x0c, RAX, 8, END);
    put_fde(scene->assembled, CODE + 0x300, 0x100, 0x07, R12, END);
    put_fde(scene->assembled, CODE + 0x400, 0x100, 0x0c, R12, 8, END);
    enter(scene, 0x110, 0);
    scene->registers.values[MACHINE_RAX] = STACK + 80;
    scene->stack[0] = CODE + 0x210;
    CHECK_UINT(walk(scene), UNWIND_UNKNOWN_REGISTER);
    CHECK_UINT(scene->count, 2);
    enter(scene, 0x310, 0);
    scene->stack[0] = CODE + 0x410;
    CHECK_UINT(walk(scene), UNWIND_UNKNOWN_REGISTER);
    CHECK_UINT(scene->count, 2);
    frame_table_fini(&scene->table);
}

TEST(a_walk_without_registers_uses_what_the_frames_saved)
{
    struct scene *scene = fresh_scene();
    put_fde(scene->assembled, CODE + 0x100, 0x100, 0x0e, 16, 0x86, 2, END);
    put_fde(scene->assembled, CODE + 0x200, 0x100, 0x0c, RBP, 16, 0x86, 2, END);
    enter(scene, 0x110, 0);
    scene->registers.known = 1u << MACHINE_IP | 1u << MACHINE_SP;
    scene->stack[0] = STACK + 8 * 10;
    scene->stack[1] = CODE + 0x210;
    scene->stack[11] = CODE + 0xf10;
    CHECK_UINT(walk(scene), UNWIND_ROOT);
    CHECK_UINT(scene->count, 3);
    enter(scene, 0x210, 0);
    scene->registers.known = 1u << MACHINE_IP | 1u << MACHINE_SP;
    CHECK_UINT(walk(scene), UNWIND_UNKNOWN_REGISTER);
    frame_table_fini(&scene->table);
}

TEST(what_cannot_be_a_frame_ends_the_walk_and_says_so)
{
    struct scene *scene = fresh_scene();
    put_fde(scene->assembled, CODE + 0x100, 0x100, 0x0c, RBP, 16, END);
    enter(scene, 0x110, 100);
    scene->registers.values[MACHINE_FP] = STACK + 8 * 50; /* outward would be inward */
    CHECK_UINT(walk(scene), UNWIND_BAD_FRAME);
    enter(scene, 0x110, 100);
    scene->registers.values[MACHINE_FP] = STACK + 8 * 120 + 4;
    CHECK_UINT(walk(scene), UNWIND_BAD_FRAME);
    enter(scene, 0x110, 100);
    scene->registers.values[MACHINE_FP] = STACK + 8 * STACK_WORDS;
    CHECK_UINT(walk(scene), UNWIND_BAD_MEMORY);
    enter(scene, 0x110, 0);
    scene->registers.values[MACHINE_FP] = UINT64_MAX - 7;
    CHECK(walk(scene) != UNWIND_ROOT);
    enter(scene, 0x810, 0); /* nothing is known there, and FP leads nowhere */
    scene->registers.values[MACHINE_FP] = 8;
    CHECK_UINT(walk(scene), UNWIND_NO_TABLE);
    CHECK_UINT(scene->count, 1);
    enter(scene, 0x810, 0); /* the mark of the root in entry code */
    scene->registers.values[MACHINE_FP] = 0;
    CHECK_UINT(walk(scene), UNWIND_ROOT);
    enter(scene, 0x810, 0);
    scene->registers.values[MACHINE_FP] = STACK + 8 * 3;
    scene->stack[4] = CODE + 0xf10;
    CHECK_UINT(walk(scene), UNWIND_ROOT);
    frame_table_fini(&scene->table);
}

TEST(a_stack_deeper_than_the_room_for_it_is_cut_and_says_so)
{
    struct scene *scene = fresh_scene();
    put_fde(scene->assembled, CODE + 0x100, 0x100, END);
    enter(scene, 0x110, 0);
    for (size_t i = 0; i < STACK_WORDS; i++) scene->stack[i] = CODE + 0x120;
    CHECK_UINT(walk(scene), UNWIND_TOO_DEEP);
    CHECK_UINT(scene->count, FRAMES_MAX);
    frame_table_fini(&scene->table);
}

/* The addresses share a slot and differ in what is above its bits. */
TEST(its_own_cached_rule_is_that_address_alone)
{
    static struct rule_cache cache;
    enum { SLOTS = 1 << RULE_CACHE_SLOT_BITS };
    uint64_t first = CODE + 0x123, second = (first ^ 1) + SLOTS;
    uint64_t far = first | (uint64_t)1 << RULE_CACHE_ADDRESS_BITS;
    uint32_t module = 0;
    memset(&cache, 0, sizeof(cache));
    CHECK_UINT(rule_cache_slot(second), rule_cache_slot(first));
    CHECK_UINT(rule_cache_find(&cache, first, &module), 0);
    CHECK_UINT(rule_cache_find(&cache, 0, &module), 0);
    rule_cache_keep(&cache, first, 4095, 32767);
    CHECK_UINT(rule_cache_find(&cache, first, &module), 32767);
    CHECK_UINT(module, 4095);
    for (uint64_t other = 0; other < (uint64_t)SLOTS * SLOTS; other += 3) {
        if (other != first) CHECK_UINT(rule_cache_find(&cache, other, &module), 0);
    }
    rule_cache_keep(&cache, second, 1, 2);
    CHECK_UINT(rule_cache_find(&cache, first, &module), 0);
    CHECK_UINT(rule_cache_find(&cache, second, &module), 2);
    CHECK_UINT(module, 1);
    rule_cache_keep(&cache, second, 4096, 3); /* frames without room are dropped */
    rule_cache_keep(&cache, far, 1, 3);
    CHECK_UINT(rule_cache_find(&cache, second, &module), 2);
    CHECK_UINT(rule_cache_find(&cache, far, &module), 0);
}

/* Two frames whose rules differ, at addresses that share a slot: each walk drives out what the one before kept. */
TEST(walks_that_share_a_slot_do_not_disturb_each_other)
{
    static struct rule_cache cache;
    enum { APART = 1 << RULE_CACHE_SLOT_BITS };
    memset(&cache, 0, sizeof(cache));
    struct scene *scene = fresh_scene();
    put_fde(scene->assembled, CODE + 0x100, 0x100, END);
    put_fde(scene->assembled, CODE + 0x300, 0x100, 0x0e, 24, END);
    put_fde(scene->assembled, CODE + APART + 0x300, 0x100, 0x0e, 48, END);
    uint64_t near = CODE + 0x311, far = near + APART;
    while (rule_cache_slot(near - 1) != rule_cache_slot(far - 1)) far++;
    for (unsigned turn = 0; turn < 4; turn++) {
        bool is_far = turn & 1;
        enter(scene, 0x110, 0);
        scene->stack[0] = is_far ? far : near;
        scene->stack[is_far ? 6 : 3] = CODE + 0xf10;
        scene->stack[is_far ? 3 : 6] = 0;
        CHECK_UINT(walk_with(scene, &cache), UNWIND_ROOT);
        CHECK_UINT(scene->count, 3);
        CHECK_UINT(scene->addresses[2], CODE + 0xf10);
        frame_table_fini(&scene->table);
    }
}

TEST(reports_a_module_whose_table_must_be_built)
{
    struct unwind_module module = {.start = CODE, .end = CODE + 0x1000, .is_pending = true};
    struct unwind_modules modules = {.items = &module, .count = 1};
    struct unwind_registers registers = {.values = {[MACHINE_IP] = CODE}};
    struct unwind_memory memory = {.extend = extend};
    uint64_t addresses[4];
    size_t count = 0;
    CHECK_UINT(unwind_walk(&modules, &registers, &memory, NULL, addresses, 4, &count), UNWIND_PENDING);
    CHECK_UINT(count, 1);
    static const struct frame_lookup lookup;
    module.lookup = &lookup; /* a walk without room for it */
    module.is_pending = false;
    CHECK_UINT(unwind_walk(&modules, &registers, &memory, NULL, addresses, 4, &count), UNWIND_PENDING);
}

/* --- Walks that continue from the one before -------------------------------------------------------------------------
 */

static uint64_t random_state = 88172645463325252;

static uint64_t random_number(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

/* A program of five functions, each of which finds its caller in another way, that call and return at random. The root
 * is at CODE + 0xf00, function i at CODE + 0x100 * i. */
struct simulated_frame {
    uint64_t cfa, fp, rbx; /* the caller's value, to be restored */
};

struct simulated {
    struct scene *scene;
    struct simulated_frame frames[FRAMES_MAX];
    size_t depth;
    uint64_t ip, sp, fp, rbx;
};

static uint64_t *word_at(struct simulated *simulated, uint64_t address)
{
    return &simulated->scene->stack[(address - STACK) / 8];
}

/* A few places in each function only, so that other stacks come near to looking the same. */
static uint64_t place_in(uint64_t function)
{
    return CODE + 0x100 * function + 0x10 * (1 + random_number() % 2);
}

/* Functions that cut the kept part are rare. */
static uint64_t any_function(void)
{
    return random_number() % 8 == 0 ? 4 + random_number() % 2 : 1 + random_number() % 3;
}

static void simulate_call(struct simulated *simulated, uint64_t function)
{
    uint64_t cfa = simulated->sp;
    simulated->frames[simulated->depth++] =
        (struct simulated_frame){.cfa = cfa, .fp = simulated->fp, .rbx = simulated->rbx};
    *word_at(simulated, cfa - 8) = simulated->ip;
    bool is_written = random_number() % 8 == 0; /* clears what earlier calls left */
    for (unsigned i = 2; is_written && i < 8; i++) *word_at(simulated, cfa - 8 * i) = random_number() % 3;
    if (function == 2 || function == 3) *word_at(simulated, cfa - 16) = simulated->fp;
    if (function == 4) {
        *word_at(simulated, cfa - 16) = simulated->rbx;
        *word_at(simulated, cfa - 24) = simulated->fp;
        simulated->rbx = cfa - 16;
    }
    if (function == 2) simulated->fp = cfa - 16;
    if (function == 3) simulated->fp = random_number() % 2;
    static const uint64_t sizes[] = {0, 16, 40, 40, 40, 24};
    bool finds_by_sp = function != 2 && function != 4; /* others have frames of any size */
    simulated->sp = cfa - sizes[function] - (finds_by_sp ? 0 : 8 * (random_number() % 3));
    simulated->ip = place_in(function);
}

static void simulate_return(struct simulated *simulated)
{
    const struct simulated_frame *frame = &simulated->frames[--simulated->depth];
    simulated->sp = frame->cfa;
    simulated->fp = frame->fp;
    simulated->rbx = frame->rbx;
    simulated->ip = place_in((*word_at(simulated, frame->cfa - 8) - CODE) / 0x100);
}

static void walk_simulated(struct simulated *simulated, struct resume_cache *resume_cache, uint64_t generation)
{
    struct scene *scene = simulated->scene;
    struct unwind_module module = {.start = CODE, .end = CODE + 0x10000, .base = CODE, .table = &scene->table};
    struct unwind_modules modules = {.items = &module, .count = 1, .generation = generation};
    struct unwind_memory memory = {
        .shift = (uint64_t)(uintptr_t)scene->stack - STACK, .extend = extend, .context = scene};
    uint64_t addresses[FRAMES_MAX + 1];
    size_t count = 0;
    scene->registers = (struct unwind_registers){.known = MACHINE_ALL_KNOWN};
    scene->registers.values[MACHINE_IP] = simulated->ip;
    scene->registers.values[MACHINE_SP] = simulated->sp;
    scene->registers.values[MACHINE_FP] = simulated->fp;
    scene->registers.values[MACHINE_RBX] = simulated->rbx;
    struct unwind_registers registers = scene->registers;
    enum unwind_outcome outcome =
        unwind_walk(&modules, &scene->registers, &memory, NULL, scene->addresses, FRAMES_MAX, &scene->count);
    memory.low = memory.high = 0;
    CHECK_UINT(unwind_walk(&modules, &registers, &memory, resume_cache, addresses, FRAMES_MAX, &count), outcome);
    CHECK_UINT(count, scene->count);
    CHECK(memcmp(addresses, scene->addresses, count * sizeof(addresses[0])) == 0);
}

static struct simulated simulated_program(void)
{
    struct scene *scene = fresh_scene();
    put_fde(scene->assembled, CODE + 0x100, 0x100, 0x0e, 16, END);
    put_fde(scene->assembled, CODE + 0x200, 0x100, 0x0c, RBP, 16, 0x86, 2, END);
    put_fde(scene->assembled, CODE + 0x300, 0x100, 0x0e, 40, 0x86, 2, END);
    put_fde(scene->assembled, CODE + 0x400, 0x100, 0x0c, RBX, 16, 0x83, 2, 0x86, 3, END);
    put_fde(scene->assembled, CODE + 0x500, 0x100, 0x0e, 24, 0x07, RBP, END); /* loses RBP */
    CHECK(build_table(scene->assembled, &scene->table));
    return (struct simulated){.scene = scene, .ip = CODE + 0xf10, .sp = STACK + 8 * (STACK_WORDS - 8)};
}

TEST(a_walk_that_continues_from_the_one_before_gives_the_same_stack)
{
    static struct resume_cache resume_cache;
    struct simulated threads[2] = {simulated_program()}; /* with separate stacks, and one resume cache for both */

    threads[1] = threads[0];
    threads[1].sp -= 8 * STACK_WORDS / 2;
    size_t frames = 0, taken_over = 0;
    for (unsigned turn = 0; turn < 200000; turn++) {
        struct simulated *simulated = &threads[turn / 16 % 2];
        uint64_t steps = random_number() % 4;
        if (random_number() % 50 == 0) steps = 40; /* another part of the program */
        for (uint64_t i = 0; i < steps; i++) {
            bool calls = simulated->depth == 0 || (simulated->depth < FRAMES_MAX - 2 && random_number() % 2 == 0);
            if (calls)
                simulate_call(simulated, any_function());
            else
                simulate_return(simulated);
        }
        walk_simulated(simulated, &resume_cache, 1);
        size_t fresh = RESUME_FRAMES_MAX - resume_cache.fresh;
        frames += resume_cache.count;
        taken_over += resume_cache.count > fresh ? resume_cache.count - fresh : 0;
    }
    CHECK(frames > 200000);
    CHECK(taken_over > frames / 4); /* the case was really tried */
    frame_table_fini(&threads[0].scene->table);
}

/* The memory of the frames is unchanged, but the stack has another shape. */
TEST(does_not_resume_a_walk_if_registers_lead_elsewhere)
{
    static struct resume_cache resume_cache;
    for (int by_saved_fp = 0; by_saved_fp < 2; by_saved_fp++) {
        struct simulated simulated = simulated_program();
        uint64_t *stack = simulated.scene->stack;
        resume_cache = (struct resume_cache){0};
        simulated.ip = CODE + 0x110;
        simulated.sp = STACK;
        stack[1] = by_saved_fp ? CODE + 0x310 : CODE + 0x410;
        stack[5] = STACK + 8 * 20; /* the RBP that function 3 saved */
        stack[6] = CODE + 0x210;
        for (uint64_t end = 20; end <= 30; end += 10) { /* where RBP, or RBX, leads to */
            stack[end] = stack[end - 1] = 0;
            stack[end + 1] = CODE + 0xf00 + end;
        }
        simulated.rbx = STACK + 8 * 20;
        walk_simulated(&simulated, &resume_cache, 1);
        CHECK_UINT(resume_cache.count, by_saved_fp ? 3 : 1);
        if (by_saved_fp)
            stack[5] = STACK + 8 * 30;
        else
            simulated.rbx = STACK + 8 * 30;
        walk_simulated(&simulated, &resume_cache, 1);
        CHECK_UINT(simulated.scene->addresses[simulated.scene->count - 1], CODE + 0xf00 + 30);
        frame_table_fini(&simulated.scene->table);
    }
}

TEST(a_walk_with_other_modules_does_not_continue_from_the_one_before)
{
    static struct resume_cache resume_cache;
    struct simulated simulated = simulated_program();
    for (unsigned i = 0; i < 10; i++) simulate_call(&simulated, 3);
    static const struct {
        uint64_t generation;
        bool continues;
    } turns[] = {{1, false}, {1, true}, {2, false}, {2, true}, {1, false}};
    for (size_t i = 0; i < sizeof(turns) / sizeof(turns[0]); i++) {
        walk_simulated(&simulated, &resume_cache, turns[i].generation);
        CHECK_UINT(resume_cache.count, 10);
        CHECK_UINT(resume_cache.count > RESUME_FRAMES_MAX - resume_cache.fresh, turns[i].continues);
    }
    frame_table_fini(&simulated.scene->table);
}

/* --- Without registers -------------------------------------------------------------------------------------------- */

static uint8_t code_bytes[0x1000];

static bool read_code(void *context, uint64_t address, void *bytes, size_t size)
{
    if (address < CODE || address + size > CODE + sizeof(code_bytes)) return false;
    memcpy(bytes, code_bytes + (address - CODE), size);
    return true;
}

static void put_code(uint32_t place, const char *bytes, size_t size)
{
    memcpy(code_bytes + place, bytes, size);
}

/* A call of 5 bytes whose return address is RETURNS. */
static void put_call(uint32_t returns, uint32_t target)
{
    int32_t distance = (int32_t)target - (int32_t)returns;
    code_bytes[returns - 5] = 0xe8;
    memcpy(code_bytes + returns - 4, &distance, sizeof(distance));
}

static enum unwind_outcome walk_without_registers(struct scene *scene, size_t *ret_recovered_count)
{
    struct unwind_module module = {.start = CODE, .end = CODE + 0x10000, .base = CODE, .table = &scene->table};
    struct unwind_modules modules = {.items = &module, .count = 1};
    struct unwind_code code = {.read = read_code};
    struct unwind_memory memory = {.shift = (uint64_t)(uintptr_t)scene->stack - STACK,
                                   .extend = extend,
                                   .context = scene,
                                   .code = &code,
                                   .stack_pointers = scene->stack_pointers};
    return unwind_walk_without_registers(&modules, &scene->registers, &memory, scene->addresses, FRAMES_MAX,
                                         &scene->count, ret_recovered_count);
}

static enum unwind_outcome walk_with_code(struct scene *scene)
{
    struct unwind_code code = {.read = read_code};
    struct unwind_module module = {.start = CODE, .end = CODE + 0x10000, .base = CODE, .table = &scene->table};
    struct unwind_modules modules = {.items = &module, .count = 1};
    struct unwind_memory memory = {
        .shift = (uint64_t)(uintptr_t)scene->stack - STACK, .extend = extend, .context = scene, .code = &code};
    return unwind_walk(&modules, &scene->registers, &memory, NULL, scene->addresses, FRAMES_MAX, &scene->count);
}

enum { PROGRAMS_FP = 0x1234 }; /* value that the program has there for a purpose of its own */

/* The code at 0x700 is not in the table; its caller is at 0xf10. */
static enum unwind_outcome walk_from_undescribed(struct scene *scene, const char *bytes, size_t size, uint64_t fp)
{
    memset(code_bytes, 0x90, sizeof(code_bytes));
    put_code(0x700, bytes, size);
    enter(scene, 0x700, 10);
    scene->stack[10] = CODE + 0xf10;
    scene->registers.values[MACHINE_FP] = fp;
    return walk_with_code(scene);
}

TEST(code_without_rules_marks_the_root_by_clearing_the_frame_pointer)
{
    struct scene *scene = fresh_scene();
    CHECK_UINT(walk_from_undescribed(scene, "\x90", 1, 0), UNWIND_NO_TABLE);
    CHECK_UINT(walk_from_undescribed(scene, "\x31\xed\x90", 3, 0), UNWIND_NO_TABLE); /* not yet */
    enter(scene, 0x702, 10);
    scene->registers.values[MACHINE_FP] = 0;
    CHECK_UINT(walk_with_code(scene), UNWIND_ROOT);
    CHECK_UINT(scene->count, 1);
    frame_table_fini(&scene->table);
}

TEST(a_stub_of_a_plt_without_rules_was_called_from_where_sp_points)
{
    struct scene *scene = fresh_scene();
    CHECK_UINT(walk_from_undescribed(scene, "\xff\x25\x02\x69\x00\x00", 6, PROGRAMS_FP), UNWIND_ROOT);
    CHECK_UINT(scene->count, 2);
    CHECK_UINT(scene->addresses[1], CODE + 0xf10);
    CHECK_UINT(scene->registers.values[MACHINE_FP], PROGRAMS_FP);
    frame_table_fini(&scene->table);

    scene = fresh_scene(); /* other code */
    CHECK_UINT(walk_from_undescribed(scene, "\xff\x24\x25", 3, PROGRAMS_FP), UNWIND_NO_TABLE);
    CHECK_UINT(scene->count, 1);
    frame_table_fini(&scene->table);
}

/* The function at 0x200 finds its caller by RBP and has lowered SP by 32; it was called from 0xf10. */
static struct scene *blocked_scene(void)
{
    struct scene *scene = fresh_scene();
    memset(code_bytes, 0x90, sizeof(code_bytes));
    put_fde(scene->assembled, CODE + 0x200, 0x100, 0x0c, RBP, 16, 0x86, 2, END);
    put_code(0x201, "\x48\x83\xec\x20", 4);
    put_call(0xf10, 0x200);
    enter(scene, 0x210, 10);
    scene->stack[10 + 4] = 0x1234; /* its caller's RBP */
    scene->stack[10 + 5] = CODE + 0xf10;
    return scene;
}

TEST(a_frame_pointer_is_recovered_where_a_direct_call_proves_it)
{
    size_t recovered_count = 0;
    struct scene *scene = blocked_scene();
    scene->stack[10 + 3] = CODE + 0xf10; /* a return address of an older call is at the wrong distance */
    CHECK_UINT(walk_without_registers(scene, &recovered_count), UNWIND_ROOT);
    CHECK_UINT(recovered_count, 1);
    CHECK_UINT(scene->count, 2);
    CHECK_UINT(scene->addresses[1], CODE + 0xf10);
    CHECK_UINT(scene->registers.values[MACHINE_FP], 0x1234);
    frame_table_fini(&scene->table);

    scene = blocked_scene(); /* through a stub, whose slot is at 0x800 */
    uint64_t start = CODE + 0x200;
    put_call(0xf10, 0x700);
    put_code(0x700, "\xf3\x0f\x1e\xfa\xf2\xff\x25\xf5\x00\x00\x00", 11);
    memcpy(code_bytes + 0x800, &start, sizeof(start));
    CHECK_UINT(walk_without_registers(scene, &recovered_count), UNWIND_ROOT);
    CHECK_UINT(scene->count, 2);
    frame_table_fini(&scene->table);
}

TEST(recovers_a_frame_pointer_where_thread_start_calls_a_pointer)
{
    size_t recovered_count = 0;
    struct scene *scene = blocked_scene();
    put_code(0xf0b, "\x90\x90\x90\xff\xd0", 5);
    CHECK_UINT(walk_without_registers(scene, &recovered_count), UNWIND_ROOT);
    CHECK_UINT(recovered_count, 1);
    CHECK_UINT(scene->addresses[1], CODE + 0xf10);
    frame_table_fini(&scene->table);
}

/* The function at 0x300 has called the one at 0x200 through a register. It finds its own caller by the RBP that the
 * callee has saved, and was called from 0x410, in a function that the root has called. */
static struct scene *blocked_in_callback(void)
{
    struct scene *scene = blocked_scene();
    put_fde(scene->assembled, CODE + 0x300, 0x100, 0x0c, RBP, 16, 0x86, 2, END);
    put_fde(scene->assembled, CODE + 0x400, 0x100, END);
    enter(scene, 0x210, 10);
    put_code(0x30e, "\xff\xd0", 2);
    scene->stack[10 + 4] = STACK + 8 * 20;
    scene->stack[10 + 5] = CODE + 0x310;
    scene->stack[20] = 0x1234;
    scene->stack[21] = CODE + 0x410;
    for (size_t i = 22; i < 30; i++) scene->stack[i] = CODE + 0x410; /* far from the root */
    scene->stack[30] = CODE + 0xf10;
    return scene;
}

TEST(a_callback_that_blocks_is_found_where_its_caller_was_called_directly)
{
    size_t recovered_count = 0;
    uint64_t stack_pointers[FRAMES_MAX] = {0};
    struct scene *scene = blocked_in_callback();
    put_call(0x410, 0x300);
    CHECK_UINT(walk_without_registers(scene, &recovered_count), UNWIND_ROOT);
    CHECK_UINT(recovered_count, 1);
    CHECK_UINT(scene->addresses[1], CODE + 0x310);
    CHECK_UINT(scene->addresses[2], CODE + 0x410);
    frame_table_fini(&scene->table);

    scene = blocked_in_callback(); /* the proof does not disturb the stack pointers */
    put_call(0x410, 0x300);
    scene->stack_pointers = stack_pointers;
    CHECK_UINT(walk_without_registers(scene, &recovered_count), UNWIND_ROOT);
    CHECK_UINT(stack_pointers[0], STACK + 8 * 10);
    CHECK_UINT(stack_pointers[1], STACK + 8 * 16);
    CHECK_UINT(stack_pointers[2], STACK + 8 * 22);
    frame_table_fini(&scene->table);

    scene = blocked_in_callback();
    put_call(0x410, 0x308); /* it was not called by what seems to have called it */
    CHECK_UINT(walk_without_registers(scene, &recovered_count), UNWIND_UNKNOWN_REGISTER);
    frame_table_fini(&scene->table);
}

/* Reads a page of 16 words into the place of the one before. */
static bool replace_block(struct unwind_memory *memory, uint64_t address)
{
    static uint64_t block[16];
    const struct scene *scene = memory->context;
    if (address < STACK || address >= STACK + 8 * STACK_WORDS) return false;
    memory->low = address & ~(uint64_t)127;
    memory->high = memory->low + sizeof(block);
    memory->shift = (uint64_t)(uintptr_t)block - memory->low;
    memcpy(block, &scene->stack[(memory->low - STACK) / 8], sizeof(block));
    return true;
}

/* The code at 0x700 is not in the table. The function at 0x300 has called it through a register and finds its caller by
 * the RBP that was pushed, which was called from 0xf10. */
TEST(code_without_rules_is_crossed_in_memory_that_is_read_block_by_block)
{
    struct unwind_code code = {.read = read_code};
    struct scene *scene = fresh_scene();
    struct unwind_module module = {.start = CODE, .end = CODE + 0x10000, .base = CODE, .table = &scene->table};
    struct unwind_modules modules = {.items = &module, .count = 1};
    struct unwind_memory memory = {
        .extend = replace_block, .context = scene, .code = &code, .cross = unwind_cross_code};
    memset(code_bytes, 0x90, sizeof(code_bytes));
    put_fde(scene->assembled, CODE + 0x300, 0x100, 0x0c, RBP, 16, 0x86, 2, END);
    put_code(0x30e, "\xff\xd0", 2);
    put_call(0xf10, 0x300);
    enter(scene, 0x700, 10);
    scene->registers.values[MACHINE_FP] = 0x1234; /* the program's, for any purpose */
    scene->stack[10] = STACK + 8 * 40;            /* leads nowhere, by another block */
    scene->stack[41] = 0x1234;
    scene->stack[11] = STACK + 8 * 20;
    scene->stack[12] = CODE + 0x310;
    scene->stack[21] = CODE + 0xf10;
    CHECK_UINT(unwind_walk(&modules, &scene->registers, &memory, NULL, scene->addresses, FRAMES_MAX, &scene->count),
               UNWIND_ROOT);
    CHECK_UINT(scene->count, 3);
    CHECK_UINT(scene->addresses[1], CODE + 0x310);
    CHECK_UINT(scene->addresses[2], CODE + 0xf10);
    frame_table_fini(&scene->table);
}

TEST(a_frame_pointer_is_never_guessed)
{
    size_t recovered_count = 0;
    struct scene *scene = blocked_scene();
    put_call(0xf10, 0x208); /* belongs to something else */
    CHECK_UINT(walk_without_registers(scene, &recovered_count), UNWIND_UNKNOWN_REGISTER);
    frame_table_fini(&scene->table);

    scene = blocked_scene(); /* through a register, far from the root */
    put_fde(scene->assembled, CODE + 0x300, 0x100, END);
    enter(scene, 0x210, 10);
    put_code(0x30e, "\xff\xd0", 2);
    for (size_t i = 15; i < 20; i++) scene->stack[i] = CODE + 0x310;
    scene->stack[20] = CODE + 0xf10;
    CHECK_UINT(walk_without_registers(scene, &recovered_count), UNWIND_UNKNOWN_REGISTER);
    frame_table_fini(&scene->table);

    scene = blocked_scene(); /* two places pass */
    put_code(0x208, "\x48\x83\xec\x40", 4);
    scene->stack[10 + 9] = CODE + 0xf10;
    CHECK_UINT(walk_without_registers(scene, &recovered_count), UNWIND_UNKNOWN_REGISTER);
    CHECK_UINT(recovered_count, 0);
    frame_table_fini(&scene->table);

    scene = blocked_scene(); /* the size of the room is not in an instruction */
    put_code(0x201, "\x48\x29\xc4\x90", 4);
    CHECK_UINT(walk_without_registers(scene, &recovered_count), UNWIND_UNKNOWN_REGISTER);
    frame_table_fini(&scene->table);
}

/* --- A stack of which the innermost part is a copy -----------------------------------------------------------------
 */

/* The function at 0x200 has a frame of 100 words and was called by the one at 0x300, whose frame has 4 words and which
 * the root has called. */
static struct scene *large_frame_scene(void)
{
    struct scene *scene = fresh_scene();
    memset(code_bytes, 0x90, sizeof(code_bytes));
    put_fde(scene->assembled, CODE + 0x200, 0x100, 0x0e, 0xa0, 0x06, END);
    put_fde(scene->assembled, CODE + 0x300, 0x100, 0x0e, 32, END);
    put_call(0x350, 0x200);
    put_call(0xf10, 0x300);
    enter(scene, 0x210, 10);
    scene->stack[10 + 99] = CODE + 0x350;
    scene->stack[10 + 103] = CODE + 0xf10;
    return scene;
}

/* COPIED_WORDS are in the copy; the memory has other words there by now. */
static enum unwind_outcome walk_copied(struct scene *scene, size_t copied_words, uint64_t *ret_outside)
{
    static uint64_t copied[STACK_WORDS];
    struct unwind_module module = {.start = CODE, .end = CODE + 0x10000, .base = CODE, .table = &scene->table};
    struct unwind_modules modules = {.items = &module, .count = 1};
    struct unwind_code code = {.read = read_code};
    struct unwind_memory live = {
        .shift = (uint64_t)(uintptr_t)scene->stack - STACK, .extend = extend, .context = scene, .code = &code};
    struct copied_stack copy = {
        .start = scene->registers.values[MACHINE_SP], .words = copied, .size = 8 * copied_words};
    uint64_t *from = scene->stack + (copy.start - STACK) / 8;
    memcpy(copied, from, copy.size);
    memset(from, 0xee, copy.size);
    return unwind_walk_copied_stack(&modules, &scene->registers, &copy, &live, scene->addresses, FRAMES_MAX,
                                    &scene->count, ret_outside);
}

TEST(a_walk_continues_in_memory_where_the_copy_of_a_stack_ends)
{
    for (size_t copied = 1; copied < 120; copied++) {
        uint64_t outside = 0;
        struct scene *scene = large_frame_scene();
        CHECK_UINT(walk_copied(scene, copied, &outside), UNWIND_ROOT);
        CHECK_UINT(outside, copied < 100 ? STACK + 8 * 109 : copied < 104 ? STACK + 8 * 113 : 0);
        CHECK_UINT(scene->count, 3);
        CHECK_UINT(scene->addresses[0], CODE + 0x210);
        CHECK_UINT(scene->addresses[1], CODE + 0x350);
        CHECK_UINT(scene->addresses[2], CODE + 0xf10);
        frame_table_fini(&scene->table);
    }
}

TEST(a_trampoline_is_exact_also_where_the_copy_of_a_stack_ends)
{
    for (size_t copied = 1; copied < 8; copied++) {
        uint64_t outside = 0;
        struct scene *scene = signal_scene();
        enter(scene, 0x110, 9);
        scene->stack[9] = CODE + 0x200;
        scene->stack[15] = STACK + 8 * 32;
        scene->stack[16] = CODE + 0x300;
        scene->stack[17] = STACK + 8 * 34;
        scene->stack[34] = CODE + 0xf10;
        put_call(0xf10, 0x300);
        CHECK_UINT(walk_copied(scene, copied, &outside), UNWIND_ROOT);
        CHECK_UINT(outside, STACK + 8 * (copied < 7 ? 15 : 16));
        CHECK_UINT(scene->count, 4);
        CHECK_UINT(scene->addresses[1], CODE + 0x201);
        CHECK_UINT(scene->addresses[2], CODE + 0x301);
        frame_table_fini(&scene->table);
    }
}

TEST(a_walk_ends_where_memory_holds_the_frames_of_later_calls)
{
    static const struct {
        uint32_t target;
        uint64_t word;
        enum unwind_outcome outcome;
    } cases[] = {
        {0x400, CODE + 0x350, UNWIND_BAD_MEMORY}, /* it has called another function since */
        {0x200, CODE + 0x340, UNWIND_BAD_MEMORY}, /* there is no call */
        {0x200, 1234, UNWIND_BAD_MEMORY},         {0x200, CODE + 0x350, UNWIND_ROOT},
        {0x500, CODE + 0x350, UNWIND_ROOT}, /* a tail call: 0x500 jumps to 0x200 */
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        uint64_t outside = 0;
        struct scene *scene = large_frame_scene();
        put_call(0x350, cases[i].target);
        if (cases[i].target == 0x500) put_code(0x520, "\xe9\xdb\xfc\xff\xff", 5);
        scene->stack[10 + 99] = cases[i].word;
        CHECK_UINT(walk_copied(scene, 20, &outside), cases[i].outcome);
        CHECK_UINT(outside, STACK + 8 * 109);
        CHECK_UINT(scene->count, cases[i].outcome == UNWIND_ROOT ? 3 : 1);
        CHECK_UINT(scene->addresses[0], CODE + 0x210);
        frame_table_fini(&scene->table);
    }
}

/* --- Expressions -------------------------------------------------------------------------------------------------- */

static bool evaluate(uint64_t *ret_value, ...)
{
    static struct scene scene;
    struct unwind_memory memory = {
        .shift = (uint64_t)(uintptr_t)scene.stack - STACK, .extend = extend, .context = &scene};
    struct unwind_registers registers = {.known = 1u << MACHINE_IP | 1u << MACHINE_SP};
    registers.values[MACHINE_SP] = STACK;
    scene.stack[2] = 0xabcd;
    struct assembled *assembled = fresh();
    va_list bytes;
    va_start(bytes, ret_value);
    put_bytes(assembled, bytes);
    va_end(bytes);
    return machine_evaluate(slice_of(assembled->bytes, assembled->size), NULL, &registers, &memory, ret_value);
}

#define CHECK_EVALUATES(expected, ...)                                                                                 \
    do {                                                                                                               \
        uint64_t value = 0;                                                                                            \
        CHECK(evaluate(&value, __VA_ARGS__, END));                                                                     \
        CHECK_UINT(value, expected);                                                                                   \
    } while (0)

TEST(every_operation_of_expressions_computes_what_the_standard_says)
{
    CHECK_EVALUATES(31, 0x4f);
    CHECK_EVALUATES(0xff, 0x08, 0xff);
    CHECK_EVALUATES(UINT64_MAX, 0x09, 0xff);
    CHECK_EVALUATES(0xfffe, 0x0a, 0xfe, 0xff);
    CHECK_EVALUATES((uint64_t)-2, 0x0b, 0xfe, 0xff);
    CHECK_EVALUATES(0x80000000, 0x0c, 0, 0, 0, 0x80);
    CHECK_EVALUATES(0xffffffff80000000, 0x0d, 0, 0, 0, 0x80);
    CHECK_EVALUATES(0x0807060504030201, 0x0e, 1, 2, 3, 4, 5, 6, 7, 8);
    CHECK_EVALUATES(0x90, 0x10, 0x90, 1);
    CHECK_EVALUATES((uint64_t)-1, 0x11, 0x7f);
    CHECK_EVALUATES(STACK + 16, 0x77, 16);
    CHECK_EVALUATES(0xabcd, 0x77, 16, 0x06);
    CHECK_EVALUATES(6, 0x33, 0x12, 0x22);            /* 3, dup, plus */
    CHECK_EVALUATES(3, 0x33, 0x34, 0x13);            /* drop */
    CHECK_EVALUATES(3, 0x33, 0x34, 0x14);            /* over */
    CHECK_EVALUATES((uint64_t)-2, 0x33, 0x35, 0x1c); /* 3 - 5 */
    CHECK_EVALUATES(2, 0x33, 0x35, 0x16, 0x1c);      /* swap */
    CHECK_EVALUATES(1, 0x33, 0x35, 0x1a);            /* DW_OP_and */
    CHECK_EVALUATES(7, 0x33, 0x35, 0x21);            /* DW_OP_or */
    CHECK_EVALUATES(6, 0x33, 0x35, 0x27);            /* xor */
    CHECK_EVALUATES(15, 0x33, 0x35, 0x1e);           /* mul */
    CHECK_EVALUATES((uint64_t)-3, 0x33, 0x1f);       /* neg */
    CHECK_EVALUATES(~(uint64_t)3, 0x33, 0x20);       /* not */
    CHECK_EVALUATES(3 + 0x90, 0x33, 0x23, 0x90, 1);  /* plus_uconst */
    CHECK_EVALUATES(24, 0x33, 0x33, 0x24);           /* shl */
    CHECK_EVALUATES(0, 0x33, 0x08, 64, 0x24);
    CHECK_EVALUATES(1, 0x33, 0x31, 0x25);                      /* shr */
    CHECK_EVALUATES((uint64_t)-1, 0x09, 0x80, 0x08, 99, 0x26); /* shra */
    CHECK_EVALUATES(1, 0x33, 0x33, 0x29);                      /* eq */
    CHECK_EVALUATES(0, 0x33, 0x33, 0x2e);                      /* ne */
    CHECK_EVALUATES(1, 0x33, 0x09, 0xff, 0x2a);                /* 3 >= -1: signed */
    CHECK_EVALUATES(1, 0x33, 0x09, 0xff, 0x2b);                /* gt */
    CHECK_EVALUATES(0, 0x33, 0x09, 0xff, 0x2c);                /* le */
    CHECK_EVALUATES(0, 0x33, 0x09, 0xff, 0x2d);                /* lt */
    CHECK_EVALUATES(3, 0x33, 0x2f, 1, 0, 0x34);                /* skip over the 4 */
    CHECK_EVALUATES(5, 0x35, 0x31, 0x28, 1, 0, 0x34);          /* branch taken */
    CHECK_EVALUATES(4, 0x35, 0x30, 0x28, 1, 0, 0x34);          /* branch not taken */
    CHECK_EVALUATES(3, 0x33, 0x96);                            /* nop */
}

TEST(rejects_expressions_that_are_broken_endless_or_unsupported)
{
    uint64_t value;
    CHECK(!evaluate(&value, 0x22, END)); /* nothing on the stack */
    CHECK(!evaluate(&value, 0x06, END));
    CHECK(!evaluate(&value, END));
    CHECK(!evaluate(&value, 0x08, END));                         /* an operand is missing */
    CHECK(!evaluate(&value, 0x2f, 0xfd, 0xff, END));             /* forever */
    CHECK(!evaluate(&value, 0x2f, 0xf0, 0xff, END));             /* before the start */
    CHECK(!evaluate(&value, 0x30, 0x12, 0x2f, 0xfc, 0xff, END)); /* the stack overflows */
    CHECK(!evaluate(&value, 0x76, 0, END));                      /* RBP is not known */
    CHECK(!evaluate(&value, 0x30, 0x06, END));                   /* nothing can be read there */
    CHECK(!evaluate(&value, 0x9c, END));                         /* call_frame_cfa has no place here */
}

/* --- Damage ------------------------------------------------------------------------------------------------------- */

static bool read_descriptor(void *context, uint64_t offset, void *bytes, size_t size)
{
    return pread(*(const int *)context, bytes, size, (off_t)offset) == (ssize_t)size;
}

/* Copies this program's own .eh_frame into memory of exactly its size. */
static uint8_t *own_eh_frame(struct elf_section_place *ret_place)
{
    struct elf_frame_sections sections = {0};
    int program = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    bool found = elf_frame_sections_find(read_descriptor, &program, &sections);
    uint8_t *bytes = found ? malloc(sections.eh_frame.size) : NULL;
    *ret_place = sections.eh_frame;
    if (bytes && !read_descriptor(&program, sections.eh_frame.offset, bytes, sections.eh_frame.size)) found = false;
    (void)close(program);
    if (found) return bytes;
    free(bytes);
    return NULL;
}

static void walk_everywhere(struct scene *scene)
{
    for (unsigned i = 0; i < 64; i++) {
        uint32_t pc = scene->table.start + (uint32_t)(random_number() % (scene->table.end - scene->table.start));
        scene->registers.known = MACHINE_ALL_KNOWN;
        for (unsigned j = 0; j < MACHINE_REGISTERS; j++) {
            scene->registers.values[j] = STACK + random_number() % (8 * STACK_WORDS + 64) / 8 * 8;
        }
        scene->registers.values[MACHINE_IP] = CODE + pc % 0x10000;
        scene->whole = i % 2;
        (void)walk(scene);
    }
}

TEST(damage_of_a_real_eh_frame_does_no_harm)
{
    static struct scene scene;
    struct elf_section_place place;
    uint8_t *original = own_eh_frame(&place);
    CHECK(original);
    uint8_t *damaged = malloc(place.size);
    unsigned built = 0;
    for (unsigned round = 0; round < 300; round++) {
        memcpy(damaged, original, place.size);
        for (uint64_t i = random_number() % 64; i > 0; i--)
            damaged[random_number() % place.size] = (uint8_t)random_number();
        struct frame_table_source source = {
            .eh_frame = {.bytes = slice_of(damaged, place.size), .address = place.address}};
        if (!frame_table_build(&source, &scene.table)) continue;
        built++;
        for (size_t i = 0; i < STACK_WORDS; i++) {
            scene.stack[i] = i % 2 ? STACK + random_number() % (8 * STACK_WORDS) : CODE + random_number() % 0x10000;
        }
        walk_everywhere(&scene);
        frame_table_fini(&scene.table);
    }
    CHECK(built > 100);
    free(damaged);
    free(original);
}

/* --- Tables in files ---------------------------------------------------------------------------------------------- */

static const uint8_t some_key[] = {1, 2, 3, 4, 5};

static bool own_table(struct frame_table *ret_table)
{
    struct elf_section_place place;
    uint8_t *bytes = own_eh_frame(&place);
    struct frame_table_source source = {.eh_frame = {.bytes = slice_of(bytes, place.size), .address = place.address}};
    bool built = bytes && frame_table_build(&source, ret_table);
    free(bytes);
    return built;
}

static const char *scratch_path(void)
{
    static char path[64];
    (void)snprintf(path, sizeof(path), "/tmp/offbeat-test-unwind-%d", (int)getpid());
    return path;
}

TEST(a_table_that_was_saved_is_loaded_as_it_was)
{
    struct frame_table table, loaded;
    struct slice key = slice_of(some_key, sizeof(some_key));
    CHECK(own_table(&table));
    CHECK(frame_table_save(&table, scratch_path(), key));
    CHECK(frame_table_load(scratch_path(), key, &loaded));
    CHECK_UINT(loaded.row_count, table.row_count);
    CHECK_UINT(loaded.fde_count, table.fde_count);
    CHECK_UINT(loaded.memory_size, table.memory_size);
    CHECK(memcmp(loaded.memory, table.memory, table.memory_size) == 0);
    CHECK_UINT(loaded.blocks - loaded.rows, table.blocks - table.rows);
    frame_table_fini(&loaded);
    CHECK(frame_table_save(&table, scratch_path(), key)); /* over the one that is there */
    CHECK(!frame_table_load(scratch_path(), slice_of(some_key, sizeof(some_key) - 1), &loaded));
    CHECK(unlink(scratch_path()) == 0);
    CHECK(!frame_table_load(scratch_path(), key, &loaded));
    CHECK(!frame_table_load("/dev/zero", key, &loaded));
    CHECK(!frame_table_save(&table, "/nowhere/at/all", key));
    CHECK(!frame_table_save(&table, scratch_path(), slice_of(table.memory, FRAME_TABLE_KEY_MAX + 1)));
    frame_table_fini(&table);
}

TEST(a_file_that_was_cut_or_changed_is_not_loaded)
{
    struct frame_table table, loaded;
    struct slice key = slice_of(some_key, sizeof(some_key));
    struct stat status;
    CHECK(own_table(&table));
    CHECK(frame_table_save(&table, scratch_path(), key));
    CHECK(stat(scratch_path(), &status) == 0);
    int file = open(scratch_path(), O_RDWR | O_CLOEXEC);
    for (unsigned round = 0; round < 200; round++) {
        off_t place = (off_t)(random_number() % (round % 2 ? 128 : (uint64_t)status.st_size));
        uint8_t byte = 0, changed;
        CHECK(pread(file, &byte, 1, place) == 1);
        changed = (uint8_t)(byte ^ (1 + random_number() % 255));
        CHECK(pwrite(file, &changed, 1, place) == 1);
        CHECK(!frame_table_load(scratch_path(), key, &loaded));
        CHECK(pwrite(file, &byte, 1, place) == 1);
    }
    CHECK(frame_table_load(scratch_path(), key, &loaded));
    frame_table_fini(&loaded);
    for (off_t size = status.st_size - 1; size > 0; size = size * 3 / 4) {
        CHECK(ftruncate(file, size) == 0);
        CHECK(!frame_table_load(scratch_path(), key, &loaded));
    }
    (void)close(file);
    (void)unlink(scratch_path());
    frame_table_fini(&table);
}

/* A file can be written by others, with a good checksum: frame_table_save makes one of any table. */
TEST(a_table_that_leads_out_of_itself_is_not_loaded)
{
    struct frame_table table, loaded;
    struct slice key = slice_of(some_key, sizeof(some_key));
    unsigned rejected = 0;
    static struct scene scene;
    CHECK(own_table(&table));
    uint8_t *bytes = table.memory;
    for (unsigned round = 0; round < 400; round++) {
        size_t place = random_number() % (round % 4 ? 2048 : table.memory_size);
        uint8_t byte = bytes[place];
        bytes[place] = (uint8_t)random_number();
        CHECK(frame_table_save(&table, scratch_path(), key));
        if (frame_table_load(scratch_path(), key, &scene.table)) {
            walk_everywhere(&scene);
            for (uint32_t pc = 0; pc < 0x20000; pc += 7) (void)frame_table_rule_at(&scene.table, pc);
            frame_table_fini(&scene.table);
        } else {
            rejected++;
        }
        bytes[place] = byte;
    }
    CHECK(rejected > 20);
    table.block_count++;
    CHECK(frame_table_save(&table, scratch_path(), key));
    CHECK(!frame_table_load(scratch_path(), key, &loaded));
    (void)unlink(scratch_path());
    table.block_count--;
    frame_table_fini(&table);
}

struct cut_file {
    int descriptor;
    uint64_t size;
};

static bool read_cut(void *context, uint64_t offset, void *bytes, size_t size)
{
    const struct cut_file *file = context;
    if (offset > file->size || size > file->size - offset) return false;
    return pread(file->descriptor, bytes, size, (off_t)offset) == (ssize_t)size;
}

TEST(sections_of_a_file_that_was_cut_are_rejected)
{
    struct elf_frame_sections sections;
    struct cut_file file = {.descriptor = open("/proc/self/exe", O_RDONLY | O_CLOEXEC)};
    struct stat status;
    CHECK(fstat(file.descriptor, &status) == 0);
    file.size = (uint64_t)status.st_size;
    CHECK(elf_frame_sections_find(read_cut, &file, &sections));
    CHECK(sections.eh_frame.size > 0);
    for (file.size = 0; file.size < 128; file.size++) CHECK(!elf_frame_sections_find(read_cut, &file, &sections));
    file.size = (uint64_t)status.st_size - 1;
    CHECK(!elf_frame_sections_find(read_cut, &file, &sections));
    (void)close(file.descriptor);
}

TEST_MAIN()
