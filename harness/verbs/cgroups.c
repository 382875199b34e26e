/* rankquake cgroups FD: takes away what a harness that was killed has made of control groups;
 * started by the harness, not by people. */
#include "base/str.h"
#include "harness/cluster/cgroup_keeper.h"
#include "harness/verbs.h"

#include <stdio.h>

static int cgroups_main(int argc, char **argv) {
    struct err err;
    int64_t fd;
    if (argc != 2 || !str_to_i64(argv[1], 0, 1 << 20, &fd)) {
        fprintf(stderr, "rankquake cgroups: started by rankquake itself, with a socket\n");
        return EXIT_USAGE_ERROR;
    }
    if (cgroup_keeper_run((int)fd, &err) == 0)
        return EXIT_PASS;
    return verb_broken(&verb_cgroups, &err);
}

const struct verb verb_cgroups = {
    .name = "cgroups",
    .usage = "cgroups FD",
    .options = (const struct verb_option[]){{0}},
    .main = cgroups_main,
};
