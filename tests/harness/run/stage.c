#include "tests/harness/run/stage.h"

#include "harness/run/counting.h"
#include "harness/run/directory.h"
#include "harness/run/hand.h"
#include "harness/run/token.h"

#include <errno.h>
#include <sys/eventfd.h>

/* ---- cardboard ---- */

struct node **cluster_nodes(const struct cluster *c) {
    return (struct node **)(uintptr_t)c->list;
}
struct node *cluster_node(const struct cluster *c, const char *name) {
    for (int i = 0; i < NODES; i++)
        if (str_eq(c->list[i]->plan.name, name))
            return c->list[i];
    return NULL;
}
const struct plan_node *node_plan(const struct node *n) {
    return &n->plan;
}
bool node_is_on(const struct node *n) {
    return n->on;
}
pid_t node_program_pid(const struct node *n) {
    return n->agent ? 500 + n->plan.index : 0;
}
void node_target(struct node *n, struct target *ret) {
    *ret = (struct target){.kind = TARGET_NODE, .pidfd = -1, .node = n};
    str_copy(ret->name, sizeof(ret->name), n->plan.name);
}
int node_agent_target(struct node *n, struct target *ret) {
    *ret = (struct target){.kind = TARGET_AGENT, .pid = 500 + n->plan.index, .pidfd = -1};
    str_copy(ret->name, sizeof(ret->name), n->plan.name);
    return n->agent ? 0 : -ESRCH;
}
/* Nobody plays by hand here. */
void hand_stopped(struct run_entry *a) {
    fail_msg("%s stands still", a->entry->id);
}
int counts_asked;
void counting_ask(struct engine *e) {
    (void)e;
    counts_asked++;
}
/* Whatever the text: n0 and n1 | n2. */
int cluster_groups(const struct cluster *c, const char *text, int ret[CLUSTER_NODES_MAX],
                   struct err *err) {
    (void)c, (void)text, (void)err;
    for (int i = 0; i < CLUSTER_NODES_MAX; i++)
        ret[i] = i < 2 ? 0 : i == 2 ? 1 : -1;
    return 0;
}
char injected[16][64];
size_t injected_n;
uint64_t injected_token;
int node_inject(struct node *n, const struct fault *f, const struct target *t,
                const struct fault_args *a, uint64_t token, struct err *err) {
    (void)n, (void)a, (void)err, (void)f;
    str_copy(injected[injected_n++], sizeof(injected[0]), t->name);
    injected_token = token;
    return 0;
}
int recovered_n;
uint64_t recovered_token;
struct node *recovered_node;
int node_recover(struct node *n, const struct fault *f, const struct target *t,
                 const struct fault_args *a, uint64_t token, struct err *err) {
    (void)f, (void)t, (void)a, (void)err;
    recovered_token = token;
    recovered_node = n;
    recovered_n++;
    return 0;
}
uint32_t observer_kind(const char *name) {
    return 1u << rankquake_kind_of(name);
}
void observer_arm(struct observer *o, uint32_t kinds, uint64_t next_step) {
    o->kinds = kinds;
    o->next_step = next_step;
}
int observer_worker_pidfd(const struct observer *o, pid_t pid) {
    return o->dead[pid] ? -1 : o->alive_fd;
}
void observer_drain(struct observer *o) {
}

struct clock_setting clock_set_to;
struct clock_told clock_told;
int node_clock_told(const struct node *n, int64_t since_ns, struct clock_setting *ret_setting,
                    struct clock_told *ret) {
    if (!clock_set_to.version)
        return -ENOENT;
    *ret_setting = clock_set_to;
    *ret = clock_told;
    return 0;
}
/* A node of cardboard has no control group and no connection. */
const char *node_cgroup(const struct node *n, enum node_limit what) {
    return NULL;
}
const char *node_far_counts(const struct node *n, enum node_limit what) {
    return NULL;
}
int node_connections(struct node *n, unsigned planes, uint64_t **ret, size_t *ret_n,
                     struct err *err) {
    return -ENOENT;
}

/* All of the stage is on this host. */
bool node_moment(const struct node *n, struct clock_stamp *ret) {
    return false;
}

bool node_is_cut_by_table(const struct node *n) {
    return false;
}

