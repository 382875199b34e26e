#include "harness/sim/script.h"

#include "base/mem.h"
#include "base/str.h"
#include "harness/scenario/load.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENTRIES_MAX = 5000, TIME_TEXT = 32 };

/* Of virtual time: nothing takes longer, and sums of a few stay numbers. */
static const int64_t day_ns = 24 * 3600 * INT64_C(1000000000);

/* --- words --- */

static void read_fault(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    struct sim_entry *e = out;
    const char *names[SIM_FAULTS_N + 1] = {0};
    for (int i = 0; i < SIM_FAULTS_N; i++)
        names[i] = sim_faults()[i].name;
    e->fault = reader_choice(r, k, n, names, NULL);
}

static void read_watch(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    ((struct sim_entry *)out)->watch = reader_choice(r, k, n, sim_watches(), NULL);
}

static void read_on(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    struct sim_entry *e = out;
    int64_t node = SIM_NODE_WRITER;
    if (!reader_is_scalar(r, k, n))
        return;
    if (!str_eq(n->text, "writer") &&
        (*n->text != 'n' || !str_to_i64(n->text + 1, 0, SIM_AGENTS_MAX - 1, &node)))
        diagnostics_add(r->d, n->place, "on must be %s, not \"%s\"", k->type, n->text);
    e->node = (int)node;
}

static void read_clocks(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    static const char *const names[] = {"drift", "even", NULL};
    ((struct sim_schedule *)out)->even = reader_choice(r, k, n, names, NULL) == 1;
}

static void read_profile(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    static const char *const names[] = {"fast", "default", NULL};
    ((struct sim_schedule *)out)->usual = reader_choice(r, k, n, names, NULL) == 1;
}

/* "1:3", as torchrun's --nnodes. */
static void read_nodes(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    struct sim_schedule *s = out;
    int64_t min = 0, max = 0;
    if (!reader_is_scalar(r, k, n))
        return;
    char **w = str_split(r->arena, n->text, ':', NULL);
    const char *second = w[0] && w[1] ? w[1] : w[0];
    if (!str_to_i64(w[0], 1, SIM_AGENTS_MAX, &min) ||
        !str_to_i64(second, min, SIM_AGENTS_MAX, &max) || (w[1] && w[2]))
        diagnostics_add(r->d, n->place, "nodes must be %s, not \"%s\"", k->type, n->text);
    s->min = (int)min;
    s->max = (int)max;
}

/* --- an entry of the timeline --- */

#define TIME(m)  reader_duration, offsetof(struct sim_entry, m)
#define ENTRY(m) offsetof(struct sim_entry, m)

static const struct section section_sim_entry = {
    "timeline",
    "What strikes, and when.",
    (const struct key[]){
        {"at", "a duration", NULL, "When, since the beginning.", "at: 1.250s", TIME(at_ns),
         .required = true},
        {"after", "a whole number", "0",
         "It waits for so many transactions from then on, and strikes behind the last.", "after: 3",
         reader_int, ENTRY(after), 0, SIM_AFTER_MAX},
        {"fault", "a fault of `rankquake sim --faults list`", NULL, "What happens.",
         "fault: node-cut", read_fault, .required = true},
        {"on", "a node such as n1, or writer", NULL, "Whom it strikes.", "on: n1", read_on},
        {"for", "a duration", NULL, "How long it lasts.", "for: 300ms", TIME(span_ns), 1},
        {"back", "a duration", NULL, "The agent is started again so long after.", "back: 20ms",
         TIME(back_ns), 1},
        {"watch", "head, lead, holder or all", NULL, "Which of the node's watches.", "watch: head",
         read_watch},
        {0},
    },
};

/* What stands there must be of use to the fault, and what it needs must be there. */
static void check_word(struct reader *r, const struct yaml *n, const char *word, const char *fault,
                       bool allowed, bool needed) {
    const struct yaml *v = yaml_get(n, word);
    if (v && !allowed)
        diagnostics_add(r->d, v->key_place, "%s has no use for \"%s\"", fault, word);
    if (!v && needed)
        diagnostics_add(r->d, n->place, "%s needs \"%s\"", fault, word);
}

