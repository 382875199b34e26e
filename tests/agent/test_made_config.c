/* What an agent's settings are made of: of drawn options and hosts, to the last field (config.txt has the first to be read, and a
 * number for each hundred more; `make transcripts` writes it anew); and how long an address that cannot be had yet is waited for. The
 * network, the host's name, loop and clock are doubles. */
#include "agent/agent_config.h"

#include "agent/host_name.h"
#include "agent/options.h"
#include "base/rand.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/line.h"
#include "base/sys/tcp.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tests/agent/on_record.h"

static const char path[] = "tests/agent/config.txt";

static struct arena arena;
static struct buf said;
static struct rand chance;

/* Once in a list of arguments: compilers differ in which of several comes first. */
static int draw(int n) {
    return (int)rand_below(&chance, (uint64_t)n);
}

/* ---- doubles ---- */

static struct {
    int name_rc, address_rc;
    const char *name, *address;
    bool loopback, hidden;
    int comes_after; /* calls for the address until it can be had */
} host;

int gethostname(char *name, size_t size) {
    buf_printf(&said, " name of %zu bytes", size);
    snprintf(name, size, "%s", host.name);
    return host.name_rc;
}

int tcp_address_towards(const struct tcp_endpoint *e, char ret_addr[TCP_HOST_MAX],
                        struct err *err) {
    buf_printf(&said, " towards %s:%d", e->host, e->port);
    bool later = host.comes_after > 0;
    host.comes_after -= later;
    if (later || host.address_rc < 0)
        return err_say(err, later ? -ENETUNREACH : host.address_rc, "%s is not known", e->host);
    str_copy(ret_addr, TCP_HOST_MAX, host.address);
    return 0;
}

bool tcp_number_is_loopback(const char *addr) {
    return addr && host.loopback;
}

bool tcp_name_is_hidden(const char *name) {
    return name && host.hidden;
}

const char *host_name_find(const char *addr, struct arena *a) {
    return arena_printf(a, "full %s", addr);
}

void line_say(const char *level, const char *what, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    buf_printf(&said, "\n%s, %s: ", level, what);
    buf_vprintf(&said, fmt, ap);
    va_end(ap);
}

static int64_t now_ns;
static int alive, loop_rc;
static int64_t timer_ns;
static bool stopped;
static loop_timer_fn *timer_fn;
static void *timer_arg;
static char something[1];

int64_t clock_monotonic_ns(void) {
    return now_ns;
}

int64_t clock_boottime_ns(void) {
    return 0;
}

struct loop_source *loop_timer(struct loop *l, loop_timer_fn *fn, void *arg) {
    (void)l;
    timer_fn = fn;
    timer_arg = arg;
    alive++;
    return (struct loop_source *)something;
}

void loop_timer_at(struct loop_source *s, int64_t deadline_ns) {
    (void)s;
    timer_ns = deadline_ns;
}

void loop_stop(struct loop *l) {
    (void)l;
    stopped = true;
}

/* Time passes at once. */
int loop_run(struct loop *l, struct err *err) {
    (void)l;
    while (!stopped && loop_rc == 0) {
        buf_printf(&said, "\nat %" PRId64 " ms:", timer_ns / 1000000);
        now_ns = timer_ns;
        timer_fn(timer_arg, now_ns);
    }
    return loop_rc < 0 ? err_say(err, loop_rc, "the loop broke") : 0;
}

struct loop_source *loop_source_free(struct loop_source *s) {
    alive -= s != NULL;
    return NULL;
}

/* ---- drawn ---- */

static int64_t ms_or_none(void) {
    return draw(2) ? -1 : draw(4) * 700;
}

