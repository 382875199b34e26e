/* Whether all hosts have the same GPUs, and nobody is on them. */
#include "harness/preflight/probe.h"

#include "base/str.h"
#include "base/sys/nvml.h"
#include "harness/preflight/xids.h"

#include <stdlib.h>

static void put_device(struct json_writer *w, const struct nvml *n, size_t i) {
    struct nvml_process processes[NVML_PROCESSES_MAX];
    struct nvml_device d;
    struct nvml_health h;
    struct err err = {0};
    size_t found = 0;
    int64_t used = -1;
    json_object(w, NULL);
    if (nvml_device(n, i, &d, &err) < 0) {
        json_put_string(w, "failed", err.msg);
        json_end_object(w);
        return;
    }
    bool told = nvml_processes(n, i, processes, &found, NULL) == 0;
    nvml_memory_used(n, i, &used, NULL);
    nvml_health(n, i, &h);
    json_put_string(w, "uuid", d.uuid);
    json_put_string(w, "model", d.name);
    json_put_i64(w, "memory_mb", d.memory < 0 ? -1 : d.memory >> 20);
    json_put_i64(w, "used_mb", used < 0 ? -1 : used >> 20);
    json_put_i64(w, "processes", told ? (int64_t)found : -1);
    json_put_i64(w, "ecc_uncorrected", h.ecc_uncorrected);
    json_put_i64(w, "slowed_by", h.slowed_by);
    json_put_i64(w, "links_up", h.links_up);
    json_put_i64(w, "links_down", h.links_down);
    json_put_i64(w, "remap_pending", h.remap_pending);
    json_put_i64(w, "remap_failed", h.remap_failed);
    json_put_i64(w, "lanes", h.lanes);
    json_put_i64(w, "lanes_max", h.lanes_max);
    json_end_object(w);
}

/* Absent: nobody may look into the kernel's log. */
static void put_xids(struct json_writer *w) {
    ARENA_FINI struct arena a = {0};
    struct xid *v;
    int n = xids_read(&a, &v);
    if (n < 0)
        return;
    json_array(w, "xids");
    for (int i = 0; i < n; i++) {
        json_object(w, NULL);
        json_put_string(w, "device", v[i].device);
        json_put_i64(w, "number", v[i].number);
        json_put_i64(w, "times", v[i].times);
        json_put_bool(w, "of_the_job", v[i].of_the_job);
        json_end_object(w);
    }
    json_end_array(w);
}

static void look(const struct json *given, struct json_writer *w) {
    struct err err = {0};
    struct nvml *n = nvml_open(&err);
    (void)given;
    json_put_string(w, "driver", n ? nvml_driver(n) : "");
    json_put_string(w, "none", n ? "" : err.msg);
    json_array(w, "devices");
    for (size_t i = 0; n && i < nvml_count(n); i++)
        put_device(w, n, i);
    json_end_array(w);
    if (n)
        put_xids(w);
    nvml_close(n);
}

/* "8 x NVIDIA H200, 143771 MB" */
static const char *summary(struct arena *a, const struct json *answer) {
    const struct json *devices = json_get(answer, "devices"), *first = json_first(devices);
    if (!first)
        return "no GPU";
    return arena_printf(a, "%zu x %s, %lld MB", devices->length,
                        json_get_string(first, "model", "?"),
                        (long long)json_get_i64(first, "memory_mb", -1));
}

/* Hardware slowdown, by heat or power: of nvmlClocksThrottleReasons. */
enum { SLOWED_HARD = 0x8 | 0x40 | 0x80 };

static void check_device(struct probing *p, const char *host, size_t i, const struct json *d) {
    const char *failed = json_get_string(d, "failed", NULL);
    if (failed)
        probe_fail(p, "%s: GPU %zu does not answer: %s", host, i, failed);
    if (json_get_i64(d, "processes", 0) > 0)
        probe_fail(p, "%s: GPU %zu is used by %lld process(es)", host, i,
                   (long long)json_get_i64(d, "processes", 0));
    if (json_get_i64(d, "ecc_uncorrected", 0) > 0)
        probe_fail(p, "%s: GPU %zu has had %lld memory errors that could not be corrected", host, i,
                   (long long)json_get_i64(d, "ecc_uncorrected", 0));
    if (json_get_i64(d, "slowed_by", 0) > 0 && json_get_i64(d, "slowed_by", 0) & SLOWED_HARD)
        probe_fail(p, "%s: GPU %zu is slowed down by its hardware (reasons 0x%llx)", host, i,
                   (unsigned long long)json_get_i64(d, "slowed_by", 0));
    if (json_get_i64(d, "links_down", 0) > 0 && json_get_i64(d, "links_up", 0) > 0)
        probe_fail(p, "%s: GPU %zu has %lld NVLink(s) down", host, i,
                   (long long)json_get_i64(d, "links_down", 0));
}

static void check_memory_and_bus(struct probing *p, const char *host, size_t i,
                                 const struct json *d) {
    int64_t lanes = json_get_i64(d, "lanes", -1), most = json_get_i64(d, "lanes_max", -1);
    if (json_get_i64(d, "remap_failed", 0) > 0)
        probe_fail(p, "%s: GPU %zu has bad rows of memory that it cannot replace", host, i);
    else if (json_get_i64(d, "remap_pending", 0) > 0)
        probe_fail(p, "%s: GPU %zu waits for a reset, to replace bad rows of its memory", host, i);
    if (lanes > 0 && lanes < most)
        probe_fail(p, "%s: GPU %zu has %lld of %lld PCIe lanes", host, i, (long long)lanes,
                   (long long)most);
}

static void check_xids(struct probing *p, const char *host, const struct json *xids) {
    json_each(x, xids) if (!json_get_bool(x, "of_the_job", false))
        probe_fail(p, "%s: its kernel has logged Xid %lld of %s, %lld time(s) since it was started",
                   host, (long long)json_get_i64(x, "number", 0), json_get_string(x, "device", "?"),
                   (long long)json_get_i64(x, "times", 0));
}

static void ask(struct probing *p) {
    const struct json **v = probe_look_all(p);
    const char **texts = arena_array(p->arena, const char *, p->n);
    bool any = false;
    for (size_t i = 0; i < p->n; i++) {
        size_t k = 0;
        texts[i] = v[i] ? summary(p->arena, v[i]) : NULL;
        any |= json_first(json_get(v[i], "devices")) != NULL;
        json_each(d, json_get(v[i], "devices")) {
            check_memory_and_bus(p, p->v[i].host, k, d);
            check_device(p, p->v[i].host, k++, d);
        }
        check_xids(p, p->v[i].host, json_get(v[i], "xids"));
    }
    probe_equal(p, "what it has", texts);
    if (any)
        probe_pass(p, "%s on each, idle, without errors", texts[0] ? texts[0] : "?");
    else
        probe_skip(p, "no host has an NVIDIA driver: %s", json_get_string(v[0], "none", "?"));
}

const struct probe probe_gpus = {
    .name = "gpus",
    .text =
        "the same GPUs on all hosts, idle, with no memory errors, throttling or links down (NVML)",
    .within_ns = INT64_C(20) * 1000000000,
    .look = look,
    .ask = ask,
};
