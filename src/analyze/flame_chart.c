/* One pass over the samples in the order of time, with a list of the boxes that are open: a frame that the next sample
 * has too stays open, the others are closed. A box's width is known when it is closed; if it is too narrow, it is the
 * last one of the layout, as the boxes inside it were too narrow too, and is taken back.
 * SPDX-License-Identifier: MIT */
#include "analyze/flame_chart.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

enum {
    BOXES_MAX = 1 << 28,
    JITTER = 16,     /* gaps below one of so many parts of a sample are jitter of the clock */
    USUAL_TIMES = 4, /* gaps of so many usual intervals are gaps */
};

/* A sample of the thread: from when to when it is drawn. */
struct interval {
    uint64_t start_ns, end_ns;
    size_t sample;
};

/* The sums left out in a box, each once: the boxes inside a box that is left out do not count. */
struct left_out {
    size_t narrow_count, deep_count;
    int64_t narrow_sum, deep_sum;
};

struct open_box {
    uint32_t box, group;
    struct left_out left_out;
};

struct chart {
    struct flame_layout *layout;
    const struct profile *profile;
    const struct grouping *grouping;
    const struct flame_options *options;
    struct interval *intervals;
    size_t interval_count;
    uint64_t end_ns;       /* end of the samples so far, ns */
    uint64_t limit;        /* narrower boxes are left out */
    struct open_box *open; /* [0] is the root */
    size_t open_count, open_capacity;
    uint32_t *frames; /* groups of the current sample, outermost first */
    size_t frame_count, frame_capacity;
    struct stack_id stack; /* stack of FRAMES */
    bool failed;
};

/* --- Intervals ---------------------------------------------------------------------------------------------------- */

static int compare_intervals(const void *a, const void *b)
{
    const struct interval *left = a, *right = b;
    if (left->start_ns != right->start_ns) return left->start_ns < right->start_ns ? -1 : 1;
    return (left->sample > right->sample) - (left->sample < right->sample);
}

static int compare_numbers(const void *a, const void *b)
{
    uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;
    return (left > right) - (left < right);
}

static bool find_samples(struct chart *chart, struct thread_id thread)
{
    const struct sample_columns *samples = &chart->profile->samples;
    size_t count = 0;
    for (size_t i = 0; i < samples->count; i++) count += samples->thread[i].index == thread.index;
    chart->intervals = calloc(count + 1, sizeof(*chart->intervals));
    if (!chart->intervals) return false;
    bool is_sorted = true;
    for (size_t i = 0; i < samples->count; i++) {
        if (samples->thread[i].index != thread.index) continue;
        struct interval *interval = &chart->intervals[chart->interval_count++];
        *interval = (struct interval){.start_ns = samples->time_ns[i], .sample = i};
        is_sorted &= chart->interval_count < 2 || interval[-1].start_ns <= interval->start_ns;
    }
    if (!is_sorted) qsort(chart->intervals, chart->interval_count, sizeof(*chart->intervals), compare_intervals);
    return true;
}

/* Returns the nanoseconds of one unit of the value, 0 if it is no time. */
static uint64_t value_ns(const struct chart *chart)
{
    static const struct {
        const char *unit;
        uint64_t ns;
    } units[] = {{"nanoseconds", 1}, {"microseconds", 1000}, {"milliseconds", 1000000}, {"seconds", 1000000000}};
    const char *unit = profile_c_string(chart->profile, chart->profile->value_types[chart->options->column].unit);
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(unit, units[i].unit) == 0) return units[i].ns;
    }
    return 0;
}

/* The median of the times between two samples, 1 if there are none. False without memory. */
static bool find_usual_interval(const struct chart *chart, uint64_t *ret_usual_ns)
{
    size_t count = chart->interval_count > 0 ? chart->interval_count - 1 : 0;
    uint64_t *lengths = calloc(count + 1, sizeof(*lengths));
    if (!lengths) return false;
    for (size_t i = 0; i < count; i++) lengths[i] = chart->intervals[i + 1].start_ns - chart->intervals[i].start_ns;
    qsort(lengths, count, sizeof(*lengths), compare_numbers);
    *ret_usual_ns = count > 0 && lengths[count / 2] > 0 ? lengths[count / 2] : 1;
    free(lengths);
    return true;
}

static uint64_t later(uint64_t time_ns, uint64_t by_ns)
{
    return by_ns < UINT64_MAX - time_ns ? time_ns + by_ns : UINT64_MAX;
}

/* Sets the ends of the samples. False without memory. */
static bool find_ends(struct chart *chart)
{
    uint64_t usual_ns = 0, unit_ns = value_ns(chart);
    if (unit_ns == 0 && !find_usual_interval(chart, &usual_ns)) return false;
    for (size_t i = 0; i < chart->interval_count; i++) {
        struct interval *interval = &chart->intervals[i];
        uint64_t next_ns = i + 1 < chart->interval_count ? interval[1].start_ns : UINT64_MAX, length_ns = usual_ns;
        uint64_t value = (uint64_t)profile_sample_values(chart->profile, interval->sample)[chart->options->column];
        uint64_t gap_ns = next_ns - interval->start_ns;
        if (unit_ns != 0) {
            if (__builtin_mul_overflow(value, unit_ns, &length_ns)) length_ns = UINT64_MAX;
        } else if (next_ns != UINT64_MAX && gap_ns / USUAL_TIMES < usual_ns) {
            length_ns = gap_ns;
        }
        interval->end_ns = later(interval->start_ns, length_ns);
        if (interval->end_ns > next_ns) interval->end_ns = next_ns;
    }
    return true;
}

