/* What cores decide in some hundred schedules is as it was when somebody last looked at it. This file stands between the
 * simulator and the core: all that is asked for, to the last field, goes into a number, and record.txt has one number for
 * every few schedules. Whoever changes what is decided finds here that it is another; `make transcripts` writes the file
 * anew, and the transcripts beside the simulator say in words what has changed. */
#define rendezvous_step core_step
#include "agent/core/rendezvous.c"
#undef rendezvous_step
#include "base/buf.h"
#include "base/str.h"
#include "base/rand.h"
#include "harness/sim/sim.h"
#include "tests/agent/core/seen.h"
#include "tests/agent/on_record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <cmocka.h>

static const char path[] = "tests/agent/core/record.txt";

static uint64_t steps;

/* What searches through states takes for a number, every now and then. */
static void see_numbers(const struct rendezvous *r) {
    struct canonical c = {0};
    rendezvous_canonical(r, 1, &c);
    for (size_t i = 0; i < c.n; i++) {
        see((uint64_t)c.numbers[i].value);
        see((uint64_t)c.numbers[i].past_ns);
        see(c.numbers[i].is_time ? 1 : c.numbers[i].class << 1);
    }
    canonical_fini(&c);
}

/* ---- what if ---- */

/* At every few steps a copy of the core meets what the schedule has not in store for it: something that nobody asked for, an
 * answer that is another, a moment to the nanosecond, a configuration that is another. Whatever it is, nothing may break, and
 * what it asks for is on record too. */
enum { WHAT_IF_EVERY = 6, STEPS_AFTER = 2 };

static struct rand chance;

static int draw(int n) {
    return (int)rand_below(&chance, (uint64_t)n);
}

/* Members that want other places. */
static void twist_members(struct view *v) {
    for (size_t i = 0; i < v->n; i++) {
        struct member_value *m = &v->members[i]->value;
        m->seat = draw(2) ? draw(4) : 0;
        m->want = draw(4) ? WANT_MEMBER : WANT_STANDBY;
        m->slots = 1 + draw(3);
        m->stop_ns = draw(5) * 1000000000LL;
        snprintf(m->role, sizeof(m->role), "%s", draw(2) ? "default" : "other");
        m->past =
            (struct past){.round = draw(3), .n = draw(3), .restarts = draw(4), .member = draw(2)};
        snprintf(m->past.inc, sizeof(m->past.inc), "%s", draw(2) ? "0123456789abcdef" : "");
    }
    v->dirty = v->changed = true;
    view_settle(v);
}

/* Rounds that cost nothing have ended almost as soon as they had begun. */
static void twist_rounds(struct rendezvous *p) {
    struct view *v = &p->coordinator.view;
    p->cur.max_free_rounds = 20 + draw(20);
    v->head.free_rounds = draw(24);
    v->head.brief_rounds = 4 + draw(10);
    v->head.free_age_ms = draw(3) * 1800000LL;
    p->ran_ns = p->now.monotonic_ns - draw(40) * draw(40) * 10000000LL;
    p->ended_ns = p->ran_ns + draw(5) * 500000000LL;
    p->coordinator.wake_ns = 0;
    v->changed = true;
    if (!v->head.last_round || !draw(4))
        return;
    v->head.phase = v->head.phase == HEAD_FORM ? HEAD_FORM : HEAD_END;
    v->head.cause = CAUSE_MEMBERSHIP;
    for (size_t i = 0; i < v->n; i++) {
        v->members[i]->acked = true;
        v->members[i]->ack.why = ACK_OK;
    }
}

static void twist(struct rendezvous *p) {
    int64_t grace_ns = p->config.stop_timeout_ns;
    switch (draw(16)) {
    case 10:
        twist_rounds(p);
        break;
    case 11:
        rendezvous_reseed(p, (uint64_t)draw(1000));
        break;
    case 8:
    case 9:
        p->coordinator.wake_ns = 0;
        twist_members(&p->coordinator.view);
        break;
    case 0:
        p->config.stop_timeout_ns = p->config.shutdown_grace_ns;
        p->config.shutdown_grace_ns = grace_ns;
        break;
    case 1:
        p->config.hosts_store = !p->config.hosts_store;
        break;
    case 2:
        p->config.lifeline = !p->config.lifeline;
        break;
    case 3:
        p->config.want = WANT_STANDBY;
        break;
    case 4:
        p->cur.max_restarts = draw(3);
        break;
    case 5:
        p->cur.max_free_rounds = 1 + draw(3);
        p->coordinator.view.head.free_rounds = draw(6);
        break;
    case 6:
        p->cur.on_node_loss = NODE_LOSS_GANG;
        break;
    case 7:
        p->config.store_in_process = true;
        break;
    default: /* as it is */
        break;
    }
}

