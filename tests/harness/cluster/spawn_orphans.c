/* Kills a harness with SIGKILL and waits until the kernel has taken its cluster away:
 * spawn_orphans early|late DIR [processes]. early: while the nodes are being made; late: with a
 * program in each and TCP connections between them. Ends 0 when no process is left and every
 * network namespace has ended, by SIGALRM when something stays. */
#include "base/sys/namespace.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/net_namespace.h>
#include <linux/rtnetlink.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PATIENCE_S = 40, NAMESPACES_MAX = 8 };

static void die(const char *what) __attribute__((noreturn));
static void die(const char *what) {
    perror(what);
    exit(1);
}

/* The kernel tells a network namespace that has given others a number when they end, and holds
 * nothing for it. */
static int watch_namespaces(void) {
    int group = RTNLGRP_NSID, nl = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (nl < 0 || setsockopt(nl, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &group, sizeof(group)) != 0)
        die("netlink");
    return nl;
}

static void give_number(int nl, const char *pid, int number) {
    struct {
        struct nlmsghdr header;
        struct rtgenmsg general;
        char pad[3];
        struct rtattr a;
        int32_t fd;
        struct rtattr b;
        int32_t number;
    } m = {
        .header = {.nlmsg_len = sizeof(m), .nlmsg_type = RTM_NEWNSID, .nlmsg_flags = NLM_F_REQUEST},
        .a = {.rta_len = RTA_LENGTH(4), .rta_type = NETNSA_FD},
        .b = {.rta_len = RTA_LENGTH(4), .rta_type = NETNSA_NSID},
        .number = number};
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/ns/net", atoi(pid));
    m.fd = open(path, O_RDONLY | O_CLOEXEC);
    if (m.fd < 0 || send(nl, &m, sizeof(m), 0) < 0)
        die(path);
    close(m.fd);
}

static void await_ends(int nl, int namespaces) {
    char bytes[8192];
    for (int ended = 0; ended < namespaces;) {
        ssize_t n = recv(nl, bytes, sizeof(bytes), 0);
        if (n < 0)
            die("netlink");
        size_t left = (size_t)n;
        for (struct nlmsghdr *h = (void *)bytes; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
            ended += h->nlmsg_type == RTM_DELNSID;
            if (h->nlmsg_type == NLMSG_ERROR && ((struct nlmsgerr *)NLMSG_DATA(h))->error)
                die("the kernel gives no number to a namespace");
        }
    }
}

static pid_t start_harness(const char *dir, const char *how, FILE **ret_out) {
    char self[PATH_MAX];
    int out[2];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 32);
    if (n < 0 || pipe2(out, O_CLOEXEC) != 0)
        die("prepare");
    self[n] = 0;
    strcpy(strrchr(self, '/'), "/spawn_cluster");
    pid_t pid = fork();
    if (pid == 0) {
        namespace_die_with_parent();
        dup2(out[1], STDOUT_FILENO);
        execl(self, self, "wait", dir, how, (char *)NULL);
        _exit(127);
    }
    close(out[1]);
    *ret_out = fdopen(out[0], "r");
    return pid;
}

int main(int argc, char **argv) {
    struct err err;
    FILE *out;
    char line[64];
    int namespaces = 0;
    const char *how = argc == 4 ? argv[3] : NULL;
    if (argc != 3 && argc != 4)
        return 2;
    bool late = strcmp(argv[1], "late") == 0;
    alarm(PATIENCE_S);
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); /* orphans come to us: none left, none there */
    if (!how && (namespace_enter(&err) != 0 || unshare(CLONE_NEWNET) != 0))
        die("namespaces");
    int nl = how ? -1 : watch_namespaces();
    pid_t harness = start_harness(argv[2], how, &out);
    while (fgets(line, sizeof(line), out) && strcmp(line, late ? "up\n" : "begun\n") != 0)
        if (!how && atoi(line) && namespaces < NAMESPACES_MAX)
            give_number(nl, line, ++namespaces);
    if (late && !how && namespaces != 4)
        die("the cluster did not come up");
    kill(harness, SIGKILL);
    while (wait(NULL) > 0 || errno == EINTR)
        ;
    if (!how)
        await_ends(nl, namespaces);
    return 0;
}
