/* Builds a cluster of three nodes in DIR and plays one scene in it: spawn_cluster SCENE DIR
 * [processes], the nodes as processes of this host. Ends 0 when all went as it should, else 1 with
 * a line on stderr. It is also its own node helper and wire, as rankquake is. */
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "harness/verb.h"
#include "tests/harness/cluster/theatre.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern const struct verb verb_node, verb_wire;

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
    CHECK(seen[1].counters.data_bytes_out <
          2000000); /* once, and what a late machine sends again */
    CHECK(seen[1].counters.bytes_to[0] >= 1000000 && seen[1].counters.bytes_to[2] < 10000);
    CHECK(seen[0].counters.bytes_to[1] >= 1000000 && seen[0].counters.bytes_to[2] >= 1000000);
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
 * neither. What is healed goes on. */
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
    char mine[64], its[64];
    snprintf(its, sizeof(its), "/dev/shm/litter-%s", port_text);
    snprintf(mine, sizeof(mine), "/dev/shm/not-of-the-node-%d", (int)getpid());
    RUN(0, "litter", "wait", port_text);
    AWAIT(seen[0].clients);
    CHECK(file_write(mine, "x", 1, &err) == 0);
    inject("node-kill", 0, false);
    AWAIT(seen[0].downs);
    node_target(nodes[0], &t);
    CHECK(t.pid == 0 && file_exists(mine));
    CHECK(!file_exists(its));
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
    RUN(0, "litter", as_processes ? "end" : "all", port_text);
    AWAIT(seen[0].leftovers);
    CHECK(seen[0].exited && seen[0].left == (as_processes ? 3 : 5));
    CHECK(strstr(seen[0].left_text, port));
    CHECK(strstr(seen[0].left_text, "/dev/shm/litter-"));
    CHECK(as_processes || strstr(seen[0].left_text, "System V semaphore set "));
    CHECK(as_processes || strstr(seen[0].left_text, "System V message queue "));
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
    struct program p = {argv, env, cwd, STDOUT_FILENO};
    CHECK(node_run(nodes[2], &p, &err) == 0);
    await_success(2);
    free(big);
    RUN(2, "wait");
    const char *missing[] = {"/no/such/program", NULL};
    p = (struct program){missing, env + 1, cwd, STDOUT_FILENO};
    CHECK(node_run(nodes[2], &p, &err) == 0);
    AWAIT(*seen[2].error);
    CHECK(strstr(seen[2].error, "runs in this node already"));
}

static void scene_missing(void) {
    struct err err;
    const char *missing[] = {"/no/such/program", NULL}, *env[] = {NULL};
    struct program p = {missing, env, cwd, STDOUT_FILENO};
    CHECK(node_run(nodes[0], &p, &err) == 0);
    AWAIT(*seen[0].error);
    CHECK(strstr(seen[0].error, "/no/such/program"));
}

/* Says who is there and waits to be killed, in the midst of a conversation. */
static bool ends_within_a_minute(int pidfd) {
    struct pollfd end = {.fd = pidfd, .events = POLLIN};
    return poll(&end, 1, 60000) == 1;
}

/* Nobody turns the loop any more, which is all that a node knows of a harness that stands still: after
 * limits.dead_man and limits.total it ends, with all that runs on it. */
static void scene_silence(void) {
    const int64_t end_ns = dead_man_ns + total_ns;
    struct process waits;
    static char failed[sizeof(((struct err *)0)->msg)] = "";
    failure = failed;
    RUN(0, "wait");
    AWAIT(seen[0].clients);
    CHECK(process_open(seen[0].pid, &waits, NULL) == 0);
    int64_t since_ns = clock_monotonic_ns();
    for (int i = 0; i < NODES; i++)
        CHECK(ends_within_a_minute(nodes[i]->init.pidfd));
    /* A beat, that it heard or that lies in its socket, was told a fifth of dead_man before at most. */
    CHECK(clock_monotonic_ns() - since_ns > end_ns - dead_man_ns / 2);
    CHECK(ends_within_a_minute(waits.pidfd));
    process_close(&waits);
    AWAIT(
        strstr(failed, "its first process ended by itself")); /* what it is told when it is back */
}

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
} scenes[] = {
    {"echo", scene_echo},           {"planes", scene_planes},       {"kill", scene_kill},
    {"partition", scene_partition}, {"poweroff", scene_poweroff},   {"again", scene_again},
    {"faults", scene_faults},       {"leftovers", scene_leftovers}, {"view", scene_view},
    {"missing", scene_missing},     {"ring", scene_echo},           {"wait", scene_wait},
    {"newcomers", scene_newcomers}, {"gone", scene_gone},           {"silence", scene_silence}};

int main(int argc, char **argv) {
    if (argc > 1 && str_eq(argv[1], "node"))
        return verb_node.main(argc - 1, argv + 1);
    if (argc > 1 && str_eq(argv[1], "wire"))
        return verb_wire.main(argc - 1, argv + 1);
    as_processes = argc == 4 && str_eq(argv[3], "processes");
    if (argc == 3 && str_eq(argv[1], "ring"))
        setenv("RANKQUAKE_WIRE", "ring", 1);
    if (argc >= 3 && str_eq(argv[1], "silence")) {
        dead_man_ns = 500000000;
        total_ns = 1000000000;
    }
    if (argc >= 3 && str_eq(argv[1], "spoiled")) {
        play_in_vain(argv[2]);
        return 0;
    }
    for (size_t i = 0; argc >= 3 && i < sizeof(scenes) / sizeof(*scenes); i++) {
        if (!str_eq(argv[1], scenes[i].name))
            continue;
        play(scenes[i].play, argv[2], scenes[i].play == scene_wait ? "begun" : NULL);
        return 0;
    }
    die("spawn_cluster SCENE DIR [processes]");
}
