/* SPDX-License-Identifier: MIT */
#include "cli/public_url.h"

#include "cli/message.h"

#include <stdio.h>
#include <string.h>

bool public_url_take(const char *command, const char **url, char copy[PUBLIC_URL_SIZE])
{
    if (!*url) return true;
    bool is_url = (strncmp(*url, "http://", 7) == 0 || strncmp(*url, "https://", 8) == 0) && !strpbrk(*url, "@?# ");
    int size = snprintf(copy, PUBLIC_URL_SIZE, "%s", *url);
    while (size > 0 && size < PUBLIC_URL_SIZE && copy[size - 1] == '/') copy[--size] = '\0';
    if (is_url && size < PUBLIC_URL_SIZE && size > (int)strlen("https://")) {
        *url = copy;
        return true;
    }
    message("%s: --public-url %.300s: a URL without user and parameters is needed, as https://profiles.example.org",
            command, *url);
    return false;
}
