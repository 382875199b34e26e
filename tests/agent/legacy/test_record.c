/* What agents of the legacy rendezvous ask for is as it was when somebody last looked at it. This file stands between agents and
 * what drives them: all that is asked for in drawn schedules, to the last field and word, goes into a number, and record.txt has
 * one for every few. So does what is read of drawn keys and written into drawn states. Whoever changes any of it finds here that
 * it is another; `make transcripts` writes the file anew. */
#define legacy_step own_step
#include "agent/legacy/legacy.c"
#undef legacy_step
#include "agent/legacy/account.h"
#include "base/base64.h"
#include "tests/agent/core/seen.h"
#include "tests/agent/legacy/alone.h"
#include "tests/agent/legacy/fleet.h"
#include "tests/agent/on_record.h"

#include <signal.h>

static const char path[] = "tests/agent/legacy/record.txt";

static struct rand chance;

static int draw(int n) {
    return (int)rand_below(&chance, (uint64_t)n);
}

const struct action *legacy_step(struct legacy *l, const struct event *event, struct now now,
                                 size_t *ret_n);
const struct action *legacy_step(struct legacy *l, const struct event *event, struct now now,
                                 size_t *ret_n) {
    const struct action *a = own_step(l, event, now, ret_n);
    for (size_t i = 0; i < *ret_n; i++)
        see_action(&a[i]);
    see(l->over);
    return a;
}

/* ---- several agents, faults ---- */

static void disturb(struct fleet *f) {
    int i = draw(FLEET_MAX);
    const struct fleet_agent *a = fleet_agent(f, i);
    switch (draw(9)) {
    case 0:
        if (a->up)
            fleet_crash(f, i);
        break;
    case 1:
        fleet_exit(f, i, draw(2) ? SIGKILL : 3 << 8);
        break;
    case 2:
        fleet_pause(f, i, draw(25) * S);
        break;
    case 3:
        fleet_cut(f, i, draw(25) * S);
        break;
    case 4:
        if (a->up)
            fleet_signal(f, i, draw(2) ? SIGTERM : SIGINT);
        break;
    case 5:
        fleet_exit(f, i, draw(2) ? FLEET_GUARD_KILLED : FLEET_GUARD_DUE);
        break;
    case 6:
        for (int k = 0; k < FLEET_MAX; k++)
            fleet_exit(f, k, 0);
        break;
    default:
        if (!a->up)
            fleet_start(f, i);
    }
}

static void play_fleet(uint64_t seed) {
    rand_init(&chance, seed);
    int min = 1 + draw(3), max = min + draw(3);
    struct fleet *f = fleet_new(seed, min, max, draw(4));
    if (draw(3) == 0)
        fleet_gang(f);
    if (draw(2))
        fleet_names(f);
    if (draw(3) == 0)
        fleet_nameless(f, draw(max));
    fleet_lose(f, draw(3) ? 0 : 0.05);
    for (int i = 0; i < max; i++)
        if (i < min || draw(2))
            fleet_start(f, i);
    for (int k = 0; k < 10; k++) {
        fleet_run(f, draw(8000) * MS);
        disturb(f);
    }
    fleet_run(f, 40 * S);
    see_text(fleet_wrong(f));
    see((uint64_t)fleet_requests(f));
    fleet_free(f);
}

/* ---- one agent, and what others make of its keys ---- */

static void play_alone(uint64_t seed) {
    alone_play(seed, 800);
}

/* ---- states ---- */

static const char *const statuses[] = {"setup",  "joinable", "frozen", "final",
                                       "closed", "melting",  "",       NULL};

