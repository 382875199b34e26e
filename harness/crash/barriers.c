#include "harness/crash/barriers.h"

#include "base/mem.h"
#include "base/str.h"

#include <stdlib.h>

static const char step[] = "step"; /* in .to of a mark */

void barriers_note(struct barriers *b, const struct barrier *x) {
    mem_push(b->v, b->n) = *x;
}

void barriers_fini(struct barriers *b) {
    free(b->v);
    b->v = NULL;
    b->n = 0;
}

bool barriers_is(const struct disk_operation *o) {
    return o->deed == DISK_MARK && str_eq(o->path, "barrier");
}

bool barriers_waits(const struct disk_operation *o) {
    return barriers_is(o) && !str_eq(o->to, step);
}

bool barriers_known(const struct disk_record *record) {
    for (size_t i = 0; i < record->n; i++)
        if (barriers_is(&record->v[i]))
            return true;
    return false;
}

bool barriers_missing(const struct disk_record *record) {
    int rank = -1;
    bool several = false;
    for (size_t i = 0; i < record->n; i++) {
        const struct disk_operation *o = &record->v[i];
        if (o->deed == DISK_HAD || o->rank < 0)
            continue;
        several |= rank >= 0 && o->rank != rank;
        rank = o->rank;
    }
    return several && !barriers_known(record);
}

/* ---- which are needed ---- */

static int by_step(const void *a, const void *b) {
    const struct barrier *x = a, *y = b;
    if (x->step != y->step)
        return x->step < y->step ? -1 : 1;
    return x->t_ns < y->t_ns ? -1 : x->t_ns > y->t_ns;
}

static bool several(const struct barriers *b) {
    int pid = 0;
    for (size_t i = 0; i < b->n; i++) {
        if (b->v[i].step >= 0 && pid && b->v[i].pid != pid)
            return true;
        pid = b->v[i].step >= 0 ? b->v[i].pid : pid;
    }
    return false;
}

static bool changed_between(const struct disk_record *r, int64_t from_ns, int64_t to_ns) {
    for (size_t i = 0; i < r->n; i++)
        if (r->v[i].deed != DISK_HAD && r->v[i].deed != DISK_MARK && r->v[i].t_ns >= from_ns &&
            r->v[i].t_ns <= to_ns)
            return true;
    return false;
}

static void add(struct disk_operation **marks, size_t *n, const struct barrier *x, bool is_step) {
    mem_push(*marks, *n) = (struct disk_operation){.deed = DISK_MARK,
                                                   .path = "barrier",
                                                   .to = is_step ? step : "",
                                                   .t_ns = x->t_ns,
                                                   .pid = x->pid,
                                                   .rank = x->rank,
                                                   .node = ""};
}

/* When the last rank has told the step that begins at i. */
static int64_t last_of(size_t n, const struct barrier *v, size_t i) {
    size_t k = i;
    while (k + 1 < n && v[k + 1].step == v[i].step)
        k++;
    return v[k].t_ns;
}

void barriers_mark(const struct barriers *b, const struct disk_record *record,
                   struct disk_operation **marks, size_t *marks_n) {
    bool behind; /* something was changed since the step before */
    if (!several(b))
        return;
    struct barrier *v = mem_array(struct barrier, b->n);
    for (size_t i = 0; i < b->n; i++)
        v[i] = b->v[i];
    qsort(v, b->n, sizeof(*v), by_step);
    size_t first = 0;
    while (v[first].step < 0)
        first++;
    behind = changed_between(record, INT64_MIN, last_of(b->n, v, first));
    for (size_t i = first, next; i < b->n; i = next) {
        for (next = i + 1; next < b->n && v[next].step == v[i].step;)
            next++;
        int64_t end_ns = next < b->n ? last_of(b->n, v, next) : INT64_MAX;
        bool ahead = changed_between(record, v[i].t_ns, end_ns);
        for (size_t k = i; k < next && (behind || ahead); k++)
            add(marks, marks_n, &v[k], b->steps);
        behind = ahead;
    }
    free(v);
    if (*marks_n)
        qsort(*marks, *marks_n, sizeof(**marks), disk_record_by_time);
}
