#include "harness/judge/views.h"

#include "base/mem.h"
#include "harness/judge/checks/lags.h"

#include <stdlib.h>

/* The kernel tells something of every run. Where it has told nothing, nobody has seen how anything
 * ended, and what a check did not see is no pass. */
static void want_kernel(struct finding *f, const struct check *c, const struct history *h) {
    if (f->status != FINDING_PASS || !(c->sources & SOURCES(KERNEL)))
        return;
    history_each(r, h) {
        if (r->source == SOURCE_KERNEL)
            return;
    }
    *f = (struct finding){.check = f->check, .class = f->class, .leads = f->leads};
    finding_unknown(f, c->summary, "the history has no record of the kernel's");
}

/* What the checks of one set of sources see. */
struct verdict_view {
    struct history history;
    const struct rounds *rounds;
    const struct incidents *incidents;
};

/* Sets of sources that differ only in who says nothing of rounds see the same rounds, and those
 * that differ only in who says nothing of faults see the same incidents. */
enum {
    OF_INCIDENTS = VIEWS_OF_ROUNDS | SOURCES(HARNESS) | SOURCES(WIRE) | SOURCES(DISK),
    VIEWS_MAX = 1 << SOURCE_N
};

/* Each by its set of sources, NULL until somebody asks. */
struct views {
    const struct scenario *scenario;
    const struct history *history;
    struct verdict_view *of[VIEWS_MAX];
    struct rounds *rounds[VIEWS_MAX];
    struct incidents *incidents[VIEWS_MAX];
    struct lags *lags; /* told by the harness, whom every check may read */
};

struct views *views_new(const struct scenario *s, const struct history *h) {
    struct views *v = mem_new(struct views);
    v->scenario = s;
    v->history = h;
    v->lags = lags_new(h);
    return v;
}

struct views *views_free(struct views *v) {
    for (size_t i = 0; v && i < VIEWS_MAX; i++) {
        incidents_fini(v->incidents[i]);
        free(v->incidents[i]);
        rounds_fini(v->rounds[i]);
        free(v->rounds[i]);
        if (v->of[i])
            history_fini(&v->of[i]->history);
        free(v->of[i]);
    }
    if (v)
        lags_free(v->lags);
    free(v);
    return NULL;
}

/* When agents start is no answer to anything: it says which round a worker belongs to, and rounds
 * are the same for all checks. */
static void load_rounds(struct rounds *rs, const struct views *v, unsigned sources) {
    rounds_init(rs, !v->scenario->torchrun_semantics);
    history_each(r, v->history) {
        if (sources & 1u << r->source || record_is(r, "agent-start"))
            rounds_feed(rs, r);
    }
}

static const struct verdict_view *view_of(struct views *v, unsigned sources) {
    struct rounds **rounds = &v->rounds[sources & VIEWS_OF_ROUNDS];
    struct incidents **incidents = &v->incidents[sources & OF_INCIDENTS];
    if (v->of[sources])
        return v->of[sources];
    struct verdict_view *view = v->of[sources] = mem_new(struct verdict_view);
    history_filter(&view->history, v->history, sources);
    if (!*rounds) {
        *rounds = mem_new(struct rounds);
        load_rounds(*rounds, v, sources);
    }
    if (!*incidents) {
        *incidents = mem_new(struct incidents);
        incidents_load(*incidents, &view->history, *rounds);
    }
    view->rounds = *rounds;
    view->incidents = *incidents;
    return view;
}

const struct rounds *views_rounds(struct views *v, unsigned sources) {
    return view_of(v, sources | SOURCES(HARNESS))->rounds;
}

void views_ask(struct views *v, const struct check *c, const struct lost *lost, struct finding *f) {
    ARENA_FINI struct arena arena = {0};
    const struct verdict_view *seen = view_of(v, c->sources | SOURCES(HARNESS));
    struct trial t = {.scenario = v->scenario,
                      .arena = &arena,
                      .history = &seen->history,
                      .rounds = seen->rounds,
                      .incidents = seen->incidents,
                      .lags = v->lags,
                      .lost = lost};
    *f = (struct finding){
        .check = c->name, .class = c->class, .status = FINDING_UNKNOWN, .leads = c->leads};
    const char *idle = c->not_applicable ? c->not_applicable(v->scenario) : NULL;
    if (idle)
        finding_skip(f, "%s", idle);
    else
        c->judge(&t, f);
    want_kernel(f, c, &seen->history);
}
