/* Reads the file once, line by line or record by record, and gives each function to the addresses that it contains.
 * SPDX-License-Identifier: MIT */
#include "symbolize/jit_names.h"

#include "base/partition_point.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PLACE_DIGITS_MAX = 9 };

/* --- The file ----------------------------------------------------------------------------------------------------- */

static bool is_trusted(const struct stat *facts, int64_t not_before)
{
    return (facts->st_uid == geteuid() || facts->st_uid == 0) && facts->st_mtime >= not_before;
}

/* Reads the file, which its program may still be writing, and appends a newline. */
static void read_to_end(int descriptor, struct buffer *bytes)
{
    enum { CHUNK = 256 << 10 };
    for (uint8_t *place; (place = buffer_reserve(bytes, CHUNK));) {
        ssize_t got = read(descriptor, place, CHUNK);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        buffer_grow(bytes, (size_t)got);
    }
    buffer_append_byte(bytes, '\n');
}

static bool is_readable(int descriptor, struct stat *ret_facts)
{
    return fstat(descriptor, ret_facts) == 0 && S_ISREG(ret_facts->st_mode) && ret_facts->st_size <= JIT_MAP_BYTES_MAX;
}

/* --- Lines -------------------------------------------------------------------------------------------------------- */

struct jit_function {
    uint64_t start, end;
    char *name;
};

static bool read_hex(char **position, uint64_t *ret_number)
{
    char *end;
    if (**position == '-' || **position == '+' || **position == ' ') return false;
    errno = 0;
    *ret_number = strtoull(*position, &end, 16);
    bool ok = end > *position && *end == ' ' && errno == 0;
    *position = end + ok;
    return ok;
}

static void clean_name(char *name)
{
    size_t size = strlen(name);
    if (size > JIT_NAME_BYTES_MAX) name[JIT_NAME_BYTES_MAX] = '\0';
    for (; *name; name++)
        if ((unsigned char)*name < ' ' || *name == 0x7f) *name = '?';
}

static bool read_function(char *line, struct jit_function *ret_function)
{
    uint64_t size;
    bool ok = read_hex(&line, &ret_function->start) && read_hex(&line, &size) &&
              !__builtin_add_overflow(ret_function->start, size, &ret_function->end);
    ret_function->name = line;
    return ok && size > 0 && line[0] != '\0';
}

/* Gives the name of FUNCTION to the ADDRESSES in it. */
static void take_function(struct jit_names *names, struct jit_function function, const uint64_t *addresses,
                          size_t count)
{
    size_t first = PARTITION_POINT(count, i, addresses[i] < function.start);
    for (size_t i = first; i < count && addresses[i] < function.end; i++) {
        if (names->matches == JIT_MATCHES_MAX) return;
        names->by_address[i] = function.name;
        names->matches++;
    }
}

/* --- Records ------------------------------------------------------------------------------------------------------ */

/* Sizes and offsets of a jitdump, whose numbers are in the order of the processor that wrote it. */
enum {
    DUMP_HEADER_SIZE_AT = 8,
    DUMP_HEADER_MIN = 40,
    DUMP_RECORD_SIZE_AT = 4,
    DUMP_RECORD_MIN = 16,
    DUMP_CODE_LOAD = 0,
    DUMP_CODE_ADDRESS_AT = 32,
    DUMP_CODE_SIZE_AT = 40,
    DUMP_NAME_AT = 56,
};

static uint32_t number_at(const uint8_t *bytes, size_t offset)
{
    uint32_t number;
    memcpy(&number, bytes + offset, sizeof(number));
    return number;
}

static void take_record(struct jit_names *names, char *record, size_t size, const uint64_t *addresses, size_t count)
{
    struct jit_function function = {.name = record + DUMP_NAME_AT};
    uint64_t code_size;
    if (size <= DUMP_NAME_AT || number_at((const uint8_t *)record, 0) != DUMP_CODE_LOAD) return;
    memcpy(&function.start, record + DUMP_CODE_ADDRESS_AT, sizeof(function.start));
    memcpy(&code_size, record + DUMP_CODE_SIZE_AT, sizeof(code_size));
    bool has_end = memchr(function.name, 0, size - DUMP_NAME_AT) != NULL;
    bool is_range = !__builtin_add_overflow(function.start, code_size, &function.end);
    if (has_end && is_range && function.name[0]) take_function(names, function, addresses, count);
}

