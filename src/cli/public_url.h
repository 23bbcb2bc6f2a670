/* The option --public-url of `offbeat serve` and `offbeat serve admin`.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_PUBLIC_URL_H
#define OFFBEAT_CLI_PUBLIC_URL_H

#include <stdbool.h>

enum { PUBLIC_URL_SIZE = 256 };

/* Makes *URL, unless it is NULL, point to COPY, which has no slash at its end. False after a message of COMMAND. */
bool public_url_take(const char *command, const char **url, char copy[PUBLIC_URL_SIZE]);

#endif
