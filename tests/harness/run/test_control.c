/* What the control run's result depends on, and that it is kept and found again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/str.h"
#include "base/sys/file.h"
#include "harness/run/control.h"
#include "harness/run/control_weights.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char bin[64];

static void write_program(const char *name, const char *content) {
    char path[128];
    snprintf(path, sizeof(path), "%s/%s", bin, name);
    assert_int_equal(file_write(path, content, strlen(content), NULL), 0);
    chmod(path, 0755);
}

static int set_up(void **state) {
    (void)state;
    snprintf(bin, sizeof(bin), "/tmp/control_XXXXXX");
    if (!mkdtemp(bin))
        return -1;
    write_program("rankrun", "a");
    write_program("rankprobe", "b");
    write_program("train", "c");
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    return file_remove_tree(bin, NULL);
}

static const char *const run[] = {"train", "--steps=3", NULL};
static const char *const run_seeded[] = {"train", "--seed={seed}", NULL};

static struct scenario scenario(void) {
    struct scenario s = {.file = "a.yaml", .name = "a"};
    s.cluster = (struct cluster_spec){.nodes = 2, .start = 2};
    s.job = (struct job_spec){.min_nodes = 1,
                              .max_nodes = 2,
                              .workers_per_node = 1,
                              .launcher = "rankrun",
                              .rdzv_backend = "embedded",
                              .run = run,
                              .run_n = 2};
    return s;
}

static void key_of(const struct scenario *s, uint64_t seed, char ret[65]) {
    struct plan p = {.scenario = s, .seed = seed};
    assert_int_equal(control_key(&p, bin, ret, NULL), 0);
}

static void test_names_timeline_and_seed_do_not_matter(void **state) {
    (void)state;
    struct scenario s = scenario();
    struct timeline_entry a = {.id = "x"};
    char first[65], second[65];
    key_of(&s, 1, first);
    s.name = "b";
    s.file = "b.yaml";
    s.about = "something else";
    s.timeline = &a;
    s.timeline_n = 1;
    s.expect.model_same = true;
    s.limits.total_ns = 7; /* who waits how long changes nothing of what comes */
    key_of(&s, 2, second);
    assert_string_equal(first, second);
}

/* What a job is asked for it does besides. */
static void test_what_the_job_is_asked_for_matters(void **state) {
    (void)state;
    struct scenario s = scenario();
    char key[3][65];
    key_of(&s, 1, key[0]);
    s.expect.weights = WEIGHTS_OF_CONTROL;
    key_of(&s, 1, key[1]);
    s.expect.epochs = EPOCHS_WHOLE;
    key_of(&s, 1, key[2]);
    assert_string_not_equal(key[0], key[1]);
    assert_string_not_equal(key[1], key[2]);
}

static void put_weights(struct history *h, int64_t step, const char *weights) {
    struct json_writer *w = history_begin(h, step * 1000, SOURCE_JOB, "step");
    json_put_i64(w, "pid", 5);
    json_put_i64(w, "step", step);
    if (weights)
        json_put_string(w, "weights", weights);
    history_end(h);
}

static void test_weights_are_kept_by_their_step_in_lines_of_a_hundred(void **state) {
    (void)state;
    struct history h;
    struct folder folder;
    char dir[256];
    BUF_FINI struct buf text = {0};
    snprintf(dir, sizeof(dir), "%s/weights", bin);
    assert_int_equal(file_make_dirs(dir, 0777, NULL), 0);
    assert_int_equal(history_create(&h, NULL, NULL), 0);
    put_weights(&h, 3, NULL); /* a job that is not asked: nothing is kept */
    assert_int_equal(control_weights_keep(dir, &h, NULL), 0);
    assert_int_equal(folder_open(&folder, dir, NULL), 0);
    assert_true(folder_read(&folder, "weights.jsonl", 1 << 20, &text, NULL) < 0);
    put_weights(&h, 105, "e");
    put_weights(&h, 6, "b");
    put_weights(&h, 5, "a");
    assert_int_equal(control_weights_keep(dir, &h, NULL), 0);
    assert_int_equal(folder_read(&folder, "weights.jsonl", 1 << 20, &text, NULL), 0);
    assert_non_null(strstr(buf_str(&text), "{\"from\":5,\"weights\":[\"a\",\"b\",\"\","));
    assert_non_null(strstr(buf_str(&text), "\n{\"from\":105,\"weights\":[\"e\"]}\n"));
    folder_close(&folder);
    history_fini(&h);
}

static void test_the_seed_matters_where_the_job_uses_it(void **state) {
    (void)state;
    struct scenario s = scenario();
    char first[65], second[65];
    s.job.run = run_seeded;
    key_of(&s, 1, first);
    key_of(&s, 2, second);
    assert_string_not_equal(first, second);
}

