/* One pass from left to right: a rule that matches at a place skips what it matches, else a byte is copied.
 * SPDX-License-Identifier: MIT */
#include "profile/comparable_name.h"

#include <ctype.h>

enum { ADDRESS_DIGITS_MIN = 4, RUST_HASH_DIGITS = 16 };

static bool begins_with(struct slice text, size_t place, const char *start)
{
    size_t size = strlen(start);
    return place <= text.size && text.size - place >= size && memcmp(text.data + place, start, size) == 0;
}

static uint8_t byte_at(struct slice text, size_t place)
{
    return place < text.size ? text.data[place] : '\0';
}

/* Returns the place after the digits that begin at PLACE. */
static size_t skip_digits(struct slice text, size_t place)
{
    while (isdigit(byte_at(text, place))) place++;
    return place;
}

static size_t skip_hex_digits(struct slice text, size_t place)
{
    while (isxdigit(byte_at(text, place))) place++;
    return place;
}

/* Returns the place after the address that begins at PLACE with "0x"; PLACE: there is none. */
static size_t skip_address(struct slice text, size_t place)
{
    if (!begins_with(text, place, "0x")) return place;
    size_t end = skip_hex_digits(text, place + 2);
    return end - place >= 2 + ADDRESS_DIGITS_MIN ? end : place;
}

/* --- Functions ---------------------------------------------------------------------------------------------------- */

/* Returns the place after the numbers and addresses of a hidden class: "$7", "/0x00007f2eb4003880", "+0x…", ".69052".
 */
static size_t skip_class_numbers(struct slice name, size_t place)
{
    for (size_t end;; place = end) {
        uint8_t byte = byte_at(name, place);
        if (byte == '\0' || !strchr("$/.+_", byte)) return place;
        end = skip_address(name, place + 1);
        if (end == place + 1) end = skip_digits(name, place + 1);
        if (end == place + 1) return place;
    }
}

/* A word after which a virtual machine writes numbers. */
struct numbered_word {
    const char *text;
    enum { DIGITS, HEX_DIGITS, CLASS_NUMBERS } what;
};

static const struct numbered_word numbered_words[] = {
    {"$$Lambda", CLASS_NUMBERS},
    {"LambdaForm$MH", CLASS_NUMBERS},
    {"LambdaForm$DMH", CLASS_NUMBERS},
    {"LambdaForm$BMH", CLASS_NUMBERS},
    {"LambdaForm$VH", CLASS_NUMBERS},
    {"GeneratedMethodAccessor", DIGITS},
    {"GeneratedConstructorAccessor", DIGITS},
    {"GeneratedSerializationConstructorAccessor", DIGITS},
    {"$Proxy", DIGITS},
    {"jdk.proxy", DIGITS},
    {"jdk/proxy", DIGITS},
    {"$MockitoMock$", DIGITS},
    {"CGLIB$$", HEX_DIGITS},
    {"lambda_method", DIGITS},
    {".llvm.", DIGITS},
    {".lto_priv.", DIGITS},
};

/* Copies a word with numbers without them. Returns the place after, or PLACE if there is no such word. */
static size_t copy_numbered_word(struct slice name, size_t place, struct buffer *out)
{
    for (size_t i = 0; i < sizeof(numbered_words) / sizeof(numbered_words[0]); i++) {
        const struct numbered_word *word = &numbered_words[i];
        if (name.data[place] != (uint8_t)word->text[0] || !begins_with(name, place, word->text)) continue;
        size_t after = place + strlen(word->text);
        buffer_append(out, name.data + place, after - place);
        if (word->what == CLASS_NUMBERS) return skip_class_numbers(name, skip_digits(name, after));
        return word->what == HEX_DIGITS ? skip_hex_digits(name, after) : skip_digits(name, after);
    }
    return place;
}

/* Copies the kind of code that V8 writes in front of a function, without the mark of its optimization. */
static size_t copy_kind_of_v8(struct slice name, struct buffer *out)
{
    static const char *const kinds[] = {"LazyCompile:", "Function:", "JS:", "Script:", "Eval:"};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (!begins_with(name, 0, kinds[i])) continue;
        size_t place = strlen(kinds[i]);
        buffer_append(out, name.data, place);
        while (byte_at(name, place) != '\0' && strchr("*~^+", byte_at(name, place))) place++;
        return place;
    }
    return 0;
}

/* Removes the hash that rustc's legacy mangling appends. */
static struct slice without_rust_hash(struct slice name)
{
    size_t size = strlen("::h") + RUST_HASH_DIGITS;
    if (name.size <= size || !begins_with(name, name.size - size, "::h")) return name;
    bool is_hash = skip_hex_digits(name, name.size - RUST_HASH_DIGITS) == name.size;
    return is_hash ? slice_of(name.data, name.size - size) : name;
}

/* Returns the place after an address and its separator; PLACE: there is none. "+0x" is an offset, which is the same in
 * each run. */
static size_t skip_separated_address(struct slice name, size_t place)
{
    bool has_separator = strchr("/.@", name.data[place]) != NULL;
    bool is_after_word = place > 0 && (isalnum(name.data[place - 1]) || name.data[place - 1] == '+');
    if (!has_separator && is_after_word) return place;
    size_t end = skip_address(name, place + has_separator);
    return end == place + has_separator ? place : end;
}

