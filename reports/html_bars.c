/* The page's bars: the life of each worker with some of its steps, and the nodes they lie on. */
#include "reports/html.h"

#include "base/str.h"

#include <stdlib.h>
#include <string.h>

/* Points of all bars together, and of one: enough for a line that looks like the run. */
enum { POINTS_ALL = 30000, POINTS_MIN = 4, POINTS_MAX = 250 };
#define STEP_MAX (INT64_MAX / 1000) /* no step is beyond; a damaged record may say so */

/* n2 stands before n10. */
static int compare_names(const char *a, const char *b) {
    size_t letters_a = strcspn(a, "0123456789"), letters_b = strcspn(b, "0123456789");
    long number_a = atol(a + letters_a), number_b = atol(b + letters_b);
    if (letters_a == letters_b && strncmp(a, b, letters_a) == 0 && number_a != number_b)
        return number_a < number_b ? -1 : 1;
    return strcmp(a, b);
}

bool html_same_lane(const struct worker *a, const struct worker *b) {
    return str_eq(a->node, b->node) && a->local_rank == b->local_rank;
}

int64_t html_round_end(const struct html *h, const struct round *r) {
    int64_t end_ns = 0;
    for (size_t k = 0; k < r->n; k++) {
        int64_t exit_ns = r->workers[k]->exit_ns ? r->workers[k]->exit_ns : h->end_ns;
        end_ns = exit_ns > end_ns ? exit_ns : end_ns;
    }
    return end_ns;
}

static int compare_places(const void *pa, const void *pb) {
    const struct worker *a = ((const struct html_bar *)pa)->worker,
                        *b = ((const struct html_bar *)pb)->worker;
    int nodes = compare_names(a->node, b->node);
    if (nodes)
        return nodes;
    if (a->local_rank != b->local_rank)
        return a->local_rank < b->local_rank ? -1 : 1;
    return a->start_ns < b->start_ns ? -1 : a->start_ns > b->start_ns;
}

/* Of whom the record tells a step; NULL: it tells none, or of somebody nobody saw start. bars are
 * those of all workers, by their index. */
static struct html_bar *stepping(const struct html *h, struct html_bar **bars,
                                 const struct record *r) {
    if (r->source != SOURCE_JOB || !r->pid || !record_is(r, "step"))
        return NULL;
    const struct worker *w = rounds_worker_at(h->run->rounds, r->pid, r->t_ns);
    return w ? bars[w->index] : NULL;
}

static void count_steps(struct html *h, struct html_bar **bars) {
    history_each(r, h->run->history) {
        struct html_bar *b = stepping(h, bars, r);
        if (b)
            b->seen++;
    }
    size_t each = h->bars_n ? POINTS_ALL / h->bars_n : POINTS_MAX;
    each = each < POINTS_MIN ? POINTS_MIN : each > POINTS_MAX ? POINTS_MAX : each;
    for (size_t i = 0; i < h->bars_n; i++) {
        struct html_bar *b = &h->bars[i];
        b->stride = b->seen / each + 1;
        b->points = arena_array(&h->arena, struct html_point, b->seen / b->stride + 2);
        b->seen = 0;
    }
}

static void read_steps(struct html *h, struct html_bar **bars) {
    history_each(r, h->run->history) {
        struct html_bar *b = stepping(h, bars, r);
        if (!b)
            continue;
        int64_t step = record_i64(r, "step", 0);
        struct html_point p = {r->t_ns, step < 0 ? 0 : step > STEP_MAX ? STEP_MAX : step};
        if (p.step > h->last_step)
            h->last_step = p.step;
        /* The last place always holds the newest step; it is kept when its turn has come. */
        if (b->points_n > 1 && (b->seen - 1) % b->stride)
            b->points_n--;
        b->points[b->points_n++] = p;
        b->seen++;
    }
}

/* The axis ends with the job, not with the tidying up behind it. */
static void find_end(struct html *h) {
    const struct recorded_run *run = h->run;
    h->begin_ns = run->history->n ? run->history->records[0]->t_ns : 0;
    h->end_ns = h->begin_ns;
    history_each(r, run->history) {
        bool job = r->source == SOURCE_JOB || r->source == SOURCE_PROBE ||
                   (r->source == SOURCE_KERNEL &&
                    (record_is(r, "worker-exit") || record_is(r, "agent-exit"))) ||
                   (r->source == SOURCE_HARNESS &&
                    (record_is(r, "job-end") || record_is(r, "fault-in-force")));
        if (job && r->t_ns > h->end_ns)
            h->end_ns = r->t_ns;
    }
    int64_t least_ns = h->begin_ns + 1000000;
    h->end_ns = h->end_ns < least_ns ? least_ns : h->end_ns + (h->end_ns - h->begin_ns) / 80;
}

static int compare_nodes(const void *pa, const void *pb) {
    return compare_names(*(const char *const *)pa, *(const char *const *)pb);
}

static void add_node(struct html *h, size_t *cap, const char *node) {
    for (size_t i = h->nodes_n; i-- > 0;)
        if (str_eq(h->nodes[i], node))
            return;
    if (h->nodes_n == *cap) {
        const char **old = h->nodes;
        *cap = *cap ? *cap * 2 : 32;
        h->nodes = arena_array(&h->arena, const char *, *cap);
        if (h->nodes_n)
            memcpy(h->nodes, old, h->nodes_n * sizeof(*old));
    }
    h->nodes[h->nodes_n++] = node;
}

/* Those that were switched on, and those that workers were seen on. */
static void find_nodes(struct html *h) {
    size_t cap = 0;
    history_each(r, h->run->history) {
        if (r->source == SOURCE_HARNESS && record_is(r, "node-up"))
            add_node(h, &cap, r->node);
    }
    for (size_t i = 0; i < h->bars_n; i++)
        if (i == 0 || !str_eq(h->bars[i - 1].worker->node, h->bars[i].worker->node))
            add_node(h, &cap, h->bars[i].worker->node);
    if (h->nodes_n)
        qsort(h->nodes, h->nodes_n, sizeof(*h->nodes), compare_nodes);
}

void html_bars(struct html *h) {
    const struct rounds *rs = h->run->rounds;
    find_end(h);
    h->last_step = 1;
    h->bars_n = rs->workers_n;
    h->bars = arena_array(&h->arena, struct html_bar, h->bars_n ? h->bars_n : 1);
    struct html_bar **bars = arena_array(&h->arena, struct html_bar *, h->bars_n ? h->bars_n : 1);
    for (size_t i = 0; i < h->bars_n; i++)
        h->bars[i].worker = rs->workers[i];
    qsort(h->bars, h->bars_n, sizeof(*h->bars), compare_places);
    for (size_t i = 0; i < h->bars_n; i++)
        bars[h->bars[i].worker->index] = &h->bars[i];
    find_nodes(h);
    count_steps(h, bars);
    read_steps(h, bars);
}
