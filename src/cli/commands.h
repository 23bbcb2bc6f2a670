/* The commands: each takes its own words (ARGV[0] is its name) and gives the program's exit status.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_COMMANDS_H
#define OFFBEAT_CLI_COMMANDS_H

int command_agent(int argc, char **argv);
int command_convert(int argc, char **argv);
int command_diff(int argc, char **argv);
int command_doctor(int argc, char **argv);
int command_info(int argc, char **argv);
int command_merge(int argc, char **argv);
int command_pprof(int argc, char **argv);
/* The process that reads debug files for command_serve; does not return. */
int command_read_symbols(void);
int command_record(int argc, char **argv);
/* Runs top, tree, peek, list, disasm, traces, tags, raw, graph or flame, as ARGV[0] says. */
int command_report(int argc, char **argv);
int command_send(int argc, char **argv);
int command_serve(int argc, char **argv);
int command_store(int argc, char **argv);
int command_symbolize(int argc, char **argv);
int command_upload_debug(int argc, char **argv);
int command_validate(int argc, char **argv);
int command_view(int argc, char **argv);

#endif
