/* spawn_saver DIR: ranktrain's own saves, in turn: for each line "ranktrain WIDTH" of its standard input it computes for
 * 5 ms, saves a model of that width (0: as published) with its momentum into DIR, and prints how many seconds the
 * save took. */
#include "scenarios/jobs/ranktrain/checkpoint.h"
#include "tests/scenarios/jobs/ranktrain/model/fashion.h"

#include <string.h>
#include <time.h>

static const double computes_s = 0.005;

static double now_s(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Every weight becomes another, again and again, as in a job. */
static void compute(struct state *s) {
    double until = now_s() + computes_s;
    while (now_s() < until)
        for (size_t i = 0; i < s->values; i++)
            s->weights[i] = s->weights[i] * 0.999f + (float)(i % 7);
}

static double save(struct checkpoint_place *p, struct state *s) {
    static uint64_t step;
    struct rankquake nobody = {.fd = -1};
    struct err err = {0};
    s->step = ++step;
    compute(s);
    double from = now_s();
    if (checkpoint_save(p, s, &nobody, &err) != 0) {
        fprintf(stderr, "spawn_saver: %s\n", err.msg);
        exit(1);
    }
    return now_s() - from;
}

int main(int argc, char **argv) {
    char line[64];
    int width = -1, asked;
    struct err err = {0};
    struct state state = {0};
    struct checkpoint_place p = {.run_id = "job", .round = 1, .seed = 1, .world = 1, .keep = 3};
    if (argc != 2)
        return 2;
    p.dir = argv[1];
    p.optimizer = optimizer_find("sgd", &err);
    setvbuf(stdout, NULL, _IOLBF, 0);
    while (fgets(line, sizeof(line), stdin)) {
        if (sscanf(line, "ranktrain %d", &asked) != 1)
            return 2;
        if (asked != width) {
            model_free((struct model *)p.model);
            state_fini(&state);
            width = asked;
            p.model = fashion_model(width ? "resnet18" : "lenet", width);
            state_init(&state, p.model, p.optimizer);
        }
        printf("%.6f\n", save(&p, &state));
    }
    model_free((struct model *)p.model);
    state_fini(&state);
    return 0;
}
