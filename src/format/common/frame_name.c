/* SPDX-License-Identifier: MIT */
#include "format/common/frame_name.h"

#include <inttypes.h>

void frame_name_unnamed(const struct profile *profile, const struct location *location, struct buffer *out)
{
    const struct mapping *mapping = profile_mapping(profile, location->mapping);
    struct slice file = path_base_name(profile_slice(profile, mapping->file_name));
    if (file.size > 0) {
        bool has_brackets = file.data[0] == '[';
        if (!has_brackets) buffer_append_byte(out, '[');
        buffer_append(out, file.data, file.size);
        if (!has_brackets) buffer_append_byte(out, ']');
    } else if (location->address != 0) {
        buffer_append_format(out, "0x%" PRIx64, location->address);
    } else {
        buffer_append_text(out, "[unknown]");
    }
}

struct string_id frame_name_of_function(const struct function *function)
{
    return function->name.index ? function->name : function->system_name;
}
