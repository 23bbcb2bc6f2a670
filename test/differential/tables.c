/* Our frame tables beside readelf's decoding of the same sections: every row of every function of the ELF files named.
 *
 * A file of the own processor is mapped as the loader would map it, and the sampler's code lists it and builds its
 * table (tables_sampled.c). The sections of a file of the other processor are read from it (tables_read.c). readelf
 * --debug-dump=frames-interp decodes the file independently. A row of ours equals readelf's if the CFA and the rule of
 * each register that survives calls (and of all registers in a wide rule) are the same, at the start of the row and at
 * an address drawn inside of it.
 *
 * readelf prints of an expression only that there is one: its bytes are not compared ("expressions"). It prints "u"
 * both for a register that is undefined and for one without a rule, which ours treats as unchanged: "u" of a
 * register equals both.
 *
 * A CIE can restore registers that it has saved itself: the assembler makes one of the first instructions of a function
 * part. A restored register has the rule that it had before any instruction, none; libgcc, LLVM's libunwind and ours
 * agree. readelf leaves it saved. Such a row is compared again without these registers ("restored").
 *
 * The sampler has no decompressor: rows of a compressed .debug_frame, which Go's linker writes, are counted
 * ("compressed") and not compared.
 *
 * tables [--seed N] FILE…  A line a file, numbers by name; differing rows are printed before it.
 * SPDX-License-Identifier: MIT */
#include "tables.h"

#include "unwind/elf_sections.h"

#include <ctype.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { COLUMNS_MAX = 160, SHOWN_MAX = 10 };

struct shown_cie {
    uint64_t offset;
    unsigned return_register; /* DWARF's number */
    bool is_signal_frame;
    bool has_row;
    struct shown row;
};

struct range {
    uint64_t start, end;
};

struct difference {
    uint64_t pc, cie_offset;
    bool is_debug_frame, is_signal_frame;
    struct shown row;
    char text[240];
};

/* An instruction of a CIE. */
struct restore {
    uint64_t cie_offset;
    bool is_debug_frame;
    unsigned register_number;
};

struct counts {
    uint64_t functions, rows, probes, equal, different, without_rule, expressions, overlapped, compressed, restored;
};

static struct counts counts;
static struct shown_cie *cies;
static size_t cie_count;
static struct range *ranges;
static size_t range_count;
static struct difference *differences;
static size_t difference_count;
static struct restore *restores;
static size_t restore_count;
static uint64_t cie_offset; /* CIE of the function that is read */
static const struct frame_table *table;
static uint64_t link_base; /* base of the table's addresses, as a file address */
static bool is_debug_frame;
static bool is_compressed; /* .debug_frame: the sampler cannot read it, and rows are counted only */

static void *more(void *items, size_t count, size_t item_size)
{
    bool is_full = (count & (count - 1)) == 0; /* powers of two */
    if (!is_full) return items;
    void *grown = realloc(items, (count ? 2 * count : 1) * item_size);
    if (!grown) exit(99);
    return grown;
}

/* --- Files that are read --------------------------------------------------------------------------------------------
 */

static const char *why_excluded(int file, Elf64_Ehdr *header)
{
    if (pread(file, header, sizeof(*header), 0) != sizeof(*header)) return "no ELF file";
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return "no ELF file";
    if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB ||
        header->e_machine != MACHINE_ELF)
        return "other architecture";
    if (header->e_type == ET_REL) return "relocatable";
    if (header->e_type != ET_EXEC && header->e_type != ET_DYN) return "core";
    for (unsigned i = 1; i < header->e_shnum; i++) {
        Elf64_Shdr section;
        if (pread(file, &section, sizeof(section), (off_t)(header->e_shoff + i * sizeof(section))) != sizeof(section))
            break;
        if ((section.sh_flags & SHF_EXECINSTR) && section.sh_type == SHT_NOBITS) return "separate debug information";
    }
    for (unsigned i = 0; i < header->e_phnum; i++) {
        Elf64_Phdr segment;
        if (pread(file, &segment, sizeof(segment), (off_t)(header->e_phoff + i * sizeof(segment))) != sizeof(segment))
            break;
        if (segment.p_type == PT_LOAD && (segment.p_flags & PF_X) && segment.p_filesz > 0) return NULL;
    }
    return "no code";
}

