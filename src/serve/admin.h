/* Administration: projects, keys and deletion, by commands with parameters. `offbeat serve admin` runs them in a
 * server, over a socket of its data folder, or in the data of a stopped one; /api/admin/… runs them for a token.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SERVE_ADMIN_H
#define OFFBEAT_SERVE_ADMIN_H

#include "query/query.h"

enum { ADMIN_ANSWER_BYTES_MAX = 16 << 20, ADMIN_OPERANDS_MAX = 2, ADMIN_OPTIONS_MAX = 6 };

/* The socket in the data folder. */
#define ADMIN_SOCKET "admin.sock"

struct admin_call {
    struct store *store;
    const char *base_url; /* URL of the server, for DSNs */
    const struct parameter *parameters;
    size_t parameter_count;
};

struct admin_command {
    const char *name;
    const char *operands[ADMIN_OPERANDS_MAX]; /* parameters that it needs; NULL: fewer */
    const char *options[ADMIN_OPTIONS_MAX];   /* other parameters that it takes; NULL: fewer */
    const char *help;
    bool changes; /* whether it is a POST; the others are GET */
    enum status (*run)(const struct admin_call *call, struct buffer *answer, struct error *error);
};

/* The commands; one without a name ends them. */
extern const struct admin_command admin_commands[];
const struct admin_command *admin_command_find(const char *name); /* NULL: there is none */

/* Runs COMMAND, and writes its answer as JSON. STATUS_MALFORMED: a parameter is missing or wrong,
 * or COMMAND takes none of that name. */
enum status admin_run(const struct admin_command *command, const struct admin_call *call, struct buffer *answer,
                      struct error *error);

/* Sets ADDRESS to that of the socket in FOLDER. RET_FOLDER is to be closed when the address was used. */
struct sockaddr_un;
bool admin_socket_address(const char *folder, struct sockaddr_un *address, int *ret_folder);

#endif