/* Of what is there one part may be of another type, missing, or more than it should be. */
static void draw_state(struct buf *out) {
    static const char *const odd[] = {"1",  "\"1\"",  "\"x\"", "[]",
                                      "{}", "[0, 1]", "null",  "\"9223372036854775807\""};
    static const char *const keys[] = {"version",     "participants",  "rankrun",
                                       "keep_alives", "rankrun_nodes", "num_workers_waiting"};
    static const char *const values[] = {"\"3\"",
                                         "[0, 1, 2]",
                                         "{\"0\": \"a\", \"1\": \"b\", \"2\": \"c\"}",
                                         "[\"/k0\", \"/k1\"]",
                                         "{\"1\": \"n1\"}",
                                         "2"};
    const char *status = statuses[draw(8)];
    int spoilt = draw(3) ? -1 : draw(6), missing = draw(2) ? -1 : draw(6);
    buf_printf(out, "{\"later\": [1.5, {\"a\": null}]");
    if (status)
        buf_printf(out, ", \"status\": \"%s\"", status);
    for (int i = 0; i < 6; i++)
        if (i != missing)
            buf_printf(out, ", \"%s\": %s", keys[i], i == spoilt ? odd[draw(8)] : values[i]);
    if (draw(2))
        buf_puts(out, ", \"rankrun_hosts\": {\"0\": \"n0.example 192.0.2.1\", \"2\": \"x\"}");
    if (draw(4) == 0)
        buf_puts(out, ", \"rankrun_end\": \"rank 1 failed\"");
    buf_puts(out, draw(20) ? "}" : "");
}

static bool see_alive(void *arg, const char *key) {
    see_text(key);
    return --*(int *)arg < 0;
}

static void see_document(const struct document *d) {
    static const char *const uids[] = {"a", "b", "c", "z", ""};
    int few = draw(3);
    see((uint64_t)d->status << 32 | (uint64_t)d->n);
    see_text(d->text);
    see((uint64_t)d->modified);
    see((uint64_t)d->version);
    see((uint64_t)d->waiting << 32 | (uint64_t)d->confirmed);
    for (int i = 0; i < 5; i++)
        see((uint64_t)document_rank(d, uids[i]));
    for (int i = -1; i < 4; i++) {
        see_text(document_node(d, i));
        see_text(document_host(d, i));
    }
    see((uint64_t)document_has_keep_alive(d, "/k1") << 1 | document_has_keep_alive(d, "/k"));
    see(document_is_pure(d));
    see_text(document_end(d));
    see(document_any_keep_alive(d, see_alive, &few));
}

static void see_edit(const struct document *d) {
    BUF_FINI struct buf b = {0};
    struct document_edit e = {.uid = "me"};
    e.status = draw(2) ? statuses[draw(5)] : NULL;
    e.add_rank = draw(2) ? d->n : -1;
    e.node = draw(2) ? "mine" : NULL;
    e.host = draw(2) ? "mine.example 192.0.2.9" : NULL;
    e.begin_keep_alives = draw(3) == 0;
    e.add_keep_alive = draw(3) ? NULL : "/mine";
    e.waiting = draw(3) - 1;
    e.end = draw(3) ? NULL : draw(2) ? "" : "it broke";
    document_write(d, &e, &b);
    see_text(buf_str(&b));
}

static void play_states(uint64_t seed) {
    struct document d = {0};
    rand_init(&chance, seed);
    for (int i = 0; i < 100; i++) {
        BUF_FINI struct buf text = {0};
        draw_state(&text);
        int modified = draw(9);
        document_read(&d, draw(30) ? buf_str(&text) : NULL, modified);
        see_document(&d);
        see_edit(&d);
    }
    document_fini(&d);
}

/* ---- what somebody sees who takes no part ---- */

enum { NODES_MAX = 32 };

struct keys {
    struct arena arena;
    struct tree_node nodes[NODES_MAX];
    size_t n;
};

static void put_key(struct keys *k, const char *below, const char *value) {
    k->nodes[k->n++] =
        (struct tree_node){.key = arena_printf(&k->arena, "/own/run_job/rdzv/%s", below),
                           .value = value,
                           .modified = (int64_t)k->n + 7};
}

static void tell_key(struct keys *k, int version, const char *name, const char *value) {
    put_key(k, arena_printf(&k->arena, "v_%d/kv/%s", version, base64_coded(&k->arena, name)),
            draw(20) ? base64_coded(&k->arena, value) : "!");
}