/* --- What readelf prints -------------------------------------------------------------------------------------------
 */

static unsigned columns[COLUMNS_MAX];
static size_t column_count;

static void take_header(char *line)
{
    char *state = NULL;
    column_count = 0;
    (void)strtok_r(line, " \n", &state); /* LOC */
    (void)strtok_r(NULL, " \n", &state); /* CFA */
    for (char *name; (name = strtok_r(NULL, " \n", &state)) && column_count < COLUMNS_MAX;) {
        columns[column_count++] = shown_register(name, strlen(name));
    }
}

static void take_rule(struct shown *row, unsigned number, const char *text, const char *beside)
{
    enum shown_kind kind = SHOWN_NOTHING;
    int64_t value = 0;
    if (strcmp(text, "u") == 0)
        kind = SHOWN_UNKNOWN;
    else if (strcmp(text, "s") == 0)
        kind = SHOWN_SAME;
    else if (strcmp(text, "exp") == 0)
        kind = SHOWN_EXPRESSION;
    else if (strcmp(text, "vexp") == 0)
        kind = SHOWN_VALUE_EXPRESSION;
    else if (text[0] == 'c' || text[0] == 'v') {
        kind = text[0] == 'c' ? SHOWN_CFA : SHOWN_VALUE;
        value = strtoll(text + 1, NULL, 10);
    } else if (text[0] == 'r') {
        kind = SHOWN_REGISTER;
        value = beside ? shown_register(beside + 1, strlen(beside) - 2) : machine_of_dwarf(strtoul(text + 1, NULL, 10));
    }
    if (number >= MACHINE_REGISTERS) {
        row->has_register_outside = true;
        return;
    }
    row->registers[number].kind = (uint8_t)kind;
    row->registers[number].value = value;
}

/* "LOC CFA rule…", where the rule of a register that is in another one is two words: "r3 (rbx)". */
static bool take_row(char *line, struct shown *ret_row)
{
    char *state = NULL, *end = NULL;
    char *location = strtok_r(line, " \n", &state), *cfa = strtok_r(NULL, " \n", &state);
    if (!location || !cfa) return false;
    *ret_row = (struct shown){.start = strtoull(location, &end, 16)};
    if (*end != '\0') return false;
    ret_row->cfa_is_expression = strcmp(cfa, "exp") == 0;
    if (!ret_row->cfa_is_expression) {
        size_t name = strcspn(cfa, "+-");
        ret_row->cfa_register = shown_register(cfa, name);
        ret_row->cfa_offset = strtoll(cfa + name, NULL, 10);
    }
    char *word = strtok_r(NULL, " \n", &state);
    for (size_t i = 0; i < column_count && word; i++) {
        char *next = strtok_r(NULL, " \n", &state);
        char *beside = next && next[0] == '(' ? next : NULL;
        take_rule(ret_row, columns[i], word, beside);
        word = beside ? strtok_r(NULL, " \n", &state) : next;
    }
    return true;
}

/* --- Ours beside it ------------------------------------------------------------------------------------------------
 */

