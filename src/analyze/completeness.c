/* An incomplete stack has a frame with a special name at its root (profile/incomplete.h). What was lost is in
 * the facts of the recorder.  SPDX-License-Identifier: MIT */
#include "analyze/completeness.h"

#include "profile/incomplete.h"

#include <stdlib.h>
#include <string.h>

static const char *const names[INCOMPLETE_CAUSES] = {
    [INCOMPLETE_CAUSE_NO_TABLE] = INCOMPLETE_NO_TABLE,
    [INCOMPLETE_CAUSE_UNKNOWN_REGISTER] = INCOMPLETE_UNKNOWN_REGISTER,
    [INCOMPLETE_CAUSE_TOO_DEEP] = INCOMPLETE_TOO_DEEP,
    [INCOMPLETE_CAUSE_BAD_MEMORY] = INCOMPLETE_BAD_MEMORY,
    [INCOMPLETE_CAUSE_BAD_FRAME] = INCOMPLETE_BAD_FRAME,
    [INCOMPLETE_CAUSE_OTHER] = INCOMPLETE_PREFIX,
};

/* --- Stacks ------------------------------------------------------------------------------------------------------- */

/* The three outermost locations of each stack, 0 where it has fewer. */
struct ends {
    struct location_id root, next, inner;
};

/* INCOMPLETE_CAUSES for a location that is no mark. */
static enum incomplete_cause cause_of(const struct profile *profile, struct location_id id)
{
    const struct location *location = profile_location(profile, id);
    if (location->line_count != 1) return INCOMPLETE_CAUSES;
    const struct function *function = profile_function(profile, profile_lines(profile, location)->function);
    const char *name = profile_c_string(profile, function->name);
    if (strncmp(name, INCOMPLETE_PREFIX, strlen(INCOMPLETE_PREFIX)) != 0) return INCOMPLETE_CAUSES;
    for (unsigned cause = 0; cause < INCOMPLETE_CAUSE_OTHER; cause++) {
        if (strcmp(name, names[cause]) == 0) return (enum incomplete_cause)cause;
    }
    return INCOMPLETE_CAUSE_OTHER;
}

static bool has_incomplete_stacks(const struct profile *profile)
{
    for (size_t i = 1; i < profile->functions.count; i++) {
        const char *name = profile_c_string(profile, profile->functions.items[i].name);
        if (strncmp(name, INCOMPLETE_PREFIX, strlen(INCOMPLETE_PREFIX)) == 0) return true;
    }
    return false;
}

/* NULL without memory. A parent comes before its children. */
static struct ends *find_ends(const struct profile *profile)
{
    struct ends *ends = calloc(profile_stack_limit(profile), sizeof(*ends));
    for (uint32_t i = 1; ends && i < profile_stack_limit(profile); i++) {
        if (!profile_is_stack(profile, i)) continue;
        struct stack stack = profile_stack(profile, (struct stack_id){i});
        struct ends of_parent = ends[stack.parent.index];
        if (of_parent.root.index == 0)
            ends[i].root = stack.location;
        else if (of_parent.next.index == 0)
            ends[i] = (struct ends){of_parent.root, stack.location, {0}};
        else
            ends[i] =
                (struct ends){of_parent.root, of_parent.next, of_parent.inner.index ? of_parent.inner : stack.location};
    }
    return ends;
}

/* pprof files give each address a mapping; it is //anon if no file contains the address. */
static bool is_in_file(const struct profile *profile, struct mapping_id mapping)
{
    if (!mapping.index) return false;
    return !slice_equals_text(profile_slice(profile, profile->mappings.items[mapping.index].file_name),
                              ANONYMOUS_MAPPING);
}

/* Returns the mapping that a stack ends in. The caller of code without an unwind table is a guess. If no file contains
 * it and it has no name, the stack ends at the code that it seems to have called. */
static struct mapping_id mapping_at_end(const struct profile *profile, const struct ends *ends)
{
    const struct location *next = profile_location(profile, ends->next);
    if (is_in_file(profile, next->mapping) || next->line_count > 0) return next->mapping;
    return profile_location(profile, ends->inner)->mapping;
}

/* Samples by the cause and the mapping at whose code their stack ends. */
struct tally {
    double *samples;
    size_t mapping_count;
};

static void find_mapping(const struct tally *tally, enum incomplete_cause cause, struct incomplete_stacks *stacks)
{
    const double *of_mappings = tally->samples + cause * tally->mapping_count;
    for (size_t i = 0; i < tally->mapping_count; i++) {
        stacks->samples += of_mappings[i];
        if (of_mappings[i] <= stacks->in_mapping) continue;
        stacks->in_mapping = of_mappings[i];
        stacks->mapping.index = (uint32_t)i;
    }
}