pid_t node_far_number(const struct node *n) {
    return 0;
}
bool uptime_is_told;
struct node_uptime uptime_told;
bool node_uptime_there(const struct node *n, struct node_uptime *ret) {
    *ret = uptime_told;
    return uptime_is_told;
}
void cluster_look_far(struct cluster *c, const pid_t *pids, size_t n) {
    fail_msg("%d is of no other host", (int)pids[0]);
}

/* What other hosts would be told to wait with. */
struct wanted_call calls_wanted[16];
size_t calls_wanted_n;
void cluster_want_calls(struct cluster *c, const struct wanted_call *v, size_t n) {
    static char likes[16][64];
    for (size_t i = 0; i < n; i++) {
        calls_wanted[i] = v[i];
        str_copy(likes[i], sizeof(likes[i]), v[i].like ? v[i].like : "");
        calls_wanted[i].like = likes[i];
    }
    calls_wanted_n = n;
}

void node_call_paths(const struct node *n, const struct watched_call *call,
                     char from[CALL_FILE_MAX], char to[CALL_FILE_MAX]) {
    call_file_paths(call, from, to);
}

int64_t node_call_bytes(const struct node *n, const struct watched_call *call, const char *file) {
    return -1;
}

/* The calls of a stage that were let go. */
uint64_t calls_passed[16];
size_t calls_passed_n;
void node_pass(struct node *n, const struct watched_call *call) {
    calls_passed[calls_passed_n++] = call->id;
}

/* The wire of a stage: what it has to tell and to hold, and what it was told to pass on. */
unsigned requests_told, requests_held;
uint64_t requests_passed[16];
size_t requests_passed_n;
void cluster_watch_store(struct cluster *c, unsigned told, unsigned held) {
    requests_told = told;
    requests_held = held;
}
void cluster_pass_request(struct cluster *c, uint64_t waits) {
    requests_passed[requests_passed_n++] = waits;
}

const char *cluster_shared_dir(const struct cluster *c) {
    return NULL;
}

const char *node_disk_dir(const struct node *n) {
    return NULL;
}

struct disk_done node_disk_done(const struct node *n, const struct disk_rule *rule,
                                enum node_place place, enum disk_verdict v) {
    return (struct disk_done){0};
}

const char *node_tmp_dir(const struct node *n) {
    return NULL;
}

/* Whose threads stand where is nothing that cardboard knows. */
void observer_kept(const struct observer *o, int tag, kept_fn *fn, void *arg) {
}

void observer_release(struct observer *o, int tag) {
    o->released[tag]++;
}
bool directory_is_listed(const struct engine *e) {
    (void)e;
    return false;
}

bool directory_holds_workers(const struct engine *e) {
    (void)e;
    return false;
}
bool client_is_held(const struct event_client *c) {
    return c;
}
void client_keep(struct event_client *c, int tag) {
    c->kept = tag;
}
struct json_writer *engine_record(struct engine *e, enum source s, const char *kind) {
    return recorder_begin(&e->rec, clock_monotonic_ns(), s, kind);
}
void engine_recorded(struct engine *e) {
    recorder_end(&e->rec, NULL);
}

struct asked_of_store stores_asked[16];
size_t stores_asked_n;
static struct question *const open_question = (struct question *)(uintptr_t)1;
int question_enter(void *place) {
    (void)place;
    return 0;
}
struct question *question_ask(struct loop *l, const struct question_spec *spec, question_fn *fn,
                              void *arg, struct err *err) {
    struct asked_of_store *q = &stores_asked[stores_asked_n++];
    (void)l, (void)err;
    *q = (struct asked_of_store){.fn = fn, .arg = arg};
    for (int i = 2; spec->program.argv[i]; i++)
        snprintf(q->words + strlen(q->words), sizeof(q->words) - strlen(q->words), "%s%s",
                 i > 2 ? " " : "", spec->program.argv[i]);
    return open_question;
}
int questions_abandoned;
struct question *question_abandon(struct question *q) {
    questions_abandoned += q != NULL;
    return NULL;
}

/* ---- a stage ---- */

