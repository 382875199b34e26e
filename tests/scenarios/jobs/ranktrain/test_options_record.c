/* What becomes of command lines of ranktrain: each option with each kind of value, alone and among others, in environments
 * that are drawn, to the last member of what is taken, or the sentence of why not. */
#include "tests/played.h"

#include "scenarios/jobs/ranktrain/data/dataset.h"
#include "scenarios/jobs/ranktrain/options.h"

#include "base/mem.h"

enum { NAMES = 96, WORDS = 8 };

/* ---- what is said ---- */

static const char *text_of(const char *s) {
    return s ? s : "-";
}

static void say_options(const struct ranktrain_options *o) {
    note("  steps %lld samples %lld epochs %lld batch %lld shards %lld width %lld seed %lld scale "
         "%lld",
         (long long)o->steps, (long long)o->samples, (long long)o->epochs, (long long)o->batch_size,
         (long long)o->shards, (long long)o->width, (long long)o->seed, (long long)o->scale_lr);
    note("  checkpoints %s every %lld keep %lld%s%s%s grace %lld", text_of(o->checkpoint_dir),
         (long long)o->checkpoint_every, (long long)o->checkpoint_keep,
         o->checkpoint_async ? " async" : "", o->checkpoint_sharded ? " sharded" : "",
         o->fresh ? " fresh" : "", (long long)o->grace_ns);
    note("  data %s %s loaders %lld%s side %lld; evaluate %lld %lld; log %lld", text_of(o->dataset),
         text_of(o->data_dir), (long long)o->loaders, o->drop_last ? " drop" : "",
         (long long)o->image_size, (long long)o->eval_batch_size, (long long)o->interval_ns,
         (long long)o->log_every);
    note("  device %s %lld %lld, sums %s %s at %s, within %lld, computes %lld", text_of(o->device),
         (long long)o->device_ns, (long long)o->device_memory, text_of(o->dist_backend),
         text_of(o->renamed_backend), text_of(o->dist_url), (long long)o->collective_ns,
         (long long)o->compute_ns);
    note("  %s by %s, mode %s, devices %lld, backups %lld of %lld%s%s, recover %s, %.17g %.17g",
         text_of(o->network), text_of(o->optimizer), text_of(o->mode), (long long)o->devices,
         (long long)o->backup_workers, (long long)o->num_aggregate, o->ps_async ? " async" : "",
         o->overlap ? " overlap" : "", text_of(o->recover), o->lr, o->momentum);
    note("  spawn %lld%s%s%s complete %s", (long long)o->spawn, o->help ? " help" : "",
         o->version ? " version" : "", o->man ? " man" : "", text_of(o->complete));
    if (!o->help && !o->version)
        note("  rank %d of %d, local %d, at %s:%d, round %lld, restarts %lld, run \"%s\"", o->rank,
             o->world, o->local_rank, text_of(o->master_addr), o->master_port, (long long)o->round,
             (long long)o->restart_count, o->run_id);
}

static void parse(int argc, char **argv) {
    struct ranktrain_options o, before;
    struct err err = {0};
    memset(&o, 0x5a, sizeof(o));
    before = o;
    for (int i = 1; i < argc; i++)
        buf_printf(&played.said, "%s ", argv[i]);
    int r = options_parse(argc, argv, &o, &err);
    note(": %d, %d %s", r, err.code, err.msg);
    if (r == 0)
        say_options(&o);
    else
        assert_memory_equal(&o, &before, sizeof(o));
}

/* ---- what is typed ---- */

static const char *const aliases[] = {"arch",        "enable-gpu", "eval-freq", "log-interval",
                                      "max-steps",   "max_steps",  "model-dir", "no-cuda",
                                      "num_workers", "train-dir",  "use-zero",  "workers"};
static const char *const values[] = {
    "0",         "1",         "2",      "7",         "8",       "12",         "24",      "25",
    "63",        "64",        "65",     "72",        "96",      "97",         "768",     "769",
    "999",       "1000",      "1001",   "1024",      "1025",    "4096",       "4097",    "86400",
    "86401",     "99999",     "100000", "100001",    "1000000", "1000001",    "3600000", "3600001",
    "99999999",  "100000000", "1e15",   "1.1e15",    "-1",      "0.5",        "0.001",   "0.0009",
    "0.999999",  "1.5",       "1ms",    "0.9ms",     "3s",      "3sx",        "2ep",     "1.5ep",
    "0ep",       "x",         "",       "nan",       "inf",     "1e999",      "sgd",     "adam",
    "ddp",       "dp",        "fsdp",   "manual",    "ps",      "zero",       "lenet",   "vgg16",
    "ResNet-18", "mnist",     "folder", "auto",      "cpu",     "cuda",       "tcp",     "nccl",
    "gloo",      "ddl",       "env://", "tcp://a:1", "restart", "in-process", "/data",   "false",
    "no",        "False",     "true",   "bash"};
