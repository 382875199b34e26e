#include "agent/workers/env.h"

#include "agent/workers/command.h"
#include "agent/workers/output.h"
#include "base/str.h"
#include "base/sys/file.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static struct arena arena;

static int clear(void **state) {
    (void)state;
    unsetenv("OMP_NUM_THREADS");
    unsetenv("PYTHON_EXEC");
    unsetenv("TORCH_NCCL_ASYNC_ERROR_HANDLING");
    arena_fini(&arena);
    return 0;
}

static struct worker_spec spec(void) {
    return (struct worker_spec){
        .run_id = "job-7",
        .round = 12,
        .world_size = 6,
        .group_world_size = 3,
        .restart_count = 2,
        .max_restarts = 4,
        .master_addr = "10.0.0.1",
        .master_port = 31000,
        .group_rank = 1,
        .rank_base = 2,
        .local_world_size = 2,
        .role = "trainer",
        .role_rank_base = 1,
        .role_world_size = 5,
    };
}

/* The value of a variable, NULL when it is not there; more than once is a failure. */
static const char *value(char **env, const char *name) {
    const char *found = NULL;
    size_t n = strlen(name);
    for (; *env; env++)
        if (strncmp(*env, name, n) == 0 && (*env)[n] == '=') {
            assert_null(found);
            found = *env + n + 1;
        }
    return found;
}

static void test_a_worker_is_told_everything_torchrun_tells_it(void **state) {
    (void)state;
    static const struct {
        const char *name, *value;
    } expected[] = {
        {"LOCAL_RANK", "1"},
        {"RANK", "3"},
        {"GROUP_RANK", "1"},
        {"ROLE_RANK", "2"},
        {"ROLE_NAME", "trainer"},
        {"LOCAL_WORLD_SIZE", "2"},
        {"WORLD_SIZE", "6"},
        {"GROUP_WORLD_SIZE", "3"},
        {"ROLE_WORLD_SIZE", "5"},
        {"MASTER_ADDR", "10.0.0.1"},
        {"MASTER_PORT", "31000"},
        {"TORCHELASTIC_RESTART_COUNT", "2"},
        {"TORCHELASTIC_MAX_RESTARTS", "4"},
        {"TORCHELASTIC_RUN_ID", "job-7"},
        {"TORCHELASTIC_USE_AGENT_STORE", "False"},
        {"TORCHELASTIC_ERROR_FILE", "/logs/1/error.json"},
        {"TORCH_NCCL_ASYNC_ERROR_HANDLING", "1"},
        {"OMP_NUM_THREADS", "1"},
        {"RANKRUN_ROUND", "12"},
    };
    struct worker_spec s = spec();
    char **env = env_make(&s, 1, "/logs/1/error.json", &arena);
    size_t n = 0;
    for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++)
        assert_string_equal(value(env, expected[i].name), expected[i].value);
    while (env[n])
        n++;
    assert_int_equal(n, sizeof(expected) / sizeof(expected[0]));
}

/* Whatever can be there is there, once. */
static void test_a_worker_is_told_of_its_token_and_its_timers_too(void **state) {
    (void)state;
    struct worker_spec s = spec();
    s.token = "t0ken";
    s.timer_file = "/tmp/timer";
    s.virtual_local_rank = true;
    char **env = env_make(&s, 1, "", &arena);
    size_t n = 0;
    assert_string_equal(value(env, "RANKRUN_TOKEN"), "t0ken");
    assert_string_equal(value(env, "TORCHELASTIC_TIMER_FILE"), "/tmp/timer");
    assert_string_equal(value(env, "TORCHELASTIC_ERROR_FILE"), "");
    while (env[n])
        n++;
    assert_int_equal(n, 22);
    s.token = s.timer_file = NULL;
    env = env_make(&s, 1, "", &arena);
    assert_null(value(env, "RANKRUN_TOKEN"));
    assert_null(value(env, "TORCHELASTIC_TIMER_FILE"));
}

