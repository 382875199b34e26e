/* Who lives in a run directory, told and read again; what is not to be believed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/buf.h"
#include "base/str.h"
#include "base/sys/file.h"
#include "base/sys/process.h"
#include "harness/run/presence.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char dir[300];
static struct folder run;

static int make_dir(void **state) {
    const char *tmp = getenv("TMPDIR");
    (void)state;
    snprintf(dir, sizeof(dir), "%s/presence-XXXXXX", tmp ? tmp : "/tmp");
    return file_make_temp_dir(dir, NULL) || folder_open(&run, dir, NULL);
}

static int remove_dir(void **state) {
    (void)state;
    folder_close(&run);
    return file_remove_tree(dir, NULL);
}

static int find(const char *path) {
    struct folder found = FOLDER_NONE;
    int r = presence_find_run(&found, path, NULL);
    folder_close(&found);
    return r;
}

static void test_what_is_told_is_read_again(void **state) {
    struct arena a = {0};
    struct presence told, read;
    struct presence_process nodes[] = {{"n0", 17, 123456789012345}, {"store", 18, 3}};
    (void)state;
    mark_begin();
    presence_own(&told, true);
    told.nodes = nodes;
    told.nodes_n = 2;
    assert_int_equal(presence_write(&run, &told, NULL), 0);
    assert_int_equal(presence_read(&run, &a, &read, NULL), 0);
    assert_string_equal(read.boot, told.boot);
    assert_string_equal(read.space, told.space);
    assert_true(read.keep);
    assert_string_equal(read.mark, mark_own());
    assert_int_equal(strncmp(read.mark, "RANKQUAKE_MARK=", 15), 0);
    assert_true(presence_is_harness(&read));
    mark_end();
    assert_false(presence_is_harness(&read));
    assert_false(presence_is_orphaned(&read)); /* it lives */
    assert_int_equal(read.harness.pid, getpid());
    assert_int_equal(read.harness.start_ticks, told.harness.start_ticks);
    assert_int_equal(read.nodes_n, 2);
    assert_string_equal(read.nodes[0].name, "n0");
    assert_int_equal(read.nodes[0].start_ticks, 123456789012345);
    assert_string_equal(read.nodes[1].name, "store");
    assert_int_equal(presence_state(&read), PRESENCE_LIVE);
    arena_fini(&a);
}

static void test_what_is_no_run_is_told_from_one_that_goes_on_or_has_ended(void **state) {
    static const char *const signs[] = {"scenario.yaml", "presence.json"};
    char path[500], control[400];
    (void)state;
    assert_int_equal(find("no/such/run"), -ENOENT);
    assert_int_equal(find(dir), -ENOENT);
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, signs[i]);
        assert_int_equal(file_write(path, "x", 1, NULL), 0);
        assert_int_equal(find(dir), 0);
        assert_int_equal(find(path), -ENOENT);
        unlink(path);
    }
    snprintf(control, sizeof(control), "%s/control", dir);
    assert_int_equal(file_make_dirs(control, 0777, NULL), 0);
    assert_int_equal(find(dir), -ENOENT);
    snprintf(path, sizeof(path), "%s/presence.json", control);
    assert_int_equal(file_write(path, "x", 1, NULL), 0);
    assert_int_equal(find(dir), 0);
    file_remove_tree(control, NULL);
}

static void test_nobody_lives_where_nothing_is_told(void **state) {
    struct arena a = {0};
    struct presence p;
    struct err err = {0};
    (void)state;
    assert_int_equal(presence_read(&run, &a, &p, &err), -ENOENT);
    presence_own(&p, false);
    assert_int_equal(presence_write(&run, &p, NULL), 0);
    presence_remove(&run);
    assert_int_equal(presence_read(&run, &a, &p, &err), -ENOENT);
    arena_fini(&a);
}

static void test_the_number_alone_is_nobody(void **state) {
    struct presence p;
    (void)state;
    presence_own(&p, false);
    assert_int_equal(presence_state(&p), PRESENCE_LIVE);
    p.harness.start_ticks++;
    assert_int_equal(presence_state(&p), PRESENCE_OVER);
}

static void test_nobody_survives_a_boot(void **state) {
    struct presence p;
    (void)state;
    presence_own(&p, false);
    p.boot[0] ^= 1;
    assert_int_equal(presence_state(&p), PRESENCE_OVER);
    assert_false(presence_lives(&p, &p.harness));
}

static void test_another_container_is_not_judged(void **state) {
    struct presence p;
    (void)state;
    presence_own(&p, false);
    str_copy(p.space, sizeof(p.space), "pid:[1]");
    assert_int_equal(presence_state(&p), PRESENCE_ELSEWHERE);
}

