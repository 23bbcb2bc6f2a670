/* Tests which map of a JIT compiler is kept for a process, this program.  SPDX-License-Identifier: MIT */
#include "test.h"

#include "recorder/kept_maps.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static char directory[] = "/tmp/offbeat-test-XXXXXX", map_path[64], link_path[sizeof(directory) + 48];

static void write_map(void)
{
    int file = open(map_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    CHECK(file >= 0 && write(file, "1000 10 made\n", 13) == 13);
    CHECK(close(file) == 0);
}

static bool is_kept(void)
{
    struct stat facts;
    return stat(link_path, &facts) == 0 && facts.st_size == 13;
}

static struct kept_maps fresh_maps(void)
{
    (void)snprintf(map_path, sizeof(map_path), "/tmp/perf-%d.map", (int)getpid());
    (void)snprintf(link_path, sizeof(link_path), "%s/maps/perf-%d.map", directory, (int)getpid());
    (void)unlink(map_path);
    return (struct kept_maps){.directory = directory};
}

TEST(a_map_is_kept_after_its_file_and_its_process_are_gone)
{
    CHECK(mkdtemp(directory));
    struct kept_maps maps = fresh_maps();
    kept_maps_look(&maps, getpid(), 0);
    CHECK(!is_kept());
    write_map();
    kept_maps_look(&maps, getpid(), 0);
    CHECK(is_kept());
    CHECK(unlink(map_path) == 0);
    kept_maps_look(&maps, getpid(), 0);
    CHECK(is_kept());
    kept_maps_note_end(&maps, getpid());
    CHECK(is_kept());
    kept_maps_fini(&maps);
    CHECK(!is_kept());
}

TEST(a_jitdump_is_kept_that_the_process_maps)
{
    struct kept_maps maps = fresh_maps();
    char path[64];
    (void)snprintf(path, sizeof(path), "/tmp/jit-%d.dump", (int)getpid());
    int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    CHECK(file >= 0 && write(file, "DTiJ, a stub\n", 13) == 13);
    kept_maps_look(&maps, getpid(), 0);
    CHECK(!is_kept());
    void *marker = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, 0);
    CHECK(marker != MAP_FAILED);
    kept_maps_look(&maps, getpid(), 0);
    CHECK(is_kept());
    CHECK(munmap(marker, 4096) == 0 && close(file) == 0 && unlink(path) == 0);
    kept_maps_fini(&maps);
}

TEST(a_map_is_forgotten_when_the_number_of_its_process_is_used_again)
{
    struct kept_maps maps = fresh_maps();
    write_map();
    kept_maps_look(&maps, getpid(), 0);
    kept_maps_note_end(&maps, getpid());
    CHECK(is_kept());
    CHECK(unlink(map_path) == 0);
    kept_maps_look(&maps, getpid(), 0); /* the next process */
    CHECK(!is_kept());
    kept_maps_fini(&maps);
    (void)snprintf(link_path, sizeof(link_path), "%s/maps", directory);
    CHECK(rmdir(link_path) == 0 && rmdir(directory) == 0);
}

TEST_MAIN()