enum { VALUES = sizeof(values) / sizeof(*values), ALIASES = sizeof(aliases) / sizeof(*aliases) };

static struct manual_option options[NAMES];
static char names[NAMES][OPTIONS_NAME];
static size_t options_n;

static void set_environment(void) {
    static const char *const variables[] = {"RANK",
                                            "WORLD_SIZE",
                                            "LOCAL_RANK",
                                            "LOCAL_WORLD_SIZE",
                                            "RANKRUN_ROUND",
                                            "TORCHELASTIC_RESTART_COUNT",
                                            "TORCHELASTIC_RUN_ID",
                                            "MASTER_ADDR",
                                            "MASTER_PORT",
                                            "RANKTRAIN_DATASET",
                                            OPTIONS_VARIABLE};
    for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++)
        unsetenv(variables[i]);
}

/* Of a launcher, or nearly. */
static void draw_environment(void) {
    static const char *const numbers[] = {"0",
                                          "0",
                                          "1",
                                          "1",
                                          "2",
                                          "3",
                                          "12",
                                          "13",
                                          "14",
                                          "65535",
                                          "65536",
                                          "2147483648",
                                          "9223372036854775807",
                                          "9223372036854775808",
                                          "-1",
                                          "x",
                                          "1x",
                                          ""};
    static const char *const named[] = {"LOCAL_RANK", "LOCAL_WORLD_SIZE", "RANKRUN_ROUND",
                                        "TORCHELASTIC_RESTART_COUNT"};
    set_environment();
    if (draw(3) == 0)
        return;
    setenv("RANK", numbers[draw(4) ? draw(4) : draw(18)], 1);
    setenv("WORLD_SIZE", numbers[draw(4) ? 2 + draw(6) : draw(18)], 1);
    if (draw(16) == 0)
        unsetenv("RANK");
    if (draw(16) == 0)
        unsetenv("WORLD_SIZE");
    if (draw(8))
        setenv("MASTER_ADDR", draw(16) ? "n0" : "", 1);
    if (draw(8))
        setenv("MASTER_PORT", draw(6) ? "29500" : numbers[draw(18)], 1);
    for (size_t i = 0; i < 4; i++)
        if (draw(4) == 0)
            setenv(named[i], numbers[draw(2) ? draw(5) : draw(18)], 1);
    if (draw(2))
        setenv("TORCHELASTIC_RUN_ID", draw(4) ? "run" : "", 1);
    if (draw(6) == 0)
        setenv("RANKTRAIN_DATASET", draw(2) ? "generated" : "", 1);
}

/* Each name, in each way in which a value can stand there. */
static void one_of_each(uint64_t seed) {
    char word[128];
    const char *name = seed <= options_n ? names[seed - 1] + 2 : aliases[seed - 1 - options_n];
    set_environment();
    for (int i = 0; i < VALUES; i++) {
        char *equals[] = {(char *)(uintptr_t) "ranktrain", word, NULL};
        char *blank[] = {(char *)(uintptr_t) "ranktrain", word, (char *)(uintptr_t)values[i], NULL};
        snprintf(word, sizeof(word), "--%s=%s", name, values[i]);
        parse(2, equals);
        if (i % 9 == 0) {
            snprintf(word, sizeof(word), "--%s", name);
            parse(3, blank);
        }
    }
    snprintf(word, sizeof(word), "--%s", name);
    parse(2, (char *[]){(char *)(uintptr_t) "ranktrain", word, NULL});
}

