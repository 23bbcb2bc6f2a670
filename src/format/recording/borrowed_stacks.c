/* SPDX-License-Identifier: MIT */
#include "format/recording/borrowed_stacks.h"

#include "base/unsigned.h"
#include "profile/incomplete.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LENDERS_MIN = 8, LENT_MAX = 256 /* stacks of a routine: those with the most time */ };

/* Columns of times in a wall-clock profile. */
enum { PART_CPU, PART_RUNNABLE, PART_BLOCKED, PARTS_MAX };

/* A stack that a routine lends. */
struct lent {
    struct location_id routine;
    struct stack_id stack;
    size_t samples;
    bool is_of_sleep;
    double parts[PARTS_MAX]; /* times come from a file: integers could overflow */
};

struct lending {
    struct profile *profile;
    const struct location_id *routines;
    const bool *borrows;           /* flags by thread */
    const bool *slept;             /* flags by stack */
    size_t first_part, part_count; /* the columns whose sum is the time */
    struct lent *items;            /* stacks by routine, the largest first */
    size_t count;
    size_t samples_left, borrowers_left;
    unsigned pieces; /* into which each part of the open borrower's time is divided; 0: any */
    double phase;    /* 0 to 1; evenly distributed over the borrowers */
    uint64_t ns;
};

static const char *leaf_name(const struct profile *profile, struct stack_id stack)
{
    const struct location *location = &profile->locations.items[profile_stack_location(profile, stack.index)];
    if (location->line_count == 0) return "";
    const struct line *line = &profile->lines.items[location->line_first];
    return profile_c_string(profile, profile->functions.items[line->function.index].name);
}

static bool is_of_code(const struct profile *profile, struct stack_id stack)
{
    return stack.index != 0 && leaf_name(profile, stack)[0] != '[';
}

static const int64_t *parts_of(const struct lending *lending, size_t sample)
{
    return &lending->profile->samples.values[sample * lending->profile->value_type_count + lending->first_part];
}

static int64_t sum_of(const struct lending *lending, const int64_t *parts)
{
    int64_t sum = 0;
    for (size_t i = 0; i < lending->part_count; i++) sum += parts[i];
    return sum;
}

/* --- Lenders ------------------------------------------------------------------------------------------------------ */

static int compare_places(const void *a, const void *b)
{
    const struct lent *first = a, *second = b;
    if (first->routine.index != second->routine.index) return first->routine.index < second->routine.index ? -1 : 1;
    return (first->stack.index > second->stack.index) - (first->stack.index < second->stack.index);
}

static int compare_times(const void *a, const void *b)
{
    const struct lent *first = a, *second = b;
    if (first->routine.index != second->routine.index) return first->routine.index < second->routine.index ? -1 : 1;
    double times[2] = {0};
    for (size_t i = 0; i < PARTS_MAX; i++) {
        times[0] += first->parts[i];
        times[1] += second->parts[i];
    }
    if (times[0] != times[1]) return times[0] > times[1] ? -1 : 1;
    return compare_places(a, b);
}

static void merge_equal(struct lending *lending)
{
    size_t kept = 0;
    for (size_t i = 0; i < lending->count; i++) {
        struct lent *item = &lending->items[i], *last = kept > 0 ? &lending->items[kept - 1] : NULL;
        if (!last || compare_places(last, item) != 0) {
            lending->items[kept++] = *item;
            continue;
        }
        last->samples += item->samples;
        for (size_t part = 0; part < PARTS_MAX; part++) last->parts[part] += item->parts[part];
    }
    lending->count = kept;
}

static bool find_lenders(struct lending *lending)
{
    const struct profile *profile = lending->profile;
    lending->items = calloc(profile->samples.count + 1, sizeof(*lending->items));
    if (!lending->items) return false;
    for (size_t i = 0; i < profile->samples.count; i++) {
        struct location_id routine = lending->routines[profile->samples.thread[i].index];
        if (routine.index == 0 || !is_of_code(profile, profile->samples.stack[i])) continue;
        struct lent *lent = &lending->items[lending->count++];
        struct stack_id stack = profile->samples.stack[i];
        *lent =
            (struct lent){.routine = routine, .stack = stack, .samples = 1, .is_of_sleep = lending->slept[stack.index]};
        for (size_t part = 0; part < lending->part_count; part++)
            lent->parts[part] = (double)parts_of(lending, i)[part];
    }
    qsort(lending->items, lending->count, sizeof(*lending->items), compare_places);
    merge_equal(lending);
    qsort(lending->items, lending->count, sizeof(*lending->items), compare_times);
    return true;
}

static size_t place_of(const struct lending *lending, struct location_id routine)
{
    size_t first = 0, end = lending->count;
    while (first < end) {
        size_t middle = first + (end - first) / 2;
        if (lending->items[middle].routine.index < routine.index)
            first = middle + 1;
        else
            end = middle;
    }
    return first;
}

