/* SPDX-License-Identifier: MIT */
#include "unwind/unwinder_private.h"

#include <string.h>

static const struct unwinder *const unwinders[] = {&unwinder_of_chosen_machine, &other_unwinder_of_chosen_machine};

enum { UNWINDERS = sizeof(unwinders) / sizeof(unwinders[0]) };

const struct unwinder *unwinder_of_elf(uint16_t elf_machine)
{
    for (size_t i = 0; i < UNWINDERS; i++) {
        if (unwinders[i]->elf_machine == elf_machine) return unwinders[i];
    }
    return NULL;
}

const struct unwinder *unwinder_named(const char *name, size_t size)
{
    for (size_t i = 0; i < UNWINDERS; i++) {
        if (strlen(unwinders[i]->name) == size && memcmp(unwinders[i]->name, name, size) == 0) return unwinders[i];
    }
    return NULL;
}
