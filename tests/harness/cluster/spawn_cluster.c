/* Builds a cluster of three nodes in DIR and plays one scene in it: spawn_cluster SCENE DIR
 * [processes], the nodes as processes of this host. Ends 0 when all went as it should, else 1 with
 * a line on stderr. It is also its own node helper and wire, as rankquake is. */
#include "agent/base/str.h"
#include "agent/sys/clock.h"
#include "agent/sys/file.h"
#include "agent/sys/loopback.h"
#include "faults/fault.h"
#include "harness/cluster/parts.h"
#include "harness/verb.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern const struct verb verb_node, verb_wire;

enum { NODES = 3, CLIENTS = 64 };
static const int64_t scene_wait_ns = 60000000000;

/* What is known of a node, from callbacks only. */
struct seen {
    bool up, started, exited, leftovers, injected;
    int downs, ups, status, clients;
    pid_t pid, client_pid;
    size_t left;
    char left_text[512], error[512];
    struct wire_counters counters;
};

static bool as_processes;
static char port_text[8] = "7000"; /* nodes that are processes share the ports of this host */
static struct loop *loop;
static struct cluster *cluster;
static struct node **nodes;
static struct seen seen[NODES];
static bool counted, ending, down;
static int left_on_host, clients[CLIENTS], clients_n;
static char program[PATH_MAX], run_dir[PATH_MAX], cwd[PATH_MAX];

static void die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));
static void die(const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    exit(1);
}

