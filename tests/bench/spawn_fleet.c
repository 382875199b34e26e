/* How long many agents, each a process of its own, take to form a round at one store, and what they
 * cost while nothing happens.
 *
 *     spawn_fleet AGENTS REST_S STORE_PID HOST:PORT -- LAUNCHER OPTION...
 *
 * Two jobs of AGENTS nodes with one worker each, one after the other, at a store that somebody else
 * has started. A worker is `spawn_restart worker`, which writes a line. Of the first job all agents
 * are started at once; then one worker is killed; then nothing happens for REST_S seconds. Of the
 * second all but one are started, and when the store has all of these, and after another REST_S
 * seconds, the last one is. All stamps are taken here, on one clock.
 *
 *     cold_ms     from the first exec to the last worker's line
 *     restart_ms  from the death of one worker to the last line of the next round
 *     release_ms  from the exec of the last agent to the last worker's line
 *     running_cpu, waiting_cpu   per cent of one core: agents with their guards, and the store
 *     memory_mb   private of one agent, resident of the store
 */
#include "agent/core/keys.h"
#include "agent/store/store.h"
#include "base/buf.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "base/sys/loop.h"
#include "base/sys/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { AGENTS_MAX = 20000, DEADLINE_S = 120, WORDS_MAX = 64 };

static const int64_t second_ns = 1000000000;

struct fleet {
    int n;
    pid_t agents[AGENTS_MAX];
    pid_t store;
    const char *endpoint, *worker_program;
    char run_id[64];
    char **launcher;

    struct loop *loop;
    struct loop_source *deadline;
    int lines_in, lines_out;
    int lines, lines_wanted;
    pid_t worker; /* one of those that wrote last */
    struct store_call *watch;
    int64_t revision; /* of the store, before the second job */
    int members, members_wanted;
};

static void give_up(const struct fleet *f, const char *what) {
    fprintf(stderr, "spawn_fleet: %s: %d of %d workers, %d of %d agents at the store; see above\n",
            what, f->lines, f->lines_wanted, f->members, f->members_wanted);
    process_end_descendants(10 * second_ns);
    exit(1);
}

static void on_deadline(void *arg, int64_t now_ns) {
    (void)now_ns;
    give_up(arg, "the deadline has passed");
}

static void on_lines(void *arg, int fd, int what) {
    struct fleet *f = arg;
    char text[4096], *end;
    (void)what;
    ssize_t n = read(fd, text, sizeof(text) - 1);
    if (n <= 0)
        return;
    text[n] = '\0';
    for (char *line = text; (end = strchr(line, '\n')); line = end + 1) {
        sscanf(line, "worker %d\n", &f->worker);
        f->lines++;
    }
    if (f->lines >= f->lines_wanted && f->lines_wanted)
        loop_stop(f->loop);
}

/* Until that many lines have come, or for that long when there is nothing to come. */
static void turn(struct fleet *f, int64_t limit_ns) {
    loop_timer_at(f->deadline, clock_monotonic_ns() + limit_ns);
    loop_run(f->loop, NULL);
    loop_timer_off(f->deadline);
}

static void await_lines(struct fleet *f, int wanted) {
    f->lines_wanted = wanted;
    turn(f, DEADLINE_S * second_ns);
    f->lines = f->lines_wanted = 0;
}

/* ---- agents ---- */

static void become_agent(const struct fleet *f, int i) {
    char words[5][128];
    const char *argv[WORDS_MAX + 9];
    int n = 0;
    while (n < WORDS_MAX && f->launcher[n]) {
        argv[n] = f->launcher[n];
        n++;
    }
    snprintf(words[0], sizeof(words[0]), "--nnodes=%d", f->n);
    snprintf(words[1], sizeof(words[1]), "--nproc-per-node=1");
    snprintf(words[2], sizeof(words[2]), "--max-restarts=3");
    snprintf(words[3], sizeof(words[3]), "--rdzv-id=%s", f->run_id);
    snprintf(words[4], sizeof(words[4]), "--local-addr=127.%d.%d.%d", 1 + i / 62500, i / 250 % 250,
             i % 250 + 1);
    for (int k = 0; k < 5; k++)
        argv[n++] = words[k];
    argv[n++] = "--no-python";
    argv[n++] = f->worker_program;
    argv[n++] = "worker";
    argv[n] = NULL;
    dup2(f->lines_out, STDOUT_FILENO);
    execvp(argv[0], (char *const *)argv);
    perror(argv[0]);
    _exit(127);
}

