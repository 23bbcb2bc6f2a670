/* Collapsed stacks, the text that flame graph tools exchange: "root;caller;leaf 42" a line.  SPDX-License-Identifier:
 * MIT */
#include "base/array.h"
#include "base/utf8.h"
#include "format/common/format_ops.h"
#include "format/common/frame_name.h"
#include "format/common/text_line.h"
#include "format/text/austin.h"
#include "format/text/stack_fields.h"
#include "profile/frame_kind.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
    COLLAPSED_BYTES_MAX = 1 << 30, /* written */
    COLLAPSED_DEPTH_MAX = 1 << 16, /* frames of a line */
    COLLAPSED_COMMENTS_MAX = 1024, /* later ones are ignored */
    COLLAPSED_INLINED_MAX = 256,   /* functions of one location; the next ones begin another location */
};

/* Suffixes of a name. Flame graph tools choose the colour by them and do not show them. */
#define MARK_INLINED "_[i]"
#define MARK_KERNEL "_[k]"
#define MARK_JIT "_[j]"
/* Flame graph tools show this one: it stays in the name. */
#define MARK_INTERPRETED "_[0]"

#define KERNEL_FILE "[kernel]"

#define NO_SAMPLES "# no samples" /* a file without stacks */

/* --- Reading ------------------------------------------------------------------------------------------------------ */

/* A number of a line: MANTISSA / 10^DECIMALS. */
struct decimal {
    int64_t mantissa;
    unsigned decimals;
};

/* The unit of a file's values: the largest of these in which all values are integers. */
static const struct {
    unsigned decimals;
    const char *unit;
} units[] = {{0, "count"}, {3, "thousandths"}, {6, "millionths"}, {9, "billionths"}};

enum { UNITS = sizeof(units) / sizeof(units[0]), DECIMALS_MAX = 9 };

static bool add_digit(int64_t *number, uint8_t digit)
{
    return digit >= '0' && digit <= '9' && !__builtin_mul_overflow(*number, 10, number) &&
           !__builtin_add_overflow(*number, digit - '0', number);
}

/* An integer, or a number with a fraction, whose digits after DECIMALS_MAX are cut off. */
static bool parse_decimal(struct slice text, struct decimal *ret_number)
{
    bool is_negative = text.size > 0 && text.data[0] == '-';
    size_t i = is_negative ? 1 : 0, first = i;
    struct decimal number = {0};
    for (; i < text.size && text.data[i] != '.'; i++) {
        if (!add_digit(&number.mantissa, text.data[i])) return false;
    }
    if (i == first) return false;
    size_t end = text.size;
    while (end > i + 1 && text.data[end - 1] == '0') end--;
    for (i++; i < end; i++) {
        int64_t with_digit = number.mantissa;
        if (!add_digit(&with_digit, text.data[i])) return false;
        if (number.decimals == DECIMALS_MAX) continue;
        number.mantissa = with_digit;
        number.decimals++;
    }
    if (is_negative) number.mantissa = -number.mantissa;
    *ret_number = number;
    return true;
}

/* "stack number": the last blank or tab separates them. */
static bool split_line(struct slice line, struct slice *ret_stack, struct decimal *ret_value)
{
    size_t size = line.size;
    while (size > 0 && !text_is_blank(line.data[size - 1])) size--;
    if (size == 0) return false;
    *ret_stack = slice_of(line.data, size - 1);
    return parse_decimal(slice_of(line.data + size, line.size - size), ret_value);
}

/* "stack before after", as tools that compare two recordings write it. */
static bool split_pair(struct slice line, struct slice *ret_stack, struct decimal ret_values[2])
{
    struct slice left;
    return split_line(line, &left, &ret_values[1]) && split_line(left, ret_stack, &ret_values[0]) &&
           ret_stack->size > 0;
}

