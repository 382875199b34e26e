/* wanted_hosts: hosts as a command line names them, by --provider, --hosts or --hostfile, and --ssh. */
#pragma once

#include "harness/provider/provider.h"
#include "harness/verbs.h"

#include <stdbool.h>

struct wanted_hosts {
    struct arena arena;
    const struct provider *provider;
    const char **names; /* in the arena, but for those of the command line */
    size_t n;
    const char *ssh; /* NULL: as the provider has it */
};

/* Any of these options was said. */
bool wanted_hosts_asked(const struct arguments *a);
/* Returns 0, or the exit code after saying what is wrong; wanted_hosts_fini either way. */
int wanted_hosts_read(const struct arguments *a, struct wanted_hosts *ret);
void wanted_hosts_fini(struct wanted_hosts *h);
/* Reads them, and adds to *sets what --set would say in their place; all of it lives in the arena.
 * Returns 0, or the exit code after saying what is wrong. */
int wanted_hosts_add(const struct arguments *a, struct arena *arena, const char ***sets);
/* The rows of a verb's options. */
#define WANTED_HOSTS_OPTIONS                                                                       \
    {"--provider", "NAME",                                                                         \
     "run on other hosts, which are reached by ssh, slurm or exec, a command each; as --set "      \
     "cluster.provider=NAME"},                                                                     \
        {"--hosts", "A,B,..",                                                                      \
         "which: names that ssh or Slurm knows, n0's first; with exec one command [those of "      \
         "this allocation of Slurm]"},                                                             \
        {"--hostfile", "FILE", "the same from a file, one a line"}, {                              \
        "--ssh", "COMMAND",                                                                        \
            "what stands before the host [ssh -o BatchMode=yes -o ConnectTimeout=10]"              \
    }
