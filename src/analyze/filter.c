/* All filters, in the order of pprof.  SPDX-License-Identifier: MIT */
#include "analyze/filter.h"

#include "analyze/tag_frames.h"

static enum status add_tag_frames(struct profile *profile, const struct filter_options *options,
                                  struct filter_outcome *outcome, struct error *error)
{
    const struct tag_frames frames = {.root = options->tag_root, .leaf = options->tag_leaf, .unit = options->tag_unit};
    bool has_root, has_leaf;
    enum status status = tag_frames_add(profile, &frames, &has_root, &has_leaf, error);
    if (status != STATUS_OK) return status;
    if (frames.root && frames.root[0] && !has_root) filter_note_unmatched(outcome, "tagroot");
    if (frames.leaf && frames.leaf[0] && !has_leaf) filter_note_unmatched(outcome, "tagleaf");
    return status;
}

enum status filter_apply(struct profile *profile, const struct filter_options *options,
                         struct filter_outcome *ret_outcome, struct error *error)
{
    *ret_outcome = (struct filter_outcome){0};
    enum status status = filter_samples(profile, options, ret_outcome, error);
    if (status == STATUS_OK) status = add_tag_frames(profile, options, ret_outcome, error);
    if (status == STATUS_OK) status = filter_frames(profile, options, ret_outcome, error);
    return status == STATUS_OK ? filter_labels(profile, options, ret_outcome, error) : status;
}
