#include "harness/recording.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static int not_a_run(struct buf *complaint, const char *dir, const char *missing) {
    buf_printf(complaint, "%s is no run: %s is missing\n", dir, missing);
    return -1;
}

static bool is_file(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static int look(const char *dir, const char *scenario, const char *history, struct buf *complaint) {
    struct stat st;
    if (stat(dir, &st) < 0) {
        buf_printf(complaint, "%s: %s; give the directory of a run, as printed at its end\n", dir,
                   strerror(errno));
        return -1;
    }
    if (!S_ISDIR(st.st_mode)) {
        buf_printf(complaint, "%s is no directory; give the directory of a run\n", dir);
        return -1;
    }
    if (!is_file(scenario))
        return not_a_run(complaint, dir, "scenario.yaml");
    return is_file(history) ? 0 : not_a_run(complaint, dir, "history.jsonl");
}

static struct scenario *load_scenario(const char *path, struct buf *complaint) {
    struct diagnostics d = {0};
    struct scenario *s = scenario_load(path, NULL, &d);
    if (!s)
        buf_puts(complaint, buf_str(&d.out));
    diagnostics_fini(&d);
    return s;
}

int recording_load(struct recording *r, const char *dir, struct buf *complaint) {
    struct buf scenario = {0}, history = {0};
    struct err err = {0};
    *r = (struct recording){.dir = dir};
    buf_printf(&scenario, "%s/scenario.yaml", dir);
    buf_printf(&history, "%s/history.jsonl", dir);
    int rc = look(dir, buf_str(&scenario), buf_str(&history), complaint);
    if (rc == 0) {
        r->scenario = load_scenario(buf_str(&scenario), complaint);
        rc = r->scenario ? 0 : -1;
    }
    if (rc == 0 && history_load(&r->history, buf_str(&history), &err) < 0) {
        buf_printf(complaint, "%s\n", err.msg);
        rc = -1;
    }
    buf_fini(&scenario);
    buf_fini(&history);
    if (rc < 0) {
        recording_fini(r);
        return rc;
    }
    rounds_load(&r->rounds, !r->scenario->torchrun_semantics, &r->history);
    struct trial t = {.scenario = r->scenario, .history = &r->history, .rounds = &r->rounds};
    verdict_judge(&r->verdict, &t);
    r->run = (struct recorded_run){.dir = dir,
                                   .scenario = r->scenario,
                                   .history = &r->history,
                                   .rounds = &r->rounds,
                                   .verdict = &r->verdict};
    return 0;
}

void recording_fini(struct recording *r) {
    if (!r)
        return;
    rounds_fini(&r->rounds);
    history_fini(&r->history);
    r->scenario = scenario_free(r->scenario);
}
