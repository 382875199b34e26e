/* rankrun status of a job over torchelastic's legacy rendezvous: asked in one read of etcd's v2
 * tree, told in the same form. What that protocol does not say is unknown; nobody waits for beats,
 * since etcd tells no watcher of them. */
#include "agent/legacy/account.h"
#include "agent/options.h"
#include "agent/status.h"
#include "agent/store/tree_client.h"
#include "base/json.h"
#include "base/str.h"
#include "base/sys/line.h"
#include "base/sys/printing.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { ANSWER_MS = 5000, USAGE = 64 };

struct status_legacy_asked {
    const struct options *options;
    struct arena arena;
    struct loop *loop;
    const char *folder;
    struct account account;
    int code;
};

/* ---- text ---- */

/* How it ended is said by rankrun agents alone. */
static const char *outcome_of(const struct account *c) {
    const char *end = document_end(&c->doc);
    return c->doc.status != DOCUMENT_CLOSED || !end ? NULL : end[0] ? "failed" : "succeeded";
}

static void print_head(const struct status_legacy_asked *s) {
    const struct account *c = &s->account;
    const char *outcome = outcome_of(c), *end = document_end(&c->doc);
    bool closed = c->doc.status == DOCUMENT_CLOSED;
    printf("job            %s, torchelastic's etcd rendezvous, index %" PRId64 "\n",
           s->options->run_id, c->index);
    printf("phase          %s%s%s", account_phase(c), closed ? ": " : "",
           outcome  ? outcome
           : closed ? "outcome unknown"
                    : "");
    printf(c->version ? ", round %" PRId64 "\n" : ", round unknown\n", c->version);
    printf("nodes          %d in the round (bounds unknown), %d waiting; world ", c->n,
           c->doc.waiting);
    printf(c->world ? "%d\n" : "unknown\n", c->world);
    printf("restarts       unknown: each agent counts its own\n");
    printf("coordinator    none\n");
    if (c->addr && c->port)
        printing_line(stdout, "master         %s:%s", c->addr, c->port);
    if (closed && end && end[0])
        printing_line(stdout, "first failure  %s", end);
}

/* The key comes with the confirmation. */
static const char *beat_of(const struct account *c, const struct account_member *m) {
    bool due = c->doc.status == DOCUMENT_FINAL || c->doc.status == DOCUMENT_CLOSED;
    return m->alive ? "within 10 s" : due ? "none in 10 s" : "-";
}

static void print_member(const struct account *c, int rank) {
    const struct account_member *m = &c->members[rank];
    char ranks[32] = "unknown", slots[16] = "?";
    if (m->slots)
        snprintf(slots, sizeof(slots), "%d", m->slots);
    if (m->slots && m->rank_base >= 0)
        snprintf(ranks, sizeof(ranks), m->slots > 1 ? "%d-%d" : "%d", m->rank_base,
                 m->rank_base + m->slots - 1);
    printing_line(stdout, "%-5d  %-16s  %-16s  %-9s  %5s  %-10s  %-9s  %-16s  %s", rank, "unknown",
                  rank == 0 && c->addr ? c->addr : "unknown", ranks, slots,
                  m->role ? m->role : "unknown", account_member_state(c, m), beat_of(c, m),
                  m->uid ? "rankrun" : "torchrun");
}

static void print_text(const struct status_legacy_asked *s) {
    print_head(s);
    if (s->account.n)
        printf("\n%-5s  %-16s  %-16s  %-9s  %5s  %-10s  %-9s  %-16s  %s\n", "GROUP", "NODE",
               "ADDRESS", "RANKS", "SLOTS", "ROLE", "STATE", "LAST BEAT", "AGENT");
    for (int i = 0; i < s->account.n; i++)
        print_member(&s->account, i);
}

/* ---- JSON ---- */

/* The keys of a job of rankrun's own that this one has no answer to. */
static void put_unknown(struct json_writer *w) {
    static const char *const keys[] = {"incarnation",  "nodes_min",     "nodes_max",   "restarts",
                                       "restarts_max", "restarts_left", "coordinator", "beat_ms"};
    for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
        json_put_null(w, keys[i]);
}

static void put_member(struct json_writer *w, const struct account *c, int rank) {
    const struct account_member *m = &c->members[rank];
    json_object(w, NULL);
    json_put_string(w, "uid", m->uid);
    json_put_null(w, "node");
    json_put_string(w, "addr", rank == 0 ? c->addr : NULL);
    json_put_string(w, "role", m->role);
    json_put_known(w, "slots", m->slots > 0, m->slots);
    json_put_string(w, "state", account_member_state(c, m));
    json_put_bool(w, "spare", false);
    json_put_i64(w, "group_rank", rank);
    json_put_known(w, "first_rank", m->slots > 0 && m->rank_base >= 0, m->rank_base);
    json_put_null(w, "next_beat_ms");
    json_put_bool(w, "alive", m->alive);
    json_put_string(w, "agent", m->uid ? "rankrun" : "torchrun");
    json_end_object(w);
}

