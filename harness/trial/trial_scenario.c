/* The scenario of a trial. What a fault needs of whom it strikes follows from what it does, whom it
 * is aimed at and what shows it; nothing here knows a fault by its name. */
#include "harness/trial/trial.h"

#include "base/str.h"
#include "harness/scenario/generate.h"
#include "harness/trial/subject.h"

#include <stdio.h>
#include <string.h>

/* ---- which ---- */

static bool suits_own_store(const struct fault *f) {
    static const struct fault_store own = {.members = 1, .rankrun = true};
    const struct fault_args none = {0};
    return !f->suits || f->suits(&none, &own, NULL) == 0;
}

size_t trials_of(struct arena *a, const struct fault *f, bool has_etcd,
                 struct fault_trial ret[TRIALS_OF_FAULT]) {
    size_t n = 0;
    bool of_store = f->targets & TARGET_STORE, own = !of_store || suits_own_store(f);
    if (own)
        ret[n++] = (struct fault_trial){.fault = f, .name = f->name};
    if (of_store && (has_etcd || !own))
        ret[n++] = (struct fault_trial){
            .fault = f, .etcd = true, .name = own ? arena_printf(a, "%s-etcd", f->name) : f->name};
    return n;
}

/* ---- the entry ---- */

/* n2 is off. Without one nobody waits for more nodes than there are. */
static bool has_spare(const struct fault *f) {
    return fault_has(f, EFFECT_STARTS_NODE);
}

static bool shows_by(const struct fault *f, uint64_t evidence) {
    return f->evidence & evidence;
}

/* As the example has it, at n1 or at what is off, and until it is healed. */
static void put_entry(const struct fault_trial *t, struct arena *a, struct buf *out) {
    const struct fault *f = t->fault;
    const struct fault_args none = {0};
    const struct generate_known known = {f->name, f->summary, f->example, f->effects,
                                         fault_course(f, &none).lasts_ns};
    const struct generate_fault as = generate_also(a, &known);
    const char *node = has_spare(f) ? "n2" : "n1", *p = as.entry;
    const char *end = strstr(p, ", for: ");
    const char *when = shows_by(f, EVIDENCE(lock_held)) ? "{log: '/^ready$/'}"
                       : as.when                        ? as.when
                                                        : "{step: 5}";
    buf_printf(out, "  - {id: " TRIAL_ID ", when: %s, ", when);
    for (; *p && p != end; p++)
        if (str_starts(p, "on: n%")) {
            buf_printf(out, "on: %s", node);
            p += strlen("on: n%") - 1;
        } else if (str_starts(p, "random of workers")) {
            buf_puts(out, "n1/0");
            p += strlen("random of workers") - 1;
        } else {
            buf_putc(out, *p);
        }
    buf_puts(out, "}\n");
    if (fault_has(f, EFFECT_LASTING))
        buf_puts(out, "  - {id: over, when: {after: " TRIAL_ID
                      ", log: '/^shown$/'}, heal: " TRIAL_ID "}\n");
}

/* ---- the cluster and its job ---- */

/* A second thread, as the beat of a watchdog; it ends when all is over, as the subject does. */
static const char interpreter[] =
    "import sys, threading, time\n"
    "def beat():\n"
    "    while True: time.sleep(0.005)\n"
    "threading.Thread(target=beat, daemon=True).start()\n"
    "print('ready', flush=True)\n"
    "end = time.monotonic() + 20\n"
    "text = ''\n"
    "while time.monotonic() < end and not any(s in text for s in ('\"fault-recovered\"', "
    "'\"fault-failed\"')):\n"
    "    time.sleep(0.02)\n"
    "    text = open(sys.argv[1]).read()\n"
    "time.sleep(0.1)\n";

static void put_block(const char *text, struct buf *out) {
    for (const char *line = text, *end; (end = strchr(line, '\n')); line = end + 1)
        buf_printf(out, "      %.*s\n", (int)(end - line), line);
}

/* In force for so long where nothing shows it before: what is counted when it is undone must have
 * been there, and a second part must have followed. */
