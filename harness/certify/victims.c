#include "harness/certify/victims.h"

#include "base/mem.h"
#include "base/str.h"
#include "harness/verb.h"

#include <stdlib.h>
#include <string.h>

/* One recovery of a run. Only those of the same fault of the same scenario can be compared. */
struct recovery {
    const char *victim, *scenario, *fault;
    int64_t us; /* -1: it was none */
};

struct victim {
    const char *name;
    int64_t runs, passed;
};

struct victims {
    const char *key; /* where a fault has them */
    struct recovery *all;
    size_t all_n;
    struct victim *v;
    size_t n;
};

/* ---- times ---- */

static int by_number(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int64_t median(int64_t *v, size_t n) {
    if (!n)
        return -1;
    qsort(v, n, sizeof(*v), by_number);
    return n % 2 ? v[n / 2] : (v[n / 2 - 1] + v[n / 2]) / 2;
}

struct spread {
    int64_t least, middle, most; /* -1: there is none */
};

/* scenario NULL: of all of the victim's. */
static struct spread spread_of(const struct victims *all, const char *victim, const char *scenario,
                               const char *fault) {
    int64_t *us = mem_array(int64_t, all->all_n + 1);
    size_t n = 0;
    for (size_t i = 0; i < all->all_n; i++) {
        const struct recovery *r = &all->all[i];
        bool same = !scenario || (str_eq(r->scenario, scenario) && str_eq(r->fault, fault));
        if (same && str_eq(r->victim, victim) && r->us >= 0)
            us[n++] = r->us;
    }
    struct spread s = {.least = -1, .middle = median(us, n), .most = -1};
    if (n) {
        s.least = us[0];
        s.most = us[n - 1];
    }
    free(us);
    return s;
}

/* ---- who is slower than its peers ---- */

static bool is_further(int64_t us, int64_t middle, int64_t mad) {
    int64_t beyond = us - middle, least = middle / 10 > 200000 ? middle / 10 : 200000;
    return beyond > 3 * mad && beyond > least;
}

/* The medians of at least three victims; which is this one's, and what is in the middle. */
static bool is_slower(const struct victims *all, const char *victim, const struct recovery *of,
                      int64_t *ret_us, int64_t *ret_middle) {
    int64_t *medians = mem_array(int64_t, all->n + 1), mad;
    size_t n = 0;
    *ret_us = spread_of(all, victim, of->scenario, of->fault).middle;
    for (size_t i = 0; i < all->n; i++) {
        int64_t us = spread_of(all, all->v[i].name, of->scenario, of->fault).middle;
        if (us >= 0)
            medians[n++] = us;
    }
    *ret_middle = median(medians, n);
    for (size_t i = 0; i < n; i++)
        medians[i] = llabs(medians[i] - *ret_middle);
    mad = median(medians, n);
    free(medians);
    return n >= 3 && *ret_us >= 0 && is_further(*ret_us, *ret_middle, mad);
}

static bool came_before(const struct victims *all, size_t i) {
    for (size_t k = 0; k < i; k++)
        if (str_eq(all->all[k].victim, all->all[i].victim) &&
            str_eq(all->all[k].scenario, all->all[i].scenario) &&
            str_eq(all->all[k].fault, all->all[i].fault))
            return true;
    return false;
}

static void put_slower(const struct victims *all, const char *victim, struct json_writer *w) {
    json_array(w, "slower");
    for (size_t i = 0; i < all->all_n; i++) {
        const struct recovery *r = &all->all[i];
        int64_t us, middle;
        if (!str_eq(r->victim, victim) || came_before(all, i) ||
            !is_slower(all, victim, r, &us, &middle))
            continue;
        json_object(w, NULL);
        json_put_string(w, "name", r->scenario);
        json_put_string(w, "fault", r->fault);
        json_put_i64(w, "recover_us", us);
        json_put_i64(w, "peers_us", middle);
        json_end_object(w);
    }
    json_end_array(w);
}

/* ---- out of the runs ---- */

static struct victim *find(struct victims *all, const char *name) {
    for (size_t i = 0; i < all->n; i++)
        if (str_eq(all->v[i].name, name))
            return &all->v[i];
    mem_push(all->v, all->n) = (struct victim){.name = name};
    return &all->v[all->n - 1];
}

static bool was_victim(const struct victims *all, const struct json *fault, const char *name) {
    json_each(v, json_get(fault, all->key)) if (str_eq(json_string(v, ""), name)) return true;
    return false;
}

static bool is_first(const struct victims *all, const struct json *scenario,
                     const struct json *fault, const char *name) {
    json_each(f, json_get(scenario, "faults")) {
        if (f == fault)
            return true;
        if (was_victim(all, f, name))
            return false;
    }
    return true;
}

static void take_fault(struct victims *all, const struct json *scenario, const struct json *fault) {
    bool passed = json_get_i64(scenario, "exit_code", EXIT_BROKEN) == EXIT_PASS;
    json_each(name, json_get(fault, all->key)) {
        struct victim *x = find(all, json_string(name, "?"));
        if (is_first(all, scenario, fault, x->name)) {
            x->runs++;
            x->passed += passed;
        }
        mem_push(all->all, all->all_n) =
            (struct recovery){.victim = x->name,
                              .scenario = json_get_string(scenario, "scenario", "?"),
                              .fault = json_get_string(fault, "name", "?"),
                              .us = json_get_i64(fault, "recover_us", -1)};
    }
}

static int by_name(const void *a, const void *b) {
    return strverscmp(((const struct victim *)a)->name, ((const struct victim *)b)->name);
}

static void put_victim(const struct victims *all, const struct victim *x, struct json_writer *w) {
    struct spread s = spread_of(all, x->name, NULL, NULL);
    json_object(w, NULL);
    json_put_string(w, "name", x->name);
    json_put_i64(w, "runs", x->runs);
    json_put_i64(w, "passed", x->passed);
    json_put_i64(w, "recover_us", s.middle);
    json_put_i64(w, "recover_least_us", s.least);
    json_put_i64(w, "recover_most_us", s.most);
    put_slower(all, x->name, w);
    json_end_object(w);
}

void victims_put(const struct json *scenarios, struct json_writer *w, const char *key) {
    struct victims all = {.key = key};
    json_each(s, scenarios) json_each(f, json_get(s, "faults")) take_fault(&all, s, f);
    if (all.n)
        qsort(all.v, all.n, sizeof(*all.v), by_name);
    json_array(w, key);
    for (size_t i = 0; i < all.n; i++)
        put_victim(&all, &all.v[i], w);
    json_end_array(w);
    free(all.all);
    free(all.v);
}
