/* Writes callgrind's format, for KCachegrind: what the code of each function costs, line by line, and what the
 * functions that it calls cost from there.
 *
 * Costs that a file stated are written as they are. The costs of samples are summed up along the tree of stacks, so
 * that each stack is entered once. A call that is part of a recursion counts where it is entered first. Readers take
 * the sum of all calls of a function for its inclusive costs. Where others call a function with which stacks begin,
 * too, because they are cut or belong to a thread, "(root)" calls it for the stacks in which no other function does.
 * SPDX-License-Identifier: MIT */
#include "format/text/callgrind.h"

#include "base/array.h"
#include "base/hash.h"
#include "format/common/callgrind_text.h"
#include "format/common/frame_name.h"
#include "profile/stated_costs.h"

#include <inttypes.h>
#include <stdlib.h>

struct written_function {
    struct string_id object, file, name; /* strings of the profile */
    uint64_t address;                    /* first address */
    int64_t line;
    uint32_t first_cost, last_cost; /* plus one; 0: none */
    bool is_called;
    bool is_root; /* "(root)" */
};

/* The cost of the code of a place, or of one function that is called from there. */
struct written_cost {
    uint32_t function, callee; /* CALLEE plus one; 0: its own cost */
    struct string_id file;     /* file of the place, which differs from that of the function in inlined code */
    uint64_t address;
    int64_t line;
    int64_t call_count; /* 0: not known */
    uint32_t next;      /* number of the next cost of the function, plus one */
    uint32_t entered;   /* times that it is part of the stack at hand */
};

struct encoder {
    const struct profile *profile;
    struct buffer *out;
    struct callgrind_text text;
    size_t value_count;
    uint32_t columns[CALLGRIND_EVENTS_MAX]; /* value types as they are written: the default one first */
    int64_t *sums; /* sums by stack and column: of the stack itself, then with all that it calls */
    uint32_t *first_child, *next_sibling; /* index for each stack */
    INDEXED_ARRAY_OF(struct written_function) functions;
    INDEXED_ARRAY_OF(struct written_cost) costs;
    ARRAY_OF(int64_t) values;      /* values by cost and column */
    ARRAY_OF(uint32_t) path;       /* costs that the stack at hand has entered */
    uint32_t outermost, root_cost; /* function with which the stack at hand begins, and its call by "(root)" */
    uint32_t outermost_entered;    /* times that another function calls it in the stack at hand */
    bool has_addresses;
    enum status status;
};

/* --- Functions and costs ------------------------------------------------------------------------------------------ */

static bool function_equal(const void *context, uint32_t index, const void *key)
{
    const struct written_function *a = &((const struct encoder *)context)->functions.items[index], *b = key;
    return a->object.index == b->object.index && a->file.index == b->file.index && a->name.index == b->name.index &&
           a->is_root == b->is_root;
}

/* INDEX_NONE without memory. */
static uint32_t number_function(struct encoder *encoder, const struct written_function *function)
{
    uint64_t hash = hash_mix((uint64_t)function->object.index << 32 | function->file.index, function->name.index);
    uint32_t known = index_table_find(&encoder->functions.index, hash, function_equal, encoder, function);
    if (known != INDEX_NONE) return known;
    if (!INDEXED_ARRAY_PUSH(&encoder->functions, PROFILE_ENTITIES_MAX, hash, *function)) {
        encoder->status = STATUS_NO_MEMORY;
        return INDEX_NONE;
    }
    return (uint32_t)encoder->functions.count - 1;
}

static bool cost_equal(const void *context, uint32_t index, const void *key)
{
    const struct written_cost *a = &((const struct encoder *)context)->costs.items[index], *b = key;
    return a->function == b->function && a->callee == b->callee && a->file.index == b->file.index &&
           a->address == b->address && a->line == b->line;
}

static void append_cost_to_function(struct encoder *encoder, uint32_t number)
{
    struct written_function *function = &encoder->functions.items[encoder->costs.items[number].function];
    if (function->last_cost)
        encoder->costs.items[function->last_cost - 1].next = number + 1;
    else
        function->first_cost = number + 1;
    function->last_cost = number + 1;
}

