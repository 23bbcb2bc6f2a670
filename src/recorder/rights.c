/* SPDX-License-Identifier: MIT */
#include "recorder/rights.h"

#include <linux/capability.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

bool rights_have(unsigned capability)
{
    struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
    struct __user_cap_data_struct words[_LINUX_CAPABILITY_U32S_3] = {{0}};
    if (syscall(SYS_capget, &header, words) != 0 || CAP_TO_INDEX(capability) >= _LINUX_CAPABILITY_U32S_3) return false;
    return (words[CAP_TO_INDEX(capability)].effective & CAP_TO_MASK(capability)) != 0;
}

int rights_kernel_setting(const char *name)
{
    char path[64];
    int value = -1;
    (void)snprintf(path, sizeof(path), "/proc/sys/kernel/%s", name);
    FILE *file = fopen(path, "re");
    if (file && fscanf(file, "%d", &value) != 1) value = -1; /* NOLINT(cert-err34-c) */
    if (file) (void)fclose(file);
    return value;
}