static const char *compare_wide(const struct wide_rule *wide, const struct shown *row, bool is_signal_frame)
{
    if (wide->is_signal_frame != is_signal_frame) return "the kind of frame differs";
    if ((wide->cfa_kind != WIDE_CFA_REGISTER) != row->cfa_is_expression) return "the kind of CFA differs";
    if (wide->cfa_kind == WIDE_CFA_REGISTER &&
        (wide->cfa_register != row->cfa_register || wide->cfa_value != row->cfa_offset))
        return "the CFA differs";
    for (unsigned i = 0; i < MACHINE_REGISTERS; i++) {
        int64_t value = row->registers[i].value;
        bool is_equal = false;
        switch ((enum shown_kind)row->registers[i].kind) {
        case SHOWN_NOTHING:
        case SHOWN_SAME:
            is_equal = wide->saved[i].kind == WIDE_SAME;
            break;
        case SHOWN_UNKNOWN:
            is_equal = wide->saved[i].kind == WIDE_SAME || wide->saved[i].kind == WIDE_LOST;
            break;
        case SHOWN_CFA:
            is_equal = wide->saved[i].kind == WIDE_AT_CFA && wide->saved[i].value == value;
            break;
        case SHOWN_VALUE:
            is_equal = wide->saved[i].kind == WIDE_IS_CFA && wide->saved[i].value == value;
            break;
        case SHOWN_REGISTER:
            is_equal = wide->saved[i].kind == WIDE_IN_REGISTER && wide->saved[i].register_number == value;
            break;
        case SHOWN_EXPRESSION:
            is_equal = wide->saved[i].kind == WIDE_AT_EXPRESSION || wide->saved[i].kind == WIDE_AT_REGISTER;
            break;
        case SHOWN_VALUE_EXPRESSION:
            is_equal = wide->saved[i].kind == WIDE_IS_EXPRESSION;
            break;
        }
        if (!is_equal) return "a register differs";
    }
    return NULL;
}

static bool has_expression(const struct shown *row)
{
    bool has = row->cfa_is_expression;
    for (unsigned i = 0; i < MACHINE_REGISTERS; i++) {
        has |= row->registers[i].kind == SHOWN_EXPRESSION || row->registers[i].kind == SHOWN_VALUE_EXPRESSION;
    }
    return has;
}

/* NULL: equal. "" stands for: ours has no rule. */
static const char *compare(const struct shown *shown, uint64_t pc, bool is_signal_frame)
{
    struct shown finished = *shown;
    const struct shown *row = &finished;
    shown_finish(&finished);
    const struct machine_rule *rule = &table->rules[frame_table_rule_at(table, (uint32_t)(pc - link_base))];
    const char *problem = NULL;
    switch (rule->kind) {
    case RULE_NONE:
        return "";
    case RULE_ROOT:
        return row->registers[MACHINE_IP].kind == SHOWN_UNKNOWN ? NULL : "ours is the root";
    case RULE_REGISTER:
        problem = row->cfa_is_expression ? "the CFA is an expression" : compare_narrow(rule, row);
        if (!problem && is_signal_frame) problem = "the kind of frame differs";
        return problem;
    case RULE_WIDE:
        return compare_wide(&table->wide[rule->value], row, is_signal_frame);
    default: /* a PLT, and code that no function has */
        return row->cfa_is_expression && row->registers[MACHINE_IP].kind == SHOWN_CFA ? NULL : "ours is a PLT";
    }
}

static void note_difference(uint64_t pc, const char *problem, const struct shown *row, bool is_signal_frame)
{
    const struct machine_rule *rule = &table->rules[frame_table_rule_at(table, (uint32_t)(pc - link_base))];
    differences = more(differences, difference_count, sizeof(*differences));
    struct difference *difference = &differences[difference_count++];
    *difference = (struct difference){.pc = pc,
                                      .cie_offset = cie_offset,
                                      .is_debug_frame = is_debug_frame,
                                      .is_signal_frame = is_signal_frame,
                                      .row = *row};
    (void)snprintf(difference->text, sizeof(difference->text),
                   "%s (row %#" PRIx64 "; ours: kind %u, register %u, value %d, saved %#x)",
                   *problem ? problem : "ours has no rule", row->start, rule->kind, rule->cfa_register, rule->value,
                   rule->saved_mask);
}

