/* One file of code with all that is known of its names.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SYMBOLIZE_MODULE_H
#define OFFBEAT_SYMBOLIZE_MODULE_H

#include <elfutils/libdw.h>

#include "binary/elf_file.h"
#include "binary/elf_symbols.h"
#include "symbolize/debug_file.h"
#include "symbolize/demangler.h"
#include "symbolize/dwarf_names.h"
#include "symbolize/function_bounds.h"

enum { MODULE_FRAMES_MAX = DWARF_DEPTH_MAX }; /* of one address */

enum module_state {
    MODULE_OPEN,
    MODULE_MISSING, /* neither the file nor its debug file is there, or they cannot be read */
    MODULE_CHANGED, /* the file is there, with another build id, and there is no debug file for the right one */
};

struct module_frame {
    const char *name;                 /* for people */
    const char *system_name;          /* as the linker knows it, "" = the same */
    const char *directory;            /* "", or where to begin with FILE_NAME if that is relative */
    const char *file_name;            /* "" = not known */
    int64_t line, column, start_line; /* 0 = not known */
};

enum module_source { MODULE_UNNAMED, MODULE_BY_BOUNDARY, MODULE_BY_SYMBOL, MODULE_BY_DWARF };

/* Called once for each address, in ascending order. FRAMES are innermost first; they and their texts live until the
 * call returns. */
typedef void (*module_answer)(void *context, size_t index, const struct module_frame *frames, uint32_t frame_count,
                              enum module_source source);

struct module_dwarf {
    Elf *elf;
    Dwarf *dwarf; /* NULL = there is none */
};

struct module {
    const char *path;
    struct elf_file binary;                    /* what was loaded */
    struct elf_file debug;                     /* its separate debug information */
    struct elf_file alternate;                 /* what dwz moved out of several debug files */
    bool has_binary, has_debug, has_alternate; /* the first or the second is there in an open module */
    struct module_dwarf dwarf, alternate_dwarf;
    struct elf_symbols symbols;
    struct function_bounds bounds; /* read when the first address needs it */
    bool has_bounds;
    struct demangler demangler;
};

/* Opens the file at PATH, which must outlive MODULE, and whatever debug information belongs to it. BUILD_ID is hex;
 * "" = take the file as it is. PATH "[vdso]" is the one that the kernel gave to this process. RET_STATE tells whether
 * there is something to ask. Fails only for want of memory; MODULE is to be closed in any case. */
enum status module_open(struct module *module, const char *path, const char *build_id,
                        const struct debug_directories *directories, enum module_state *ret_state, struct error *error);

/* Finds what COUNT ascending file addresses are. STATUS_NO_MEMORY may come after some were answered. */
enum status module_find(struct module *module, const uint64_t *addresses, size_t count, module_answer answer,
                        void *context, struct error *error);

void module_close(struct module *module);

#endif
