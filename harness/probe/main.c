/* rankprobe: put in front of any worker command. It tells the harness what the worker was given,
 * then becomes the worker: same pid, same environment, same standard streams. Its connection closes
 * itself at the exec, which is how the harness knows that the worker has started.
 *
 *     rankprobe PROGRAM [ARGUMENT...]          with --no-python
 *     PYTHON_EXEC=rankprobe RANKQUAKE_PYTHON=python3 torchrun ... script.py */
#include "base/json.h"
#include "base/manual.h"
#include "base/sys/printing.h"
#include "base/sys/worker_env.h"
#include "scenarios/jobs/rankquake.h"

#include <fcntl.h>
#include <stdbool.h>

extern char **environ;

enum {
    VALUE_MAX = 700, /* the UUIDs of 16 devices */
    FIELDS_MAX = 3400,
    STARTS_MAX = 10000,
    EXIT_NOT_EXECUTABLE = 126,
    EXIT_NOT_FOUND = 127
};

/* The inside of the event's JSON object; stops before the message would grow too long. */
static void put_given(struct buf *out, const char *argv0) {
    struct json_writer w = {.out = out};
    json_put_i64(&w, "pid", getpid());
    json_put_string(&w, "argv0", argv0);
    json_object(&w, "env");
    for (char **e = environ; *e && out->len < FIELDS_MAX - VALUE_MAX; e++) {
        char *equals = strchr(*e, '=');
        char name[64];
        if (!equals || !worker_env_is_told(*e) || (size_t)(equals - *e) >= sizeof(name))
            continue;
        memcpy(name, *e, (size_t)(equals - *e));
        name[equals - *e] = '\0';
        size_t n = strlen(equals + 1);
        json_put_stringn(&w, name, equals + 1, n < VALUE_MAX ? n : VALUE_MAX);
    }
    json_end_object(&w);
}

/* What the worker prints goes into a file of its own: nobody stands between it and the disk, so
 * nobody can hold it up, and its children and its death change nothing. */
struct redirection {
    char name[64]; /* "": none asked for */
    int error;     /* errno, 0: it is done */
};

/* rank-3.log; when the rank has started here before, rank-3.2.log. */
static int make_file(const char *dir, char *ret_name, size_t size) {
    const char *rank = getenv("RANK");
    bool number = rank && *rank && strlen(rank) < 10 && strspn(rank, "0123456789") == strlen(rank);
    char path[4096], who[32], again[16] = "";
    if (number)
        snprintf(who, sizeof(who), "rank-%s", rank);
    else
        snprintf(who, sizeof(who), "pid-%d", (int)getpid());
    for (int i = 1; i < STARTS_MAX; i++) {
        if (i > 1)
            snprintf(again, sizeof(again), ".%d", i);
        snprintf(ret_name, size, "%s%s.log", who, again);
        if (snprintf(path, sizeof(path), "%s/%s", dir, ret_name) >= (int)sizeof(path))
            return -ENAMETOOLONG;
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
        if (fd >= 0 || errno != EEXIST)
            return fd < 0 ? -errno : fd;
    }
    return -EEXIST;
}

static struct redirection redirect(void) {
    struct redirection r = {0};
    const char *dir = getenv("RANKQUAKE_OUTPUT");
    if (!dir)
        return r;
    int fd = make_file(dir, r.name, sizeof(r.name));
    if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0)
        r.error = fd < 0 ? -fd : errno;
    if (r.error)
        fprintf(stderr, "rankprobe: %s/%s: %s; what this worker prints is not watched\n", dir,
                r.name, strerror(r.error));
    fcntl(STDOUT_FILENO, F_SETFD, 0); /* where these were closed, the file has their number */
    fcntl(STDERR_FILENO, F_SETFD, 0);
    unsetenv("RANKQUAKE_OUTPUT"); /* its children write where it does */
    if (fd > STDERR_FILENO)
        close(fd);
    return r;
}

static void put_redirection(struct buf *out, const struct redirection *r) {
    struct json_writer w = {.out = out, .comma = true};
    if (*r->name)
        json_put_string(&w, "output", r->name);
    if (r->error)
        json_put_string(&w, "output_error", strerror(r->error));
}

static void tell_start(struct rankquake *q, const char *argv0) {
    BUF_FINI struct buf fields = {0};
    struct redirection r = redirect();
    put_given(&fields, argv0);
    put_redirection(&fields, &r);
    rankquake_event(q, RANKQUAKE_WORKER_START, "%s", buf_str(&fields));
}

static int fail(struct rankquake *q, const char *program, int error) {
    char quoted[256], text[256];
    rankquake_quote(quoted, sizeof(quoted), program);
    snprintf(text, sizeof(text), "%s", strerror(error));
    rankquake_event(q, RANKQUAKE_EXEC_FAILED, "\"pid\":%d,\"error\":\"%s: %s\"", (int)getpid(),
                    quoted, text);
    fprintf(stderr, "rankprobe: cannot execute %s: %s\n", program, text);
    return error == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
}

static const char usage[] = "rankprobe PROGRAM [ARGUMENT...]";
static const char about[] = "Tells the harness what this worker was given, then becomes PROGRAM.\n";

static void print_manual(void) {
    BUF_FINI struct buf out = {0};
    const struct manual_part parts[] = {
        {.title = "DESCRIPTION",
         .text = about,
         .text_after =
             "It keeps its process, environment and standard streams; without a harness "
             "(RANKQUAKE_EVENTS) it only becomes PROGRAM. Put in the place of Python it is "
             "PYTHON_EXEC=rankprobe with RANKQUAKE_PYTHON=python3."},
        {.title = "EXIT STATUS",
         .words = (const char *const[][2]){{"64", "no program was named"},
                                           {"126", "PROGRAM cannot be executed"},
                                           {"127", "there is no PROGRAM"},
                                           {NULL, NULL}}},
        {0},
    };
    manual_put(&out, &(struct manual_page){
                         .name = "rankprobe",
                         .version = RANKQUAKE_VERSION,
                         .summary = "tell the harness of a worker, then become it",
                         .synopsis = (const char *const[]){usage, NULL},
                         .parts = parts,
                         .see_also = (const char *const[]){"rankquake", "rankrun", NULL}});
    printing_put(stdout, buf_str(&out), out.len);
}

int main(int argc, char **argv) {
    printing_begin();
    const char *python = getenv("RANKQUAKE_PYTHON");
    char **command = argv + 1;
    if (python) {
        argv[0] = strdup(python); /* the rest of the line is the interpreter's, as it was typed */
        command = argv;
        unsetenv("RANKQUAKE_PYTHON");
        unsetenv("PYTHON_EXEC");
    } else if (argc == 2 && strcmp(argv[1], "--man") == 0) {
        print_manual();
        return 0;
    } else if (argc < 2 || strcmp(argv[1], "--help") == 0) {
        fprintf(argc < 2 ? stderr : stdout, "usage: %s\n%s", usage, about);
        return argc < 2 ? 64 : 0;
    }
    struct rankquake q;
    int r = rankquake_open(&q);
    if (r < 0)
        fprintf(stderr, "rankprobe: RANKQUAKE_EVENTS=%s: %s; this worker goes unobserved\n",
                getenv("RANKQUAKE_EVENTS"), strerror(-r));
    tell_start(&q, command[0]);
    execvp(command[0], command);
    return fail(&q, command[0], errno);
}
