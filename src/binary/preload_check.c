/* Asks the questions that the kernel and the dynamic linker will ask when the program starts.
 * SPDX-License-Identifier: MIT */
#include "binary/preload_check.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "binary/elf_file.h"

#if defined(__x86_64__)
enum { OWN_MACHINE = EM_X86_64 };
#elif defined(__aarch64__)
enum { OWN_MACHINE = EM_AARCH64 };
#else
#error "name the EM_ constant of this processor"
#endif

/* Linux reads this much of a file to find out how to start it (BINPRM_BUF_SIZE). */
enum { SCRIPT_LINE_MAX = 256 };

static bool read_script_line(const char *path, char line[SCRIPT_LINE_MAX + 1])
{
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (descriptor < 0) return false;
    ssize_t size = pread(descriptor, line, SCRIPT_LINE_MAX, 0);
    close(descriptor);
    line[size > 0 ? size : 0] = '\0';
    return strncmp(line, "#!", 2) == 0;
}

static void take_script_interpreter(const char *line, char *ret_interpreter)
{
    const char *start = line + 2 + strspn(line + 2, " \t");
    size_t size = strcspn(start, " \t\n");
    memcpy(ret_interpreter, start, size);
    ret_interpreter[size] = '\0';
}

/* Whether the kernel would start it with AT_SECURE set. A program that belongs to its caller gains nothing. */
static bool gains_rights(const char *path)
{
    struct stat facts;
    struct statvfs file_system;
    if (stat(path, &facts) != 0) return false;
    if (statvfs(path, &file_system) == 0 && (file_system.f_flag & ST_NOSUID)) return false;
    if ((facts.st_mode & S_ISUID) && facts.st_uid != getuid()) return true;
    if ((facts.st_mode & S_ISGID) && (facts.st_mode & S_IXGRP) && facts.st_gid != getgid()) return true;
    return getuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0;
}

static bool is_gnu_linker(const char *interpreter)
{
    return strncmp(path_base_name_text(interpreter), "ld-linux", strlen("ld-linux")) == 0;
}

static enum preload_answer check_file(const struct elf_file *file, const char *path, const char *interpreter)
{
    if (file->machine != OWN_MACHINE) return PRELOAD_WRONG_ARCHITECTURE;
    if (gains_rights(path)) return PRELOAD_PRIVILEGED;
    if (!file->has_interpreter) return PRELOAD_STATIC;
    return is_gnu_linker(interpreter) ? PRELOAD_POSSIBLE : PRELOAD_OTHER_LIBC;
}

enum status preload_check(const char *path, enum preload_answer *ret_answer,
                          char ret_interpreter[PRELOAD_INTERPRETER_SIZE], struct error *error)
{
    struct elf_file file;
    struct error problem = {0};
    char line[SCRIPT_LINE_MAX + 1];
    ret_interpreter[0] = '\0';
    enum status status = elf_file_open(&file, path, &problem);
    switch ((int)status) {
    case STATUS_OK:
        elf_file_copy_interpreter(&file, ret_interpreter, PRELOAD_INTERPRETER_SIZE);
        *ret_answer = check_file(&file, path, ret_interpreter);
        elf_file_close(&file);
        return STATUS_OK;
    case STATUS_UNSUPPORTED:
        *ret_answer = PRELOAD_WRONG_ARCHITECTURE;
        return STATUS_OK;
    case STATUS_NOT_THIS_FORMAT:
        *ret_answer = PRELOAD_NOT_ELF;
        if (!read_script_line(path, line)) return STATUS_OK;
        take_script_interpreter(line, ret_interpreter);
        *ret_answer = ret_interpreter[0] != '\0' ? PRELOAD_SCRIPT : PRELOAD_NOT_ELF;
        return STATUS_OK;
    default:
        if (error) *error = problem;
        return status;
    }
}
