/* rankquake wire FD: the switch between the nodes; started by the harness, not by people. */
#include "base/str.h"
#include "base/sys/priority.h"
#include "harness/cluster/wire_server.h"
#include "harness/verbs.h"

#include <stdio.h>

static int wire_main(int argc, char **argv) {
    struct err err;
    int64_t fd;
    if (argc != 2 || !str_to_i64(argv[1], 0, 1 << 20, &fd)) {
        fprintf(stderr, "rankquake wire: started by rankquake itself, with a socket\n");
        return EXIT_USAGE_ERROR;
    }
    priority_raise();
    if (wire_server_run((int)fd, &err) == 0)
        return EXIT_PASS;
    return verb_broken(&verb_wire, &err);
}

const struct verb verb_wire = {
    .name = "wire",
    .usage = "wire FD",
    .options = (const struct verb_option[]){{0}},
    .main = wire_main,
};
