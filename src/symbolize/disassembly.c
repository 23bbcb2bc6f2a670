/* Capstone is loaded when it is first needed (doc/decisions/capstone.md).  SPDX-License-Identifier: MIT */
#include "symbolize/disassembly.h"

#include "base/array.h"
#include "base/partition_point.h"

#include <capstone/capstone.h>
#include <dlfcn.h>
#include <elf.h>
#include <inttypes.h>
#include <pthread.h>

enum { TEXT_BYTES_MAX = 512 << 20 };

/* --- Capstone ------------------------------------------------------------------------------------------------------
 */

/* Its functions by their names without "cs_". */
#define CAPSTONE_FUNCTIONS(FUNCTION)                                                                                   \
    FUNCTION(open)                                                                                                     \
    FUNCTION(close)                                                                                                    \
    FUNCTION(option)                                                                                                   \
    FUNCTION(malloc)                                                                                                   \
    FUNCTION(free)                                                                                                     \
    FUNCTION(disasm_iter)                                                                                              \
    FUNCTION(strerror)

struct capstone_library {
#define CAPSTONE_MEMBER(name) __typeof__(cs_##name) *name;
    CAPSTONE_FUNCTIONS(CAPSTONE_MEMBER)
#undef CAPSTONE_MEMBER
};

#define AS_TEXT_OF(value) #value
#define AS_TEXT(value) AS_TEXT_OF(value)
/* The layout of an instruction differs between major versions, which are part of the name. */
#define LIBRARY_NAME "libcapstone.so." AS_TEXT(CS_API_MAJOR)

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct capstone_library library;
static bool is_loaded;

