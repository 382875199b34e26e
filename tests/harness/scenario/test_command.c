/* Command lines as they are typed, and what a scenario says of them. */
#include "harness/scenario/command.h"

#include "base/buf.h"
#include "base/str.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

struct scratch {
    struct arena arena;
    struct command c;
    struct err err;
    int code;
};

/* Words are parted by single blanks. */
static struct scratch take(const char *typed) {
    struct scratch x = {0};
    char **words = str_split(&x.arena, typed, ' ', NULL);
    x.code = command_parse(&x.arena, (const char *const *)words, &x.c, &x.err);
    return x;
}

static void assert_words(const char *const *v, const char *wanted) {
    struct buf text = {0};
    for (size_t i = 0; v && v[i]; i++)
        buf_printf(&text, "%s%s", i ? " " : "", v[i]);
    assert_string_equal(buf_str(&text), wanted);
    buf_fini(&text);
}

struct row {
    const char *typed, *launcher, *run, *args, *name;
};

static void test_every_way_to_start_a_job_is_taken_apart(void **state) {
    (void)state;
    static const struct row rows[] = {
        {"torchrun train.py", "torchrun", "train.py", "", "train"},
        {"torchrun train.py --epochs 3", "torchrun", "train.py --epochs 3", "", "train"},
        {"/venv/bin/torchrun --standalone train.py", "/venv/bin/torchrun", "train.py", "", "train"},
        {"python -m torch.distributed.run a/b.py", "python -m torch.distributed.run", "a/b.py", "",
         "b"},
        {"/usr/bin/python3.11 -m torch.distributed.run b.py",
         "/usr/bin/python3.11 -m torch.distributed.run", "b.py", "", "b"},
        {"python3 -u -X dev -m torch.distributed.run b.py",
         "python3 -u -X dev -m torch.distributed.run", "b.py", "", "b"},
        {"python3 -m torch.distributed.launch --use_env b.py",
         "python3 -m torch.distributed.launch", "b.py", "--use_env", "b"},
        {"python3 /venv/bin/torchrun b.py", "python3 /venv/bin/torchrun", "b.py", "", "b"},
        {"uv run torchrun b.py", "uv run torchrun", "b.py", "", "b"},
        {"conda run -n ml torchrun b.py", "conda run -n ml torchrun", "b.py", "", "b"},
        {"uv run python -m torch.distributed.run b.py", "uv run python -m torch.distributed.run",
         "b.py", "", "b"},
        {"uv run b.py torchrun", "", "uv run b.py torchrun", "", "uv"},
        {"rankrun ./job --steps 3", "rankrun", "./job --steps 3", "", "job"},
        {"build/bin/rankrun b.py", "build/bin/rankrun", "b.py", "", "b"},
        {"torchrun -m pkg.train --lr 1", "torchrun", "-m pkg.train --lr 1", "", "pkg"},
        {"torchrun --module pkg.train", "torchrun", "-m pkg.train", "", "pkg"},
        {"torchrun --no-python ./job x", "torchrun", "./job x", "", "job"},
        {"torchrun --no_python ./job.py", "torchrun", "env ./job.py", "", "job"},
        {"torchrun job", "torchrun", "python3 -u job", "", "job"},
        {"rankrun job", "rankrun", "job", "", "job"},
        {"torchrun --tee 3 -- odd.py", "torchrun", "odd.py", "--tee 3", "odd"},
        {"python3 train.py --x", "", "python3 train.py --x", "", "train"},
        {"python3 -m pkg.train", "", "python3 -m pkg.train", "", "pkg"},
        {"python3 -c pass", "", "python3 -c pass", "", "python3"},
        {"./train.py", "", "env ./train.py", "", "train"},
        {"./job --torchrun", "", "./job --torchrun", "", "job"},
        {"sh -c true", "", "sh -c true", "", "sh"},
        {"bash run.sh 1", "", "bash run.sh 1", "", "run"},
        {"torchrun --role r --tee=3 -r 3 -t2 train.py -r", "torchrun", "train.py -r",
         "--role r --tee=3 -r 3 -t2", "train"},
        {"torchrun --log_dir d --monitor-interval=1 train.py", "torchrun", "train.py",
         "--log_dir d --monitor-interval=1", "train"},
        {"torchrun --redirect 3 train.py", "torchrun", "train.py", "--redirect 3", "train"},
        {"torchrun train.py --nnodes 7", "torchrun", "train.py --nnodes 7", "", "train"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct scratch x = take(rows[i].typed);
        if (x.code)
            fail_msg("%s: %s", rows[i].typed, x.err.msg);
        assert_words(x.c.launcher, rows[i].launcher);
        assert_words(x.c.run, rows[i].run);
        assert_words(x.c.args, rows[i].args);
        assert_string_equal(x.c.name, rows[i].name);
        arena_fini(&x.arena);
    }
}

static void test_numbers_are_read_in_both_spellings(void **state) {
    (void)state;
    static const char *const typed[] = {
        "torchrun --nnodes=1:4 --nproc-per-node=2 --max-restarts=5 t.py",
        "torchrun --nnodes 1:4 --nproc_per_node 2 --max_restarts 5 t.py",
        "rankrun --nnodes 1:4 --nproc_per_node=2 --max-restarts 5 ./t",
        "python3 -m torch.distributed.run --nn 1:4 --nproc 2 --max-r=5 t.py",
    };
    for (size_t i = 0; i < sizeof(typed) / sizeof(*typed); i++) {
        struct scratch x = take(typed[i]);
        assert_int_equal(x.code, 0);
        assert_true(x.c.has_nnodes);
        assert_int_equal(x.c.min_nodes, 1);
        assert_int_equal(x.c.max_nodes, 4);
        assert_int_equal(x.c.workers, 2);
        assert_int_equal(x.c.max_restarts, 5);
        assert_null(x.c.notes[0]);
        arena_fini(&x.arena);
    }
}

static void test_what_is_not_said_is_left_open(void **state) {
    (void)state;
    struct scratch x = take("torchrun t.py");
    assert_false(x.c.has_nnodes);
    assert_false(x.c.standalone);
    assert_false(x.c.rankrun);
    assert_int_equal(x.c.workers, 0);
    assert_int_equal(x.c.max_restarts, -1);
    assert_null(x.c.backend);
    assert_null(x.c.notes[0]);
    assert_string_equal(x.c.script, "t.py");
    arena_fini(&x.arena);
}

static void test_where_the_nodes_are_is_dropped_and_said(void **state) {
    (void)state;
    struct scratch x = take("torchrun --nnodes 2 --node_rank 0 --master-addr h --master_port 1 "
                            "--rdzv-id 7 --rdzv-endpoint h:29400 t.py");
    assert_int_equal(x.code, 0);
    assert_int_equal(x.c.max_nodes, 2);
    assert_words(x.c.args, "");
    assert_string_equal(x.c.notes[0],
                        "--node-rank, --master-addr, --master-port, --rdzv-id, "
                        "--rdzv-endpoint: left out, the emulated cluster has its own");
    arena_fini(&x.arena);
}

static void test_a_backend_keeps_its_protocol_and_loses_its_place(void **state) {
    (void)state;
    static const struct {
        const char *typed, *backend;
        bool etcd;
    } rows[] = {
        {"torchrun --rdzv-backend c10d t.py", NULL, false},
        {"torchrun --rdzv_backend=etcd-v2 t.py", "etcd-v2", true},
        {"torchrun --rdzv_backend=etcd t.py", "etcd", true},
        {"rankrun --rdzv-backend etcd-v3 t.py", "etcd-v3", true},
        {"rankrun --rdzv-backend embedded t.py", NULL, false},
        {"torchrun --rdzv-backend static t.py", NULL, false},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct scratch x = take(rows[i].typed);
        assert_int_equal(x.code, 0);
        assert_true(str_eq(x.c.backend, rows[i].backend));
        assert_int_equal(x.c.etcd, rows[i].etcd);
        arena_fini(&x.arena);
    }
}

static void test_settings_of_the_rendezvous_become_pairs(void **state) {
    (void)state;
    struct scratch x = take("torchrun --rdzv-conf timeout=5,is_host=1 t.py");
    assert_int_equal(x.c.conf_n, 2);
    assert_string_equal(x.c.conf[0].key, "timeout");
    assert_string_equal(x.c.conf[1].value, "1");
    arena_fini(&x.arena);
}

static void test_variables_in_front_belong_to_the_job(void **state) {
    (void)state;
    static const char *const typed[] = {"env A=b C= torchrun t.py", "A=b C= torchrun t.py"};
    for (size_t i = 0; i < 2; i++) {
        struct scratch x = take(typed[i]);
        assert_int_equal(x.code, 0);
        assert_words(x.c.launcher, "torchrun");
        assert_int_equal(x.c.env_n, 2);
        assert_string_equal(x.c.env[0].key, "A");
        assert_string_equal(x.c.env[0].value, "b");
        assert_string_equal(x.c.env[1].value, "");
        arena_fini(&x.arena);
    }
}

static void test_a_number_that_the_machine_decides_is_said(void **state) {
    (void)state;
    struct scratch x = take("torchrun --nproc-per-node gpu t.py");
    assert_int_equal(x.c.workers, 0);
    assert_non_null(x.c.notes[0]);
    assert_non_null(strstr(x.c.notes[0], "--workers"));
    arena_fini(&x.arena);
}

static void test_what_is_wrong_gets_the_sentence_that_helps(void **state) {
    (void)state;
    static const struct {
        const char *typed, *said;
    } rows[] = {
        {"torchrun", "no script"},
        {"torchrun --nnodes", "needs a value"},
        {"torchrun --nnodes x t.py", "MIN:MAX"},
        {"torchrun --nnodes 3:2 t.py", "MIN:MAX"},
        {"torchrun --nnodes 1:2:3 t.py", "MIN:MAX"},
        {"torchrun --nproc-per-node many t.py", "a number of workers"},
        {"torchrun --nproc-per-node 0 t.py", "a number of workers"},
        {"torchrun --max-restarts -1 t.py", "0 or more"},
        {"torchrun --rdzv-conf a t.py", "KEY=VALUE"},
        {"torchrun --nnode 2 --nodes 3 t.py", "did you mean --nnodes?"},
        {"torchrun --epochs 3 t.py", "stands behind the script"},
        {"torchrun --no-python --module t", "exclude each other"},
        {"torchrun -q t.py", "no option of torchrun"},
        {"torchrun -r", "needs a value"},
        {"rankrun --hosts a,b t.py", "nodes are emulated"},
        {"accelerate launch t.py", "starts workers by itself"},
        {"/usr/bin/mpirun -n 2 ./a", "starts workers by itself"},
        {"env -u A torchrun t.py", "only NAME=value"},
        {"env A=b", "no command"},
        {"torchrun -- --odd.py", "is no program"},
        {"-m train", "is no program"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct scratch x = take(rows[i].typed);
        if (!x.code || !strstr(x.err.msg, rows[i].said))
            fail_msg("%s: %d %s", rows[i].typed, x.code, x.err.msg);
        arena_fini(&x.arena);
    }
}

/* Whatever stands there, it is taken apart or refused: no word is lost, none read twice. */
static void test_any_words_in_any_order_end_well(void **state) {
    (void)state;
    static const char *const words[] = {"torchrun", "--nnodes", "-m",     "--",  "env", "A=b",
                                        "-r",       "python3",  "--tee=", "--n", "-",   "t.py"};
    enum { N = sizeof(words) / sizeof(*words) };
    for (size_t i = 0; i < N * N * N; i++) {
        const char *argv[] = {words[i % N], words[i / N % N], words[i / N / N % N], NULL};
        struct arena a = {0};
        struct command c;
        struct err err = {0};
        int r = command_parse(&a, argv, &c, &err);
        assert_true(r == 0 ? c.run && c.run[0] && *c.name : *err.msg);
        arena_fini(&a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_way_to_start_a_job_is_taken_apart),
        cmocka_unit_test(test_numbers_are_read_in_both_spellings),
        cmocka_unit_test(test_what_is_not_said_is_left_open),
        cmocka_unit_test(test_where_the_nodes_are_is_dropped_and_said),
        cmocka_unit_test(test_a_backend_keeps_its_protocol_and_loses_its_place),
        cmocka_unit_test(test_settings_of_the_rendezvous_become_pairs),
        cmocka_unit_test(test_variables_in_front_belong_to_the_job),
        cmocka_unit_test(test_a_number_that_the_machine_decides_is_said),
        cmocka_unit_test(test_what_is_wrong_gets_the_sentence_that_helps),
        cmocka_unit_test(test_any_words_in_any_order_end_well),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
