#include "harness/scenario/command.h"

#include "base/buf.h"
#include "base/str.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

struct parse {
    struct arena *arena;
    struct command *out;
    struct err *err;
    const char *const *next; /* the word to be read */
    const char **args, **notes;
    size_t args_n, notes_n;
    struct buf replaced; /* options that say where the nodes are: the harness's own affair */
    bool module, no_python;
};

/* ---- options ---- */

typedef int take_fn(struct parse *p, const char *option, const char *value);

struct command_option {
    const char *name; /* with dashes */
    char letter;
    bool has_value;
    take_fn *take; /* NULL: left to the launcher as it stands */
};

static void note(struct parse *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void note(struct parse *p, const char *fmt, ...) {
    BUF_FINI struct buf text = {0};
    va_list ap;
    va_start(ap, fmt);
    buf_vprintf(&text, fmt, ap);
    va_end(ap);
    p->notes[p->notes_n++] = arena_strdup(p->arena, buf_str(&text));
}

static int take_nnodes(struct parse *p, const char *option, const char *value) {
    size_t n;
    int64_t min, max;
    char **v = str_split(p->arena, value, ':', &n);
    if (n > 2 || !str_to_i64(v[0], 1, 1000000, &min) || !str_to_i64(v[n - 1], min, 1000000, &max))
        return err_say(p->err, -EINVAL, "%s %s: write a number of nodes or MIN:MAX", option, value);
    p->out->has_nnodes = true;
    p->out->min_nodes = (int)min;
    p->out->max_nodes = (int)max;
    return 0;
}

static int take_nproc(struct parse *p, const char *option, const char *value) {
    static const char *const words[] = {"auto", "gpu", "cpu", "xpu", NULL};
    int64_t v;
    for (size_t i = 0; words[i]; i++)
        if (str_eq(value, words[i])) {
            note(p, "%s %s asks the machine; here it is --workers that says how many a node has",
                 option, value);
            return 0;
        }
    if (!str_to_i64(value, 1, 1000000, &v))
        return err_say(p->err, -EINVAL, "%s %s: write a number of workers", option, value);
    p->out->workers = (int)v;
    return 0;
}

static int take_restarts(struct parse *p, const char *option, const char *value) {
    int64_t v;
    if (!str_to_i64(value, 0, 1000000, &v))
        return err_say(p->err, -EINVAL, "%s %s: write a whole number, 0 or more", option, value);
    p->out->max_restarts = (int)v;
    return 0;
}

/* What is said of the store becomes the emulated cluster's: its protocol, not its place. */
static int take_backend(struct parse *p, const char *option, const char *value) {
    p->out->etcd = str_starts(value, "etcd");
    p->out->backend = NULL;
    if (str_eq(value, "static"))
        note(p, "%s static cannot form a group anew; the launcher's own store is used", option);
    else if (!str_eq(value, "c10d") && !str_eq(value, "embedded"))
        p->out->backend = value;
    return 0;
}

static int take_conf(struct parse *p, const char *option, const char *value) {
    size_t n;
    char **v = str_split(p->arena, value, ',', &n);
    struct pair *pairs = arena_array(p->arena, struct pair, n + 1);
    p->out->conf_n = 0;
    for (size_t i = 0; i < n; i++) {
        const char *equals = strchr(v[i], '=');
        if (!*v[i] && n == 1)
            break;
        if (!equals || equals == v[i] || !equals[1])
            return err_say(p->err, -EINVAL, "%s %s: write KEY=VALUE,KEY=VALUE", option, value);
        pairs[p->out->conf_n++] = (struct pair){
            .key = arena_strndup(p->arena, v[i], (size_t)(equals - v[i])), .value = equals + 1};
    }
    p->out->conf = pairs;
    return 0;
}

static int take_standalone(struct parse *p, const char *option, const char *value) {
    p->out->standalone = true;
    return 0;
}

static int take_module(struct parse *p, const char *option, const char *value) {
    p->module = true;
    return 0;
}

static int take_no_python(struct parse *p, const char *option, const char *value) {
    p->no_python = true;
    return 0;
}

/* Where the nodes and their store are is the harness's to say. */
static int take_place(struct parse *p, const char *option, const char *value) {
    buf_printf(&p->replaced, "%s%s", p->replaced.len ? ", " : "", option);
    return 0;
}

static int take_run_path(struct parse *p, const char *option, const char *value) {
    note(p, "%s is left out: the script is started as a program of its own", option);
    return 0;
}

static int take_hosts(struct parse *p, const char *option, const char *value) {
    return err_say(p->err, -EINVAL,
                   "%s %s names real hosts; here nodes are emulated: leave it out and say "
                   "--nnodes",
                   option, value ? value : "");
}

static const struct command_option options[] = {
    {"nnodes", 0, true, take_nnodes},
    {"nproc-per-node", 0, true, take_nproc},
    {"max-restarts", 0, true, take_restarts},
    {"rdzv-backend", 0, true, take_backend},
    {"rdzv-conf", 0, true, take_conf},
    {"rdzv-endpoint", 0, true, take_place},
    {"rdzv-id", 0, true, take_place},
    {"node-rank", 0, true, take_place},
    {"master-addr", 0, true, take_place},
    {"master-port", 0, true, take_place},
    {"local-addr", 0, true, take_place},
    {"standalone", 0, false, take_standalone},
    {"module", 'm', false, take_module},
    {"no-python", 0, false, take_no_python},
    {"use-env", 0, false, NULL},
    {"run-path", 0, false, take_run_path},
    {"hosts", 'H', true, take_hosts},
    {"hostfile", 0, true, take_hosts},
    {"accelerators", 0, true, take_hosts},
    {"role", 0, true, NULL},
    {"monitor-interval", 0, true, NULL},
    {"start-method", 0, true, NULL},
    {"log-dir", 0, true, NULL},
    {"redirects", 'r', true, NULL},
    {"tee", 't', true, NULL},
    {"local-ranks-filter", 0, true, NULL},
    {"logs-specs", 0, true, NULL},
    {"event-log-handler", 0, true, NULL},
    {"numa-binding", 0, true, NULL},
    {"signals-to-handle", 0, true, NULL},
    {"duplicate-stdout-filters", 0, true, NULL},
    {"duplicate-stderr-filters", 0, true, NULL},
    {"virtual-local-rank", 0, false, NULL},
    {"shutdown-timeout", 0, true, NULL},
    {"log-line-prefix-template", 0, true, NULL},
    {"restart-count", 0, true, NULL},
    {"on-node-loss", 0, true, NULL},
};
enum { OPTIONS = sizeof(options) / sizeof(*options) };

/* A whole name, else the only one that begins so. */
static const struct command_option *find_long(const char *name) {
    const struct command_option *only = NULL;
    size_t len = strlen(name), near = 0;
    for (size_t i = 0; i < OPTIONS; i++) {
        if (strncmp(options[i].name, name, len) != 0)
            continue;
        if (!options[i].name[len])
            return &options[i];
        only = &options[i];
        near++;
    }
    return near == 1 ? only : NULL;
}

static int unknown(struct parse *p, const char *word, const char *name) {
    const char *names[OPTIONS + 1];
    for (size_t i = 0; i < OPTIONS; i++)
        names[i] = options[i].name;
    names[OPTIONS] = NULL;
    const char *near = str_nearest(name, names);
    if (near)
        return err_say(p->err, -EINVAL, "%s is no option of torchrun; did you mean --%s?", word,
                       near);
    return err_say(p->err, -EINVAL,
                   "%s is no option of torchrun that is known here; what is the script's stands "
                   "behind the script",
                   word);
}

static void keep(struct parse *p, const char *const *words, int n) {
    for (int i = 0; i < n; i++)
        p->args[p->args_n++] = words[i];
}

static int read_long(struct parse *p) {
    const char *word = *p->next, *equals = strchr(word, '=');
    char *name = arena_strndup(p->arena, word + 2, strcspn(word + 2, "="));
    for (char *c = name; *c; c++)
        *c = *c == '_' ? '-' : *c;
    const struct command_option *o = find_long(name);
    if (!o)
        return unknown(p, word, name);
    bool own_word = o->has_value && !equals;
    if (own_word && !p->next[1])
        return err_say(p->err, -EINVAL, "%s needs a value", word);
    const char *value = own_word ? p->next[1] : equals ? equals + 1 : NULL;
    const char *option = arena_printf(p->arena, "--%s", o->name);
    int r = 0;
    if (o->take)
        r = o->take(p, option, value);
    else
        keep(p, p->next, 1 + own_word);
    p->next += 1 + own_word;
    return r;
}

/* -m, -r 3, -r3 */
static int read_short(struct parse *p) {
    const char *word = *p->next;
    for (size_t i = 0; i < OPTIONS; i++) {
        const struct command_option *o = &options[i];
        if (!o->letter || o->letter != word[1] || (!o->has_value && word[2]))
            continue;
        bool own_word = o->has_value && !word[2];
        if (own_word && !p->next[1])
            return err_say(p->err, -EINVAL, "%s needs a value", word);
        int r = 0;
        if (o->take)
            r = o->take(p, word, own_word ? p->next[1] : word + 2);
        else
            keep(p, p->next, 1 + own_word);
        p->next += 1 + own_word;
        return r;
    }
    return unknown(p, word, word + 1);
}

static int read_options(struct parse *p) {
    int r = 0;
    while (r == 0 && *p->next && **p->next == '-' && !str_eq(*p->next, "--"))
        r = str_starts(*p->next, "--") ? read_long(p) : read_short(p);
    if (r == 0 && str_eq(*p->next, "--"))
        p->next++;
    return r;
}

/* ---- who starts it ---- */

/* python, python3, python3.11 */
static bool is_python(const char *word) {
    const char *name = str_base(word);
    return str_starts(name, "python") && strspn(name + 6, "0123456789.") == strlen(name + 6);
}

/* How many words of a Python's command line its flags are: those with a value take two. */
static size_t python_flags(const char *const *v) {
    size_t n = 0;
    while (v[n] && *v[n] == '-' && v[n][1] && !strchr("mc", v[n][1]))
        n += (str_eq(v[n], "-X") || str_eq(v[n], "-W")) && v[n + 1] ? 2 : 1;
    return n;
}

/* How many words name the launcher, when the first one begins it; 0: it does not. */
static size_t launcher_at(const char *const *v) {
    static const char *const modules[] = {"torch.distributed.run", "torch.distributed.launch",
                                          NULL};
    if (str_eq(str_base(v[0]), "torchrun") || str_eq(str_base(v[0]), "rankrun"))
        return 1;
    if (!is_python(v[0]))
        return 0;
    size_t n = 1 + python_flags(v + 1);
    for (size_t i = 0; v[n] && modules[i]; i++)
        if (str_eq(v[n], "-m") && str_eq(v[n + 1], modules[i]))
            return n + 2;
    /* "python3 /venv/bin/torchrun ..." */
    return v[n] && str_eq(str_base(v[n]), "torchrun") ? n + 1 : 0;
}

/* The same behind `uv run` and its like, which only choose the surroundings. */
static size_t launcher_length(const char *const *v) {
    static const char *const choosers[] = {"uv",    "poetry", "pdm",        "pipenv", "hatch",
                                           "conda", "mamba",  "micromamba", "rye",    NULL};
    size_t i = 0, n = launcher_at(v);
    while (!n && choosers[i] && !str_eq(str_base(v[0]), choosers[i]))
        i++;
    if (n || !choosers[i] || !str_eq(v[1], "run"))
        return n;
    for (size_t k = 2; v[k] && !str_ends(v[k], ".py"); k++) {
        n = launcher_at(v + k);
        if (n)
            return k + n;
    }
    return 0;
}

/* Those that start workers themselves, and whose options are not torchrun's. */
static bool is_foreign_launcher(const char *word) {
    static const char *const names[] = {
        "accelerate", "deepspeed", "horovodrun", "mpiexec", "mpirun", "prun", "ray", "srun", NULL};
    for (size_t i = 0; names[i]; i++)
        if (str_eq(str_base(word), names[i]))
            return true;
    return false;
}

static bool is_assignment(const char *word) {
    size_t n = strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    return n && word[n] == '=' && !isdigit((unsigned char)*word);
}

/* `env A=b C=d` and A=b alone, as a shell has it. */
static int read_environment(struct parse *p) {
    const char *const *v = p->next;
    size_t skip = str_eq(str_base(*v), "env"), n = 0;
    while (v[skip + n] && is_assignment(v[skip + n]))
        n++;
    if (!v[skip + n])
        return err_say(p->err, -EINVAL, "no command behind %s", v[0]);
    if (skip && *v[skip + n] == '-')
        return err_say(p->err, -EINVAL,
                       "env %s: of what env can do only NAME=value is understood here; give %s to "
                       "your shell, in front of rankquake",
                       v[skip + n], v[skip + n]);
    struct pair *pairs = arena_array(p->arena, struct pair, n + 1);
    for (size_t i = 0; i < n; i++) {
        const char *equals = strchr(v[skip + i], '=');
        pairs[i] = (struct pair){
            .key = arena_strndup(p->arena, v[skip + i], (size_t)(equals - v[skip + i])),
            .value = equals + 1};
    }
    p->out->env = pairs;
    p->out->env_n = n;
    p->next += skip + n;
    return 0;
}

/* ---- what is run ---- */

static const char *name_of(struct arena *a, const char *word) {
    const char *base = str_base(word), *dot = strrchr(base, '.');
    char *name = arena_strndup(a, base, dot && dot > base ? (size_t)(dot - base) : strlen(base));
    for (char *c = name; *c; c++)
        *c = isalnum((unsigned char)*c) || *c == '_' ? *c : '-';
    while (*name == '-')
        name++;
    if (strlen(name) > 40)
        name[40] = '\0';
    return *name ? name : "job";
}

/* The word that says what a worker is: the script behind an interpreter. */
static const char *subject_of(const char *const *run) {
    size_t n = 1;
    if (is_python(run[0]))
        n += python_flags(run + 1);
    else if (!str_eq(str_base(run[0]), "sh") && !str_eq(str_base(run[0]), "bash"))
        return run[0];
    if (str_eq(run[n], "-m") && run[n + 1])
        return run[n + 1];
    return run[n] && *run[n] != '-' ? run[n] : run[0];
}

/* The worker's command as job.run has it: X.py and -m X are the launcher's to interpret. */
static int read_worker(struct parse *p, bool launched) {
    const char *const *v = p->next;
    size_t words = 0, n = 0;
    if (!v[0])
        return err_say(p->err, -EINVAL,
                       launched ? "no script: what are the workers to run?" : "no command");
    if (*v[0] == '-' || !*v[0])
        return err_say(p->err, -EINVAL, "\"%s\" is no program: its name must come here", v[0]);
    if (p->module && p->no_python)
        return err_say(p->err, -EINVAL, "--no-python and --module exclude each other");
    while (v[words])
        words++;
    const char **run = arena_array(p->arena, const char *, words + 4);
    bool script = str_ends(v[0], ".py");
    p->out->by_python = launched && !p->no_python && !p->out->rankrun;
    if (p->module) {
        run[n++] = "-m";
    } else if (launched && p->no_python && script) {
        run[n++] = "env"; /* a program, whatever its name */
    } else if (p->out->by_python && !script) {
        run[n++] = "python3";
        run[n++] = "-u";
    } else if (!launched && script) {
        run[n++] = "env";
    }
    for (size_t i = 0; i < words; i++)
        run[n++] = v[i];
    p->out->run = run;
    const char *subject = p->module ? v[0] : subject_of(v);
    p->out->name = name_of(p->arena, subject);
    if (str_ends(subject, ".py") || str_ends(subject, ".sh"))
        p->out->script = subject;
    return 0;
}

static void settle(struct parse *p) {
    struct command *c = p->out;
    if (p->replaced.len)
        note(p, "%s: left out, the emulated cluster has its own", buf_str(&p->replaced));
    if (c->rankrun && c->backend && str_eq(c->backend, "etcd-v2"))
        c->backend = "etcd-v3";
    c->args = p->args;
    c->notes = p->notes;
}

/* "/venv/bin/python3 -X dev" of "/venv/bin/python3 -X dev -m torch.distributed.run", and what
 * stands before it. */
static const char *const *python_of(struct arena *a, const char *const *launcher, size_t words) {
    size_t n = words;
    for (size_t i = 0; i < words && n == words; i++)
        if (is_python(launcher[i]))
            n = i + 1 + python_flags(launcher + i + 1);
    if (n >= words)
        return NULL;
    const char **v = arena_array(a, const char *, n + 1);
    for (size_t i = 0; i < n; i++)
        v[i] = launcher[i];
    return v;
}

static int parse(struct parse *p) {
    if (!*p->next)
        return err_say(p->err, -EINVAL, "no command");
    int r = read_environment(p);
    if (r)
        return r;
    size_t n = launcher_length(p->next);
    p->out->rankrun = !n || str_eq(str_base(p->next[n - 1]), "rankrun");
    if (!n && is_foreign_launcher(*p->next))
        return err_say(p->err, -EINVAL,
                       "%s starts workers by itself and does not take torchrun's options: give "
                       "the worker's command alone, or --launcher with a template of yours that "
                       "names {worker}",
                       str_base(*p->next));
    if (!n)
        return read_worker(p, false);
    const char **launcher = arena_array(p->arena, const char *, n + 1);
    for (size_t i = 0; i < n; i++)
        launcher[i] = *p->next++;
    p->out->launcher = launcher;
    p->out->python = python_of(p->arena, launcher, n);
    r = read_options(p);
    return r ? r : read_worker(p, true);
}

int command_parse(struct arena *a, const char *const *argv, struct command *ret, struct err *err) {
    size_t n = 0;
    while (argv[n])
        n++;
    struct command c = {.max_restarts = -1};
    struct parse p = {.arena = a,
                      .out = &c,
                      .err = err,
                      .next = argv,
                      .args = arena_array(a, const char *, n + 1),
                      .notes = arena_array(a, const char *, n + 4)};
    int r = parse(&p);
    settle(&p);
    buf_fini(&p.replaced);
    if (r == 0)
        *ret = c;
    return r;
}
