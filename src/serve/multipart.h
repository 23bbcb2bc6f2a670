/* Forms with files, as RFC 7578 has them.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SERVE_MULTIPART_H
#define OFFBEAT_SERVE_MULTIPART_H

#include "base/slice.h"

enum { MULTIPART_PARTS_MAX = 64, MULTIPART_HEADER_BYTES_MAX = 4096 };

/* Whether TYPE, a Content-Type or NULL, says that the body is a form. */
bool multipart_is_form(const char *type);

/* The parts of a form, one after the other. */
struct multipart {
    struct slice left;  /* rest of the body */
    char delimiter[80]; /* "\r\n--" and the boundary */
    size_t delimiter_size;
    int part_count;
};
struct multipart_part {
    struct slice name, file_name, bytes; /* names are empty if they are not there */
};

/* False if TYPE says that BODY is no form, or BODY begins as none. */
bool multipart_open(struct multipart *form, struct slice body, const char *type);
/* False at the end, where the form is broken, and after MULTIPART_PARTS_MAX parts. */
bool multipart_next(struct multipart *form, struct multipart_part *ret_part);

/* The first part of BODY that is called NAME, within BODY. False if there is none, or BODY is broken before it. */
bool multipart_find(struct slice body, const char *type, const char *name, struct slice *ret_part);

#endif
