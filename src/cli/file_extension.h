/* Endings of files that viewers open as pictures or pages.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLI_FILE_EXTENSION_H
#define OFFBEAT_CLI_FILE_EXTENSION_H

#include <stdbool.h>
#include <stddef.h>

/* "png" for "x.png" and "x.PNG"; NULL if PATH is NULL or its ending is not one of a picture. A constant. */
const char *file_extension_of_picture(const char *path);

/* The format of Graphviz that the ending of PATH names, or NULL; a constant. */
const char *file_extension_drawn(const char *path);

/* A path with the ending of a picture must be written in that format. True if FORMAT (NULL: text) is what the ending
 * of PATH promises, or if it promises nothing. */
bool file_extension_is_promised(const char *path, const char *format);

#endif