/* A process of this user, and all that can be known of it from outside. */
static void test_a_process_is_a_runs_by_its_own_mark_and_not_by_what_a_file_says(void **state) {
    static const char *const sleeps[] = {"sleep", "1000", NULL};
    struct process_spawn s = {.argv = sleeps};
    struct process ours, other;
    struct presence p;
    (void)state;
    mark_begin();
    presence_own(&p, false);
    assert_int_equal(process_spawn(&s, &ours, NULL), 0);
    mark_end();
    assert_string_equal(mark_own(), "");
    assert_int_equal(process_spawn(&s, &other, NULL), 0);
    struct presence_process told[] = {{"n0", ours.pid, 0}, {"n1", other.pid, 0}};
    for (int i = 0; i < 2; i++)
        assert_int_equal(process_start_ticks(told[i].pid, &told[i].start_ticks), 0);
    assert_true(presence_is_node(&p, &told[0]));
    assert_true(presence_lives(&p, &told[1]) && !presence_is_node(&p, &told[1]));
    p.mark[20] ^= 1;
    assert_false(presence_is_node(&p, &told[0]));
    p.mark[20] ^= 1;
    told[0].start_ticks--;
    assert_false(presence_is_node(&p, &told[0]));
    const struct process *all[] = {&ours, &other};
    for (int i = 0; i < 2; i++) {
        assert_int_equal(process_signal(all[i], SIGKILL), 0);
        assert_int_equal(process_reap(all[i], -1, NULL), 0);
    }
    process_close(&ours);
    process_close(&other);
}

static void test_only_a_mark_of_a_dead_harness_of_here_makes_orphans(void **state) {
    static const char bits[] = "RANKQUAKE_MARK=00112233445566778899aabbccddeeff";
    unsigned long long space = 0;
    struct presence p;
    uint64_t ticks;
    char boot;
    (void)state;
    presence_own(&p, false);
    assert_int_equal(sscanf(p.space, "pid:[%llu]", &space), 1);
    assert_int_equal(process_start_ticks(getpid(), &ticks), 0);
    p.harness.start_ticks++;
    snprintf(p.mark, sizeof(p.mark), "%s.%llu.%d.%llu", bits, space, (int)getpid(),
             (unsigned long long)ticks);
    assert_false(presence_is_orphaned(&p)); /* the file says it is dead, the mark that it lives */
    snprintf(p.mark, sizeof(p.mark), "%s.%llu.%d.%llu", bits, space + 1, (int)getpid(),
             (unsigned long long)ticks + 1);
    assert_false(presence_is_orphaned(&p));
    snprintf(p.mark, sizeof(p.mark), "%s.%llu.%d.%llu", bits, space, (int)getpid(),
             (unsigned long long)ticks + 1);
    assert_true(presence_is_orphaned(&p));
    boot = p.boot[0], p.boot[0] ^= 1;
    assert_false(presence_is_orphaned(&p));
    p.boot[0] = boot;
    static const char *const wrong[] = {"", "RANKQUAKE_MARK=", "RANKQUAKE_MARK=x.1.2.3",
                                        "TMPDIR=/tmp/x.1.2.3"};
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        str_copy(p.mark, sizeof(p.mark), wrong[i]);
        assert_false(presence_is_orphaned(&p));
        assert_int_equal(mark_harness(p.mark), 0);
    }
}

static void test_a_note_that_is_a_link_is_refused(void **state) {
    struct arena a = {0};
    struct presence p;
    struct err err = {0};
    char path[400];
    (void)state;
    snprintf(path, sizeof(path), "%s/presence.json", dir);
    assert_int_equal(symlink("/etc/hostname", path), 0);
    assert_int_equal(presence_read(&run, &a, &p, &err), -ELOOP);
    assert_non_null(strstr(err.msg, path));
    presence_own(&p, false);
    assert_int_equal(presence_write(&run, &p, &err), -ELOOP);
    arena_fini(&a);
}

/* Cut anywhere, or with any byte changed: refused with the path, or read as something whole. */
static void test_a_damaged_note_is_refused(void **state) {
    struct arena a = {0};
    struct presence p;
    struct buf good = {0};
    char path[400];
    (void)state;
    presence_own(&p, false);
    assert_int_equal(presence_write(&run, &p, NULL), 0);
    snprintf(path, sizeof(path), "%s/presence.json", dir);
    assert_int_equal(file_read(path, 1 << 16, &good, NULL), 0);
    for (size_t i = 0; i + 2 < good.len; i++) {
        struct err err = {0};
        assert_int_equal(file_write(path, good.data, i, NULL), 0);
        assert_int_equal(presence_read(&run, &a, &p, &err), -EBADMSG);
        assert_non_null(strstr(err.msg, path));
    }
    for (size_t i = 0; i + 1 < good.len; i++) {
        good.data[i] ^= 4;
        assert_int_equal(file_write(path, good.data, good.len, NULL), 0);
        if (presence_read(&run, &a, &p, NULL) == 0)
            presence_state(&p);
        good.data[i] ^= 4;
    }
    buf_fini(&good);
    arena_fini(&a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_is_told_is_read_again, make_dir, remove_dir),
        cmocka_unit_test_setup_teardown(test_nobody_lives_where_nothing_is_told, make_dir,
                                        remove_dir),
        cmocka_unit_test(test_the_number_alone_is_nobody),
        cmocka_unit_test_setup_teardown(
            test_what_is_no_run_is_told_from_one_that_goes_on_or_has_ended, make_dir, remove_dir),
        cmocka_unit_test(test_nobody_survives_a_boot),
        cmocka_unit_test(test_another_container_is_not_judged),
        cmocka_unit_test(test_a_process_is_a_runs_by_its_own_mark_and_not_by_what_a_file_says),
        cmocka_unit_test(test_only_a_mark_of_a_dead_harness_of_here_makes_orphans),
        cmocka_unit_test_setup_teardown(test_a_note_that_is_a_link_is_refused, make_dir,
                                        remove_dir),
        cmocka_unit_test_setup_teardown(test_a_damaged_note_is_refused, make_dir, remove_dir),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
