/* Modules that stay open from one profile to the next: the processes of a build load the same libraries.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SYMBOLIZE_MODULE_CACHE_H
#define OFFBEAT_SYMBOLIZE_MODULE_CACHE_H

#include "symbolize/module.h"

struct module_cache;

/* NULL without memory. Belongs to one thread at a time. */
struct module_cache *module_cache_new(void);
void module_cache_free(struct module_cache *cache); /* accepts NULL */

/* As module_open(), or the module that was opened so before. *RET_MODULE is valid until module_cache_release. PATH need
 * not outlive the call. MODULE_MISSING also without memory. */
enum module_state module_cache_open(struct module_cache *cache, const char *path, const char *build_id,
                                    const struct debug_sources *sources, struct module **ret_module);

/* To be called when the caller is done with the module that it opened last: closes it if it is too large to be kept. */
void module_cache_release(struct module_cache *cache);

#endif
