/* Texts and functions of all threads meet in one table each; ranges of all are laid over one another; then everything
 * is copied to its place.  SPDX-License-Identifier: MIT */
#include "symbolize/symbol_index_build.h"

#include <libdeflate.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/array.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/pages.h"
#include "base/partition_point.h"
#include "demangle/demangler.h"
#include "symbolize/symbol_index_private.h"
#include "symbolize/parallel.h"
#include "symbolize/place.h"

enum { LAYER_BOUNDS, LAYER_SYMBOLS, LAYER_DWARF }; /* names of DWARF have this layer and higher ones */

enum {
    TEXTS_PER_PART = 512,         /* demangled in one go */
    SHORT_NAMES_BYTES_MAX = 1024, /* both of a function */
};

/* New numbers by old ones. */
struct renumbering {
    uint32_t *texts, *functions;
};

struct build {
    struct name_sources *sources;
    struct text_table texts;
    uint32_t *demangled;                                   /* demangled text of each text; 0 = it is not mangled */
    uint32_t *symbol_texts;                                /* text of each symbol */
    struct renumbering renumberings[PARALLEL_THREADS_MAX]; /* renumbering of each thread that read DWARF */
    INDEXED_ARRAY_OF(struct symbol_index_function) functions;
    ARRAY_OF(struct symbol_index_scope) scopes;
    struct address_ranges scope_ranges; /* value: index of a scope */
    struct address_ranges line_ranges;  /* value: index of a place */
    ARRAY_OF(uint64_t) places;
};

/* --- Texts -------------------------------------------------------------------------------------------------------- */

static bool add_texts(struct build *build)
{
    const struct name_sources *sources = build->sources;
    for (size_t i = 0; i < sources->dwarf_count; i++) {
        const struct text_table *texts = &sources->dwarf[i].texts;
        uint32_t *new = build->renumberings[i].texts = calloc(texts->count + 1, sizeof(*new));
        if (!new) return false;
        for (uint32_t old = 1; old < texts->count; old++)
            new[old] = text_table_add(&build->texts, text_table_get(texts, old));
    }
    build->symbol_texts = calloc(sources->symbols->count + 1, sizeof(*build->symbol_texts));
    if (!build->symbol_texts) return false;
    for (size_t i = 0; i < sources->symbols->count; i++) {
        const char *name = elf_symbol_name(sources->symbols, &sources->symbols->items[i]);
        build->symbol_texts[i] = text_table_add(&build->texts, name);
    }
    return true;
}

/* Part of the texts, demangled: one after the other, each with its NUL; "" for those that are not mangled. */
struct demangling {
    const struct text_table *texts;
    size_t count;           /* number of texts */
    struct buffer *results; /* result of each part */
};

static void demangle_part(void *context, unsigned thread, size_t part)
{
    (void)thread;
    const struct demangling *demangling = context;
    struct buffer *results = &demangling->results[part], name;
    buffer_init(results, SIZE_MAX);
    buffer_init(&name, 2 * DEMANGLED_BYTES_MAX);
    for (size_t i = part * TEXTS_PER_PART; i < (part + 1) * TEXTS_PER_PART && i < demangling->count; i++) {
        bool is_mangled = demangle(text_table_get(demangling->texts, (uint32_t)i), &name);
        buffer_append(results, is_mangled ? name.data : (const uint8_t *)"", is_mangled ? name.size : 1);
    }
    buffer_fini(&name);
}

static void take_demangled(struct build *build, const struct demangling *demangling, size_t part)
{
    const struct buffer *results = &demangling->results[part];
    size_t i = part * TEXTS_PER_PART;
    for (size_t offset = 0; offset < results->size && !results->failed; i++) {
        const char *name = (const char *)results->data + offset;
        build->demangled[i] = text_table_add(&build->texts, name);
        offset += strlen(name) + 1;
    }
}

static bool demangle_texts(struct build *build)
{
    struct demangling demangling = {.texts = &build->texts, .count = build->texts.count};
    size_t parts = (demangling.count + TEXTS_PER_PART - 1) / TEXTS_PER_PART;
    build->demangled = calloc(demangling.count, sizeof(*build->demangled));
    demangling.results = calloc(parts, sizeof(*demangling.results));
    bool ok = build->demangled && demangling.results;
    if (ok) parallel_run(parallel_threads(), parts, demangle_part, &demangling);
    for (size_t i = 0; ok && i < parts; i++) {
        take_demangled(build, &demangling, i);
        buffer_fini(&demangling.results[i]);
    }
    free(demangling.results);
    return ok;
}

