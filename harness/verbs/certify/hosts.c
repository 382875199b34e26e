/* The hosts that a provider reaches, from the plan to the certificate: who they are, that they are ours for as long as it lasts,
 * and what they cannot do. */
#include "harness/verbs/certify/certifying.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "harness/preflight/inventory.h"
#include "harness/provider/provider.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* To make the way to one, and for its answer; a way takes this host's processors as well. */
static const int64_t ANSWER_NS = INT64_C(30) * 1000000000, EACH_NS = INT64_C(750) * 1000000;

/* ---- which ---- */

static struct certified_host *find(struct certification *c, const char *name) {
    for (size_t i = 0; i < c->hosts_n; i++)
        if (str_eq(c->hosts[i].name, name))
            return &c->hosts[i];
    return NULL;
}

/* As the scenario or the command line names them; else those that the provider knows of itself. */
static int names_of(struct certification *c, const struct cluster_spec *of, const char *const **ret,
                    size_t *ret_n) {
    const struct provider *p = provider_find(provider_names[of->provider]);
    struct err err = {0};
    *ret = (const char *const *)of->hosts;
    *ret_n = of->hosts_n;
    if (!of->hosts_n && p->find && p->find(&c->arena, ret, ret_n, &err) < 0)
        return verb_usage_error(c->arguments->verb, "%s", err.msg);
    return 0;
}

static int add_one(struct certification *c, const struct scenario *s, const char *name, size_t i) {
    struct err err = {0};
    if (find(c, name))
        return 0;
    if (c->provider->check(name, &err) != 0)
        return verb_usage_error(c->arguments->verb, "%s", err.msg);
    bool used = i < (size_t)s->cluster.nodes;
    const char *node = used ? arena_printf(&c->arena, "n%zu", i) : NULL;
    mem_push(c->hosts, c->hosts_n) = (struct certified_host){
        .name = name,
        .node = node,
        .rack = node ? scenario_rack_of(s, node) : 0,
        .keeper = STATION_NONE,
    };
    return 0;
}

static int add_all(struct certification *c, const struct scenario *s) {
    const struct cluster_spec *of = &s->cluster;
    const struct provider *p = provider_find(provider_names[of->provider]);
    const char *const *names;
    size_t n;
    if (c->provider && c->provider != p)
        return verb_usage_error(c->arguments->verb,
                                "%s names hosts of provider %s, and others of %s: certify them one "
                                "after the other",
                                s->name, p->name, c->provider->name);
    c->provider = p;
    c->ssh = of->ssh;
    int code = names_of(c, of, &names, &n);
    for (size_t i = 0; i < n && code == 0; i++)
        code = add_one(c, s, names[i], i);
    return code;
}

static int refuse_denied(const struct certification *c, const char *name, const char *by) {
    return verb_usage_error(c->arguments->verb,
                            "%s is on the list of what nothing may be done on, by %s; nothing was "
                            "done",
                            name, by);
}

/* "me@node7" is who asks, and where. */
static int check_name(struct certification *c, const struct certified_host *h) {
    const char *by, *at = strchr(h->name, '@');
    const char *user = at ? arena_strndup(&c->arena, h->name, (size_t)(at - h->name)) : "";
    const char *host = at ? at + 1 : h->name;
    return permit_allows_host(&c->permit, host, user, NULL, &by) ? 0
                                                                 : refuse_denied(c, h->name, by);
}

static void drop_points(struct certification *c, const struct selected *of) {
    size_t kept = 0;
    for (size_t i = 0; i < c->points_n; i++)
        if (c->points[i].of != of)
            c->points[kept++] = c->points[i];
    c->points_n = kept;
}

/* Whether a selection is run at all. */
static bool has_points(const struct certification *c, const struct selected *of) {
    for (size_t i = 0; i < c->points_n; i++)
        if (c->points[i].of == of)
            return true;
    return false;
}

