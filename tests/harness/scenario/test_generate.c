/* The scenarios that are written from a typed command: they load, can be planned, and say what was
 * typed. */
#include "harness/scenario/generate.h"

#include "base/str.h"
#include "faults/fault.h"
#include "harness/plan/plan.h"
#include "tests/harness/scenario/scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static const struct generate_run steps = {.first_step = 1,
                                          .last_step = 100,
                                          .told = true,
                                          .start_ns = 1000,
                                          .train_ns = 9000000000,
                                          .steps_ns = 8000000000};
static const struct generate_run silent = {
    .first_step = -1, .last_step = -1, .start_ns = 700000000000, .train_ns = 10000000000};

struct tried {
    struct arena arena;
    struct command *command;
    struct generated generated;
    struct err err;
    int code;
};

static struct tried make(const char *line, const struct generate_overrides *w) {
    static const struct generate_overrides none;
    struct tried x = {0};
    char **words = str_split(&x.arena, line, ' ', NULL);
    x.command = arena_new(&x.arena, struct command);
    assert_int_equal(command_parse(&x.arena, (const char *const *)words, x.command, &x.err), 0);
    x.code = generate(&x.arena, x.command, w ? w : &none, &x.generated, &x.err);
    return x;
}

static void load_base(const struct tried *t, struct scratch *ret) {
    struct buf text = {0};
    generate_text(&t->generated, &text);
    scratch_load(ret, buf_str(&text));
    if (!ret->s)
        fail_msg("%s\n%s", buf_str(&ret->d.out), buf_str(&text));
    buf_fini(&text);
}

static void assert_plans(struct scratch *x, const char *text) {
    struct plan *p = x->s ? plan_make(x->s, 1, &x->d) : NULL;
    if (!p)
        fail_msg("%s\n%s", buf_str(&x->d.out), text);
    plan_free(p);
}

static const char *const typed[] = {
    "rankrun --nproc-per-node 2 ./job",
    "rankrun --standalone ./job",
    "rankrun --nnodes 1:4 ./job a b",
    "rankrun --nnodes 4:8 ./job",
    "rankrun --nnodes 3 ./job",
    "rankrun --nnodes 2:3 --max-restarts 0 ./job \"x - ~ 7 true '",
    "A=1 B={seed} sh -c true",
    "python3 -c print(1)",
};
enum { TYPED = sizeof(typed) / sizeof(*typed) };

static void test_every_scenario_of_every_command_loads_and_can_be_planned(void **state) {
    (void)state;
    const struct generate_run *runs[] = {&steps, &silent};
    for (size_t i = 0; i < TYPED; i++) {
        struct tried t = make(typed[i], NULL);
        struct scratch base;
        assert_int_equal(t.code, 0);
        load_base(&t, &base);
        for (size_t k = 0; k < 2 * GENERATE_FAULTS; k++) {
            struct generate_moment m;
            struct buf text = {0};
            struct scratch x;
            assert_true(generate_moment(runs[k % 2], &m, NULL));
            generate_scenario(&generate_faults[k / 2], &t.generated, base.s, runs[k % 2], &m,
                              &text);
            scratch_load(&x, buf_str(&text));
            assert_plans(&x, buf_str(&text));
            assert_string_equal(x.s->name, generate_faults[k / 2].name);
            buf_fini(&text);
            scratch_drop(&x);
        }
        scratch_drop(&base);
        arena_fini(&t.arena);
    }
}

