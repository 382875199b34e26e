/* Deadlines, and the death of the guard and of the agent.
 *
 * An experiment that must survive its agent runs it in a child, is itself a subreaper, and so sees
 * whatever is left over. */
#include "tests/agent/workers/guard_fixture.h"

static void deadline_passed(void) {
    begin("exec sleep 1000");
    start(2, true);
    wait_for(&seen.reaped, 1);
    MUST(seen.reason == GUARD_REFUSED && seen.started == 0);
    int64_t now = clock_boottime_ns();
    guard_deadline(seen.guard, now - 1, now + 3600 * second_ns);
    start(2, true);
    wait_for(&seen.reaped, 1);
    MUST(seen.reason == GUARD_REFUSED && seen.started == 0);
    end_agent();
}

/* Moved on twice, then forgotten: the guard kills at the fence and lives on. */
static void fence(void) {
    begin("exec sleep 1000");
    int64_t now = clock_boottime_ns();
    guard_deadline(seen.guard, now + 200 * ms_ns, now + 3600 * second_ns);
    start(2, true);
    wait_for(&seen.running, 1);
    guard_deadline(seen.guard, now + 400 * ms_ns, now + 3600 * second_ns);
    guard_deadline(seen.guard, now + 300 * ms_ns, now + 3600 * second_ns); /* earlier: nothing */
    wait_for(&seen.reaped, 1);
    MUST(clock_boottime_ns() >= now + 400 * ms_ns);
    MUST(seen.reason == GUARD_FENCED && WTERMSIG(seen.statuses[0]) == SIGKILL && !seen.dead);
    start(1, true);
    wait_for(&seen.reaped, 1);
    MUST(seen.reason == GUARD_REFUSED);
    now = clock_boottime_ns();
    guard_deadline(seen.guard, now + 3600 * second_ns, now + 7200 * second_ns);
    start(1, true);
    wait_for(&seen.running, 1);
    end_agent();
}

static pid_t guard_of(pid_t worker) {
    char path[64];
    struct buf b = {0};
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)worker);
    MUST(file_read(path, 4096, &b, NULL) == 0);
    int parent = 0;
    MUST(sscanf(strrchr(buf_str(&b), ')'), ") %*c %d", &parent) == 1);
    buf_fini(&b);
    return parent;
}

/* The timer sends the same signal, but not before it is due. */
static void killed_in_time(void) {
    kill(guard_of(seen.pids[0]), SIGKILL);
    wait_for(&seen.dead, 1);
    MUST(!seen.dead_fenced);
}

/* A guard that does not run any more: the kernel kills it, and by it the workers; their orphans
 * fall to the agent. A new guard serves the next round. */
static void guard_stopped(void) {
    begin_ready("setsid sleep 1000 & echo; exec sleep 1000");
    int64_t now = clock_boottime_ns();
    guard_deadline(seen.guard, now + 300 * ms_ns, now + 400 * ms_ns);
    start(2, true);
    wait_ready(2);
    wait_for(&seen.running, 1);
    kill(guard_of(seen.pids[0]), SIGSTOP);
    wait_for(&seen.dead, 1);
    MUST(clock_boottime_ns() >= now + 400 * ms_ns && seen.dead_fenced);
    MUST(seen.exited == 0 && seen.reaped == 0 && guard_alive(seen.guard) == 0);
    MUST(process_signal_descendants(getpid(), 0) == 0);
    struct err err = {0};
    MUST(guard_renew(seen.guard, &err) == 0);
    shell[2] = "exec sleep 1000";
    start(2, false);
    wait_for(&seen.running, 1);
    killed_in_time();
    MUST(guard_renew(seen.guard, &err) == 0);
    now = clock_boottime_ns();
    guard_deadline(seen.guard, now + 3600 * second_ns, now + 7200 * second_ns);
    start(1, true);
    wait_for(&seen.running, 1);
    killed_in_time();
    end_agent();
}

static void guard_killed(void) {
    begin_ready("setsid sleep 1000 & echo; exec sleep 1000");
    start(2, false);
    wait_ready(2);
    wait_for(&seen.running, 1);
    pid_t guard = guard_of(seen.pids[0]);
    kill(guard, SIGKILL);
    wait_for(&seen.dead, 1);
    MUST(seen.dead_pid == guard && !seen.dead_fenced);
    MUST(process_signal_descendants(getpid(), 0) == 0);
    end_agent();
}

/* Neither what is left of a dead guard nor the end of the agent's own touches it. Again and again:
 * a guard may end at any moment of the walks through /proc that look for what it left. */
static void spared_child(void) {
    struct err err = {0};
    begin("exec sleep 1000");
    pid_t child = fork();
    MUST(child >= 0);
    while (child == 0)
        pause();
    guard_spare(seen.guard, child);
    for (int i = 0; i < 20; i++) {
        start(1, false);
        wait_for(&seen.running, 1);
        kill(guard_of(seen.pids[0]), SIGKILL);
        wait_for(&seen.dead, 1);
        MUST(waitpid(child, NULL, WNOHANG) == 0);
        MUST(process_signal_descendants(getpid(), 0) == 1);
        MUST(guard_renew(seen.guard, &err) == 0);
    }
    guard_free(seen.guard);
    loop_free(seen.loop);
    MUST(waitpid(child, NULL, WNOHANG) == 0);
    MUST(kill(child, SIGTERM) == 0);
    int status = 0;
    MUST(waitpid(child, &status, 0) == child && WTERMSIG(status) == SIGTERM);
}

