/* SPDX-License-Identifier: MIT */
#include "symbolize/mapped_file.h"

#include "binary/debug_id.h"

bool mapping_has_file(const struct profile *profile, const struct mapping *mapping)
{
    const char *name = profile_c_string(profile, mapping->file_name);
    bool is_anonymous = strncmp(name, ANONYMOUS_MAPPING, strlen(ANONYMOUS_MAPPING)) == 0;
    return (name[0] == '/' && !is_anonymous) || strcmp(name, "[vdso]") == 0;
}

bool mapping_has_place(const struct mapping *mapping)
{
    return mapping->limit > mapping->start || mapping->image_start != 0;
}

struct string_id mapping_build_id(struct profile *profile, const struct mapping *mapping)
{
    char start[BUILD_ID_START_SIZE];
    bool has_only_debug_id = mapping->build_id.index == 0 && mapping->debug_id.index != 0;
    if (!has_only_debug_id || !debug_id_to_build_id(profile_slice(profile, mapping->debug_id), start))
        return mapping->build_id;
    return profile_text(profile, start);
}

bool mapping_file_address(const struct symbol_module *module, const struct mapping *mapping, uint64_t address,
                          uint64_t *ret_address)
{
    /* A mapping may be a whole image, as Sentry has them, and not one segment of it. */
    bool is_image = mapping->image_start != 0 && mapping->start == mapping->image_start && mapping->file_offset == 0;
    if (module->has_binary && !is_image)
        return elf_file_address_of_offset(&module->binary, address - mapping->start + mapping->file_offset,
                                          ret_address);
    if (mapping->image_start == 0 || address < mapping->image_start) return false;
    *ret_address = address - mapping->image_start + mapping->image_vmaddr;
    return true;
}
