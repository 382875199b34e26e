/* The accelerators of this host, and which node is given which. */
#include "agent/base/str.h"
#include "agent/sys/nvml.h"
#include "harness/plan/actions.h"

#include <stdlib.h>
#include <string.h>

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

static void read_devices(struct plan *p, const struct nvml *nvml) {
    struct nvml_device d;
    struct err err;
    p->devices = arena_array(&p->arena, struct plan_device, nvml_count(nvml) + 1);
    p->driver = arena_strdup(&p->arena, nvml_driver(nvml));
    for (size_t i = 0; i < nvml_count(nvml); i++) {
        if (nvml_device(nvml, i, &d, &err) != 0) {
            p->no_devices = arena_strdup(&p->arena, err.msg); /* it is lost: there are the others */
            continue;
        }
        p->devices[p->devices_n++] = (struct plan_device){
            .uuid = arena_strdup(&p->arena, d.uuid),
            .name = arena_strdup(&p->arena, d.name),
            .index = d.index,
            .memory = d.memory,
            .shareable = d.shareable,
        };
    }
}

static void find_devices(struct plan *p) {
    struct err err;
    struct nvml *nvml = nvml_open(&err);
    if (!nvml) {
        p->no_devices = arena_strdup(&p->arena, err.msg);
        return;
    }
    read_devices(p, nvml);
    nvml_close(nvml);
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
    if (c->has_gpus && c->gpus_per_node == 0)
        return;
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
