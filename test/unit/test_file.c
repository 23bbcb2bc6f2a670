/* Whole files: what a reader may see of a write that succeeded, and of one that did not.  SPDX-License-Identifier: MIT
 */
#include "test.h"

#include "base/file.h"
#include "base/folder_names.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char directory[] = "/tmp/offbeat-test-XXXXXX";

static const char *path_of(const char *name)
{
    static char path[PATH_MAX];
    (void)snprintf(path, sizeof(path), "%s/%s", directory, name);
    return path;
}

static unsigned files_in_directory(void)
{
    unsigned count = 0;
    DIR *opened = opendir(directory);
    for (struct dirent *entry = readdir(opened); entry; entry = readdir(opened)) {
        if (entry->d_name[0] != '.') count++;
    }
    (void)closedir(opened);
    return count;
}

static void check_content(const char *path, const char *expected)
{
    struct buffer content;
    buffer_init(&content, 1000);
    struct error error;
    CHECK_UINT(file_read(path, &content, &error), STATUS_OK);
    CHECK(slice_equals_text(buffer_slice(&content), expected));
    buffer_fini(&content);
}

TEST(what_is_written_is_read_and_nothing_else_is_left)
{
    CHECK(mkdtemp(directory));
    struct error error;
    CHECK_UINT(file_write(path_of("a"), slice_of_text("first"), &error), STATUS_OK);
    check_content(path_of("a"), "first");
    CHECK_UINT(file_write(path_of("a"), slice_of_text("second"), &error), STATUS_OK);
    check_content(path_of("a"), "second");
    CHECK_UINT(files_in_directory(), 1);
}

TEST(a_replaced_file_keeps_its_permissions_and_a_link_stays_one)
{
    struct error error;
    CHECK(chmod(path_of("a"), 0640) == 0);
    CHECK(symlink("a", path_of("link")) == 0);
    CHECK_UINT(file_write(path_of("link"), slice_of_text("third"), &error), STATUS_OK);
    check_content(path_of("a"), "third");
    struct stat facts;
    CHECK(lstat(path_of("link"), &facts) == 0 && S_ISLNK(facts.st_mode));
    CHECK(stat(path_of("a"), &facts) == 0);
    CHECK_UINT(facts.st_mode & 0777, 0640);
    CHECK(unlink(path_of("link")) == 0);
}

TEST(a_link_to_nowhere_is_reported_and_stays)
{
    struct error error;
    struct stat facts;
    CHECK(symlink("nowhere", path_of("link")) == 0);
    CHECK_UINT(file_write(path_of("link"), slice_of_text("x"), &error), STATUS_NOT_FOUND);
    CHECK_TEXT(error.message, "cannot follow the symbolic link: No such file or directory");
    CHECK(lstat(path_of("link"), &facts) == 0 && S_ISLNK(facts.st_mode));
    CHECK_UINT(files_in_directory(), 2);
    CHECK(unlink(path_of("link")) == 0);
}

TEST(accepts_the_longest_name_and_reports_one_byte_more)
{
    struct error error;
    char name[NAME_MAX + 2];
    memset(name, 'n', sizeof(name) - 1);
    name[NAME_MAX + 1] = 0;
    CHECK(file_write(path_of(name), slice_of_text("x"), &error) != STATUS_OK);
    CHECK_TEXT(error.message, "cannot create: File name too long");
    CHECK_UINT(files_in_directory(), 1);
    name[NAME_MAX] = 0;
    CHECK_UINT(file_write(path_of(name), slice_of_text("x"), &error), STATUS_OK);
    check_content(path_of(name), "x");
    CHECK(unlink(path_of(name)) == 0);
}