static void start_agents(struct fleet *f, int from, int to) {
    for (int i = from; i < to; i++) {
        f->agents[i] = fork();
        if (f->agents[i] == 0)
            become_agent(f, i);
        if (f->agents[i] < 0) {
            perror("spawn_fleet: fork");
            give_up(f, "no more processes");
        }
    }
}

static void end_agents(struct fleet *f) {
    for (int i = 0; i < f->n; i++)
        kill(f->agents[i], SIGKILL);
    if (process_end_descendants(60 * second_ns) < 0)
        give_up(f, "agents do not end");
}

/* ---- what the store has ---- */

static void on_news(void *arg, const struct store_news *news) {
    struct fleet *f = arg;
    struct store_key key;
    if (news->ended) {
        f->watch = NULL;
        give_up(f, news->why ? news->why : "the store");
    }
    for (size_t i = 0; i < news->n_events; i++) {
        const struct kv_event *e = &news->events[i];
        f->members += !e->deleted && e->pair.version == 1 &&
                      key_parse(e->pair.key.data, e->pair.key.len, f->run_id, &key) &&
                      key.kind == KEY_MEMBER;
    }
    if (f->members >= f->members_wanted)
        loop_stop(f->loop);
}

static void on_revision(void *arg, const struct store_reply *r) {
    struct fleet *f = arg;
    if (r->outcome != STORE_ANSWERED)
        give_up(f, r->why);
    f->revision = r->txn->revision;
    loop_stop(f->loop);
}

static void on_rested(void *arg, int64_t now_ns) {
    (void)now_ns;
    loop_stop(((struct fleet *)arg)->loop);
}

/* A store ends the watch of who does not read what it is told: so that is read between the forks.
 */
static void start_and_listen(struct fleet *f, int n) {
    enum { BATCH = 16 };
    struct loop_source *moment = loop_timer(f->loop, on_rested, f);
    for (int i = 0; i < n; i += BATCH) {
        start_agents(f, i, i + BATCH < n ? i + BATCH : n);
        loop_timer_at(moment, 0);
        turn(f, DEADLINE_S * second_ns);
    }
    loop_source_free(moment);
}

/* Watches the whole job, from before its first agent on, until so many have joined. */
static void start_and_await_members(struct fleet *f, int wanted) {
    struct store_key cur = {.kind = KEY_CUR};
    struct err err = {0};
    char from[KEY_SIZE], end[KEY_SIZE];
    struct store *store = store_client_new(f->loop, f->endpoint, NULL, &err);
    if (!store)
        give_up(f, err.msg);
    key_format(&cur, f->run_id, from, end);
    const struct kv_op read = {
        .kind = KV_RANGE, .key = kv_string(from), .range_end = kv_string("")};
    const struct kv_txn txn = {.success = &read, .n_success = 1};
    store_txn(store, &txn, 5000, on_revision, f);
    turn(f, DEADLINE_S * second_ns);
    strrchr(from, '/')[1] = '\0';
    str_copy(end, sizeof(end), from);
    end[strlen(end) - 1]++;
    f->members = 0;
    f->members_wanted = wanted;
    f->watch =
        store_watch(store, kv_string(from), kv_string(end), f->revision + 1, 5000, on_news, f);
    start_and_listen(f, wanted);
    if (f->members < wanted)
        turn(f, DEADLINE_S * second_ns);
    store_cancel(f->watch);
    store_free(store);
}

/* ---- what they cost ---- */

/* Nanoseconds that all threads of a process have run. */
static double ran_ns(pid_t pid) {
    char path[300];
    double sum = 0, ns;
    snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
    DIR *tasks = opendir(path);
    for (struct dirent *t; tasks && (t = readdir(tasks));) {
        snprintf(path, sizeof(path), "/proc/%d/task/%s/schedstat", (int)pid, t->d_name);
        FILE *f = t->d_name[0] == '.' ? NULL : fopen(path, "re");
        if (f && fscanf(f, "%lf", &ns) == 1)
            sum += ns;
        if (f)
            fclose(f);
    }
    if (tasks)
        closedir(tasks);
    return sum;
}