/* "# austin: 3.6.0". A frame may begin with "#", as Ruby's "#<Class:Set>" does. */
static bool is_comment(struct slice line)
{
    return line.size > 0 && line.data[0] == '#' && (line.size == 1 || text_is_blank(line.data[1]));
}

/* Removes MARK from the end of *NAME, unless the name is only the mark. */
static bool has_mark(struct slice name, const char *mark)
{
    return name.size > strlen(mark) && text_ends_with(name, mark);
}

static bool take_mark(struct slice *name, const char *mark)
{
    if (!has_mark(*name, mark)) return false;
    name->size -= strlen(mark);
    return true;
}

static struct slice take_name(struct slice *names)
{
    const uint8_t *separator = memchr(names->data, ';', names->size);
    size_t size = separator ? (size_t)(separator - names->data) : names->size;
    struct slice name = slice_of(names->data, size);
    *names = slice_of(names->data + size + (separator != NULL), names->size - size - (separator != NULL));
    return name;
}

/* A location: a function and the functions inlined into it. */
struct place {
    struct line lines[COLLAPSED_INLINED_MAX]; /* the outermost first */
    uint32_t line_count;
    struct mapping_id mapping;
    enum frame_kind kind;
};

static struct stack_id add_place(struct profile *profile, struct stack_id stack, const struct place *place)
{
    struct line lines[COLLAPSED_INLINED_MAX];
    if (place->line_count == 0) return stack;
    for (uint32_t i = 0; i < place->line_count; i++) lines[i] = place->lines[place->line_count - 1 - i];
    struct location location = {.mapping = place->mapping, .kind = place->kind};
    return profile_add_stack(profile, stack, profile_add_location(profile, &location, lines, place->line_count));
}

/* Adds the function NAME to PLACE if it has the mark of inlined functions. Else adds the finished PLACE to *STACK, and
 * begins a new one with the function. */
static void add_name(struct profile *profile, struct slice name, struct place *place, struct stack_id *stack)
{
    bool is_inlined = take_mark(&name, MARK_INLINED);
    bool is_kernel = take_mark(&name, MARK_KERNEL);
    struct function function = {0};
    if (take_mark(&name, MARK_JIT)) function.package = profile_text(profile, JIT_PACKAGE);
    if (!is_inlined || place->line_count == 0 || place->line_count == COLLAPSED_INLINED_MAX) {
        *stack = add_place(profile, *stack, place);
        place->line_count = 0;
        place->mapping.index = 0;
        place->kind = has_mark(name, MARK_INTERPRETED) ? FRAME_INTERPRETED : FRAME_UNKNOWN;
        if (is_kernel)
            place->mapping =
                profile_add_mapping(profile, &(struct mapping){.file_name = profile_text(profile, KERNEL_FILE)});
    }
    struct line line = {0};
    struct slice file;
    if (stack_fields_take_source(&name, &file, &line.line)) function.file_name = profile_string(profile, file);
    function.name = profile_string(profile, name);
    line.function = profile_add_function(profile, &function);
    place->lines[place->line_count++] = line;
}

/* False if there are more frames than the maximum. Separators after the last name are ignored, as in flamegraph.pl. */
static bool add_stack(struct profile *profile, struct slice names, struct stack_id *ret_stack)
{
    struct place place;
    place.line_count = 0;
    *ret_stack = (struct stack_id){0};
    while (names.size > 0 && names.data[names.size - 1] == ';') names.size--;
    for (size_t depth = 0; names.size > 0; depth++) {
        if (depth == COLLAPSED_DEPTH_MAX) return false;
        add_name(profile, take_name(&names), &place, ret_stack);
    }
    *ret_stack = add_place(profile, *ret_stack, &place);
    return true;
}

static bool is_control(uint8_t byte)
{
    return byte < ' ' || byte == 0x7f;
}

/* Every binary format has a control character in its first line. */
static bool is_text(struct slice line)
{
    for (size_t i = 0; i < line.size; i++) {
        if (is_control(line.data[i]) && line.data[i] != '\t') return false;
    }
    return true;
}

