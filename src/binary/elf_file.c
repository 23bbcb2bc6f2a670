/* Reads the tables of an ELF file with pread, each checked against the file's size before it is believed. Section
 * headers are a help and not a must: a file without them, or with broken ones, still has segments and a build id.
 * SPDX-License-Identifier: MIT */
#include "binary/elf_file.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cursor.h"
#include "base/hex.h"

enum {
    NOTE_BYTES_MAX = 64 << 10, /* size of one note segment or section; a build id is near its front */
    NOTES_MAX = 64,            /* notes that are read: a file can list the same bytes a million times */
};

static bool range_is_inside(uint64_t offset, uint64_t size, uint64_t whole)
{
    return offset <= whole && size <= whole - offset;
}

bool elf_file_read(const struct elf_file *file, uint64_t offset, void *into, size_t size)
{
    if (!range_is_inside(offset, size, file->size)) return false;
    if (file->descriptor < 0) {
        if (size > 0) memcpy(into, file->memory.data + offset, size);
        return true;
    }
    for (size_t done = 0; done < size;) {
        ssize_t got = pread(file->descriptor, (uint8_t *)into + done, size - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        done += (size_t)got;
    }
    return true;
}

/* --- Notes -------------------------------------------------------------------------------------------------------- */

static void skip_padding(struct cursor *cursor, size_t alignment)
{
    size_t padding = (alignment - cursor_offset(cursor) % alignment) % alignment;
    cursor_skip(cursor, padding < cursor_left(cursor) ? padding : cursor_left(cursor));
}

static bool find_build_id(struct slice notes, size_t alignment, char *ret_text)
{
    struct cursor cursor = cursor_of(notes);
    while (!cursor_at_end(&cursor)) {
        uint32_t name_size = cursor_u32(&cursor), content_size = cursor_u32(&cursor), type = cursor_u32(&cursor);
        struct slice name = cursor_take(&cursor, name_size);
        skip_padding(&cursor, alignment);
        struct slice content = cursor_take(&cursor, content_size);
        skip_padding(&cursor, alignment);
        bool is_build_id = type == NT_GNU_BUILD_ID && slice_equal(name, slice_of("GNU", sizeof("GNU")));
        if (cursor.failed || !is_build_id) continue;
        if (content.size == 0 || content.size > ELF_BUILD_ID_BYTES_MAX) return false;
        (void)hex_write(ret_text, content);
        return true;
    }
    return false;
}

static void read_build_id(struct elf_file *file, uint64_t offset, uint64_t size, uint64_t alignment)
{
    if (file->build_id[0] != '\0' || size > NOTE_BYTES_MAX || file->notes_read == NOTES_MAX) return;
    file->notes_read++;
    uint8_t *notes = malloc(size ? (size_t)size : 1);
    if (notes && elf_file_read(file, offset, notes, (size_t)size))
        (void)find_build_id(slice_of(notes, (size_t)size), alignment == 8 ? 8 : 4, file->build_id);
    free(notes);
}

/* --- Tables ------------------------------------------------------------------------------------------------------- */

static enum status read_segments(struct elf_file *file, const Elf64_Ehdr *header, size_t count, struct error *error)
{
    if (count == 0) return STATUS_OK;
    if (count > ELF_SEGMENTS_MAX) return error_set(error, STATUS_TOO_LARGE, 0, "%zu program headers", count);
    if (header->e_phentsize != sizeof(Elf64_Phdr))
        return error_set(error, STATUS_MALFORMED, 0, "program headers of %u bytes", (unsigned)header->e_phentsize);
    Elf64_Phdr *entries = malloc(count * sizeof(*entries));
    file->segments = calloc(count, sizeof(*file->segments));
    bool has_memory = entries && file->segments;
    bool is_read = has_memory && elf_file_read(file, header->e_phoff, entries, count * sizeof(*entries));
    enum status status = STATUS_OK;
    if (!has_memory) {
        status = error_set(error, STATUS_NO_MEMORY, 0, "no memory for %zu program headers", count);
    } else if (!is_read) {
        status = error_set(error, STATUS_MALFORMED, header->e_phoff, "the file ends within its program headers");
    }
    for (size_t i = 0; is_read && i < count; i++) {
        const Elf64_Phdr *entry = &entries[i];
        if (entry->p_type == PT_INTERP) {
            file->has_interpreter = true;
            file->interpreter_offset = entry->p_offset;
            file->interpreter_size = entry->p_filesz;
        }
        if (entry->p_type == PT_NOTE) read_build_id(file, entry->p_offset, entry->p_filesz, entry->p_align);
        if (entry->p_type != PT_LOAD) continue;
        file->segments[file->segment_count++] = (struct elf_segment){
            .address = entry->p_vaddr,
            .memory_size = entry->p_memsz,
            .file_offset = entry->p_offset,
            .file_size = entry->p_filesz,
            .is_executable = entry->p_flags & PF_X,
        };
    }
    free(entries);
    return status;
}

static const char *section_name(const struct elf_file *file, uint32_t offset)
{
    return offset < file->section_names.size ? (const char *)file->section_names.data + offset : "";
}

static bool read_section_names(struct elf_file *file, const Elf64_Shdr *names)
{
    buffer_init(&file->section_names, ELF_SECTION_BYTES_MAX);
    uint8_t *bytes = range_is_inside(names->sh_offset, names->sh_size, file->size)
                         ? buffer_reserve(&file->section_names, (size_t)names->sh_size + 1)
                         : NULL;
    if (!bytes || !elf_file_read(file, names->sh_offset, bytes, (size_t)names->sh_size)) return false;
    bytes[names->sh_size] = '\0';
    buffer_grow(&file->section_names, (size_t)names->sh_size + 1);
    return true;
}

static void take_sections(struct elf_file *file, const Elf64_Shdr *entries, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const Elf64_Shdr *entry = &entries[i];
        file->sections[i] = (struct elf_section){
            .name = section_name(file, entry->sh_name),
            .type = entry->sh_type,
            .link = entry->sh_link,
            .flags = entry->sh_flags,
            .address = entry->sh_addr,
            .size = entry->sh_size,
            .file_offset = entry->sh_offset,
            .has_bytes = entry->sh_type != SHT_NOBITS && entry->sh_type != SHT_NULL,
        };
        if (entry->sh_type == SHT_NOTE) read_build_id(file, entry->sh_offset, entry->sh_size, entry->sh_addralign);
    }
    file->section_count = count;
}

