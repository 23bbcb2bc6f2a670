/* Names of services for processes of a machine.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_AGENT_SERVICE_H
#define OFFBEAT_CLI_AGENT_SERVICE_H

#include "recorder/process_place.h"

/* Writes the service that process PID of PROGRAM at PLACE is. CHOICE: "auto" (the unit, else the container, else the
 * command), "unit", "container", "command", or the name itself. What a process lacks is replaced by its command. */
void agent_service_name(const char *choice, pid_t pid, const char *program, const struct process_place *place,
                        char ret_name[PROCESS_PLACE_NAME_SIZE]);

/* Writes the name of the script that process PID runs, if PROGRAM is an interpreter, else PROGRAM. */
void agent_command_name(pid_t pid, const char *program, char ret_name[PROCESS_PLACE_NAME_SIZE]);

#endif