/* The id of something that it waits for; 0: there is nothing. */
static uint64_t pending(const struct rendezvous *p) {
    const struct request *const all[] = {
        &p->session.request,    &p->session.leave,     &p->group.end,         &p->group.done,
        &p->group.ack,          &p->holder.read,       &p->holder.take,       &p->standby.read,
        &p->coordinator.read,   &p->coordinator.clean, &p->coordinator.lease, &p->reread,
        &p->coordinator.decide, &p->read_places};
    size_t n = sizeof(all) / sizeof(*all), first = (size_t)draw((int)n);
    for (size_t i = 0; i < n; i++)
        if (all[(first + i) % n]->id)
            return all[(first + i) % n]->id;
    return 0;
}

/* A moment that something is about, one nanosecond earlier, or one later. */
static int64_t draw_moment(const struct rendezvous *p) {
    int64_t boot_ns = p->now.boottime_ns - p->now.monotonic_ns;
    const int64_t all[] = {p->due_ns,
                           p->session.deadline_ns - boot_ns,
                           p->session.beat_next_ns,
                           p->group.kill_by_ns,
                           p->group.reap_by_ns,
                           p->coordinator.wake_ns,
                           p->lifeline.retry_ns,
                           p->session.request.retry_ns,
                           p->holder.heard_ns + p->cur.timing.suspect_ns,
                           p->contact.heard_ns + p->config.give_up_ns,
                           p->start_ns + p->config.join_timeout_ns,
                           p->coordinator.enough_since_ns + p->config.last_call_ns,
                           p->now.monotonic_ns + p->cur.timing.hb_ns,
                           p->due_ns + p->cur.timing.hb_ns};
    int64_t at_ns = all[draw(sizeof(all) / sizeof(*all))];
    at_ns = at_ns > p->now.monotonic_ns && at_ns < INT64_MAX / 2 ? at_ns : p->now.monotonic_ns;
    return at_ns + draw(3) - 1;
}

static struct event draw_worker_event(const struct rendezvous *p) {
    struct event ev = {.kind = (enum event_kind)(EVENT_WORKERS_STARTED + draw(5))};
    if (ev.kind == EVENT_WORKER_EXITED) {
        ev.exited.local_rank = draw(p->config.slots);
        ev.exited.pid = 4711;
        ev.exited.wait_status = draw(3) ? 9 + draw(2) * 247 : 0;
        ev.exited.error = draw(2) ? "what it left" : "";
        ev.exited.realtime_ns = 17;
    } else if (ev.kind == EVENT_GROUP_REAPED) {
        ev.reaped.fenced = draw(2);
    } else if (ev.kind == EVENT_GUARD_DEAD) {
        ev.guard_dead.pid = 4712;
        ev.guard_dead.wait_status = draw(2) ? 9 : 256;
        ev.guard_dead.fenced = draw(2);
    } else if (ev.kind == EVENT_PORT) {
        ev.port.addr = "192.0.2.1";
        ev.port.port = 4713;
    }
    return ev;
}

static struct event draw_answer(const struct rendezvous *p) {
    uint64_t id = pending(p);
    struct event ev = {.kind = draw(3) ? EVENT_DONE : EVENT_SNAPSHOT};
    if (ev.kind == EVENT_DONE) {
        ev.done.id = id;
        ev.done.reached = draw(3);
        ev.done.applied = draw(2);
        ev.done.revision = p->known_revision + draw(3);
    } else {
        ev.snapshot.id = id;
        ev.snapshot.reached = draw(3);
        ev.snapshot.revision = p->known_revision - 1 + draw(3);
    }
    return ev;
}

