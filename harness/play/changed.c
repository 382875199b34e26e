#include "harness/play/changed.h"

#include "base/mem.h"
#include "base/str.h"
#include "base/sys/file.h"
#include "base/sys/printing.h"
#include "harness/run/built.h"
#include "harness/run/control.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { NAMES_MAX = 64 << 20 };

/* ---- names ---- */

int changed_add(struct changed_names *c, const char *name, struct err *err) {
    c->asked = true;
    if (!*name)
        return err_say(err, -EINVAL, "an empty name is no file; leave it out");
    if (strlen(name) >= PATH_MAX)
        return err_say(err, -EINVAL, "\"%.40s...\" is longer than a path may be", name);
    texts_add(&c->names, "%s", name);
    return 0;
}

/* One character of a text in C's quotes, as git writes it; NULL: it is none. */
static const char *take_quoted(const char *at, struct buf *out) {
    static const char from[] = "abtnvfr\"\\", to[] = "\a\b\t\n\v\f\r\"\\";
    if (*at != '\\') {
        buf_putc(out, *at);
        return *at ? at + 1 : NULL;
    }
    const char *known = at[1] ? strchr(from, at[1]) : NULL;
    if (known) {
        buf_putc(out, to[known - from]);
        return at + 2;
    }
    if (strspn(at + 1, "01234567") < 3 || at[1] > '3')
        return NULL;
    buf_putc(out, (char)((at[1] - '0') * 64 + (at[2] - '0') * 8 + (at[3] - '0')));
    return at + 4;
}

static bool unquote(const char *line, struct buf *out) {
    const char *at = line + 1;
    while (at && *at && *at != '"')
        at = take_quoted(at, out);
    return at && *at == '"' && !at[1];
}

static int add_line(struct changed_names *c, const char *line, bool plain, size_t number,
                    struct err *err) {
    BUF_FINI struct buf name = {0};
    bool quoted = !plain && *line == '"';
    if (quoted && !unquote(line, &name))
        return err_say(err, -EINVAL,
                       "standard input:%zu: %.60s is no name as git quotes it; write one name a "
                       "line, or give them with git diff --name-only -z",
                       number, line);
    int r = changed_add(c, quoted ? buf_str(&name) : line, err);
    if (r)
        err_wrap(err, "standard input:%zu: ", number);
    return r;
}

int changed_read(struct changed_names *c, int fd, struct err *err) {
    BUF_FINI struct buf text = {0};
    c->asked = true;
    int r = file_read_fd(fd, NAMES_MAX, &text, err);
    if (r) {
        err_wrap(err, "standard input: ");
        return r;
    }
    char end = text.len && memchr(text.data, '\0', text.len) ? '\0' : '\n';
    const char *at = buf_str(&text), *last = at + text.len;
    for (size_t number = 1; at < last && r == 0; number++) {
        const char *stop = memchr(at, end, (size_t)(last - at));
        size_t n = (size_t)((stop ? stop : last) - at);
        char *line = mem_printf("%.*s", (int)(n < PATH_MAX ? n : PATH_MAX), at);
        size_t used = strlen(line);
        if (end == '\n' && used && line[used - 1] == '\r')
            line[used - 1] = '\0';
        if (*line)
            r = add_line(c, line, end == '\0', number, err);
        free(line);
        at += n + 1;
    }
    return r;
}

void changed_fini(struct changed_names *c) {
    texts_fini(&c->names);
    texts_fini(&c->left_names);
    texts_fini(&c->left_files);
}

/* ---- where they lie ---- */

/* Absolute, without "." and ".."; what lies above a name is followed where it is a link. */
static const char *place_of(struct arena *a, const char *from, const char *name) {
    char real[PATH_MAX];
    const char *whole = *name == '/' ? arena_strdup(a, name) : arena_printf(a, "%s/%s", from, name);
    char **words = str_split(a, whole, '/', NULL);
    const char **kept = arena_array(a, const char *, strlen(whole) + 2);
    size_t n = 0;
    for (; *words; words++)
        if (str_eq(*words, ".."))
            n -= n > 0;
        else if (**words && !str_eq(*words, "."))
            kept[n++] = *words;
    const char *folder = "";
    for (size_t i = 0; i + 1 < n; i++)
        folder = arena_printf(a, "%s/%s", folder, kept[i]);
    if (n && *folder && realpath(folder, real))
        folder = arena_strdup(a, real);
    return n ? arena_printf(a, "%s/%s", folder, kept[n - 1]) : "/";
}

