/* rankquake node FD: the first process of a node; started by the harness, not by people. */
#include "base/str.h"
#include "harness/cluster/node_helper.h"
#include "harness/verbs.h"

#include <stdio.h>

static int node_main(int argc, char **argv) {
    struct err err;
    int64_t fd;
    if (argc != 2 || !str_to_i64(argv[1], 0, 1 << 20, &fd)) {
        fprintf(stderr, "rankquake node: started by rankquake itself, with a socket\n");
        return EXIT_USAGE_ERROR;
    }
    if (node_helper_run((int)fd, &err) == 0)
        return EXIT_PASS;
    return verb_broken(&verb_node, &err);
}

const struct verb verb_node = {
    .name = "node",
    .usage = "node FD",
    .options = (const struct verb_option[]){{0}},
    .main = node_main,
};
