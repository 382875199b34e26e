/* hosts_left: what runs have left on other hosts, and who is at work there. */
#pragma once

#include "harness/verbs.h"

/* Rows of the options of `clean` and `halt`. */
#define HOSTS_LEFT_OPTIONS                                                                         \
    {"--provider", "NAME", "how --hosts are reached: ssh or exec [ssh]"},                          \
        {"--hosts", "A,B,..",                                                                      \
         "on these other hosts: names that ssh knows; with exec one command"},                     \
        {"--hostfile", "FILE", "the same from a file, one a line"}, {                              \
        "--ssh", "COMMAND",                                                                        \
            "what stands before the host [ssh -o BatchMode=yes -o ConnectTimeout=10]"              \
    }

/* what: look, clean or halt; run: of which, for halt; NULL: of any. Says line by line what came of it,
 * and what did not, with the host. Returns the exit code: EXIT_LEFTOVERS where something stays, or a
 * host cannot be asked. */
int hosts_left(const struct arguments *a, const char *what, const char *run);
