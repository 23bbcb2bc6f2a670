/* SPDX-License-Identifier: MIT */
#include "tracee.h"

#include "unwind/elf_sections.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <unistd.h>

static size_t read_memory(pid_t pid, uint64_t address, void *bytes, size_t size)
{
    struct iovec local = {.iov_base = bytes, .iov_len = size};
    struct iovec remote = {.iov_base = (void *)(uintptr_t)address, .iov_len = size};
    ssize_t got = process_vm_readv(pid, &local, 1, &remote, 1, 0);
    return got < 0 ? 0 : (size_t)got;
}

bool tracee_look(struct tracee *tracee)
{
    tracee->block_size = 0;
    return ptrace(PTRACE_GETREGS, tracee->pid, NULL, &tracee->registers) == 0;
}

static bool fill_block(struct tracee *tracee, uint64_t address)
{
    tracee->block_address = address & ~(uint64_t)4095;
    tracee->block_size = read_memory(tracee->pid, tracee->block_address, tracee->block, TRACEE_BLOCK);
    return address + 8 <= tracee->block_address + tracee->block_size;
}

bool tracee_read_word(struct tracee *tracee, uint64_t address, uint64_t *ret_word)
{
    uint64_t offset = address - tracee->block_address;
    if (tracee->block_size < 8 || offset > tracee->block_size - 8) {
        if (!fill_block(tracee, address)) return read_memory(tracee->pid, address, ret_word, 8) == 8;
        offset = address - tracee->block_address;
    }
    memcpy(ret_word, tracee->block + offset, 8);
    return true;
}

/* --- Modules ------------------------------------------------------------------------------------------------------ */

/* A file, or an image in the memory of the process (the vdso). */
struct image {
    int descriptor; /* negative: memory of PID at ADDRESS */
    pid_t pid;
    uint64_t address;
};

static bool read_image(void *context, uint64_t offset, void *bytes, size_t size)
{
    const struct image *image = context;
    if (image->descriptor < 0) return read_memory(image->pid, image->address + offset, bytes, size) == size;
    return pread(image->descriptor, bytes, size, (off_t)offset) == (ssize_t)size;
}

static uint8_t *read_section(struct image *image, struct elf_section_place place)
{
    uint8_t *bytes = place.size > 0 && place.size < 1 << 30 ? malloc(place.size) : NULL;
    if (bytes && read_image(image, place.offset, bytes, place.size)) return bytes;
    free(bytes);
    return NULL;
}

/* The table is in the file's own addresses. */
static void build_table(struct tracee_module *module, struct image *image)
{
    struct elf_frame_sections sections = {0};
    if (!elf_frame_sections_find(read_image, image, &sections)) return;
    uint8_t *frames = read_section(image, sections.eh_frame);
    uint8_t *header = read_section(image, sections.eh_frame_hdr);
    uint8_t *debug = read_section(image, sections.debug_frame);
    struct frame_table_source source = {
        .eh_frame = {.bytes = slice_of(frames, frames ? sections.eh_frame.size : 0),
                     .address = sections.eh_frame.address,
                     .data_address = sections.eh_frame_hdr.address},
        .header = slice_of(header, header ? sections.eh_frame_hdr.size : 0),
        .header_address = sections.eh_frame_hdr.address,
        .debug_frame = {.bytes = slice_of(debug, debug ? sections.debug_frame.size : 0), .is_debug_frame = true},
    };
    (void)frame_table_build(&source, &module->table);
    static const uint8_t usual[4] = {1, 0x1b, 0x03, 0x3b};
    if (header && sections.eh_frame_hdr.size > 12 && memcmp(header, usual, sizeof(usual)) == 0) {
        module->header = sections.eh_frame_hdr.address + module->bias;
        memcpy(&module->header_fdes, header + 8, sizeof(module->header_fdes));
    }
    free(frames);
    free(header);
    free(debug);
}