/* From the top; NULL: outside. */
static const char *below(const char *top, const char *path) {
    size_t n = str_eq(top, "/") ? 0 : strlen(top);
    if (str_eq(path, top))
        return ".";
    return strncmp(path, top, n) == 0 && path[n] == '/' ? path + n + 1 : NULL;
}

/* git names a submodule by its folder. */
static bool covers(const char *changed, const char *path) {
    size_t n = strlen(changed);
    return str_eq(changed, ".") || str_eq(changed, path) ||
           (strncmp(changed, path, n) == 0 && path[n] == '/');
}

static bool is_there(const char *top, const char *path) {
    ARENA_FINI struct arena a = {0};
    struct stat st;
    return lstat(arena_printf(&a, "%s/%s", top, path), &st) == 0;
}

/* ---- the job, by its record ---- */

static bool is_link(const char *top, const char *path) {
    ARENA_FINI struct arena a = {0};
    struct stat st;
    return lstat(arena_printf(&a, "%s/%s", top, path), &st) == 0 && S_ISLNK(st.st_mode);
}

static bool json_has(const struct json *list, const char *text) {
    json_each(it, list) if (str_eq(json_string(it, ""), text)) return true;
    return false;
}

/* Of a folder of which something was read, what has come or gone: nobody sees who looks for it. */
static const char *reason_of_folder(const struct changed_names *c, const struct json *folder,
                                    const char *path, struct arena *a) {
    const char *in = json_get_string(folder, "path", "");
    size_t n = str_eq(in, ".") ? 0 : strlen(in) + 1;
    if (n && (!covers(in, path) || str_eq(in, path)))
        return NULL;
    const char *next = path + n;
    const char *name = arena_strndup(a, next, strcspn(next, "/"));
    bool was = json_has(json_get(folder, "names"), name);
    bool is = is_there(c->tree.top, arena_printf(a, "%.*s%s", (int)n, path, name));
    if (was == is)
        return NULL;
    return arena_printf(a, "%s has %s, a folder of which its job reads something", path,
                        is  ? n ? arena_printf(a, "come into %s", in) : "come into the top folder"
                        : n ? arena_printf(a, "gone from %s", in)
                            : "gone from the top folder");
}

static const char *reason_of_path(const struct changed_names *c, const struct json *record,
                                  const char *path, struct arena *a, bool *stale) {
    json_each(f, json_get(record, "files")) {
        const char *read = json_get_string(f, "path", "");
        if (covers(path, read))
            return arena_printf(a, "its job reads %s", read);
    }
    json_each(f, json_get(record, "folders")) {
        const char *why = reason_of_folder(c, f, path, a);
        *stale |= why != NULL;
        if (why)
            return why;
    }
    bool link = is_link(c->tree.top, path);
    json_each(l, json_get(record, "links")) link |= covers(path, json_string(l, ""));
    return link ? arena_printf(a, "%s is a link, or holds one: nobody sees who follows it", path)
                : NULL;
}

static const char *reason_of_name(const struct changed_names *c, const struct json *record,
                                  const char *name, struct arena *a, bool *stale) {
    const char *const from[] = {c->tree.here, c->tree.top};
    for (size_t i = 0; i < 2; i++) {
        const char *path = below(c->tree.top, place_of(a, from[i], name));
        const char *why = path ? reason_of_path(c, record, path, a, stale)
                               : arena_printf(a, "%s lies outside of %s, where nobody has watched",
                                              name, c->tree.top);
        if (why)
            return why;
    }
    return NULL;
}

