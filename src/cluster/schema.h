/* The tables of a cluster, in the part of SQL that ClickHouse 18.16 and current versions share.
 * SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLUSTER_SCHEMA_H
#define OFFBEAT_CLUSTER_SCHEMA_H

#include "base/buffer.h"

enum {
    CLUSTER_VERSION = 2,       /* version of the tables */
    CLUSTER_READER_OLDEST = 1, /* the oldest version whose servers can use these tables */
    ROW_ID_BYTES = 16,
    TABLE_COLUMNS_MAX = 24,
};

/* Types of columns, a letter each. */
#define TYPE_U8 'b'
#define TYPE_U16 'h'
#define TYPE_DATE 'd' /* days since 1970, 2 bytes */
#define TYPE_U64 'q'
#define TYPE_ID 'i'   /* ROW_ID_BYTES bytes */
#define TYPE_TEXT 's' /* any bytes */

/* In the order in which rows are inserted: a reader that finds a row finds what it names. */
enum cluster_table {
    TABLE_DICT,
    TABLE_RAW,
    TABLE_SUM,
    TABLE_CHUNK,
    TABLE_SPAN,
    TABLE_OUTCOME,
    TABLE_REJECTED,
    DATA_TABLES, /* rows of the tables above are on one shard, in partitions of (keep, day) */
    TABLE_CONTROL = DATA_TABLES,
    TABLE_SCHEMA,
    TABLES
};

struct table {
    const char *name;
    const char *types;   /* a letter for each column */
    const char *columns; /* names, separated by commas */
    const char *order;   /* the sorting key */
    unsigned granularity;
};

extern const struct table cluster_tables[TABLES];

/* Returns the name in ClickHouse of the type LETTER. */
const char *type_name(char letter);
/* Appends the statement that makes TABLE; REPLICA: its name in ZooKeeper, "": not replicated. */
void schema_write_create(enum cluster_table table, const char *database, bool is_replicated, struct buffer *out);

#endif
