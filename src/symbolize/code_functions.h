/* The machine code of functions that a profile has samples in.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_SYMBOLIZE_CODE_FUNCTIONS_H
#define OFFBEAT_SYMBOLIZE_CODE_FUNCTIONS_H

#include "profile/profile.h"
#include "symbolize/disassembly.h"
#include "symbolize/symbol_module_cache.h"
#include "symbolize/symbolizer.h"

/* An address with samples. */
struct code_place {
    uint64_t address;     /* address as the file has it */
    uint64_t instruction; /* the address of the instruction that it is in */
    uint32_t location;
};

/* From one symbol of the file to the next. Parts of a function that the compiler put elsewhere are functions, too. */
struct code_function {
    struct string_id name;
    struct mapping_id mapping; /* one of the mappings of its file */
    struct string_id build_id;
    uint64_t start, end;             /* addresses as the file has them */
    size_t place_first, place_count; /* part of places, ascending by address */
};

/* Reasons why code that matches cannot be shown. */
enum code_problem {
    CODE_MISSING,   /* the file is not there, or only its debug information */
    CODE_CHANGED,   /* the file has another build id */
    CODE_UNPROVEN,  /* the profile has no build id for the file */
    CODE_BOUNDLESS, /* the file does not say where the function begins and ends */
    CODE_UNPLACED,  /* the profile does not say where the file was in memory, or the code is in no file */
    CODE_UNREAD,    /* see the error */
    CODE_PROBLEMS,
};

struct code_options {
    const char *const *debug_folders; /* searched before /usr/lib/debug */
    size_t debug_folder_count;        /* number of folders, at most SYMBOLIZER_DEBUG_DIRECTORIES_MAX */
    bool trusts_paths;                /* files that the profile names without a build id are used, too */
    bool is_intel_syntax;
    bool (*matches)(void *context, struct slice name); /* asked for names of functions, for people and linkers */
    void *context;
    bool has_address; /* a function with ADDRESS, of the profile or the file, matches, too */
    uint64_t address;
};

struct code_functions {
    struct profile *profile;
    struct code_options options;
    const char *folders[SYMBOLIZER_DEBUG_DIRECTORIES_MAX + 1];
    struct debug_sources directories;
    struct symbol_module_cache *modules;
    struct code_function *items; /* functions by name, then address */
    size_t count, capacity;
    struct code_place *places;
    size_t place_count, place_capacity;
    size_t problem_counts[CODE_PROBLEMS];          /* files, or functions for BOUNDLESS and UNREAD, that match */
    struct string_id problem_files[CODE_PROBLEMS]; /* the first of each */
    struct error problem;                          /* error of the first CODE_UNREAD */
    /* A file that was not opened although code without a name is in it: whether that matches is not known. */
    enum code_problem unnamed_problem; /* CODE_PROBLEMS: there is none */
    struct string_id unnamed_file;
    struct string_id inlined_into; /* a function that one that matches is inlined into; "": none */
};

/* IS_USED: by location. Only these are looked at. Opens files that PROFILE names if their build ids match. Adds strings
 * to PROFILE, which must outlive FUNCTIONS. Code that cannot be shown is not a failure. */
enum status code_functions_find(struct code_functions *functions, struct profile *profile, const bool *is_used,
                                const struct code_options *options, struct error *error);
void code_functions_fini(struct code_functions *functions); /* accepts {0} */

/* Where an instruction comes from: the innermost inlined function. */
struct code_source_location {
    struct string_id function, file; /* "": not known */
    int64_t line;                    /* 0: not known */
    struct string_id target;         /* the function that is called or jumped to, if it is another one */
};

/* The instructions of FUNCTION, and for each of them its source, in an array of DISASSEMBLY's count that the caller
 * frees. */
enum status code_function_read(struct code_functions *functions, const struct code_function *function,
                               struct disassembly *disassembly, struct code_source_location **ret_sources,
                               struct error *error);

#endif