static void must_show_its_name(pid_t guard) {
    char path[64];
    struct buf b = {0};
    snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)guard);
    MUST(file_read(path, 4096, &b, NULL) == 0);
    MUST(strcmp(buf_str(&b), GUARD_NAME) == 0);
    for (size_t i = strlen(GUARD_NAME); i < b.len; i++)
        MUST(b.data[i] == '\0');
    buf_fini(&b);
    char name[64];
    MUST(strcmp(process_name(guard, name, sizeof(name)), GUARD_NAME) == 0);
}

/* The first one is a fork of the agent, the next an execution of its program. */
static void own_name(void) {
    begin("exec sleep 1000");
    for (int i = 0; i < 2; i++) {
        start(1, false);
        wait_for(&seen.running, 1);
        pid_t guard = guard_of(seen.pids[0]);
        must_show_its_name(guard);
        kill(guard, SIGKILL);
        wait_for(&seen.dead, 1);
        struct err err = {0};
        MUST(guard_renew(seen.guard, &err) == 0);
    }
    end_agent();
}

/* ---- agents that die ---- */

struct victim {
    pid_t agent, guard, workers[2];
};

/* In a child: an agent with two workers and an orphan each, which then only sits there. */
static void be_victim(int report, int64_t fence_after_ns, int64_t hard_after_ns) {
    begin_ready("setsid sleep 1000 & echo; exec sleep 1000");
    int64_t now = clock_boottime_ns();
    if (hard_after_ns)
        guard_deadline(seen.guard, now + fence_after_ns, now + hard_after_ns);
    start(2, hard_after_ns > 0);
    wait_ready(2);
    wait_for(&seen.running, 1);
    struct victim v = {getpid(), guard_of(seen.pids[0]), {seen.pids[0], seen.pids[1]}};
    MUST(write(report, &v, sizeof(v)) == sizeof(v));
    for (;;)
        pause();
}

/* Both 0: it has no deadline. */
static struct victim make_victim(int64_t fence_after_ns, int64_t hard_after_ns) {
    int ends[2];
    struct victim v;
    MUST(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0 && pipe2(ends, O_CLOEXEC) == 0);
    if (fork() == 0) {
        alarm(60);
        be_victim(ends[1], fence_after_ns, hard_after_ns);
    }
    close(ends[1]);
    MUST(read(ends[0], &v, sizeof(v)) == sizeof(v));
    close(ends[0]);
    return v;
}

/* Waits until this process, a subreaper, has no descendant any more; the alarm is the deadline. */
static void wait_nobody(void) {
    while (waitpid(-1, NULL, 0) > 0)
        ;
    MUST(errno == ECHILD);
}

static void agent_killed(void) {
    struct victim v = make_victim(0, 0);
    kill(v.agent, SIGKILL);
    wait_nobody();
}

static void agent_killed_guard_stopped(void) {
    struct victim v = make_victim(0, 0);
    kill(v.guard, SIGSTOP);
    kill(v.agent, SIGKILL);
    wait_nobody();
}

/* All of them stopped: the guard's timer ends guard and workers. The orphans that only a running
 * agent or guard could find are left, and are counted here. */
static void all_stopped(void) {
    struct victim v = make_victim(400 * ms_ns, 500 * ms_ns);
    struct process guard, workers[2];
    MUST(process_open(v.guard, &guard, NULL) == 0);
    for (int i = 0; i < 2; i++)
        MUST(process_open(v.workers[i], &workers[i], NULL) == 0);
    kill(v.agent, SIGSTOP);
    kill(v.guard, SIGSTOP);
    for (int i = 0; i < 2; i++)
        kill(v.workers[i], SIGSTOP);
    MUST(process_wait_end(&guard, 20 * second_ns) == 0);
    for (int i = 0; i < 2; i++)
        MUST(process_wait_end(&workers[i], 20 * second_ns) == 0);
    kill(v.agent, SIGCONT);
    kill(v.agent, SIGKILL);
    process_signal_descendants(getpid(), SIGKILL);
    wait_nobody();
}

/* An agent that is stopped alone: the guard itself kills at the fence, orphans too, and however long
 * that takes it on a busy host it has the time. */
static void agent_stopped(void) {
    struct victim v = make_victim(400 * ms_ns, 3600 * second_ns);
    struct process workers[2];
    for (int i = 0; i < 2; i++)
        MUST(process_open(v.workers[i], &workers[i], NULL) == 0);
    kill(v.agent, SIGSTOP);
    for (int i = 0; i < 2; i++)
        MUST(process_wait_end(&workers[i], 20 * second_ns) == 0);
    kill(v.agent, SIGKILL);
    wait_nobody();
}

static const struct experiment experiments[] = {
    EXPERIMENT(agent_killed),
    EXPERIMENT(agent_killed_guard_stopped),
    EXPERIMENT(agent_stopped),
    EXPERIMENT(all_stopped),
    EXPERIMENT(deadline_passed),
    EXPERIMENT(fence),
    EXPERIMENT(guard_killed),
    EXPERIMENT(guard_stopped),
    EXPERIMENT(own_name),
    EXPERIMENT(spared_child),
    {NULL, NULL},
};

int main(int argc, char **argv) {
    return guard_fixture_main(experiments, argc, argv);
}
