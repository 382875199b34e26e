/* host: what a run asks of this host before it is started. */
#pragma once

#include "harness/verbs/run/asked.h"

/* Names what is started outside of nodes, before the first of it is; each once. */
void host_name_commands(struct selected *l);
/* EXIT_PASS, or the exit code after saying what is missing here. */
int host_check(const struct run_request *q, struct selected *l);
