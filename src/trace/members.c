/* Names and texts in one piece of memory: there are few, they are read rarely, and they are copied as a whole.
 * SPDX-License-Identifier: MIT */
#include "trace/members.h"

#include "base/hex.h"

static const char prefix[] = "sentry-";
enum { PREFIX_SIZE = sizeof(prefix) - 1 };

void trace_members_fini(struct trace_members *members)
{
    buffer_fini(&members->texts);
    *members = (struct trace_members){0};
}

bool trace_members_copy(struct trace_members *into, const struct trace_members *from)
{
    if (from->count == 0) return true;
    buffer_init(&into->texts, TRACE_BAGGAGE_BYTES_MAX);
    buffer_append(&into->texts, from->texts.data, from->texts.size);
    if (into->texts.failed) {
        trace_members_fini(into);
        return false;
    }
    into->count = from->count;
    return true;
}

/* --- The list ----------------------------------------------------------------------------------------------------- */

struct member {
    const char *key, *value;
    size_t size; /* bytes of both, with their NULs */
};

/* Returns the member that begins at OFFSET; its size is 0 after the last one. */
static struct member member_at(const struct trace_members *members, size_t offset)
{
    if (offset >= members->texts.size) return (struct member){0};
    const char *key = (const char *)members->texts.data + offset;
    const char *value = key + strlen(key) + 1;
    return (struct member){key, value, (size_t)(value - key) + strlen(value) + 1};
}

static void remove_member(struct trace_members *members, struct slice key)
{
    size_t offset = 0;
    for (struct member member; (member = member_at(members, offset)).size > 0; offset += member.size) {
        if (!slice_equals_text(key, member.key)) continue;
        size_t after = offset + member.size;
        memmove(members->texts.data + offset, members->texts.data + after, members->texts.size - after);
        members->texts.size -= member.size;
        members->count--;
        return;
    }
}

static bool stands_for_itself(uint8_t byte)
{
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || (byte >= '0' && byte <= '9') ||
           byte == '-' || byte == '.' || byte == '_' || byte == '~';
}

bool trace_members_set(struct trace_members *members, struct slice key, struct slice value)
{
    size_t size = key.size + value.size + 2;
    if (key.size == 0 || (value.size > 0 && memchr(value.data, 0, value.size))) return false;
    for (size_t i = 0; i < key.size; i++) {
        if (!stands_for_itself(key.data[i])) return false; /* keys are not encoded */
    }
    if (size > TRACE_BAGGAGE_BYTES_MAX || members->texts.size + size > TRACE_BAGGAGE_BYTES_MAX) return false;
    if (members->count == TRACE_MEMBERS_MAX) return false;
    if (members->texts.maximum == 0) buffer_init(&members->texts, TRACE_BAGGAGE_BYTES_MAX);
    if (!buffer_reserve(&members->texts, size)) return false;
    remove_member(members, key);
    buffer_append(&members->texts, key.data, key.size);
    buffer_append_byte(&members->texts, 0);
    buffer_append(&members->texts, value.data, value.size);
    buffer_append_byte(&members->texts, 0);
    members->count++;
    return true;
}

const char *trace_members_find(const struct trace_members *members, const char *key)
{
    size_t offset = 0;
    for (struct member member; (member = member_at(members, offset)).size > 0; offset += member.size) {
        if (strcmp(member.key, key) == 0) return member.value;
    }
    return NULL;
}

/* --- Reading baggage ---------------------------------------------------------------------------------------------- */

/* Decodes TEXT into DECODED, which has room for TEXT. Percent signs that begin no code are kept. Returns the size. */
static size_t decode_percent(struct slice text, uint8_t *decoded)
{
    size_t size = 0;
    for (size_t i = 0; i < text.size; i++) {
        int code = text.data[i] == '%' && i + 2 < text.size ? hex_byte(text.data + i + 1) : -1;
        decoded[size++] = code >= 0 ? (uint8_t)code : text.data[i];
        if (code >= 0) i += 2;
    }
    return size;
}

static bool is_ours(struct slice member)
{
    return member.size >= PREFIX_SIZE && memcmp(member.data, prefix, PREFIX_SIZE) == 0;
}

