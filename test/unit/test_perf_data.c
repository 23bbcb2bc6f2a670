/* perf.data, with files that the test makes as perf writes them into a pipe; test/cli/perf_data.py has real ones.
 * SPDX-License-Identifier: MIT */
#include "decoded.h"
#include "test.h"

#include "base/file.h"
#include "format/perf/perf_data.h"
#include "format/perf/perf_layout.h"
#include "unwind/machine.h"

enum {
    ALL = DUMP_TIMES | DUMP_THREADS | DUMP_VALUES | DUMP_ADDRESSES | DUMP_LABELS,
    SAMPLE_TYPE = PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_PERIOD | PERF_SAMPLE_CALLCHAIN,
    SAMPLE_ID_ALL = 1 << 18,
    ATTR_SIZE = 88,
    INTERRUPT_SIZE = 16,                  /* bytes of the fields of an attribute up to the registers of interrupts */
    REGISTERS = 1 << 6 | 1 << 7 | 1 << 8, /* BP, SP and IP of x86-64 */
    FILE_BYTES_MAX = 64 << 20,
};

/* --- A file ---------------------------------------------------------------------------------------------------------
 */

static void put_u32(struct buffer *file, uint32_t value)
{
    buffer_append(file, &value, sizeof(value));
}

static void put_u64(struct buffer *file, uint64_t value)
{
    buffer_append(file, &value, sizeof(value));
}

/* Puts the header of a record whose body follows; the place is for end_record. */
static size_t begin_record(struct buffer *file, uint32_t type, uint16_t misc)
{
    const uint16_t size = 0;
    size_t place = file->size;
    put_u32(file, type);
    buffer_append(file, &misc, sizeof(misc));
    buffer_append(file, &size, sizeof(size));
    return place;
}

static void end_record(struct buffer *file, size_t place)
{
    uint16_t size = (uint16_t)(file->size - place);
    memcpy(file->data + place + 6, &size, sizeof(size));
}

static void put_event_of(struct buffer *file, uint64_t config, uint64_t id, uint64_t more_fields, uint64_t branches)
{
    size_t place = begin_record(file, PERF_RECORD_HEADER_ATTR, 0);
    put_u32(file, PERF_TYPE_SOFTWARE);
    put_u32(file, ATTR_SIZE + (more_fields & PERF_SAMPLE_REGS_INTR ? INTERRUPT_SIZE : 0));
    put_u64(file, config);
    put_u64(file, 1000); /* period */
    put_u64(file, SAMPLE_TYPE | more_fields | (id ? PERF_SAMPLE_IDENTIFIER : 0));
    put_u64(file, 0); /* read format */
    put_u64(file, SAMPLE_ID_ALL);
    for (size_t i = 0; i < 3; i++) put_u64(file, 0);
    put_u64(file, branches);
    put_u64(file, more_fields & PERF_SAMPLE_REGS_USER ? REGISTERS : 0);
    if (more_fields & PERF_SAMPLE_REGS_INTR) {
        put_u64(file, 0); /* size of the stack, clock */
        put_u64(file, REGISTERS);
    }
    if (id) put_u64(file, id);
    end_record(file, place);
}

static void put_event(struct buffer *file, uint64_t config, uint64_t id)
{
    put_event_of(file, config, id, 0, 0);
}

static void begin_file(struct buffer *file)
{
    buffer_init(file, FILE_BYTES_MAX);
    buffer_append_text(file, PERF_MAGIC);
    put_u64(file, PERF_PIPE_HEADER_SIZE);
}

/* The fields after the body of each record except samples. */
static void put_sample_id(struct buffer *file, uint32_t pid, uint64_t time_ns)
{
    put_u32(file, pid);
    put_u32(file, pid);
    put_u64(file, time_ns);
}

static void put_text(struct buffer *file, const char *text)
{
    buffer_append(file, text, strlen(text) + 1);
    while (file->size % 8 != 0) buffer_append_byte(file, 0);
}

struct map {
    uint32_t pid;
    uint64_t start, size, offset, time_ns;
    const char *name;
    bool is_kernel;
};

static void put_map(struct buffer *file, struct map map)
{
    size_t place = begin_record(file, PERF_RECORD_MMAP, map.is_kernel ? PERF_MISC_KERNEL : PERF_MISC_USER);
    put_u32(file, map.pid);
    put_u32(file, map.pid);
    put_u64(file, map.start);
    put_u64(file, map.size);
    put_u64(file, map.offset);
    put_text(file, map.name);
    put_sample_id(file, map.pid, map.time_ns);
    end_record(file, place);
}

static void put_comm(struct buffer *file, uint32_t pid, const char *name, bool is_exec, uint64_t time_ns)
{
    size_t place = begin_record(file, PERF_RECORD_COMM, is_exec ? PERF_MISC_COMM_EXEC : 0);
    put_u32(file, pid);
    put_u32(file, pid);
    put_text(file, name);
    put_sample_id(file, pid, time_ns);
    end_record(file, place);
}