/* JSON that is cut short may end with a blank and a number; a line of it that IS_WHOLE has the number, which follows
 * STACK, behind a colon or a comma. A function may be called "{main}" or "[{x", and a stack begin with "[kernel]". */
static bool begins_json(struct slice line, struct slice stack, bool is_whole)
{
    struct slice rest = text_from(line, 1);
    while (rest.size > 0 && text_is_blank(rest.data[0])) rest = text_from(rest, 1);
    uint8_t next = line.data[0] == '{' ? '"' : '{';
    if ((line.data[0] != '{' && line.data[0] != '[') || (rest.size > 0 && rest.data[0] != next)) return false;
    stack = text_trim(stack);
    return !is_whole || stack.size == 0 || strchr(":,[{", stack.data[stack.size - 1]) != NULL;
}

/* True if the first line that is neither empty nor a comment is text that ends with a blank or tab and a number.
 * Comments do not count. */
static bool collapsed_detect(struct slice bytes)
{
    struct slice stack;
    struct decimal value;
    if (austin_detect(bytes) || text_begins_with(bytes, NO_SAMPLES "\n")) return true;
    while (bytes.size > 0) {
        struct slice line = text_take_line(&bytes);
        if (line.size == 0 || is_comment(line)) continue;
        return split_line(line, &stack, &value) && is_text(line) && /* the cheapest one first */
               !begins_json(line, stack, !text_line_is_open(line, bytes));
    }
    return false;
}

/* Properties of all lines. A file of differences has two numbers on every line. A single name may end with a number,
 * but hardly every name does. */
struct layout {
    bool has_pairs;
    unsigned decimals; /* decimals of one of UNITS */
    const char *unit;
};

static unsigned larger_decimals(unsigned a, unsigned b)
{
    return a > b ? a : b;
}

static struct layout layout_of(struct slice bytes)
{
    struct layout layout = {.has_pairs = true};
    unsigned last_decimals = 0, first_decimals = 0;
    bool is_first = true;
    struct slice left = bytes;
    while (left.size > 0) {
        struct slice line = text_take_line(&left), stack;
        struct decimal values[2] = {{0}};
        if (line.size == 0 || is_comment(line)) continue;
        bool is_pair = layout.has_pairs && split_pair(line, &stack, values);
        if (layout.has_pairs && !is_pair && !is_first && text_line_is_open(line, bytes))
            break; /* the second is cut off */
        layout.has_pairs = is_pair;
        is_first = false;
        if (!layout.has_pairs && !split_line(line, &stack, &values[1])) break; /* the decoder rejects it */
        first_decimals = larger_decimals(first_decimals, values[0].decimals);
        last_decimals = larger_decimals(last_decimals, values[1].decimals);
    }
    if (is_first) layout.has_pairs = false;
    unsigned decimals = layout.has_pairs ? larger_decimals(first_decimals, last_decimals) : last_decimals;
    size_t unit = 0;
    while (units[unit].decimals < decimals) unit++;
    layout.decimals = units[unit].decimals;
    layout.unit = units[unit].unit;
    return layout;
}

static bool scale_decimal(const struct decimal *number, unsigned decimals, int64_t *ret_value)
{
    int64_t value = number->mantissa;
    for (unsigned i = number->decimals; i < decimals; i++) {
        if (__builtin_mul_overflow(value, 10, &value)) return false;
    }
    *ret_value = value;
    return true;
}

