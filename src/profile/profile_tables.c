/* Interning of everything but strings, and the lists that are not interned.
 *
 * Every table works alike: hash the content, look for an equal entry, else append one. A hash may leave out fields
 * that change after adding (a mapping's flags, a thread's name), but not the fields in which most entries differ.
 * SPDX-License-Identifier: MIT */
#include "profile/profile_private.h"

#include "base/array.h"
#include "base/hash.h"
#include "profile/build_id.h"

#include <stdarg.h>
#include <stdio.h>

/* The index of the entry just written at the end of TABLE, or 0 if it cannot be indexed. */
#define FINISH_ADDING(profile, table, hash)                                                                            \
    (index_table_add(&(profile)->table.index, (hash), (uint32_t)(profile)->table.count)                                \
         ? (uint32_t)(profile)->table.count++                                                                          \
         : (profile_fail((profile), STATUS_NO_MEMORY), 0u))

static inline uint64_t hash_pair(uint64_t hash, uint32_t high, uint32_t low)
{
    return hash_mix(hash, (uint64_t)high << 32 | low);
}

static inline bool same_string(struct string_id a, struct string_id b)
{
    return a.index == b.index;
}

static size_t at_most(size_t count, size_t maximum)
{
    return count < maximum ? count : maximum;
}

/* Reserves room for MORE entries in TABLE. A hint: failure is ignored. */
#define EXPECT(profile, table, more, maximum)                                                                          \
    ((void)array_reserve(&(profile)->table.items, &(profile)->table.capacity,                                          \
                         at_most((profile)->table.count + (more), (maximum)), sizeof(*(profile)->table.items),         \
                         (maximum)))

/* Does the same and provides the pages, for tables that will be filled. */
#define EXPECT_ALL(profile, table, more, maximum)                                                                      \
    do {                                                                                                               \
        EXPECT(profile, table, more, maximum);                                                                         \
        pages_prepare((profile)->table.items, (profile)->table.capacity * sizeof(*(profile)->table.items));            \
    } while (0)

void profile_expect(struct profile *profile, const struct profile_expected *expected)
{
    EXPECT_ALL(profile, strings, expected->strings, PROFILE_STRINGS_MAX);
    index_table_reserve(&profile->strings.index, expected->strings);
    EXPECT_ALL(profile, functions, expected->functions, PROFILE_ENTITIES_MAX);
    index_table_reserve(&profile->functions.index, expected->functions);
    EXPECT_ALL(profile, locations, expected->locations, PROFILE_ENTITIES_MAX);
    index_table_reserve(&profile->locations.index, expected->locations);
    EXPECT_ALL(profile, lines, expected->locations, PROFILE_ENTITIES_MAX);
    EXPECT(profile, stack_words, expected->stacks, PROFILE_STACK_WORDS_MAX);
    /* A new stack has one entry at most in the index, where it parts from those that were there. */
    index_table_reserve(&profile->stack_words.index, at_most(expected->samples, PROFILE_ENTITIES_MAX));
}

/* --- Mappings ----------------------------------------------------------------------------------------------------- */

static bool mapping_equal(const void *context, uint32_t index, const void *key)
{
    const struct profile *profile = context;
    const struct mapping *a = &profile->mappings.items[index], *b = key;
    return a->start == b->start && a->limit == b->limit && a->file_offset == b->file_offset &&
           same_string(a->file_name, b->file_name) && same_string(a->build_id, b->build_id) &&
           same_string(a->build_text, b->build_text) && same_string(a->debug_id, b->debug_id) &&
           a->image_start == b->image_start && a->image_size == b->image_size && a->image_vmaddr == b->image_vmaddr &&
           a->process.index == b->process.index && same_string(a->attributes, b->attributes) &&
           a->has_functions == b->has_functions && a->has_filenames == b->has_filenames &&
           a->has_line_numbers == b->has_line_numbers && a->has_inline_frames == b->has_inline_frames;
}

struct mapping_id profile_add_mapping(struct profile *profile, const struct mapping *added)
{
    struct mapping checked = *added;
    const struct mapping *mapping = &checked;
    mapping_check_build_id(profile, &checked);
    uint64_t hash = hash_mix(hash_mix(mapping->start, mapping->limit), mapping->file_offset);
    hash = hash_pair(hash, mapping->file_name.index, mapping->build_id.index);
    uint32_t index = index_table_find(&profile->mappings.index, hash, mapping_equal, profile, mapping);
    if (index != INDEX_NONE) return (struct mapping_id){index};

