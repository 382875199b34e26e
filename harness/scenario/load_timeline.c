/* Loads timeline: which fault, when and on whom. */
#include "base/str.h"
#include "harness/scenario/load.h"
#include "harness/scenario/target.h"

#include <stddef.h>
#include <string.h>

enum { ACTIONS_MAX = 1000, PROFILE_MAX = 16 };

static void read_id(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    struct timeline_entry *a = out;
    if (!reader_is_scalar(r, k, n))
        return;
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    size_t len = strlen(n->text);
    if (!len || len > 80 || strspn(n->text, allowed) != len)
        diagnostics_add(r->d, n->place, "id: \"%s\" must be letters, digits, - _ or ., 80 at most",
                        n->text);
    for (size_t i = 0; i < r->ids_read; i++)
        if (str_eq(r->ids[i], n->text)) {
            diagnostics_add(r->d, n->place, "id: \"%s\" is taken by an earlier entry", n->text);
            break;
        }
    a->id = n->text;
}

/* By the time a line is read, the job has gone on. */
static void never_hold_output(struct reader *r, const struct yaml *n, struct trigger *t) {
    const char *kind = trigger_is_call(t) || t->store ? NULL
                       : t->has_step                  ? "step"
                       : t->has_event                 ? t->event
                                                      : t->phase;
    const struct yaml *hold = yaml_get(n, "hold");
    if (!t->hold || !kind || !scenario_observes(r->s, kind))
        return;
    if (hold)
        diagnostics_add(r->d, hold->place,
                        "hold: %s is read from the job's output (observe), where nothing can be "
                        "held; leave hold out, or let the job send events",
                        kind);
    t->hold = false;
}

/* What none of its keys can tell alone. */
static void check_trigger(struct reader *r, const char *word, const struct yaml *n,
                          struct trigger *t) {
    int senders = t->has_step + t->has_event + (t->phase != NULL) + (t->file != NULL) +
                  (t->syscall != NULL) + (t->store != NULL);
    const struct yaml *op = yaml_get(n, "op");
    if (t->file ? !op : op != NULL) {
        diagnostics_add(r->d, op ? op->place : yaml_get(n, "file")->place,
                        op ? "op: of which file? give file too"
                           : "file: before which operation? give op: open, write, rename or close");
        return;
    }
    if (!senders && !t->has_round && !t->has_time && !t->after_id && !t->log)
        diagnostics_add(r->d, n->place,
                        "%s names nothing to wait for; give step, round, phase, time, event, log, "
                        "file, syscall, store or after",
                        word);
    else if (yaml_get(n, "nth") && !t->has_event && !t->phase && !t->log && !t->store &&
             !trigger_is_call(t))
        diagnostics_add(r->d, yaml_get(n, "nth")->place, "nth needs an event to count");
    else if (t->log && senders)
        diagnostics_add(r->d, n->place,
                        "%s has a line of the log and %s; give one, and the other a line of its "
                        "own with after",
                        word,
                        t->has_step    ? "a step"
                        : t->has_event ? "an event"
                        : t->file      ? "a file"
                        : t->syscall   ? "a system call"
                        : t->store     ? "an operation of the store"
                                       : "a phase");
    else if (senders > 1)
        diagnostics_add(r->d, n->place, "%s has %s; only one of them can be held, so give one",
                        word,
                        t->file         ? "a file and something else"
                        : t->syscall    ? "a system call and something else"
                        : t->store      ? "an operation of the store and something else"
                        : !t->phase     ? "a step and an event"
                        : !t->has_event ? "a step and a phase"
                                        : "an event and a phase");
    else if (t->hold && !senders)
        diagnostics_add(
            r->d, yaml_get(n, "hold")->place,
            "hold needs a step, an event, a phase, a file, a system call or an operation of the "
            "store: nothing else has a sender to stop");
    else
        never_hold_output(r, n, t);
}

