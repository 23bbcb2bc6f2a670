/* A view on an ELF file: 64-bit, little-endian, a program, a library or the debug information of one.
 *
 * Nothing is mapped into memory: the tables are copied when the file is opened and sections when they are asked for, so
 * a file that is cut short or rewritten meanwhile gives an error or nonsense, but never a SIGBUS. All that is read is
 * checked against the size of the file and the maxima below.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_BINARY_ELF_FILE_H
#define OFFBEAT_BINARY_ELF_FILE_H

#include "base/buffer.h"
#include "base/slice.h"
#include "base/status.h"

enum {
    ELF_SEGMENTS_MAX = 4096,
    ELF_SECTIONS_MAX = 1 << 20,
    ELF_BUILD_ID_BYTES_MAX = 64,
    ELF_BUILD_ID_TEXT_SIZE = 2 * ELF_BUILD_ID_BYTES_MAX + 1,
    ELF_SECTION_BYTES_MAX = 1 << 30,
};

/* The segments that the system loads (PT_LOAD), ascending by address as the format demands. */
struct elf_segment {
    uint64_t address, memory_size;
    uint64_t file_offset, file_size;
    bool is_executable;
};

struct elf_section {
    const char *name;
    uint32_t type, link;
    uint64_t flags;
    uint64_t address, size;
    uint64_t file_offset;
    bool has_bytes; /* false in a debug file for what only the stripped file has */
};

/* {0} is not an open file: call elf_file_close only after a successful open. */
struct elf_file {
    int descriptor;      /* -1 when MEMORY is the file */
    struct slice memory; /* the caller's */
    uint64_t size;
    uint16_t type, machine; /* ET_…, EM_… of <elf.h> */
    bool has_interpreter;   /* PT_INTERP: a dynamic linker will start it */
    uint64_t interpreter_offset, interpreter_size;
    struct elf_segment *segments;
    size_t segment_count;
    struct elf_section *sections;
    size_t section_count;
    struct buffer section_names;
    char build_id[ELF_BUILD_ID_TEXT_SIZE]; /* lowercase hex, "" = none */
    unsigned notes_read;                   /* private */
};

/* Opens a regular file; anything else (a pipe, a device) is rejected without waiting for it. STATUS_NOT_FOUND,
 * STATUS_IO; STATUS_NOT_THIS_FORMAT if it is no ELF file; STATUS_UNSUPPORTED if it is 32-bit or big-endian;
 * STATUS_MALFORMED, STATUS_TOO_LARGE, STATUS_NO_MEMORY. */
enum status elf_file_open(struct elf_file *file, const char *path, struct error *error);

/* The same of an open regular file. Closing FILE closes DESCRIPTOR, as a failure does. No path is opened. */
enum status elf_file_open_descriptor(struct elf_file *file, int descriptor, struct error *error);

/* The same over bytes that stay the caller's and outlive FILE. */
enum status elf_file_open_memory(struct elf_file *file, struct slice bytes, struct error *error);

void elf_file_close(struct elf_file *file);

/* The dynamic linker of FILE; "" if it has none, or one of more than SIZE - 1 bytes. */
void elf_file_copy_interpreter(const struct elf_file *file, char *ret_path, size_t size);

/* NULL if there is none; the first of several. Valid until elf_file_close. */
const struct elf_section *elf_file_section(const struct elf_file *file, const char *name);

/* Appends the section's bytes as they are in the file (compressed ones stay so). */
enum status elf_file_read_section(const struct elf_file *file, const struct elf_section *section, struct buffer *into,
                                  struct error *error);

/* Copies SIZE bytes at OFFSET. False if they are not in the file or cannot be read. */
bool elf_file_read(const struct elf_file *file, uint64_t offset, void *into, size_t size);

/* The address that FILE itself gives the byte at FILE_OFFSET. False if no segment loads it. Where two segments load
 * it, the executable one is meant: profiles speak of code. */
bool elf_file_address_of_offset(const struct elf_file *file, uint64_t file_offset, uint64_t *ret_address);

#endif
