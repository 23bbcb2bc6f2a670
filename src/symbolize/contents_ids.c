/* SPDX-License-Identifier: MIT */
#include "symbolize/contents_ids.h"

#include "binary/contents_id.h"

static bool read_id(const char *path, char ret_text[DEBUG_ID_TEXT_SIZE])
{
    struct elf_file file;
    char hex[BUILD_ID_START_SIZE];
    if (elf_file_open(&file, path, NULL) != STATUS_OK) return false;
    bool is_read = contents_id_of(&file, hex);
    elf_file_close(&file);
    return is_read && debug_id_from_build_id(slice_of_text(hex), ret_text);
}

/* A file has several mappings; the id of the one before is the same then. */
void contents_ids_give(struct profile *profile)
{
    struct string_id last_file = {0}, last_id = {0};
    for (size_t i = 1; i < profile->mappings.count; i++) {
        struct mapping *mapping = &profile->mappings.items[i];
        char text[DEBUG_ID_TEXT_SIZE];
        const char *path = profile_c_string(profile, mapping->file_name);
        if (mapping->build_id.index != 0 || mapping->debug_id.index != 0 || path[0] != '/') continue;
        if (mapping->file_name.index != last_file.index) {
            last_file = mapping->file_name;
            last_id = read_id(path, text) ? profile_text(profile, text) : (struct string_id){0};
        }
        mapping->debug_id = last_id;
    }
}
