/* The kind of profiles that a query is about: the one that its parameter "type" names, or the most usual one that its
 * chunks have.  SPDX-License-Identifier: MIT */
#include "query/kind_choice.h"

#include <stdlib.h>
#include <string.h>

enum { COMBINATIONS_MAX = 1024, KINDS_MAX = 512, NAMES_SHOWN_MAX = 20 };

/* A list of kinds that some chunks have: the columns of one sort of profile. */
struct combination {
    size_t start, size; /* part of kind_list.text */
};
struct kind_list {
    struct buffer text; /* combinations, each followed by a newline */
    struct combination items[COMBINATIONS_MAX];
    size_t count;
};

static bool add_combination(void *context, const struct store_value *value)
{
    struct kind_list *list = context;
    if (value->value.size == 0) return true; /* chunks without values, such as traces that are not read */
    if (list->count == COMBINATIONS_MAX) return false;
    list->items[list->count++] = (struct combination){list->text.size, value->value.size};
    buffer_append(&list->text, value->value.data, value->value.size);
    buffer_append_byte(&list->text, '\n');
    return true;
}

static struct slice kinds_at(const struct kind_list *list, size_t i)
{
    return slice_of(list->text.data + list->items[i].start, list->items[i].size);
}

/* --- What fits ---------------------------------------------------------------------------------------------------- */

enum fit { FITS_NOT, FITS_NAME, FITS_TYPE, FITS_EXACTLY, FITS_WITH_UNIT };

/* Returns how well WANTED names KIND: "mutex" its default type, "delay", "mutex:delay", "mutex:delay:nanoseconds". */
static enum fit fit_of(const struct kind *kind, struct slice wanted)
{
    struct buffer name;
    enum fit fit = FITS_NOT;
    buffer_init(&name, KINDS_TEXT_MAX);
    kind_append_name(kind, &name);
    if (slice_equal(wanted, kind->name) && kind->is_default) fit = FITS_NAME;
    if (slice_equal(wanted, kind->type)) fit = FITS_TYPE;
    if (slice_equal(wanted, buffer_slice(&name))) fit = FITS_EXACTLY;
    buffer_append_byte(&name, ':');
    buffer_append(&name, kind->unit.data, kind->unit.size);
    if (slice_equal(wanted, buffer_slice(&name))) fit = FITS_WITH_UNIT;
    buffer_fini(&name);
    return fit;
}

/* The preference among the default kinds of a service: CPU time, other times, then the rest. */
static unsigned rank_of(const struct kind *kind)
{
    if (slice_equals_text(kind->name, "cpu")) return 3;
    if (slice_equals_text(kind->name, "wall")) return 2;
    return kind->rule == KIND_SUM;
}

/* The best kind for WANTED. */
struct best {
    struct kind kind;
    enum fit fit;
    bool is_ambiguous;
};

static void consider(struct best *best, const struct kind *kind, enum fit fit)
{
    bool is_better = fit > best->fit;
    if (fit == best->fit && fit != FITS_NOT && !kind_is_same(kind, &best->kind)) {
        bool is_named = fit >= FITS_TYPE;
        is_better = !is_named && rank_of(kind) > rank_of(&best->kind);
        best->is_ambiguous |= is_named;
    }
    if (!is_better) return;
    if (fit > best->fit) best->is_ambiguous = false;
    best->kind = *kind;
    best->fit = fit;
}

static struct best find_best(const struct kind_list *list, struct slice wanted)
{
    struct best best = {0};
    for (size_t i = 0; i < list->count; i++) {
        struct slice kinds = kinds_at(list, i);
        struct kind kind;
        while (kinds_next(&kinds, &kind)) {
            enum fit fit = wanted.size ? fit_of(&kind, wanted) : kind.is_default ? FITS_NAME : FITS_NOT;
            consider(&best, &kind, fit);
        }
    }
    return best;
}

/* --- The answer --------------------------------------------------------------------------------------------------- */

