/* Nothing but the text of a frame says that it is no function: only what nobody calls a function is taken.
 * SPDX-License-Identifier: MIT */
#include "format/text/stack_fields.h"

#include "format/common/text_line.h"

struct thread_fields {
    struct slice thread_id, thread_name, process_name;
    uint64_t pid;
};

/* Takes START off the front of *TEXT. */
static bool take_start(struct slice *text, const char *start)
{
    if (!text_begins_with(*text, start)) return false;
    *text = text_from(*text, strlen(start));
    return true;
}

/* Takes END off the end of *TEXT. */
static bool take_end(struct slice *text, const char *end)
{
    if (!text_ends_with(*text, end)) return false;
    text->size -= strlen(end);
    return true;
}

/* process 12:"python app.py" */
static bool read_process(struct slice frame, struct thread_fields *fields)
{
    uint64_t pid;
    if (!take_start(&frame, "process ") || !take_end(&frame, "\"")) return false;
    const uint8_t *colon = memchr(frame.data, ':', frame.size);
    if (!colon || !text_number(slice_of(frame.data, (size_t)(colon - frame.data)), &pid) || pid > INT32_MAX)
        return false;
    struct slice name = text_from(frame, (size_t)(colon + 1 - frame.data));
    if (!take_start(&name, "\"")) return false;
    fields->pid = pid;
    fields->process_name = name;
    return true;
}

static bool is_thread_number(struct slice text)
{
    bool is_hex = take_start(&text, "0x");
    for (size_t i = 0; i < text.size; i++) {
        uint8_t byte = text.data[i] | 0x20;
        bool is_digit = (text.data[i] >= '0' && text.data[i] <= '9') || (is_hex && byte >= 'a' && byte <= 'f');
        if (!is_digit) return false;
    }
    return text.size > 0;
}

/* thread (0x7F01), thread (34): MainThread */
static bool read_py_spy_thread(struct slice frame, struct thread_fields *fields)
{
    if (!take_start(&frame, "thread (")) return false;
    const uint8_t *end = memchr(frame.data, ')', frame.size);
    if (!end) return false;
    struct slice id = slice_of(frame.data, (size_t)(end - frame.data)), name = text_from(frame, id.size + 1);
    if (!is_thread_number(id) || (name.size > 0 && !take_start(&name, ": "))) return false;
    fields->thread_id = id;
    fields->thread_name = name;
    return true;
}

/* [worker tid=34], [tid=34] */
static bool read_async_thread(struct slice frame, struct thread_fields *fields)
{
    static const char mark[] = "tid=";
    if (!take_start(&frame, "[") || !take_end(&frame, "]")) return false;
    size_t start = frame.size;
    while (start > 0 && frame.data[start - 1] != '=') start--;
    struct slice id = text_from(frame, start), name = slice_of(frame.data, start);
    if (!take_end(&name, mark) || !is_thread_number(id) || (name.size > 0 && !take_end(&name, " "))) return false;
    fields->thread_id = id;
    fields->thread_name = name;
    return true;
}

struct thread_id stack_fields_take_thread(struct profile *profile, struct slice *names)
{
    struct thread_fields fields = {0};
    struct slice left = *names;
    while (left.size > 0 && fields.thread_id.size == 0) {
        if (left.data[0] != 'p' && left.data[0] != 't' && left.data[0] != '[') break;
        const uint8_t *end = memchr(left.data, ';', left.size);
        struct slice frame = slice_of(left.data, end ? (size_t)(end - left.data) : left.size);
        bool is_field = read_process(frame, &fields) || read_py_spy_thread(frame, &fields) ||
                        (left.data == names->data && read_async_thread(frame, &fields));
        if (!is_field) break;
        left = text_from(left, frame.size + (end != NULL));
    }
    if (left.data == names->data) return (struct thread_id){0};
    *names = left;
    struct string_id name = profile_string(profile, fields.process_name);
    struct thread thread = {.process = profile_add_pid(profile, (int64_t)fields.pid, name),
                            .id = profile_string(profile, fields.thread_id),
                            .name = profile_string(profile, fields.thread_name)};
    return profile_add_thread(profile, &thread);
}

/* py-spy has files of Python, and modules that are built in or frozen: <frozen importlib._bootstrap>. */
static bool is_python_file(struct slice file)
{
    return text_ends_with(file, ".py") || text_ends_with(file, ".pyx") ||
           (text_begins_with(file, "<") && text_ends_with(file, ">"));
}

bool stack_fields_take_source(struct slice *name, struct slice *ret_file, int64_t *ret_line)
{
    struct slice left = *name;
    uint64_t line;
    if (!take_end(&left, ")")) return false;
    const uint8_t *colon = left.size > 0 ? memrchr(left.data, ':', left.size) : NULL;
    if (!colon || !text_number(text_from(left, (size_t)(colon + 1 - left.data)), &line) || line > INT64_MAX)
        return false;
    left.size = (size_t)(colon - left.data);
    const uint8_t *open = left.size > 0 ? memrchr(left.data, '(', left.size) : NULL;
    if (!open || open - left.data < 2 || open[-1] != ' ') return false;
    struct slice file = text_from(left, (size_t)(open + 1 - left.data));
    if (!is_python_file(file)) return false;
    *name = slice_of(left.data, (size_t)(open - 1 - left.data));
    *ret_file = file;
    *ret_line = (int64_t)line;
    return true;
}

bool stack_fields_leave_out_cut_line(struct profile *profile, struct slice line, struct slice bytes, enum status status)
{
    if (status != STATUS_MALFORMED || profile->samples.count == 0 || !text_line_is_open(line, bytes)) return false;
    profile_add_omission(profile, "the last line, at byte %zu, is cut short and left out",
                         (size_t)(line.data - bytes.data));
    return true;
}
