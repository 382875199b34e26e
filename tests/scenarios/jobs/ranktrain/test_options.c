#include "scenarios/jobs/ranktrain/options.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static const char *const variables[] = {
    "RANK",          "WORLD_SIZE",          "MASTER_ADDR",
    "MASTER_PORT",   "LOCAL_RANK",          "LOCAL_WORLD_SIZE",
    "RANKRUN_ROUND", "TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT",
    OPTIONS_VARIABLE};

/* Parses words separated by blanks; environment is such words, NAME=value. */
static int parse(const char *words, const char *environment, struct ranktrain_options *o,
                 struct err *err) {
    static char text[512], set[512];
    char *argv[16] = {"ranktrain"}, *save;
    int argc = 1;
    for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++)
        unsetenv(variables[i]);
    snprintf(set, sizeof(set), "%s", environment);
    for (char *w = strtok_r(set, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
        char *value = strchr(w, '=');
        *value++ = 0;
        setenv(w, value, 1);
    }
    snprintf(text, sizeof(text), "%s", words);
    for (char *w = strtok_r(text, " ", &save); w; w = strtok_r(NULL, " ", &save))
        argv[argc++] = w;
    return options_parse(argc, argv, o, err);
}

static void test_without_launcher_it_is_rank_0_of_1(void **state) {
    (void)state;
    struct ranktrain_options o;
    struct err err;
    assert_int_equal(parse("", "", &o, &err), 0);
    assert_int_equal(o.rank, 0);
    assert_int_equal(o.world, 1);
    assert_int_equal(o.epochs, 3);
    assert_int_equal(o.steps, 0);
    assert_true(o.collective_ns == INT64_C(10000000000));
}

static void test_options_take_values_after_blank_or_equals(void **state) {
    (void)state;
    struct ranktrain_options o;
    struct err err;
    assert_int_equal(parse("--steps=400 --lr 0.1 --compute-ms 2.5 --collective-timeout=500ms "
                           "--checkpoint-dir /x",
                           "RANK=3 WORLD_SIZE=4 MASTER_ADDR=n0 MASTER_PORT=29500 RANKRUN_ROUND=7 "
                           "TORCHELASTIC_RUN_ID=job",
                           &o, &err),
                     0);
    assert_int_equal(o.steps, 400);
    assert_true(o.lr == 0.1);
    assert_int_equal(o.compute_ns, 2500000);
    assert_int_equal(o.collective_ns, 500000000);
    assert_string_equal(o.checkpoint_dir, "/x");
    assert_int_equal(o.rank, 3);
    assert_int_equal(o.round, 7);
    assert_string_equal(o.run_id, "job");
}

static void test_other_programs_names_mean_the_same(void **state) {
    (void)state;
    struct ranktrain_options o;
    struct err err;
    assert_int_equal(parse("--max_steps=7 --eval-freq 5 --train-dir=/x --arch ResNet-18 "
                           "--enable-gpu= --dist-backend ddl --seed 1234 --dist-url env:// /data",
                           "", &o, &err),
                     0);
    assert_int_equal(o.steps, 7);
    assert_int_equal(o.checkpoint_every, 5);
    assert_string_equal(o.checkpoint_dir, "/x");
    assert_string_equal(o.network, "ResNet-18");
    assert_string_equal(o.device, "cuda");
    assert_string_equal(o.dist_backend, "tcp");
    assert_string_equal(o.renamed_backend, "ddl");
    assert_int_equal(o.seed, 1234);
    assert_string_equal(o.data_dir, "/data");
    assert_int_equal(parse("--enable-gpu=false --use_zero=no", "", &o, &err), 0);
    assert_string_equal(o.device, "cpu");
    assert_string_equal(o.mode, "ddp");
}

static void test_enough_gradients_leave_the_other_workers_as_backups(void **state) {
    (void)state;
    struct ranktrain_options o;
    struct err err;
    const char *world = "RANK=0 WORLD_SIZE=9 MASTER_ADDR=x MASTER_PORT=1";
    assert_int_equal(parse("--mode=ps --num-aggregate=5", world, &o, &err), 0);
    assert_int_equal(o.backup_workers, 3);
    assert_true(o.ps_async);
    assert_int_equal(parse("--mode=ps --num_aggregate 8", world, &o, &err), 0);
    assert_int_equal(o.backup_workers, 0);
    assert_false(o.ps_async);
    assert_int_equal(parse("--mode=ps --num-aggregate=9", world, &o, &err), -EINVAL);
    assert_non_null(strstr(err.msg, "--num-aggregate=9: there are 8 workers"));
    assert_int_equal(parse("--num-aggregate=2", world, &o, &err), -EINVAL);
    assert_non_null(strstr(err.msg, "only with --mode=ps"));
}

