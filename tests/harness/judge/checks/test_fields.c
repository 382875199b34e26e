/* Fields: what all checks say of each history when one field of its scenario is another is what they said
 * before. Of a number it is also looked for at which value an answer turns.
 *
 *   test_fields --show worker-killed expect.goodput   all of it, in full
 *
 * `make verdicts` writes anew what is compared with. */
#include "tests/harness/judge/checks/cases_judge.h"
#include "tests/harness/judge/checks/verdicts_compare.h"

#include <inttypes.h>

/* Whatever a scenario points to, so that a field of it can be another. */
struct asked {
    struct scenario s;
    struct timeline_entry entry;
    struct budget detect, recover, phase;
    struct log_expect log;
    struct probe_expect probe;
    struct loss_expect loss;
    bool knows_loss;
    struct pair conf, env;
    const char *words[3];   /* job.run */
    const char *options[2]; /* job.launcher_args */
};

enum field_type { FIELD_INT, FIELD_I64, FIELD_BOOL, FIELD_ENUM, FIELD_TEXT };

struct field {
    const char *name;
    size_t at;
    enum field_type type;
    const char *const *texts; /* that are tried; NULL-ended, and NULL itself where it may be */
    bool may_be_null;
    int n; /* of FIELD_ENUM: so many values */
};

#define TEXTS(...)     ((const char *const[]){__VA_ARGS__, NULL})
#define FIELD(f, kind) .name = #f, .at = offsetof(struct asked, f), .type = (kind)
#define INT(f)                                                                                     \
    { FIELD(f, FIELD_INT) }
#define I64(f)                                                                                     \
    { FIELD(f, FIELD_I64) }
#define BOOL(f)                                                                                    \
    { FIELD(f, FIELD_BOOL), .n = 2 }
#define ENUM(f, last)                                                                              \
    { FIELD(f, FIELD_ENUM), .n = (last) + 1 }
#define TEXT(f, ...)                                                                               \
    { FIELD(f, FIELD_TEXT), .texts = TEXTS(__VA_ARGS__) }
#define TEXT_OR_NONE(f, ...)                                                                       \
    { FIELD(f, FIELD_TEXT), .texts = TEXTS(__VA_ARGS__), .may_be_null = true }

static const struct field fields[] = {
    BOOL(s.torchrun_semantics),
    INT(s.cluster.nodes),
    INT(s.cluster.start),
    ENUM(s.cluster.store, STORE_NONE),
    TEXT_OR_NONE(s.cluster.store_on, "n0", "n1", "n2"),
    ENUM(s.cluster.disk, DISK_SPEC_SERVED),
    ENUM(s.cluster.scheduler, SCHEDULER_SLURM),
    ENUM(s.cluster.isolation, ISOLATION_HOSTS),
    INT(s.job.min_nodes),
    INT(s.job.max_nodes),
    INT(s.job.workers_per_node),
    INT(s.job.spawns),
    INT(s.job.max_restarts),
    TEXT(s.job.launcher, "torchrun", "template"),
    TEXT_OR_NONE(s.job.rdzv_backend, "c10d", "etcd", "etcd-v2"),
    TEXT(conf.key, "fence", "give_up", "stop_timeout"),
    TEXT(conf.value, "1ms", "10ms", "600ms", "1s", "2s", "10s", "3600s", "slow", "-1s"),
    TEXT(env.key, "TORCHELASTIC_ENABLE_FILE_TIMER", "TORCHELASTIC_ERROR_FILE", "PYTHONPATH"),
    TEXT(words[0], "train.py", "./train.sh"),
    TEXT(words[1], "--checkpoint-every=1", "--checkpoint-every=3", "--checkpoint-every",
         "--checkpoint-every=x", "--checkpoint-dir=x"),
    TEXT(words[2], "1", "2", "3"),
    TEXT_OR_NONE(options[0], "--virtual_local_rank", "--shutdown-timeout=3", "--max-restarts=3",
                 "--standalone", "--event-log-handler=console", "--restart-count=node"),
    TEXT_OR_NONE(s.job.checkpoint_dir, "{disk}/ckpt", "{tmp}/ckpt", "{node}/ckpt", "/ckpt"),
    TEXT_OR_NONE(s.job.checkpoint_complete, "ls"),
    ENUM(s.expect.outcome, OUTCOME_REFUSED),
    BOOL(s.expect.has_world_sizes),
    BOOL(s.expect.world_sizes_ends),
    BOOL(s.expect.has_restarts),
    INT(s.expect.restarts_min),
    INT(s.expect.restarts_max),
    BOOL(s.expect.model_same),
    ENUM(s.expect.weights, WEIGHTS_OF_CONTROL),
    ENUM(s.expect.epochs, EPOCHS_SHUFFLED),
    I64(s.expect.lost_steps),
    I64(s.expect.lost_ns),
    INT(s.expect.goodput),
    INT(s.expect.loss_within),
    TEXT_OR_NONE(detect.id, "kill", "dark"),
    I64(detect.ns),
    TEXT_OR_NONE(recover.id, "kill", "dark"),
    I64(recover.ns),
    TEXT(phase.id, "detect", "stop", "rendezvous", "start", "init", "load", "first step",
         "first-step"),
    I64(phase.ns),
    BOOL(knows_loss),
    I64(loss.step),
    TEXT(loss.tolerance, "< 9", "1.4..1.6", "36", "x"),
    BOOL(probe.always),
    I64(probe.settle_ns),
    ENUM(log.count, LOG_SEEN),
    TEXT(log.pattern, "model", "^pid", "."),
    TEXT_OR_NONE(log.after, "kill", "dark"),
    I64(log.within_ns),
    ENUM(log.on.what, TARGET_RACKS),
    ENUM(log.on.pick, PICK_LEADER),
    INT(log.on.rank),
    INT(log.on.local_rank),
    TEXT_OR_NONE(log.on.node, "n0", "n1"),
    TEXT_OR_NONE(log.on.text, "rank 1"),
    I64(s.limits.start_ns),
    I64(s.limits.stall_ns),
    I64(s.limits.total_ns),
    I64(s.limits.grace_ns),
    TEXT(entry.id, "kill", "dark"),
    TEXT(entry.fault, "worker-kill"),
    ENUM(entry.times, TIMES_EACH_ROUND),
    INT(entry.times_n),
    BOOL(entry.sticky),
    I64(entry.for_ns),
    ENUM(entry.on.what, TARGET_RACKS),
    ENUM(entry.on.pick, PICK_LEADER),
    INT(entry.on.rank),
    INT(entry.on.local_rank),
    INT(entry.on.rack),
    BOOL(entry.on.node_of_rank),
    BOOL(entry.on.rack_of_rank),
    TEXT_OR_NONE(entry.on.node, "n0", "n1", "n2"),
    BOOL(entry.when.has_step),
    I64(entry.when.step),
    BOOL(entry.when.has_time),
    BOOL(entry.when.has_event),
    TEXT_OR_NONE(entry.when.phase, "exit-barrier"),
    TEXT_OR_NONE(entry.when.log, "x"),
    TEXT_OR_NONE(entry.when.file, "x"),
};
enum { FIELDS_N = sizeof(fields) / sizeof(*fields) };