/* INDEX_NONE without memory. */
static uint32_t number_cost(struct encoder *encoder, const struct written_cost *cost)
{
    uint64_t hash = hash_mix(hash_mix((uint64_t)cost->function << 32 | cost->callee, cost->address),
                             (uint64_t)cost->line << 32 ^ cost->file.index);
    uint32_t known = index_table_find(&encoder->costs.index, hash, cost_equal, encoder, cost);
    if (known != INDEX_NONE) return known;
    uint32_t number = (uint32_t)encoder->costs.count;
    size_t values = (number + (size_t)1) * encoder->value_count;
    if (!array_reserve(&encoder->values.items, &encoder->values.capacity, values, sizeof(*encoder->values.items),
                       SIZE_MAX / sizeof(*encoder->values.items)) ||
        !INDEXED_ARRAY_PUSH(&encoder->costs, PROFILE_ENTITIES_MAX, hash, *cost)) {
        encoder->status = STATUS_NO_MEMORY;
        return INDEX_NONE;
    }
    memset(encoder->values.items + number * encoder->value_count, 0,
           encoder->value_count * sizeof(*encoder->values.items));
    append_cost_to_function(encoder, number);
    return number;
}

/* One function of a stack, at the place where it was executing or calling. */
struct frame {
    uint32_t function;
    struct string_id file;
    uint64_t address;
    int64_t line;
};

/* Line LINE_INDEX of LOCATION; one without lines is a function without a name. */
static struct frame frame_of(struct encoder *encoder, const struct location *location, uint32_t line_index)
{
    const struct profile *profile = encoder->profile;
    struct line line = {0};
    if (location->line_count > 0) line = profile_lines(profile, location)[line_index];
    const struct function *function = profile_function(profile, line.function);
    struct written_function written = {
        .object = profile_mapping(profile, location->mapping)->file_name,
        .file = function->file_name,
        .name = frame_name_of_function(function),
        .address = location->address,
    };
    int64_t at = line.line > 0 ? line.line : 0;
    written.line = function->start_line > 0 ? function->start_line : at;
    return (struct frame){number_function(encoder, &written), written.file, location->address, at};
}

static void add_values(struct encoder *encoder, uint32_t cost, const int64_t *values)
{
    int64_t *sums = encoder->values.items + cost * encoder->value_count;
    for (size_t i = 0; i < encoder->value_count; i++) sums[i] = profile_add_values(sums[i], values[i]);
}

static void subtract_values(struct encoder *encoder, uint32_t cost, const int64_t *values)
{
    int64_t *sums = encoder->values.items + cost * encoder->value_count;
    for (size_t i = 0; i < encoder->value_count; i++) sums[i] = profile_subtract_values(sums[i], values[i]);
}

/* Begins the stacks of FUNCTION, which cost VALUES. */
static void enter_root(struct encoder *encoder, uint32_t function, const int64_t *values)
{
    struct written_function root = {.is_root = true};
    struct written_cost cost = {.function = number_function(encoder, &root), .callee = function + 1};
    encoder->outermost = function;
    encoder->outermost_entered = 0;
    encoder->root_cost = encoder->status == STATUS_OK ? number_cost(encoder, &cost) : INDEX_NONE;
    if (encoder->root_cost != INDEX_NONE) add_values(encoder, encoder->root_cost, values);
}

static void enter_call(struct encoder *encoder, const struct frame *caller, uint32_t callee, const int64_t *values)
{
    struct written_cost cost = {.function = caller->function,
                                .callee = callee + 1,
                                .file = caller->file,
                                .address = caller->address,
                                .line = caller->line};
    if (encoder->status != STATUS_OK) return;
    uint32_t number = number_cost(encoder, &cost);
    if (number == INDEX_NONE) return;
    if (!ARRAY_PUSH(&encoder->path, SIZE_MAX / sizeof(number), number)) {
        encoder->status = STATUS_NO_MEMORY;
        return;
    }
    bool is_outermost = callee == encoder->outermost && caller->function != callee;
    if (encoder->costs.items[number].entered++ == 0) add_values(encoder, number, values);
    if (is_outermost && encoder->outermost_entered++ == 0) subtract_values(encoder, encoder->root_cost, values);
    if (caller->function != callee) encoder->functions.items[callee].is_called = true;
}

static void leave_call(struct encoder *encoder)
{
    struct written_cost *cost = &encoder->costs.items[encoder->path.items[--encoder->path.count]];
    cost->entered--;
    if (cost->callee == encoder->outermost + 1 && cost->function != encoder->outermost) encoder->outermost_entered--;
}

