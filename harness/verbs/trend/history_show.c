/* history show: a table of every measure over commits, and a page with a chart for each. */
#include "harness/verbs/trend/trend.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/file.h"
#include "harness/trend/rank_test.h"
#include "harness/verbs/trend/wanted.h"
#include "reports/trend/trend_page.h"

#include <stdlib.h>
#include <string.h>

/* One commit of a series: the runs from i on that are of it. */
static size_t print_commit(const struct trend_series *s, size_t i) {
    BUF_FINI struct buf median = {0}, least = {0}, most = {0};
    size_t n = 1;
    while (i + n < s->n && str_eq(s->runs[i + n]->origin.commit, s->runs[i]->origin.commit))
        n++;
    double *v = mem_array(double, n);
    memcpy(v, s->values + i, n * sizeof(*v));
    series_put_value(s->measure, rank_test_median(v, n), &median);
    series_put_value(s->measure, v[0], &least);
    series_put_value(s->measure, v[n - 1], &most);
    free(v);
    printf("    %-12.12s %-16s %4zu run%s %10s  %10s to %s", s->runs[i]->origin.commit,
           s->runs[i]->origin.branch, n, n == 1 ? " " : "s", buf_str(&median), buf_str(&least),
           buf_str(&most));
    if (i <= s->bad && s->bad < i + n)
        printf("  <- first bad commit: %+.0f %%, p %.2g", 100 * (s->why.ratio - 1), s->why.p);
    putchar('\n');
    return n;
}

static void print_series(const struct series_list *l, size_t i) {
    const struct trend_series *s = &l->v[i];
    if (!i || !str_eq(s->scenario, s[-1].scenario) || !str_eq(s->launcher, s[-1].launcher) ||
        !str_eq(s->machine, s[-1].machine))
        printf("%s, %s, %s\n", s->scenario, s->launcher, s->machine);
    printf("  %s\n", s->measure);
    for (size_t k = 0; k < s->n;)
        k += print_commit(s, k);
}

static void print_failures(const struct logbook *l, const struct series_wanted *w) {
    size_t failed = 0, open = 0, n = 0;
    const struct trend_entry *first = NULL;
    for (size_t i = 0; i < l->n; i++) {
        const struct trend_entry *e = l->v[i];
        if ((w->branch && !str_eq(w->branch, e->origin.branch)) ||
            (w->scenario && !str_eq(w->scenario, e->scenario)))
            continue;
        bool bad = e->exit_code == EXIT_FAIL || e->exit_code == EXIT_LEFTOVERS;
        n++;
        failed += bad;
        open += !bad && !trend_entry_passed(e);
        first = !first && bad ? e : first;
    }
    printf("%zu runs: %zu passed, %zu failed, %zu open or broken\n", n, n - failed - open, failed,
           open);
    if (first)
        printf("the first that failed: %s at commit %.12s (%s)\n", first->scenario,
               first->origin.commit, first->check);
}

static int show(const struct arguments *a, const struct logbook *l, const struct series_wanted *w,
                const struct gate_options *o) {
    const char *page = arguments_value(a, "--page");
    BUF_FINI struct buf html = {0};
    struct series_list s;
    struct err err = {0};
    int code = EXIT_PASS;
    series_list_make(&s, l, w);
    for (size_t i = 0; i < s.n; i++) {
        series_find_bad(&s.v[i], o);
        print_series(&s, i);
    }
    print_failures(l, w);
    if (page) {
        trend_page(&s, l, &html);
        if (file_write_atomic(page, html.data, html.len, &err) < 0)
            code = verb_broken(a->verb, &err);
        else
            printf("page       %s\n", page);
    }
    series_list_fini(&s);
    return code;
}

int history_show(const struct arguments *a) {
    struct series_wanted w;
    struct gate_options o;
    struct logbook l = {0};
    if (a->files_n > 1)
        return verb_usage_error(a->verb, "show takes no runs: history add %s first", a->files[1]);
    int code = wanted_read(a, &w, &o);
    code = code ? code : history_read(a, &l);
    code = code ? code : show(a, &l, &w, &o);
    free((void *)w.measures);
    logbook_fini(&l);
    return code;
}
