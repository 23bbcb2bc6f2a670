/* A file's table is asked for when a walk first meets the file: the walk stops there as pending, and begins again.
 * SPDX-License-Identifier: MIT */
#include "format/perf/perf_stack.h"

#include "unwind/unwinder.h"

static struct perf_registers registers_of(const struct perf_sample *sample)
{
    return (struct perf_registers){.mask = sample->registers_mask, .data = sample->registers.data};
}

static bool has_registers(const struct unwinder *unwinder, const struct perf_sample *sample)
{
    return unwinder && sample->registers_abi == PERF_ABI_64 && perf_registers_have(unwinder, sample->registers_mask);
}

static bool cannot_extend(struct unwind_memory *memory, uint64_t address)
{
    (void)memory;
    (void)address;
    return false;
}

/* The executable segment of FILE that is mapped from FILE_OFFSET on; NULL: none. The loader maps whole pages, so that
 * parts of other segments can be in SIZE. */
static const struct perf_code_segment *find_segment(const struct perf_code_file *file, uint64_t file_offset,
                                                    uint64_t size)
{
    enum { PAGE = 4096 };
    const struct perf_code_segment *found = NULL;
    for (size_t i = 0; i < file->segment_count; i++) {
        const struct perf_code_segment *segment = &file->segments[i];
        if (segment->file_offset - segment->file_offset % PAGE == file_offset) return segment;
        bool is_before = segment->file_offset < file_offset && file_offset - segment->file_offset < segment->size;
        bool is_inside = segment->file_offset >= file_offset && segment->file_offset - file_offset < size;
        if (!found && (is_before || is_inside)) found = segment;
    }
    return found;
}

static uint64_t file_offset_of(const struct perf_spaces *spaces, const struct perf_map *map, uint64_t address)
{
    return spaces->segments.items[map->segment].file_offset + map->offset + (address - map->start);
}

static void give_table(const struct perf_spaces *spaces, const struct perf_code *code, struct perf_map *map,
                       struct unwind_module *module)
{
    const struct perf_segment *segment = &spaces->segments.items[map->segment];
    const char *path = profile_c_string(spaces->profile, segment->file_name);
    const char *build_id = profile_c_string(spaces->profile, segment->build_id);
    module->is_pending = false;
    map->file = code->find(code->context, path, build_id);
    if (!map->file || map->file->elf_machine != spaces->unwinder->elf_machine) return;
    uint64_t offset = file_offset_of(spaces, map, map->start);
    const struct perf_code_segment *code_segment = find_segment(map->file, offset, map->end - map->start);
    if (!code_segment) return;
    module->table = map->file->table;
    module->base = map->start - offset + code_segment->file_offset - code_segment->address + map->file->base;
}

struct code_reader {
    const struct perf_spaces *spaces;
    const struct perf_space *space;
    const struct perf_code *code;
};

static bool read_code(void *context, uint64_t address, void *bytes, size_t size)
{
    const struct code_reader *reader = context;
    const struct perf_map *map = perf_space_map_at(reader->space, address);
    if (!map || !map->file || !reader->code->read) return false;
    return reader->code->read(map->file->binary, file_offset_of(reader->spaces, map, address), bytes, size);
}

enum unwind_outcome perf_stack_walk(struct perf_spaces *spaces, struct perf_space *space, const struct perf_code *code,
                                    const struct perf_sample *sample, uint64_t *addresses, size_t *ret_count)
{
    const struct unwinder *unwinder = spaces->unwinder;
    *ret_count = 0;
    if (!has_registers(unwinder, sample)) return UNWIND_ROOT;
    const struct perf_registers registers = registers_of(sample);
    uint64_t start = perf_register_at(registers, unwinder->perf_sp);
    if (!code) {
        addresses[(*ret_count)++] = perf_register_at(registers, unwinder->perf_ip);
        return UNWIND_NO_TABLE;
    }
    struct unwind_modules modules = {.items = space ? space->modules : NULL, .count = space ? space->count : 0};
    struct code_reader reader = {spaces, space, code};
    const struct unwind_code bytes = {.read = read_code, .context = &reader};
    if (space) modules.cache = perf_spaces_rules(spaces, space);
    for (;;) {
        struct unwind_memory memory = {.extend = cannot_extend, .code = &bytes};
        if (sample->stack.size >= sizeof(uint64_t) && start <= UINT64_MAX - sample->stack.size) {
            memory.low = start;
            memory.high = start + sample->stack.size;
            memory.shift = (uint64_t)(uintptr_t)sample->stack.data - start;
        }
        enum unwind_outcome outcome =
            unwinder->walk(&modules, registers, &memory, addresses, PERF_STACK_FRAMES_MAX, ret_count);
        if (outcome != UNWIND_PENDING) return outcome;
        uint64_t address = addresses[*ret_count - 1];
        const struct unwind_module *pending = unwind_find_module(&modules, address - (*ret_count > 1));
        if (!pending || !pending->is_pending) pending = unwind_find_module(&modules, address);
        if (!space || !pending || !pending->is_pending) return UNWIND_NO_TABLE;
        size_t place = (size_t)(pending - modules.items);
        give_table(spaces, code, &space->maps[place], &space->modules[place]);
    }
}