static void put_fork(struct buffer *file, uint32_t parent, uint32_t child, uint64_t time_ns)
{
    size_t place = begin_record(file, PERF_RECORD_FORK, 0);
    put_u32(file, child);
    put_u32(file, parent);
    put_u32(file, child);
    put_u32(file, parent);
    put_u64(file, time_ns);
    put_sample_id(file, child, time_ns);
    end_record(file, place);
}

static size_t begin_sample(struct buffer *file, uint64_t id, uint32_t pid, uint64_t time_ns, const uint64_t *chain,
                           size_t count)
{
    size_t place = begin_record(file, PERF_RECORD_SAMPLE, PERF_MISC_USER);
    if (id) put_u64(file, id);
    put_u64(file, count ? chain[count > 1] : 0x1010);
    put_u32(file, pid);
    put_u32(file, pid);
    put_u64(file, time_ns);
    put_u64(file, 7); /* period */
    put_u64(file, count);
    for (size_t i = 0; i < count; i++) put_u64(file, chain[i]);
    return place;
}

/* A sample in user mode with COUNT addresses in its chain. */
static void put_sample(struct buffer *file, uint64_t id, uint32_t pid, uint64_t time_ns, const uint64_t *chain,
                       size_t count)
{
    end_record(file, begin_sample(file, id, pid, time_ns, chain, count));
}

static void put_round(struct buffer *file)
{
    end_record(file, begin_record(file, PERF_RECORD_FINISHED_ROUND, 0));
}

/* Reads FILE into OUT as text, or writes the message that rejects it. Frees FILE. */
static const char *read_file(struct buffer *out, struct buffer *file, unsigned what)
{
    const char *text = decoded_text(out, &format_perf_data, buffer_slice(file), what | DECODED_OFFSET);
    buffer_fini(file);
    return text;
}

/* --- Tests ----------------------------------------------------------------------------------------------------------
 */

TEST(marks_of_a_chain_say_where_its_addresses_are)
{
    static const uint64_t chain[] = {PERF_CONTEXT_KERNEL,
                                     0xffffffff81000010,
                                     0xffffffff81000020,
                                     PERF_CONTEXT_USER,
                                     0x1010,
                                     0x1020,
                                     (uint64_t)-2048,
                                     0x1030};
    struct buffer file, out;
    begin_file(&file);
    put_event(&file, PERF_SOFTWARE_CPU_CLOCK, 0);
    put_map(&file, (struct map){UINT32_MAX, 0xffffffff81000000, 0x1000, 0xffffffff81000000, 0, "[kernel.kallsyms]_text",
                                true});
    put_map(&file, (struct map){7, 0x1000, 0x1000, 0, 0, "/opt/a", false});
    put_comm(&file, 7, "name", false, 0);
    put_sample(&file, 0, 7, 50, chain, sizeof(chain) / sizeof(chain[0]));
    CHECK_TEXT(read_file(&out, &file, ALL), "samples/count cpu-clock/nanoseconds\n"
                                            "sample at 50 thread 7/name 1 7\n"
                                            " @ffffffff81000010 in [kernel.kallsyms] ?\n"
                                            " @ffffffff8100001f in [kernel.kallsyms] ?\n"
                                            " @1010 in /opt/a ?\n"
                                            " @101f in /opt/a ?\n"
                                            " @1030 in  ?\n");
    buffer_fini(&out);
}

/* Callers by frame pointers, which the program may not have, give way to the calls that the processor kept; other
 * branches say nothing. */
TEST(callers_are_the_calls_that_the_processor_kept)
{
    static const uint64_t chain[] = {PERF_CONTEXT_KERNEL, 0xffffffff81000010, PERF_CONTEXT_USER, 0x1010, 0x1020};
    static const uint64_t calls[] = {0x1031, 0x1000, 0, 0x1042, 0x1030, 0};
    static const struct {
        uint64_t branches;
        const char *callers;
    } cases[] = {{PERF_BRANCH_CALL_STACK | PERF_BRANCH_HW_INDEX, " @1031 in /opt/a ?\n @1042 in /opt/a ?\n"},
                 {PERF_BRANCH_HW_INDEX, " @101f in /opt/a ?\n"}};
    for (size_t i = 0; i < 2; i++) {
        char expected[256];
        struct buffer file, out;
        begin_file(&file);
        put_event_of(&file, PERF_SOFTWARE_CPU_CLOCK, 0, PERF_SAMPLE_BRANCH_STACK, cases[i].branches);
        put_map(&file, (struct map){7, 0x1000, 0x1000, 0, 0, "/opt/a", false});
        put_comm(&file, 7, "name", false, 0);
        size_t sample = begin_sample(&file, 0, 7, 50, chain, sizeof(chain) / sizeof(chain[0]));
        put_u64(&file, 2); /* branches */
        put_u64(&file, 0); /* the index in hardware */
        for (size_t k = 0; k < 6; k++) put_u64(&file, calls[k]);
        end_record(&file, sample);
        (void)snprintf(expected, sizeof(expected),
                       "samples/count cpu-clock/nanoseconds\nsample at 50 thread 7/name 1 7\n"
                       " @ffffffff81000010 in [kernel.kallsyms] ?\n @1010 in /opt/a ?\n%s",
                       cases[i].callers);
        CHECK_TEXT(read_file(&out, &file, ALL), expected);
        buffer_fini(&out);
    }
}

