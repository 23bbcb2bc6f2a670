/* The kernel maps a small ELF image, the vdso, into every process and passes its address in AT_SYSINFO_EHDR. Its
 * dynamic symbols name a clock_gettime that needs no system call (vdso(7)). Although the image comes from the kernel,
 * every place in it is checked against its size. A process that unmaps its vdso loses libc's clock, too.
 * SPDX-License-Identifier: MIT */
#include "sampler/kernel/vdso_clock.h"

#include "base/kernel.h"
#include "base/slice.h"
#include "sampler/kernel/processor.h"

#include <elf.h>
#include <stdatomic.h>
#include <sys/auxv.h>

enum { IMAGE_BYTES_MAX = 64 << 10, HEADERS_MAX = 32, ENTRIES_MAX = 128 };

typedef int (*clock_function)(clockid_t clock, struct timespec *ret_time);

static _Atomic(clock_function) of_vdso;

/* The vdso. Addresses in its tables count from VMADDR, which is at START. */
struct image {
    const uint8_t *start;
    uint64_t vmaddr, size;
};

/* Returns the COUNT items of ITEM_SIZE bytes at ADDRESS, or NULL. */
static const void *items_at(const struct image *image, uint64_t address, uint64_t count, uint64_t item_size)
{
    uint64_t offset = address - image->vmaddr;
    if (offset % 8 != 0 || offset > image->size || count > (image->size - offset) / item_size) return NULL;
    return image->start + offset;
}

/* Finds the function WANTED. Linkers place the names right after the symbols, so the distance bounds the number of
 * symbols. */
static const uint8_t *find_function(const struct image *image, uint64_t symbols, uint64_t names, const char *wanted)
{
    uint64_t count = names > symbols ? (names - symbols) / sizeof(Elf64_Sym) : 0;
    uint64_t name_size = strlen(wanted) + 1;
    const Elf64_Sym *items = items_at(image, symbols, count, sizeof(*items));
    for (uint64_t i = 0; items && i < count; i++) {
        uint64_t offset = items[i].st_value - image->vmaddr;
        bool is_defined_function = ELF64_ST_TYPE(items[i].st_info) == STT_FUNC && items[i].st_shndx != SHN_UNDEF;
        if (!is_defined_function || offset >= image->size) continue;
        uint64_t name = names - image->vmaddr + items[i].st_name;
        bool has_name = name <= image->size && name_size <= image->size - name;
        if (has_name && memcmp(image->start + name, wanted, name_size) == 0) return image->start + offset;
    }
    return NULL;
}

static const Elf64_Phdr *find_header(const Elf64_Phdr *headers, size_t count, uint32_t type)
{
    for (size_t i = 0; i < count; i++) {
        if (headers[i].p_type == type) return &headers[i];
    }
    return NULL;
}

static uint64_t dynamic_value(const Elf64_Dyn *entries, size_t count, int64_t tag)
{
    for (size_t i = 0; i < count && entries[i].d_tag != DT_NULL; i++) {
        if (entries[i].d_tag == tag) return entries[i].d_un.d_ptr;
    }
    return 0;
}

static const uint8_t *find_in_vdso(const Elf64_Ehdr *header, const char *wanted)
{
    struct image image = {.start = (const uint8_t *)header, .size = sizeof(*header)};
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 || header->e_ident[EI_CLASS] != ELFCLASS64) return NULL;
    if (header->e_phentsize != sizeof(Elf64_Phdr) || header->e_phnum > HEADERS_MAX || header->e_phoff % 8 != 0)
        return NULL;
    if (header->e_phoff + header->e_phnum * sizeof(Elf64_Phdr) > 4096) return NULL; /* one page is always mapped */
    const Elf64_Phdr *headers = (const void *)(image.start + header->e_phoff);
    const Elf64_Phdr *loaded = find_header(headers, header->e_phnum, PT_LOAD);
    const Elf64_Phdr *dynamic = find_header(headers, header->e_phnum, PT_DYNAMIC);
    if (!loaded || !dynamic || loaded->p_offset != 0 || loaded->p_memsz > IMAGE_BYTES_MAX) return NULL;
    image.vmaddr = loaded->p_vaddr;
    image.size = loaded->p_memsz;
    size_t count = dynamic->p_memsz / sizeof(Elf64_Dyn);
    if (count > ENTRIES_MAX) return NULL;
    const Elf64_Dyn *entries = items_at(&image, dynamic->p_vaddr, count, sizeof(*entries));
    if (!entries) return NULL;
    return find_function(&image, dynamic_value(entries, count, DT_SYMTAB), dynamic_value(entries, count, DT_STRTAB),
                         wanted);
}

void clock_prepare(void)
{
    const Elf64_Ehdr *header = (const void *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);
    if (!header || atomic_load(&of_vdso)) return;
    uintptr_t found = (uintptr_t)find_in_vdso(header, PROCESSOR_VDSO_CLOCK);
    atomic_store(&of_vdso, (clock_function)found);
}

uint64_t clock_code_address(void)
{
    return (uint64_t)(uintptr_t)atomic_load_explicit(&of_vdso, memory_order_relaxed);
}

/* The pointer refers to code of the kernel, which is there from the start: its loads are relaxed. */
uint64_t clock_ns(clockid_t clock)
{
    struct timespec now = {0};
    uint64_t ns = 0;
    clock_function function = atomic_load_explicit(&of_vdso, memory_order_relaxed);
    if (function && function(clock, &now) == 0) return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    return kernel_clock_ns(clock, &ns) ? ns : 0;
}

uint64_t monotonic_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
}

uint64_t wall_clock_ns(void)
{
    return clock_ns(CLOCK_REALTIME);
}
