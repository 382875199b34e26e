/* certify SUITE: from what was typed to the certificate. */
#include "harness/verbs/certify/certifying.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/clock.h"
#include "base/sys/file.h"
#include "harness/certify/signature.h"
#include "harness/host/host_hold.h"
#include "harness/host/host_self.h"
#include "harness/play/library.h"
#include "harness/play/suite.h"
#include "harness/preflight/preflight.h"
#include "harness/verbs/typed.h"
#include "harness/verbs/wanted_hosts.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#define PROBED "probed" /* within the directory of a certificate */

/* ---- options ---- */

static int take_all(struct certification *c, const char *option,
                    int (*take)(struct permit *p, const char *text, struct err *err)) {
    const char **v = arguments_all(c->arguments, option);
    struct err err = {0};
    int r = 0;
    for (size_t i = 0; v[i] && r == 0; i++)
        r = take(&c->permit, v[i], &err);
    free(v);
    return r ? verb_usage_error(c->arguments->verb, "%s %s", option, err.msg) : 0;
}

static int take_class(struct certification *c) {
    const char *word = arguments_value(c->arguments, "--allow");
    for (int i = 0; word && i < REACHES_N; i++)
        if (str_eq(word, fault_reach_names[i])) {
            c->permit.most = (enum fault_reach)i;
            return 0;
        }
    return word
               ? verb_usage_error(c->arguments->verb, "--allow %s: write job, node or shared", word)
               : 0;
}

static int take_permit(struct certification *c) {
    const struct arguments *a = c->arguments;
    int code = take_class(c);
    code = code ? code : take_all(c, "--deny", permit_deny);
    code = code ? code : take_all(c, "--deny-file", permit_deny_file);
    code = code ? code : take_all(c, "--window", permit_window);
    code = code ? code : arguments_number(a, "--max-concurrent-faults", 1, 1000, &c->permit.faults);
    code = code ? code : arguments_duration(a, "--max-fault-time", &c->permit.fault_ns);
    code = code ? code : arguments_duration(a, "--max-time", &c->permit.total_ns);
    c->budget_ns = c->permit.total_ns;
    return code;
}

static const char *whoever(struct arena *a) {
    struct passwd *p = getpwuid(getuid());
    struct utsname u;
    uname(&u);
    return arena_printf(a, "%s@%s", p ? p->pw_name : "?", u.nodename);
}

static int take_numbers(struct certification *c) {
    const struct arguments *a = c->arguments;
    int64_t seed = 1;
    c->repeat = 1;
    c->days = 90;
    int code = arguments_number(a, "--repeat", 1, 1000, &c->repeat);
    code = code ? code : arguments_number(a, "--valid", 1, 3660, &c->days);
    code = code ? code : arguments_number(a, "--seed", 0, INT64_MAX, &seed);
    c->seed = (uint64_t)seed;
    c->selection.counted = true;
    c->selection.has_seed = arguments_value(a, "--seed");
    c->selection.seed_first = c->selection.seed_last = (uint64_t)seed;
    return code;
}

/* No fault lasts longer than the cap, whatever ends it in the file. */
static const char **with_caps(struct certification *c, const char **sets) {
    if (!c->permit.fault_ns)
        return sets;
    const char *cap[] = {
        arena_printf(&c->arena, "limits.fault=%lldms", (long long)(c->permit.fault_ns / 1000000)),
        NULL};
    return sets_join(&c->arena, (const char *const *)sets, cap);
}

static int take_sets(struct certification *c) {
    const struct arguments *a = c->arguments;
    const char **sets = arguments_sets(a, &c->arena);
    for (const char **s = sets; *s; s++)
        if (!strchr(*s, '='))
            return verb_usage_error(a->verb, "--set %s: write KEY=VALUE", *s);
    int code = wanted_hosts_asked(a) ? wanted_hosts_add(a, &c->arena, &sets) : 0;
    code = code || !a->rest ? code : typed_replace(&c->arena, a, sets, &sets);
    if (code == 0)
        c->selection.sets = (const char *const *)with_caps(c, sets);
    return code;
}