static void probe(const struct shown *row, uint64_t pc, bool is_signal_frame)
{
    counts.probes++;
    const char *problem = compare(row, pc, is_signal_frame);
    if (problem)
        note_difference(pc, problem, row, is_signal_frame);
    else
        counts.equal++;
}

static void check_row(const struct shown *row, uint64_t end, bool is_signal_frame)
{
    if (row->start >= end) return;
    if (is_debug_frame && is_compressed) {
        counts.compressed++;
        return;
    }
    counts.rows++;
    counts.expressions += has_expression(row);
    probe(row, row->start, is_signal_frame);
    if (end - row->start > 1) probe(row, row->start + 1 + (uint64_t)random() % (end - row->start - 1), is_signal_frame);
}

static const struct shown_cie *find_cie(uint64_t offset)
{
    for (size_t i = cie_count; i > 0; i--) {
        if (cies[i - 1].offset == offset) return &cies[i - 1];
    }
    return NULL;
}

/* --- One file ------------------------------------------------------------------------------------------------------
 */

struct reading {
    bool in_cie, in_fde, has_row;
    struct range range;
    const struct shown_cie *cie;
    struct shown row;
};

static void end_entry(struct reading *reading)
{
    if (reading->in_fde && reading->range.end > reading->range.start) {
        /* Without its own instructions, a function has the row of its CIE, which is not printed again. */
        if (!reading->has_row && reading->cie && reading->cie->has_row) {
            reading->row = reading->cie->row;
            reading->row.start = reading->range.start;
            reading->has_row = true;
        }
        if (reading->has_row)
            check_row(&reading->row, reading->range.end, reading->cie && reading->cie->is_signal_frame);
    }
    reading->in_cie = reading->in_fde = reading->has_row = false;
}

static void begin_entry(struct reading *reading, const char *line)
{
    uint64_t offset = strtoull(line, NULL, 16), cie = 0;
    const char *fde = strstr(line, " FDE cie="), *signature = strstr(line, " CIE \"");
    if (signature) {
        cies = more(cies, cie_count, sizeof(*cies));
        const char *end = strchr(signature + 6, '"');
        bool is_signal_frame = end && memchr(signature + 6, 'S', (size_t)(end - signature - 6));
        cies[cie_count++] = (struct shown_cie){.offset = offset, .is_signal_frame = is_signal_frame};
        const char *return_register = strstr(line, " ra=");
        if (return_register) cies[cie_count - 1].return_register = (unsigned)strtoul(return_register + 4, NULL, 10);
        reading->in_cie = true;
    } else if (fde && sscanf(fde, " FDE cie=%" SCNx64 " pc=%" SCNx64 "..%" SCNx64, &cie, &reading->range.start,
                             &reading->range.end) == 3) {
        reading->in_fde = true;
        reading->cie = find_cie(cie);
        cie_offset = cie;
        /* Code that the linker left out stays described, as if it was at 0. */
        if (reading->range.start == 0) reading->in_fde = false;
        if (!reading->in_fde) return;
        if (!is_debug_frame) counts.functions++;
        if (is_debug_frame && is_compressed) return;
        ranges = more(ranges, range_count, sizeof(*ranges));
        ranges[range_count++] = reading->range;
    }
}

static void take_line(struct reading *reading, char *line)
{
    if (strncmp(line, "Contents of the ", 16) == 0) {
        end_entry(reading);
        is_debug_frame = strstr(line, ".debug_frame") != NULL;
        cie_count = 0;
    } else if (line[0] == '\n' || line[0] == '\0') {
        end_entry(reading);
    } else if (strncmp(line, "   LOC ", 7) == 0) {
        take_header(line);
    } else if (strstr(line, " FDE cie=") || strstr(line, " CIE \"")) {
        end_entry(reading);
        begin_entry(reading, line);
    } else if (reading->in_cie || reading->in_fde) {
        struct shown row;
        if (!isxdigit((unsigned char)line[0]) || !take_row(line, &row)) return;
        const struct shown_cie *cie = reading->in_cie ? &cies[cie_count - 1] : reading->cie;
        row.return_register = cie ? cie->return_register : 0;
        if (reading->in_cie) {
            cies[cie_count - 1].row = row;
            cies[cie_count - 1].has_row = true;
            return;
        }
        if (reading->has_row)
            check_row(&reading->row, row.start < reading->range.end ? row.start : reading->range.end,
                      reading->cie && reading->cie->is_signal_frame);
        reading->row = row;
        reading->has_row = true;
    }
}

