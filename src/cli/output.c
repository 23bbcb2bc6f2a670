/* Reports are made whole in memory and written at once.  SPDX-License-Identifier: MIT */
#include "cli/output.h"

#include "base/environment.h"
#include "base/file.h"
#include "cli/message.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

bool output_has_colour(void)
{
    const char *no_colour = environment_get("NO_COLOR"), *terminal = environment_get("TERM");
    if (no_colour && no_colour[0]) return false;
    return isatty(STDOUT_FILENO) && terminal && strcmp(terminal, "dumb") != 0;
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
    enum status status = report->failed ? error_set(&error, STATUS_NO_MEMORY, 0, "not enough memory for the report")
                                        : file_write("-", buffer_slice(report), &error);
    if (status == STATUS_OK) return EXIT_DONE;
    message_error("-", &error, true);
    return EXIT_FAILED;
}
