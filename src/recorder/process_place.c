/* Paths of control groups, as they are found on machines:
 *   docker, podman    /system.slice/docker-ID.scope, /docker/ID, /machine.slice/libpod-ID.scope/container
 *   Kubernetes        /kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podUID.slice/cri-containerd-ID.scope,
 *                     /kubepods/burstable/podUID/ID, the same with crio-ID.scope, …podUID.slice:cri-containerd:ID
 *   LXC, nspawn       /lxc.payload.NAME/…, /lxc/NAME, /machine.slice/machine-NAME.scope
 *   systemd           /system.slice/NAME.service, /user.slice/user-0.slice/user@0.service/app.slice/NAME.service
 * SPDX-License-Identifier: MIT */
#include "recorder/process_place.h"

#include "base/hex.h"
#include "recorder/task_files.h"

#include <stdio.h>
#include <string.h>

enum { TEXT_BYTES_MAX = 1 << 14 };

static void set_name(char name[PROCESS_PLACE_NAME_SIZE], struct slice text)
{
    (void)snprintf(name, PROCESS_PLACE_NAME_SIZE, "%.*s", SLICE_ARGUMENTS(text));
}

/* Takes the id at the end of PART. conmon, the monitor of podman and CRI-O, is outside of the container. */
static bool take_id(struct slice part, struct process_place *place)
{
    if (text_ends_with(part, ".scope")) part.size -= strlen(".scope");
    if (part.size < PROCESS_PLACE_ID_SIZE || memmem(part.data, part.size, "conmon", strlen("conmon"))) return false;
    struct slice id = text_from(part, part.size - PROCESS_PLACE_ID_SIZE);
    bool is_separate = id.data == part.data || id.data[-1] == '-' || id.data[-1] == ':';
    if (!is_separate || !hex_is_lower(id)) return false;
    set_name(place->container, id);
    return true;
}

/* Takes the name of a container that is like a machine. BEFORE is the part before PART. */
static bool take_machine(struct slice before, struct slice part, struct process_place *place)
{
    static const char payload[] = "lxc.payload.", machine[] = "machine-", scope[] = ".scope";
    bool is_virtual = text_begins_with(part, "machine-qemu");
    if (text_begins_with(part, payload))
        set_name(place->container, text_from(part, strlen(payload)));
    else if (slice_equals_text(before, "lxc"))
        set_name(place->container, part);
    else if (text_begins_with(part, machine) && text_ends_with(part, scope) && !is_virtual)
        set_name(place->container, slice_of(part.data + strlen(machine), part.size - strlen(machine) - strlen(scope)));
    else
        return false;
    return true;
}

/* Takes the uid after "pod", which has underscores in the names of slices. The uid of a static pod has no dashes. */
static void take_pod(struct slice part, struct process_place *place)
{
    enum { UID_SIZE = 36, STATIC_UID_SIZE = 32 };
    struct slice uid = {.size = 0};
    size_t size = 0;
    for (size_t i = 0; i + 3 < part.size; i++) {
        bool is_first = i == 0 || part.data[i - 1] == '-';
        if (is_first && memcmp(part.data + i, "pod", 3) == 0) uid = text_from(part, i + 3);
    }
    while (size < uid.size && (hex_digit(uid.data[size]) >= 0 || memchr("-_", uid.data[size], 2))) size++;
    if (size != UID_SIZE && size != STATIC_UID_SIZE) return;
    set_name(place->pod, slice_of(uid.data, size));
    for (char *at = place->pod; *at; at++) *at = *at == '_' ? '-' : *at;
}

/* Takes PART. A unit around a container is that of its manager, and one inside is the container's own. */
static void take_part(struct slice before, struct slice part, struct process_place *place)
{
    take_pod(part, place);
    if (take_id(part, place) || take_machine(before, part, place)) {
        place->unit[0] = '\0';
        return;
    }
    bool is_scope =
        text_ends_with(part, ".scope") && !text_begins_with(part, "libpod-") && !text_begins_with(part, "crio-");
    bool is_unit = part.data[0] != '.' && (is_scope || text_ends_with(part, ".service"));
    if (is_unit) set_name(place->unit, part);
}

static void take_path(struct slice path, struct process_place *place)
{
    struct slice before = {.size = 0};
    while (path.size > 0) {
        struct slice part = text_take_until(&path, '/');
        if (part.size == 0) continue;
        take_part(before, part, place);
        before = part;
    }
}

/* The hierarchies of one process name the same place; a controller that nobody divides has none. */
void process_place_parse(const char *text, struct process_place *ret_place)
{
    struct slice lines = slice_of_text(text);
    *ret_place = (struct process_place){.unit = ""};
    while (lines.size > 0) {
        struct process_place found = {.unit = ""};
        struct slice line = text_take_until(&lines, '\n');
        const uint8_t *colon = line.size > 0 ? memmem(line.data, line.size, ":/", 2) : NULL;
        if (colon) take_path(text_from(line, (size_t)(colon + 1 - line.data)), &found);
        bool is_better = found.container[0] && !ret_place->container[0];
        if (is_better || (!ret_place->container[0] && !ret_place->unit[0])) *ret_place = found;
    }
}

void process_place_read(pid_t pid, struct process_place *ret_place)
{
    char text[TEXT_BYTES_MAX];
    (void)task_read_text(pid, "cgroup", text, sizeof(text));
    process_place_parse(text, ret_place);
}
