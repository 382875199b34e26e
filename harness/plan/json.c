/* Prints a plan as JSON. */
#include "base/json.h"
#include "harness/plan/entries.h"

#include <stdio.h>

/* How its host's clock stands, which was asked for the plan. */
static void put_host(const struct examined_host *h, struct json_writer *w) {
    json_put_string(w, "host", h->name);
    json_object(w, "clock");
    json_put_i64(w, "low_ns", h->clock.low_ns);
    json_put_i64(w, "high_ns", h->clock.high_ns);
    json_put_i64(w, "samples", h->clock.samples);
    json_end_object(w);
}

static void put_nodes(const struct plan *p, struct json_writer *w) {
    json_array(w, "nodes");
    for (size_t i = 0; i < p->nodes_n; i++) {
        const struct plan_node *n = &p->nodes[i];
        char mac[18];
        snprintf(mac, sizeof(mac), "%02x:%02x:%02x:%02x:%02x:%02x", n->mac[0], n->mac[1], n->mac[2],
                 n->mac[3], n->mac[4], n->mac[5]);
        json_object(w, NULL);
        json_put_string(w, "name", n->name);
        json_put_string(w, "addr", n->addr);
        json_put_string(w, "mac", mac);
        json_put_bool(w, "store", n->is_store);
        if (n->host)
            put_host(n->host, w);
        json_put_bool(w, "on_at_start", n->on_at_start);
        if (scenario_rack_of(p->scenario, n->name))
            json_put_i64(w, "rack", scenario_rack_of(p->scenario, n->name) - 1);
        json_array(w, "devices");
        for (size_t k = 0; k < n->devices_n; k++)
            json_put_string(w, NULL, n->devices[k]->uuid);
        json_end_array(w);
        json_end_object(w);
    }
    json_end_array(w);
}

static void put_devices(const struct plan *p, struct json_writer *w) {
    json_array(w, "devices");
    for (size_t i = 0; i < p->devices_n; i++) {
        const struct plan_device *d = &p->devices[i];
        json_object(w, NULL);
        json_put_i64(w, "index", d->index);
        json_put_string(w, "uuid", d->uuid);
        json_put_string(w, "name", d->name);
        json_put_i64(w, "memory", d->memory);
        json_put_i64(w, "nodes", d->nodes);
        json_end_object(w);
    }
    json_end_array(w);
}

static void put_profile(const struct timeline_entry *a, struct json_writer *w) {
    if (!a->profile_n)
        return;
    json_array(w, "profile");
    for (size_t i = 0; i < a->profile_n; i++) {
        json_object(w, NULL);
        json_put_i64(w, "at_ns", a->profile[i].at_ns);
        for (size_t k = 0; k < a->profile[i].with_n; k++)
            json_put_string(w, a->profile[i].with[k].key, a->profile[i].with[k].value);
        json_end_object(w);
    }
    json_end_array(w);
}

static void put_entry(const struct plan *p, const struct planned_entry *pa, struct json_writer *w) {
    const struct timeline_entry *a = pa->entry;
    BUF_FINI struct buf when = {0}, until = {0};
    trigger_describe(a, &when);
    if (a->until)
        until_describe(a->until, &until);
    json_object(w, NULL);
    json_put_string(w, "id", a->id);
    json_put_string(w, "when", buf_str(&when));
    if (pa->fault) {
        json_put_string(w, "fault", pa->fault->name);
        json_put_string(w, "on", a->on.text);
        json_object(w, "with");
        for (size_t i = 0; i < pa->args.n; i++)
            json_put_string(w, pa->args.v[i].key, pa->args.v[i].value);
        json_end_object(w);
        put_profile(a, w);
        BUF_FINI struct buf groups = {0};
        entries_put_shape(p, pa, &groups);
        if (groups.len)
            json_put_string(w, "groups_at_start", buf_str(&groups));
        if (a->times == TIMES_EACH_ROUND)
            json_put_string(w, "times", "each-round");
        else
            json_put_i64(w, "times", a->times_n);
        json_put_bool(w, "sticky", a->sticky);
        json_put_bool(w, "lasting", fault_has(pa->fault, EFFECT_LASTING));
        json_put_string(w, "undo", pa->fault->undo);
        if (a->until)
            json_put_string(w, "until", buf_str(&until));
        json_put_string(w, "blast", pa->fault->blast);
    } else {
        json_put_string(w, "heal", p->entries[a->heal].entry->id);
    }
    json_end_object(w);
}

static void put_commands(const struct plan *p, struct json_writer *w) {
    json_array(w, "commands");
    for (size_t i = 0; i < p->commands_n; i++) {
        const struct plan_command *c = &p->commands[i];
        json_object(w, NULL);
        json_put_string(w, "key", c->key);
        json_put_i64(w, "line", c->place.line);
        json_put_string(w, "words", c->words);
        json_put_string(w, "when", c->when);
        json_put_string(w, "nodes", c->nodes);
        json_end_object(w);
    }
    json_end_array(w);
}

void plan_json(const struct plan *p, struct buf *out) {
    const struct scenario *s = p->scenario;
    struct json_writer w = {out, false};
    json_object(&w, NULL);
    json_put_i64(&w, "v", 1);
    json_put_string(&w, "scenario", s->name);
    json_put_string(&w, "file", s->file);
    json_put_i64(&w, "seed", (int64_t)p->seed);
    json_put_string(&w, "launcher", s->job.launcher);
    json_array(&w, "launcher_argv");
    for (const char *const *l = p->launcher ? p->launcher : s->job.launcher_argv; l && *l; l++)
        json_put_string(&w, NULL, *l);
    json_end_array(&w);
    json_put_string(&w, "endpoint", p->endpoint);
    json_put_string(&w, "rootfs", p->rootfs);
    json_put_string(&w, "backend", p->backend);
    json_put_string(&w, "isolation", isolation_names[p->isolation]);
    json_put_string(&w, "isolation_why", p->isolation_why);
    json_array(&w, "run");
    for (size_t i = 0; i < s->job.run_n; i++)
        json_put_string(&w, NULL, s->job.run[i]);
    json_end_array(&w);
    put_nodes(p, &w);
    put_devices(p, &w);
    put_commands(p, &w);
    json_array(&w, "timeline");
    for (size_t i = 0; i < p->entries_n; i++)
        put_entry(p, &p->entries[i], &w);
    json_end_array(&w);
    json_end_object(&w);
    buf_putc(out, '\n');
}
