#include "tests/harness/judge/checks/asked.h"

#include "tests/harness/judge/checks/cases_judge.h"

/* ---- fields ---- */

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

const struct field asked_fields[] = {
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
    TEXT(setting, "profile=slow", "fence=1ms", "fence=600ms", "fence=10s", "fence=x", "give_up=1ms",
         "give_up=2s", "give_up=3600s", "hb=1ms", "hb=200ms", "hb=5s", "suspect=1ms",
         "suspect=600ms", "suspect=20s", "stop_timeout=10ms", "stop_timeout=600ms",
         "stop_timeout=1s", "stop_timeout=3s", "stop_timeout=-1s", "stop_timeout=slow",
         "max_free_rounds_per_hour=0", "max_free_rounds_per_hour=1", "max_free_rounds_per_hour=2",
         "max_free_rounds_per_hour=x", "another=1"),
    TEXT(env.key, "TORCHELASTIC_ENABLE_FILE_TIMER", "TORCHELASTIC_ERROR_FILE", "PYTHONPATH"),
    TEXT(words[0], "train.py", "./train.sh"),
    TEXT(words[1], "--steps=1", "--steps=8", "--steps=9", "--steps=x", "--checkpoint-every=1",
         "--checkpoint-every=3", "--checkpoint-every", "--checkpoint-every=x",
         "--checkpoint-dir=x"),
    TEXT(words[2], "1", "2", "3"),
    TEXT_OR_NONE(options[0], "--virtual_local_rank", "--shutdown-timeout=3", "--max-restarts=3",
                 "--standalone", "--event-log-handler=console", "--restart-count=node",
                 "--log-dir=logs", "--log_dir=logs", "--on-node-loss=fail",
                 "--on-node-loss=restart"),
    TEXT_OR_NONE(s.job.checkpoint_dir, "{disk}/ckpt", "{tmp}/ckpt", "{node}/ckpt", "/ckpt"),
    TEXT_OR_NONE(s.job.checkpoint_complete, "ls"),
    ENUM(s.expect.outcome, OUTCOME_REFUSED),
    BOOL(s.expect.has_world_sizes),
    BOOL(s.expect.world_sizes_ends),
    INT(sizes[0]),
    INT(sizes[1]),
    INT(sizes[2]),
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
const size_t asked_fields_n = sizeof(asked_fields) / sizeof(*asked_fields);

void asked_set_text(struct asked *a, const struct field *f, const char *text) {
    *(const char **)((char *)a + f->at) = text;
}

void asked_set_number(struct asked *a, const struct field *f, int64_t n) {
    if (f->type == FIELD_INT || f->type == FIELD_ENUM)
        *(int *)((char *)a + f->at) = (int)n;
    else if (f->type == FIELD_BOOL)
        *(bool *)((char *)a + f->at) = n;
    else
        *(int64_t *)((char *)a + f->at) = n;
}

static void draw_text(struct asked *a, const struct field *f, struct rand *r, struct buf *said) {
    size_t n = 0;
    while (f->texts[n])
        n++;
    size_t at = (size_t)rand_below(r, n + f->may_be_null);
    asked_set_text(a, f, f->texts[at]);
    buf_printf(said, "%s %s\n", f->name, at < n ? f->texts[at] : "(none)");
}

void asked_draw(struct asked *a, const struct field *f, struct rand *r, struct buf *said) {
    static const int64_t values[] = {0,        1,         2,         3,          5,          9,
                                     20000000, 500000000, 900000000, 1000000000, 5000000000, -1};
    if (f->type == FIELD_TEXT) {
        draw_text(a, f, r, said);
        return;
    }
    int64_t n = (int64_t)rand_below(r, f->n ? (uint64_t)f->n : 8);
    if (f->type == FIELD_I64)
        n = values[rand_below(r, sizeof(values) / sizeof(*values))];
    asked_set_number(a, f, n);
    buf_printf(said, "%s %lld\n", f->name, (long long)n);
}

/* ---- one scenario ---- */

void asked_begin(struct asked *a, const char *history, enum dialect d) {
    *a = (struct asked){.s = cases_scenario(history, d),
                        .detect = planted_budget[0],
                        .recover = planted_budget[0],
                        .phase = planted_phases[0],
                        .log = planted_lines[2],
                        .probe = planted_served[0],
                        .loss = {.step = 5, .tolerance = "0..99"},
                        .knows_loss = true,
                        .setting = "profile=fast",
                        .env = {.key = "OMP_NUM_THREADS", .value = "1"},
                        .words = {"ranktrain", "--checkpoint-every=2", NULL}};
    memcpy(a->sizes, a->s.expect.world_sizes, 2 * sizeof(*a->sizes));
    a->entry = a->s.timeline[0];
    a->entry.on.text = "whom";
}

const struct scenario *asked_scenario(struct asked *a) {
    a->s.timeline = &a->entry;
    a->s.expect.detect_within = &a->detect;
    a->s.expect.recover_within = &a->recover;
    a->s.expect.phases_within = &a->phase;
    a->s.expect.phases_n = 1;
    a->s.expect.logs = &a->log;
    a->s.expect.logs_n = str_eq(a->s.name, "lines");
    a->s.expect.losses = &a->loss;
    a->s.expect.losses_n = a->knows_loss;
    a->s.expect.world_sizes = a->sizes;
    a->s.expect.world_sizes_n = a->sizes[2] ? 3 : 2;
    a->s.expect.probes = &a->probe;
    str_copy(a->key, strcspn(a->setting, "=") + 1, a->setting);
    a->conf = (struct pair){.key = a->key, .value = strchr(a->setting, '=') + 1};
    a->s.job.rdzv_conf = &a->conf;
    a->s.job.env = &a->env;
    a->s.job.env_n = 1;
    a->s.job.run = a->words;
    a->s.job.run_n = a->words[2] ? 3 : 2;
    a->s.job.launcher_args = a->options;
    a->s.job.launcher_args_n = a->options[0] != NULL;
    return &a->s;
}
