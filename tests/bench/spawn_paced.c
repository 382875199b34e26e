/* A job whose steps are 5 ms of a processor each, and nothing else: what a harness that looks on
 * takes from it shows in how long a step lasts.
 *
 *     spawn_paced STEPS FILE
 *
 * Tells its steps to who listens, and writes "step_us N" into FILE.RANK: the average of the steps
 * after the first hundred, by its own clock. */
#include "base/sys/clock.h"
#include "scenarios/jobs/rankquake.h"

enum { STEP_NS = 5000000, WARM = 100 };

static void compute(void) {
    int64_t end_ns = clock_cpu_ns() + STEP_NS;
    volatile unsigned x = 1;
    while (clock_cpu_ns() < end_ns)
        for (int i = 0; i < 10000; i++)
            x = x * 1664525 + 1013904223;
}

int main(int argc, char **argv) {
    struct rankquake q;
    char path[4096];
    const char *rank = getenv("RANK");
    int shard = rank ? atoi(rank) : 0, steps = argc > 2 ? atoi(argv[1]) : 0;
    int64_t begin_ns = 0;
    if (steps <= WARM)
        return 64;
    snprintf(path, sizeof(path), "%s.%d", argv[2], shard);
    rankquake_open(&q);
    rankquake_ready(&q);
    rankquake_resume(&q, 0, "");
    for (int step = 1; step <= steps; step++) {
        compute();
        rankquake_step(&q, (uint64_t)step, 1.0, 32, &shard, 1);
        if (step == WARM)
            begin_ns = clock_monotonic_ns();
    }
    int64_t took_ns = clock_monotonic_ns() - begin_ns;
    rankquake_done(&q, "none");
    rankquake_close(&q);
    FILE *out = fopen(path, "w");
    if (!out || fprintf(out, "step_us %.2f\n", (double)took_ns / (steps - WARM) / 1e3) < 0)
        return 1;
    return fclose(out) != 0;
}
