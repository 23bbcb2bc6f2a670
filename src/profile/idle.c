/* Idle samples between two active ones get what those have in common.
 *
 * A walk back finds for each sample the next active one of its thread; a walk forth knows the last one. What two stacks
 * have in common is, in a tree, their nearest common ancestor. Each stack knows its parent and one ancestor
 * further up (a "jump pointer": how far follows from the depth alone, as in a skew binary number), so that a search
 * takes a number of steps that is logarithmic in the depth: stacks of a hostile file may be millions of frames deep.
 * SPDX-License-Identifier: MIT */
#include "profile/profile_private.h"

#include <stdlib.h>

struct ancestry {
    uint32_t depth, parent, jump;
};

/* Returns the ancestry of each stack, by stack index. One pass is enough: a parent's index is below its children's.
 * NULL without memory. */
static struct ancestry *find_ancestry(const struct profile *profile)
{
    struct ancestry *of = calloc(profile->stack_words.count, sizeof(*of));
    for (uint32_t i = 1; of && i < profile->stack_words.count; i++) {
        if (!profile_is_stack(profile, i)) continue;
        uint32_t parent = profile_parent_at(profile, i), jump = of[parent].jump;
        bool is_as_far = of[parent].depth - of[jump].depth == of[jump].depth - of[of[jump].jump].depth;
        of[i] = (struct ancestry){
            .depth = of[parent].depth + 1, .parent = parent, .jump = is_as_far ? of[jump].jump : parent};
    }
    return of;
}

static uint32_t ancestor_at(const struct ancestry *of, uint32_t stack, uint32_t depth)
{
    while (of[stack].depth > depth) stack = of[of[stack].jump].depth >= depth ? of[stack].jump : of[stack].parent;
    return stack;
}

static struct stack_id common_stack(const struct ancestry *of, struct stack_id left, struct stack_id right)
{
    uint32_t a = left.index, b = right.index;
    a = ancestor_at(of, a, of[b].depth);
    b = ancestor_at(of, b, of[a].depth);
    while (a != b) { /* stacks of equal depth, so that their jumps are as far */
        bool jumps = of[a].jump != of[b].jump;
        a = jumps ? of[a].jump : of[a].parent;
        b = jumps ? of[b].jump : of[b].parent;
    }
    return (struct stack_id){a};
}

/* Sets NEXT for each sample to the stack of the next active sample of its thread; 0 if there is none. LAST has an entry
 * for each thread, all zero. */
static void find_next(const struct profile *profile, struct stack_id *next, struct stack_id *last)
{
    const struct sample_columns *samples = &profile->samples;
    for (size_t i = samples->count; i-- > 0;) {
        struct stack_id *of_thread = &last[samples->thread[i].index];
        next[i] = *of_thread;
        if (samples->stack[i].index) *of_thread = samples->stack[i];
    }
}

static void fill(struct profile *profile, const struct ancestry *ancestry, const struct stack_id *next,
                 struct stack_id *last)
{
    struct sample_columns *samples = &profile->samples;
    memset(last, 0, profile->threads.count * sizeof(*last));
    for (size_t i = 0; i < samples->count; i++) {
        struct stack_id *of_thread = &last[samples->thread[i].index];
        if (samples->stack[i].index) {
            *of_thread = samples->stack[i];
        } else {
            samples->stack[i] = common_stack(ancestry, *of_thread, next[i]);
        }
    }
}

enum status profile_fill_idle(struct profile *profile, struct error *error)
{
    struct stack_id *next = calloc(profile->samples.count + 1, sizeof(*next));
    struct stack_id *last = calloc(profile->threads.count, sizeof(*last));
    struct ancestry *ancestry = find_ancestry(profile);
    bool has_memory = next && last && ancestry;
    if (has_memory) {
        find_next(profile, next, last);
        fill(profile, ancestry, next, last);
    }
    free(next);
    free(last);
    free(ancestry);
    return has_memory ? STATUS_OK : error_set(error, STATUS_NO_MEMORY, 0, "not enough memory to fill idle samples");
}