static const char *draw_info(struct keys *k) {
    static const int slots[] = {1, 2, 3, 0, -1, 100000, 100001};
    int role = draw(3), n = slots[draw(3) ? draw(3) : draw(7)];
    return draw(10)
               ? arena_printf(&k->arena, "{\"role\": \"r%d\", \"local_world_size\": %d}", role, n)
               : "no JSON";
}

static void draw_keys(struct keys *k) {
    BUF_FINI struct buf state = {0};
    draw_state(&state);
    if (draw(12))
        put_key(k, "active_version", arena_strdup(&k->arena, buf_str(&state)));
    for (int i = 0; i < 3; i++) {
        int version = draw(8) ? 3 : 2;
        if (draw(3))
            put_key(k, arena_printf(&k->arena, "v_%d/rank_%d", version, i), "");
        const char *info = draw_info(k);
        if (draw(6))
            tell_key(k, version,
                     arena_printf(&k->arena, "torchelastic/role_info%s%d", draw(2) ? "/" : "", i),
                     info);
        if (draw(4) == 0)
            tell_key(k, version,
                     arena_printf(&k->arena, "torchelastic/agent/terminal_state%s%d",
                                  draw(2) ? "/" : "", i),
                     "1");
    }
    if (draw(2))
        tell_key(k, 3, "MASTER_ADDR", "n0.example");
    if (draw(2))
        tell_key(k, 3, "MASTER_PORT", "29500");
}

static void see_account(const struct account *c) {
    see((uint64_t)c->index);
    see((uint64_t)c->doc.status);
    see((uint64_t)c->doc.modified);
    see((uint64_t)c->version);
    see((uint64_t)c->n << 32 | (uint64_t)c->world);
    see_text(c->addr);
    see_text(c->port);
    see_text(account_phase(c));
    for (int i = 0; i < c->n; i++) {
        const struct account_member *m = &c->members[i];
        see_text(m->uid);
        see_text(m->role);
        see((uint64_t)m->slots);
        see((uint64_t)m->rank_base);
        see((uint64_t)m->confirmed << 2 | (uint64_t)m->alive << 1 | m->done);
        see_text(account_member_state(c, m));
    }
}

static void play_accounts(uint64_t seed) {
    rand_init(&chance, seed);
    for (int i = 0; i < 60; i++) {
        struct keys k = {0};
        struct account c;
        draw_keys(&k);
        struct tree_answer answer = {
            .result = TREE_DONE, .index = draw(99), .nodes = k.nodes, .n = k.n};
        account_read(&k.arena, account_folder(&k.arena, "/own", "job"), &answer, &c);
        see_account(&c);
        account_fini(&c);
        arena_fini(&k.arena);
    }
}

/* ---- the record ---- */

enum { OF_A_LINE = 20 };

static const struct {
    const char *name;
    void (*play)(uint64_t seed);
    uint64_t seeds;
} kinds[] = {
    {"fleet", play_fleet, 200},
    {"alone", play_alone, 1500},
    {"states", play_states, 20},
    {"accounts", play_accounts, 20},
};

static void put_all(struct buf *out) {
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        for (uint64_t seed = 1; seed <= kinds[i].seeds; seed++) {
            seen = seed % OF_A_LINE == 1 ? 0 : seen;
            kinds[i].play(seed);
            if (seed % OF_A_LINE == 0)
                buf_printf(out, "%s %llu-%llu %016llx\n", kinds[i].name,
                           (unsigned long long)(seed - OF_A_LINE + 1), (unsigned long long)seed,
                           (unsigned long long)seen);
        }
}

static void test_what_is_asked_for_is_what_was_asked_for(void **state) {
    (void)state;
    on_record_same(path, put_all, "agents of the legacy rendezvous do otherwise");
}

int main(int argc, char **argv) {
    const struct CMUnitTest test = cmocka_unit_test(test_what_is_asked_for_is_what_was_asked_for);
    return on_record_main(argc, argv, path, put_all, &test);
}