static void test_what_the_user_has_set_is_left_alone(void **state) {
    (void)state;
    struct worker_spec s = spec();
    setenv("OMP_NUM_THREADS", "8", 1);
    setenv("TORCH_NCCL_ASYNC_ERROR_HANDLING", "3", 1);
    char **env = env_make(&s, 0, "", &arena);
    assert_null(value(env, "OMP_NUM_THREADS"));
    assert_string_equal(value(env, "TORCH_NCCL_ASYNC_ERROR_HANDLING"), "3");
    unsetenv("OMP_NUM_THREADS");
    s.local_world_size = 1;
    assert_null(value(env_make(&s, 0, "", &arena), "OMP_NUM_THREADS"));
}

/* argv joined by spaces. */
static const char *command(bool no_python, bool module, const char *const *words) {
    struct worker_command c = {.words = words, .no_python = no_python, .module = module};
    const char *line = "";
    for (char **w = command_make(&c, 3, &arena); *w; w++)
        line = arena_printf(&arena, "%s%s%s", line, *line ? " " : "", *w);
    return line;
}

#define WORDS(...)                                                                                 \
    (const char *const[]) {                                                                        \
        __VA_ARGS__, NULL                                                                          \
    }

static void test_scripts_get_an_interpreter_and_programs_do_not(void **state) {
    (void)state;
    assert_string_equal(command(false, false, WORDS("train.py", "-x")), "python3 -u train.py -x");
    assert_string_equal(command(false, true, WORDS("pkg.train")), "python3 -u -m pkg.train");
    assert_string_equal(command(true, false, WORDS("train.py")), "train.py");
    assert_string_equal(command(false, false, WORDS("sh", "-c")), "sh -c");
    assert_string_equal(command(false, false, WORDS("/bin/sh")), "/bin/sh");
    assert_string_equal(command(false, false, WORDS("/etc/passwd")), "python3 -u /etc/passwd");
    assert_string_equal(command(false, false, WORDS("/tmp")), "python3 -u /tmp");
    setenv("PYTHON_EXEC", "rankprobe", 1);
    assert_string_equal(command(false, false, WORDS("train.py")), "rankprobe -u train.py");
}

static void test_a_program_can_be_put_before_every_worker(void **state) {
    (void)state;
    setenv("RANKRUN_BEFORE_WORKER", "/opt/profile", 1);
    assert_string_equal(command(true, false, WORDS("train")), "/opt/profile train");
    assert_string_equal(command(false, false, WORDS("a.py")), "/opt/profile python3 -u a.py");
    setenv("RANKRUN_BEFORE_WORKER", "", 1);
    assert_string_equal(command(true, false, WORDS("train")), "train");
    unsetenv("RANKRUN_BEFORE_WORKER");
}

static void test_local_rank_is_put_into_arguments_as_a_template_does(void **state) {
    (void)state;
    assert_string_equal(
        command(true, false, WORDS("$local_rank", "a${local_rank}b", "$local_rank.x")),
        "$local_rank a3b 3.x");
    assert_string_equal(
        command(true, false, WORDS("x", "$$", "$$local_rank", "$local_rankx", "${x}")),
        "x $ $local_rank $local_rankx ${x}");
    assert_string_equal(command(true, false, WORDS("x", "$", "${local_rank", "$HOME")),
                        "x $ ${local_rank $HOME");
}

static char dir[64];
static const uint8_t both[8] = {3, 3, 3, 3, 3, 3, 3, 3};

static int make_dir(void **state) {
    (void)state;
    strcpy(dir, "/tmp/test_env_XXXXXXXX");
    return file_make_temp_dir(dir, NULL);
}

static int remove_dir(void **state) {
    clear(state);
    return file_remove_tree(dir, NULL);
}

static void put(const char *path, const char *text) {
    assert_int_equal(file_write(path, text, strlen(text), NULL), 0);
}