static void test_the_command_line_wins_over_the_variable(void **state) {
    (void)state;
    struct ranktrain_options o;
    struct err err;
    setenv(OPTIONS_VARIABLE, " --width 2  --steps=3 ", 1);
    char *none[] = {"ranktrain"}, *some[] = {"ranktrain", "--width=4"};
    assert_int_equal(options_parse(1, none, &o, &err), 0);
    assert_int_equal(o.width, 2);
    assert_int_equal(o.steps, 3);
    assert_int_equal(options_parse(2, some, &o, &err), 0);
    assert_int_equal(o.width, 4);
    assert_int_equal(o.steps, 3);
    setenv(OPTIONS_VARIABLE, "--width=wide", 1);
    assert_int_equal(options_parse(1, none, &o, &err), -EINVAL);
    assert_non_null(strstr(err.msg, OPTIONS_VARIABLE ": --width=wide"));
}

static void test_a_server_is_one_rank_more(void **state) {
    (void)state;
    struct ranktrain_options o;
    struct err err;
    assert_int_equal(
        parse("--mode=ps", "RANK=0 WORLD_SIZE=13 MASTER_ADDR=n0 MASTER_PORT=29500", &o, &err), 0);
}

static void test_bad_options_are_refused_with_their_name(void **state) {
    (void)state;
    static const struct {
        const char *words, *environment, *says;
    } bad[] = {
        {"--steps=-1", "", "--steps=-1"},
        {"--steps=1.5", "", "whole number"},
        {"--steps=12x", "", "--steps=12x"},
        {"--steps=nan", "", "--steps=nan"},
        {"--steps", "", "needs a value"},
        {"--steps=", "", "--steps is empty"},
        {"--stops=1", "", "unknown option '--stops=1': did you mean --steps?"},
        {"--max_stesp=1", "", "unknown option '--max_stesp=1': did you mean --max-steps?"},
        {"--frobnicate", "", "unknown option '--frobnicate': see ranktrain --help"},
        {"one two", "", "unexpected argument 'two'"},
        {"-x", "", "unexpected argument '-x'"},
        {"--dataset=imagenet", "", "there are cifar10, fashion-mnist, folder, generated, mnist"},
        {"--max-steps=x", "", "--steps=x"},
        {"--help=1", "", "takes no value"},
        {"--momentum=1", "", "--momentum=1"},
        {"--checkpoint-every=0", "", "--checkpoint-every=0"},
        {"--device=tpu", "", "auto, cpu or cuda"},
        {"--dist-backend=mpi", "", "tcp or nccl"},
        {"--dist-backend=nccl", "", "sums on GPUs"},
        {"--dist-url=tcp://a:1", "", "expected env://"},
        {"", "RANK=0", "WORLD_SIZE is not"},
        {"", "RANK=2 WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=1", "not below WORLD_SIZE"},
        {"", "RANK=x WORLD_SIZE=2", "RANK=x"},
        {"", "WORLD_SIZE=2", "RANK is not"},
        {"", "RANK=0 WORLD_SIZE=1 LOCAL_RANK=1 LOCAL_WORLD_SIZE=1", "contradict each other"},
        {"", "RANK=0 WORLD_SIZE=2 LOCAL_RANK=1 LOCAL_WORLD_SIZE=4", "contradict each other"},
        {"", "RANK=0 WORLD_SIZE=13", "at most 12 workers"},
        {"--mode=ps", "RANK=0 WORLD_SIZE=14", "at most 12 workers"},
        {"--mode=ps --checkpoint-sharded", "RANK=0 WORLD_SIZE=2 MASTER_ADDR=n0 MASTER_PORT=1",
         "rank 0 alone has the state: leave out --checkpoint-sharded"},
        {"--mode=dp --recover=in-process", "", "loses no peer: leave out --recover=in-process"},
        {"--recover=never", "", "expected restart or in-process"},
        {"--grace=0", "", "--grace=0: expected"},
        {"", "RANK=0 WORLD_SIZE=2", "MASTER_ADDR and MASTER_PORT"},
        {"", "RANK=0 WORLD_SIZE=2 MASTER_ADDR=a MASTER_PORT=70000", "MASTER_PORT=70000"},
    };
    for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
        struct ranktrain_options o;
        struct err err = {0};
        assert_int_equal(parse(bad[i].words, bad[i].environment, &o, &err), -EINVAL);
        if (!strstr(err.msg, bad[i].says))
            fail_msg("'%s' does not say '%s'", err.msg, bad[i].says);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_launcher_it_is_rank_0_of_1),
        cmocka_unit_test(test_options_take_values_after_blank_or_equals),
        cmocka_unit_test(test_other_programs_names_mean_the_same),
        cmocka_unit_test(test_enough_gradients_leave_the_other_workers_as_backups),
        cmocka_unit_test(test_the_command_line_wins_over_the_variable),
        cmocka_unit_test(test_a_server_is_one_rank_more),
        cmocka_unit_test(test_bad_options_are_refused_with_their_name),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