/* --- Functions ---------------------------------------------------------------------------------------------------- */

static bool is_function(const void *context, uint32_t index, const void *key)
{
    return memcmp(&((const struct build *)context)->functions.items[index], key,
                  sizeof(struct symbol_index_function)) == 0;
}

/* The number + 1 of FUNCTION; 0 if there is no room. */
static uint32_t add_function(struct build *build, struct symbol_index_function function)
{
    uint64_t hash = hash_bytes(&function, sizeof(function));
    uint32_t known = index_table_find(&build->functions.index, hash, is_function, build, &function);
    if (known != INDEX_NONE) return known + 1;
    if (!INDEXED_ARRAY_PUSH(&build->functions, DWARF_SCOPES_MAX, hash, function)) return 0;
    return (uint32_t)build->functions.count;
}

/* --- What threads found in DWARF ---------------------------------------------------------------------------------- */

static uint32_t source_and_line(enum name_source source, int line)
{
    return (uint32_t)source << SYMBOL_INDEX_LINE_BITS | ((uint32_t)line & SYMBOL_INDEX_LINE_MASK);
}

/* Sets the names to TEXT, demangled where it is mangled; returns whether it is. */
static bool set_names(const struct build *build, struct symbol_index_function *function, uint32_t text)
{
    bool is_mangled = build->demangled[text] != 0;
    function->name = is_mangled ? build->demangled[text] : text;
    function->system_name = is_mangled ? text : 0;
    return is_mangled;
}

/* A function in C has many names (__libc_malloc, malloc); the symbol table's choice is the one that other profilers
 * show. Local functions of C++ (lambdas) have a full name only in the symbol table. Names of copies and parts of a C
 * function keep the suffix that compilers add (".part.0"). */
static void choose_names(const struct build *build, const struct renumbering *new, const struct dwarf_function *from,
                         struct symbol_index_function *to)
{
    uint32_t linkage = new->texts[from->linkage_name], exported = new->texts[from->exported_name];
    if (set_names(build, to, linkage) || set_names(build, to, exported)) return;
    bool is_part = strchr(text_table_get(&build->texts, exported), '.') != NULL;
    uint32_t name = exported && !is_part ? exported : new->texts[from->name];
    if (!name) name = linkage ? linkage : exported;
    (void)set_names(build, to, name);
}

static bool renumber_functions(struct build *build, const struct dwarf_names *names, struct renumbering *new)
{
    new->functions = calloc(names->functions.count + 1, sizeof(uint32_t));
    if (!new->functions) return false;
    for (size_t i = 0; i < names->functions.count; i++) {
        const struct dwarf_function *function = &names->functions.items[i];
        struct symbol_index_function moved = {
            .file = new->texts[place_file(function->declaration)],
            .line_and_source = source_and_line(NAME_BY_DWARF, place_line(function->declaration)),
        };
        choose_names(build, new, function, &moved);
        new->functions[i + 1] = add_function(build, moved);
    }
    return true;
}

static uint64_t move_place(const struct renumbering *new, uint64_t place)
{
    return place_of(new->texts[place_file(place)], place_line(place), place_column(place));
}

static bool move_ranges(struct address_ranges *into, const struct address_ranges *from, size_t first_value,
                        uint32_t first_layer)
{
    if (!array_reserve(&into->items, &into->capacity, into->count + from->count, sizeof(*into->items),
                       ADDRESS_RANGES_MAX))
        return false;
    for (size_t i = 0; i < from->count; i++) {
        struct address_range range = from->items[i];
        range.value += (uint32_t)first_value;
        range.layer += first_layer;
        into->items[into->count++] = range;
    }
    return true;
}

