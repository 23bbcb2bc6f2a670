/* Works on the rows of values in place; rows only ever get shorter.  SPDX-License-Identifier: MIT */
#include "profile/profile_scale.h"

#include "profile/profile_private.h"
#include "profile/units.h"

#include <math.h>

/* --- Scaling ------------------------------------------------------------------------------------------------------ */

static int64_t scaled(int64_t value, double ratio)
{
    if (ratio == 1) return value;
    double product = round((double)value * ratio);
    if (isnan(product)) return 0;
    if (product >= 0x1p63) return INT64_MAX;
    return product < -0x1p63 ? INT64_MIN : (int64_t)product;
}

static void multiply(struct profile *profile, const double *ratios)
{
    size_t row = profile->value_type_count, unchanged = 0;
    while (unchanged < row && ratios[unchanged] == 1) unchanged++;
    if (unchanged == row) return;
    for (size_t i = 0; i < profile->samples.count * row; i++) {
        profile->samples.values[i] = scaled(profile->samples.values[i], ratios[i % row]);
    }
    struct stated_values *values;
    for (size_t i = 0; profile->stated && (values = stated_costs_values(profile->stated, i)); i++) {
        int64_t *stated = profile->stated->values.items + values->first;
        for (uint32_t column = 0; column < values->count; column++)
            stated[column] = scaled(stated[column], ratios[column]);
    }
}

void profile_scale(struct profile *profile, const double *ratios)
{
    if (profile->value_type_count == 0) return;
    multiply(profile, ratios);
    profile_drop_zero_samples(profile);
}

/* Returns 1 for a UNIT that is no time, and for nanoseconds. */
static double nanoseconds_of(const struct profile *profile, struct string_id unit)
{
    double ratio = unit_ratio(profile_c_string(profile, unit), "nanoseconds");
    return ratio == 0 ? 1 : ratio;
}

static void set_nanoseconds(struct profile *profile, struct string_id *unit)
{
    if (unit_ratio(profile_c_string(profile, *unit), "nanoseconds") != 0) *unit = profile_text(profile, "nanoseconds");
}

bool profile_scale_times_to_nanoseconds(struct profile *profile)
{
    double ratios[PROFILE_VALUES_MAX] = {0}, period_ratio = nanoseconds_of(profile, profile->period_type.unit);
    size_t row = profile->value_type_count;
    for (size_t i = 0; i < row; i++) ratios[i] = nanoseconds_of(profile, profile->value_types[i].unit);
    for (size_t i = 0; i < profile->samples.count * row; i++) {
        double product = (double)profile->samples.values[i] * ratios[i % row];
        if (ratios[i % row] != 1 && (product >= 0x1p63 || product < -0x1p63)) return false;
    }
    multiply(profile, ratios);
    profile->period = scaled(profile->period, period_ratio);
    for (size_t i = 0; i < row; i++) set_nanoseconds(profile, &profile->value_types[i].unit);
    set_nanoseconds(profile, &profile->period_type.unit);
    return true;
}

static double sum_of(const struct profile *profile, size_t column)
{
    double sum = 0;
    for (size_t i = 0; i < profile->samples.count; i++) sum += (double)profile_sample_values(profile, i)[column];
    return sum;
}

void profile_give_period(struct profile *profile)
{
    if (profile->value_type_count != 2 || profile->samples.count == 0) return;
    if (!slice_equals_text(profile_slice(profile, profile->value_types[1].unit), "nanoseconds")) return;
    int64_t period = profile_sample_values(profile, 0)[1];
    for (size_t i = 1; i < profile->samples.count; i++) {
        if (profile_sample_values(profile, i)[1] != period) return;
    }
    profile->period = period;
    profile->period_type = profile->value_types[1];
}

enum status profile_normalize(struct profile *profile, const struct profile *base, struct error *error)
{
    double ratios[PROFILE_VALUES_MAX] = {0};
    if (profile->value_type_count != base->value_type_count)
        return error_set(error, STATUS_UNSUPPORTED, 0, "the profiles do not have the same value types");
    for (size_t i = 0; i < profile->value_type_count; i++) {
        double sum = sum_of(profile, i);
        ratios[i] = sum == 0 ? 0 : sum_of(base, i) / sum;
    }
    profile_scale(profile, ratios);
    return STATUS_OK;
}

enum status profile_compact(struct profile *profile, struct error *error)
{
    enum status status = profile_aggregate(profile, error);
    if (status == STATUS_OK && profile->value_type_count > 0) profile_drop_zero_samples(profile);
    return status;
}

/* --- Making two fit ----------------------------------------------------------------------------------------------- */

/* The value types that two profiles share: their columns, and the ratios that convert values to a common unit. */
struct fit {
    size_t count;
    size_t into_columns[PROFILE_VALUES_MAX], from_columns[PROFILE_VALUES_MAX];
    double into_ratios[PROFILE_VALUES_MAX], from_ratios[PROFILE_VALUES_MAX];
};