/* Returns false if the file is no jitdump. */
static bool take_records(struct jit_names *names, const uint64_t *addresses, size_t count)
{
    uint8_t *bytes = names->bytes.data;
    size_t end = names->bytes.size > 0 ? names->bytes.size - 1 : 0, at = 0; /* a newline was appended */
    if (end < DUMP_HEADER_MIN || memcmp(bytes, "DTiJ", 4) != 0) return false;
    size_t size = number_at(bytes, DUMP_HEADER_SIZE_AT);
    for (size_t least = DUMP_HEADER_MIN; size >= least && size <= end - at; least = DUMP_RECORD_MIN) {
        if (at > 0) take_record(names, (char *)bytes + at, size, addresses, count);
        at += size;
        if (end - at < DUMP_RECORD_MIN) break;
        size = number_at(bytes, at + DUMP_RECORD_SIZE_AT);
    }
    return true;
}

/* --- Public ------------------------------------------------------------------------------------------------------- */

static bool begin(struct jit_names *names, size_t count)
{
    *names = (struct jit_names){.by_address = calloc(count + 1, sizeof(*names->by_address))};
    buffer_init(&names->bytes, JIT_MAP_BYTES_MAX + (1 << 20));
    return names->by_address != NULL;
}

static void take_line(struct jit_names *names, char *line, const uint64_t *addresses, size_t count)
{
    struct jit_function function;
    if (read_function(line, &function)) take_function(names, function, addresses, count);
}

static void take_bytes(struct jit_names *names, const uint64_t *addresses, size_t count)
{
    bool is_dump = take_records(names, addresses, count);
    char *line = (char *)names->bytes.data, *end = line + names->bytes.size;
    for (char *newline; !is_dump && line < end && (newline = memchr(line, '\n', (size_t)(end - line)));
         line = newline + 1) {
        *newline = '\0';
        take_line(names, line, addresses, count);
    }
    for (size_t i = 0; i < count; i++)
        if (names->by_address[i]) clean_name((char *)(uintptr_t)names->by_address[i]);
}

bool jit_names_find(struct jit_names *names, const char *path, int64_t not_before, const uint64_t *addresses,
                    size_t count)
{
    struct stat facts;
    if (!begin(names, count)) return false;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
    if (descriptor < 0) return true;
    if (is_readable(descriptor, &facts) && is_trusted(&facts, not_before)) read_to_end(descriptor, &names->bytes);
    (void)close(descriptor);
    take_bytes(names, addresses, count);
    return true;
}

bool jit_names_find_kept(struct jit_names *names, const char *path, const uint64_t *addresses, size_t count)
{
    struct stat facts;
    /* Whether it can be read, only open says: access goes by the rights of the user, without capabilities. */
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (descriptor < 0) return false;
    bool is_begun = begin(names, count);
    if (is_begun && is_readable(descriptor, &facts)) read_to_end(descriptor, &names->bytes);
    (void)close(descriptor);
    if (is_begun) take_bytes(names, addresses, count);
    return is_begun;
}

/* Steps back over ":DIGITS"; NULL if they are not there. */
static const char *before_number(const char *name, const char *end, int64_t *ret_number)
{
    const char *digits = end;
    while (digits > name && digits[-1] >= '0' && digits[-1] <= '9') digits--;
    if (digits == end || end - digits > PLACE_DIGITS_MAX || digits == name || digits[-1] != ':') return NULL;
    *ret_number = strtoll(digits, NULL, 10);
    return digits - 1;
}

bool jit_name_place(const char *name, struct slice *ret_file, int64_t *ret_line)
{
    int64_t column;
    const char *end = before_number(name, name + strlen(name), &column);
    if (end) end = before_number(name, end, ret_line);
    const char *file = end ? memrchr(name, ' ', (size_t)(end - name)) : NULL;
    if (!file || file + 1 == end) return false;
    *ret_file = slice_of(file + 1, (size_t)(end - file - 1));
    return true;
}

void jit_names_fini(struct jit_names *names)
{
    buffer_fini(&names->bytes);
    free(names->by_address);
    *names = (struct jit_names){0};
}