    if (!PROFILE_RESERVE(profile, mappings, 1, PROFILE_ENTITIES_MAX)) return (struct mapping_id){0};
    profile->mappings.items[profile->mappings.count] = *mapping;
    return (struct mapping_id){FINISH_ADDING(profile, mappings, hash)};
}

/* --- Functions ---------------------------------------------------------------------------------------------------- */

static bool function_equal(const void *context, uint32_t index, const void *key)
{
    const struct profile *profile = context;
    const struct function *a = &profile->functions.items[index], *b = key;
    return same_string(a->name, b->name) && same_string(a->system_name, b->system_name) &&
           same_string(a->file_name, b->file_name) && a->start_line == b->start_line &&
           same_string(a->module, b->module) && same_string(a->package, b->package) && a->in_app == b->in_app;
}

/* Entry 0 means "no function", whatever its fields are. */
bool profile_is_function(const struct profile *profile, uint32_t index, const struct function *function)
{
    return index > 0 && index < profile->functions.count && function_equal(profile, index, function);
}

struct function_id profile_add_function(struct profile *profile, const struct function *function)
{
    uint64_t hash = hash_pair((uint64_t)function->start_line, function->name.index, function->system_name.index);
    hash = hash_pair(hash, function->file_name.index, function->module.index);
    hash = hash_pair(hash, function->package.index, (uint32_t)function->in_app);
    uint32_t index = index_table_find(&profile->functions.index, hash, function_equal, profile, function);
    if (index != INDEX_NONE) return (struct function_id){index};

    if (!PROFILE_RESERVE(profile, functions, 1, PROFILE_ENTITIES_MAX)) return (struct function_id){0};
    profile->functions.items[profile->functions.count] = *function;
    return (struct function_id){FINISH_ADDING(profile, functions, hash)};
}

/* --- Locations ---------------------------------------------------------------------------------------------------- */

struct location_key {
    const struct location *location;
    const struct line *lines;
    uint32_t line_count;
};

static bool lines_equal(const struct line *a, const struct line *b, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        if (a[i].function.index != b[i].function.index || a[i].line != b[i].line || a[i].column != b[i].column ||
            a[i].attributes.index != b[i].attributes.index) {
            return false;
        }
    }
    return true;
}

static bool location_equal(const void *context, uint32_t index, const void *key)
{
    const struct profile *profile = context;
    const struct location_key *b = key;
    const struct location *a = &profile->locations.items[index];
    return a->address == b->location->address && a->mapping.index == b->location->mapping.index &&
           a->is_folded == b->location->is_folded && a->kind == b->location->kind &&
           same_string(a->attributes, b->location->attributes) && a->line_count == b->line_count &&
           lines_equal(profile_lines(profile, a), b->lines, b->line_count);
}

bool profile_is_location(const struct profile *profile, uint32_t index, const struct location *location,
                         const struct line *lines, uint32_t line_count)
{
    struct location_key key = {.location = location, .lines = lines, .line_count = line_count};
    return index > 0 && index < profile->locations.count && location_equal(profile, index, &key);
}

static uint64_t location_hash(const struct location_key *key)
{
    uint64_t hash = hash_pair(key->location->address, key->location->mapping.index,
                              (uint32_t)key->location->kind << 1 | key->location->is_folded);
    for (uint32_t i = 0; i < key->line_count; i++) {
        hash = hash_pair(hash, key->lines[i].function.index, (uint32_t)key->lines[i].line);
        hash = hash_mix(hash, (uint64_t)key->lines[i].column ^ (uint64_t)key->lines[i].attributes.index << 32);
    }
    return hash;
}

/* Appends LINES. False if there is no room. */
static bool add_lines(struct profile *profile, const struct line *lines, uint32_t count)
{
    if (!PROFILE_RESERVE(profile, lines, count, PROFILE_ENTITIES_MAX)) return false;
    if (count > 0) memcpy(profile->lines.items + profile->lines.count, lines, count * sizeof(*lines));
    profile->lines.count += count;
    return true;
}