static int patience_ms(const struct fault *f) {
    return f->follow ? 10000 : shows_by(f, EVIDENCE(answers_late)) ? 2500 : 900;
}

static void put_subject(const struct fault_trial *t, const char *program, const char *more,
                        struct buf *out) {
    const struct fault *f = t->fault;
    buf_printf(out, "exec '%s' subject%s%s --patience-ms=%d '{out}/history.jsonl'\n", program,
               fault_has(f, EFFECT_LASTING) ? " --lasts" : "", more, patience_ms(f));
}

/* What the first life of a worker finds on the disk, by the names of the examples. */
static const char saved[] =
    "      [ \"$TORCHELASTIC_RESTART_COUNT\" = 0 ] && for s in 10 20; do\n"
    "        mkdir -p {shared}/ckpt/step-$s; echo step-20 >{shared}/ckpt/latest\n"
    "        for f in weights velocity; do echo $f of step $s >{shared}/ckpt/step-$s/$f.f32; done\n"
    "      done\n";

/* What a subject does besides, so that there is something to strike. */
static const char *does(const struct fault *f) {
    if (shows_by(f, EVIDENCE(file_changed)))
        return " --fails";
    if (shows_by(f, EVIDENCE(disk_failed) | EVIDENCE(disk_slowed) | EVIDENCE(disk_stuck) |
                        EVIDENCE(disk_shortened) | EVIDENCE(disk_late)))
        return " --saves={shared}/ckpt";
    return "";
}

static const char *wants(const struct fault *f) {
    if (shows_by(f, EVIDENCE(node_throttled) | EVIDENCE(cpu_stolen) | EVIDENCE(node_forks_refused) |
                        EVIDENCE(node_out_of_memory)))
        return " --wants";
    if (shows_by(f, EVIDENCE(names_failed) | EVIDENCE(names_wrong)))
        return " --asks=n0";
    return does(f);
}

static void put_job(const struct fault_trial *t, const char *program, struct buf *out) {
    const struct fault *f = t->fault;
    char paces[64];
    snprintf(paces, sizeof(paces), " --paces%s", does(f));
    buf_printf(out, "  run:\n    - sh\n    - -c\n    - |\n%s      [ {node} = n0 ] && ",
               shows_by(f, EVIDENCE(file_changed)) ? saved : "");
    put_subject(t, program, paces, out);
    buf_puts(out, "      ");
    if (shows_by(f, EVIDENCE(lock_held))) {
        buf_puts(out, "exec python3 -c \"$SUBJECT\" '{out}/history.jsonl'\n"
                      "  env:\n    SUBJECT: |\n");
        put_block(interpreter, out);
    } else {
        put_subject(t, program, wants(f), out);
    }
}

static void put_cluster(const struct fault_trial *t, struct buf *out) {
    buf_puts(out,
             has_spare(t->fault) ? "cluster:\n  nodes: 3\n  start: 2\n" : "cluster:\n  nodes: 2\n");
    if (t->fault->targets & TARGET_RACK)
        buf_puts(out, "  racks: [[n0], [n1]]\n");
    if (t->etcd)
        buf_puts(out, "  store: etcd\n");
    if (t->etcd && shows_by(t->fault, EVIDENCE(store_alarm)))
        buf_puts(out, "  store_quota_mb: 16\n");
}

void trial_scenario(const struct fault_trial *t, const char *program, struct buf *out) {
    ARENA_FINI struct arena a = {0};
    buf_printf(out, "scenario: %s\n", t->name);
    put_cluster(t, out);
    buf_printf(
        out,
        "job:\n  nnodes: \"1:%d\"\n  max_restarts: 100\n"
        "  rdzv_conf: {profile: fast, hb: 300ms, fence: 2s, hard: 2100ms, suspect: 2300ms}\n",
        has_spare(t->fault) ? 3 : 2);
    put_job(t, program, out);
    /* Without their store agents wait for it at the end of the job, and nothing more is to come. */
    buf_printf(out, "limits: {start: 15s, stall: %ds, total: 30s}\ntimeline:\n",
               fault_has(t->fault, EFFECT_ENDS_STORE) ? 4 : 15);
    put_entry(t, &a, out);
}
