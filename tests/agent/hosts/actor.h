/* actor: what a test's own program is when a launcher starts it: the far end of one, an ssh, or an agent that does what its
 * words say. Agents keep signals until they are told to take them, and hear what a launcher says: one that is to get a signal
 * says first that it is there, and whoever brings it about waits for that. */
#pragma once

#include "agent/hosts/remote.h"
#include "base/str.h"
#include "base/sys/line.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Numbers that no host has (class E): an ssh that does not come through, one that finds no rankrun, one that somebody kills,
 * one that takes nothing of what it is told, and hosts that are reached. */
#define NO_WAY    "240.0.0.255"
#define NO_RUN    "240.0.0.127"
#define NO_LUCK   "240.0.0.9"
#define DEAF      "240.0.0.44"
#define REACHED   "240.0.0.1"
#define REACHED_2 "240.0.0.2"

/* A line from the FIFO that HEARD names, which the launcher writes to. */
static inline void actor_hear(FILE *tells) {
    char line[512] = "";
    size_t n = 0;
    int fd = open(getenv("HEARD"), O_RDONLY | O_CLOEXEC);
    while (n + 1 < sizeof(line) && read(fd, line + n, 1) == 1 && line[n] != '\n')
        n++;
    line[n] = '\0';
    close(fd);
    if (tells)
        fprintf(tells, "heard %s\n", line);
}

/* The next signal that somebody sends, which ends nobody here. */
static inline void actor_await(void) {
    sigset_t all;
    int signo = 0;
    sigfillset(&all);
    sigwait(&all, &signo);
    printf("signal %d\n", signo);
}

static inline void actor_die(int signo) {
    sigset_t none;
    sigemptyset(&none);
    fflush(stdout);
    signal(signo, SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    raise(signo);
}

static inline void actor_show_input(void) {
    char target[64] = "", byte;
    ssize_t n = readlink("/proc/self/fd/0", target, sizeof(target) - 1);
    printf("input %s, %zd bytes\n", n > 0 ? target : "?", read(0, &byte, 1));
}

static inline void actor_show_variable(const char *name) {
    const char *value = getenv(name);
    if (value && strlen(value) > 100)
        printf("%s has %zu bytes\n", name, strlen(value));
    else
        printf("%s is %s\n", name, value ? value : "not there");
}

static inline void actor_show_signal(int signo) {
    struct sigaction a;
    sigset_t blocked;
    sigaction(signo, NULL, &a);
    sigprocmask(SIG_SETMASK, NULL, &blocked);
    printf("signal %d is %s\n", signo, a.sa_handler == SIG_DFL ? "as usual" : "another");
}

static inline void actor_print(FILE *to, int n, char c) {
    for (int i = 0; i < n; i++)
        putc(c, to);
}

/* One word and what it is about. */
static inline void actor_do(const char *word, const char *about) {
    char dir[4096];
    if (str_eq(word, "say"))
        puts(about);
    else if (str_eq(word, "begin"))
        fputs(about, stdout);
    else if (str_eq(word, "warn"))
        fprintf(stderr, "%s\n", about);
    else if (str_eq(word, "many"))
        actor_print(stdout, atoi(about), 'x');
    else if (str_eq(word, "variable"))
        actor_show_variable(about);
    else if (str_eq(word, "where"))
        puts(getcwd(dir, sizeof(dir)) ? dir : "?");
    else if (str_eq(word, "input"))
        actor_show_input();
    else if (str_eq(word, "handles"))
        actor_show_signal(atoi(about));
    else if (str_eq(word, "tell"))
        kill(atoi(getenv("LAUNCHER")), atoi(about));
    else if (str_eq(word, "await"))
        actor_await();
    else if (str_eq(word, "wait"))
        actor_hear(NULL);
    else if (str_eq(word, "hear"))
        actor_hear(str_eq(about, "and warn") ? stderr : stdout);
    else if (str_eq(word, "die"))
        actor_die(atoi(about));
    else if (str_eq(word, "end"))
        exit(atoi(about));
    fflush(NULL);
}

static inline int actor_agent(char **words) {
    sigset_t all;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    for (; words[0] && words[1]; words += 2)
        actor_do(words[0], words[1]);
    return words[0] ? 64 : 0;
}

/* How it was called, where somebody asks for that: whoever reads it sees each word. */
static inline void actor_show(int argc, char **argv) {
    if (!getenv("SHOWN"))
        return;
    for (int i = 0; i < argc; i++)
        fprintf(stderr, "<%s>", i ? argv[i] : str_base(argv[i]));
    fprintf(stderr, "%s\n", getpgrp() == getpid() ? " in a group of its own" : "");
}

static inline int actor_remote(int argc, char **argv) {
    actor_show(argc, argv);
    line_as_json(argc > 2 && str_eq(argv[2], REMOTE_JSON));
    return remote_main();
}

static inline int actor_ssh(int argc, char **argv) {
    char *deaf[] = {"say", "taking nothing", "hear", "", "end", "3", NULL};
    const char *host = argc > 2 ? argv[argc - 2] : "";
    actor_show(argc, argv);
    if (str_eq(host, NO_WAY))
        return 255;
    if (str_eq(host, NO_RUN))
        return 127;
    if (str_eq(host, NO_LUCK))
        actor_die(SIGKILL);
    if (str_eq(host, DEAF))
        return actor_agent(deaf);
    execl("/bin/sh", "sh", "-c", argv[argc - 1], (char *)NULL);
    return 126;
}

/* The exit code where this program was started as one of them; -1: it is the test. */
static inline int actor_main(int argc, char **argv) {
    if (str_eq(str_base(argv[0]), "ssh"))
        return actor_ssh(argc, argv);
    if (argc > 1 && str_eq(argv[1], "an-ssh"))
        return actor_ssh(argc - 1, argv + 1);
    if (argc > 1 && str_eq(argv[1], "remote"))
        return actor_remote(argc, argv);
    if (argc > 1 && str_eq(argv[1], "agent"))
        return actor_agent(argv + 2);
    return -1;
}