struct location_id profile_add_location(struct profile *profile, const struct location *location,
                                        const struct line *lines, uint32_t line_count)
{
    struct location_key key = {.location = location, .lines = lines, .line_count = line_count};
    uint64_t hash = location_hash(&key);
    uint32_t index = index_table_find(&profile->locations.index, hash, location_equal, profile, &key);
    if (index != INDEX_NONE) return (struct location_id){index};

    uint32_t line_first = (uint32_t)profile->lines.count;
    if (!PROFILE_RESERVE(profile, locations, 1, PROFILE_ENTITIES_MAX) || !add_lines(profile, lines, line_count)) {
        return (struct location_id){0};
    }
    struct location *added = &profile->locations.items[profile->locations.count];
    *added = *location;
    added->line_first = line_first;
    added->line_count = line_count;
    return (struct location_id){FINISH_ADDING(profile, locations, hash)};
}

/* Replaces the lines of LOCATION. Its hash changes with the content, so LOCATION is indexed again. Its entry under the
 * old hash stays in the index and equals no key with that hash. */
void profile_set_lines(struct profile *profile, struct location_id location, const struct line *lines,
                       uint32_t line_count)
{
    if (location.index == 0 || location.index >= profile->locations.count) return;
    uint32_t line_first = (uint32_t)profile->lines.count;
    if (!add_lines(profile, lines, line_count)) return;
    struct location *named = &profile->locations.items[location.index];
    named->line_first = line_first;
    named->line_count = line_count;
    struct location_key key = {.location = named, .lines = lines, .line_count = line_count};
    if (!index_table_add(&profile->locations.index, location_hash(&key), location.index)) {
        profile_fail(profile, STATUS_NO_MEMORY);
    }
}

/* --- Stacks -------------------------------------------------------------------------------------------------------
 *
 * A stack is mostly added root first, each frame on the one just added. So the entry after a stack is its child unless
 * it is a branch, and such a child is in no index: this keeps the index to the stacks after branches, a few for each
 * sample in place of one for each frame. */

/* INDEX is of a stack after a branch: only those are in the index. */
static bool stack_equal(const void *context, uint32_t index, const void *key)
{
    const uint32_t *words = ((const struct profile *)context)->stack_words.items;
    const struct stack *stack = key;
    return words[index - 1] == (stack->parent.index | PROFILE_BRANCH) && words[index] == stack->location.index;
}

static uint64_t stack_hash(struct stack stack)
{
    return hash_pair(0, stack.parent.index, stack.location.index);
}

/* The way of a stack down from the root: AT is how far it is known, and LEFT of its frames are beyond. */
struct descent {
    const struct location_id *frames; /* leaf first */
    uint32_t left;
    uint32_t at;
    uint32_t candidate; /* perhaps the next stack */
    uint64_t hash;      /* hash of the next stack */
};

static inline struct stack next_stack(const struct descent *descent)
{
    return (struct stack){.parent = {descent->at}, .location = descent->frames[descent->left - 1]};
}

typedef uint32_t four_words __attribute__((vector_size(16)));
enum { FOUR = sizeof(four_words) / sizeof(uint32_t) };

/* The four frames that end before END, in the order of a table of stacks. */
static inline four_words four_frames(const struct location_id *end)
{
    four_words words;
    memcpy(&words, end - FOUR, sizeof(words));
    return __builtin_shufflevector(words, words, 3, 2, 1, 0);
}

/* The number of equal words before the first that differs. Computed without branches, which no processor could
 * predict. */
static inline uint32_t count_equal(four_words left, const uint32_t *words)
{
    enum { WORD_BITS = 32 };
    four_words right;
    uint64_t halves[2]; /* 0 in each word that is equal */
    memcpy(&right, words, sizeof(right));
    right ^= left;
    memcpy(halves, &right, sizeof(halves));
    if ((halves[0] | halves[1]) == 0) return FOUR;
    uint64_t half = halves[0] ? halves[0] : halves[1];
    return (halves[0] ? 0 : 2) + (uint32_t)__builtin_ctzll(half) / WORD_BITS;
}

/* Descends while the next entry is the next stack. No branch word is equal to a frame. */
static inline void descend(const struct profile *profile, struct descent *descent)
{
    const struct location_id *frames = descent->frames, *frame = frames + descent->left;
    const uint32_t *words = profile->stack_words.items, *word = words + descent->at + 1,
                   *end = words + profile->stack_words.count;
    uint32_t equal = FOUR;
    while (equal == FOUR && frame - frames >= FOUR && end - word >= FOUR) {
        equal = count_equal(four_frames(frame), word);
        word += equal;
        frame -= equal;
    }
    while (equal == FOUR && frame != frames && word != end && *word == frame[-1].index) {
        word++;
        frame--;
    }
    descent->at = (uint32_t)(word - words) - 1;
    descent->left = (uint32_t)(frame - frames);
}

