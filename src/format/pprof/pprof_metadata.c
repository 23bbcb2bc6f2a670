/* SPDX-License-Identifier: MIT */
#include "format/pprof/pprof_metadata.h"

#include "base/hash.h"
#include "format/common/text_line.h"
#include "base/hex.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#define PREFIX "# offbeat "

enum { TAG_MASK = 0xffffff };

/* --- Writing ------------------------------------------------------------------------------------------------------ */

static bool is_plain(uint8_t byte, bool is_key)
{
    if (is_key) return isalnum(byte) || byte == '_' || byte == '.' || byte == '-';
    return byte >= ' ' && byte != 0x7f && byte != '\\';
}

static void append_escaped(struct buffer *out, struct slice text, bool is_key)
{
    for (size_t i = 0; i < text.size; i++) {
        if (is_plain(text.data[i], is_key) || (is_key && text.data[i] >= 0x80))
            buffer_append_byte(out, text.data[i]);
        else
            buffer_append_format(out, "\\x%02x", text.data[i]);
    }
}

void pprof_metadata_append(const struct profile *profile, const struct metadata_entry *entry, uint32_t tag,
                           struct buffer *out)
{
    buffer_append_text(out, PREFIX);
    append_escaped(out, profile_slice(profile, entry->key), true);
    if (entry->is_number) {
        buffer_append_format(out, " = %" PRId64 " (%06" PRIx32 ")", entry->number, tag);
    } else {
        buffer_append_text(out, ": ");
        append_escaped(out, profile_slice(profile, entry->text), false);
    }
}

/* FNV-1a: hash_bytes differs from process to process. */
static uint32_t add_to_tag(uint32_t tag, const void *data, size_t size)
{
    const uint8_t *bytes = data;
    for (size_t i = 0; i < size; i++) tag = (tag ^ bytes[i]) * UINT32_C(16777619);
    return tag;
}

uint32_t pprof_metadata_tag(const struct profile *profile)
{
    uint32_t tag = UINT32_C(2166136261);
    tag = add_to_tag(tag, &profile->time_ns, sizeof(profile->time_ns));
    tag = add_to_tag(tag, &profile->duration_ns, sizeof(profile->duration_ns));
    for (size_t i = 0; i < profile->metadata.count; i++) {
        const struct metadata_entry *entry = &profile->metadata.items[i];
        struct slice text = profile_slice(profile, entry->text);
        tag = add_to_tag(tag, &entry->number, sizeof(entry->number));
        tag = add_to_tag(tag, text.data, text.size);
    }
    return (tag ^ tag >> 24) & TAG_MASK;
}

/* --- Reading ------------------------------------------------------------------------------------------------------ */

/* The string that TEXT stands for. */
static struct string_id unescape(struct profile *profile, struct slice text)
{
    struct buffer plain;
    buffer_init(&plain, PROFILE_STRING_BYTES_MAX);
    for (size_t i = 0; i < text.size; i++) {
        bool is_escape = i + 3 < text.size && text.data[i] == '\\' && text.data[i + 1] == 'x' &&
                         hex_is_lower(slice_of(text.data + i + 2, 2));
        if (is_escape) {
            buffer_append_byte(&plain, (uint8_t)hex_byte(text.data + i + 2));
            i += 3;
        } else {
            buffer_append_byte(&plain, text.data[i]);
        }
    }
    struct string_id id = profile_string(profile, buffer_slice(&plain));
    buffer_fini(&plain);
    return id;
}

static bool has_key(const void *context, uint32_t index, const void *key)
{
    const struct profile *profile = ((const struct pprof_metadata *)context)->profile;
    return profile->metadata.items[index].key.index == ((const struct string_id *)key)->index;
}

static void add_entry(struct pprof_metadata *metadata, struct string_id key, bool is_number, int64_t number,
                      struct string_id text)
{
    struct profile *profile = metadata->profile;
    uint64_t hash = hash_mix(0, key.index);
    uint32_t known = index_table_find(&metadata->index, hash, has_key, metadata, &key);
    if (known != INDEX_NONE) {
        struct metadata_entry *entry = &profile->metadata.items[known];
        if (is_number && entry->is_number) entry->number = profile_add_values(entry->number, number);
        return;
    }
    size_t count = profile->metadata.count;
    if (is_number)
        profile_add_metadata_number(profile, profile_c_string(profile, key), number);
    else
        profile_add_metadata_text(profile, profile_c_string(profile, key), profile_c_string(profile, text));
    bool is_added = profile->metadata.count > count;
    if (is_added && !index_table_add(&metadata->index, hash, (uint32_t)count) && profile->failed == STATUS_OK)
        profile->failed = STATUS_NO_MEMORY;
}

/* "101 (3f9a12)"; the tag may be missing. */
static bool read_number(struct slice text, int64_t *ret_number)
{
    char digits[32], *end;
    const uint8_t *blank = text.size ? memchr(text.data, ' ', text.size) : NULL;
    size_t size = blank ? (size_t)(blank - text.data) : text.size;
    if (size == 0 || size >= sizeof(digits)) return false;
    memcpy(digits, text.data, size);
    digits[size] = '\0';
    errno = 0;
    *ret_number = strtoll(digits, &end, 10);
    return errno == 0 && end == digits + size && !isspace((unsigned char)digits[0]);
}

bool pprof_metadata_read(struct pprof_metadata *metadata, struct slice comment)
{
    if (!text_begins_with(comment, PREFIX)) return false;
    struct slice rest = text_from(comment, strlen(PREFIX));
    size_t size = 0;
    while (size < rest.size && rest.data[size] != ' ' && rest.data[size] != ':') size++;
    struct slice key = slice_of(rest.data, size);
    rest = text_from(rest, size);
    int64_t number = 0;
    if (key.size == 0) return false;
    if (text_begins_with(rest, " = ") && read_number(text_from(rest, 3), &number)) {
        add_entry(metadata, unescape(metadata->profile, key), true, number, (struct string_id){0});
        return true;
    }
    if (!text_begins_with(rest, ": ")) return false;
    struct string_id key_id = unescape(metadata->profile, key);
    add_entry(metadata, key_id, false, 0, unescape(metadata->profile, text_from(rest, 2)));
    return true;
}
