#include "reports/comparison/comparison.h"

#include "base/str.h"

const struct comparison_report *const comparison_reports[] = {
#define X(name) &comparison_##name,
    COMPARISON_REPORTS(X)
#undef X
        NULL};

const struct comparison_report *comparison_report_find(const char *name) {
    for (size_t i = 0; comparison_reports[i]; i++)
        if (str_eq(comparison_reports[i]->name, name))
            return comparison_reports[i];
    return NULL;
}

static int64_t larger(int64_t a, int64_t b) {
    return a > b ? a : b;
}

void comparison_read(struct comparison_cell *cell, const struct recorded_run *run) {
    struct incidents is;
    cell->judged = true;
    cell->verdict = *run->verdict;
    cell->detect_ns = cell->recover_ns = -1;
    cell->stayed_down = false;
    incidents_load(&is, run->history, run->rounds);
    for (size_t i = 0; i < is.n; i++) {
        const struct incident *in = is.v[i];
        if (!in->in_force || !in->ended_round)
            continue;
        cell->detect_ns = larger(cell->detect_ns, in->phase_ns[PHASE_DETECT]);
        cell->recover_ns = larger(cell->recover_ns, in->recover_ns);
        cell->stayed_down |= !in->next;
    }
    incidents_fini(&is);
}

void comparison_put_cell(const struct comparison_cell *cell, struct buf *out) {
    buf_puts(out, report_outcome(cell->exit_code));
    if (!cell->judged)
        return;
    if (cell->stayed_down)
        buf_puts(out, ", stayed down");
    else if (cell->recover_ns >= 0)
        buf_printf(out, cell->recover_ns < 10000000000 ? ", %.2f s" : ", %.1f s",
                   (double)cell->recover_ns / 1e9);
}

const struct finding *comparison_finding(const struct comparison_cell *cell, const char *check) {
    return cell->judged ? verdict_find(&cell->verdict, check) : NULL;
}

static bool passed(const struct finding *f) {
    return f->status == FINDING_PASS || f->status == FINDING_SKIP;
}

/* A check that does not apply to one launcher's dialect is no difference by itself. */
static bool differs(const struct comparison_row *row, size_t n, const char *check) {
    bool good = false, bad = false;
    for (size_t i = 0; i < n; i++) {
        const struct finding *f = comparison_finding(&row->cells[i], check);
        if (f)
            *(passed(f) ? &good : &bad) = true;
    }
    return good && bad;
}

static bool is_listed(const char *const *names, size_t n, const char *name) {
    for (size_t i = 0; i < n; i++)
        if (str_eq(names[i], name))
            return true;
    return false;
}

size_t comparison_differences(const struct comparison_row *row, size_t launchers_n,
                              const char *ret[COMPARISON_CHECKS_MAX]) {
    size_t n = 0;
    for (size_t i = 0; i < launchers_n; i++) {
        const struct verdict *v = &row->cells[i].verdict;
        for (size_t k = 0; row->cells[i].judged && k < v->n && n < COMPARISON_CHECKS_MAX; k++)
            if (!is_listed(ret, n, v->v[k].check) && differs(row, launchers_n, v->v[k].check))
                ret[n++] = v->v[k].check;
    }
    return n;
}