static enum status check_values(const struct chart *chart, int64_t *ret_total, struct error *error)
{
    int64_t total = 0;
    for (size_t i = 0; i < chart->interval_count; i++) {
        int64_t value = profile_sample_values(chart->profile, chart->intervals[i].sample)[chart->options->column];
        if (value < 0)
            return error_set(error, STATUS_UNSUPPORTED, 0,
                             "a flamechart cannot show negative values; offbeat tree can");
        if (__builtin_add_overflow(total, value, &total))
            return error_set(error, STATUS_TOO_LARGE, 0, "the sum of the values is too large for a flamechart");
    }
    *ret_total = total;
    return STATUS_OK;
}

/* --- Boxes -------------------------------------------------------------------------------------------------------- */

static void open_box(struct chart *chart, uint32_t group, uint64_t start)
{
    struct flame_layout *layout = chart->layout;
    if (!array_reserve(&layout->boxes, &layout->capacity, layout->count + 1, sizeof(*layout->boxes), BOXES_MAX) ||
        !array_reserve(&chart->open, &chart->open_capacity, chart->open_count + 1, sizeof(*chart->open), BOXES_MAX)) {
        chart->failed = true;
        return;
    }
    uint32_t parent = chart->open_count > 0 ? chart->open[chart->open_count - 1].box : 0;
    layout->boxes[layout->count] =
        (struct flame_box){.group = group, .parent = parent, .depth = (uint32_t)chart->open_count, .start = start};
    chart->open[chart->open_count++] = (struct open_box){.box = (uint32_t)layout->count++, .group = group};
}

/* Takes back the last box, which is too narrow. If its neighbour on the left is merged of such boxes, that grows. */
static void merge(struct chart *chart, const struct flame_box *narrow)
{
    struct flame_layout *layout = chart->layout;
    struct flame_box *last = &layout->boxes[layout->count - 1];
    bool is_neighbour = last->group == FLAME_MERGED && last->parent == narrow->parent && last->depth == narrow->depth;
    if (is_neighbour && narrow->start - (last->start + last->width) < chart->limit) {
        last->width = narrow->start + narrow->width - last->start;
        last->cum += narrow->cum;
        last->hidden_count++;
        return;
    }
    layout->boxes[layout->count++] = (struct flame_box){.group = FLAME_MERGED,
                                                        .parent = narrow->parent,
                                                        .depth = narrow->depth,
                                                        .hidden_count = 1,
                                                        .start = narrow->start,
                                                        .width = narrow->width,
                                                        .cum = narrow->cum};
}

static void close_box(struct chart *chart)
{
    struct flame_layout *layout = chart->layout;
    const struct open_box closed = chart->open[--chart->open_count];
    struct open_box *parent = &chart->open[chart->open_count - 1];
    struct flame_box *box = &layout->boxes[closed.box];
    box->width = chart->end_ns - chart->intervals[0].start_ns - box->start;
    layout->boxes[parent->box].cum += box->cum;
    if (chart->options->depth_max > 0 && box->depth > chart->options->depth_max) {
        parent->left_out.deep_count++;
        parent->left_out.deep_sum += box->cum;
        layout->boxes[parent->box].hidden_count++;
        layout->count = closed.box;
    } else if (box->width < chart->limit) {
        const struct flame_box narrow = *box;
        parent->left_out.narrow_count++;
        parent->left_out.narrow_sum += box->cum;
        layout->count = closed.box;
        merge(chart, &narrow);
    } else {
        parent->left_out.narrow_count += closed.left_out.narrow_count;
        parent->left_out.narrow_sum += closed.left_out.narrow_sum;
        parent->left_out.deep_count += closed.left_out.deep_count;
        parent->left_out.deep_sum += closed.left_out.deep_sum;
    }
}

/* Sets the groups of STACK, outermost first. One more than the maximum depth is enough to know that there are more. */
static void find_frames(struct chart *chart, struct stack_id stack)
{
    size_t count = 0;
    if (stack.index == chart->stack.index) return;
    chart->stack = stack;
    for (uint32_t at = stack.index; at != 0; at = profile_parent_at(chart->profile, at)) {
        uint32_t inlined;
        const uint32_t *groups = grouping_frames(chart->grouping, profile_stack_location(chart->profile, at), &inlined);
        if (!array_reserve(&chart->frames, &chart->frame_capacity, count + inlined, sizeof(*chart->frames),
                           SIZE_MAX / sizeof(*chart->frames))) {
            chart->failed = true;
            return;
        }
        for (uint32_t i = 0; i < inlined; i++) chart->frames[count++] = groups[i];
    }
    for (size_t i = 0; i < count / 2; i++) {
        uint32_t swapped = chart->frames[i];
        chart->frames[i] = chart->frames[count - 1 - i];
        chart->frames[count - 1 - i] = swapped;
    }
    uint32_t depth_max = chart->options->depth_max;
    chart->frame_count = depth_max > 0 && count > depth_max ? (size_t)depth_max + 1 : count;
}

