/* The two conventions of gdb's manual, "Debugging Information in Separate Files".  SPDX-License-Identifier: MIT */
#include "symbolize/debug_file.h"

#include <libdeflate.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cursor.h"
#include "base/hex.h"

enum { LINK_SECTION_BYTES_MAX = 8192, CHECKSUM_CHUNK_BYTES = 64 << 10 };

struct debug_link {
    char name[NAME_MAX + 1];
    uint32_t checksum;
};

static bool has_build_id(const struct elf_file *file, const char *build_id)
{
    return strcmp(file->build_id, build_id) == 0;
}

static bool checksum_file(const struct elf_file *file, uint32_t *ret_checksum)
{
    static const size_t chunk_size = CHECKSUM_CHUNK_BYTES;
    uint8_t *chunk = malloc(chunk_size);
    uint32_t checksum = 0;
    uint64_t offset = 0;
    while (chunk && offset < file->size) {
        ssize_t size = pread(file->descriptor, chunk, chunk_size, (off_t)offset);
        if (size <= 0) break;
        checksum = libdeflate_crc32(checksum, chunk, (size_t)size);
        offset += (uint64_t)size;
    }
    free(chunk);
    *ret_checksum = checksum;
    return offset >= file->size;
}

static bool open_with_build_id(struct elf_file *file, const char *path, const char *build_id)
{
    if (elf_file_open(file, path, NULL) != STATUS_OK) return false;
    if (has_build_id(file, build_id)) return true;
    elf_file_close(file);
    return false;
}

bool debug_file_open_by_build_id(struct elf_file *file, const char *build_id, const struct debug_sources *sources)
{
    char path[PATH_MAX];
    if (strlen(build_id) < 4) return false;
    for (size_t i = 0; i < sources->count; i++) {
        int length =
            snprintf(path, sizeof(path), "%s/.build-id/%.2s/%s.debug", sources->items[i], build_id, build_id + 2);
        if (length > 0 && length < (int)sizeof(path) && open_with_build_id(file, path, build_id)) return true;
    }
    return false;
}

bool debug_file_open_from_server(struct elf_file *file, const char *build_id, const struct debug_sources *sources)
{
    if (!sources->server) return false;
    char *path = debug_server_find(sources->server, build_id);
    bool is_open = path && open_with_build_id(file, path, build_id);
    free(path);
    return is_open;
}

/* The section holds a file name, its NUL, padding to four bytes, and a CRC-32. */
static bool read_link(const struct elf_file *file, struct debug_link *ret_link)
{
    const struct elf_section *section = elf_file_section(file, ".gnu_debuglink");
    if (!section || section->size > LINK_SECTION_BYTES_MAX) return false;
    struct buffer bytes;
    buffer_init(&bytes, LINK_SECTION_BYTES_MAX + 1);
    bool ok = elf_file_read_section(file, section, &bytes, NULL) == STATUS_OK;
    struct cursor cursor = cursor_of(buffer_slice(&bytes));
    struct slice name = cursor_text(&cursor);
    cursor_skip(&cursor, (4 - cursor_offset(&cursor) % 4) % 4);
    ret_link->checksum = cursor_u32(&cursor);
    ok = ok && !cursor.failed && name.size > 0 && name.size < sizeof(ret_link->name) &&
         !memchr(name.data, '/', name.size);
    if (ok) {
        memcpy(ret_link->name, name.data, name.size);
        ret_link->name[name.size] = '\0';
    }
    buffer_fini(&bytes);
    return ok;
}

static bool open_linked(struct elf_file *file, const char *path, const struct elf_file *stripped,
                        const struct debug_link *link)
{
    uint32_t checksum;
    if (elf_file_open(file, path, NULL) != STATUS_OK) return false;
    if (stripped->build_id[0] != '\0' ? has_build_id(file, stripped->build_id)
                                      : checksum_file(file, &checksum) && checksum == link->checksum)
        return true;
    elf_file_close(file);
    return false;
}

bool debug_file_open_by_link(struct elf_file *file, const struct elf_file *stripped, const char *path,
                             const struct debug_sources *sources)
{
    struct debug_link link;
    char candidate[PATH_MAX];
    const char *slash = strrchr(path, '/');
    if (sources->opens_no_path || !slash || !read_link(stripped, &link)) return false;
    int folder = (int)(slash - path);
    for (size_t i = 0; i < 2 + sources->count; i++) {
        int length = snprintf(candidate, sizeof(candidate), "%s%.*s%s/%s", i < 2 ? "" : sources->items[i - 2], folder,
                              path, i == 1 ? "/.debug" : "", link.name);
        if (length > 0 && length < (int)sizeof(candidate) && open_linked(file, candidate, stripped, &link)) return true;
    }
    return false;
}

/* The place of an open file, whatever links led to it. */
static bool folder_of(const struct elf_file *file, char ret_folder[PATH_MAX])
{
    char link[64];
    snprintf(link, sizeof(link), "/proc/thread-self/fd/%d", file->descriptor);
    ssize_t size = readlink(link, ret_folder, PATH_MAX - 1);
    if (size <= 0) return false;
    ret_folder[size] = '\0';
    char *slash = strrchr(ret_folder, '/');
    if (slash) *slash = '\0';
    return slash != NULL;
}

struct alternate_link {
    char name[PATH_MAX];
    char build_id[ELF_BUILD_ID_TEXT_SIZE];
};

/* The section holds a path, its NUL, and the bytes of a build id. */
static bool read_alternate_link(const struct elf_file *file, struct alternate_link *ret_link)
{
    const struct elf_section *section = elf_file_section(file, ".gnu_debugaltlink");
    if (!section || section->size > LINK_SECTION_BYTES_MAX) return false;
    struct buffer bytes;
    buffer_init(&bytes, LINK_SECTION_BYTES_MAX + 1);
    bool ok = elf_file_read_section(file, section, &bytes, NULL) == STATUS_OK;
    struct cursor cursor = cursor_of(buffer_slice(&bytes));
    struct slice name = cursor_text(&cursor);
    struct slice id = cursor_take(&cursor, cursor_left(&cursor));
    ok = ok && !cursor.failed && name.size > 0 && name.size < sizeof(ret_link->name) && id.size > 0 &&
         id.size <= ELF_BUILD_ID_BYTES_MAX;
    if (ok) {
        memcpy(ret_link->name, name.data, name.size + 1);
        (void)hex_write(ret_link->build_id, id);
    }
    buffer_fini(&bytes);
    return ok;
}

bool debug_file_open_alternate(struct elf_file *file, const struct elf_file *debug, const struct debug_sources *sources)
{
    struct alternate_link link;
    char folder[PATH_MAX], path[2 * PATH_MAX];
    if (!read_alternate_link(debug, &link)) return false;
    if (debug_file_open_by_build_id(file, link.build_id, sources)) return true;
    if (debug_file_open_from_server(file, link.build_id, sources)) return true;
    if (sources->opens_no_path) return false;
    if (link.name[0] == '/') return open_with_build_id(file, link.name, link.build_id);
    if (!folder_of(debug, folder)) return false;
    int length = snprintf(path, sizeof(path), "%s/%s", folder, link.name);
    return length > 0 && length < (int)sizeof(path) && open_with_build_id(file, path, link.build_id);
}
