/* SPDX-License-Identifier: MIT */
#include "cli/agent_service.h"

#include "deliver/program_script.h"
#include "recorder/task_files.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

static void take_unit(const struct process_place *place, char name[PROCESS_PLACE_NAME_SIZE])
{
    static const char suffix[] = ".service";
    size_t size = strlen(place->unit), suffix_size = sizeof(suffix) - 1;
    bool is_service = size > suffix_size && strcmp(place->unit + size - suffix_size, suffix) == 0;
    bool is_manager = strncmp(place->unit, "user@", strlen("user@")) == 0;
    if (is_service && !is_manager)
        (void)snprintf(name, PROCESS_PLACE_NAME_SIZE, "%.*s", (int)(size - suffix_size), place->unit);
}

static void take_container(const struct process_place *place, char name[PROCESS_PLACE_NAME_SIZE])
{
    bool is_id = strlen(place->container) == PROCESS_PLACE_ID_SIZE;
    int shown = is_id ? PROCESS_PLACE_ID_SHOWN : PROCESS_PLACE_NAME_SIZE - 1;
    (void)snprintf(name, PROCESS_PLACE_NAME_SIZE, "%.*s", shown, place->container);
}

void agent_command_name(pid_t pid, const char *program, char name[PROCESS_PLACE_NAME_SIZE])
{
    char arguments[4096];
    size_t size = task_read_text(pid, "cmdline", arguments, sizeof(arguments));
    struct slice script = program_script(program, slice_of(arguments, size));
    if (script.size > 0)
        (void)snprintf(name, PROCESS_PLACE_NAME_SIZE, "%.*s", SLICE_ARGUMENTS(script));
    else
        (void)snprintf(name, PROCESS_PLACE_NAME_SIZE, "%s", program);
}

void agent_service_name(const char *choice, pid_t pid, const char *program, const struct process_place *place,
                        char ret_name[PROCESS_PLACE_NAME_SIZE])
{
    bool is_auto = strcmp(choice, "auto") == 0, is_unit = strcmp(choice, "unit") == 0;
    bool is_container = strcmp(choice, "container") == 0, is_command = strcmp(choice, "command") == 0;
    bool is_inside = place->container[0] != '\0';
    ret_name[0] = '\0';
    if (!is_auto && !is_unit && !is_container && !is_command)
        (void)snprintf(ret_name, PROCESS_PLACE_NAME_SIZE, "%s", choice);
    if (is_unit || (is_auto && !is_inside)) take_unit(place, ret_name);
    if (is_container || (is_auto && is_inside)) take_container(place, ret_name);
    if (ret_name[0] == '\0') agent_command_name(pid, program, ret_name);
    /* A release is SERVICE@VERSION, and files are named after services. */
    for (char *at = ret_name; *at; at++) {
        bool is_plain = isgraph((unsigned char)*at) || (unsigned char)*at >= 0x80;
        if (!is_plain || strchr("@/\\", *at)) *at = '-';
    }
}
