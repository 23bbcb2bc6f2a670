/* SPDX-License-Identifier: MIT */
#include "sampler/record/recording_writer.h"

#include "base/kernel.h"
#include "base/plain_text.h"

#include <string.h>
#include <unistd.h>

enum { BATCH_HEADER = 4, NUMBER_MAX_BYTES = 10 };

static void begin_batch(struct recording_writer *writer, size_t start)
{
    writer->batch_start = start;
    writer->size = start + BATCH_HEADER;
}

void recording_writer_init(struct recording_writer *writer, const char *path, bool keeps_descriptor)
{
    (void)plain_text(writer->path, writer->path + sizeof(writer->path), path);
    writer->descriptor = -1;
    writer->keeps_descriptor = keeps_descriptor;
    writer->is_created = writer->is_broken_off = false;
    writer->bytes_lost = 0;
    memset(&writer->followers, 0, sizeof(writer->followers));
    /* The first write has the magic and a batch, so that no file begins with less. */
    memcpy(writer->buffer, RECORDING_MAGIC, RECORDING_MAGIC_SIZE);
    begin_batch(writer, RECORDING_MAGIC_SIZE);
}

/* Returns false if the batch is empty. */
static bool end_batch(struct recording_writer *writer)
{
    uint32_t payload = (uint32_t)(writer->size - writer->batch_start - BATCH_HEADER);
    memcpy(writer->buffer + writer->batch_start, &payload, sizeof(payload));
    if (payload == 0) writer->size = writer->batch_start;
    return payload > 0;
}

/* Writes SIZE bytes, or none: if only a part can be written, the file is cut back, so that it consists of whole
 * batches. */
static bool write_whole(int descriptor, const void *bytes, size_t size)
{
    int64_t before = kernel_seek(descriptor, 0, SEEK_END);
    const uint8_t *from = bytes;
    size_t left = size;
    while (left > 0) {
        ssize_t written = kernel_write(descriptor, from, left);
        if (written <= 0) {
            if (before >= 0) (void)kernel_call3(SYS_ftruncate, descriptor, before, 0);
            return false;
        }
        from += written;
        left -= (size_t)written;
    }
    return true;
}

static bool open_recording_file(struct recording_writer *writer)
{
    int flags = O_WRONLY | O_APPEND | (writer->is_created ? 0 : O_CREAT | O_EXCL);
    if (writer->descriptor < 0) writer->descriptor = kernel_open(writer->path, flags, 0600);
    return writer->descriptor >= 0;
}

static void close_recording_file(struct recording_writer *writer)
{
    if (writer->descriptor >= 0) kernel_close(writer->descriptor);
    writer->descriptor = -1;
}

void recording_writer_flush(struct recording_writer *writer)
{
    size_t start = writer->is_created ? 0 : RECORDING_MAGIC_SIZE;
    if (!end_batch(writer) && writer->size == start) {
        begin_batch(writer, start);
        return;
    }
    if (!writer->is_broken_off && open_recording_file(writer) &&
        write_whole(writer->descriptor, writer->buffer, writer->size)) {
        writer->is_created = true;
    } else {
        if (!writer->is_created && writer->descriptor >= 0) {
            (void)kernel_unlink(writer->path);
        }
        writer->is_broken_off = true;
        writer->bytes_lost += writer->size - start - BATCH_HEADER;
    }
    if (!writer->keeps_descriptor || writer->is_broken_off) close_recording_file(writer);
    begin_batch(writer, writer->is_created ? 0 : RECORDING_MAGIC_SIZE);
}

void recording_writer_release(struct recording_writer *writer)
{
    recording_writer_flush(writer);
    close_recording_file(writer);
}

void recording_writer_resume(struct recording_writer *writer, int descriptor, bool keeps_descriptor)
{
    writer->descriptor = descriptor;
    writer->keeps_descriptor = keeps_descriptor;
}

void recording_writer_close(struct recording_writer *writer)
{
    if (writer->is_created) writer->is_broken_off = false;
    recording_writer_flush(writer);
    close_recording_file(writer);
}

