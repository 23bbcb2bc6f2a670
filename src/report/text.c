/* Small helpers of the text reports.  SPDX-License-Identifier: MIT */
#include "report/text.h"

#include "base/printable.h"

void append_printable(struct buffer *out, const char *text)
{
    printable_append(out, slice_of_text(text), "");
}

/* Returns the place of character NUMBER of the printable TEXT. */
static size_t place_of(struct slice text, size_t number)
{
    size_t place = 0, skip;
    while (number-- > 0 && place < text.size) {
        size_t size = printable_size(slice_of(text.data + place, text.size - place), &skip);
        place += size ? size : skip;
    }
    return place;
}

size_t character_count(struct slice text)
{
    size_t count = 0;
    for (size_t i = 0; i < text.size; i++) count += (text.data[i] & 0xC0) != 0x80;
    return count;
}

size_t name_width(size_t width, size_t columns)
{
    enum { NAME_MIN = 24 };
    if (width == 0) return 0;
    return width > columns + NAME_MIN ? width - columns : NAME_MIN;
}

void append_filters(struct buffer *out, const char *const *filters)
{
    if (!filters || !*filters) return;
    buffer_append_text(out, "Active filters:\n");
    for (; *filters; filters++) {
        buffer_append_text(out, "   ");
        append_printable(out, *filters);
        buffer_append_text(out, "\n");
    }
}

void append_shortened(struct buffer *out, const char *text, size_t width)
{
    struct buffer printable;
    buffer_init(&printable, out->maximum);
    append_printable(&printable, text);
    struct slice all = buffer_slice(&printable);
    size_t count = character_count(all), head = width / 2;
    if (width == 0 || count <= width) {
        buffer_append(out, all.data, all.size);
    } else {
        size_t tail = place_of(all, count - (width - head - 1));
        buffer_append(out, all.data, place_of(all, head));
        buffer_append_text(out, "…");
        buffer_append(out, all.data + tail, all.size - tail);
    }
    if (printable.failed) out->failed = true;
    buffer_fini(&printable);
}

bool is_hot(int64_t value, int64_t total)
{
    enum { HOT_PERCENT = 10 };
    double magnitude = value < 0 ? -(double)value : (double)value;
    return total > 0 && magnitude * 100 >= (double)total * HOT_PERCENT;
}

void append_bold(struct buffer *out)
{
    buffer_append_text(out, "\033[1m");
}

void append_normal(struct buffer *out)
{
    buffer_append_text(out, "\033[0m");
}

const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}
