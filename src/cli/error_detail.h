/* The words of a server about an error. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_ERROR_DETAIL_H
#define OFFBEAT_CLI_ERROR_DETAIL_H

#include "base/json_reader.h"

/* Initialises READER and returns the text of ANSWER, {"detail": "…"}; empty: there is none. READER keeps it until
 * json_reader_fini. */
struct slice error_detail(struct json_reader *reader, struct slice answer);

#endif