static double weight_of(const struct profile *profile, size_t sample, bool is_counted)
{
    int64_t count = is_counted ? profile_sample_values(profile, sample)[0] : 1;
    return count > 0 ? (double)count : 0;
}

static bool counts_samples(const struct profile *profile)
{
    return profile->value_type_count > 0 &&
           slice_equals_text(profile_slice(profile, profile->value_types[0].unit), "count");
}

static void tally_samples(const struct profile *profile, const struct ends *ends, const struct tally *tally,
                          struct completeness *completeness)
{
    bool is_counted = counts_samples(profile);
    for (size_t i = 0; i < profile->samples.count; i++) {
        double weight = weight_of(profile, i, is_counted);
        completeness->samples += weight;
        if (!ends) continue;
        struct ends end = ends[profile->samples.stack[i].index];
        enum incomplete_cause cause = cause_of(profile, end.root);
        if (cause == INCOMPLETE_CAUSES) continue;
        completeness->incomplete += weight;
        tally->samples[cause * tally->mapping_count + mapping_at_end(profile, &end).index] += weight;
    }
}

static bool count_stacks(const struct profile *profile, struct completeness *completeness)
{
    if (!has_incomplete_stacks(profile)) {
        tally_samples(profile, NULL, NULL, completeness);
        return true;
    }
    struct tally tally = {.mapping_count = profile->mappings.count};
    struct ends *ends = find_ends(profile);
    tally.samples = calloc(INCOMPLETE_CAUSES * tally.mapping_count, sizeof(double));
    bool has_memory = ends && tally.samples;
    if (has_memory) {
        tally_samples(profile, ends, &tally, completeness);
        for (unsigned cause = 0; cause < INCOMPLETE_CAUSES; cause++)
            find_mapping(&tally, (enum incomplete_cause)cause, &completeness->by_cause[cause]);
    }
    free(tally.samples);
    free(ends);
    return has_memory;
}

/* --- Losses ------------------------------------------------------------------------------------------------------- */

static void add_loss(struct completeness *completeness, const char *cause, double samples)
{
    if (samples <= 0) return;
    completeness->lost += samples;
    size_t place =
        completeness->loss_count < COMPLETENESS_LOSSES_MAX ? completeness->loss_count++ : COMPLETENESS_LOSSES_MAX - 1;
    while (place > 0 && completeness->losses[place - 1].samples < samples) {
        completeness->losses[place] = completeness->losses[place - 1];
        place--;
    }
    completeness->losses[place] = (struct lost_samples){cause, samples};
}

/* ------------------------------------------------------------------------------------------------------------------ */

enum status completeness_compute(const struct profile *profile, struct completeness *ret_completeness,
                                 struct error *error)
{
    struct completeness completeness = {0};
    if (!count_stacks(profile, &completeness)) return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory");
    /* Every fact "lost_…" counts samples. */
    for (size_t i = 0; i < profile->metadata.count; i++) {
        const struct metadata_entry *fact = &profile->metadata.items[i];
        const char *key = profile_c_string(profile, fact->key);
        double number = fact->is_number ? (double)fact->number : 0;
        if (strncmp(key, "lost_", strlen("lost_")) == 0) add_loss(&completeness, key, number);
        if (strcmp(key, "threads_missed") == 0) completeness.threads_missed = number;
        if (strcmp(key, "bytes_lost") == 0) completeness.bytes_lost = number;
    }
    *ret_completeness = completeness;
    return STATUS_OK;
}

double completeness_lost_share(const struct completeness *completeness)
{
    double all = completeness->samples + completeness->lost;
    return all > 0 ? completeness->lost / all : 0;
}

double completeness_incomplete_share(const struct completeness *completeness)
{
    return completeness->samples > 0 ? completeness->incomplete / completeness->samples : 0;
}

bool completeness_is_lossy(const struct completeness *completeness)
{
    return completeness->lost >= COMPLETENESS_SAMPLES_MIN &&
           completeness_lost_share(completeness) > COMPLETENESS_LOST_MAX;
}

bool completeness_is_incomplete(const struct completeness *completeness)
{
    return completeness->incomplete >= COMPLETENESS_SAMPLES_MIN &&
           completeness_incomplete_share(completeness) > COMPLETENESS_INCOMPLETE_MAX;
}