static struct options draw_options(void) {
    struct options o = {.backend = (enum options_backend)draw(4), .run_id = "job", .role = "r"};
    struct options_rdzv *z = &o.rdzv;
    o.workers_per_node = 1 + draw(4);
    o.node_rank = draw(4) - 1;
    o.nodes_min = 1 + draw(2);
    static const int most[] = {1, 2, 3, 4000, 40000};
    o.nodes_max = most[draw(5)];
    o.max_restarts = draw(5);
    o.restarts_by_node = draw(2);
    o.standby = draw(2);
    o.gang = draw(2);
    o.endpoint_host = "store";
    o.endpoint_port = 29400 + draw(2);
    o.local_addr = draw(3) ? NULL : "10.9.9.9";
    o.shutdown_timeout_ms = draw(3) * 15000;
    z->profile = draw(6) ? draw(2) ? "fast" : "default" : draw(4) ? "default" : "slow";
    z->hb_ms = draw(8) ? -1 : draw(4) * 100;
    z->fence_ms = draw(12) ? -1 : draw(3) * 1000;
    z->hard_ms = draw(12) ? -1 : draw(3) * 2000;
    z->suspect_ms = draw(12) ? -1 : draw(3) * 3000;
    z->max_free_rounds = draw(3);
    z->attempt = draw(2) ? NULL : "7";
    z->last_call_timeout_ms = ms_or_none();
    z->admit_ms = ms_or_none();
    z->join_timeout_ms = ms_or_none();
    z->stop_timeout_ms = ms_or_none();
    z->give_up_ms = ms_or_none();
    return o;
}

static void draw_host(void) {
    host.name_rc = draw(8) ? 0 : -1;
    host.name = draw(8) ? "this-host" : "";
    host.address_rc = draw(8) ? 0 : -EHOSTUNREACH;
    host.address = draw(2) ? "10.0.0.5" : "127.0.1.1";
    host.loopback = draw(2);
    host.hidden = draw(2);
    host.comes_after = 0;
}

static void put_config(struct buf *out, const struct rendezvous_config *c) {
    buf_printf(out,
               "%s %s %s %s host %s, %d slots, seat %d, %d to %d, restarts %d mode %d, free %d, "
               "attempt \"%s\"",
               c->run_id, c->node, c->addr, c->role, c->host ? c->host : "-", c->slots, c->seat,
               c->min, c->max, c->max_restarts, c->restart_mode, c->max_free_rounds, c->attempt);
    buf_printf(out, ", timing %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64, c->timing.hb_ns,
               c->timing.fence_ns, c->timing.hard_ns, c->timing.suspect_ns);
    buf_printf(out,
               ", last call %" PRId64 ", admit %" PRId64 ", join %" PRId64 ", stop %" PRId64
               ", grace %" PRId64 ", give up %" PRId64,
               c->last_call_ns, c->admit_ns, c->join_timeout_ns, c->stop_timeout_ns,
               c->shutdown_grace_ns, c->give_up_ns);
    buf_printf(out, ", in process %d, hosts %d, lifeline %d, want %d, loss %d", c->store_in_process,
               c->hosts_store, c->lifeline, c->want, c->on_node_loss);
}

static void make_one(struct buf *out) {
    struct rendezvous_config c = {.min = -77};
    struct err err = {0};
    struct options o = draw_options();
    draw_host();
    buf_clear(&said);
    int rc = agent_config_make(&o, &arena, &c, &err);
    if (rc == 0)
        put_config(out, &c);
    else
        buf_printf(out, "refused with %d, %d: %s%s", rc, err.code, err.msg,
                   c.min == -77 ? "" : ", and yet it has written");
    buf_printf(out, ";%s\n", buf_str(&said));
}

static void say(struct buf *out) {
    enum { SHOWN = 30, GROUPS = 8, DRAWS = 100 };
    rand_init(&chance, 3);
    for (int i = 0; i < SHOWN; i++)
        make_one(out);
    for (int group = 0; group < GROUPS; group++) {
        BUF_FINI struct buf all = {0};
        uint64_t sum = 0;
        for (int i = 0; i < DRAWS; i++)
            make_one(&all);
        for (const char *p = buf_str(&all); *p; p++)
            sum = ((sum ^ (unsigned char)*p) * 0x9e3779b97f4a7c15u) ^ sum >> 29;
        buf_printf(out, "%d more: %016" PRIx64 "\n", DRAWS, sum);
    }
}

static void test_settings_are_made_as_on_record(void **state) {
    (void)state;
    on_record_same(path, say, "drawn options");
}

/* ---- waiting for an address ---- */

static struct options waiting(void) {
    static const struct options_rdzv rdzv = {.profile = "default",
                                             .hb_ms = -1,
                                             .fence_ms = -1,
                                             .hard_ms = -1,
                                             .suspect_ms = -1,
                                             .join_timeout_ms = 2000,
                                             .last_call_timeout_ms = -1,
                                             .admit_ms = -1,
                                             .stop_timeout_ms = -1,
                                             .give_up_ms = -1};
    host.name = "n", host.address = "10.0.0.5";
    host.name_rc = 0, host.address_rc = -EHOSTUNREACH;
    host.loopback = host.hidden = false;
    now_ns = 7000000000;
    stopped = false;
    loop_rc = 0;
    buf_clear(&said);
    return (struct options){.backend = BACKEND_EMBEDDED,
                            .run_id = "job",
                            .role = "r",
                            .nodes_min = 1,
                            .nodes_max = 1,
                            .workers_per_node = 1,
                            .endpoint_host = "store",
                            .endpoint_port = 1,
                            .rdzv = rdzv};
}

