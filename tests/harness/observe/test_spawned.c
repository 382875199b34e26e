/* What a process was started with, and whether that makes it a rank. */
#include "harness/observe/spawned.h"

#include "tests/harness/observe/starting.h"
#include "base/sys/descriptors.h"

#include <stdio.h>
#include <string.h>

static bool is_rank(const char *const *environment, int *rank, int *world) {
    struct spawned s;
    struct started p = started_begin(environment, -1, -1);
    bool ret = spawned_read(&s, p.pid);
    *rank = s.rank;
    *world = s.world_size;
    if (ret)
        spawned_fini(&s);
    started_end(&p);
    return ret;
}

static void test_who_was_given_a_rank_below_its_world_is_one(void **state) {
    (void)state;
    static const struct {
        const char *environment[5];
        int rank, world; /* -1: no rank */
    } rows[] = {
        {{"RANK=0", "WORLD_SIZE=1"}, 0, 1},
        {{"WORLD_SIZE=3", "OTHER=5", "RANK=2"}, 2, 3},
        {{"RANK=1", "WORLD_SIZE=2", "RANK=0", "WORLD_SIZE=9"}, 1, 2}, /* as getenv(3) finds it */
        {{"XRANK=0", "RANK=1", "RANKS=0", "WORLD_SIZE=2"}, 1, 2},
        {{"RANK=3", "WORLD_SIZE=3"}, -1, 0},
        {{"RANK=0", "WORLD_SIZE=0"}, -1, 0},
        {{"RANK=-1", "WORLD_SIZE=3"}, -1, 0},
        {{"RANK=1x", "WORLD_SIZE=3"}, -1, 0},
        {{"RANK=", "WORLD_SIZE=3"}, -1, 0},
        {{"RANK=0"}, -1, 0},
        {{"WORLD_SIZE=2"}, -1, 0},
        {{"RANK=2147483648", "WORLD_SIZE=2147483649"}, -1, 0},
        {{NULL}, -1, 0},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        int rank = -7, world = -7;
        bool is = is_rank(rows[i].environment, &rank, &world);
        if (is != (rows[i].rank >= 0) || rank != rows[i].rank || world != rows[i].world)
            fail_msg("row %zu: %d of %d", i, rank, world);
    }
}

static void test_who_is_gone_is_no_rank(void **state) {
    (void)state;
    struct spawned s;
    assert_false(spawned_read(&s, 0x3ffffff));
    assert_int_equal(s.rank, -1);
}

static struct json *parsed(struct arena *a, const char *text) {
    struct json *j = json_parse(a, text, strlen(text), NULL);
    assert_non_null(j);
    return j;
}

static void test_what_a_process_claims_is_read_alike(void **state) {
    (void)state;
    ARENA_FINI struct arena a = {0};
    int rank = -7, world = -7;
    assert_true(
        spawned_claimed(parsed(&a, "{\"RANK\":\"1\",\"WORLD_SIZE\":\"2\"}"), &rank, &world));
    assert_int_equal(rank, 1);
    assert_int_equal(world, 2);
    assert_false(
        spawned_claimed(parsed(&a, "{\"RANK\":\"2\",\"WORLD_SIZE\":\"2\"}"), &rank, &world));
    assert_false(spawned_claimed(parsed(&a, "{\"RANK\":\"0\"}"), &rank, &world));
    assert_false(spawned_claimed(NULL, &rank, &world));
    assert_int_equal(rank, 1);
    assert_int_equal(world, 2);
}

/* The fields of worker-start: claim NULL: what the kernel shows. */
static const struct json *fields(struct arena *a, const char *const *environment,
                                 const char *claim) {
    BUF_FINI struct buf text = {0};
    struct json_writer w = {.out = &text};
    struct spawned s;
    struct started p = started_begin(environment, -1, -1);
    assert_true(spawned_read(&s, p.pid));
    json_object(&w, NULL);
    spawned_put(&w, &s, p.pid, claim ? parsed(a, claim) : NULL);
    json_end_object(&w);
    spawned_fini(&s);
    started_end(&p);
    return parsed(a, buf_str(&text));
}

static size_t count(const struct json *parent) {
    size_t n = 0;
    json_each(it, parent) n += it != NULL;
    return n;
}

static void test_what_a_launcher_gives_is_told_and_nothing_else(void **state) {
    (void)state;
    ARENA_FINI struct arena a = {0};
    char value[900] = "TORCHELASTIC_RUN_ID=", name[100] = "RANKRUN_";
    memset(value + strlen(value), 'v', 800);
    memset(name + strlen(name), 'N', 80);
    strcpy(name + 88, "=x");
    const char *const environment[] = {"RANK=0", "WORLD_SIZE=1", "HOME=/root", "RANKRUN_",
                                       name,     value,          NULL};
    const struct json *j = fields(&a, environment, NULL), *env = json_get(j, "env");
    assert_string_equal(json_get_string(j, "argv0", ""), "cat");
    assert_int_equal(count(env), 3);
    assert_string_equal(json_get_string(env, "RANK", ""), "0");
    assert_string_equal(json_get_string(env, "WORLD_SIZE", ""), "1");
    assert_int_equal(strlen(json_get_string(env, "TORCHELASTIC_RUN_ID", "")), 700);
    j = fields(&a, environment,
               "{\"RANK\":\"5\",\"HOME\":\"/\",\"WORLD_SIZE\":7,\"MASTER_ADDR\":\"n0\"}");
    env = json_get(j, "env");
    assert_int_equal(count(env), 2);
    assert_string_equal(json_get_string(env, "RANK", ""), "5");
    assert_string_equal(json_get_string(env, "MASTER_ADDR", ""), "n0");
}

static void test_of_very_many_variables_the_first_are_told(void **state) {
    (void)state;
    ARENA_FINI struct arena a = {0};
    static char names[80][32];
    const char *environment[83] = {"RANK=0", "WORLD_SIZE=1"};
    BUF_FINI struct buf claim = {0};
    buf_puts(&claim, "{\"RANK\":\"0\",\"WORLD_SIZE\":\"1\"");
    for (int i = 0; i < 80; i++) {
        snprintf(names[i], sizeof(names[i]), "RANKRUN_%d=x", i);
        environment[i + 2] = names[i];
        buf_printf(&claim, ",\"RANKRUN_%d\":\"x\"", i);
    }
    buf_puts(&claim, "}");
    for (int i = 0; i < 2; i++) {
        const struct json *env =
            json_get(fields(&a, environment, i ? buf_str(&claim) : NULL), "env");
        assert_int_equal(count(env), 64);
        assert_non_null(json_get(env, "RANKRUN_61"));
        assert_null(json_get(env, "RANKRUN_62"));
    }
}

int main(void) {
    descriptors_open_standard(); /* those of the processes that are started here */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_was_given_a_rank_below_its_world_is_one),
        cmocka_unit_test(test_who_is_gone_is_no_rank),
        cmocka_unit_test(test_what_a_process_claims_is_read_alike),
        cmocka_unit_test(test_what_a_launcher_gives_is_told_and_nothing_else),
        cmocka_unit_test(test_of_very_many_variables_the_first_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
