/* The members of an object, which may be in any order: their positions are noted first, and then the caller reads them
 * one after the other.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_COMMON_JSON_MEMBERS_H
#define OFFBEAT_FORMAT_COMMON_JSON_MEMBERS_H

#include "base/json_reader.h"
#include "profile/profile.h"

struct json_member {
    const char *name;
    struct slice value; /* bytes of the input; empty: missing, or null */
};

/* Takes the next value, whatever it is: its bytes in the input. */
struct slice json_take_value(struct json_reader *reader);

/* Takes one object, and notes in MEMBERS (COUNT of them, their values empty) what it has of these; of a name that comes
 * twice the last counts. Others are passed over. */
void json_members_note(struct json_reader *reader, struct json_member *members, size_t count);

/* A file that is read part by part into a profile, and the first thing that was wrong with it. */
struct json_parts {
    struct slice bytes; /* bytes of the file */
    struct profile *profile;
    enum status status;
    struct error *error;
};

/* Records MESSAGE about the bytes at PLACE, or about the file if that is NULL. Keeps an earlier failure. */
void json_parts_fail(struct json_parts *parts, enum status status, const uint8_t *place, const char *message);

/* Ends the reading of a part; its first error becomes that of all. */
void json_parts_finish(struct json_parts *parts, struct json_reader *reader);

/* Sets the values of MEMBERS, COUNT of them, to what OBJECT, a part or the file, has of these. */
void json_parts_note(struct json_parts *parts, struct slice object, struct json_member *members, size_t count);

/* The value of the member NAME of OBJECT, a part that may be empty; empty: missing, or null. */
struct slice json_parts_member(struct json_parts *parts, struct slice object, const char *name);

/* dotnet-trace and others write some numbers as texts. */
double json_number_or_text(struct json_reader *reader);

/* The number that VALUE, a part, is; 0 where it is empty. */
double json_parts_double(struct json_parts *parts, struct slice value);

/* The text that VALUE, a part, is, as a string of the profile; 0 where it is empty. */
struct string_id json_parts_text(struct json_parts *parts, struct slice value);

/* VALUE, a text or a number as it is written, as a string of the profile. Programs write ids of processes and threads
 * as both. */
struct string_id json_parts_string(struct json_parts *parts, struct slice value);

#endif