/* By its own example, whatever job it is: the example's nodes and ranks may not be there. */
static void test_every_fault_makes_a_disaster_of_a_command(void **state) {
    (void)state;
    struct generate_moment m;
    assert_true(generate_moment(&steps, &m, NULL));
    for (size_t i = 1; i <= 4; i += 3) { /* two nodes, and three with a spare one */
        struct tried t = make(typed[i], NULL);
        struct scratch base;
        load_base(&t, &base);
        for (size_t k = 0; faults[k]; k++) {
            /* A command has no racks, and no etcd. */
            if (faults[k]->targets == TARGET_RACK || str_eq(faults[k]->name, "store-full"))
                continue;
            const struct fault_args none = {0};
            int64_t lasts_ns = fault_course(faults[k], &none).lasts_ns;
            const struct generate_known known = {faults[k]->name, faults[k]->summary,
                                                 faults[k]->example, faults[k]->effects, lasts_ns};
            struct generate_fault f = generate_also(&t.arena, &known);
            struct buf text = {0};
            struct scratch x;
            generate_scenario(&f, &t.generated, base.s, &steps, &m, &text);
            scratch_load(&x, buf_str(&text));
            assert_plans(&x, buf_str(&text));
            assert_string_equal(x.s->name, faults[k]->name);
            assert_string_equal(x.s->timeline[0].fault, faults[k]->name);
            bool lasting = fault_has(faults[k], EFFECT_LASTING) && !lasts_ns;
            assert_true(lasting == (x.s->timeline[0].for_ns || x.s->timeline[0].until));
            buf_fini(&text);
            scratch_drop(&x);
        }
        scratch_drop(&base);
        arena_fini(&t.arena);
    }
}

/* On the job's own files and on the node that saves, when it does; and where files at rest are struck, a
 * worker has to read them. */