static void put_failure(struct json_writer *w, const struct account *c) {
    const char *end = document_end(&c->doc);
    if (c->doc.status != DOCUMENT_CLOSED || !end || !end[0]) {
        json_put_null(w, "first_failure");
        return;
    }
    json_object(w, "first_failure");
    json_put_null(w, "node");
    json_put_string(w, "error", end);
    json_end_object(w);
}

static void print_json(const struct status_legacy_asked *s) {
    const struct account *c = &s->account;
    BUF_FINI struct buf b = {0};
    struct json_writer w = {.out = &b};
    int64_t port = 0;
    bool has_port = c->port && str_to_i64(c->port, 1, 65535, &port);
    json_object(&w, NULL);
    json_put_string(&w, "run_id", s->options->run_id);
    json_put_i64(&w, "revision", c->index);
    json_put_string(&w, "phase", account_phase(c));
    json_put_string(&w, "outcome", outcome_of(c));
    json_put_known(&w, "round", c->version > 0, c->version);
    json_put_i64(&w, "nodes", c->n);
    json_put_i64(&w, "waiting", c->doc.waiting);
    json_put_known(&w, "world", c->world > 0, c->world);
    json_put_string(&w, "master_addr", c->addr);
    json_put_known(&w, "master_port", has_port, port);
    put_unknown(&w);
    json_put_i64(&w, "not_read", 0);
    put_failure(&w, c);
    json_array(&w, "members");
    for (int i = 0; i < c->n; i++)
        put_member(&w, c, i);
    json_end_array(&w);
    json_end_object(&w);
    puts(buf_str(&b));
}

/* ---- asking ---- */

static int say_trouble(const struct status_legacy_asked *s, const struct tree_answer *answer) {
    const char *at = s->options->endpoints;
    switch (answer->result) {
    case TREE_MISSING:
        line_say(LINE_ERROR, "run", "the etcd at %s has no run %s: there is no %s", at,
                 s->options->run_id, s->folder);
        return STATUS_NO_RUN;
    case TREE_NO_V2:
        line_say(LINE_ERROR, "store",
                 "what answers at %s does not serve etcd's v2 API: an etcd is started with "
                 "--enable-v2 (up to 3.5 has it); a job of rankrun's own protocol is asked with "
                 "--rdzv-backend etcd-v3 or embedded",
                 at);
        return USAGE;
    case TREE_LOST:
    case TREE_STRANGE:
    case TREE_REFUSED:
    case TREE_CHANGED:
    case TREE_EXISTS:
    case TREE_CLEARED:
    case TREE_DONE:
        break;
    }
    line_say(LINE_ERROR, "store", "the etcd at %s: %s", at, answer->text);
    return STATUS_NO_STORE;
}

static void on_answer(void *arg, uint64_t id, const struct tree_answer *answer) {
    struct status_legacy_asked *s = arg;
    s->code = answer->result == TREE_DONE ? STATUS_FOUND : say_trouble(s, answer);
    if (s->code == STATUS_FOUND)
        account_read(&s->arena, s->folder, answer, &s->account);
    if (s->account.doc.status == DOCUMENT_STRANGE) {
        line_say(LINE_ERROR, "run",
                 "%s/active_version at %s holds %.200s, which is no state of torchelastic's "
                 "rendezvous",
                 s->folder, s->options->endpoints, s->account.doc.text);
        s->code = STATUS_NO_RUN;
    }
    if (s->code == STATUS_FOUND && s->options->status_json)
        print_json(s);
    else if (s->code == STATUS_FOUND)
        print_text(s);
    loop_stop(s->loop);
}

int status_run_legacy(const struct options *o) {
    struct err err = {0};
    struct status_legacy_asked s = {.options = o, .code = STATUS_NO_STORE};
    s.folder = account_folder(&s.arena, o->rdzv.etcd_prefix, o->run_id);
    s.loop = loop_new(&err);
    struct tree_client *tree =
        s.loop ? tree_client_new(s.loop, o->endpoints, &o->rdzv.access, on_answer, &s, &err) : NULL;
    if (tree) {
        struct tree_request q = {.verb = TREE_GET, .key = s.folder, .timeout_ms = ANSWER_MS};
        tree_client_send(tree, 1, &q);
        loop_run(s.loop, &err);
    }
    if (err.code)
        line_say(LINE_ERROR, "error", "%s", err.msg);
    tree_client_free(tree);
    loop_free(s.loop);
    account_fini(&s.account);
    arena_fini(&s.arena);
    return s.code;
}
