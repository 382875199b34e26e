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
        {"--backup-workers=1", "", "--backup-workers: only with --mode=ps"},
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

/* ---- every option, its bounds, and nothing else ---- */

#define AT(member) offsetof(struct ranktrain_options, member)
#define S          INT64_C(1000000000)
#define WHOLE(m)   .at = AT(m), .size = sizeof(((struct ranktrain_options *)0)->m)

struct taken {
    const char *words;
    size_t at, size; /* of the member */
    int64_t whole;   /* what it is then */
    double real;
    const char *text;
    bool set;
};

static const struct taken taken[] = {
    {"--steps=0", WHOLE(steps)},
    {"--steps=99999999", WHOLE(steps), .whole = 99999999},
    {"--max-steps=7", WHOLE(steps), .whole = 7},
    {"--epochs=1", WHOLE(epochs), .whole = 1},
    {"--epochs=100000", WHOLE(epochs), .whole = 100000},
    {"--samples=0", WHOLE(samples)},
    {"--samples=99999999", WHOLE(samples), .whole = 99999999},
    {"--checkpoint-dir=d", WHOLE(checkpoint_dir), .text = "d"},
    {"--train-dir=d", WHOLE(checkpoint_dir), .text = "d"},
    {"--model_dir d", WHOLE(checkpoint_dir), .text = "d"},
    {"--checkpoint-every=1", WHOLE(checkpoint_every), .whole = 1},
    {"--checkpoint-every=99999999", WHOLE(checkpoint_every), .whole = 99999999},
    {"--checkpoint-every=1ep", WHOLE(checkpoint_every), .whole = -1},
    {"--eval-freq=12ep", WHOLE(checkpoint_every), .whole = -12},
    {"--checkpoint-async", WHOLE(checkpoint_async), .set = true},
    {"--checkpoint-sharded", WHOLE(checkpoint_sharded), .set = true},
    {"--fresh", WHOLE(fresh), .set = true},
    {"--grace=1ms", WHOLE(grace_ns), .whole = S / 1000},
    {"--grace=0.001", WHOLE(grace_ns), .whole = S / 1000},
    {"--grace=3s", WHOLE(grace_ns), .whole = 3 * S},
    {"--grace=86400", WHOLE(grace_ns), .whole = 86400 * S},
    {"--recover=in-process", WHOLE(recover), .text = "in-process"},
    {"--scale-lr=0", WHOLE(scale_lr)},
    {"--scale-lr=100000", WHOLE(scale_lr), .whole = 100000},
    {"--eval-batch-size=1", WHOLE(eval_batch_size), .whole = 1},
    {"--eval-batch-size=1000000", WHOLE(eval_batch_size), .whole = 1000000},
    {"--interval=1ms", WHOLE(interval_ns), .whole = S / 1000},
    {"--interval=86400s", WHOLE(interval_ns), .whole = 86400 * S},
    {"--checkpoint-keep=1", WHOLE(checkpoint_keep), .whole = 1},
    {"--checkpoint-keep=1000000", WHOLE(checkpoint_keep), .whole = 1000000},
    {"--dataset=mnist", WHOLE(dataset), .text = "mnist"},
    {"--data-dir=x", WHOLE(data_dir), .text = "x"},
    {"x", WHOLE(data_dir), .text = "x"},
    {"--image-size=8", WHOLE(image_size), .whole = 8},
    {"--image-size=1024", WHOLE(image_size), .whole = 1024},
    {"--loaders=0", WHOLE(loaders)},
    {"--loaders=64", WHOLE(loaders), .whole = 64},
    {"--num-workers=3", WHOLE(loaders), .whole = 3},
    {"--workers=3", WHOLE(loaders), .whole = 3},
    {"--drop-last", WHOLE(drop_last), .set = true},
    {"--seed=0", WHOLE(seed)},
    {"--seed=1e15", WHOLE(seed), .whole = 1000000000000000},
    {"--mode=zero", WHOLE(mode), .text = "zero"},
    {"--use-zero", WHOLE(mode), .text = "zero"},
    {"--overlap", WHOLE(overlap), .set = true},
    {"--backup-workers=0", WHOLE(backup_workers)},
    {"--num-aggregate=0", WHOLE(num_aggregate)},
    {"--device-memory=0", WHOLE(device_memory)},
    {"--device-memory=1e15", WHOLE(device_memory), .whole = 1000000000000000},
    {"--network=vgg11", WHOLE(network), .text = "vgg11"},
    {"--arch=vgg11", WHOLE(network), .text = "vgg11"},
    {"--width=0", WHOLE(width)},
    {"--width=1024", WHOLE(width), .whole = 1024},
    {"--optimizer=adam", WHOLE(optimizer), .text = "adam"},
    {"--lr=0", WHOLE(lr), .real = 0},
    {"--lr=1000", WHOLE(lr), .real = 1000},
    {"--momentum=0", WHOLE(momentum), .real = 0},
    {"--momentum=0.999999", WHOLE(momentum), .real = 0.999999},
    {"--compute-ms=0", WHOLE(compute_ns)},
    {"--compute-ms=0.25", WHOLE(compute_ns), .whole = 250000},
    {"--compute-ms=3600000", WHOLE(compute_ns), .whole = 3600 * S},
    {"--collective-timeout=1ms", WHOLE(collective_ns), .whole = S / 1000},
    {"--collective-timeout=86400", WHOLE(collective_ns), .whole = 86400 * S},
    {"--log-every=0", WHOLE(log_every)},
    {"--log-interval=99999999", WHOLE(log_every), .whole = 99999999},
    {"--device=auto", WHOLE(device), .text = "auto"},
    {"--device=cuda", WHOLE(device), .text = "cuda"},
    {"--enable-gpu", WHOLE(device), .text = "cuda"},
    {"--enable-gpu=yes", WHOLE(device), .text = "cuda"},
    {"--device-timeout=0.001s", WHOLE(device_ns), .whole = S / 1000},
    {"--device-timeout=86400", WHOLE(device_ns), .whole = 86400 * S},
};

