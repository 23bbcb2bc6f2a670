/* SPDX-License-Identifier: MIT */
#include "sdk/contexts.h"

#include "base/json_writer.h"

#include <sched.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>

const char *gnu_get_libc_version(void);
#pragma weak gnu_get_libc_version // see other_libc.c

static void write_system(struct json_writer *writer, const struct utsname *system)
{
    json_begin_object_member(writer, "os");
    json_member_text(writer, "name", system->sysname);
    json_member_text(writer, "version", system->release);
    json_member_text(writer, "build", system->version);
    json_end_object(writer);
}

static void write_device(struct json_writer *writer, const struct utsname *system)
{
    cpu_set_t processors;
    struct sysinfo memory;
    json_begin_object_member(writer, "device");
    json_member_text(writer, "arch", system->machine);
    if (sched_getaffinity(0, sizeof(processors), &processors) == 0) /* it fails with more than 1024 processors */
        json_member_u64(writer, "processor_count", (uint64_t)CPU_COUNT(&processors));
    if (sysinfo(&memory) == 0) json_member_u64(writer, "memory_size", (uint64_t)memory.totalram * memory.mem_unit);
    json_end_object(writer);
}

static void write_app(struct json_writer *writer, const char *release)
{
    const char *at = strchr(release, '@');
    json_begin_object_member(writer, "app");
    json_member_string(writer, "app_name", slice_of(release, at ? (size_t)(at - release) : strlen(release)));
    if (at) json_member_text(writer, "app_version", at + 1);
    json_end_object(writer);
}

void contexts_write(const char *release, struct buffer *out)
{
    struct json_writer writer = json_writer_of(out);
    struct utsname system;
    if (uname(&system) == 0) {
        write_system(&writer, &system);
        write_device(&writer, &system);
    }
    if (gnu_get_libc_version) {
        json_begin_object_member(&writer, "runtime");
        json_member_text(&writer, "name", "glibc");
        json_member_text(&writer, "version", gnu_get_libc_version());
        json_end_object(&writer);
    }
    if (release) write_app(&writer, release);
}