/* What has more nodes than there are hosts is left out, and told with the plan. */
static int leave_out_large(struct certification *c) {
    int code = 0;
    for (size_t i = 0; i < c->selection.n && code == 0; i++) {
        const struct selected *l = &c->selection.v[i];
        const struct cluster_spec *of = &l->scenario->cluster;
        const char *const *names;
        size_t n;
        if (!of->provider || (code = names_of(c, of, &names, &n)) || (size_t)of->nodes <= n)
            continue;
        certify_leave_out(c, l->scenario->name,
                          arena_printf(&c->arena, "it has %d nodes, and there %s %zu host%s",
                                       of->nodes, n == 1 ? "is" : "are", n, n == 1 ? "" : "s"));
        drop_points(c, l);
    }
    if (code || c->points_n)
        return code;
    return verb_usage_error(c->arguments->verb,
                            "%s: every scenario has more nodes than there are hosts", c->suite);
}

int certify_hosts_find(struct certification *c) {
    int code = leave_out_large(c);
    for (size_t i = 0; i < c->points_n && code == 0; i++) {
        const struct scenario *s = c->points[i].of->scenario;
        if (s->cluster.provider)
            code = add_all(c, s);
        else
            c->here = true;
    }
    for (size_t i = 0; i < c->hosts_n && code == 0; i++)
        code = check_name(c, &c->hosts[i]);
    return code;
}

/* ---- who they are ---- */

static void open_all(struct certification *c) {
    char folder[PATH_MAX];
    const struct provider_wish wish = {
        .ssh = c->ssh,
        .program =
            arena_printf(&c->arena, "%s/rankquake-node", file_own_folder(folder, sizeof(folder)))};
    for (size_t i = 0; i < c->hosts_n; i++) {
        struct certified_host *h = &c->hosts[i];
        h->words = c->provider->outpost(&wish, h->name, &c->arena);
        station_open(&h->keeper, h->name, h->name, h->words);
    }
}

/* All are asked before any is heard. ret: of each, NULL where there is none, which has been said then. */
static int ask_all(struct certification *c, const char *text, const struct json **ret) {
    int code = 0;
    int64_t until_ns = clock_monotonic_ns() + ANSWER_NS + (int64_t)c->hosts_n * EACH_NS;
    for (size_t i = 0; i < c->hosts_n; i++)
        station_ask(&c->hosts[i].keeper, text);
    for (size_t i = 0; i < c->hosts_n; i++) {
        struct station *s = &c->hosts[i].keeper;
        ret[i] = station_hear(s, &c->arena, until_ns);
        const char *error = ret[i] ? json_get_string(ret[i], "error", NULL) : s->why;
        if (!error)
            continue;
        fprintf(stderr, "rankquake certify: %s: %s; nothing was done\n", s->host, error);
        code = EXIT_SKIPPED;
    }
    return code;
}

static const char *const *texts_of(struct certification *c, const struct json *list) {
    size_t n = 0;
    const char **v = arena_array(&c->arena, const char *, (list ? list->length : 0) + 1);
    json_each(m, list) v[n++] = json_string(m, "");
    v[n] = NULL;
    return (const char *const *)v;
}

/* As it calls itself, whoever we are there, at any of its addresses. */
static int check_self(struct certification *c, struct certified_host *h, const struct json *self) {
    const char *by, *address = json_get_string(json_get(self, "facts"), "address", "");
    h->address = *address ? address : h->name;
    h->kernel = json_get_string(self, "kernel", "");
    h->network = json_get_i64(json_get(self, "facts"), "network", 0);
    for (const struct certified_host *k = c->hosts; k < h; k++)
        h->again |= str_eq(k->kernel, h->kernel) && k->network == h->network;
    return permit_allows_host(&c->permit, json_get_string(self, "host", ""),
                              json_get_string(self, "user", ""),
                              texts_of(c, json_get(self, "addresses")), &by)
               ? 0
               : refuse_denied(c, h->name, by);
}

/* ---- taking them ---- */

static const char *hold_question(struct certification *c, const char *who) {
    BUF_FINI struct buf text = {0};
    struct json_writer w = {.out = &text};
    json_object(&w, NULL);
    json_put_string(&w, "do", "hold");
    json_put_string(&w, "who", who);
    json_put_string(&w, "run", arena_printf(&c->arena, "certify %s of %s", c->suite, who));
    json_end_object(&w);
    return arena_strdup(&c->arena, buf_str(&text));
}

