/* Costs that a file states instead of stacks: of each place in the code, of each call, and of each function with all
 * that it calls. Callgrind, xdebug and Python's profilers write such files.
 *
 * A profile has stated costs beside samples, whose stacks are then estimated. Costs have the value types of the
 * profile. The functions of several files or threads are apart: a function belongs to a thread and a set of labels.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_PROFILE_STATED_COSTS_H
#define OFFBEAT_PROFILE_STATED_COSTS_H

#include "base/array.h"
#include "profile/profile.h"

/* Values of one entry, in stated_costs.values; values beyond COUNT are 0. */
struct stated_values {
    size_t first;
    uint32_t count;
};

struct stated_function {
    struct thread_id thread;
    struct label_set_id labels;
    struct mapping_id mapping;
    struct function_id function;
    struct location_id entry;       /* location that calls of the function lead to, its own code; 0 until it is known */
    struct stated_values inclusive; /* cost of the function and of all that it calls */
    bool has_inclusive;
};

/* Cost of one place in the code of a function. */
struct stated_place {
    uint32_t function;
    struct location_id location;
    struct stated_values values;
};

/* Calls of one function from one place. */
struct stated_call {
    uint32_t caller, callee;
    struct location_id location; /* location of the call, in the caller */
    int64_t count;               /* number of calls; 0 = not known */
    struct stated_values values; /* cost of the callee and of all that it calls, in these calls */
};

struct stated_costs {
    INDEXED_ARRAY_OF(struct stated_function) functions;
    ARRAY_OF(struct stated_place) places; /* places by function, once they are complete */
    ARRAY_OF(struct stated_call) calls;   /* calls by caller, once they are complete */
    ARRAY_OF(int64_t) values;
    bool lacks_callers; /* the file was cut short: calls by functions that had not returned are missing */
};

/* --- Adding. The value types of PROFILE must be known. Failures are those of the profile. ------------------------- */

/* Adds or finds the function with the thread, labels, mapping and function of KEY. INDEX_NONE on failure. */
uint32_t stated_function_add(struct profile *profile, const struct stated_function *key);
/* Each adds COUNT values, at most as many as PROFILE has value types, of FUNCTION or CALL. Does nothing if a function
 * is INDEX_NONE. */
void stated_cost_add(struct profile *profile, uint32_t function, struct location_id location, const int64_t *values,
                     uint32_t count);
void stated_call_add(struct profile *profile, const struct stated_call *call, const int64_t *values, uint32_t count);
void stated_inclusive_add(struct profile *profile, uint32_t function, const int64_t *values, uint32_t count);

/* Joins equal places and equal calls, sorts them, and gives each function an entry and inclusive costs where none are
 * stated: the sum of the calls from other functions, or else its own costs and those of the other functions that it
 * calls; the larger one if callers are missing. So a function that calls itself counts once. */
void stated_costs_complete(struct profile *profile);

/* Removes the stated costs of PROFILE, if there are some: reports then use the estimated stacks. */
void stated_costs_drop(struct profile *profile);
/* Gives SAMPLE another stack. Stated costs do not follow, and are dropped. */
static inline void profile_set_stack(struct profile *profile, size_t sample, struct stack_id stack)
{
    if (profile->samples.stack[sample].index != stack.index) stated_costs_drop(profile);
    profile->samples.stack[sample] = stack;
}

/* --- Asking ------------------------------------------------------------------------------------------------------- */

static inline int64_t stated_value(const struct stated_costs *costs, const struct stated_values *values, size_t column)
{
    return column < values->count ? costs->values.items[values->first + column] : 0;
}

/* Whether LOCATION, where FUNCTION has a cost or a call, is code of FUNCTION itself, and not of a function that is
 * inlined there. */
bool stated_is_home(const struct profile *profile, const struct stated_function *function, struct location_id location);

/* Finds for each function of the stated costs a sample of PROFILE with its thread and labels; SIZE_MAX where there is
 * none. RET_SAMPLES has functions.count entries. False without memory. */
bool stated_costs_find_samples(const struct profile *profile, size_t *ret_samples);

#endif
