/* spawn_live FILE: a schedule as `rankquake run` takes it, as it is found beside one that fails. */
#include "harness/sim/live.h"

#include <stdio.h>

int main(int argc, char **argv) {
    struct diagnostics d = {0};
    struct sim_result seen;
    struct buf text = {0};
    struct script *s = argc == 2 ? script_read(argv[1], &d) : NULL;
    if (!s) {
        fprintf(stderr, "%s\n", argc == 2 ? buf_str(&d.out) : "usage: spawn_live FILE");
        diagnostics_fini(&d);
        return 64;
    }
    sim_play(&s->schedule, false, &seen);
    live_write(s, &seen, &text);
    fputs(buf_str(&text), stdout);
    buf_fini(&text);
    diagnostics_fini(&d);
    script_free(s);
    return 0;
}
