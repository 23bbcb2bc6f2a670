/* SPDX-License-Identifier: MIT */
#include "analyze/flame_fit.h"

#include "analyze/flame_chart.h"

enum { LAYOUTS_MAX = 20 }; /* until there are few enough boxes: two are usual */

static enum status lay_out_once(struct flame_fit *fit, struct error *error)
{
    if (!fit->is_chart) return flame_layout_init(&fit->layout, fit->profile, fit->grouping, &fit->options, error);
    return flame_chart_init(&fit->layout, fit->profile, fit->grouping, fit->thread, &fit->options, &fit->start_ns,
                            error);
}

enum status flame_fit_init(struct flame_fit *fit, size_t boxes_max, struct error *error)
{
    enum status status = lay_out_once(fit, error);
    for (int i = 1; i < LAYOUTS_MAX && status == STATUS_OK && boxes_max && fit->layout.count > boxes_max; i++) {
        uint32_t *tie_depth = fit->is_chart ? NULL : &fit->options.tie_depth;
        bool has_memory = flame_layout_narrowest(&fit->layout, boxes_max, &fit->options.narrowest, tie_depth);
        flame_layout_fini(&fit->layout);
        if (!has_memory) return error_set(error, STATUS_NO_MEMORY, 0, "not enough memory for the flame graph");
        status = lay_out_once(fit, error);
    }
    return status;
}
