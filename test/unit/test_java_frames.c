/* Tests the call frame information that is written for code of a Java virtual machine.  SPDX-License-Identifier: MIT */
#include "test.h"

#include "recorder/java_frames.h"
#include "unwind/frame_table.h"
#include "unwind/machine.h"

/* push %rbp; sub $16, %rsp; nop; add $16, %rsp; pop %rbp; a poll of a safepoint; ret; nops */
static const uint8_t method[] = {0x55, 0x48, 0x83, 0xec, 0x10, 0x90, 0x48, 0x83, 0xc4, 0x10, 0x5d,
                                 0x90, 0x90, 0xc3, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90, 0x90};

TEST(the_frame_of_a_method_grows_and_shrinks_as_its_code_says)
{
    enum { BASE = 0x1000 };
    static const int sizes[] = {[0] = 8, [1] = 16, [5] = 32, [9] = 32, [10] = 16, [11] = 8, [13] = 8, [14] = 32};
    struct buffer section = {.maximum = 4096};
    const struct java_blob blob = {
        .code_begin = BASE, .code_end = BASE + sizeof(method), .frame_words = 4, .frame_complete = 5};
    struct frame_table table;
    java_frames_begin(&section);
    java_frames_compiled(&section, &blob, method);
    const struct frame_table_source source = {.eh_frame = {.bytes = buffer_slice(&section)}, .base = BASE};
    CHECK(frame_table_build(&source, &table));
    for (uint32_t at = 0; at < sizeof(sizes) / sizeof(sizes[0]); at++) {
        if (sizes[at] > 0) CHECK_UINT(table.rules[frame_table_rule_at(&table, at)].value, sizes[at]);
    }
    frame_table_fini(&table);
    buffer_fini(&section);
}

TEST(a_section_without_room_has_failed)
{
    const struct java_blob blob = {.code_begin = 0x1000, .code_end = 0x1000 + sizeof(method)};
    bool fits = false;
    for (size_t maximum = 0; !fits; maximum++) {
        struct buffer section = {.maximum = maximum};
        java_frames_begin(&section);
        java_frames_none(&section, &blob);
        fits = !section.failed;
        CHECK(!fits || section.size == maximum);
        buffer_fini(&section);
    }
}

TEST_MAIN()
