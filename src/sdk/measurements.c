/* SPDX-License-Identifier: MIT */
#include "sdk/measurements.h"

#include "base/array.h"
#include "base/invariant.h"

#include <math.h>
#include <string.h>

static void add(struct measurements *measurements, const struct chunk_measurement *measurement)
{
    if (!measurements->is_wanted) return;
    if (!array_reserve(&measurements->items, &measurements->capacity, measurements->count + 1,
                       sizeof(*measurements->items), CHUNK_MEASUREMENTS_MAX)) {
        measurements->lost++;
        return;
    }
    if (!INVARIANT(measurements->count < measurements->capacity)) return;
    measurements->items[measurements->count++] = *measurement;
}

void measurements_add(struct measurements *measurements, const char *name, const char *unit, uint64_t time_ns,
                      double value)
{
    struct chunk_measurement measurement = {.time_ns = time_ns, .value = value};
    if (!name || !*name || !unit || !isfinite(value)) return;
    if (strlen(name) >= sizeof(measurement.name) || strlen(unit) >= sizeof(measurement.unit)) return;
    (void)memcpy(measurement.name, name, strlen(name));
    (void)memcpy(measurement.unit, unit, strlen(unit));
    (void)pthread_mutex_lock(&measurements->lock);
    add(measurements, &measurement);
    (void)pthread_mutex_unlock(&measurements->lock);
}

void measurements_want(struct measurements *measurements, bool is_wanted)
{
    (void)pthread_mutex_lock(&measurements->lock);
    measurements->is_wanted = is_wanted;
    (void)pthread_mutex_unlock(&measurements->lock);
}

struct chunk_measurement *measurements_take(struct measurements *measurements, size_t *ret_count)
{
    (void)pthread_mutex_lock(&measurements->lock);
    struct chunk_measurement *taken = measurements->items;
    *ret_count = measurements->count;
    measurements->items = NULL;
    measurements->count = measurements->capacity = 0;
    (void)pthread_mutex_unlock(&measurements->lock);
    return taken;
}
