/* The linker writes down where .eh_frame begins, but not its length: it is copied up to the end of its segment, which
 * need not be the one that holds .eh_frame_hdr. Without .eh_frame_hdr, as in many static programs, and for
 * .debug_frame, the section headers of the file are used. SPDX-License-Identifier: MIT */
#include "sampler/modules/table_job.h"

#include "base/pages.h"
#include "base/plain_text.h"
#include "sampler/modules/image_file.h"
#include "sampler/modules/image_headers.h"
#include "sampler/kernel/own_memory.h"
#include "unwind/frame_build.h"
#include "unwind/frame_table_file.h"

enum {
    INFORMATION_MAX = 256 << 20,
    CHUNK = 256 << 10,
    PAGE_BYTES = 4096,
    FUNCTIONS_WORTH_KEEPING = 256,
};

enum phase { LOAD, LOCATE, COPY_EH_FRAME, COPY_HEADER, COPY_DEBUG_FRAME, BEGIN, BUILD, KEEP, DONE };

enum { EH_FRAME, HEADER, DEBUG_FRAME, COPIES };

struct copying {
    uint8_t *memory;
    size_t size;
    uint64_t address; /* address in memory; 0: it is not mapped */
    uint64_t offset;  /* offset in the file */
    bool is_in_file;  /* true if the file has the same bytes as memory */
    size_t done;      /* bytes copied */
};

struct table_job {
    struct table_source source;
    char path[MODULE_PATH_MAX];
    enum phase phase;
    enum table_outcome outcome;
    struct copying copies[COPIES];
    uint8_t *copied; /* all copies, in one block: unmapping interrupts the program's threads */
    size_t copied_size;
    bool has_lookup;
    struct frame_lookup lookup;
    struct frame_build *build;
    struct frame_table table;
};

static void end_with(struct table_job *job, enum table_outcome outcome)
{
    job->outcome = outcome;
    job->phase = DONE;
}

/* --- Where the sections are --------------------------------------------------------------------------------------- */

/* Finds the segment around ADDRESS. Returns false if the file has no bytes there. */
static bool find_segment(const struct table_job *job, uint64_t address, Elf64_Phdr *ret_segment)
{
    static struct image_headers headers; /* the sampler thread's alone */
    if (address == 0 || !image_headers_read(job->source.image.start, &headers)) return false;
    for (size_t i = 0; i < headers.count; i++) {
        uint64_t start = job->source.image.load_bias + headers.items[i].p_vaddr,
                 end = start + headers.items[i].p_filesz;
        if (headers.items[i].p_type != PT_LOAD || address < start || address >= end) continue;
        *ret_segment = headers.items[i];
        return true;
    }
    return false;
}

static uint64_t segment_end(const struct table_job *job, uint64_t address)
{
    Elf64_Phdr segment;
    if (!find_segment(job, address, &segment)) return 0;
    return job->source.image.load_bias + segment.p_vaddr + segment.p_filesz;
}

/* Returns the address of .eh_frame, which is the second field of .eh_frame_hdr; 0 if that cannot be read. */
static uint64_t eh_frame_of_header(const struct table_job *job)
{
    uint8_t first[16];
    struct cfi_section header = {.address = job->source.image.header_start,
                                 .data_address = job->source.image.header_start};
    if (job->source.image.header_size < 8) return 0;
    if (process_read_memory(job->source.image.header_start, first, sizeof(first)) != sizeof(first)) return 0;
    header.bytes = slice_of(first, sizeof(first));
    struct cursor cursor = cursor_of(header.bytes);
    cursor_skip(&cursor, 4);
    uint64_t eh_frame = cfi_encoded_pointer(&cursor, &header, first[1]);
    return cursor.failed ? 0 : eh_frame;
}

/* Places copy WHICH. Writable segments are not copied from the file, because the loader may have changed them. */
static void place(struct table_job *job, unsigned which, uint64_t address, size_t size)
{
    Elf64_Phdr segment;
    struct copying *copying = &job->copies[which];
    *copying = (struct copying){.address = address, .size = size};
    if (size == 0 || !find_segment(job, address, &segment) || segment.p_flags & PF_W) return;
    copying->is_in_file = true;
    copying->offset = segment.p_offset + (address - job->source.image.load_bias - segment.p_vaddr);
}

