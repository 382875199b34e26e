/* starting: a program that does nothing but wait for the end of its input, with what a test gives it. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

struct started {
    pid_t pid;
    int input; /* it ends when this is closed */
};

/* Returns when the program is executed. out, err: -1: /dev/null. */
static inline struct started started_begin(const char *const *environment, int out, int err) {
    const char *const argv[] = {"cat", "-", NULL};
    int input[2], executed[2];
    char byte;
    assert_int_equal(pipe2(input, O_CLOEXEC), 0);
    assert_int_equal(pipe2(executed, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        dup2(input[0], STDIN_FILENO);
        dup2(out < 0 ? null : out, STDOUT_FILENO);
        dup2(err < 0 ? null : err, STDERR_FILENO);
        execve("/bin/cat", (char *const *)(uintptr_t)argv, (char *const *)(uintptr_t)environment);
        _exit(1);
    }
    assert_true(pid > 0);
    close(input[0]);
    close(executed[1]);
    assert_int_equal(read(executed[0], &byte, 1), 0);
    close(executed[0]);
    return (struct started){pid, input[1]};
}

static inline void started_end(struct started *s) {
    int status;
    close(s->input);
    assert_int_equal(waitpid(s->pid, &status, 0), s->pid);
    assert_int_equal(status, 0);
}
