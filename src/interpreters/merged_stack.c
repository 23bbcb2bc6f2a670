/* Runs in the signal handler: no libc. SPDX-License-Identifier: MIT */
#include "interpreters/merged_stack.h"

static bool is_in(struct memory_range range, uint64_t address)
{
    return address - range.address < range.size;
}

struct merge {
    const struct native_stack *native;
    const struct native_view *view;
    uint64_t *merged;
    size_t count, max;
    size_t at; /* next native frame */
};

static void add(struct merge *merge, uint64_t address)
{
    if (merge->count < merge->max) merge->merged[merge->count++] = address;
}

/* Adds native frame I. The first address of a stack is exact, and the others are return addresses. */
static void add_native(struct merge *merge, size_t i)
{
    uint64_t address = merge->native->addresses[i], lookup = address - (i > 0);
    if (!merge->view->shows_all && is_in(merge->view->interpreter, lookup)) return;
    add(merge, merge->count == 0 ? lookup : address);
}

/* Returns the first native frame from AT on whose memory holds RECORD; the number of frames if there is none. */
static size_t find_holder(const struct native_stack *native, size_t at, uint64_t record)
{
    for (size_t i = at; i < native->count; i++) {
        bool is_above = record >= native->stack_pointers[i];
        if (is_above && (i + 1 == native->count || record < native->stack_pointers[i + 1])) return i;
    }
    return native->count;
}

/* Adds the native frames outside of all functions of the program. Those of an interpreter that is the program, or of a
 * thread that it has begun, are nobody's interest. */
static void add_outermost(struct merge *merge)
{
    bool has_others = merge->view->shows_all;
    for (size_t i = merge->at; i < merge->native->count; i++) {
        uint64_t lookup = merge->native->addresses[i] - (i > 0);
        has_others |= !is_in(merge->view->interpreter, lookup) && !is_in(merge->view->libc, lookup);
    }
    for (size_t i = merge->at; has_others && i < merge->native->count; i++) add_native(merge, i);
}

/* Returns the first entry frame of INTERPRETED from AT on. */
static size_t next_entry(const struct interpreted_stack *interpreted, size_t at)
{
    while (at < interpreted->count && !interpreted->frames[at].is_entry) at++;
    return at;
}

/* Gives each entry frame of INTERPRETED the native frame of the evaluation function that runs it. The innermost one may
 * have none yet, if VIEW says so. Returns false if there are more or fewer of these. */
static bool find_records(const struct native_stack *native, struct interpreted_stack *interpreted,
                         const struct native_view *view)
{
    size_t natives = 0, entries = 0, at = next_entry(interpreted, 0);
    for (size_t i = 0; i < native->count; i++) natives += is_in(view->evaluation, native->addresses[i] - (i > 0));
    for (size_t i = at; i < interpreted->count; i = next_entry(interpreted, i + 1)) entries++;
    if (view->links_first && entries == natives + 1)
        at = next_entry(interpreted, at + 1);
    else if (entries != natives)
        return false;
    for (size_t i = 0; i < native->count; i++) {
        if (!is_in(view->evaluation, native->addresses[i] - (i > 0))) continue;
        interpreted->frames[at].record = native->stack_pointers[i];
        at = next_entry(interpreted, at + 1);
    }
    return true;
}

size_t merge_stacks(const struct native_stack *native, struct interpreted_stack *interpreted,
                    const struct native_view *view, uint64_t first, uint64_t *merged, size_t max)
{
    struct merge merge = {.native = native, .view = view, .merged = merged, .max = max};
    size_t group = 0; /* first frame of the present native frame */
    if (view->evaluation.size > 0 && !find_records(native, interpreted, view)) return 0;
    for (size_t i = 0; i < interpreted->count; i++) {
        bool is_last = i + 1 == interpreted->count;
        uint64_t record = interpreted->frames[i].record;
        if (record == 0 && !is_last) continue;
        size_t holder = record ? find_holder(native, merge.at, record) : native->count;
        bool is_found = holder < native->count;
        bool is_called_by_c = record == 0 && view->evaluation.size > 0 && native->has_root;
        if (!is_found && native->has_root && !interpreted->is_cut && !is_called_by_c) return 0;
        if (is_called_by_c) holder = merge.at;
        while (merge.at < holder) add_native(&merge, merge.at++);
        for (; group <= i; group++) add(&merge, first + group);
        if (is_found && view->shows_all) add(&merge, native->addresses[holder]);
        if (is_found) merge.at = holder + 1;
    }
    add_outermost(&merge);
    return merge.count;
}
