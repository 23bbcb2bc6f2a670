/* The object "stackFrames" of trace events: each frame by its id, with the id of its caller. Hermes, React Native's
 * engine, writes its samples so.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_VIEWER_CHROME_TRACE_FRAMES_H
#define OFFBEAT_FORMAT_VIEWER_CHROME_TRACE_FRAMES_H

#include "base/array.h"
#include "format/common/json_members.h"

struct trace_frame {
    struct string_id id, caller; /* texts of the ids in the file; CALLER 0: none */
    struct location_id place;
    struct stack_id stack; /* known if DEPTH is */
    uint32_t depth;        /* frames of STACK; 0: not known yet */
};

struct trace_frames {
    struct json_parts *file;
    INDEXED_ARRAY_OF(struct trace_frame) frames;
    ARRAY_OF(uint32_t) path; /* frames whose stacks wait for the one of their callers */
};

/* Reads OBJECT, the value of "stackFrames". A failure is that of FILE. Finish with trace_frames_fini. */
void trace_frames_read(struct trace_frames *frames, struct slice object);
void trace_frames_fini(struct trace_frames *frames); /* accepts {0} */

/* The stack whose innermost frame has this ID; 0: none. FILE fails if there is no such frame. */
struct stack_id trace_frames_stack(struct trace_frames *frames, struct string_id id);

#endif
