/* Gives each file of the folders named to a fuzz target once, with any compiler: what once broke something stays a
 * test. Files are cut at several lengths too, so that every decoder also meets its input's end too early. One TAP case
 * a file.  SPDX-License-Identifier: MIT */
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv) __attribute__((weak)); /* most targets have none */

enum { FILE_BYTES_MAX = 4 << 20, CUTS = 24, OPEN_FOLDERS_MAX = 8 };

static unsigned file_count;

/* A block of exactly the size given, so that a sanitizer sees a read past its end. */
static void give(const uint8_t *bytes, size_t size)
{
    uint8_t *copy = malloc(size ? size : 1);
    if (!copy) exit(1);
    memcpy(copy, bytes, size);
    (void)LLVMFuzzerTestOneInput(copy, size);
    free(copy);
}

static int replay(const char *path, const struct stat *status, int kind, struct FTW *place)
{
    static uint8_t bytes[FILE_BYTES_MAX];
    if (kind != FTW_F) return 0;
    FILE *file = fopen(path, "rbe");
    if (!file) return 0;
    size_t size = fread(bytes, 1, sizeof(bytes), file);
    fclose(file);
    for (size_t i = 0; i < CUTS; i++) give(bytes, size * i / CUTS);
    give(bytes, size);
    printf("ok %u - survives %s\n", ++file_count, path + place->base);
    fflush(stdout);
    return 0;
}

int main(int argc, char **argv)
{
    if (LLVMFuzzerInitialize) (void)LLVMFuzzerInitialize(&argc, &argv);
    for (int i = 1; i < argc; i++) nftw(argv[i], replay, OPEN_FOLDERS_MAX, FTW_PHYS);
    printf("1..%u\n", file_count);
    return file_count ? 0 : 1;
}
