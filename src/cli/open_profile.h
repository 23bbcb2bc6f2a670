/* Files into profiles, the same way for every command.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_OPEN_PROFILE_H
#define OFFBEAT_CLI_OPEN_PROFILE_H

#include "cli/fetch.h"
#include "cli/progress.h"
#include "cli/secrets.h"
#include "format/format.h"
#include "symbolize/symbol_module_cache.h"

/* Settings of every file that a run opens; options set them. */
struct open_settings {
    bool no_demangle; /* names are those of the linker */
};
extern struct open_settings open_settings;

#define OPEN_OPTION_NO_DEMANGLE                                                                                        \
    {                                                                                                                  \
        "no-demangle", 0, OPTION_SWITCH, &open_settings.no_demangle,                                                   \
            .help = "names of C++, Rust and D as the linker has them"                                                  \
    }

struct opened_file {
    const struct format *format;
    size_t size_bytes;          /* bytes on disk */
    bool is_cut;                /* true if its compressed data are cut short; one line on standard error has said so */
    struct fetch_losses losses; /* parts that the answer of a server lacks; one line on standard error has said each */
};

/* Reads PATH ("-" is standard input) into PROFILE, which must be initialised and empty; the caller finishes it in every
 * case. A recording is symbolized. RET_FILE may be NULL. False: one line on standard error has said what is wrong. */
bool open_profile(const char *path, struct profile *profile, struct opened_file *ret_file);
/* The same into PROFILE, which is empty, for a sum of several files: the samples of a recording get the labels of its
 * process, pid and process, so that samples of two processes stay apart. */
bool open_for_merge(const char *path, struct profile *profile);

/* Copies PROFILE, one process, into LABELLED, which is empty: each sample has the labels of its process. */
enum status label_process(struct profile *labelled, const struct profile *profile, struct error *error);

/* The two steps of open_profile: the file's bytes, decompressed, with their format (NULL: unknown), and what they hold.
 * The caller finishes BYTES in every case; after the second they are empty. Of a file of perf record, which may be
 * larger than memory, they are empty after the first, too. */
bool read_input(const char *path, struct buffer *bytes, struct opened_file *ret_file);
bool decode_input(const char *path, const struct opened_file *file, struct buffer *bytes, struct profile *profile);

/* The second step without names for addresses, and without a message about its error. Names that the file has are
 * readable. */
enum status decode_unnamed(const char *path, const struct format *format, struct buffer *bytes, struct profile *profile,
                           struct error *error);

/* State that the decoding of many recordings shares: MODULES stay open from one to the next. */
struct decoding {
    struct symbol_module_cache *modules; /* open modules; may be NULL */
    const char *image_directory;         /* debug directory with copies of deleted files; NULL: there is none */
    bool drops_symbols;                  /* a recording keeps its addresses, but for code that a JIT compiler made */
    struct kernel_symbols *kernel;       /* kernel symbols of the file at hand */
    struct progress progress;
};
bool decode_one_of_many(const char *path, const struct format *format, struct buffer *bytes, struct decoding *decoding,
                        struct profile *profile);

/* Adds FROM, which was read from PATH, to INTO; of both only the sample types that both have are kept, and one line on
 * standard error names the others. LABELS, which may be NULL, are added to FROM's samples. STATUS_UNSUPPORTED where
 * they have no type in common. */
enum status merge_opened(const char *path, struct profile *into, struct profile *from,
                         const struct profile_extra_labels *labels, struct error *error);

struct open_options {
    bool fills_idle;       /* idle samples of V1 are filled (profile_fill_idle), for the sums of Sentry's backend */
    bool labels_processes; /* samples of several files have labels for their process (profile/processes.h) */
    bool adds_durations;   /* durations are added, as in pprof; else they last from the first start to the last end */
};

/* Merges COUNT files (at least one) into PROFILE, as open_profile does one. */
bool open_profiles(char *const *paths, size_t count, struct open_options options, struct profile *profile);

#endif
