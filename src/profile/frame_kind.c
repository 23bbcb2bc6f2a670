/* SPDX-License-Identifier: MIT */
#include "profile/frame_kind.h"

#include <string.h>

/* Addresses from here on belong to the kernel: x86-64 and arm64 divide their address spaces so. */
#define KERNEL_ADDRESSES 0xffff000000000000u

/* perf calls the kernel "[kernel.kallsyms]", that of a virtual machine "[guest.kernel.kallsyms]"; others "[kernel]". */
static bool is_kernel_file(struct slice file)
{
    return text_begins_with(file, "[kernel") || text_begins_with(file, "[guest.kernel") ||
           (text_begins_with(file, "/lib/modules/") && (text_ends_with(file, ".ko") || text_ends_with(file, ".ko.xz")));
}

/* Anonymous memory holds code only if the process wrote that code. perf-1234.map has the names of such code; perf
 * inject writes jitted-1234-5.so for it. */
static bool is_jit_file(struct slice file)
{
    struct slice name = path_base_name(file);
    return slice_equals_text(file, JIT_PACKAGE) || slice_equals_text(file, ANONYMOUS_MAPPING) ||
           (text_begins_with(name, "perf-") && text_ends_with(name, ".map")) ||
           (text_begins_with(name, "jitted-") && text_ends_with(name, ".so"));
}

enum frame_kind frame_kind_of(const struct profile *profile, const struct location *location, uint32_t line)
{
    struct slice file = profile_slice(profile, profile_mapping(profile, location->mapping)->file_name);
    struct slice package = {0};
    if (line + 1 < location->line_count) return FRAME_INLINED;
    if (location->kind != FRAME_UNKNOWN) return location->kind;
    if (location->line_count > 0)
        package =
            profile_slice(profile, profile_function(profile, profile_lines(profile, location)[line].function)->package);
    if (slice_equals_text(package, JIT_PACKAGE) || is_jit_file(file)) return FRAME_JIT;
    if (is_kernel_file(file) || location->address >= KERNEL_ADDRESSES) return FRAME_KERNEL;
    return file.size > 0 || location->address != 0 ? FRAME_NATIVE : FRAME_UNKNOWN;
}

const char *frame_kind_name(enum frame_kind kind)
{
    static const char *const names[FRAME_KINDS] = {"unknown", "native", "kernel", "jit", "interpreted", "inlined"};
    return kind < FRAME_KINDS ? names[kind] : names[FRAME_UNKNOWN];
}