/* --- The tree of stacks ------------------------------------------------------------------------------------------- */

static int64_t *sums_of(const struct encoder *encoder, uint32_t stack)
{
    return encoder->sums + (size_t)stack * encoder->value_count;
}

static const struct location *location_at(const struct encoder *encoder, uint32_t stack)
{
    return profile_location(encoder->profile, profile_stack(encoder->profile, (struct stack_id){stack}).location);
}

static struct frame innermost_of(struct encoder *encoder, uint32_t stack)
{
    return frame_of(encoder, location_at(encoder, stack), 0);
}

static void add_samples(struct encoder *encoder)
{
    const struct profile *profile = encoder->profile;
    for (size_t i = 0; i < profile->samples.count; i++) {
        int64_t *sums = sums_of(encoder, profile->samples.stack[i].index);
        const int64_t *values = profile_sample_values(profile, i);
        for (size_t k = 0; k < encoder->value_count; k++)
            sums[k] = profile_add_values(sums[k], values[encoder->columns[k]]);
    }
}

static bool has_cost(const struct encoder *encoder, const int64_t *values)
{
    for (size_t i = 0; i < encoder->value_count; i++) {
        if (values[i] != 0) return true;
    }
    return false;
}

static void add_own_costs(struct encoder *encoder)
{
    const struct profile *profile = encoder->profile;
    struct written_function unknown = {0};
    for (uint32_t i = 0; i < profile_stack_limit(profile) && encoder->status == STATUS_OK; i++) {
        if (!profile_is_stack(profile, i) || !has_cost(encoder, sums_of(encoder, i))) continue;
        struct frame frame = {0};
        if (i == 0)
            frame.function = number_function(encoder, &unknown);
        else
            frame = innermost_of(encoder, i);
        if (encoder->status != STATUS_OK) return;
        struct written_cost cost = {
            .function = frame.function, .file = frame.file, .address = frame.address, .line = frame.line};
        uint32_t number = number_cost(encoder, &cost);
        if (number != INDEX_NONE) add_values(encoder, number, sums_of(encoder, i));
    }
}

/* Adds the costs of callees to each stack. A parent's index is below its children's. */
static void sum_up(struct encoder *encoder)
{
    const struct profile *profile = encoder->profile;
    for (uint32_t i = profile_stack_limit(profile); i-- > 1;) {
        if (!profile_is_stack(profile, i)) continue;
        uint32_t parent = profile_parent_at(profile, i);
        encoder->next_sibling[i] = encoder->first_child[parent];
        encoder->first_child[parent] = i;
        if (parent == 0) continue;
        int64_t *into = sums_of(encoder, parent);
        for (size_t k = 0; k < encoder->value_count; k++) into[k] = profile_add_values(into[k], sums_of(encoder, i)[k]);
    }
}

/* The calls that lead into STACK: from its caller, and from each of its functions into the inlined one. */
static void enter_stack(struct encoder *encoder, uint32_t stack)
{
    const struct location *location = location_at(encoder, stack);
    uint32_t parent = profile_parent_at(encoder->profile, stack),
             count = location->line_count ? location->line_count : 1;
    struct frame caller = {0};
    if (parent != 0) caller = innermost_of(encoder, parent);
    for (uint32_t i = count; i-- > 0 && encoder->status == STATUS_OK;) {
        struct frame frame = frame_of(encoder, location, i);
        if (encoder->status != STATUS_OK) return;
        if (parent != 0 || i + 1 < count)
            enter_call(encoder, &caller, frame.function, sums_of(encoder, stack));
        else
            enter_root(encoder, frame.function, sums_of(encoder, stack));
        caller = frame;
    }
}

static void leave_stack(struct encoder *encoder, uint32_t stack)
{
    const struct location *location = location_at(encoder, stack);
    uint32_t count = location->line_count ? location->line_count : 1;
    if (profile_parent_at(encoder->profile, stack) == 0) count--;
    for (; count > 0 && encoder->status == STATUS_OK; count--) leave_call(encoder);
}

