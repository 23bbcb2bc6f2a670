/* Call frame information for code of a Java virtual machine, of which frame_table_build makes a table: its own has
 * none. SPDX-License-Identifier: MIT */
#ifndef OFFBEAT_RECORDER_JAVA_FRAMES_H
#define OFFBEAT_RECORDER_JAVA_FRAMES_H

#include "base/buffer.h"

/* A piece of code, whose frames have one shape: a compiled method, the interpreter, or a stub. */
struct java_blob {
    uint64_t code_begin, code_end, name;
    int32_t frame_words, frame_complete; /* a negative number: there is none */
};

enum { JAVA_FRAME_WORDS_MIN = 2 }; /* words of a frame: the return address and the caller's frame pointer */

/* Begins a section. One without memory or room has failed in the end. */
void java_frames_begin(struct buffer *section);
/* Writes the frame of a stub or the interpreter, which keep a frame pointer. */
void java_frames_with_pointer(struct buffer *section, const struct java_blob *blob, bool is_interpreter);
/* Writes the frame of a compiled method with CODE, which has JAVA_FRAME_WORDS_MIN or more words: below its return
 * address and the caller's frame pointer it has a fixed size, from where it is complete to each epilogue. */
void java_frames_compiled(struct buffer *section, const struct java_blob *blob, const uint8_t *code);
/* Writes that BLOB has no frame: it jumps on. */
void java_frames_none(struct buffer *section, const struct java_blob *blob);

#endif
