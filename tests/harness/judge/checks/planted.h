/* planted: a recorded history with something wrong planted into it.
 *
 * tests/histories/ holds runs in which everything is well. A wrong is a few edits of their lines,
 * so that a reader sees at once what differs. The edited lines are numbered anew and loaded as any
 * recorded run. */
#pragma once

#include "base/buf.h"
#include "base/str.h"
#include "harness/judge/verdict.h"
#include "tests/harness/judge/checks/edit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static bool edit_is_for(const struct edit *e, const char *line) {
    return strstr(line, e->line) && (!e->also || strstr(line, e->also));
}

static void put_replaced(struct buf *out, const char *line, const char *from, const char *to) {
    for (const char *at; (at = strstr(line, from)); line = at + strlen(from)) {
        buf_put(out, line, (size_t)(at - line));
        buf_puts(out, to);
    }
    buf_puts(out, line);
}

/* Applies one edit to the whole text; the result replaces it. */
static void edit_apply(const struct edit *e, struct buf *text) {
    struct buf out = {0};
    char *save = NULL;
    for (char *line = strtok_r(text->data, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        bool mine = edit_is_for(e, line);
        if (!mine)
            buf_printf(&out, "%s\n", line);
        else if (!e->from && e->to)
            buf_printf(&out, "%s\n{\"seq\":0,%s\n", line, e->to + 1);
        else if (e->to) {
            put_replaced(&out, line, e->from, e->to);
            buf_putc(&out, '\n');
        }
    }
    buf_fini(text);
    *text = out;
}

static void number_lines(struct buf *text) {
    struct buf out = {0};
    char *save = NULL;
    int seq = 0;
    for (char *line = strtok_r(text->data, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
        buf_printf(&out, "{\"seq\":%d%s\n", ++seq, strchr(line, ','));
    buf_fini(text);
    *text = out;
}

static void read_text(struct buf *text, const char *name) {
    char path[128], block[4096];
    snprintf(path, sizeof(path), HISTORY_PATH, name);
    FILE *in = fopen(path, "r");
    if (!in)
        fail_msg("%s is missing (tests run from the root of the repository)", path);
    for (size_t n; (n = fread(block, 1, sizeof(block), in)) > 0;)
        buf_put(text, block, n);
    fclose(in);
}

/* The lines of tests/histories/NAME.jsonl with the edits made; they end with a line of NULL. An edit
 * that changes nothing fails the test. */
static inline void planted_text(struct buf *text, const char *name, const struct edit *edits) {
    read_text(text, name);
    for (size_t i = 0; i < EDITS_MAX && edits[i].line; i++) {
        char *before = strdup(buf_str(text));
        edit_apply(&edits[i], text);
        if (strcmp(before, buf_str(text)) == 0)
            fail_msg("%s: the edit changes no line of %s (those with \"%s\")",
                     edits[i].place ? edits[i].place : "edit", name, edits[i].line);
        free(before);
    }
    number_lines(text);
}

/* The history of these lines. */
static inline void planted_load(struct history *h, const char *name, const struct edit *edits) {
    struct buf text = {0};
    struct err err = {0};
    planted_text(&text, name, edits);
    int fd = memfd_create(name, MFD_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, buf_str(&text), text.len), text.len);
    assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
    if (history_load_from(h, fd, name, &err) < 0)
        fail_msg("%s", err.msg);
    buf_fini(&text);
}

/* The scenarios that the histories were recorded from. */
static const struct timeline_entry planted_kill = {
    .id = "kill",
    .fault = "worker-kill",
    .heal = -1,
    .on = {.what = TARGET_WORKERS, .pick = PICK_RANK, .rank = 1, .text = "rank 1"},
    .times = TIMES_N,
    .times_n = 1};
static const struct timeline_entry planted_step = {.id = "kill",
                                                   .fault = "worker-kill",
                                                   .heal = -1,
                                                   .when = {.has_step = true, .step = 6},
                                                   .times = TIMES_N,
                                                   .times_n = 1};
static const struct timeline_entry planted_dark = {
    .id = "dark",
    .fault = "node-poweroff",
    .heal = -1,
    .on = {.what = TARGET_NODES, .pick = PICK_NAMED, .node = "n2", .local_rank = -1, .text = "n2"},
    .times = TIMES_N,
    .times_n = 1};
static const char *const planted_run[] = {"ranktrain", "--checkpoint-every=2", NULL};
static const struct pair planted_conf[] = {{.key = "profile", .value = "fast"}};
static const int planted_killed_sizes[] = {2, 2}, planted_dark_sizes[] = {3, 2};
static const struct budget planted_budget[] = {{.id = NULL, .ns = 2000000000}};

static const struct budget planted_phases[] = {{.id = "detect", .ns = 2000000000},
                                               {.id = "rendezvous", .ns = 2000000000}};

static const struct observed planted_observed[] = {
    {.kind = "step", .pattern = "^step (\\d+)/8", .own = true},
    {.kind = "resume", .pattern = "^resuming from step (\\d+)", .own = true},
    {.kind = "done", .pattern = "^finished, model (\\w+)", .own = true},
};

static const struct probe_expect planted_served[] = {{.name = "served"}};

static const struct log_expect planted_lines[] = {
    {.count = LOG_NEVER, .pattern = "Traceback"},
    {.count = LOG_ONCE,
     .pattern = "^finished, model",
     .on = {.what = TARGET_WORKERS, .pick = PICK_RANK, .local_rank = -1, .text = "rank 0"}},
    {.count = LOG_SEEN, .pattern = "^resuming from step", .after = "kill", .within_ns = 1000000000},
    {.count = LOG_SEEN,
     .pattern = "pid [0-9]+: SIGKILL",
     .on = {.what = TARGET_AGENTS, .local_rank = -1, .text = "agents"},
     .after = "kill"},
};

static inline struct scenario planted_scenario(const char *name) {
    bool lines = str_eq(name, "lines"), printed = lines || str_eq(name, "printed-steps");
    bool killed = !str_eq(name, "node-powered-off");
    return (struct scenario){
        .file = "scenarios/planted.yaml",
        .name = name,
        .cluster = {.nodes = killed ? 1 : 3, .start = killed ? 1 : 3},
        .job = {.min_nodes = killed ? 1 : 2,
                .max_nodes = killed ? 1 : 3,
                .workers_per_node = killed ? 2 : 1,
                .max_restarts = 3,
                .launcher = "rankrun",
                .rdzv_conf = planted_conf,
                .rdzv_conf_n = 1,
                .run = planted_run,
                .run_n = printed ? 1 : 2,
                .checkpoint_dir = "{shared}/ckpt",
                .checkpoint_complete = printed ? "ls" : NULL},
        .observe = {.v = planted_observed, .n = printed ? 3 : 0},
        .timeline = printed  ? &planted_step
                    : killed ? &planted_kill
                             : &planted_dark,
        .timeline_n = 1,
        .expect = {.outcome = OUTCOME_SUCCEEDED,
                   .has_world_sizes = true,
                   .world_sizes = killed ? planted_killed_sizes : planted_dark_sizes,
                   .world_sizes_n = 2,
                   .has_restarts = true,
                   .restarts_min = killed,
                   .restarts_max = killed,
                   .model_same = true,
                   .weights = str_eq(name, "weights") ? WEIGHTS_OF_CONTROL : WEIGHTS_ANY,
                   .epochs = str_eq(name, "weights") ? EPOCHS_SHUFFLED : EPOCHS_ANY,
                   .detect_within = planted_budget,
                   .detect_n = 1,
                   .recover_within = planted_budget,
                   .recover_n = 1,
                   .phases_within = planted_phases,
                   .phases_n = 2,
                   .goodput = 5,
                   .probes = planted_served,
                   .probes_n = str_eq(name, "probed"),
                   .logs = planted_lines,
                   .logs_n = lines ? 4 : 0,
                   .loss_within = 5},
        .limits = {.start_ns = 60000000000, .stall_ns = 30000000000, .total_ns = 600000000000},
    };
}

static inline const struct finding *finding_of(const struct verdict *v, const char *check) {
    for (size_t i = 0; i < v->n; i++)
        if (str_eq(v->v[i].check, check))
            return &v->v[i];
    fail_msg("there is no check %s", check);
    return NULL;
}

/* Judges one check over a recorded run, with the expectations that the test has put into s. */
static inline struct finding planted_ask(const char *check, const struct scenario *s,
                                         const struct edit *edits) {
    struct history h;
    struct verdict v;
    planted_load(&h, s->name, edits);
    struct trial t = {.scenario = s, .history = &h};
    verdict_judge(&v, &t);
    history_fini(&h);
    return *finding_of(&v, check);
}

static inline void assert_found(struct finding f, enum finding_status status, const char *seen) {
    if (f.status != status || !strstr(f.seen, seen))
        fail_msg("%s: %s, \"%s\"; expected %s, \"%s\"", f.check, finding_status_name(f.status),
                 f.seen, finding_status_name(status), seen);
}
