/* What is written down of a node that hangs: its processes, the ends of its files, its store. */
#include "harness/observe/hang_dump.h"

#include "base/sys/file.h"
#include "tests/harness/observe/answering.h"
#include "tests/harness/observe/starting.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int64_t LONG_NS = 60000000000;

struct stage {
    char dir[200];
    struct folder run;
    struct history history;
    struct rounds rounds;
    struct started first;
};

static void record(struct stage *s, const char *text) {
    char path[300];
    struct err err = {0};
    snprintf(path, sizeof(path), "%s/history.jsonl", s->dir);
    folder_write(&s->run, "history.jsonl", text, strlen(text), NULL);
    if (history_load(&s->history, path, &err) < 0)
        fail_msg("%s", err.msg);
    rounds_load(&s->rounds, true, &s->history);
}

static void put(struct stage *s, const char *name, const char *text) {
    assert_int_equal(folder_write(&s->run, name, text, strlen(text), NULL), 0);
}

static void begin(struct stage *s) {
    static const char *const environment[] = {NULL};
    const char *tmp = getenv("TMPDIR");
    *s = (struct stage){.run = FOLDER_NONE};
    snprintf(s->dir, sizeof(s->dir), "%.150s/hang-XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(s->dir));
    assert_int_equal(folder_open(&s->run, s->dir, NULL), 0);
    s->first = started_begin(environment, -1, -1);
    assert_int_equal(folder_make(&s->run, "logs/n0", 0777, NULL), 0);
    put(s, "logs/n0/agent.log", "an agent begins\nand stands still\n");
}

/* The worker is what was started as the node's first process. */
static void begin_training(struct stage *s, bool ends) {
    int pid = (int)s->first.pid;
    BUF_FINI struct buf text = {0};
    buf_puts(&text, "{\"seq\":1,\"t\":0,\"source\":\"harness\",\"kind\":\"run\",\"v\":1}\n");
    buf_printf(&text,
               "{\"seq\":2,\"t\":10,\"source\":\"probe\",\"kind\":\"worker-start\",\"node\":\"n0\","
               "\"pid\":%d,\"env\":{\"RANK\":\"3\",\"WORLD_SIZE\":\"4\"}}\n",
               pid);
    buf_printf(
        &text,
        "{\"seq\":3,\"t\":20,\"source\":\"job\",\"kind\":\"step\",\"node\":\"n0\",\"pid\":%d,"
        "\"step\":7}\n",
        pid);
    if (ends)
        buf_printf(&text,
                   "{\"seq\":4,\"t\":30,\"source\":\"kernel\",\"kind\":\"worker-exit\","
                   "\"node\":\"n0\",\"pid\":%d,\"code\":0}\n",
                   pid);
    record(s, buf_str(&text));
}

static void end(struct stage *s) {
    started_end(&s->first);
    folder_close(&s->run);
    history_fini(&s->history);
    rounds_fini(&s->rounds);
    assert_int_equal(file_remove_tree(s->dir, NULL), 0);
}

static struct hang_dump_node node_of(const struct stage *s) {
    return (struct hang_dump_node){.name = "n0", .first = s->first.pid, .log = "logs/n0/agent.log"};
}

static int dump(struct stage *s, const struct hang_dump_node *n, size_t count, int64_t budget_ns,
                struct err *err) {
    return hang_dump_make(&s->run, n, count, &s->rounds, budget_ns, err);
}

static void read_dump(const struct stage *s, const char *name, struct buf *ret) {
    char path[300];
    struct err err = {0};
    snprintf(path, sizeof(path), "hang/%s", name);
    buf_clear(ret);
    if (folder_read(&s->run, path, 1 << 20, ret, &err) < 0)
        fail_msg("%s: %s", path, err.msg);
    buf_str(ret);
}

static bool is_there(const struct stage *s, const char *name) {
    char path[300];
    snprintf(path, sizeof(path), "hang/%s", name);
    return folder_has(&s->run, path);
}

static void test_a_rank_is_written_down_with_how_far_it_came(void **state) {
    (void)state;
    struct stage s;
    struct err err = {0};
    BUF_FINI struct buf text = {0};
    char process[64];
    begin(&s);
    begin_training(&s, false);
    struct hang_dump_node n = node_of(&s);
    assert_int_equal(dump(&s, &n, 1, LONG_NS, &err), 0);
    read_dump(&s, "n0/rank-3.txt", &text);
    snprintf(process, sizeof(process), "process %d, node\n", (int)s.first.pid);
    assert_memory_equal(text.data, "rank 3 of round 1, last step seen 7\n", 36);
    assert_memory_equal(text.data + 36, process, strlen(process));
    assert_true(text.len > 36 + strlen(process));
    read_dump(&s, "n0/last-lines.txt", &text);
    assert_string_equal(text.data, "an agent begins\nand stands still\n");
    assert_false(is_there(&s, "n0/store.txt"));
    end(&s);
}

static void test_who_has_ended_as_a_worker_is_a_process_like_others(void **state) {
    (void)state;
    struct stage s;
    struct err err = {0};
    BUF_FINI struct buf text = {0};
    char name[64], process[64];
    begin(&s);
    begin_training(&s, true);
    struct hang_dump_node n = node_of(&s);
    assert_int_equal(dump(&s, &n, 1, LONG_NS, &err), 0);
    assert_false(is_there(&s, "n0/rank-3.txt"));
    snprintf(name, sizeof(name), "n0/%d-node.txt", (int)s.first.pid);
    snprintf(process, sizeof(process), "process %d, node\n", (int)s.first.pid);
    read_dump(&s, name, &text);
    assert_memory_equal(text.data, process, strlen(process));
    end(&s);
}

/* All that descends from the first, by its name. */
static void test_what_a_process_has_started_is_written_down_too(void **state) {
    (void)state;
    struct stage s;
    struct err err = {0};
    BUF_FINI struct buf text = {0};
    char name[64];
    begin(&s);
    rounds_init(&s.rounds, true);
    struct hang_dump_node n = node_of(&s);
    n.first = getpid();
    assert_int_equal(dump(&s, &n, 1, LONG_NS, &err), 0);
    snprintf(name, sizeof(name), "n0/%d-cat.txt", (int)s.first.pid);
    read_dump(&s, name, &text);
    assert_non_null(strstr(text.data, ", cat\n"));
    snprintf(name, sizeof(name), "n0/%d-node.txt", (int)getpid());
    assert_true(is_there(&s, name));
    end(&s);
}

static void test_the_ends_of_the_workers_files_stand_behind_the_nodes(void **state) {
    (void)state;
    struct stage s;
    struct err err = {0};
    BUF_FINI struct buf text = {0}, long_log = {0};
    begin(&s);
    rounds_init(&s.rounds, true);
    put(&s, "logs/n0/rank-1.log", "one\n");
    put(&s, "logs/n0/rank-0.log", "zero\n");
    put(&s, "logs/n0/rank-2.txt", "is not shown\n");
    put(&s, "logs/n0/frank-2.log", "is not shown\n");
    for (int i = 1; i <= 61; i++)
        buf_printf(&long_log, "line %d\n", i);
    put(&s, "logs/n0/agent.log", buf_str(&long_log));
    struct hang_dump_node n = node_of(&s);
    assert_int_equal(dump(&s, &n, 1, LONG_NS, &err), 0);
    read_dump(&s, "n0/last-lines.txt", &text);
    assert_memory_equal(text.data, "line 2\n", 7);
    assert_string_equal(strstr(text.data, "line 61\n"),
                        "line 61\n\n--- rank-0.log\nzero\n\n--- rank-1.log\none\n");
    end(&s);
}

static void test_the_store_is_asked_for_all_it_holds(void **state) {
    (void)state;
    struct stage s;
    struct err err = {0};
    struct answering store = {.answers = {"{\"header\":{\"revision\":\"5\"}}"}};
    BUF_FINI struct buf text = {0};
    char wanted[120];
    begin(&s);
    rounds_init(&s.rounds, true);
    answering_begin(&store);
    struct hang_dump_node n = node_of(&s);
    n.store = "127.0.0.1";
    n.store_port = store.port;
    n.token = "RANKRUN_STORE_TOKEN=open sesame";
    assert_int_equal(dump(&s, &n, 1, LONG_NS, &err), 0);
    answering_end(&store);
    read_dump(&s, "n0/store.txt", &text);
    snprintf(wanted, sizeof(wanted),
             "the store at 127.0.0.1:%d, as this host sees it\nrevision 5\nit holds no keys\n",
             store.port);
    assert_string_equal(text.data, wanted);
    assert_non_null(strstr(buf_str(&store.asked[0]), "Authorization: Bearer open sesame\r\n"));
    assert_null(getenv("RANKRUN_STORE_TOKEN")); /* it was set for whoever asked */
    answering_fini(&store);
    end(&s);
}

/* Of a node elsewhere the processes are told by its helper. */
static void test_of_a_far_node_what_its_helper_says_is_written_down(void **state) {
    (void)state;
    struct stage s;
    struct err err = {0};
    BUF_FINI struct buf text = {0}, told = {0};
    begin(&s);
    begin_training(&s, false);
    struct hang_dump_node n = node_of(&s);
    n.far = true;
    assert_int_equal(dump(&s, &n, 1, LONG_NS, &err), 0);
    assert_true(is_there(&s, "n0/last-lines.txt"));
    assert_false(is_there(&s, "n0/rank-3.txt"));
    buf_puts(&told, "it waits\n");
    hang_dump_put(&s.run, "n0", s.first.pid, "py thon/3", &told, &s.rounds);
    read_dump(&s, "n0/rank-3.txt", &text);
    assert_non_null(strstr(text.data, ", py-thon-3\nit waits\n"));
    hang_dump_put(&s.run, "n7", 77, "py thon/3", &told, &s.rounds);
    read_dump(&s, "n7/77-py-thon-3.txt", &text);
    assert_string_equal(text.data, "process 77, py-thon-3\nit waits\n");
    end(&s);
}

/* A store that takes a connection and says nothing holds one of the two. */
static void test_a_node_that_takes_too_long_is_given_up_and_the_other_is_there(void **state) {
    (void)state;
    struct stage s;
    struct err err = {0};
    int fd;
    uint16_t port;
    begin(&s);
    rounds_init(&s.rounds, true);
    assert_int_equal(tcp_listen("127.0.0.1", 0, 4, &fd, &port, NULL), 0);
    struct hang_dump_node n[2] = {node_of(&s), node_of(&s)};
    n[0].store = "127.0.0.1";
    n[0].store_port = port;
    n[1].name = "n1";
    assert_int_equal(dump(&s, n, 2, 0, &err), -ETIME);
    assert_true(strstr(err.msg, "1 of 2 nodes could not be looked at in time") ||
                strstr(err.msg, "2 of 2 nodes could not be looked at in time"));
    assert_int_equal(waitpid(-1, NULL, WNOHANG),
                     0); /* but whom the test has started, which lives on */
    close(fd);
    end(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_rank_is_written_down_with_how_far_it_came),
        cmocka_unit_test(test_who_has_ended_as_a_worker_is_a_process_like_others),
        cmocka_unit_test(test_what_a_process_has_started_is_written_down_too),
        cmocka_unit_test(test_the_ends_of_the_workers_files_stand_behind_the_nodes),
        cmocka_unit_test(test_the_store_is_asked_for_all_it_holds),
        cmocka_unit_test(test_of_a_far_node_what_its_helper_says_is_written_down),
        cmocka_unit_test(test_a_node_that_takes_too_long_is_given_up_and_the_other_is_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
