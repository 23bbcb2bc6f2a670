/* SPDX-License-Identifier: MIT */
#include "cli/line_editor.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <unistd.h>

/* The used part of libedit: its interface of readline, which has been the same since 2005. */
typedef char *word_generator(const char *word, int state);

struct editor {
    char *(*read)(const char *prompt);
    int (*add_history)(const char *line);
    char **(*matches)(const char *word, word_generator *generator);
    char **(**complete)(const char *word, int start, int end);
    int *is_complete; /* no file names after ours */
    int (*initialize)(void);
    int (*bind)(const char *line);
};

/* The library calls back without a context. */
static struct {
    bool is_loaded;
    struct editor editor;
    line_words words;
    void *context;
    bool is_first;
} state;

static char *next_word(const char *word, int index)
{
    static size_t next;
    const char *known;
    if (index == 0) next = 0;
    while ((known = state.words(state.context, word, state.is_first, next)) != NULL) {
        next++;
        if (strncmp(known, word, strlen(word)) == 0) return strdup(known);
    }
    return NULL;
}

static char **complete(const char *word, int start, int end)
{
    (void)end;
    state.is_first = start == 0;
    *state.editor.is_complete = 1;
    return state.editor.matches(word, next_word);
}

/* dlsym gives functions as pointers to data. */
static bool find_function(void *library, const char *name, void *ret_function)
{
    void *found = dlsym(library, name);
    memcpy(ret_function, &found, sizeof(found));
    return found != NULL;
}

static void load_editor(void)
{
    struct editor editor;
    state.is_loaded = true;
    void *library = dlopen("libedit.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!library) return;
    bool is_whole = find_function(library, "readline", &editor.read) &&
                    find_function(library, "add_history", &editor.add_history) &&
                    find_function(library, "rl_completion_matches", &editor.matches) &&
                    find_function(library, "rl_attempted_completion_function", &editor.complete) &&
                    find_function(library, "rl_attempted_completion_over", &editor.is_complete) &&
                    find_function(library, "rl_initialize", &editor.initialize) &&
                    find_function(library, "rl_parse_and_bind", &editor.bind);
    if (!is_whole || editor.initialize() != 0) return;
    state.editor = editor;
    *editor.complete = complete;
    (void)editor.bind("bind ^C em-kill-line");
}

static char *read_plain(const char *prompt, bool is_terminal)
{
    char *line = NULL;
    size_t capacity = 0;
    if (is_terminal) {
        (void)fputs(prompt, stdout);
        (void)fflush(stdout);
    }
    ssize_t length = getline(&line, &capacity, stdin);
    if (length < 0) {
        free(line);
        return NULL;
    }
    if (length > 0 && line[length - 1] == '\n') line[length - 1] = '\0';
    return line;
}

char *line_editor_read(const char *prompt, line_words words, void *context)
{
    bool is_terminal = isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
    state.words = words;
    state.context = context;
    if (is_terminal && !state.is_loaded) load_editor();
    if (!is_terminal || !state.editor.read) return read_plain(prompt, is_terminal);
    /* Ctrl-C is a key meanwhile: it empties the line. As a signal it would end the program. */
    struct termios before, without;
    bool is_known = tcgetattr(STDIN_FILENO, &before) == 0;
    without = before;
    without.c_cc[VINTR] = _POSIX_VDISABLE;
    if (is_known) (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &without);
    char *line = state.editor.read(prompt);
    if (is_known) (void)tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
    if (line && line[0]) (void)state.editor.add_history(line);
    return line;
}