/* Finds the difference between runtime and file addresses where the byte at FILE_OFFSET is mapped at START. */
static bool find_bias(struct image *image, uint64_t start, uint64_t file_offset, uint64_t *ret_bias)
{
    Elf64_Ehdr header;
    if (!read_image(image, 0, &header, sizeof(header)) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return false;
    for (unsigned i = 0; i < header.e_phnum; i++) {
        Elf64_Phdr program;
        if (!read_image(image, header.e_phoff + i * sizeof(program), &program, sizeof(program))) return false;
        if (program.p_type != PT_LOAD || file_offset < (program.p_offset & ~(uint64_t)4095) ||
            file_offset >= program.p_offset + program.p_filesz || !(program.p_flags & PF_X)) {
            continue;
        }
        *ret_bias = start - file_offset + program.p_offset - program.p_vaddr;
        return true;
    }
    return false;
}

static bool is_same(const struct tracee_module *a, const struct tracee_module *b)
{
    return a->start == b->start && a->end == b->end && strcmp(a->path, b->path) == 0;
}

static void add_module(struct tracee *tracee, struct tracee_module *old, size_t old_count, struct tracee_module *module,
                       uint64_t file_offset)
{
    if (tracee->module_count == TRACEE_MODULES_MAX) return;
    for (size_t i = 0; i < old_count; i++) {
        if (!is_same(&old[i], module)) continue;
        tracee->modules[tracee->module_count++] = old[i];
        old[i].table = (struct frame_table){0};
        return;
    }
    struct image image = {.descriptor = -1, .pid = tracee->pid, .address = module->start};
    if (module->path[0] == '/')
        image.descriptor = open(module->path, O_RDONLY | O_CLOEXEC);
    else if (strcmp(module->path, "[vdso]") != 0)
        return;
    if (find_bias(&image, module->start, file_offset, &module->bias)) build_table(module, &image);
    if (image.descriptor >= 0) (void)close(image.descriptor);
    tracee->table_bytes += module->table.memory_size;
    tracee->table_rows += module->table.row_count;
    tracee->modules[tracee->module_count++] = *module;
}

void tracee_refresh_modules(struct tracee *tracee)
{
    static struct tracee_module old[TRACEE_MODULES_MAX];
    size_t old_count = tracee->module_count;
    memcpy(old, tracee->modules, sizeof(old[0]) * old_count);
    tracee->module_count = 0;

    char path[64], line[1024];
    (void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)tracee->pid);
    FILE *maps = fopen(path, "re");
    while (maps && fgets(line, sizeof(line), maps)) {
        struct tracee_module module = {.start = 0};
        uint64_t file_offset;
        char access[8];
        int matched = sscanf(line, "%lx-%lx %7s %lx %*s %*s %511[^\n]", &module.start, &module.end, access,
                             &file_offset, module.path);
        if (matched == 5 && access[2] == 'x') add_module(tracee, old, old_count, &module, file_offset);
    }
    if (maps) (void)fclose(maps);
    for (size_t i = 0; i < old_count; i++) frame_table_fini(&old[i].table);
    memset(&tracee->cache, 0, sizeof(tracee->cache));
    tracee->generation++;
    for (size_t i = 0; i < tracee->module_count; i++) {
        const struct tracee_module *module = &tracee->modules[i];
        tracee->items[i] = (struct unwind_module){.start = module->start,
                                                  .end = module->end,
                                                  .base = module->bias,
                                                  .table = module->table.row_count > 0 ? &module->table : NULL};
    }
}

const char *tracee_place(const struct tracee *tracee, uint64_t address)
{
    static char texts[4][600];
    static unsigned turn;
    char *text = texts[turn++ % 4];
    (void)snprintf(text, sizeof(texts[0]), "0x%lx", address);
    for (size_t i = 0; i < tracee->module_count; i++) {
        const struct tracee_module *module = &tracee->modules[i];
        if (address < module->start || address >= module->end) continue;
        const char *name = strrchr(module->path, '/');
        (void)snprintf(text, sizeof(texts[0]), "%s+0x%lx", name ? name + 1 : module->path, address - module->bias);
    }
    return text;
}

