/* Which checks have something to judge, told before anything is run. What a job tells is known of
 * ranktrain, and of what a scenario reads from output; any other may send events, or not. */
#include "harness/judge/checks/check.h"

#include "base/buf.h"
#include "base/str.h"

#include <string.h>

static const struct {
    unsigned needs_events;
    const char *what, *event;
} words[] = {
    {NEEDS_STEPS, "steps", "step"},
    {NEEDS_RESUME, "where it resumes", "resume"},
    {NEEDS_MODEL, "its model", "done"},
    {NEEDS_SHARDS, "the shards of its steps", NULL}, /* no line tells them */
    {NEEDS_COMMUNICATOR, "its communicator", NULL},
    {NEEDS_WEIGHTS, "a hash of its weights", NULL},
    {NEEDS_SAMPLES, "which samples it trains", NULL},
    {0},
};

static bool sends_events(const struct scenario *s) {
    return s->job.run_n && str_eq(str_base(s->job.run[0]), "ranktrain");
}

/* What the check needs of it and cannot have by what is read from the output. */
static unsigned missing(const struct check *c, const struct scenario *s) {
    unsigned left = sends_events(s) ? 0 : c->needs_events;
    for (size_t i = 0; words[i].needs_events; i++)
        if (words[i].event && scenario_observes(s, words[i].event))
            left &= ~words[i].needs_events;
    return left;
}

static void put_missing(struct buf *out, unsigned left) {
    const char *sep = "";
    for (size_t i = 0; words[i].needs_events; i++)
        if (left & words[i].needs_events) {
            buf_printf(out, "%s%s", sep, words[i].what);
            sep = " and ";
        }
}

/* Names, folded to lines that fit. */
struct forecast_names {
    struct buf *out;
    size_t column;
};

static void put_name(struct forecast_names *n, const char *name) {
    enum { COLUMNS = 90, INDENT = 2 };
    if (n->column && n->column + strlen(name) + 2 > COLUMNS) {
        buf_puts(n->out, ",\n  ");
        n->column = INDENT;
    } else {
        buf_puts(n->out, n->column ? ", " : "  ");
        n->column += n->column ? 2 : INDENT;
    }
    buf_puts(n->out, name);
    n->column += strlen(name);
}

static const char *idle_of(const struct check *c, const struct scenario *s, bool gpus) {
    if (c->on_gpus && !gpus)
        return "no node is given a GPU";
    return c->not_applicable ? c->not_applicable(s) : NULL;
}

void checks_forecast(const struct scenario *s, bool gpus, struct buf *out) {
    struct forecast_names judged = {.out = out};
    buf_puts(out, "\njudged\n");
    for (size_t i = 0; checks[i]; i++)
        if (!idle_of(checks[i], s, gpus) && !missing(checks[i], s))
            put_name(&judged, checks[i]->name);
    buf_putc(out, '\n');
    const char *title = "\nnot judged\n";
    for (size_t i = 0; checks[i]; i++) {
        const struct check *c = checks[i];
        const char *idle = idle_of(c, s, gpus);
        unsigned left = missing(c, s);
        if (!idle && !left)
            continue;
        buf_printf(out, "%s  %-16s ", title, c->name);
        if (idle)
            buf_puts(out, idle);
        else
            buf_puts(out, "unless the job tells ");
        if (!idle)
            put_missing(out, left);
        buf_putc(out, '\n');
        title = "";
    }
}

void checks_without_events(struct buf *out) {
    struct forecast_names all = {.out = out};
    for (size_t i = 0; checks[i]; i++)
        if (!checks[i]->needs_events)
            put_name(&all, checks[i]->name);
    buf_puts(
        out,
        "\n  and these when it reports (by scenarios/jobs/rankquake.h or .py, or by observe)\n");
    for (size_t i = 0; checks[i]; i++) {
        if (!checks[i]->needs_events)
            continue;
        buf_printf(out, "    %-12s ", checks[i]->name);
        put_missing(out, checks[i]->needs_events);
        buf_puts(out, checks[i]->needs_events &
                              (NEEDS_SHARDS | NEEDS_COMMUNICATOR | NEEDS_WEIGHTS | NEEDS_SAMPLES)
                          ? " (by events only)\n"
                          : "\n");
    }
}