static void put(const struct taken *t, struct ranktrain_options *o) {
    void *at = (char *)o + t->at;
    bool is_real = t->at == AT(lr) || t->at == AT(momentum);
    if (t->size == sizeof(bool))
        *(bool *)at = t->set;
    else if (t->text)
        *(const char **)at = t->text;
    else if (is_real)
        *(double *)at = t->real;
    else
        *(int64_t *)at = t->whole;
}

static bool is_text(size_t at) {
    static const size_t texts[] = {AT(checkpoint_dir), AT(recover), AT(dataset), AT(data_dir),
                                   AT(device),         AT(mode),    AT(network), AT(optimizer)};
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
        if (texts[i] == at)
            return true;
    return false;
}

static void test_an_option_sets_its_own_member_and_no_other(void **state) {
    (void)state;
    struct ranktrain_options unset, o;
    struct err err;
    assert_int_equal(parse("", "", &unset, &err), 0);
    for (size_t i = 0; i < sizeof(taken) / sizeof(*taken); i++) {
        const struct taken *t = &taken[i];
        struct ranktrain_options wanted = unset;
        if (parse(t->words, "", &o, &err) < 0)
            fail_msg("%s: %s", t->words, err.msg);
        if (is_text(t->at)) {
            const char **at = (const char **)(void *)((char *)&o + t->at);
            assert_string_equal(*at, t->text);
            *at = t->text;
        }
        put(t, &wanted);
        if (memcmp(&o, &wanted, sizeof(o)) != 0)
            fail_msg("%s sets something else", t->words);
    }
}