static bool move_scopes(struct build *build, const struct dwarf_names *names, const struct renumbering *new)
{
    uint32_t first = (uint32_t)build->scopes.count;
    if (!array_reserve(&build->scopes.items, &build->scopes.capacity, build->scopes.count + names->scopes.count,
                       sizeof(*build->scopes.items), DWARF_SCOPES_MAX))
        return false;
    for (size_t i = 0; i < names->scopes.count; i++) {
        const struct dwarf_scope *scope = &names->scopes.items[i];
        build->scopes.items[build->scopes.count++] = (struct symbol_index_scope){
            .caller = scope->caller ? scope->caller + first : 0,
            .function = new->functions[scope->function],
            .call = move_place(new, scope->call),
        };
    }
    return move_ranges(&build->scope_ranges, &names->scope_ranges, first, LAYER_DWARF);
}

static bool move_lines(struct build *build, const struct dwarf_names *names, const struct renumbering *new)
{
    size_t first = build->places.count;
    if (!array_reserve(&build->places.items, &build->places.capacity, first + names->places.count,
                       sizeof(*build->places.items), ADDRESS_RANGES_MAX))
        return false;
    for (size_t i = 0; i < names->places.count; i++)
        build->places.items[build->places.count++] = move_place(new, names->places.items[i]);
    return move_ranges(&build->line_ranges, &names->line_ranges, first, LAYER_DWARF);
}

static bool add_dwarf(struct build *build)
{
    bool ok = true;
    for (size_t i = 0; ok && i < build->sources->dwarf_count; i++) {
        struct dwarf_names *names = &build->sources->dwarf[i];
        struct renumbering *new = &build->renumberings[i];
        ok = renumber_functions(build, names, new) && move_scopes(build, names, new) && move_lines(build, names, new);
        dwarf_names_clear(names);
    }
    return ok;
}

/* --- Symbols and bounds ------------------------------------------------------------------------------------------- */

static bool add_range(struct build *build, uint64_t start, uint64_t end, uint32_t layer)
{
    uint64_t base = build->sources->base;
    if (start < base || start - base >= UINT32_MAX || end <= start) return true;
    struct address_range range = {
        .start = (uint32_t)(start - base),
        .end = end - base < UINT32_MAX ? (uint32_t)(end - base) : UINT32_MAX,
        .value = (uint32_t)build->scopes.count - 1,
        .layer = layer,
    };
    return address_ranges_add(&build->scope_ranges, range);
}

static bool add_bounds(struct build *build)
{
    const struct function_bounds *bounds = build->sources->bounds;
    if (bounds->count == 0) return true;
    struct symbol_index_function unnamed = {.line_and_source = source_and_line(NAME_BY_BOUNDARY, 0)};
    uint32_t function = add_function(build, unnamed);
    bool ok = function != 0;
    for (size_t i = 0; ok && i < bounds->count; i++) {
        const struct function_bound *bound = &bounds->items[i];
        struct symbol_index_scope scope = {.function = function, .call = bound->start - build->sources->base};
        ok = ARRAY_PUSH(&build->scopes, DWARF_SCOPES_MAX, scope) &&
             add_range(build, bound->start, bound->end, LAYER_BOUNDS);
    }
    return ok;
}

/* Returns the end of SYMBOL. One that the file gives no size may be the last one that a stripped file exports before
 * many others. BOUND is the number of bounds that start at or before it, kept from one symbol to the next. */
static uint64_t symbol_end(const struct function_bounds *bounds, const struct elf_symbol *symbol, size_t *bound)
{
    while (*bound < bounds->count && bounds->items[*bound].start <= symbol->address) ++*bound;
    bool is_cut = !symbol->is_sized && *bound < bounds->count && bounds->items[*bound].start < symbol->end;
    return is_cut ? bounds->items[*bound].start : symbol->end;
}

static bool add_symbols(struct build *build)
{
    const struct elf_symbols *symbols = build->sources->symbols;
    bool ok = true;
    size_t bound = 0;
    for (size_t i = 0; ok && i < symbols->count; i++) {
        const struct elf_symbol *symbol = &symbols->items[i];
        struct symbol_index_function function = {.line_and_source = source_and_line(NAME_BY_SYMBOL, 0)};
        (void)set_names(build, &function, build->symbol_texts[i]);
        struct symbol_index_scope scope = {.function = add_function(build, function)};
        uint64_t end = symbol_end(build->sources->bounds, symbol, &bound);
        ok = scope.function != 0 && ARRAY_PUSH(&build->scopes, DWARF_SCOPES_MAX, scope) &&
             add_range(build, symbol->address, end, LAYER_SYMBOLS);
    }
    return ok;
}

