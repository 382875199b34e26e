/* rankquake node STREAM LANE: the first process of a node; started by the harness, not by people. */
#include "base/str.h"
#include "harness/cluster/node_helper.h"
#include "harness/verbs.h"

#include <stdio.h>

static int node_main(int argc, char **argv) {
    struct err err;
    int64_t stream, lane;
    if (argc != 3 || !str_to_i64(argv[1], 0, 1 << 20, &stream) ||
        !str_to_i64(argv[2], 0, 1 << 20, &lane)) {
        fprintf(stderr, "rankquake node: started by rankquake itself, with two sockets\n");
        return EXIT_USAGE_ERROR;
    }
    const struct carrier_ends ends = {(int)stream, (int)stream, (int)lane};
    if (node_helper_run(&ends, 0, &err) == 0)
        return EXIT_PASS;
    return verb_broken(&verb_node, &err);
}

const struct verb verb_node = {
    .name = "node",
    .usage = "node STREAM LANE",
    .options = (const struct verb_option[]){{0}},
    .main = node_main,
};