static void walk(struct encoder *encoder)
{
    uint32_t at = encoder->first_child[0];
    while (at != 0 && encoder->status == STATUS_OK) {
        enter_stack(encoder, at);
        if (encoder->first_child[at] != 0) {
            at = encoder->first_child[at];
            continue;
        }
        leave_stack(encoder, at);
        while (at != 0 && encoder->next_sibling[at] == 0) {
            at = profile_parent_at(encoder->profile, at);
            if (at != 0) leave_stack(encoder, at);
        }
        if (at != 0) at = encoder->next_sibling[at];
    }
}

/* --- Stated costs ------------------------------------------------------------------------------------------------- */

static uint32_t number_stated(struct encoder *encoder, uint32_t index)
{
    const struct profile *profile = encoder->profile;
    const struct stated_function *stated = &profile->stated->functions.items[index];
    const struct function *function = profile_function(profile, stated->function);
    const struct location *entry = profile_location(profile, stated->entry);
    struct written_function written = {.object = profile_mapping(profile, stated->mapping)->file_name,
                                       .file = function->file_name,
                                       .name = frame_name_of_function(function),
                                       .address = entry->address,
                                       .line = function->start_line};
    if (written.line == 0 && entry->line_count > 0) written.line = profile_lines(profile, entry)[0].line;
    return number_function(encoder, &written);
}

/* Adds the values of the functions of COST at LOCATION: an own cost, or COUNT calls. */
static void add_stated(struct encoder *encoder, struct written_cost cost, struct location_id location,
                       const struct stated_values *stated_values, int64_t count)
{
    const struct profile *profile = encoder->profile;
    const struct location *place = profile_location(profile, location);
    struct line line = {0};
    if (place->line_count > 0) line = profile_lines(profile, place)[0];
    cost.file = profile_function(profile, line.function)->file_name;
    cost.address = place->address;
    cost.line = line.line > 0 ? line.line : 0;
    int64_t values[CALLGRIND_EVENTS_MAX];
    uint32_t number = number_cost(encoder, &cost);
    if (number == INDEX_NONE) return;
    for (size_t i = 0; i < encoder->value_count; i++)
        values[i] = stated_value(profile->stated, stated_values, encoder->columns[i]);
    add_values(encoder, number, values);
    struct written_cost *written = &encoder->costs.items[number];
    written->call_count = profile_add_values(written->call_count, count);
}

static void add_all_stated(struct encoder *encoder)
{
    const struct stated_costs *stated = encoder->profile->stated;
    uint32_t *written = calloc(stated->functions.count + 1, sizeof(*written));
    if (!written) encoder->status = STATUS_NO_MEMORY;
    for (uint32_t i = 0; i < stated->functions.count && encoder->status == STATUS_OK; i++)
        written[i] = number_stated(encoder, i);
    for (size_t i = 0; i < stated->places.count && encoder->status == STATUS_OK; i++) {
        const struct stated_place *place = &stated->places.items[i];
        struct written_cost cost = {.function = written[place->function]};
        add_stated(encoder, cost, place->location, &place->values, 0);
    }
    for (size_t i = 0; i < stated->calls.count && encoder->status == STATUS_OK; i++) {
        const struct stated_call *call = &stated->calls.items[i];
        struct written_cost cost = {.function = written[call->caller], .callee = written[call->callee] + 1};
        add_stated(encoder, cost, call->location, &call->values, call->count);
    }
    free(written);
}

/* --- Writing ------------------------------------------------------------------------------------------------------ */

/* The default value is the first event: the one that KCachegrind shows. */
static void choose_columns(struct encoder *encoder)
{
    int chosen = profile_value_index(encoder->profile, "");
    size_t count = 0;
    if (chosen >= 0) encoder->columns[count++] = (uint32_t)chosen;
    for (uint32_t i = 0; i < encoder->value_count; i++) {
        if ((int)i != chosen) encoder->columns[count++] = i;
    }
}

/* A blank would begin another event, and each event needs a name. */
static void append_word(struct buffer *out, struct slice word)
{
    if (word.size == 0) buffer_append_text(out, "value");
    for (size_t i = 0; i < word.size; i++) buffer_append_byte(out, word.data[i] <= ' ' ? '_' : word.data[i]);
}