static void test_a_fault_on_the_disk_is_one_on_what_the_job_keeps(void **state) {
    (void)state;
    static const struct {
        const char *line, *saves, *example;
        unsigned effects;
        const char *before_when, *before, *when, *entry;
    } rows[] = {
        {"rankrun ./job --to={shared}/a/b.pt", "checkpoint-write",
         "{when: {step: 2}, fault: x, with: {error: EIO, op: fsync, path: \"{shared}/ckpt/**\"}, "
         "on: n1, for: 5s}",
         EFFECT_DAMAGES_DISK | EFFECT_LASTING, NULL, NULL, "{event: checkpoint-write}",
         "fault: x, on: node of rank 0, with: {path: \"{shared}/a/**\", error: EIO}, for: 500ms"},
        {"rankrun ./job {disk}/", "checkpoint-write",
         "{when: {step: 2}, fault: x, with: {path: \"{shared}/ckpt/*/w\"}, on: n1}",
         EFFECT_DAMAGES_DISK, "{event: checkpoint-commit, nth: 3}",
         "fault: x, on: node of rank 0, with: {path: \"{disk}/**\"}", "{after: before}",
         "fault: worker-kill, on: random of workers"},
        {"rankrun ./job {shared}/ckpt", NULL,
         "{when: {step: 2}, fault: x, with: {path: \"{shared}/ckpt/latest\", to: older}, on: n1}",
         EFFECT_DAMAGES_DISK, NULL,
         "fault: x, on: node of rank 0, with: {path: \"{shared}/ckpt/latest\", to: older}",
         "{after: before}", "fault: worker-kill, on: random of workers"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct tried t = make(rows[i].line, NULL);
        struct scratch base;
        struct generate_run r = steps;
        const struct generate_known k = {"x", "about x", rows[i].example, rows[i].effects};
        struct generate_fault f = generate_also(&t.arena, &k);
        load_base(&t, &base);
        r.saves = rows[i].saves;
        r.saves_told = true;
        r.commits = rows[i].saves ? 5 : 0;
        assert_non_null(generate_why_not(&t.arena, &f, &t.generated, base.s, &r));
        generate_on_disk(&t.arena, base.s, &r, &f);
        assert_null(generate_why_not(&t.arena, &f, &t.generated, base.s, &r));
        assert_true(str_eq(f.before_when, rows[i].before_when));
        assert_true(str_eq(f.before, rows[i].before));
        assert_true(str_eq(f.when, rows[i].when));
        assert_string_equal(f.entry, rows[i].entry);
        scratch_drop(&base);
        arena_fini(&t.arena);
    }
}

static void test_a_job_that_keeps_nothing_on_a_disk_is_told_so(void **state) {
    (void)state;
    struct tried t = make("rankrun ./job", NULL);
    struct scratch base;
    const struct generate_known k = {"x", "about x",
                                     "{when: {step: 2}, fault: x, with: {path: \"{shared}/a\"}}",
                                     EFFECT_DAMAGES_DISK};
    struct generate_fault f = generate_also(&t.arena, &k);
    load_base(&t, &base);
    generate_on_disk(&t.arena, base.s, &steps, &f);
    const char *why = generate_why_not(&t.arena, &f, &t.generated, base.s, &steps);
    assert_non_null(why);
    assert_non_null(strstr(why, "let its command name {shared}"));
    scratch_drop(&base);
    arena_fini(&t.arena);
}

/* All there are, as whole scenarios. */
static void test_every_fault_on_the_disk_of_a_job_can_be_planned(void **state) {
    (void)state;
    struct tried t = make("rankrun --nproc-per-node 2 ./job --dir={shared}/ckpt", NULL);
    struct scratch base;
    struct generate_moment m;
    load_base(&t, &base);
    assert_true(generate_moment(&steps, &m, &t.err));
    for (size_t k = 0; faults[k]; k++) {
        const struct generate_known known = {faults[k]->name, faults[k]->summary,
                                             faults[k]->example, faults[k]->effects};
        struct generate_fault f = generate_also(&t.arena, &known);
        struct buf text = {0};
        struct scratch x;
        if (!f.on_disk)
            continue;
        generate_on_disk(&t.arena, base.s, &steps, &f);
        generate_scenario(&f, &t.generated, base.s, &steps, &m, &text);
        scratch_load(&x, buf_str(&text));
        assert_plans(&x, buf_str(&text));
        buf_fini(&text);
        scratch_drop(&x);
    }
    scratch_drop(&base);
    arena_fini(&t.arena);
}

/* By an event, by the directory of its checkpoints wherever that is, or by nothing. */
static void test_a_job_that_saves_is_killed_meanwhile(void **state) {
    (void)state;
    static const struct {
        const char *saves, *dir, *when;
    } rows[] = {
        {"checkpoint-write", "ckpt", "{after: before, round: 2, event: checkpoint-write}"},
        {NULL, "ckpt", "{after: before, round: 2, file: 'ckpt/**', op: write}"},
        {"", "./a/b/", "{after: before, round: 2, file: 'a/b/**', op: write}"},
        {NULL, "{shared}/ckpt", "{after: before, round: 2, file: 'ckpt/**', op: write}"},
        {NULL, "{shared}", "{after: before, round: 2, file: '*', op: write}"},
        {NULL, "/data/ckpt", "{after: before, round: 2, file: '/data/ckpt/**', op: write}"},
        {NULL, "it's", NULL},
        {NULL, NULL, NULL},
    };
    struct generate_moment m;
    assert_true(generate_moment(&steps, &m, NULL));
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct tried t = make("rankrun --nnodes 1:4 ./job", NULL);
        struct generate_run r = steps;
        struct generate_fault f;
        struct scratch base, x;
        struct buf text = {0};
        load_base(&t, &base);
        base.s->job.checkpoint_dir = rows[i].dir;
        r.saves = rows[i].saves;
        r.saves_told = true;
        bool saves = generate_saving(&t.arena, base.s, &r, &f);
        assert_true(saves == (rows[i].when != NULL));
        if (saves) {
            assert_string_equal(f.when, rows[i].when);
            generate_scenario(&f, &t.generated, base.s, &r, &m, &text);
            scratch_load(&x, buf_str(&text));
            assert_plans(&x, buf_str(&text));
            assert_int_equal(x.s->timeline_n, 2);
            scratch_drop(&x);
            base.s->job.max_restarts = 1;
            assert_non_null(
                strstr(generate_why_not(&t.arena, &f, &t.generated, base.s, &r), "two restarts"));
        }
        buf_fini(&text);
        scratch_drop(&base);
        arena_fini(&t.arena);
    }
}