void recording_begin(struct recording_writer *writer, enum recording_kind kind, size_t room)
{
    if (writer->size + room + 1 > sizeof(writer->buffer)) recording_writer_flush(writer);
    writer->buffer[writer->size++] = (uint8_t)kind;
}

void recording_number(struct recording_writer *writer, uint64_t number)
{
    if (writer->size + NUMBER_MAX_BYTES > sizeof(writer->buffer)) return;
    while (number >= 0x80) {
        writer->buffer[writer->size++] = (uint8_t)(number | 0x80);
        number >>= 7;
    }
    writer->buffer[writer->size++] = (uint8_t)number;
}

static uint64_t zigzag(int64_t number)
{
    return (uint64_t)number << 1 ^ (uint64_t)(number >> 63);
}

void recording_signed(struct recording_writer *writer, int64_t number)
{
    recording_number(writer, zigzag(number));
}

void recording_bytes(struct recording_writer *writer, const void *bytes, size_t size)
{
    if (size == 0 || size > sizeof(writer->buffer) - writer->size) return; /* BYTES may be NULL if there are none */
    memcpy(writer->buffer + writer->size, bytes, size);
    writer->size += size;
}

void recording_text(struct recording_writer *writer, const void *text, size_t size)
{
    if (size > RECORDING_TEXT_MAX) size = RECORDING_TEXT_MAX;
    recording_number(writer, size);
    recording_bytes(writer, text, size);
}

void recording_process(struct recording_writer *writer, const struct recording_process *process)
{
    recording_begin(writer, RECORDING_START, 2 * RECORDING_TEXT_MAX);
    recording_number(writer, (uint64_t)process->pid);
    recording_number(writer, (uint64_t)process->parent_pid);
    recording_number(writer, process->mode);
    recording_number(writer, process->period_ns);
    recording_signed(writer, process->wall_offset_ns);
    recording_number(writer, process->start_ns);
    recording_bytes(writer, process->profiler_id, RECORDING_PROFILER_ID_SIZE);
    recording_text(writer, process->name, strlen(process->name));
    recording_text(writer, process->path, strlen(process->path));
    (void)end_batch(writer);
    begin_batch(writer, writer->size); /* a later flush writes it */
}

void recording_module(struct recording_writer *writer, const struct recording_module *module)
{
    recording_begin(writer, RECORDING_MODULE, 2 * RECORDING_TEXT_MAX);
    recording_number(writer, module->number);
    recording_number(writer, module->start);
    recording_number(writer, module->end);
    recording_number(writer, module->file_offset);
    recording_number(writer, module->image_start);
    recording_number(writer, module->image_size);
    recording_number(writer, module->image_vmaddr);
    recording_text(writer, module->build_id, module->build_id_size);
    recording_text(writer, module->path, strlen(module->path));
}

static void write_number_of(struct recording_writer *writer, enum recording_kind kind, uint64_t number)
{
    recording_begin(writer, kind, 16);
    recording_number(writer, number);
}

void recording_module_gone(struct recording_writer *writer, uint32_t number)
{
    write_number_of(writer, RECORDING_MODULE_GONE, number);
}

void recording_thread(struct recording_writer *writer, uint32_t number, pid_t tid, const char *name)
{
    recording_begin(writer, RECORDING_THREAD, RECORDING_TEXT_MAX + 64);
    recording_number(writer, number);
    recording_number(writer, (uint64_t)tid);
    recording_text(writer, name, strlen(name));
}

void recording_thread_gone(struct recording_writer *writer, uint32_t number)
{
    write_number_of(writer, RECORDING_THREAD_GONE, number);
}

void recording_interpreter(struct recording_writer *writer, enum recording_interpreter state, const char *name)
{
    recording_begin(writer, RECORDING_INTERPRETER, RECORDING_TEXT_MAX + 64);
    recording_number(writer, (uint64_t)state);
    recording_text(writer, name, strlen(name));
}

