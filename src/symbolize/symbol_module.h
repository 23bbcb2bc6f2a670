/* One file of code with all that is known of its names.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SYMBOLIZE_SYMBOL_MODULE_H
#define OFFBEAT_SYMBOLIZE_SYMBOL_MODULE_H

#include "base/status.h"
#include "binary/elf_file.h"
#include "symbolize/debug_file.h"
#include "symbolize/symbol_index.h"

enum symbol_module_state {
    SYMBOL_MODULE_OPEN,
    SYMBOL_MODULE_MISSING, /* neither the file nor its debug file is there, or they cannot be read */
    SYMBOL_MODULE_CHANGED, /* the file is there, with another build id, and there is no debug file for the right one */
};

struct symbol_module {
    const char *path;
    struct elf_file binary;                    /* file that was loaded */
    struct elf_file debug;                     /* file with its separate debug information */
    struct elf_file alternate;                 /* file with the parts that dwz moved out of several debug files */
    bool has_binary, has_debug, has_alternate; /* the first or the second is there in an open module */
    struct symbol_index names;
};

/* Opens the file at PATH, which must outlive MODULE, and whatever debug information belongs to it. BUILD_ID is hex,
 * 32 digits may be the start of a longer one; "" = take the file as it is. PATH "[vdso]" is the one that the kernel
 * gave to this process. */
enum symbol_module_state symbol_module_open(struct symbol_module *module, const char *path, const char *build_id,
                                            const struct debug_sources *sources);

/* The file that is open as DESCRIPTOR, which MODULE closes, as a failure does. Nothing else is opened: no file that it
 * names, no debug file. */
enum status symbol_module_open_descriptor(struct symbol_module *module, int descriptor, struct error *error);

/* Reads names as symbol_module_read_names does, for a module of symbol_module_open_descriptor. KEPT: an open file that
 * may hold its index, which the module closes; INTO: where a new index is kept, if there is room. No path is opened. */
enum status symbol_module_read_names_by_descriptor(struct symbol_module *module, int kept, int into,
                                                   struct error *error);

/* Makes the index of all names of an open module, or finds the one that an earlier run made. Does nothing if the module
 * has one. Fails only for want of memory. */
enum status symbol_module_read_names(struct symbol_module *module, struct error *error);

/* Makes the index of MODULE again. Called when it has failed because the kept file is damaged. */
enum status symbol_module_renew_names(struct symbol_module *module, struct error *error);

void symbol_module_close(struct symbol_module *module);

#endif
