/* Reads files of valgrind's massif (massif.out.PID): snapshots, of which some have a tree of the heap. A node is a
 * caller of the node around it, so that a node is a stack, leaf first; what its children do not account for is its own.
 * The profile is the heap where it was largest, or the last one that the file has in detail: inuse_space/bytes.
 * SPDX-License-Identifier: MIT */
#include "format/common/format_ops.h"
#include "format/common/text_line.h"
#include "format/common/valgrind_frame.h"

#include <stdlib.h>

enum { MASSIF_DEPTH_MAX = 1024 }; /* frames of a stack; massif records at most 200 */

struct node {
    struct location_id location; /* 0: a sum of places that are too small */
    int64_t left;                /* bytes that no child has accounted for */
    uint64_t children;           /* children that are still to come */
};

struct decoder {
    struct slice bytes, left, line;
    struct profile *profile;
    struct node *path; /* nodes from the root of the tree on: MASSIF_DEPTH_MAX */
    size_t depth;
    enum status status;
    struct error *error;
};

static void reject(struct decoder *decoder, enum status status, const char *message)
{
    uint64_t offset = (uint64_t)(decoder->line.data - decoder->bytes.data);
    if (decoder->status == STATUS_OK) decoder->status = error_set(decoder->error, status, offset, "%s", message);
}

static bool take_number(struct slice *text, uint64_t *ret_number)
{
    size_t size = 0;
    while (size < text->size && text->data[size] >= '0' && text->data[size] <= '9') size++;
    if (!text_number(slice_of(text->data, size), ret_number)) return false;
    *text = text_from(*text, size);
    return *ret_number <= INT64_MAX;
}

static void skip_blanks(struct slice *text)
{
    while (text->size > 0 && text->data[0] == ' ') *text = text_from(*text, 1);
}

/* "n3: 4096 0x109156: main (a.c:5)": children, bytes, place. */
static bool read_node(struct decoder *decoder, uint64_t *ret_children, uint64_t *ret_bytes, struct slice *ret_place)
{
    struct slice text = decoder->line;
    skip_blanks(&text);
    if (text.size == 0 || text.data[0] != 'n') return false;
    text = text_from(text, 1);
    if (!take_number(&text, ret_children) || text.size == 0 || text.data[0] != ':') return false;
    text = text_from(text, 1);
    skip_blanks(&text);
    if (!take_number(&text, ret_bytes)) return false;
    skip_blanks(&text);
    *ret_place = text;
    return true;
}

/* A sample of what the innermost node has left. */
static void close_node(struct decoder *decoder)
{
    struct node *node = &decoder->path[decoder->depth - 1];
    struct stack_id stack = {0};
    if (node->left > 0) {
        for (size_t i = decoder->depth; i-- > 0;) {
            if (decoder->path[i].location.index)
                stack = profile_add_stack(decoder->profile, stack, decoder->path[i].location);
        }
        profile_add_sample(decoder->profile, &(struct sample){.stack = stack}, &node->left);
    }
    decoder->depth--;
}

static void open_node(struct decoder *decoder, uint64_t children, uint64_t bytes, struct slice place)
{
    if (decoder->depth == MASSIF_DEPTH_MAX) {
        reject(decoder, STATUS_TOO_LARGE, "a stack of more than 1024 frames");
        return;
    }
    if (decoder->depth > 0) {
        struct node *parent = &decoder->path[decoder->depth - 1];
        parent->left -= (int64_t)bytes < parent->left ? (int64_t)bytes : parent->left;
        parent->children--;
    }
    struct node node = {.left = (int64_t)bytes, .children = children};
    /* The root is massif's word for all of malloc, and sums of small places are no frame. */
    if (text_begins_with(place, "0x")) node.location = valgrind_frame_add(decoder->profile, place);
    decoder->path[decoder->depth++] = node;
}

/* The tree that begins on the next line. */
static void read_tree(struct decoder *decoder)
{
    do {
        uint64_t children, bytes;
        struct slice place;
        decoder->line = text_take_line(&decoder->left);
        if (!read_node(decoder, &children, &bytes, &place)) {
            reject(decoder, STATUS_MALFORMED, "expected a node of the heap's tree: \"n0: 16 0x1F: main (a.c:5)\"");
            return;
        }
        open_node(decoder, children, bytes, place);
        while (decoder->status == STATUS_OK && decoder->depth > 0 && decoder->path[decoder->depth - 1].children == 0)
            close_node(decoder);
    } while (decoder->status == STATUS_OK && decoder->depth > 0 && decoder->profile->failed == STATUS_OK);
}