static enum status decode_line(struct slice line, uint64_t offset, const struct layout *layout, struct profile *profile,
                               struct error *error)
{
    struct slice names;
    struct sample sample = {0};
    struct decimal numbers[2] = {{0}};
    int64_t values[2] = {0};
    if (layout->has_pairs ? !split_pair(line, &names, numbers) : !split_line(line, &names, numbers))
        return error_set(error, STATUS_MALFORMED, offset, "a line does not end with a blank and a number");
    if (!scale_decimal(&numbers[0], layout->decimals, &values[0]) ||
        !scale_decimal(&numbers[1], layout->decimals, &values[1]))
        return error_set(error, STATUS_TOO_LARGE, offset, "a number is too large: 64 bits cannot hold its %s",
                         layout->unit);
    sample.thread = stack_fields_take_thread(profile, &names);
    if (!add_stack(profile, names, &sample.stack))
        return error_set(error, STATUS_TOO_LARGE, offset, "a stack of more than %d frames", COLLAPSED_DEPTH_MAX);
    profile_add_sample(profile, &sample, values);
    return STATUS_OK;
}

/* Each line becomes a sample of samples/count, or, where every line has two numbers, of before/count and after/count.
 * If a number has a fraction, the unit is thousandths, millionths or billionths, and the type of a single value is
 * weight. Lines that begin with "# " become comments.
 * A frame has a function name and perhaps a mark: name_[i] is inlined into the frame before it, name_[k] belongs to the
 * kernel, name_[j] was generated by a JIT compiler. name_[0], which was interpreted, keeps its
 * mark.
 * STATUS_NOT_THIS_FORMAT if the first line has no number, STATUS_MALFORMED for a later one, unless it is the last and
 * was cut short. */
static enum status collapsed_decode(struct slice bytes, struct profile *profile, struct error *error)
{
    if (!collapsed_detect(bytes)) return error_set(error, STATUS_NOT_THIS_FORMAT, 0, "not collapsed stacks");
    if (austin_detect(bytes)) return austin_decode(bytes, profile, error);
    struct layout layout = layout_of(bytes);
    bool is_count = layout.decimals == 0;
    if (layout.has_pairs) profile_add_value_type(profile, "before", layout.unit);
    profile_add_value_type(profile, layout.has_pairs ? "after" : is_count ? "samples" : "weight", layout.unit);
    struct slice left = bytes;
    while (left.size > 0 && profile->failed == STATUS_OK) {
        struct slice line = text_take_line(&left);
        if (line.size == 0) continue;
        if (is_comment(line)) {
            if (line.size > 2 && profile->comments.count < COLLAPSED_COMMENTS_MAX)
                profile_add_comment(profile, text_from(line, 2));
            continue;
        }
        enum status status = decode_line(line, (uint64_t)(line.data - bytes.data), &layout, profile, error);
        if (stack_fields_leave_out_cut_line(profile, line, bytes, status)) break;
        if (status != STATUS_OK) return status;
    }
    return profile_failed(profile, error);
}

/* --- Writing ------------------------------------------------------------------------------------------------------ */

/* A complete line except for its value. */
struct text_line {
    const uint8_t *text; /* NULL while lines are added: OFFSET is valid then */
    size_t offset, size;
    int64_t value;
};

struct encoder {
    const struct profile *profile;
    int64_t *sums;              /* sum of each stack */
    struct location_id *frames; /* frames of the stack at hand, leaf first */
    size_t frame_capacity;
    struct buffer text; /* all stacks in sequence */
    ARRAY_OF(struct text_line) lines;
    bool too_deep;
};

/* The output is UTF-8, so that no file begins like a compressed one. */
static void append_name(struct buffer *text, struct slice name)
{
    uint8_t *place = buffer_reserve(text, name.size);
    if (!place) return;
    for (size_t i = 0, size; i < name.size; i += size) {
        uint8_t byte = name.data[i];
        size = utf8_sequence_size(name.data + i, name.data + name.size);
        if (size > 1) {
            memcpy(place + i, name.data + i, size);
            continue;
        }
        place[i] = size == 0 ? '?' : byte == ';' ? ':' : is_control(byte) ? ' ' : byte;
        size = 1;
    }
    buffer_grow(text, name.size);
}

