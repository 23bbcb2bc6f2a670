/* Writes the stored memory of a process in Python, PHP or Ruby that sleeps: keep_interpreted PID > FILE. For
 * test_interpreters.c.
 * SPDX-License-Identifier: MIT */
#include "stored_memory.h"

#include <elf.h>
#include <stdlib.h>
#include <sys/uio.h>

static struct stored_piece pieces[STORED_PIECES_MAX];
static uint8_t bytes[STORED_BYTES_MAX];
static size_t piece_count, byte_count;
static pid_t pid;
static bool is_keeping;

static void keep(uint64_t address, uint64_t size, const void *data)
{
    for (size_t i = 0; i < piece_count; i++) {
        if (address >= pieces[i].address && address + size <= pieces[i].address + pieces[i].size) return;
    }
    if (piece_count == STORED_PIECES_MAX || byte_count + size > STORED_BYTES_MAX) abort();
    pieces[piece_count++] = (struct stored_piece){address, size, byte_count};
    memcpy(bytes + byte_count, data, size);
    byte_count += size;
}

static bool gather(const struct process_memory *memory, const struct memory_pieces *wanted)
{
    for (size_t i = 0; i < wanted->count; i++) {
        struct iovec from = {(void *)(uintptr_t)wanted->from[i].address, wanted->from[i].size};
        struct iovec to = {(void *)(uintptr_t)wanted->to[i].address, wanted->to[i].size};
        if (process_vm_readv(pid, &to, 1, &from, 1, 0) != (ssize_t)from.iov_len) return false;
        if (is_keeping) keep(wanted->from[i].address, from.iov_len, to.iov_base);
    }
    return true;
}

/* Describes the file that is mapped at START. */
static struct interpreter_image image_at(const struct process_memory *memory, uint64_t start)
{
    static struct memory_pieces work;
    Elf64_Ehdr header = {0};
    Elf64_Phdr segments[32] = {0};
    uint64_t low = UINT64_MAX, high = 0;
    if (!process_memory_read(memory, &work, start, &header, sizeof(header)) || header.e_phnum > 32)
        return (struct interpreter_image){0};
    (void)process_memory_read(memory, &work, start + header.e_phoff, segments, header.e_phnum * sizeof(segments[0]));
    for (size_t i = 0; i < header.e_phnum; i++) {
        if (segments[i].p_type != PT_LOAD) continue;
        if (segments[i].p_vaddr < low) low = segments[i].p_vaddr;
        if (segments[i].p_vaddr + segments[i].p_memsz > high) high = segments[i].p_vaddr + segments[i].p_memsz;
    }
    return (struct interpreter_image){.start = start, .size = high - low, .bias = start - low};
}

int main(int argc, char **argv)
{
    static struct interpreted_work work;
    static struct interpreter_state state;
    const struct process_memory memory = {.gather = gather};
    char path[64], line[4096];
    pid = argc > 1 ? (pid_t)strtol(argv[1], NULL, 10) : 0;
    (void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    FILE *maps = fopen(path, "r");
    while (maps && fgets(line, sizeof(line), maps)) {
        unsigned long start, offset;
        if (sscanf(line, "%lx-%*x %*s %lx", &start, &offset) != 2 || offset != 0 || !strchr(line, '/')) continue;
        struct interpreter_image image = image_at(&memory, start);
        is_keeping = false;
        if (image.size == 0 || interpreter_attach(&image, &memory, &work, &state) != INTERPRETER_ATTACHED) continue;
        is_keeping = true;
        (void)interpreter_attach(&image, &memory, &work, &state);
        char *text = NULL;
        size_t text_size = 0;
        FILE *out = open_memstream(&text, &text_size);
        write_stacks(out, &state, &memory);
        (void)fclose(out);
        struct stored_header header = {.image = image, .piece_count = piece_count};
        (void)fwrite(&header, sizeof(header), 1, stdout);
        (void)fwrite(pieces, sizeof(pieces[0]), piece_count, stdout);
        (void)fwrite(bytes, 1, byte_count, stdout);
        (void)fwrite(text, 1, text_size, stdout);
        return 0;
    }
    return 1;
}