/* Two processors' buffers: what the second one holds is older. */
TEST(records_count_in_the_order_of_their_times)
{
    static const uint64_t chain[] = {PERF_CONTEXT_USER, 0x1010};
    struct buffer file, out;
    begin_file(&file);
    put_event(&file, PERF_SOFTWARE_CPU_CLOCK, 0);
    put_sample(&file, 0, 7, 30, chain, 2);
    put_sample(&file, 0, 7, 50, chain, 2);
    put_map(&file, (struct map){7, 0x1000, 0x1000, 0, 20, "/opt/early", false});
    put_map(&file, (struct map){7, 0x1000, 0x1000, 0, 40, "/opt/late", false});
    put_round(&file);
    put_round(&file);
    CHECK_TEXT(read_file(&out, &file, DUMP_TIMES | DUMP_ADDRESSES), "sample at 30\n @1010 in /opt/early ?\n"
                                                                    "sample at 50\n @1010 in /opt/late ?\n");
    buffer_fini(&out);
}

/* "/opt/late" and "/opt/small" have a table by which every function is the outermost one; other files have none. All of
 * "/opt/small" is mapped from its first page, as LLVM's linker has it. */
static const struct perf_code_file *find_code(void *context, const char *path, const char *build_id)
{
    static const uint32_t blocks[] = {0, 1}, rows[] = {1};
    static const struct machine_rule rules[] = {{.kind = RULE_NONE}, {.kind = RULE_ROOT}};
    static const struct frame_table table = {.end = 0x1000,
                                             .blocks = blocks,
                                             .rows = rows,
                                             .rules = rules,
                                             .row_count = 1,
                                             .block_count = 1,
                                             .rule_count = 2};
    static const struct perf_code_segment segment = {.size = 0x1000};
    static const struct perf_code_file late = {
        .elf_machine = EM_X86_64, .table = &table, .segments = &segment, .segment_count = 1};
    static const struct perf_code_segment part = {.file_offset = 0x750, .size = 0x240, .address = 0x1750};
    static const struct perf_code_file small = {
        .elf_machine = EM_X86_64, .table = &table, .base = 0x1750, .segments = &part, .segment_count = 1};
    (void)context;
    (void)build_id;
    if (strcmp(path, "/opt/small") == 0) return &small;
    return strcmp(path, "/opt/late") == 0 ? &late : NULL;
}

static bool read_buffer(void *context, uint64_t offset, void *bytes, size_t size)
{
    const struct buffer *file = context;
    if (offset > file->size || size > file->size - offset) return false;
    if (size > 0) memcpy(bytes, file->data + offset, size);
    return true;
}

static void put_copied_stack(struct buffer *file, const uint64_t *registers, size_t registers_size,
                             const uint64_t *stack, size_t stack_size)
{
    put_u64(file, PERF_ABI_64);
    buffer_append(file, registers, registers_size);
    put_u64(file, stack_size);
    buffer_append(file, stack, stack_size);
    put_u64(file, stack_size);
}

/* The sample's stack is walked when it is read, and its caller is found by the frame pointer. Then a mapping turns up
 * that is older than the sample: by its table there is no caller. */
TEST(a_copied_stack_is_walked_with_the_mappings_of_its_time)
{
    static const uint64_t chain[] = {PERF_CONTEXT_USER}, registers[] = {0x7008, 0x7000, 0x1010},
                          stack[] = {0, 0, 0x5010, 0};
    struct perf_code code = {.find = find_code};
    for (int has_late = 0; has_late < 2; has_late++) {
        struct buffer file, out;
        begin_file(&file);
        put_event_of(&file, PERF_SOFTWARE_CPU_CLOCK, 0, PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER, 0);
        put_map(&file, (struct map){7, 0x1000, 0x1000, 0, 10, "/opt/early", false});
        put_map(&file, (struct map){7, 0x5000, 0x1000, 0, 10, "/opt/caller", false});
        put_round(&file);
        put_round(&file);
        size_t sample = begin_sample(&file, 0, 7, 30, chain, 1);
        put_copied_stack(&file, registers, sizeof(registers), stack, sizeof(stack));
        end_record(&file, sample);
        if (has_late) put_map(&file, (struct map){7, 0x1000, 0x1000, 0, 20, "/opt/late", false});
        struct perf_source source = {.read = read_buffer, .context = &file, .size = file.size};
        struct profile profile;
        struct error error = {0};
        profile_init(&profile);
        CHECK_INT(perf_data_decode_sources(&source, 1, &code, &profile, &error), STATUS_OK);
        CHECK_TEXT(dump(&out, &profile, DUMP_ADDRESSES),
                   has_late ? "sample\n @1010 in /opt/late ?\n"
                            : "sample\n @1010 in /opt/early ?\n"
                              " @500f in /opt/caller ?\n"
                              " @0 in  [incomplete: code without unwind table] (:0:0)\n");
        buffer_fini(&out);
        buffer_fini(&file);
        profile_fini(&profile);
    }
}

