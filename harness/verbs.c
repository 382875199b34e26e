#include "harness/verbs.h"

#include "base/str.h"

#include <stdarg.h>

const struct verb *const verbs[] = {
#define X(name) &verb_##name,
    VERBS(X)
#undef X
        NULL,
};

const struct verb *verb_find(const char *name) {
    for (size_t i = 0; verbs[i]; i++)
        if (str_eq(verbs[i]->name, name))
            return verbs[i];
    return NULL;
}

const char *verb_nearest(const char *name) {
    const char *names[sizeof(verbs) / sizeof(*verbs)];
    size_t n = 0;
    for (size_t i = 0; verbs[i]; i++)
        if (verbs[i]->summary)
            names[n++] = verbs[i]->name;
    names[n] = NULL;
    return str_nearest(name, names);
}

void verb_print_help(const struct verb *v, FILE *out) {
    fprintf(out, "usage: rankquake %s\n\n%s\n", v->usage, v->summary ? v->summary : "");
    const struct verb_option *o = v->options;
    if (o && o->name)
        fputs("\noptions\n", out);
    for (; o && o->name; o++) {
        char left[40];
        if (!o->text)
            continue; /* ours, not for people */
        snprintf(left, sizeof(left), "%s%s%s", o->name, o->value ? " " : "",
                 o->value ? o->value : "");
        fprintf(out, "  %-22s %s\n", left, o->text);
    }
    if (v->example)
        fprintf(out, "\nexample: rankquake %s\n", v->example);
}

const char *const exit_meanings[][2] = {
    {"0", "passed"},
    {"1", "a check failed"},
    {"2", "inconclusive"},
    {"3", "the harness or the control run broke"},
    {"4", "skipped"},
    {"5", "cleanup incomplete"},
    {"64", "usage or a bad scenario"},
    {"130", "interrupted"},
    {NULL, NULL},
};

/* Folded as the table of verbs is wide. */
static void print_exits(FILE *out) {
    enum { COLUMNS = 88, INDENT = 12 };
    size_t column = INDENT - 2;
    fputs("exit codes:", out);
    for (size_t i = 0; exit_meanings[i][0]; i++) {
        char one[80];
        int n = snprintf(one, sizeof(one), " %s %s%s", exit_meanings[i][0], exit_meanings[i][1],
                         exit_meanings[i + 1][0] ? "," : "\n");
        if (column + (size_t)n > COLUMNS)
            column = (size_t)fprintf(out, "\n%*s", INDENT - 1, "") - 1;
        column += (size_t)fprintf(out, "%s", one);
    }
}

void verbs_print_help(FILE *out) {
    fputs("rankquake: break your training job on purpose, before the cluster does\n\n"
          "usage: rankquake VERB ...\n\n",
          out);
    for (size_t i = 0; verbs[i]; i++)
        if (verbs[i]->summary)
            fprintf(out, "  %-12s %s\n", verbs[i]->name, verbs[i]->summary);
    fputs(
        "\nrankquake VERB --help shows how to use a verb; rankquake --version prints the build.\n",
        out);
    print_exits(out);
}

int verb_broken(const struct verb *v, const struct err *err) {
    fprintf(stderr, "rankquake %s: %s\n", v->name, err->msg);
    return EXIT_BROKEN;
}

int verb_usage_error(const struct verb *v, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    fprintf(stderr, "rankquake %s: ", v->name);
    vfprintf(stderr, fmt, ap);
    fprintf(stderr, "\nusage: rankquake %s\n", v->usage);
    va_end(ap);
    return EXIT_USAGE_ERROR;
}