/* Returns the number of stacks of ROUTINE, and the first; 0 if they have too few samples to stand for others. */
static size_t lenders_of(const struct lending *lending, struct location_id routine, const struct lent **ret_first)
{
    size_t first = place_of(lending, routine), count = 0, samples = 0;
    for (; count < LENT_MAX && first + count < lending->count; count++) {
        if (lending->items[first + count].routine.index != routine.index) break;
        samples += lending->items[first + count].samples;
    }
    *ret_first = &lending->items[first];
    return samples < LENDERS_MIN ? 0 : count;
}

/* --- Borrowers ---------------------------------------------------------------------------------------------------- */

static struct label_set_id labels_of_borrower(struct profile *profile, struct label_set_id before)
{
    enum { LABELS_MAX = 4 };
    struct label labels[LABELS_MAX];
    struct label_set set = profile->label_sets.items[before.index];
    uint32_t count = set.count < LABELS_MAX - 1 ? set.count : LABELS_MAX - 1;
    for (uint32_t i = 0; i < count; i++) labels[i] = profile->labels.items[set.first + i];
    labels[count] = (struct label){.key = profile_text(profile, BORROWED_LABEL),
                                   .text = profile_text(profile, BORROWED_LABEL_VALUE)};
    return profile_add_labels(profile, labels, count + 1);
}

/* Returns TIME in the proportion of UNTIL to ALL, the last time exactly. */
static int64_t part_until(int64_t time, double until, double all)
{
    if (all <= 0) return 0;
    return until < all ? (int64_t)((double)time * (until / all)) : time;
}

/* Does the same in whole pieces. On the average of all phases it is equal. */
static int64_t pieces_until(const struct lending *lending, int64_t time, double until, double all)
{
    if (until >= all || lending->pieces == 0) return part_until(time, until, all);
    double pieces = floor(until / all * lending->pieces + lending->phase);
    return pieces < lending->pieces ? (int64_t)((double)time * (pieces / lending->pieces)) : time;
}

/* Returns the part of its TIME that a borrower gives to the stack that ends at UNTIL of ALL, less the time that it has
 * GIVEN before. */
static int64_t next_piece(const struct lending *lending, const int64_t *time, const double *until, const double *all,
                          int64_t *given, int64_t *ret_piece)
{
    for (size_t part = 0; part < lending->part_count; part++) {
        int64_t to = pieces_until(lending, time[part], until[part], all[part]);
        ret_piece[part] = to - given[part];
        given[part] = to;
    }
    return sum_of(lending, ret_piece);
}

/* Many borrowers with many stacks to borrow could be billions of samples. So if not all of COUNT stacks have room, or
 * SAMPLE's time is not worth so many, it has some of them, and other ones than the next borrower. */
static void choose_pieces(struct lending *lending, size_t sample, size_t count)
{
    const double golden = 0.6180339887498949;
    size_t room = lending->samples_left / lending->borrowers_left--;
    int64_t ns = profile_sample_values(lending->profile, sample)[1], period_ns = lending->profile->period;
    size_t worth = period_ns > 0 ? (size_t)(ns / period_ns) + 1 : SIZE_MAX; /* periods that begin in the time */
    size_t pieces = least(room / lending->part_count, worth);
    if (pieces < 2) pieces = 2;
    lending->pieces = count <= least(room, worth) ? 0 : (unsigned)pieces - 1;
    lending->phase += golden - (lending->phase + golden >= 1);
}

static void write_values(const struct lending *lending, int64_t count, const int64_t *parts, int64_t *ret_values)
{
    ret_values[0] = count;
    ret_values[1] = sum_of(lending, parts);
    memcpy(ret_values + lending->first_part, parts, lending->part_count * sizeof(*parts));
}

/* A borrower that was woken waited where it had slept; another one, where it had run. */
static double weight_of(const struct lent *lent, size_t part, bool was_woken)
{
    double blocked = lent->parts[PART_BLOCKED], runnable = lent->parts[PART_RUNNABLE];
    if (part != PART_RUNNABLE) return lent->parts[part];
    if (was_woken) return lent->is_of_sleep ? blocked + runnable : blocked;
    return lent->is_of_sleep || blocked > lent->parts[PART_CPU] ? 0 : runnable;
}

