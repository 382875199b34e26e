#include "harness/history/history_kinds.h"

#include "base/str.h"

#include <errno.h>

/* Short names keep a row a line. */
#define F(name, type)                                                                              \
    { name, FIELD_##type, FIELD_MAY }
#define MUST(name, type)                                                                           \
    { name, FIELD_##type, FIELD_MUST }
#define ONE(name, type)                                                                            \
    { name, FIELD_##type, FIELD_ONE }
#define FIELDS(...) ((const struct history_field[]){__VA_ARGS__, {0}})
#define NODE        MUST("node", TEXT)
#define WHO         NODE, MUST("pid", INT)
#define STRUCK                                                                                     \
    WHO, F("verdict", TEXT), F("path", TEXT), F("op", TEXT), F("error", TEXT), F("by", TEXT)
#define FAULT MUST("id", TEXT), F("n", INT)
/* What an impairment did to frames, by their receiver: faults/mechanism/impairment.h. */
#define DONE_TO                                                                                    \
    F("delayed_to", MAP), F("lost_to", MAP), F("duplicated_to", MAP), F("reordered_to", MAP),      \
        F("corrupted_to", MAP), F("throttled_to", MAP), F("oversize_to", MAP), F("reset_to", MAP), \
        F("refused_to", MAP), F("blocked_to", MAP), F("hushed_to", MAP),                           \
        F("answers_lost_to", MAP), F("names_failed_to", MAP), F("names_wrong_to", MAP)
#define INHERITED                                                                                  \
    F("umask", INT), F("blocked", LIST), F("ignored", LIST), F("limits", MAP), F("nice", INT),     \
        F("policy", INT), F("oom_score_adj", INT), F("cgroup", TEXT)
#define ENDED ONE("code", INT), ONE("signal", INT)

const struct history_kind history_kinds[] = {
    {SOURCE_HARNESS, "calibration", "how long a small fixed computation took, each time",
     FIELDS(MUST("at", TEXT), MUST("wall_ns", LIST), F("processors", INT), F("cpu_ns", INT),
            F("sum", INT))},
    {SOURCE_HARNESS, "clock", "by how much the clock of a node's host is ahead of the harness's",
     FIELDS(NODE, MUST("host", TEXT), MUST("ahead_ns", INT), MUST("bound_ns", INT),
            F("round_ns", INT), F("samples", INT), F("steps", INT))},
    {SOURCE_HARNESS, "clock-step", "the clock of a node's host, or the harness's, has been set",
     FIELDS(NODE, MUST("host", TEXT), MUST("was_ns", INT), MUST("ahead_ns", INT),
            MUST("bound_ns", INT))},
    {SOURCE_HARNESS, "control", "what the control run gave",
     FIELDS(F("model", TEXT), F("label", TEXT), F("step_ns", INT), F("pace_ns", INT),
            F("first_step", INT), F("last_step", INT), F("loss", NUMBER), F("kept", INT),
            F("saved", INT), F("saved_gap", INT), F("workers", INT), F("named", INT),
            F("cached", BOOL), F("dir", TEXT), F("error", TEXT))},
    {SOURCE_HARNESS, "control-weights",
     "the weights that the control run's workers told after step `from` and those that follow",
     FIELDS(MUST("from", INT), MUST("weights", LIST))},
    {SOURCE_HARNESS, "dead-man",
     "it had been silent for so long that a node or the wire undid what lasted",
     FIELDS(MUST("who", TEXT), MUST("silent_ns", INT), F("undone", LIST))},
    {SOURCE_HARNESS, "fault-failed", "a fault could not be brought in force",
     FIELDS(FAULT, MUST("error", TEXT))},
    {SOURCE_HARNESS, "fault-fired", "the trigger of a fault came true",
     FIELDS(FAULT, F("fault", TEXT), F("on", LIST), F("shape", TEXT), F("groups", TEXT),
            F("profile", LIST), F("step", INT), F("done", INT), F("lag_ns", INT), F("held", BOOL))},
    {SOURCE_HARNESS, "fault-in-force", "inject has returned; t0 is when",
     FIELDS(FAULT, F("fault", TEXT), F("t0", INT), F("ends_node", BOOL), F("effects", LIST),
            F("signal", INT), F("targets", LIST))},
    {SOURCE_HARNESS, "fault-not-fired", "its moment did not come", FIELDS(FAULT, F("why", TEXT))},
    {SOURCE_HARNESS, "fault-recovered", "what lasted was ended", FIELDS(FAULT, F("error", TEXT))},
    {SOURCE_HARNESS, "fault-unfelt", "nothing showed that it was felt, and what may be the reason",
     FIELDS(FAULT, F("on", TEXT), MUST("why", TEXT))},
    {SOURCE_HARNESS, "given", "what a node's launcher is given when it is started",
     FIELDS(NODE, MUST("env", MAP), F("cwd", TEXT), INHERITED)},
    {SOURCE_HARNESS, "heal-idle", "a heal found nothing to end",
     FIELDS(MUST("id", TEXT), MUST("of", TEXT), MUST("why", TEXT))},
    {SOURCE_HARNESS, "heard",
     "how much of what an agent has printed was looked through for what it says of the job",
     FIELDS(NODE, MUST("lines", INT), MUST("said", INT), F("whole", BOOL))},
    {SOURCE_HARNESS, "health", "what is left on the host after the last node is down",
     FIELDS(MUST("left", LIST), MUST("complete", BOOL), F("cpu_ns", INT))},
    {SOURCE_HARNESS, "interrupted", "somebody ended the run, or its time was up",
     FIELDS(F("signal", INT), F("why", TEXT))},
    {SOURCE_HARNESS, "job-end", "the job is over: ended, limit, interrupted, error",
     FIELDS(MUST("why", TEXT), F("error", TEXT))},
    {SOURCE_HARNESS, "kept", "the cluster stays up", FIELDS(F("dir", TEXT))},
    {SOURCE_HARNESS, "by-hand", "somebody has asked for this while the run went on",
     FIELDS(F("line", TEXT), F("error", TEXT))},
    {SOURCE_HARNESS, "paused", "the run stands still, at its start or at a step",
     FIELDS(F("step", INT))},
    {SOURCE_HARNESS, "resumed", "it goes on", FIELDS(F("ns", INT))},
    {SOURCE_HARNESS, "lag",
     "the harness was late by up to max_ns in the window before t; without why and by more than 2 "
     "s "
     "it was away",
     FIELDS(MUST("max_ns", INT), MUST("window_ns", INT), F("why", TEXT))},
    {SOURCE_HARNESS, "limit", "start, stall or total was passed",
     FIELDS(MUST("name", TEXT), F("ns", INT), F("hang", TEXT))},
    {SOURCE_HARNESS, "lines", "how many lines were read, and matched what is expected of them",
     FIELDS(MUST("worker_lines", INT), MUST("program_lines", INT), MUST("patterns", LIST))},
    {SOURCE_HARNESS, "node-down", "a node is off: killed, or at the end",
     FIELDS(NODE, F("why", TEXT))},
    {SOURCE_HARNESS, "node-up", "a node is on; host: what its host calls itself, if it has one",
     FIELDS(NODE, F("addr", TEXT), F("host", TEXT))},
    {SOURCE_HARNESS, "observed", "what came of reading what the job printed",
     FIELDS(F("lines", INT), F("late_lines", INT), F("cut_lines", INT), F("skipped_bytes", INT),
            F("thinned", INT), F("buffered", INT), F("patterns", LIST), F("wanted", LIST))},
    {SOURCE_HARNESS, "power",
     "a host has lost its power, or has begun anew with it, by the operator's commands; or why not",
     FIELDS(NODE, MUST("host", TEXT), MUST("do", TEXT), F("took_ns", INT), F("error", TEXT))},
    {SOURCE_HARNESS, "quiet", "nothing has happened for so long",
     FIELDS(F("ns", INT), F("limit", TEXT), F("left_ns", INT))},
    {SOURCE_HARNESS, "run", "the first line",
     FIELDS(MUST("v", INT), F("scenario", TEXT), F("file", TEXT), F("seed", INT),
            F("version", TEXT), F("program", TEXT), F("launcher", TEXT), F("control", BOOL),
            F("kernel", TEXT), F("isolation", TEXT), F("exits", TEXT), F("set", LIST),
            F("untrusted", BOOL), F("fixed_ranks", BOOL))},
    {SOURCE_HARNESS, "scarce", "a limit of the host may have been in the job's way",
     FIELDS(F("what", TEXT), F("limit", INT), F("used", INT), MUST("why", TEXT))},
    {SOURCE_HARNESS, "scheduler-read",
     "what a scheduler has said of a node to our own client, for evidence",
     FIELDS(FAULT, MUST("on", TEXT), MUST("what", TEXT), MUST("when", TEXT), ONE("number", INT),
            ONE("error", TEXT), F("took_ns", INT))},
    {SOURCE_HARNESS, "signals", "whether the kernel tells of signals here, and if not why",
     FIELDS(MUST("seen", BOOL), F("why", TEXT))},
    {SOURCE_HARNESS, "steady", "every worker of round 1 has made a step", FIELDS({0})},
    {SOURCE_HARNESS, "store-read", "what our own client has read in a store, for evidence",
     FIELDS(FAULT, MUST("on", TEXT), MUST("what", TEXT), MUST("when", TEXT), ONE("number", INT),
            ONE("error", TEXT), F("took_ns", INT))},
    {SOURCE_HARNESS, "store-said", "whom a fault on who leads means, as the store says",
     FIELDS(FAULT, F("who", TEXT), ONE("node", TEXT), ONE("error", TEXT), F("term", INT),
            F("took_ns", INT))},
    {SOURCE_HARNESS, "unwatched", "nobody reads what it prints",
     FIELDS(NODE, F("pid", INT), F("why", TEXT))},

    {SOURCE_KERNEL, "agent-exit", "a node's launcher has ended", FIELDS(WHO, ENDED)},
    {SOURCE_KERNEL, "agent-start", "a node's launcher has begun", FIELDS(WHO)},
    {SOURCE_KERNEL, "devices", "who computes on the devices of the nodes",
     FIELDS(MUST("at", TEXT), F("round", INT), F("devices", LIST), F("open", LIST), F("nodes", MAP),
            F("error", TEXT), F("took_ns", INT))},
    {SOURCE_KERNEL, "disk-call",
     "a fault on a disk has struck a system call: failed, slowed or stuck; the first of each fault",
     FIELDS(STRUCK)},
    {SOURCE_KERNEL, "fault-evidence", "a fault was felt",
     FIELDS(FAULT, F("what", TEXT), F("by", TEXT), F("count", INT), F("address", INT),
            F("before", INT), F("after", INT), F("monotonic_ns", INT), F("boottime_ns", INT),
            F("path", TEXT))},
    {SOURCE_KERNEL, "file-call", "a process of a worker was about to do this to a file, and waited",
     FIELDS(WHO, MUST("id", TEXT), F("op", TEXT), F("path", TEXT), F("to", TEXT), F("bytes", INT),
            F("by", INT))},
    {SOURCE_KERNEL, "given",
     "what a worker was given: names of variables, each with a mark for its value",
     FIELDS(WHO, ONE("env", MAP), ONE("error", TEXT), F("cwd", TEXT), F("fds", LIST),
            F("leads_group", BOOL), F("leads_session", BOOL), F("terminal", BOOL), INHERITED)},
    {SOURCE_KERNEL, "held",
     "who waited for a fault still did when it had come in force, and in which call",
     FIELDS(WHO, FAULT, F("by", INT), F("thread", INT), F("state", TEXT), F("call", INT),
            F("name", TEXT))},
    {SOURCE_KERNEL, "leftovers", "what is left in a node after its agent has ended",
     FIELDS(NODE, MUST("processes", LIST), MUST("ports", LIST), MUST("shm", LIST),
            F("shm_ids", LIST), MUST("cgroups", LIST))},
    {SOURCE_KERNEL, "listening", "what had MASTER_PORT at an end when the group had formed",
     FIELDS(NODE, F("port", INT), F("round", INT), F("found", LIST))},
    {SOURCE_KERNEL, "processor",
     "what the main thread of an agent, a helper or a store has had of the processors, and for how "
     "long it was ready and had none: when all workers have made a step, and when the next thing "
     "happens",
     FIELDS(WHO, MUST("who", TEXT), MUST("moment", TEXT), MUST("ran_ns", INT),
            MUST("waited_ns", INT))},
    {SOURCE_KERNEL, "shared-memory",
     "what a process and those that it had started had of /dev/shm when a fault was about to end "
     "it",
     FIELDS(WHO, FAULT, MUST("held", LIST))},
    {SOURCE_KERNEL, "signal", "a worker, or a process of the group that it leads, was sent one",
     FIELDS(WHO, MUST("worker", INT), MUST("signal", INT), F("by", INT), MUST("who", TEXT))},
    {SOURCE_KERNEL, "signal-group", "who was in a worker's group when it was told to end",
     FIELDS(WHO, MUST("members", LIST))},
    {SOURCE_KERNEL, "socket-drops",
     "what was dropped at sockets that are cut, and what passed them; by table: by a filter of the "
     "host's packets",
     FIELDS(NODE, F("dropped_in", INT), F("dropped_out", INT), F("cut_to", MAP),
            F("passed_to", MAP), F("by", TEXT))},
    {SOURCE_KERNEL, "store-exit", "a program that serves the store has ended", FIELDS(WHO, ENDED)},
    {SOURCE_KERNEL, "store-start", "a program that serves the store has begun", FIELDS(WHO)},
    {SOURCE_KERNEL, "system-call", "a process of a worker was about to make this call, and waited",
     FIELDS(WHO, MUST("id", TEXT), MUST("call", TEXT), F("by", INT))},
    {SOURCE_KERNEL, "usage", "what agent, its helpers, store and workers hold in a round",
     FIELDS(WHO, F("round", INT), F("who", TEXT), F("rank", INT), F("step", INT),
            F("processes", INT), F("rss", INT), F("threads", INT), F("fds", INT), F("kinds", MAP))},
    {SOURCE_KERNEL, "worker-exit", "a worker has ended; unknown: nobody could tell how",
     FIELDS(WHO, ENDED, ONE("unknown", BOOL))},

    {SOURCE_WIRE, "fault-evidence", "frames were dropped, delayed or changed",
     FIELDS(FAULT, F("what", TEXT), F("dropped_in", INT), F("dropped_out", INT), F("fewest", INT),
            F("count", INT))},
    {SOURCE_WIRE, "store-request",
     "a node was about to ask the store for this, and may have waited",
     FIELDS(NODE, MUST("id", TEXT), MUST("operation", TEXT), F("to", TEXT))},
    {SOURCE_WIRE, "wire", "what has passed a node's port",
     FIELDS(NODE, F("frames_in", INT), F("bytes_in", INT), F("frames_out", INT),
            F("bytes_out", INT), F("dropped_in", INT), F("dropped_out", INT),
            F("data_bytes_out", INT), F("cut_to", MAP), F("passed_to", MAP), F("bytes_to", MAP),
            DONE_TO)},

    {SOURCE_DISK, "checkpoints",
     "what lies in the directory when `round` has ended, the last one counts",
     FIELDS(MUST("round", INT), F("dir", TEXT), F("newest", INT), ONE("complete", LIST),
            F("damaged", LIST), F("drafts", INT), ONE("error", TEXT))},
    {SOURCE_DISK, "disk-call",
     "a disk of ours has had an operation fail, wait or be made in part, as a fault has it; the "
     "first of each fault",
     FIELDS(STRUCK)},
    {SOURCE_DISK, "worker-file", "what a worker's output, or its error file, is when somebody ends",
     FIELDS(WHO, MUST("what", TEXT), MUST("when", TEXT), F("path", TEXT), MUST("bytes", INT),
            MUST("mark", TEXT), MUST("linked", BOOL))},
    {SOURCE_DISK, "fault-evidence",
     "what a store or a disk keeps is not what it was, as we have read it",
     FIELDS(FAULT, F("what", TEXT), F("before", INT), F("after", INT), F("slowest_ns", INT),
            F("path", TEXT), F("was", TEXT), F("is", TEXT), F("count", INT), F("by", TEXT))},

    {SOURCE_PROBE, "fault-evidence", "what programs were told of the time",
     FIELDS(FAULT, F("what", TEXT), F("program", TEXT), F("told", INT), F("ahead_least", INT),
            F("ahead_most", INT))},
    {SOURCE_PROBE, "exec-failed", "the worker's command could not be executed",
     FIELDS(WHO, F("error", TEXT))},
    {SOURCE_PROBE, "worker-exec", "the worker's command runs", FIELDS(WHO)},
    {SOURCE_PROBE, "worker-start", "a worker was started, and what it was given",
     FIELDS(WHO, F("argv0", TEXT), MUST("env", MAP), F("below", INT), F("by", TEXT),
            F("output", TEXT), F("output_error", TEXT))},

    {SOURCE_JOB, "checkpoint-begin", "a checkpoint is begun", FIELDS(F("step", INT))},
    {SOURCE_JOB, "checkpoint-commit", "it is complete and durable", FIELDS(F("step", INT))},
    {SOURCE_JOB, "checkpoint-write", "its bytes are written", FIELDS(F("step", INT))},
    {SOURCE_JOB, "done", "the worker has finished", FIELDS(F("model", TEXT))},
    {SOURCE_JOB, "exit-barrier", "all work is done", FIELDS({0})},
    {SOURCE_JOB, "first-collective", "the worker is about to meet the others", FIELDS({0})},
    {SOURCE_JOB, "log", "a line that somebody waits for, or expects something of",
     FIELDS(F("from", TEXT), F("id", TEXT), F("pattern", TEXT), F("line", TEXT))},
    {SOURCE_JOB, "other", "something else", FIELDS(F("said", TEXT))},
    {SOURCE_JOB, "ready", "the worker is set up", FIELDS({0})},
    {SOURCE_JOB, "region", "memory of the worker that a fault may change",
     FIELDS(F("name", TEXT), F("address", INT), F("bytes", INT))},
    {SOURCE_JOB, "resume", "what it goes on from", FIELDS(F("step", INT), F("path", TEXT))},
    {SOURCE_JOB, "samples", "which samples of the data a step has trained on this worker",
     FIELDS(F("step", INT), F("epoch", INT), F("of", INT), F("ids", LIST))},
    {SOURCE_JOB, "step", "a step is applied",
     FIELDS(F("step", INT), F("loss", NUMBER), F("samples", INT), F("shards", LIST),
            F("weights", TEXT))},

    {SOURCE_LAUNCHER, "launcher", "what an agent says of itself",
     FIELDS(F("what", TEXT), F("round", INT), F("of", TEXT), F("rank", INT))},
    {SOURCE_LAUNCHER, "log", "a line that somebody waits for, or expects something of",
     FIELDS(F("from", TEXT), F("id", TEXT), F("pattern", TEXT), F("line", TEXT))},
    {SOURCE_LAUNCHER, "said", "a line in which an agent tells of rounds, failures or the outcome",
     FIELDS(F("from", TEXT), F("line", TEXT))},
    {SOURCE_LAUNCHER, "store-keys", "how many keys the job has in its store",
     FIELDS(F("round", INT), MUST("n", INT))},

    {SOURCE_USER, "answer", "what a probe of the scenario was answered",
     FIELDS(MUST("probe", TEXT), MUST("ok", BOOL), F("value", TEXT), F("status", TEXT),
            F("error", TEXT), F("took_ns", INT))},
    {0},
};

const struct history_kind *history_kind_find(enum source source, const char *name) {
    for (const struct history_kind *k = history_kinds; k->name; k++)
        if (k->source == source && str_eq(k->name, name))
            return k;
    return NULL;
}

/* ---- reading ---- */

static const char *const type_names[] = {"a whole number", "a number", "a text", "true or false",
                                         "a list",         "a map",    NULL};

static bool type_fits(enum field_type type, const struct json *v) {
    switch (type) {
    case FIELD_INT:
        return v->type == JSON_INT;
    case FIELD_NUMBER:
        return v->type == JSON_INT || v->type == JSON_DOUBLE;
    case FIELD_TEXT:
        return v->type == JSON_STRING;
    case FIELD_BOOL:
        return v->type == JSON_BOOL;
    case FIELD_LIST:
        return v->type == JSON_ARRAY;
    case FIELD_MAP:
        return v->type == JSON_OBJECT;
    case FIELD_ANY:
    default:
        return true;
    }
}

/* Which of two would count is nobody's to guess. Fields are few: each is compared with each. */
static const char *given_twice(const struct json *line) {
    json_each(a, line) for (const struct json *b = a->next; b;
                            b = b->next) if (str_eq(a->key, b->key)) return a->key;
    return NULL;
}

static bool is_claim(enum source s) {
    return s == SOURCE_JOB || s == SOURCE_LAUNCHER;
}

int history_kind_check(enum source source, const char *kind, const struct json *line,
                       struct err *err) {
    const struct history_kind *k = is_claim(source) ? NULL : history_kind_find(source, kind);
    bool many = k && line->length > HISTORY_FIELDS_MAX;
    const char *twice = k && !many ? given_twice(line) : NULL;
    bool one = false, any_one = false;
    if (many)
        return err_say(err, -EBADMSG, "it has %zu fields; no record has more than %d", line->length,
                       HISTORY_FIELDS_MAX);
    if (twice)
        return err_say(err, -EBADMSG, "\"%.40s\" is given twice", twice);
    for (const struct history_field *f = k ? k->fields : NULL; f && f->name; f++) {
        const struct json *v = json_get(line, f->name);
        one |= f->need == FIELD_ONE;
        any_one |= f->need == FIELD_ONE && v;
        if (!v && f->need == FIELD_MUST)
            return err_say(err, -EBADMSG, "a %s of the %s must have \"%s\", %s", kind,
                           source_name(source), f->name, type_names[f->type]);
        if (v && !type_fits(f->type, v))
            return err_say(err, -EBADMSG, "\"%s\" of a %s must be %s", f->name, kind,
                           type_names[f->type]);
    }
    if (one && !any_one)
        return err_say(err, -EBADMSG, "a %s of the %s does not say how it came out", kind,
                       source_name(source));
    return 0;
}

/* ---- the schema ---- */

static void put_type(struct json_writer *w, const char *key, enum field_type type) {
    static const char *const names[] = {"integer", "number", "string", "boolean",
                                        "array",   "object", NULL};
    json_object(w, key);
    if (names[type])
        json_put_string(w, "type", names[type]);
    json_end_object(w);
}

static void put_const(struct json_writer *w, const char *key, const char *value) {
    json_object(w, key);
    json_put_string(w, "const", value);
    json_end_object(w);
}

static void put_needs(struct json_writer *w, const struct history_kind *k) {
    bool one = false;
    json_array(w, "required");
    for (const struct history_field *f = k->fields; f->name; f++) {
        one |= f->need == FIELD_ONE;
        if (f->need == FIELD_MUST)
            json_put_string(w, NULL, f->name);
    }
    json_end_array(w);
    if (!one)
        return;
    json_array(w, "anyOf");
    for (const struct history_field *f = k->fields; f->name; f++) {
        if (f->need != FIELD_ONE)
            continue;
        json_object(w, NULL);
        json_array(w, "required");
        json_put_string(w, NULL, f->name);
        json_end_array(w);
        json_end_object(w);
    }
    json_end_array(w);
}

/* A record of this source and kind is of this shape; a claim may be of any. */
static void put_kind(struct json_writer *w, const struct history_kind *k) {
    json_object(w, NULL);
    json_object(w, "if");
    json_object(w, "properties");
    put_const(w, "source", source_name(k->source));
    put_const(w, "kind", k->name);
    json_end_object(w);
    json_end_object(w);
    json_object(w, "then");
    json_put_string(w, "description", k->text);
    json_object(w, "properties");
    for (const struct history_field *f = k->fields; f->name; f++)
        put_type(w, f->name, is_claim(k->source) ? FIELD_ANY : f->type);
    json_end_object(w);
    if (!is_claim(k->source))
        json_put_i64(w, "maxProperties", HISTORY_FIELDS_MAX);
    put_needs(w, k);
    json_end_object(w);
    json_end_object(w);
}

static void put_common(struct json_writer *w) {
    json_object(w, "properties");
    json_object(w, "seq");
    json_put_string(w, "description", "1, 2, 3 ...: rises from line to line");
    json_put_string(w, "type", "integer");
    json_put_i64(w, "minimum", 1);
    json_end_object(w);
    json_object(w, "t");
    json_put_string(w, "description", "nanoseconds of one clock that never goes back");
    json_put_string(w, "type", "integer");
    json_put_i64(w, "minimum", 0);
    json_put_i64(w, "maximum", INT64_MAX / 4);
    json_end_object(w);
    json_object(w, "bound");
    json_put_string(w, "description",
                    "it may have been so many nanoseconds earlier or later: it was stamped by the "
                    "clock of the node's own host");
    json_put_string(w, "type", "integer");
    json_put_i64(w, "minimum", 0);
    json_put_i64(w, "maximum", INT64_MAX / 4);
    json_end_object(w);
    json_object(w, "there");
    json_put_string(w, "description", "that stamp, by that clock");
    json_put_string(w, "type", "integer");
    json_end_object(w);
    json_object(w, "late");
    json_put_string(w, "description",
                    "it may have happened so many nanoseconds before it was stamped there");
    json_put_string(w, "type", "integer");
    json_end_object(w);
    json_object(w, "source");
    json_put_string(w, "description",
                    "who says so: kernel, wire, disk and probe are evidence; job, launcher and "
                    "user are claims; harness is what the recorder itself did");
    json_array(w, "enum");
    for (int s = 0; s < SOURCE_N; s++)
        json_put_string(w, NULL, source_name((enum source)s));
    json_end_array(w);
    json_end_object(w);
    json_object(w, "kind");
    json_put_string(w, "description", "what; kinds that are not listed are kept and not judged");
    json_put_string(w, "type", "string");
    json_put_i64(w, "minLength", 1);
    json_end_object(w);
    json_end_object(w);
}

void history_schema(struct buf *out) {
    struct json_writer w = {.out = out};
    static const char *const needed[] = {"seq", "t", "source", "kind"};
    json_object(&w, NULL);
    json_put_string(&w, "$schema", "http://json-schema.org/draft-07/schema#");
    json_put_string(&w, "title", "a line of history.jsonl");
    json_put_string(&w, "description",
                    "A history is one JSON object a line. The first is of source harness and kind "
                    "run and says v: 1, the version of the format.");
    json_put_string(&w, "type", "object");
    json_array(&w, "required");
    for (size_t i = 0; i < sizeof(needed) / sizeof(*needed); i++)
        json_put_string(&w, NULL, needed[i]);
    json_end_array(&w);
    put_common(&w);
    json_array(&w, "allOf");
    for (const struct history_kind *k = history_kinds; k->name; k++)
        put_kind(&w, k);
    json_end_array(&w);
    json_end_object(&w);
    buf_putc(out, '\n');
}
