/* ranktrain: the reference training job. An image classifier on Fashion-MNIST, and the weights at the end are
 * bit for bit the same whatever the number of workers and however often it was interrupted. */
#include "scenarios/jobs/ranktrain/evaluate.h"
#include "scenarios/jobs/ranktrain/manual.h"
#include "scenarios/jobs/ranktrain/options.h"
#include "scenarios/jobs/ranktrain/prepare/prepare.h"
#include "scenarios/jobs/ranktrain/spawn.h"
#include "scenarios/jobs/ranktrain/train.h"

#include "base/sys/limits.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
    EXIT_USAGE = 64,
    STACK_BYTES = 1 << 20 /* of the kernels of OpenBLAS and the shards of a step */
};

static void print_help(void) {
    char text[8192];
    options_manual(text, sizeof(text));
    printf("usage: ranktrain [OPTION...] [DATA-DIR]\n       ranktrain prepare --to=DIR "
           "[OPTION...]\n\n%s\n%s\n%s",
           manual_about, text, manual_after);
}

static int prepare(int argc, char **argv) {
    struct prepare p;
    struct err err = {0};
    int r = prepare_parse(argc, argv, &p, &err);
    if (r == 0 && p.help)
        prepare_help();
    bool parsed = r == 0;
    if (r == 0 && !p.help)
        r = prepare_run(&p, &err);
    if (r < 0)
        fprintf(stderr, "ranktrain prepare: %s\n", err.msg);
    return r == 0 ? 0 : parsed ? 1 : EXIT_USAGE;
}

static void print_evaluate_help(void) {
    printf("usage: ranktrain evaluate --model-dir=DIR [OPTION...]\n\n"
           "Follows the checkpoints in DIR and prints step, loss and accuracy on the test set of "
           "each. None\nthat it has not read is taken away meanwhile (--checkpoint-keep).\n\n"
           "  --model-dir=DIR         waited for when it is not there\n"
           "  --eval-freq=N           those whose step is a multiple of N; 1 unless said\n"
           "  --max-steps=N           ends behind the checkpoint of that step; else by SIGTERM\n"
           "  --eval-batch-size=N     images at once\n"
           "  --network=NAME          those of this network alone; else each as it says itself\n"
           "  --dataset=NAME          --data-dir=DIR, --image-size=N: as for the training\n"
           "  --interval=SECONDS      look so often, on NFS and the like, which tell nothing\n");
}

/* Ends as the signal would have ended it, so that whoever waits for this process can tell. */
static int end_by_sigterm(void) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    signal(SIGTERM, SIG_DFL);
    raise(SIGTERM);
    sigprocmask(SIG_UNBLOCK, &set, NULL);
    return 128 + SIGTERM;
}

static int evaluate_main(int argc, char **argv) {
    struct ranktrain_options o;
    struct err err = {0};
    if (evaluate_parse(argc, argv, &o, &err) < 0) {
        fprintf(stderr, "ranktrain evaluate: %s\n", err.msg);
        return EXIT_USAGE;
    }
    if (o.help)
        print_evaluate_help();
    if (o.version)
        printf("ranktrain %s\n", RANKQUAKE_VERSION);
    int r = o.help || o.version ? 0 : evaluate_run(&o, &err);
    if (r < 0)
        fprintf(stderr, "ranktrain evaluate: %s\n", err.msg);
    return r < 0;
}

/* What was printed is why the program was run: where a line of it could not be written it has not done its work. The
 * status it ends with then. */
static int printed(int status) {
    if (fflush(stdout) == 0 && !ferror(stdout))
        return status;
    fprintf(stderr, "ranktrain: standard output does not take all that is printed: a full disk?\n");
    return status ? status : 1;
}

static int run(int argc, char **argv) {
    struct ranktrain_options o;
    struct err err = {0}, stuck = {0};
    if (argc > 1 && strcmp(argv[1], MANUAL_WORDS) == 0)
        return manual_print_words((const char *const *)argv + 2, (size_t)argc - 2);
    if (argc > 1 && strcmp(argv[1], "prepare") == 0)
        return prepare(argc - 1, argv + 1);
    if (limits_want_stack(STACK_BYTES, &err) < 0) {
        fprintf(stderr, "ranktrain: %s\n", err.msg);
        return 1;
    }
    if (argc > 1 && strcmp(argv[1], "evaluate") == 0)
        return evaluate_main(argc - 1, argv + 1);
    if (options_parse(argc, argv, &o, &err) < 0) {
        fprintf(stderr, "ranktrain: %s\n", err.msg);
        return EXIT_USAGE;
    }
    if (o.help)
        print_help();
    if (o.version)
        printf("ranktrain %s\n", RANKQUAKE_VERSION);
    if (o.man)
        manual_print();
    if (o.complete)
        return manual_print_script(o.complete) ? 0 : EXIT_USAGE;
    if (o.help || o.version || o.man)
        return 0;
    int r = o.spawn ? spawn_ranks(&o, argv, &err) : train_run(&o, &stuck, &err);
    if (r == -ECANCELED)
        return end_by_sigterm();
    if (r > 0)
        return r;
    if (r < 0)
        fprintf(stderr, "ranktrain: rank %d: %s\n", o.rank, err.msg);
    if (stuck.code) {
        fprintf(stderr, "ranktrain: rank %d: %s\n", o.rank, stuck.msg);
        fflush(NULL);
        _exit(r < 0); /* what exit would call may wait for it */
    }
    return r == -EXDEV ? EXIT_USAGE : r < 0; /* the checkpoints are of other options */
}

int main(int argc, char **argv) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    return printed(run(argc, argv));
}
