/* Copies the library LIBRARY, loads the copy, deletes it, and works in it for 0.4 s. "keep": does not delete it;
 * "late": deletes it, and the program, after the work. SPDX-License-Identifier: MIT */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static void own_work(void)
{
    const clock_t end = clock() + CLOCKS_PER_SEC * 2 / 5;
    while (clock() < end) continue;
}

int main(int count, char **arguments)
{
    char command[8192], copy[4096];
    if (!getcwd(copy, sizeof(copy) - sizeof("/copied.so"))) return 2;
    strcat(copy, "/copied.so");
    snprintf(command, sizeof(command), "cp %s %s", arguments[1], copy);
    if (system(command) != 0) return 2;
    void *library = dlopen(copy, RTLD_NOW);
    void (*work)(double) = library ? (void (*)(double))dlsym(library, "work_in_library") : NULL;
    const char *when = count < 3 ? "" : arguments[2];
    if (!*when) unlink(copy);
    if (!work) return 3;
    work(0.4);
    if (strcmp(when, "late") != 0) return 0;
    own_work();
    unlink(copy);
    unlink(arguments[0]);
    return 0;
}
