/* Flame graphs, flamecharts and comparisons: as a drawing, as text, and for programs.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_REPORT_FLAME_REPORT_H
#define OFFBEAT_REPORT_FLAME_REPORT_H

#include "analyze/flame_layout.h"
#include "report/report.h"

enum {
    FLAME_WIDTH = 1200,             /* pixels of the root */
    FLAME_PARTS = FLAME_WIDTH * 10, /* boxes narrower than 0.1 pixels are left out */
    FLAME_BOXES_MAX = 5000,         /* the file stays below 1 MB with names of ordinary length */
    FLAME_ELEMENTS_MAX = 5000,      /* a browser draws them at once; narrower boxes appear when they are wide enough */
    FLAME_TEXT_PARTS = 200,         /* boxes below 0.5 % are left out of text */
    FLAME_TEXT_ROWS_MAX = 100,
    FLAME_DEPTH_MAX = 1000,
};

enum flame_kind {
    FLAME_GRAPH,
    FLAME_CHART, /* one thread in the order of time */
    FLAME_DIFF,  /* wide as in the new profile, coloured by the difference from the base */
};

enum flame_colours { FLAME_BY_PACKAGE, FLAME_BY_SYSTEM };

struct flame_report {
    const struct report *report;
    const struct grouping *grouping;
    const struct flame_layout *layout;
    const struct flame_options *options;
    enum flame_kind kind;
    enum flame_colours colours;
    const char *thread; /* FLAME_CHART: name of the thread */
    uint64_t start_ns;  /* FLAME_CHART: time of the left edge since the start of the profile */
    size_t width;       /* characters in a line of text; 0: no limit */
    bool has_colour;    /* colours of text */
};

/* Writes one SVG file that needs no other: names and tooltips without scripts; zoom, search and keyboard with them. */
void flame_write_svg(const struct flame_report *flame, struct buffer *out);
/* Writes a row for each box, indented below its caller, with a bar where the box is in the drawing. A row also tells
 * what is left out of a box: the rows below a box and its own part sum up to it. */
void flame_write_text(const struct flame_report *flame, struct buffer *out);
/* Writes one object: each box with the place of its parent in the list. */
void flame_write_json(const struct flame_report *flame, struct buffer *out);

/* --- For the three of them ---------------------------------------------------------------------------------------- */

struct slice flame_name(const struct flame_report *flame, const struct flame_box *box);
/* Returns a hash that the functions of one package share: the module of the function, or its library and the first part
 * of its name. */
uint32_t flame_package_hash(const struct flame_report *flame, const struct flame_box *box);
/* Returns how much larger the box's part of the total is than in the base, from -1 to 1. */
double flame_growth(const struct flame_report *flame, const struct flame_box *box);
/* Returns 0: neutral; from 1 (0.1 % of the total) to 4 (20 %): grown; from -1 to -4: shrunk. */
int flame_growth_step(const struct flame_report *flame, const struct flame_box *box);

#endif