static void put_error_at(const struct output *out, int local_rank, time_t seconds) {
    struct output_files files;
    struct timespec times[2] = {{.tv_sec = seconds}, {.tv_sec = seconds}};
    output_files(out, local_rank, &files);
    put(files.error_json, "{}");
    assert_int_equal(utimensat(AT_FDCWD, files.error_json, times, 0), 0);
}

static void test_the_worker_with_the_oldest_error_file_had_failed_before(void **state) {
    (void)state;
    struct output out;
    struct output_files files;
    struct worker_spec s = spec();
    struct worker_output what = {.log_dir = dir};
    assert_int_equal(output_init(&out, &what, 8, "x", NULL), 0);
    assert_int_equal(output_begin(&out, &s, NULL), 0);
    assert_int_equal(output_failed_before(&out, 0, 8), -1);
    put_error_at(&out, 0, 100);
    assert_int_equal(output_failed_before(&out, 0, 8), -1);
    assert_int_equal(output_failed_before(&out, 1, 8), 0);
    put_error_at(&out, 1, 100); /* at the same time: not before */
    assert_int_equal(output_failed_before(&out, 0, 8), -1);
    put_error_at(&out, 1, 90);
    assert_int_equal(output_failed_before(&out, 0, 8), 1);
    assert_int_equal(output_failed_before(&out, 1, 8), -1);
    output_files(&out, 1, &files);
    put(files.error_json, ""); /* begun, and without a word yet */
    assert_int_equal(output_failed_before(&out, 0, 8), -1);
    output_fini(&out);
}

static void test_a_change_of_members_keeps_the_logs_of_the_last_round(void **state) {
    (void)state;
    struct output out;
    struct output_files files;
    struct worker_spec s = spec();
    char kept[PATH_MAX];
    struct worker_output what = {.log_dir = dir, .to_file = both};
    assert_int_equal(output_init(&out, &what, 8, "a/b", NULL), 0);
    assert_non_null(strstr(out.run_dir, "/a_b_"));
    assert_int_equal(output_begin(&out, &s, NULL), 0);
    output_files(&out, 1, &files);
    assert_non_null(strstr(files.out, "/attempt_2/1/stdout.log"));
    put(files.out, "round 12");
    s.round = 13;
    assert_int_equal(output_begin(&out, &s, NULL), 0);
    output_files(&out, 1, &files);
    assert_false(file_exists(files.out));
    snprintf(kept, sizeof(kept), "%.1000s/attempt_2_round_12/1/stdout.log", out.run_dir);
    assert_true(file_exists(kept));
    s.round = 14;
    s.restart_count = 3;
    assert_int_equal(output_begin(&out, &s, NULL), 0);
    output_files(&out, 0, &files);
    assert_non_null(strstr(files.err, "/attempt_3/0/stderr.log"));
    output_fini(&out);
    assert_true(file_exists(kept));
}

static void test_without_a_log_directory_only_error_files_are_kept_and_removed(void **state) {
    (void)state;
    struct output out;
    struct output_files files;
    struct worker_spec s = spec();
    char text[64], run_dir[PATH_MAX];
    struct worker_output what = {0};
    setenv("TMPDIR", dir, 1);
    assert_int_equal(output_init(&out, &what, 8, "x", NULL), 0);
    unsetenv("TMPDIR");
    assert_int_equal(output_begin(&out, &s, NULL), 0);
    output_files(&out, 0, &files);
    assert_string_equal(files.out, "");
    output_error_text(&out, 0, text, sizeof(text));
    assert_string_equal(text, "");
    put(files.error_json, "{\"message\":\"plain\"}");
    output_error_text(&out, 0, text, sizeof(text));
    assert_string_equal(text, "plain");
    put(files.error_json, "{\"message\":{\"message\":\"ValueError: x\"}}");
    output_error_text(&out, 0, text, sizeof(text));
    assert_string_equal(text, "ValueError: x");
    put(files.error_json, "{\"mess");
    output_error_text(&out, 0, text, sizeof(text));
    assert_string_not_equal(text, "");
    strcpy(run_dir, out.run_dir);
    output_fini(&out);
    assert_false(file_exists(run_dir));
}

