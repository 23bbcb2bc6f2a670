/* offbeat serve admin: projects, keys and deletion, of a server that runs or of its data.  SPDX-License-Identifier: MIT
 */
#ifndef OFFBEAT_CLI_SERVE_ADMIN_H
#define OFFBEAT_CLI_SERVE_ADMIN_H

/* ARGV[0] is "admin". Gives the exit status. */
int serve_admin(int argc, char **argv);

#endif