static void write_header(struct encoder *encoder)
{
    const struct profile *profile = encoder->profile;
    buffer_append_text(encoder->out,
                       "# callgrind format\nversion: 1\ncreator: offbeat " OFFBEAT_VERSION "\npositions:");
    buffer_append_text(encoder->out, encoder->has_addresses ? " instr line\nevents:" : " line\nevents:");
    if (encoder->value_count == 0) buffer_append_text(encoder->out, " samples");
    for (size_t i = 0; i < encoder->value_count; i++) {
        const struct value_type *type = &profile->value_types[encoder->columns[i]];
        struct slice unit = profile_slice(profile, type->unit);
        buffer_append_byte(encoder->out, ' ');
        append_word(encoder->out, profile_slice(profile, type->type));
        if (unit.size == 0 || slice_equals_text(unit, "count")) continue;
        buffer_append_byte(encoder->out, '(');
        append_word(encoder->out, unit);
        buffer_append_byte(encoder->out, ')');
    }
    buffer_append_byte(encoder->out, '\n');
}

/* Control characters would break the line, and readers do not see a name of blanks. */
static void append_name(struct encoder *encoder, const char *key, enum callgrind_kind kind, struct string_id name)
{
    struct slice text = profile_slice(encoder->profile, name);
    struct buffer clean = {.maximum = PROFILE_STRING_BYTES_MAX};
    bool is_blank = true;
    for (size_t i = 0; i < text.size; i++) {
        is_blank &= text.data[i] <= ' ';
        buffer_append_byte(&clean, text.data[i] < ' ' ? ' ' : text.data[i]);
    }
    callgrind_append_name(&encoder->text, key, kind, is_blank ? slice_of_text("???") : buffer_slice(&clean));
    if (clean.failed) encoder->status = STATUS_NO_MEMORY;
    buffer_fini(&clean);
}

static void append_place(struct encoder *encoder, uint64_t address, int64_t line)
{
    if (encoder->has_addresses) buffer_append_format(encoder->out, "0x%" PRIx64 " ", address);
    buffer_append_format(encoder->out, "%" PRId64, line);
}

/* Readers take the size of a number first: the least one of 64 bits has none. */
static void append_value(struct encoder *encoder, int64_t value)
{
    buffer_append_format(encoder->out, " %" PRId64, value == INT64_MIN ? -INT64_MAX : value);
}

/* FILE: where the lines before are; it is changed to that of this cost. */
static void write_cost(struct encoder *encoder, const struct written_function *function, uint32_t number,
                       struct string_id *file)
{
    const struct written_cost *cost = &encoder->costs.items[number];
    if (cost->file.index != file->index)
        append_name(encoder, cost->file.index == function->file.index ? "fe" : "fi", CALLGRIND_FILE, cost->file);
    *file = cost->file;
    if (cost->callee) {
        const struct written_function *callee = &encoder->functions.items[cost->callee - 1];
        if (callee->object.index != function->object.index)
            append_name(encoder, "cob", CALLGRIND_OBJECT, callee->object);
        append_name(encoder, "cfi", CALLGRIND_FILE, callee->file);
        append_name(encoder, "cfn", CALLGRIND_FUNCTION, callee->name);
        /* An unknown number is not 0: callgrind_annotate takes the costs of no call for the function's own. */
        buffer_append_format(encoder->out, "calls=%" PRId64 " ", cost->call_count > 0 ? cost->call_count : 1);
        append_place(encoder, callee->address, callee->line);
        buffer_append_byte(encoder->out, '\n');
    }
    append_place(encoder, cost->address, cost->line);
    for (size_t i = 0; i < encoder->value_count; i++)
        append_value(encoder, encoder->values.items[number * encoder->value_count + i]);
    buffer_append_byte(encoder->out, '\n');
}

/* Returns true if cost NUMBER is a call of "(root)" that no reader needs: its callee has no other callers, or always
 * some. */
static bool is_needless(const struct encoder *encoder, uint32_t number)
{
    const struct written_cost *cost = &encoder->costs.items[number];
    return encoder->functions.items[cost->function].is_root &&
           (!encoder->functions.items[cost->callee - 1].is_called ||
            !has_cost(encoder, encoder->values.items + number * encoder->value_count));
}

/* Leaves "(root)" out where nothing needs it. */
static void drop_needless_calls(struct encoder *encoder, struct written_function *function)
{
    while (function->first_cost != 0 && is_needless(encoder, function->first_cost - 1))
        function->first_cost = encoder->costs.items[function->first_cost - 1].next;
    for (uint32_t at = function->first_cost; at != 0; at = encoder->costs.items[at - 1].next) {
        uint32_t *next = &encoder->costs.items[at - 1].next;
        while (*next != 0 && is_needless(encoder, *next - 1)) *next = encoder->costs.items[*next - 1].next;
    }
}