/* Appends the names of the kinds in LIST, each once, as far as there is room in an error. */
static void append_names(const struct kind_list *list, struct slice wanted, struct buffer *out)
{
    struct kind known[NAMES_SHOWN_MAX], kind;
    size_t count = 0;
    for (size_t i = 0; i < list->count; i++) {
        struct slice kinds = kinds_at(list, i);
        while (kinds_next(&kinds, &kind) && count < NAMES_SHOWN_MAX) {
            size_t k = 0;
            while (k < count && !kind_is_same(&known[k], &kind)) k++;
            if (k < count || (wanted.size && fit_of(&kind, wanted) == FITS_NOT)) continue;
            if (count > 0) buffer_append_text(out, ", ");
            kind_append_name(&kind, out);
            known[count++] = kind;
        }
    }
}

static enum status say_no_kind(const struct kind_list *list, struct slice wanted, bool is_ambiguous,
                               struct error *error)
{
    struct buffer names;
    buffer_init(&names, KINDS_TEXT_MAX);
    append_names(list, is_ambiguous ? wanted : slice_of(NULL, 0), &names);
    struct slice text = buffer_slice(&names);
    enum status status = error_set(error, STATUS_UNSUPPORTED, 0,
                                   is_ambiguous ? "type=%.*s names several kinds of profiles; choose one of %.*s"
                                                : "the profiles have no values of type %.*s; choose one of %.*s",
                                   SLICE_ARGUMENTS(wanted), SLICE_ARGUMENTS(text));
    buffer_fini(&names);
    return status;
}

static void copy_text(char *target, struct slice text)
{
    size_t size = text.size < STORE_NAME_BYTES_MAX ? text.size : STORE_NAME_BYTES_MAX;
    if (size) (void)memcpy(target, text.data, size);
    target[size] = '\0';
}

static struct kind kind_of_choice(const struct kind_choice *choice)
{
    return (struct kind){
        .name = slice_of_text(choice->name), .type = slice_of_text(choice->type), .unit = slice_of_text(choice->unit)};
}

/* Lists the combinations that have the chosen kind, for the store. */
static void list_combinations(const struct kind_list *list, struct kind_choice *choice)
{
    const struct kind chosen = kind_of_choice(choice);
    buffer_clear(&choice->combinations);
    for (size_t i = 0; i < list->count; i++) {
        struct slice whole = kinds_at(list, i), kinds = whole;
        struct kind kind;
        bool has_kind = false;
        while (!has_kind && kinds_next(&kinds, &kind)) has_kind = kind_is_same(&kind, &chosen);
        if (!has_kind) continue;
        if (kind.rule != KIND_SUM) choice->rule = kind.rule;
        choice->needs_series |= kinds_need_series(whole);
        buffer_append(&choice->combinations, whole.data, whole.size + 1); /* with the newline */
    }
}

static enum status choose(struct kind_choice *choice, const struct kind_list *list, struct error *error)
{
    struct slice wanted = choice->wanted;
    if (!choice->is_chosen) {
        struct best best = find_best(list, wanted);
        if (best.fit == FITS_NOT || best.is_ambiguous) return say_no_kind(list, wanted, best.is_ambiguous, error);
        copy_text(choice->name, best.kind.name);
        copy_text(choice->type, best.kind.type);
        copy_text(choice->unit, best.kind.unit);
        choice->is_chosen = true;
    }
    list_combinations(list, choice);
    return choice->combinations.failed ? error_set(error, STATUS_NO_MEMORY, 0, "not enough memory") : STATUS_OK;
}

/* Reads the combinations of the chunks that CHUNKS finds. *RET_LIST is to be freed, NULL without memory. */
static enum status read_combinations(struct store *store, const struct store_query *chunks, struct kind_list **ret_list,
                                     struct error *error)
{
    struct kind_list *list = *ret_list = calloc(1, sizeof(*list));
    if (!list) return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory");
    buffer_init(&list->text, COMBINATIONS_MAX * (KINDS_TEXT_MAX + 1));
    enum status status = store_each_value(store, chunks, STORE_KINDS, add_combination, list, error);
    if (status == STATUS_OK && list->text.failed) status = error_set(error, STATUS_NO_MEMORY, 0, "not enough memory");
    return status;
}

static void kind_list_free(struct kind_list *list)
{
    if (list) buffer_fini(&list->text);
    free(list);
}

