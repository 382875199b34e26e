#include "harness/own_checks.h"

#include "agent/base/str.h"
#include "agent/sys/clock.h"
#include "agent/sys/file.h"
#include "agent/sys/process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ANSWER_MAX = 1 << 20 };

static const char broken[] = "Own check: the program says whether the run is as it should be.";

/* ---- what it printed ---- */

static int read_status(const struct json *answer, enum finding_status *ret, struct err *err) {
    const char *said = json_get_string(answer, "status", NULL);
    size_t given = 0;
    json_each(it, answer) given += str_eq(it->key, "status");
    for (int s = FINDING_PASS; s <= FINDING_SKIP && said; s++)
        if (str_eq(said, finding_status_name((enum finding_status)s)) && given == 1) {
            *ret = (enum finding_status)s;
            return 0;
        }
    return err_say(err, -EBADMSG,
                   "its answer must say once \"status\": \"pass\", \"fail\", \"unknown\" or "
                   "\"skip\"");
}

static bool has_record(const struct history *h, int64_t seq) {
    size_t low = 0, high = h->n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (h->records[middle]->seq < seq)
            low = middle + 1;
        else
            high = middle;
    }
    return low < h->n && h->records[low]->seq == seq;
}

static int read_evidence(struct finding *f, const struct history *h, const struct json *list,
                         struct err *err) {
    if (list && list->type != JSON_ARRAY)
        return err_say(err, -EBADMSG, "\"evidence\" must be a list of the seq of records");
    json_each(it, list) {
        if (it->type != JSON_INT || !has_record(h, it->integer))
            return err_say(err, -EBADMSG,
                           "\"evidence\" names a record that the history does not have");
        finding_prove(f, it->integer);
    }
    return 0;
}

int own_check_read(struct finding *f, const struct history *h, const char *text, size_t len,
                   struct err *err) {
    struct arena a = {0};
    struct err why = {0};
    struct finding found = {.check = f->check, .class = f->class};
    const struct json *answer = json_parse(&a, text, len, &why);
    int r = 0;
    if (!answer || answer->type != JSON_OBJECT)
        r = err_say(err, -EBADMSG, "it must print one JSON object, as {\"status\": \"pass\"}");
    if (r == 0)
        r = read_status(answer, &found.status, err);
    if (r == 0)
        r = read_evidence(&found, h, json_get(answer, "evidence"), err);
    if (r == 0) {
        bool open = found.status == FINDING_FAIL || found.status == FINDING_UNKNOWN;
        str_copy(found.seen, sizeof(found.seen), json_get_string(answer, "seen", ""));
        if (!*found.seen)
            str_copy(found.seen, sizeof(found.seen), "the program gave no reason");
        if (open)
            str_copy(found.broken, sizeof(found.broken), broken);
        if (open)
            str_copy(found.expected, sizeof(found.expected),
                     json_get_string(answer, "expected", ""));
        *f = found;
    }
    arena_fini(&a);
    return r;
}

/* ---- running it ---- */

static int spawn(const struct own_check *c, const char *history_path, const char *dir,
                 struct process *p, int *ret_out, struct err *err) {
    int ends[2];
    struct buf log = {0};
    if (dir) {
        buf_printf(&log, "%s/checks", dir);
        file_make_dirs(buf_str(&log), 0777, NULL);
        buf_printf(&log, "/%s.log", c->name);
    }
    FILE_CLOSE int errors =
        dir ? open(buf_str(&log), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666) : -1;
    buf_fini(&log);
    if (errors < 0)
        errors = open("/dev/null", O_WRONLY | O_CLOEXEC);
    FILE_CLOSE int in = open(history_path, O_RDONLY | O_CLOEXEC);
    if (in < 0)
        return err_set(err, -errno, "open %s", history_path);
    if (pipe2(ends, O_CLOEXEC) < 0)
        return err_set(err, -errno, "make a pipe");
    FILE_CLOSE int out = ends[1];
    const int fds[] = {in, out, errors};
    const char *const env[] = {"RANKQUAKE_RUN", dir ? dir : ""};
    setenv(env[0], env[1], 1);
    const struct process_spawn s = {
        .argv = c->program, .fds = fds, .group = true, .death_signal = SIGKILL};
    int r = process_spawn(&s, p, err);
    unsetenv(env[0]);
    if (r < 0)
        close(ends[0]);
    else
        *ret_out = ends[0];
    return r;
}

