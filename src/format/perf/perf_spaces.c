/* SPDX-License-Identifier: MIT */
#include "format/perf/perf_spaces.h"

#include "base/array.h"
#include "base/hash.h"
#include "base/partition_point.h"

void perf_spaces_init(struct perf_spaces *spaces, struct profile *profile)
{
    *spaces = (struct perf_spaces){.profile = profile};
}

static void release(struct perf_space *space)
{
    if (!space || --space->users > 0) return;
    free(space->maps);
    free(space->modules);
    free(space);
}

void perf_spaces_fini(struct perf_spaces *spaces)
{
    for (size_t i = 0; i < spaces->processes.count; i++) release(spaces->processes.items[i].space);
    free(spaces->processes.items);
    free(spaces->segments.items);
    free(spaces->rules);
    index_table_fini(&spaces->processes.index);
    index_table_fini(&spaces->segments.index);
    *spaces = (struct perf_spaces){0};
}

static void fail(struct perf_spaces *spaces, enum status status)
{
    if (spaces->status == STATUS_OK) spaces->status = status;
}

/* --- Segments ----------------------------------------------------------------------------------------------------- */

static uint64_t hash_of_segment(const struct perf_segment *segment)
{
    uint64_t hash = hash_mix(hash_mix(segment->file_name.index, segment->build_id.index), segment->function.index);
    return hash_mix(hash_mix(hash_mix(hash, segment->file_offset), segment->size), segment->owner);
}

static bool is_segment(const void *context, uint32_t index, const void *key)
{
    const struct perf_segment *segment = &((const struct perf_spaces *)context)->segments.items[index], *wanted = key;
    return segment->file_name.index == wanted->file_name.index && segment->build_id.index == wanted->build_id.index &&
           segment->function.index == wanted->function.index && segment->file_offset == wanted->file_offset &&
           segment->size == wanted->size && segment->owner == wanted->owner &&
           (wanted->owner == 0 || segment->start == wanted->start);
}

/* Memory of a process, and not of a file that another process may have elsewhere. */
static bool is_memory(const struct profile *profile, struct string_id file_name)
{
    const char *name = profile_c_string(profile, file_name);
    if (strcmp(name, "[vdso]") == 0) return false;
    return name[0] != '/' || strncmp(name, "//anon", strlen("//anon")) == 0;
}

/* The index of the segment of MAPPED. */
static uint32_t add_segment(struct perf_spaces *spaces, const struct perf_mapped *mapped)
{
    struct perf_segment segment = {.file_name = mapped->file_name,
                                   .build_id = mapped->build_id,
                                   .function = mapped->function,
                                   .file_offset = mapped->file_offset,
                                   .size = mapped->size,
                                   .start = mapped->start};
    if (!mapped->is_kernel && is_memory(spaces->profile, mapped->file_name)) segment.owner = mapped->pid;
    uint64_t hash = hash_of_segment(&segment);
    uint32_t found = index_table_find(&spaces->segments.index, hash, is_segment, spaces, &segment);
    if (found != INDEX_NONE) return found;
    if (spaces->segments.count == PERF_SEGMENTS_MAX)
        fail(spaces, STATUS_TOO_LARGE);
    else if (!INDEXED_ARRAY_PUSH(&spaces->segments, PERF_SEGMENTS_MAX, hash, segment))
        fail(spaces, STATUS_NO_MEMORY);
    return (uint32_t)spaces->segments.count - 1;
}

/* --- Processes ---------------------------------------------------------------------------------------------------- */

static bool is_process(const void *context, uint32_t index, const void *key)
{
    return ((const struct perf_spaces *)context)->processes.items[index].pid == *(const uint32_t *)key;
}

static struct perf_process *find_process(const struct perf_spaces *spaces, uint32_t pid)
{
    uint32_t found = index_table_find(&spaces->processes.index, hash_mix(pid, 2), is_process, spaces, &pid);
    return found == INDEX_NONE ? NULL : &spaces->processes.items[found];
}