static void check_day(struct reader *r, const struct yaml *n, const char *word, int64_t ns) {
    if (ns > day_ns)
        diagnostics_add(r->d, yaml_get(n, word)->place, "%s must be a day (24h) at most, not %s",
                        word, yaml_get(n, word)->text);
}

static void check_entry(struct reader *r, const struct yaml *n, const struct sim_schedule *s,
                        const struct sim_entry *e) {
    const struct sim_fault *f = &sim_faults()[e->fault];
    check_word(r, n, "on", f->name, f->on_node, f->on_node);
    check_word(r, n, "for", f->name, f->span_most_ns > 0, f->span_most_ns > 0);
    check_word(r, n, "back", f->name, f->returns, false);
    check_word(r, n, "watch", f->name, f->on_watch, f->on_watch);
    check_day(r, n, "at", e->at_ns);
    check_day(r, n, "for", e->span_ns);
    check_day(r, n, "back", e->back_ns);
    if (e->node >= s->agents)
        diagnostics_add(r->d, yaml_get(n, "on")->place, "there is no n%d, agents is %d", e->node,
                        s->agents);
    if (e->node == SIM_NODE_WRITER && !e->after)
        diagnostics_add(r->d, yaml_get(n, "on")->place,
                        "writer is who sends the transaction that the entry waits for; it needs "
                        "\"after\"");
}

static void read_timeline(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    struct sim_schedule *s = out;
    if (yaml_is_null(n))
        return;
    if (n->type != YAML_LIST || n->length > ENTRIES_MAX) {
        diagnostics_add(r->d, n->place, "%s must be %s", k->name, k->type);
        return;
    }
    s->entries = mem_array(struct sim_entry, n->length + 1);
    yaml_each(line, n) {
        struct sim_entry e = {.node = SIM_NODE_NONE};
        int before = r->d->errors;
        reader_section(r, &section_sim_entry, line, &e);
        if (r->d->errors == before && s->agents)
            check_entry(r, line, s, &e);
        sim_schedule_add(s, &e);
    }
}

/* --- the whole --- */

#define TEXT(m)  reader_text, offsetof(struct script, m)
#define COUNT(m) reader_int, offsetof(struct script, schedule.m)
#define SPAN(m)  reader_duration, offsetof(struct script, schedule.m)

/* Readers of the schedule's own, below a struct script. */
_Static_assert(offsetof(struct script, schedule) == 0, "a script begins with its schedule");