/* What was read is no longer what it was, so the job may read something else now. */
static const char *find_stale(const struct changed_names *c, const struct json *record,
                              struct arena *a) {
    char mark[READS_MARK];
    json_each(f, json_get(record, "files")) {
        const char *path = json_get_string(f, "path", "");
        const char *then = json_get_string(f, "mark", NULL);
        if (!then)
            continue;
        reads_mark(c->tree.top, path, mark);
        if (!str_eq(then, mark))
            return arena_printf(a, "%s is not as its control run has read it", path);
    }
    return NULL;
}

/* Of the same tree; another checkout of a repository is the same. */
static bool same_tree(const struct changed_names *c, const struct json *record) {
    const char *top = json_get_string(record, "top", ""),
               *here = json_get_string(record, "here", "");
    const char *then = below(top, here), *now = below(c->tree.top, c->tree.here);
    return json_get_bool(record, "repository", false) == c->tree.repository && then && now &&
           str_eq(then, now) && (c->tree.repository || str_eq(top, c->tree.top));
}

const char *changed_reason(const struct changed_names *c, const struct json *record,
                           struct arena *a, bool *ret_stale) {
    *ret_stale = true;
    if (!record)
        return "nobody has seen yet what its job reads, as it is now";
    const char *unknown = json_get_string(record, "unknown", NULL);
    if (unknown) {
        *ret_stale = *json_get_string(record, "top", "") && !same_tree(c, record);
        return arena_printf(a, "what its job reads could not be seen: %s", unknown);
    }
    if (!same_tree(c, record))
        return arena_printf(a, "what its job reads was seen from elsewhere (%s)",
                            json_get_string(record, "here", ""));
    const char *why = NULL, *stale = find_stale(c, record, a);
    *ret_stale = stale;
    for (size_t i = 0; i < c->names.n; i++) {
        const char *its = reason_of_name(c, record, c->names.v[i], a, ret_stale);
        why = why ? why : its;
    }
    return why ? why : stale;
}

/* ---- the scenario itself ---- */

static bool same_place(struct arena *a, const struct changed_names *c, const char *name,
                       const char *file) {
    const char *there = place_of(a, c->tree.here, file);
    return covers(place_of(a, c->tree.here, name), there) ||
           covers(place_of(a, c->tree.top, name), there);
}

static bool is_of_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

/* By itself in the text: a program, an argument, a trace. */
static bool mentions(const char *text, const char *name) {
    size_t n = strlen(name);
    for (const char *at = text; n && (at = strstr(at, name)); at++)
        if ((at == text || !is_of_word(at[-1])) && !is_of_word(at[n]))
            return true;
    return false;
}

static void put_texts(const struct selected *l, struct buf *out) {
    scenario_print(l->scenario, out);
    file_read(l->file, 1 << 24, out, NULL);
    for (const char *const *f = l->includes; f && *f; f++)
        file_read(*f, 1 << 24, out, NULL);
}

static const char *reason_of_files(const struct changed_names *c, const struct selected *l,
                                   const char *bin, struct arena *a) {
    BUF_FINI struct buf text = {0};
    put_texts(l, &text);
    for (size_t i = 0; i < c->names.n; i++) {
        const char *name = c->names.v[i];
        bool own = same_place(a, c, name, l->file);
        for (const char *const *f = l->includes; f && *f && !own; f++)
            own = same_place(a, c, name, *f);
        if (own)
            return arena_printf(a, "it is %s, or includes it", name);
        if (below(bin, place_of(a, c->tree.here, name)) ||
            below(bin, place_of(a, c->tree.top, name)))
            return arena_printf(a, "%s is rankquake's own", name);
        if (mentions(buf_str(&text), str_base(name)))
            return arena_printf(a, "it names %s", name);
    }
    return NULL;
}

/* A program outside of the nodes reads what it likes, and is not in a control run. */
static const char *reason_of_commands(const struct plan *p, struct arena *a) {
    for (size_t i = 0; i < p->commands_n; i++) {
        const struct plan_command *c = &p->commands[i];
        bool probe = str_starts(c->key, "probe.");
        if (!c->is_ours && !c->is_asked && !c->is_keyed && (probe || !c->nodes))
            return arena_printf(a, "nobody sees what %s reads: %s", c->key, c->words);
    }
    if (p->rootfs)
        return "its nodes have a root file system of their own, which nobody has watched";
    return p->scenario->job.writes_undone
               ? "its job sees its files through a layer (writes: undone), which nobody can watch"
               : NULL;
}