static void write_functions(struct encoder *encoder)
{
    for (size_t i = 0; i < encoder->functions.count && !encoder->out->failed; i++) {
        struct written_function *function = &encoder->functions.items[i];
        if (function->is_root) drop_needless_calls(encoder, function);
        if (function->is_root && function->first_cost == 0) continue;
        buffer_append_byte(encoder->out, '\n');
        append_name(encoder, "ob", CALLGRIND_OBJECT, function->object);
        append_name(encoder, "fl", CALLGRIND_FILE, function->file);
        if (function->is_root)
            callgrind_append_name(&encoder->text, "fn", CALLGRIND_FUNCTION, slice_of_text("(root)"));
        else
            append_name(encoder, "fn", CALLGRIND_FUNCTION, function->name);
        struct string_id file = function->file;
        for (uint32_t at = function->first_cost; at != 0; at = encoder->costs.items[at - 1].next)
            write_cost(encoder, function, at - 1, &file);
    }
}

static void write_totals(struct encoder *encoder)
{
    const struct profile *profile = encoder->profile;
    buffer_append_text(encoder->out, "\ntotals:");
    for (size_t i = 0; i < encoder->value_count; i++) {
        int64_t sum = 0;
        for (size_t k = 0; k < profile->samples.count; k++)
            sum = profile_add_values(sum, profile_sample_values(profile, k)[encoder->columns[i]]);
        append_value(encoder, sum);
    }
    buffer_append_byte(encoder->out, '\n');
}

/* Adds the costs of the samples, along their stacks. */
static void add_stacks(struct encoder *encoder)
{
    size_t count = profile_stack_limit(encoder->profile);
    encoder->sums = calloc(count * encoder->value_count, sizeof(*encoder->sums));
    encoder->first_child = calloc(count, sizeof(*encoder->first_child));
    encoder->next_sibling = calloc(count, sizeof(*encoder->next_sibling));
    if (!encoder->sums || !encoder->first_child || !encoder->next_sibling) {
        encoder->status = STATUS_NO_MEMORY;
        return;
    }
    add_samples(encoder);
    add_own_costs(encoder);
    sum_up(encoder);
    walk(encoder);
}

static void encode(struct encoder *encoder)
{
    const struct profile *profile = encoder->profile;
    for (uint32_t i = 1; i < profile->locations.count; i++)
        encoder->has_addresses |= profile_location(profile, (struct location_id){i})->address != 0;
    choose_columns(encoder);
    if (profile->stated)
        add_all_stated(encoder);
    else
        add_stacks(encoder);
    if (encoder->status != STATUS_OK) return;
    write_header(encoder);
    write_functions(encoder);
    write_totals(encoder);
}

static void encoder_fini(struct encoder *encoder)
{
    callgrind_text_fini(&encoder->text);
    free(encoder->sums);
    free(encoder->first_child);
    free(encoder->next_sibling);
    free(encoder->functions.items);
    index_table_fini(&encoder->functions.index);
    free(encoder->costs.items);
    index_table_fini(&encoder->costs.index);
    free(encoder->values.items);
    free(encoder->path.items);
}

enum status callgrind_encode(const struct profile *profile, struct buffer *out, struct error *error)
{
    enum status status = profile_failed(profile, error);
    if (status != STATUS_OK) return status;
    if (profile->samples.count > 0 && profile->value_type_count == 0)
        return error_set(error, STATUS_UNSUPPORTED, 0, "there is no sample to be written");
    if (profile->value_type_count > CALLGRIND_EVENTS_MAX)
        return error_set(error, STATUS_UNSUPPORTED, 0, "more than %d values", CALLGRIND_EVENTS_MAX);
    struct encoder encoder = {.profile = profile, .out = out, .value_count = profile->value_type_count};
    callgrind_text_init(&encoder.text, out);
    encode(&encoder);
    status = encoder.status;
    encoder_fini(&encoder);
    if (status == STATUS_OK && !out->failed) return STATUS_OK;
    return error_set(error, STATUS_NO_MEMORY, 0, "larger than %zu bytes, or than memory", out->maximum);
}