static const struct section section_simulation = {
    "simulation",
    "A schedule for rankquake sim.",
    (const struct key[]){
        {"simulation", "a name", NULL, "What it is called.", "simulation: seed-31", TEXT(name),
         .required = true},
        {"breaks", "the name of an invariant", NULL, "What its run is to break.", "breaks: I1",
         TEXT(breaks)},
        {"planted", "the name of a planted bug", NULL, "The bug of the core that it is about.",
         NULL, TEXT(planted)},
        {"found", "a sentence", NULL, "What it broke with.", NULL, TEXT(found)},
        {"seed", "a whole number", "0", "Of all that is not said here.", NULL, reader_i64,
         offsetof(struct script, schedule.seed), 0, INT64_MAX},
        {"agents", "a whole number", NULL, "Nodes, each with an agent.", "agents: 3", COUNT(agents),
         1, SIM_AGENTS_MAX, .required = true},
        {"nodes", "MIN:MAX", NULL, "As rankrun's --nnodes.", "nodes: \"1:3\"", read_nodes,
         .required = true},
        {"max_restarts", "a whole number", "3", "The job's budget.", NULL, COUNT(max_restarts), 0,
         1000},
        {"loss", "of a thousand", "0", "Messages that are lost.", NULL, COUNT(loss), 0, 1000},
        {"late", "of a thousand", "0", "Messages that are very late.", NULL, COUNT(late), 0, 1000},
        {"fragile", "of a thousand", "0", "Groups of workers that fail by themselves.", NULL,
         COUNT(fragile), 0, 1000},
        {"slow", "a duration", "3ms", "A message takes up to this.", NULL, SPAN(slow_ns), 1},
        {"slow_answer", "a duration", "0s", "An answer takes up to so much more.", NULL,
         SPAN(slow_answer_ns)},
        {"work", "a duration", "2500ms", "The work of a round takes up to this.", NULL,
         SPAN(work_ns), 100 * SIM_MS},
        {"patient", "true or false", "false", "No round's work is over before the trouble is.",
         NULL, reader_bool, offsetof(struct script, schedule.patient)},
        {"profile", "fast or default", "fast", "The timing, as rankrun's.", NULL, read_profile},
        {"clocks", "drift or even", "drift", "Whether clocks differ in rate.", NULL, read_clocks},
        {"lifeline", "true or false", "false", "Whether agents have a lifeline.", NULL, reader_bool,
         offsetof(struct script, schedule.lifeline)},
        {"gang", "true or false", "false", "Whether the loss of a node ends the job.", NULL,
         reader_bool, offsetof(struct script, schedule.gang)},
        {"spares", "a whole number", "0", "How many of the nodes wait as spares, the last ones.",
         NULL, COUNT(spares), 0, SIM_AGENTS_MAX},
        {"trouble", "a duration", NULL, "Then everything heals.", "trouble: 2s", SPAN(trouble_ns),
         .required = true},
        {"hosted", "true or false", "false", "n0's agent serves the store, and ends last.", NULL,
         reader_bool, offsetof(struct script, schedule.hosted)},
        {"seated", "true or false", "false", "Group ranks are fixed, as torchrun's --node-rank.",
         NULL, reader_bool, offsetof(struct script, schedule.seated)},
        {"calm", "true or false", "false", "Healed from the beginning.", NULL, reader_bool,
         offsetof(struct script, schedule.calm)},
        {"timeline", "a list of entries", NULL, "What is broken.", NULL, read_timeline},
        {0},
    },
};

struct script *script_free(struct script *s) {
    if (s) {
        sim_schedule_fini(&s->schedule);
        arena_fini(&s->arena);
        free(s);
    }
    return NULL;
}

static void check_bounds(struct reader *r, const struct yaml *root, const struct sim_schedule *s) {
    check_day(r, root, "slow", s->slow_ns);
    check_day(r, root, "slow_answer", s->slow_answer_ns);
    check_day(r, root, "work", s->work_ns);
    check_day(r, root, "trouble", s->trouble_ns);
    if (s->seated && s->min != s->max)
        diagnostics_add(r->d, yaml_get(root, "nodes")->place,
                        "nodes must be one number, such as %d:%d: the ranks are fixed (seated)",
                        s->max, s->max);
    if (s->max > s->agents && s->agents)
        diagnostics_add(r->d, yaml_get(root, "nodes")->place,
                        "nodes asks for up to %d, agents is %d; more agents than that are spares",
                        s->max, s->agents);
}

struct script *script_read(const char *file, struct diagnostics *d) {
    struct script *s = mem_new(struct script);
    struct yaml *root = NULL;
    d->file = arena_strdup(&s->arena, file);
    if (source_read(file, d))
        root = yaml_parse(&s->arena, buf_str(&d->source), d->source.len, 0, d);
    struct reader r = {.arena = &s->arena, .d = d};
    if (root)
        reader_section(&r, &section_simulation, root, s);
    if (root && !d->errors)
        check_bounds(&r, root, &s->schedule);
    if (!d->errors)
        return s;
    d->file = file;
    return script_free(s);
}

/* --- writing --- */

