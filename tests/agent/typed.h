/* typed: a command line as it is typed on a host of which everything is made up: its variables, its processors and GPUs, its
 * files, its srun, and what is drawn. The same line has the same answer everywhere, word for word. */
#pragma once

#include "agent/options.h"
#include "base/arena.h"
#include "base/buf.h"

/* Reads "NAME=VALUE ... rankrun WORD ...", whose words are parted by blanks, and appends the answer: what is another than of a
 * line that says nothing, what is told, or why the line is refused; which files were read, and which variables taken. In a word ~ stands for
 * a blank, and '' is an empty one. What is said of the host: GPUS=N, FULL_NAME=TEXT, SRUN=ends, CONF=TEXT (of
 * /etc/slurm/slurm.conf, with ; for the end of a line). */
void typed_answer(struct buf *out, const char *line);
/* The struct that the last line has made; lives until the next. */
const struct options *typed_options(void);
void typed_fini(void);
