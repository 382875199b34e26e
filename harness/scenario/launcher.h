/* launcher: what `launcher:` says, taken apart. Private to this room and its tests. */
#pragma once

#include "harness/scenario/scenario.h"

/* Cuts a text into words as a shell does: blanks part them, '...', "..." and \ keep them together;
 * nothing is expanded. NULL-ended; NULL when a quotation does not end. */
const char *const *launcher_words(struct arena *a, const char *text, size_t *ret_n);

/* Fills launcher and launcher_argv of ret from the words (NULL-ended, at least one). Returns NULL,
 * or in the arena the sentence that says what is wrong with them. */
const char *launcher_take(struct arena *a, const char *const *words, struct job_spec *ret);

/* The key that says what this option of a launcher says, because the harness gives the option
 * itself: "job.nnodes"; NULL: the option is the user's. */
const char *launcher_key_of(const char *option);