static int take_options(struct certification *c) {
    const struct arguments *a = c->arguments;
    const char *out = arguments_value(a, "--out"), *who = arguments_value(a, "--operator");
    c->out = out ? out : "certificates";
    c->operator_ = who ? who : whoever(&c->arena);
    c->key = arguments_value(a, "--key");
    c->yes = arguments_value(a, "--yes");
    c->plan_only = arguments_value(a, "--plan");
    c->every_node = arguments_value(a, "--every-node");
    c->selection.verb = a->verb;
    c->files.trusted = true;
    const char **tags = arguments_all(a, "--tag");
    size_t n = 0;
    while (tags[n])
        n++;
    const char **kept = arena_array(&c->arena, const char *, n + 1);
    memcpy(kept, tags, n * sizeof(*kept));
    free(tags);
    c->selection.tags = (const char *const *)kept;
    c->without = arguments_all(a, "--without");
    for (const char **v = c->without; *v; v++)
        if (!probe_find(*v))
            return verb_usage_error(a->verb,
                                    "--without %s: there is no such probe; preflight --list "
                                    "names them",
                                    *v);
    struct err err = {0};
    c->results = arguments_all(a, "--results");
    if (!preflight_check_results((const char *const *)c->results, &err))
        return verb_usage_error(a->verb, "--results %s", err.msg);
    if (c->key && !file_exists(c->key))
        return verb_usage_error(a->verb,
                                "--key %s: there is no such file; ssh-keygen -t ed25519 -f "
                                "FILE makes a key",
                                c->key);
    int code = arguments_headway(a, &c->wish);
    code = code ? code : probe_wishes_read(a, &c->arena, &c->wishes);
    code = code ? code : take_numbers(c);
    code = code ? code : take_permit(c);
    return code ? code : take_sets(c);
}

/* A suite may name a folder, and some of its files in another suite. */
static void leave_once(struct scenario_files *f) {
    ARENA_FINI struct arena a = {0};
    const char **real = arena_array(&a, const char *, f->n + 1);
    char path[PATH_MAX];
    size_t n = 0;
    for (size_t i = 0; i < f->n; i++) {
        real[n] = arena_strdup(&a, realpath(f->v[i], path) ? path : f->v[i]);
        bool again = false;
        for (size_t k = 0; k < n; k++)
            again |= str_eq(real[k], real[n]);
        f->v[n] = f->v[i];
        f->within[n] = f->within[i];
        n += !again;
    }
    f->n = n;
}

/* "quick" is certify-quick, that came with the program, unless there is a file of this name. */
static int find_suite(struct certification *c) {
    const struct arguments *a = c->arguments;
    char name[128];
    if (a->files_n != 1)
        return verb_usage_error(a->verb, "name one suite: quick, or the file or folder of one");
    const char *own = library_find(&c->arena, arena_printf(&c->arena, "certify-%s", a->files[0]));
    c->path = !file_exists(a->files[0]) && own ? own : a->files[0];
    str_copy(name, sizeof(name), str_base(c->path));
    if (str_ends(name, ".yaml"))
        name[strlen(name) - strlen(".yaml")] = '\0';
    c->suite = arena_strdup(&c->arena, name);
    int code = files_add(&c->files, a->verb, c->path);
    leave_once(&c->files);
    return code;
}

/* ---- one at a time on a host ---- */

/* This host, where nodes are emulated on it, and every other. */
static int take_hosts(struct certification *c, int *ret_lock) {
    struct err err = {0};
    const char *who = arena_printf(&c->arena, "%s (process %d of %s)", c->operator_, (int)getpid(),
                                   host_self_name(&c->arena));
    if (c->here || !c->hosts_n)
        *ret_lock = host_hold_take(who, &err);
    if (*ret_lock == -EBUSY) {
        fprintf(stderr, "rankquake certify: this host is being certified by %s; nothing was done\n",
                err.msg);
        return EXIT_SKIPPED;
    }
    if (*ret_lock < -1)
        return verb_broken(c->arguments->verb, &err);
    return certify_hosts_take(c, who);
}

/* ---- the whole ---- */

static int begin(struct certification *c) {
    struct err err = {0};
    int r = suite_make_dir(c->out, c->suite, c->seed, &c->dir, &err);
    r = r < 0 ? r : acts_open(&c->acts, &c->dir, &err);
    if (r < 0)
        return verb_broken(c->arguments->verb, &err);
    BUF_FINI struct buf line = {0};
    struct json_writer w = {.out = &line};
    acts_begin(&c->acts, &w, "accepted");
    json_put_string(&w, "operator", c->operator_);
    json_put_string(&w, "how", c->yes ? "--yes" : "typed at a terminal");
    permit_put(&c->permit, &w, "permitted");
    acts_end(&c->acts, &w);
    return 0;
}

static void tell_probe(void *arg, const char *name, const struct probe_answer *a) {
    struct certification *c = arg;
    if (a->status == PROBE_FAIL)
        printf("  preflight    %s: %s\n", name, a->seen);
    if (a->status == PROBE_SKIP)
        certify_leave_out(c, arena_printf(&c->arena, "preflight: %s", name), a->seen);
}

/* A directory of the certificate's into which whoever we are on a host may write, for as long as it is probed, as the shared
 * directory of a run is. NULL: it cannot be made, and the probes that need it are skipped. */