TEST(a_segment_is_found_in_a_mapping_that_begins_before_and_ends_after_it)
{
    static const uint64_t chain[] = {PERF_CONTEXT_USER}, registers[] = {0x7008, 0x7000, 0x5760}, stack[] = {0, 0};
    struct perf_code code = {.find = find_code};
    struct buffer file, out;
    begin_file(&file);
    put_event_of(&file, PERF_SOFTWARE_CPU_CLOCK, 0, PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER, 0);
    put_map(&file, (struct map){7, 0x5000, 0x1000, 0, 10, "/opt/small", false});
    size_t sample = begin_sample(&file, 0, 7, 30, chain, 1);
    put_copied_stack(&file, registers, sizeof(registers), stack, sizeof(stack));
    end_record(&file, sample);
    struct perf_source source = {.read = read_buffer, .context = &file, .size = file.size};
    struct profile profile;
    struct error error = {0};
    profile_init(&profile);
    CHECK_INT(perf_data_decode_sources(&source, 1, &code, &profile, &error), STATUS_OK);
    CHECK_TEXT(dump(&out, &profile, DUMP_ADDRESSES), "sample\n @5760 in /opt/small ?\n");
    buffer_fini(&out);
    buffer_fini(&file);
    profile_fini(&profile);
}

TEST(a_child_has_its_parents_mappings_until_it_runs_another_program)
{
    static const uint64_t chain[] = {PERF_CONTEXT_USER, 0x1010};
    struct buffer file, out;
    begin_file(&file);
    put_event(&file, PERF_SOFTWARE_CPU_CLOCK, 0);
    put_comm(&file, 7, "shell", false, 1);
    put_map(&file, (struct map){7, 0x1000, 0x1000, 0, 1, "/bin/sh", false});
    put_fork(&file, 7, 8, 2);
    put_sample(&file, 0, 8, 3, chain, 2);
    put_map(&file, (struct map){8, 0x1000, 0x1000, 0, 4, "/lib/plugin", false});
    put_sample(&file, 0, 8, 5, chain, 2);
    put_sample(&file, 0, 7, 6, chain, 2);
    put_comm(&file, 8, "ls", true, 7);
    put_sample(&file, 0, 8, 8, chain, 2);
    CHECK_TEXT(read_file(&out, &file, DUMP_THREADS | DUMP_ADDRESSES | DUMP_LABELS),
               "sample thread 8/shell pid=8\n @1010 in /bin/sh ?\n"
               "sample thread 8/shell pid=8\n @1010 in /lib/plugin ?\n"
               "sample thread 7/shell pid=7\n @1010 in /bin/sh ?\n"
               "sample thread 8/shell pid=8 thread=ls\n @1010 in  ?\n");
    buffer_fini(&out);
}

/* A BPF program among the kernel's addresses, and its end, which changes nothing that came before. */
TEST(code_that_the_kernel_made_has_its_name)
{
    static const uint64_t chain[] = {PERF_CONTEXT_KERNEL, 0xffffffffc0000010, 0xffffffff81000020};
    struct buffer file, out;
    begin_file(&file);
    put_event(&file, PERF_SOFTWARE_CPU_CLOCK, 0);
    put_map(&file, (struct map){UINT32_MAX, 0xffffffff81000000, 0x1000, 0xffffffff81000000, 0, "[kernel.kallsyms]_text",
                                true});
    for (uint64_t i = 0; i < 2; i++) {
        size_t symbol = begin_record(&file, PERF_RECORD_KSYMBOL, 0);
        put_u64(&file, 0xffffffffc0000000);
        put_u32(&file, 0x40);
        put_u32(&file, i ? 1 | PERF_KSYMBOL_UNREGISTER << 16 : 1); /* BPF */
        put_text(&file, "bpf_prog_0123456789abcdef_count");
        put_sample_id(&file, 0, i ? 60 : 20);
        end_record(&file, symbol);
    }
    put_sample(&file, 0, 7, 50, chain, sizeof(chain) / sizeof(chain[0]));
    CHECK_TEXT(read_file(&out, &file, DUMP_ADDRESSES),
               "sample\n @ffffffffc0000010 in [bpf] bpf_prog_0123456789abcdef_count (:0:0)\n"
               " @ffffffff8100001f in [kernel.kallsyms] ?\n");
    buffer_fini(&out);
}

static void put_cgroup(struct buffer *file, uint64_t id, const char *path, uint64_t time_ns)
{
    size_t place = begin_record(file, PERF_RECORD_CGROUP, 0);
    put_u64(file, id);
    put_text(file, path);
    put_sample_id(file, 0, time_ns);
    end_record(file, place);
}

