/* Paths of control groups, as they are found on machines:
 *   docker, podman    /system.slice/docker-ID.scope, /docker/ID, /machine.slice/libpod-ID.scope/container
 *   Kubernetes        /kubepods.slice/kubepods-burstable.slice/kubepods-burstable-podUID.slice/cri-containerd-ID.scope,
 *                     /kubepods/burstable/podUID/ID, the same with crio-ID.scope, …podUID.slice:cri-containerd:ID
 *   LXC, nspawn       /lxc.payload.NAME/…, /lxc/NAME, /machine.slice/machine-NAME.scope
 *   systemd           /system.slice/NAME.service, /user.slice/user-0.slice/user@0.service/app.slice/NAME.service
 * SPDX-License-Identifier: MIT */
#include "recorder/process_place.h"

#include "recorder/task_files.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_BYTES_MAX = 1 << 14 };

/* A part of a path, without slashes. */
struct part {
    const char *text;
    size_t size;
};

static bool starts_with(struct part part, const char *start)
{
    size_t size = strlen(start);
    return part.size > size && memcmp(part.text, start, size) == 0;
}

static bool ends_with(struct part part, const char *end)
{
    size_t size = strlen(end);
    return part.size > size && memcmp(part.text + part.size - size, end, size) == 0;
}

static void set_name(char name[PROCESS_PLACE_NAME_SIZE], const char *text, size_t size)
{
    (void)snprintf(name, PROCESS_PLACE_NAME_SIZE, "%.*s", (int)size, text);
}

static bool are_hex_digits(const char *text, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (!isxdigit((unsigned char)text[i])) return false;
    }
    return true;
}

/* Takes the id at the end of PART. conmon, the monitor of podman and CRI-O, is outside of the container. */
static bool take_id(struct part part, struct process_place *place)
{
    if (ends_with(part, ".scope")) part.size -= strlen(".scope");
    if (part.size < PROCESS_PLACE_ID_SIZE || memmem(part.text, part.size, "conmon", strlen("conmon"))) return false;
    const char *id = part.text + part.size - PROCESS_PLACE_ID_SIZE;
    bool is_separate = id == part.text || id[-1] == '-' || id[-1] == ':';
    if (!is_separate || !are_hex_digits(id, PROCESS_PLACE_ID_SIZE)) return false;
    set_name(place->container, id, PROCESS_PLACE_ID_SIZE);
    return true;
}

/* Takes the name of a container that is like a machine. BEFORE is the part before PART. */
static bool take_machine(struct part before, struct part part, struct process_place *place)
{
    static const char payload[] = "lxc.payload.", machine[] = "machine-";
    bool is_below_lxc = before.size == strlen("lxc") && memcmp(before.text, "lxc", before.size) == 0;
    bool is_virtual = starts_with(part, "machine-qemu");
    if (starts_with(part, payload))
        set_name(place->container, part.text + strlen(payload), part.size - strlen(payload));
    else if (is_below_lxc)
        set_name(place->container, part.text, part.size);
    else if (starts_with(part, machine) && ends_with(part, ".scope") && !is_virtual)
        set_name(place->container, part.text + strlen(machine), part.size - strlen(machine) - strlen(".scope"));
    else
        return false;
    return true;
}

/* Takes the uid after "pod", which has underscores in the names of slices. The uid of a static pod has no dashes. */
static void take_pod(struct part part, struct process_place *place)
{
    enum { UID_SIZE = 36, STATIC_UID_SIZE = 32 };
    char uid[UID_SIZE + 1];
    const char *start = NULL;
    for (size_t i = 0; i + 3 < part.size; i++) {
        bool is_first = i == 0 || part.text[i - 1] == '-';
        if (is_first && memcmp(part.text + i, "pod", 3) == 0) start = part.text + i + 3;
    }
    size_t size = start ? strspn(start, "0123456789abcdefABCDEF-_") : 0;
    if (size != UID_SIZE && size != STATIC_UID_SIZE) return;
    (void)snprintf(uid, sizeof(uid), "%.*s", (int)size, start);
    for (char *at = uid; *at; at++) *at = *at == '_' ? '-' : *at;
    set_name(place->pod, uid, size);
}

/* Takes PART. A unit around a container is that of its manager, and one inside is the container's own. */
static void take_part(struct part before, struct part part, struct process_place *place)
{
    take_pod(part, place);
    if (take_id(part, place) || take_machine(before, part, place)) {
        place->unit[0] = '\0';
        return;
    }
    bool is_unit = ends_with(part, ".service") ||
                   (ends_with(part, ".scope") && !starts_with(part, "libpod-") && !starts_with(part, "crio-"));
    if (is_unit) set_name(place->unit, part.text, part.size);
}

static void take_path(const char *path, size_t size, struct process_place *place)
{
    struct part before = {.text = path};
    for (const char *end = path + size; path < end;) {
        const char *slash = memchr(path, '/', (size_t)(end - path));
        struct part part = {.text = path, .size = (size_t)((slash ? slash : end) - path)};
        if (part.size > 0) {
            take_part(before, part, place);
            before = part;
        }
        path += part.size + 1;
    }
}

/* The hierarchies of one process name the same place; a controller that nobody divides has none. */
void process_place_parse(const char *text, struct process_place *ret_place)
{
    *ret_place = (struct process_place){.unit = ""};
    for (const char *line = text; *line;) {
        struct process_place found = {.unit = ""};
        size_t size = strcspn(line, "\n");
        const char *path = memmem(line, size, ":/", 2);
        if (path) take_path(path + 1, (size_t)(line + size - path - 1), &found);
        bool is_better = found.container[0] && !ret_place->container[0];
        if (is_better || (!ret_place->container[0] && !ret_place->unit[0])) *ret_place = found;
        line += size + (line[size] == '\n');
    }
}

void process_place_read(pid_t pid, struct process_place *ret_place)
{
    char text[TEXT_BYTES_MAX];
    (void)task_read_text(pid, "cgroup", text, sizeof(text));
    process_place_parse(text, ret_place);
}
