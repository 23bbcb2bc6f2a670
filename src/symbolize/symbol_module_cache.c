/* A few dozen slots, searched one after the other: a search is nothing beside opening a file. The module that was not
 * used for the longest time makes room. A module is kept while its index takes little memory; large indexes are in
 * files (index_store.h), of which a module holds a few blocks.  SPDX-License-Identifier: MIT */
#include "symbolize/symbol_module_cache.h"

#include <stdlib.h>

enum { SLOTS = 64, KEPT_INDEX_BYTES_MAX = 16 << 20 };

struct slot {
    char *path, *build_id;
    struct symbol_module module;
    enum symbol_module_state state;
    uint64_t last_use; /* 0: the slot is empty */
};

struct symbol_module_cache {
    struct slot slots[SLOTS];
    uint64_t uses;
    struct slot *current;
};

struct symbol_module_cache *symbol_module_cache_new(void)
{
    return calloc(1, sizeof(struct symbol_module_cache));
}

static void empty_slot(struct slot *slot)
{
    if (slot->last_use) symbol_module_close(&slot->module);
    free(slot->path);
    free(slot->build_id);
    *slot = (struct slot){0};
}

void symbol_module_cache_free(struct symbol_module_cache *cache)
{
    for (size_t i = 0; cache && i < SLOTS; i++) empty_slot(&cache->slots[i]);
    free(cache);
}

static struct slot *find_slot(struct symbol_module_cache *cache, const char *path, const char *build_id)
{
    for (size_t i = 0; i < SLOTS; i++) {
        struct slot *slot = &cache->slots[i];
        if (slot->last_use && strcmp(slot->path, path) == 0 && strcmp(slot->build_id, build_id) == 0) return slot;
    }
    return NULL;
}

static struct slot *oldest_slot(struct symbol_module_cache *cache)
{
    struct slot *oldest = &cache->slots[0];
    for (size_t i = 1; i < SLOTS; i++) {
        if (cache->slots[i].last_use < oldest->last_use) oldest = &cache->slots[i];
    }
    return oldest;
}

/* The module points to the slot's own path. */
static struct slot *open_new(struct symbol_module_cache *cache, const char *path, const char *build_id,
                             const struct debug_sources *sources)
{
    struct slot *slot = oldest_slot(cache);
    empty_slot(slot);
    slot->path = strdup(path);
    slot->build_id = strdup(build_id);
    if (!slot->path || !slot->build_id) {
        empty_slot(slot);
        return NULL;
    }
    slot->state = symbol_module_open(&slot->module, slot->path, slot->build_id, sources);
    return slot;
}

enum symbol_module_state symbol_module_cache_open(struct symbol_module_cache *cache, const char *path,
                                                  const char *build_id, const struct debug_sources *sources,
                                                  struct symbol_module **ret_module)
{
    struct slot *slot = find_slot(cache, path, build_id);
    if (!slot) slot = open_new(cache, path, build_id, sources);
    cache->current = slot;
    if (!slot) return SYMBOL_MODULE_MISSING;
    slot->last_use = ++cache->uses;
    *ret_module = &slot->module;
    return slot->state;
}

void symbol_module_cache_release(struct symbol_module_cache *cache)
{
    struct slot *slot = cache->current;
    if (slot && slot->module.names.mapped_size > KEPT_INDEX_BYTES_MAX) empty_slot(slot);
    cache->current = NULL;
}