static void locate(struct table_job *job)
{
    struct elf_frame_sections sections = {0};
    const struct table_source *source = &job->source;
    uint64_t eh_frame = eh_frame_of_header(job), end = segment_end(job, eh_frame);
    const struct image_file any_copy = {.path = job->path, .start = source->image.start};
    bool has_file = image_file_find_frames(&any_copy, &sections);
    if (end != 0) {
        bool is_before_header = eh_frame < source->image.header_start && source->image.header_start < end;
        place(job, HEADER, source->image.header_start, source->image.header_size);
        if (is_before_header) end = source->image.header_start;
    } else if (has_file && sections.eh_frame.address != 0) {
        eh_frame = source->image.load_bias + sections.eh_frame.address;
        end = eh_frame + sections.eh_frame.size;
        if (end > segment_end(job, eh_frame)) end = eh_frame;
    }
    place(job, EH_FRAME, eh_frame, end > eh_frame ? end - eh_frame : 0);
    job->copies[DEBUG_FRAME] = (struct copying){
        .is_in_file = has_file, .offset = sections.debug_frame.offset, .size = sections.debug_frame.size};
}

/* Rounds SIZE up to pages: each copy begins with a page, so that its pages can be provided a chunk at a time. */
static size_t entire_pages(size_t size)
{
    return (size + PAGE_BYTES - 1) & ~(size_t)(PAGE_BYTES - 1);
}

static bool allocate(struct table_job *job)
{
    size_t size = 0;
    for (unsigned i = 0; i < COPIES; i++) size += entire_pages(job->copies[i].size);
    job->copied = pages_allocate(size);
    if (!job->copied) return false;
    job->copied_size = size;
    if (size >= PAGES_LARGE_BYTES) pages_prefer_large(job->copied, size);
    uint8_t *memory = job->copied;
    for (unsigned i = 0; i < COPIES; i++) {
        job->copies[i].memory = memory;
        memory += entire_pages(job->copies[i].size);
    }
    return true;
}

static void begin_copying(struct table_job *job)
{
    locate(job);
    for (unsigned i = 0; i < COPIES; i++) {
        if (job->copies[i].size <= INFORMATION_MAX) continue;
        end_with(job, TABLE_TOO_LARGE);
        return;
    }
    if (job->copies[EH_FRAME].size == 0 && job->copies[DEBUG_FRAME].size == 0)
        end_with(job, TABLE_NO_INFORMATION);
    else if (!allocate(job))
        end_with(job, TABLE_NO_MEMORY);
    else
        job->phase = COPY_EH_FRAME;
}

/* --- Copies ------------------------------------------------------------------------------------------------------- */

static size_t read_chunk(const struct table_job *job, const struct copying *copying, size_t size)
{
    uint8_t *to = copying->memory + copying->done;
    struct image_file file = {.path = job->path, .start = job->source.image.start};
    if (copying->address) {
        file.device = job->source.image.device;
        file.inode = job->source.image.inode;
    }
    pages_populate(to, size);
    if (copying->is_in_file && image_file_copy(&file, copying->offset + copying->done, to, size)) return size;
    return copying->address ? process_read_memory(copying->address + copying->done, to, size) : 0;
}

/* Copies a chunk. Returns true once copy WHICH is complete, or cannot be read any further. */
static bool copy_some(struct table_job *job, unsigned which)
{
    struct copying *copying = &job->copies[which];
    size_t left = copying->size - copying->done, chunk = left < CHUNK ? left : CHUNK;
    if (chunk == 0) return true;
    size_t got = read_chunk(job, copying, chunk);
    copying->done += got;
    return got < chunk || copying->done == copying->size;
}

static struct slice copied(const struct table_job *job, unsigned which)
{
    return slice_of(job->copies[which].memory, job->copies[which].done);
}

static struct frame_table_source frame_source(const struct table_job *job)
{
    struct frame_table_source source = {.base = job->source.image.start};
    source.eh_frame = (struct cfi_section){.bytes = copied(job, EH_FRAME),
                                           .address = job->copies[EH_FRAME].address,
                                           .data_address = job->source.image.header_start};
    source.header = copied(job, HEADER);
    source.header_address = job->source.image.header_start;
    source.debug_frame = (struct cfi_section){
        .bytes = copied(job, DEBUG_FRAME), .is_debug_frame = true, .bias = job->source.image.load_bias};
    return source;
}

