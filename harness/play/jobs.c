#include "harness/play/jobs.h"

#include "base/mem.h"
#include "base/sys/file.h"
#include "base/sys/loop.h"
#include "base/sys/process.h"
#include "harness/verb.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { JOB_WAITS = -1, JOB_RUNS = -2 }; /* in place of an exit code */

struct jobs;

struct jobs_running {
    struct jobs *owner;
    struct job *job; /* NULL: this place is free */
    struct process process;
    int output;
    struct loop_source *on_end;
};

struct jobs {
    struct job *v;
    size_t n;
    const struct jobs_spec *spec;
    struct loop *loop;
    struct jobs_running *places;
    int running_n;
    bool stopped, late;
    int signo; /* that was passed on, 0: none */
    struct err failure;
};

bool job_must_be_alone(const struct scenario *s) {
    for (size_t i = 0; i < s->timeline_n; i++)
        if (s->timeline[i].when.has_time || s->timeline[i].when.plus_ns)
            return true;
    return s->expect.detect_n || s->expect.recover_n;
}

/* ---- one ---- */

static int start(struct jobs *j, struct jobs_running *r, struct job *job, struct err *err) {
    ARENA_FINI struct arena a = {0};
    size_t options = 0, sets = 0, n = 0;
    while (j->spec->options[options])
        options++;
    while (job->sets && job->sets[sets])
        sets++;
    const char **argv = arena_array(&a, const char *, options + 2 * sets + 9);
    argv[n++] = program_invocation_name;
    argv[n++] = "run";
    argv[n++] = job->file;
    argv[n++] = "--seed";
    argv[n++] = arena_printf(&a, "%llu", (unsigned long long)job->seed);
    argv[n++] = "--repeat"; /* what the file says of it has been counted */
    argv[n++] = "1";
    argv[n++] = "--beside";
    for (size_t i = 0; i < options; i++)
        argv[n++] = j->spec->options[i];
    for (size_t i = 0; i < sets; i++) {
        argv[n++] = "--set";
        argv[n++] = job->sets[i];
    }
    int output = job->printed ? open(job->printed,
                                     O_RDWR | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0666)
                              : memfd_create("rankquake-output", MFD_CLOEXEC);
    struct process_spawn s = {.argv = argv,
                              .file = "/proc/self/exe",
                              .fds = (int[]){-1, output, output},
                              .group = true,
                              .death_signal = SIGTERM};
    int code = output < 0 ? err_set(err, -errno, "keep the output of %s", job->file)
                          : process_spawn(&s, &r->process, err);
    if (code) {
        file_close(&output);
        return code;
    }
    r->job = job;
    r->output = output;
    return 0;
}

static void print_output(int fd) {
    static char part[65536];
    ssize_t n;
    for (off_t at = 0; (n = pread(fd, part, sizeof(part), at)) > 0; at += n)
        fwrite(part, 1, (size_t)n, stdout);
    fflush(stdout);
}

static void start_more(struct jobs *j);

/* What ended by itself when it was late is as good as what was in time. */
static int code_of(const struct jobs *j, int status, bool died) {
    if (died)
        return EXIT_BROKEN;
    if (j->late)
        return WIFEXITED(status) ? WEXITSTATUS(status) : EXIT_INTERRUPTED;
    return j->signo ? EXIT_INTERRUPTED : WEXITSTATUS(status);
}

static void on_end(void *arg, int fd, int what) {
    struct jobs_running *r = arg;
    int status = 0;
    r->on_end = loop_source_free(r->on_end);
    process_reap(&r->process, -1, &status);
    process_close(&r->process);
    bool passed_on = r->owner->signo && WIFSIGNALED(status) && WTERMSIG(status) == r->owner->signo;
    bool died = !WIFEXITED(status) && !passed_on;
    r->job->code = code_of(r->owner, status, died);
    r->job->late = r->owner->late && r->job->code == EXIT_INTERRUPTED;
    r->owner->stopped |= r->job->code == EXIT_INTERRUPTED;
    if (r->owner->spec->shown)
        r->owner->spec->shown(r->owner->spec->arg, r->job, true);
    if (!r->owner->spec->ended)
        print_output(r->output);
    if (r->owner->spec->shown)
        r->owner->spec->shown(r->owner->spec->arg, r->job, false);
    if (died) {
        char text[64];
        fprintf(stderr, "rankquake run: %s: its harness died: %s\n", r->job->file,
                process_status_text(status, text, sizeof(text)));
    }
    file_close(&r->output);
    if (r->owner->spec->ended)
        r->owner->spec->ended(r->owner->spec->arg, r->job);
    r->job = NULL;
    r->owner->running_n--;
    start_more(r->owner);
}

/* ---- all ---- */

static bool is_before(const struct job *a, const struct job *b) {
    return a->alone != b->alone ? !a->alone : a->expected_ns > b->expected_ns;
}

/* A long one that is begun last would have the others' places stand empty beside it. */
static struct job *next(struct jobs *j) {
    struct job *best = NULL;
    for (size_t i = 0; i < j->n; i++)
        if (j->v[i].code == JOB_WAITS && (!best || is_before(&j->v[i], best)))
            best = &j->v[i];
    return best;
}

static struct jobs_running *free_place(struct jobs *j) {
    for (int i = 0; i < j->spec->at_once; i++)
        if (!j->places[i].job)
            return &j->places[i];
    return NULL;
}

/* Whoever must be alone waits until nobody else runs, and nobody joins it: it comes last. */
static void start_more(struct jobs *j) {
    struct job *job;
    struct jobs_running *place;
    while (!j->stopped && (place = free_place(j)) && (job = next(j))) {
        if (job->alone && j->running_n)
            break;
        int r = start(j, place, job, &j->failure);
        if (r) {
            j->stopped = true;
            break;
        }
        job->code = JOB_RUNS;
        j->running_n++;
        place->on_end = loop_fd(j->loop, place->process.pidfd, LOOP_READ, on_end, place);
        if (job->alone)
            break;
    }
    if (!j->running_n)
        loop_stop(j->loop);
}

static void on_signal(void *arg, int signo) {
    struct jobs *j = arg;
    j->stopped = true;
    j->late = false; /* whoever interrupts does not want what there is by then */
    j->signo = signo;
    for (int i = 0; i < j->spec->at_once; i++)
        if (j->places[i].job)
            process_signal(&j->places[i].process, signo);
}

static void on_until(void *arg, int64_t now) {
    struct jobs *j = arg;
    if (j->signo)
        return;
    on_signal(j, SIGTERM);
    j->late = true;
}

int jobs_run(struct job *jobs, size_t n, const struct jobs_spec *spec, struct err *err) {
    static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
    struct jobs j = {.v = jobs, .n = n, .spec = spec};
    j.loop = loop_new(err);
    if (!j.loop)
        return err->code;
    j.places = mem_array(struct jobs_running, (size_t)spec->at_once);
    for (int i = 0; i < spec->at_once; i++)
        j.places[i].owner = &j;
    for (size_t i = 0; i < n; i++)
        jobs[i].code = jobs[i].code >= 0 ? jobs[i].code : JOB_WAITS;
    for (size_t i = 0; i < 3; i++)
        loop_signal(j.loop, signals[i], on_signal, &j);
    if (spec->until_ns)
        loop_timer_at(loop_timer(j.loop, on_until, &j), spec->until_ns);
    start_more(&j);
    int r = j.running_n ? loop_run(j.loop, err) : 0;
    loop_free(j.loop);
    free(j.places);
    if (r == 0 && j.failure.code) {
        *err = j.failure;
        r = j.failure.code;
    }
    return r;
}
