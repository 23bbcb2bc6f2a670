/* offbeat convert: a profile in another format.  SPDX-License-Identifier: MIT */
#include "cli/commands.h"
#include "cli/convert_profile.h"
#include "cli/profile_warnings.h"
#include "cli/message.h"
#include "cli/open_profile.h"
#include "cli/options.h"

int command_convert(int argc, char **argv)
{
    struct convert_target target = CONVERT_TARGET_INIT;
    const struct option options[] = {
        CONVERT_OPTION_OUTPUT(target),
        {"no-times", 0, OPTION_SWITCH, &target.drops_times,
         .help = "forget when samples were taken: pprof then sums equal ones and is smaller"},
        {"no-symbols", 0, OPTION_SWITCH, &target.drops_symbols,
         .help = "only addresses of code in files; offbeat symbolize names it"},
        {"platform", 0, OPTION_TEXT, &target.platform, .argument = "NAME",
         .help = "platform in Sentry's formats: servers count javascript, android and cocoa as user interfaces"},
        OPEN_OPTION_NO_DEMANGLE,
        OPTION_TOKEN_FILE,
        CONVERT_OPTION_TO(target),
        {0},
    };
    const struct command_syntax syntax = {
        .name = "convert",
        .usage = "FILE -o OUT [--to FORMAT] [--no-times] [--no-symbols] [--no-demangle] [--platform NAME]",
        .example = "offbeat convert xz.envelope -o xz.pb.gz",
        .about =
            "Writes the profile in FILE in another format. The name of OUT says which: x.pb.gz pprof, x.json\n"
            "sentry-v2, x.envelope envelope, x.collapsed collapsed, x.speedscope.json speedscope, x.firefox.json\n"
            "firefox, x.trace.json chrome-trace, x.otlp and x.otlp.json OTLP; with .gz at the end, compressed. "
            "Standard\n"
            "error names what the format cannot store. A profile of over 60 s becomes several chunks: x.envelope,\n"
            "x.2.envelope, …",
        .options = options,
        .operands_min = 1,
        .operands_max = 1,
    };
    struct operands files;
    enum exit_status status;
    if (!options_parse(&syntax, argc, argv, &files, &status)) return (int)status;
    if (!convert_choose_format(&syntax, &target)) return EXIT_WRONG_USE;

    struct profile profile;
    profile_init(&profile);
    bool is_done = open_profile(files.items[0], &profile, NULL);
    if (is_done) warn_of_profile(&profile);
    if (is_done) is_done = convert_profile(&profile, &target);
    profile_fini(&profile);
    return is_done ? EXIT_DONE : EXIT_FAILED;
}