/* Copies the bytes from PLACE on with which no word and no address begins. Returns the place after them. */
static size_t copy_plain(struct slice name, size_t place, struct buffer *out)
{
    static const bool begins[256] = {['$'] = true, ['L'] = true, ['G'] = true, ['j'] = true, ['C'] = true,
                                     ['l'] = true, ['.'] = true, ['/'] = true, ['@'] = true, ['0'] = true};
    size_t end = place;
    while (end < name.size && !begins[name.data[end]]) end++;
    buffer_append(out, name.data + place, end - place);
    return end;
}

void comparable_name_append(struct slice name, struct buffer *out)
{
    name = without_rust_hash(name);
    for (size_t place = copy_kind_of_v8(name, out); (place = copy_plain(name, place, out)) < name.size;) {
        size_t end = copy_numbered_word(name, place, out);
        if (end == place && (end = skip_separated_address(name, place)) > place && !strchr("/.@", name.data[place]))
            buffer_append_text(out, "0x");
        if (end == place) buffer_append_byte(out, name.data[end++]);
        place = end;
    }
}

/* Most names have nothing that a rule removes. */
static bool may_differ(struct slice name)
{
    for (size_t i = 0; i < name.size; i++) {
        if (isdigit(name.data[i]) || name.data[i] == ':') return true;
    }
    return false;
}

void profile_give_comparable_names(struct profile *profile)
{
    struct buffer text;
    buffer_init(&text, PROFILE_STRING_BYTES_MAX);
    for (size_t i = 1; i < profile->functions.count; i++) {
        struct function *function = &profile->functions.items[i];
        struct string_id known = function->name.index ? function->name : function->system_name;
        struct slice name = profile_slice(profile, known);
        if (!may_differ(name)) continue;
        buffer_clear(&text);
        comparable_name_append(name, &text);
        if (text.failed || slice_equal(buffer_slice(&text), name)) continue;
        function->name = profile_string(profile, buffer_slice(&text));
        if (function->system_name.index == 0) function->system_name = known;
    }
    buffer_fini(&text);
}

/* --- Modules ------------------------------------------------------------------------------------------------------ */

/* Returns the last part of PATH, of Linux or Windows, without the kernel's note that the file is deleted. */
static struct slice file_of(struct slice path)
{
    static const char deleted[] = " (deleted)";
    size_t deleted_size = sizeof(deleted) - 1;
    if (path.size > deleted_size && begins_with(path, path.size - deleted_size, deleted)) path.size -= deleted_size;
    size_t first = path.size;
    while (first > 0 && path.data[first - 1] != '/' && path.data[first - 1] != '\\') first--;
    return first < path.size ? slice_of(path.data + first, path.size - first) : path;
}

/* Returns the place after "1.2.3" at PLACE, with COUNT parts; PLACE: there is no number. */
static size_t skip_numbers(struct slice file, size_t place, size_t *ret_count)
{
    size_t end = skip_digits(file, place);
    for (*ret_count = end > place; end > place; ++*ret_count) {
        size_t next = byte_at(file, end) == '.' ? skip_digits(file, end + 1) : 0;
        if (next <= end + 1) break;
        end = next;
    }
    return end;
}

/* Returns the place after a version that begins at PLACE: "-1.2", "_1.2.3", ".v2", "3.11" after a letter, and ".1" in
 * front of ".dylib". A number without a dot is usually part of the name. */
static size_t skip_version(struct slice file, size_t place)
{
    size_t number = place + (strchr("-_.", byte_at(file, place)) != NULL), count;
    bool has_letter = number > place && byte_at(file, number) == 'v';
    bool is_in_number = place > 0 && isdigit(file.data[place - 1]);
    if (has_letter) number++;
    size_t end = skip_numbers(file, number, &count);
    bool is_version = count > 1 || (count == 1 && (has_letter || begins_with(file, end, ".dylib")));
    bool is_whole = end == file.size || !isalnum(file.data[end]);
    return place > 0 && is_version && is_whole && !(is_in_number && number == place) ? end : place;
}

/* Returns the place after the process id in the names that perf gives to the code of JIT compilers. */
static size_t skip_process_id(struct slice file, size_t place)
{
    static const char *const starts[] = {"perf-", "jitted-"};
    for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
        bool is_after = place == strlen(starts[i]) - 1 && begins_with(file, 0, starts[i]);
        size_t end = is_after ? skip_digits(file, place + 1) : place;
        if (is_after && byte_at(file, end) == '-') end = skip_digits(file, end + 1);
        if (end > place + 1) return end;
    }
    return place;
}

void comparable_module_append(struct slice path, struct buffer *out)
{
    static const char library[] = ".so";
    struct slice file = file_of(path);
    bool is_special = file.size > 0 && file.data[0] == '['; /* [kernel.kallsyms] */
    for (size_t place = 0; place < file.size;) {
        size_t end = is_special ? place : skip_process_id(file, place);
        if (end == place && !is_special) end = skip_version(file, place);
        if (end == place && begins_with(file, place, library) && byte_at(file, place + sizeof(library) - 1) == '.' &&
            isdigit(byte_at(file, place + sizeof(library)))) {
            buffer_append_text(out, library);
            return;
        }
        if (end == place) buffer_append_byte(out, file.data[end++]);
        place = end;
    }
}
