/* A job of a few hundred kilobytes that tells the harness COUNT times that something is about to
 * happen, so that a fault can come at each, and goes on PAUSE_MS later. What is killed here takes
 * the kernel no time to take apart: what is measured is the harness.
 *
 *     spawn_asks COUNT PAUSE_MS */
#include "scenarios/jobs/rankquake.h"

#include <poll.h>

int main(int argc, char **argv) {
    struct rankquake q;
    int count = argc > 2 ? atoi(argv[1]) : 0, pause_ms = argc > 2 ? atoi(argv[2]) : 0;
    if (count < 1)
        return 64;
    rankquake_open(&q);
    for (int n = 0; n < count; n++) {
        rankquake_event(&q, RANKQUAKE_OTHER, "\"said\":\"asks\",\"n\":%d", n);
        poll(NULL, 0, pause_ms);
    }
    rankquake_close(&q);
    return 0;
}
