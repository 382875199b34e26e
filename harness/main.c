/* rankquake: finds the verb and hands over. */
#include "base/str.h"
#include "base/sys/descriptors.h"
#include "base/sys/limits.h"
#include "base/sys/printing.h"
#include "base/sys/signals.h"
#include "harness/verbs.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* --help before "--", where somebody else's words begin. */
static bool asks_for_help(int argc, char **argv) {
    for (int i = 1; i < argc && !str_eq(argv[i], "--"); i++)
        if (str_eq(argv[i], "--help") || str_eq(argv[i], "-h"))
            return true;
    return false;
}

static int unknown_verb(const char *name) {
    const char *near = verb_nearest(name);
    if (near)
        fprintf(stderr, "rankquake: there is no verb \"%s\"; did you mean \"%s\"?\n", name, near);
    else
        fprintf(stderr, "rankquake: there is no verb \"%s\"; rankquake --help lists them\n", name);
    return EXIT_USAGE_ERROR;
}

/* ---- interrupted while nothing runs ---- */

static pid_t own_pid;
static char sentence[80];

/* A child that has not yet exec'ed leaves the words to us. */
static void on_interrupt(int signo) {
    if (getpid() != own_pid) {
        signal(signo, SIG_DFL);
        raise(signo);
        return;
    }
    ssize_t n = write(STDERR_FILENO, sentence, strlen(sentence));
    (void)n;
    _exit(EXIT_INTERRUPTED);
}

/* Until a run takes the signals, and after it: it has something to take down, we have not. What is
 * ignored stays so. */
static void take_interrupts(const struct verb *v) {
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction ours = {.sa_handler = on_interrupt}, before;
    own_pid = getpid();
    snprintf(sentence, sizeof(sentence), "rankquake %s: interrupted; no run was under way\n",
             v->name);
    for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
        if (sigaction(signals[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
            sigaction(signals[i], &ours, NULL);
}

static int start(const struct verb *v, int argc, char **argv) {
    struct arguments a;
    if (v->main)
        return v->main(argc, argv);
    int code = arguments_read(&a, v, argc, argv);
    if (code)
        return code;
    code = v->run(&a);
    arguments_fini(&a);
    return code;
}

static int dispatch(int argc, char **argv) {
    if (argc < 2) {
        verbs_print_help(stderr);
        return EXIT_USAGE_ERROR;
    }
    if (str_eq(argv[1], "--help") || str_eq(argv[1], "-h")) {
        verbs_print_help(stdout);
        return 0;
    }
    if (str_eq(argv[1], "--version")) {
        puts("rankquake " RANKQUAKE_VERSION);
        return 0;
    }
    const struct verb *v = verb_find(argv[1]);
    if (!v)
        return unknown_verb(argv[1]);
    if (v->summary && asks_for_help(argc - 1, argv + 1)) {
        verb_print_help(v, stdout);
        return 0;
    }
    if (v->summary)
        take_interrupts(v); /* not for nodes and wires, which end with their harness */
    return start(v, argc - 1, argv + 1);
}

enum { STACK_BYTES = 1 << 20 };

int main(int argc, char **argv) {
    struct err err;
    signal_ignore_writes();
    descriptors_open_standard();
    if (limits_want_stack(STACK_BYTES, &err) < 0) {
        fprintf(stderr, "rankquake: %s\n", err.msg);
        return EXIT_BROKEN;
    }
    printing_begin();
    int code = dispatch(argc, argv);
    if (descriptors_flush_stdout())
        return code;
    fputs("rankquake: not all of it could be printed: is the disk of standard output full?\n",
          stderr);
    return code == EXIT_PASS ? EXIT_BROKEN : code;
}
