/* Which node is given which of the host's devices, and what cannot be given. */
#include "base/str.h"
#include "harness/plan/plan.h"
#include "tests/fakes/nvml.h"
#include "tests/harness/scenario/scratch.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#define ONE   "driver 570.1\ndevice GPU-a1 81920 0 0 NVIDIA H200\n"
#define TWO   ONE "device GPU-b2 81920 0 0 NVIDIA H200\n"
#define THREE TWO "device GPU-c3 81920 0 0 NVIDIA H200\n"

static struct plan *make(struct scratch *x, const char *cluster) {
    char text[300];
    snprintf(text, sizeof(text), "job: {run: [sh]}\ncluster: {%s}\n", cluster);
    scratch_load(x, text);
    if (!x->s)
        fail_msg("%s", buf_str(&x->d.out));
    return plan_make(x->s, 1, &x->d);
}

/* "a1 b2|c3|": each node's, the store's last. */
static void assert_dealt(const char *devices, const char *cluster, const char *expected) {
    struct scratch x;
    struct fake_nvml f;
    struct buf dealt = {0};
    fake_nvml_use(&f, devices);
    struct plan *p = make(&x, cluster);
    for (size_t i = 0; i < p->nodes_n; i++) {
        for (size_t k = 0; k < p->nodes[i].devices_n; k++)
            buf_printf(&dealt, "%s%s", k ? " " : "", p->nodes[i].devices[k]->uuid + 4);
        buf_puts(&dealt, "|");
    }
    assert_string_equal(buf_str(&dealt), expected);
    buf_fini(&dealt);
    plan_free(p);
    scratch_drop(&x);
    fake_nvml_drop(&f);
}

static void test_all_devices_are_dealt_out_and_neighbours_stay_together(void **state) {
    (void)state;
    assert_dealt(TWO, "nodes: 2", "a1|b2||");
    assert_dealt(THREE, "nodes: 2", "a1 b2|c3||");
    assert_dealt(THREE, "nodes: 1, store: embedded", "a1 b2 c3|");
    assert_dealt(THREE, "nodes: 2, gpus_per_node: 1", "a1|b2||");
}

static void test_nodes_share_devices_when_there_are_fewer(void **state) {
    (void)state;
    assert_dealt(ONE, "nodes: 3", "a1|a1|a1||");
    assert_dealt(TWO, "nodes: 3", "a1|b2|a1||");
    assert_dealt(THREE, "nodes: 2, gpus_per_node: 2", "a1 b2|c3 a1||");
}

static void test_none_are_given_where_there_are_none_or_none_are_wanted(void **state) {
    (void)state;
    assert_dealt("driver 1\n", "nodes: 2", "|||");
    assert_dealt("error Init_v2 9\n", "nodes: 2", "|||");
    assert_dealt(TWO, "nodes: 2, gpus_per_node: 0", "|||");
    assert_dealt(TWO, "nodes: 2, gpus_per_node: 3", "|||");
}

static void test_the_caller_may_have_chosen_among_them(void **state) {
    (void)state;
    setenv("CUDA_VISIBLE_DEVICES", "2,0", 1);
    assert_dealt(THREE, "nodes: 2", "c3|a1||");
    setenv("CUDA_VISIBLE_DEVICES", "GPU-b", 1);
    assert_dealt(THREE, "nodes: 2", "b2|b2||");
    setenv("CUDA_VISIBLE_DEVICES", "1,7,0", 1); /* what follows a name of nothing is not seen */
    assert_dealt(THREE, "nodes: 2", "b2|b2||");
    setenv("CUDA_VISIBLE_DEVICES", "", 1);
    assert_dealt(THREE, "nodes: 2", "|||");
    unsetenv("CUDA_VISIBLE_DEVICES");
}

static void assert_refused(const char *devices, const char *cluster, const char *sentence) {
    struct scratch x;
    struct fake_nvml f;
    struct err err = {0};
    fake_nvml_use(&f, devices);
    struct plan *p = make(&x, cluster);
    int r = plan_check_host(p, &err);
    /* Without a sentence it comes to the programs, which do not lie beside a test. */
    if (sentence ? r != -ENOTSUP || !strstr(err.msg, sentence) : r != -ENOENT)
        fail_msg("%d: %s", r, err.msg);
    plan_free(p);
    scratch_drop(&x);
    fake_nvml_drop(&f);
}

static void test_a_host_without_what_is_asked_for_is_told_apart(void **state) {
    (void)state;
    assert_refused(ONE, "nodes: 2, gpus_per_node: 2",
                   "gpus_per_node: 2: every node wants 2, this host has 1 (NVIDIA H200)");
    assert_refused("driver 1\n", "nodes: 2, gpus_per_node: 1",
                   "this host has no GPU that can be used: the driver lists none");
    assert_refused("error Init_v2 9\n", "nodes: 2, gpus_per_node: 1", "Driver Not Loaded (9)");
    assert_refused(
        "device GPU-x 1 0 3 L4\n", "nodes: 2, gpus_per_node: 1",
        "GPU 0 (L4) is to be shared by 2 nodes, but its compute mode lets one process in");
    setenv("CUDA_VISIBLE_DEVICES", "GPU-zzz", 1);
    assert_refused(ONE, "nodes: 2, gpus_per_node: 1", "CUDA_VISIBLE_DEVICES names none of those");
    unsetenv("CUDA_VISIBLE_DEVICES");
    assert_refused("driver 1\n", "nodes: 2", NULL);
    assert_refused(ONE, "nodes: 2", NULL);
}

static void test_the_plan_shows_them(void **state) {
    (void)state;
    struct scratch x;
    struct fake_nvml f;
    struct buf out = {0};
    fake_nvml_use(&f, TWO);
    struct plan *p = make(&x, "nodes: 3");
    plan_print(p, &out);
    assert_non_null(strstr(buf_str(&out), "an agent, 1 worker, GPU 1\n"));
    assert_non_null(strstr(buf_str(&out), "GPU 0  GPU-a1, NVIDIA H200, 80 GiB, shared by 2 nodes"));
    assert_non_null(strstr(buf_str(&out), "GPU 1  GPU-b2, NVIDIA H200, 80 GiB, of 1 node\n"));
    buf_clear(&out);
    plan_json(p, &out);
    assert_non_null(strstr(buf_str(&out), "\"devices\":[\"GPU-b2\"]"));
    assert_non_null(strstr(buf_str(&out), "{\"index\":0,\"uuid\":\"GPU-a1\",\"name\":\"NVIDIA "
                                          "H200\",\"memory\":85899345920,\"nodes\":2}"));
    buf_fini(&out);
    plan_free(p);
    scratch_drop(&x);
    fake_nvml_drop(&f);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_devices_are_dealt_out_and_neighbours_stay_together),
        cmocka_unit_test(test_nodes_share_devices_when_there_are_fewer),
        cmocka_unit_test(test_none_are_given_where_there_are_none_or_none_are_wanted),
        cmocka_unit_test(test_the_caller_may_have_chosen_among_them),
        cmocka_unit_test(test_a_host_without_what_is_asked_for_is_told_apart),
        cmocka_unit_test(test_the_plan_shows_them),
    };
    unsetenv("CUDA_VISIBLE_DEVICES");
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