/* --- Steps -------------------------------------------------------------------------------------------------------- */

/* A start and what holds from there up to the next one: VALUE + 1 of the range that is seen there, 0 where there is
 * none. */
struct step {
    uint32_t start, value;
};

/* Gives the steps to STEPS, which may be NULL, and returns how many there are. */
static size_t list_steps(const struct address_ranges *ranges, struct step *steps)
{
    size_t count = 0;
    uint32_t end = 0, value = 0;
    for (size_t i = 0; i < ranges->count; i++) {
        const struct address_range *range = &ranges->items[i];
        if (value != 0 && range->start > end) {
            if (steps) steps[count] = (struct step){end, 0};
            count++;
            value = 0;
        }
        if (value != range->value + 1) {
            value = range->value + 1;
            if (steps) steps[count] = (struct step){range->start, value};
            count++;
        }
        end = range->end;
    }
    if (value != 0) {
        if (steps) steps[count] = (struct step){end, 0};
        count++;
    }
    return count;
}

static struct step *make_steps(struct address_ranges *ranges, size_t *ret_count)
{
    if (!address_ranges_flatten(ranges, 0)) return NULL;
    *ret_count = list_steps(ranges, NULL);
    struct step *steps = malloc((*ret_count + 1) * sizeof(*steps));
    if (steps) (void)list_steps(ranges, steps);
    address_ranges_fini(ranges);
    return steps;
}

/* --- Start lines -------------------------------------------------------------------------------------------------- */

/* The place of the row of the line table that holds ADDRESS; 0 if none does. */
static uint64_t place_at(const struct build *build, const struct step *steps, size_t count, uint32_t address)
{
    size_t after = PARTITION_POINT(count, i, steps[i].start <= address);
    uint32_t value = after > 0 ? steps[after - 1].value : 0;
    return value ? build->places.items[value - 1] : 0;
}

static bool lacks_line(const struct symbol_index_function *function)
{
    return function->line_and_source >> SYMBOL_INDEX_LINE_BITS > NAME_BY_BOUNDARY &&
           (function->line_and_source & SYMBOL_INDEX_LINE_MASK) == 0;
}

/* Returns the start of each scope, from the base; UINT32_MAX: nowhere. NULL if memory is short. */
static uint32_t *find_scope_starts(const struct build *build)
{
    uint32_t *starts = malloc((build->scopes.count + 1) * sizeof(*starts));
    if (!starts) return NULL;
    memset(starts, 0xff, (build->scopes.count + 1) * sizeof(*starts));
    for (size_t i = 0; i < build->scope_ranges.count; i++) {
        const struct address_range *range = &build->scope_ranges.items[i];
        if (range->start < starts[range->value]) starts[range->value] = range->start;
    }
    return starts;
}

/* A function that DWARF does not declare (assembly has rows of the line table only) starts at its first row. Go's
 * profile-guided optimization counts lines from the start. */
static void set_start_line(struct build *build, struct symbol_index_scope *scope, uint64_t place)
{
    struct symbol_index_function function = build->functions.items[scope->function - 1];
    if (place_line(place) == 0) return;
    function.file = place_file(place);
    function.line_and_source |= (uint32_t)place_line(place) & SYMBOL_INDEX_LINE_MASK;
    uint32_t added = add_function(build, function);
    if (added != 0) scope->function = added;
}

static bool add_start_lines(struct build *build, const struct step *line_steps, size_t line_count)
{
    uint32_t *starts = find_scope_starts(build);
    for (size_t i = 0; starts && i < build->scopes.count; i++) {
        struct symbol_index_scope *scope = &build->scopes.items[i];
        if (scope->caller != 0 || scope->function == 0 || starts[i] == UINT32_MAX) continue;
        if (!lacks_line(&build->functions.items[scope->function - 1])) continue;
        set_start_line(build, scope, place_at(build, line_steps, line_count, starts[i]));
    }
    free(starts);
    return starts != NULL;
}

/* --- Writing ------------------------------------------------------------------------------------------------------ */