static void test_a_disaster_that_is_asked_for_follows_from_what_the_fault_does(void **state) {
    (void)state;
    static const struct {
        unsigned effects;
        const char *example, *entry, *when;
        enum generate_outcome outcome;
        int64_t lasts_ns;
    } rows[] = {
        {EFFECT_ENDS_NODE | EFFECT_SILENT, "{when: {step: 20}, fault: x, on: n2}",
         "fault: x, on: n%", NULL, LOSES_NODE, 0},
        {EFFECT_ASKS_TO_LEAVE, "{when: {time: 2s}, fault: x, on: n0, with: {share: 5%, a: 'b c'}}",
         "fault: x, on: n%, with: {share: \"5%\", a: \"b c\"}", NULL, LOSES_NODE, 0},
        {EFFECT_ENDS_WORKER, "{when: {step: 20}, fault: x, on: rank 1}",
         "fault: x, on: random of workers", NULL, MAY_RESTART, 0},
        {EFFECT_SLOWS | EFFECT_LASTING, "{when: {step: 20}, fault: x, on: n2/0, for: 3s}",
         "fault: x, on: random of workers, for: 3s", NULL, COMES_BACK, 3000000000},
        {EFFECT_SLOWS | EFFECT_LASTING, "{when: {phase: start}, fault: x, on: store}",
         "fault: x, on: store, for: 10s", "{phase: start}", COMES_BACK, 10000000000},
        {EFFECT_ENDS_NODE, "{when: {step: 20}, fault: x, on: store}", "fault: x, on: store", NULL,
         COMES_BACK, 0},
        {EFFECT_ENDS_NODE | EFFECT_STARTS_NODE, "{when: {step: 20}, fault: x, on: n1}",
         "fault: x, on: n%", NULL, COMES_BACK, 0},
        {EFFECT_ENDS_NODE | EFFECT_LASTING, "{when: {step: 20}, fault: x, on: n1, for: 1s}",
         "fault: x, on: n%, for: 1s", NULL, COMES_BACK, 1000000000},
        {EFFECT_STARTS_NODE, "{when: {step: 20}, fault: x, on: n3}", "fault: x, on: n%", NULL,
         TAKES_NODE, 0},
        {EFFECT_PARTS_NETWORK | EFFECT_LASTING,
         "{when: {step: 20}, fault: x, with: {groups: 'n0|n1', planes: data}, for: 1s}",
         "fault: x, on: n%, with: {planes: data}, for: 1s", NULL, COMES_BACK, 1000000000},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        ARENA_FINI struct arena a = {0};
        const struct generate_known k = {"x", "about x", rows[i].example, rows[i].effects};
        struct generate_fault f = generate_also(&a, &k);
        assert_string_equal(f.entry, rows[i].entry);
        assert_true(str_eq(f.when, rows[i].when));
        assert_int_equal(f.outcome, rows[i].outcome);
        assert_int_equal(f.lasts_ns, rows[i].lasts_ns);
    }
}

static void test_the_words_of_the_command_come_back(void **state) {
    (void)state;
    struct tried t = make(typed[5], NULL);
    struct scratch x;
    load_base(&t, &x);
    for (size_t i = 0; t.command->run[i]; i++)
        assert_string_equal(x.s->job.run[i], t.command->run[i]);
    assert_int_equal(x.s->job.max_restarts, 0);
    scratch_drop(&x);
    arena_fini(&t.arena);
    t = make(typed[6], NULL);
    load_base(&t, &x);
    assert_string_equal(x.s->job.env[1].value, "{seed}");
    scratch_drop(&x);
    arena_fini(&t.arena);
}