void trace_members_read_baggage(struct trace_members *members, struct slice header)
{
    uint8_t decoded[TRACE_BAGGAGE_BYTES_MAX];
    while (header.size > 0) {
        struct slice member = text_trim(text_take_until(&header, ','));
        if (!is_ours(member) || !memchr(member.data, '=', member.size)) continue;
        struct slice value = text_take_until(&member, ';'); /* then come properties, which Sentry does not use */
        struct slice key = text_trim(text_take_until(&value, '='));
        value = text_trim(value);
        if (value.size > sizeof(decoded)) continue;
        size_t size = decode_percent(value, decoded);
        key = slice_of(key.data + PREFIX_SIZE, key.size - PREFIX_SIZE);
        (void)trace_members_set(members, key, slice_of(decoded, size));
    }
}

/* --- Writing ------------------------------------------------------------------------------------------------------ */

static void append_encoded(struct buffer *out, const char *text)
{
    static const char digits[] = "0123456789ABCDEF";
    for (const uint8_t *byte = (const uint8_t *)text; *byte; byte++) {
        if (stands_for_itself(*byte)) {
            buffer_append_byte(out, *byte);
        } else {
            char code[] = {'%', digits[*byte >> 4], digits[*byte & 15]};
            buffer_append(out, code, sizeof(code));
        }
    }
}

/* Appends MEMBERS, encoded. Members over the maximum are left out, whole. Returns their number. */
static size_t append_ours(const struct trace_members *members, struct buffer *out)
{
    size_t offset = 0, count = 0;
    for (struct member member; (member = member_at(members, offset)).size > 0; offset += member.size) {
        size_t before = out->size;
        if (before > 0) buffer_append_byte(out, ',');
        buffer_append_text(out, prefix);
        buffer_append_text(out, member.key);
        buffer_append_byte(out, '=');
        append_encoded(out, member.value);
        count++;
        if (!out->is_full) continue;
        out->size = before;
        out->failed = out->is_full = false;
        count--;
    }
    return count;
}

static bool is_printable_without(struct slice text, const char *forbidden)
{
    for (size_t i = 0; i < text.size; i++) {
        uint8_t byte = text.data[i];
        if (byte <= ' ' || byte >= 0x7F || strchr(forbidden, byte)) return false;
    }
    return true;
}

/* True if MEMBER, "key=value;property;key=value", may be passed on (W3C Baggage §3.2): a key is a token of HTTP, a
 * value has no control characters, spaces, '"', ',', ';' or '\\'. A line end in it would begin a new header. */
static bool is_well_formed(struct slice member)
{
    bool needs_value = true;
    do {
        struct slice value = text_take_until(&member, ';');
        bool has_value = value.size > 0 && memchr(value.data, '=', value.size);
        struct slice key = text_trim(text_take_until(&value, '='));
        if (key.size == 0 || !is_printable_without(key, "\"(),/:;<=>?@[\\]{}")) return false;
        if (has_value ? !is_printable_without(text_trim(value), "\",;\\") : needs_value) return false;
        needs_value = false; /* a property needs none */
    } while (member.size > 0);
    return true;
}

void trace_members_write_baggage(const struct trace_members *members, struct slice others, struct buffer *out)
{
    struct buffer ours = {.maximum = TRACE_BAGGAGE_BYTES_MAX};
    size_t count = append_ours(members, &ours), start = out->size;
    while (others.size > 0) {
        struct slice member = text_trim(text_take_until(&others, ','));
        if (!is_well_formed(member) || is_ours(member)) continue;
        size_t size = out->size - start + member.size + ours.size + 2; /* two commas */
        if (size > TRACE_BAGGAGE_BYTES_MAX || count == TRACE_MEMBERS_MAX) break;
        if (out->size > start) buffer_append_byte(out, ',');
        buffer_append(out, member.data, member.size);
        count++;
    }
    if (out->size > start && ours.size > 0) buffer_append_byte(out, ',');
    buffer_append(out, ours.data, ours.size);
    if (ours.failed) out->failed = true;
    buffer_fini(&ours);
}

void trace_members_write_json(const struct trace_members *members, struct json_writer *writer)
{
    size_t offset = 0;
    json_begin_object(writer);
    for (struct member member; (member = member_at(members, offset)).size > 0; offset += member.size) {
        json_write_key_slice(writer, slice_of_text(member.key));
        json_write_text(writer, member.value);
    }
    json_end_object(writer);
}