static void test_nodes_of_another_kind_have_a_control_run_of_their_own(void **state) {
    (void)state;
    struct scenario s = scenario();
    char first[65], second[65];
    struct plan p = {.scenario = &s, .seed = 1, .isolation = ISOLATION_NAMESPACES};
    assert_int_equal(control_key(&p, bin, first, NULL), 0);
    p.isolation = ISOLATION_PROCESSES;
    assert_int_equal(control_key(&p, bin, second, NULL), 0);
    assert_string_not_equal(first, second);
}

static void test_job_cluster_and_every_program_matter(void **state) {
    (void)state;
    struct scenario s = scenario();
    char first[65], other[65];
    key_of(&s, 1, first);
    s.job.workers_per_node = 2;
    key_of(&s, 1, other);
    assert_string_not_equal(first, other);
    s.job.workers_per_node = 1;
    s.cluster.nodes = 3;
    key_of(&s, 1, other);
    assert_string_not_equal(first, other);
    s.cluster.nodes = 2;
    static const char *const programs[] = {"rankrun", "rankprobe", "train"};
    for (size_t i = 0; i < 3; i++) {
        write_program(programs[i], "changed");
        key_of(&s, 1, other);
        assert_string_not_equal(first, other);
        strcpy(first, other);
    }
}

/* What the nodes see is in their root file system: the script, and the packages it relies on. */
static void test_the_root_file_system_matters_with_what_is_in_it(void **state) {
    (void)state;
    static const char *const script[] = {"/opt/train.py", NULL};
    struct scenario s = scenario();
    struct plan p = {.scenario = &s, .seed = 1};
    char tree[80], dir[120], key[65], before[65];
    s.job.run = script;
    s.job.run_n = 1;
    assert_int_equal(control_key(&p, bin, before, NULL), 0);
    snprintf(tree, sizeof(tree), "%s/tree", bin);
    static const char *const parts[] = {"opt", "var/lib/dpkg"};
    for (size_t i = 0; i < 2; i++) {
        snprintf(dir, sizeof(dir), "%s/%s", tree, parts[i]);
        assert_int_equal(file_make_dirs(dir, 0755, NULL), 0);
    }
    p.rootfs = s.cluster.rootfs = tree;
    static const char *const changes[] = {"", "tree/opt/train.py", "tree/var/lib/dpkg/status"};
    for (size_t i = 0; i < 3; i++) {
        if (*changes[i])
            write_program(changes[i], "changed");
        assert_int_equal(control_key(&p, bin, key, NULL), 0);
        assert_string_not_equal(key, before);
        strcpy(before, key);
    }
}

static void test_a_missing_program_of_ours_is_an_error_that_names_it(void **state) {
    (void)state;
    struct scenario s = scenario();
    struct plan p = {.scenario = &s, .seed = 1};
    struct err err = {0};
    char key[65], path[128];
    snprintf(path, sizeof(path), "%s/rankprobe", bin);
    remove(path);
    assert_true(control_key(&p, bin, key, &err) < 0);
    assert_non_null(strstr(err.msg, "rankprobe"));
}

static void test_what_is_kept_is_found_again(void **state) {
    (void)state;
    struct history h;
    struct rounds rs;
    struct control kept, found;
    char dir[128];
    assert_int_equal(history_create(&h, NULL, NULL), 0);
    rounds_init(&rs, true);
    struct json_writer *w = history_begin(&h, 1, SOURCE_PROBE, "worker-start");
    json_put_i64(w, "pid", 5);
    json_object(w, "env");
    json_put_string(w, "RANK", "0");
    json_put_string(w, "WORLD_SIZE", "1");
    json_end_object(w);
    rounds_feed(&rs, history_end(&h));
    for (int i = 1; i <= 3; i++) {
        w = history_begin(&h, i * 1000, SOURCE_JOB, "step");
        json_put_i64(w, "pid", 5);
        json_put_i64(w, "step", i);
        rounds_feed(&rs, history_end(&h));
    }
    w = history_begin(&h, 1500, SOURCE_HARNESS, "steady");
    history_end(&h);
    w = history_begin(&h, 5000, SOURCE_JOB, "done");
    json_put_i64(w, "pid", 5);
    json_put_string(w, "model", "abc");
    rounds_feed(&rs, history_end(&h));
    w = history_begin(&h, 9500, SOURCE_KERNEL, "worker-exit");
    json_put_i64(w, "pid", 5);
    json_put_i64(w, "code", 0);
    rounds_feed(&rs, history_end(&h));
    snprintf(dir, sizeof(dir), "%s/cache/key", bin);
    assert_true(control_read(dir, &found, NULL) < 0);
    control_take(&h, &rs, &kept);
    assert_int_equal(control_keep(dir, &kept, NULL), 0);
    assert_int_equal(control_read(dir, &found, NULL), 0);
    assert_string_equal(found.model, "abc");
    assert_int_equal(found.step_ns, 1000);
    assert_int_equal(found.first_step, 1);
    assert_int_equal(found.last_step, 3);
    assert_true(found.told);
    assert_int_equal(found.start_ns, 1499);
    assert_int_equal(found.train_ns, 8000);
    assert_int_equal(found.steps_ns, 1500);
    assert_true(found.cached && !kept.cached);
    history_fini(&h);
    rounds_fini(&rs);
}

