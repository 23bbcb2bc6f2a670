/* Rows of tables as bytes: numbers are little-endian, texts begin with their size in LEB128, as in ClickHouse's formats
 * RowBinary and Native. Rows are kept one after the other, sent as columns (a cut block stores nothing, a cut row all
 * rows before it), and answers come as rows.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_CLUSTER_ROWS_H
#define OFFBEAT_CLUSTER_ROWS_H

#include "base/status.h"
#include "cluster/schema.h"

/* --- Writing: a row is its columns, in their order ---------------------------------------------------------------- */

void row_u8(struct buffer *row, uint8_t value);
void row_u16(struct buffer *row, uint16_t value);
void row_u64(struct buffer *row, uint64_t value);
void row_id(struct buffer *row, const uint8_t id[ROW_ID_BYTES]);
void row_text(struct buffer *row, struct slice text);

/* Appends COUNT rows of TABLE as one block of the format Native. STATUS_MALFORMED if a row has other columns. */
enum status rows_write_block(enum cluster_table table, const struct slice *rows, size_t count, struct buffer *out,
                             struct error *error);

/* --- Reading ------------------------------------------------------------------------------------------------------ */

/* The values of a row: those of fixed size as they are, texts without their size. */
struct row {
    struct slice cells[TABLE_COLUMNS_MAX];
};
uint64_t row_number(const struct row *row, size_t column);

/* Takes a row of TYPES off the front of BYTES. False if BYTES does not have all of it. */
bool row_take(const char *types, struct slice *bytes, struct row *ret_row);
/* Reads BYTES, a row of TABLE that this or an older version put in the spool. False if they have other columns. */
bool row_read(enum cluster_table table, struct slice bytes, struct row *ret_row);

#endif