/* Returns the ratios that convert values in INTO and in FROM to the finer of the two units. False if the units measure
 * different things. */
static bool fit_units(const char *into, const char *from, double *ret_into, double *ret_from)
{
    double ratio = unit_ratio(from, into);
    if (ratio == 0) return false;
    *ret_into = ratio < 1 ? 1 / ratio : 1;
    *ret_from = ratio < 1 ? 1 : ratio;
    return true;
}

static bool find_column(const struct profile *profile, struct slice type, size_t *ret_column)
{
    for (size_t i = 0; i < profile->value_type_count; i++) {
        if (!slice_equal(profile_slice(profile, profile->value_types[i].type), type)) continue;
        *ret_column = i;
        return true;
    }
    return false;
}

static enum status plan_fit(const struct profile *into, const struct profile *from, struct fit *fit,
                            struct error *error)
{
    fit->count = 0;
    for (size_t i = 0; i < into->value_type_count; i++) {
        const struct value_type *type = &into->value_types[i];
        size_t column;
        if (!find_column(from, profile_slice(into, type->type), &column)) continue;
        const char *unit = profile_c_string(into, type->unit);
        const char *from_unit = profile_c_string(from, from->value_types[column].unit);
        size_t place = fit->count++;
        fit->into_columns[place] = i;
        fit->from_columns[place] = column;
        if (!fit_units(unit, from_unit, &fit->into_ratios[place], &fit->from_ratios[place])) {
            return error_set(error, STATUS_UNSUPPORTED, 0, "%s is %s in one profile and %s in another",
                             profile_c_string(into, type->type), unit, from_unit);
        }
    }
    if (fit->count > 0) return STATUS_OK;
    return error_set(error, STATUS_UNSUPPORTED, 0, "the profiles have no value type in common");
}

/* Keeps only COLUMNS, COUNT of them, in that order. */
static void keep_columns(struct profile *profile, const size_t *columns, size_t count)
{
    size_t row = profile->value_type_count;
    struct value_type types[PROFILE_VALUES_MAX];
    int64_t *values = profile->samples.values;
    size_t in_place = 0;
    while (in_place < count && columns[in_place] == in_place) in_place++;
    if (in_place == row) return;
    for (size_t i = 0; i < profile->samples.count; i++) {
        int64_t old[PROFILE_VALUES_MAX];
        memcpy(old, values + i * row, row * sizeof(*values));
        for (size_t column = 0; column < count; column++) values[i * count + column] = old[columns[column]];
    }
    stated_costs_keep_columns(profile, columns, (uint32_t)count);
    memcpy(types, profile->value_types, sizeof(types));
    for (size_t column = 0; column < count; column++) profile->value_types[column] = types[columns[column]];
    profile->value_type_count = count;
    if (profile_value_index(profile, profile_c_string(profile, profile->default_value_type)) < 0)
        profile->default_value_type = (struct string_id){0};
}

static void fit_period(struct profile *into, struct profile *from)
{
    double into_ratio = 1, from_ratio = 1;
    const char *unit = profile_c_string(into, into->period_type.unit);
    const char *from_unit = profile_c_string(from, from->period_type.unit);
    bool is_same_type =
        slice_equal(profile_slice(into, into->period_type.type), profile_slice(from, from->period_type.type));
    if (!is_same_type || !fit_units(unit, from_unit, &into_ratio, &from_ratio)) return;
    into->period = scaled(into->period, into_ratio);
    from->period = scaled(from->period, from_ratio);
    if (into_ratio > 1)
        into->period_type.unit = profile_text(into, from_unit);
    else
        from->period_type.unit = profile_text(from, unit);
}

enum status profile_make_compatible(struct profile *into, struct profile *from, struct error *error)
{
    struct fit fit = {0};
    if (into->value_type_count == 0 && into->samples.count == 0) return STATUS_OK;
    enum status status = plan_fit(into, from, &fit, error);
    if (status != STATUS_OK) return status;
    keep_columns(into, fit.into_columns, fit.count);
    keep_columns(from, fit.from_columns, fit.count);
    multiply(into, fit.into_ratios);
    multiply(from, fit.from_ratios);
    for (size_t i = 0; i < fit.count; i++) {
        struct value_type *a = &into->value_types[i], *b = &from->value_types[i];
        if (fit.into_ratios[i] > 1) {
            a->unit = profile_text(into, profile_c_string(from, b->unit));
        } else {
            b->unit = profile_text(from, profile_c_string(into, a->unit));
        }
    }
    fit_period(into, from);
    status = profile_failed(into, error);
    return status == STATUS_OK ? profile_failed(from, error) : status;
}
