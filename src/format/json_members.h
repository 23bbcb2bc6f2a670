/* The members of an object whose order is not to be relied on: their places are noted, and each is read when its turn
 * comes.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_JSON_MEMBERS_H
#define OFFBEAT_FORMAT_JSON_MEMBERS_H

#include "base/json_reader.h"

struct json_member {
    const char *name;
    struct slice value; /* as it stands in the input; empty: there is none, or null */
};

/* Takes one object, and notes in MEMBERS (COUNT of them, their values empty) what it has of these; of a name that comes
 * twice the last counts. Others are passed over. */
void json_members_note(struct json_reader *reader, struct json_member *members, size_t count);

#endif