/* True, with its hash, if a stack is left that is not the next entry. A profile that could not be begun has no entry at
 * all. */
static bool follow_entries(const struct profile *profile, struct descent *descent)
{
    if (descent->left > 0 && profile->stack_words.count > 0) descend(profile, descent);
    if (descent->left == 0) return false;
    descent->hash = stack_hash(next_stack(descent));
    return true;
}

/* Makes room for COUNT stacks that are each the parent of the next, and adds the branch before FIRST, unless its parent
 * is the last entry, which has no children yet. HASH is that of FIRST. */
static bool begin_entries(struct profile *profile, struct stack first, uint64_t hash, size_t count)
{
    if (!PROFILE_RESERVE(profile, stack_words, count + 1, PROFILE_STACK_WORDS_MAX)) return false;
    if (first.parent.index + 1 == profile->stack_words.count) return true;
    if (!index_table_add(&profile->stack_words.index, hash, (uint32_t)profile->stack_words.count + 1)) {
        profile_fail(profile, STATUS_NO_MEMORY);
        return false;
    }
    profile->stack_words.items[profile->stack_words.count++] = first.parent.index | PROFILE_BRANCH;
    return true;
}

/* Adds the remaining frames of the stack, one entry each. */
static bool append_entries(struct profile *profile, struct descent *descent)
{
    uint32_t left = descent->left;
    if (!begin_entries(profile, next_stack(descent), descent->hash, left)) return false;
    uint32_t *next = profile->stack_words.items + profile->stack_words.count;
    for (; left >= FOUR; left -= FOUR, next += FOUR) {
        four_words words = four_frames(descent->frames + left);
        memcpy(next, &words, sizeof(words));
    }
    while (left > 0) *next++ = descent->frames[--left].index;
    profile->stack_words.count += descent->left;
    descent->at = (uint32_t)profile->stack_words.count - 1;
    descent->left = 0;
    return true;
}

static struct stack_id finish_descent(struct profile *profile, struct descent *descent)
{
    while (follow_entries(profile, descent)) {
        struct stack next = next_stack(descent);
        uint32_t known = index_table_find(&profile->stack_words.index, descent->hash, stack_equal, profile, &next);
        if (known == INDEX_NONE) {
            bool is_added = append_entries(profile, descent);
            return (struct stack_id){is_added ? descent->at : 0};
        }
        descent->at = known;
        descent->left--;
    }
    return (struct stack_id){descent->at};
}

struct stack_id profile_add_stack(struct profile *profile, struct stack_id parent, struct location_id leaf)
{
    struct descent descent = {.frames = &leaf, .left = 1, .at = parent.index};
    return finish_descent(profile, &descent);
}

/* Continues from the candidate if it is the right one, and prefetches the memory that the following step needs. */
static bool enter_candidate(const struct profile *profile, struct descent *descent)
{
    struct stack next = next_stack(descent);
    if (descent->candidate == INDEX_NONE || !stack_equal(profile, descent->candidate, &next)) return false;
    descent->at = descent->candidate;
    descent->left--;
    if (!follow_entries(profile, descent)) return false;
    index_table_prefetch(&profile->stack_words.index, descent->hash);
    return true;
}

/* Takes each as far down as it is known, all of them a step at a time: most steps wait for memory, and so they wait
 * together. */
static void descend_together(const struct profile *profile, struct descent *descents, size_t count)
{
    enum { FOLLOWED_ENTRIES = 8 }; /* after a candidate, as a rule: they may be in the next cache line */
    struct descent *active[PROFILE_ADDED_AT_ONCE];
    size_t active_count = 0;
    for (size_t i = 0; i < count; i++) {
        if (!follow_entries(profile, &descents[i])) continue;
        index_table_prefetch(&profile->stack_words.index, descents[i].hash);
        active[active_count++] = &descents[i];
    }
    while (active_count > 0) {
        for (size_t i = 0; i < active_count; i++) {
            uint32_t candidate = index_table_peek(&profile->stack_words.index, active[i]->hash);
            active[i]->candidate = candidate;
            if (candidate == INDEX_NONE) continue;
            __builtin_prefetch(&profile->stack_words.items[candidate]);
            __builtin_prefetch(&profile->stack_words.items[candidate] + FOLLOWED_ENTRIES);
        }
        size_t kept = 0;
        for (size_t i = 0; i < active_count; i++) {
            if (enter_candidate(profile, active[i])) active[kept++] = active[i];
        }
        active_count = kept;
    }
}

