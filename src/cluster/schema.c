/* SPDX-License-Identifier: MIT */
#include "cluster/schema.h"

/* Columns of a chunk, in both tables that have them. */
#define CHUNK_COLUMNS                                                                                                  \
    "keep,day,project,service,start_ns,id,end_ns,kind,profiler_id,chunk_id,environment,release,host,platform,kinds,"   \
    "series,"                                                                                                          \
    "received_ns,samples,size,packed,summed"
#define CHUNK_TYPES "hdqsqiqbssssssssqqqqb"

/* KEEP: days that the project keeps its data; 0: as the server does. DAY: of receipt. */
const struct table cluster_tables[TABLES] = {
    [TABLE_DICT] = {"dict", "hdqsiqqs", "keep,day,project,service,space,number,size,bytes",
                    "project,service,space,number", 64},
    [TABLE_RAW] = {"raw", CHUNK_TYPES "s", CHUNK_COLUMNS ",payload", "project,service,start_ns,id", 32},
    [TABLE_SUM] = {"sum", "hdqsbqiiqssssssqqqqsq",
                   "keep,day,project,service,level,start_ns,id,space,nodes,kinds,environment,release,host,platform,"
                   "header,first_ns,last_ns,inputs,inputs_xor,entries,set_rows",
                   "project,service,level,start_ns,id", 256},
    [TABLE_CHUNK] = {"chunk", CHUNK_TYPES, CHUNK_COLUMNS, "project,service,start_ns,id", 256},
    [TABLE_SPAN] = {"span", "hdqqissssssssssqb",
                    "keep,day,project,start_ns,id,trace_id,span_id,name,op,service,environment,release,profiler_id,"
                    "profile_id,thread_id,end_ns,is_transaction",
                    "project,start_ns,id", 256},
    [TABLE_OUTCOME] = {"outcome", "hdqisssq", "keep,day,project,id,outcome,category,reason,quantity",
                       "project,outcome,category,reason,id", 256},
    [TABLE_REJECTED] = {"rejected", "hdqqisssssssqs",
                        "keep,day,project,received_ns,id,type,reason,place,found,expected,sdk,header,size,payload",
                        "project,received_ns,id", 256},
    [TABLE_CONTROL] = {"control", "ssqis", "sort,id,version,writer,body", "sort,id,version,writer", 256},
    [TABLE_SCHEMA] = {"schema", "qq", "version,oldest_reader", "version", 256},
};

const char *type_name(char letter)
{
    switch (letter) {
    case TYPE_U8:
        return "UInt8";
    case TYPE_U16:
        return "UInt16";
    case TYPE_DATE:
        return "Date";
    case TYPE_U64:
        return "UInt64";
    case TYPE_ID:
        return "FixedString(16)";
    default:
        return "String";
    }
}

void schema_write_create(enum cluster_table table, const char *database, bool is_replicated, struct buffer *out)
{
    const struct table *made = &cluster_tables[table];
    struct slice names = slice_of_text(made->columns);
    buffer_append_format(out, "CREATE TABLE IF NOT EXISTS %s.%s (", database, made->name);
    for (const char *type = made->types; *type; type++) {
        struct slice name = text_take_until(&names, ',');
        buffer_append_format(out, "%s%.*s %s", type == made->types ? "" : ", ", SLICE_ARGUMENTS(name),
                             type_name(*type));
    }
    bool is_everywhere = table >= DATA_TABLES; /* each machine has all of it */
    if (is_replicated)
        buffer_append_format(out, ") ENGINE = ReplicatedMergeTree('/clickhouse/tables/%s%s/%s', '%s')", database,
                             is_everywhere ? "" : "/{shard}", made->name,
                             is_everywhere ? "{shard}-{replica}" : "{replica}");
    else
        buffer_append_text(out, ") ENGINE = MergeTree");
    if (!is_everywhere) buffer_append_text(out, " PARTITION BY (keep, day)");
    buffer_append_format(out, " ORDER BY (%s) SETTINGS index_granularity = %u", made->order, made->granularity);
    /* A small table is over the limit of a half with one part that a killed server left. */
    if (is_replicated) buffer_append_text(out, ", replicated_max_ratio_of_wrong_parts = 1");
}