static void put_sample_in(struct buffer *file, uint32_t pid, uint64_t time_ns, uint64_t cgroup)
{
    size_t place = begin_sample(file, 0, pid, time_ns, NULL, 0);
    put_u64(file, cgroup);
    end_record(file, place);
}

/* Paths may come after the samples, and the first one of an id counts, as in perf. */
TEST(samples_have_the_paths_of_their_cgroups)
{
    for (uint32_t second_pid = 7; second_pid < 9; second_pid++) {
        struct buffer file, out;
        begin_file(&file);
        put_event_of(&file, PERF_SOFTWARE_CPU_CLOCK, 0, PERF_SAMPLE_CGROUP, 0);
        put_cgroup(&file, 1, "/", 0);
        put_sample_in(&file, 7, 5, 1);
        put_sample_in(&file, second_pid, 6, 0x8000000000000022);
        put_sample_in(&file, 7, 7, 33);
        put_sample_in(&file, 7, 8, 0);
        put_round(&file);
        put_round(&file);
        put_cgroup(&file, 0x8000000000000022, "/shop.slice/web", 20);
        put_cgroup(&file, 0x8000000000000022, "/another", 21);
        CHECK_TEXT(read_file(&out, &file, DUMP_LABELS), second_pid == 7 ? "sample cgroup=/\n ?\n"
                                                                          "sample cgroup=/shop.slice/web\n ?\n"
                                                                          "sample cgroup=unknown\n ?\n"
                                                                          "sample\n ?\n"
                                                                        : "sample pid=7 cgroup=/\n ?\n"
                                                                          "sample pid=8 cgroup=/shop.slice/web\n ?\n"
                                                                          "sample pid=7 cgroup=unknown\n ?\n"
                                                                          "sample pid=7\n ?\n");
        buffer_fini(&out);
    }
}

TEST(a_file_may_have_cgroups_for_one_of_its_events_only)
{
    struct buffer file, out;
    begin_file(&file);
    put_event_of(&file, PERF_SOFTWARE_CPU_CLOCK, 91, PERF_SAMPLE_CGROUP, 0);
    put_event_of(&file, 2, 92, 0, 0);
    put_cgroup(&file, 22, "/web", 0);
    size_t sample = begin_sample(&file, 91, 7, 5, NULL, 0);
    put_u64(&file, 22);
    end_record(&file, sample);
    put_sample(&file, 92, 7, 6, NULL, 0);
    CHECK_TEXT(
        read_file(&out, &file, DUMP_LABELS | DUMP_VALUES),
        "samples/count cpu-clock/nanoseconds page-faults/count\nsample 1 7 0 cgroup=/web\n ?\nsample 1 0 7\n ?\n");
    buffer_fini(&out);
}

/* Fields of other options are between the stack and the cgroup. */
TEST(the_cgroup_is_found_after_the_copied_stack)
{
    enum { MORE = PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER | PERF_SAMPLE_CGROUP };
    static const uint64_t others[] = {0, PERF_SAMPLE_WEIGHT | PERF_SAMPLE_DATA_SRC,
                                      PERF_SAMPLE_WEIGHT_STRUCT | PERF_SAMPLE_TRANSACTION | PERF_SAMPLE_PHYS_ADDR,
                                      PERF_SAMPLE_REGS_INTR};
    static const uint64_t chain[] = {PERF_CONTEXT_USER}, registers[] = {0x7008, 0x7000, 0x1010}, stack[2] = {0};
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        struct buffer file, out;
        begin_file(&file);
        put_event_of(&file, PERF_SOFTWARE_CPU_CLOCK, 0, MORE | others[i], 0);
        put_map(&file, (struct map){7, 0x1000, 0x1000, 0, 0, "/opt/a", false});
        put_cgroup(&file, 22, "/web", 0);
        size_t sample = begin_sample(&file, 0, 7, 30, chain, 1);
        put_copied_stack(&file, registers, sizeof(registers), stack, sizeof(stack));
        bool has_registers = others[i] & PERF_SAMPLE_REGS_INTR;
        if (has_registers) put_u64(&file, PERF_ABI_64);
        for (int k = 0; k < __builtin_popcountll(has_registers ? REGISTERS : others[i]); k++) put_u64(&file, 77);
        put_u64(&file, 22);
        end_record(&file, sample);
        const char *text = read_file(&out, &file, DUMP_LABELS);
        CHECK(strncmp(text, "sample cgroup=/web\n", strlen("sample cgroup=/web\n")) == 0);
        buffer_fini(&out);
    }
}

/* The kinds of CHANGED (a bit each) have other numbers than the system. */
static size_t put_namespaces(struct buffer *file, uint32_t tid, uint64_t kinds, unsigned changed, uint64_t time_ns)
{
    size_t place = begin_record(file, PERF_RECORD_NAMESPACES, 0);
    put_u32(file, 7);
    put_u32(file, tid);
    put_u64(file, kinds);
    for (unsigned i = 0; i < kinds; i++) {
        put_u64(file, 4);
        put_u64(file, (changed >> i & 1 ? 200 : 100) + i);
    }
    put_sample_id(file, tid, time_ns);
    end_record(file, place);
    return place;
}

