/* State of the decoder of OTLP, and the tables to which everything refers.  SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_FORMAT_OTLP_OTLP_DICTIONARY_H
#define OFFBEAT_FORMAT_OTLP_OTLP_DICTIONARY_H

#include "base/array.h"
#include "base/hash.h"
#include "base/protobuf.h"
#include "format/otlp/otlp.h"
#include "format/otlp/otlp_private.h"

struct otlp_attribute {
    struct label label; /* KEY 0: of a kind that has no label */
    struct slice array; /* bytes of an ANY_ARRAY */
    bool is_true;       /* value of an ANY_BOOL */
};

struct otlp_link {
    struct string_id trace_id, span_id;
};

enum { OTLP_COLUMN_NONE = PROFILE_VALUES_MAX };

/* Where the observations of one stack, thread, time and set of labels are: the first and last row of all columns, or
 * the last one that has a value in COLUMN. */
struct otlp_row_place {
    struct stack_id stack;
    struct thread_id thread;
    struct label_set_id labels;
    uint64_t time_ns;
    uint32_t column; /* OTLP_COLUMN_NONE: of all */
    uint32_t first, last;
};

struct otlp_numbers {
    uint64_t *items;
    size_t count, capacity;
};

/* clang-format off */
struct otlp_decoder {
    struct slice bytes;
    bool is_transcoded; /* places in BYTES are not places in the file */
    struct profile *profile;
    struct { struct string_id *items; size_t count, capacity; } strings;
    struct { struct function_id *items; size_t count, capacity; } functions;
    struct { struct mapping_id *items; size_t count, capacity; } mappings;
    struct { struct otlp_attribute *items; size_t count, capacity; } attributes;
    struct { struct otlp_link *items; size_t count, capacity; } links;
    struct { struct location_id *items; size_t count, capacity; } locations;
    struct { struct stack_id *items; size_t count, capacity; } stacks;

    struct otlp_numbers numbers, times; /* lists at hand */
    struct { struct line *items; size_t count, capacity; } lines;
    struct label labels[OTLP_ATTRIBUTES_MAX];
    uint32_t label_count, resource_label_count; /* the resource's labels come first */
    bool has_several_resources, has_profile;

    struct { uint32_t *items; size_t count, capacity; } next_rows; /* next row of the same key, by row */
    struct { struct otlp_row_place *items; size_t count, capacity; struct index_table index; } rows;
    uint32_t column;
    uint64_t end_ns;

    enum status status;
    struct error *error;
};
/* clang-format on */

typedef void (*otlp_take_message)(struct otlp_decoder *, struct slice message);

/* Notes the first failure; PLACE, where it was noticed, may be NULL. */
void __attribute__((format(printf, 4, 5)))
otlp_fail(struct otlp_decoder *decoder, const uint8_t *place, enum status status, const char *format, ...);

#define OTLP_ADD(decoder, list)                                                                                        \
    ((__typeof__((list)->items))otlp_add_item((decoder), &(list)->items, &(list)->count, &(list)->capacity,            \
                                              sizeof(*(list)->items)))

/* Makes room for one more item, zeroed and counted. Returns NULL on failure. */
void *otlp_add_item(struct otlp_decoder *decoder, void *items, size_t *count, size_t *capacity, size_t item_size);

/* Reads the next field of MESSAGE, which CURSOR reads. Returns false at its end, and when it is broken. */
bool otlp_next_field(struct otlp_decoder *decoder, struct cursor *cursor, struct protobuf_field *field,
                     const char *message);
/* Gives TAKE each message of field NUMBER in turn. */
void otlp_each_message(struct otlp_decoder *decoder, struct slice parent, uint32_t number, const char *name,
                       otlp_take_message take);
/* Adds the numbers of FIELD, packed or alone, to LIST, a list of WHAT. A number alone has the wire type ALONE. */
void otlp_add_numbers(struct otlp_decoder *decoder, struct otlp_numbers *list, const struct protobuf_field *field,
                      enum protobuf_wire_type alone, const char *what);

/* Returns INDEX if a table of COUNT items has it; else 0 after a failure. Entry 0, "none", may be missing. */
uint64_t otlp_check_index(struct otlp_decoder *decoder, uint64_t index, size_t count, const char *table);
#define OTLP_AT(decoder, table, index)                                                                                 \
    ((decoder)->table.count > 0                                                                                        \
         ? (decoder)                                                                                                   \
               ->table.items[otlp_check_index((decoder), (index), (decoder)->table.count, "the table of " #table)]     \
         : (otlp_check_index((decoder), (index), 0, "the table of " #table),                                           \
            (__typeof__(*(decoder)->table.items)){0}))

/* Reads the fields of MESSAGE that are numbers and below COUNT into NUMBERS. */
void otlp_read_numbers(struct otlp_decoder *decoder, struct slice message, const char *name, uint64_t *numbers,
                       uint32_t count);
/* Reads the list in field NUMBER of MESSAGE into decoder.numbers. */
void otlp_read_list(struct otlp_decoder *decoder, struct slice message, uint32_t number, const char *name);
/* Reads the AnyValue MESSAGE into ATTRIBUTE; false for a kind that has no label. */
bool otlp_read_value(struct otlp_decoder *decoder, struct slice message, struct otlp_attribute *attribute);
/* Returns the attribute to which entry PLACE of the list at hand, decoder.numbers, refers. */
const struct otlp_attribute *otlp_attribute_at(struct otlp_decoder *decoder, size_t place);
bool otlp_is_key(const struct otlp_decoder *decoder, const struct otlp_attribute *attribute, const char *key);
/* Returns the hexadecimal digits of an id; "" for zeros. */
struct string_id otlp_hex_id(struct otlp_decoder *decoder, struct slice bytes);
/* Reads the tables of the dictionary MESSAGE in an order in which each refers only to earlier ones. */
void otlp_read_dictionary(struct otlp_decoder *decoder, struct slice message);

#endif
