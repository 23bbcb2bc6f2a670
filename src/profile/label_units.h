/* The units of the numbers that samples are labelled with (requirement PPF-8), for all keys at once.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_PROFILE_LABEL_UNITS_H
#define OFFBEAT_PROFILE_LABEL_UNITS_H

#include "profile/sample_labels.h"

struct label_units {
    const struct profile *profile;
    struct string_id *unit_of_key; /* the unit of each key, by string; 0: no label of the key has one */
    size_t count;
};

/* False without memory. */
bool label_units_init(struct label_units *units, const struct profile *profile);
void label_units_fini(struct label_units *units); /* accepts {0} */

/* The unit of LABEL's key: the first that any label has; else bytes for "alignment" and "request", else the key. */
const char *label_unit(const struct label_units *units, const struct sample_label *label);

/* A unit that labels of KEY have although the first one has another. */
struct other_unit {
    struct string_id key, first, other;
};

/* Lists up to MAX of them, each once, and returns how many; 0 also without memory. A report shows all numbers of a key
 * in the first unit, so the others are wrong in it. */
size_t profile_other_units(const struct profile *profile, struct other_unit *ret_units, size_t max);

#endif
