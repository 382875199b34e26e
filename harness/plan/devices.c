/* The accelerators of this host, and which node is given which. */
#include "base/json.h"
#include "base/str.h"
#include "base/sys/nvml.h"
#include "base/sys/outcall.h"
#include "harness/plan/entries.h"

#include <stdlib.h>
#include <string.h>

/* Devices that nobody has used may take seconds each before they answer. */
static const int64_t ASK_NS = 60000000000;

/* What CUDA_VISIBLE_DEVICES of the caller leaves: a member names a device by its number or by the
 * beginning of its UUID; the first that names none ends the list, as it does for CUDA. */
static const struct plan_device *find(const struct plan_device *v, size_t n, const char *name) {
    int64_t index;
    bool number = str_to_i64(name, 0, NVML_DEVICES_MAX, &index);
    for (size_t i = 0; i < n; i++)
        if (number ? v[i].index == index : *name && str_starts(v[i].uuid, name))
            return &v[i];
    return NULL;
}

static void keep_visible(struct plan *p) {
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    if (!visible)
        return;
    struct plan_device *kept = arena_array(&p->arena, struct plan_device, p->devices_n + 1);
    size_t n = 0;
    for (char **name = str_split(&p->arena, visible, ',', NULL); *name && n < p->devices_n;
         name++) {
        const struct plan_device *d = find(p->devices, p->devices_n, *name);
        if (!d)
            break;
        kept[n++] = *d;
    }
    p->devices = kept;
    p->devices_n = n;
}

/* ---- asking, in a child: a driver may hang ---- */

static void put_devices(const struct nvml *nvml, struct json_writer *w) {
    struct nvml_device d;
    struct err err;
    json_put_string(w, "driver", nvml_driver(nvml));
    json_array(w, "devices");
    for (size_t i = 0; i < nvml_count(nvml); i++) {
        bool lost = nvml_device(nvml, i, &d, &err) != 0; /* there are the others */
        json_object(w, NULL);
        json_put_string(w, "error", lost ? err.msg : NULL);
        if (!lost) {
            json_put_string(w, "uuid", d.uuid);
            json_put_string(w, "name", d.name);
            json_put_i64(w, "memory", d.memory);
            json_put_bool(w, "shareable", d.shareable);
        }
        json_put_i64(w, "index", (int64_t)i);
        json_end_object(w);
    }
    json_end_array(w);
}

static void answer(void *state, const char *question, struct buf *ret) {
    struct json_writer w = {.out = ret};
    struct err err;
    struct nvml *nvml = nvml_open(&err);
    json_object(&w, NULL);
    if (nvml)
        put_devices(nvml, &w);
    else
        json_put_string(&w, "error", err.msg);
    json_end_object(&w);
    nvml_close(nvml);
}

static const struct outcall_work work = {.answer = answer};

static void read_devices(struct plan *p, const struct json *said) {
    const struct json *list = json_get(said, "devices");
    p->no_devices = json_get_string(said, "error", NULL);
    p->driver = json_get_string(said, "driver", NULL);
    p->devices = arena_array(&p->arena, struct plan_device, (list ? list->length : 0) + 1);
    json_each(d, list) {
        const char *lost = json_get_string(d, "error", NULL);
        if (lost)
            p->no_devices = lost;
        else
            p->devices[p->devices_n++] = (struct plan_device){
                .uuid = json_get_string(d, "uuid", ""),
                .name = json_get_string(d, "name", ""),
                .index = (int)json_get_i64(d, "index", -1),
                .memory = json_get_i64(d, "memory", -1),
                .shareable = json_get_bool(d, "shareable", true),
            };
    }
}

static void find_devices(struct plan *p) {
    struct outcall outcall = OUTCALL_NONE;
    BUF_FINI struct buf said = {0};
    struct err err;
    int r = outcall_open(&outcall, &work, &err);
    if (r == 0)
        r = outcall_ask(&outcall, "devices", ASK_NS, &said, &err);
    outcall_close(&outcall);
    if (r == 0)
        read_devices(p, json_parse(&p->arena, buf_str(&said), said.len, NULL));
    else
        p->no_devices = arena_printf(&p->arena, "NVIDIA's driver: %s", err.msg);
    keep_visible(p);
    if (!p->devices_n && !p->no_devices)
        p->no_devices = getenv("CUDA_VISIBLE_DEVICES")
                            ? "CUDA_VISIBLE_DEVICES names none of those that are there"
                            : "the driver lists none";
}

/* Neighbours stay together: they may be linked. When there are not enough, nodes share them. */
static void give(struct plan *p, struct plan_node *n, size_t first, size_t count) {
    const struct plan_device **v = arena_array(&p->arena, const struct plan_device *, count + 1);
    for (size_t i = 0; i < count; i++) {
        struct plan_device *d = &p->devices[(first + i) % p->devices_n];
        d->nodes++;
        v[i] = d;
    }
    n->devices = v;
    n->devices_n = count;
}

void devices_deal(struct plan *p) {
    const struct cluster_spec *c = &p->scenario->cluster;
    size_t nodes = (size_t)c->nodes, first = 0;
    if ((c->has_gpus && c->gpus_per_node == 0) || c->provider)
        return; /* other hosts have their own, and the job is told of them there */
    find_devices(p);
    if (!p->devices_n || (c->has_gpus && (size_t)c->gpus_per_node > p->devices_n))
        return; /* plan_check_host says so when they were asked for */
    for (size_t i = 0; i < nodes; i++) {
        size_t even = p->devices_n / nodes + (i < p->devices_n % nodes);
        size_t count = c->has_gpus ? (size_t)c->gpus_per_node : even ? even : 1;
        give(p, &p->nodes[i], first, count);
        first += count;
    }
}