/* ---- all of them ---- */

/* Scenarios of one job have one control run. */
static const char *reason_of_key(struct changed_names *c, const char *key, const char *cache,
                                 struct arena *a) {
    ARENA_FINI struct arena own = {0};
    bool stale;
    if (str_eq(key, c->last_key))
        return c->last_why;
    const char *why = changed_reason(c, reads_load(cache, &own), &own, &stale);
    if (stale)
        control_forget(cache);
    str_copy(c->last_key, sizeof(c->last_key), key);
    return c->last_why = why ? arena_strdup(a, why) : NULL;
}

/* One whose control run hangs on the seed has as many as seeds. */
static const char *reason_of_job(struct changed_names *c, struct selected *l, const char *bin,
                                 struct arena *a) {
    const char *why = NULL;
    char before[65] = "", key[65], cache[PATH_MAX];
    for (uint64_t seed = l->seed_first; seed <= l->seed_last; seed++) {
        struct err err = {0};
        l->plan->seed = seed;
        if (control_key(l->plan, bin, key, &err) < 0 ||
            control_dir(key, cache, sizeof(cache), &err) < 0) {
            why = arena_printf(a, "nothing is kept here: %s", err.msg);
            break;
        }
        if (str_eq(key, before))
            break;
        str_copy(before, sizeof(before), key);
        const char *its = reason_of_key(c, key, cache, a);
        why = why ? why : its;
    }
    l->plan->seed = l->seed_first;
    return why;
}

static const char *reason_of(struct changed_names *c, struct selected *l, const char *bin,
                             void (*name_commands)(struct selected *l), struct arena *a) {
    struct err err = {0};
    name_commands(l);
    if (plan_check_host(l->plan, &err) < 0)
        return "it cannot be run here";
    /* What was built elsewhere is one of the files that its control run has read. */
    struct built built;
    if (built_ready(l->plan, false, false, &built, &err) < 0)
        return arena_printf(a, "%s", err.msg);
    if (built.how == BUILT_MISSING)
        return "what it needs is to be built anew: an input of job.build is another";
    /* Each, for a record that does not hold is to be renewed whatever else speaks for a run. */
    const char *job = reason_of_job(c, l, bin, a), *files = reason_of_files(c, l, bin, a);
    const char *commands = reason_of_commands(l->plan, a);
    return files ? files : commands ? commands : job;
}

static void tell_absent(const struct changed_names *c, FILE *out) {
    for (size_t i = 0; i < c->names.n; i++) {
        ARENA_FINI struct arena a = {0};
        const char *name = c->names.v[i];
        if (!file_exists(place_of(&a, c->tree.here, name)) &&
            !file_exists(place_of(&a, c->tree.top, name)))
            printing_line(out, "  %s is not there: it counts as deleted", name);
    }
}

void changed_keep(struct changed_names *c, struct selection *s, const char *bin,
                  void (*name_commands)(struct selected *l), FILE *out) {
    size_t n = 0, all = s->n;
    struct err err = {0};
    if (reads_tree_find(&c->tree, &err) < 0) {
        printing_line(out, "--changed: %s, so everything is run", err.msg);
        return;
    }
    for (size_t i = 0; i < all; i++) {
        struct selected *l = &s->v[i];
        const char *why = reason_of(c, l, bin, name_commands, &s->arena);
        printing_line(out, "  %s %s (%s): %s", why ? "runs" : "left out", l->scenario->name,
                      l->file, why ? why : "nothing that it reads has changed");
        if (why) {
            s->v[n++] = *l;
            continue;
        }
        texts_add(&c->left_names, "%s", l->scenario->name);
        texts_add(&c->left_files, "%s", l->file);
        plan_free(l->plan);
        scenario_free(l->scenario);
    }
    s->n = n;
    tell_absent(c, out);
    fprintf(out, "--changed: %zu of %zu scenarios run, %zu are left out; %zu name%s given\n", n,
            all, all - n, c->names.n, c->names.n == 1 ? " was" : "s were");
}