#define CHECK(x)                                                                                   \
    do {                                                                                           \
        if (!(x))                                                                                  \
            die("%s:%d: not so: %s", __FILE__, __LINE__, #x);                                      \
    } while (0)

static struct seen *of(struct node *n) {
    return &seen[node_plan(n)->index];
}

static void on_node_up(void *arg, struct node *n) {
    (void)arg;
    of(n)->up = true;
    of(n)->ups++;
    loop_stop(loop);
}
static void on_node_down(void *arg, struct node *n) {
    (void)arg;
    of(n)->up = false;
    of(n)->downs++;
    loop_stop(loop);
}
static void on_started(void *arg, struct node *n, pid_t pid, int pidfd) {
    (void)arg, (void)pidfd;
    of(n)->started = true;
    of(n)->pid = pid;
    loop_stop(loop);
}
static void on_exited(void *arg, struct node *n, pid_t pid, int status) {
    (void)arg;
    CHECK(pid == of(n)->pid);
    of(n)->exited = true;
    of(n)->status = status;
    loop_stop(loop);
}
static void on_program_failed(void *arg, struct node *n, const char *why) {
    (void)arg;
    str_copy(of(n)->error, sizeof(of(n)->error), why);
    loop_stop(loop);
}
static void on_client(void *arg, struct node *n, int fd, pid_t pid) {
    (void)arg;
    of(n)->clients++;
    of(n)->client_pid = pid;
    CHECK(clients_n < CLIENTS);
    if (ending)
        close(fd);
    else
        clients[clients_n++] = fd;
    loop_stop(loop);
}
static void on_leftovers(void *arg, struct node *n, const struct json *found) {
    struct buf text = {0};
    struct json_writer w = {.out = &text};
    (void)arg;
    of(n)->leftovers = true;
    of(n)->left = 0;
    json_each(it, found) of(n)->left += it->length;
    json_put_tree(&w, NULL, found);
    str_copy(of(n)->left_text, sizeof(of(n)->left_text), buf_str(&text));
    buf_fini(&text);
    loop_stop(loop);
}
static void on_injected(void *arg, struct node *n, uint64_t token, const char *error) {
    (void)arg;
    CHECK(token == 77);
    of(n)->injected = true;
    str_copy(of(n)->error, sizeof(of(n)->error), error ? error : "");
    loop_stop(loop);
}
static void on_counters(void *arg, struct node *n, const struct wire_counters *c) {
    (void)arg;
    of(n)->counters = *c;
}
static void on_counted(void *arg) {
    (void)arg;
    counted = true;
    loop_stop(loop);
}
static void on_failed(void *arg, const struct err *err) {
    (void)arg;
    die("failed: %s", err->msg);
}
static void on_down(void *arg, const char *const *left) {
    (void)arg;
    for (; *left; left++, left_on_host++)
        fprintf(stderr, "left: %s\n", *left);
    down = true;
    loop_stop(loop);
}

static void on_deadline(void *arg, int64_t now_ns) {
    (void)arg, (void)now_ns;
    die("the scene takes too long");
}

/* Turns the loop until the condition holds; the deadline of the scene ends what hangs. */
#define AWAIT(x)                                                                                   \
    do {                                                                                           \
        struct err e_;                                                                             \
        while (!(x))                                                                               \
            if (loop_run(loop, &e_) != 0)                                                          \
                die("%s", e_.msg);                                                                 \
    } while (0)

static void run(int node, const char *const *argv) {
    struct err err;
    char events[PATH_MAX], log[PATH_MAX + 32], path[4096];
    snprintf(events, sizeof(events), "RANKQUAKE_EVENTS=%s", node_events_path(nodes[node]));
    snprintf(path, sizeof(path), "PATH=%s", getenv("PATH"));
    snprintf(log, sizeof(log), "%s/n%d.log", run_dir, node);
    struct program p = {argv, (const char *[]){events, path, NULL}, cwd, log};
    seen[node].started = seen[node].exited = seen[node].leftovers = false;
    if (node_run(nodes[node], &p, &err) != 0)
        die("%s", err.msg);
    AWAIT(seen[node].started);
}

#define RUN(node, ...) run(node, (const char *[]){program, __VA_ARGS__, NULL})

static void await_success(int node) {
    AWAIT(seen[node].exited);
    if (!WIFEXITED(seen[node].status) || WEXITSTATUS(seen[node].status) != 0)
        die("the program of n%d ended with status 0x%x: see %s/n%d.log", node, seen[node].status,
            run_dir, node);
}

/* A fault as the engine does it. */
static void inject(const char *name, int node, bool at_program) {
    const struct fault *f = fault_find(name);
    struct target t;
    struct err err;
    CHECK(f);
    node_target(nodes[node], &t);
    if (at_program)
        CHECK(node_agent_target(nodes[node], &t) == 0);
    if (f->where == FAULT_IN_HARNESS) {
        if (f->inject(&t, NULL, &err) != 0)
            die("%s", err.msg);
        return;
    }
    seen[node].injected = false;
    if (node_inject(nodes[node], f, &t, &(struct fault_args){0}, 77, &err) != 0)
        die("%s", err.msg);
    AWAIT(seen[node].injected);
}

static void part(int node, const char *groups, bool on) {
    const struct fault *f = fault_find("net-partition");
    struct fault_args a = {.v = (struct fault_arg[]){{"groups", groups}}, .n = groups ? 1 : 0};
    struct target t;
    struct err err;
    node_target(nodes[node], &t);
    if ((on ? f->inject : f->recover)(&t, &a, &err) != 0)
        die("%s", err.msg);
}

static const char *host(int node) {
    return plan_node_host(node_plan(nodes[node]));
}

/* ---- scenes ---- */

static void scene_echo(void) {
    RUN(0, "serve", port_text);
    AWAIT(seen[0].clients);
    CHECK(seen[0].client_pid == seen[0].pid); /* translated to ours */
    RUN(1, "ask", host(0), port_text, "1000000");
    RUN(2, "ask", host(0), port_text, "1000000");
    await_success(1);
    await_success(2);
    cluster_count(cluster);
    AWAIT(counted);
    for (int i = 0; i < NODES; i++) {
        CHECK(seen[i].counters.dropped_in == 0 && seen[i].counters.dropped_out == 0);
        CHECK(seen[i].counters.lost == 0);
    }
    CHECK(seen[1].counters.data_bytes_out >= 1000000);
    CHECK(seen[1].counters.data_bytes_out < 1100000);
    CHECK(seen[0].counters.data_bytes_out >= 2000000);
}

static void scene_planes(void) {
    char port[8];
    snprintf(port, sizeof(port), "%d", PLAN_STORE_PORT);
    RUN(0, "serve", port);
    RUN(1, "serve", "29555");
    cluster_bootstrap_port(cluster, 29555);
    AWAIT(seen[0].clients && seen[1].clients);
    RUN(2, "ask", "n0", port, "100000");
    await_success(2);
    RUN(2, "ask", "n1", "29555", "100000");
    await_success(2);
    cluster_count(cluster);
    AWAIT(counted);
    CHECK(seen[2].counters.bytes_out > 200000);
    CHECK(seen[2].counters.data_bytes_out == 0);
}

/* When one of two partitions ends, the other still holds. */
static void scene_partition(void) {
    struct err err;
    int group[CLUSTER_NODES_MAX];
    CHECK(cluster_groups(cluster, "n0|*", group, &err) == 0 && group[0] == 0 && group[1] == 1 &&
          group[2] == 1);
    CHECK(cluster_groups(cluster, "n0|n7", group, &err) == -EINVAL && strstr(err.msg, "n7"));
    RUN(0, "serve", port_text);
    AWAIT(seen[0].clients);
    RUN(1, "lose", host(0), port_text, "silent");
    AWAIT(seen[1].clients);
    part(0, NULL, true);
    part(0, "n0|n1", true);
    await_success(1);
    part(0, NULL, false);
    RUN(2, "ask", host(0), port_text, "1000");
    await_success(2);
    cluster_count(cluster);
    AWAIT(counted);
    CHECK(seen[1].counters.cut_to[0] > 0 && seen[1].counters.cut_to[2] == 0);
    part(0, "n0|n1", false);
    RUN(1, "ask", host(0), port_text, "1000");
    await_success(1);
}

/* Who calls while the network is cut gets no answer, in either direction; an older connection
 * neither. What is mended goes on. */
static void scene_newcomers(void) {
    RUN(0, "serve", port_text);
    AWAIT(seen[0].clients);
    part(1, NULL, true);
    RUN(1, "unheard", host(0), port_text);
    await_success(1);
    RUN(2, "ask", host(0), port_text, "1000");
    await_success(2);
    part(1, NULL, false);
    RUN(1, "ask", host(0), port_text, "1000");
    await_success(1);
    cluster_count(cluster);
    AWAIT(counted);
    CHECK(seen[0].counters.cut_to[1] > 0); /* the answers to who called */
}

/* All of it at once: a node's processes, its shared memory, and nobody else's. */
static void scene_gone(void) {
    struct target t;
    struct err err;
    char mine[64];
    snprintf(mine, sizeof(mine), "/dev/shm/not-of-the-node-%d", (int)getpid());
    RUN(0, "litter", "wait", port_text);
    AWAIT(seen[0].clients);
    CHECK(file_write(mine, "x", 1, &err) == 0);
    inject("node-kill", 0, false);
    AWAIT(seen[0].downs);
    node_target(nodes[0], &t);
    CHECK(t.pid == 0 && file_exists(mine));
    CHECK(!file_exists("/dev/shm/litter"));
    unlink(mine);
    RUN(1, "ask", "127.0.0.1", "1", "1"); /* fails; the file of another is not counted */
    AWAIT(seen[1].leftovers);
    CHECK(seen[1].left == 0);
}

static void scene_kill(void) {
    RUN(0, "serve", port_text);
    AWAIT(seen[0].clients);
    RUN(1, "lose", host(0), port_text, "loud");
    AWAIT(seen[1].clients);
    inject("node-kill", 0, false);
    AWAIT(seen[0].downs);
    CHECK(seen[0].exited && WIFSIGNALED(seen[0].status) && WTERMSIG(seen[0].status) == SIGKILL);
    CHECK(!node_is_on(nodes[0]) && node_program_pid(nodes[0]) == 0);
    await_success(1);
}

static void scene_poweroff(void) {
    RUN(0, "serve", port_text);
    AWAIT(seen[0].clients);
    RUN(1, "lose", host(0), port_text, "silent");
    AWAIT(seen[1].clients);
    inject("node-poweroff", 0, false);
    AWAIT(seen[0].downs);
    await_success(1);
    cluster_count(cluster);
    AWAIT(counted);
    CHECK(seen[0].counters.dropped_in > 0 && seen[0].counters.dropped_out > 0);
}

/* Off and on again, under the same name and address, with the disk as it was and then a fresh one.
 */
static void scene_again(void) {
    static const char *const faults_of[] = {"node-kill", "node-poweroff"};
    char file[PATH_MAX + 16];
    struct err err;
    snprintf(file, sizeof(file), "%s/kept", node_disk_dir(nodes[0]));
    CHECK(file_write(file, "x", 1, &err) == 0);
    for (int i = 0; i < 2; i++) {
        int ups = seen[0].ups, downs = seen[0].downs;
        inject(faults_of[i], 0, false);
        AWAIT(seen[0].downs == downs + 1);
        if (i == 0)
            inject("node-start", 0, false);
        else
            CHECK(node_start(nodes[0], true, &err) == 0);
        AWAIT(seen[0].ups == ups + 1);
        CHECK(file_exists(file) == (i == 0));
        seen[0].clients = 0;
        RUN(0, "serve", port_text);
        AWAIT(seen[0].clients);
        RUN(1, "ask", host(0), port_text, "1000");
        await_success(1);
    }
}

static void scene_faults(void) {
    RUN(0, "wait");
    AWAIT(seen[0].clients);
    inject("agent-kill", 0, true);
    CHECK(!*seen[0].error);
    AWAIT(seen[0].exited && seen[0].leftovers);
    CHECK(WIFSIGNALED(seen[0].status) && WTERMSIG(seen[0].status) == SIGKILL);
    CHECK(seen[0].left == 0);
    RUN(1, "wait");
    AWAIT(seen[1].clients);
    inject("node-leave", 1, false); /* aimed at the node: it is its program that is meant */
    CHECK(!*seen[1].error);
    AWAIT(seen[1].exited);
    CHECK(WIFSIGNALED(seen[1].status) && WTERMSIG(seen[1].status) == SIGTERM);
    CHECK(node_is_on(nodes[1]));
    inject("node-leave", 1, false);
    CHECK(strstr(seen[1].error, "not running"));
}

static void scene_leftovers(void) {
    char port[32];
    snprintf(port, sizeof(port), "\"ports\":[%s]", port_text);
    RUN(0, "litter", "end", port_text);
    AWAIT(seen[0].leftovers);
    CHECK(seen[0].exited && seen[0].left == 3);
    CHECK(strstr(seen[0].left_text, port));
    CHECK(strstr(seen[0].left_text, "/dev/shm/litter"));
    CHECK(strstr(seen[0].left_text, "spawn_node_prog"));
    RUN(1, "ask", "localhost", "1", "1"); /* fails, and leaves nothing */
    AWAIT(seen[1].leftovers);
    CHECK(seen[1].left == 0);
}

static void scene_view(void) {
    struct err err;
    char file[PATH_MAX + 16];
    snprintf(file, sizeof(file), "%s/seen", cluster_shared_dir(cluster));
    CHECK(file_write(file, "x", 1, &err) == 0);
    RUN(0, "view", "n0", cwd, file);
    RUN(1, "view", "n1", cwd, file);
    await_success(0);
    await_success(1);
    char *big = malloc(200001);
    memset(big, 'x', 200000);
    memcpy(big, "BIG=", 4);
    big[100000] = 0;
    const char *argv[] = {program, "big", "99996", NULL}, *env[] = {big, NULL};
    seen[2].exited = false;
    struct program p = {argv, env, cwd, "/dev/null"};
    CHECK(node_run(nodes[2], &p, &err) == 0);
    await_success(2);
    free(big);
    RUN(2, "wait");
    const char *missing[] = {"/no/such/program", NULL};
    p = (struct program){missing, env + 1, cwd, "/dev/null"};
    CHECK(node_run(nodes[2], &p, &err) == 0);
    AWAIT(*seen[2].error);
    CHECK(strstr(seen[2].error, "runs in this node already"));
}

static void scene_missing(void) {
    struct err err;
    const char *missing[] = {"/no/such/program", NULL}, *env[] = {NULL};
    struct program p = {missing, env, cwd, "/dev/null"};
    CHECK(node_run(nodes[0], &p, &err) == 0);
    AWAIT(*seen[0].error);
    CHECK(strstr(seen[0].error, "/no/such/program"));
}

static void say(const char *line) {
    puts(line);
    fflush(stdout);
}

/* Says who is there and waits to be killed, in the midst of a conversation. */
static void scene_wait(void) {
    printf("%d\n", (int)nodes[0]->cluster->wire.process.pid);
    for (int i = 0; i < NODES; i++)
        printf("%d\n", (int)nodes[i]->init.pid);
    RUN(0, "serve", port_text);
    AWAIT(seen[0].clients);
    RUN(1, "lose", host(0), port_text, "loud");
    RUN(2, "lose", host(0), port_text, "loud");
    AWAIT(seen[1].clients || seen[2].clients); /* the server has one guest at a time */
    say("up");
    AWAIT(false);
}

static const struct {
    const char *name;
    void (*play)(void);
} scenes[] = {{"echo", scene_echo},           {"planes", scene_planes},
              {"kill", scene_kill},           {"partition", scene_partition},
              {"poweroff", scene_poweroff},   {"again", scene_again},
              {"faults", scene_faults},       {"leftovers", scene_leftovers},
              {"view", scene_view},           {"missing", scene_missing},
              {"ring", scene_echo},           {"wait", scene_wait},
              {"newcomers", scene_newcomers}, {"gone", scene_gone}};

/* As plan_settle does it, for a timeline that has a cut in it. */
static void make_processes(struct plan *plan) {
    static struct plan_action cut;
    char prefix[LOOPBACK_PREFIX_MAX];
    struct err err;
    cut.fault = fault_find("net-partition");
    snprintf(port_text, sizeof(port_text), "%d", 20000 + (int)getpid() % 10000);
    if ((plan->addresses = loopback_claim((uint16_t)atoi(port_text), prefix, &err)) < 0)
        die("%s", err.msg);
    plan->isolation = ISOLATION_PROCESSES;
    plan->actions = &cut;
    plan->actions_n = 1;
    for (size_t i = 0; i < plan->nodes_n; i++) {
        snprintf(plan->nodes[i].addr, sizeof(plan->nodes[i].addr), "%.12s.%u", prefix,
                 (10U + (unsigned)i) % 100);
        plan->nodes[i].by_address = true;
    }
}

static struct plan *make_plan(void) {
    static struct scenario scenario;
    static struct plan_node plan_nodes[NODES];
    static struct plan plan;
    static const char *const names[] = {"n0", "n1", "n2"};
    for (int i = 0; i < NODES; i++) {
        plan_nodes[i] = (struct plan_node){.name = names[i],
                                           .mac = {2, 0, 0, 0, 0, (unsigned char)(10 + i)},
                                           .on_at_start = true,
                                           .index = i};
        snprintf(plan_nodes[i].addr, sizeof(plan_nodes[i].addr), "198.18.0.%u",
                 10u + (unsigned)i % NODES);
    }
    plan = (struct plan){
        .scenario = &scenario, .seed = 1, .nodes = plan_nodes, .nodes_n = NODES, .addresses = -1};
    if (as_processes)
        make_processes(&plan);
    return &plan;
}

static void set_paths(const char *dir) {
    ssize_t n = readlink("/proc/self/exe", program, sizeof(program) - 32);
    CHECK(n > 0 && getcwd(cwd, sizeof(cwd)));
    program[n] = 0;
    strcpy(strrchr(program, '/'), "/spawn_node_program");
    CHECK(str_copy(run_dir, sizeof(run_dir), dir));
}

static void play(void (*scene)(void), const char *dir) {
    static const struct cluster_callbacks callbacks = {
        .node_up = on_node_up,
        .node_down = on_node_down,
        .program_started = on_started,
        .program_exited = on_exited,
        .program_failed = on_program_failed,
        .client = on_client,
        .leftovers = on_leftovers,
        .injected = on_injected,
        .counters = on_counters,
        .counted = on_counted,
        .failed = on_failed,
        .down = on_down,
    };
    struct err err;
    if (!(loop = loop_new(&err)))
        die("%s", err.msg);
    struct loop_source *deadline = loop_timer(loop, on_deadline, NULL);
    loop_timer_at(deadline, clock_monotonic_ns() + scene_wait_ns);
    cluster = cluster_new(make_plan(), dir, loop, &callbacks, NULL, &err);
    if (!cluster || cluster_up(cluster, &err) != 0)
        die("%s", err.msg);
    CHECK(cluster_nodes(cluster, &nodes) == NODES);
    if (scene == scene_wait)
        say("begun");
    AWAIT(seen[0].up && seen[1].up && seen[2].up);
    scene();
    ending = true;
    for (int i = 0; i < clients_n; i++)
        close(clients[i]);
    cluster_down(cluster);
    AWAIT(down);
    CHECK(left_on_host == 0);
    CHECK(!file_exists(cluster_shared_dir(cluster)));
    cluster_free(cluster);
    loop_source_free(deadline);
    loop_free(loop);
}

int main(int argc, char **argv) {
    if (argc > 1 && str_eq(argv[1], "node"))
        return verb_node.main(argc - 1, argv + 1);
    if (argc > 1 && str_eq(argv[1], "wire"))
        return verb_wire.main(argc - 1, argv + 1);
    as_processes = argc == 4 && str_eq(argv[3], "processes");
    if (argc >= 3)
        set_paths(argv[2]);
    if (argc == 3 && str_eq(argv[1], "ring"))
        setenv("RANKQUAKE_WIRE", "ring", 1);
    for (size_t i = 0; argc >= 3 && i < sizeof(scenes) / sizeof(*scenes); i++) {
        if (!str_eq(argv[1], scenes[i].name))
            continue;
        play(scenes[i].play, argv[2]);
        return 0;
    }
    die("spawn_cluster SCENE DIR [processes]");
}
