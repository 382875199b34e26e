/* Whoever runs an operator's commands for the power of a host: what came of them is told, all of a
 * command that hangs is ended, and a host that is off when the harness has gone is switched on. */
#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/sys/file.h"
#include "base/sys/process.h"
#include "harness/carrier/channel.h"
#include "harness/carrier/hello.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct stand {
    char dir[256];
    struct process keeper;
    int control;
    struct arena arena;
} s;

static const char *path(const char *name) {
    return arena_printf(&s.arena, "%s/%s", s.dir, name);
}

static void say(const struct buf *text, int log) {
    assert_int_equal(channel_send(s.control, text, &log, log >= 0, NULL), 0);
}

static void order(const char *op) {
    BUF_FINI struct buf text = {0};
    buf_printf(&text, "{\"op\":\"%s\"}", op);
    say(&text, -1);
}

/* off and on: for sh. */
static void begin(const char *off, const char *on, const char *host) {
    BUF_FINI struct buf text = {0};
    struct json_writer w = {.out = &text};
    const char *folder = getenv("TMPDIR"), *bin = getenv("BIN");
    int ends[2];
    char number[16];
    s = (struct stand){.keeper = PROCESS_NONE, .control = -1};
    snprintf(s.dir, sizeof(s.dir), "%s/power-XXXXXX", folder ? folder : "/tmp");
    assert_non_null(mkdtemp(s.dir));
    assert_int_equal(channel_pair(ends, NULL), 0);
    snprintf(number, sizeof(number), "%d", ends[1]);
    const struct process_spawn spawn = {
        .argv =
            (const char *const[]){arena_printf(&s.arena, "%s/rankquake", bin ? bin : "build/bin"),
                                  "power", number, NULL},
        .keep = &ends[1],
        .keep_n = 1};
    assert_int_equal(process_spawn(&spawn, &s.keeper, NULL), 0);
    close(ends[1]);
    s.control = ends[0];
    FILE_CLOSE int log = open(path("log"), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    json_object(&w, NULL);
    json_put_string(&w, "op", "begin");
    json_put_strings(&w, "off", (const char *const[]){"sh", "-c", off, NULL});
    json_put_strings(&w, "on", (const char *const[]){"sh", "-c", on, NULL});
    json_put_i64(&w, "within", 2000000000);
    json_put_string(&w, "provider", "exec");
    json_put_string(&w, "host", host);
    json_put_string(&w, "log", "logs/n1/power.log");
    json_end_object(&w);
    say(&text, log);
}

static const struct json *hear(struct message *m) {
    struct pollfd p = {.fd = s.control, .events = POLLIN};
    assert_int_equal(poll(&p, 1, 180000), 1);
    assert_int_equal(channel_receive(s.control, m, NULL), 1);
    return m->json;
}

/* The keeper ends with this exit code. */
static void end(int code) {
    int status = 0;
    close(s.control);
    assert_int_equal(process_reap(&s.keeper, -1, &status), 0);
    assert_int_equal(status, code << 8);
    process_close(&s.keeper);
    arena_fini(&s.arena);
}

static char *log_text(void) {
    BUF_FINI struct buf text = {0};
    assert_int_equal(file_read(path("log"), 65536, &text, NULL), 0);
    return arena_strdup(&s.arena, buf_str(&text));
}

static void test_a_command_that_fails_is_told_with_its_last_words_and_kept(void **state) {
    struct message m;
    (void)state;
    begin("echo asking; echo no such chassis >&2; exit 3", "true", "false");
    order("off");
    assert_string_equal(json_get_string(hear(&m), "error", ""),
                        "cluster.power.off has failed: exit code 3, \"no such chassis\"; what it "
                        "printed is in logs/n1/power.log");
    message_fini(&m);
    assert_string_equal(log_text(), "$ sh -c echo asking; echo no such chassis >&2; exit 3\n"
                                    "asking\nno such chassis\n");
    end(0);
}

static void test_all_of_a_command_that_hangs_is_ended_in_time(void **state) {
    struct message m;
    (void)state;
    begin("exec 9>&1; sh -c 'echo $$; exec sleep 1000' & wait", "true", "false");
    order("off");
    const char *error = json_get_string(hear(&m), "error", "");
    assert_non_null(strstr(error, "has not ended after 2 s and was killed; it had said \""));
    pid_t child = atoi(strstr(error, "said \"") + 6);
    struct process p;
    if (process_open(child, &p, NULL) == 0) { /* its end may be on its way */
        assert_int_equal(process_wait_end(&p, -1), 0);
        process_close(&p);
    }
    message_fini(&m);
    end(0);
}

static void test_a_host_that_is_back_says_who_it_is(void **state) {
    struct message m;
    struct hello there, here;
    const char *bin = getenv("BIN");
    char host[512];
    (void)state;
    snprintf(host, sizeof(host), "%s/rankquake-node", bin ? bin : "build/bin");
    begin("true", "true", host);
    order("off");
    assert_null(json_get_string(hear(&m), "error", NULL));
    message_fini(&m);
    order("on");
    assert_null(json_get_string(hear(&m), "error", NULL));
    hello_take(m.json, &there);
    hello_here(&here);
    assert_false(hello_is_another_life(&here, &there));
    assert_true(*there.life && *there.boot_id);
    message_fini(&m);
    end(0);
}

static void test_a_host_that_does_not_answer_is_told_with_the_reason(void **state) {
    struct message m;
    (void)state;
    begin("true", "true", "echo no route >&2; false");
    order("on");
    const char *error = json_get_string(hear(&m), "error", "");
    assert_non_null(strstr(error, "cluster.power.on has ended with 0, and the host does not answer "
                                  "2 s after: "));
    message_fini(&m);
    end(0);
}

static void test_a_host_that_is_off_is_on_again_when_the_harness_has_gone(void **state) {
    struct message m;
    (void)state;
    begin("true", "echo given back", "false");
    order("off");
    assert_null(json_get_string(hear(&m), "error", NULL));
    message_fini(&m);
    const char *log = path("log");
    close(s.control);
    s.control = open("/dev/null", O_RDONLY | O_CLOEXEC);
    BUF_FINI struct buf text = {0};
    int status = 0;
    assert_int_equal(process_reap(&s.keeper, -1, &status), 0);
    assert_int_equal(status, 0);
    assert_int_equal(file_read(log, 65536, &text, NULL), 0);
    assert_non_null(strstr(buf_str(&text), "given back\n"));
    process_close(&s.keeper);
    close(s.control);
    arena_fini(&s.arena);
}

static void test_a_host_that_nobody_took_the_power_of_is_left_alone(void **state) {
    (void)state;
    begin("true", "echo given back", "false");
    const char *log = mem_strdup(path("log"));
    BUF_FINI struct buf text = {0};
    end(0);
    assert_int_equal(file_read(log, 65536, &text, NULL), 0);
    assert_string_equal(buf_str(&text), "");
    free((void *)(uintptr_t)log);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_command_that_fails_is_told_with_its_last_words_and_kept),
        cmocka_unit_test(test_all_of_a_command_that_hangs_is_ended_in_time),
        cmocka_unit_test(test_a_host_that_is_back_says_who_it_is),
        cmocka_unit_test(test_a_host_that_does_not_answer_is_told_with_the_reason),
        cmocka_unit_test(test_a_host_that_is_off_is_on_again_when_the_harness_has_gone),
        cmocka_unit_test(test_a_host_that_nobody_took_the_power_of_is_left_alone),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
