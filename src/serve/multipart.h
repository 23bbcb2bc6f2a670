/* Forms with files, as RFC 7578 has them.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SERVE_MULTIPART_H
#define OFFBEAT_SERVE_MULTIPART_H

#include "base/slice.h"

enum { MULTIPART_PARTS_MAX = 64, MULTIPART_HEADER_BYTES_MAX = 4096 };

/* Whether TYPE, a Content-Type or NULL, says that the body is a form. */
bool multipart_is_form(const char *type);

/* The first part of BODY that is called NAME, within BODY. False if there is none, or BODY is broken before it. */
bool multipart_find(struct slice body, const char *type, const char *name, struct slice *ret_part);

#endif
