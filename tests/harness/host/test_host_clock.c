/* The page of a clock that a helper makes on its host, and what it tells of it. */
#include "harness/host/host_clock.h"

#include "base/str.h"
#include "base/sys/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const int64_t hour_ns = 3600000000000;

static const char *programs(void) {
    static char path[4096];
    const char *bin = getenv("BIN");
    return realpath(bin ? bin : "build/bin", path);
}

/* A name that nobody else has, of the kind that helpers have. */
static const char *owner(void) {
    static char name[64];
    snprintf(name, sizeof(name), "1.%d.%lld", (int)getpid(), (long long)clock_monotonic_ns());
    return name;
}

static struct host_clock made(const char *of) {
    struct host_clock c;
    struct err err = {0};
    if (host_clock_make(&c, of, programs(), &err) != 0)
        fail_msg("%s", err.msg);
    return c;
}

/* Asks for the time as a program of the node does. */
static void ask(const struct host_clock *c) {
    char command[8192];
    snprintf(command, sizeof(command), CLOCK_PAGE_VARIABLE "=%s LD_PRELOAD=%s date +%%s >/dev/null",
             c->path, c->object);
    assert_int_equal(system(command), 0);
}

static bool sent(const struct host_clock *c, struct clock_setting *ret_setting,
                 struct clock_told *ret) {
    ARENA_FINI struct arena a = {0};
    BUF_FINI struct buf text = {0};
    struct json_writer w = {.out = &text};
    json_object(&w, NULL);
    host_clock_put(c, &w);
    json_end_object(&w);
    const struct json *m = json_parse(&a, buf_str(&text), text.len, NULL);
    assert_non_null(m);
    return host_clock_take(m, ret_setting, ret);
}

static void test_a_page_is_there_for_every_user_until_its_end(void **state) {
    struct host_clock c = made(owner());
    struct stat st;
    assert_int_equal(stat(c.path, &st), 0);
    assert_int_equal(st.st_mode & 07777, 0666);
    assert_int_equal(host_clock_end(&c), 0);
    assert_int_equal(access(c.path, F_OK), -1);
    assert_int_equal(host_clock_end(&c), 0);
}

static void test_who_outlives_its_owner_takes_the_page_away(void **state) {
    char of[64], another[72];
    TEXTS_FINI struct texts owners = {0}, after = {0};
    str_copy(of, sizeof(of), owner());
    snprintf(another, sizeof(another), "%s7", of);
    struct host_clock c = made(of), other = made(another);
    host_clock_owners(&owners);
    assert_true(texts_has(&owners, of) && texts_has(&owners, another));
    assert_int_equal(host_clock_clear(of), 0);
    host_clock_owners(&after);
    assert_true(!texts_has(&after, of) && texts_has(&after, another));
    assert_int_equal(access(c.path, F_OK), -1);
    assert_int_equal(access(other.path, F_OK), 0);
    assert_int_equal(host_clock_clear(of), 0);
    assert_int_equal(host_clock_end(&other), 0);
    close(c.page);
}

static void test_one_fault_at_a_time_moves_the_clock(void **state) {
    const struct clock_shift shift = {.since_ns = clock_realtime_ns(), .by_ns = hour_ns};
    struct host_clock c = made(owner()), none = HOST_CLOCK_NONE;
    struct err err = {0};
    assert_int_equal(host_clock_shift(&none, &shift, &err), -ENOENT);
    assert_int_equal(host_clock_shift(&c, &shift, &err), 0);
    assert_int_equal(host_clock_shift(&c, &shift, &err), -EBUSY);
    assert_non_null(strstr(err.msg, "by an earlier fault"));
    assert_int_equal(host_clock_shift(&c, NULL, &err), 0);
    assert_int_equal(host_clock_shift(&c, &shift, &err), 0);
    host_clock_end(&c);
}

