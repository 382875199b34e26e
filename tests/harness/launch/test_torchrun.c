#include "harness/launch/launchers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static const struct pair conf[] = {{.key = "profile", .value = "fast"},
                                   {.key = "join_timeout", .value = "1500ms"}};
static const char *const program[] = {"./job", "--steps=40", NULL};
static const char *const script[] = {"train.py", "--lr=1", NULL};
static const char *const module[] = {"-m", "pkg.train", "--lr=1", NULL};
static const char *const torchrun[] = {"torchrun", NULL};
static const char *const quirks[] = {"--redirects", "1", "--tee", "1", NULL};
static const char *const args[] = {"--monitor_interval", "0.5", NULL};

struct setup {
    struct arena arena;
    struct scenario s;
    struct plan p;
    struct plan_node n;
    struct launch l;
};

static int prepare(void **state) {
    static struct setup u;
    u = (struct setup){
        .s = {.name = "tour",
              .cluster = {.nodes = 3},
              .job = {.min_nodes = 1,
                      .max_nodes = 3,
                      .workers_per_node = 2,
                      .max_restarts = 4,
                      .launcher = "torchrun",
                      .launcher_argv = torchrun}},
        .p = {.endpoint = "n0:29400", .backend = "c10d"},
        .n = {.name = "n1", .index = 1},
        .l = {.bin = "/bin", .disk = "/disk", .run = program},
    };
    u.p.scenario = &u.s;
    u.l.plan = &u.p;
    u.l.node = &u.n;
    *state = &u;
    return 0;
}

static int clean(void **state) {
    arena_fini(&((struct setup *)*state)->arena);
    return 0;
}

static void assert_words(const char *const *argv, const char *expected) {
    struct buf text = {0};
    for (; argv && *argv; argv++)
        buf_printf(&text, "%s%s", text.len ? "|" : "", *argv);
    assert_string_equal(buf_str(&text), expected);
    buf_fini(&text);
}

static void assert_argv(struct setup *u, const char *expected) {
    assert_words(launcher_of(&u->p)->agent_argv(&u->arena, &u->l), expected);
}

static void test_a_program_is_started_behind_the_probe(void **state) {
    assert_argv(*state, "torchrun|--nnodes|1:3|--rdzv_id|tour|--rdzv_backend|c10d|--rdzv_endpoint|"
                        "n0:29400|--nproc_per_node|2|--max_restarts|4|--no_python|/bin/rankprobe|"
                        "./job|--steps=40");
}

static void test_what_the_version_and_the_user_want_stands_before_the_command(void **state) {
    struct setup *u = *state;
    u->p.launcher_quirks = quirks;
    u->l.args = args;
    assert_argv(u, "torchrun|--nnodes|1:3|--rdzv_id|tour|--rdzv_backend|c10d|--rdzv_endpoint|"
                   "n0:29400|--nproc_per_node|2|--max_restarts|4|--redirects|1|--tee|1|"
                   "--monitor_interval|0.5|--no_python|/bin/rankprobe|./job|--steps=40");
}

static void test_times_become_whole_seconds(void **state) {
    struct setup *u = *state;
    u->s.job.rdzv_conf = conf;
    u->s.job.rdzv_conf_n = 2;
    assert_argv(u, "torchrun|--nnodes|1:3|--rdzv_id|tour|--rdzv_backend|c10d|--rdzv_endpoint|"
                   "n0:29400|--nproc_per_node|2|--max_restarts|4|--rdzv_conf|"
                   "profile=fast,join_timeout=2|--no_python|/bin/rankprobe|./job|--steps=40");
}

static void test_a_script_is_started_by_the_launchers_own_python(void **state) {
    struct setup *u = *state;
    u->l.run = script;
    u->p.python.path = "/venv/bin/python3";
    assert_argv(u, "torchrun|--nnodes|1:3|--rdzv_id|tour|--rdzv_backend|c10d|--rdzv_endpoint|"
                   "n0:29400|--nproc_per_node|2|--max_restarts|4|train.py|--lr=1");
    assert_words(launcher_torchrun.agent_env(&u->arena, &u->l),
                 "PYTHON_EXEC=/bin/rankprobe|RANKQUAKE_PYTHON=/venv/bin/python3");
}

static void test_a_module_is_too(void **state) {
    struct setup *u = *state;
    u->l.run = module;
    assert_argv(u, "torchrun|--nnodes|1:3|--rdzv_id|tour|--rdzv_backend|c10d|--rdzv_endpoint|"
                   "n0:29400|--nproc_per_node|2|--max_restarts|4|-m|pkg.train|--lr=1");
    assert_words(launcher_torchrun.agent_env(&u->arena, &u->l),
                 "PYTHON_EXEC=/bin/rankprobe|RANKQUAKE_PYTHON=python3");
}

/* ---- templates ---- */

static void take(struct setup *u, const char *const *words) {
    u->s.job.launcher = "template";
    u->s.job.launcher_argv = words;
    u->p.backend = NULL;
}

static void test_a_template_is_filled_word_by_word(void **state) {
    static const char *const words[] = {"start", "-n{node}/{nodes}", "{address}@{endpoint}",
                                        "--",    "{worker}",         NULL};
    take(*state, words);
    assert_argv(*state, "start|-n1/3|n1@n0:29400|--|/bin/rankprobe|./job|--steps=40");
}

static void test_a_worker_inside_a_word_is_quoted_for_the_shell(void **state) {
    static const char *const words[] = {"sh", "-c", "RANK=${X}{node} exec {worker}", NULL};
    static const char *const run[] = {"say", "it's {here}", NULL};
    struct setup *u = *state;
    take(u, words);
    u->l.run = run;
    assert_argv(u, "sh|-c|RANK=${X}1 exec '/bin/rankprobe' 'say' 'it'\\''s {here}'");
}

static void test_a_worker_alone_behind_sh_c_is_one_text(void **state) {
    static const char *const words[] = {"bash", "-lc", "{worker}", NULL};
    take(*state, words);
    assert_argv(*state, "bash|-lc|'/bin/rankprobe' './job' '--steps=40'");
}

static void test_a_script_in_a_template_gets_its_interpreter(void **state) {
    static const char *const words[] = {"{worker}", NULL};
    struct setup *u = *state;
    take(u, words);
    u->l.run = module;
    assert_argv(u, "/bin/rankprobe|python3|-u|-m|pkg.train|--lr=1");
    assert_words(launcher_of(&u->p)->agent_env(&u->arena, &u->l), "");
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, prepare, clean)
    const struct CMUnitTest tests[] = {
        TEST(test_a_program_is_started_behind_the_probe),
        TEST(test_what_the_version_and_the_user_want_stands_before_the_command),
        TEST(test_times_become_whole_seconds),
        TEST(test_a_script_is_started_by_the_launchers_own_python),
        TEST(test_a_module_is_too),
        TEST(test_a_template_is_filled_word_by_word),
        TEST(test_a_worker_inside_a_word_is_quoted_for_the_shell),
        TEST(test_a_worker_alone_behind_sh_c_is_one_text),
        TEST(test_a_script_in_a_template_gets_its_interpreter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