/* Whether all nodes of the tree at the front of TEXT are there, in whole lines. */
static bool is_whole_tree(struct decoder *decoder, struct slice text)
{
    uint64_t awaited = 1, children, bytes;
    struct slice place;
    while (awaited > 0 && text.size > 0) {
        decoder->line = text_take_line(&text);
        if (!read_node(decoder, &children, &bytes, &place) || children > SIZE_MAX - awaited)
            return !text_line_is_open(decoder->line, decoder->bytes); /* a damaged tree is an error later */
        awaited += children - 1;
    }
    return awaited == 0 && (text.size > 0 || decoder->bytes.data[decoder->bytes.size - 1] == '\n');
}

static void note_cut_snapshot(struct decoder *decoder, const uint8_t *place)
{
    profile_add_omission(decoder->profile, "the last snapshot, at byte %zu, is cut short and left out",
                         (size_t)(place - decoder->bytes.data));
}

/* Returns the text after "heap_tree=" of the snapshot to be read: the peak, or else the last in detail; empty if there
 * is none. RET_IS_EMPTY: there are snapshots, and none has memory in use. */
static struct slice find_tree(struct decoder *decoder, bool *ret_is_empty)
{
    static const char bytes_key[] = "mem_heap_B=";
    struct slice found = slice_of(NULL, 0), left = decoder->bytes;
    const uint8_t *snapshot = left.data;
    bool has_heap = false, is_whole = true; /* WHOLE: the last snapshot, up to its tree */
    *ret_is_empty = false;
    while (left.size > 0) {
        struct slice line = text_take_line(&left);
        bool is_peak = slice_equals_text(line, "heap_tree=peak");
        if (text_begins_with(line, "snapshot=")) {
            snapshot = line.data;
            is_whole = false;
        }
        if (text_begins_with(line, bytes_key)) has_heap |= !slice_equals_text(line, "mem_heap_B=0");
        if (slice_equals_text(line, "heap_tree=empty")) {
            is_whole = true;
            *ret_is_empty = !has_heap;
        }
        if (!is_peak && !slice_equals_text(line, "heap_tree=detailed")) continue;
        is_whole = is_whole_tree(decoder, left);
        if (is_whole) found = left;
        if (is_whole && is_peak) return found;
    }
    if (!is_whole) note_cut_snapshot(decoder, snapshot);
    if (found.size > 0)
        profile_add_comment(decoder->profile,
                            slice_of_text("no snapshot is the peak: this is the last one with a tree"));
    return found;
}

static void add_header(struct decoder *decoder)
{
    struct slice left = decoder->bytes;
    for (int i = 0; i < 3 && left.size > 0; i++) {
        struct slice line = text_take_line(&left);
        if (text_begins_with(line, "cmd: ") || text_begins_with(line, "desc: "))
            profile_add_comment(decoder->profile, line);
    }
}

static bool massif_detect(struct slice bytes)
{
    struct slice line = text_take_line(&bytes);
    if (!text_begins_with(line, "desc: ")) return false;
    line = text_take_line(&bytes);
    if (!text_begins_with(line, "cmd: ")) return false;
    line = text_take_line(&bytes);
    return text_begins_with(line, "time_unit: ");
}

static enum status massif_decode(struct slice bytes, struct profile *profile, struct error *error)
{
    struct decoder decoder = {.bytes = bytes, .profile = profile, .error = error};
    if (!massif_detect(bytes)) return error_set(error, STATUS_NOT_THIS_FORMAT, 0, "not a file of massif");
    profile_add_value_type(profile, "inuse_space", "bytes");
    add_header(&decoder);
    bool is_empty;
    decoder.left = find_tree(&decoder, &is_empty);
    decoder.line = bytes;
    if (decoder.left.size == 0 && is_empty && profile->omissions.count == 0) {
        profile_add_comment(profile, slice_of_text("no snapshot has memory in use"));
        return profile_failed(profile, error);
    }
    if (decoder.left.size == 0 && profile->omissions.count > 0)
        return error_set(error, STATUS_MALFORMED, bytes.size,
                         "the file is cut short, before the end of its first tree");
    if (decoder.left.size == 0)
        return error_set(error, STATUS_UNSUPPORTED, bytes.size, "no snapshot has a tree of the heap");
    decoder.path = calloc(MASSIF_DEPTH_MAX, sizeof(*decoder.path));
    if (!decoder.path) return error_set(error, STATUS_NO_MEMORY, 0, "no memory for the tree");
    read_tree(&decoder);
    free(decoder.path);
    return decoder.status == STATUS_OK ? profile_failed(profile, error) : decoder.status;
}

const struct format format_massif = {
    .name = "massif",
    .detect = massif_detect,
    .decode = massif_decode,
};
