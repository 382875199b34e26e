/* What the history of a trial says of its fault. Evidence is what the kernel, the wire, the disk or
 * the probe has said; that the fault was undone is the harness's word, and that it is gone the
 * kernel's: whoever was struck has then ended by itself, with 0. */
#include "harness/trial/trial.h"

#include "base/str.h"
#include "harness/trial/subject.h"

static const struct record *first_of(const struct history *h, const char *kind) {
    history_each(r, h) {
        if (record_is(r, kind) && str_eq(record_text(r, "id"), TRIAL_ID))
            return r;
    }
    return NULL;
}

static const struct record *evidence_of(const struct history *h, const struct record *fired) {
    history_each(r, h) {
        if (r->seq > fired->seq && source_is_evidence(r->source) &&
            record_is(r, "fault-evidence") && str_eq(record_text(r, "id"), TRIAL_ID))
            return r;
    }
    return NULL;
}

/* Of the nodes that it has struck; a store has no workers, and then any will do. */
static bool was_struck(const struct record *in_force, const char *node) {
    bool any = false;
    json_each(it, record_get(in_force, "targets")) {
        if (str_eq(json_get_string(it, "what", ""), "store"))
            return true;
        any |= str_eq(json_get_string(it, "node", ""), node);
    }
    return any;
}

static bool goes_on(const struct history *h, const struct record *in_force,
                    const struct record *undone) {
    history_each(r, h) {
        if (r->seq > undone->seq && r->source == SOURCE_KERNEL && record_is(r, "worker-exit") &&
            record_i64(r, "code", -1) == 0 && was_struck(in_force, r->node))
            return true;
    }
    return false;
}

static struct trial_outcome cannot(struct arena *a, const char *what, const char *why) {
    return (struct trial_outcome){.kind = TRIAL_CANNOT,
                                  .why = *why ? arena_printf(a, "%s: %s", what, why) : what};
}

/* What has kept it from being in force; NULL: nothing. */
static const char *not_in_force(struct arena *a, const struct history *h) {
    const struct record *failed = first_of(h, "fault-failed");
    const struct record *missed = first_of(h, "fault-not-fired");
    if (failed)
        return arena_printf(a, "it could not be brought in force: %s",
                            record_text(failed, "error"));
    if (missed)
        return arena_printf(a, "its moment did not come: %s", record_text(missed, "why"));
    return first_of(h, "fault-in-force") ? NULL : "it did not come in force";
}

/* What has been left behind on the host; NULL: nothing. */
static const char *left(const struct history *h) {
    const struct record *health = history_newest(h, SOURCE_HARNESS, "health");
    const struct json *all = health ? record_get(health, "left") : NULL;
    json_each(it, all) {
        return json_string(it, "something");
    }
    return NULL;
}

static const char group_fix[] =
    "run as root, or where control groups are delegated to you (systemd-run --user --scope -p "
    "Delegate=yes)";

static bool lacks_group(const struct record *evidence) {
    const char *by = record_text(evidence, "by");
    return *by && !str_eq(by, "a control group");
}

/* How what was done is less than on nodes in namespaces, with control groups; NULL: it is not. */
static const char *how_less(struct arena *a, const struct fault *f, const struct history *h,
                            const struct record *evidence) {
    const struct record *run = history_newest(h, SOURCE_HARNESS, "run");
    bool processes = run && str_eq(record_text(run, "isolation"), "processes");
    if (lacks_group(evidence))
        return arena_printf(a, "by %s, as no control group can be had",
                            record_text(evidence, "by"));
    if (processes && f->needs & FAULT_NEEDS_SILENCE)
        return "nodes are processes of this host; what they are sent is dropped at their sockets";
    if (processes && f->targets & (TARGET_NODE | TARGET_RACK))
        return "nodes are processes of this host";
    return NULL;
}

struct trial_outcome trial_read(struct arena *a, const struct fault *f, const struct history *h) {
    const char *why = not_in_force(a, h);
    if (why)
        return (struct trial_outcome){.kind = TRIAL_CANNOT, .why = why};
    const struct record *fired = first_of(h, "fault-fired");
    const struct record *in_force = first_of(h, "fault-in-force");
    const struct record *evidence = fired ? evidence_of(h, fired) : NULL;
    const struct record *unfelt = first_of(h, "fault-unfelt");
    const struct record *undone = first_of(h, "fault-recovered");
    bool lasts = fault_has(f, EFFECT_LASTING);
    if (!evidence)
        return cannot(a, "it was brought in force, and nothing showed it",
                      unfelt ? record_text(unfelt, "why") : "");
    if (lasts && !undone)
        return cannot(a, "it was felt, and not undone", "");
    if (lasts && *record_text(undone, "error"))
        return cannot(a, "it was felt, and could not be undone", record_text(undone, "error"));
    if (lasts && !goes_on(h, in_force, undone))
        return cannot(a, "it was felt and undone, and what it had struck did not go on", "");
    if ((why = left(h)))
        return cannot(a, "it was felt, and left something behind", why);
    struct trial_outcome o = {.seen = record_text(evidence, "what")};
    o.why = how_less(a, f, h, evidence);
    o.kind = o.why ? TRIAL_LESS : TRIAL_WORKS;
    o.fix = lacks_group(evidence) ? group_fix : NULL;
    return o;
}

struct trial_outcome trial_both(struct arena *a, struct trial_outcome first,
                                struct trial_outcome second, const char *other) {
    bool one = first.kind == TRIAL_WORKS || first.kind == TRIAL_LESS;
    bool two = second.kind == TRIAL_WORKS || second.kind == TRIAL_LESS;
    if (one && two)
        return second.kind > first.kind ? second : first;
    if (one != two) {
        struct trial_outcome *bad = one ? &second : &first;
        return (struct trial_outcome){
            .kind = TRIAL_LESS,
            .why = arena_printf(a, "not on %s: %s", one ? other : "rankrun's own store", bad->why),
            .fix = bad->fix,
            .seen = one ? first.seen : second.seen};
    }
    return first;
}
