#include "harness/crash/marks.h"

#include "base/mem.h"
#include "base/str.h"
#include "harness/crash/barriers.h"

#include <errno.h>
#include <stdlib.h>

static const char barrier[] = "barrier";

void crash_marks_fini(struct crash_marks *m) {
    free(m->v);
    arena_fini(&m->arena);
    *m = (struct crash_marks){0};
}

static void add(struct crash_marks *m, const struct crash_word *w, const char *what) {
    mem_push(m->v, m->n) = (struct disk_operation){.deed = DISK_MARK,
                                                   .path = what,
                                                   .to = "",
                                                   .t_ns = w->t_ns,
                                                   .pid = w->pid,
                                                   .rank = w->rank,
                                                   .node = arena_strdup(&m->arena, w->node)};
}

void crash_marks_hear(struct crash_marks *m, const struct crash_word *w) {
    if (str_starts(w->kind, "checkpoint-") || str_eq(w->kind, "step"))
        add(m, w, arena_printf(&m->arena, "%.60s %lld", w->kind, (long long)w->step));
    else if (str_eq(w->kind, barrier))
        add(m, w, barrier);
}

/* ---- as a file ---- */

int crash_marks_save(const struct crash_marks *m, const char *path, struct err *err) {
    struct disk_recorder *to = NULL;
    int r = disk_recorder_open(&to, path, 0, err);
    for (size_t i = 0; i < m->n && r == 0; i++)
        disk_recorder_add(to, &m->v[i]);
    return r ? r : disk_recorder_close(to, err);
}

int crash_marks_load(struct crash_marks *m, const char *path, struct err *err) {
    struct disk_record own = {0};
    int r = disk_record_load(path, &m->arena, &own, err);
    for (size_t i = 0; i < own.n && r == 0; i++)
        mem_push(m->v, m->n) = own.v[i];
    return r;
}

/* ---- in their places ---- */

static void find_rank(struct disk_operation *mark, const struct disk_record *record) {
    for (size_t i = 0; i < record->n && mark->rank < 0 && mark->pid; i++)
        if (record->v[i].pid == mark->pid && record->v[i].rank >= 0) {
            mark->rank = record->v[i].rank;
            mark->node = record->v[i].node;
        }
}

/* How many barriers the same process has told before. */
static int64_t nth_barrier(const struct crash_marks *m, size_t i) {
    int64_t n = 0;
    for (size_t k = 0; k < i; k++)
        n += m->v[k].pid == m->v[i].pid && str_eq(m->v[k].path, barrier);
    return n;
}

/* What is told of a step, and of a barrier by its number, says where ranks have waited. */
static void part(const struct crash_marks *m, struct crash_marks *ret_words,
                 struct barriers *ret_steps, struct barriers *ret_barriers) {
    int64_t step;
    for (size_t i = 0; i < m->n; i++) {
        const struct disk_operation *o = &m->v[i];
        struct barrier at = {.t_ns = o->t_ns, .pid = o->pid, .rank = o->rank};
        if (str_starts(o->path, "step ") && str_to_i64(o->path + 5, 0, INT64_MAX, &step)) {
            at.step = step;
            barriers_note(ret_steps, &at);
        } else if (str_eq(o->path, barrier)) {
            at.step = nth_barrier(m, i);
            barriers_note(ret_barriers, &at);
        } else if (str_starts(o->path, "checkpoint-")) {
            (void)(mem_push(ret_words->v, ret_words->n) = *o);
        }
    }
}

static void add_until(const struct crash_marks *m, size_t *at, int64_t t_ns,
                      struct disk_recorder *to) {
    for (; *at < m->n && m->v[*at].t_ns < t_ns; ++*at)
        disk_recorder_add(to, &m->v[*at]);
}

static int write_all(const struct crash_marks *m, const struct disk_record *record,
                     const char *path, struct err *err) {
    struct disk_recorder *to = NULL;
    size_t at = 0;
    int r = disk_recorder_open(&to, path, UINT64_MAX / 2, err);
    for (size_t i = 0; i < record->n && r == 0; i++) {
        add_until(m, &at, record->v[i].deed == DISK_HAD ? 0 : record->v[i].t_ns, to);
        disk_recorder_add(to, &record->v[i]);
    }
    if (r)
        return r;
    add_until(m, &at, INT64_MAX, to);
    return disk_recorder_close(to, err);
}

int crash_marks_put(struct crash_marks *m, const struct disk_record *record, const char *path,
                    struct err *err) {
    struct crash_marks words = {0};
    struct barriers steps = {.steps = true}, barriers = {0};
    if (m->n)
        qsort(m->v, m->n, sizeof(*m->v), disk_record_by_time);
    for (size_t i = 0; i < m->n; i++)
        find_rank(&m->v[i], record);
    part(m, &words, &steps, &barriers);
    barriers_mark(&steps, record, &words.v, &words.n);
    barriers_mark(&barriers, record, &words.v, &words.n);
    int r = write_all(&words, record, path, err);
    barriers_fini(&steps);
    barriers_fini(&barriers);
    crash_marks_fini(&words);
    return r;
}
