/* Modules that stay open from one profile to the next: the processes of a build load the same libraries.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SYMBOLIZE_SYMBOL_MODULE_CACHE_H
#define OFFBEAT_SYMBOLIZE_SYMBOL_MODULE_CACHE_H

#include "symbolize/symbol_module.h"

struct symbol_module_cache;

/* NULL without memory. Belongs to one thread at a time. */
struct symbol_module_cache *symbol_module_cache_new(void);
void symbol_module_cache_free(struct symbol_module_cache *cache); /* accepts NULL */

/* Opens a module as symbol_module_open() does, or returns the one that was opened so earlier. *RET_MODULE is valid
 * until symbol_module_cache_release. PATH need not outlive the call. SYMBOL_MODULE_MISSING also without memory. */
enum symbol_module_state symbol_module_cache_open(struct symbol_module_cache *cache, const char *path,
                                                  const char *build_id, const struct debug_sources *sources,
                                                  struct symbol_module **ret_module);

/* Ends the use of the module that was opened last: closes it if it is too large to be kept. */
void symbol_module_cache_release(struct symbol_module_cache *cache);

#endif
