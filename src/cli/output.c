/* Reports are made whole in memory and written at once.  SPDX-License-Identifier: MIT */
#include "cli/output.h"

#include "base/environment.h"
#include "base/file.h"
#include "cli/message.h"
#include "cli/pager.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

struct output_settings output_settings;

bool output_is_to_screen(void)
{
    const char *terminal = environment_get("TERM");
    return isatty(STDOUT_FILENO) && terminal && strcmp(terminal, "dumb") != 0;
}

bool output_has_colour(void)
{
    const char *no_colour = environment_get("NO_COLOR");
    if (output_settings.colour != COLOUR_AUTO) return output_settings.colour == COLOUR_ALWAYS;
    return !(no_colour && no_colour[0]) && output_is_to_screen();
}

size_t output_width(void)
{
    enum { WIDTH_DEFAULT = 80 };
    struct winsize size = {0};
    if (!isatty(STDOUT_FILENO)) return 0;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : WIDTH_DEFAULT;
}

enum exit_status output_report(const struct buffer *report)
{
    struct error error = {0};
    if (!report->failed && !output_settings.no_pager && pager_show(buffer_slice(report))) return EXIT_DONE;
    enum status status = report->failed ? error_set(&error, STATUS_NO_MEMORY, 0, "not enough memory for the report")
                                        : file_write("-", buffer_slice(report), &error);
    if (status == STATUS_OK) return EXIT_DONE;
    message_error("-", &error, true);
    return EXIT_FAILED;
}
