/* Lays out an ELF header, the sections, their names and their headers, and has several threads fill the sections.
 * SPDX-License-Identifier: MIT */
#include "symbolize/debug_image.h"

#include <elf.h>
#include <libdeflate.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/cursor.h"
#include "base/pages.h"
#include "symbolize/parallel.h"

enum {
    PARTS_MAX = 64,
    ALIGNMENT = 16,
    INFLATION_MAX = 64,   /* real sections reach 20; deflate could do 1032 */
    GNU_HEADER_SIZE = 12, /* header of .zdebug_…: "ZLIB" and the inflated size, big-endian */
};

/* A section that is copied into the image. */
struct part {
    const struct elf_section *section;
    const char *name;
    uint64_t offset, size; /* place in the image, inflated */
    uint64_t header_size;  /* bytes of the header before the compressed bytes; 0 = they are not compressed */
    uint32_t name_offset;
};

struct layout {
    const struct elf_file *file;
    struct debug_image *image;
    struct part parts[PARTS_MAX];
    size_t count;
    atomic_bool failed;
};

/* "info" of ".debug_info" and ".zdebug_info"; NULL if names do not come from there. */
static const char *wanted_name(const char *name)
{
    static const char *const wanted[] = {".debug_info",   ".debug_types",    ".debug_abbrev",      ".debug_str",
                                         ".debug_line",   ".debug_line_str", ".debug_str_offsets", ".debug_addr",
                                         ".debug_ranges", ".debug_rnglists"};
    bool is_gnu = strncmp(name, ".z", 2) == 0;
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++)
        if (strcmp(name + (is_gnu ? 2 : 1), wanted[i] + 1) == 0) return wanted[i];
    return NULL;
}

/* --- Sizes -------------------------------------------------------------------------------------------------------- */

static bool measure_compressed(const struct elf_file *file, struct part *part)
{
    Elf64_Chdr header;
    part->header_size = sizeof(header);
    if (part->section->size < sizeof(header) ||
        !elf_file_read(file, part->section->file_offset, &header, sizeof(header)))
        return false;
    part->size = header.ch_size;
    return header.ch_type == ELFCOMPRESS_ZLIB;
}

static bool measure_gnu_compressed(const struct elf_file *file, struct part *part)
{
    uint8_t header[GNU_HEADER_SIZE];
    part->header_size = sizeof(header);
    if (part->section->size < sizeof(header) ||
        !elf_file_read(file, part->section->file_offset, header, sizeof(header)) || memcmp(header, "ZLIB", 4) != 0)
        return false;
    for (size_t i = 4; i < sizeof(header); i++) part->size = part->size << 8 | header[i];
    return true;
}

static bool measure_part(const struct elf_file *file, struct part *part)
{
    const struct elf_section *section = part->section;
    bool ok = true;
    if (section->flags & SHF_COMPRESSED)
        ok = measure_compressed(file, part);
    else if (section->name[1] == 'z')
        ok = measure_gnu_compressed(file, part);
    else
        part->size = section->size;
    uint64_t size_max = part->header_size ? section->size * INFLATION_MAX : section->size;
    return ok && section->file_offset <= file->size && section->size <= file->size - section->file_offset &&
           part->size <= size_max && part->size <= DEBUG_IMAGE_BYTES_MAX;
}