static void test_rounds_share_no_error_file_and_survive_a_removed_scratch(void **state) {
    (void)state;
    struct output out;
    struct output_files first, second;
    struct worker_spec s = spec();
    struct worker_output what = {0};
    setenv("TMPDIR", dir, 1);
    assert_int_equal(output_init(&out, &what, 8, "x", NULL), 0);
    unsetenv("TMPDIR");
    assert_int_equal(output_begin(&out, &s, NULL), 0);
    output_files(&out, 0, &first);
    put(first.error_json, "{\"message\":\"of the first\"}");
    s.round++; /* at the same restart count */
    assert_int_equal(output_begin(&out, &s, NULL), 0);
    output_files(&out, 0, &second);
    assert_false(file_exists(second.error_json));
    assert_int_equal(output_failed_before(&out, 1, 8), -1);
    assert_int_equal(file_remove_tree(out.run_dir, NULL), 0);
    s.round++;
    assert_int_equal(output_begin(&out, &s, NULL), 0);
    output_files(&out, 0, &second);
    put(second.error_json, "{}");
    output_fini(&out);
}

static void test_streams_go_where_each_is_told_to(void **state) {
    (void)state;
    static const uint8_t files_of[8] = {STREAM_OUT, 0, STREAM_ERR, 0, 0, 0, 0, 0};
    static const bool hidden[8] = {false, false, true, true, false, false, false, false};
    struct worker_output what = {.to_file = files_of, .hidden = hidden};
    struct output out;
    struct output_files files;
    struct worker_spec s = spec();
    setenv("TMPDIR", dir, 1);
    assert_int_equal(output_init(&out, &what, 8, "x", NULL), 0);
    unsetenv("TMPDIR");
    assert_int_equal(output_begin(&out, &s, NULL), 0);
    assert_non_null(strstr(out.run_dir, "/torchelastic_"));
    output_files(&out, 0, &files);
    assert_non_null(strstr(files.out, "/attempt_2/0/stdout.log"));
    assert_string_equal(files.err, "");
    output_files(&out, 1, &files);
    assert_string_equal(files.out, "");
    output_files(&out, 2, &files);
    assert_string_equal(files.out, "/dev/null");
    assert_non_null(strstr(files.err, "/attempt_2/2/stderr.log"));
    output_files(&out, 3, &files);
    assert_string_equal(files.out, "/dev/null");
    assert_string_equal(files.err, "/dev/null");
    char kept[PATH_MAX];
    strcpy(kept, out.run_dir);
    output_fini(&out);
    assert_true(file_exists(kept));
}

/* Below the folder of the run, letter for letter. */
static void assert_path(const struct output *o, const char *is, const char *below) {
    char must[PATH_MAX];
    snprintf(must, sizeof(must), "%.3900s/%s", o->run_dir, below);
    assert_string_equal(is, must);
}

static void assert_run_dir(const struct output *o, const char *above, const char *name) {
    char must[PATH_MAX];
    int n = snprintf(must, sizeof(must), "%s/%s_", above, name);
    assert_int_equal(strncmp(o->run_dir, must, (size_t)n), 0);
    assert_int_equal(strlen(o->run_dir), n + 8);
    assert_null(strchr(o->run_dir + n, 'X') ? strstr(o->run_dir, "XXXXXXXX") : NULL);
}