static struct perf_process *add_process(struct perf_spaces *spaces, uint32_t pid)
{
    struct perf_process *process = find_process(spaces, pid);
    if (process) return process;
    if (spaces->processes.count == PERF_PROCESSES_MAX) {
        fail(spaces, STATUS_TOO_LARGE);
        return NULL;
    }
    if (!INDEXED_ARRAY_PUSH(&spaces->processes, PERF_PROCESSES_MAX, hash_mix(pid, 2),
                            (struct perf_process){pid, NULL})) {
        fail(spaces, STATUS_NO_MEMORY);
        return NULL;
    }
    return &spaces->processes.items[spaces->processes.count - 1];
}

struct perf_space *perf_spaces_find(const struct perf_spaces *spaces, uint32_t pid)
{
    const struct perf_process *process = find_process(spaces, pid);
    return process ? process->space : NULL;
}

void perf_spaces_empty(struct perf_spaces *spaces, uint32_t pid)
{
    struct perf_process *process = find_process(spaces, pid);
    if (!process) return;
    release(process->space);
    process->space = NULL;
}

void perf_spaces_fork(struct perf_spaces *spaces, uint32_t parent, uint32_t child)
{
    if (parent == child) return; /* a thread */
    struct perf_space *space = perf_spaces_find(spaces, parent);
    struct perf_process *process = add_process(spaces, child);
    if (!process || process->space == space) return;
    release(process->space);
    process->space = space;
    if (space) space->users++;
}

/* --- Maps --------------------------------------------------------------------------------------------------------- */

static bool reserve_maps(struct perf_space *space, size_t needed)
{
    enum { MAXIMUM = PERF_SPACE_MAPS_MAX + 2 };
    return array_reserve(&space->maps, &space->capacity, needed, sizeof(*space->maps), MAXIMUM) &&
           array_reserve(&space->modules, &space->modules_capacity, needed, sizeof(*space->modules), MAXIMUM);
}

static struct perf_space *copy_space(const struct perf_space *from)
{
    struct perf_space *space = calloc(1, sizeof(*space));
    if (!space) return NULL;
    space->users = 1;
    if (!from || from->count == 0) return space;
    if (!reserve_maps(space, from->count)) {
        release(space);
        return NULL;
    }
    memcpy(space->maps, from->maps, from->count * sizeof(*space->maps));
    memcpy(space->modules, from->modules, from->count * sizeof(*space->modules));
    space->count = from->count;
    return space;
}

/* The space of PROCESS, which has it alone and has room for two more maps. NULL: that has failed. */
static struct perf_space *own_space(struct perf_spaces *spaces, struct perf_process *process)
{
    struct perf_space *space = process->space;
    if (!space || space->users > 1) {
        struct perf_space *copy = copy_space(space);
        if (!copy) {
            fail(spaces, STATUS_NO_MEMORY);
            return NULL;
        }
        spaces->copies += copy->count;
        if (spaces->copies > PERF_COPIES_FREE + spaces->records * PERF_COPIES_OF_RECORD) fail(spaces, STATUS_TOO_LARGE);
        release(space);
        process->space = space = copy;
    }
    if (space->count >= PERF_SPACE_MAPS_MAX) {
        fail(spaces, STATUS_TOO_LARGE);
        return NULL;
    }
    if (reserve_maps(space, space->count + 2)) return space;
    fail(spaces, STATUS_NO_MEMORY);
    return NULL;
}

/* The first map that ends after ADDRESS. */
static size_t first_ending_after(const struct perf_space *space, uint64_t address)
{
    return PARTITION_POINT(space->count, i, space->maps[i].end <= address);
}

/* Moves what begins at FROM to TO. */
static void move_maps(struct perf_space *space, size_t from, size_t to)
{
    memmove(space->maps + to, space->maps + from, (space->count - from) * sizeof(*space->maps));
    memmove(space->modules + to, space->modules + from, (space->count - from) * sizeof(*space->modules));
    space->count += to - from;
}