static double agents_ran_ns(void) {
    pid_t *pids = NULL;
    size_t n = process_list_descendants(getpid(), &pids);
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += ran_ns(pids[i]);
    free(pids);
    return sum;
}

static void rest(struct fleet *f, const char *what, int rest_s) {
    struct loop_source *rested = loop_timer(f->loop, on_rested, f);
    int64_t begin_ns = clock_monotonic_ns();
    double agents = -agents_ran_ns(), store = -ran_ns(f->store);
    loop_timer_at(rested, clock_monotonic_ns() + rest_s * second_ns);
    turn(f, (rest_s + DEADLINE_S) * second_ns);
    agents += agents_ran_ns();
    store += ran_ns(f->store);
    double took = (double)(clock_monotonic_ns() - begin_ns) / 100;
    printf("%s_cpu %.1f %.1f\n", what, agents / took, store / took);
    loop_source_free(rested);
}

static double memory_mb(pid_t pid, const char *what) {
    char path[64], line[256], name[64];
    long kb, sum = 0;
    snprintf(path, sizeof(path), "/proc/%d/smaps_rollup", (int)pid);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "%63[^:]: %ld", name, &kb) == 2 && strcmp(name, what) == 0)
            sum = kb;
    if (f)
        fclose(f);
    return (double)sum / 1024;
}

/* ---- the two jobs ---- */

static void print_ms(const char *what, int64_t since_ns) {
    printf("%s_ms %.0f\n", what, (double)(clock_monotonic_ns() - since_ns) / 1e6);
    fflush(stdout);
}

static void start_all(struct fleet *f, int rest_s) {
    snprintf(f->run_id, sizeof(f->run_id), "fleet-%d-cold", (int)getpid());
    int64_t begin_ns = clock_monotonic_ns();
    start_agents(f, 0, f->n);
    await_lines(f, f->n);
    print_ms("cold", begin_ns);
    begin_ns = clock_monotonic_ns();
    kill(f->worker, SIGKILL);
    await_lines(f, f->n);
    print_ms("restart", begin_ns);
    rest(f, "running", rest_s);
    printf("memory_mb %.1f %.1f\n", memory_mb(f->agents[f->n / 2], "Private_Dirty"),
           memory_mb(f->store, "Rss"));
    end_agents(f);
}

static void release_the_last(struct fleet *f, int rest_s) {
    snprintf(f->run_id, sizeof(f->run_id), "fleet-%d-release", (int)getpid());
    start_and_await_members(f, f->n - 1);
    rest(f, "waiting", rest_s);
    int64_t begin_ns = clock_monotonic_ns();
    start_agents(f, f->n - 1, f->n);
    await_lines(f, f->n);
    print_ms("release", begin_ns);
    end_agents(f);
}

int main(int argc, char **argv) {
    static struct fleet f;
    struct err err = {0};
    int ends[2];
    f.n = argc > 6 ? atoi(argv[1]) : 0;
    int rest_s = argc > 6 ? atoi(argv[2]) : -1;
    if (f.n < 2 || f.n > AGENTS_MAX || rest_s < 0 || strcmp(argv[5], "--") != 0 ||
        argc - 6 >= WORDS_MAX) {
        fprintf(stderr, "usage: spawn_fleet AGENTS REST_S STORE_PID HOST:PORT -- LAUNCHER...\n");
        return 64;
    }
    char program[PATH_MAX];
    const char *slash = strrchr(argv[0], '/');
    snprintf(program, sizeof(program), "%.*sspawn_restart", slash ? (int)(slash + 1 - argv[0]) : 0,
             argv[0]);
    f.worker_program = program;
    f.store = atoi(argv[3]);
    f.endpoint = argv[4];
    f.launcher = argv + 6;
    if (process_adopt_orphans() < 0 || pipe2(ends, O_CLOEXEC) < 0 || !(f.loop = loop_new(&err))) {
        fprintf(stderr, "spawn_fleet: %s\n", err.code ? err.msg : strerror(errno));
        return 1;
    }
    f.lines_in = ends[0];
    f.lines_out = ends[1];
    f.deadline = loop_timer(f.loop, on_deadline, &f);
    struct loop_source *lines = loop_fd(f.loop, f.lines_in, LOOP_READ, on_lines, &f);
    start_all(&f, rest_s);
    release_the_last(&f, rest_s);
    loop_source_free(lines);
    loop_source_free(f.deadline);
    loop_free(f.loop);
    return 0;
}
