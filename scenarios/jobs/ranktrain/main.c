/* ranktrain: the reference training job. LeNet-5 on Fashion-MNIST, and the weights at the end are
 * bit for bit the same whatever the number of workers and however often it was interrupted. */
#include "scenarios/jobs/ranktrain/options.h"
#include "scenarios/jobs/ranktrain/train.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { EXIT_USAGE = 64 };

static void print_help(void) {
    char text[4096];
    options_manual(text, sizeof(text));
    printf("usage: ranktrain [OPTION...]\n\n"
           "Trains LeNet-5 on Fashion-MNIST, alone or as one rank of a job under torchrun or "
           "rankrun.\nThe last line of rank 0 is the SHA-256 of the weights.\n\n%s\n"
           "On a GPU it computes by ranktrain_cuda.so beside this program (RANKTRAIN_CUDA names "
           "another\nfile), on the visible device with the number LOCAL_RANK. The model is then "
           "not the CPU's.\n--dist-backend=nccl sums over libnccl.so.2 (NCCL_LIB names another "
           "file), and every worker of\na node needs a GPU of its own.\n\n"
           "Exit status: 0, 1 when it failed, 64 for wrong options; it ends by SIGTERM when asked "
           "to.\n",
           text);
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

/* What the kernels of OpenBLAS and the shards of a step have on it. */
static int want_stack(struct err *err) {
    struct rlimit l;
    const rlim_t needed = 1 << 20;
    if (getrlimit(RLIMIT_STACK, &l) < 0 || l.rlim_cur >= needed) /* infinity is more, too */
        return 0;
    rlim_t had = l.rlim_cur;
    l.rlim_cur = needed;
    if (l.rlim_max >= needed && setrlimit(RLIMIT_STACK, &l) == 0)
        return 0;
    return err_say(err, -ENOMEM, "the stack may have %llu kB here and needs %llu: ulimit -s 8192",
                   (unsigned long long)had / 1024, (unsigned long long)needed / 1024);
}

int main(int argc, char **argv) {
    struct options o;
    struct err err = {0}, stuck = {0};
    setvbuf(stdout, NULL, _IOLBF, 0);
    if (want_stack(&err) < 0) {
        fprintf(stderr, "ranktrain: %s\n", err.msg);
        return 1;
    }
    if (options_parse(argc, argv, &o, &err) < 0) {
        fprintf(stderr, "ranktrain: %s\n", err.msg);
        return EXIT_USAGE;
    }
    if (o.help)
        print_help();
    if (o.version)
        printf("ranktrain %s\n", RANKQUAKE_VERSION);
    if (o.help || o.version)
        return 0;
    int r = train_run(&o, &stuck, &err);
    if (r == -ECANCELED)
        return end_by_sigterm();
    if (r < 0)
        fprintf(stderr, "ranktrain: rank %d: %s\n", o.rank, err.msg);
    if (stuck.code) {
        fprintf(stderr, "ranktrain: rank %d: %s\n", o.rank, stuck.msg);
        fflush(NULL);
        _exit(r < 0); /* what exit would call may wait for it */
    }
    return r < 0;
}
