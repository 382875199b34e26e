/* Prints the table of verbs, and the usage of one: for people, as a manual page, and for shells. */
#include "base/completion.h"
#include "base/str.h"
#include "base/sys/printing.h"
#include "harness/verbs.h"
#include "harness/verbs/manuals.h"

static int put(struct buf *text) {
    bool put = printing_put(stdout, buf_str(text), text->len);
    return put ? EXIT_PASS : EXIT_BROKEN;
}

/* Where a shell asks nothing of us ends in an error: it reads what is printed, and no more. */
static int complete(const struct arguments *a) {
    BUF_FINI struct buf text = {0};
    size_t n = 0;
    while (a->rest && a->rest[n])
        n++;
    manuals_complete(&text, (const char *const *)a->rest, n);
    return put(&text);
}

static int print_script(const struct arguments *a, const char *shell) {
    BUF_FINI struct buf text = {0};
    if (!completion_script(&text, shell, "rankquake", "help --words"))
        return verb_usage_error(a->verb, "--complete %s: write bash, fish or zsh", shell);
    return put(&text);
}

static int help(const struct arguments *a) {
    BUF_FINI struct buf page = {0};
    const char *shell = arguments_value(a, "--complete");
    if (arguments_value(a, "--words"))
        return complete(a);
    if (a->files_n > 1 || a->rest)
        return verb_usage_error(a->verb, "one verb at a time");
    if (shell)
        return print_script(a, shell);
    const struct verb *v = a->files_n ? verb_find(a->files[0]) : NULL;
    bool man = arguments_value(a, "--man");
    if (a->files_n && (!v || (man && !v->summary)))
        return verb_usage_error(a->verb, "there is no verb \"%s\"", a->files[0]);
    if (man)
        manuals_put(&page, v);
    else if (v)
        verb_print_help(v, stdout);
    else
        verbs_print_help(stdout);
    return put(&page);
}

const struct verb verb_help = {
    .name = "help",
    .usage = "help [VERB] [--man], or help --complete SHELL",
    .summary = "list the verbs, or show how to use one",
    .example = "help run",
    .operands = "VERB",
    .options =
        (const struct verb_option[]){
            {"--man", NULL, "print the manual page, of rankquake or of a verb: ... | man -l -"},
            {"--complete", "bash|fish|zsh", "print what makes this shell complete command lines"},
            {"--words", NULL, NULL},
            {0}},
    .run = help,
};