static void append_unnamed(struct encoder *encoder, const struct location *location)
{
    struct buffer name = {.maximum = PROFILE_STRING_BYTES_MAX};
    frame_name_unnamed(encoder->profile, location, &name);
    append_name(&encoder->text, buffer_slice(&name));
    encoder->text.failed |= name.failed;
    buffer_fini(&name);
}

static const char *mark_of(enum frame_kind kind)
{
    switch (kind) {
    case FRAME_KERNEL:
        return MARK_KERNEL;
    case FRAME_JIT:
        return MARK_JIT;
    case FRAME_INLINED:
        return MARK_INLINED;
    case FRAME_UNKNOWN:
    case FRAME_NATIVE:
    case FRAME_INTERPRETED:
    case FRAME_KINDS:
        break;
    }
    return "";
}

/* The functions of one location, the outermost first and the innermost inlined one last. */
static void append_location(struct encoder *encoder, struct location_id id)
{
    const struct location *location = profile_location(encoder->profile, id);
    const struct line *lines = profile_lines(encoder->profile, location);
    if (location->line_count == 0) append_unnamed(encoder, location);
    for (uint32_t i = location->line_count; i-- > 0;) {
        const struct function *function = profile_function(encoder->profile, lines[i].function);
        struct string_id name = frame_name_of_function(function);
        if (name.index) {
            append_name(&encoder->text, profile_slice(encoder->profile, name));
        } else {
            append_unnamed(encoder, location);
        }
        buffer_append_text(&encoder->text, mark_of(frame_kind_of(encoder->profile, location, i)));
        if (i > 0) buffer_append_byte(&encoder->text, ';');
    }
}

static bool add_line(struct encoder *encoder, struct stack_id stack, int64_t value)
{
    size_t depth = 0;
    size_t offset = encoder->text.size;
    for (; stack.index != 0; stack = profile_stack(encoder->profile, stack).parent) {
        if (!array_reserve(&encoder->frames, &encoder->frame_capacity, depth + 1, sizeof(*encoder->frames),
                           COLLAPSED_DEPTH_MAX)) {
            encoder->too_deep = depth == COLLAPSED_DEPTH_MAX;
            return false;
        }
        encoder->frames[depth++] = profile_stack(encoder->profile, stack).location;
    }
    if (depth == 0) buffer_append_text(&encoder->text, "[unknown]");
    for (size_t i = depth; i-- > 0;) {
        append_location(encoder, encoder->frames[i]);
        if (i > 0) buffer_append_byte(&encoder->text, ';');
    }
    struct slice line = slice_of(encoder->text.data + offset, encoder->text.size - offset);
    if (!encoder->text.failed && is_comment(line)) encoder->text.data[offset] = '_';
    struct text_line added = {.offset = offset, .size = encoder->text.size - offset, .value = value};
    return ARRAY_PUSH(&encoder->lines, PROFILE_ENTITIES_MAX, added);
}

static int compare_lines(const void *left, const void *right)
{
    const struct text_line *a = left, *b = right;
    int order = memcmp(a->text, b->text, a->size < b->size ? a->size : b->size);
    return order != 0 ? order : a->size < b->size ? -1 : a->size > b->size;
}

static bool add_lines(struct encoder *encoder)
{
    const struct profile *profile = encoder->profile;
    int value_index = profile_value_index(profile, "");
    encoder->sums = calloc(profile_stack_limit(profile) + 1, sizeof(*encoder->sums));
    if (!encoder->sums) return false;
    for (size_t i = 0; i < profile->samples.count; i++) {
        int64_t *sum = &encoder->sums[profile->samples.stack[i].index];
        *sum = profile_add_values(*sum, value_index < 0 ? 1 : profile_sample_values(profile, i)[value_index]);
    }
    for (uint32_t i = 0; i < profile_stack_limit(profile); i++) {
        if (encoder->sums[i] != 0 && !add_line(encoder, (struct stack_id){i}, encoder->sums[i])) return false;
    }
    return !encoder->text.failed;
}