static void test_so_many_nodes_that_one_can_be_lost(void **state) {
    (void)state;
    static const struct {
        const char *typed;
        int wished, min, nodes;
        bool spare;
    } rows[] = {
        {"torchrun t.py", 0, 1, 2, false},
        {"torchrun --standalone t.py", 0, 1, 2, false},
        {"torchrun --nnodes 1 t.py", 0, 1, 2, false},
        {"torchrun --nnodes 1:4 t.py", 0, 1, 3, false},
        {"torchrun --nnodes 1:2 t.py", 0, 1, 2, false},
        {"torchrun --nnodes 4:8 t.py", 0, 4, 5, false},
        {"torchrun --nnodes 4 t.py", 0, 4, 4, true},
        {"torchrun --nnodes 4 t.py", 2, 2, 2, true},
        {"torchrun --nnodes 1:4 t.py", 4, 1, 4, false},
        {"torchrun t.py", 5, 1, 5, false},
        {"./job", 0, 1, 2, false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct generate_overrides w = {.nodes = rows[i].wished};
        struct tried t = make(rows[i].typed, &w);
        assert_int_equal(t.code, 0);
        assert_int_equal(t.generated.min_nodes, rows[i].min);
        assert_int_equal(t.generated.nodes, rows[i].nodes);
        assert_int_equal(t.generated.spare, rows[i].spare);
        arena_fini(&t.arena);
    }
    struct generate_overrides few = {.nodes = 4};
    struct tried t = make("torchrun --nnodes 4:8 t.py", &few);
    assert_true(t.code < 0);
    assert_non_null(strstr(t.err.msg, "one more to be lost"));
    arena_fini(&t.arena);
}

static void test_a_spare_node_is_off_until_it_is_needed(void **state) {
    (void)state;
    struct tried t = make("torchrun --nnodes 2 t.py", NULL);
    struct scratch x;
    load_base(&t, &x);
    assert_int_equal(x.s->cluster.nodes, 3);
    assert_int_equal(x.s->cluster.start, 2);
    scratch_drop(&x);
    arena_fini(&t.arena);
}

static void test_another_launcher_keeps_the_interpreter_that_was_named(void **state) {
    (void)state;
    static const struct {
        const char *typed, *launcher, *run;
    } rows[] = {
        {"/v/bin/python3 -m torch.distributed.run t.py -x", "rankrun", "/v/bin/python3 -u t.py -x"},
        {"/v/bin/python3 -X dev -m torch.distributed.run -m pkg", "rankrun",
         "/v/bin/python3 -X dev -u -m pkg"},
        {"uv run python -m torch.distributed.run t", "rankrun", "uv run python -u t"},
        {"/v/bin/python3 /v/bin/torchrun t.py", "rankrun", "/v/bin/python3 -u t.py"},
        {"/v/bin/python3 -m torch.distributed.run --no-python ./j", "rankrun", "./j"},
        {"/v/bin/python3 -m torch.distributed.run --no-python python3 -u j", "rankrun",
         "python3 -u j"},
        {"/v/bin/python3 -m torch.distributed.run t.py", NULL, "t.py"},
        {"torchrun t.py", "rankrun", "t.py"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct generate_overrides w = {.launcher = rows[i].launcher};
        struct tried t = make(rows[i].typed, &w);
        char **run = str_split(&t.arena, rows[i].run, ' ', NULL);
        struct scratch x;
        size_t n = 0;
        load_base(&t, &x);
        for (; run[n]; n++)
            assert_string_equal(x.s->job.run[n], run[n]);
        assert_null(x.s->job.run[n]);
        scratch_drop(&x);
        arena_fini(&t.arena);
    }
}

static void test_what_the_command_leaves_open_is_said(void **state) {
    (void)state;
    struct tried t = make("torchrun t.py", NULL);
    assert_int_equal(t.generated.max_restarts, 3);
    assert_non_null(strstr(t.generated.notes[1], "max_restarts 3"));
    arena_fini(&t.arena);
    t = make("torchrun --max-restarts 2 --nnodes 1:3 t.py", NULL);
    assert_int_equal(t.generated.max_restarts, 2);
    assert_null(t.generated.notes[0]);
    arena_fini(&t.arena);
}

static void test_the_moment_follows_from_the_undisturbed_run(void **state) {
    (void)state;
    struct generate_moment m;
    struct err err = {0};
    assert_true(generate_moment(&steps, &m, &err));
    assert_true(m.by_step && m.hold);
    assert_int_equal(m.step, 41);
    assert_true(generate_moment(&silent, &m, &err));
    assert_false(m.by_step);
    assert_true(m.time_ns == 5000000000);
    struct generate_run r = steps;
    r.told = false; /* out of its output: nobody can be held */
    assert_true(generate_moment(&r, &m, &err));
    assert_true(m.by_step && !m.hold);
}

/* Three epochs: the half of them, and not of what comes behind the last. */
static void test_few_steps_are_struck_between_the_first_and_the_last(void **state) {
    (void)state;
    struct generate_run r = {.first_step = 1,
                             .last_step = 3,
                             .start_ns = 6100000000,
                             .train_ns = 12000000000,
                             .steps_ns = 7000000000};
    struct generate_moment m;
    struct buf text = {0};
    struct err err = {0};
    assert_true(generate_moment(&r, &m, &err));
    assert_false(m.by_step);
    assert_int_equal(m.time_ns / 1000000, 3500);
    generate_moment_text(&r, &m, &text);
    assert_string_equal(buf_str(&text), "3.5 s of 7.0 s from the first step on (at a time, as 3 "
                                        "steps are too few to choose one)");
    buf_fini(&text);
    r.steps_ns = 300000000; /* all at once, when its buffer was written out */
    r.last_step = 40;
    assert_false(generate_moment(&r, &m, &err));
    assert_non_null(strstr(err.msg, "read only near its end"));
}

static void test_a_job_that_is_too_short_is_told_so(void **state) {
    (void)state;
    struct generate_moment m;
    struct err err = {0};
    struct generate_run r = {.first_step = -1, .last_step = -1, .train_ns = 1500000000};
    assert_false(generate_moment(&r, &m, &err));
    assert_non_null(strstr(err.msg, "lived for 1.5 s: too short"));
    r = (struct generate_run){.first_step = 0, .last_step = 3, .told = true, .train_ns = 400000000};
    assert_false(generate_moment(&r, &m, &err));
    assert_non_null(strstr(err.msg, "fewer than 5 steps"));
}

static void test_limits_follow_unless_they_are_given(void **state) {
    (void)state;
    struct tried t = make(typed[0], NULL);
    struct scratch base, x;
    struct buf text = {0};
    struct generate_moment m;
    load_base(&t, &base);
    generate_moment(&silent, &m, NULL);
    base.s->limits = (struct limits){.stall_ns = 5000000000};
    generate_scenario(&generate_faults[0], &t.generated, base.s, &silent, &m, &text);
    scratch_load(&x, buf_str(&text));
    assert_int_equal(x.s->limits.start_ns / 1000000000, 60 + 4 * 700);
    assert_int_equal(x.s->limits.stall_ns / 1000000000, 5);
    assert_int_equal(x.s->limits.total_ns / 1000000000, 120 + 4 * 710);
    assert_int_equal(x.s->limits.grace_ns / 1000000000, 30);
    buf_fini(&text);
    scratch_drop(&x);
    scratch_drop(&base);
    arena_fini(&t.arena);
}

static void test_what_each_costs_is_known_before(void **state) {
    (void)state;
    static const int64_t s = 1000000000;
    struct scenario rankrun = {.job.launcher = "rankrun"}, torchrun = {.torchrun_semantics = true};
    struct generate_run r = {
        .first_step = -1, .last_step = -1, .start_ns = 2 * s, .train_ns = 10 * s};
    for (int i = 0; i < GENERATE_FAULTS; i++) {
        struct generate_cost a = generate_cost(&generate_faults[i], &rankrun, &r),
                             b = generate_cost(&generate_faults[i], &torchrun, &r);
        bool lost = strstr(generate_faults[i].about, "One node loses") ||
                    strstr(generate_faults[i].about, "of one node");
        assert_int_equal(a.least_ns, 6 * s);
        assert_true(a.usual_ns >= 12 * s && a.long_ns == a.usual_ns);
        assert_int_equal(a.most_ns, 180 * s);
        assert_int_equal(b.usual_ns, a.usual_ns);
        assert_int_equal(b.long_ns, b.usual_ns + (lost ? 300 * s : 0));
        assert_int_equal(b.most_ns, (120 + 300 + 4 * 12) * s);
    }
    torchrun.limits.total_ns = 60 * s;
    for (int i = 0; i < GENERATE_FAULTS; i++)
        assert_true(generate_cost(&generate_faults[i], &torchrun, &r).long_ns <= 60 * s);
}

static void test_a_node_that_would_come_too_late_is_not_tried(void **state) {
    (void)state;
    struct tried t = make("torchrun --monitor-interval 2 --nnodes 1:3 t.py", NULL);
    struct scenario torchrun = {.torchrun_semantics = true};
    struct generate_run r = {.start_ns = 8000000000, .train_ns = 20000000000};
    const char *why = generate_why_not(&t.arena, &generate_faults[GENERATE_FAULTS - 1],
                                       &t.generated, &torchrun, &r);
    assert_non_null(why);
    assert_non_null(strstr(why, "some 8 s to start and is looked for every 2 s"));
    assert_null(generate_why_not(&t.arena, &generate_faults[0], &t.generated, &torchrun, &r));
    r.train_ns *= 2;
    assert_null(generate_why_not(&t.arena, &generate_faults[GENERATE_FAULTS - 1], &t.generated,
                                 &torchrun, &r));
    arena_fini(&t.arena);
}

/* rankrun waits for a second of quiet before it takes a node in. */
static void test_a_node_that_rankrun_would_not_take_in_before_the_end_is_not_tried(void **state) {
    (void)state;
    struct tried t = make("rankrun --nnodes 1:3 t.sh", NULL);
    const struct pair fast = {.key = "profile", .value = "fast"};
    struct scenario s = {.job = {.launcher = "rankrun"}};
    struct generate_run r = {.start_ns = 100000000, .train_ns = 1900000000};
    const char *why =
        generate_why_not(&t.arena, &generate_faults[GENERATE_FAULTS - 1], &t.generated, &s, &r);
    assert_non_null(why);
    assert_non_null(strstr(why, "after 1 s of quiet, and the job would end 0.9 s later"));
    assert_null(generate_why_not(&t.arena, &generate_faults[0], &t.generated, &s, &r));
    s.job.rdzv_conf = &fast;
    s.job.rdzv_conf_n = 1;
    assert_null(
        generate_why_not(&t.arena, &generate_faults[GENERATE_FAULTS - 1], &t.generated, &s, &r));
    s.job.rdzv_conf_n = 0;
    r.train_ns = 8000000000;
    assert_null(
        generate_why_not(&t.arena, &generate_faults[GENERATE_FAULTS - 1], &t.generated, &s, &r));
    arena_fini(&t.arena);
}

/* A cloud switches the node off some time after its notice: a job that is over by then shows nothing. */
static void test_a_fault_whose_second_part_would_come_too_late_is_not_tried(void **state) {
    (void)state;
    struct tried t = make("rankrun --nnodes 1:3 t.sh", NULL);
    struct scenario s = {.job = {.launcher = "rankrun"}};
    struct generate_known k = {.name = "away",
                               .example = "{fault: away, on: n2}",
                               .effects = EFFECT_ENDS_NODE,
                               .follow_ns = 3000000000};
    struct generate_run r = {.start_ns = 100000000, .train_ns = 3000000000};
    struct generate_fault f = generate_also(&t.arena, &k);
    const char *why = generate_why_not(&t.arena, &f, &t.generated, &s, &r);
    assert_non_null(why);
    assert_non_null(strstr(why, "3 s after its first, and the job would end 1.5 s after that"));
    r.train_ns = 9000000000;
    assert_null(generate_why_not(&t.arena, &f, &t.generated, &s, &r));
    arena_fini(&t.arena);
}

/* What is written for an editor says the same as the text and the sets that were loaded. */
static void test_what_is_set_stands_in_the_text(void **state) {
    (void)state;
    static const char *const sets[] = {"observe.step=\"^epoch: ([0-9]+) #\"",
                                       "job.checkpoint.dir=ckpt",
                                       "job.checkpoint.complete=sed 's/[^0-9]//g' \\latest",
                                       "job.max_restarts=2",
                                       "job.env={A: \"1\", B: 'x: y'}",
                                       "limits.total=90s",
                                       NULL};
    for (size_t i = 0; i < TYPED; i++) {
        struct tried t = make(typed[i], NULL);
        struct buf text = {0}, out = {0}, want = {0}, got = {0};
        struct diagnostics d = {0};
        struct scratch set, written;
        generate_text(&t.generated, &text);
        buf_puts(&text, "scenario: one\n");
        assert_true(generate_sets(buf_str(&text), sets, &out, &d));
        scratch_load_bytes(&set, text.data, text.len, sets);
        scratch_load(&written, buf_str(&out));
        if (!set.s || !written.s)
            fail_msg("%s%s\n%s", buf_str(&set.d.out), buf_str(&written.d.out), buf_str(&out));
        scenario_print(set.s, &want);
        scenario_print(written.s, &got);
        assert_string_equal(buf_str(&got), buf_str(&want));
        scratch_drop(&set);
        scratch_drop(&written);
        diagnostics_fini(&d);
        buf_fini(&text);
        buf_fini(&out);
        buf_fini(&want);
        buf_fini(&got);
        arena_fini(&t.arena);
    }
}

static void test_a_set_that_fits_nowhere_is_refused(void **state) {
    (void)state;
    static const char *const sets[] = {"job.run.7=x", NULL};
    struct buf out = {0};
    struct diagnostics d = {0};
    assert_false(generate_sets("job: {run: [a]}\n", sets, &out, &d));
    assert_non_null(strstr(buf_str(&d.out), "--set job.run.7: the list has 1 item"));
    assert_int_equal(out.len, 0);
    diagnostics_fini(&d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_scenario_of_every_command_loads_and_can_be_planned),
        cmocka_unit_test(test_every_fault_makes_a_disaster_of_a_command),
        cmocka_unit_test(test_a_fault_on_the_disk_is_one_on_what_the_job_keeps),
        cmocka_unit_test(test_a_job_that_keeps_nothing_on_a_disk_is_told_so),
        cmocka_unit_test(test_every_fault_on_the_disk_of_a_job_can_be_planned),
        cmocka_unit_test(test_a_job_that_saves_is_killed_meanwhile),
        cmocka_unit_test(test_a_disaster_that_is_asked_for_follows_from_what_the_fault_does),
        cmocka_unit_test(test_the_words_of_the_command_come_back),
        cmocka_unit_test(test_so_many_nodes_that_one_can_be_lost),
        cmocka_unit_test(test_a_spare_node_is_off_until_it_is_needed),
        cmocka_unit_test(test_another_launcher_keeps_the_interpreter_that_was_named),
        cmocka_unit_test(test_what_the_command_leaves_open_is_said),
        cmocka_unit_test(test_the_moment_follows_from_the_undisturbed_run),
        cmocka_unit_test(test_few_steps_are_struck_between_the_first_and_the_last),
        cmocka_unit_test(test_a_job_that_is_too_short_is_told_so),
        cmocka_unit_test(test_limits_follow_unless_they_are_given),
        cmocka_unit_test(test_what_each_costs_is_known_before),
        cmocka_unit_test(test_a_node_that_would_come_too_late_is_not_tried),
        cmocka_unit_test(test_a_node_that_rankrun_would_not_take_in_before_the_end_is_not_tried),
        cmocka_unit_test(test_a_fault_whose_second_part_would_come_too_late_is_not_tried),
        cmocka_unit_test(test_what_is_set_stands_in_the_text),
        cmocka_unit_test(test_a_set_that_fits_nowhere_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