void profile_add_stacks(struct profile *profile, const struct stack_frames *stacks, size_t count,
                        struct stack_id *ret_ids)
{
    while (count > 0) {
        size_t taken = count < PROFILE_ADDED_AT_ONCE ? count : PROFILE_ADDED_AT_ONCE;
        struct descent descents[PROFILE_ADDED_AT_ONCE];
        for (size_t i = 0; i < taken; i++) {
            descents[i] = (struct descent){.frames = stacks[i].frames, .left = stacks[i].count};
        }
        descend_together(profile, descents, taken);
        for (size_t i = 0; i < taken; i++) ret_ids[i] = finish_descent(profile, &descents[i]);
        stacks += taken;
        ret_ids += taken;
        count -= taken;
    }
}

/* Stacks of another profile on their way into this one. */
struct stack_move {
    const struct profile *from;
    const uint32_t *locations;
    uint32_t *stacks; /* a mark, or the new index, by stack index in FROM */
};

/* Entries of FROM, each the parent of the next. */
struct chain {
    uint32_t first, end;
};

static inline uint32_t moved_location(const struct stack_move *move, uint32_t index)
{
    return move->locations[move->from->stack_words.items[index]];
}

static inline struct stack moved_stack(const struct stack_move *move, uint32_t index)
{
    return (struct stack){.parent = {move->stacks[profile_parent_at(move->from, index)]},
                          .location = {moved_location(move, index)}};
}

/* The next chains of marked entries from *AT on, which moves after them. Branches are never marked. */
static size_t find_chains(const struct stack_move *move, uint32_t *at, struct chain chains[PROFILE_ADDED_AT_ONCE])
{
    size_t found = 0, count = move->from->stack_words.count;
    uint32_t i = *at;
    while (i < count && found < PROFILE_ADDED_AT_ONCE) {
        uint32_t first = i++;
        if (move->stacks[first] == 0) continue;
        while (i < count && move->stacks[i] != 0) i++;
        chains[found++] = (struct chain){.first = first, .end = i};
    }
    *at = i;
    return found;
}

/* Fetches the memory that the search for the first entries of these chains reads into the cache. */
static void fetch_for_chains(const struct profile *profile, const struct stack_move *move, const struct chain *chains,
                             size_t count)
{
    struct stack firsts[PROFILE_ADDED_AT_ONCE];
    size_t known = 0; /* count of FIRSTS: stacks whose parents have a new index, so not parents in these chains */
    for (size_t i = 0; i < count; i++)
        __builtin_prefetch(&move->stacks[profile_parent_at(move->from, chains[i].first)]);
    for (size_t i = 0; i < count; i++) {
        if (profile_parent_at(move->from, chains[i].first) >= chains[0].first) continue;
        firsts[known] = moved_stack(move, chains[i].first);
        __builtin_prefetch(&profile->stack_words.items[firsts[known].parent.index + 1]);
        index_table_prefetch(&profile->stack_words.index, stack_hash(firsts[known]));
        known++;
    }
    for (size_t i = 0; i < known; i++) {
        uint32_t candidate = index_table_peek(&profile->stack_words.index, stack_hash(firsts[i]));
        if (candidate != INDEX_NONE) __builtin_prefetch(&profile->stack_words.items[candidate]);
    }
}

/* The entry that is STACK, or INDEX_NONE. */
static inline uint32_t find_stack(const struct profile *profile, struct stack stack)
{
    uint32_t after = stack.parent.index + 1;
    if (after < profile->stack_words.count && profile->stack_words.items[after] == stack.location.index) return after;
    return index_table_find(&profile->stack_words.index, stack_hash(stack), stack_equal, profile, &stack);
}

/* Adds a chain whose first entry is new, and all the others with it. */
static void append_chain(struct profile *profile, const struct stack_move *move, struct chain chain)
{
    struct stack first = moved_stack(move, chain.first);
    bool has_room = begin_entries(profile, first, stack_hash(first), chain.end - chain.first);
    for (uint32_t i = chain.first; i < chain.end; i++) {
        if (has_room) profile->stack_words.items[profile->stack_words.count] = moved_location(move, i);
        move->stacks[i] = has_room ? (uint32_t)profile->stack_words.count++ : 0;
    }
}

static void move_chain(struct profile *profile, const struct stack_move *move, struct chain chain)
{
    uint32_t i = chain.first;
    for (; i < chain.end; i++) {
        uint32_t known = find_stack(profile, moved_stack(move, i));
        if (known == INDEX_NONE) break;
        move->stacks[i] = known;
    }
    if (i < chain.end) append_chain(profile, move, (struct chain){.first = i, .end = chain.end});
}