void recording_function(struct recording_writer *writer, uint32_t number, uint32_t first_line, const char *name,
                        const char *file)
{
    recording_begin(writer, RECORDING_FUNCTION, 2 * RECORDING_TEXT_MAX + 64);
    recording_number(writer, number);
    recording_number(writer, first_line);
    recording_text(writer, name, strlen(name));
    recording_text(writer, file, strlen(file));
}

void recording_line(struct recording_writer *writer, uint32_t number, uint32_t function, uint32_t line)
{
    recording_begin(writer, RECORDING_LINE, 64);
    recording_number(writer, number);
    recording_number(writer, function);
    recording_number(writer, line);
}

void recording_label(struct recording_writer *writer, const char *key, const char *value)
{
    recording_begin(writer, RECORDING_LABEL, 2 * RECORDING_TEXT_MAX);
    recording_text(writer, key, strlen(key));
    recording_text(writer, value, strlen(value));
}

void recording_tick(struct recording_writer *writer, uint64_t elapsed_ns)
{
    write_number_of(writer, RECORDING_TICK, elapsed_ns);
}

void recording_counters(struct recording_writer *writer, const uint64_t counters[RECORDING_COUNTER_COUNT])
{
    recording_begin(writer, RECORDING_COUNTERS, (RECORDING_COUNTER_COUNT + 1) * NUMBER_MAX_BYTES);
    recording_number(writer, RECORDING_COUNTER_COUNT);
    for (unsigned i = 0; i < RECORDING_COUNTER_COUNT; i++) recording_number(writer, counters[i]);
}

void recording_usage(struct recording_writer *writer, uint64_t cpu_ns, uint64_t resident_bytes)
{
    recording_begin(writer, RECORDING_USAGE, 32);
    recording_number(writer, cpu_ns);
    recording_number(writer, resident_bytes);
}

void recording_stop(struct recording_writer *writer)
{
    recording_begin(writer, RECORDING_STOP, 0);
}

static size_t shared_at_root(const uint64_t *addresses, size_t count, const struct recording_stack *last)
{
    size_t shared = 0;
    while (shared < count && shared < last->count &&
           addresses[count - 1 - shared] == last->addresses[last->count - 1 - shared])
        shared++;
    return shared;
}

static void write_frame(struct recording_writer *writer, uint64_t caller, uint64_t address)
{
    uint64_t *followers = recording_followers_of(&writer->followers, caller);
    uint64_t place = 0;
    while (place < RECORDING_FOLLOWERS && followers[place] != address) place++;
    /* No difference of two addresses is large enough to overflow. */
    uint64_t difference = zigzag((int64_t)(address - caller)) + RECORDING_FOLLOWERS;
    recording_number(writer, place < RECORDING_FOLLOWERS ? place : difference);
    recording_follow(followers, place, address);
}

void recording_time(struct recording_writer *writer, struct recording_time time)
{
    recording_number(writer, time.cpu_ns / RECORDING_TIME_UNIT_NS);
    recording_number(writer, time.runnable_ns / RECORDING_TIME_UNIT_NS);
    recording_number(writer, time.blocked_ns / RECORDING_TIME_UNIT_NS);
}

void recording_sample(struct recording_writer *writer, uint32_t thread, struct recording_time time, uint32_t flags,
                      const uint64_t *addresses, size_t count, struct recording_stack *last)
{
    if (count > RECORDING_FRAMES_MAX) count = RECORDING_FRAMES_MAX;
    size_t shared = shared_at_root(addresses, count, last);
    recording_begin(writer, RECORDING_SAMPLE, (7 + count - shared) * NUMBER_MAX_BYTES);
    recording_number(writer, thread);
    recording_time(writer, time);
    recording_number(writer, flags);
    recording_number(writer, count);
    recording_number(writer, shared);
    size_t fresh = count - shared;
    for (size_t i = fresh; i > 0; i--) write_frame(writer, i < count ? addresses[i] : 0, addresses[i - 1]);
    /* The shared frames are at the end of both; the shorter or longer new part moves them. */
    memmove(last->addresses + fresh, last->addresses + (last->count - shared), shared * sizeof(uint64_t));
    memcpy(last->addresses, addresses, fresh * sizeof(uint64_t));
    last->count = (uint32_t)count;
}
