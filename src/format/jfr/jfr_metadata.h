/* The types of a chunk of a recording, and its primitive values.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_JFR_JFR_METADATA_H
#define OFFBEAT_FORMAT_JFR_JFR_METADATA_H

#include "base/cursor.h"
#include "base/index_table.h"
#include "profile/profile.h"

enum {
    JFR_STRINGS_MAX = 1 << 20, /* strings of the metadata of one chunk */
    JFR_CLASSES_MAX = 1 << 16, /* classes of one chunk */
    JFR_DEPTH_MAX = 32,        /* levels of elements of the metadata, and of values in values */
};

/* Members that are read; all others are passed over. */
enum jfr_role {
    JFR_OTHER,
    JFR_START_TIME,
    JFR_DURATION,
    JFR_THREAD,
    JFR_STACK_TRACE,
    JFR_WEIGHT, /* weight of allocations; JFR_SAMPLES: weight of wall clock samples */
    JFR_SAMPLES,
    JFR_SIZE, /* size of an object, for events without a weight */
    JFR_FRAMES,
    JFR_METHOD,
    JFR_LINE,
    JFR_TYPE,
    JFR_NAME,
    JFR_STRING,
    JFR_OS_NAME,
    JFR_OS_ID,
    JFR_JAVA_NAME,
    JFR_JAVA_ID,
    JFR_ID,
    JFR_VALUE,
    JFR_ROLES,
};

/* Kinds of events that are read: those from JFR_EXECUTION on become samples. */
enum jfr_event {
    JFR_NO_EVENT,
    JFR_SETTING,
    JFR_EXECUTION,
    JFR_NATIVE,
    JFR_WALL,
    JFR_ALLOCATION,
    JFR_TLAB,
    JFR_LIVE,
    JFR_MALLOC,
    JFR_LOCK,
    JFR_EVENTS
};

enum jfr_primitive { JFR_STRUCT, JFR_BYTE, JFR_VARINT, JFR_FLOAT, JFR_DOUBLE, JFR_TEXT };

struct jfr_field {
    uint64_t class_id;
    uint32_t class_index; /* INDEX_NONE: unknown */
    enum jfr_role role;
    bool is_constant, is_array;
};

struct jfr_class {
    uint64_t id;
    enum jfr_primitive primitive;
    enum jfr_event event;
    uint32_t field_first, field_count;
};

struct jfr_types {
    ARRAY_OF(struct slice) strings;
    INDEXED_ARRAY_OF(struct jfr_class) classes;
    ARRAY_OF(struct jfr_field) fields;
    const char *message; /* error message; NULL: none */
    enum status status;
};

/* Reads a number of at most 9 bytes; the last one has 8 bits. */
uint64_t jfr_varint(struct cursor *cursor);

enum jfr_text_kind { JFR_TEXT_NONE, JFR_TEXT_BYTES, JFR_TEXT_CONSTANT, JFR_TEXT_UTF16, JFR_TEXT_LATIN1 };
struct jfr_text {
    enum jfr_text_kind kind;
    struct slice bytes; /* bytes of UTF-8 or Latin-1, or the numbers of UTF-16 */
    uint64_t constant;
};
struct jfr_text jfr_text(struct cursor *cursor);

/* Reads the event of metadata that CURSOR is at. False if it is broken: MESSAGE and STATUS say how. */
bool jfr_types_read(struct jfr_types *types, struct cursor *cursor);
void jfr_types_fini(struct jfr_types *types);
uint32_t jfr_types_find(const struct jfr_types *types, uint64_t class_id); /* INDEX_NONE: unknown */

#endif
