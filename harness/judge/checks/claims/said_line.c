#include "harness/judge/checks/claims/said_line.h"

#include "base/json.h"
#include "base/str.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* ---- the sentence ---- */

/* "exit code 3" or "SIGKILL (core dumped)", as agents say it of their own worker. */
static void read_status(struct arena *a, const char *how, struct said_line *l) {
    char name[16];
    if (sscanf(how, "exit code %" SCNd64, &l->code) != 1 &&
        sscanf(how, "SIG%15[A-Z0-9]", name) == 1)
        l->signal_name = arena_strdup(a, name);
}

static bool read_round(struct arena *a, const char *s, struct said_line *l) {
    char cause[16], node[6];
    int n = sscanf(s,
                   "round %" SCNd64 " (%15[a-z]): world %" SCNd64 ", %" SCNd64
                   " %5[nodes], %" SCNd64 " of %" SCNd64 " restarts used; stop %" SCNd64
                   " ms, rendezvous %" SCNd64 " ms, start %" SCNd64 " ms",
                   &l->round, cause, &l->world, &l->nodes, node, &l->restarts, &l->restarts_max,
                   &l->stop_ms, &l->rendezvous_ms, &l->start_ms);
    if (n != 10 || !str_eq(node, l->nodes == 1 ? "node" : "nodes"))
        return false;
    l->kind = SAID_ROUND;
    l->cause = arena_strdup(a, cause);
    return true;
}

static bool read_worker(struct arena *a, const char *s, struct said_line *l) {
    int at = 0;
    int n = sscanf(s, "round %" SCNd64 ", local rank %" SCNd64 ", pid %" SCNd64 ": %n", &l->round,
                   &l->local_rank, &l->pid, &at);
    if (n != 3 || !at)
        return false;
    l->kind = SAID_WORKER;
    read_status(a, s + at, l);
    return true;
}

/* That of an earlier run is another job's. */
static bool read_first(struct arena *a, const char *s, struct said_line *l) {
    char node[256];
    int n = sscanf(
        s, "first failure of round %" SCNd64 ": node %255[^,], rank %" SCNd64 ", pid %" SCNd64,
        &l->round, node, &l->rank, &l->pid);
    if (n != 4)
        return false;
    l->kind = SAID_FIRST;
    l->node = arena_strdup(a, node);
    return true;
}

static void read_failed(struct arena *a, const char *s, struct said_line *l) {
    char node[256];
    int at = 0;
    const char *spent = strstr(s, "; max_restarts ");
    if (sscanf(s, "rank %" SCNd64 " (local rank %" SCNd64 " on node %255[^)]) %n", &l->rank,
               &l->local_rank, node, &at) == 3) {
        l->node = arena_strdup(a, node);
        if (sscanf(s + at, "was killed by signal %" SCNd64, &l->signal) != 1)
            sscanf(s + at, "exited with code %" SCNd64, &l->code);
    }
    if (spent)
        sscanf(spent, "; max_restarts %" SCNd64, &l->restarts_max);
}

static bool read_outcome(struct arena *a, const char *s, struct said_line *l) {
    char id[256];
    int at = 0;
    if (sscanf(s, "run \"%255[^\"]\" %n", id, &at) != 1 || !at)
        return false;
    l->succeeded = str_eq(s + at, "succeeded");
    if (!l->succeeded && !str_starts(s + at, "failed: "))
        return false;
    l->kind = SAID_OUTCOME;
    l->run_id = arena_strdup(a, id);
    if (!l->succeeded)
        read_failed(a, s + at + strlen("failed: "), l);
    return true;
}

static void read_text(struct arena *a, const char *s, struct said_line *l) {
    const struct said_line fresh = *l;
    if (read_round(a, s, l))
        return;
    *l = fresh;
    if (read_worker(a, s, l))
        return;
    *l = fresh;
    if (read_first(a, s, l))
        return;
    *l = fresh;
    if (!read_outcome(a, s, l))
        *l = fresh;
}

/* ---- the object ---- */

#define AT(member) offsetof(struct said_line, member)

/* What stands beside the text, for programs. */
static const struct beside {
    const char *key;
    size_t offset;
    bool text;
    unsigned kinds; /* that must have it: 1 << SAID_... */
} besides[] = {
    {"round", AT(round), false, 1 << SAID_ROUND | 1 << SAID_WORKER | 1 << SAID_FIRST},
    {"cause", AT(cause), true, 1 << SAID_ROUND},
    {"world", AT(world), false, 1 << SAID_ROUND},
    {"nodes", AT(nodes), false, 1 << SAID_ROUND},
    {"restarts", AT(restarts), false, 1 << SAID_ROUND},
    {"restarts_max", AT(restarts_max), false, 1 << SAID_ROUND},
    {"stop_ms", AT(stop_ms), false, 1 << SAID_ROUND},
    {"rendezvous_ms", AT(rendezvous_ms), false, 1 << SAID_ROUND},
    {"start_ms", AT(start_ms), false, 1 << SAID_ROUND},
    {"local_rank", AT(local_rank), false, 1 << SAID_WORKER},
    {"pid", AT(pid), false, 1 << SAID_WORKER | 1 << SAID_FIRST},
    {"node", AT(node), true, 1 << SAID_FIRST},
    {"rank", AT(rank), false, 1 << SAID_FIRST},
};

static const char *const words[] = {[SAID_ROUND] = "round",
                                    [SAID_WORKER] = "worker",
                                    [SAID_FIRST] = "failure",
                                    [SAID_OUTCOME] = "exit"};

static const char *level_of(const struct said_line *l) {
    return l->kind == SAID_ROUND || (l->kind == SAID_OUTCOME && l->succeeded) ? "info" : "error";
}

static void compare(struct arena *a, const struct json *j, struct said_line *l) {
    if (!str_eq(json_get_string(j, "what", ""), words[l->kind]))
        l->differs = arena_printf(a, "what \"%s\"", json_get_string(j, "what", ""));
    if (!str_eq(json_get_string(j, "level", ""), level_of(l)))
        l->differs = arena_printf(a, "level \"%s\"", json_get_string(j, "level", ""));
    for (size_t i = 0; i < sizeof(besides) / sizeof(*besides); i++) {
        const struct beside *b = &besides[i];
        const void *at = (const char *)l + b->offset;
        if (!(b->kinds & 1U << l->kind))
            continue;
        const char *text = json_get_string(j, b->key, "");
        if (b->text && !str_eq(text, *(const char *const *)at))
            l->differs = arena_printf(a, "%s \"%s\"", b->key, text);
        int64_t number = json_get_i64(j, b->key, INT64_MIN);
        if (!b->text && number != *(const int64_t *)at)
            l->differs = arena_printf(a, "%s %" PRId64, b->key, number);
    }
}

void said_line_read(struct arena *a, const char *line, struct said_line *ret) {
    static const char said[] = "rankrun: ";
    *ret = (struct said_line){
        .rank = -1, .local_rank = -1, .pid = -1, .code = -1, .signal = -1, .restarts_max = -1};
    if (str_starts(line, said)) {
        read_text(a, line + sizeof(said) - 1, ret);
        return;
    }
    const struct json *j = *line == '{' ? json_parse(a, line, strlen(line), NULL) : NULL;
    if (!j)
        return;
    read_text(a, json_get_string(j, "text", ""), ret);
    if (ret->kind != SAID_NOTHING)
        compare(a, j, ret);
}
