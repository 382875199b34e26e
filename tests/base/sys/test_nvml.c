/* What the driver says of the devices, through the fake library. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/sys/nvml.h"
#include "tests/fakes/nvml.h"

#include <errno.h>

static const char two[] = "driver 570.86.15\n"
                          "device GPU-aaaa 80000 600 0 NVIDIA H200\n"
                          "device GPU-bbbb 24000 0 3 NVIDIA L4\n"
                          "process 0 4711 500\n"
                          "process 0 4712 -1\n";

static void test_devices_and_their_processes_are_told(void **state) {
    (void)state;
    struct fake_nvml f;
    struct err err = {0};
    struct nvml_device d;
    struct nvml_process p[NVML_PROCESSES_MAX];
    int64_t used;
    size_t n;
    fake_nvml_use(&f, two);
    struct nvml *nvml = nvml_open(&err);
    if (!nvml)
        fail_msg("%s", err.msg);
    assert_int_equal(nvml_count(nvml), 2);
    assert_string_equal(nvml_driver(nvml), "570.86.15");
    assert_int_equal(nvml_device(nvml, 0, &d, &err), 0);
    assert_string_equal(d.uuid, "GPU-aaaa");
    assert_string_equal(d.name, "NVIDIA H200");
    assert_int_equal(d.memory, 80000LL << 20);
    assert_true(d.shareable);
    assert_int_equal(nvml_device(nvml, 1, &d, &err), 0);
    assert_false(d.shareable);
    assert_int_equal(nvml_memory_used(nvml, 0, &used, &err), 0);
    assert_int_equal(used, 1100LL << 20);
    assert_int_equal(nvml_processes(nvml, 0, p, &n, &err), 0);
    assert_int_equal(n, 2);
    assert_int_equal(p[0].pid, 4711);
    assert_int_equal(p[0].bytes, 500LL << 20);
    assert_int_equal(p[1].bytes, -1);
    assert_int_equal(nvml_processes(nvml, 1, p, &n, &err), 0);
    assert_int_equal(n, 0);
    nvml_close(nvml);
    fake_nvml_drop(&f);
}

static void test_how_a_device_fares_is_told_as_far_as_it_is_known(void **state) {
    (void)state;
    struct fake_nvml f;
    struct nvml_health h;
    fake_nvml_use(
        &f, "device GPU-a 100 0 0 X\ndevice GPU-b 100 0 0 X\n"
            "health 0 ecc 3\nhealth 0 slowed 64\nhealth 0 links_up 17\nhealth 0 links_down 1\n"
            "health 0 remap_pending 1\nhealth 0 remap_failed 0\nhealth 0 lanes 8\n"
            "health 0 lanes_max 16\n");
    struct nvml *nvml = nvml_open(NULL);
    assert_non_null(nvml);
    nvml_health(nvml, 0, &h);
    assert_int_equal(h.ecc_uncorrected, 3);
    assert_int_equal(h.slowed_by, 64);
    assert_int_equal(h.links_up, 17);
    assert_int_equal(h.links_down, 1);
    assert_int_equal(h.remap_pending, 1);
    assert_int_equal(h.remap_failed, 0);
    assert_int_equal(h.lanes, 8);
    assert_int_equal(h.lanes_max, 16);
    nvml_health(nvml, 1, &h);
    assert_int_equal(h.ecc_uncorrected, -1);
    assert_int_equal(h.slowed_by, -1);
    assert_int_equal(h.links_up, -1);
    assert_int_equal(h.links_down, -1);
    assert_int_equal(h.remap_pending, -1);
    assert_int_equal(h.remap_failed, -1);
    assert_int_equal(h.lanes, -1);
    assert_int_equal(h.lanes_max, -1);
    nvml_close(nvml);
    fake_nvml_drop(&f);
}

static void test_more_processes_than_there_is_room_for_are_cut_off(void **state) {
    (void)state;
    struct fake_nvml f;
    char text[20000] = "device GPU-a 100 0 0 X\n";
    size_t at = strlen(text), n;
    struct nvml_process p[NVML_PROCESSES_MAX];
    for (int i = 0; i < NVML_PROCESSES_MAX + 20; i++)
        at += (size_t)snprintf(text + at, sizeof(text) - at, "process 0 %d 1\n", 1000 + i);
    fake_nvml_use(&f, text);
    struct nvml *nvml = nvml_open(NULL);
    assert_non_null(nvml);
    assert_int_equal(nvml_processes(nvml, 0, p, &n, NULL), 0);
    assert_int_equal(n, NVML_PROCESSES_MAX);
    nvml_close(nvml);
    fake_nvml_drop(&f);
}

static void test_no_library_no_driver_and_a_lost_device_are_three_sentences(void **state) {
    (void)state;
    struct fake_nvml f;
    struct err err = {0};
    struct nvml_device d;
    setenv("RANKQUAKE_NVML", "/nowhere/libnvidia-ml.so.1", 1);
    assert_null(nvml_open(&err));
    assert_int_equal(err.code, -ENOENT);
    assert_non_null(strstr(err.msg, "no driver of NVIDIA's here"));
    fake_nvml_use(&f, "error Init_v2 9\n");
    assert_null(nvml_open(&err));
    assert_int_equal(err.code, -ENODEV);
    assert_non_null(strstr(err.msg, "Driver Not Loaded (9); nvidia-smi tells more"));
    fake_nvml_say(&f, "device GPU-a 1 0 0 X\nerror DeviceGetUUID 15\n");
    struct nvml *nvml = nvml_open(&err);
    assert_non_null(nvml);
    assert_int_equal(nvml_device(nvml, 0, &d, &err), -ENODEV);
    assert_non_null(strstr(err.msg, "name device 0: GPU is lost (15)"));
    nvml_close(nvml);
    fake_nvml_drop(&f);
}

static void test_a_library_without_a_function_is_refused(void **state) {
    (void)state;
    struct err err = {0};
    setenv("RANKQUAKE_NVML", "libz.so.1", 1);
    assert_null(nvml_open(&err));
    assert_int_equal(err.code, -ENOSYS);
    assert_non_null(strstr(err.msg, "has no nvmlInit_v2"));
    unsetenv("RANKQUAKE_NVML");
}

static void test_who_has_the_driver_open_is_seen(void **state) {
    (void)state;
    struct fake_nvml f;
    struct nvml_process p[NVML_PROCESSES_MAX];
    size_t n;
    fake_nvml_use(&f, "device GPU-a 1000 0 0 X\nholders 300\n");
    assert_int_equal(nvml_holds_driver(getpid()), 0);
    int fd = fake_nvml_hold(&f, 0);
    assert_int_equal(nvml_holds_driver(getpid()), 1);
    struct nvml *nvml = nvml_open(NULL);
    assert_int_equal(nvml_processes(nvml, 0, p, &n, NULL), 0);
    assert_int_equal(n, 1);
    assert_int_equal(p[0].pid, getpid());
    close(fd);
    assert_int_equal(nvml_processes(nvml, 0, p, &n, NULL), 0);
    assert_int_equal(n, 0);
    assert_int_equal(nvml_holds_driver(0x7ffffff0), -ENOENT);
    nvml_close(nvml);
    fake_nvml_drop(&f);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_devices_and_their_processes_are_told),
        cmocka_unit_test(test_how_a_device_fares_is_told_as_far_as_it_is_known),
        cmocka_unit_test(test_more_processes_than_there_is_room_for_are_cut_off),
        cmocka_unit_test(test_no_library_no_driver_and_a_lost_device_are_three_sentences),
        cmocka_unit_test(test_a_library_without_a_function_is_refused),
        cmocka_unit_test(test_who_has_the_driver_open_is_seen),
    };
    cmocka_set_test_filter(argc > 1 ? argv[1] : NULL);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