static void test_every_file_has_the_name_that_the_header_promises(void **state) {
    (void)state;
    struct output out;
    struct output_files files;
    char filtered[PATH_MAX], above[PATH_MAX];
    struct worker_spec s = spec();
    struct worker_output what = {.log_dir = dir, .to_file = both};
    assert_int_equal(output_init(&out, &what, 8, "/a/b", NULL), 0);
    assert_run_dir(&out, dir, "_a_b");
    assert_int_equal(output_begin(&out, &s, NULL), 0);
    output_files(&out, 1, &files);
    assert_path(&out, files.out, "attempt_2/1/stdout.log");
    assert_path(&out, files.err, "attempt_2/1/stderr.log");
    assert_path(&out, files.error_json, "attempt_2/1/error.json");
    output_filtered_file(&out, STREAM_OUT, filtered);
    assert_path(&out, filtered, "attempt_2/filtered_stdout.log");
    output_filtered_file(&out, STREAM_ERR, filtered);
    assert_path(&out, filtered, "attempt_2/filtered_stderr.log");
    output_fini(&out);
    assert_string_equal(out.run_dir, "");
    what = (struct worker_output){0};
    setenv("TMPDIR", dir, 1);
    assert_int_equal(output_init(&out, &what, 8, "x", NULL), 0);
    assert_run_dir(&out, dir, "rankrun");
    assert_int_equal(output_begin(&out, &s, NULL), 0);
    output_files(&out, 1, &files);
    assert_path(&out, files.error_json, "round_12_1_error.json");
    assert_string_equal(files.err, "");
    output_fini(&out);
    what.to_file = both;
    assert_int_equal(output_init(&out, &what, 8, "x", NULL), 0);
    unsetenv("TMPDIR");
    str_copy(above, sizeof(above), out.run_dir);
    *strrchr(above, '/') = '\0';
    assert_run_dir(&out, above, "x");
    *strrchr(above, '_') = '\0';
    snprintf(filtered, sizeof(filtered), "%s/torchelastic", dir);
    assert_string_equal(above, filtered);
    output_fini(&out);
}

/* The first n arrays count. */
static void test_what_only_goes_to_the_console_needs_no_folder_that_stays(void **state) {
    (void)state;
    static const uint8_t third[8] = {0, 0, STREAM_ERR};
    struct output out;
    struct worker_output what = {.to_file = third};
    setenv("TMPDIR", dir, 1);
    assert_int_equal(output_init(&out, &what, 2, "x", NULL), 0);
    assert_true(out.scratch);
    output_fini(&out);
    assert_int_equal(output_init(&out, &what, 3, "x", NULL), 0);
    assert_false(out.scratch);
    unsetenv("TMPDIR");
}

/* So deep that the run's folder just finds room, and one letter deeper. */
static void test_a_log_directory_that_is_too_deep_is_refused_and_named(void **state) {
    (void)state;
    struct output out;
    struct err err = {0};
    char deep[PATH_MAX];
    const size_t most = sizeof(out.run_dir) - 1 - strlen("/x_XXXXXXXX");
    size_t n = (size_t)snprintf(deep, sizeof(deep), "%s", dir);
    for (size_t name = 0; n < most; n++, name++)
        deep[n] = name % 200 == 0 && n + 1 < most ? '/' : 'd';
    deep[n] = '\0';
    struct worker_output what = {.log_dir = deep};
    assert_int_equal(output_init(&out, &what, 8, "x", &err), 0);
    assert_int_equal(strlen(out.run_dir), sizeof(out.run_dir) - 1);
    assert_int_equal(output_init(&out, &what, 8, "xy", &err), -ENAMETOOLONG);
    assert_non_null(strstr(err.msg, "log directory "));
    assert_string_equal(out.run_dir, "");
}

static void test_with_a_virtual_local_rank_a_worker_sees_its_own_gpu(void **state) {
    (void)state;
    struct worker_spec s = spec();
    s.virtual_local_rank = true;
    char **env = env_make(&s, 1, "", &arena);
    assert_string_equal(value(env, "LOCAL_RANK"), "0");
    assert_string_equal(value(env, "RANK"), "3");
    assert_string_equal(value(env, "CUDA_VISIBLE_DEVICES"), "1");
    setenv("CUDA_VISIBLE_DEVICES", "4,GPU-7", 1);
    env = env_make(&s, 1, "", &arena);
    assert_string_equal(value(env, "CUDA_VISIBLE_DEVICES"), "GPU-7");
    setenv("CUDA_VISIBLE_DEVICES", "4", 1);
    env = env_make(&s, 1, "", &arena);
    assert_string_equal(value(env, "CUDA_VISIBLE_DEVICES"), "");
    unsetenv("CUDA_VISIBLE_DEVICES");
}