/* Gives every part its offset; returns where the parts end, 0 if there is nothing to copy. */
static uint64_t lay_out_parts(struct layout *layout)
{
    uint64_t end = sizeof(Elf64_Ehdr);
    bool has_entries = false;
    for (size_t i = 0; i < layout->file->section_count && layout->count < PARTS_MAX; i++) {
        const struct elf_section *section = &layout->file->sections[i];
        const char *name = section->has_bytes && section->name[0] == '.' ? wanted_name(section->name) : NULL;
        if (!name) continue;
        struct part *part = &layout->parts[layout->count++];
        *part =
            (struct part){.section = section, .name = name, .offset = (end + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT};
        if (!measure_part(layout->file, part)) return 0;
        has_entries |= strcmp(name, ".debug_info") == 0;
        end = part->offset + part->size;
        if (end > DEBUG_IMAGE_BYTES_MAX) return 0;
    }
    return has_entries ? end : 0;
}

/* --- Contents ----------------------------------------------------------------------------------------------------- */

static bool inflate_part(const struct layout *layout, const struct part *part)
{
    size_t size = (size_t)(part->section->size - part->header_size);
    uint8_t *compressed = pages_allocate(size + 1);
    struct libdeflate_decompressor *decompressor = libdeflate_alloc_decompressor();
    bool ok = compressed && decompressor &&
              elf_file_read(layout->file, part->section->file_offset + part->header_size, compressed, size) &&
              libdeflate_zlib_decompress(decompressor, compressed, size, layout->image->bytes + part->offset,
                                         (size_t)part->size, NULL) == LIBDEFLATE_SUCCESS;
    libdeflate_free_decompressor(decompressor);
    pages_free(compressed, size + 1);
    return ok;
}

static void fill_part(void *context, unsigned thread, size_t item)
{
    (void)thread;
    struct layout *layout = context;
    const struct part *part = &layout->parts[item];
    uint8_t *bytes = layout->image->bytes + part->offset;
    bool ok = part->header_size ? inflate_part(layout, part)
                                : elf_file_read(layout->file, part->section->file_offset, bytes, (size_t)part->size);
    if (!ok) layout->failed = true;
    /* libdw looks for the ends of texts without looking for the end of their section. */
    bool has_texts = strcmp(part->name, ".debug_str") == 0 || strcmp(part->name, ".debug_line_str") == 0;
    if (has_texts && part->size > 0) bytes[part->size - 1] = '\0';
}

/* The names of the sections, their headers, and the header of all; END is where the parts end. */
static void write_headers(struct layout *layout, uint64_t end)
{
    uint8_t *bytes = layout->image->bytes;
    static const char own_name[] = ".shstrtab";
    uint64_t names = end;
    memcpy(bytes + end + 1, own_name, sizeof(own_name));
    end += 1 + sizeof(own_name);
    for (size_t i = 0; i < layout->count; i++) {
        struct part *part = &layout->parts[i];
        part->name_offset = (uint32_t)(end - names);
        memcpy(bytes + end, part->name, strlen(part->name) + 1);
        end += strlen(part->name) + 1;
    }
    uint64_t headers = (end + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    Elf64_Shdr *header = (void *)(bytes + headers);
    for (size_t i = 0; i < layout->count; i++) {
        const struct part *part = &layout->parts[i];
        header[i + 1] = (Elf64_Shdr){.sh_name = part->name_offset,
                                     .sh_type = SHT_PROGBITS,
                                     .sh_offset = part->offset,
                                     .sh_size = part->size,
                                     .sh_addralign = 1};
    }
    header[layout->count + 1] = (Elf64_Shdr){
        .sh_name = 1, .sh_type = SHT_STRTAB, .sh_offset = names, .sh_size = end - names, .sh_addralign = 1};
    Elf64_Ehdr *whole = (void *)bytes;
    *whole = (Elf64_Ehdr){
        .e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
        .e_type = ET_DYN,
        .e_machine = layout->file->machine,
        .e_version = EV_CURRENT,
        .e_shoff = headers,
        .e_ehsize = sizeof(Elf64_Ehdr),
        .e_shentsize = sizeof(Elf64_Shdr),
        .e_shnum = (Elf64_Half)(layout->count + 2),
        .e_shstrndx = (Elf64_Half)(layout->count + 1),
    };
}

static int compare_sizes(const void *left, const void *right)
{
    const struct part *a = left, *b = right;
    return (a->size < b->size) - (a->size > b->size);
}

bool debug_image_make(struct debug_image *image, const struct elf_file *file)
{
    static const size_t headers_size_max = (PARTS_MAX + 2) * (sizeof(Elf64_Shdr) + sizeof(".debug_str_offsets")) + 64;
    struct layout layout = {.file = file, .image = image};
    uint64_t end = lay_out_parts(&layout);
    *image = (struct debug_image){.size = (size_t)end + headers_size_max};
    if (end == 0 || !(image->bytes = pages_allocate(image->size))) return false;
    qsort(layout.parts, layout.count, sizeof(layout.parts[0]), compare_sizes); /* large ones first: threads end alike */
    parallel_run(parallel_threads(), layout.count, fill_part, &layout);
    write_headers(&layout, end);
    if (layout.failed) debug_image_free(image);
    return !layout.failed;
}

void debug_image_free(struct debug_image *image)
{
    pages_free(image->bytes, image->size);
    *image = (struct debug_image){0};
}