void profile_add_stacks_of(struct profile *profile, const struct profile *from, const uint32_t *locations,
                           uint32_t *stacks)
{
    struct stack_move move = {.from = from, .locations = locations, .stacks = stacks};
    struct chain chains[PROFILE_ADDED_AT_ONCE];
    uint32_t at = 1;
    for (size_t count; (count = find_chains(&move, &at, chains)) > 0;) {
        fetch_for_chains(profile, &move, chains, count);
        for (size_t i = 0; i < count; i++) move_chain(profile, &move, chains[i]);
    }
}

/* A stack is mostly the entry after its parent, so that a walk goes through neighbours and jumps now and then. Here
 * all of them continue to their next jump in turn. */
void profile_fetch_stacks(const struct profile *profile, const struct stack_id *stacks, size_t count)
{
    const uint32_t *words = profile->stack_words.items;
    uint32_t active[PROFILE_ADDED_AT_ONCE];
    size_t active_count = 0;
    for (size_t i = 0; i < count; i++) {
        __builtin_prefetch(&words[stacks[i].index]);
        if (stacks[i].index != 0) active[active_count++] = stacks[i].index;
    }
    while (active_count > 0) {
        size_t kept = 0;
        for (size_t i = 0; i < active_count; i++) {
            uint32_t at = active[i];
            while (at != 0 && !(words[at - 1] & PROFILE_BRANCH)) at--;
            if (at != 0) at = words[at - 1] & ~PROFILE_BRANCH;
            __builtin_prefetch(&words[at]);
            if (at != 0) active[kept++] = at;
        }
        active_count = kept;
    }
}

/* --- Processes ---------------------------------------------------------------------------------------------------- */

static bool process_equal(const void *context, uint32_t index, const void *key)
{
    const struct profile *profile = context;
    const struct process *a = &profile->processes.items[index], *b = key;
    bool same_start = a->start_ns == b->start_ns || a->start_ns == 0 || b->start_ns == 0;
    return same_start && a->pid == b->pid && (a->pid != 0 || same_string(a->profiler_id, b->profiler_id)) &&
           same_string(a->host, b->host) && same_string(a->container, b->container);
}

static void take_text(struct string_id *known, struct string_id text)
{
    if (known->index == 0) *known = text;
}

struct process_id profile_add_process(struct profile *profile, const struct process *process)
{
    uint64_t hash = hash_mix((uint64_t)process->pid, process->pid ? 0 : process->profiler_id.index);
    uint32_t index = index_table_find(&profile->processes.index, hash, process_equal, profile, process);
    if (index == INDEX_NONE) {
        if (!PROFILE_RESERVE(profile, processes, 1, PROFILE_PROCESSES_MAX)) return (struct process_id){0};
        profile->processes.items[profile->processes.count] = *process;
        return (struct process_id){FINISH_ADDING(profile, processes, hash)};
    }
    struct process *known = &profile->processes.items[index];
    take_text(&known->name, process->name);
    take_text(&known->profiler_id, process->profiler_id);
    if (known->parent_pid == 0) known->parent_pid = process->parent_pid;
    if (known->start_ns == 0) known->start_ns = process->start_ns;
    return (struct process_id){index};
}

struct process_id profile_add_pid(struct profile *profile, int64_t pid, struct string_id name)
{
    if (pid <= 0) return (struct process_id){0};
    return profile_add_process(profile, &(struct process){.pid = pid, .name = name});
}

/* --- Threads ------------------------------------------------------------------------------------------------------ */

static bool thread_equal(const void *context, uint32_t index, const void *key)
{
    const struct profile *profile = context;
    const struct thread *a = &profile->threads.items[index], *b = key;
    return same_string(a->id, b->id) && a->process.index == b->process.index;
}

static uint64_t thread_hash(const struct thread *thread)
{
    return hash_mix(thread->process.index, thread->id.index);
}

void profile_give_process(struct profile *profile, struct process_id process)
{
    index_table_fini(&profile->threads.index);
    profile->threads.index = (struct index_table){0};
    for (uint32_t i = 1; i < profile->threads.count; i++) {
        struct thread *thread = &profile->threads.items[i];
        if (thread->process.index == 0) thread->process = process;
        if (!index_table_add(&profile->threads.index, thread_hash(thread), i)) profile_fail(profile, STATUS_NO_MEMORY);
    }
}

