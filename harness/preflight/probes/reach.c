/* Whether every host reaches every other by its name, at the job's ports. */
#include "harness/preflight/probe.h"

/* Each begins with the next one, so that not all come to the first at the same time. */
static void put_peers(struct probing *p, size_t from, const struct json *const *ports,
                      struct json_writer *w) {
    json_array(w, "to");
    for (size_t k = 1; k < p->n; k++) {
        size_t i = (from + k) % p->n;
        json_each(port, json_get(ports[i], "ports")) {
            json_object(w, NULL);
            json_put_string(w, "name", p->v[i].host);
            json_put_string(w, "host", p->v[i].address);
            json_put_i64(w, "port", json_i64(port, 0));
            json_end_object(w);
        }
    }
    json_end_array(w);
}

static const char *listen_question(struct probing *p) {
    BUF_FINI struct buf out = {0};
    struct json_writer w = {.out = &out};
    json_object(&w, NULL);
    json_put_string(&w, "do", "listen");
    if (json_get(p->given, "ports"))
        json_put_tree(&w, "ports", json_get(p->given, "ports"));
    json_end_object(&w);
    return arena_strdup(p->arena, buf_str(&out));
}

static void ask_from(struct probing *p, size_t i, const struct json *const *ports) {
    BUF_FINI struct buf out = {0};
    struct json_writer w = {.out = &out};
    json_object(&w, NULL);
    json_put_string(&w, "do", "reach");
    json_put_i64(&w, "within_ms", 5000);
    put_peers(p, i, ports, &w);
    json_end_object(&w);
    station_ask(&p->v[i], buf_str(&out));
}

static void ask(struct probing *p) {
    const struct json **ports = probe_ask_all(p, listen_question(p));
    size_t ways = 0;
    for (size_t i = 0; i < p->n; i++)
        ask_from(p, i, ports);
    for (size_t i = 0; i < p->n; i++) {
        const struct json *j = probe_hear(p, i);
        if (j)
            json_put_tree(p->figures, p->v[i].host, json_get(j, "failed"));
        json_each(f, json_get(j, "failed")) probe_fail(
            p, "%s does not reach %s port %lld: %s", p->v[i].host, json_get_string(f, "host", "?"),
            (long long)json_get_i64(f, "port", 0), json_get_string(f, "why", "?"));
        ways += p->n - 1;
    }
    probe_pass(p, "all %zu ways between %zu hosts", ways, p->n);
}

const struct probe probe_reach = {
    .name = "reach",
    .text = "every host reaches every other by its name, at the ports of the job",
    .within_ns = INT64_C(60) * 1000000000,
    .for_many = true,
    .ask = ask,
};
