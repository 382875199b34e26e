/* told: what a report says of a recorded run that was planted. */
#pragma once

#include "tests/harness/judge/checks/planted.h"

#include "reports/report.h"

/* A recorded run with something planted into it, judged. */
struct told {
    struct history history;
    struct rounds rounds;
    struct scenario scenario;
    struct verdict verdict;
    struct recorded_run run;
    struct buf text;
};

static void render(struct told *t, const char *report, struct report_style style) {
    t->run = (struct recorded_run){.dir = "runs/x",
                                   .scenario = &t->scenario,
                                   .history = &t->history,
                                   .rounds = &t->rounds,
                                   .verdict = &t->verdict};
    assert_int_equal(report_find(report)->render(&t->run, &style, &t->text, NULL), 0);
}

static inline void tell(struct told *t, const char *name, const struct edit *edits,
                        const char *report, struct report_style style) {
    *t = (struct told){.scenario = planted_scenario(name)};
    planted_load(&t->history, name, edits);
    rounds_load(&t->rounds, true, &t->history);
    struct trial trial = {.scenario = &t->scenario, .history = &t->history, .rounds = &t->rounds};
    verdict_judge(&t->verdict, &trial);
    render(t, report, style);
}

/* A run that was made up: rounds of so many workers, each of so many steps. */
struct long_run {
    int nodes, workers, rounds, steps;
};

static void put_start(FILE *out, int seq, const struct long_run *l, int round, int k) {
    fprintf(out,
            "{\"seq\":%d,\"t\":%d00000,\"source\":\"probe\",\"kind\":\"worker-start\",\"node\":"
            "\"n%d\",\"pid\":%d,\"argv0\":\"x\",\"env\":{\"RANK\":\"%d\",\"LOCAL_RANK\":\"%d\","
            "\"WORLD_SIZE\":\"%d\",\"MASTER_ADDR\":\"n0\",\"MASTER_PORT\":\"%d\","
            "\"TORCHELASTIC_RESTART_COUNT\":\"%d\"}}\n",
            seq, seq, k % l->nodes, 1000 + round * l->workers + k, k, k / l->nodes, l->workers,
            2000 + round, round);
}

static void put_step(FILE *out, int seq, const struct long_run *l, int round, int k, int step) {
    fprintf(out,
            "{\"seq\":%d,\"t\":%d00000,\"source\":\"job\",\"kind\":\"step\",\"node\":\"n%d\","
            "\"pid\":%d,\"step\":%d,\"loss\":%g,\"samples\":1,\"shards\":[1]}\n",
            seq, seq, k % l->nodes, 1000 + round * l->workers + k, step, 2.0 / step);
}

static void put_end(FILE *out, int seq, const struct long_run *l, int round, int k) {
    fprintf(out,
            "{\"seq\":%d,\"t\":%d00000,\"source\":\"kernel\",\"kind\":\"worker-exit\","
            "\"node\":\"n%d\",\"pid\":%d,\"signal\":15}\n",
            seq, seq, k % l->nodes, 1000 + round * l->workers + k);
}

/* It is not judged. */
static inline void tell_long(struct told *t, const struct long_run *l, const char *report) {
    char path[] = "/tmp/rq-told-XXXXXX";
    FILE *out = fdopen(mkstemp(path), "w");
    int seq = 2;
    *t = (struct told){.scenario = planted_scenario("worker-killed")};
    assert_non_null(out);
    fprintf(out, "{\"seq\":1,\"t\":1000,\"source\":\"harness\",\"kind\":\"run\",\"v\":1}\n");
    for (int round = 0; round < l->rounds; round++) {
        for (int k = 0; k < l->workers; k++)
            put_start(out, seq++, l, round, k);
        for (int step = 1; step <= l->steps; step++)
            for (int k = 0; k < l->workers; k++)
                put_step(out, seq++, l, round, k, round * l->steps + step);
        for (int k = 0; k < l->workers; k++)
            put_end(out, seq++, l, round, k);
    }
    fclose(out);
    assert_int_equal(history_load(&t->history, path, NULL), 0);
    unlink(path);
    rounds_load(&t->rounds, true, &t->history);
    render(t, report, (struct report_style){0});
}

static inline void forget(struct told *t) {
    buf_fini(&t->text);
    rounds_fini(&t->rounds);
    history_fini(&t->history);
}

static inline size_t count(const char *text, const char *part) {
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, part)); at += strlen(part))
        n++;
    return n;
}

static inline void assert_says(const struct told *t, const char *text) {
    if (!strstr(buf_str(&t->text), text))
        fail_msg("\"%s\" is not in:\n%s", text, buf_str(&t->text));
}