/* Returns the decimals of the values of PROFILE in column INDEX, which is -1 where each sample counts one. */
static unsigned decimals_of(const struct profile *profile, int index)
{
    if (index < 0) return 0;
    for (size_t i = 0; i < UNITS; i++) {
        if (slice_equals_text(profile_slice(profile, profile->value_types[index].unit), units[i].unit))
            return units[i].decimals;
    }
    return 0;
}

static void append_value(struct buffer *out, int64_t value, unsigned decimals)
{
    uint64_t size = value < 0 ? 0 - (uint64_t)value : (uint64_t)value, power = 1;
    for (unsigned i = 0; i < decimals; i++) power *= 10;
    buffer_append_format(out, " %s%" PRIu64, value < 0 ? "-" : "", size / power);
    uint64_t rest = size % power;
    if (rest != 0) buffer_append_byte(out, '.');
    for (; rest != 0; rest %= power) {
        power /= 10;
        buffer_append_byte(out, (uint8_t)('0' + rest / power));
    }
    buffer_append_byte(out, '\n');
}

/* Different stacks may have equal lines. Such lines are neighbours after sorting, and are written as one. */
static void write_lines(struct encoder *encoder, struct buffer *out)
{
    size_t start = out->size;
    unsigned decimals = decimals_of(encoder->profile, profile_value_index(encoder->profile, ""));
    for (size_t i = 0; i < encoder->lines.count; i++) {
        encoder->lines.items[i].text = encoder->text.data + encoder->lines.items[i].offset;
    }
    if (encoder->lines.count > 1)
        qsort(encoder->lines.items, encoder->lines.count, sizeof(*encoder->lines.items), compare_lines);
    for (size_t i = 0; i < encoder->lines.count;) {
        const struct text_line *line = &encoder->lines.items[i];
        int64_t value = 0;
        for (; i < encoder->lines.count && compare_lines(line, &encoder->lines.items[i]) == 0; i++) {
            value = profile_add_values(value, encoder->lines.items[i].value);
        }
        if (value == 0) continue;
        buffer_append(out, line->text, line->size);
        append_value(out, value, decimals);
    }
    if (out->size == start) buffer_append_text(out, NO_SAMPLES "\n");
}

/* Writes the default value of each stack: sums equal stacks, sorts by stack, leaves out zeros. An inlined function is a
 * separate frame with its mark. A location without a function is named by its file, "[libc.so.6]", or else by its
 * address; a stack without frames is "[unknown]". A profile without values is a comment: a file of no bytes is of no
 * format. Characters that would break the line are replaced: ';' by ':', control characters by a blank, bytes that are
 * not UTF-8 by '?'. */
static enum status collapsed_encode(const struct profile *profile, struct buffer *out, struct error *error)
{
    enum status status = profile_failed(profile, error);
    if (status != STATUS_OK) return status;
    struct encoder encoder = {.profile = profile};
    buffer_init(&encoder.text, COLLAPSED_BYTES_MAX);
    if (add_lines(&encoder))
        write_lines(&encoder, out);
    else
        status = STATUS_NO_MEMORY;
    if (out->failed) status = STATUS_NO_MEMORY;
    buffer_fini(&encoder.text);
    free(encoder.sums);
    free(encoder.frames);
    free(encoder.lines.items);
    if (encoder.too_deep) {
        return error_set(error, STATUS_TOO_LARGE, 0, "a stack of more than %d frames", COLLAPSED_DEPTH_MAX);
    }
    if (status != STATUS_OK) return error_set(error, status, 0, "not enough memory for the collapsed stacks");
    return STATUS_OK;
}

const struct format format_collapsed = {
    .name = "collapsed",
    .suffixes = {".collapsed", ".folded"},
    .detect = collapsed_detect,
    .decode = collapsed_decode,
    .encode = collapsed_encode,
    .keeps = KEEPS_ANY_UNIT | KEEPS_NEGATIVES | KEEPS_INLINED,
    .needs_full_names = true,
};
