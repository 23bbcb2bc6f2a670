/* Source files: where they are looked for, and which are rejected.  SPDX-License-Identifier: MIT */
#include "test.h"

#include "symbolize/source_file.h"

#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[] = "/tmp/test_source_file.XXXXXX";
static char path[PATH_MAX];

static const char *in_folder(const char *name)
{
    (void)snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static void put(const char *name, const char *text, size_t size)
{
    FILE *file = fopen(in_folder(name), "w");
    if (!file || fwrite(text, 1, size, file) != size || fclose(file) != 0) TEST_FAIL("cannot write %s", path);
}

static struct source_files files;

static void search(const char *folders, const char *trimmed)
{
    source_files_fini(&files);
    files.search = (struct source_search){.folders = folders, .trimmed = trimmed};
}

/* The first line of the file, "" if it is not found. */
static const char *first_line(const char *name)
{
    static char text[64];
    struct slice line;
    const struct source_file *file = source_files_find(&files, name);
    text[0] = '\0';
    if (source_line(file, 1, &line)) (void)snprintf(text, sizeof(text), "%.*s", SLICE_ARGUMENTS(line));
    return text;
}

static void prepare(void)
{
    static bool is_prepared; /* not to be seen by the folder's name: a random letter may be an X, too */
    if (is_prepared) return;
    is_prepared = true;
    CHECK(mkdtemp(folder) != NULL);
    CHECK(mkdir(in_folder("project"), 0700) == 0 && mkdir(in_folder("project/src"), 0700) == 0);
    put("project/src/a.c", "one\r\n\nthree", 11);
    put("project/b.c", "b\n", 2);
}

TEST(lines_end_with_a_line_feed_a_carriage_return_or_the_file)
{
    struct slice line;
    prepare();
    search(folder, NULL);
    const struct source_file *file = source_files_find(&files, in_folder("project/src/a.c"));
    CHECK_INT(file->status, STATUS_OK);
    CHECK(source_line(file, 1, &line) && line.size == 3);
    CHECK(source_line(file, 2, &line) && line.size == 0);
    CHECK(source_line(file, 3, &line) && line.size == 5);
    CHECK(!source_line(file, 4, &line) && !source_line(file, 0, &line) && !source_line(file, INT64_MIN, &line));
    CHECK(file == source_files_find(&files, path));
}

TEST(files_of_another_machine_are_found_by_the_end_of_their_paths)
{
    char folders[PATH_MAX];
    prepare();
    (void)snprintf(folders, sizeof(folders), "/nowhere:%s", folder);
    search(folders, NULL);
    CHECK_TEXT(first_line("/build/x/project/src/a.c"), "one");
    CHECK_TEXT(first_line("project/b.c"), "b");
    CHECK_TEXT(first_line("/build/c.c"), "");
    CHECK_INT(source_files_find(&files, "/build/c.c")->status, STATUS_NOT_FOUND);
}

TEST(trimmed_paths_are_searched_as_in_pprof)
{
    char folders[PATH_MAX];
    prepare();
    (void)snprintf(folders, sizeof(folders), "%s/project/src", folder);
    search(folders, NULL);
    files.search.is_pprof = true;
    CHECK_TEXT(first_line("/proc/self/cwd/a.c"), "one");
    CHECK_TEXT(first_line("/other/src/a.c"), "one"); /* the rest of the path */
    CHECK_TEXT(first_line("/other/a.c"), "");
    search(folders, "/x:/other/");
    files.search.is_pprof = true;
    CHECK_TEXT(first_line("/other/a.c"), "one");
    CHECK_TEXT(first_line("/otherwise/a.c"), "");
}

static bool is_a_c(void *context, const char *name)
{
    (void)context;
    return strcmp(name, in_folder("project/src/a.c")) == 0;
}

TEST(a_profile_opens_no_file_outside_of_the_folders_of_sources)
{
    char folders[PATH_MAX], outside[PATH_MAX];
    prepare();
    (void)snprintf(outside, sizeof(outside), "%s/project/b.c", folder);
    (void)snprintf(folders, sizeof(folders), "%s/project/src", folder);
    CHECK(symlink("../b.c", in_folder("project/src/link.c")) == 0);
    const char *const names[] = {outside, "../b.c", "b.c", "/x/../b.c", "link.c", "/etc/passwd", "/proc/self/status"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        search(folders, NULL);
        CHECK_TEXT(first_line(names[i]), "");
        search(NULL, NULL);
        CHECK_TEXT(first_line(names[i]), "");
    }
    CHECK(unlink(in_folder("project/src/link.c")) == 0);
}

TEST(a_file_that_is_proven_is_opened_wherever_it_is)
{
    prepare();
    search(NULL, NULL);
    files.search.is_proven = is_a_c;
    CHECK_TEXT(first_line(in_folder("project/src/a.c")), "one");
    CHECK_TEXT(first_line(in_folder("project/b.c")), "");
}

static bool is_asked(void *context, const char *name)
{
    TEST_FAIL("%s needs no proof", name);
    return context != NULL;
}

TEST(a_file_below_the_folders_of_sources_needs_no_proof)
{
    prepare();
    search(folder, NULL);
    files.search.is_proven = is_asked;
    CHECK_TEXT(first_line(in_folder("project/src/a.c")), "one");
}

TEST(what_is_no_text_file_is_rejected_without_waiting)
{
    prepare();
    search(folder, NULL);
    put("binary.c", "a\0b", 3);
    CHECK(mkfifo(in_folder("pipe.c"), 0600) == 0);
    CHECK_INT(source_files_find(&files, path)->status, STATUS_UNSUPPORTED);
    CHECK_INT(source_files_find(&files, in_folder("binary.c"))->status, STATUS_UNSUPPORTED);
    CHECK_INT(source_files_find(&files, folder)->status, STATUS_UNSUPPORTED);
    CHECK_INT(source_files_find(&files, "/dev/zero")->status, STATUS_UNSUPPORTED);
}

TEST(a_file_of_more_than_the_maximum_is_rejected)
{
    prepare();
    search(folder, NULL);
    put("large.c", "x\n", 2);
    CHECK(truncate(path, (off_t)SOURCE_BYTES_MAX + 1) == 0);
    CHECK_INT(source_files_find(&files, path)->status, STATUS_TOO_LARGE);
    CHECK_INT(files.bytes_read, 0);
}

TEST(a_file_of_too_many_lines_is_rejected)
{
    prepare();
    search(folder, NULL);
    size_t size = SOURCE_LINES_MAX + 1;
    char *text = malloc(size);
    memset(text, '\n', size);
    put("lines.c", text, size);
    free(text);
    CHECK_INT(source_files_find(&files, path)->status, STATUS_TOO_LARGE);
    search(folder, NULL);
    static const char *const names[] = {"lines.c", "large.c", "binary.c", "pipe.c", "project/b.c", "project/src/a.c"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) (void)unlink(in_folder(names[i]));
    (void)rmdir(in_folder("project/src"));
    (void)rmdir(in_folder("project"));
    (void)rmdir(folder);
}

TEST_MAIN()
