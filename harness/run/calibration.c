/* How fast this machine is just now: a small fixed computation, timed again and again on as many
 * processors as this process may have, before the first node is switched on and after the last is
 * off. Who compares the times of runs asks these first whether it was the machine that has changed.
 *
 * All at the same time, as the workers of a job are: one alone would find the processor that nobody
 * else uses. */
#include "harness/run/engine.h"

#include "base/sys/clock.h"

#include <pthread.h>
#include <sched.h>

enum {
    CALIBRATION_TIMES = 20,
    CALIBRATION_THREADS = 4,
    CALIBRATION_WORDS = 8192,
    CALIBRATION_PASSES = 80,
};

struct lane {
    uint64_t words[CALIBRATION_WORDS], x;
    int64_t wall_ns[CALIBRATION_TIMES];
};

struct calibration {
    struct lane v[CALIBRATION_THREADS];
};

/* It never changes, or what was recorded before can be compared with nothing. 64 KiB: beyond the
 * nearest cache, so that whoever shares the next one is felt too. */
static void compute(struct lane *c) {
    uint64_t x = c->x | 1;
    for (int pass = 0; pass < CALIBRATION_PASSES; pass++)
        for (size_t i = 0; i < CALIBRATION_WORDS; i++) {
            x ^= x << 13;
            x ^= x >> 7;
            x ^= x << 17;
            c->words[x % CALIBRATION_WORDS] += x ^ c->words[i];
        }
    c->x = x + c->words[x % CALIBRATION_WORDS];
}

static void *time_it(void *arg) {
    struct lane *c = arg;
    for (int i = 0; i < CALIBRATION_TIMES; i++) {
        int64_t began_ns = clock_monotonic_ns();
        compute(c);
        c->wall_ns[i] = clock_monotonic_ns() - began_ns;
    }
    return NULL;
}

static int processors(void) {
    cpu_set_t mine;
    int n = sched_getaffinity(0, sizeof(mine), &mine) == 0 ? CPU_COUNT(&mine) : 1;
    return n > CALIBRATION_THREADS ? CALIBRATION_THREADS : n < 1 ? 1 : n;
}

/* One thread of its own for each processor but the first, and none is left. Returns how many there
 * were. */
static int time_all(struct lane *c) {
    pthread_t threads[CALIBRATION_THREADS];
    int wanted = processors(), n = 1;
    while (n < wanted && pthread_create(&threads[n], NULL, time_it, &c[n]) == 0)
        n++;
    time_it(&c[0]);
    for (int i = 1; i < n; i++)
        pthread_join(threads[i], NULL);
    return n;
}

static void measure(struct engine *e, const char *at) {
    struct lane *c = own(e, calibration)->v;
    int64_t cpu_ns = clock_cpu_ns();
    for (int i = 0; i < CALIBRATION_THREADS; i++)
        compute(&c[i]); /* its pages are there from now on */
    int n = time_all(c);
    uint64_t sum = 0;
    struct json_writer *w = engine_record(e, SOURCE_HARNESS, "calibration");
    json_put_string(w, "at", at);
    json_array(w, "wall_ns");
    for (int t = 0; t < n; t++) {
        sum += c[t].x;
        for (int i = 0; i < CALIBRATION_TIMES; i++)
            json_put_i64(w, NULL, c[t].wall_ns[i]);
    }
    json_end_array(w);
    json_put_i64(w, "processors", n);
    json_put_i64(w, "cpu_ns", clock_cpu_ns() - cpu_ns);
    /* What was computed is told, or a compiler may leave it out. */
    json_put_i64(w, "sum", (int64_t)(sum >> 1));
    engine_recorded(e);
}

static void begin(struct engine *e) {
    measure(e, "begin");
}

static void down(struct engine *e) {
    measure(e, "end");
}

const struct run_part run_part_calibration = {
    .size = sizeof(struct calibration),
    .begin = begin,
    .down = down,
};