void tracee_fini(struct tracee *tracee)
{
    for (size_t i = 0; i < tracee->module_count; i++) frame_table_fini(&tracee->modules[i].table);
    tracee->module_count = 0;
}

/* --- Our walk ----------------------------------------------------------------------------------------------------- */

static bool extend(struct unwind_memory *memory, uint64_t address)
{
    struct tracee *tracee = memory->context;
    uint64_t word;
    if (!tracee_read_word(tracee, address, &word)) return false;
    memory->low = tracee->block_address;
    memory->high = tracee->block_address + tracee->block_size;
    memory->shift = (uint64_t)(uintptr_t)tracee->block - tracee->block_address;
    return address >= memory->low && address + 8 <= memory->high;
}

static struct unwind_registers registers_of(const struct user_regs_struct *from)
{
    return (struct unwind_registers){
        .values = {[MACHINE_IP] = from->rip,
                   [MACHINE_SP] = from->rsp,
                   [MACHINE_FP] = from->rbp,
                   [MACHINE_RBX] = from->rbx,
                   [MACHINE_R12] = from->r12,
                   [MACHINE_R13] = from->r13,
                   [MACHINE_R14] = from->r14,
                   [MACHINE_R15] = from->r15,
                   [MACHINE_RAX] = from->rax,
                   [MACHINE_RDX] = from->rdx,
                   [MACHINE_RCX] = from->rcx,
                   [MACHINE_RSI] = from->rsi,
                   [MACHINE_RDI] = from->rdi,
                   [MACHINE_R8] = from->r8,
                   [MACHINE_R9] = from->r9,
                   [MACHINE_R10] = from->r10,
                   [MACHINE_R11] = from->r11},
        .known = MACHINE_ALL_KNOWN,
    };
}

static struct unwind_modules modules_of(struct tracee *tracee)
{
    return (struct unwind_modules){.items = tracee->items,
                                   .count = tracee->module_count,
                                   .generation = tracee->generation,
                                   .cache = &tracee->cache};
}

static bool read_code(void *context, uint64_t address, void *bytes, size_t size)
{
    const struct tracee *tracee = context;
    return read_memory(tracee->pid, address, bytes, size) == size;
}

void tracee_walk(struct tracee *tracee, struct stack *ret_stack)
{
    struct unwind_registers registers = registers_of(&tracee->registers);
    const struct unwind_code code = {.read = read_code, .context = tracee};
    struct unwind_memory memory = {
        .extend = extend, .context = tracee, .code = &code, .stack_pointers = ret_stack->stack_pointers};
    const struct unwind_modules modules = modules_of(tracee);
    ret_stack->outcome = unwind_walk(&modules, &registers, &memory, &tracee->resume_cache, ret_stack->addresses,
                                     TRACEE_FRAMES_MAX, &ret_stack->count);
    ret_stack->reached_root = ret_stack->outcome == UNWIND_ROOT;
}

size_t tracee_walk_without_registers(struct tracee *tracee, struct stack *ret_stack)
{
    struct unwind_registers registers = registers_of(&tracee->registers);
    const struct unwind_code code = {.read = read_code, .context = tracee};
    struct unwind_memory memory = {.extend = extend, .context = tracee, .code = &code};
    const struct unwind_modules modules = modules_of(tracee);
    size_t recovered_count = 0;
    ret_stack->outcome = unwind_walk_without_registers(&modules, &registers, &memory, ret_stack->addresses,
                                                       TRACEE_FRAMES_MAX, &ret_stack->count, &recovered_count);
    ret_stack->reached_root = ret_stack->outcome == UNWIND_ROOT;
    return recovered_count;
}