const char *script_time(int64_t ns, char *ret) {
    if (ns % SIM_MS)
        snprintf(ret, TIME_TEXT, "%.6fms", (double)ns / 1e6);
    else if (ns >= 1000 * SIM_MS)
        snprintf(ret, TIME_TEXT, "%.3fs", (double)ns / 1e9);
    else
        snprintf(ret, TIME_TEXT, "%" PRId64 "ms", (int64_t)(ns / SIM_MS));
    return ret;
}

static void write_time(struct buf *out, const char *before, int64_t ns) {
    char text[TIME_TEXT];
    buf_printf(out, "%s%s", before, script_time(ns, text));
}

static void write_entry(const struct sim_entry *e, struct buf *out) {
    const struct sim_fault *f = &sim_faults()[e->fault];
    write_time(out, "  - {at: ", e->at_ns);
    if (e->after)
        buf_printf(out, ", after: %d", e->after);
    buf_printf(out, ", fault: %s", f->name);
    if (e->node >= 0)
        buf_printf(out, ", on: n%d", e->node);
    else if (e->node == SIM_NODE_WRITER)
        buf_puts(out, ", on: writer");
    if (f->on_watch)
        buf_printf(out, ", watch: %s", sim_watches()[e->watch]);
    if (e->span_ns)
        write_time(out, ", for: ", e->span_ns);
    if (e->back_ns)
        write_time(out, ", back: ", e->back_ns);
    buf_puts(out, "}\n");
}

/* Only what is not as it would be anyway. */
static void write_odds(const struct sim_schedule *s, struct buf *out) {
    if (s->loss)
        buf_printf(out, "loss: %d\n", s->loss);
    if (s->late)
        buf_printf(out, "late: %d\n", s->late);
    if (s->fragile)
        buf_printf(out, "fragile: %d\n", s->fragile);
    if (s->patient)
        buf_printf(out, "patient: true\n");
    write_time(out, "slow: ", s->slow_ns);
    if (s->slow_answer_ns)
        write_time(out, "\nslow_answer: ", s->slow_answer_ns);
    write_time(out, "\nwork: ", s->work_ns);
    if (s->usual)
        buf_printf(out, "\nprofile: default");
    buf_printf(out, "\nclocks: %s\n", s->even ? "even" : "drift");
}

/* A text that may hold anything, in double quotes. */
static void write_quoted(struct buf *out, const char *key, const char *text) {
    buf_printf(out, "%s: \"", key);
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            buf_putc(out, '\\');
        buf_putc(out, (unsigned char)*text < 32 ? ' ' : *text);
    }
    buf_puts(out, "\"\n");
}

void script_write(const struct script *script, struct buf *out) {
    const struct sim_schedule *s = &script->schedule;
    buf_printf(out, "simulation: %s\n", script->name);
    if (script->planted)
        buf_printf(out, "planted: %s\n", script->planted);
    if (script->breaks)
        buf_printf(out, "breaks: %s\n", script->breaks);
    if (script->found)
        write_quoted(out, "found", script->found);
    buf_printf(out, "seed: %" PRIu64 "\nagents: %d\nnodes: \"%d:%d\"\nmax_restarts: %d\n", s->seed,
               s->agents, s->min, s->max, s->max_restarts);
    write_odds(s, out);
    write_time(out, "trouble: ", s->trouble_ns);
    buf_puts(out, s->calm ? "\ncalm: true\n" : "\n");
    if (s->hosted)
        buf_puts(out, "hosted: true\n");
    if (s->seated)
        buf_puts(out, "seated: true\n");
    if (s->lifeline)
        buf_puts(out, "lifeline: true\n");
    if (s->gang)
        buf_puts(out, "gang: true\n");
    if (s->spares)
        buf_printf(out, "spares: %d\n", s->spares);
    if (s->n_entries)
        buf_puts(out, "timeline:\n");
    for (int i = 0; i < s->n_entries; i++)
        write_entry(&s->entries[i], out);
}
