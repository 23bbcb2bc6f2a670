/* Headers of fixed form, read strictly: a trace that is continued wrongly is worse than one that begins again.
 * SPDX-License-Identifier: MIT */
#include "trace/propagation.h"

#include "base/hex.h"
#include "base/json_reader.h"

#include <ctype.h>
#include <stdio.h>

enum { TRACE_DIGITS = UUID_TEXT_SIZE - 1, SPAN_DIGITS = TRACE_SPAN_ID_SIZE - 1 };

static struct slice trim(struct slice text)
{
    while (text.size > 0 && isspace(text.data[0])) {
        text.data++;
        text.size--;
    }
    while (text.size > 0 && isspace(text.data[text.size - 1])) text.size--;
    return text;
}

/* Takes DIGITS hex digits off TEXT and writes them in lower case, with a NUL. False if there are fewer, or all are 0.
 */
static bool take_id(struct slice *text, size_t digits, char *ret_id)
{
    bool is_zero = true;
    if (text->size < digits) return false;
    for (size_t i = 0; i < digits; i++) {
        if (hex_digit(text->data[i]) < 0) return false;
        ret_id[i] = (char)tolower(text->data[i]);
        if (ret_id[i] != '0') is_zero = false;
    }
    ret_id[digits] = '\0';
    *text = slice_of(text->data + digits, text->size - digits);
    return !is_zero;
}

static bool take_hyphen(struct slice *text)
{
    if (text->size == 0 || text->data[0] != '-') return false;
    *text = slice_of(text->data + 1, text->size - 1);
    return true;
}

static bool take_ids(struct slice *text, struct trace_parent *parent)
{
    return take_id(text, TRACE_DIGITS, parent->trace_id) && take_hyphen(text) &&
           take_id(text, SPAN_DIGITS, parent->span_id);
}

bool trace_parent_read(struct slice header, struct trace_parent *ret_parent)
{
    struct trace_parent parent = {.decision = TRACE_UNDECIDED};
    struct slice rest = trim(header);
    if (!take_ids(&rest, &parent)) return false;
    if (rest.size > 0) {
        if (!take_hyphen(&rest) || rest.size != 1 || (rest.data[0] != '0' && rest.data[0] != '1')) return false;
        parent.decision = rest.data[0] == '1' ? TRACE_SAMPLED : TRACE_NOT_SAMPLED;
    }
    *ret_parent = parent;
    return true;
}

bool trace_parent_read_w3c(struct slice header, struct trace_parent *ret_parent)
{
    struct trace_parent parent;
    struct slice rest = trim(header);
    if (rest.size < 3 || hex_digit(rest.data[0]) < 0 || hex_digit(rest.data[1]) < 0 || rest.data[2] != '-')
        return false;
    bool is_first_version = rest.data[0] == '0' && rest.data[1] == '0';
    if (tolower(rest.data[0]) == 'f' && tolower(rest.data[1]) == 'f') return false; /* W3C forbids it */
    rest = slice_of(rest.data + 3, rest.size - 3);
    if (!take_ids(&rest, &parent) || !take_hyphen(&rest)) return false;
    if (rest.size < 2 || hex_digit(rest.data[0]) < 0 || hex_digit(rest.data[1]) < 0) return false;
    if (rest.size > 2 && (is_first_version || rest.data[2] != '-')) return false;
    static const char odd_digits[] = "13579bdfBDF";
    parent.decision = strchr(odd_digits, rest.data[1]) ? TRACE_SAMPLED : TRACE_NOT_SAMPLED;
    *ret_parent = parent;
    return true;
}

void trace_parent_write(const struct trace_parent *parent, char ret_header[TRACE_HEADER_SIZE])
{
    static const char *const flags[] = {[TRACE_UNDECIDED] = "", [TRACE_NOT_SAMPLED] = "-0", [TRACE_SAMPLED] = "-1"};
    (void)snprintf(ret_header, TRACE_HEADER_SIZE, "%s-%s%s", parent->trace_id, parent->span_id,
                   flags[parent->decision]);
}

void trace_parent_write_w3c(const struct trace_parent *parent, char ret_header[TRACE_HEADER_SIZE])
{
    (void)snprintf(ret_header, TRACE_HEADER_SIZE, "00-%s-%s-0%d", parent->trace_id, parent->span_id,
                   parent->decision == TRACE_SAMPLED);
}

/* --- Incoming requests -------------------------------------------------------------------------------------------- */

static bool may_continue(const struct trace_members *members, const struct trace_continuation *continuation)
{
    const char *ours = continuation->org_id ? continuation->org_id : "";
    const char *theirs = trace_members_find(members, "org_id");
    if (!theirs) theirs = "";
    if (*ours && *theirs) return strcmp(ours, theirs) == 0;
    return !continuation->is_strict || (!*ours && !*theirs);
}

void trace_incoming_read(struct trace_incoming *incoming, const struct trace_headers *headers,
                         const struct trace_continuation *continuation)
{
    char id[UUID_TEXT_SIZE];
    if (!trace_parent_read(headers->sentry_trace, &incoming->parent) &&
        !trace_parent_read_w3c(headers->traceparent, &incoming->parent))
        return;
    trace_members_read_baggage(&incoming->members, headers->baggage);
    bool is_of_trace = uuid_parse(slice_of_text(trace_members_find(&incoming->members, "trace_id")), id) &&
                       strcmp(id, incoming->parent.trace_id) == 0;
    incoming->has_parent = may_continue(&incoming->members, continuation);
    if (!is_of_trace) trace_members_fini(&incoming->members);
    if (!incoming->has_parent) trace_incoming_fini(incoming);
}

double trace_incoming_number(const struct trace_incoming *incoming, const char *key)
{
    struct json_number number;
    const char *text = trace_members_find(&incoming->members, key);
    if (!text || !json_number_of_text(slice_of_text(text), &number)) return -1;
    return json_number_to_double(&number);
}

void trace_incoming_fini(struct trace_incoming *incoming)
{
    trace_members_fini(&incoming->members);
    *incoming = (struct trace_incoming){0};
}
