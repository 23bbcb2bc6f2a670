/* Arrays in pages grow whatever became of their mapping.  SPDX-License-Identifier: MIT */
#include "base/kernel.h"
#include "base/pages.h"
#include "test.h"

#include <stdint.h>
#include <sys/resource.h>

enum { ITEMS_MAX = 4 << 20, LARGE_PAGE = 2 << 20 };

static void add_up_to(struct pages_array *array, size_t count)
{
    while (array->count < count) {
        uint64_t *item = pages_array_add(array, sizeof(*item), ITEMS_MAX);
        CHECK(item != NULL);
        if (!item) return;
        *item = array->count;
    }
}

static bool holds_its_items(const struct pages_array *array)
{
    const uint64_t *items = array->items;
    for (size_t i = 0; i < array->count; i++) {
        if (items[i] != i + 1) return false;
    }
    return true;
}

TEST(an_array_grows_past_a_reservation_of_any_size)
{
    static const size_t reservations[] = {
        1, 1000, 8191, 8192, 8193, 12345, 40000, LARGE_PAGE / 8 - 1, LARGE_PAGE / 8 + 1};
    for (size_t i = 0; i < sizeof(reservations) / sizeof(reservations[0]); i++) {
        struct pages_array array = {0};
        pages_array_reserve(&array, sizeof(uint64_t), reservations[i]);
        CHECK(array.size_bytes >= reservations[i] * sizeof(uint64_t));
        size_t room = array.size_bytes / sizeof(uint64_t);
        add_up_to(&array, 2 * room + 1);
        CHECK_UINT(array.count, 2 * room + 1);
        CHECK(holds_its_items(&array));
        pages_array_fini(&array);
    }
}

TEST(an_array_grows_when_its_mapping_was_split)
{
    struct pages_array array = {0};
    add_up_to(&array, 100);
    size_t half = array.size_bytes / 2, room = array.size_bytes / sizeof(uint64_t);
    long advised = kernel_call3(SYS_madvise, kernel_address(array.items), (long)half, MADV_DONTDUMP);
    CHECK_UINT(advised, 0);
    add_up_to(&array, 2 * room + 1);
    CHECK_UINT(array.count, 2 * room + 1);
    CHECK(holds_its_items(&array));
    pages_array_fini(&array);
}

TEST(an_array_rejects_more_than_its_maximum)
{
    struct pages_array array = {0};
    for (unsigned i = 0; i < 3; i++) CHECK(pages_array_add(&array, 1, 3) != NULL);
    CHECK(pages_array_add(&array, 1, 3) == NULL);
    pages_array_fini(&array);
}

TEST(a_reservation_without_memory_changes_nothing)
{
    struct pages_array array = {0};
    pages_array_reserve(&array, 16, SIZE_MAX / 8);
    pages_array_reserve(&array, 16, SIZE_MAX / 16 - 1);
    CHECK(array.items == NULL);
    CHECK_UINT(array.size_bytes, 0);
    CHECK(pages_array_add(&array, 16, 1) != NULL);
    pages_array_fini(&array);
}

/* Last: memory stays unlocked from here on. */
TEST(unlocked_memory_that_may_not_be_written_is_denied)
{
    struct rlimit limit = {0};
    pages_leave_unlocked();
    void *memory = pages_allocate(1 << 20);
    CHECK(memory != NULL);
    if (memory) *(char *)memory = 1;
    pages_free(memory, 1 << 20);
    CHECK(getrlimit(RLIMIT_DATA, &limit) == 0);
    struct rlimit small = {1, limit.rlim_max}; /* 0 would mean: no limit */
    CHECK(setrlimit(RLIMIT_DATA, &small) == 0);
    CHECK(pages_allocate(1 << 20) == NULL);
    CHECK(setrlimit(RLIMIT_DATA, &limit) == 0);
}

TEST_MAIN()