/* Where an option is only for some, with the others that it needs. */
static void test_options_of_one_mode_set_theirs(void **state) {
    (void)state;
    struct ranktrain_options o;
    struct err err;
    const char *world = "RANK=0 WORLD_SIZE=64 MASTER_ADDR=x MASTER_PORT=1";
    assert_int_equal(parse("--mode=dp --devices=64 --shards=64", "", &o, &err), 0);
    assert_int_equal(o.devices, 64);
    assert_int_equal(parse("--mode=dp --devices=1", "", &o, &err), 0);
    assert_int_equal(o.devices, 1);
    assert_int_equal(parse("--mode=ps --shards=64 --ps-async --backup-workers=62", world, &o, &err),
                     0);
    assert_int_equal(o.backup_workers, 62);
    assert_true(o.ps_async);
    assert_int_equal(parse("--mode=ps --shards=64 --num-aggregate=63", world, &o, &err), 0);
    assert_int_equal(o.num_aggregate, 63);
    assert_false(o.ps_async);
    assert_int_equal(parse("--spawn=65 --mode=ps --shards=64", "", &o, &err), 0);
    assert_int_equal(o.spawn, 65);
    assert_int_equal(o.world, 65);
    assert_int_equal(o.rank, 0);
    assert_int_equal(parse("--device=cuda --dist-backend=nccl", "", &o, &err), 0);
    assert_string_equal(o.dist_backend, "nccl");
    assert_null(o.renamed_backend);
    assert_int_equal(parse("--dist-backend=gloo", "", &o, &err), 0);
    assert_string_equal(o.dist_backend, "tcp");
    assert_string_equal(o.renamed_backend, "gloo");
}

static void test_a_batch_is_cut_evenly_into_as_many_parts_as_there_may_be(void **state) {
    (void)state;
    static const struct {
        const char *words;
        int64_t batch, shards;
    } rows[] = {{"", 96, 12},
                {"--shards=1", 8, 1},
                {"--shards=64", 512, 64},
                {"--batch-size=1", 1, 1},
                {"--batch-size=7", 7, 7},
                {"--batch-size=13", 13, 1},
                {"--batch-size=25", 25, 5},
                {"--batch-size=64", 64, 8},
                {"--batch-size=768", 768, 12},
                {"--batch-size=64 --shards=1", 64, 1},
                {"--batch-size=4096 --shards=64", 4096, 64}};
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct ranktrain_options o;
        struct err err;
        assert_int_equal(parse(rows[i].words, "", &o, &err), 0);
        assert_int_equal(o.batch_size, rows[i].batch);
        assert_int_equal(o.shards, rows[i].shards);
    }
}

static void test_the_environment_says_who_this_is(void **state) {
    (void)state;
    struct ranktrain_options o;
    struct err err;
    assert_int_equal(parse("",
                           "RANK=5 WORLD_SIZE=7 LOCAL_RANK=2 LOCAL_WORLD_SIZE=3 MASTER_ADDR=n0 "
                           "MASTER_PORT=65535 RANKRUN_ROUND=9 TORCHELASTIC_RESTART_COUNT=4",
                           &o, &err),
                     0);
    assert_int_equal(o.rank, 5);
    assert_int_equal(o.world, 7);
    assert_int_equal(o.local_rank, 2);
    assert_string_equal(o.master_addr, "n0");
    assert_int_equal(o.master_port, 65535);
    assert_int_equal(o.round, 9);
    assert_int_equal(o.restart_count, 4);
    assert_string_equal(o.run_id, "");
    char id[200] = "TORCHELASTIC_RUN_ID=";
    memset(id + strlen(id), 'i', OPTIONS_RUN_ID + 20);
    assert_int_equal(parse("", id, &o, &err), 0);
    assert_int_equal(strlen(o.run_id), OPTIONS_RUN_ID - 1);
    assert_int_equal(parse("", "", &o, &err), 0);
    assert_true(o.rank == 0 && o.world == 1 && o.local_rank == 0 && o.master_port == 0);
    assert_true(o.round == 0 && o.restart_count == 0 && !o.master_addr && !*o.run_id);
    assert_int_equal(parse("", "LOCAL_RANK=2", &o, &err), 0); /* without the number of them */
    assert_int_equal(o.local_rank, 2);
    assert_int_equal(parse("", "LOCAL_WORLD_SIZE=1", &o, &err), 0);
    assert_int_equal(o.local_rank, 0);
    assert_int_equal(parse("", "MASTER_ADDR=here MASTER_PORT=1", &o, &err), 0);
    assert_int_equal(o.rank, 0);
    assert_int_equal(o.world, 1);
    assert_int_equal(o.master_port, 1);
}

