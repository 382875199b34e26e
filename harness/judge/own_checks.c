#include "harness/judge/own_checks.h"

#include "base/str.h"
#include "base/sys/file.h"
#include "harness/observe/question.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { ANSWER_MAX = 1 << 20 };

extern char **environ;

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

static int read_evidence(struct finding *f, const struct history *h, const struct json *list,
                         struct err *err) {
    if (list && list->type != JSON_ARRAY)
        return err_say(err, -EBADMSG, "\"evidence\" must be a list of the seq of records");
    json_each(it, list) {
        if (it->type != JSON_INT || !history_record(h, it->integer))
            return err_say(err, -EBADMSG,
                           "\"evidence\" names a record that the history does not have");
        finding_prove(f, it->integer);
    }
    return 0;
}

int own_check_read(struct finding *f, const struct history *h, const char *text, size_t len,
                   struct err *err) {
    ARENA_FINI struct arena a = {0};
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
    return r;
}

/* ---- running it ---- */

/* One program that is asked, and what came of it. */
struct own_checks_asked {
    const struct own_check *check;
    const struct history *history;
    struct loop *loop;
    struct finding *finding;
    struct err *err;
    int code;
    bool has_log; /* what it has said besides is kept */
};

/* Where it may write what it has to say besides; what nobody keeps goes nowhere. */
static int open_log(struct own_checks_asked *q, const struct folder *dir) {
    BUF_FINI struct buf name = {0};
    int fd = -1;
    buf_printf(&name, "checks/%s.log", q->check->name);
    if (dir && folder_make(dir, "checks", 0777, NULL) == 0)
        fd = folder_create(dir, buf_str(&name), NULL);
    q->has_log = fd >= 0;
    return q->has_log ? fd : open("/dev/null", O_WRONLY | O_CLOEXEC);
}

static const char *const *environment(struct arena *a, const struct folder *dir) {
    static const char name[] = "RANKQUAKE_RUN=";
    size_t n = 0, all = 0;
    while (environ[all])
        all++;
    const char **env = arena_array(a, const char *, all + 2);
    for (char **p = environ; *p; p++)
        if (!str_starts(*p, name))
            env[n++] = *p;
    env[n] = arena_printf(a, "%s%s", name, dir ? dir->path : "");
    return env;
}

static void on_answer(void *arg, const struct question_answer *a) {
    struct own_checks_asked *q = arg;
    if (a->late)
        q->code = err_say(q->err, -ETIME, "it had not answered after %lld ms",
                          (long long)(q->check->within_ns / 1000000));
    else if (a->ended)
        q->code = err_say(q->err, -EIO, "%s", a->ended);
    else if (a->too_long)
        q->code = err_say(q->err, -EMSGSIZE, "it printed more than a megabyte");
    else
        q->code = own_check_read(q->finding, q->history, a->text, a->len, q->err);
    loop_stop(q->loop);
}

static int ask(struct own_checks_asked *q, int file, const struct folder *dir) {
    ARENA_FINI struct arena a = {0};
    FILE_CLOSE int in = open(arena_printf(&a, "/proc/self/fd/%d", file), O_RDONLY | O_CLOEXEC);
    FILE_CLOSE int errors = open_log(q, dir);
    if (in < 0) {
        return err_set(q->err, -errno, "open the history again");
    }
    q->loop = loop_new(q->err);
    if (!q->loop)
        return q->err->code;
    const int fds[] = {in, -1, errors};
    const struct question_spec spec = {
        .program = {.argv = q->check->program, .envp = environment(&a, dir), .fds = fds},
        .bytes_max = ANSWER_MAX,
        .within_ns = q->check->within_ns};
    if (!question_ask(q->loop, &spec, on_answer, q, q->err))
        q->code = q->err->code;
    else if (loop_run(q->loop, q->err) < 0)
        q->code = q->err->code;
    loop_free(q->loop);
    return q->code;
}

static void judge_one(struct finding *f, const struct own_check *c, const struct history *h,
                      int file, const struct folder *dir) {
    struct err err = {0};
    struct own_checks_asked q = {.check = c, .history = h, .finding = f, .err = &err};
    if (ask(&q, file, dir) >= 0)
        return;
    finding_unknown(f, broken, "%s gave no answer: %s", c->program[0], err.msg);
    if (q.has_log)
        snprintf(f->where, sizeof(f->where), "checks/%s.log", c->name);
}

void own_checks_judge(struct verdict *v, const struct scenario *s, const struct history *h,
                      int file, const struct folder *dir, bool run) {
    for (size_t i = 0; i < s->checks_n; i++) {
        struct finding f = {
            .check = s->checks[i].label, .class = CLASS_EXPECT, .status = FINDING_UNKNOWN};
        if (run)
            judge_one(&f, &s->checks[i], h, file, dir);
        else
            finding_unknown(&f, broken, "the program was not started (--programs starts it)");
        verdict_add(v, h, f);
    }
}
