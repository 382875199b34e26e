/* mutate: where in our sources a bug can be planted by machine, and the source with one of them.
 *
 *     mutate operators                          what kinds there are
 *     mutate list FILE... -- FLAG...            every point: FILE:LINE, identity
 *     mutate draw SEED SAMPLE ROOM FILE... -- FLAG...
 *                                               every point in the order of the seed (draw.h); ROOM -: all
 *     mutate apply IDENTITY -- FLAG...          the whole text of the file with that one
 *     mutate follow UNIT TOTAL [FD]             passes lines on, one for each of UNIT that was tried, and shows how far it is;
 *                                               FD: as --json-progress; "quiet" in its place: as --quiet
 *
 * Paths are those that identities begin with. FLAG: what the compiler is told. Exit: 0; 1 when a source cannot be read or
 * an identity is none; 64 for a command line that is none. */
#include "base/mem.h"
#include "base/str.h"
#include "reports/headway.h"
#include "tests/mutate/draw.h"
#include "tests/mutate/operator.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_USAGE_BAD = 64 };

struct flags {
    const char *const *v;
    int n;
};

static int usage(void) {
    fputs("usage: mutate operators | list FILE... | draw SEED SAMPLE ROOM FILE... | apply IDENTITY,"
          " each with -- FLAG..., or follow UNIT TOTAL [FD | quiet]\n",
          stderr);
    return EXIT_USAGE_BAD;
}

static int say(const struct err *err) {
    fprintf(stderr, "mutate: %s\n", err->msg);
    return 1;
}

static int find_in(struct points *p, char **files, int n, struct flags flags, struct err *err) {
    int r = 0;
    for (int i = 0; i < n && !r; i++) {
        struct source s;
        r = source_open(&s, files[i], flags.v, flags.n, err);
        if (!r)
            points_find(p, &s);
        source_close(&s);
    }
    return r;
}

static int list(char **files, int n, struct flags flags) {
    struct points p = {0};
    struct err err = {0};
    int r = find_in(&p, files, n, flags, &err);
    for (size_t i = 0; i < p.n && !r; i++)
        printf("%s:%u\t%s\n", p.v[i].path, p.v[i].line, p.v[i].identity);
    points_fini(&p);
    return r ? say(&err) : 0;
}

static int draw(char **args, int n, struct flags flags) {
    struct points p = {0};
    struct err err = {0};
    int64_t seed, sample;
    if (n < 4 || !str_to_i64(args[0], 0, INT64_MAX, &seed) ||
        !str_to_i64(args[1], 1, 1000000, &sample))
        return usage();
    struct draw_spec spec = {(uint64_t)seed, (int)sample, str_eq(args[2], "-") ? NULL : args[2]};
    int r = find_in(&p, args + 3, n - 3, flags, &err);
    if (!r)
        draw_print(&p, &spec, stdout);
    points_fini(&p);
    return r ? say(&err) : 0;
}

static int print_mutant(const struct points *p, const struct source *s, const char *identity) {
    for (size_t i = 0; i < p->n; i++) {
        if (!str_eq(p->v[i].identity, identity))
            continue;
        BUF_FINI struct buf out = {0};
        point_apply(&p->v[i], s, &out);
        return fwrite(out.data, 1, out.len, stdout) == out.len && fflush(stdout) == 0 ? 0 : 1;
    }
    fprintf(stderr, "mutate: there is no point %s (any more); list prints all\n", identity);
    return 1;
}

static int apply(const char *identity, struct flags flags) {
    struct points p = {0};
    struct err err = {0};
    struct source s;
    const char *colon = strchr(identity, ':');
    if (!colon)
        return usage();
    char *path = mem_printf("%.*s", (int)(colon - identity), identity);
    int r = source_open(&s, path, flags.v, flags.n, &err);
    if (r) {
        r = say(&err);
    } else {
        points_find(&p, &s);
        r = print_mutant(&p, &s, identity);
    }
    points_fini(&p);
    source_close(&s);
    free(path);
    return r;
}

static int print_operators(void) {
    for (int i = 0; operators[i]; i++)
        printf("%-24s%s\n", operators[i]->name, operators[i]->summary);
    return 0;
}

/* What stands in a line is the note of the next: who was tried last, and how it went. */
static int follow(const char *unit, const char *total, const char *wish) {
    struct headway_wish w = {.quiet = str_eq(wish, "quiet"), .json = -1};
    int64_t n, fd, done = 0;
    char *line = NULL;
    size_t size = 0;
    if (!str_to_i64(total, 0, 1000000, &n))
        return usage();
    if (wish && !w.quiet && !str_to_i64(wish, 1, 1 << 20, &fd))
        return usage();
    w.json = wish && !w.quiet ? (int)fd : -1;
    struct headway h;
    headway_begin(&h, &(struct headway_spec){
                          .out = stdout, .verb = "mutate", .unit = unit, .total = n, .wish = w});
    for (ssize_t length; (length = getline(&line, &size, stdin)) > 0;) {
        headway_erase(&h);
        if (!w.quiet)
            fputs(line, stdout);
        fflush(stdout);
        line[strcspn(line, "\n")] = '\0';
        headway_at(&h, ++done, line);
    }
    headway_end(&h);
    free(line);
    return 0;
}

int main(int argc, char **argv) {
    int end = 1;
    while (end < argc && !str_eq(argv[end], "--"))
        end++;
    struct flags flags = {(const char *const *)argv + end + 1, end < argc ? argc - end - 1 : 0};
    if (argc == 2 && str_eq(argv[1], "operators"))
        return print_operators();
    if ((argc == 4 || argc == 5) && str_eq(argv[1], "follow"))
        return follow(argv[2], argv[3], argv[4]);
    if (end > 2 && str_eq(argv[1], "list"))
        return list(argv + 2, end - 2, flags);
    if (end > 2 && str_eq(argv[1], "draw"))
        return draw(argv + 2, end - 2, flags);
    if (end == 3 && str_eq(argv[1], "apply"))
        return apply(argv[2], flags);
    return usage();
}
