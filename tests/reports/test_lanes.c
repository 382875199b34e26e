/* Lanes: a run for whoever watches it, as a frame of any size and as an object. */
#include "tests/harness/judge/checks/planted.h"

#include "reports/lanes.h"
#include "reports/page.h"

static struct lanes *watched(const char *history, struct history *h) {
    static const struct edit none[1];
    planted_load(h, history, none);
    struct lanes *l = lanes_new(true);
    history_each(r, h) lanes_record(l, r);
    return l;
}

static void test_a_lane_for_each_rank_shows_who_died_and_how_far_it_came(void **state) {
    (void)state;
    struct history h;
    struct lanes *l = watched("worker-killed", &h);
    BUF_FINI struct buf text = {0};
    lanes_frame(l, &(struct report_style){.width = 80}, 40, &text);
    assert_non_null(strstr(buf_str(&text), "worker-killed, seed"));
    assert_non_null(strstr(buf_str(&text), "rank 0"));
    assert_non_null(strstr(buf_str(&text), "rank 1"));
    assert_null(strstr(buf_str(&text), "rank 2"));
    assert_non_null(strstr(buf_str(&text), "step 8"));
    assert_non_null(strstr(buf_str(&text), "worker-kill on"));
    assert_non_null(strstr(buf_str(&text), "struck"));
    assert_non_null(strchr(strstr(buf_str(&text), "rank 0"), 'x'));
    assert_true(lanes_over(l));
    lanes_free(l);
    history_fini(&h);
}

static void fits(const struct lanes *l, int width, int rows) {
    BUF_FINI struct buf text = {0};
    int lines = 0;
    lanes_frame(l, &(struct report_style){.width = width}, rows, &text);
    for (char *at = text.data, *end; at && (end = strchr(at, '\n')); at = end + 1, lines++) {
        *end = '\0';
        if (page_columns(at) > width)
            fail_msg("%d columns, %d rows: %s", width, rows, at);
    }
    if (lines > rows)
        fail_msg("%d columns, %d rows: %d lines", width, rows, lines);
}

static void test_a_frame_fits_into_any_terminal(void **state) {
    (void)state;
    struct history h;
    struct lanes *l = watched("node-powered-off", &h);
    for (int width = 20; width < 130; width += 7)
        for (int rows = 0; rows < 40; rows++)
            fits(l, width, rows);
    lanes_free(l);
    history_fini(&h);
}

static void test_the_object_has_all_lives_of_a_rank(void **state) {
    (void)state;
    struct history h;
    struct err err;
    ARENA_FINI struct arena a = {0};
    BUF_FINI struct buf text = {0};
    struct lanes *l = watched("worker-killed", &h);
    lanes_object(l, &text);
    const struct json *j = json_parse(&a, text.data, text.len, &err);
    assert_non_null(j);
    const struct json *lane = json_first(json_get(j, "lanes"));
    assert_int_equal(json_get(j, "lanes")->length, 2);
    assert_int_equal(json_get(lane, "lives")->length, 2);
    assert_int_equal(json_get_i64(json_first(json_get(lane, "lives")), "round", 0), 1);
    assert_string_equal(json_get_string(json_first(json_get(j, "faults")), "fault", ""),
                        "worker-kill");
    assert_true(json_get_bool(j, "over", false));
    lanes_free(l);
    history_fini(&h);
}

static void test_before_anything_has_happened_there_is_a_frame(void **state) {
    (void)state;
    struct lanes *l = lanes_new(true);
    BUF_FINI struct buf text = {0}, object = {0};
    lanes_frame(l, &(struct report_style){.width = 80}, 24, &text);
    lanes_object(l, &object);
    assert_false(lanes_over(l));
    lanes_free(l);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_lane_for_each_rank_shows_who_died_and_how_far_it_came),
        cmocka_unit_test(test_a_frame_fits_into_any_terminal),
        cmocka_unit_test(test_the_object_has_all_lives_of_a_rank),
        cmocka_unit_test(test_before_anything_has_happened_there_is_a_frame),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