static void read_trigger(struct reader *r, const char *word, const struct yaml *n,
                         struct trigger *t) {
    struct section named = section_when;
    named.name = word;
    t->after = -1;
    t->place = n->place;
    t->hold = yaml_get(n, "step") || yaml_get(n, "event") || yaml_get(n, "phase") ||
              yaml_get(n, "failpoint") || yaml_get(n, "file") || yaml_get(n, "syscall") ||
              yaml_get(n, "store");
    int before = r->d->errors;
    reader_section(r, &named, n, t);
    if (r->d->errors == before)
        check_trigger(r, word, n, t);
}

static void read_when(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    read_trigger(r, k->name, n, &((struct timeline_entry *)out)->when);
}

/* A fault whose end does not come lasts, so there is nothing to be patient about. */
static void read_until(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    static const char *const others[] = {"within", "patient"};
    struct trigger *t = arena_new(r->arena, struct trigger);
    t->ends = true;
    for (size_t i = 0; i < 2; i++)
        if (yaml_get(n, others[i]))
            diagnostics_add(r->d, yaml_get(n, others[i])->place,
                            "%s has no use in until: a fault whose end does not come lasts to the "
                            "end of the run",
                            others[i]);
    read_trigger(r, k->name, n, t);
    ((struct timeline_entry *)out)->until = t;
}

