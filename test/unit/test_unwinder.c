/* Unwinders that tools choose by the file, on any processor.  SPDX-License-Identifier: MIT */
#include "test.h"

#include "unwind/unwinder.h"

#include <elf.h>

enum {
    LEAF = 0x1000,      /* stores nothing */
    FRAME = 0x1100,     /* stores x29 and x30 at the bottom of 32 bytes, from its third instruction on */
    BY_FP = 0x1200,     /* CFA is x29 + 48 */
    OUTERMOST = 0x1300, /* x30 is undefined */
    IN_X15 = 0x1400,    /* returns to x15, as vfork does */
    STUB = 0x2000,
    STUB_WITH_BTI = 0x2010,
    UNKNOWN_CODE = 0x8000,
    STACK = 0x7000,
    SIGNED = 0x5a, /* highest byte of a signed address */
    FRAMES_MAX = 16,
};

/* --- A section of call frame information --------------------------------------------------------------------------
 */

static uint8_t section[512];
static size_t section_size;

static void put(const void *bytes, size_t size)
{
    memcpy(section + section_size, bytes, size);
    section_size += size;
}

static void put_u32(uint32_t value)
{
    put(&value, sizeof(value));
}

/* Writes an entry of SIZE bytes after its length. */
static void put_entry(uint32_t id, const void *bytes, size_t size)
{
    put_u32((uint32_t)(sizeof(id) + size));
    put_u32(id);
    put(bytes, size);
}

static size_t put_cie(uint8_t return_register)
{
    size_t place = section_size;
    const uint8_t cie[] = {1, 'z', 'R', 0, 4, 0x78, return_register, 1, 0x1b, 0x0c, 31, 0}; /* CFA = SP */
    put_entry(0, cie, sizeof(cie));
    return place;
}

static void put_function(size_t cie, uint32_t start, const uint8_t *instructions, size_t size)
{
    uint8_t fde[64] = {0};
    uint32_t distance = start - (uint32_t)(section_size + 8), code_size = 0x100;
    memcpy(fde, &distance, 4);
    memcpy(fde + 4, &code_size, 4);
    if (size > 0) memcpy(fde + 9, instructions, size);
    put_entry((uint32_t)(section_size + 4 - cie), fde, 9 + size);
}

static void put_section(void)
{
    section_size = 0;
    size_t usual = put_cie(30), vfork = put_cie(15);
    /* negate_ra_state; then CFA = SP + 32, x29 at CFA - 32, x30 at CFA - 24 */
    static const uint8_t frame[] = {0x41, 0x2d, 0x41, 0x0e, 32, 0x80 | 29, 4, 0x80 | 30, 3};
    static const uint8_t by_fp[] = {0x0c, 29, 48, 0x80 | 29, 6, 0x80 | 30, 5};
    static const uint8_t outermost[] = {0x07, 30};
    put_function(usual, LEAF, NULL, 0);
    put_function(usual, FRAME, frame, sizeof(frame));
    put_function(usual, BY_FP, by_fp, sizeof(by_fp));
    put_function(usual, OUTERMOST, outermost, sizeof(outermost));
    put_function(vfork, IN_X15, NULL, 0);
}

/* --- A walk ---------------------------------------------------------------------------------------------------------
 */

static const uint32_t stubs[] = {
    0x90000050, 0xf9400611, 0x91002210, 0xd61f0220, /* adrp x16; ldr x17, [x16, 8]; add; br x17 */
    0xd503245f, 0x90000050, 0xf9400a11, 0x91004210, 0xd61f0220, 0xd503201f, /* bti c; …; nop */
};

static bool read_code(void *context, uint64_t address, void *bytes, size_t size)
{
    (void)context;
    if (address < STUB || address + size > STUB + sizeof(stubs)) return false;
    memcpy(bytes, (const uint8_t *)stubs + (address - STUB), size);
    return true;
}

static bool cannot_extend(struct unwind_memory *memory, uint64_t address)
{
    (void)memory;
    (void)address;
    return false;
}

/* Registers of the thread, and its stack from STACK on. */
struct thread {
    uint64_t pc, sp, fp, lr, x15;
    uint64_t stack[16];
};

static const struct unwinder *aarch64(void)
{
    return unwinder_of_elf(EM_AARCH64);
}

static uint64_t with_signature(uint64_t address)
{
    return address | (uint64_t)SIGNED << 56;
}