/* ZERO is the header of section 0, which holds the counts that do not fit into the ELF header. */
static void read_sections(struct elf_file *file, const Elf64_Ehdr *header, const Elf64_Shdr *zero)
{
    uint64_t count = header->e_shnum ? header->e_shnum : zero->sh_size;
    uint64_t names = header->e_shstrndx == SHN_XINDEX ? zero->sh_link : header->e_shstrndx;
    if (count > ELF_SECTIONS_MAX || names >= count || header->e_shentsize != sizeof(Elf64_Shdr) ||
        !range_is_inside(header->e_shoff, count * sizeof(Elf64_Shdr), file->size))
        return;
    Elf64_Shdr *entries = malloc((size_t)count * sizeof(*entries));
    file->sections = calloc((size_t)count, sizeof(*file->sections));
    if (entries && file->sections && elf_file_read(file, header->e_shoff, entries, (size_t)count * sizeof(*entries)) &&
        read_section_names(file, &entries[names]))
        take_sections(file, entries, (size_t)count);
    free(entries);
}

static enum status read_tables(struct elf_file *file, struct error *error)
{
    Elf64_Ehdr header = {0};
    if (!elf_file_read(file, 0, &header, EI_NIDENT) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
        return error_set(error, STATUS_NOT_THIS_FORMAT, 0, "not an ELF file");
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB)
        return error_set(error, STATUS_UNSUPPORTED, EI_CLASS, "not a 64-bit little-endian ELF file");
    if (!elf_file_read(file, 0, &header, sizeof(header)))
        return error_set(error, STATUS_MALFORMED, 0, "the file ends within the ELF header");
    file->type = header.e_type;
    file->machine = header.e_machine;
    Elf64_Shdr zero = {0};
    if (header.e_shoff != 0) (void)elf_file_read(file, header.e_shoff, &zero, sizeof(zero));
    size_t segment_count = header.e_phnum == PN_XNUM ? zero.sh_info : header.e_phnum;
    enum status status = read_segments(file, &header, segment_count, error);
    if (status == STATUS_OK && header.e_shoff != 0) read_sections(file, &header, &zero);
    return status;
}

