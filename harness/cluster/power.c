#include "harness/cluster/power.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "harness/cluster/host_link.h"
#include "harness/provider/provider.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A host that has no power closes no connection. Its helper answers each second while it has. */
static const int64_t hush_ns = 5000000000;
static const int64_t end_wait_ns = 5000000000;

enum power_state {
    POWER_ON,
    POWER_CUTTING, /* the command runs */
    POWER_FADING,  /* it has ended with 0; the helper's end is awaited */
    POWER_OUT,
    POWER_COMING, /* the command runs, or the host begins */
};

struct power {
    struct node *node;
    enum power_state state;
    bool wanted, fresh; /* back, as soon as it is out; with an empty disk */
    bool gave_up;       /* the run ends without it */
    struct process keeper;
    int control;
    struct hello life; /* of the host, the last that was heard of */
    int64_t since_ns, heard_ns;
    struct loop_source *on_keeper, *on_hush, *on_late;
};

static const struct power_spec *spec_of(const struct node *n) {
    return &n->cluster->plan->scenario->cluster.power;
}

/* ---- what came of it ---- */

/* At the end of a run there is nobody to be told but people. */
static void tell(struct power *p, bool off, const char *why) {
    struct node *n = p->node;
    struct cluster *c = n->cluster;
    BUF_FINI struct buf error = {0};
    if (why)
        buf_printf(&error, "%s (%s): %s", n->plan->name, n->plan->host->name, why);
    if (why && c->going_down)
        texts_add(&c->left, "%s", buf_str(&error));
    if (c->cb.powered)
        c->cb.powered(c->arg, n, off, clock_monotonic_ns() - p->since_ns,
                      why ? buf_str(&error) : NULL);
}

static void rest(struct power *p, enum power_state state) {
    p->state = state;
    loop_timer_off(p->on_hush);
    loop_timer_off(p->on_late);
}

/* ---- its keeper ---- */

static const char *name_of(const struct node *n) {
    const char *at = strchr(n->plan->host->name, '@');
    if (str_eq(n->cluster->plan->provider->name, "exec"))
        return n->plan->host->hello.host;
    return at ? at + 1 : n->plan->host->name;
}

static void put_word(const struct node *n, const char *word, struct json_writer *w) {
    BUF_FINI struct buf text = {0};
    while (*word) {
        bool host = str_starts(word, "{host}"), node = str_starts(word, "{node}");
        if (host || node)
            buf_puts(&text, host ? name_of(n) : n->plan->name);
        else
            buf_putc(&text, *word);
        word += host || node ? strlen("{host}") : 1;
    }
    json_put_string(w, NULL, buf_str(&text));
}

static void put_words(const struct node *n, const char *key, const char *const *words,
                      struct json_writer *w) {
    json_array(w, key);
    for (; *words; words++)
        put_word(n, *words, w);
    json_end_array(w);
}

static int say(struct power *p, const char *op, struct err *err) {
    BUF_FINI struct buf text = {0};
    struct json_writer w = {.out = &text};
    json_object(&w, NULL);
    json_put_string(&w, "op", op);
    json_end_object(&w);
    p->since_ns = clock_monotonic_ns();
    int r = channel_send(p->control, &text, NULL, 0, err);
    return r ? err_wrap(err, "%s: tell who runs cluster.power: ", p->node->plan->name) : 0;
}

static int say_begin(struct power *p, struct err *err) {
    const struct node *n = p->node;
    const struct cluster *c = n->cluster;
    const struct power_spec *o = spec_of(n);
    BUF_FINI struct buf text = {0};
    struct json_writer w = {.out = &text};
    char *name = mem_printf("logs/%s/power.log", n->plan->name);
    FILE_CLOSE int log = folder_append(c->run, name, err);
    json_object(&w, NULL);
    json_put_string(&w, "op", "begin");
    put_words(n, "off", o->off, &w);
    put_words(n, "on", o->on, &w);
    json_put_i64(&w, "within", o->within_ns);
    json_put_string(&w, "provider", c->plan->provider->name);
    json_put_string(&w, "ssh", c->plan->wish.ssh);
    json_put_string(&w, "host", n->plan->host->name);
    json_put_string(&w, "program", c->plan->wish.program);
    json_put_string(&w, "log", name);
    json_end_object(&w);
    free(name);
    return log < 0 ? log : channel_send(p->control, &text, &log, 1, err);
}

static void on_keeper(void *arg, int fd, int what);
static void on_hush(void *arg, int64_t now_ns);
static void on_late(void *arg, int64_t now_ns);

static int begin(struct node *n, struct err *err) {
    struct power *p = n->power;
    if (!p) {
        p = n->power = mem_new(struct power);
        *p = (struct power){.node = n,
                            .keeper = PROCESS_NONE,
                            .control = -1,
                            .life = n->plan->host->hello,
                            .on_hush = loop_timer(n->cluster->loop, on_hush, p),
                            .on_late = loop_timer(n->cluster->loop, on_late, p)};
    }
    if (p->keeper.pid)
        return 0;
    int r = cluster_spawn("power", 0, &p->keeper, &p->control, err);
    if (r)
        return r;
    p->on_keeper = loop_fd(n->cluster->loop, p->control, LOOP_READ, on_keeper, p);
    return say_begin(p, err);
}

/* ---- off ---- */

int power_cut(struct node *n, struct err *err) {
    if (!spec_of(n)->off || !n->link)
        return -ENOTSUP;
    if (power_is_out(n) || !n->init.pid)
        return err_say(err, -ESRCH, "%s is off", n->plan->name);
    int r = begin(n, err);
    r = r ? r : say(n->power, "off", err);
    if (r)
        return r;
    n->killed = true; /* it may go before the command has ended */
    n->power->state = POWER_CUTTING;
    n->power->wanted = false;
    return -EINPROGRESS;
}

