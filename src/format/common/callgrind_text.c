/* SPDX-License-Identifier: MIT */
#include "format/common/callgrind_text.h"

#include "base/array.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

void callgrind_text_init(struct callgrind_text *text, struct buffer *out)
{
    *text = (struct callgrind_text){.out = out};
    profile_init(&text->texts);
}

void callgrind_text_fini(struct callgrind_text *text)
{
    if (text->texts.failed != STATUS_OK) text->out->failed = true;
    for (unsigned i = 0; i < CALLGRIND_KINDS; i++) free(text->numbers[i].items);
    profile_fini(&text->texts);
}

/* The place of the number of NAME, which is 0 at first; NULL without memory. */
static uint32_t *number_of(struct callgrind_text *text, enum callgrind_kind kind, uint32_t name)
{
    size_t before = text->numbers[kind].capacity;
    if (!array_reserve(&text->numbers[kind].items, &text->numbers[kind].capacity, (size_t)name + 1,
                       sizeof(*text->numbers[kind].items), PROFILE_STRINGS_MAX)) {
        text->out->failed = true;
        return NULL;
    }
    size_t added = text->numbers[kind].capacity - before;
    if (added > 0) memset(text->numbers[kind].items + before, 0, added * sizeof(*text->numbers[kind].items));
    return &text->numbers[kind].items[name];
}

void callgrind_append_name(struct callgrind_text *text, const char *key, enum callgrind_kind kind, struct slice name)
{
    uint32_t id = profile_string(&text->texts, name).index;
    buffer_append_format(text->out, "%s=", key);
    if (id != 0) {
        uint32_t *number = number_of(text, kind, id);
        if (!number) return;
        bool is_new = *number == 0;
        if (is_new) *number = ++text->numbers[kind].given;
        buffer_append_format(text->out, "(%" PRIu32 ")%s", *number, is_new ? " " : "");
        if (is_new) buffer_append(text->out, name.data, name.size);
    }
    buffer_append_byte(text->out, '\n');
}

void callgrind_append_address(struct buffer *out, const uint64_t *before, uint64_t address)
{
    char absolute[24], relative[24];
    int length = snprintf(absolute, sizeof(absolute), "0x%" PRIx64, address);
    if (!before) {
        buffer_append_text(out, absolute);
    } else if (*before == address) {
        buffer_append_text(out, "*");
    } else {
        int64_t difference = (int64_t)(address - *before);
        bool is_shorter = snprintf(relative, sizeof(relative), "%+" PRId64, difference) < length;
        buffer_append_text(out, is_shorter ? relative : absolute);
    }
}
