#include "harness/verbs/shrink/failure.h"

#include "base/str.h"
#include "harness/shrink/smaller.h"
#include "harness/verb.h"

#include <errno.h>
#include <string.h>

/* What the system under test did wrong: not the faults, nor the harness. */
static bool is_failure(const struct finding *f) {
    return f->status == FINDING_FAIL &&
           (f->class == CLASS_INVARIANT || f->class == CLASS_EXPECT || f->class == CLASS_CLEANUP);
}

/* "it failed (agents ended: ...)": which agent ended how is another matter. */
static const char *way_of(struct arena *a, const struct verdict *v) {
    const struct finding *f = verdict_find(v, "outcome");
    size_t n = f && f->status == FINDING_FAIL ? strcspn(f->seen, "(") : 0;
    return f ? arena_strndup(a, f->seen, n) : "";
}

bool failure_fired(const struct verdict *v) {
    const struct finding *f = verdict_find(v, "fired");
    return !f || f->status == FINDING_PASS;
}

/* ---- the recorded run ---- */

static int refuse(const struct recording *r, struct err *err) {
    const struct history *h = &r->history;
    const struct record *first = h->n ? h->records[0] : NULL;
    const struct finding *shown = verdict_first(&r->verdict);
    if (history_is_simulated(h))
        return err_say(err, -EINVAL,
                       "it was made by rankquake sim, which makes what fails small by itself");
    if (first && json_get_bool(first->fields, "control", false))
        return err_say(err, -EINVAL, "it is a control run: there is no fault to leave out");
    if (history_is_cut(h))
        return err_say(err, -EINVAL,
                       "its history stops before the job has ended: nobody knows how it failed");
    if (r->verdict.exit_code == EXIT_INTERRUPTED)
        return err_say(err, -EINVAL, "it was interrupted");
    if (r->verdict.exit_code == EXIT_BROKEN)
        return err_say(err, -EINVAL, "the harness or its surroundings broke: %s: %s",
                       shown ? shown->check : "", shown ? shown->seen : "");
    return 0;
}

static const char **all_failures(struct arena *a, const struct verdict *v) {
    const char **all = arena_array(a, const char *, v->n + 1);
    size_t n = 0;
    for (size_t i = 0; i < v->n; i++)
        if (is_failure(&v->v[i]))
            all[n++] = arena_strdup(a, v->v[i].check);
    all[n] = NULL;
    return all;
}

/* With others, those that only count are what follows from leaving faults out. */
static void choose(struct arena *a, const struct scenario *s, struct found_failure *f) {
    size_t n = 0, of = 0;
    while (f->all[of])
        of++;
    f->checks = arena_array(a, const char *, of + 1);
    for (size_t i = 0; i < of; i++)
        if (!smaller_is_counted(s, f->all[i]))
            f->checks[n++] = f->all[i];
    f->checks[n] = NULL;
    if (!n)
        f->checks = f->all;
}

static int take_asked(struct arena *a, const char *const *asked, struct found_failure *f,
                      struct err *err) {
    BUF_FINI struct buf failed = {0};
    int r = 0;
    size_t n = 0;
    for (const char **c = f->all; *c; c++)
        buf_printf(&failed, "%s%s", c == f->all ? "" : ", ", *c);
    while (asked[n])
        n++;
    f->checks = arena_array(a, const char *, n + 1);
    for (size_t i = 0; i <= n; i++) {
        f->checks[i] = asked[i];
        if (asked[i] && !str_in(asked[i], (const char *const *)f->all))
            r = err_say(err, -EINVAL, "--check %s: it did not fail there; what failed is %s",
                        asked[i], buf_str(&failed));
    }
    return r;
}

int failure_read(struct arena *a, const struct recording *r, const char *const *checks,
                 struct found_failure *ret, struct err *err) {
    const struct finding *shown = verdict_first(&r->verdict);
    int code = refuse(r, err);
    if (code)
        return code;
    *ret = (struct found_failure){.all = all_failures(a, &r->verdict),
                                  .way = way_of(a, &r->verdict),
                                  .unfired = !failure_fired(&r->verdict)};
    if (!*ret->all && shown)
        return err_say(err, -EINVAL, "it did not fail, it is inconclusive: %s: %s", shown->check,
                       shown->seen);
    if (!*ret->all)
        return err_say(err, -EINVAL, "it passed: there is no failure to look for");
    choose(a, r->scenario, ret);
    if (*checks)
        code = take_asked(a, checks, ret, err);
    ret->counted = true;
    for (const char **c = ret->checks; *c; c++)
        ret->counted &= smaller_is_counted(r->scenario, *c);
    return code;
}

/* ---- another one ---- */

static void add(struct buf *why, const char *check) {
    buf_printf(why, "%s%s", why->len ? ", " : "", check);
}

static bool fails_all(const struct found_failure *f, const struct verdict *v) {
    for (const char **c = f->checks; *c; c++) {
        const struct finding *x = verdict_find(v, *c);
        if (!x || x->status != FINDING_FAIL)
            return false;
        if (str_eq(*c, "outcome") && !str_starts(x->seen, f->way))
            return false;
    }
    return true;
}

enum comparison_answer failure_compare(const struct found_failure *f, const struct verdict *v,
                                       struct buf *why) {
    bool same = fails_all(f, v), failed = false;
    if (v->exit_code == EXIT_INTERRUPTED)
        return INTERRUPTED;
    for (size_t i = 0; i < v->n; i++)
        if (is_failure(&v->v[i])) {
            bool known = str_in(v->v[i].check, (const char *const *)f->all);
            failed = true;
            same &= known;
            if (!known || !fails_all(f, v))
                add(why, v->v[i].check);
        }
    if (v->exit_code == EXIT_BROKEN) {
        const struct finding *x = verdict_first(v);
        buf_clear(why);
        buf_printf(why, "%s: %s", x ? x->check : "", x ? x->seen : "");
        return BROKEN;
    }
    if (same && (f->unfired || failure_fired(v))) {
        buf_clear(why);
        return FAILS_SAME;
    }
    if (failed && !same)
        return FAILS_OTHERWISE;
    const struct finding *open = verdict_first(v);
    buf_clear(why);
    if (v->exit_code == EXIT_PASS)
        return PASSES;
    add(why, same ? "fired" : open ? open->check : "");
    return INCONCLUSIVE;
}