enum status kind_choose(struct kind_choice *choice, struct store *store, struct store_query *chunks,
                        struct error *error)
{
    struct kind_list *list;
    if (chunks->kinds.size) return STATUS_OK;
    if (choice->combinations.maximum == 0) buffer_init(&choice->combinations, COMBINATIONS_MAX * (KINDS_TEXT_MAX + 1));
    enum status status = read_combinations(store, chunks, &list, error);
    if (status == STATUS_OK && list->count == 0) status = error_set(error, STATUS_NOT_FOUND, 0, "no chunk matches");
    if (status == STATUS_OK) status = choose(choice, list, error);
    chunks->kinds = buffer_slice(&choice->combinations);
    if (status == STATUS_OK && chunks->kinds.size == 0)
        status = error_set(error, STATUS_NOT_FOUND, 0, "no chunk of that type matches");
    kind_list_free(list);
    return status;
}

void kind_write_json(const struct kind_choice *choice, struct json_writer *json)
{
    const struct kind kind = kind_of_choice(choice);
    struct buffer name;
    buffer_init(&name, KINDS_TEXT_MAX);
    kind_append_name(&kind, &name);
    json_begin_object(json);
    json_member_string(json, "name", buffer_slice(&name));
    json_member_text(json, "type", choice->type);
    json_member_text(json, "unit", choice->unit);
    json_member_text(json, "rule", kind_rule_name(choice->rule));
    if (choice->needs_series) {
        json_member_u64(json, "profiles", choice->profile_count);
        json_member_u64(json, "series", choice->series_count);
        json_member_u64(json, "restarts", choice->restart_count);
    }
    json_end_object(json);
    buffer_fini(&name);
}

void kind_append_header(const struct kind_choice *choice, struct buffer *out)
{
    struct buffer text;
    buffer_init(&text, KINDS_TEXT_MAX);
    struct json_writer json = json_writer_of(&text);
    kind_write_json(choice, &json);
    buffer_append_url_text(out, buffer_slice(&text));
    buffer_fini(&text);
}

/* --- The list of kinds -------------------------------------------------------------------------------------------- */

/* Sets KINDS to those of LIST, each once. Returns their number. */
static size_t distinct_kinds(const struct kind_list *list, struct kind kinds[KINDS_MAX])
{
    size_t count = 0;
    for (size_t i = 0; i < list->count; i++) {
        struct slice text = kinds_at(list, i);
        struct kind kind;
        while (kinds_next(&text, &kind)) {
            size_t k = 0;
            while (k < count && !kind_is_same(&kinds[k], &kind)) k++;
            if (k == KINDS_MAX) return count;
            if (k == count) kinds[count++] = kind;
            if (kind.rule != KIND_SUM) kinds[k].rule = kind.rule;
        }
    }
    return count;
}

static void write_kind(struct json_writer *json, const struct kind *kind, const struct kind *shown)
{
    struct buffer name;
    buffer_init(&name, KINDS_TEXT_MAX);
    kind_append_name(kind, &name);
    json_begin_object(json);
    json_member_string(json, "name", buffer_slice(&name));
    json_member_string(json, "type", kind->type);
    json_member_string(json, "unit", kind->unit);
    json_member_text(json, "rule", kind_rule_name(kind->rule));
    json_member_bool(json, "is_default", kind_is_same(kind, shown));
    json_end_object(json);
    buffer_fini(&name);
}

enum status kinds_write_json(struct store *store, const struct store_query *chunks, struct buffer *out,
                             struct error *error)
{
    struct kind_list *list;
    struct kind kinds[KINDS_MAX];
    struct json_writer json = json_writer_of(out);
    enum status status = read_combinations(store, chunks, &list, error);
    if (status == STATUS_OK) {
        size_t count = distinct_kinds(list, kinds);
        const struct best best = find_best(list, slice_of(NULL, 0));
        json_begin_object(&json);
        json_begin_array_member(&json, "types");
        for (size_t i = 0; i < count; i++) write_kind(&json, &kinds[i], &best.kind);
        json_end_array(&json);
        json_end_object(&json);
    }
    kind_list_free(list);
    return status;
}

void kind_choice_fini(struct kind_choice *choice)
{
    buffer_fini(&choice->combinations);
}
