/* Maps a file as the loader would, and lets the sampler's code list it and build its table.  SPDX-License-Identifier:
 * MIT */
#include "tables.h"

#include "sampler/modules/modules.h"

#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096 };

struct mapped {
    uint8_t *memory;
    size_t size;
    uint64_t code; /* an address in its code */
};

static struct recording_writer writer;
static struct modules modules;
static struct mapped mapped;

static bool map_file(int file, const Elf64_Ehdr *header, struct mapped *ret_mapped)
{
    uint64_t low = UINT64_MAX, high = 0;
    static Elf64_Phdr segments[1024];
    if (header->e_phnum > 1024 || header->e_phentsize != sizeof(segments[0])) return false;
    ssize_t size = (ssize_t)(header->e_phnum * sizeof(segments[0]));
    if (pread(file, segments, (size_t)size, (off_t)header->e_phoff) != size) return false;
    for (unsigned i = 0; i < header->e_phnum; i++) {
        if (segments[i].p_type != PT_LOAD) continue;
        if (segments[i].p_vaddr < low) low = segments[i].p_vaddr;
        if (segments[i].p_vaddr + segments[i].p_memsz > high) high = segments[i].p_vaddr + segments[i].p_memsz;
    }
    low &= ~(uint64_t)(PAGE - 1);
    if (high <= low || high - low > (uint64_t)8 << 30) return false;
    ret_mapped->size = (high - low + PAGE - 1) & ~(uint64_t)(PAGE - 1);
    /* A program that is not relocatable may name its functions by their addresses. */
    bool is_fixed = header->e_type == ET_EXEC;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (is_fixed ? MAP_FIXED_NOREPLACE : 0);
    void *wanted = is_fixed ? (void *)(uintptr_t)low : NULL;
    ret_mapped->memory = mmap(wanted, ret_mapped->size, PROT_NONE, flags, -1, 0);
    if (ret_mapped->memory == MAP_FAILED) return false;
    for (unsigned i = 0; i < header->e_phnum; i++) {
        const Elf64_Phdr *segment = &segments[i];
        if (segment->p_type != PT_LOAD || segment->p_filesz == 0) continue;
        uint64_t skew = segment->p_vaddr % PAGE;
        int protection = PROT_READ | (segment->p_flags & PF_X ? PROT_EXEC : 0);
        if (segment->p_offset % PAGE != skew) return false;
        void *place = ret_mapped->memory + (segment->p_vaddr - skew - low);
        if (mmap(place, segment->p_filesz + skew, protection, MAP_PRIVATE | MAP_FIXED, file,
                 (off_t)(segment->p_offset - skew)) == MAP_FAILED)
            return false;
        if (segment->p_flags & PF_X) ret_mapped->code = (uint64_t)(uintptr_t)place + skew;
    }
    return ret_mapped->code != 0;
}

static const struct module *find_module(uint64_t address)
{
    const struct module *items = modules.items.items;
    for (size_t i = 0; i < modules.items.count; i++) {
        if (address >= items[i].start && address < items[i].end) return &items[i];
    }
    return NULL;
}

/* Lists the modules: none is at address 0, so the sampler looks for new ones. */
static void list_modules(void)
{
    static bool has_begun;
    if (!has_begun) {
        recording_writer_init(&writer, "/dev/null/none", false);
        modules_refresh(&modules, true, &writer);
        has_begun = true;
    }
    (void)modules_build(&modules, 0, modules_no_limit, &writer);
}

const char *table_load(int file, const Elf64_Ehdr *header, struct loaded_table *ret_loaded)
{
    if (!map_file(file, header, &mapped)) return "cannot be mapped";
    list_modules();
    const struct module *module = find_module(mapped.code);
    if (!module) return "the sampler sees no module";
    uint64_t before_ns = thread_ns(), load_bias = module->image.load_bias, start = module->start;
    (void)modules_build(&modules, start, modules_no_limit, &writer);
    modules_work(&modules, SIZE_MAX, modules_no_limit);
    ret_loaded->build_ns = thread_ns() - before_ns;
    const struct unwind_module *built = unwind_find_module(modules.current, start);
    ret_loaded->link_base = built->base - load_bias;
    ret_loaded->table = built->table;
    return NULL;
}

void table_unload(void)
{
    if (mapped.memory && mapped.memory != MAP_FAILED) (void)munmap(mapped.memory, mapped.size);
    mapped = (struct mapped){.memory = NULL};
    list_modules();
    modules_release_retired(&modules);
}
