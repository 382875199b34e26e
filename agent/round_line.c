#include "agent/round_line.h"

#include "base/str.h"
#include "base/sys/line.h"

#include <stdio.h>

static long long ms(int64_t from_ns, int64_t to_ns) {
    return from_ns && to_ns > from_ns ? (to_ns - from_ns) / 1000000 : 0;
}

static void print(const struct round_line *l, int64_t now_ns) {
    long long stop = ms(l->began_ns, l->acked_ns);
    long long meet = ms(l->acked_ns ? l->acked_ns : l->began_ns, l->start_ns);
    long long start = ms(l->start_ns, now_ns);
    const struct line_field fields[] = {
        {.key = "cause", .text = l->cause},
        {"world", NULL, l->world},
        {"nodes", NULL, l->nodes},
        {"restarts", NULL, l->restarts},
        {"stop_ms", NULL, stop},
        {"rendezvous_ms", NULL, meet},
        {"restarts_max", NULL, l->max_restarts},
        {"start_ms", NULL, start},
    };
    const struct line line = {.level = LINE_INFO,
                              .what = "round",
                              .round = l->round,
                              .fields = fields,
                              .n_fields = sizeof(fields) / sizeof(*fields)};
    line_put(&line,
             "round %lld (%s): world %d, %d node%s, %d of %d restarts used; stop %lld ms, "
             "rendezvous %lld ms, start %lld ms",
             (long long)l->round, l->cause, l->world, l->nodes, l->nodes == 1 ? "" : "s",
             l->restarts, l->max_restarts, stop, meet, start);
}

void round_line_claim(struct round_line *l, const char *what, int64_t now_ns) {
    bool ends = str_eq(what, CLAIM_STOP) || str_eq(what, CLAIM_END);
    if ((ends || str_eq(what, CLAIM_JOIN)) && !l->began_ns)
        l->began_ns = now_ns;
    if (str_eq(what, CLAIM_ACK) && !l->due && l->round && l->began_ns && !l->acked_ns)
        l->acked_ns = now_ns;
    /* Workers may have ended before it was known that all had begun. */
    bool begun = str_eq(what, CLAIM_STARTED) || ends || str_eq(what, CLAIM_ACK) ||
                 str_eq(what, CLAIM_CLOSED) || str_eq(what, CLAIM_EXIT_BARRIER);
    if (!l->due || !begun)
        return;
    l->due = false;
    bool alone = l->nodes == 1 && str_eq(l->cause, "start") && !line_is_json();
    if (l->group_rank == 0 && !alone)
        print(l, now_ns);
    l->began_ns = ends ? now_ns : 0;
    l->acked_ns = 0;
}

/* Who was not in the round before cannot know why that one ended. */
static const char *cause(const struct round_line *l, const struct round_spec *r) {
    if (r->round == 1)
        return "start";
    if (!l->round)
        return "join";
    if (r->restart_count > l->restarts)
        return "failure";
    return l->own_count ? "elsewhere" : "membership";
}

void round_line_start(struct round_line *l, const struct round_spec *r, int64_t now_ns) {
    l->cause = cause(l, r);
    l->due = true;
    l->start_ns = now_ns;
    l->round = r->round;
    l->restarts = r->restart_count;
    l->max_restarts = r->max_restarts;
    l->nodes = r->group_world;
    l->world = r->world;
    l->group_rank = r->group_rank;
}