static void test_what_programs_were_told_arrives_as_it_was_sent(void **state) {
    const struct clock_shift shift = {.since_ns = clock_realtime_ns(), .by_ns = -hour_ns};
    struct host_clock c = made(owner());
    struct clock_setting s;
    struct clock_told t, here;
    ask(&c);
    assert_false(sent(&c, &s, &t)); /* it is right: there is nothing to tell */
    assert_int_equal(host_clock_shift(&c, &shift, NULL), 0);
    assert_true(sent(&c, &s, &t));
    assert_false(t.any); /* set, and nobody was told */
    ask(&c);
    assert_true(sent(&c, &s, &t));
    assert_int_equal(clock_page_told(c.page, 0, &here), 0);
    assert_true(t.any);
    assert_int_equal(clock_ahead_by(&t.least), -hour_ns);
    assert_int_equal(clock_ahead_by(&t.most), -hour_ns);
    assert_memory_equal(&t.first, &here.first, sizeof(t.first));
    assert_memory_equal(&t.last, &here.last, sizeof(t.last));
    assert_string_equal(t.program, "date");
    assert_int_equal(s.generation, 1);
    assert_memory_equal(&s.shift, &shift, sizeof(shift));
    assert_int_equal(host_clock_shift(&c, NULL, NULL), 0);
    assert_false(sent(&c, &s, &t));
    host_clock_end(&c);
}

/* Says that it is wrong, and has set nothing. */
static void test_a_clock_that_nobody_has_set_tells_nobody_anything(void **state) {
    struct host_clock c = made(owner());
    struct clock_setting s;
    struct clock_told t;
    c.shifted = true;
    ask(&c);
    assert_true(sent(&c, &s, &t));
    assert_false(t.any);
    assert_int_equal(s.generation, 0);
    host_clock_end(&c);
}

static void test_half_of_a_message_is_nothing_that_was_told(void **state) {
    static const char *const texts[] = {"{\"clock\":{\"generation\":1,\"by\":5}}",
                                        "{\"clock\":{\"generation\":1,\"first\":[1],\"last\":[1,2],"
                                        "\"least\":[1,2],\"most\":[1,2]}}",
                                        "{\"clock\":{\"generation\":1,\"first\":[1,2],\"last\":[1,"
                                        "2],\"least\":{},\"most\":[1,2]}}"};
    struct clock_setting s;
    struct clock_told t;
    for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++) {
        ARENA_FINI struct arena a = {0};
        assert_true(host_clock_take(json_parse(&a, texts[i], strlen(texts[i]), NULL), &s, &t));
        assert_false(t.any);
    }
    ARENA_FINI struct arena a = {0};
    assert_false(host_clock_take(json_parse(&a, "{\"clock\":7}", 11, NULL), &s, &t));
}

/* ---- whether programs take the object ---- */

static void refused(const char *object, const char *says) {
    char folder[4096], path[4200];
    const char *tmp = getenv("TMPDIR");
    struct err err = {0};
    snprintf(folder, sizeof(folder), "%s/clock-XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/" CLOCK_PRELOAD, folder);
    int fd = object ? open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0755) : -1;
    if (object)
        assert_int_equal(write(fd, object, strlen(object)), strlen(object));
    close(fd);
    assert_int_equal(host_clock_try(owner(), folder, &err), -ENOTSUP);
    if (!strstr(err.msg, says) || !strstr(err.msg, path))
        fail_msg("not what was to be said: %s", err.msg);
    unlink(path);
    rmdir(folder);
}

static void test_a_host_whose_programs_take_the_object_can_have_clocks(void **state) {
    struct err err = {0};
    if (host_clock_try(owner(), programs(), &err) != 0)
        fail_msg("%s", err.msg);
}

static void test_an_object_that_is_not_there_is_named(void **state) {
    refused(NULL, "installed beside rankprobe");
}

static void test_what_the_loader_has_against_it_is_told(void **state) {
    refused("no object", "cannot be preloaded");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_page_is_there_for_every_user_until_its_end),
        cmocka_unit_test(test_who_outlives_its_owner_takes_the_page_away),
        cmocka_unit_test(test_one_fault_at_a_time_moves_the_clock),
        cmocka_unit_test(test_what_programs_were_told_arrives_as_it_was_sent),
        cmocka_unit_test(test_a_clock_that_nobody_has_set_tells_nobody_anything),
        cmocka_unit_test(test_half_of_a_message_is_nothing_that_was_told),
        cmocka_unit_test(test_a_host_whose_programs_take_the_object_can_have_clocks),
        cmocka_unit_test(test_an_object_that_is_not_there_is_named),
        cmocka_unit_test(test_what_the_loader_has_against_it_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