static void read_heal(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    struct timeline_entry *a = out;
    if (!reader_is_scalar(r, k, n))
        return;
    for (size_t i = 0; i < r->ids_read; i++)
        if (str_eq(r->ids[i], n->text)) {
            a->heal = (int)i;
            return;
        }
    const char *near = str_nearest(n->text, r->ids);
    diagnostics_add(r->d, n->place, "heal: no entry above has the id \"%s\"%s%s%s", n->text,
                    near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

static void read_on(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    struct timeline_entry *a = out;
    struct err err = {0};
    if (!reader_is_scalar(r, k, n))
        return;
    if (target_parse(r->arena, n->text, &a->on, &err)) {
        diagnostics_add(r->d, n->place, "%s", err.msg);
        return;
    }
    a->on.text = n->text;
    a->on.place = n->place;
}

static void read_with(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    struct timeline_entry *a = out;
    reader_pairs(r, k, n, &a->with, &a->with_n);
}

/* One step: its time, and what else stands there. */
static void read_step(struct reader *r, const struct key *k, const struct yaml *n,
                      struct profile_step *ret) {
    struct pair *v;
    size_t used = 0;
    const struct key at = {.name = "at", .type = "a duration"};
    if (n->type != YAML_MAP) {
        diagnostics_add(r->d, n->place, "%s: a step is a map, as in {at: 5s, delay: 200ms}",
                        k->name);
        return;
    }
    if (!yaml_get(n, "at"))
        diagnostics_add(r->d, n->place, "%s: a step needs at, its time after the fault came",
                        k->name);
    else
        reader_time(r, &at, yaml_get(n, "at"), &ret->at_ns);
    const struct pair *all = NULL;
    if (!reader_pairs(r, k, n, &all, &used))
        return;
    ret->place = n->place;
    ret->with = v = arena_array(r->arena, struct pair, used + 1);
    for (size_t i = 0; i < used; i++)
        if (!str_eq(all[i].key, "at"))
            v[ret->with_n++] = all[i];
    if (!ret->with_n)
        diagnostics_add(r->d, n->place, "%s: a step needs a parameter of the fault besides at",
                        k->name);
}

/* Their times go up, from 0 on: before the first nothing would be done. */
static void read_profile(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    struct timeline_entry *a = out;
    if (n->type != YAML_LIST || !n->length || n->length > PROFILE_MAX) {
        diagnostics_add(r->d, n->place, "%s must be %s, of %d at most", k->name, k->type,
                        PROFILE_MAX);
        return;
    }
    int before = r->d->errors;
    struct profile_step *v = arena_array(r->arena, struct profile_step, n->length + 1);
    yaml_each(it, n) {
        struct profile_step *step = &v[a->profile_n++];
        read_step(r, k, it, step);
        if (r->d->errors > before)
            return;
        if (step == v ? step->at_ns != 0 : step->at_ns <= step[-1].at_ns)
            diagnostics_add(r->d, yaml_get(it, "at")->place,
                            step == v ? "at: the first step begins with the fault; write at: 0s"
                                      : "at: %s is not later than the step before it",
                            yaml_get(it, "at")->text);
    }
    a->profile = v;
}

/* What comes after the end never comes. */
static void check_profile(struct reader *r, const struct timeline_entry *a) {
    const struct profile_step *last = &a->profile[a->profile_n - 1];
    if (a->for_ns && last->at_ns >= a->for_ns)
        diagnostics_add(r->d, last->place, "profile: this step comes when the fault is over (for)");
}

static void read_times(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    struct timeline_entry *a = out;
    a->times_n = 1;
    if (n->type == YAML_SCALAR && str_eq(n->text, "once"))
        return;
    if (n->type == YAML_SCALAR && str_eq(n->text, "each-round")) {
        a->times = TIMES_EACH_ROUND;
        return;
    }
    int64_t v;
    if (reader_number(r, k, n, &v))
        a->times_n = (int)v;
}

static const char *const sticky[] = {"node", NULL};

const struct section section_entry = {
    "timeline",
    "The entries of the timeline: which fault happens, when, and on what.",
    (const struct key[]){
        {"id", "a name", "(the fault's name and a number)",
         "The entry's name, for after, heal and "
         "expect.",
         "id: dark", read_id, .form = "<id>"},
        {"when", "a map", NULL, "The trigger.", "when: {step: 137}", read_when, .required = true,
         .form = "<@when>"},
        {"fault", "the name of a fault", NULL, "The fault; `rankquake list faults` lists them.",
         "fault: node-poweroff", reader_text, .offset = offsetof(struct timeline_entry, fault),
         .place = offsetof(struct timeline_entry, fault_place), .form = "<fault>"},
        {"heal", "the id of an entry above", NULL,
         "Ends the fault of that entry; stands instead of fault.", "heal: cut", read_heal,
         .place = offsetof(struct timeline_entry, heal_place), .form = "<id>"},
        {"on", "a target", NULL,
         "The target, among what is alive at that moment: nodes, agents, workers, n2, n2/0, rank "
         "0, node of rank 0, random of workers, random 2 of nodes, 50%, majority (more than half "
         "of the nodes), rack 0, random of rack 0, random of racks, rack of rank 0, store (what "
         "serves it), store-0 (that member of an etcd-3), random of store, majority of store, "
         "store-leader (of etcd's members the one that leads), coordinator (the node "
         "whose agent decides for the job, as the store says at that moment).",
         "on: random of workers", read_on, .form = "<target>"},
        {"with", "a map of parameters", NULL, "The fault's parameters; `rankquake explain FAULT`.",
         "with: {disk: fresh}", read_with, .form = "{<scalar>}"},
        {"profile", "a list of steps", NULL,
         "How the parameters of an impairment of the network change while it lasts: each step says "
         "when, counted from the fault, and which parameters are others than in with from then on. "
         "The first is at 0s; 16 at most.",
         "profile: [{at: 0s, delay: 1ms}, {at: 5s, delay: 200ms}]", read_profile,
         .form = "[{<scalar>}]"},
        {"times", "once, each-round or a whole number", "once",
         "How often the trigger may fire; each-round: once in every round.", "times: each-round",
         read_times, .min = 1, .max = 1000, .form = "once | each-round | <int>"},
        {"for", "a duration", NULL, "How long a lasting fault lasts.", "for: 5s", reader_duration,
         .offset = offsetof(struct timeline_entry, for_ns),
         .place = offsetof(struct timeline_entry, for_place), .min = 1},
        {"until", "a map, as for when", NULL,
         "A lasting fault ends when this condition is met, instead of after a time. The words are "
         "those of when. The harness looks from the moment at which the fault is in force; a step "
         "or an event of any worker counts. If the condition is never met, the fault lasts to the "
         "end of the run.",
         "until: {round: 2}", read_until, .form = "<@when>"},
        {"sticky", "node", NULL,
         "The fault stays with the node: it strikes again at once whenever the node's agent comes "
         "back (node-start); a fault on a worker, as soon as the node has that worker again.",
         "sticky: node", reader_flag, .offset = offsetof(struct timeline_entry, sticky),
         .place = offsetof(struct timeline_entry, sticky_place), .choices = sticky, .form = "node"},
        {0},
    },
    .one_of = "fault heal",
};

/* The given id, or the fault's name and how many of it there have been. */
static const char *find_id(struct reader *r, const struct yaml *timeline, const struct yaml *item) {
    const struct yaml *id = yaml_get(item, "id"), *fault = yaml_get(item, "fault");
    if (id && id->type == YAML_SCALAR)
        return id->text;
    const char *name = fault && fault->type == YAML_SCALAR ? fault->text : "heal";
    int n = 1;
    for (const struct yaml *it = timeline->first; it != item; it = it->next) {
        const struct yaml *other = yaml_get(it, "fault");
        n += str_eq(other && other->type == YAML_SCALAR ? other->text : "heal", name);
    }
    return arena_printf(r->arena, "%s-%d", name, n);
}

static void read_entry(struct reader *r, const struct yaml *n, struct timeline_entry *a) {
    a->id = r->ids[r->ids_read];
    a->heal = -1;
    a->place = n->place;
    int before = r->d->errors;
    reader_section(r, &section_entry, n, a);
    if (r->d->errors > before)
        return;
    if (!a->fault && a->heal < 0)
        diagnostics_add(r->d, n->place, "an entry of the timeline needs a fault or a heal");
    else if (a->fault && a->heal >= 0)
        diagnostics_add(r->d, n->place,
                        "fault and heal exclude each other; make two entries of it");
    else if (a->heal >= 0 &&
             (a->on.text || a->with_n || a->profile_n || a->for_ns || a->until || a->sticky))
        diagnostics_add(r->d, n->place,
                        "heal ends a fault; on, with, profile, for, until and sticky stand at that "
                        "fault");
    else if (a->sticky && (a->times != TIMES_N || a->times_n != 1))
        diagnostics_add(r->d, n->place,
                        "times and sticky exclude each other: sticky is as often as the node comes "
                        "back");
    else if (a->for_ns && a->until)
        diagnostics_add(r->d, a->until->place, "for and until exclude each other: give one end");
    else if (a->profile_n)
        check_profile(r, a);
}

void load_timeline(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    struct scenario *s = out;
    if (yaml_is_null(n))
        return;
    if (n->type != YAML_LIST) {
        diagnostics_add(r->d, n->place, "%s must be %s, not %s", k->name, k->type,
                        yaml_type_name(n));
        return;
    }
    if (n->length > ACTIONS_MAX) {
        diagnostics_add(r->d, n->place, "timeline has %zu entries; at most %d are read", n->length,
                        ACTIONS_MAX);
        return;
    }
    r->ids = arena_array(r->arena, const char *, n->length + 1);
    r->ids_n = 0;
    yaml_each(it, n) r->ids[r->ids_n++] = find_id(r, n, it);
    struct timeline_entry *v = arena_array(r->arena, struct timeline_entry, n->length + 1);
    r->ids_read = 0;
    int before = r->d->errors;
    yaml_each(it, n) {
        read_entry(r, it, &v[r->ids_read]);
        r->ids_read++;
    }
    r->line_errors = r->d->errors - before;
    s->timeline = v;
    s->timeline_n = r->ids_n;
}
