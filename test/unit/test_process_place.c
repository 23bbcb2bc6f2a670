/* Units, containers and pods by texts of /proc/PID/cgroup.  SPDX-License-Identifier: MIT */
#include "test.h"

#include "recorder/process_place.h"

#include <string.h>

#define ID "3f2a9c1b7d105e6f8a9b0c1d2e3f405162738495a6b7c8d9e0f1a2b3c4d5e6f7"

static struct process_place place;

static bool is_at(const char *text, const char *unit, const char *container, const char *pod)
{
    process_place_parse(text, &place);
    bool is = strcmp(place.unit, unit) == 0 && strcmp(place.container, container) == 0 && strcmp(place.pod, pod) == 0;
    if (!is) (void)printf("# unit \"%s\", container \"%s\", pod \"%s\"\n", place.unit, place.container, place.pod);
    return is;
}

TEST(docker)
{
    CHECK(is_at("0::/system.slice/docker-" ID ".scope\n", "", ID, ""));
    CHECK(is_at("0::/docker/" ID "\n", "", ID, ""));
    CHECK(is_at("12:pids:/docker/" ID "\n2:cpuset:/\n1:name=systemd:/docker/" ID "\n0::/system.slice/docker.service\n",
                "", ID, ""));
    CHECK(is_at("0::/system.slice/docker-" ID ".scope/system.slice/nginx.service\n", "nginx.service", ID, ""));
    CHECK(is_at("0::/system.slice/docker.service\n", "docker.service", "", ""));
}

TEST(podman)
{
    CHECK(is_at("0::/machine.slice/libpod-" ID ".scope/container\n", "", ID, ""));
    CHECK(is_at("0::/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope/container\n", "", ID,
                ""));
    CHECK(is_at("0::/machine.slice/libpod-conmon-" ID ".scope\n", "", "", ""));
}

TEST(kubernetes)
{
#define UID "0f6a5e2c-1d2b-4c3a-9e8f-7a6b5c4d3e2f"
    CHECK(is_at("0::/kubepods.slice/kubepods-burstable.slice/"
                "kubepods-burstable-pod0f6a5e2c_1d2b_4c3a_9e8f_7a6b5c4d3e2f.slice/cri-containerd-" ID ".scope\n",
                "", ID, UID));
    CHECK(is_at("11:memory:/kubepods/besteffort/pod" UID "/" ID "\n1:name=systemd:/kubepods/besteffort/pod" UID "/" ID
                "\n",
                "", ID, UID));
    CHECK(is_at("0::/kubepods.slice/kubepods-pod0f6a5e2c_1d2b_4c3a_9e8f_7a6b5c4d3e2f.slice/crio-" ID ".scope\n", "", ID,
                UID));
    CHECK(is_at("0::/system.slice/containerd.service/kubepods-pod0f6a5e2c_1d2b_4c3a_9e8f_7a6b5c4d3e2f.slice:"
                "cri-containerd:" ID "\n",
                "", ID, UID));
    CHECK(
        is_at("0::/kubepods/pod00112233445566778899aabbccddeeff/" ID "\n", "", ID, "00112233445566778899aabbccddeeff"));
    CHECK(is_at("0::/../" ID "\n", "", ID, "")); /* seen from inside of another container */
}

TEST(machines)
{
    CHECK(is_at("0::/lxc.payload.web/system.slice/nginx.service\n", "nginx.service", "web", ""));
    CHECK(is_at("4:cpu,cpuacct:/lxc/web\n", "", "web", ""));
    CHECK(is_at("0::/machine.slice/machine-build.scope/payload\n", "", "build", ""));
    CHECK(is_at("0::/machine.slice/machine-qemu\\x2d1\\x2dvm.scope\n", "machine-qemu\\x2d1\\x2dvm.scope", "", ""));
}

TEST(units)
{
    CHECK(is_at("0::/system.slice/nginx.service\n", "nginx.service", "", ""));
    CHECK(is_at("0::/system.slice/system-postgresql.slice/postgresql@15-main.service\n", "postgresql@15-main.service",
                "", ""));
    CHECK(is_at("0::/user.slice/user-0.slice/user@0.service/app.slice/shop.service\n", "shop.service", "", ""));
    CHECK(is_at("0::/user.slice/user-0.slice/session-2.scope\n", "session-2.scope", "", ""));
    CHECK(is_at("9:freezer:/\n3:memory:/system.slice/cron.service\n1:name=systemd:/system.slice/cron.service\n",
                "cron.service", "", ""));
    CHECK(is_at("0::/init.scope\n", "init.scope", "", ""));
}

TEST(nothing)
{
    CHECK(is_at("", "", "", ""));
    CHECK(is_at("0::/\n", "", "", ""));
    CHECK(is_at("0::/a/b", "", "", ""));
    CHECK(is_at("no line of this file", "", "", ""));
    CHECK(is_at("0::/docker/3f2a9c\n0::/pod/podzz\n:/.service\n", "", "", ""));
    static char deep[20000];
    memset(deep, 'x', sizeof(deep) - 1);
    memcpy(deep, "0::/", 4);
    memcpy(deep + sizeof(deep) - 9, ".service", 8);
    process_place_parse(deep, &place);
    CHECK_UINT(strlen(place.unit), PROCESS_PLACE_NAME_SIZE - 1);
}

TEST_MAIN()
