/* A child that answers, one that hangs and one that dies. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/outcall.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static int inherited = -1;

static void *begin(void) {
    static int count;
    return &count;
}

static void answer(void *state, const char *question, struct buf *ret) {
    int *count = state;
    ++*count;
    if (str_eq(question, "hang"))
        pause();
    if (str_eq(question, "die"))
        _exit(3);
    if (str_eq(question, "inherited"))
        buf_puts(ret, fcntl(inherited, F_GETFD) < 0 ? "closed" : "open");
    else if (str_eq(question, "much"))
        for (int i = 0; i < 300000; i++)
            buf_puts(ret, "0123456789");
    else
        buf_printf(ret, "%d %s", *count, question);
}

static const struct outcall_work work = {begin, answer};
static const int64_t LONG_NS = 60000000000;

static void assert_answers(struct outcall *a, const char *question, const char *expected) {
    struct buf said = {0};
    struct err err;
    if (outcall_ask(a, question, LONG_NS, &said, &err) != 0)
        fail_msg("%s: %s", question, err.msg);
    assert_string_equal(buf_str(&said), expected);
    buf_fini(&said);
}

static void test_questions_are_answered_in_turn_by_one_child(void **state) {
    (void)state;
    struct outcall a = OUTCALL_NONE;
    struct buf said = {0};
    int null = open("/dev/null", O_RDONLY);
    inherited = fcntl(null, F_DUPFD, 50);
    assert_int_equal(outcall_open(&a, &work, NULL), 0);
    assert_answers(&a, "one", "1 one");
    assert_answers(&a, "", "2 ");
    assert_answers(&a, "inherited", "closed");
    assert_int_equal(outcall_ask(&a, "much", LONG_NS, &said, NULL), 0);
    assert_int_equal(said.len, 3000000);
    outcall_close(&a);
    assert_int_equal(a.child.pid, 0);
    buf_fini(&said);
    close(inherited);
    close(null);
}

static void test_a_child_that_hangs_is_given_up_and_one_that_died_is_told(void **state) {
    (void)state;
    static const struct {
        const char *question;
        int code;
        int64_t budget_ns;
        const char *sentence;
    } rows[] = {{"hang", -ETIME, 50000000, "no answer within 0 s"},
                {"die", -EPIPE, LONG_NS, "whoever was to answer has died"}};
    for (size_t i = 0; i < 2; i++) {
        struct outcall a = OUTCALL_NONE;
        struct buf said = {0};
        struct err err = {0};
        assert_int_equal(outcall_open(&a, &work, NULL), 0);
        assert_answers(&a, "x", "1 x");
        assert_int_equal(outcall_ask(&a, rows[i].question, rows[i].budget_ns, &said, &err),
                         rows[i].code);
        assert_string_equal(err.msg, rows[i].sentence);
        assert_int_equal(outcall_ask(&a, "again", LONG_NS, &said, &err), -EPIPE);
        outcall_close(&a);
        buf_fini(&said);
    }
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_questions_are_answered_in_turn_by_one_child),
        cmocka_unit_test(test_a_child_that_hangs_is_given_up_and_one_that_died_is_told),
    };
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