TEST(namespaces_that_differ_from_the_first_ones_are_a_label)
{
    struct buffer file, out;
    begin_file(&file);
    put_event(&file, PERF_SOFTWARE_CPU_CLOCK, 0);
    size_t hidden = put_namespaces(&file, 1, 7, 0, 1); /* perf may not look into the process */
    memset(file.data + hidden + 24, 0, 7 * 16);
    put_namespaces(&file, 7, 7, 0, 1);
    put_sample(&file, 0, 7, 2, NULL, 0);
    put_namespaces(&file, 7, 7, 0x21, 3);
    put_sample(&file, 0, 7, 4, NULL, 0);
    put_fork(&file, 7, 8, 5);
    put_sample(&file, 0, 8, 6, NULL, 0);
    put_namespaces(&file, 8, 9, 0x1ff, 7); /* a kernel with more kinds */
    put_sample(&file, 0, 8, 8, NULL, 0);
    put_namespaces(&file, 8, 2, 0, 9); /* fewer namespaces */
    put_sample(&file, 0, 8, 10, NULL, 0);
    put_sample(&file, 0, 9, 11, NULL, 0); /* no record */
    CHECK_TEXT(read_file(&out, &file, DUMP_LABELS),
               "sample pid=7\n ?\n"
               "sample pid=7 namespaces=net:200 mnt:205\n ?\n"
               "sample pid=8 namespaces=net:200 mnt:205\n ?\n"
               "sample pid=8 namespaces=net:200 uts:201 ipc:202 pid:203 user:204 mnt:205 cgroup:206\n ?\n"
               "sample pid=8\n ?\n"
               "sample pid=9\n ?\n");
    buffer_fini(&out);
}

static void put_build_id(struct buffer *file, uint8_t byte, const char *path)
{
    const uint8_t id[24] = {byte, byte};
    size_t place = begin_record(file, PERF_RECORD_HEADER_BUILD_ID, PERF_MISC_USER);
    put_u32(file, UINT32_MAX);
    buffer_append(file, id, sizeof(id));
    put_text(file, path);
    end_record(file, place);
}

static void put_map_of_file(struct buffer *file, uint32_t pid, uint64_t inode)
{
    enum { EXECUTABLE = 4 };
    size_t place = begin_record(file, PERF_RECORD_MMAP2, PERF_MISC_USER);
    put_u32(file, pid);
    put_u32(file, pid);
    put_u64(file, 0x1000);
    put_u64(file, 0x1000);
    put_u64(file, 0);
    put_u64(file, 8); /* the device */
    put_u64(file, inode);
    put_u64(file, 0); /* the generation */
    put_u32(file, EXECUTABLE);
    put_u32(file, 0);
    put_text(file, "/opt/a");
    put_sample_id(file, pid, 1);
    end_record(file, place);
}

/* Files of containers with the name of a file outside. perf notes their build ids in the order of their mappings. */
TEST(each_file_of_one_name_has_its_own_build_id)
{
    static const struct {
        uint8_t ids[3];
        uint64_t inodes[4];
        const char *expected; /* the first byte of the build id of each sample's mapping */
    } cases[] = {{{1, 2, 0}, {5, 6, 5, 7}, "01 02 01 - "},
                 {{1, 1, 2}, {5, 6, 7, 6}, "01 01 02 01 "},
                 {{1, 1, 1}, {5, 6, 7, 8}, "01 01 01 01 "},
                 {{1, 2, 0}, {0, 0, 5, 6}, "- - 01 02 "}};
    static const uint64_t chain[] = {PERF_CONTEXT_USER, 0x1010};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct buffer file, found;
        struct profile profile;
        begin_file(&file);
        put_event(&file, PERF_SOFTWARE_CPU_CLOCK, 0);
        for (size_t k = 0; k < 3 && cases[i].ids[k]; k++) put_build_id(&file, cases[i].ids[k], "/opt/a");
        for (uint32_t k = 0; k < 4; k++) {
            put_map_of_file(&file, 10 + k, cases[i].inodes[k]);
            put_sample(&file, 0, 10 + k, 2 + k, chain, 2);
        }
        profile_init(&profile);
        buffer_init(&found, 256);
        CHECK_INT(perf_data_decode(buffer_slice(&file), &profile, NULL), STATUS_OK);
        for (size_t k = 0; k < profile.samples.count; k++) {
            struct location_id leaf = profile_stack(&profile, profile.samples.stack[k]).location;
            const struct mapping *mapping = profile_mapping(&profile, profile_location(&profile, leaf)->mapping);
            const char *id = profile_c_string(&profile, mapping->build_id);
            buffer_append_format(&found, "%.2s ", id[0] ? id : "-");
        }
        buffer_append_byte(&found, '\0');
        CHECK_TEXT((const char *)found.data, cases[i].expected);
        profile_fini(&profile);
        buffer_fini(&found);
        buffer_fini(&file);
    }
}