static void add_interval(struct chart *chart, const struct interval *interval)
{
    int64_t value = profile_sample_values(chart->profile, interval->sample)[chart->options->column];
    if (value == 0) return;
    find_frames(chart, chart->profile->samples.stack[interval->sample]);
    if (chart->failed) return;
    /* The boxes that INTERVAL does not continue end. */
    uint64_t slack_ns = (interval->end_ns - interval->start_ns) / JITTER;
    size_t kept = 1;
    bool is_gap = interval->start_ns > later(chart->end_ns, slack_ns);
    while (!is_gap && kept < chart->open_count && kept <= chart->frame_count &&
           chart->open[kept].group == chart->frames[kept - 1])
        kept++;
    while (chart->open_count > kept) close_box(chart);
    uint64_t start = interval->start_ns - chart->intervals[0].start_ns;
    while (chart->open_count <= chart->frame_count && !chart->failed)
        open_box(chart, chart->frames[chart->open_count - 1], start);
    if (chart->failed) return;
    struct flame_box *leaf = &chart->layout->boxes[chart->open[chart->open_count - 1].box];
    leaf->flat += value;
    leaf->cum += value;
    if (interval->end_ns > chart->end_ns) chart->end_ns = interval->end_ns;
}

/* --- All of it ---------------------------------------------------------------------------------------------------- */

/* Removes merged boxes that are still too narrow. A box comes before its children, so its new place is known first. */
static bool drop_narrow(struct chart *chart)
{
    struct flame_layout *layout = chart->layout;
    uint32_t *places = calloc(layout->count, sizeof(*places));
    size_t count = 0;
    if (!places) return false;
    for (size_t i = 0; i < layout->count; i++) {
        struct flame_box box = layout->boxes[i];
        box.parent = places[box.parent];
        if (box.group == FLAME_MERGED && box.width < chart->limit) {
            layout->boxes[box.parent].hidden_count += box.hidden_count;
            continue;
        }
        places[i] = (uint32_t)count;
        layout->boxes[count++] = box;
    }
    layout->count = count;
    free(places);
    return true;
}

static uint64_t last_end(const struct chart *chart)
{
    uint64_t end_ns = chart->intervals[0].start_ns;
    for (size_t i = 0; i < chart->interval_count; i++) {
        if (chart->intervals[i].end_ns > end_ns) end_ns = chart->intervals[i].end_ns;
    }
    return end_ns;
}

static enum status build(struct chart *chart, struct thread_id thread, struct error *error)
{
    int64_t total = 0;
    if (!find_samples(chart, thread)) return STATUS_NO_MEMORY;
    enum status status = check_values(chart, &total, error);
    if (status != STATUS_OK) return status;
    if (!find_ends(chart)) return STATUS_NO_MEMORY;
    uint64_t width = last_end(chart) - chart->intervals[0].start_ns, parts = chart->options->parts;
    chart->limit = parts > 0 ? width / parts + (width % parts != 0) : 0;
    if (chart->limit < (uint64_t)chart->options->narrowest) chart->limit = (uint64_t)chart->options->narrowest;
    chart->end_ns = chart->intervals[0].start_ns;
    open_box(chart, FLAME_NO_GROUP, 0);
    for (size_t i = 0; i < chart->interval_count && !chart->failed; i++) add_interval(chart, &chart->intervals[i]);
    if (chart->failed) return STATUS_NO_MEMORY;
    while (chart->open_count > 1) close_box(chart);
    const struct left_out *left_out = &chart->open[0].left_out;
    struct flame_layout *layout = chart->layout;
    layout->boxes[0].width = width;
    layout->narrow_count = left_out->narrow_count;
    layout->narrow_sum = left_out->narrow_sum;
    layout->deep_count = left_out->deep_count;
    layout->deep_sum = left_out->deep_sum;
    return drop_narrow(chart) ? STATUS_OK : STATUS_NO_MEMORY;
}

enum status flame_chart_init(struct flame_layout *layout, const struct profile *profile,
                             const struct grouping *grouping, struct thread_id thread,
                             const struct flame_options *options, uint64_t *ret_start_ns, struct error *error)
{
    *layout = (struct flame_layout){0};
    struct chart chart = {.layout = layout, .profile = profile, .grouping = grouping, .options = options};
    enum status status = build(&chart, thread, error);
    if (status == STATUS_NO_MEMORY) (void)error_set(error, status, 0, "not enough memory for the flamechart");
    if (status == STATUS_OK) *ret_start_ns = chart.intervals[0].start_ns;
    free(chart.intervals);
    free(chart.open);
    free(chart.frames);
    return status;
}