static void place_part(struct symbol_index_header *header, struct symbol_index_part *part, size_t count,
                       size_t item_size)
{
    *part = (struct symbol_index_part){.offset = header->size, .count = count};
    header->size = (header->size + count * item_size + 15) / 16 * 16;
}

/* Sizes and places of all. */
static struct symbol_index_header lay_out_index(const struct build *build, size_t scope_steps, size_t line_steps)
{
    struct symbol_index_header header = {
        .magic = SYMBOL_INDEX_MAGIC,
        .version = OFFBEAT_VERSION,
        .size = SYMBOL_INDEX_BLOCK_BYTES, /* the header has the first block for itself */
        .base = build->sources->base,
    };
    memcpy(header.inputs, build->sources->inputs, sizeof(header.inputs));
    place_part(&header, &header.scope_starts, scope_steps, sizeof(uint32_t));
    place_part(&header, &header.scope_numbers, scope_steps, sizeof(uint32_t));
    place_part(&header, &header.line_starts, line_steps, sizeof(uint32_t));
    place_part(&header, &header.line_places, line_steps, sizeof(uint64_t));
    place_part(&header, &header.scopes, build->scopes.count, sizeof(struct symbol_index_scope));
    place_part(&header, &header.functions, build->functions.count, sizeof(struct symbol_index_function));
    place_part(&header, &header.texts, build->texts.count, sizeof(uint32_t));
    place_part(&header, &header.text_bytes, build->texts.bytes.size, 1);
    header.block_count = (uint32_t)((header.size + SYMBOL_INDEX_BLOCK_BYTES - 1) / SYMBOL_INDEX_BLOCK_BYTES);
    return header;
}

static void copy_part(uint8_t *bytes, const struct symbol_index_part *part, const void *items, size_t item_size)
{
    if (part->count > 0) memcpy(bytes + part->offset, items, part->count * item_size);
}

/* Texts on their way to their places. */
struct text_writer {
    const struct text_table *texts;
    uint32_t *offsets; /* offset of each text */
    uint8_t *bytes;
    size_t end;
};

static const uint32_t NOT_WRITTEN = UINT32_MAX;

static size_t text_size(const struct text_table *texts, uint32_t text)
{
    size_t next = text + 1 < texts->count ? texts->offsets[text + 1] : texts->bytes.size;
    return next - texts->offsets[text];
}

static void write_text(struct text_writer *writer, uint32_t text)
{
    size_t size = text_size(writer->texts, text);
    if (writer->offsets[text] != NOT_WRITTEN) return;
    memcpy(writer->bytes + writer->end, writer->texts->bytes.data + writer->texts->offsets[text], size);
    writer->offsets[text] = (uint32_t)writer->end;
    writer->end += size;
}

/* The two names of a function are wanted together, so they are together; long ones after short ones, because most
 * bytes are in the few names that templates of templates have, and these are seldom wanted. */
static void write_texts(const struct build *build, const struct symbol_index_header *header, uint8_t *bytes)
{
    struct text_writer writer = {
        .texts = &build->texts,
        .offsets = (void *)(bytes + header->texts.offset),
        .bytes = bytes + header->text_bytes.offset,
    };
    for (size_t i = 0; i < build->texts.count; i++) writer.offsets[i] = NOT_WRITTEN;
    for (int with_long = 0; with_long < 2; with_long++) {
        for (size_t i = 0; i < build->functions.count; i++) {
            const struct symbol_index_function *function = &build->functions.items[i];
            size_t size = text_size(&build->texts, function->name) + text_size(&build->texts, function->system_name);
            if (size > SHORT_NAMES_BYTES_MAX && !with_long) continue;
            write_text(&writer, function->name);
            write_text(&writer, function->system_name);
        }
        if (!with_long) /* files */
            for (size_t i = 0; i < build->functions.count; i++) write_text(&writer, build->functions.items[i].file);
    }
    for (size_t i = 0; i < build->texts.count; i++) write_text(&writer, (uint32_t)i);
}