static void borrow(struct lending *lending, size_t sample, const struct lent *lent, size_t count)
{
    struct profile *profile = lending->profile;
    double all[PARTS_MAX] = {0}, until[PARTS_MAX] = {0};
    int64_t time[PARTS_MAX] = {0}, given[PARTS_MAX] = {0};
    int64_t values[PARTS_MAX + 2], piece[PARTS_MAX];
    memcpy(time, parts_of(lending, sample), lending->part_count * sizeof(*time));
    int64_t *own = &profile->samples.values[sample * profile->value_type_count];
    int64_t sum = own[1], counted = own[0], count_given = 0, sum_given = 0;
    /* Waits after sleeps are a separate sample. */
    bool was_woken = lending->part_count == PARTS_MAX && time[PART_CPU] == 0 && time[PART_RUNNABLE] > 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t part = 0; part < lending->part_count; part++) all[part] += weight_of(&lent[i], part, was_woken);
    }
    struct sample borrowed = {.thread = profile->samples.thread[sample], .time_ns = profile->samples.time_ns[sample]};
    borrowed.labels = labels_of_borrower(profile, profile->samples.labels[sample]);
    for (size_t i = 0; i < count && lending->samples_left > 0; i++) {
        for (size_t part = 0; part < lending->part_count; part++) until[part] += weight_of(&lent[i], part, was_woken);
        int64_t ns = next_piece(lending, time, until, all, given, piece);
        if (ns == 0) continue;
        borrowed.stack = lent[i].stack;
        int64_t count_until = part_until(counted, (double)(sum_given + ns), (double)sum);
        write_values(lending, count_until - count_given, piece, values);
        profile_add_sample(profile, &borrowed, values);
        borrowed.time_ns += (uint64_t)ns;
        count_given = count_until;
        sum_given += ns;
        lending->samples_left--;
    }
    for (size_t part = 0; part < lending->part_count; part++) time[part] -= given[part];
    own = &profile->samples.values[sample * profile->value_type_count]; /* it may have moved */
    write_values(lending, counted - count_given, time, own);
    lending->ns += (uint64_t)sum_given;
}

static bool is_borrower(const struct lending *lending, size_t sample)
{
    const struct profile *profile = lending->profile;
    struct stack_id stack = profile->samples.stack[sample];
    return lending->borrows[profile->samples.thread[sample].index] && stack.index != 0 &&
           profile_parent_at(profile, stack.index) != 0 && strcmp(leaf_name(profile, stack), NO_STACK_TOO_SHORT) == 0;
}

/* Removes the borrowers that have given away all their time. */
static void remove_empty(const struct lending *lending, size_t count)
{
    struct profile *profile = lending->profile;
    struct sample_columns *samples = &profile->samples;
    size_t width = profile->value_type_count, kept = 0;
    for (size_t i = 0; i < samples->count; i++) {
        if (i < count && samples->values[i * width + 1] == 0 && is_borrower(lending, i)) continue;
        samples->stack[kept] = samples->stack[i];
        samples->thread[kept] = samples->thread[i];
        samples->labels[kept] = samples->labels[i];
        samples->time_ns[kept] = samples->time_ns[i];
        memmove(&samples->values[kept * width], &samples->values[i * width], width * sizeof(*samples->values));
        kept++;
    }
    samples->count = kept;
}

bool find_short_borrowers(const struct profile *profile, uint64_t ns_max, bool *ret_borrows)
{
    uint64_t *times = calloc(profile->threads.count, sizeof(*times));
    if (!times) return false;
    for (size_t i = 0; i < profile->samples.count; i++) {
        uint64_t *ns = &times[profile->samples.thread[i].index];
        bool has_stack = is_of_code(profile, profile->samples.stack[i]);
        *ns += has_stack ? ns_max : (uint64_t)profile_sample_values(profile, i)[1];
        if (*ns > ns_max) *ns = ns_max;
    }
    for (size_t i = 0; i < profile->threads.count; i++) ret_borrows[i] |= times[i] < ns_max;
    free(times);
    return true;
}

uint64_t borrow_stacks(struct profile *profile, const struct location_id *routines, const bool *borrows,
                       const bool *slept, size_t samples_max)
{
    struct lending lending = {
        .profile = profile, .routines = routines, .borrows = borrows, .slept = slept, .samples_left = samples_max};
    bool has_states = profile->value_type_count > 2;
    lending.first_part = has_states ? 2 : 1;
    lending.part_count = has_states ? PARTS_MAX : 1;
    size_t count = profile->samples.count;
    if (!find_lenders(&lending)) {
        profile->failed = STATUS_NO_MEMORY;
        return 0;
    }
    for (size_t i = 0; i < count; i++) lending.borrowers_left += is_borrower(&lending, i);
    for (size_t i = 0; i < count && lending.samples_left > 0; i++) {
        if (!is_borrower(&lending, i)) continue;
        uint32_t parent = profile_parent_at(profile, profile->samples.stack[i].index);
        struct location_id routine = {profile_stack_location(profile, parent)};
        const struct lent *lent;
        size_t lenders = lenders_of(&lending, routine, &lent);
        choose_pieces(&lending, i, lenders);
        if (lenders > 0) borrow(&lending, i, lent, lenders);
    }
    remove_empty(&lending, count);
    free(lending.items);
    return lending.ns;
}