static void load(void)
{
    void *handle = dlopen(LIBRARY_NAME, RTLD_NOW | RTLD_LOCAL);
    is_loaded = handle != NULL;
    if (!handle) return;
#define CAPSTONE_LOOK_UP(name)                                                                                         \
    library.name = (__typeof__(library.name))dlsym(handle, "cs_" #name);                                               \
    is_loaded = is_loaded && library.name;
    CAPSTONE_FUNCTIONS(CAPSTONE_LOOK_UP)
#undef CAPSTONE_LOOK_UP
}

/* Returns the same for every caller, from any thread; the first one loads it, and it is never unloaded. NULL, at every
 * later call too, if the version of Capstone that offbeat was built with is not installed. */
static const struct capstone_library *capstone_library_get(struct error *error)
{
    (void)pthread_once(&once, load);
    if (is_loaded) return &library;
    (void)error_set(error, STATUS_UNSUPPORTED, 0,
                    LIBRARY_NAME " is not installed (Debian: libcapstone" AS_TEXT(CS_API_MAJOR) ")");
    return NULL;
}

/* --- The list ------------------------------------------------------------------------------------------------------
 */

void disassembly_init(struct disassembly *disassembly)
{
    *disassembly = (struct disassembly){0};
    buffer_init(&disassembly->text, TEXT_BYTES_MAX);
}

void disassembly_fini(struct disassembly *disassembly)
{
    free(disassembly->items);
    buffer_fini(&disassembly->text);
    *disassembly = (struct disassembly){0};
}

/* --- Code --------------------------------------------------------------------------------------------------------- */

static bool file_offset_of(const struct elf_file *file, uint64_t address, uint64_t size, uint64_t *ret_offset)
{
    for (size_t i = 0; i < file->segment_count; i++) {
        const struct elf_segment *segment = &file->segments[i];
        if (address < segment->address || address - segment->address >= segment->file_size) continue;
        if (size > segment->file_size - (address - segment->address)) continue;
        *ret_offset = segment->file_offset + (address - segment->address);
        return true;
    }
    return false;
}

static uint8_t *read_code(const struct elf_file *file, uint64_t start, uint64_t end, enum status *ret_status,
                          struct error *error)
{
    uint64_t size = end > start ? end - start : 0, offset;
    uint8_t *code = NULL;
    *ret_status = STATUS_OK;
    if (size > DISASSEMBLY_BYTES_MAX)
        *ret_status = error_set(error, STATUS_TOO_LARGE, 0, "%" PRIu64 " bytes of code are too many", size);
    else if (size == 0 || !file_offset_of(file, start, size, &offset))
        *ret_status = error_set(error, STATUS_NOT_FOUND, 0, "the file has no code at 0x%" PRIx64, start);
    else if (!(code = malloc(size)))
        *ret_status = error_set(error, STATUS_NO_MEMORY, 0, "not enough memory for the code");
    else if (!elf_file_read(file, offset, code, size))
        *ret_status = error_set(error, STATUS_IO, 0, "cannot read the code at 0x%" PRIx64, start);
    if (*ret_status == STATUS_OK) return code;
    free(code);
    return NULL;
}

/* --- Text --------------------------------------------------------------------------------------------------------- */

static enum status open_capstone(const struct capstone_library *capstone, csh *handle, const struct elf_file *file,
                                 bool is_intel_syntax, struct error *error)
{
    bool is_x86 = file->machine == EM_X86_64;
    if (!is_x86 && file->machine != EM_AARCH64)
        return error_set(error, STATUS_UNSUPPORTED, 0, "code for processor %u of ELF cannot be shown", file->machine);
    cs_err problem =
        is_x86 ? capstone->open(CS_ARCH_X86, CS_MODE_64, handle) : capstone->open(CS_ARCH_ARM64, CS_MODE_ARM, handle);
    if (problem != CS_ERR_OK)
        return error_set(error, problem == CS_ERR_MEM ? STATUS_NO_MEMORY : STATUS_UNSUPPORTED, 0, "Capstone: %s",
                         capstone->strerror(problem));
    (void)capstone->option(*handle, CS_OPT_SKIPDATA, CS_OPT_ON);
    if (is_x86)
        (void)capstone->option(*handle, CS_OPT_SYNTAX, is_intel_syntax ? CS_OPT_SYNTAX_INTEL : CS_OPT_SYNTAX_ATT);
    return STATUS_OK;
}

/* Calls and jumps with one operand, a number: "callq 0x1030", "bl #0x1030". */
static uint64_t target_of(const cs_insn *instruction)
{
    char first = instruction->mnemonic[0];
    const char *operand = instruction->op_str;
    if (first != 'j' && first != 'b' && strncmp(instruction->mnemonic, "call", 4) != 0) return 0;
    if (*operand == '#') operand++;
    if (strncmp(operand, "0x", 2) != 0) return 0;
    char *end;
    uint64_t target = strtoull(operand, &end, 16);
    return *end == '\0' ? target : 0;
}

static bool add_instruction(struct disassembly *all, const cs_insn *instruction)
{
    struct instruction added = {instruction->address, target_of(instruction), all->text.size};
    if (!ARRAY_PUSH(all, DISASSEMBLY_BYTES_MAX, added)) return false;
    buffer_append_text(&all->text, instruction->mnemonic);
    if (instruction->op_str[0] != '\0') buffer_append_format(&all->text, " %s", instruction->op_str);
    buffer_append_byte(&all->text, '\0');
    return !all->text.failed;
}

static enum status append_all(struct disassembly *all, const struct capstone_library *capstone, csh handle,
                              const uint8_t *code, size_t size, uint64_t address, struct error *error)
{
    cs_insn *instruction = capstone->malloc(handle);
    bool has_memory = instruction != NULL;
    while (has_memory && size > 0 && capstone->disasm_iter(handle, &code, &size, &address, instruction))
        has_memory = add_instruction(all, instruction);
    if (instruction) capstone->free(instruction, 1);
    return has_memory ? STATUS_OK : error_set(error, STATUS_NO_MEMORY, 0, "not enough memory for the instructions");
}

enum status disassemble(struct disassembly *disassembly, const struct elf_file *file, uint64_t start, uint64_t end,
                        bool is_intel_syntax, struct error *error)
{
    csh handle = 0;
    enum status status;
    const struct capstone_library *capstone = capstone_library_get(error);
    if (!capstone) return STATUS_UNSUPPORTED;
    disassembly->count = 0;
    buffer_clear(&disassembly->text);
    uint8_t *code = read_code(file, start, end, &status, error);
    if (status == STATUS_OK) status = open_capstone(capstone, &handle, file, is_intel_syntax, error);
    if (status == STATUS_OK)
        status = append_all(disassembly, capstone, handle, code, (size_t)(end - start), start, error);
    if (handle) (void)capstone->close(&handle);
    free(code);
    if (status == STATUS_OK && disassembly->count == 0)
        status = error_set(error, STATUS_NOT_FOUND, 0, "no instruction at 0x%" PRIx64, start);
    return status;
}

size_t disassembly_find(const struct disassembly *disassembly, uint64_t address)
{
    size_t after = PARTITION_POINT(disassembly->count, i, disassembly->items[i].address <= address);
    return after > 0 ? after - 1 : 0;
}
