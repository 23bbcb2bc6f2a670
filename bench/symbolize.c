/* Names addresses of one file, as `offbeat record` names the addresses of a profile:
 *   symbolize FILE DEBUG-DIRECTORY <ADDRESSES >ANSWERS
 * An address a line, in hex, as the file counts. Answers are in the form of `llvm-symbolizer`: a function and a place a
 * line each, innermost first, and an empty line. SPDX-License-Identifier: MIT */
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "binary/elf_file.h"
#include "symbolize/symbolizer.h"

static void print_location(const struct profile *profile, uint32_t index)
{
    const struct location *location = profile_location(profile, (struct location_id){index});
    const struct line *lines = profile_lines(profile, location);
    for (uint32_t i = 0; i < location->line_count; i++) {
        const struct function *function = profile_function(profile, lines[i].function);
        const char *file = profile_c_string(profile, function->file_name);
        (void)puts(profile_c_string(profile, function->name));
        printf("%s:%" PRId64 ":%" PRId64 "\n", file[0] ? file : "??", lines[i].line, lines[i].column);
    }
    if (location->line_count == 0) printf("??\n??:0:0\n");
    printf("\n");
}

int main(int argc, char **argv)
{
    struct elf_file file;
    struct error error = {0};
    char path[PATH_MAX];
    if (argc != 3 || !realpath(argv[1], path)) return 2;
    if (elf_file_open(&file, path, &error) != STATUS_OK) {
        fprintf(stderr, "%s\n", error.message);
        return 1;
    }
    static char output[1 << 20];
    (void)setvbuf(stdout, output, _IOFBF, sizeof(output));
    struct profile profile;
    profile_init(&profile);
    struct mapping mapping = {.file_name = profile_text(&profile, path),
                              .build_id = profile_text(&profile, file.build_id)};
    for (size_t i = 0; i < file.segment_count; i++) {
        const struct elf_segment *segment = &file.segments[i];
        if (!segment->is_executable) continue;
        mapping.start = segment->address;
        mapping.limit = segment->address + segment->memory_size;
        mapping.file_offset = segment->file_offset;
    }
    elf_file_close(&file);
    struct mapping_id mapping_id = profile_add_mapping(&profile, &mapping);
    uint32_t *locations = NULL;
    size_t count = 0, capacity = 0;
    bool ok = true;
    for (char line[64]; ok && fgets(line, sizeof(line), stdin);) {
        struct location location = {.mapping = mapping_id, .address = strtoull(line, NULL, 16)};
        ok = array_reserve(&locations, &capacity, count + 1, sizeof(*locations), PROFILE_ENTITIES_MAX);
        if (ok) locations[count++] = profile_add_location(&profile, &location, NULL, 0).index;
    }
    struct symbolizer_options options = {.sources = SYMBOLS_OF_THIS_MACHINE,
                                         .debug_directories = {argv[2]},
                                         .debug_directory_count = 1,
                                         .trusts_paths = true};
    enum status status = symbolize_profile(&profile, &options, NULL, &error);
    if (status != STATUS_OK) fprintf(stderr, "%s\n", error.message);
    for (size_t i = 0; ok && i < count; i++) print_location(&profile, locations[i]);
    free(locations);
    profile_fini(&profile);
    return ok && status == STATUS_OK ? 0 : 1;
}
