/* rankquake power FD: runs the commands of cluster.power for one host, and gives its power back when
 * the harness is gone; started by the harness, not by people. */
#include "base/str.h"
#include "harness/cluster/power_keeper.h"
#include "harness/verbs.h"

#include <stdio.h>

static int power_main(int argc, char **argv) {
    struct err err;
    int64_t fd;
    if (argc != 2 || !str_to_i64(argv[1], 0, 1 << 20, &fd)) {
        fprintf(stderr, "rankquake power: started by rankquake itself, with a socket\n");
        return EXIT_USAGE_ERROR;
    }
    if (power_keeper_run((int)fd, &err) == 0)
        return EXIT_PASS;
    return verb_broken(&verb_power, &err);
}

const struct verb verb_power = {
    .name = "power",
    .usage = "power FD",
    .options = (const struct verb_option[]){{0}},
    .main = power_main,
};