struct thread_id profile_add_thread(struct profile *profile, const struct thread *thread)
{
    uint64_t hash = thread_hash(thread);
    uint32_t index = index_table_find(&profile->threads.index, hash, thread_equal, profile, thread);
    if (index == INDEX_NONE) {
        if (!PROFILE_RESERVE(profile, threads, 1, PROFILE_THREADS_MAX)) return (struct thread_id){0};
        profile->threads.items[profile->threads.count] = *thread;
        return (struct thread_id){FINISH_ADDING(profile, threads, hash)};
    }
    struct thread *known = &profile->threads.items[index];
    take_text(&known->name, thread->name);
    take_text(&known->attributes, thread->attributes);
    if (!known->has_priority && thread->has_priority) {
        known->priority = thread->priority;
        known->has_priority = true;
    }
    return (struct thread_id){index};
}

/* --- Labels ------------------------------------------------------------------------------------------------------- */

struct labels_key {
    const struct label *labels;
    uint32_t count;
};

static bool label_equal(const struct label *a, const struct label *b)
{
    return same_string(a->key, b->key) && a->is_number == b->is_number && same_string(a->unit, b->unit) &&
           (a->is_number ? a->number == b->number : same_string(a->text, b->text));
}

static bool label_set_equal(const void *context, uint32_t index, const void *key)
{
    const struct profile *profile = context;
    const struct label_set *a = &profile->label_sets.items[index];
    const struct labels_key *b = key;
    if (a->count != b->count) return false;
    for (uint32_t i = 0; i < a->count; i++) {
        if (!label_equal(&profile->labels.items[a->first + i], &b->labels[i])) return false;
    }
    return true;
}

static uint64_t labels_hash(const struct label *labels, uint32_t count)
{
    uint64_t hash = count;
    for (uint32_t i = 0; i < count; i++) {
        hash = hash_pair(hash, labels[i].key.index, labels[i].is_number ? labels[i].unit.index : labels[i].text.index);
        if (labels[i].is_number) hash = hash_mix(hash, (uint64_t)labels[i].number);
    }
    return hash;
}

static struct label_set_id add_hashed_labels(struct profile *profile, const struct label *labels, uint32_t count,
                                             uint64_t hash)
{
    static const struct label_set_id none;
    if (count == 0) return none;
    struct labels_key key = {.labels = labels, .count = count};
    uint32_t index = index_table_find(&profile->label_sets.index, hash, label_set_equal, profile, &key);
    if (index != INDEX_NONE) return (struct label_set_id){index};

    if (!PROFILE_RESERVE(profile, label_sets, 1, PROFILE_ENTITIES_MAX) ||
        !PROFILE_RESERVE(profile, labels, count, PROFILE_ENTITIES_MAX)) {
        return none;
    }
    profile->label_sets.items[profile->label_sets.count] =
        (struct label_set){.first = (uint32_t)profile->labels.count, .count = count};
    memcpy(profile->labels.items + profile->labels.count, labels, count * sizeof(*labels));
    profile->labels.count += count;
    return (struct label_set_id){FINISH_ADDING(profile, label_sets, hash)};
}

struct label_set_id profile_add_labels(struct profile *profile, const struct label *labels, uint32_t count)
{
    return add_hashed_labels(profile, labels, count, labels_hash(labels, count));
}

/* Fetches the memory that the search for lists with these hashes reads into the cache. */
static void fetch_label_sets(const struct profile *profile, const uint64_t *hashes, size_t count)
{
    uint32_t candidates[PROFILE_ADDED_AT_ONCE];
    for (size_t i = 0; i < count; i++) {
        candidates[i] = index_table_peek(&profile->label_sets.index, hashes[i]);
        if (candidates[i] != INDEX_NONE) __builtin_prefetch(&profile->label_sets.items[candidates[i]]);
    }
    for (size_t i = 0; i < count; i++) {
        if (candidates[i] == INDEX_NONE) continue;
        const struct label_set *set = &profile->label_sets.items[candidates[i]];
        const struct label *labels = profile->labels.items + set->first;
        __builtin_prefetch(labels);
        __builtin_prefetch(labels + set->count - 1);
    }
}

