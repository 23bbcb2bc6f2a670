/* SPDX-License-Identifier: MIT */
#include "format/text/perf_maps.h"

#include "base/array.h"
#include "base/hash.h"

#include <inttypes.h>
#include <stdio.h>

/* --- Records ------------------------------------------------------------------------------------------------------ */

enum { NUMBERS_BYTES_MAX = 256 };

static bool is_digit(uint8_t byte)
{
    return byte >= '0' && byte <= '9';
}

/* Returns the text between "<" and ">", if that is hex. */
static struct slice build_id_in(struct slice text)
{
    const uint8_t *start = text.size > 0 ? memchr(text.data, '<', text.size) : NULL;
    if (!start) return slice_of(NULL, 0);
    size_t size = 0, left = text.size - (size_t)(start + 1 - text.data);
    while (size < left && (is_digit(start[1 + size]) || (start[1 + size] >= 'a' && start[1 + size] <= 'f'))) size++;
    return size < left && start[1 + size] == '>' ? slice_of(start + 1, size) : slice_of(NULL, 0);
}

/* The file follows the permissions: "]: r-xp /usr/bin/x". Data is not of interest. */
static bool parse_file(struct slice text, struct perf_map *map)
{
    enum { PERMISSIONS_SIZE = 8 }; /* "]: r-xp " */
    const uint8_t *end = text.size > 0 ? memchr(text.data, ']', text.size) : NULL;
    size_t left = end ? text.size - (size_t)(end - text.data) : 0;
    if (left <= PERMISSIONS_SIZE || end[1] != ':' || end[5] != 'x') return false;
    map->file = slice_of(end + PERMISSIONS_SIZE, left - PERMISSIONS_SIZE);
    map->build_id = build_id_in(slice_of(text.data, (size_t)(end - text.data)));
    return true;
}

static bool parse_record(struct slice record, struct perf_map *map)
{
    char numbers[NUMBERS_BYTES_MAX];
    size_t pid_size = 0;
    size_t size = record.size < sizeof(numbers) - 1 ? record.size : sizeof(numbers) - 1;
    memcpy(numbers, record.data, size);
    numbers[size] = '\0';
    while (is_digit((uint8_t)numbers[pid_size])) pid_size++;
    map->pid = slice_of(record.data, pid_size);
    int count = sscanf(numbers, "%*[0-9]/%*[0-9]: [0x%" SCNx64 "(0x%" SCNx64 ") @ %" SCNi64, &map->start, &map->size,
                       (int64_t *)&map->file_offset);
    return count == 3 && map->start <= UINT64_MAX - map->size && map->file_offset <= UINT64_MAX - map->size &&
           parse_file(record, map);
}

/* --- The table ---------------------------------------------------------------------------------------------------- */

struct key {
    struct slice pid, file;
    bool is_of_process;
};

static uint64_t hash_of_key(const struct key *key)
{
    uint64_t hash = hash_bytes(key->file.data, key->file.size);
    return key->is_of_process ? hash_mix(hash, hash_bytes(key->pid.data, key->pid.size)) : hash;
}

static bool is_of_key(const void *context, uint32_t index, const void *wanted)
{
    const struct perf_map *map = &((const struct perf_maps *)context)->items[index];
    const struct key *key = wanted;
    return slice_equal(map->file, key->file) && (!key->is_of_process || slice_equal(map->pid, key->pid));
}

static uint32_t first_of(const struct perf_maps *maps, const struct key *key)
{
    const struct index_table *table = key->is_of_process ? &maps->by_process : &maps->by_file;
    return index_table_find(table, hash_of_key(key), is_of_key, maps, key);
}

static uint32_t *next_of(struct perf_map *map, const struct key *key)
{
    return key->is_of_process ? &map->next_of_process : &map->next_of_file;
}

/* Appends the last map to the chain of KEY. */
static bool link_last(struct perf_maps *maps, const struct key *key)
{
    uint32_t last = (uint32_t)maps->count - 1, at = first_of(maps, key);
    struct index_table *table = key->is_of_process ? &maps->by_process : &maps->by_file;
    if (at == INDEX_NONE) return index_table_add(table, hash_of_key(key), last);
    for (int i = 1; i < PERF_MAPS_OF_ONE_MAX; i++) {
        uint32_t *next = next_of(&maps->items[at], key);
        if (*next == 0) {
            *next = last + 1;
            return true;
        }
        at = *next - 1;
    }
    return true;
}

bool perf_maps_add(struct perf_maps *maps, struct slice record)
{
    struct perf_map map = {0};
    if (!parse_record(record, &map)) return true;
    return ARRAY_PUSH(maps, PERF_MAPS_MAX, map) && link_last(maps, &(struct key){map.pid, map.file, true}) &&
           link_last(maps, &(struct key){map.pid, map.file, false});
}

/* A later map can replace an earlier one: the last one counts. */
static const struct perf_map *find_in_chain(const struct perf_maps *maps, struct key key, uint64_t address,
                                            bool is_offset)
{
    const struct perf_map *found = NULL;
    for (uint32_t at = first_of(maps, &key); at != INDEX_NONE;) {
        struct perf_map *map = &maps->items[at];
        if (address - (is_offset ? map->file_offset : map->start) < map->size) found = map;
        at = *next_of(map, &key) - 1; /* INDEX_NONE after the last one */
    }
    return found;
}

const struct perf_map *perf_maps_find(const struct perf_maps *maps, struct slice pid, struct slice file,
                                      uint64_t address, bool is_offset)
{
    if (maps->count == 0 || file.size == 0) return NULL;
    const struct perf_map *found = find_in_chain(maps, (struct key){pid, file, true}, address, is_offset);
    return found ? found : find_in_chain(maps, (struct key){pid, file, false}, address, is_offset);
}

void perf_maps_fini(struct perf_maps *maps)
{
    free(maps->items);
    index_table_fini(&maps->by_process);
    index_table_fini(&maps->by_file);
    *maps = (struct perf_maps){0};
}
