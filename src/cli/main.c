/* The program `offbeat`: a table of commands, one file each.
 * SPDX-License-Identifier: MIT */
#include "cli/commands.h"
#include "cli/foreign_words.h"
#include "cli/message.h"
#include "cli/options.h"
#include "cli/secrets.h"
#include "serve/symbol_reader.h"

#include <fcntl.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *about;
};

/* clang-format off */
static const struct command commands[] = {
    {"record",       command_record,       "profiles a program that it runs, or that runs already (-p)"},
    {"agent",        command_agent,        "profiles all processes, all the time, for a server or a folder"},
    {"doctor",       command_doctor,       "what can be recorded on this machine, and what is missing"},
    {"top",          command_report,       "the hottest functions"},
    {"tree",         command_report,       "callers and callees of each function"},
    {"peek",         command_report,       "callers and callees of the functions that match"},
    {"list",         command_report,       "the source of functions with what each line cost"},
    {"disasm",       command_report,       "the instructions of functions with what each cost"},
    {"traces",       command_report,       "each sample with its stack"},
    {"tags",         command_report,       "what the labels of the samples sum up to"},
    {"graph",        command_report,       "the call graph: a picture, DOT, or for KCachegrind"},
    {"flame",        command_report,       "a flame graph or flamechart: text, or one SVG or HTML file for a browser"},
    {"view",         command_view,         "a profile in the browser"},
    {"diff",         command_diff,         "what has changed between two profiles"},
    {"info",         command_info,         "what is in a profile"},
    {"raw",          command_report,       "all that is in a profile, as text"},
    {"convert",      command_convert,      "turns a profile into another format"},
    {"merge",        command_merge,        "adds profiles up"},
    {"symbolize",    command_symbolize,    "adds function names to a stored profile"},
    {"validate",     command_validate,     "checks whether a server accepts a profile, and why not"},
    {"pprof",        command_pprof,        "what pprof prints, by its flags"},
    {"send",         command_send,         "sends envelopes to a server"},
    {"serve",        command_serve,        "stores profiles and answers over HTTP"},
    {"store",        command_store,        "checks, repairs and copies the data of serve"},
    {"upload-debug", command_upload_debug, "gives a server the debug files that name its profiles"},
};
/* clang-format on */

enum { COMMAND_COUNT = sizeof(commands) / sizeof(commands[0]) };

static void print_help(FILE *out)
{
    (void)fputs("Example: offbeat top profile.pb.gz\n\nUsage: offbeat COMMAND "
                "[options] …\n\nCommands:\n",
                out);
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        (void)fprintf(out, "  %-14s%s\n", commands[i].name, commands[i].about);
    }
    (void)fputs("\nOptions:\n  -h, --help    this text; after a command: its help\n"
                "  -V, --version the version of offbeat\n",
                out);
}

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(commands[i].name, name) == 0) return &commands[i];
    }
    return NULL;
}

static int reject_unknown(const char *name)
{
    const char *names[COMMAND_COUNT];
    for (size_t i = 0; i < COMMAND_COUNT; i++) names[i] = commands[i].name;
    const char *own = command_of_foreign_word(name), *nearest = nearest_name(name, names, COMMAND_COUNT);
    if (own) {
        message("no command \"%s\"; use \"offbeat %s\": %s", name, own, find_command(own)->about);
    } else if (nearest) {
        message("no command \"%s\"; did you mean \"%s\"?", name, nearest);
    } else {
        message("no command \"%s\"; see offbeat --help", name);
    }
    return EXIT_WRONG_USE;
}

/* Flushes standard output: text that was cut short by a full disk must not look complete. */
static int finish(int status)
{
    struct error error;
    bool is_flushed = fflush(stdout) == 0;
    if (is_flushed && !ferror(stdout)) return status;
    if (is_flushed)
        (void)error_set(&error, STATUS_IO, 0, "cannot write"); /* the reason is unknown */
    else
        (void)error_set_errno(&error, "cannot write");
    message_error("-", &error, true);
    return EXIT_FAILED;
}

static bool is_one_of(const char *word, const char *const *words)
{
    while (*words && strcmp(*words, word) != 0) words++;
    return *words != NULL;
}

/* "offbeat help top" is "offbeat top --help". */
static int help_of(char *name)
{
    char *arguments[] = {name, (char[]){"--help"}, NULL};
    const struct command *command = find_command(name);
    return command ? command->run(2, arguments) : reject_unknown(name);
}

/* Returns whether PATH is a symbolic link, or a program, of the name pprof. */
static bool is_called_pprof(const char *path)
{
    if (!path) return false;
    const char *slash = strrchr(path, '/');
    return strcmp(slash ? slash + 1 : path, "pprof") == 0;
}

int main(int argc, char **argv)
{
    if (argc == 2 && strcmp(argv[1], SYMBOL_READER_ARGUMENT) == 0) return command_read_symbols();
    secrets_hide_title(argc, argv);
    /* Opens the standard streams that the caller closed, so that no file or connection of ours gets their numbers and
     * receives our output. A descriptor that can be neither read nor written fails as the closed one would; the program
     * that record runs does not inherit it. */
    for (int stream = STDIN_FILENO; stream <= STDERR_FILENO; stream++) {
        if (fcntl(stream, F_GETFD) < 0) (void)open("/", O_PATH | O_CLOEXEC);
    }
    /* Keeps each large block in a separate mapping, which grows without being copied and is returned to the system when
     * it is freed. By default, malloc takes the freeing of one as a hint to keep the next ones, up to 32 MB. */
    enum { LARGE_BLOCK_BYTES = 1 << 20 };
    (void)mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK_BYTES);
    if (is_called_pprof(argv[0])) return finish(command_pprof(argc, argv));
    if (argc < 2) {
        print_help(stderr);
        return EXIT_WRONG_USE;
    }
    if (is_one_of(argv[1], (const char *[]){"--help", "-h", "help", NULL})) {
        if (argc > 2) return finish(help_of(argv[2]));
        print_help(stdout);
        return finish(EXIT_DONE);
    }
    if (is_one_of(argv[1], (const char *[]){"--version", "-V", "version", NULL})) {
        puts("offbeat " OFFBEAT_VERSION);
        return finish(EXIT_DONE);
    }
    const struct command *command = find_command(argv[1]);
    return command ? finish(command->run(argc - 1, argv + 1)) : reject_unknown(argv[1]);
}