static void test_the_data_are_what_the_variable_says_unless_it_is_said(void **state) {
    (void)state;
    struct ranktrain_options o;
    struct err err;
    setenv("RANKTRAIN_DATASET", "mnist", 1);
    assert_int_equal(parse("", "", &o, &err), 0);
    assert_string_equal(o.dataset, "mnist");
    assert_int_equal(parse("--dataset=cifar10", "", &o, &err), 0);
    assert_string_equal(o.dataset, "cifar10");
    setenv("RANKTRAIN_DATASET", "", 1);
    assert_int_equal(parse("", "", &o, &err), 0);
    assert_string_equal(o.dataset, "fashion-mnist");
    unsetenv("RANKTRAIN_DATASET");
}

/* What is asked for help asks for nothing else, and what is refused sets nothing. */
static void test_help_and_version_are_given_whatever_else_is_said(void **state) {
    (void)state;
    struct ranktrain_options o, before;
    struct err err;
    assert_int_equal(
        parse("--help --mode=none --devices=3 --batch-size=7 --shards=2", "RANK=7", &o, &err), 0);
    assert_true(o.help && !o.version && !o.man);
    assert_int_equal(parse("--version --mode=none", "RANK=7", &o, &err), 0);
    assert_true(o.version && !o.help && !o.man);
    assert_int_equal(parse("--man", "", &o, &err), 0);
    assert_true(o.man && !o.help && !o.version);
    assert_int_equal(parse("--complete=bash", "", &o, &err), 0);
    assert_string_equal(o.complete, "bash");
    memset(&o, 0xa5, sizeof(o));
    before = o;
    assert_int_equal(parse("--steps=x", "", &o, &err), -EINVAL);
    assert_memory_equal(&o, &before, sizeof(o));
    assert_int_equal(parse("--mode=dp --recover=in-process", "", &o, &err), -EINVAL);
    assert_memory_equal(&o, &before, sizeof(o));
}

/* Of as many as there are, or as there is room for. */
static void test_the_list_has_each_option_of_the_manual(void **state) {
    (void)state;
    static struct manual_option list[OPTIONS_MOST], few[OPTIONS_MOST];
    static char names[OPTIONS_MOST][OPTIONS_NAME], text[16384], cut[16384];
    size_t n = options_list(list, names, OPTIONS_MOST);
    options_manual(text, sizeof(text));
    assert_true(n > 40 && n < OPTIONS_MOST);
    const char *at = text;
    for (size_t i = 0; i < n; i++) {
        char line[512], left[64];
        snprintf(left, sizeof(left), "%s%s%s", list[i].name, list[i].value ? "=" : "",
                 list[i].value ? list[i].value : "");
        int length = snprintf(line, sizeof(line), "  %-30s %s\n", left, list[i].text);
        assert_memory_equal(at, line, length);
        at += length;
    }
    assert_memory_equal(at,
                        "\nNames that other programs have for them are taken too, with _ as "
                        "well as -:\n  --arch                         --network\n",
                        120);
    assert_string_equal(at + strlen(at) - 43, "  --workers                      --loaders\n");
    assert_int_equal(options_list(few, names, 3), 3);
    assert_null(few[3].name);
    for (size_t size = 1; size < strlen(text) + 2; size += 97) {
        memset(cut, 'x', sizeof(cut));
        options_manual(cut, size);
        size_t wanted = size - 1 < strlen(text) ? size - 1 : strlen(text);
        assert_int_equal(strlen(cut), wanted);
        assert_memory_equal(cut, text, wanted);
        assert_int_equal(cut[size], 'x');
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
        cmocka_unit_test(test_an_option_sets_its_own_member_and_no_other),
        cmocka_unit_test(test_options_of_one_mode_set_theirs),
        cmocka_unit_test(test_a_batch_is_cut_evenly_into_as_many_parts_as_there_may_be),
        cmocka_unit_test(test_the_environment_says_who_this_is),
        cmocka_unit_test(test_the_data_are_what_the_variable_says_unless_it_is_said),
        cmocka_unit_test(test_help_and_version_are_given_whatever_else_is_said),
        cmocka_unit_test(test_the_list_has_each_option_of_the_manual),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