static int hold_all(struct certification *c, const char *who, const struct json **v) {
    int code = ask_all(c, hold_question(c, who), v);
    for (size_t i = 0; i < c->hosts_n && code == 0; i++) {
        const char *by = json_get_string(v[i], "by", NULL);
        if (!by)
            continue;
        fprintf(stderr, "rankquake certify: %s is being certified by %s; nothing was done\n",
                c->hosts[i].name, by);
        code = EXIT_SKIPPED;
    }
    return code;
}

int certify_hosts_take(struct certification *c, const char *who) {
    const struct json **v = arena_array(&c->arena, const struct json *, c->hosts_n + 1);
    if (!c->hosts_n)
        return 0;
    open_all(c);
    int code = ask_all(c, "{\"do\":\"self\"}", v);
    for (size_t i = 0; i < c->hosts_n && code == 0; i++)
        code = check_self(c, &c->hosts[i], v[i]);
    code = code ? code : hold_all(c, who, v);
    code = code ? code : ask_all(c, "{\"do\":\"inventory\"}", v);
    for (size_t i = 0; i < c->hosts_n && code == 0; i++)
        c->hosts[i].inventory = json_get(v[i], "inventory");
    return code;
}

void certify_hosts_end(struct certification *c) {
    for (size_t i = 0; i < c->hosts_n; i++)
        station_end(&c->hosts[i].keeper);
    for (size_t i = 0; i < c->hosts_n; i++)
        station_close(&c->hosts[i].keeper);
    free(c->hosts);
}

/* ---- while it lasts ---- */

const char *certify_hosts_halted(struct certification *c) {
    for (size_t i = 0; i < c->hosts_n; i++) {
        struct station *s = &c->hosts[i].keeper;
        struct pollfd p = {.fd = s->from, .events = POLLIN};
        if (*s->why || poll(&p, 1, 0) <= 0)
            continue;
        const struct json *said = station_hear(s, &c->arena, clock_monotonic_ns() + ANSWER_NS);
        if (json_get_bool(said, "halted", false))
            return s->host;
    }
    return NULL;
}

static bool all_work(const struct plan *p) {
    for (size_t i = 0; i < p->hosts_n; i++)
        if (!p->hosts[i].works)
            return false;
    return true;
}

/* What a host lacks is known before the first run. So whatever is skipped later is skipped because a host was lost. */
void certify_hosts_sift(struct certification *c) {
    for (size_t i = 0; i < c->selection.n; i++) {
        const struct selected *l = &c->selection.v[i];
        struct err err = {0};
        if (!l->scenario->cluster.provider || !has_points(c, l) ||
            plan_check_host(l->plan, &err) != -ENOTSUP || !all_work(l->plan))
            continue;
        certify_leave_out(c, l->scenario->name, err.msg);
        drop_points(c, l);
    }
}

/* ---- in the certificate ---- */

static void put_own(struct certification *c, struct json_writer *w) {
    BUF_FINI struct buf text = {0};
    struct json_writer inner = {.out = &text};
    inventory_put(&inner, NULL);
    const struct json *j = json_parse(&c->arena, text.data, text.len, NULL);
    json_object(w, NULL);
    json_put_string(w, "name", json_get_string(j, "host", "?"));
    json_put_tree(w, "inventory", j);
    json_end_object(w);
}

void certify_hosts_put(struct certification *c, struct json_writer *w, const char *key) {
    json_array(w, key);
    if (c->here || !c->hosts_n)
        put_own(c, w);
    for (size_t i = 0; i < c->hosts_n; i++) {
        const struct certified_host *h = &c->hosts[i];
        json_object(w, NULL);
        json_put_string(w, "name", h->name);
        json_put_string(w, "provider", c->provider->name);
        json_put_string(w, "address", h->address);
        json_put_string(w, "node", h->node);
        if (h->rack)
            json_put_string(w, "rack", arena_printf(&c->arena, "rack %d", h->rack - 1));
        json_put_tree(w, "inventory", h->inventory);
        json_end_object(w);
    }
    json_end_array(w);
}
