/* Drops root's rights, then creates in the folder of recordings the files that an attacker would create.
 * SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *path_of(const char *name)
{
    static char path[4096];
    (void)snprintf(path, sizeof(path), "%s/%s", getenv("OFFBEAT_RECORD_DIRECTORY"), name);
    return path;
}

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(path_of(name), "w");
    if (!file || fputs(text, file) < 0 || fclose(file) != 0) exit(3);
}

int main(void)
{
    if (setgid(65534) || setuid(65534)) return 2;
    if (symlink("/etc/shadow", path_of("1-1.recording")) != 0) return 3;
    if (symlink("/dev/zero", path_of("1-2.recording")) != 0) return 3;
    if (mkfifo(path_of("1-3.recording"), 0666) != 0) return 3;
    if (mkdir(path_of("1-4.recording"), 0777) != 0) return 3;
    write_file("1-5.recording", "root:x:0:0\n");
    write_file("1-6.recording", "");
    /* Two names of one file. */
    write_file("twice", "OFFBEAT\2");
    char other[4096];
    (void)snprintf(other, sizeof(other), "%s", path_of("twice"));
    if (link(other, path_of("1-7.recording")) != 0) return 3;
    usleep(300000);
    return 0;
}