/* false: there is no more, for now or for ever. */
static bool read_some(int fd, struct buf *answer) {
    char block[4096];
    ssize_t n = read(fd, block, sizeof(block));
    if (n > 0 && answer->len <= ANSWER_MAX)
        buf_put(answer, block, (size_t)n);
    return n > 0;
}

/* Until it has ended; what it leaves running does not count. False: it was too late. */
static bool wait_for(const struct process *p, int out, struct buf *answer, int64_t deadline_ns) {
    struct pollfd fds[] = {{.fd = p->pidfd, .events = POLLIN}, {.fd = out, .events = POLLIN}};
    fcntl(out, F_SETFL, O_NONBLOCK);
    for (;;) {
        int64_t left_ms = (deadline_ns - clock_monotonic_ns()) / 1000000;
        int n = left_ms > 0 ? poll(fds, 2, left_ms < 1000000 ? (int)left_ms : 1000000) : 0;
        if (n == 0 && clock_monotonic_ns() >= deadline_ns - 1000000)
            return false;
        if (fds[0].revents)
            break;
        if (fds[1].revents && !read_some(out, answer))
            fds[1].fd = -1;
    }
    while (answer->len <= ANSWER_MAX && read_some(out, answer))
        ;
    return true;
}

static int run_program(const struct own_check *c, const char *history_path, const char *dir,
                       struct buf *answer, struct err *err) {
    struct process p;
    int out = -1, status = 0;
    char text[64];
    int r = spawn(c, history_path, dir, &p, &out, err);
    if (r < 0)
        return r;
    bool ended = wait_for(&p, out, answer, clock_monotonic_ns() + c->within_ns);
    kill(-p.pid, SIGKILL);
    r = process_reap(&p, 10000000000, &status);
    process_close(&p);
    close(out);
    if (!ended)
        return err_say(err, -ETIME, "it had not answered after %lld ms",
                       (long long)(c->within_ns / 1000000));
    if (r < 0)
        return err_set(err, r, "nobody knows how it ended");
    if (status)
        return err_say(err, -EIO, "it ended with %s",
                       process_status_text(status, text, sizeof(text)));
    if (answer->len > ANSWER_MAX)
        return err_say(err, -EMSGSIZE, "it printed more than a megabyte");
    return 0;
}

static void judge_one(struct finding *f, const struct own_check *c, const struct history *h,
                      const char *history_path, const char *dir) {
    struct buf answer = {0};
    struct err err = {0};
    int r = run_program(c, history_path, dir, &answer, &err);
    if (r == 0)
        r = own_check_read(f, h, buf_str(&answer), answer.len, &err);
    if (r < 0) {
        finding_unknown(f, broken, "%s gave no answer: %s", c->program[0], err.msg);
        if (dir)
            snprintf(f->where, sizeof(f->where), "checks/%s.log", c->name);
    }
    buf_fini(&answer);
}

void own_checks_judge(struct verdict *v, const struct scenario *s, const struct history *h,
                      const char *history_path, const char *dir, bool run) {
    for (size_t i = 0; i < s->checks_n; i++) {
        struct finding f = {
            .check = s->checks[i].label, .class = CLASS_EXPECT, .status = FINDING_UNKNOWN};
        if (run)
            judge_one(&f, &s->checks[i], h, history_path, dir);
        else
            finding_unknown(&f, broken, "the program was not started (--no-programs)");
        verdict_add(v, h, f);
    }
}
