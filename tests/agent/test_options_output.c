#include "tests/agent/options_fixture.h"

#include <signal.h>

static void streams(const uint8_t *got, const char *expected) {
    for (size_t i = 0; expected[i]; i++)
        assert_int_equal(got[i], expected[i] - '0');
}

static void test_without_options_everything_is_inherited(void **state) {
    (void)state;
    TAKEN("rankrun --nproc-per-node 3 a.py");
    streams(o.output.to_file, "000");
    streams(o.output.tee, "000");
    assert_null(o.output.hidden);
    assert_null(o.output.prefix);
    assert_null(o.output.out_needles);
}

static void test_a_log_directory_alone_means_files(void **state) {
    (void)state;
    TAKEN("rankrun --nproc-per-node 2 --log-dir logs a.py");
    streams(o.output.to_file, "33");
    TAKEN("rankrun --nproc-per-node 2 --log-dir logs --redirects 1 a.py");
    streams(o.output.to_file, "11");
    TAKEN("rankrun --nproc-per-node 2 --log-dir logs -t 0 a.py");
    streams(o.output.to_file, "00");
    TAKEN("rankrun --nproc-per-node 2 --log-dir /dev/null a.py");
    streams(o.output.to_file, "00");
}

static void test_streams_are_a_number_or_a_map_of_local_ranks(void **state) {
    (void)state;
    TAKEN("rankrun --nproc-per-node 3 -r 3 a.py");
    streams(o.output.to_file, "333");
    TAKEN("rankrun --nproc-per-node 3 --redirects=0:3,2:1,7:2 a.py");
    streams(o.output.to_file, "301");
    TAKEN("rankrun --nproc-per-node 3 -r 2 -t 0:1 a.py");
    streams(o.output.to_file, "322");
    streams(o.output.tee, "100");
    REFUSED("rankrun -r 4 a.py", "--redirects 4: must be 0 (none)");
    REFUSED("rankrun --tee 0:4 a.py", "--tee 0:4");
    REFUSED("rankrun --tee 0:1,2 a.py", "--tee");
    REFUSED("rankrun --tee= a.py", "--tee");
}

static void test_the_environment_gives_them_too(void **state) {
    (void)state;
    setenv("PET_TEE", "3", 1);
    TAKEN("rankrun a.py");
    streams(o.output.tee, "3");
    setenv("PET_TEE", "9", 1);
    REFUSED("rankrun a.py", "PET_TEE in the environment");
    unsetenv("PET_TEE");
    setenv("PET_START_METHOD", "bogus", 1);
    REFUSED("rankrun a.py", "PET_START_METHOD in the environment");
    unsetenv("PET_START_METHOD");
}

static void test_some_ranks_can_be_kept_off_the_console(void **state) {
    (void)state;
    TAKEN("rankrun --nproc-per-node 3 --local-ranks-filter 0,2 a.py");
    assert_false(o.output.hidden[0]);
    assert_true(o.output.hidden[1]);
    assert_false(o.output.hidden[2]);
    REFUSED("rankrun --local-ranks-filter 0,x a.py", "must be local ranks");
}

static void test_a_header_comes_from_the_option_or_the_environment(void **state) {
    (void)state;
    setenv("TORCHELASTIC_LOG_LINE_PREFIX_TEMPLATE", "${rank}|", 1);
    TAKEN("rankrun a.py");
    assert_string_equal(o.output.prefix, "${rank}|");
    TAKEN("rankrun --log-line-prefix-template=<${local_rank}> a.py");
    assert_string_equal(o.output.prefix, "<${local_rank}>");
}

static void test_two_commas_in_a_filter_are_one_of_the_text(void **state) {
    (void)state;
    TAKEN("rankrun -t 3 --duplicate-stdout-filters loss,a,,b --duplicate-stderr-filters=E a.py");
    assert_string_equal(o.output.out_needles[0], "loss");
    assert_string_equal(o.output.out_needles[1], "a,b");
    assert_null(o.output.out_needles[2]);
    assert_string_equal(o.output.err_needles[0], "E");
}

static void test_what_is_shown_must_be_in_files(void **state) {
    (void)state;
    REFUSED("rankrun --tee 3 --log-dir /dev/null a.py", "keeps none");
    TAKEN("rankrun --tee 0 --log-dir /dev/null a.py");
}

static void test_signals_are_named_and_unknown_ones_are_told(void **state) {
    (void)state;
    TAKEN("rankrun a.py");
    assert_true(o.signals & UINT64_C(1) << SIGHUP);
    assert_false(o.signals & UINT64_C(1) << SIGUSR1);
    TAKEN("rankrun --signals-to-handle SIGTERM,SIGUSR1,SIGNONE a.py");
    assert_true(o.signals & UINT64_C(1) << SIGUSR1);
    assert_false(o.signals & UINT64_C(1) << SIGHUP);
    assert_non_null(strstr(o.notices[0], "SIGNONE"));
}

static void test_what_has_no_meaning_here_is_told_and_what_is_wrong_refused(void **state) {
    (void)state;
    TAKEN("rankrun --numa-binding node a.py");
    assert_non_null(strstr(o.notices[0], "--numa-binding node"));
    TAKEN("rankrun --event-log-handler of.ours a.py");
    assert_non_null(strstr(o.notices[0], "--event-log-handler of.ours"));
    assert_false(o.event_log);
    TAKEN("rankrun --event-log-handler console a.py");
    assert_true(o.event_log);
    assert_null(o.notices[0]);
    TAKEN("rankrun --event-log-handler null --logs-specs default a.py");
    assert_null(o.notices[0]);
    TAKEN("rankrun --use-env a.py");
    assert_non_null(strstr(o.notices[0], "--use-env has no effect"));
    TAKEN("rankrun --monitor-interval 0.1 --start-method forkserver a.py");
    REFUSED("rankrun --monitor-interval 0 a.py", "--monitor-interval 0: must be seconds, above 0");
    REFUSED("rankrun --monitor-interval 1x a.py", "--monitor-interval 1x");
    REFUSED("rankrun --start-method thread a.py", "spawn, fork or forkserver");
    REFUSED("rankrun --numa-binding all a.py", "node, socket, exclusive or core-complex");
    REFUSED("rankrun --logs-specs mine a.py", "only default");
    REFUSED("rankrun --run-path -m a.py", "--run-path goes with neither");
    TAKEN("rankrun --run-path --virtual-local-rank a.py");
    assert_true(o.run_path && o.virtual_local_rank);
}

int main(int argc, char **argv) {
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_without_options_everything_is_inherited, clear),
        cmocka_unit_test_teardown(test_a_log_directory_alone_means_files, clear),
        cmocka_unit_test_teardown(test_streams_are_a_number_or_a_map_of_local_ranks, clear),
        cmocka_unit_test_teardown(test_the_environment_gives_them_too, clear),
        cmocka_unit_test_teardown(test_some_ranks_can_be_kept_off_the_console, clear),
        cmocka_unit_test_teardown(test_a_header_comes_from_the_option_or_the_environment, clear),
        cmocka_unit_test_teardown(test_two_commas_in_a_filter_are_one_of_the_text, clear),
        cmocka_unit_test_teardown(test_what_is_shown_must_be_in_files, clear),
        cmocka_unit_test_teardown(test_signals_are_named_and_unknown_ones_are_told, clear),
        cmocka_unit_test_teardown(test_what_has_no_meaning_here_is_told_and_what_is_wrong_refused,
                                  clear),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
