/* offbeat pprof: the command line of pprof.  SPDX-License-Identifier: MIT */
#include "cli/commands.h"
#include "cli/fetch.h"
#include "cli/message.h"
#include "cli/output.h"
#include "cli/pprof_flags.h"
#include "cli/prompt.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void print_help(void)
{
    (void)fputs("Example: offbeat pprof -top -cum -focus=main profile.pb.gz\n\n"
                "Usage: offbeat pprof [REPORT] [flags] [PROGRAM] FILE…\n"
                "       offbeat pprof [REPORT] [-seconds=N] [flags] http://HOST:PORT/PATH…\n\n"
                "Prints what pprof prints for these flags, of the profiles in FILE…, merged. Flags have the names and "
                "meanings\n"
                "of pprof, one dash or two, and come first. Function names come from the profile: nothing is\n"
                "symbolized, and PROGRAM is not read. Without a REPORT, a prompt reads reports and settings:\n"
                "top10 -cum, list main, focus=alloc, help.\n\n"
                "Reports:\n"
                "  -top, -text, -tree, -peek=REGEX, -list=REGEX, -disasm=REGEX, -traces, -tags, -raw, -comments\n"
                "  -weblist=REGEX (HTML), -dot, -callgrind, -proto, -topproto\n"
                "  -svg, -png, -pdf, -ps, -gif (with the Graphviz library: apt install libgvc6); -web is -svg\n"
                "  -http=[localhost]:[PORT] (the web page of offbeat view) -no_browser\n\n"
                "Flags:\n"
                "  -focus -ignore -hide -show -show_from -prune_from =REGEX\n"
                "  -tagfocus -tagignore =[KEY=]VALUE  -tagshow -taghide =REGEX  -tagroot -tagleaf =KEYS\n"
                "  -functions -filefunctions -files -lines -addresses -noinlines -showcolumns\n"
                "  -sample_index=NAME -mean -unit=UNIT -divide_by=N\n"
                "  -inuse_space -inuse_objects -alloc_space -alloc_objects -total_delay -contentions -mean_delay\n"
                "  -flat -cum -nodecount=N -nodefraction=F -edgefraction=F -trim=false -call_tree -drop_negative\n"
                "  -relative_percentages -compact_labels -all_frames -add_comment=TEXT -symbolize=none\n"
                "  -source_path=DIR -trim_path=DIR -intel_syntax\n"
                "  -base=FILE -diff_base=FILE -normalize -output=FILE\n"
                "  -seconds=N -timeout=N -tls_cert=FILE -tls_key=FILE -tls_ca=FILE (of addresses)\n\n"
                "Options:\n",
                stdout);
    printf("%-28s%s\n", "  -h, --help", "this text");
}

/* pprof takes a program in front of the profiles. */
static bool is_program(const char *path)
{
    static const char elf[4] = "\177ELF";
    char magic[sizeof(elf)];
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) return false;
    bool is_elf = read(file, magic, sizeof(magic)) == sizeof(magic) && memcmp(magic, elf, sizeof(elf)) == 0;
    (void)close(file);
    return is_elf;
}

static bool check(const struct pprof_flags *flags, int file_count)
{
    if (flags->report_count > 1) {
        message("more than one report: one of -top, -tree, -dot, … at a time");
    } else if (flags->order_count > 1) {
        message("-flat and -cum exclude each other");
    } else if (flags->granularity_count > 1) {
        message("-functions, -filefunctions, -files, -lines and -addresses exclude each other");
    } else if (file_count == 0) {
        message("usage: offbeat pprof [REPORT] [flags] FILE…; offbeat pprof --help lists them");
    } else {
        return true;
    }
    return false;
}

static int run_flags(struct pprof_flags *flags, char **files, size_t count)
{
    if (flags->report_count == 0) return (int)prompt_run(flags, files, count);
    return (int)report_run(&flags->request, files, count);
}

/* The same for sources that are addresses of servers. */
static int run_sources(struct pprof_flags *flags, char **sources, size_t count)
{
    int status = EXIT_FAILED;
    size_t named = 0;
    char **files = calloc(count, sizeof(*files));
    while (files && named < count && (files[named] = fetch_source(sources[named], flags->seconds))) named++;
    if (named == count)
        status = run_flags(flags, files, count);
    else
        message("not enough memory for the names of the files");
    for (size_t i = 0; i < named; i++) free(files[i]);
    free(files);
    return status;
}

int command_pprof(int argc, char **argv)
{
    struct pprof_flags flags = {.request = {REPORT_REQUEST_INIT, .is_pprof = true}};
    int place = 1;
    if (!pprof_flags_parse(&flags, argc, argv, &place)) return EXIT_WRONG_USE;
    if (flags.wants_help) {
        print_help();
        return EXIT_DONE;
    }
    flags.fetch.keeps_copies = true;
    output_settings.no_pager = true; /* as pprof */
    fetch_set(&flags.fetch);
    if (argc - place > 1 && is_program(argv[place])) place++;
    if (!check(&flags, argc - place)) return EXIT_WRONG_USE;
    return run_sources(&flags, argv + place, (size_t)(argc - place));
}
