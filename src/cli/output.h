/* Reports to standard output.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_OUTPUT_H
#define OFFBEAT_CLI_OUTPUT_H

#include "base/buffer.h"
#include "cli/options.h"

enum { REPORT_BYTES_MAX = 1 << 30 };

enum output_colour { COLOUR_AUTO, COLOUR_ALWAYS, COLOUR_NEVER };

/* Settings by the options of the command that runs. */
extern struct output_settings {
    unsigned colour; /* enum output_colour */
    bool no_pager;
} output_settings;

/* clang-format off */
#define OUTPUT_OPTION_COLOUR                                                                                           \
    {"color", 0, OPTION_CHOICE, &output_settings.colour, .argument = "auto|always|never", .help = "auto: on a terminal, unless NO_COLOR is set (default)"}
#define OUTPUT_OPTION_PAGER                                                                                            \
    {"no-pager", 0, OPTION_SWITCH, &output_settings.no_pager, .help = "no $OFFBEAT_PAGER, $PAGER or less for long output on a terminal"}
/* clang-format on */

/* Returns whether standard output is a terminal that knows more than lines. */
bool output_is_to_screen(void);

/* Returns whether output has colours: as --color says; if it says nothing, only on a terminal that knows colours, and
 * never with NO_COLOR. */
bool output_has_colour(void);

/* Returns the characters in a line of the terminal at standard output; 0 if that is not a terminal. */
size_t output_width(void);

/* Writes all of REPORT, or says why not. Long ones go through the pager, on a terminal. */
enum exit_status output_report(const struct buffer *report);

#endif