/* ---- one scenario ---- */

/* What the history was recorded with, where each field counts. */
static void asked_begin(struct asked *a, const char *history) {
    *a = (struct asked){.s = planted_scenario(history),
                        .detect = planted_budget[0],
                        .recover = planted_budget[0],
                        .phase = planted_phases[0],
                        .log = planted_lines[2],
                        .probe = planted_served[0],
                        .loss = {.step = 5, .tolerance = "0..99"},
                        .knows_loss = true,
                        .conf = planted_conf[0],
                        .env = {.key = "OMP_NUM_THREADS", .value = "1"},
                        .words = {"ranktrain", "--checkpoint-every=2", NULL}};
    a->entry = a->s.timeline[0];
    a->entry.on.text = "whom";
}

static void asked_connect(struct asked *a) {
    a->s.timeline = &a->entry;
    a->s.expect.detect_within = &a->detect;
    a->s.expect.recover_within = &a->recover;
    a->s.expect.phases_within = &a->phase;
    a->s.expect.phases_n = 1;
    a->s.expect.logs = &a->log;
    a->s.expect.logs_n = str_eq(a->s.name, "lines");
    a->s.expect.losses = &a->loss;
    a->s.expect.losses_n = a->knows_loss;
    a->s.expect.probes = &a->probe;
    a->s.job.rdzv_conf = &a->conf;
    a->s.job.env = &a->env;
    a->s.job.env_n = 1;
    a->s.job.run = a->words;
    a->s.job.run_n = a->words[2] ? 3 : 2;
    a->s.job.launcher_args = a->options;
    a->s.job.launcher_args_n = a->options[0] != NULL;
}

static void judge(struct verdict *ret, struct asked *a, const struct history *h) {
    asked_connect(a);
    struct trial t = {.scenario = &a->s, .history = h};
    verdict_judge(ret, &t);
}

/* ---- one field of it ---- */

/* A field that is another, and what comes of it. */
struct altered_field {
    const struct field *of;
    const char *name; /* of the history */
    const struct history *history;
    const struct verdict *base;
    bool differs[64];
    uint64_t sum;
    struct buf *told; /* NULL: nobody wants it in full */
};

static void note(struct altered_field *f, const char *text) {
    f->sum = verdicts_sum(f->sum, text);
    if (f->told)
        buf_puts(f->told, text);
}

