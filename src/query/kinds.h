/* Kinds of profiles: what values measure, what their sender calls them, and how they are added up over time
 * (doc/serve.md). Values of different kinds are never added.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_QUERY_KINDS_H
#define OFFBEAT_QUERY_KINDS_H

#include "base/buffer.h"
#include "profile/profile.h"

enum kind_rule {
    KIND_SUM,        /* samples, times and events: profiles add up */
    KIND_AVERAGE,    /* snapshots, as memory in use: the mean over time of a series */
    KIND_DIFFERENCE, /* values since the start of a process: differences of consecutive profiles of a series */
};

/* Values that may be added: one column of a profile. Unit names of one quantity are the same kind. */
struct kind {
    struct slice name; /* name that the sender gives; equal to TYPE unless TYPE says too little, as "delay" */
    struct slice type, unit;
    enum kind_rule rule;
    bool is_default; /* column that its profile shows first */
};

enum { KIND_TYPES_MAX = 64, KINDS_TEXT_MAX = 1 << 14 };

/* The description of a profile by its sender. */
struct kind_hints {
    struct slice name; /* "mutex"; empty: the contents say it */
    bool is_delta;     /* values are not since the start of the process */
    struct {
        struct slice type;
        enum kind_rule rule;
    } types[KIND_TYPES_MAX]; /* rules that it states */
    size_t type_count;
};

/* Appends the kinds of PROFILE's columns in their order, as the store keeps them. HINTS may be NULL. */
void kinds_write(const struct profile *profile, const struct kind_hints *hints, struct buffer *out);
/* Takes the next kind from KINDS. False at the end. */
bool kinds_next(struct slice *kinds, struct kind *ret_kind);
/* Returns whether one of KINDS does not add up: profiles of a series depend on each other. */
bool kinds_need_series(struct slice kinds);
/* The rule of TYPE among KINDS. */
enum kind_rule kinds_rule_of(struct slice kinds, struct slice type);
bool kind_is_same(const struct kind *a, const struct kind *b);
/* "cpu", "mutex:delay" */
void kind_append_name(const struct kind *kind, struct buffer *out);
/* Whether NAME is one that clients usually give to the profiles of runtimes. */
bool kind_is_usual_name(struct slice name);
const char *kind_rule_name(enum kind_rule rule);

#endif
