#include "harness/cluster/metadata.h"

#include "base/list.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/sys/file.h"
#include "base/sys/netlink.h"

#include <errno.h>
#include <event2/buffer.h>
#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { PORT = 80, HEADERS_MAX = 16 << 10, BODY_MAX = 1 << 10, IDLE_S = 300 };
#define TOKEN "rankquake"

struct metadata_wait { /* until something changes */
    struct list link;
    struct evhttp_request *req;
};

struct metadata {
    struct evhttp *http;
    char *cloud, *text; /* NULL: nobody takes it away */
    struct list waiting;
};

struct said {
    int status;
    const char *type, *text;
};

static const char *header_of(struct evhttp_request *req, const char *name) {
    return evhttp_find_header(evhttp_request_get_input_headers(req), name);
}

static bool says(struct evhttp_request *req, const char *header, const char *wanted) {
    const char *value = header_of(req, header);
    return value && strcasecmp(value, wanted) == 0;
}

/* What the cloud has said; "" where it is another one, or none has. */
static const char *told_by(const struct metadata *m, const char *cloud) {
    return m->cloud && str_eq(m->cloud, cloud) ? m->text : "";
}

/* ---- the clouds ---- */

static struct said token(const struct metadata *m, struct evhttp_request *req) {
    if (evhttp_request_get_command(req) != EVHTTP_REQ_PUT)
        return (struct said){405, "text/plain", ""};
    if (!header_of(req, "X-aws-ec2-metadata-token-ttl-seconds"))
        return (struct said){400, "text/plain", ""};
    return (struct said){200, "text/plain", TOKEN};
}

static struct said spot(const struct metadata *m, struct evhttp_request *req, const char *type,
                        const char *text) {
    const char *shown = header_of(req, "X-aws-ec2-metadata-token");
    if (shown && !str_eq(shown, TOKEN))
        return (struct said){401, "text/plain", ""};
    return *text ? (struct said){200, type, text} : (struct said){404, "text/plain", ""};
}

static struct said instance_action(const struct metadata *m, struct evhttp_request *req) {
    return spot(m, req, "application/json", told_by(m, "aws"));
}

/* The time out of the other document, which is ours: {"action": "..", "time": ".."}. */
static struct said termination_time(const struct metadata *m, struct evhttp_request *req) {
    static char when[32];
    const char *text = told_by(m, "aws"), *time = strstr(text, "\"time\": \"");
    *when = '\0';
    if (time)
        snprintf(when, sizeof(when), "%.*s", (int)strcspn(time + 9, "\""), time + 9);
    return spot(m, req, "text/plain", when);
}

static struct said preempted(const struct metadata *m, struct evhttp_request *req) {
    if (!says(req, "Metadata-Flavor", "Google"))
        return (struct said){403, "text/plain", "Missing Metadata-Flavor:Google header.\n"};
    const char *text = told_by(m, "gcp");
    return (struct said){200, "application/text", *text ? "TRUE" : "FALSE"};
}

static struct said scheduled_events(const struct metadata *m, struct evhttp_request *req) {
    if (!says(req, "Metadata", "true"))
        return (struct said){
            400, "application/json",
            "{\"error\": \"Bad request. Required metadata header not specified\"}\n"};
    const char *text = told_by(m, "azure");
    return (struct said){200, "application/json",
                         *text ? text : "{\"DocumentIncarnation\": 0, \"Events\": []}\n"};
}

static const struct document {
    const char *path;
    struct said (*say)(const struct metadata *m, struct evhttp_request *req);
    bool waits; /* it can be asked to wait for a change */
} documents[] = {
    {"/latest/api/token", token, false},
    {"/latest/meta-data/spot/instance-action", instance_action, false},
    {"/latest/meta-data/spot/termination-time", termination_time, false},
    {"/computeMetadata/v1/instance/preempted", preempted, true},
    {"/metadata/scheduledevents", scheduled_events, false},
};

/* ---- answering ---- */

static const struct document *document_of(struct evhttp_request *req) {
    const char *path = evhttp_uri_get_path(evhttp_request_get_evhttp_uri(req));
    for (size_t i = 0; i < sizeof(documents) / sizeof(*documents); i++)
        if (str_eq(path, documents[i].path))
            return &documents[i];
    return NULL;
}

