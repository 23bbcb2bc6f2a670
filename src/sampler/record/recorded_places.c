/* SPDX-License-Identifier: MIT */
#include "sampler/record/recorded_places.h"

#include "base/plain_text.h"
#include "base/slice.h"

#include <string.h>

void recorded_interpreter(struct recording_writer *writer, enum interpreter_attached attached,
                          const struct interpreter_state *state)
{
    char name[64];
    const char *end = name + sizeof(name);
    if (attached != INTERPRETER_ATTACHED && attached != INTERPRETER_UNKNOWN) return;
    char *at = plain_text(plain_text(name, end, state->interpreter->name), end, state->major ? " " : "");
    if (state->major) at = plain_number(at, end, state->major, 10);
    if (state->minor) at = plain_number(plain_text(at, end, "."), end, state->minor, 10);
    if (state->patch) (void)plain_number(plain_text(at, end, "."), end, state->patch, 10);
    bool is_read = attached == INTERPRETER_ATTACHED;
    recording_interpreter(writer, is_read ? RECORDING_INTERPRETER_READ : RECORDING_INTERPRETER_UNKNOWN, name);
}

static void write_function(void *context, uint32_t number, const struct interpreted_place *place)
{
    recording_function(context, number, place->first_line, place->function, place->file);
}

static void write_line(void *context, uint32_t number, uint32_t function, uint32_t line)
{
    recording_line(context, number, function, line);
}

size_t recorded_places_add_wait(const struct recorded_places *places, uint64_t *addresses, size_t count, size_t max)
{
    const struct place_listener listener = {.function = write_function, .line = write_line, .context = places->writer};
    size_t at = 0;
    while (at < count && addresses[at] - RECORDING_PLACES >= RECORDING_PLACES_MAX) at++;
    if (at == count || count == max) return count;
    memmove(addresses + at + 1, addresses + at, (count - at) * sizeof(addresses[0]));
    addresses[at] = RECORDING_PLACES + place_table_named(places->table, places->state->interpreter->waiting, &listener);
    return count + 1;
}

size_t recorded_places_number(const struct recorded_places *places, const struct interpreted_stack *stack,
                              uint64_t *addresses, size_t count)
{
    const struct place_listener listener = {.function = write_function, .line = write_line, .context = places->writer};
    size_t gone = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t frame = addresses[i] - RECORDING_PLACES;
        if (frame >= stack->count) continue; /* a native frame */
        bool is_gone;
        uint32_t number = place_table_number(places->table, places->state, &stack->frames[frame], places->memory,
                                             places->work, &listener, &is_gone);
        gone += is_gone;
        addresses[i] = RECORDING_PLACES + number;
    }
    return gone;
}

bool recorded_path_is_libc(const char *path)
{
    return text_ends_with(slice_of_text(path), "/libc.so.6");
}