static int await(const struct options *o, struct rendezvous_config *c, struct err *err) {
    *c = (struct rendezvous_config){.min = -77};
    *err = (struct err){0};
    return agent_config_await((struct loop *)something, o, &arena, c, err);
}

#define ASKED " towards store:1"
#define NAMED " name of 255 bytes" ASKED
#define TOLD                                                                                       \
    "\nwarning, wait: own address (give it by --local-addr): store is not known; trying for up "   \
    "to 2 s (--rdzv-conf join_timeout=...)"

static void test_an_address_that_never_comes_is_given_up(void **state) {
    struct rendezvous_config c;
    struct err err;
    struct options o = waiting();
    (void)state;
    assert_int_equal(await(&o, &c, &err), -EHOSTUNREACH);
    assert_string_equal(buf_str(&said),
                        NAMED "\nat 7000 ms:" NAMED TOLD "\nat 7500 ms:" NAMED "\nat 8000 ms:" NAMED
                              "\nat 8500 ms:" NAMED "\nat 9000 ms:" NAMED);
    assert_string_equal(err.msg, "own address (give it by --local-addr): store is not known");
    assert_int_equal(err.code, -EHOSTUNREACH);
    assert_int_equal(c.min, -77);
    assert_int_equal(alive, 0);
}

static void test_an_address_that_comes_later_is_taken(void **state) {
    struct rendezvous_config c;
    struct err err;
    struct options o = waiting();
    (void)state;
    host.address_rc = 0;
    host.comes_after = 3; /* times */
    assert_int_equal(await(&o, &c, &err), 0);
    assert_string_equal(buf_str(&said), NAMED "\nat 7000 ms:" NAMED TOLD "\nat 7500 ms:" NAMED
                                              "\nat 8000 ms:" NAMED);
    assert_string_equal(c.addr, "10.0.0.5");
    assert_int_equal(c.min, 1);
    assert_int_equal(err.code, 0);
    assert_string_equal(err.msg, "");
    assert_int_equal(alive, 0);
}

static void test_nothing_is_waited_for_where_the_address_is_known(void **state) {
    struct rendezvous_config c;
    struct err err;
    struct options o = waiting();
    (void)state;
    host.address_rc = 0;
    assert_int_equal(await(&o, &c, &err), 0);
    assert_string_equal(buf_str(&said), NAMED);
    assert_int_equal(c.min, 1);
    o.rdzv.profile = "slow";
    assert_int_equal(await(&o, &c, &err), -EINVAL);
    assert_non_null(strstr(err.msg, "slow"));
    assert_int_equal(c.min, -77);
}

static void test_a_loop_that_breaks_ends_the_waiting(void **state) {
    struct rendezvous_config c;
    struct err err;
    struct options o = waiting();
    (void)state;
    loop_rc = -EIO;
    assert_int_equal(await(&o, &c, &err), -EIO);
    assert_int_equal(c.min, -77);
    assert_int_equal(alive, 0);
}

static void test_only_what_may_come_later_is_waited_for(void **state) {
    (void)state;
    for (int code = 0; code < 140; code++)
        assert_int_equal(agent_config_may_come(-code), code == EHOSTUNREACH || code == ENETUNREACH);
}

static int clear(void **state) {
    (void)state;
    arena_fini(&arena);
    buf_fini(&said);
    return 0;
}

int main(int argc, char **argv) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_settings_are_made_as_on_record),
        cmocka_unit_test(test_an_address_that_never_comes_is_given_up),
        cmocka_unit_test(test_an_address_that_comes_later_is_taken),
        cmocka_unit_test(test_nothing_is_waited_for_where_the_address_is_known),
        cmocka_unit_test(test_a_loop_that_breaks_ends_the_waiting),
        cmocka_unit_test(test_only_what_may_come_later_is_waited_for),
    };
    int rc;
    if (on_record_written(argc, argv, path, say, &rc))
        return rc;
    return cmocka_run_group_tests(tests, NULL, clear);
}
