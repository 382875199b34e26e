/* What an agent of the legacy rendezvous is configured with: each limit from both sides, and that what it keeps is its own. */
#include "agent/legacy/legacy.h"

#include "base/str.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

static struct rendezvous_config config_of(void) {
    return (struct rendezvous_config){
        .run_id = "job", .node = "n0", .addr = "a0", .role = "r", .slots = 1, .min = 1, .max = 1};
}

/* said: the whole of what is said against it; NULL: it is taken. */
static void expect(const struct rendezvous_config *c, const char *prefix, const char *said) {
    struct err err = {0};
    struct legacy *l = legacy_new(c, prefix, 1, &err);
    assert_int_equal(l != NULL, said == NULL);
    assert_int_equal(err.code, said ? -EINVAL : 0);
    assert_string_equal(err.msg, said ? said : "");
    assert_null(legacy_free(l));
}

static void test_an_id_is_a_part_of_a_key(void **state) {
    (void)state;
    struct rendezvous_config c = config_of();
    expect(&c, NULL, NULL);
    c.run_id = "a b";
    expect(&c, NULL, NULL);
    c.run_id = "";
    expect(&c, NULL,
           "--rdzv-id '': it is part of a key of etcd and must neither be empty nor hold a slash");
    c.run_id = "a/b";
    expect(
        &c, NULL,
        "--rdzv-id 'a/b': it is part of a key of etcd and must neither be empty nor hold a slash");
}

static void test_a_prefix_is_a_folder(void **state) {
    (void)state;
    static const char *const bad[] = {"", "/", "a", "a/b", "/a/", "/a/b/", NULL};
    struct rendezvous_config c = config_of();
    char said[200];
    for (const char *const *p = bad; *p; p++) {
        snprintf(said, sizeof(said),
                 "--rdzv-conf etcd_prefix=%s: must begin with a slash and not end in one, as "
                 "/torchelastic/p2p",
                 *p);
        expect(&c, *p, said);
    }
    expect(&c, "/a", NULL);
    expect(&c, "/a/b", NULL);
}

static void test_names_are_as_long_as_there_is_room(void **state) {
    (void)state;
    static const char said[] = "node name or address is longer than 255 bytes";
    char name[NAME_SIZE + 1] = "";
    struct rendezvous_config c = config_of();
    assert_int_equal(NAME_SIZE, 256);
    memset(name, 'a', NAME_SIZE - 1);
    c.node = c.addr = name;
    expect(&c, NULL, NULL);
    name[NAME_SIZE - 1] = 'a';
    expect(&c, NULL, said);
    c.addr = "a0";
    expect(&c, NULL, said);
    c.addr = name;
    c.node = "n0";
    expect(&c, NULL, said);
}

static void test_nothing_is_nothing_to_free(void **state) {
    (void)state;
    assert_null(legacy_free(NULL));
}

/* ---- what is asked for first ---- */

static const struct action *answered(struct legacy *l, uint64_t id, const char *text, size_t *n) {
    struct tree_answer answer = {.result = TREE_DONE, .text = text};
    return legacy_step(l,
                       &(struct event){.kind = EVENT_TREE, .tree = {.id = id, .answer = &answer}},
                       (struct now){1, 1}, n);
}

/* The configuration is gone by the time that it is used. */
static void test_what_it_is_told_is_copied(void **state) {
    (void)state;
    static const char *const keys[] = {"", "/mine", "/mine/run_job", "/mine/run_job/rdzv",
                                       "/mine/run_job/rdzv/version_counter"};
    char id[] = "job", node[] = "n0", addr[] = "a0", role[] = "r", host[] = "h 1",
         folder[] = "/mine";
    struct rendezvous_config c = config_of();
    struct err err = {0};
    size_t n = 0;
    c.run_id = id;
    c.node = node;
    c.addr = addr;
    c.role = role;
    c.host = host;
    struct legacy *l = legacy_new(&c, folder, 1, &err);
    id[0] = node[0] = addr[0] = role[0] = host[0] = folder[0] = 'X';
    memset(&c, 0xff, sizeof(c));
    const struct action *a =
        legacy_step(l, &(struct event){.kind = EVENT_START}, (struct now){1, 1}, &n);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(n, 1);
        assert_int_equal(a->kind, ACTION_TREE);
        assert_int_equal(a->tree.request.verb, i ? TREE_PUT : TREE_VERSION);
        assert_int_equal(a->tree.request.exist, i ? TREE_ABSENT : TREE_ANY);
        assert_int_equal(a->tree.request.dir, i > 0 && i < 4);
        assert_int_equal(a->tree.request.ttl_s, i == 2 ? 7200 : 0);
        assert_int_equal(a->tree.request.timeout_ms, 2000);
        assert_string_equal(a->tree.request.key, keys[i]);
        a = answered(l, a->tree.id, "3.4.0", &n);
    }
    legacy_free(l);
}

/* Behind its exit an agent asks for nothing, whatever comes. */
static void test_who_has_ended_asks_for_nothing(void **state) {
    (void)state;
    static const enum event_kind kinds[] = {EVENT_START, EVENT_TIMER, EVENT_GROUP_REAPED};
    struct rendezvous_config c = config_of();
    struct err err = {0};
    size_t n = 0;
    struct legacy *l = legacy_new(&c, NULL, 1, &err);
    struct tree_answer answer = {.result = TREE_STRANGE, .text = "a web server"};
    const struct action *a =
        legacy_step(l, &(struct event){.kind = EVENT_START}, (struct now){1, 1}, &n);
    struct event e = {.kind = EVENT_TREE, .tree = {.id = a->tree.id, .answer = &answer}};
    a = legacy_step(l, &e, (struct now){2, 2}, &n);
    assert_int_equal(n, 1);
    assert_int_equal(a->kind, ACTION_EXIT);
    assert_int_equal(a->exit.code, 64);
    for (int i = 0; i < 3; i++) {
        legacy_step(l, &(struct event){.kind = kinds[i]}, (struct now){3, 3}, &n);
        assert_int_equal(n, 0);
    }
    legacy_free(l);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_id_is_a_part_of_a_key),
        cmocka_unit_test(test_a_prefix_is_a_folder),
        cmocka_unit_test(test_names_are_as_long_as_there_is_room),
        cmocka_unit_test(test_nothing_is_nothing_to_free),
        cmocka_unit_test(test_what_it_is_told_is_copied),
        cmocka_unit_test(test_who_has_ended_asks_for_nothing),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
