/* building: what job.build makes, and the key under which it is kept. */
#pragma once

#include "base/err.h"
#include "base/texts.h"
#include "harness/scenario/scenario.h"

/* Whether the word of a command line is one of the outputs: they need not be there yet, and what is
 * in them follows from the key. */
bool building_makes(const struct build_spec *b, const char *word);
/* The files that it is built of, sorted, each once; without its own outputs. -ENOENT: what is named
 * is not there, or a pattern matches nothing. */
int building_inputs(const struct build_spec *b, struct texts *ret, struct err *err);
/* 64 hex digits: of the command, the names and contents of the inputs, the names of the outputs,
 * the variables that compilers read, and the machine. Errors as above, and those of reading. */
int building_key(const struct build_spec *b, char ret[65], struct err *err);