void profile_add_labels_of_many(struct profile *profile, const struct labels_of_one *lists, size_t count,
                                struct label_set_id *ret_ids)
{
    while (count > 0) {
        size_t taken = at_most(count, PROFILE_ADDED_AT_ONCE);
        uint64_t hashes[PROFILE_ADDED_AT_ONCE];
        for (size_t i = 0; i < taken; i++) {
            hashes[i] = labels_hash(lists[i].labels, lists[i].count);
            index_table_prefetch(&profile->label_sets.index, hashes[i]);
        }
        fetch_label_sets(profile, hashes, taken);
        for (size_t i = 0; i < taken; i++) {
            ret_ids[i] = add_hashed_labels(profile, lists[i].labels, lists[i].count, hashes[i]);
        }
        lists += taken;
        ret_ids += taken;
        count -= taken;
    }
}

/* --- Lists -------------------------------------------------------------------------------------------------------- */

/* Found by a walk: there are a handful, and a recorder asks for each once. */
struct measurement *profile_measurement(struct profile *profile, const char *name, const char *unit)
{
    struct string_id name_id = profile_text(profile, name);
    struct string_id unit_id = profile_text(profile, unit);
    for (size_t i = 0; i < profile->measurements.count; i++) {
        if (same_string(profile->measurements.items[i].name, name_id)) return &profile->measurements.items[i];
    }
    if (!PROFILE_RESERVE(profile, measurements, 1, PROFILE_MEASUREMENTS_MAX)) return NULL;
    struct measurement *added = &profile->measurements.items[profile->measurements.count++];
    *added = (struct measurement){.name = name_id, .unit = unit_id};
    return added;
}

void profile_measure(struct profile *profile, struct measurement *measurement, uint64_t time_ns, double value)
{
    if (!profile_reserve(profile, &measurement->values, &measurement->capacity, measurement->count + 1,
                         sizeof(*measurement->values), PROFILE_SAMPLES_MAX)) {
        return;
    }
    measurement->values[measurement->count++] = (struct measurement_value){.time_ns = time_ns, .value = value};
}

static void add_metadata(struct profile *profile, const struct metadata_entry *entry)
{
    if (!PROFILE_RESERVE(profile, metadata, 1, PROFILE_METADATA_MAX)) return;
    profile->metadata.items[profile->metadata.count++] = *entry;
}

void profile_add_metadata_number(struct profile *profile, const char *key, int64_t number)
{
    add_metadata(profile,
                 &(struct metadata_entry){.key = profile_text(profile, key), .is_number = true, .number = number});
}

void profile_add_metadata_text(struct profile *profile, const char *key, const char *text)
{
    add_metadata(profile,
                 &(struct metadata_entry){.key = profile_text(profile, key), .text = profile_text(profile, text)});
}

void profile_add_comment(struct profile *profile, struct slice text)
{
    struct string_id id = profile_string(profile, text);
    if (!PROFILE_RESERVE(profile, comments, 1, PROFILE_METADATA_MAX)) return;
    profile->comments.items[profile->comments.count++] = id;
}

void profile_add_omission(struct profile *profile, const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    if (profile->omissions.count == PROFILE_OMISSIONS_MAX) return;
    struct string_id id = profile_text(profile, text);
    for (size_t i = 0; i < profile->omissions.count; i++) {
        if (profile->omissions.items[i].index == id.index) return;
    }
    if (!PROFILE_RESERVE(profile, omissions, 1, PROFILE_OMISSIONS_MAX)) return;
    profile->omissions.items[profile->omissions.count++] = id;
}

void profile_add_marker(struct profile *profile, const struct marker *marker, const struct marker_text *texts,
                        uint32_t text_count)
{
    if (!PROFILE_RESERVE(profile, markers, 1, PROFILE_MARKERS_MAX) ||
        !PROFILE_RESERVE(profile, marker_texts, text_count, PROFILE_ENTITIES_MAX))
        return;
    struct marker *added = &profile->markers.items[profile->markers.count++];
    *added = *marker;
    added->text_first = (uint32_t)profile->marker_texts.count;
    added->text_count = text_count;
    for (uint32_t i = 0; i < text_count; i++) profile->marker_texts.items[profile->marker_texts.count++] = texts[i];
}

/* Found by a walk: there are as many as a program has kinds of markers. */
void profile_add_marker_schema(struct profile *profile, struct string_id json)
{
    for (size_t i = 0; i < profile->marker_schemas.count; i++) {
        if (profile->marker_schemas.items[i].index == json.index) return;
    }
    if (!PROFILE_RESERVE(profile, marker_schemas, 1, PROFILE_MARKER_SCHEMAS_MAX)) return;
    profile->marker_schemas.items[profile->marker_schemas.count++] = json;
}