const struct fault kill_worker = {.name = "kill-worker",
                                  .targets = TARGET_WORKER,
                                  .where = FAULT_IN_NODE,
                                  .evidence = EVIDENCE(target_exit)};
const struct fault hang_worker = {.name = "hang-worker",
                                  .targets = TARGET_WORKER,
                                  .where = FAULT_IN_NODE,
                                  .evidence = EVIDENCE(target_exit),
                                  .effects = EFFECT_LASTING};
const struct fault kill_agent = {.name = "kill-agent",
                                 .targets = TARGET_AGENT,
                                 .where = FAULT_IN_NODE,
                                 .evidence = EVIDENCE(target_exit)};
int killed_nodes;
static int inject_node(const struct target *t, const struct fault_args *a, struct err *err) {
    (void)t, (void)a, (void)err;
    killed_nodes++;
    return 0;
}
const struct fault kill_node = {.name = "kill-node",
                                .targets = TARGET_NODE,
                                .where = FAULT_IN_HARNESS,
                                .evidence = EVIDENCE(target_exit),
                                .inject = inject_node};

const struct fault cut = {.name = "cut",
                          .targets = TARGET_NODE,
                          .where = FAULT_IN_HARNESS,
                          .evidence = EVIDENCE(links_cut),
                          .effects = EFFECT_LASTING,
                          .inject = inject_node,
                          .recover = inject_node};

static void on_record(void *arg, const struct record *r, struct event_client *from) {
    struct stage *s = arg;
    struct event_client *of_another = s->engine.sender; /* as in the engine */
    s->engine.sender = from;
    run_part_timeline.record(&s->engine, r);
    s->engine.sender = of_another;
}

struct stage *stage_new(void) {
    static const char *const names[NODES] = {"n0", "n1", "n2"};
    struct stage *s = calloc(1, sizeof(*s));
    static const struct run_spec spec;
    struct err err;
    for (int i = 0; i < NODES; i++) {
        s->cluster.nodes[i] = (struct node){{.name = names[i], .index = i}, true, true};
        s->cluster.list[i] = &s->cluster.nodes[i];
    }
    s->observer.alive_fd = eventfd(0, EFD_CLOEXEC);
    assert_int_equal(history_create(&s->history, NULL, &err), 0);
    rounds_init(&s->rounds, true);
    s->scenario.limits.total_ns = 60000000000;
    s->plan = (struct plan){.scenario = &s->scenario, .entries = s->planned, .seed = 1};
    s->engine = (struct engine){.spec = &spec,
                                .plan = &s->plan,
                                .cluster = &s->cluster,
                                .observer = &s->observer,
                                .rec = {&s->history, &s->rounds, on_record, s}};
    s->engine.loop = loop_new(&err);
    s->engine.own[PART_timeline] = arena_alloc(&s->engine.arena, run_part_timeline.size);
    s->engine.own[PART_token] = arena_alloc(&s->engine.arena, run_part_token.size);
    injected_n = stores_asked_n = 0;
    questions_abandoned = 0;
    killed_nodes = recovered_n = 0;
    return s;
}

struct timeline_entry *stage_add(struct stage *s, const char *id, const struct fault *f) {
    struct timeline_entry *a = &s->entries[s->plan.entries_n];
    *a = (struct timeline_entry){.id = id, .fault = f ? f->name : NULL, .heal = -1, .times_n = 1};
    a->when = (struct trigger){.after = -1, .hold = true};
    a->on = (struct target_spec){.what = TARGET_WORKERS, .pick = PICK_RANDOM, .count = 1};
    s->planned[s->plan.entries_n++] = (struct planned_entry){.entry = a, .fault = f};
    return a;
}

void at_step(struct timeline_entry *a, int64_t step) {
    a->when.has_step = true;
    a->when.step = step;
}

void aim_at(struct timeline_entry *a, const char *node, int local_rank) {
    a->on = (struct target_spec){
        .what = TARGET_WORKERS, .pick = PICK_NAMED, .node = node, .local_rank = local_rank};
}

void stage_begin(struct stage *s) {
    run_part_timeline.begin(&s->engine);
    run_part_timeline.start(&s->engine);
}

void stage_end(struct stage *s) {
    run_part_timeline.end(&s->engine, "ended");
}