/* Prepares the lookup, which knows .eh_frame alone: a module that has .debug_frame needs its table. */
static void prepare_lookup(struct table_job *job)
{
    bool is_whole = job->copies[EH_FRAME].done == job->copies[EH_FRAME].size &&
                    job->copies[HEADER].done == job->copies[HEADER].size;
    struct frame_table_source source = frame_source(job);
    if (is_whole && source.eh_frame.bytes.size > 0 && job->copies[DEBUG_FRAME].size == 0)
        job->has_lookup = frame_lookup_init(&source, &job->lookup);
}

/* --- Steps -------------------------------------------------------------------------------------------------------- */

static void load_table(struct table_job *job)
{
    const struct table_source *source = &job->source;
    job->phase = LOCATE;
    struct slice key = slice_of(source->key, source->key_size);
    if (source->kept_path[0] && frame_table_load(source->kept_path, key, &job->table)) end_with(job, TABLE_BUILT);
}

static void begin_building(struct table_job *job)
{
    bool has_any = job->copies[EH_FRAME].done > 0 || job->copies[DEBUG_FRAME].done > 0;
    struct frame_table_source source = frame_source(job);
    if (!has_any) {
        end_with(job, TABLE_UNREADABLE);
        return;
    }
    job->build = frame_build_begin(&source);
    if (job->build)
        job->phase = BUILD;
    else
        end_with(job, TABLE_NO_MEMORY);
}

static void take_table(struct table_job *job)
{
    switch (frame_build_take(job->build, &job->table)) {
    case FRAME_BUILD_SUCCEEDED:
        job->phase = KEEP;
        break;
    case FRAME_BUILD_NOTHING:
        end_with(job, TABLE_NO_FUNCTIONS);
        break;
    case FRAME_BUILD_TOO_LARGE:
        end_with(job, TABLE_TOO_LARGE);
        break;
    case FRAME_BUILD_NO_MEMORY:
        end_with(job, TABLE_NO_MEMORY);
        break;
    }
    frame_build_free(job->build);
    job->build = NULL;
}

static void keep_table(struct table_job *job)
{
    const struct table_source *source = &job->source;
    struct slice key = slice_of(source->key, source->key_size);
    if (source->kept_path[0] && job->table.fde_count >= FUNCTIONS_WORTH_KEEPING)
        (void)frame_table_save(&job->table, source->kept_path, key);
    end_with(job, TABLE_BUILT);
}

bool table_job_step(struct table_job *job)
{
    switch (job->phase) {
    case LOAD:
        load_table(job);
        break;
    case LOCATE:
        begin_copying(job);
        break;
    case COPY_EH_FRAME:
        if (copy_some(job, EH_FRAME)) job->phase = COPY_HEADER;
        break;
    case COPY_HEADER:
        if (!copy_some(job, HEADER)) break;
        prepare_lookup(job);
        job->phase = COPY_DEBUG_FRAME;
        break;
    case COPY_DEBUG_FRAME:
        if (copy_some(job, DEBUG_FRAME)) job->phase = BEGIN;
        break;
    case BEGIN:
        begin_building(job);
        break;
    case BUILD:
        if (!frame_build_step(job->build)) take_table(job);
        break;
    case KEEP:
        keep_table(job);
        break;
    case DONE:
        break;
    }
    return job->phase != DONE;
}

struct table_job *table_job_begin(const struct table_source *source, const char *path)
{
    struct table_job *job = pages_allocate(sizeof(*job));
    if (!job) return NULL;
    job->source = *source;
    job->outcome = TABLE_UNREADABLE;
    (void)plain_text(job->path, job->path + sizeof(job->path), path);
    return job;
}

bool table_job_lookup(const struct table_job *job, struct frame_lookup *ret_lookup)
{
    if (job->has_lookup) *ret_lookup = job->lookup;
    return job->has_lookup;
}

size_t table_job_size(const struct table_job *job)
{
    return job->copied_size;
}

enum table_outcome table_job_end(struct table_job *job, struct frame_table *ret_table, void **ret_copies,
                                 size_t *ret_copies_size)
{
    enum table_outcome outcome = job->phase == DONE ? job->outcome : TABLE_UNREADABLE;
    *ret_copies = job->copied;
    *ret_copies_size = job->copied_size;
    if (outcome == TABLE_BUILT)
        *ret_table = job->table;
    else
        frame_table_fini(&job->table);
    frame_build_free(job->build);
    pages_free(job, sizeof(*job));
    return outcome;
}
