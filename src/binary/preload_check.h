/* Can a library be preloaded into a program before it starts?  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BINARY_PRELOAD_CHECK_H
#define OFFBEAT_BINARY_PRELOAD_CHECK_H

#include "base/status.h"

enum preload_answer {
    PRELOAD_POSSIBLE,
    PRELOAD_SCRIPT,     /* "#!": ask again about INTERPRETER */
    PRELOAD_STATIC,     /* nobody reads LD_PRELOAD there */
    PRELOAD_PRIVILEGED, /* it gains rights when it starts (setuid, setgid, capabilities): LD_PRELOAD is ignored */
    PRELOAD_WRONG_ARCHITECTURE, /* not for the processor, or not for the word size, that we are built for */
    PRELOAD_OTHER_LIBC,         /* its dynamic linker is not that of the GNU libc: INTERPRETER */
    PRELOAD_NOT_ELF,            /* neither a program nor a "#!" script; some shells run such a file themselves */
};

enum { PRELOAD_INTERPRETER_SIZE = 4096 };

/* PATH is a file, not a name to be looked up in $PATH. Asks as the calling user, for whom the program would start.
 * RET_INTERPRETER is the path after "#!" or the one in PT_INTERP, "" if there is neither. Fails as elf_file_open does
 * if the file is missing, unreadable or broken. */
enum status preload_check(const char *path, enum preload_answer *ret_answer,
                          char ret_interpreter[PRELOAD_INTERPRETER_SIZE], struct error *error);

#endif
