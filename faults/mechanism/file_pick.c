#include "faults/mechanism/file_pick.h"

#include "base/rand.h"
#include "base/str.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PARTS_MAX = 16, FOUND_MAX = 10000 };

const char *const file_age_names[] = {"newest", "oldest", "seeded", NULL};

int file_pattern_check(const char *pattern, struct err *err) {
    int parts = 0;
    for (const char *p = pattern; p; parts++) {
        size_t n = strcspn(p, "/");
        if (!n || (n == 1 && *p == '.') || (n == 2 && p[0] == '.' && p[1] == '.') || n > NAME_MAX)
            return err_say(err, -EINVAL,
                           "\"%.200s\" is no pattern of a path: a part of it is empty, . or ..",
                           pattern);
        p = p[n] ? p + n + 1 : NULL;
    }
    return parts <= PARTS_MAX && strlen(pattern) < PATH_MAX
               ? 0
               : err_say(err, -EINVAL, "\"%.200s\" is too long: %d parts at most", pattern,
                         PARTS_MAX);
}

/* ---- all that match ---- */

struct search {
    const struct folder *in;
    struct texts found;
};

static const char all_below[] = "**";

static void expand(struct search *s, const char *so_far, const char *rest);

static void go_on(struct search *s, const char *so_far, const char *name, const char *rest) {
    char path[PATH_MAX];
    int n = snprintf(path, sizeof(path), "%s%s%s", so_far, *so_far ? "/" : "", name);
    if (n >= (int)sizeof(path))
        return;
    if (rest)
        expand(s, path, rest);
    else if (s->found.n < FOUND_MAX && folder_has(s->in, path))
        texts_add(&s->found, "%s", path);
}

static int depth_of(const char *path) {
    int n = 1;
    while ((path = strchr(path, '/')))
        path++, n++;
    return n;
}

/* What the last part is like: of two stars all files below, however deep. */
static void go_below(struct search *s, const char *so_far, const char *name) {
    char path[PATH_MAX];
    if (snprintf(path, sizeof(path), "%s%s%s", so_far, *so_far ? "/" : "", name) >=
        (int)sizeof(path))
        return;
    if (!folder_has_directory(s->in, path))
        go_on(s, so_far, name, NULL);
    else if (depth_of(path) < PARTS_MAX)
        expand(s, path, all_below);
}

/* rest: the parts that are to come. */
static void expand(struct search *s, const char *so_far, const char *rest) {
    char part[NAME_MAX + 1];
    TEXTS_FINI struct texts names = {0};
    size_t n = strcspn(rest, "/");
    const char *next = rest[n] ? rest + n + 1 : NULL;
    snprintf(part, sizeof(part), "%.*s", (int)n, rest);
    if (!strpbrk(part, "*?[\\")) {
        go_on(s, so_far, part, next);
        return;
    }
    folder_list(s->in, *so_far ? so_far : ".", NULL, &names, NULL);
    for (size_t i = 0; i < names.n; i++)
        if (str_eq(names.v[i], ".") || str_eq(names.v[i], "..") ||
            fnmatch(part, names.v[i], FNM_PERIOD) != 0)
            continue;
        else if (!next && str_eq(part, all_below))
            go_below(s, so_far, names.v[i]);
        else
            go_on(s, so_far, names.v[i], next);
}

static int by_version(const void *a, const void *b) {
    return strverscmp(*(char *const *)a, *(char *const *)b);
}

static int find_all(struct search *s, const char *pattern, struct err *err) {
    int r = file_pattern_check(pattern, err);
    if (r)
        return r;
    expand(s, "", pattern);
    if (!s->found.n)
        return err_say(err, -ENOENT, "nothing in %s matches %s", s->in->path, pattern);
    qsort(s->found.v, s->found.n, sizeof(*s->found.v), by_version);
    return 0;
}

/* ---- one of them ---- */

static int64_t changed_ns(const struct folder *in, const char *path) {
    const char *name;
    struct folder parent;
    struct stat st = {0};
    if (folder_enter_parent(&parent, in, path, &name, NULL) != 0)
        return 0;
    fstatat(parent.fd, name, &st, AT_SYMLINK_NOFOLLOW);
    folder_close(&parent);
    return st.st_mtim.tv_sec * INT64_C(1000000000) + st.st_mtim.tv_nsec;
}

static size_t choose(const struct search *s, enum file_age age, uint64_t seed) {
    struct rand rand;
    rand_init(&rand, seed);
    if (age == FILE_SEEDED)
        return rand_below(&rand, s->found.n);
    size_t best = 0;
    int64_t best_ns = changed_ns(s->in, s->found.v[0]);
    for (size_t i = 1; i < s->found.n; i++) {
        int64_t ns = changed_ns(s->in, s->found.v[i]);
        if (age == FILE_NEWEST ? ns >= best_ns : ns < best_ns) {
            best = i;
            best_ns = ns;
        }
    }
    return best;
}

int file_pick(const struct folder *in, const char *pattern, enum file_age age, uint64_t seed,
              char ret[PATH_MAX], struct err *err) {
    struct search s = {.in = in};
    int r = find_all(&s, pattern, err);
    if (r == 0)
        str_copy(ret, PATH_MAX, s.found.v[choose(&s, age, seed)]);
    texts_fini(&s.found);
    return r;
}

static size_t directory_length(const char *path) {
    return (size_t)(str_base(path) - path);
}

static const char *next_of(const struct search *s, const char *path, bool beside) {
    size_t n = directory_length(path);
    const char *first = NULL;
    for (size_t i = 0; i < s->found.n; i++) {
        const char *one = s->found.v[i];
        if (str_eq(one, path) ||
            (beside && (directory_length(one) != n || strncmp(one, path, n) != 0)))
            continue;
        if (strverscmp(one, path) > 0)
            return one;
        first = first ? first : one;
    }
    return first;
}

int file_pick_other(const struct folder *in, const char *pattern, const char *path,
                    char ret[PATH_MAX], struct err *err) {
    struct search s = {.in = in};
    int r = find_all(&s, pattern, err);
    const char *other = r ? NULL : next_of(&s, path, true);
    other = r || other ? other : next_of(&s, path, false);
    if (r == 0 && !other)
        r = err_say(err, -ENOENT, "nothing but %s in %s matches %s", path, in->path, pattern);
    if (r == 0)
        str_copy(ret, PATH_MAX, other);
    texts_fini(&s.found);
    return r;
}
