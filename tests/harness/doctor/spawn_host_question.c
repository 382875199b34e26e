/* One question, tried: spawn_host_question works|lacks|dies|silent|moves. Prints its status and
 * what was seen. */
#include "base/str.h"
#include "harness/doctor/host_question.h"

#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *experiment;

static bool look(struct question_result *r) {
    puts("what a library prints is not for the user");
    fflush(stdout);
    question_works(r, "it was given %s", r->given->etcd);
    if (str_eq(experiment, "lacks"))
        question_lacks(r, "fix it", "it is broken");
    if (str_eq(experiment, "dies"))
        kill(getpid(), SIGKILL);
    if (str_eq(experiment, "silent"))
        _exit(0);
    if (str_eq(experiment, "moves") && chdir("/") != 0)
        question_lacks(r, "", "it cannot move");
    return r->status == QUESTION_WORKS;
}

int main(int argc, char **argv) {
    struct host_question p = {.name = "p", .gives = "nothing", .look = look};
    struct question_given given = {.etcd = "here"};
    struct question_result r;
    struct stat before, after;
    experiment = argc == 2 ? argv[1] : "works";
    int moved = stat(".", &before);
    question_try(&p, &given, &r);
    moved |= stat(".", &after) || before.st_ino != after.st_ino;
    printf("%s: %s; %s%s\n", r.status == QUESTION_WORKS ? "works" : "lacks", r.seen, r.fix,
           moved ? " (and it has moved us)" : "");
    return 0;
}