static void write_parts(const struct build *build, const struct symbol_index_header *header, uint8_t *bytes,
                        const struct step *scope_steps, const struct step *line_steps)
{
    uint32_t *starts = (void *)(bytes + header->scope_starts.offset);
    uint32_t *numbers = (void *)(bytes + header->scope_numbers.offset);
    for (size_t i = 0; i < header->scope_starts.count; i++) {
        starts[i] = scope_steps[i].start;
        numbers[i] = scope_steps[i].value;
    }
    starts = (void *)(bytes + header->line_starts.offset);
    uint64_t *places = (void *)(bytes + header->line_places.offset);
    for (size_t i = 0; i < header->line_starts.count; i++) {
        starts[i] = line_steps[i].start;
        places[i] = line_steps[i].value ? build->places.items[line_steps[i].value - 1] : 0;
    }
    copy_part(bytes, &header->scopes, build->scopes.items, sizeof(*build->scopes.items));
    copy_part(bytes, &header->functions, build->functions.items, sizeof(*build->functions.items));
    write_texts(build, header, bytes);
}

/* Lays out the file in pages: the parts, then the checksums of the blocks. */
static bool write_index(struct build *build, struct symbol_index *index)
{
    size_t scope_count = 0, line_count = 0;
    struct step *line_steps = make_steps(&build->line_ranges, &line_count);
    bool ok = line_steps && add_start_lines(build, line_steps, line_count);
    struct step *scope_steps = ok ? make_steps(&build->scope_ranges, &scope_count) : NULL;
    ok = scope_steps != NULL;
    if (ok) {
        index->header = lay_out_index(build, scope_count, line_count);
        index->mapped_size = (size_t)index->header.size + index->header.block_count * sizeof(uint32_t);
        ok = index->header.size <= SYMBOL_INDEX_BYTES_MAX && (index->bytes = pages_allocate(index->mapped_size));
    }
    if (ok) write_parts(build, &index->header, index->bytes, scope_steps, line_steps);
    free(scope_steps);
    free(line_steps);
    return ok;
}

static void build_fini(struct build *build)
{
    text_table_fini(&build->texts);
    free(build->functions.items);
    index_table_fini(&build->functions.index);
    free(build->scopes.items);
    address_ranges_fini(&build->scope_ranges);
    address_ranges_fini(&build->line_ranges);
    free(build->places.items);
    free(build->demangled);
    free(build->symbol_texts);
    for (size_t i = 0; i < PARALLEL_THREADS_MAX; i++) {
        free(build->renumberings[i].texts);
        free(build->renumberings[i].functions);
    }
}

bool symbol_index_build(struct symbol_index *index, struct name_sources *sources)
{
    struct build build = {.sources = sources};
    *index = (struct symbol_index){.descriptor = -1, .is_open = true};
    buffer_init(&index->text, SYMBOL_INDEX_TEXT_BYTES_MAX);
    bool ok = text_table_init(&build.texts) && add_texts(&build) && demangle_texts(&build) && add_bounds(&build) &&
              add_symbols(&build) && add_dwarf(&build) && write_index(&build, index);
    build_fini(&build);
    if (!ok) symbol_index_close(index);
    return ok;
}

/* Completes the bytes that are written. */
static struct slice finish_bytes(const struct symbol_index *index)
{
    struct symbol_index_header *header = (void *)index->bytes;
    size_t size = (size_t)index->header.size;
    uint32_t *checksums = (void *)(index->bytes + size);
    for (size_t i = 1; i < index->header.block_count; i++) {
        size_t offset = i * SYMBOL_INDEX_BLOCK_BYTES, left = size - offset;
        checksums[i] = libdeflate_crc32(0, index->bytes + offset,
                                        left < SYMBOL_INDEX_BLOCK_BYTES ? left : SYMBOL_INDEX_BLOCK_BYTES);
    }
    *header = index->header;
    header->checksum = symbol_index_checksum(header, checksums);
    return slice_of(index->bytes, index->mapped_size);
}

bool symbol_index_write(const struct symbol_index *index, const char *path)
{
    return file_write(path, finish_bytes(index), NULL) == STATUS_OK;
}

bool symbol_index_write_descriptor(const struct symbol_index *index, int descriptor)
{
    return lseek(descriptor, 0, SEEK_SET) == 0 && ftruncate(descriptor, 0) == 0 &&
           file_write_descriptor(descriptor, finish_bytes(index), NULL) == STATUS_OK;
}
