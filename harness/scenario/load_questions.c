/* Loads what a scenario asks in its own words: checks, probes and expected lines. */
#include "base/str.h"
#include "harness/scenario/load.h"
#include "harness/scenario/pattern.h"
#include "harness/scenario/target.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- checks of the user's own ---- */

enum { CHECKS_MAX = 8 };

static void read_check_name(struct reader *r, const struct key *k, const struct yaml *n,
                            void *out) {
    static const char allowed[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.";
    struct own_check *c = out;
    if (!reader_is_scalar(r, k, n))
        return;
    if (!*n->text || strspn(n->text, allowed) != strlen(n->text) || strlen(n->text) > 40)
        diagnostics_add(r->d, n->place,
                        "name: \"%s\" must be letters, digits, - _ or ., 40 at most", n->text);
    c->name = n->text;
}

static void read_program(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    struct own_check *c = out;
    if (reader_words(r, k, n, &c->program, &c->program_n) && (!c->program_n || !*c->program[0]))
        diagnostics_add(r->d, n->place, "program is empty; %s", k->example);
}

#define AT(member) .offset = offsetof(struct own_check, member)

const struct section section_checks = {
    "checks",
    "A program of your own that judges a run. It is started when the run is judged, in the "
    "directory and environment of the caller, with the history on its standard input, one JSON "
    "object a line (`rankquake schema history`), and prints one JSON object: {\"status\": "
    "\"pass\", \"fail\", \"unknown\" or \"skip\", \"seen\": a sentence, \"expected\": a "
    "sentence, \"evidence\": [the seq of records that show it]}. When it crashes, ends with "
    "another "
    "status than 0, says nothing that can be read or takes too long, the answer is unknown. "
    "RANKQUAKE_RUN names the run directory.",
    (const struct key[]){
        {"name", "a name", "(the program's)", "What it is called in reports.", "name: no-nan",
         read_check_name, .form = "<name>"},
        {"program", "a list of words", NULL, "The program and its arguments.",
         "program: [python3, no_nan.py]", read_program, .required = true, .form = "[<scalar>]"},
        {"within", "a duration", "30s", "How long it may take.", "within: 2m", reader_duration,
         AT(within_ns), .min = 1},
        {0},
    },
};

static bool is_taken(const struct own_check *v, size_t n, const char *name) {
    for (size_t i = 0; i < n; i++)
        if (str_eq(v[i].name, name))
            return true;
    return false;
}

void load_checks(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    struct scenario *s = out;
    if (n->type != YAML_LIST || n->length > CHECKS_MAX) {
        diagnostics_add(r->d, n->place, "checks must be %s, %d at most", k->type, CHECKS_MAX);
        return;
    }
    struct own_check *v = arena_array(r->arena, struct own_check, n->length + 1);
    size_t used = 0;
    yaml_each(it, n) {
        struct own_check *c = &v[used];
        c->place = it->place;
        reader_section(r, &section_checks, it, c);
        if (!c->name && c->program_n)
            c->name = str_base(c->program[c->program_n > 1 ? 1 : 0]);
        if (c->name && is_taken(v, used, c->name))
            diagnostics_add(r->d, it->place, "checks: there are two of the name \"%s\"", c->name);
        c->label = arena_printf(r->arena, "own:%s", c->name ? c->name : "");
        used++;
    }
    s->checks = v;
    s->checks_n = used;
}

#undef AT

/* ---- probes ---- */

enum { PROBES_MAX = 16 };

static const char *const signs[] = {"<=", ">=", "==", "<", ">", NULL};

/* "< 3" into its sign and number; a number alone is "== 3". */
static bool read_bound(const char *text, const char **ret_sign, double *ret) {
    char *end;
    *ret_sign = "==";
    for (size_t i = 0; signs[i]; i++)
        if (str_starts(text, signs[i])) {
            *ret_sign = signs[i];
            text += strlen(signs[i]);
            break;
        }
    *ret = strtod(text, &end);
    return end != text && !*end && *ret == *ret;
}

static bool read_range(const char *text, double *ret_low, double *ret_high) {
    const char *dots = strstr(text, "..");
    char low[40], *end;
    if (!dots || (size_t)(dots - text) >= sizeof(low))
        return false;
    snprintf(low, sizeof(low), "%.*s", (int)(dots - text), text);
    *ret_low = strtod(low, &end);
    if (end == low || *end)
        return false;
    *ret_high = strtod(dots + 2, &end);
    return end != dots + 2 && !*end && *ret_low <= *ret_high;
}

/* What stands between the slashes, or NULL: it is no expression. */
static char *expression_of(const char *text) {
    size_t n = strlen(text);
    return n > 2 && *text == '/' && text[n - 1] == '/' ? strndup(text + 1, n - 2) : NULL;
}

static bool last_number(const char *said, double *ret) {
    size_t n = strlen(said);
    char word[64], *end;
    while (n && strchr(" \t\r\n", said[n - 1]))
        n--;
    size_t from = n;
    while (from && !strchr(" \t\r\n", said[from - 1]))
        from--;
    if (n == from || n - from >= sizeof(word))
        return false;
    snprintf(word, sizeof(word), "%.*s", (int)(n - from), said + from);
    *ret = strtod(word, &end);
    return !*end && *ret == *ret;
}

static bool compare(double v, const char *sign, double bound) {
    return str_eq(sign, "<")    ? v < bound
           : str_eq(sign, "<=") ? v <= bound
           : str_eq(sign, ">")  ? v > bound
           : str_eq(sign, ">=") ? v >= bound
                                : !(v < bound) && !(v > bound);
}

bool tolerance_fits(const char *tolerance, const char *said) {
    double low, high, v;
    const char *sign;
    char *expression = tolerance ? expression_of(tolerance) : NULL;
    if (!tolerance)
        return true;
    if (expression) {
        struct pattern *p = pattern_new(expression, NULL);
        bool found = p && pattern_match(p, said, NULL);
        pattern_free(p);
        free(expression);
        return found;
    }
    if (!last_number(said, &v))
        return false;
    if (read_range(tolerance, &low, &high))
        return v >= low && v <= high;
    return read_bound(tolerance, &sign, &low) && compare(v, sign, low);
}

bool tolerance_is_numeric(const char *tolerance) {
    double low, high;
    const char *sign;
    return read_range(tolerance, &low, &high) || read_bound(tolerance, &sign, &low);
}

static void read_cmd(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    struct own_probe *p = out;
    if (!reader_words(r, k, n, &p->cmd, &p->cmd_n))
        return;
    if (!p->cmd_n || !*p->cmd[0])
        diagnostics_add(r->d, n->place, "cmd is empty; %s", k->example);
    for (size_t i = 0; i < p->cmd_n; i++)
        reader_check_placeholders(r, p->cmd[i], n->place);
}

static void read_url(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    struct own_probe *p = out;
    if (!reader_is_scalar(r, k, n))
        return;
    const char *colon = strstr(n->text, "://"), *host = colon ? colon + 3 : "";
    if ((!str_starts(n->text, "http://") && !str_starts(n->text, "https://")) || !*host ||
        strchr("/:?#", *host))
        diagnostics_add(r->d, n->place, "%s must be %s, such as http://n0:8080/health, not \"%s\"",
                        k->name, k->type, n->text);
    reader_check_placeholders(r, n->text, n->place);
    p->url = n->text;
}

/* The words of harness/observe/metric.h, by which it is looked for. */
static void read_metric(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    static const char label[] = " *[a-zA-Z_][a-zA-Z0-9_]* *= *\"([^\"\\\\]|\\\\.)*\" *";
    if (!reader_is_scalar(r, k, n))
        return;
    const char *form = arena_printf(
        r->arena, "^ *[a-zA-Z_:][a-zA-Z0-9_:]* *([{](%s,)*(%s)? *[}])? *$", label, label);
    struct pattern *p = pattern_new(form, NULL);
    assert(p);
    if (!pattern_match(p, n->text, NULL))
        diagnostics_add(r->d, n->place,
                        "metric must be %s, such as up or requests_total{code=\"200\"}, not \"%s\"",
                        k->type, n->text);
    pattern_free(p);
    ((struct own_probe *)out)->metric = n->text;
}

static void read_on_node(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    int64_t number;
    if (!reader_is_scalar(r, k, n))
        return;
    if (*n->text != 'n' || !str_to_i64(n->text + 1, 0, r->s->cluster.nodes - 1, &number))
        diagnostics_add(r->d, n->place, "on must be %s, n0 to n%d, not \"%s\"", k->type,
                        r->s->cluster.nodes - 1, n->text);
    ((struct own_probe *)out)->on = n->text;
}

static void read_tolerance(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    struct err err = {0};
    if (!reader_is_scalar(r, k, n))
        return;
    char *expression = expression_of(n->text);
    struct pattern *p = expression ? pattern_new(expression, &err) : NULL;
    if (expression && !p)
        diagnostics_add(r->d, n->place, "tolerance: %s", err.msg);
    else if (!expression && !tolerance_is_numeric(n->text))
        diagnostics_add(r->d, n->place, "tolerance must be %s, not \"%s\"", k->type, n->text);
    ((struct own_probe *)out)->tolerance = n->text;
    pattern_free(p);
    free(expression);
}

#define AT(member) .offset = offsetof(struct own_probe, member)

const struct section section_probe = {
    "probe",
    "A question that is asked while the job runs, from steady state on, by exactly one of cmd, "
    "http and prometheus: as in Chaos Toolkit, what must hold before, and again after, the faults. "
    "Each answer goes into the history, as a claim (source user); expect.probe says what they must "
    "be. A command runs on the host, or in the namespaces of a node, in the directory and "
    "environment of the caller. An answer is outside every tolerance when the command ends with "
    "another status than 0 or takes too long, when the server does not answer or answers without a "
    "status of 2xx, and when the metric is missing or not a number. Nobody asks during the control "
    "run.",
    (const struct key[]){
        {"cmd", "a list of words", NULL,
         "The command; placeholders as in job.run. RankQuake's own programs, rankrun among them, "
         "are found without a path; what `rankrun status` answers is compared with what was "
         "seen (check said).",
         "cmd: [curl, -sf, 'http://n0:8080/health']", read_cmd, .form = "[<scalar>]"},
        {"http", "a URL", NULL,
         "A page to get; its body is the answer. Nodes, and store, are known by their names; no "
         "redirects, no proxy; placeholders as in job.run.",
         "probe: {served: {http: 'http://n0:8080/health'}}", read_url, .form = "<url>"},
        {"prometheus", "a URL", NULL,
         "Likewise, a page of metrics in the format that Prometheus scrapes. The answer is the "
         "value "
         "of metric.",
         "probe: {served: {prometheus: 'http://store:29400/metrics', metric: rankrun_job_round}}",
         read_url, .form = "<url>"},
        {"metric", "a metric", NULL,
         "Which number of the page: a name, and as many labels as tell it from the others.",
         "probe: {served: {prometheus: 'http://n0:9090/metrics', metric: 'up{job=\"x\"}'}}",
         read_metric, .form = "<text>"},
        {"on", "a node", "(for cmd the host, else the node that the URL names, else the host)",
         "Where it is asked: in that node's network; a command also with its files and its name.",
         "on: n0", read_on_node, .form = "<node>"},
        {"every", "a duration", "1s", "From one question to the next; never two at a time.",
         "every: 500ms", reader_duration, AT(every_ns), .min = 50000000},
        {"until", "a duration", "(the job's end)", "How long after steady state it is asked.",
         "until: 30s", reader_duration, AT(until_ns), .min = 1},
        {"within", "a duration", "5s", "How long an answer may take.", "within: 500ms",
         reader_duration, AT(within_ns), .min = 1},
        {"tolerance", "/a regular expression/, a number, a bound such as >= 3, or a range 1..5",
         "(any answer)", "What the answer must be. Numbers are compared with its last word.",
         "tolerance: '>= 3'", read_tolerance, .form = "<scalar>"},
        {0},
    },
    .one_of = "cmd http prometheus",
};

static void load_probe(struct reader *r, const struct yaml *n, struct own_probe *p) {
    int before = r->d->errors;
    p->name = n->key;
    p->place = n->key_place;
    reader_section(r, &section_probe, n, p);
    bool page = yaml_get(n, "prometheus");
    if (r->d->errors > before)
        return;
    if ((yaml_get(n, "cmd") != NULL) + (yaml_get(n, "http") != NULL) + page != 1)
        diagnostics_add(r->d, p->place, "probe.%s: give one of cmd, http and prometheus", p->name);
    else if (page != (p->metric != NULL))
        diagnostics_add(
            r->d, p->place,
            page ? "probe.%s: a page of metrics has many numbers; name one by metric"
                 : "probe.%s: metric stands for a number of a page that prometheus names",
            p->name);
}

void load_probes(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    struct scenario *s = out;
    if (n->type != YAML_MAP || n->length > PROBES_MAX) {
        diagnostics_add(r->d, n->place, "probe must be %s, %d at most", k->type, PROBES_MAX);
        return;
    }
    struct own_probe *v = arena_array(r->arena, struct own_probe, n->length + 1);
    size_t used = 0;
    yaml_each(it, n) load_probe(r, it, &v[used++]);
    s->probes = v;
    s->probes_n = used;
}

void load_probe_expects(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    struct expect *e = out;
    if (n->type != YAML_MAP || !n->length) {
        diagnostics_add(r->d, n->place, "probe must be %s", k->type);
        return;
    }
    struct probe_expect *v = arena_array(r->arena, struct probe_expect, n->length + 1);
    size_t used = 0;
    yaml_each(it, n) {
        struct probe_expect *x = &v[used];
        x->name = it->key;
        x->place = it->key_place;
        x->always = it->type == YAML_SCALAR && str_eq(it->text, "always");
        if (x->always || (it->type == YAML_SCALAR && str_eq(it->text, "steady")) ||
            reader_time(r, k, it, &x->settle_ns))
            used++;
    }
    e->probes = v;
    e->probes_n = used;
}

/* ---- lines ---- */

enum { LOGS_MAX = 20 };

static const char *const counts[] = {"never", "once", "seen", NULL};

static void read_line(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    struct log_expect *x = out;
    x->pattern = reader_line(r, k, n);
    for (int i = 0; counts[i]; i++)
        if (str_eq(counts[i], k->name))
            x->count = (enum log_count)i;
}

static bool may_exist(const struct reader *r, const struct target_spec *on) {
    int64_t node = 0;
    const struct scenario *s = r->s;
    if (on->pick == PICK_RANK)
        return on->rank < s->cluster.nodes * job_ranks_per_node(&s->job);
    if (on->pick == PICK_NAMED)
        return str_to_i64(on->node + 1, 0, s->cluster.nodes - 1, &node) &&
               on->local_rank < job_ranks_per_node(&s->job);
    return true;
}

static void read_on(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    struct target_spec *on = &((struct log_expect *)out)->on;
    if (!reader_is_scalar(r, k, n))
        return;
    if (target_parse(r->arena, n->text, on, NULL) || on->node_of_rank || on->rack ||
        (on->pick != PICK_ALL && on->pick != PICK_NAMED && on->pick != PICK_RANK))
        diagnostics_add(r->d, n->place, "on must be %s, not \"%s\"", k->type, n->text);
    else if (!may_exist(r, on))
        diagnostics_add(r->d, n->place, "on: there is no %s in this scenario", n->text);
    on->text = n->text;
    on->place = n->place;
}

static void read_after(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    if (reader_is_scalar(r, k, n) && reader_id(r, k, n->text, n->place) >= 0)
        ((struct log_expect *)out)->after = n->text;
}

#undef AT
#define AT(member) .offset = offsetof(struct log_expect, member)
#define LINE       "a regular expression"

const struct section section_log = {
    "log",
    "What programs print, on standard output or standard error, and how often: exactly one of "
    "never, once and seen. Expressions are those of observe, and are matched against each line, of "
    "which the first 4096 bytes count. A line counts at the moment at which it is read, some "
    "milliseconds after it was printed. A progress bar that is drawn again counts as another line. "
    "Each worker then writes into a file of its own, logs/NODE/rank-R.log in the run directory, "
    "unless every line is of agents or the store and the launcher's options (--tee, --redirects, "
    "--log-dir) say where its output goes: what --tee shows of it is then among its agent's lines. "
    "What matches goes into the history, as a claim of the job or the launcher. Nothing is "
    "expected of the control run.",
    (const struct key[]){
        {"never", LINE, NULL, "No line may match.", "log: [{never: '/loss is nan/'}]", read_line,
         .form = "<line>"},
        {"once", LINE, NULL, "Exactly one line must match.",
         "log: [{once: /final loss/, on: rank 0}]", read_line, .form = "<line>"},
        {"seen", LINE, NULL, "At least one line must match.",
         "log: [{seen: /resuming from step/, after: dark, within: 5s}]", read_line,
         .form = "<line>"},
        {"on", "nodes, workers, agents, store, n2, n2/0 or rank 0", "(all of them)",
         "Who prints it: n2 is its agent and its workers. What a template's or torchrun's agent "
         "prints is its launcher's output.",
         "log: [{never: /error/, on: agents}]", read_on,
         .form = "nodes | workers | agents | store | <target>"},
        {"after", "the id of an entry of the timeline", "(the beginning)",
         "Only lines count that come once that fault is in force, the first time, or healed.",
         "log: [{never: /step 1$/, after: dark}]", read_after, .form = "<id>"},
        {"within", "a duration", "(the end)",
         "Only lines count that come so soon after it; without after: after steady state.",
         "log: [{seen: /joined/, after: dark, within: 10s}]", reader_duration, AT(within_ns),
         .min = 1},
        {0},
    },
    .one_of = "never once seen",
};

static void load_log_expect(struct reader *r, const struct yaml *n, struct log_expect *x) {
    int given = 0, before = r->d->errors;
    x->place = n->place;
    reader_section(r, &section_log, n, x);
    for (int i = 0; counts[i]; i++)
        given += yaml_get(n, counts[i]) != NULL;
    if (given != 1 && r->d->errors == before)
        diagnostics_add(r->d, n->place, "log: give one of never, once and seen, such as %s",
                        "{never: /Traceback/}");
}

void load_log_expects(struct reader *r, const struct key *k, const struct yaml *n, void *out) {
    struct expect *e = out;
    bool list = n->type == YAML_LIST;
    if ((!list && n->type != YAML_MAP) || n->length > LOGS_MAX) {
        diagnostics_add(r->d, n->place, "log must be %s, %d at most", k->type, LOGS_MAX);
        return;
    }
    struct log_expect *v = arena_array(r->arena, struct log_expect, n->length + 1);
    if (!list)
        load_log_expect(r, n, &v[e->logs_n++]);
    yaml_each(it, list ? n : NULL) load_log_expect(r, it, &v[e->logs_n++]);
    e->logs = v;
}
