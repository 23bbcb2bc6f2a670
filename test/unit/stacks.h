/* Profiles of a few stacks, written as text, for tests.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_TEST_STACKS_H
#define OFFBEAT_TEST_STACKS_H

#include "profile/profile.h"

#include "test.h"

enum { STACK_TEXT_BYTES = 512, STACK_LINES_MAX = 8 };

static inline void stacks_begin(struct profile *profile)
{
    profile_init(profile);
    profile_add_value_type(profile, "samples", "count");
    profile_add_value_type(profile, "cpu", "nanoseconds");
}

/* FRAMES root first, blanks between, "outer<inner" for inlined ones, "?" for one without a name. Each function is in
 * the file NAME.c and each frame in the mapping "/lib/x.so". */
static inline struct stack_id stacks_add(struct profile *profile, const char *frames)
{
    char text[STACK_TEXT_BYTES], file[STACK_TEXT_BYTES];
    char *rest = text, *frame, *name;
    struct stack_id stack = {0};
    struct mapping mapping = {.start = 0x1000, .limit = 0x9000, .file_name = profile_text(profile, "/lib/x.so")};
    struct mapping_id mapping_id = profile_add_mapping(profile, &mapping);
    (void)snprintf(text, sizeof(text), "%s", frames);
    while (frames[0] && (frame = strsep(&rest, " "))) {
        struct line lines[STACK_LINES_MAX];
        uint32_t count = 0;
        uint64_t address = 0x1000;
        for (const char *c = frame; *c; c++) address = address * 31 % 0x7fff + 0x1000 + (uint64_t)*c;
        for (; (name = strsep(&frame, "<")) && strcmp(name, "?") != 0; count++) {
            (void)snprintf(file, sizeof(file), "%.64s.c", name);
            struct function function = {.name = profile_text(profile, name), .file_name = profile_text(profile, file)};
            memmove(lines + 1, lines, count * sizeof(*lines));
            lines[0] = (struct line){.function = profile_add_function(profile, &function), .line = 1};
        }
        struct location location = {.address = address, .mapping = mapping_id};
        stack = profile_add_stack(profile, stack, profile_add_location(profile, &location, lines, count));
    }
    return stack;
}

static inline void stacks_add_sample(struct profile *profile, const char *frames, int64_t value)
{
    struct sample sample = {.stack = stacks_add(profile, frames)};
    profile_add_sample(profile, &sample, (const int64_t[]){1, value});
}

/* The other way: appends the frames of STACK to TEXT, of STACK_TEXT_BYTES. */
static inline void stacks_append(const struct profile *profile, struct stack_id id, char *text)
{
    if (id.index == 0) return;
    struct stack stack = profile_stack(profile, id);
    stacks_append(profile, stack.parent, text);
    const struct location *location = profile_location(profile, stack.location);
    if (text[0] != '\0') strcat(text, " ");
    if (location->line_count == 0) strcat(text, "?");
    for (uint32_t i = location->line_count; i-- > 0;) {
        const struct function *function = profile_function(profile, profile_lines(profile, location)[i].function);
        strcat(text, profile_c_string(profile, function->name));
        if (i > 0) strcat(text, "<");
    }
}

#endif
