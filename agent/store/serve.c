#include "agent/store/serve.h"

#include "agent/core/kv.h"
#include "agent/store/marker.h"
#include "agent/store/server.h"
#include "agent/tls/tls.h"
#include "base/sys/descriptors.h"
#include "base/sys/line.h"
#include "base/sys/loop.h"
#include "base/sys/random.h"
#include "base/sys/signals.h"

#include <signal.h>

static void on_end(void *arg, int signo) {
    loop_stop(arg);
}

/* What keeps the marker from its place is told, and no reason not to serve. */
static void open_marker(struct server *s, struct kv *kv, struct marker *m,
                        const struct serve_config *c) {
    struct err err;
    bool held = marker_open(m, c->host, server_port(s), c->quarantine, kv, &err);
    server_changed(s);
    if (err.code)
        line_say(LINE_WARNING, "store", "store: %s", err.msg);
    if (held)
        line_say(LINE_WARNING, "store",
                 "store: first rounds are held back for workers that a store here may have "
                 "forgotten (--quarantine=%s)",
                 c->quarantine);
}

/* Programs wait for it, and find the port that was free in it. */
static void tell_listening(const char *host, uint16_t port) {
    const struct line_field fields[] = {{"host", host, 0}, {"port", NULL, port}};
    const struct line line = {.level = LINE_INFO,
                              .what = "listening",
                              .fields = fields,
                              .n_fields = 2,
                              .on_stdout = true};
    line_put(&line, "store: listening on %s:%u", host, port);
}

static void open_server(struct server *s, struct kv *kv, struct marker *marker,
                        const struct serve_config *c) {
    struct server_limits limits;
    if (c->tls)
        server_encrypt(s, c->tls, c->clients_certified);
    server_demand(s, c->token);
    if (c->draw_token)
        server_draw_token(s);
    server_limits_of(&limits, c->memory_mb, c->connections_max);
    server_limit(s, &limits);
    server_allow(s, c->names);
    server_warn(s);
    open_marker(s, kv, marker, c);
    tell_listening(c->host, server_port(s));
}

int serve_run(const struct serve_config *c, struct err *err) {
    struct loop *l = loop_new(err);
    if (!l) {
        tls_free(c->tls);
        return err->code;
    }
    descriptors_raise_limit();
    signal_ignore_writes();
    struct loop_source *term = loop_signal(l, SIGTERM, on_end, l);
    struct loop_source *intr = loop_signal(l, SIGINT, on_end, l);
    struct kv *kv = kv_new(random_u64(), 0);
    struct server *s = server_new(l, kv, c->host, c->port, err);
    struct marker marker = {0};
    int rc;
    if (s) {
        open_server(s, kv, &marker, c);
        rc = loop_run(l, err);
    } else {
        rc = err->code;
        tls_free(c->tls);
    }
    server_free(s);
    marker_close(&marker, kv);
    kv_free(kv);
    loop_source_free(term);
    loop_source_free(intr);
    loop_free(l);
    return rc;
}
