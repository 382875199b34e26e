/* Damage: whatever a history holds or lacks, it is judged and told, and nothing breaks. */
#include "tests/harness/judge/checks/planted.h"

#include "harness/judge/checks/check.h"
#include "reports/report.h"

#include <ctype.h>

static char path[128];

static int make_path(void **state) {
    (void)state;
    const char *dir = getenv("TMPDIR");
    snprintf(path, sizeof(path), "%s/rq-damage-XXXXXX", dir ? dir : "/tmp");
    int fd = mkstemp(path);
    if (fd >= 0)
        close(fd);
    return fd < 0;
}

static int remove_path(void **state) {
    (void)state;
    return unlink(path);
}

/* Judges and renders text as the history of that name; what cannot be loaded is left alone. */
static void judge_and_tell(const char *name, const char *text, size_t len, struct verdict *ret) {
    struct scenario s = planted_scenario(name);
    struct history h;
    struct rounds rs;
    FILE *out = fopen(path, "w");
    assert_int_equal(fwrite(text, 1, len, out), len);
    fclose(out);
    *ret = (struct verdict){0};
    if (history_load(&h, path, NULL) < 0)
        return;
    rounds_load(&rs, true, &h);
    struct trial t = {.scenario = &s, .history = &h, .rounds = &rs};
    verdict_judge(ret, &t);
    struct recorded_run run = {
        .dir = "x", .scenario = &s, .history = &h, .rounds = &rs, .verdict = ret};
    struct report_style style = {.width = 40, .color = true, .unicode = true};
    for (size_t i = 0; reports[i]; i++) {
        struct buf told = {0};
        assert_int_equal(reports[i]->render(&run, &style, &told, NULL), 0);
        buf_fini(&told);
    }
    rounds_fini(&rs);
    history_fini(&h);
}

static void test_a_history_may_end_anywhere(void **state) {
    (void)state;
    static const char *const names[] = {"worker-killed", "node-powered-off", "gpu-worker-killed"};
    for (size_t n = 0; n < sizeof(names) / sizeof(*names); n++) {
        struct buf text = {0};
        struct verdict v;
        read_text(&text, names[n]);
        size_t first = strcspn(buf_str(&text), "\n") + 1;
        for (size_t len = first; len < text.len; len += 97) {
            judge_and_tell(names[n], buf_str(&text), len, &v);
            if (v.exit_code != 3)
                fail_msg("%s, cut at byte %zu: exit code %d", names[n], len, v.exit_code);
        }
        buf_fini(&text);
    }
}

/* What was not seen because the history stops was not seen because nobody looked: only what it
 * shows is judged. */
static void test_what_a_cut_history_does_not_show_is_unknown(void **state) {
    (void)state;
    static const char *const names[] = {"worker-killed", "node-powered-off", "gpu-worker-killed",
                                        "printed-steps"};
    for (size_t n = 0; n < sizeof(names) / sizeof(*names); n++) {
        struct buf text = {0};
        struct verdict v;
        read_text(&text, names[n]);
        const char *all = buf_str(&text);
        for (const char *end = strchr(all, '\n') + 1; *end; end = strchr(end, '\n') + 1) {
            judge_and_tell(names[n], all, (size_t)(end - all), &v);
            for (size_t i = 0; i < v.n; i++)
                if (v.v[i].status == FINDING_FAIL && v.v[i].class != CLASS_HARNESS)
                    fail_msg("%s, cut at byte %zu: %s: %s", names[n], (size_t)(end - all),
                             v.v[i].check, v.v[i].seen);
        }
        buf_fini(&text);
    }
}

static void test_any_line_may_be_missing(void **state) {
    (void)state;
    struct buf text = {0};
    struct verdict v;
    read_text(&text, "node-powered-off");
    const char *second = strchr(buf_str(&text), '\n') + 1;
    for (const char *line = second; *line; line = strchr(line, '\n') + 1) {
        const char *after = strchr(line, '\n') + 1;
        struct buf rest = {0};
        buf_put(&rest, text.data, (size_t)(line - text.data));
        buf_puts(&rest, after);
        judge_and_tell("node-powered-off", buf_str(&rest), rest.len, &v);
        assert_int_not_equal(v.n, 0);
        assert_int_equal(v.exit_code, 3); /* its number is missed, whatever it was */
        buf_fini(&rest);
    }
    buf_fini(&text);
}

/* Every number of the history, one after the other, becomes one that nobody has thought of. */
static void test_any_number_may_be_absurd(void **state) {
    (void)state;
    static const char *const absurd[] = {"-1", "9223372036854775807", "70000", "1e300", "null"};
    struct buf text = {0};
    struct verdict v;
    size_t turn = 0;
    read_text(&text, "gpu-worker-killed");
    const char *all = buf_str(&text);
    for (const char *at = strchr(all, '\n'); *at;) {
        size_t digits = strspn(at, "0123456789");
        if (!digits || isalpha((unsigned char)at[-1]) || strncmp(at - 6, "\"seq\":", 6) == 0) {
            at += digits ? digits : 1;
            continue;
        }
        struct buf changed = {0};
        buf_put(&changed, all, (size_t)(at - all));
        buf_puts(&changed, absurd[turn++ % (sizeof(absurd) / sizeof(*absurd))]);
        buf_puts(&changed, at + digits);
        judge_and_tell("gpu-worker-killed", buf_str(&changed), changed.len, &v);
        buf_fini(&changed);
        at += digits;
    }
    assert_true(turn > 400);
    buf_fini(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_history_may_end_anywhere),
        cmocka_unit_test(test_what_a_cut_history_does_not_show_is_unknown),
        cmocka_unit_test(test_any_line_may_be_missing),
        cmocka_unit_test(test_any_number_may_be_absurd),
    };
    return cmocka_run_group_tests(tests, make_path, remove_path);
}
