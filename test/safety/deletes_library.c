/* Copies the library LIBRARY, loads the copy, deletes it, unless told to keep it ("keep"), and works in it for 0.4 s.
 * SPDX-License-Identifier: MIT */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int count, char **arguments)
{
    char command[8192], copy[4096];
    if (!getcwd(copy, sizeof(copy) - sizeof("/copied.so"))) return 2;
    strcat(copy, "/copied.so");
    snprintf(command, sizeof(command), "cp %s %s", arguments[1], copy);
    if (system(command) != 0) return 2;
    void *library = dlopen(copy, RTLD_NOW);
    void (*work)(double) = library ? (void (*)(double))dlsym(library, "work_in_library") : NULL;
    if (count < 3 || strcmp(arguments[2], "keep") != 0) unlink(copy);
    if (!work) return 3;
    work(0.4);
    return 0;
}
