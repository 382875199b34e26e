/* completion: what a shell offers when somebody types a command line of ours. The shells have a
 * few lines that ask the program itself (completion_script); what it answers follows from the same
 * tables as its help (completion_words), so it cannot be of another version. Pure. */
#pragma once

#include "base/buf.h"
#include "base/manual.h"

#include <stdbool.h>

struct completion_command {
    const char *name; /* "run"; the end of a table has none */
    const char *text; /* what it does */
    const char
        *operands;      /* what stands where no option does, as a value of options; NULL: nothing */
    bool takes_command; /* behind "--" stands a command of somebody else */
};

struct completion {
    const struct completion_command *commands; /* NULL: none */
    const struct manual_option *options;       /* of all commands; ended by {0} */
    const char *operands;                      /* without a command */
    bool takes_program; /* a word that is no option and no command is a program, and the rest its */
    /* Appends what a value of this name can be, "word" or "word\ttext" a line; false: not known.
     * NULL: there is no such name. */
    bool (*values)(const char *name, struct buf *out);
};

/* Appends what can stand where the last of the words stands; they are those behind the program's
 * name, n of them, the last one as far as it is typed, "" at least. A line each: WORD, or
 * WORD<TAB>what it means; or what the shell is to offer itself: ":files", ":dirs", ":command N",
 * whose first word is typed[N]. */
void completion_words(struct buf *out, const struct completion *c, const char *const *typed,
                      size_t n);

/* Appends the lines for a shell, "bash", "fish" or "zsh", which ask by "PROGRAM ASK -- WORD...";
 * false: there is no such shell. */
bool completion_script(struct buf *out, const char *shell, const char *program, const char *ask);