static const char *make_shared(struct certification *c) {
    struct folder f = FOLDER_NONE;
    const char *path = NULL;
    if (folder_make(&c->dir, PROBED, 0777, NULL) == 0 &&
        folder_enter(&f, &c->dir, PROBED, NULL) == 0 && fchmod(f.fd, 01777) == 0)
        path = arena_printf(&c->arena, "%s/" PROBED, c->dir.path);
    folder_close(&f);
    return path;
}

/* Those of the provider, at the port of the job's store and with the directory of the certificate, which all have to see. */
static void add_hosts(struct certification *c, struct preflight *f) {
    struct preflight_host *v = arena_array(&c->arena, struct preflight_host, c->hosts_n);
    for (const struct certified_host *h = c->hosts; h < c->hosts + c->hosts_n; h++)
        if (!h->again)
            v[f->hosts_n++] =
                (struct preflight_host){.name = h->name, .address = h->address, .words = h->words};
    f->hosts = v;
    c->wishes.shared = make_shared(c);
    if (!c->wishes.ports_n)
        c->wishes.ports[c->wishes.ports_n++] = PLAN_STORE_PORT;
}

/* Where the nodes have a scheduler, what is given to it. */
static void add_scripts(struct certification *c) {
    size_t n = 0;
    while (c->wishes.scripts[n])
        n++;
    const char **v = arena_array(&c->arena, const char *, n + c->points_n + 1);
    memcpy(v, c->wishes.scripts, n * sizeof(*v));
    for (size_t i = 0; i < c->points_n; i++) {
        const struct plan *p = c->points[i].of->plan;
        const char *script = p->scenario->cluster.scheduler ? p->scenario->job.run[0] : NULL;
        if (script && !str_in(script, v))
            v[n++] = script;
    }
    c->wishes.scripts = v;
}

/* The hosts of nodes. What fails is certified; the suite runs all the same. */
static void ask_hosts(struct certification *c) {
    struct json_writer w = {.out = &c->preflight};
    static const char *const all[] = {NULL};
    struct preflight f = {.only = all,
                          .without = (const char *const *)c->without,
                          .results = (const char *const *)c->results,
                          .told = tell_probe,
                          .arg = c};
    if (c->hosts_n)
        add_hosts(c, &f);
    add_scripts(c);
    f.given = probe_wishes_text(&c->wishes, &c->arena);
    acts_say(&c->acts, "preflight", "of", c->hosts_n ? "the hosts of the provider" : "this host");
    preflight_run(&f, &w);
    unlinkat(c->dir.fd, PROBED, AT_REMOVEDIR);
}

static int certify_locked(struct certification *c) {
    int code = begin(c);
    for (const char **v = c->without; *v; v++)
        certify_leave_out(c, arena_printf(&c->arena, "preflight: %s", *v), "by --without");
    if (code == 0) {
        ask_hosts(c);
        certify_hosts_sift(c);
    }
    code = code ? code : certify_run_all(c);
    return code ? code : certify_issue(c);
}

/* A key that wants a passphrase of nobody is better known before hosts are broken for it. */
static int try_key(const struct certification *c) {
    BUF_FINI struct buf text = {0}, signature = {0};
    struct err err = {0};
    buf_puts(&text, "tried before anything is done");
    if (!c->key || signature_make(c->key, &text, &signature, &err) == 0)
        return 0;
    return verb_usage_error(c->arguments->verb, "--key %s: %s; nothing was done", c->key, err.msg);
}

static int certify(struct certification *c) {
    int lock = -1;
    int code = take_options(c);
    code = code ? code : find_suite(c);
    code = code ? code : certify_choose(c);
    if (code)
        return code;
    certify_print_plan(c, stdout);
    if (c->plan_only)
        return EXIT_PASS;
    code = certify_accept(c);
    code = code ? code : try_key(c);
    code = code ? code : take_hosts(c, &lock);
    code = code ? code : certify_locked(c);
    file_close(&lock);
    return code;
}

int certify_suite(const struct arguments *a) {
    struct certification *c = mem_new(struct certification);
    c->arguments = a;
    c->dir = FOLDER_NONE;
    c->acts.fd = -1;
    int code = certify(c);
    acts_close(&c->acts);
    folder_close(&c->dir);
    certify_hosts_end(c);
    selection_fini(&c->selection);
    files_fini(&c->files);
    permit_fini(&c->permit);
    buf_fini(&c->scenarios);
    buf_fini(&c->preflight);
    free(c->without);
    free(c->results);
    free(c->points);
    free(c->left);
    arena_fini(&c->arena);
    free(c);
    return code;
}
