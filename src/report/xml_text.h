/* Writes strings of a profile into XML and HTML.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_REPORT_XML_TEXT_H
#define OFFBEAT_REPORT_XML_TEXT_H

#include "base/buffer.h"
#include "base/slice.h"

/* Appends TEXT, cut to MAXIMUM characters with "…" at its end. Control characters and marks of direction become "?". */
void append_xml(struct buffer *out, struct slice text, size_t maximum);

#endif
