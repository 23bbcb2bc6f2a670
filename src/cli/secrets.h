/* Passwords and tokens on the command line: neither messages, reports nor the process title show them.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_SECRETS_H
#define OFFBEAT_CLI_SECRETS_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

/* Replaces the user's part of each URL in TEXT, and what follows "token=" in one, by "***". Returns the new length,
 * which is not larger. */
size_t secrets_hide(char *text);

/* Returns TEXT, or a copy without secrets that stays until the program ends. */
const char *without_secrets(const char *text);

/* Returns whether URL has a user's part. */
bool url_has_user(const char *url);

/* Hides the secrets of the ARGC words of ARGV from ps and top; ARGV has them in copies. */
void secrets_hide_title(int argc, char **argv);

enum { TOKEN_SIZE = 256 };
extern const char *token_file; /* the value of --token-file; NULL */

#define OPTION_TOKEN_FILE                                                                                              \
    {                                                                                                                  \
        "token-file", 0, OPTION_TEXT, &token_file,                                                                     \
            .argument = "FILE", .help = "the token of a URL; else $OFFBEAT_TOKEN, for the server of $OFFBEAT_URL"      \
    }

/* Reads the token for URL: the first line of the file of --token-file, or else OFFBEAT_TOKEN if OFFBEAT_URL or
 * OFFBEAT_UPLOAD_URL names a URL of the same server. RET_TOKEN is "" without both. */
enum status token_read(const char *url, char ret_token[TOKEN_SIZE], struct error *error);

#endif
