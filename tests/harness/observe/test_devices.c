/* Who is on the devices, by the driver's list and by the files that are open. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/json.h"
#include "base/sys/descriptors.h"
#include "base/sys/process.h"
#include "harness/observe/devices.h"
#include "tests/fakes/nvml.h"

#include <errno.h>
#include <signal.h>

#define TWO "device GPU-a 1000 100 0 X\ndevice GPU-b 1000 100 0 X\n"

static const char *const both[] = {"GPU-a", "GPU-b"};

static struct json *look(struct arena *a, struct devices *d) {
    struct devices_node node = {.name = "n0", .first = getpid()};
    struct buf text = {0};
    struct json_writer w = {.out = &text};
    json_object(&w, NULL);
    devices_put(d, &node, 1, &w);
    json_end_object(&w);
    struct json *j = json_parse(a, buf_str(&text), text.len, NULL);
    assert_non_null(j);
    buf_fini(&text);
    return j;
}

/* A child of ours that has fd open; below us, so of the node. */
static void begin(struct process *ret, int fd) {
    static const char *const argv[] = {"sleep", "100", NULL};
    struct process_spawn s = {
        .argv = argv, .keep = &fd, .keep_n = fd >= 0, .death_signal = SIGKILL};
    struct err err;
    if (process_spawn(&s, ret, &err) != 0)
        fail_msg("%s", err.msg);
}

static void end(struct process *p) {
    process_signal(p, SIGKILL);
    assert_int_equal(process_reap(p, 20000000000, NULL), 0);
    process_close(p);
}

static const struct json *processes(const struct json *j, int device) {
    const struct json *d = json_first(json_get(j, "devices"));
    for (; device > 0; device--)
        d = d->next;
    return json_get(d, "processes");
}

static void test_a_process_of_a_node_is_found_on_its_device_and_then_no_more(void **state) {
    (void)state;
    struct arena a = {0};
    struct fake_nvml f;
    struct process p;
    fake_nvml_use(&f, TWO "holders 300\n");
    int fd = fake_nvml_hold(&f, 1);
    struct devices *d = devices_new(both, 2, NULL);
    assert_non_null(d);
    begin(&p, fd);
    const struct json *j = look(&a, d), *on = json_first(processes(j, 1));
    close(fd);
    assert_null(json_first(processes(j, 0)));
    const struct json *mine = NULL;
    for (; on; on = on->next) /* this test has the file open, too, and is of no node */
        if (json_get_i64(on, "pid", 0) == p.pid)
            mine = on;
    assert_non_null(mine);
    assert_string_equal(json_get_string(mine, "node", ""), "n0");
    assert_int_equal(json_get_i64(mine, "bytes", 0), 300 << 20);
    const struct json *open = json_first(json_get(j, "open"));
    assert_int_equal(json_get_i64(open, "pid", 0), p.pid);
    assert_string_equal(json_get_string(open, "name", ""), "sleep");
    assert_null(open->next);
    end(&p);
    j = look(&a, d);
    assert_null(json_first(processes(j, 1)));
    assert_null(json_first(json_get(j, "open")));
    assert_null(json_get(j, "error"));
    devices_free(d);
    fake_nvml_drop(&f);
    arena_fini(&a);
}

static void test_a_number_that_may_be_of_another_namespace_is_hidden(void **state) {
    (void)state;
    struct arena a = {0};
    struct fake_nvml f;
    struct process p;
    char text[300];
    begin(&p, -1); /* of the node, but it has no file of the driver open */
    snprintf(text, sizeof(text), TWO "process 0 %d 100\nprocess 0 2147480000 100\nprocess 0 1 -1\n",
             (int)p.pid);
    fake_nvml_use(&f, text);
    struct devices *d = devices_new(both, 2, NULL);
    const struct json *j = look(&a, d), *on = processes(j, 0);
    assert_int_equal(on->length, 1); /* pid 1 lives here, and is nobody's of ours */
    assert_string_equal(json_get_string(json_first(on), "node", "x"), "");
    assert_int_equal(json_get_i64(json_first(on), "bytes", 0), -1);
    assert_int_equal(json_get_i64(json_first(json_get(j, "devices")), "hidden", 0), 2);
    end(&p);
    devices_free(d);
    fake_nvml_drop(&f);
    arena_fini(&a);
}

static void test_only_the_devices_that_were_given_are_looked_at(void **state) {
    (void)state;
    struct arena a = {0};
    struct fake_nvml f;
    fake_nvml_use(&f, TWO);
    struct devices *d = devices_new(both + 1, 1, NULL);
    const struct json *j = look(&a, d), *first = json_first(json_get(j, "devices"));
    assert_string_equal(json_get_string(first, "uuid", ""), "GPU-b");
    assert_int_equal(json_get_i64(first, "index", -1), 1);
    assert_int_equal(json_get_i64(first, "used", -1), 100 << 20);
    assert_null(first->next);
    devices_free(d);
    fake_nvml_drop(&f);
    arena_fini(&a);
}

static void test_a_driver_that_fails_is_said_and_not_taken_for_an_empty_device(void **state) {
    (void)state;
    struct arena a = {0};
    struct fake_nvml f;
    struct err err;
    fake_nvml_use(&f, TWO);
    struct devices *d = devices_new(both, 2, NULL);
    fake_nvml_say(&f, TWO "error DeviceGetComputeRunningProcesses_v3 15\n");
    const char *said = json_get_string(look(&a, d), "error", "");
    assert_non_null(strstr(said, "list the processes on a device: GPU is lost (15)"));
    fake_nvml_say(&f, TWO "error DeviceGetComputeRunningProcesses_v3 3\n");
    const struct json *j = look(&a, d); /* a device on which it tells nobody: no failure */
    assert_null(json_get(j, "error"));
    assert_int_equal(json_get_i64(json_first(json_get(j, "devices")), "hidden", 0), 1);
    devices_free(d);
    fake_nvml_say(&f, TWO "error Init_v2 999\n");
    assert_null(devices_new(both, 2, &err));
    assert_int_equal(err.code, -ENODEV);
    fake_nvml_drop(&f);
    arena_fini(&a);
}

int main(int argc, char **argv) {
    descriptors_open_standard(); /* those of the processes that are started here */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_process_of_a_node_is_found_on_its_device_and_then_no_more),
        cmocka_unit_test(test_a_number_that_may_be_of_another_namespace_is_hidden),
        cmocka_unit_test(test_only_the_devices_that_were_given_are_looked_at),
        cmocka_unit_test(test_a_driver_that_fails_is_said_and_not_taken_for_an_empty_device),
    };
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
