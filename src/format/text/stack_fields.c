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
    uint64_t pid = 0;
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

/* Reads a frame that py-spy writes for a thread: "thread (0x7F01)" or "thread (34): MainThread". */
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

/* python-1234/1235, python-?/1235 */
static bool read_perf_thread(struct slice frame, struct thread_fields *fields)
{
    struct slice left = frame;
    while (left.size > 0 && left.data[left.size - 1] != '/') left.size--;
    if (left.size == 0) return false;
    left.size--;
    const uint8_t *dash = memrchr(left.data, '-', left.size);
    if (!dash || dash == left.data) return false;
    uint64_t pid = 0, tid;
    struct slice id = text_from(frame, left.size + 1), process = text_from(left, (size_t)(dash + 1 - left.data));
    bool is_known = text_number(process, &pid) && pid <= INT32_MAX;
    if (!text_number(id, &tid) || (!is_known && !slice_equals_text(process, "?"))) return false;
    fields->pid = is_known ? pid : 0;
    fields->thread_id = id;
    fields->thread_name = slice_of(left.data, (size_t)(dash - left.data));
    return true;
}

/* Reads the fields that only the root of a stack has. */
static bool read_first(struct slice frame, struct thread_fields *fields)
{
    return read_async_thread(frame, fields) || read_perf_thread(frame, fields);
}

struct thread_id stack_fields_take_thread(struct profile *profile, struct slice *names)
{
    struct thread_fields fields = {0};
    struct slice left = *names;
    while (left.size > 0 && fields.thread_id.size == 0) {
        const uint8_t *end = memchr(left.data, ';', left.size);
        struct slice frame = slice_of(left.data, end ? (size_t)(end - left.data) : left.size);
        bool is_field = read_process(frame, &fields) || read_py_spy_thread(frame, &fields) ||
                        (left.data == names->data && read_first(frame, &fields));
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

/* py-spy has files of Python, and modules that are built in or frozen: <frozen importlib._bootstrap>. Without a line,
 * the latter may be anything. */
static bool is_python_file(struct slice file, int64_t line)
{
    return text_ends_with(file, ".py") || text_ends_with(file, ".pyx") ||
           (line > 0 && text_begins_with(file, "<") && text_ends_with(file, ">"));
}

/* Takes ":3" off the end of *TEXT, if it is there. */
static void take_line_number(struct slice *text, int64_t *ret_line)
{
    uint64_t line;
    const uint8_t *colon = text->size > 0 ? memrchr(text->data, ':', text->size) : NULL;
    *ret_line = 0;
    if (!colon || !text_number(text_from(*text, (size_t)(colon + 1 - text->data)), &line) || line > INT64_MAX) return;
    *ret_line = (int64_t)line;
    text->size = (size_t)(colon - text->data);
}

/* Takes "(app.py:3)" off the end of *NAME, as py-spy writes it; without the line with --function. */
static bool take_python_source(struct slice *name, struct slice *ret_file, int64_t *ret_line)
{
    struct slice left = *name;
    if (!take_end(&left, ")")) return false;
    take_line_number(&left, ret_line);
    const uint8_t *open = left.size > 0 ? memrchr(left.data, '(', left.size) : NULL;
    if (!open || open - left.data < 2 || open[-1] != ' ') return false;
    struct slice file = text_from(left, (size_t)(open + 1 - left.data));
    if (!is_python_file(file, *ret_line)) return false;
    *name = slice_of(left.data, (size_t)(open - 1 - left.data));
    *ret_file = file;
    return true;
}

/* Takes "- app.rb:3" off the end of *NAME, as rbspy writes it; functions in C have "- unknown". */
static bool take_ruby_source(struct slice *name, struct slice *ret_file, int64_t *ret_line)
{
    static const char between[] = " - ", in_c[] = "<c function> - unknown";
    struct slice left = *name;
    if (slice_equals_text(left, in_c)) {
        *ret_file = slice_of(NULL, 0);
        name->size -= strlen(" - unknown");
        return true;
    }
    take_line_number(&left, ret_line);
    if (*ret_line == 0 || !text_ends_with(left, ".rb")) return false;
    for (size_t i = left.size; i-- > 1;) {
        if (left.size - i < strlen(between) || memcmp(left.data + i, between, strlen(between)) != 0) continue;
        *name = slice_of(left.data, i);
        *ret_file = text_from(left, i + strlen(between));
        return true;
    }
    return false;
}

bool stack_fields_take_source(struct slice *name, struct slice *ret_file, int64_t *ret_line)
{
    int64_t line = 0;
    bool has_source = take_python_source(name, ret_file, &line) || take_ruby_source(name, ret_file, &line);
    if (has_source) *ret_line = line;
    return has_source;
}

bool stack_fields_leave_out_cut_line(struct profile *profile, struct slice line, struct slice bytes, enum status status)
{
    if (status != STATUS_MALFORMED || profile->samples.count == 0 || !text_line_is_open(line, bytes)) return false;
    profile_add_omission(profile, "the last line, at byte %zu, is cut short and left out",
                         (size_t)(line.data - bytes.data));
    return true;
}
