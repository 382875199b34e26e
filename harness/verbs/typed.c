#include "harness/verbs/typed.h"

#include "base/json.h"
#include "base/sys/file.h"
#include "harness/play/selection.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* An interpreter that finds no script would only say so on every node. */
static int look_for_script(const struct arguments *a, const struct command *c) {
    char cwd[4096];
    if (!c->script || file_exists(c->script))
        return 0;
    return verb_usage_error(a->verb, "there is no file %s in %s", c->script,
                            *c->script == '/'          ? "this machine"
                            : getcwd(cwd, sizeof(cwd)) ? cwd
                                                       : "this directory");
}

static int read_command(struct arena *arena, const struct arguments *a, struct command *ret) {
    struct err err = {0};
    if (!a->rest || !a->rest[0])
        return verb_usage_error(a->verb, "type your command behind --, as in: rankquake %s",
                                a->verb->example);
    if (command_parse(arena, (const char *const *)a->rest, ret, &err) != 0)
        return verb_usage_error(a->verb, "%s", err.msg);
    return look_for_script(a, ret);
}

int typed_read(struct arena *arena, const struct arguments *a, struct typed *ret) {
    struct generate_overrides w = {.launcher = arguments_value(a, "--launcher")};
    struct err err = {0};
    int64_t nodes = 0, workers = 0;
    if (a->files_n)
        return verb_usage_error(a->verb, "%s stands before --; the command stands behind it",
                                a->files[0]);
    int r = read_command(arena, a, &ret->command);
    if (r == 0)
        r = arguments_number(a, "--nodes", 2, 1000, &nodes);
    if (r == 0)
        r = arguments_number(a, "--workers", 1, 1000, &workers);
    w.nodes = (int)nodes;
    w.workers = (int)workers;
    if (r == 0 && generate(arena, &ret->command, &w, &ret->generated, &err) != 0)
        r = verb_usage_error(a->verb, "%s", err.msg);
    if (r)
        return r;
    ret->sets = arguments_sets(a, arena);
    for (const char **s = ret->sets; *s; s++)
        if (!strchr(*s, '=')) {
            r = verb_usage_error(a->verb, "--set %s: write KEY=VALUE", *s);
            break;
        }
    return r;
}

/* ---- its control run ---- */

void typed_put(const struct typed *t, struct buf *out) {
    buf_printf(out, "scenario: %s\n", t->command.name);
    generate_text(&t->generated, out);
}

struct scenario *typed_load(const struct typed *t, const char *const *sets, struct diagnostics *d) {
    char path[] = "/tmp/rankquake-typed-XXXXXX";
    struct buf text = {0};
    int fd = mkstemp(path);
    if (fd < 0)
        return NULL;
    typed_put(t, &text);
    bool written = file_write_all(fd, text.data, text.len, NULL) == 0;
    close(fd);
    struct scenario *s = written ? plan_load(path, sets, d) : NULL;
    unlink(path);
    buf_fini(&text);
    return s;
}

/* The folder of that kind in the cache for the command with these sets. What is wrong with it is
 * said when it is run. */
static bool find_folder(const struct typed *t, const char *const *sets, const char *bin,
                        const char *kind, char *ret, size_t size) {
    char key[65];
    struct diagnostics d = {0};
    struct scenario *s = typed_load(t, sets, &d);
    struct plan *p = s ? plan_make(s, 1, &d) : NULL;
    bool found = p && plan_check_host(p, NULL) == 0 && control_key(p, bin, key, NULL) == 0 &&
                 cache_dir(kind, key, ret, size, NULL) == 0;
    plan_free(p);
    scenario_free(s);
    diagnostics_fini(&d);
    return found;
}

bool typed_find_control(const struct typed *t, const char *bin, struct control *ret,
                        bool *ret_other) {
    char dir[4096];
    bool same = find_folder(t, t->sets, bin, "control", dir, sizeof(dir)) &&
                control_read(dir, ret, NULL) == 0;
    *ret_other = !same;
    static const char *const kinds[] = {"tried", "control"}; /* of try, and of a file of init's */
    bool found = same;
    for (size_t i = 0; i < 2 && !found; i++)
        found = find_folder(t, NULL, bin, kinds[i], dir, sizeof(dir)) &&
                control_read(dir, ret, NULL) == 0;
    return found;
}

void typed_keep_control(const struct typed *t, const char *bin, const struct control *c) {
    struct typed plain = *t;
    char dir[4096];
    plain.generated.undone = true; /* as it was typed, also where it cannot be done */
    if (find_folder(&plain, NULL, bin, "tried", dir, sizeof(dir)))
        control_keep(dir, c, NULL);
}

/* ---- in place of a file's job ---- */

static const char *list_of(struct arena *a, const char *key, const char *const *words) {
    BUF_FINI struct buf text = {0};
    struct json_writer w = {.out = &text};
    json_array(&w, NULL);
    for (; *words; words++)
        json_put_string(&w, NULL, *words);
    json_end_array(&w);
    return arena_printf(a, "%s=%s", key, buf_str(&text));
}

static void say_unused(const struct command *c) {
    bool used = !c->has_nnodes && !c->standalone && !c->workers && c->max_restarts < 0 && !c->etcd;
    for (size_t i = 0; c->notes[i]; i++)
        fprintf(stderr, "rankquake run: %s\n", c->notes[i]);
    if (!used)
        fputs("rankquake run: nodes, workers, restarts and the store are as the scenario says; the "
              "command's own are not used\n",
              stderr);
}

int typed_replace(struct arena *arena, const struct arguments *a, const char **sets,
                  const char ***ret_sets) {
    struct command c;
    int r = read_command(arena, a, &c);
    if (r)
        return r;
    const char **v = arena_array(arena, const char *, c.env_n + 4);
    size_t k = 0;
    v[k++] = list_of(arena, "job.run", c.run);
    if (c.launcher)
        v[k++] = c.launcher[1] ? list_of(arena, "launcher", c.launcher)
                               : arguments_set(arena, "launcher", c.launcher[0]);
    if (c.args[0])
        v[k++] = list_of(arena, "job.launcher_args", c.args);
    for (size_t i = 0; i < c.env_n; i++)
        v[k++] =
            arguments_set(arena, arena_printf(arena, "job.env.%s", c.env[i].key), c.env[i].value);
    say_unused(&c);
    *ret_sets = sets_join(arena, v, sets); /* what was said explicitly comes last, and wins */
    return 0;
}

void typed_print(char *const *words, struct buf *out) {
    plan_put_words((const char *const *)words, out);
}
