/* Who computes on devices, with a driver and processes that are played: which devices there are, who is on them by the
 * driver and by open files, and what cannot be asked are drawn; each question and what is told is on record. */
#include "tests/played.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/file.h"
#include "base/sys/nvml.h"
#include "base/sys/outcall.h"
#include "base/sys/process.h"
#include "harness/observe/devices.h"

static struct {
    const struct outcall_work *work;
    void *state;
    bool hangs;
    int most; /* processes of a node; else a few */
} world;

/* The child is the test itself. */
static int played_outcall_open(struct outcall *ret, const struct outcall_work *work,
                               struct err *err) {
    *ret = OUTCALL_NONE;
    if (fails("begin"))
        return err_set(err, -errno, "fork");
    world.work = work;
    world.state = work->begin();
    ret->fd = played_open();
    return 0;
}

static int played_outcall_ask(struct outcall *a, const char *question, int64_t budget_ns,
                              struct buf *ret, struct err *err) {
    if (strlen(question) < 300)
        note("asked within %lld: %s", (long long)budget_ns, question);
    if (world.hangs || fails("it answers"))
        return err_set(err, world.hangs ? -ETIME : -errno, "ask");
    world.work->answer(world.state, question, ret);
    return 0;
}

static void played_outcall_close(struct outcall *a) {
    note("end %d", a->fd);
    if (a->fd >= 0)
        played_shut(a->fd);
    a->fd = -1;
}

static struct nvml *played_nvml_open(struct err *err) {
    return fails("the driver") ? err_set(err, -errno, "open the driver"),
           NULL                : (struct nvml *)&world;
}

static size_t played_count(const struct nvml *n) {
    return 5;
}

static int played_device(const struct nvml *n, size_t i, struct nvml_device *ret, struct err *err) {
    assert_true(i < 5);
    snprintf(ret->uuid, sizeof(ret->uuid), "GPU-%c", (char)('a' + i));
    return fails("device %zu", i) ? -errno : 0;
}

static int played_memory(const struct nvml *n, size_t i, int64_t *ret, struct err *err) {
    if (fails("memory of %zu", i))
        return err_set(err, -errno, "ask for memory");
    *ret = 1000 + draw(50);
    return 0;
}

static int played_processes(const struct nvml *n, size_t i, struct nvml_process *ret, size_t *ret_n,
                            struct err *err) {
    *ret_n = 0;
    if (fails("processes of %zu", i))
        return err_set(err, -errno, "list processes");
    if (draw(6) == 0)
        return -ENOTSUP;
    *ret_n = (size_t)draw(5);
    for (size_t k = 0; k < *ret_n; k++)
        ret[k] = (struct nvml_process){100 + draw(12), draw(4) ? draw(900) : -1};
    return 0;
}

static int played_holds(pid_t pid) {
    int code = pid % 3 == 0 ? 1 : pid % 3 == 1 ? 0 : -EACCES;
    if (!world.most)
        note("does %d hold it: %d", (int)pid, code);
    return code;
}

static size_t played_list(pid_t root, pid_t **ret) {
    size_t n = world.most ? (size_t)world.most : (size_t)draw(6);
    note("all below %d: %zu", (int)root, n);
    *ret = mem_array(pid_t, n + 1);
    for (size_t i = 0; i < n; i++)
        (*ret)[i] = 100 + (world.most ? (pid_t)i : draw(12));
    return n;
}

static bool played_exists(const char *path) {
    note("is there %s", path);
    return draw(2);
}

static const char *played_name(pid_t pid, char *ret, size_t size) {
    snprintf(ret, size, "p%d", (int)pid);
    return ret;
}

#define outcall_open(o, w, e)    played_outcall_open(o, w, e)
#define outcall_ask              played_outcall_ask
#define outcall_close            played_outcall_close
#define nvml_open                played_nvml_open
#define nvml_count               played_count
#define nvml_device(n, i, d, e)  played_device(n, i, d, e)
#define nvml_memory_used         played_memory
#define nvml_processes           played_processes
#define nvml_holds_driver        played_holds
#define process_list_descendants played_list
#define process_name             played_name
#define file_exists              played_exists
#include "harness/observe/devices.c"

static void look_at_them(uint64_t seed) {
    static const char *const uuids[] = {"GPU-b", "GPU-e", "GPU-a", "GPU-x", "GPU-d"};
    static const struct devices_node nodes[] = {{"n0", 50}, {"n1", 60}};
    struct err err = {0};
    memset(&world, 0, sizeof(world));
    struct devices *d = devices_new(uuids, (size_t)draw(6), &err);
    note("there %d: %d %s", d != NULL, err.code, err.msg);
    for (int i = 0; d && i < 4; i++) {
        BUF_FINI struct buf told = {0};
        struct json_writer w = {.out = &told};
        world.hangs = i == 3 && draw(3) == 0;
        json_object(&w, NULL);
        devices_put(d, nodes, (size_t)draw(3), &w);
        json_end_object(&w);
        note("> %s", buf_str(&told));
    }
    assert_null(devices_free(d));
}

static const struct play plays[] = {
    {"tests/harness/observe/record/devices.txt", look_at_them, 50, true, {ENODEV, EPIPE}}};

static void test_who_computes_on_devices_is_on_record(void **state) {
    (void)state;
    played_check(&plays[0]);
}

/* The last that is looked at, and no more. */
static void test_so_many_processes_are_looked_at_and_no_more(void **state) {
    (void)state;
    static const char text[] = "[{\"name\":\"n0\",\"first\":5},{\"name\":\"n1\",\"first\":6}]";
    for (int most = PROCESSES_MAX / 2 - 1; most <= PROCESSES_MAX / 2 + 1; most++) {
        ARENA_FINI struct arena a = {0};
        struct devices_crowd c = {0};
        world.most = most;
        crowd_take(&c, json_parse(&a, text, strlen(text), NULL));
        size_t all = 2 * (size_t)most;
        assert_int_equal(c.n, all < PROCESSES_MAX ? all : PROCESSES_MAX);
        assert_string_equal(c.v[c.n - 1].node, "n1");
        assert_int_equal(c.v[c.n - 1].pid, 100 + (int)c.n - most - 1);
        free(c.v);
    }
    buf_fini(&played.said);
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_computes_on_devices_is_on_record),
        cmocka_unit_test(test_so_many_processes_are_looked_at_and_no_more),
    };
    return played_main(argc, argv, plays, tests);
}
