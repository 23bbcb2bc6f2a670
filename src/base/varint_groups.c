/* SPDX-License-Identifier: MIT */
#include "base/varint_groups.h"

#if defined(__aarch64__)
#include "base/varint_vector_aarch64.h"
#else
#include "base/varint_vector_x86_64.h"
#endif

enum { NUMBERS = 4, SIZE_MAX_OF_ONE = 3 };

/* Notes for all patterns that begin with numbers of these sizes where their bytes go. */
static void add_order(struct varint_groups *groups, uint8_t order, const uint8_t sizes[NUMBERS])
{
    enum { NO_BYTE = 0x80 };
    unsigned size = 0, pattern = 0;
    for (unsigned number = 0; number < NUMBERS; number++) {
        for (unsigned byte = 0; byte < sizeof(uint32_t); byte++) {
            uint8_t *from = &groups->bytes[order][number * sizeof(uint32_t) + byte];
            *from = byte < sizes[number] ? (uint8_t)(size + byte) : NO_BYTE;
        }
        size += sizes[number];
        pattern |= 1u << (size - 1);
    }
    for (unsigned rest = 0; rest < (unsigned)VARINT_GROUP_PATTERNS >> size; rest++) {
        groups->sizes[pattern | rest << size] = (uint8_t)size;
        groups->orders[pattern | rest << size] = order;
    }
}

void varint_groups_init(struct varint_groups *groups)
{
    groups->can_read = varint_vector_is_there();
    for (unsigned order = 0; order < VARINT_GROUP_ORDERS; order++) {
        uint8_t sizes[NUMBERS];
        for (unsigned number = 0, digits = order; number < NUMBERS; number++, digits /= SIZE_MAX_OF_ONE)
            sizes[number] = (uint8_t)(1 + digits % SIZE_MAX_OF_ONE);
        add_order(groups, (uint8_t)order, sizes);
    }
}

VARINT_VECTOR static size_t read_groups(const struct varint_groups *groups, const uint8_t **position,
                                        const uint8_t *end, uint32_t maximum, uint32_t *ret_values)
{
    const uint8_t *at = *position;
    uint32_t *next = ret_values;
    while (end - at >= VARINT_GROUP_ROOM) {
        varint_vector bytes = varint_vector_load(at);
        unsigned pattern = varint_vector_ends(bytes) & (VARINT_GROUP_PATTERNS - 1);
        varint_vector numbers = varint_vector_join(varint_vector_order(bytes, groups->bytes[groups->orders[pattern]]));
        if (groups->sizes[pattern] == 0 || !varint_vector_within(numbers, maximum)) break;
        varint_vector_store(next, numbers);
        at += groups->sizes[pattern];
        next += NUMBERS;
    }
    *position = at;
    return (size_t)(next - ret_values);
}

size_t varint_groups_read(const struct varint_groups *groups, const uint8_t **position, const uint8_t *end,
                          uint32_t maximum, uint32_t *ret_values)
{
    return groups->can_read ? read_groups(groups, position, end, maximum, ret_values) : 0;
}
