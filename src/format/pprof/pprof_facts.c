/* SPDX-License-Identifier: MIT */
#include "format/pprof/pprof_facts.h"

#include "base/hash.h"
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

void pprof_fact_append(const struct profile *profile, const struct fact *fact, uint32_t tag, struct buffer *out)
{
    buffer_append_text(out, PREFIX);
    append_escaped(out, profile_slice(profile, fact->key), true);
    if (fact->is_number) {
        buffer_append_format(out, " = %" PRId64 " (%06" PRIx32 ")", fact->number, tag);
    } else {
        buffer_append_text(out, ": ");
        append_escaped(out, profile_slice(profile, fact->text), false);
    }
}

/* FNV-1a: hash_bytes differs from process to process. */
static uint32_t add_to_tag(uint32_t tag, const void *data, size_t size)
{
    const uint8_t *bytes = data;
    for (size_t i = 0; i < size; i++) tag = (tag ^ bytes[i]) * UINT32_C(16777619);
    return tag;
}

uint32_t pprof_fact_tag(const struct profile *profile)
{
    uint32_t tag = UINT32_C(2166136261);
    tag = add_to_tag(tag, &profile->time_ns, sizeof(profile->time_ns));
    tag = add_to_tag(tag, &profile->duration_ns, sizeof(profile->duration_ns));
    for (size_t i = 0; i < profile->facts.count; i++) {
        const struct fact *fact = &profile->facts.items[i];
        struct slice text = profile_slice(profile, fact->text);
        tag = add_to_tag(tag, &fact->number, sizeof(fact->number));
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
    const struct profile *profile = ((const struct pprof_facts *)context)->profile;
    return profile->facts.items[index].key.index == ((const struct string_id *)key)->index;
}

static void add_fact(struct pprof_facts *facts, struct string_id key, bool is_number, int64_t number,
                     struct string_id text)
{
    struct profile *profile = facts->profile;
    uint64_t hash = hash_mix(0, key.index);
    uint32_t known = index_table_find(&facts->index, hash, has_key, facts, &key);
    if (known != INDEX_NONE) {
        struct fact *fact = &profile->facts.items[known];
        if (is_number && fact->is_number) fact->number = profile_add_values(fact->number, number);
        return;
    }
    size_t count = profile->facts.count;
    if (is_number)
        profile_add_fact_number(profile, profile_c_string(profile, key), number);
    else
        profile_add_fact_text(profile, profile_c_string(profile, key), profile_c_string(profile, text));
    bool is_added = profile->facts.count > count;
    if (is_added && !index_table_add(&facts->index, hash, (uint32_t)count) && profile->failed == STATUS_OK)
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

static bool begins_with(struct slice text, const char *start)
{
    size_t size = strlen(start);
    return text.size >= size && memcmp(text.data, start, size) == 0;
}

static struct slice after(struct slice text, size_t size)
{
    return slice_of(text.data + size, text.size - size);
}

bool pprof_fact_read(struct pprof_facts *facts, struct slice comment)
{
    if (!begins_with(comment, PREFIX)) return false;
    struct slice rest = after(comment, strlen(PREFIX));
    size_t size = 0;
    while (size < rest.size && rest.data[size] != ' ' && rest.data[size] != ':') size++;
    struct slice key = slice_of(rest.data, size);
    rest = after(rest, size);
    int64_t number = 0;
    if (key.size == 0) return false;
    if (begins_with(rest, " = ") && read_number(after(rest, 3), &number)) {
        add_fact(facts, unescape(facts->profile, key), true, number, (struct string_id){0});
        return true;
    }
    if (!begins_with(rest, ": ")) return false;
    struct string_id key_id = unescape(facts->profile, key);
    add_fact(facts, key_id, false, 0, unescape(facts->profile, after(rest, 2)));
    return true;
}

void pprof_facts_fini(struct pprof_facts *facts)
{
    index_table_fini(&facts->index);
}