static struct event draw_event(const struct rendezvous *p) {
    struct event ev = {.kind = EVENT_TIMER};
    switch (draw(8)) {
    case 0:
        ev.kind = EVENT_WATCH_LOST;
        ev.watch_lost.slot = (enum watch_slot)draw(WATCH_SLOTS);
        ev.watch_lost.generation = p->generations[ev.watch_lost.slot];
        break;
    case 1:
    case 2:
        return draw_answer(p);
    case 3:
        ev.kind = EVENT_BEAT;
        ev.beat.seq = p->session.beat_seq - draw(2);
        ev.beat.result = (enum beat_result)draw(3);
        break;
    case 4:
    case 5:
        return draw_worker_event(p);
    case 6:
        ev.kind = draw(2) ? EVENT_SIGNAL : EVENT_LIFELINE;
        if (ev.kind == EVENT_SIGNAL)
            ev.signal.signo = draw(2) ? 15 : 2;
        else
            ev.lifeline.id = p->lifeline.id, ev.lifeline.open = draw(2);
        break;
    default:
        break;
    }
    return ev;
}

static void see_step(struct rendezvous *p, const struct event *ev, int64_t at_ns) {
    size_t n = 0;
    struct now now = {at_ns, p->now.boottime_ns + (at_ns - p->now.monotonic_ns)};
    const struct action *a = core_step(p, ev, now, &n);
    for (size_t i = 0; i < n; i++)
        see_action(&a[i]);
}

static void see_what_if(const struct rendezvous *r) {
    struct rendezvous *p = rendezvous_copy(r);
    twist(p);
    struct event ev = draw_event(p);
    see_step(p, &ev, draw(2) ? draw_moment(p) : p->now.monotonic_ns + draw(1000));
    for (int i = 0; i < STEPS_AFTER; i++)
        if (p->due_ns < INT64_MAX)
            see_step(p, &(struct event){.kind = EVENT_TIMER},
                     p->due_ns > p->now.monotonic_ns ? p->due_ns : p->now.monotonic_ns);
    rendezvous_free(p);
}

const struct action *rendezvous_step(struct rendezvous *r, const struct event *event,
                                     struct now now, size_t *ret_n);
const struct action *rendezvous_step(struct rendezvous *r, const struct event *event,
                                     struct now now, size_t *ret_n) {
    const struct action *a = core_step(r, event, now, ret_n);
    for (size_t i = 0; i < *ret_n; i++)
        see_action(&a[i]);
    if (++steps % 16 == 0)
        see_numbers(r);
    if (steps % WHAT_IF_EVERY == 0)
        see_what_if(r);
    return a;
}

/* So many schedules of a kind, and so many to a line of the file. */
enum { SEEDS = 240, OF_A_LINE = 8 };

static const struct {
    const char *name;
    bool varies, swarm, calm, frozen;
    int agents;
} kinds[] = {
    {.name = "drawn"},
    {.name = "varied", .varies = true},
    {.name = "swarm", .swarm = true, .varies = true},
    {.name = "calm", .calm = true},
    {.name = "frozen", .frozen = true},
};

static void play(size_t kind, uint64_t seed) {
    struct sim_config config;
    struct sim_result result;
    sim_config_default(&config);
    config.seed = seed;
    config.varies = kinds[kind].varies;
    config.swarm = kinds[kind].swarm;
    config.calm = kinds[kind].calm;
    config.frozen = kinds[kind].frozen;
    sim_run(&config, &result);
    see_text(result.text);
    see((uint64_t)result.outcome);
}

static void put_lines(struct buf *out, size_t kind, uint64_t seeds) {
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        if (seed % OF_A_LINE == 1)
            seen = steps = 0, rand_init(&chance, seed);
        play(kind, seed);
        if (seed % OF_A_LINE == 0)
            buf_printf(out, "%s %llu-%llu %016llx\n", kinds[kind].name,
                       (unsigned long long)(seed - OF_A_LINE + 1), (unsigned long long)seed,
                       (unsigned long long)seen);
    }
}

static void put_all(struct buf *out) {
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        put_lines(out, i,
                  kinds[i].calm || kinds[i].frozen ? SEEDS / 6 / OF_A_LINE * OF_A_LINE : SEEDS);
}

static void test_what_is_decided_is_what_was_decided(void **state) {
    (void)state;
    on_record_same(
        path, put_all,
        "agents decide otherwise, and the transcripts of tests/harness/sim say what has changed");
}

int main(int argc, char **argv) {
    const struct CMUnitTest test = cmocka_unit_test(test_what_is_decided_is_what_was_decided);
    return on_record_main(argc, argv, path, put_all, &test);
}
