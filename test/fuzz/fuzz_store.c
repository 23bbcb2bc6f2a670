/* The files of the store may be damaged: columns, packed payloads, stacks of a service, and entries of
 * rollups. The first byte chooses which one the rest is. Text that is split into columns comes back.
 * SPDX-License-Identifier: MIT */
#include "store/columns.h"
#include "store/store_private.h"

enum { SIZE_MAX_BYTES = 1 << 20 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool holds)
{
    if (!holds) __builtin_trap();
}

static void decode_columns(struct slice bytes)
{
    struct buffer out;
    buffer_init(&out, 2 * SIZE_MAX_BYTES);
    if (columns_decode(bytes, SIZE_MAX_BYTES, &out)) demand(out.size <= SIZE_MAX_BYTES + bytes.size);
    buffer_fini(&out);
}

static void encode_columns(struct slice text)
{
    struct buffer columns, out;
    buffer_init(&columns, 4 * SIZE_MAX_BYTES);
    buffer_init(&out, 4 * SIZE_MAX_BYTES);
    if (columns_encode(text, &columns)) {
        demand(columns_decode(buffer_slice(&columns), text.size, &out));
        demand(slice_equal(buffer_slice(&out), text));
    }
    buffer_fini(&columns);
    buffer_fini(&out);
}

static void unpack(struct slice packed)
{
    struct buffer out;
    buffer_init(&out, 2 * SIZE_MAX_BYTES);
    if (payload_unpack(packed, 4096, &out, NULL) == STATUS_OK) demand(out.size == 4096);
    buffer_fini(&out);
}

/* A dictionary that was read is written as the same bytes that are read again. */
static void read_space(struct slice bytes)
{
    struct stack_dictionary dictionary = {0}, again = {0};
    struct buffer out;
    buffer_init(&out, 4 * SIZE_MAX_BYTES);
    if (stack_dictionary_read(&dictionary, bytes, true)) {
        stack_dictionary_write(&dictionary, 0, 0, &out);
        demand(!out.failed && stack_dictionary_read(&again, buffer_slice(&out), false));
        demand(again.frame_count == dictionary.frame_count && again.node_count == dictionary.node_count);
    }
    for (size_t i = 1; i < dictionary.node_count; i++) demand(dictionary.nodes[i].parent < i);
    stack_dictionary_fini(&dictionary);
    stack_dictionary_fini(&again);
    buffer_fini(&out);
}

static void add_entries(struct slice bytes)
{
    struct rollup_values rollup = {0};
    for (int turn = 0; turn < 2; turn++) {
        if (rollup_add_entries(&rollup, bytes))
            demand(rollup.value_count >= 1 && rollup.value_count <= STORE_ROLLUP_VALUES_MAX);
    }
    rollup_values_fini(&rollup);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static void (*const readers[])(struct slice bytes) = {decode_columns, encode_columns, unpack, read_space,
                                                          add_entries};
    if (size > 0) readers[data[0] % 5](slice_of(data + 1, size - 1));
    return 0;
}