/* Walks the stack of THREAD and writes it as text: "1004 1104 root". */
static const char *walk(const struct thread *thread)
{
    static char text[256];
    static const char *const outcomes[] = {[UNWIND_ROOT] = "root",
                                           [UNWIND_NO_TABLE] = "no table",
                                           [UNWIND_BAD_MEMORY] = "bad memory",
                                           [UNWIND_BAD_FRAME] = "bad frame",
                                           [UNWIND_UNKNOWN_REGISTER] = "unknown register"};
    struct frame_table table;
    uint64_t addresses[FRAMES_MAX];
    size_t count = 0, length = 0;
    put_section();
    struct frame_table_source source = {.eh_frame = {.bytes = slice_of(section, section_size)}};
    CHECK(aarch64()->build(&source, &table));
    CHECK_UINT(table.broken_fde_count, 0);
    CHECK_UINT(table.rejected_row_count, 0);
    const struct unwind_module module = {.start = LEAF, .end = STUB + sizeof(stubs), .table = &table};
    const struct unwind_modules modules = {.items = &module, .count = 1};
    const struct unwind_code code = {.read = read_code};
    struct unwind_memory memory = {.low = STACK,
                                   .high = STACK + sizeof(thread->stack),
                                   .shift = (uint64_t)(uintptr_t)thread->stack - STACK,
                                   .extend = cannot_extend,
                                   .code = &code};
    const uint64_t values[] = {thread->x15, thread->fp, thread->lr, thread->sp, thread->pc};
    struct perf_registers registers = {.mask = UINT64_C(1) << 15 | UINT64_C(1) << 29 | UINT64_C(1) << 30 |
                                               UINT64_C(1) << 31 | UINT64_C(1) << 32,
                                       .data = (const uint8_t *)values};
    enum unwind_outcome outcome = aarch64()->walk(&modules, registers, &memory, addresses, FRAMES_MAX, &count);
    for (size_t i = 0; i < count; i++)
        length += (size_t)snprintf(text + length, sizeof(text) - length, "%llx ", (unsigned long long)addresses[i]);
    (void)snprintf(text + length, sizeof(text) - length, "%s", outcomes[outcome]);
    frame_table_fini(&table);
    return text;
}

TEST(both_processors_have_an_unwinder)
{
    CHECK(unwinder_of_elf(EM_X86_64) == unwinder_named("x86_64", 6));
    CHECK(unwinder_of_elf(EM_AARCH64) == unwinder_named("aarch64", 7));
    CHECK(unwinder_of_elf(EM_X86_64) != unwinder_of_elf(EM_AARCH64));
    CHECK(unwinder_of_elf(EM_RISCV) == NULL);
    CHECK(unwinder_named("riscv64", 7) == NULL);
}

TEST(a_leaf_returns_to_x30_and_its_callers_to_signed_addresses)
{
    struct thread thread = {.pc = LEAF + 8, .sp = STACK, .fp = STACK, .lr = with_signature(FRAME + 0x10)};
    thread.stack[0] = STACK + 32;
    thread.stack[1] = with_signature(OUTERMOST + 4);
    CHECK_TEXT(walk(&thread), "1008 1110 1304 root");
}

TEST(a_function_that_has_not_stored_x30_returns_to_it)
{
    struct thread thread = {.pc = FRAME + 4, .sp = STACK, .lr = OUTERMOST + 4};
    CHECK_TEXT(walk(&thread), "1104 1304 root");
}

TEST(x30_serves_one_frame_only)
{
    struct thread thread = {.pc = LEAF + 8, .sp = STACK, .lr = LEAF + 0x10};
    CHECK_TEXT(walk(&thread), "1008 1010 unknown register");
}

TEST(a_frame_is_found_by_the_frame_pointer)
{
    struct thread thread = {.pc = BY_FP + 8, .sp = STACK, .fp = STACK + 16};
    thread.stack[2] = 0;
    thread.stack[3] = OUTERMOST + 4;
    CHECK_TEXT(walk(&thread), "1208 1304 root");
}

TEST(code_without_a_table_is_left_by_its_frame_record)
{
    struct thread thread = {.pc = UNKNOWN_CODE, .sp = STACK, .fp = STACK + 16};
    thread.stack[2] = STACK + 64; /* its caller's frame is somewhere above */
    thread.stack[3] = with_signature(FRAME + 0x10);
    thread.stack[8] = 0;
    thread.stack[9] = OUTERMOST + 4;
    CHECK_TEXT(walk(&thread), "8000 1110 1304 root");
}

TEST(a_frame_record_of_go_begins_a_word_below_the_stack_pointer)
{
    struct thread thread = {.pc = UNKNOWN_CODE, .sp = STACK + 8, .fp = STACK};
    thread.stack[0] = STACK + 32;
    thread.stack[1] = UNKNOWN_CODE + 0x10;
    thread.stack[4] = 0;
    thread.stack[5] = OUTERMOST + 4;
    CHECK_TEXT(walk(&thread), "8000 8010 1304 root");
    thread.sp = STACK + 16;
    CHECK_TEXT(walk(&thread), "8000 no table");
}

TEST(stubs_of_both_sizes_return_to_x30_from_each_instruction)
{
    for (uint64_t pc = STUB; pc < STUB_WITH_BTI + 5 * 4; pc += 4) {
        struct thread thread = {.pc = pc, .sp = STACK, .lr = OUTERMOST + 4};
        char expected[64];
        (void)snprintf(expected, sizeof(expected), "%llx 1304 root", (unsigned long long)pc);
        CHECK_TEXT(walk(&thread), expected);
    }
    struct thread after = {.pc = STUB_WITH_BTI + 5 * 4, .sp = STACK, .fp = STACK + 256, .lr = OUTERMOST + 4};
    CHECK_TEXT(walk(&after), "2024 no table");
}

TEST(a_function_may_return_to_another_register)
{
    struct thread thread = {.pc = IN_X15 + 4, .sp = STACK, .x15 = OUTERMOST + 4};
    CHECK_TEXT(walk(&thread), "1404 1304 root");
}

TEST(a_stack_that_does_not_shrink_ends)
{
    struct thread thread = {.pc = BY_FP + 8, .sp = STACK + 64, .fp = STACK};
    CHECK_TEXT(walk(&thread), "1208 bad frame");
}

TEST_MAIN()