TEST(a_new_mapping_leaves_the_parts_around_it)
{
    static const uint64_t chain[] = {PERF_CONTEXT_USER, 0x1fff, 0x2001, 0x3001, 0x5001};
    struct buffer file, out;
    begin_file(&file);
    put_event(&file, PERF_SOFTWARE_CPU_CLOCK, 0);
    put_map(&file, (struct map){7, 0x1000, 0x3000, 0x100, 0, "/opt/wide", false});
    put_map(&file, (struct map){7, 0x2000, 0x1000, 0, 0, "/opt/middle", false});
    put_sample(&file, 0, 7, 5, chain, sizeof(chain) / sizeof(chain[0]));
    CHECK_TEXT(read_file(&out, &file, DUMP_ADDRESSES), "sample\n @1fff in /opt/wide ?\n @2000 in /opt/middle ?\n"
                                                       " @3000 in /opt/wide ?\n @5000 in  ?\n");
    buffer_fini(&out);
}

TEST(one_file_in_two_processes_is_one_mapping)
{
    static const uint64_t in_first[] = {PERF_CONTEXT_USER, 0x1010}, in_second[] = {PERF_CONTEXT_USER, 0x9010};
    struct buffer file, out;
    begin_file(&file);
    put_event(&file, PERF_SOFTWARE_CPU_CLOCK, 0);
    put_map(&file, (struct map){7, 0x1000, 0x1000, 0x3000, 0, "/opt/a", false});
    put_map(&file, (struct map){8, 0x9000, 0x1000, 0x3000, 0, "/opt/a", false});
    put_sample(&file, 0, 7, 5, in_first, 2);
    put_sample(&file, 0, 8, 6, in_second, 2);
    CHECK_TEXT(read_file(&out, &file, DUMP_ADDRESSES), "sample\n @1010 in /opt/a ?\nsample\n @1010 in /opt/a ?\n");
    buffer_fini(&out);
}

TEST(each_event_has_a_column_and_its_id_says_which)
{
    struct buffer file, out;
    begin_file(&file);
    put_event(&file, PERF_SOFTWARE_TASK_CLOCK, 91);
    put_event(&file, PERF_SOFTWARE_DUMMY, 92);
    put_event(&file, 2, 93);
    put_sample(&file, 93, 7, 5, NULL, 0);
    put_sample(&file, 91, 7, 6, NULL, 0);
    put_sample(&file, 77, 7, 7, NULL, 0);
    CHECK_TEXT(read_file(&out, &file, DUMP_VALUES),
               "samples/count task-clock/nanoseconds page-faults/count\nsample 1 0 7\n ?\nsample 1 7 0\n ?\n");
    buffer_fini(&out);
}

static void put_read(struct buffer *file, uint64_t id, uint32_t tid, uint64_t time_ns, uint64_t first, uint64_t second)
{
    const uint64_t words[] = {7 /* period */, 2, first, id, second, id + 1, 0 /* no chain */};
    size_t place = begin_record(file, PERF_RECORD_SAMPLE, PERF_MISC_USER);
    put_u64(file, id);
    put_u64(file, 0x1010);
    put_u32(file, 7);
    put_u32(file, tid);
    put_u64(file, time_ns);
    buffer_append(file, words, sizeof(words));
    end_record(file, place);
}

/* Counters that threads inherit are one for each thread. */
TEST(a_group_gives_what_its_counters_have_grown_by)
{
    enum { READ_FORMAT_PLACE = 32, FLAGS_PLACE = 40, INHERIT = 2 };
    for (int is_inherited = 0; is_inherited < 2; is_inherited++) {
        struct buffer file, out;
        begin_file(&file);
        for (uint64_t i = 0; i < 2; i++) {
            size_t attr = file.size + PERF_RECORD_HEADER_SIZE;
            put_event_of(&file, i ? 2 : PERF_SOFTWARE_CPU_CLOCK, 5 + i, PERF_SAMPLE_READ, 0);
            file.data[attr + READ_FORMAT_PLACE] = PERF_FORMAT_GROUP | PERF_FORMAT_ID;
            if (is_inherited) file.data[attr + FLAGS_PLACE] |= INHERIT;
        }
        put_read(&file, 5, 7, 10, 100, 3);
        put_read(&file, 5, 8, 20, 150, 3);
        put_read(&file, 5, 7, 30, 180, 9);
        CHECK_TEXT(read_file(&out, &file, DUMP_VALUES),
                   is_inherited ? "samples/count cpu-clock/nanoseconds page-faults/count\n"
                                  "sample 1 100 3\n ?\nsample 1 150 3\n ?\nsample 1 80 6\n ?\n"
                                : "samples/count cpu-clock/nanoseconds page-faults/count\n"
                                  "sample 1 100 3\n ?\nsample 1 50 0\n ?\nsample 1 30 6\n ?\n");
        buffer_fini(&out);
    }
}

