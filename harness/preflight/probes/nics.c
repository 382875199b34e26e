/* Whether the network cards of all hosts are up, alike, and have kept their links. */
#include "harness/preflight/infiniband.h"
#include "harness/preflight/probe.h"

#include "base/str.h"
#include "base/sys/file.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The text of a file of a card; "" where it has none. */
static const char *read_text(struct arena *a, const char *card, const char *file) {
    BUF_FINI struct buf text = {0};
    file_read(arena_printf(a, "/sys/class/net/%s/%s", card, file), 256, &text, NULL);
    return arena_strndup(a, buf_str(&text), strcspn(buf_str(&text), "\n"));
}

static int64_t number_of(struct arena *a, const char *card, const char *file) {
    int64_t v = -1;
    str_to_i64(read_text(a, card, file), 0, INT64_MAX, &v);
    return v;
}

static int not_loopback(const struct dirent *e) {
    return e->d_name[0] != '.' && !str_eq(e->d_name, "lo");
}

static void look(const struct json *given, struct json_writer *w) {
    ARENA_FINI struct arena a = {0};
    struct dirent **names;
    int n = scandir("/sys/class/net", &names, not_loopback, alphasort);
    (void)given;
    json_array(w, "cards");
    for (int i = 0; i < n; i++) {
        const char *card = names[i]->d_name;
        if (number_of(&a, card, "ifindex") > 0) {
            json_object(w, NULL);
            json_put_string(w, "name", card);
            json_put_string(w, "state", read_text(&a, card, "operstate"));
            json_put_i64(w, "mtu", number_of(&a, card, "mtu"));
            json_put_i64(w, "speed", number_of(&a, card, "speed"));
            json_put_i64(w, "link_downs", number_of(&a, card, "carrier_down_count"));
            json_end_object(w);
        }
        free(names[i]);
    }
    if (n >= 0)
        free(names);
    json_end_array(w);
    infiniband_put(INFINIBAND_ROOT, w, "ports");
}

/* Of those that are up: "9000, 9000", in order. */
static const char *list(struct arena *a, const struct json *answer, const char *key) {
    const char *text = "";
    json_each(card, json_get(answer, "cards")) if (str_eq(json_get_string(card, "state", ""), "up"))
        text = arena_printf(a, "%s%s%lld", text, *text ? ", " : "",
                            (long long)json_get_i64(card, key, -1));
    return text;
}

enum { LINK_DOWNS_MOST = 20 };

struct port_owner {
    struct probing *probing;
    const char *host;
};

static void tell_port(void *arg, const char *sentence) {
    const struct port_owner *o = arg;
    probe_fail(o->probing, "%s: %s", o->host, sentence);
}

static void ask_ports(struct probing *p, const struct json *const *v) {
    const char **rates = arena_array(p->arena, const char *, p->n);
    for (size_t i = 0; i < p->n; i++) {
        struct port_owner o = {p, p->v[i].host};
        rates[i] = v[i] ? infiniband_rates(json_get(v[i], "ports"), p->arena) : NULL;
        infiniband_judge(json_get(v[i], "ports"), tell_port, &o);
    }
    probe_equal(p, "the rate of its active InfiniBand ports (Mbit/s)", rates);
}

static void ask(struct probing *p) {
    const struct json **v = probe_look_all(p);
    const char **texts = arena_array(p->arena, const char *, p->n);
    static const char *const keys[][2] = {{"mtu", "the MTU of its cards"},
                                          {"speed", "the speed of its cards (Mbit/s)"}};
    for (size_t k = 0; k < 2; k++) {
        for (size_t i = 0; i < p->n; i++)
            texts[i] = v[i] ? list(p->arena, v[i], keys[k][0]) : NULL;
        probe_equal(p, keys[k][1], texts);
    }
    for (size_t i = 0; i < p->n; i++)
        json_each(card, json_get(v[i], "cards")) if (json_get_i64(card, "link_downs", 0) >
                                                     LINK_DOWNS_MOST)
            probe_fail(p, "%s: %s has lost its link %lld times since it came up", p->v[i].host,
                       json_get_string(card, "name", "?"),
                       (long long)json_get_i64(card, "link_downs", 0));
    ask_ports(p, v);
    probe_pass(p, "MTU %s on all, and no link that goes down again and again",
               v[0] && *list(p->arena, v[0], "mtu") ? list(p->arena, v[0], "mtu") : "unknown");
}

const struct probe probe_nics = {
    .name = "nics",
    .text =
        "cards and InfiniBand ports of the same speed and MTU on all hosts, whose links stay up",
    .within_ns = INT64_C(5) * 1000000000,
    .look = look,
    .ask = ask,
};