static void put_map(struct perf_space *space, size_t place, struct perf_map map, struct unwind_module module)
{
    module.start = map.start;
    module.end = map.end;
    space->maps[place] = map;
    space->modules[place] = module;
}

/* A new map takes the place of what was there before, which keeps the parts around it. */
static void insert_map(struct perf_space *space, struct perf_map map)
{
    size_t first = first_ending_after(space, map.start), last = first_ending_after(space, map.end);
    const struct unwind_module pending = {.is_pending = true};
    bool has_head = first < space->count && space->maps[first].start < map.start;
    bool has_tail = last < space->count && space->maps[last].start < map.end;
    struct perf_map head = {0}, tail = {0};
    struct unwind_module head_module = pending, tail_module = pending;
    if (has_head) {
        head = space->maps[first];
        head_module = space->modules[first];
        head.end = map.start;
    }
    if (has_tail) {
        tail = space->maps[last];
        tail_module = space->modules[last];
        tail.offset += map.end - tail.start;
        tail.start = map.end;
    }
    size_t after = last + has_tail, place = first;
    move_maps(space, after, first + has_head + 1 + has_tail);
    if (has_head) put_map(space, place++, head, head_module);
    put_map(space, place++, map, pending);
    if (has_tail) put_map(space, place, tail, tail_module);
}

void perf_spaces_map(struct perf_spaces *spaces, const struct perf_mapped *mapped)
{
    uint64_t end = 0;
    if (__builtin_add_overflow(mapped->start, mapped->size, &end)) end = UINT64_MAX;
    if (end <= mapped->start) return;
    struct perf_process *process = add_process(spaces, mapped->is_kernel ? PERF_KERNEL_PID : mapped->pid);
    struct perf_space *space = process ? own_space(spaces, process) : NULL;
    uint32_t segment = add_segment(spaces, mapped);
    if (!space || spaces->status != STATUS_OK) return;
    insert_map(space, (struct perf_map){.start = mapped->start, .end = end, .segment = segment});
    space->version = ++spaces->versions;
}

struct rule_cache *perf_spaces_rules(struct perf_spaces *spaces, const struct perf_space *space)
{
    if (!spaces->rules) spaces->rules = calloc(PERF_RULE_CACHES, sizeof(*spaces->rules));
    if (!spaces->rules) return NULL;
    struct perf_rules *rules = &spaces->rules[space->version % PERF_RULE_CACHES];
    if (rules->version != space->version) memset(rules, 0, sizeof(*rules));
    rules->version = space->version;
    return &rules->cache;
}

const struct perf_map *perf_space_map_at(const struct perf_space *space, uint64_t address)
{
    size_t place = space ? first_ending_after(space, address) : 0;
    bool is_inside = space && place < space->count && space->maps[place].start <= address;
    return is_inside ? &space->maps[place] : NULL;
}

struct mapping_id perf_spaces_place(struct perf_spaces *spaces, const struct perf_map *map, uint64_t address,
                                    uint64_t *ret_address)
{
    struct perf_segment *segment = &spaces->segments.items[map->segment];
    *ret_address = segment->start + map->offset + (address - map->start);
    if (segment->mapping.index == 0) {
        uint64_t limit;
        const struct string_id no_name = {0};
        struct mapping mapping = {.start = segment->start,
                                  .file_offset = segment->file_offset,
                                  .file_name = segment->file_name,
                                  .build_id = segment->build_id,
                                  .process = profile_add_pid(spaces->profile, (int32_t)segment->owner, no_name)};
        mapping.limit = __builtin_add_overflow(segment->start, segment->size, &limit) ? UINT64_MAX : limit;
        segment->mapping = profile_add_mapping(spaces->profile, &mapping);
    }
    return segment->mapping;
}