/* In a process without the rights of root, who may write everything. */
TEST(a_file_that_may_not_be_written_is_not_replaced)
{
    enum { NOBODY = 65534 };
    CHECK_UINT(file_write(path_of("kept"), slice_of_text("old"), NULL), STATUS_OK);
    CHECK(chmod(path_of("kept"), 0444) == 0 && chmod(directory, 0777) == 0);
    pid_t child = fork();
    if (child == 0) {
        struct error error = {0};
        if (geteuid() == 0 && setuid(NOBODY) != 0) _exit(2);
        enum status status = file_write(path_of("kept"), slice_of_text("new"), &error);
        _exit(status != STATUS_OK && error.errno_value == EACCES ? 0 : 1);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_UINT(status, 0);
    check_content(path_of("kept"), "old");
    CHECK(unlink(path_of("kept")) == 0 && chmod(directory, 0700) == 0);
}

/* A limit on the size of files raises a signal, which would end the process. */
TEST(a_write_over_the_size_limit_fails_and_leaves_no_half_of_a_file)
{
    pid_t child = fork();
    if (child == 0) {
        static const uint8_t large[64 << 10];
        struct rlimit limit = {.rlim_cur = 4096, .rlim_max = 4096}, no_core = {0};
        (void)setrlimit(RLIMIT_CORE, &no_core);
        (void)setrlimit(RLIMIT_FSIZE, &limit);
        (void)signal(SIGXFSZ, SIG_DFL);
        _exit(file_write(path_of("b"), slice_of(large, sizeof(large)), NULL) == STATUS_IO ? 0 : 1);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK_UINT(status, 0);
    CHECK_UINT(files_in_directory(), 1);
}

TEST(reports_a_full_device_and_a_missing_directory)
{
    struct error error;
    CHECK_UINT(file_write("/dev/full", slice_of_text("x"), &error), STATUS_IO);
    CHECK_INT(error.errno_value, ENOSPC);
    CHECK_UINT(file_write(path_of("missing/a"), slice_of_text("x"), &error), STATUS_NOT_FOUND);
    CHECK_UINT(files_in_directory(), 1);
}

TEST(a_file_of_exactly_the_maximum_is_read_and_one_byte_more_rejected)
{
    struct error error;
    struct buffer content;
    buffer_init(&content, 5);
    CHECK_UINT(file_read(path_of("a"), &content, &error), STATUS_OK);
    CHECK_UINT(content.size, 5);
    buffer_fini(&content);

    buffer_init(&content, 4);
    CHECK_UINT(file_read(path_of("a"), &content, &error), STATUS_TOO_LARGE);
    buffer_fini(&content);
}

TEST(a_directory_is_not_read)
{
    struct error error;
    struct buffer content;
    buffer_init(&content, 5);
    CHECK_UINT(file_read(directory, &content, &error), STATUS_IO);
    CHECK_INT(error.errno_value, EISDIR);
    CHECK_UINT(file_read(path_of("missing"), &content, &error), STATUS_NOT_FOUND);
    buffer_fini(&content);

    CHECK(unlink(path_of("a")) == 0);
}

TEST(a_folder_of_many_names_is_listed_once_each)
{
    enum { COUNT = 300 }; /* several reads */
    struct folder_names names;
    bool seen[COUNT] = {0};
    unsigned count = 0;
    char name[64];
    for (unsigned i = 0; i < COUNT; i++) {
        (void)snprintf(name, sizeof(name), "%u.a-name-that-takes-some-room", i);
        CHECK(symlink("nowhere", path_of(name)) == 0);
    }
    folder_open(&names, directory);
    for (const char *next; (next = folder_next(&names)); count++) {
        unsigned long number = strtoul(next, NULL, 10);
        CHECK(number < COUNT && !seen[number]);
        seen[number % COUNT] = true;
        CHECK(unlink(path_of(next)) == 0);
    }
    CHECK_UINT(count, COUNT);
    CHECK(folder_next(&names) == NULL);
    folder_close(&names);
}

TEST(a_folder_that_is_none_has_no_names)
{
    struct folder_names names;
    folder_open(&names, path_of("missing"));
    CHECK(folder_next(&names) == NULL);
    folder_open(&names, "/dev/null");
    CHECK(folder_next(&names) == NULL);
    CHECK(rmdir(directory) == 0);
    folder_open(&names, directory);
    CHECK(folder_next(&names) == NULL);
}

TEST_MAIN()