TEST(broken_files_are_rejected_with_the_place)
{
    static const uint64_t chain[] = {PERF_CONTEXT_USER, 0x1010};
    struct buffer file, out;
    begin_file(&file);
    put_sample(&file, 0, 7, 5, chain, 2);
    CHECK_TEXT(read_file(&out, &file, 0), "a record comes before the first event is declared (offset 16)");
    buffer_fini(&out);

    begin_file(&file);
    put_event(&file, PERF_SOFTWARE_CPU_CLOCK, 0);
    put_sample(&file, 0, 7, 5, chain, 2);
    memset(file.data + file.size - 24, 0xff, 8); /* the length of the chain */
    CHECK_TEXT(read_file(&out, &file, 0), "a sample is broken (offset 112)");
    buffer_fini(&out);

    begin_file(&file);
    put_event(&file, PERF_SOFTWARE_CPU_CLOCK, 0);
    put_u64(&file, PERF_RECORD_SAMPLE);
    CHECK_TEXT(read_file(&out, &file, 0), "a record without a size (offset 112)");
    buffer_fini(&out);

    begin_file(&file);
    put_event(&file, PERF_SOFTWARE_CPU_CLOCK, 0);
    put_sample(&file, 0, 7, 5, chain, 2);
    file.size -= 8;
    CHECK_TEXT(read_file(&out, &file, 0), "the file ends within a record (offset 112)");
    buffer_fini(&out);

    begin_file(&file);
    put_event(&file, PERF_SOFTWARE_CPU_CLOCK, 0);
    put_u32(&file, PERF_RECORD_COMPRESSED);
    put_u32(&file, 16 << 16);
    put_u64(&file, 0x1122334455667788);
    CHECK_TEXT(read_file(&out, &file, 0), "a compressed record is damaged (offset 112)");
    buffer_fini(&out);

    begin_file(&file);
    put_event(&file, PERF_SOFTWARE_CPU_CLOCK, 0);
    put_u32(&file, PERF_RECORD_CGROUP);
    put_u32(&file, 24 << 16);
    put_u64(&file, 22);
    put_u64(&file, 0x4141414141414141); /* a path without its end */
    CHECK_TEXT(read_file(&out, &file, 0), "the record of a cgroup is broken (offset 112)");
    buffer_fini(&out);

    begin_file(&file);
    put_event(&file, PERF_SOFTWARE_CPU_CLOCK, 0);
    size_t namespaces = put_namespaces(&file, 7, 3, 0, 0);
    file.data[namespaces + PERF_RECORD_HEADER_SIZE + 8] = 6;
    CHECK_TEXT(read_file(&out, &file, 0), "the record of a process's namespaces is broken (offset 112)");
    buffer_fini(&out);

    begin_file(&file);
    memcpy(file.data, PERF_MAGIC_SWAPPED, PERF_MAGIC_SIZE);
    CHECK_TEXT(read_file(&out, &file, 0),
               "a file of perf record from a big-endian machine; there, type: perf script | offbeat top - (offset 0)");
    buffer_fini(&out);
}

/* Each fork copies what its parent has as soon as it maps something: few bytes must not copy without an end. */
TEST(forks_do_not_copy_mappings_without_an_end)
{
    enum { MAPS = 8000, FORKS = 4000 };
    struct buffer file, out;
    begin_file(&file);
    put_event(&file, PERF_SOFTWARE_CPU_CLOCK, 0);
    for (uint64_t i = 0; i < MAPS; i++)
        put_map(&file, (struct map){7, 0x10000 + i * 0x2000, 0x1000, 0, 0, "/opt/a", false});
    for (uint32_t i = 0; i < FORKS; i++) {
        put_fork(&file, 7, 10 + i, 0);
        put_map(&file, (struct map){10 + i, 0x1000, 0x1000, 0, 0, "/opt/a", false});
    }
    CHECK(strstr(read_file(&out, &file, 0), "more mappings than one process, or all forks, may have") != NULL);
    buffer_fini(&out);
}

/* The data are bytes 264 to 6808 of 9740; perf's facts follow. */
TEST(a_file_that_is_cut_short_is_read_up_to_there_and_says_so)
{
    static const struct {
        size_t size, samples;
    } cuts[] = {{4870, 85}, {6818, 129}, {8766, 129}};
    struct buffer file;
    buffer_init(&file, 1 << 16);
    CHECK_UINT(file_read(TEST_SOURCE_ROOT "/test/data/trials/perf.data", &file, NULL), STATUS_OK);
    for (size_t i = 0; i < sizeof(cuts) / sizeof(cuts[0]); i++) {
        struct profile profile;
        profile_init(&profile);
        CHECK_UINT(format_perf_data.decode(slice_of(file.data, cuts[i].size), &profile, NULL), STATUS_OK);
        CHECK_UINT(profile.samples.count, cuts[i].samples);
        CHECK_UINT(profile.omissions.count, 1);
        profile_fini(&profile);
    }
    buffer_fini(&file);
}

TEST_MAIN()