/* The cache is the caller's, what lies in it may not be. */
static void test_no_link_in_the_cache_is_followed(void **state) {
    (void)state;
    struct control kept = {.step_ns = 5}, found;
    struct err err = {0};
    char home[128], path[256], elsewhere[256], dir[256];
    snprintf(home, sizeof(home), "%s/home", bin);
    setenv("XDG_CACHE_HOME", home, 1);
    snprintf(path, sizeof(path), "%s/rankquake/control", home);
    snprintf(elsewhere, sizeof(elsewhere), "%s/elsewhere", bin);
    assert_int_equal(file_make_dirs(path, 0777, NULL), 0);
    assert_int_equal(file_make_dirs(elsewhere, 0777, NULL), 0);
    assert_int_equal(control_dir("good", dir, sizeof(dir), NULL), 0);
    assert_int_equal(control_keep(dir, &kept, NULL), 0);
    assert_int_equal(control_read(dir, &found, NULL), 0);
    strcat(path, "/key");
    assert_int_equal(symlink(elsewhere, path), 0);
    assert_int_equal(control_dir("key", dir, sizeof(dir), NULL), 0);
    assert_int_equal(control_keep(dir, &kept, &err), -ELOOP);
    assert_non_null(strstr(err.msg, "rankquake/control/key is a symbolic link"));
    assert_int_equal(control_read(dir, &found, &err), -ELOOP);
    assert_int_equal(rmdir(elsewhere), 0); /* still empty */
    unsetenv("XDG_CACHE_HOME");
}

static void put_step(struct history *h, int64_t t_ns, int64_t step) {
    struct json_writer *w = history_begin(h, t_ns, SOURCE_JOB, "step");
    json_put_i64(w, "pid", 5);
    json_put_i64(w, "step", step);
    json_put_string(w, "from", "output");
    history_end(h);
}

/* A disturbed run counts its time from the first step that is printed; undisturbed, steady is said
 * before that, with the workers. */
static void test_printed_steps_are_timed_from_the_first_of_them(void **state) {
    (void)state;
    struct history h;
    struct rounds rs;
    struct control c;
    assert_int_equal(history_create(&h, NULL, NULL), 0);
    history_begin(&h, 1000, SOURCE_HARNESS, "steady");
    history_end(&h);
    put_step(&h, 7000, 1);
    put_step(&h, 11000, 2);
    rounds_init(&rs, true);
    control_take(&h, &rs, &c);
    assert_false(c.told);
    assert_int_equal(c.start_ns, 6000);
    assert_int_equal(c.steps_ns, 4000);
    history_fini(&h);
    rounds_fini(&rs);
}

static void test_a_damaged_result_is_not_used(void **state) {
    (void)state;
    struct control found;
    write_program("control.json", "{\"v\":1,\"model\":");
    assert_true(control_read(bin, &found, NULL) < 0);
    write_program("control.json", "{\"v\":1}"); /* of an earlier version, which kept less */
    assert_true(control_read(bin, &found, NULL) < 0);
    write_program("control.json", "{\"v\":99}");
    assert_true(control_read(bin, &found, NULL) < 0);
}

int main(int argc, char **argv) {
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(test_names_timeline_and_seed_do_not_matter),
        T(test_what_the_job_is_asked_for_matters),
        T(test_weights_are_kept_by_their_step_in_lines_of_a_hundred),
        T(test_the_seed_matters_where_the_job_uses_it),
        T(test_nodes_of_another_kind_have_a_control_run_of_their_own),
        T(test_job_cluster_and_every_program_matter),
        T(test_the_root_file_system_matters_with_what_is_in_it),
        T(test_a_missing_program_of_ours_is_an_error_that_names_it),
        T(test_what_is_kept_is_found_again),
        T(test_no_link_in_the_cache_is_followed),
        T(test_printed_steps_are_timed_from_the_first_of_them),
        T(test_a_damaged_result_is_not_used),
    };
#undef T
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
