#include "harness/scenario/launcher.h"

#include "base/str.h"

#include <string.h>
#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void assert_words(const char *text, const char *expected) {
    struct arena a = {0};
    struct buf joined = {0};
    size_t n = 0;
    const char *const *words = launcher_words(&a, text, &n);
    for (size_t i = 0; words && i < n; i++)
        buf_printf(&joined, "%s%s", i ? "|" : "", words[i]);
    assert_string_equal(words ? buf_str(&joined) : "(none)", expected);
    assert_true(!words || !words[n]);
    buf_fini(&joined);
    arena_fini(&a);
}

static void test_words_are_cut_as_a_shell_does(void **state) {
    (void)state;
    assert_words("", "");
    assert_words("  \t ", "");
    assert_words("torchrun", "torchrun");
    assert_words(" python3  -m\ttorch.distributed.run ", "python3|-m|torch.distributed.run");
    assert_words("sh -c 'a  b' \"c d\"e\\ f", "sh|-c|a  b|c de f");
    assert_words("a '' b", "a||b");
    assert_words("'it'\\''s' \"a\\\"b\" '\\'", "it's|a\"b|\\");
}

static void test_a_quotation_must_end(void **state) {
    (void)state;
    assert_words("sh -c 'a", "(none)");
    assert_words("\"", "(none)");
    assert_words("a\"b c", "(none)");
}

static void assert_launcher(const char *text, const char *expected) {
    struct arena a = {0};
    struct job_spec job = {0};
    size_t n;
    const char *const *words = launcher_words(&a, text, &n);
    assert_null(launcher_take(&a, words, &job));
    assert_string_equal(job.launcher, expected);
    assert_ptr_equal(job.launcher_argv, words);
    arena_fini(&a);
}

static void test_the_program_tells_the_launcher(void **state) {
    (void)state;
    assert_launcher("rankrun", "rankrun");
    assert_launcher("/opt/bin/rankrun", "rankrun");
    assert_launcher("env A=b rankrun", "rankrun");
    assert_launcher("torchrun", "torchrun");
    assert_launcher("/venv/bin/torchrun", "torchrun");
    assert_launcher("/usr/bin/python3 -m torch.distributed.run", "torchrun");
    assert_launcher("env USE_LIBUV=0 python3 nolibuv.py", "torchrun");
    assert_launcher("./start {worker}", "template");
    assert_launcher("sh -c 'RANK={node} {worker}'", "template");
}

static void assert_refused(const char *text, const char *part) {
    struct arena a = {0};
    struct job_spec job = {0};
    size_t n;
    const char *wrong = launcher_take(&a, launcher_words(&a, text, &n), &job);
    assert_non_null(wrong);
    if (!strstr(wrong, part))
        fail_msg("\"%s\" does not say \"%s\"", wrong, part);
    assert_null(job.launcher);
    arena_fini(&a);
}

static void test_what_cannot_be_a_launcher_is_refused(void **state) {
    (void)state;
    assert_refused("srun -N 2", "{worker}");
    assert_refused("/usr/bin/mpirun", "{worker}");
    assert_refused("torchrnu", "did you mean \"torchrun\"?");
    assert_refused("go {nodes}", "must say where the worker's command goes");
    assert_refused("go {rank} {worker}", "there is no {rank}");
}

static void test_an_option_that_has_a_key_is_known_in_both_spellings(void **state) {
    (void)state;
    assert_string_equal(launcher_key_of("--nnodes"), "job.nnodes");
    assert_string_equal(launcher_key_of("--nnodes=1:2"), "job.nnodes");
    assert_string_equal(launcher_key_of("--nproc_per_node"), "job.workers_per_node");
    assert_string_equal(launcher_key_of("--nproc-per-node=2"), "job.workers_per_node");
    assert_non_null(launcher_key_of("--rdzv_endpoint=a:1"));
    assert_non_null(launcher_key_of("-m"));
    assert_null(launcher_key_of("--role"));
    assert_string_equal(launcher_key_of("--rdzv-conf"), "job.rdzv_conf");
    assert_string_equal(launcher_key_of("--nproc=2"), "job.workers_per_node");
    assert_string_equal(launcher_key_of("--max_r"), "job.max_restarts");
    assert_null(launcher_key_of("--redirects"));
    assert_null(launcher_key_of("--monitor_interval"));
    assert_null(launcher_key_of("--log-dir=x"));
    assert_null(launcher_key_of("--rol"));
    assert_null(launcher_key_of("-r"));
    assert_null(launcher_key_of("3"));
    assert_null(launcher_key_of(""));
}

static void test_what_a_launcher_is_told_is_read_as_it_reads_it(void **state) {
    static const char *const said[] = {"--on_node_loss", "replace",   "--role=a=b", "--virtual",
                                       "--standby",      "--on-node", "gang",       "--log-dir"};
    struct pair env[] = {{.key = "PET_EVENT_LOG_HANDLER", .value = "console"},
                         {.key = "PET_STANDALONE", .value = "0"},
                         {.key = "PET_RESTART_COUNTS", .value = "node"},
                         {.key = "PET_ROLE", .value = "c"}};
    struct job_spec job = {.launcher_args = said,
                           .launcher_args_n = 8,
                           .env = env,
                           .env_n = sizeof(env) / sizeof(*env)};
    (void)state;
    assert_string_equal(job_launcher_told(&job, "--on-node-loss"), "gang");
    assert_string_equal(job_launcher_told(&job, "--role"), "a=b");
    assert_string_equal(job_launcher_told(&job, "--virtual-local-rank"), "");
    assert_string_equal(job_launcher_told(&job, "--standby"), "");
    assert_string_equal(job_launcher_told(&job, "--log-dir"), "");
    assert_string_equal(job_launcher_told(&job, "--event-log-handler"), "console");
    assert_null(job_launcher_told(&job, "--standalone"));
    assert_null(job_launcher_told(&job, "--restart-count"));
    assert_null(job_launcher_told(&job, "--rol"));
    job.launcher_args_n = 2;
    assert_string_equal(job_launcher_told(&job, "--on-node-loss"), "replace");
    assert_string_equal(job_launcher_told(&job, "--role"), "c");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_a_launcher_is_told_is_read_as_it_reads_it),
        cmocka_unit_test(test_words_are_cut_as_a_shell_does),
        cmocka_unit_test(test_a_quotation_must_end),
        cmocka_unit_test(test_the_program_tells_the_launcher),
        cmocka_unit_test(test_what_cannot_be_a_launcher_is_refused),
        cmocka_unit_test(test_an_option_that_has_a_key_is_known_in_both_spellings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
