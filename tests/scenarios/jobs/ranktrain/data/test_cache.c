#include "scenarios/jobs/ranktrain/data/cache.h"

#include "base/sys/file.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

static char place[64];
static int made;

static int make_word(int fd, const void *arg, struct err *err) {
    __atomic_add_fetch(&made, 1, __ATOMIC_RELAXED);
    return file_write_all(fd, arg, strlen(arg), err);
}

static int make_nothing(int fd, const void *arg, struct err *err) {
    (void)file_write_all(fd, arg, 3, NULL);
    return err_say(err, -EBADMSG, "there is nothing to make");
}

static int setup(void **state) {
    (void)state;
    snprintf(place, sizeof(place), "/tmp/test-cache-XXXXXX");
    made = 0;
    return mkdtemp(place) ? setenv("XDG_CACHE_HOME", place, 1) : -1;
}

static int teardown(void **state) {
    (void)state;
    char command[128];
    snprintf(command, sizeof(command), "rm -rf %s", place);
    return system(command);
}

static void assert_holds(int fd, const char *word) {
    char text[32] = {0};
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, text, sizeof(text) - 1, 0), strlen(word));
    assert_string_equal(text, word);
    close(fd);
}

static void test_a_file_is_made_once(void **state) {
    (void)state;
    struct err err;
    for (int i = 0; i < 3; i++)
        assert_holds(cache_open("name", make_word, "word", &err), "word");
    assert_int_equal(made, 1);
    assert_holds(cache_open("other", make_word, "words", &err), "words");
}

static void *open_it(void *ret) {
    *(int *)ret = cache_open("name", make_word, "word", NULL);
    return NULL;
}

static void test_of_several_at_once_one_makes_it(void **state) {
    (void)state;
    pthread_t threads[8];
    int fds[8];
    for (int i = 0; i < 8; i++)
        pthread_create(&threads[i], NULL, open_it, &fds[i]);
    for (int i = 0; i < 8; i++) {
        pthread_join(threads[i], NULL);
        assert_holds(fds[i], "word");
    }
    assert_int_equal(made, 1);
}

static void test_what_could_not_be_made_leaves_nothing(void **state) {
    (void)state;
    struct err err;
    assert_int_equal(cache_open("name", make_nothing, "word", &err), -EBADMSG);
    assert_string_equal(err.msg, "there is nothing to make");
    assert_holds(cache_open("name", make_word, "word", &err), "word");
}

static void test_what_an_interrupted_process_left_is_written_over(void **state) {
    (void)state;
    struct err err;
    char path[128];
    snprintf(path, sizeof(path), "%s/rankquake", place);
    mkdir(path, 0755);
    snprintf(path, sizeof(path), "%s/rankquake/.name.0", place);
    int fd = open(path, O_WRONLY | O_CREAT, 0644);
    assert_int_equal(write(fd, "much too long", 13), 13);
    close(fd);
    assert_holds(cache_open("name", make_word, "word", &err), "word");
    assert_int_equal(access(path, F_OK), -1);
}

static void test_without_a_place_it_is_made_in_memory(void **state) {
    (void)state;
    struct err err;
    setenv("XDG_CACHE_HOME", "/proc/self", 1);
    assert_holds(cache_open("name", make_word, "word", &err), "word");
    assert_holds(cache_open("name", make_word, "word", &err), "word");
    assert_int_equal(made, 2);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_a_file_is_made_once, setup, teardown),
        cmocka_unit_test_setup_teardown(test_of_several_at_once_one_makes_it, setup, teardown),
        cmocka_unit_test_setup_teardown(test_what_could_not_be_made_leaves_nothing, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(test_what_an_interrupted_process_left_is_written_over,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(test_without_a_place_it_is_made_in_memory, setup, teardown),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
