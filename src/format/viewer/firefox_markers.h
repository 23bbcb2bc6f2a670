/* The markers of a profile, as Firefox's file has them: by thread.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_VIEWER_FIREFOX_MARKERS_H
#define OFFBEAT_FORMAT_VIEWER_FIREFOX_MARKERS_H

#include "base/json_writer.h"
#include "profile/profile.h"

struct firefox_markers {
    const struct profile *profile;
    struct profile *texts;   /* profile whose strings are numbered as the file's */
    uint32_t *first, *order; /* the markers of thread t: ORDER from FIRST[t] to FIRST[t + 1] */
    uint32_t *numbers;       /* number in TEXTS of each string of the profile */
    uint32_t *categories;    /* number among CATEGORY_NAMES of each string of the profile, plus one */
    struct string_id *category_names;
    size_t category_count;
};

/* Adds the strings of all markers of PROFILE to TEXTS. Markers whose thread is not known become SHOWN's. False without
 * memory. Finish with firefox_markers_fini in both cases. */
bool firefox_markers_init(struct firefox_markers *markers, const struct profile *profile, struct thread_id shown,
                          struct profile *texts);
void firefox_markers_fini(struct firefox_markers *markers); /* accepts {0} */

size_t firefox_markers_of(const struct firefox_markers *markers, uint32_t thread);
/* The time of the first one; UINT64_MAX if there is none. */
uint64_t firefox_markers_start(const struct firefox_markers *markers);

/* The objects of meta.markerSchema. */
void firefox_markers_write_schemas(const struct firefox_markers *markers, struct json_writer *writer);

/* The members of the table of THREAD's markers. No marker is before START_NS. CATEGORY_NAMES begin at FIRST_CATEGORY in
 * the file's list; a marker without a category has the first one there. */
void firefox_markers_write(const struct firefox_markers *markers, uint32_t thread, uint64_t start_ns,
                           size_t first_category, struct json_writer *writer);

#endif
