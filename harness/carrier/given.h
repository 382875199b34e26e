/* given: what a process gets from whoever started it, besides its words: variables, descriptors,
 * and all that a child inherits. Read from /proc, of a process that stands still. */
#pragma once

#include "base/json.h"

#include <sys/types.h>

/* Variables are told by name, and by a mark in place of the value: two of one run that are equal
 * have one mark, and nobody finds the value by it. Needs a key that is drawn once a run and told to
 * nobody but the run's own helpers. */
struct given_key {
    unsigned char bytes[16];
};
void given_key_draw(struct given_key *k);
/* In hexadecimal digits, for a helper that is to make the same marks on its host. */
enum { GIVEN_KEY_TEXT = 33 };
void given_key_put(const struct given_key *k, char ret[GIVEN_KEY_TEXT]);
bool given_key_take(struct given_key *ret, const char *text); /* false: that is none */

/* What so many workers were given is read; of more it would make whoever reads it late. */
enum { GIVEN_MAX = 1024 };

/* Puts into the record that is open what /proc shows of a process: `env`, `cwd`, `fds` and all that
 * a child inherits, or `error`. Descriptors that an exec closes are left out: whoever runs now has
 * opened them himself. */
void given_put(struct json_writer *w, const struct given_key *k, pid_t pid);

/* The same of a process that is not there yet: its environment and directory are known, and the
 * rest it will inherit from this one, which blocks nothing in it and gives it SIGPIPE and SIGXFSZ
 * back (process_spawn). */
void given_put_planned(struct json_writer *w, const struct given_key *k, pid_t parent,
                       const char *const *env, const char *cwd);