static enum status finish_opening(struct elf_file *file, struct error *error)
{
    enum status status = read_tables(file, error);
    if (status != STATUS_OK) elf_file_close(file);
    return status;
}

/* --- Public ------------------------------------------------------------------------------------------------------- */

enum status elf_file_open(struct elf_file *file, const char *path, struct error *error)
{
    struct stat facts;
    *file = (struct elf_file){.descriptor = -1};
    /* Opening a device may do something, so it is not opened to find out that it is one. */
    bool is_other = stat(path, &facts) == 0 && !S_ISREG(facts.st_mode);
    if (!is_other) file->descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (!is_other && file->descriptor < 0) return error_set_errno(error, "cannot open %s", path);
    if (is_other || fstat(file->descriptor, &facts) != 0 || !S_ISREG(facts.st_mode)) {
        elf_file_close(file);
        return error_set(error, STATUS_NOT_THIS_FORMAT, 0, "%s is not a regular file", path);
    }
    file->size = (uint64_t)facts.st_size;
    return finish_opening(file, error);
}

enum status elf_file_open_descriptor(struct elf_file *file, int descriptor, struct error *error)
{
    off_t size = lseek(descriptor, 0, SEEK_END);
    *file = (struct elf_file){.descriptor = descriptor, .size = size > 0 ? (uint64_t)size : 0};
    return finish_opening(file, error);
}

enum status elf_file_open_memory(struct elf_file *file, struct slice bytes, struct error *error)
{
    *file = (struct elf_file){.descriptor = -1, .memory = bytes, .size = bytes.size};
    return finish_opening(file, error);
}

void elf_file_close(struct elf_file *file)
{
    if (file->descriptor >= 0) close(file->descriptor);
    free(file->segments);
    free(file->sections);
    buffer_fini(&file->section_names);
    *file = (struct elf_file){.descriptor = -1};
}

void elf_file_copy_interpreter(const struct elf_file *file, char *ret_path, size_t size)
{
    ret_path[0] = '\0';
    if (file->interpreter_size == 0 || file->interpreter_size >= size) return;
    bool is_read = elf_file_read(file, file->interpreter_offset, ret_path, (size_t)file->interpreter_size);
    ret_path[is_read ? file->interpreter_size : 0] = '\0';
}

const struct elf_section *elf_file_section(const struct elf_file *file, const char *name)
{
    for (size_t i = 0; i < file->section_count; i++)
        if (strcmp(file->sections[i].name, name) == 0) return &file->sections[i];
    return NULL;
}

enum status elf_file_read_section(const struct elf_file *file, const struct elf_section *section, struct buffer *into,
                                  struct error *error)
{
    if (!section->has_bytes) return error_set(error, STATUS_NOT_FOUND, 0, "%s has no content here", section->name);
    if (section->size > ELF_SECTION_BYTES_MAX)
        return error_set(error, STATUS_TOO_LARGE, section->file_offset, "%s is too large", section->name);
    if (!range_is_inside(section->file_offset, section->size, file->size))
        return error_set(error, STATUS_MALFORMED, section->file_offset, "%s ends after the file", section->name);
    uint8_t *bytes = buffer_reserve(into, (size_t)section->size + 1); /* an empty section is not NULL */
    if (!bytes) return error_set(error, STATUS_NO_MEMORY, 0, "no memory for %s", section->name);
    if (!elf_file_read(file, section->file_offset, bytes, (size_t)section->size))
        return error_set(error, STATUS_IO, section->file_offset, "%s cannot be read", section->name);
    buffer_grow(into, (size_t)section->size);
    return STATUS_OK;
}

bool elf_file_address_of_offset(const struct elf_file *file, uint64_t file_offset, uint64_t *ret_address)
{
    const struct elf_segment *found = NULL;
    for (size_t i = 0; i < file->segment_count; i++) {
        const struct elf_segment *segment = &file->segments[i];
        bool holds = file_offset >= segment->file_offset && file_offset - segment->file_offset < segment->file_size;
        if (holds && (!found || segment->is_executable)) found = segment;
    }
    if (found) *ret_address = file_offset - found->file_offset + found->address;
    return found != NULL;
}
