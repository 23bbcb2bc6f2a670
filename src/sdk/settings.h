/* The options in force: from the program, the environment and the defaults. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SDK_SETTINGS_H
#define OFFBEAT_SDK_SETTINGS_H

#include "base/buffer.h"
#include "base/status.h"
#include "sdk/lifecycle.h"
#include "sdk/option_list.h"

#include <offbeat.h>

struct settings {
    struct offbeat_options options; /* texts point into TEXTS, or are NULL */
    bool has_traces_sample_rate, has_profiles_sample_rate;
    const char *cache_folder;         /* the user's cache folder; it may not exist; NULL: none */
    const char *origins[OPTIONS_MAX]; /* source of each option: the program, a variable, or the default */
    struct buffer texts;
};

/* Combines OPTIONS, which may be NULL, with the environment and the defaults. STATUS_MALFORMED: an option cannot be
 * understood, and ERROR names it; RET_SETTINGS is set in every case, so that LOG and DEBUG take effect. A missing DSN
 * is no error. */
enum status settings_resolve(const struct offbeat_options *options, struct settings *ret_settings, struct error *error);
void settings_fini(struct settings *settings);

/* Appends option number INDEX, its value and its source to LINE. False after the last one. */
bool settings_describe(const struct settings *settings, size_t index, struct buffer *line);

struct lifecycle_options settings_lifecycle(const struct settings *settings);

#endif
