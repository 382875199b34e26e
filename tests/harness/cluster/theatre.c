#include "tests/harness/cluster/theatre.h"

#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "base/sys/loopback.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CLIENTS = 64 };
static const int64_t scene_wait_ns = 60000000000;

bool as_processes;
int64_t dead_man_ns, total_ns;
char port_text[8] = "7000"; /* nodes that are processes share the ports of this host */
struct loop *loop;
struct cluster *cluster;
struct node **nodes;
struct seen seen[NODES];
bool counted;
char *failure;
static bool ending, down;
static int left_on_host, clients[CLIENTS], clients_n;
static struct folder folder; /* the run directory */
char program[PATH_MAX], run_dir[PATH_MAX], cwd[PATH_MAX];

void die(const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    vfprintf(stderr, fmt, ap);
    va_end(ap);
    fputc('\n', stderr);
    exit(1);
}

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
    of(n)->asked_ns = node_asked_ns(n);
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
    json_each(it, found) if (!str_eq(it->key, "shm_ids")) of(n)->left += it->length;
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
    if (!failure)
        die("failed: %s", err->msg);
    str_copy(failure, sizeof(err->msg), err->msg);
    loop_stop(loop);
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

void run(int node, const char *const *argv) {
    struct err err;
    char events[PATH_MAX], name[32], path[4096];
    snprintf(events, sizeof(events), "RANKQUAKE_EVENTS=%s", node_events_path(nodes[node]));
    snprintf(path, sizeof(path), "PATH=%s", getenv("PATH"));
    snprintf(name, sizeof(name), "n%d.log", node);
    FILE_CLOSE int log = folder_append(&folder, name, &err);
    struct program p = {argv, (const char *[]){events, path, NULL}, cwd, log};
    seen[node].started = seen[node].exited = seen[node].leftovers = false;
    int64_t before_ns = clock_monotonic_ns();
    if (node_run(nodes[node], &p, &err) != 0)
        die("%s", err.msg);
    int64_t asked_ns = clock_monotonic_ns();
    AWAIT(seen[node].started);
    /* Whoever tells of the start may be late; nothing that the program does is earlier than that. */
    CHECK(seen[node].asked_ns >= before_ns && seen[node].asked_ns <= asked_ns);
}

void await_success(int node) {
    AWAIT(seen[node].exited);
    if (!WIFEXITED(seen[node].status) || WEXITSTATUS(seen[node].status) != 0)
        die("the program of n%d ended with status 0x%x: see %s/n%d.log", node, seen[node].status,
            run_dir, node);
}

/* A fault as the engine does it. */
void inject(const char *name, int node, bool at_program) {
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

void part(int node, const char *groups, bool on) {
    const struct fault *f = fault_find("net-partition");
    struct fault_args a = {.v = (struct fault_arg[]){{"groups", groups}}, .n = groups ? 1 : 0};
    struct target t;
    struct err err;
    node_target(nodes[node], &t);
    if ((on ? f->inject : f->recover)(&t, &a, &err) != 0)
        die("%s", err.msg);
}

const char *host(int node) {
    return plan_node_host(node_plan(nodes[node]));
}

void say(const char *line) {
    puts(line);
    fflush(stdout);
}

/* As plan_settle does it, for a timeline that has a cut in it. */
static void make_processes(struct plan *plan) {
    static const struct timeline_entry written;
    static struct planned_entry cut = {.entry = &written};
    char prefix[LOOPBACK_PREFIX_MAX];
    struct err err;
    cut.fault = fault_find("net-partition");
    snprintf(port_text, sizeof(port_text), "%d", 20000 + (int)getpid() % 10000);
    if ((plan->addresses = loopback_claim((uint16_t)atoi(port_text), prefix, &err)) < 0)
        die("%s", err.msg);
    plan->isolation = ISOLATION_PROCESSES;
    plan->entries = &cut;
    plan->entries_n = 1;
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
    scenario.limits.dead_man_ns = dead_man_ns;
    scenario.limits.total_ns = total_ns;
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
    CHECK(file_make_dirs(dir, 0777, NULL) == 0 && folder_open(&folder, dir, NULL) == 0);
}

void play(void (*scene)(void), const char *dir, const char *begun) {
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
    set_paths(dir);
    if (!(loop = loop_new(&err)))
        die("%s", err.msg);
    struct loop_source *deadline = loop_timer(loop, on_deadline, NULL);
    loop_timer_at(deadline, clock_monotonic_ns() + scene_wait_ns);
    cluster = cluster_new(make_plan(), &folder, loop, &callbacks, NULL, &err);
    if (!cluster || cluster_up(cluster, &err) != 0)
        die("%s", err.msg);
    nodes = cluster_nodes(cluster);
    CHECK(nodes[NODES - 1] && !nodes[NODES]);
    if (begun)
        say(begun);
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
    folder_close(&folder);
    loop_source_free(deadline);
    loop_free(loop);
}

void play_in_vain(const char *dir) {
    static const struct cluster_callbacks none;
    const struct rlimit none_left = {0, RLIM_INFINITY}, plenty = {RLIM_INFINITY, RLIM_INFINITY};
    char scratch[PATH_MAX];
    struct err err = {0};
    set_paths(dir);
    snprintf(scratch, sizeof(scratch), "%.4000s/scratch", dir);
    CHECK((loop = loop_new(&err)) != NULL);
    signal(SIGXFSZ, SIG_IGN);
    CHECK(setrlimit(RLIMIT_FSIZE, &none_left) == 0); /* as a disk that is full */
    CHECK(!cluster_new(make_plan(), &folder, loop, &none, NULL, &err));
    CHECK(setrlimit(RLIMIT_FSIZE, &plenty) == 0);
    CHECK(strstr(err.msg, "scratch/hosts") && !file_exists(scratch));
    CHECK(symlink("/", scratch) == 0);
    CHECK(!cluster_new(make_plan(), &folder, loop, &none, NULL, &err));
    CHECK(strstr(err.msg, "scratch is a symbolic link"));
    CHECK(unlink(scratch) == 0);
    folder_close(&folder);
    loop_free(loop);
}