static void not_back(struct power *p, const char *why);

static void give(struct power *p) {
    struct err err;
    p->wanted = false;
    if (say(p, "on", &err) == 0)
        p->state = POWER_COMING;
    else
        not_back(p, err.msg);
}

static void is_gone(struct power *p) {
    rest(p, POWER_OUT);
    tell(p, true, NULL);
    if (p->wanted)
        give(p);
}

/* Nothing of it is in force, as far as can be seen. */
static void not_cut(struct power *p, const char *why) {
    bool up = p->node->init.pid;
    rest(p, up ? POWER_ON : POWER_OUT);
    if (up)
        p->node->killed = p->node->cluster->going_down;
    tell(p, true, why);
    if (!up && p->wanted)
        give(p);
}

static void on_off(struct power *p, const struct json *m) {
    const char *error = json_get_string(m, "error", NULL);
    int64_t now = clock_monotonic_ns();
    if (error) {
        not_cut(p, error);
    } else if (!p->node->init.pid) {
        is_gone(p);
    } else {
        p->state = POWER_FADING;
        p->heard_ns = now;
        loop_timer_at(p->on_hush, now + hush_ns);
        loop_timer_at(p->on_late, now + spec_of(p->node)->within_ns);
    }
}

void power_heard(struct node *n) {
    if (n->power)
        n->power->heard_ns = clock_monotonic_ns();
}

/* Who was stopped has heard nothing either: what waits is read before. */
static void on_hush(void *arg, int64_t now_ns) {
    struct power *p = arg;
    if (p->state != POWER_FADING || !p->node->init.pid)
        return;
    if (p->node->control)
        carrier_read(p->node->control);
    if (clock_monotonic_ns() - p->heard_ns < hush_ns)
        loop_timer_at(p->on_hush, p->heard_ns + hush_ns);
    else
        process_signal(&p->node->init, SIGKILL); /* what reaches it; its end is told */
}

static void on_late(void *arg, int64_t now_ns) {
    struct power *p = arg;
    char why[256];
    if (p->state != POWER_FADING)
        return;
    snprintf(why, sizeof(why),
             "cluster.power.off has ended with 0, and the helper there still answers %d s after: "
             "the host has kept its power",
             (int)(spec_of(p->node)->within_ns / 1000000000));
    not_cut(p, why);
}

void power_node_ended(struct node *n) {
    if (n->power && n->power->state == POWER_FADING)
        is_gone(n->power);
}

/* ---- on ---- */

bool power_is_out(const struct node *n) {
    return n->power && n->power->state != POWER_ON;
}

bool power_is_awaited(const struct node *n) {
    return power_is_out(n) && !n->power->gave_up;
}

int power_give(struct node *n, bool fresh_disk, struct err *err) {
    struct power *p = n->power;
    if (p->state == POWER_COMING || p->wanted)
        return err_say(err, -EBUSY, "%s is being switched on already", n->plan->name);
    p->fresh = fresh_disk;
    p->wanted = true;
    if (p->state == POWER_OUT)
        give(p);
    return 0;
}

void power_restore(struct node *n) {
    struct power *p = n->power;
    if (!p || p->state == POWER_ON || p->state == POWER_COMING)
        return;
    p->wanted = true;
    if (p->state == POWER_OUT)
        give(p);
}

static void start_node(struct power *p) {
    struct node *n = p->node;
    struct err err;
    host_link_begun_anew(n->link);
    if (node_start(n, p->fresh, &err) != 0)
        node_failed(n, &err);
}

static void not_back(struct power *p, const char *why) {
    rest(p, POWER_OUT);
    p->gave_up = p->node->cluster->going_down;
    tell(p, false, why);
}

static void on_on(struct power *p, const struct json *m) {
    struct cluster *c = p->node->cluster;
    const char *error = json_get_string(m, "error", NULL);
    struct hello now;
    if (error) {
        not_back(p, error);
        return;
    }
    hello_take(m, &now);
    bool another = hello_is_another_life(&p->life, &now);
    p->life = now;
    rest(p, POWER_ON);
    tell(p, false,
         another ? NULL
                 : "the host has the boot ID and the first process that it had before "
                   "cluster.power.off: it has never been without power, whatever that said");
    if (another && !c->going_down)
        start_node(p);
}

/* ---- what the keeper says ---- */

static void keeper_ended(struct power *p) {
    p->on_keeper = loop_source_free(p->on_keeper);
    if (p->state == POWER_CUTTING)
        not_cut(p, "the process that runs cluster.power has ended");
    else if (p->state == POWER_COMING)
        not_back(p, "the process that runs cluster.power has ended");
}

static void on_keeper(void *arg, int fd, int what) {
    struct power *p = arg;
    struct cluster *c = p->node->cluster;
    struct message m;
    int r;
    while ((r = channel_receive(fd, &m, NULL)) > 0) {
        if (str_eq(json_get_string(m.json, "op", ""), "off"))
            on_off(p, m.json);
        else
            on_on(p, m.json);
        message_fini(&m);
    }
    if (r < 0)
        keeper_ended(p);
    cluster_settle(c);
}

/* One that has a host to bring back does so alone. */
struct power *power_free(struct power *p) {
    if (!p)
        return NULL;
    loop_source_free(p->on_keeper);
    loop_source_free(p->on_hush);
    loop_source_free(p->on_late);
    file_close(&p->control);
    if (p->keeper.pid && p->state == POWER_ON)
        process_reap(&p->keeper, end_wait_ns, NULL);
    process_close(&p->keeper);
    free(p);
    return NULL;
}