void stage_down(struct stage *s) {
    run_part_timeline.down(&s->engine);
}

struct run_entry *stage_acts(const struct stage *s) {
    return ((struct timeline *)s->engine.own[PART_timeline])->entries;
}

void stage_free(struct stage *s) {
    run_part_timeline.close(&s->engine);
    loop_free(s->engine.loop);
    close(s->observer.alive_fd);
    history_fini(&s->history);
    rounds_fini(&s->rounds);
    arena_fini(&s->engine.arena);
    free(s);
}

/* pid = 100 * round + rank: worker `rank` of a round of three nodes with one worker each. */
void start_round(struct stage *s, int round, int world) {
    for (int rank = 0; rank < world; rank++) {
        char port[16], rank_text[16], world_text[16];
        struct event_client c = {0};
        snprintf(port, sizeof(port), "%d", 20000 + round);
        snprintf(rank_text, sizeof(rank_text), "%d", rank);
        snprintf(world_text, sizeof(world_text), "%d", world);
        struct json_writer *w = engine_record(&s->engine, SOURCE_PROBE, "worker-start");
        json_put_string(w, "node", s->cluster.nodes[rank].plan.name);
        json_put_i64(w, "pid", 100 * round + rank);
        json_object(w, "env");
        json_put_string(w, "RANK", rank_text);
        json_put_string(w, "LOCAL_RANK", "0");
        json_put_string(w, "WORLD_SIZE", world_text);
        json_put_string(w, "MASTER_ADDR", "n0");
        json_put_string(w, "MASTER_PORT", port);
        json_end_object(w);
        recorder_end(&s->engine.rec, &c);
    }
}

int say_step(struct stage *s, int pid, int64_t number) {
    struct event_client c = {0};
    struct json_writer *w = engine_record(&s->engine, SOURCE_JOB, "step");
    json_put_i64(w, "pid", pid);
    json_put_i64(w, "step", number);
    recorder_end(&s->engine.rec, &c);
    return c.kept;
}

void end_worker(struct stage *s, int pid) {
    s->observer.dead[pid] = true;
    struct json_writer *w = engine_record(&s->engine, SOURCE_KERNEL, "worker-exit");
    json_put_i64(w, "pid", pid);
    json_put_i64(w, "signal", 9);
    engine_recorded(&s->engine);
}

int count_records(const struct stage *s, const char *kind, const char *id) {
    int n = 0;
    history_each(r, &s->history) n +=
        record_is(r, kind) && str_eq(json_get_string(r->fields, "id", NULL), id);
    return n;
}

int say_claim(struct stage *s, const char *node, const char *what) {
    struct event_client c = {0};
    struct json_writer *w = engine_record(&s->engine, SOURCE_LAUNCHER, "launcher");
    json_put_string(w, "node", node);
    json_put_string(w, "what", what);
    recorder_end(&s->engine.rec, &c);
    return c.kept;
}

/* Frames that a cut has dropped from one node to another so far. */
void say_dropped(struct stage *s, const char *from, const char *to, int frames) {
    struct json_writer *w = engine_record(&s->engine, SOURCE_WIRE, "wire");
    json_put_string(w, "node", from);
    json_object(w, "cut_to");
    json_put_i64(w, to, frames);
    json_end_object(w);
    engine_recorded(&s->engine);
}

void say_frames(struct stage *s, const char *from, const char *to, int dropped, int passed) {
    struct json_writer *w = engine_record(&s->engine, SOURCE_WIRE, "wire");
    json_put_string(w, "node", from);
    json_object(w, "cut_to");
    json_put_i64(w, to, dropped);
    json_end_object(w);
    json_object(w, "passed_to");
    json_object(w, "data");
    json_put_i64(w, to, passed);
    json_end_object(w);
    json_end_object(w);
    engine_recorded(&s->engine);
}

void in_phase(struct timeline_entry *a, const char *phase, int round) {
    a->when.phase = phase;
    a->when.nth = 1;
    a->when.has_round = round > 0;
    a->when.round = round;
}

void aim_at_node(struct timeline_entry *a, const char *node) {
    a->on = (struct target_spec){
        .what = TARGET_NODES, .pick = PICK_NAMED, .node = node, .local_rank = -1, .text = node};
}
