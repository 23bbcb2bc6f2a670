/* Ids of rows: a row that comes twice has the same one, whoever sends it.  SPDX-License-Identifier: MIT */
#include "base/hex.h"
#include "base/sha1.h"
#include "base/uuid.h"
#include "cluster/cluster_private.h"

#include <string.h>

enum { IDS_MAX = 1 << 24 };

static void bytes_of_hex(const char *text, uint8_t ret_id[ROW_ID_BYTES])
{
    for (size_t i = 0; i < ROW_ID_BYTES; i++) ret_id[i] = (uint8_t)hex_byte((const uint8_t *)text + 2 * i);
}

void row_id_of(const struct slice *parts, size_t count, uint8_t ret_id[ROW_ID_BYTES])
{
    struct sha1 sha1;
    char text[SHA1_TEXT_SIZE];
    sha1_init(&sha1);
    for (size_t i = 0; i < count; i++) {
        uint64_t size = parts[i].size;
        sha1_add(&sha1, slice_of(&size, sizeof(size)));
        sha1_add(&sha1, parts[i]);
    }
    sha1_finish(&sha1, text);
    bytes_of_hex(text, ret_id);
}

bool row_id_new(uint8_t ret_id[ROW_ID_BYTES])
{
    char text[UUID_TEXT_SIZE];
    if (!uuid_new(text)) return false;
    bytes_of_hex(text, ret_id);
    return true;
}

/* --- A set of them: open addressing, at most half full; the id of zeros stands for no id ----------------------------
 */

void id_set_fini(struct id_set *set)
{
    free(set->items);
    *set = (struct id_set){0};
}

/* Returns the place of ID, or the empty one where it belongs. */
static uint8_t *find_place(const struct id_set *set, const uint8_t *id)
{
    static const uint8_t none[ROW_ID_BYTES];
    uint64_t hash;
    (void)memcpy(&hash, id, sizeof(hash));
    size_t mask = set->capacity - 1, place = (size_t)hash & mask;
    while (memcmp(set->items[place], none, ROW_ID_BYTES) != 0 && memcmp(set->items[place], id, ROW_ID_BYTES) != 0)
        place = (place + 1) & mask;
    return set->items[place];
}

static bool grow(struct id_set *set)
{
    struct id_set grown = {.capacity = set->capacity ? set->capacity * 2 : 1024, .count = set->count};
    grown.items = grown.capacity <= 2 * (size_t)IDS_MAX ? calloc(grown.capacity, ROW_ID_BYTES) : NULL;
    if (!grown.items) return false;
    static const uint8_t none[ROW_ID_BYTES];
    for (size_t i = 0; i < set->capacity; i++) {
        if (memcmp(set->items[i], none, ROW_ID_BYTES) != 0)
            (void)memcpy(find_place(&grown, set->items[i]), set->items[i], ROW_ID_BYTES);
    }
    free(set->items);
    *set = grown;
    return true;
}

bool id_set_add(struct id_set *set, struct slice id)
{
    if (2 * (set->count + 1) > set->capacity && !grow(set)) {
        set->failed = true;
        return false;
    }
    uint8_t *place = find_place(set, id.data);
    if (memcmp(place, id.data, ROW_ID_BYTES) == 0) return false;
    (void)memcpy(place, id.data, ROW_ID_BYTES);
    set->count++;
    return true;
}
