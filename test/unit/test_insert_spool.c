/* The spool of a cluster: a file stays until each shard has its rows of it.  SPDX-License-Identifier: MIT */
#include "test.h"

#include "cluster/insert_spool.h"

#include <stdio.h>
#include <stdlib.h>

enum { FIRST = 1, SECOND = 2, BOTH = 3 }; /* bits of shards */

static char folder[64];

static struct insert_spool *open_spool(void)
{
    struct insert_spool *spool;
    struct error error = {0};
    if (insert_spool_open(folder, 1 << 20, &spool, &error) != STATUS_OK) TEST_FAIL("%s", error.message);
    return spool;
}

/* Returns the number of the finished file that has a new record. */
static uint64_t add_file(struct insert_spool *spool)
{
    uint64_t file = 0;
    bool has_lost;
    struct error error = {0};
    insert_spool_begin(spool, &has_lost);
    CHECK(!has_lost);
    if (insert_spool_add(spool, slice_of_text("rows"), &file, &error) != STATUS_OK) TEST_FAIL("%s", error.message);
    CHECK_UINT(insert_spool_flush(spool), file);
    return file;
}

static uint64_t count_waiting(struct insert_spool *spool)
{
    struct insert_spool_usage usage;
    insert_spool_usage(spool, &usage);
    return usage.files;
}

TEST(shards_that_took_their_rows_by_different_placements_take_them_again)
{
    (void)snprintf(folder, sizeof(folder), "/tmp/offbeat-spool-XXXXXX");
    CHECK(mkdtemp(folder));
    struct insert_spool *spool = open_spool();
    uint64_t file = add_file(spool);
    CHECK_UINT(insert_spool_next(spool, FIRST), file);
    insert_spool_mark(spool, file, FIRST, BOTH, 7);
    insert_spool_mark(spool, file, SECOND, BOTH, 8);
    CHECK_UINT(count_waiting(spool), 1);
    CHECK_UINT(insert_spool_next(spool, FIRST), file);
    insert_spool_mark(spool, file, FIRST, BOTH, 8);
    CHECK_UINT(count_waiting(spool), 0);
    insert_spool_close(spool);

    spool = open_spool();
    CHECK_UINT(count_waiting(spool), 1); /* a restart sends again */
    insert_spool_mark(spool, file, FIRST, FIRST, 1);
    insert_spool_expire(spool, 0);
    insert_spool_close(spool);
    spool = open_spool();
    CHECK_UINT(count_waiting(spool), 0);
    insert_spool_close(spool);
    char command[100];
    (void)snprintf(command, sizeof(command), "rm -r %s", folder);
    CHECK_INT(system(command), 0);
}

TEST_MAIN()