static void test_a_script_can_be_run_by_its_path(void **state) {
    (void)state;
    struct worker_command c = {.words = WORDS("train.py", "--x"), .run_path = true};
    char **argv = command_make(&c, 0, &arena);
    assert_string_equal(argv[2], "-c");
    assert_non_null(strstr(argv[3], "run_path"));
    assert_string_equal(argv[4], "train.py");
    assert_string_equal(argv[5], "--x");
    assert_null(argv[6]);
}

static void test_a_log_directory_of_dev_null_keeps_nothing(void **state) {
    (void)state;
    struct output out;
    struct output_files files;
    struct worker_spec s = spec();
    struct worker_output what = {.log_dir = "/dev/null"};
    assert_int_equal(output_init(&out, &what, 8, "x", NULL), 0);
    assert_int_equal(output_begin(&out, &s, NULL), 0);
    output_files(&out, 0, &files);
    assert_string_equal(files.error_json, "");
    assert_string_equal(files.out, "");
    what.to_file = both;
    output_files(&out, 0, &files);
    assert_string_equal(files.error_json, "");
    assert_string_equal(files.out, "/dev/null");
}

static void test_a_log_directory_that_is_a_file_is_named(void **state) {
    (void)state;
    struct output out;
    struct err err = {0};
    struct worker_output what = {.log_dir = "/etc/passwd"};
    assert_true(output_init(&out, &what, 8, "x", &err) < 0);
    assert_non_null(strstr(err.msg, "/etc/passwd"));
    assert_true(output_check("/etc/passwd/logs", &err) < 0);
    assert_non_null(strstr(err.msg, "--log-dir: "));
    assert_int_equal(output_check("/dev/null", &err), 0);
    assert_int_equal(output_check(NULL, &err), 0);
}

int main(int argc, char **argv) {
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_a_worker_is_told_everything_torchrun_tells_it, clear),
        cmocka_unit_test_teardown(test_a_worker_is_told_of_its_token_and_its_timers_too, clear),
        cmocka_unit_test_teardown(test_what_the_user_has_set_is_left_alone, clear),
        cmocka_unit_test_teardown(test_scripts_get_an_interpreter_and_programs_do_not, clear),
        cmocka_unit_test_teardown(test_a_program_can_be_put_before_every_worker, clear),
        cmocka_unit_test_teardown(test_local_rank_is_put_into_arguments_as_a_template_does, clear),
        cmocka_unit_test_teardown(test_the_worker_with_the_oldest_error_file_had_failed_before,
                                  clear),
        cmocka_unit_test_teardown(test_a_change_of_members_keeps_the_logs_of_the_last_round, clear),
        cmocka_unit_test_teardown(
            test_without_a_log_directory_only_error_files_are_kept_and_removed, clear),
        cmocka_unit_test_teardown(test_rounds_share_no_error_file_and_survive_a_removed_scratch,
                                  clear),
        cmocka_unit_test_teardown(test_streams_go_where_each_is_told_to, clear),
        cmocka_unit_test_teardown(test_every_file_has_the_name_that_the_header_promises, clear),
        cmocka_unit_test_teardown(test_what_only_goes_to_the_console_needs_no_folder_that_stays,
                                  clear),
        cmocka_unit_test_teardown(test_a_log_directory_that_is_too_deep_is_refused_and_named,
                                  clear),
        cmocka_unit_test_teardown(test_with_a_virtual_local_rank_a_worker_sees_its_own_gpu, clear),
        cmocka_unit_test_teardown(test_a_script_can_be_run_by_its_path, clear),
        cmocka_unit_test_teardown(test_a_log_directory_of_dev_null_keeps_nothing, clear),
        cmocka_unit_test_teardown(test_a_log_directory_that_is_a_file_is_named, clear),
    };
    return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
