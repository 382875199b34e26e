#include "harness/scenario/generate.h"

#include "base/json.h"
#include "base/str.h"
#include "faults/effect.h"
#include "harness/scenario/load.h"

#include <errno.h>
#include <string.h>

enum { NOTES_MAX = 8, NODES_WANTED = 3 };

/* ---- from the command to a cluster ---- */

struct notes {
    struct arena *arena;
    const char **v;
    size_t n;
};

static void note(struct notes *l, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void note(struct notes *l, const char *fmt, ...) {
    BUF_FINI struct buf text = {0};
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    l->v[l->n++] = arena_strdup(l->arena, buf_str(&text));
}

/* As many as the command names; of a range so many that one can be lost and one can join. */
static int choose_nodes(const struct command *c, const struct generate_overrides *w,
                        struct generated *d, struct notes *notes, struct err *err) {
    bool one = !c->has_nnodes || c->standalone || c->max_nodes == 1, fixed = !one;
    fixed = fixed && c->min_nodes == c->max_nodes;
    int most = w->nodes ? w->nodes : one ? 2 : fixed ? c->max_nodes : NODES_WANTED;
    d->min_nodes = one ? 1 : fixed ? most : c->min_nodes;
    if (!one && !fixed && !w->nodes) {
        most = most < c->min_nodes + 1 ? c->min_nodes + 1 : most;
        most = most > c->max_nodes ? c->max_nodes : most;
    }
    if (!fixed && d->min_nodes >= most)
        return err_say(err, -EINVAL,
                       "--nodes %d: the command's --nnodes %d:%d needs %d, and one more to be lost",
                       most, c->min_nodes, c->max_nodes, c->min_nodes);
    d->nodes = most;
    d->spare = fixed;
    if (one && !w->nodes)
        note(notes, "%s: two emulated nodes with nnodes 1:2, so that one can be lost and one join",
             c->standalone ? "--standalone" : "the command is for one node");
    else if (fixed)
        note(notes, "nnodes is fixed at %d: a spare node, n%d, is switched on when one is lost",
             most, most);
    else if (!one && most != c->max_nodes)
        note(notes, "--nnodes %d:%d: %d emulated nodes (--nodes N for another number)",
             c->min_nodes, c->max_nodes, most);
    return 0;
}

/* What the typed launcher would have run a script with stays its interpreter when another launcher
 * takes its place, which would look for one of its own. */
static const char *const *run_under(struct arena *a, const struct command *c,
                                    const char *launcher) {
    size_t words = 0, python = 0, n = 0;
    while (c->run[words])
        words++;
    while (c->python && c->python[python])
        python++;
    if (!launcher || !python || !c->by_python)
        return c->run;
    bool script = str_eq(c->run[0], "-m") || str_ends(c->run[0], ".py"); /* else it is named */
    const char **run = arena_array(a, const char *, python + words + 2);
    for (size_t i = 0; i < python; i++)
        run[n++] = c->python[i];
    if (script)
        run[n++] = "-u";
    for (size_t i = !script; i < words; i++)
        run[n++] = c->run[i];
    return run;
}

int generate(struct arena *a, const struct command *c, const struct generate_overrides *w,
             struct generated *ret, struct err *err) {
    struct notes notes = {.arena = a, .v = arena_array(a, const char *, NOTES_MAX)};
    struct generated d = {.command = c, .launcher = w->launcher, .undone = true, .notes = notes.v};
    int r = choose_nodes(c, w, &d, &notes, err);
    if (r)
        return r;
    d.workers = w->workers ? w->workers : c->workers ? c->workers : 1;
    d.run = run_under(a, c, w->launcher);
    d.max_restarts = c->max_restarts;
    if (c->max_restarts < 0) {
        d.max_restarts = 3;
        note(&notes, "max_restarts 3, as the command does not say (--max-restarts is 0 by itself: "
                     "the first worker that dies ends the job)");
    } else if (c->max_restarts == 0) {
        note(&notes, "--max-restarts 0: the first worker that fails ends the job");
    }
    *ret = d;
    return 0;
}

/* ---- as a file ---- */

static void put_text(struct buf *out, const char *s) {
    struct json_writer w = {out, false};
    json_put_string(&w, NULL, s);
}

/* As a person would write it: quotes only where they are needed. */
static void put_word(struct buf *out, const char *s) {
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=+@%";
    static const char *const meant[] = {"true", "false", "null", "yes", "no",
                                        "on",   "off",   "~",    NULL};
    bool quote = !*s || s[strspn(s, plain)] ||
                 !strchr("abcdefghijklmnopqrstuvwxyz"
                         "ABCDEFGHIJKLMNOPQRSTUVWXYZ./-",
                         *s);
    for (size_t i = 0; meant[i]; i++)
        quote |= str_eq(s, meant[i]);
    quote |= str_eq(s, "-") || str_eq(s, "---") || str_eq(s, "...");
    if (quote)
        put_text(out, s);
    else
        buf_puts(out, s);
}

static void put_list(struct buf *out, const char *key, const char *const *v) {
    buf_printf(out, "%s: [", key);
    for (size_t i = 0; v[i]; i++) {
        buf_puts(out, i ? ", " : "");
        put_word(out, v[i]);
    }
    buf_puts(out, "]\n");
}

static void put_map(struct buf *out, const char *key, const struct pair *v, size_t n) {
    if (!n)
        return;
    buf_printf(out, "%s: {", key);
    for (size_t i = 0; i < n; i++) {
        buf_puts(out, i ? ", " : "");
        put_word(out, v[i].key);
        buf_puts(out, ": ");
        put_word(out, v[i].value);
    }
    buf_puts(out, "}\n");
}

static void put_launcher(const struct generated *d, struct buf *out) {
    const char *const *v = d->command->launcher;
    if (d->launcher) {
        buf_puts(out, "launcher: ");
        put_word(out, d->launcher);
        buf_putc(out, '\n');
    } else if (v && v[1]) {
        put_list(out, "launcher", v);
    } else if (v && !str_eq(v[0], "rankrun")) {
        buf_puts(out, "launcher: ");
        put_word(out, v[0]);
        buf_putc(out, '\n');
    }
}

void generate_text(const struct generated *d, struct buf *out) {
    const struct command *c = d->command;
    buf_printf(out, "cluster: {nodes: %d", d->nodes + d->spare);
    if (d->spare) /* it stays off until it is needed */
        buf_printf(out, ", start: %d", d->nodes);
    buf_puts(out, c->etcd ? ", store: etcd}\n" : "}\n");
    put_launcher(d, out);
    buf_printf(out, "job:\n  nnodes: \"%d:%d\"\n", d->min_nodes, d->nodes);
    if (d->workers != 1)
        buf_printf(out, "  workers_per_node: %d\n", d->workers);
    if (d->max_restarts != 3)
        buf_printf(out, "  max_restarts: %d\n", d->max_restarts);
    if (c->backend) {
        buf_puts(out, "  rdzv_backend: ");
        put_word(out, c->backend);
        buf_putc(out, '\n');
    }
    put_map(out, "  rdzv_conf", c->conf, c->conf_n);
    if (c->args[0])
        put_list(out, "  launcher_args", c->args);
    put_list(out, "  run", d->run);
    put_map(out, "  env", c->env, c->env_n);
    if (d->undone)
        buf_puts(out, "  writes: undone\n");
}

/* ---- with what --set says ---- */

/* What was unquoted stays so, for a number in quotes is a text; but for what only stood alone. */
static void put_scalar(const struct yaml *n, struct buf *out) {
    static const char plain[] =
        "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./+";
    if (yaml_is_null(n))
        buf_putc(out, '~');
    else if (n->quoted || n->text[strspn(n->text, plain)])
        put_text(out, n->text);
    else
        buf_puts(out, n->text);
}

static void put_value(const struct yaml *n, struct buf *out) {
    if (n->type == YAML_SCALAR) {
        put_scalar(n, out);
        return;
    }
    buf_putc(out, n->type == YAML_MAP ? '{' : '[');
    yaml_each(it, n) {
        buf_puts(out, it == n->first ? "" : ", ");
        if (it->key) {
            put_word(out, it->key);
            buf_puts(out, ": ");
        }
        put_value(it, out);
    }
    buf_putc(out, n->type == YAML_MAP ? '}' : ']');
}

static void put_member(const struct yaml *n, const char *indent, struct buf *out) {
    buf_puts(out, indent);
    put_word(out, n->key);
    buf_puts(out, ": ");
    put_value(n, out);
    buf_putc(out, '\n');
}

/* The long ones have a line for each of their keys. */
static void put_tree(const struct yaml *root, struct buf *out) {
    yaml_each(it, root) {
        if (it->type != YAML_MAP || !(str_eq(it->key, "job") || str_eq(it->key, "observe"))) {
            put_member(it, "", out);
            continue;
        }
        buf_printf(out, "%s:\n", it->key);
        yaml_each(member, it) put_member(member, "  ", out);
    }
}

bool generate_sets(const char *text, const char *const *sets, struct buf *out,
                   struct diagnostics *d) {
    ARENA_FINI struct arena a = {0};
    int before = d->errors;
    d->set = sets;
    struct yaml *root = yaml_parse(&a, text, strlen(text), 0, d);
    for (int i = 0; root && sets[i]; i++)
        override_apply(&a, root, sets[i], i + 1, d);
    bool good = root && d->errors == before;
    if (good)
        put_tree(root, out);
    return good;
}

/* ---- one more disaster ---- */

/* By its own trigger when that is neither a step nor a time, which the moment is. */
static const char *also_when(struct arena *a, const struct yaml *when) {
    if (!when || yaml_get(when, "step") || yaml_get(when, "time"))
        return NULL;
    BUF_FINI struct buf text = {0};
    put_value(when, &text);
    return arena_strdup(a, buf_str(&text));
}

/* The nodes and ranks of an example are not those of the job. */
static void put_also_target(const struct yaml *on, struct buf *out) {
    const char *text = on ? on->text : "n0";
    bool node = *text == 'n' && text[1] >= '0' && text[1] <= '9' && !strchr(text, '/');
    buf_puts(out, ", on: ");
    if (str_starts(text, "rank ") || strchr(text, '/'))
        buf_puts(out, "random of workers");
    else if (node)
        buf_puts(out, "n%");
    else
        put_value(on, out);
}

static void put_also_arguments(const struct yaml *with, struct buf *out) {
    int n = 0;
    yaml_each(it, with) {
        if (str_eq(it->key, "groups"))
            continue;
        buf_printf(out, "%s%s: ", n++ ? ", " : ", with: {", it->key);
        put_value(it, out);
    }
    buf_puts(out, n ? "}" : "");
}

static const char *also_entry(struct arena *a, const struct generate_known *k,
                              const struct yaml *entry) {
    static const char *const done[] = {"id", "when", "fault", "on", "with", NULL};
    BUF_FINI struct buf text = {0};
    buf_printf(&text, "fault: %s", k->name);
    put_also_target(yaml_get(entry, "on"), &text);
    put_also_arguments(yaml_get(entry, "with"), &text);
    yaml_each(it, entry) {
        if (str_in(it->key, done))
            continue;
        buf_printf(&text, ", %s: ", it->key);
        put_value(it, &text);
    }
    if (k->effects & EFFECT_LASTING && !k->lasts_ns && !yaml_get(entry, "for") &&
        !yaml_get(entry, "until"))
        buf_puts(&text, ", for: 10s");
    return arena_strdup(a, buf_str(&text));
}

static enum generate_outcome also_outcome(unsigned effects, bool on_job) {
    bool starts = effects & EFFECT_STARTS_NODE;
    bool loses = effects & (EFFECTS_TAKE_AGENT | EFFECT_SILENCES_NODE);
    bool comes_back = loses && effects & (EFFECT_STARTS_NODE | EFFECT_LASTING);
    if (!on_job || comes_back)
        return COMES_BACK;
    return starts                         ? TAKES_NODE
           : loses                        ? LOSES_NODE
           : effects & EFFECT_ENDS_WORKER ? MAY_RESTART
                                          : COMES_BACK;
}

struct generate_fault generate_also(struct arena *a, const struct generate_known *k) {
    struct diagnostics d = {0};
    const struct yaml *entry = yaml_parse(a, k->example, strlen(k->example), 0, &d);
    const struct yaml *on = yaml_get(entry, "on"), *lasts = yaml_get(entry, "for");
    struct generate_fault f = {
        .name = k->name,
        .about = k->summary,
        .words = k->name,
        .id = k->name,
        .entry = also_entry(a, k, entry),
        .when = also_when(a, yaml_get(entry, "when")),
        .outcome = also_outcome(k->effects, !on || (!str_starts(on->text, "store"))),
        .lasts_ns = k->lasts_ns                   ? k->lasts_ns
                    : k->effects & EFFECT_LASTING ? 10000000000
                                                  : 0,
        .follow_ns = k->follow_ns,
        .on_disk = k->effects & EFFECT_DAMAGES_DISK && yaml_get(yaml_get(entry, "with"), "path")
                       ? k->example
                       : NULL,
    };
    if (lasts)
        str_to_duration_ns(lasts->text, &f.lasts_ns, NULL);
    diagnostics_fini(&d);
    return f;
}
