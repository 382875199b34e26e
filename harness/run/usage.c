#include "harness/run/engine.h"

#include "agent/sys/file.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What every agent holds when a round is complete: memory that is resident, and descriptors. What
 * piles up over many rounds is told by the check drift. */

/* Beyond that the reading itself would make the harness late. */
enum { NODES_MAX = 64, STATM_MAX = 256 };

static int64_t resident(pid_t pid) {
    char path[64];
    struct buf text = {0};
    int64_t pages = -1;
    snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
    if (file_read(path, STATM_MAX, &text, NULL) == 0) {
        char *at = strchr(buf_str(&text), ' ');
        pages = at ? strtoll(at, NULL, 10) : -1;
    }
    buf_fini(&text);
    return pages < 0 ? -1 : pages * sysconf(_SC_PAGESIZE);
}

/* -1: not for us to see. */
static int64_t descriptors(pid_t pid) {
    char path[64];
    int64_t n = 0;
    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    DIR *dir = opendir(path);
    if (!dir)
        return -1;
    for (struct dirent *d; (d = readdir(dir));)
        n += d->d_name[0] != '.';
    closedir(dir);
    return n;
}

static void put_agent(struct engine *e, const struct node *n, int round) {
    pid_t pid = node_program_pid(n);
    int64_t rss = resident(pid), fds = descriptors(pid);
    if (rss < 0 && fds < 0)
        return;
    struct json_writer *w = engine_record(e, SOURCE_KERNEL, "usage");
    json_put_string(w, "node", node_plan(n)->name);
    json_put_i64(w, "pid", pid);
    json_put_i64(w, "round", round);
    if (rss >= 0)
        json_put_i64(w, "rss", rss);
    if (fds >= 0)
        json_put_i64(w, "fds", fds);
    engine_recorded(e);
}

void usage_seen(struct engine *e, const struct record *r) {
    const struct rounds *rs = e->rec.rounds;
    if (!record_is(r, "worker-start") || !rs->n || e->phase > ENGINE_RUNNING)
        return;
    const struct round *newest = rs->v[rs->n - 1];
    struct node **nodes;
    size_t n = cluster_nodes(e->cluster, &nodes);
    if (!newest->complete || e->usage_read == newest->number || n > NODES_MAX)
        return;
    e->usage_read = newest->number;
    for (size_t i = 0; i < n; i++)
        if (!node_plan(nodes[i])->is_store && node_is_on(nodes[i]) && node_program_pid(nodes[i]))
            put_agent(e, nodes[i], newest->number);
}