/* Several, some of which belong together. */
static void some(uint64_t seed) {
    static const char *const parts[] = {"--mode=ps",
                                        "--mode=dp",
                                        "--mode=zero",
                                        "--ps-async",
                                        "--backup-workers=1",
                                        "--backup-workers=2",
                                        "--num-aggregate=1",
                                        "--num-aggregate=2",
                                        "--num-aggregate=3",
                                        "--devices=2",
                                        "--devices=13",
                                        "--checkpoint-sharded",
                                        "--recover=in-process",
                                        "--spawn=2",
                                        "--spawn=13",
                                        "--spawn=14",
                                        "--shards=4",
                                        "--shards=1",
                                        "--batch-size=8",
                                        "--batch-size=97",
                                        "--batch-size=65",
                                        "--batch-size=770",
                                        "--samples=95",
                                        "--samples=96",
                                        "--samples=97",
                                        "--device=cuda",
                                        "--dist-backend=nccl",
                                        "--dist-backend=gloo",
                                        "--help",
                                        "--version",
                                        "--man",
                                        "/data",
                                        "other",
                                        "-x",
                                        "--mode=manual",
                                        "--steps",
                                        "3",
                                        "--nothing",
                                        "--use-zero=no",
                                        "--use-zero"};
    enum { PARTS = sizeof(parts) / sizeof(*parts) };
    (void)seed;
    for (int k = 0; k < 40; k++) {
        char *argv[WORDS + 2] = {(char *)(uintptr_t) "ranktrain"};
        int argc = 1;
        draw_environment();
        if (draw(3) == 0) { /* a server with one worker or two */
            argv[argc++] = (char *)(uintptr_t)parts[0];
            setenv("RANK", "0", 1);
            setenv("WORLD_SIZE", draw(2) ? "2" : "3", 1);
            setenv("MASTER_ADDR", "n0", 1);
            setenv("MASTER_PORT", "29500", 1);
        }
        for (int n = draw(5); n > 0; n--)
            argv[argc++] = (char *)(uintptr_t)parts[draw(PARTS)];
        if (draw(6) == 0) {
            char text[256];
            snprintf(text, sizeof(text), "%s%s %s", draw(2) ? " " : "", parts[draw(PARTS)],
                     parts[draw(PARTS)]);
            setenv(OPTIONS_VARIABLE, text, 1);
        }
        note("RANK=%s WORLD_SIZE=%s", text_of(getenv("RANK")), text_of(getenv("WORLD_SIZE")));
        parse(argc, argv);
    }
}

static struct play plays[] = {
    {"tests/scenarios/jobs/ranktrain/record/options_each.txt", one_of_each, 0, false, {0}},
    {"tests/scenarios/jobs/ranktrain/record/options_some.txt", some, 250, false, {0}},
};

static void test_what_is_typed_is_on_record(void **state) {
    (void)state;
    played_check(&plays[0]);
    played_check(&plays[1]);
}

/* ---- words of the variable ---- */

static void test_the_variable_has_so_many_words(void **state) {
    (void)state;
    char *none[] = {(char *)(uintptr_t) "ranktrain", NULL};
    for (int n = 31; n <= 33; n++) {
        BUF_FINI struct buf text = {0};
        struct ranktrain_options o;
        struct err err = {0};
        for (int i = 1; i <= n; i++)
            buf_printf(&text, " --steps=%d", i);
        set_environment();
        setenv(OPTIONS_VARIABLE, buf_str(&text), 1);
        int r = options_parse(1, none, &o, &err);
        assert_int_equal(r, n > 32 ? -E2BIG : 0);
        assert_string_equal(err.msg, n > 32 ? OPTIONS_VARIABLE " has more than 32 words" : "");
        if (r == 0)
            assert_int_equal(o.steps, n);
    }
    set_environment();
}

/* ---- the manual ---- */

/* Of whatever length it may be it is the beginning of the whole, and nothing is written behind it. */
static void test_a_manual_is_cut_at_its_length(void **state) {
    (void)state;
    enum { ROOM = 16 * 1024 };
    char *whole = mem_array(char, ROOM), *part = mem_array(char, ROOM);
    options_manual(whole, ROOM);
    size_t n = strlen(whole);
    assert_true(n > 4000 && n < ROOM - 1 && strstr(whole, "--use-zero"));
    for (size_t size = 1; size <= n + 2; size++) {
        memset(part, 0x5a, n + 8);
        options_manual(part, size);
        size_t kept = size <= n ? size - 1 : n;
        assert_memory_equal(part, whole, kept);
        assert_int_equal(part[kept], 0);
        for (size_t i = size; i < n + 8; i++)
            assert_int_equal(part[i], 0x5a);
    }
    free(whole);
    free(part);
}

static void test_a_list_has_as_many_as_are_asked_for(void **state) {
    (void)state;
    for (size_t max = 0; max <= options_n + 1; max++) {
        struct manual_option some_of[NAMES];
        char own[NAMES][OPTIONS_NAME];
        memset(some_of, 0x5a, sizeof(some_of));
        memset(own, 0x5a, sizeof(own));
        size_t n = options_list(some_of, own, max), want = max < options_n ? max : options_n;
        assert_int_equal(n, want);
        for (size_t i = 0; i < want; i++) {
            assert_ptr_equal(some_of[i].name, own[i]);
            assert_string_equal(own[i], names[i]);
            assert_ptr_equal(some_of[i].value, options[i].value);
            assert_ptr_equal(some_of[i].text, options[i].text);
        }
        assert_int_equal(own[want][0], 0x5a);
    }
}

int main(int argc, char **argv) {
    options_n = options_list(options, names, NAMES);
    plays[0].seeds = (int)options_n + ALIASES;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_typed_is_on_record),
        cmocka_unit_test(test_the_variable_has_so_many_words),
        cmocka_unit_test(test_a_manual_is_cut_at_its_length),
        cmocka_unit_test(test_a_list_has_as_many_as_are_asked_for),
    };
    return played_main(argc, argv, plays, tests);
}