static void note_verdict(struct altered_field *f, const char *value, const struct verdict *v) {
    struct buf said = {0};
    buf_printf(&said, "%s\n", value);
    verdicts_put_difference(&said, f->base, v);
    note(f, buf_str(&said));
    for (size_t i = 0; i < v->n; i++)
        f->differs[i] |=
            v->v[i].status != f->base->v[i].status || !str_eq(v->v[i].seen, f->base->v[i].seen);
    buf_fini(&said);
}

static void judge_number(struct altered_field *f, int64_t n, struct verdict *ret) {
    struct asked a;
    asked_begin(&a, f->name);
    if (f->of->type == FIELD_INT || f->of->type == FIELD_ENUM)
        *(int *)((char *)&a + f->of->at) = (int)n;
    else if (f->of->type == FIELD_BOOL)
        *(bool *)((char *)&a + f->of->at) = n;
    else
        *(int64_t *)((char *)&a + f->of->at) = n;
    judge(ret, &a, f->history);
}

static bool same_answers(const struct verdict *a, const struct verdict *b) {
    for (size_t i = 0; i < a->n; i++)
        if (a->v[i].status != b->v[i].status)
            return false;
    return true;
}

/* Of the values from low to high the first at which not all answers are those of low. */
static void find_turn(struct altered_field *f, int64_t low, int64_t high,
                      const struct verdict *at_low) {
    char text[40];
    while (high - low > 1) {
        struct verdict v;
        int64_t middle = low + (high - low) / 2;
        judge_number(f, middle, &v);
        if (same_answers(&v, at_low))
            low = middle;
        else
            high = middle;
    }
    snprintf(text, sizeof(text), "turns at %" PRId64 "\n", high);
    note(f, text);
}

static void try_numbers(struct altered_field *f) {
    static const int64_t values[] = {-1, 0,   1,       2,         3,           5,
                                     9,  100, 1000000, 100000000, 10000000000, 10000000000000};
    size_t n = f->of->n ? (size_t)f->of->n : 8;
    struct verdict was, v;
    if (f->of->type == FIELD_I64)
        n = sizeof(values) / sizeof(*values);
    for (size_t i = 0; i < n; i++) {
        int64_t value = f->of->n ? (int64_t)i : values[i];
        char text[40];
        snprintf(text, sizeof(text), "%" PRId64, value);
        judge_number(f, value, &v);
        note_verdict(f, text, &v);
        if (!f->of->n && i && !same_answers(&v, &was))
            find_turn(f, values[i - 1], value, &was);
        was = v;
    }
}

static void try_text(struct altered_field *f, const char *text) {
    struct asked a;
    struct verdict v;
    asked_begin(&a, f->name);
    *(const char **)((char *)&a + f->of->at) = text;
    judge(&v, &a, f->history);
    note_verdict(f, text ? text : "(none)", &v);
}

static void try_field(struct altered_field *f) {
    if (f->of->type != FIELD_TEXT) {
        try_numbers(f);
        return;
    }
    for (const char *const *text = f->of->texts; *text; text++)
        try_text(f, *text);
    if (f->of->may_be_null)
        try_text(f, NULL);
}

/* Every field of one history, or that of this name. */
static void try_history(const char *name, const char *only, struct buf *told, struct buf *out) {
    static const struct edit none[1];
    struct history h;
    struct verdict base;
    struct asked a;
    planted_load(&h, name, none);
    asked_begin(&a, name);
    judge(&base, &a, &h);
    for (size_t i = 0; i < FIELDS_N; i++) {
        struct altered_field f = {&fields[i], name, &h, &base, {false}, VERDICTS_SUM_OF_NOTHING,
                                  told};
        if (only && !str_eq(fields[i].name, only))
            continue;
        try_field(&f);
        buf_printf(out, "%s %s:", name, fields[i].name);
        for (size_t k = 0; k < base.n; k++)
            if (f.differs[k])
                buf_printf(out, " %s", base.v[k].check);
        buf_printf(out, " %016" PRIx64 "\n", f.sum);
    }
    history_fini(&h);
}

static void test_what_is_said_under_another_scenario_is_the_same_as_before(void **state) {
    (void)state;
    static const char *const names[] = {
        "given",  "gpu-worker-killed", "lines",        "node-powered-off", "printed-steps",
        "probed", "weights",           "worker-killed"};
    struct buf is = {0};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
        try_history(names[i], NULL, NULL, &is);
    compare("fields", &is);
    buf_fini(&is);
}

static int show(const char *history, const char *field) {
    struct buf told = {0}, out = {0};
    try_history(history, field, &told, &out);
    fputs(buf_str(&told), stdout);
    buf_fini(&told);
    buf_fini(&out);
    return 0;
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_said_under_another_scenario_is_the_same_as_before),
    };
    if (argc == 4 && str_eq(argv[1], "--show"))
        return show(argv[2], argv[3]);
    fill = argc == 2 && str_eq(argv[1], "--fill");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
