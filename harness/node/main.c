/* rankquake-node: the node helper as a program of its own, for hosts that the harness reaches by a
 * command: it speaks the protocol of helpers over its standard streams (docs/carrier.md). It is linked
 * statically, so that a copy of it is all that such a host needs. */
#include "base/manual.h"
#include "base/str.h"
#include "base/sys/descriptors.h"
#include "base/sys/file.h"
#include "base/sys/printing.h"
#include "base/sys/process.h"
#include "harness/carrier/hello.h"
#include "harness/cluster/node_helper.h"
#include "harness/host/host_cut.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EXIT_BROKEN = 3, EXIT_USAGE = 64 };

static const int64_t END_WAIT_NS = 5000000000;

static pid_t kept;

static void pass_on(int signo) {
    kill(kept, signo);
}

static const char usage[] = "rankquake-node [--dead-man 10s | --outpost]";
static const char about[] =
    "Starts, strikes and watches what runs on this host for a rankquake that speaks to its "
    "standard "
    "input and reads its standard output. What it was told to do is undone, and ended, when nobody "
    "speaks to it any more.\n";
static const struct manual_option options[] = {
    {0, "--dead-man", "TIME", "how long nothing may be heard, until setup says so: 10s", NULL},
    {0, "--outpost", NULL, "be the rankquake beside it, which answers what preflight asks", NULL},
    {0, "--version", NULL, "its version, and that of the protocol", NULL},
    {0, "--help", NULL, "this text", NULL},
    {0}};

static void print_manual(void) {
    BUF_FINI struct buf out = {0};
    const struct manual_part parts[] = {
        {.title = "DESCRIPTION",
         .text = about,
         .text_after =
             "It is started by rankquake, by ssh or by whatever command reaches the host."},
        {.title = "OPTIONS", .options = options},
        {.title = "FILES",
         .words =
             (const char *const[][2]){{"/var/tmp/rankquake-UID/HOST.lock", "held during a run"},
                                      {"/var/tmp/rankquake-UID/HOST.acts.jsonl",
                                       "what was done on this host, a line for each act"},
                                      {NULL, NULL}}},
        {.title = "EXIT STATUS",
         .words = (const char *const[][2]){{"0", "the other end has gone, and nothing is left"},
                                           {"3", "it could not begin"},
                                           {"64", "an option that it does not know"},
                                           {NULL, NULL}}},
        {0},
    };
    manual_put(&out, &(struct manual_page){.name = "rankquake-node",
                                           .version = RANKQUAKE_VERSION,
                                           .summary = "do on this host what rankquake asks for",
                                           .synopsis = (const char *const[]){usage, NULL},
                                           .parts = parts,
                                           .see_also = (const char *const[]){"rankquake", NULL}});
    printing_put(stdout, buf_str(&out), out.len);
}

static void print_help(void) {
    printf("usage: %s\n%s\n", usage, about);
    for (const struct manual_option *o = options; o->name; o++)
        printf("  %-10s %-5s %s\n", o->name, o->value ? o->value : "", o->text);
}

static int refuse(const char *what, const char *why) {
    fprintf(stderr, "rankquake-node: %s: %s\nusage: %s\n", what, why, usage);
    return EXIT_USAGE;
}

/* What a helper that is killed leaves comes to its keeper, who ends it; a keeper that is killed takes
 * the helper along, which ends well. */
static int keep(pid_t helper) {
    int status = 0;
    char owner[NODE_HELPER_OWNER_MAX];
    node_helper_owner(helper, owner);  /* who has ended has no number any more */
    dup2(STDERR_FILENO, STDIN_FILENO); /* the other end sees the helper's end, not ours */
    dup2(STDERR_FILENO, STDOUT_FILENO);
    while (waitpid(helper, &status, 0) < 0 && errno == EINTR)
        ;
    if (!WIFEXITED(status)) /* the last words of who is ended now are answered */
        host_cut_mend_descendants();
    int left = process_end_descendants(END_WAIT_NS);
    int stay = node_helper_clear(owner);
    return WIFEXITED(status) && left == 0 && stay == 0 ? WEXITSTATUS(status) : EXIT_BROKEN;
}

static int serve(int64_t dead_man_ns);

/* The keeper is the one that was started, and stops for nothing that stops the helper. */
static int serve_kept(int64_t dead_man_ns) {
    const int ends[] = {SIGTERM, SIGINT, SIGHUP};
    int adopts = process_adopt_orphans();
    pid_t keeper = getpid(), helper = fork();
    if (adopts != 0 || helper < 0) {
        fprintf(stderr, "rankquake-node: become the keeper of a helper: %s\n", strerror(errno));
        return EXIT_BROKEN;
    }
    if (helper == 0) {
        prctl(PR_SET_PDEATHSIG, SIGTERM);
        return getppid() == keeper ? serve(dead_man_ns) : EXIT_BROKEN;
    }
    kept = helper;
    for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
        signal(ends[i], pass_on);
    return keep(helper);
}

static int serve(int64_t dead_man_ns) {
    struct err err;
    int in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3),
        out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
    dup2(STDERR_FILENO, STDOUT_FILENO); /* whatever prints must not print into frames */
    signal(SIGPIPE, SIG_IGN);
    const struct carrier_ends ends = {in, out, -1};
    if (in >= 0 && out >= 0 && node_helper_run(&ends, dead_man_ns, &err) == 0)
        return 0;
    fprintf(stderr, "rankquake-node: %s\n", in < 0 || out < 0 ? strerror(errno) : err.msg);
    return EXIT_BROKEN;
}

/* Who reaches the host by a command that ends with our name reaches the other program, too. */
static int become_outpost(void) {
    char folder[4096], path[4200];
    snprintf(path, sizeof(path), "%s/rankquake", file_own_folder(folder, sizeof(folder)));
    execl(path, "rankquake", "preflight", "--outpost", NULL);
    fprintf(stderr, "rankquake-node: start %s: %s\n", path, strerror(errno));
    return EXIT_BROKEN;
}

int main(int argc, char **argv) {
    struct err err;
    int64_t dead_man_ns = 10000000000;
    descriptors_open_standard();
    if (argc == 2 && str_eq(argv[1], "--man"))
        return print_manual(), 0;
    if (argc == 2 && str_eq(argv[1], "--help"))
        return print_help(), 0;
    if (argc == 2 && str_eq(argv[1], "--version"))
        return printf("rankquake-node %s, protocol %d\n", RANKQUAKE_VERSION, HELLO_VERSION), 0;
    for (int i = 1; i < argc; i++) {
        if (str_eq(argv[i], "--outpost"))
            return become_outpost();
        if (!str_eq(argv[i], "--dead-man"))
            return refuse(argv[i], "no such option");
        if (++i == argc)
            return refuse("--dead-man", "how long?");
        if (str_to_duration_ns(argv[i], &dead_man_ns, &err) != 0)
            return refuse("--dead-man", err.msg);
    }
    if (isatty(STDIN_FILENO)) /* nobody types frames */
        return refuse("standard input is a terminal", "it is started by rankquake");
    return serve_kept(dead_man_ns);
}
