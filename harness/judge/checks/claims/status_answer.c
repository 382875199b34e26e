#include "harness/judge/checks/claims/status_answer.h"

#include "base/json.h"
#include "base/str.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { MEMBERS_MAX = 4096 };

static void clear(struct status_answer *s) {
    *s = (struct status_answer){.round = -1,
                                .nodes = -1,
                                .nodes_min = -1,
                                .nodes_max = -1,
                                .waiting = -1,
                                .world = -1,
                                .restarts = -1,
                                .restarts_max = -1,
                                .restarts_left = -1,
                                .master_port = -1,
                                .beat_ms = -1,
                                .not_read = -1,
                                .failure_rank = -1};
}

/* ---- JSON ---- */

static void read_member(const struct json *j, struct status_member *m) {
    *m = (struct status_member){.node = json_get_string(j, "node", NULL),
                                .addr = json_get_string(j, "addr", NULL),
                                .role = json_get_string(j, "role", NULL),
                                .state = json_get_string(j, "state", NULL),
                                .slots = json_get_i64(j, "slots", -1),
                                .group_rank = json_get_i64(j, "group_rank", -1),
                                .first_rank = json_get_i64(j, "first_rank", -1),
                                .last_rank = -1,
                                .beat_ms = json_get_i64(j, "next_beat_ms", -1),
                                .spare = json_get_bool(j, "spare", false)};
}

static void read_object(struct arena *a, const struct json *j, struct status_answer *s) {
    const struct {
        const char *key;
        int64_t *at;
    } numbers[] = {{"round", &s->round},
                   {"nodes", &s->nodes},
                   {"nodes_min", &s->nodes_min},
                   {"nodes_max", &s->nodes_max},
                   {"waiting", &s->waiting},
                   {"world", &s->world},
                   {"restarts", &s->restarts},
                   {"restarts_max", &s->restarts_max},
                   {"restarts_left", &s->restarts_left},
                   {"master_port", &s->master_port},
                   {"beat_ms", &s->beat_ms},
                   {"not_read", &s->not_read}};
    for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
        *numbers[i].at = json_get_i64(j, numbers[i].key, -1);
    s->run_id = json_get_string(j, "run_id", NULL);
    s->phase = json_get_string(j, "phase", NULL);
    s->outcome = json_get_string(j, "outcome", NULL);
    s->coordinator = json_get_string(j, "coordinator", NULL);
    s->master_addr = json_get_string(j, "master_addr", NULL);
    const struct json *failure = json_get(j, "first_failure"), *members = json_get(j, "members");
    s->failure = failure && failure->type == JSON_OBJECT;
    s->failure_node = json_get_string(failure, "node", NULL);
    s->failure_rank = json_get_i64(failure, "rank", -1);
    s->failure_status = json_get_string(failure, "status", NULL);
    s->members = arena_array(a, struct status_member, MEMBERS_MAX);
    json_each(it, members) if (s->members_n < MEMBERS_MAX)
        read_member(it, &s->members[s->members_n++]);
}

/* ---- text ---- */

static void read_head(struct arena *a, const char *line, struct status_answer *s) {
    char one[128], two[128];
    int64_t left;
    if (sscanf(line, "job %127[^,],", one) == 1)
        s->run_id = arena_strdup(a, one);
    else if (sscanf(line, "phase %127[a-z]: %127[a-z], round %" SCNd64, one, two, &s->round) == 3)
        s->phase = arena_strdup(a, one), s->outcome = arena_strdup(a, two);
    else if (sscanf(line, "phase %127[a-z], round %" SCNd64, one, &s->round) >= 1)
        s->phase = arena_strdup(a, one);
    else if (sscanf(line, "nodes %" SCNd64 " in the round", &s->nodes) == 1) {
        const char *bounds = strstr(line, "round ("), *waiting = strstr(line, "), "),
                   *world = strstr(line, "; world ");
        if (bounds)
            sscanf(bounds, "round (%" SCNd64 " to %" SCNd64, &s->nodes_min, &s->nodes_max);
        if (waiting)
            sscanf(waiting, "), %" SCNd64, &s->waiting);
        if (world)
            sscanf(world, "; world %" SCNd64, &s->world);
    } else if (sscanf(line, "restarts %" SCNd64 " of %" SCNd64 " used, %" SCNd64, &s->restarts,
                      &s->restarts_max, &left) == 3)
        s->restarts_left = left;
    else if (sscanf(line, "coordinator %127s", one) == 1)
        s->coordinator = str_eq(one, "none") ? NULL : arena_strdup(a, one);
    else if (sscanf(line, "master %127[^ ]", one) == 1 && strrchr(one, ':')) {
        sscanf(strrchr(one, ':'), ":%" SCNd64, &s->master_port);
        *strrchr(one, ':') = '\0';
        s->master_addr = arena_strdup(a, one);
    } else if (str_starts(line, "first failure  ")) {
        s->failure = true;
        if (sscanf(line, "first failure %127[^,], rank %" SCNd64 ", pid %*d: %127[^:]", one,
                   &s->failure_rank, two) == 3)
            s->failure_node = arena_strdup(a, one), s->failure_status = arena_strdup(a, two);
    }
}

static const char *known(struct arena *a, const char *word) {
    return str_eq(word, "unknown") || str_eq(word, "-") ? NULL : arena_strdup(a, word);
}

/* The columns are words; only the last may be several. */
static void read_row(struct arena *a, const char *line, struct status_answer *s) {
    char group[16], node[128], addr[128], ranks[32], slots[16], role[64], state[16];
    int at = 0;
    struct status_member *m = &s->members[s->members_n];
    if (s->members_n == MEMBERS_MAX ||
        sscanf(line, "%15s %127s %127s %31s %15s %63s %15s %n", group, node, addr, ranks, slots,
               role, state, &at) != 7)
        return;
    *m = (struct status_member){.node = known(a, node),
                                .addr = known(a, addr),
                                .role = known(a, role),
                                .state = arena_strdup(a, state),
                                .slots = -1,
                                .group_rank = -1,
                                .first_rank = -1,
                                .last_rank = -1,
                                .beat_ms = -1,
                                .spare = str_eq(group, "-")};
    str_to_i64(slots, 0, INT32_MAX, &m->slots);
    str_to_i64(group, 0, INT32_MAX, &m->group_rank);
    if (sscanf(ranks, "%" SCNd64 "-%" SCNd64, &m->first_rank, &m->last_rank) == 1)
        m->last_rank = m->first_rank;
    if (at)
        sscanf(line + at, "after %" SCNd64 " ms", &m->beat_ms);
    s->members_n++;
}

static void read_text(struct arena *a, const char *text, struct status_answer *s) {
    char *rest = arena_strdup(a, text), *line;
    bool table = false;
    s->members = arena_array(a, struct status_member, MEMBERS_MAX);
    while ((line = strsep(&rest, "\n"))) {
        if (table && *line)
            read_row(a, line, s);
        else if (str_starts(line, "GROUP "))
            table = true;
        else
            read_head(a, line, s);
    }
}

bool status_answer_read(struct arena *a, const char *text, struct status_answer *ret) {
    const struct json *j = *text == '{' ? json_parse(a, text, strlen(text), NULL) : NULL;
    clear(ret);
    if (j)
        read_object(a, j, ret);
    else if (str_starts(text, "job "))
        read_text(a, text, ret);
    return ret->phase != NULL;
}
