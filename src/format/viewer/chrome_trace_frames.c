/* SPDX-License-Identifier: MIT */
#include "format/viewer/chrome_trace_frames.h"

#include "base/hash.h"
#include "format/common/text_line.h"
#include "format/viewer/chrome_trace.h"

#include <stdlib.h>

static bool has_id(const void *context, uint32_t index, const void *key)
{
    return ((const struct trace_frames *)context)->frames.items[index].id.index ==
           ((const struct string_id *)key)->index;
}

static uint32_t find_frame(const struct trace_frames *frames, struct string_id id)
{
    return index_table_find(&frames->frames.index, hash_mix(0, id.index), has_id, frames, &id);
}

/* --- Names -------------------------------------------------------------------------------------------------------- */

/* Splits Hermes's "name(file:line:column)". Of other texts, all is the name. */
static struct function function_of(struct profile *profile, struct slice text)
{
    struct function function = {0};
    uint64_t line, column;
    const uint8_t *open = text.size > 0 && text.data[text.size - 1] == ')' ? memchr(text.data, '(', text.size) : NULL;
    if (open && open > text.data) {
        struct slice place = slice_of(open + 1, (size_t)(text.data + text.size - open) - 2);
        if (text_take_last_number(&place, &column) && text_take_last_number(&place, &line) && place.size > 0 &&
            line <= INT32_MAX) {
            function.file_name = profile_string(profile, place);
            function.start_line = (int64_t)line;
            text.size = (size_t)(open - text.data);
        }
    }
    function.name = profile_string(profile, text);
    return function;
}

/* --- The object --------------------------------------------------------------------------------------------------- */

static void read_frame(struct trace_frames *frames, struct json_reader *reader, struct string_id id)
{
    enum { NAME, PARENT, LINE, MEMBERS };
    struct profile *profile = frames->file->profile;
    struct json_member members[MEMBERS] = {{.name = "name"}, {.name = "parent"}, {.name = "line"}};
    uint64_t number = 0;
    json_members_note(reader, members, MEMBERS);
    if (reader->failed) return;
    struct string_id name = json_parts_string(frames->file, members[NAME].value);
    struct function function = function_of(profile, profile_slice(profile, name));
    struct string_id executing = json_parts_string(frames->file, members[LINE].value);
    if (!text_number(profile_slice(profile, executing), &number) || number > INT32_MAX)
        number = (uint64_t)function.start_line;
    struct line line = {.function = profile_add_function(profile, &function), .line = (int64_t)number};
    struct location location = {.kind = FRAME_INTERPRETED};
    struct trace_frame frame = {.id = id,
                                .caller = json_parts_string(frames->file, members[PARENT].value),
                                .place = profile_add_location(profile, &location, &line, 1)};
    if (find_frame(frames, id) != INDEX_NONE)
        json_reader_reject(reader, STATUS_MALFORMED, "two frames of \"stackFrames\" have one id");
    else if (!INDEXED_ARRAY_PUSH(&frames->frames, PROFILE_ENTITIES_MAX, hash_mix(0, id.index), frame))
        json_reader_reject(reader, STATUS_NO_MEMORY, "no memory for the frames");
}

void trace_frames_read(struct trace_frames *frames, struct slice object)
{
    struct json_reader reader;
    struct slice id;
    json_reader_init(&reader, object);
    json_object_begin(&reader);
    while (frames->file->status == STATUS_OK && json_object_next(&reader, &id))
        read_frame(frames, &reader, profile_string(frames->file->profile, id));
    json_parts_finish(frames->file, &reader);
}

void trace_frames_fini(struct trace_frames *frames)
{
    free(frames->frames.items);
    index_table_fini(&frames->frames.index);
    free(frames->path.items);
}

/* --- Stacks ------------------------------------------------------------------------------------------------------- */

/* Notes in frames->path the frame ID and its callers, up to one whose stack is known, or the outermost. Returns the
 * known one, or NULL. */
static const struct trace_frame *find_path(struct trace_frames *frames, struct string_id id)
{
    frames->path.count = 0;
    while (id.index) {
        uint32_t found = find_frame(frames, id);
        if (found == INDEX_NONE) {
            json_parts_fail(frames->file, STATUS_MALFORMED, NULL, "a frame is not in \"stackFrames\"");
            break;
        }
        const struct trace_frame *frame = &frames->frames.items[found];
        if (frame->depth > 0) return frame;
        if (frames->path.count == CHROME_TRACE_DEPTH_MAX) {
            json_parts_fail(frames->file, STATUS_TOO_LARGE, NULL,
                            "a stack of \"stackFrames\" has more than 65536 frames");
            break;
        }
        if (!ARRAY_PUSH(&frames->path, CHROME_TRACE_DEPTH_MAX, found)) {
            json_parts_fail(frames->file, STATUS_NO_MEMORY, NULL, "no memory for the frames");
            break;
        }
        id = frame->caller;
    }
    return NULL;
}

struct stack_id trace_frames_stack(struct trace_frames *frames, struct string_id id)
{
    const struct trace_frame *caller = find_path(frames, id);
    struct stack_id stack = caller ? caller->stack : (struct stack_id){0};
    uint32_t depth = caller ? caller->depth : 0;
    if (frames->file->status == STATUS_OK && depth + frames->path.count > CHROME_TRACE_DEPTH_MAX)
        json_parts_fail(frames->file, STATUS_TOO_LARGE, NULL, "a stack of \"stackFrames\" has more than 65536 frames");
    if (frames->file->status != STATUS_OK) return (struct stack_id){0};
    while (frames->path.count > 0) {
        struct trace_frame *frame = &frames->frames.items[frames->path.items[--frames->path.count]];
        frame->stack = stack = profile_add_stack(frames->file->profile, stack, frame->place);
        frame->depth = ++depth;
    }
    return stack;
}
