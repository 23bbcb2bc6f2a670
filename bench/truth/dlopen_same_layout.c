/* Unloads a library and loads another one, which gets the same addresses.  SPDX-License-Identifier: MIT */
#include "truth.h"
#include <dlfcn.h>

static struct spent in_first, in_second;

static bool run(const char *path, struct spent *sum, int times)
{
    void *library = dlopen(path, RTLD_NOW);
    void (*enter)(double) = library ? (void (*)(double))dlsym(library, "enter") : NULL;
    if (!enter) return false;
    MEASURE(*sum, for (int i = 0; i < times; i++) enter(ticks_a_second));
    return dlclose(library) == 0;
}

int main(void)
{
    calibrate();
    for (double end = end_after(1); now() < end;) {
        if (!run("./plugin_a.so", &in_first, 5) || !run("./plugin_b.so", &in_second, 10)) return 1;
    }
    PRINT_TRUTH(plug_alpha, in_first);
    PRINT_TRUTH(plug_gamma, in_second);
}
