#include "harness/observe/devices.h"

#include "agent/base/str.h"
#include "agent/sys/file.h"
#include "agent/sys/nvml.h"
#include "agent/sys/process.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PROCESSES_MAX = 4096 };

struct devices {
    struct nvml *nvml;
    size_t at[NVML_DEVICES_MAX]; /* as the driver counts them */
    char uuids[NVML_DEVICES_MAX][96];
    size_t n;
};

/* The processes of the nodes, as one look finds them. */
struct crowd {
    struct one {
        pid_t pid;
        const char *node;
        bool holds; /* has a file of the driver open */
    } * v;
    size_t n;
};

struct devices *devices_new(const char *const *uuids, size_t n, struct err *err) {
    struct devices *d = calloc(1, sizeof(*d));
    struct nvml_device device;
    if (!d)
        abort(); /* out of memory */
    d->nvml = nvml_open(err);
    for (size_t i = 0; d->nvml && i < nvml_count(d->nvml); i++) {
        bool wanted = false;
        if (nvml_device(d->nvml, i, &device, NULL) != 0)
            continue;
        for (size_t k = 0; k < n; k++)
            wanted |= str_eq(uuids[k], device.uuid);
        if (wanted) {
            str_copy(d->uuids[d->n], sizeof(d->uuids[0]), device.uuid);
            d->at[d->n++] = i;
        }
    }
    return d->nvml ? d : devices_free(d);
}

struct devices *devices_free(struct devices *d) {
    if (d)
        nvml_close(d->nvml);
    free(d);
    return NULL;
}

/* ---- who is there ---- */

static void crowd_take(struct crowd *c, const struct devices_node *nodes, size_t n) {
    pid_t *pids = calloc(PROCESSES_MAX, sizeof(*pids));
    c->v = calloc(PROCESSES_MAX, sizeof(*c->v));
    if (!pids || !c->v)
        abort();
    for (size_t i = 0; i < n; i++) {
        size_t found = process_descendants(nodes[i].first, pids, PROCESSES_MAX - c->n);
        for (size_t k = 0; k < found; k++)
            c->v[c->n++] = (struct one){pids[k], nodes[i].name, nvml_holds_driver(pids[k]) == 1};
    }
    free(pids);
}

static const struct one *crowd_find(const struct crowd *c, pid_t pid) {
    for (size_t i = 0; i < c->n; i++)
        if (c->v[i].pid == pid)
            return &c->v[i];
    return NULL;
}

static bool exists(pid_t pid) {
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d", (int)pid);
    return file_exists(path);
}

/* ---- what is put down ---- */

/* A number of the driver's list is believed to be a process of a node only when that process has
 * the driver open; else it is the same number in another namespace. */
static bool put_process(struct json_writer *w, const struct crowd *c,
                        const struct nvml_process *p) {
    const struct one *one = crowd_find(c, p->pid);
    if (one ? !one->holds : !exists(p->pid))
        return false;
    json_object(w, NULL);
    json_put_i64(w, "pid", p->pid);
    json_put_string(w, "node", one ? one->node : ""); /* "": not ours */
    json_put_i64(w, "bytes", p->bytes);
    json_end_object(w);
    return true;
}

static void put_processes(struct devices *d, size_t i, const struct crowd *c, struct json_writer *w,
                          struct err *err) {
    struct nvml_process list[NVML_PROCESSES_MAX];
    size_t n = 0;
    int64_t hidden = 0;
    struct err why = {0};
    int r = nvml_processes(d->nvml, d->at[i], list, &n, &why);
    if (r == -ENOTSUP)
        hidden = 1; /* or more */
    else if (r)
        *err = why;
    json_array(w, "processes");
    for (size_t k = 0; k < n; k++)
        hidden += !put_process(w, c, &list[k]);
    json_end_array(w);
    json_put_i64(w, "hidden", hidden);
}

static void put_device(struct devices *d, size_t i, const struct crowd *c, struct json_writer *w,
                       struct err *err) {
    int64_t used = -1;
    nvml_memory_used(d->nvml, d->at[i], &used, err);
    json_object(w, NULL);
    json_put_i64(w, "index", (int64_t)d->at[i]);
    json_put_string(w, "uuid", d->uuids[i]);
    json_put_i64(w, "used", used);
    put_processes(d, i, c, w, err);
    json_end_object(w);
}

static void put_holder(struct json_writer *w, const struct one *one) {
    char path[64];
    struct buf name = {0};
    snprintf(path, sizeof(path), "/proc/%d/comm", (int)one->pid);
    file_read(path, 4096, &name, NULL); /* it may have gone: then it has no name */
    json_object(w, NULL);
    json_put_i64(w, "pid", one->pid);
    json_put_string(w, "node", one->node);
    json_put_stringn(w, "name", buf_str(&name), name.len ? name.len - 1 : 0);
    json_end_object(w);
    buf_fini(&name);
}

void devices_put(struct devices *d, const struct devices_node *nodes, size_t n,
                 struct json_writer *w) {
    struct crowd c = {0};
    struct err err = {0};
    crowd_take(&c, nodes, n);
    json_array(w, "devices");
    for (size_t i = 0; i < d->n; i++)
        put_device(d, i, &c, w, &err);
    json_end_array(w);
    json_array(w, "open");
    for (size_t i = 0; i < c.n; i++)
        if (c.v[i].holds)
            put_holder(w, &c.v[i]);
    json_end_array(w);
    if (err.code)
        json_put_string(w, "error", err.msg);
    free(c.v);
}