static void answer(struct metadata *m, struct evhttp_request *req) {
    const struct document *d = document_of(req);
    struct said r = d ? d->say(m, req) : (struct said){404, "text/plain", ""};
    struct evbuffer *out = evbuffer_new();
    struct evkeyvalq *headers = evhttp_request_get_output_headers(req);
    evhttp_add_header(headers, "Content-Type", r.type);
    if (says(req, "Metadata-Flavor", "Google"))
        evhttp_add_header(headers, "Metadata-Flavor", "Google");
    evbuffer_add(out, r.text, strlen(r.text));
    evhttp_send_reply(req, r.status, NULL, out);
    evbuffer_free(out);
}

static bool wants_change(struct evhttp_request *req) {
    struct evkeyvalq q = {0};
    const char *query = evhttp_uri_get_query(evhttp_request_get_evhttp_uri(req));
    if (!query || evhttp_parse_query_str(query, &q) != 0)
        return false;
    const char *value = evhttp_find_header(&q, "wait_for_change");
    bool yes = value && strcasecmp(value, "true") == 0;
    evhttp_clear_headers(&q);
    return yes;
}

static void forget(struct metadata_wait *w) {
    list_remove(&w->link);
    free(w);
}

static void on_gone(struct evhttp_connection *connection, void *arg) {
    struct metadata_wait *w = arg;
    evhttp_connection_set_closecb(connection, NULL, NULL);
    forget(w);
}

static void on_request(struct evhttp_request *req, void *arg) {
    struct metadata *m = arg;
    const struct document *d = document_of(req);
    if (!d || !d->waits || m->cloud || !wants_change(req) ||
        !says(req, "Metadata-Flavor", "Google")) {
        answer(m, req);
        return;
    }
    struct metadata_wait *w = mem_new(struct metadata_wait);
    w->req = req;
    list_append(&m->waiting, &w->link);
    evhttp_connection_set_closecb(evhttp_request_get_connection(req), on_gone, w);
}

void metadata_tell(struct metadata *m, const char *cloud, const char *text) {
    free(m->cloud);
    free(m->text);
    m->cloud = mem_strdup(cloud);
    m->text = mem_strdup(text);
    list_each_safe(it, next, &m->waiting) {
        struct metadata_wait *w = list_entry(it, struct metadata_wait, link);
        struct evhttp_request *req = w->req;
        evhttp_connection_set_closecb(evhttp_request_get_connection(req), NULL, NULL);
        forget(w);
        answer(m, req);
    }
}

/* ---- its life ---- */

static int take_address(struct err *err) {
    int lo;
    FILE_CLOSE int nl = netlink_open_route(err);
    if (nl < 0)
        return nl;
    int r = netlink_link_index(nl, "lo", &lo, err);
    return r ? r : netlink_add_address(nl, lo, METADATA_ADDRESS, 32, err);
}

int metadata_open(struct metadata **ret, struct loop *l, struct err *err) {
    int r = take_address(err);
    if (r)
        return r;
    struct metadata *m = mem_new(struct metadata);
    list_init(&m->waiting);
    m->http = evhttp_new(loop_base(l));
    if (!m->http || evhttp_bind_socket(m->http, METADATA_ADDRESS, PORT) != 0) {
        r = err_set(err, -errno, "listen at " METADATA_ADDRESS " port %d", PORT);
        metadata_free(m);
        return r;
    }
    evhttp_set_allowed_methods(m->http, EVHTTP_REQ_GET | EVHTTP_REQ_PUT);
    evhttp_set_max_headers_size(m->http, HEADERS_MAX);
    evhttp_set_max_body_size(m->http, BODY_MAX);
    evhttp_set_timeout(m->http, IDLE_S);
    evhttp_set_gencb(m->http, on_request, m);
    *ret = m;
    return 0;
}

struct metadata *metadata_free(struct metadata *m) {
    if (!m)
        return NULL;
    list_each_safe(it, next, &m->waiting) {
        struct metadata_wait *w = list_entry(it, struct metadata_wait, link);
        evhttp_connection_set_closecb(evhttp_request_get_connection(w->req), NULL, NULL);
        forget(w);
    }
    if (m->http)
        evhttp_free(m->http);
    free(m->cloud);
    free(m->text);
    free(m);
    return NULL;
}