static int compare_ranges(const void *a, const void *b)
{
    const struct range *left = a, *right = b;
    if (left->start != right->start) return left->start < right->start ? -1 : 1;
    return (left->end > right->end) - (left->end < right->end);
}

/* True if several functions contain PC, counted from the functions that begin at or below it. */
static bool is_in_several(uint64_t pc)
{
    enum { LOOKED_BACK = 64 };
    size_t low = 0, high = range_count;
    unsigned count = 0;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (ranges[middle].start <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    for (size_t i = low; i > 0 && i + LOOKED_BACK > low; i--) count += ranges[i - 1].end > pc;
    return count > 1;
}

/* readelf's decoding of PATH, as DUMP says; NULL: it cannot be run. */
static FILE *open_readelf(const char *dump, const char *path, pid_t *ret_child)
{
    int ends[2];
    if (pipe(ends) != 0) return NULL;
    *ret_child = fork();
    if (*ret_child == 0) {
        (void)dup2(ends[1], STDOUT_FILENO);
        (void)setenv("LC_ALL", "C", 1);
        int nowhere = open("/dev/null", O_WRONLY);
        (void)dup2(nowhere, STDERR_FILENO);
        close(ends[0]);
        (void)execlp("readelf", "readelf", "--wide", dump, path, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    return fdopen(ends[0], "r");
}

static bool close_readelf(FILE *stream, pid_t child)
{
    int status = 0;
    (void)fclose(stream);
    return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) != 127;
}

static bool read_readelf(const char *path)
{
    pid_t child;
    FILE *stream = open_readelf("--debug-dump=frames-interp,no-follow-links", path, &child);
    char *line = NULL;
    size_t room = 0;
    struct reading reading = {.in_cie = false};
    if (!stream) return false;
    while (getline(&line, &room, stream) > 0) take_line(&reading, line);
    end_entry(&reading);
    free(line);
    return close_readelf(stream, child);
}

static void take_instruction(struct restore *at, bool *in_cie, const char *line)
{
    const char *name = strstr(line, "DW_CFA_restore");
    if (strncmp(line, "Contents of the ", 16) == 0) at->is_debug_frame = strstr(line, ".debug_frame") != NULL;
    if (strstr(line, " CIE")) at->cie_offset = strtoull(line, NULL, 16);
    if (strstr(line, " CIE") || strstr(line, " FDE ")) *in_cie = strstr(line, " CIE") != NULL;
    if (!*in_cie || !name || !(name = strchr(name, '('))) return; /* restore_state names no register */
    at->register_number = shown_register(name + 1, strcspn(name + 1, ")"));
    restores = more(restores, restore_count, sizeof(*restores));
    restores[restore_count++] = *at;
}

static void read_restores(const char *path)
{
    pid_t child;
    FILE *stream = open_readelf("--debug-dump=frames,no-follow-links", path, &child);
    char *line = NULL;
    size_t room = 0;
    struct restore at = {.cie_offset = 0};
    bool in_cie = false;
    if (!stream) return;
    while (getline(&line, &room, stream) > 0) take_instruction(&at, &in_cie, line);
    free(line);
    (void)close_readelf(stream, child);
}

/* True if the rows differ only in registers that the CIE restores and readelf still shows as saved: ours is right. */
static bool is_restored(const struct difference *difference)
{
    struct shown row = difference->row;
    for (size_t i = 0; i < restore_count; i++) {
        const struct restore *restore = &restores[i];
        if (restore->cie_offset == difference->cie_offset && restore->is_debug_frame == difference->is_debug_frame &&
            restore->register_number < MACHINE_REGISTERS)
            row.registers[restore->register_number].kind = SHOWN_NOTHING;
    }
    return compare(&row, difference->pc, difference->is_signal_frame) == NULL;
}

static void check_differences(const char *path)
{
    uint64_t shown = 0;
    qsort(ranges, range_count, sizeof(*ranges), compare_ranges);
    if (difference_count > 0) read_restores(path);
    for (size_t i = 0; i < difference_count; i++) {
        if (is_in_several(differences[i].pc)) {
            counts.overlapped++;
            continue;
        }
        if (is_restored(&differences[i])) {
            counts.restored++;
            continue;
        }
        bool has_rule = strncmp(differences[i].text, "ours has no rule", 16) != 0;
        if (has_rule)
            counts.different++;
        else
            counts.without_rule++;
        if (shown++ < SHOWN_MAX) printf("# %s: %#" PRIx64 ": %s\n", path, differences[i].pc, differences[i].text);
    }
}

uint64_t thread_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void check_table(const char *path, const struct loaded_table *loaded)
{
    static const struct machine_rule no_rule;
    const struct frame_table none = {.rules = &no_rule};
    link_base = loaded->link_base;
    table = loaded->table ? loaded->table : &none;
    if (!read_readelf(path)) {
        printf("%s\tunread\treadelf failed\n", path);
        return;
    }
    check_differences(path);
    printf("%s\t%s\t", path, loaded->table ? "table" : range_count ? "without" : "nothing");
    printf("functions=%" PRIu64 " rows=%" PRIu64 " probes=%" PRIu64 " equal=%" PRIu64 " different=%" PRIu64
           " without_rule=%" PRIu64 " overlapped=%" PRIu64 " expressions=%" PRIu64 " compressed=%" PRIu64
           " restored=%" PRIu64,
           counts.functions, counts.rows, counts.probes, counts.equal, counts.different, counts.without_rule,
           counts.overlapped, counts.expressions, counts.compressed, counts.restored);
    printf(" fdes=%u broken=%u rejected=%u rules=%u wide=%u expression_bytes=%u table_rows=%u table_bytes=%zu code=%u "
           "build_us=%" PRIu64 "\n",
           table->fde_count, table->broken_fde_count, table->rejected_row_count, table->rule_count, table->wide_count,
           table->expression_bytes, table->row_count, table->memory_size, table->end, loaded->build_ns / 1000);
}

static bool read_at(void *context, uint64_t offset, void *bytes, size_t size)
{
    const int *file = context;
    return pread(*file, bytes, size, (off_t)offset) == (ssize_t)size;
}

static void check_file(const char *path)
{
    struct elf_frame_sections sections = {0};
    struct loaded_table loaded = {.table = NULL};
    Elf64_Ehdr header;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        printf("%s\texcluded\tcannot be opened\n", path);
        return;
    }
    const char *excluded = why_excluded(file, &header);
    is_compressed = !elf_frame_sections_find(read_at, &file, &sections) || sections.debug_frame.size == 0;
    counts = (struct counts){.rows = 0};
    cie_count = range_count = difference_count = restore_count = 0;
    if (!excluded) excluded = table_load(file, &header, &loaded);
    if (excluded)
        printf("%s\texcluded\t%s\n", path, excluded);
    else
        check_table(path, &loaded);
    table_unload();
    close(file);
    (void)fflush(stdout);
}

int main(int argc, char **argv)
{
    unsigned seed = (unsigned)time(NULL);
    int first = 1;
    if (argc > 2 && strcmp(argv[1], "--seed") == 0) {
        seed = (unsigned)strtoul(argv[2], NULL, 10);
        first = 3;
    }
    for (int i = first; i < argc; i++) {
        srandom(seed);
        check_file(argv[i]);
    }
    return 0;
}
