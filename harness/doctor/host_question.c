#include "harness/doctor/host_question.h"

#include "base/buf.h"
#include "base/sys/file.h"
#include "base/sys/namespace.h"
#include "harness/doctor/host_questions.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WAIT_MS = 10000 };

const struct host_question *const host_questions[] = {
#define X(name) &host_question_##name,
    HOST_QUESTIONS(X)
#undef X
        NULL,
};

bool question_works(struct question_result *r, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    r->status = QUESTION_WORKS;
    vsnprintf(r->seen, sizeof(r->seen), fmt, ap);
    va_end(ap);
    return true;
}

bool question_lacks(struct question_result *r, const char *fix, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    r->status = QUESTION_LACKS;
    vsnprintf(r->seen, sizeof(r->seen), fmt, ap);
    snprintf(r->fix, sizeof(r->fix), "%s", fix);
    va_end(ap);
    return false;
}

bool question_unasked(struct question_result *r, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    r->status = QUESTION_UNASKED;
    vsnprintf(r->seen, sizeof(r->seen), fmt, ap);
    va_end(ap);
    return false;
}

long question_sysctl(const char *name) {
    char path[200];
    BUF_FINI struct buf text = {0};
    snprintf(path, sizeof(path), "/proc/sys/%s", name);
    long value = file_read(path, 4096, &text, NULL) == 0 ? atol(buf_str(&text)) : -1;
    return value;
}

/* Libraries that are tried may print; only the answer counts. */
static void be_quiet(void) {
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; null >= 0 && fd < 3; fd++)
        dup2(null, fd);
}

static void look_and_tell(const struct host_question *p, const struct question_given *given,
                          int out) __attribute__((noreturn));
static void look_and_tell(const struct host_question *p, const struct question_given *given,
                          int out) {
    struct question_result r = {.given = given};
    namespace_die_with_parent();
    be_quiet();
    p->look(&r);
    _exit(write(out, &r, sizeof(r)) != sizeof(r));
}

void question_try(const struct host_question *p, const struct question_given *given,
                  struct question_result *ret) {
    int out[2];
    *ret = (struct question_result){0};
    question_lacks(ret, "try rankquake doctor again", "it could not be tried: out of resources");
    if (pipe2(out, O_CLOEXEC) != 0)
        return;
    pid_t pid = fork();
    if (pid == 0)
        look_and_tell(p, given, out[1]);
    close(out[1]);
    if (pid > 0) {
        struct pollfd wait = {.fd = out[0], .events = POLLIN};
        struct question_result told;
        bool late = poll(&wait, 1, WAIT_MS) == 0;
        if (late)
            question_lacks(ret, "find out what makes it hang", "it had no answer within %d s",
                           WAIT_MS / 1000);
        else if (read(out[0], &told, sizeof(told)) == sizeof(told))
            *ret = told;
        else
            question_lacks(ret, "look into the kernel's log", "it died while it was tried");
        kill(pid, SIGKILL);
        waitpid(pid, NULL, 0);
    }
    close(out[0]);
}
