/* The description of profiles by Pyroscope's clients, or a push of Grafana Alloy: the application, labels,
 * and how values are added up.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SERVE_PYROSCOPE_LABELS_H
#define OFFBEAT_SERVE_PYROSCOPE_LABELS_H

#include "serve/ingest.h"

enum { NAMES_MAX = 64 };

struct name_label {
    struct slice name, value;
};

/* The description of a profile in its request. */
struct description {
    struct sent_profile sent;
    struct slice type; /* type of values: "alloc_space"; empty: unknown */
    struct name_label others[NAMES_MAX];
    size_t other_count;
    struct kind_hints hints;
    uint64_t labels_hash; /* hash of all labels, in any order: those of one process */
    char series[SERIES_TEXT_SIZE];
};

/* A label that the store has a column for goes there. Labels that begin with "__" are for the server. */
void description_add_label(struct description *description, struct slice name, struct slice value);
/* Reads "shop.cpu{env=live,region=eu}": the application, the type of its values, and labels. */
void description_read_name(struct description *description, struct slice name);
/* Notes that values of TYPE follow RULE. Too many are ignored. */
void description_add_rule(struct description *description, struct slice type, enum kind_rule rule);
/* Reads {"delay": {"cumulative": true, "aggregation": "average", "display-name": "mutex_duration"}, ...}, the part
 * sample_type_config of a form: a type that is not cumulative is of an interval. What is broken is ignored. */
void description_read_sample_types(struct description *description, struct slice json);
/* Completes DESCRIPTION when all labels are known. It must stay where it is while its member SENT is used. */
void description_finish(struct description *description);

#endif
