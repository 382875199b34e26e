/* What nodes that are processes of this host are made of, and what would make them namespaces. */
#include "harness/doctor/host_question.h"

#include "base/buf.h"
#include "base/sys/file.h"
#include "base/sys/loopback.h"
#include "base/sys/process.h"
#include "faults/need.h"

#include <stdlib.h>
#include <string.h>

static bool look_processes(struct question_result *r) {
    enum { STORE_PORT = 29400 };
    char prefix[LOOPBACK_PREFIX_MAX];
    struct err err = {0};
    int fd = loopback_claim(STORE_PORT, prefix, &err), adopts = process_adopt_orphans();
    if (fd < 0)
        question_lacks(r, "let this network have all of 127.0.0.0/8, as every Linux does by itself",
                       "%.200s", err.msg);
    else if (adopts < 0)
        question_lacks(r, "in a container, start it with --security-opt seccomp=unconfined",
                       "orphans cannot be adopted: %s", strerror(-adopts));
    else
        question_works(r, "nodes could have addresses of %s.0/24, and adopt their orphans", prefix);
    file_close(&fd);
    return r->status == QUESTION_WORKS;
}

const struct host_question host_question_processes = {
    .name = "processes",
    .gives = "nodes where namespaces are refused: trees of processes on the loopback",
    .part = QUESTION_FOR_PROCESSES,
    .demo = true,
    .look = look_processes,
};

static bool look_cut(struct question_result *r) {
    struct err err = {0};
    if (fault_needs_check(FAULT_NEEDS_SILENCE, &err) == 0)
        return question_works(r,
                              "a connection was cut at its socket and healed; new ones are seen");
    return question_lacks(r,
                          "allow ptrace and seccomp: in a container, start it with --cap-add "
                          "SYS_PTRACE --security-opt seccomp=unconfined",
                          "%.200s", err.msg);
}

const struct host_question host_question_cut = {
    .name = "cut",
    .gives = "network faults between nodes that are processes",
    .need = FAULT_NEEDS_SILENCE,
    .part = QUESTION_FOR_PROCESSES,
    .look = look_cut,
};

/* ---- the one thing that would give namespaces ---- */

static bool in_container(void) {
    BUF_FINI struct buf status = {0};
    bool filtered = file_read("/proc/self/status", 1 << 16, &status, NULL) == 0 &&
                    strstr(buf_str(&status), "\nSeccomp:\t2");
    return filtered || getenv("container") || file_exists("/.dockerenv") ||
           file_exists("/run/.containerenv");
}

const char *question_flag_for_namespaces(void) {
    static const struct {
        const char *name, *flag;
        long bad;
    } switches[] = {
        {"user/max_user_namespaces", "sudo sysctl user.max_user_namespaces=10000", 0},
        {"user/max_net_namespaces", "sudo sysctl user.max_net_namespaces=10000", 0},
        {"kernel/unprivileged_userns_clone", "sudo sysctl kernel.unprivileged_userns_clone=1", 0},
        {"kernel/apparmor_restrict_unprivileged_userns",
         "sudo sysctl kernel.apparmor_restrict_unprivileged_userns=0", 1},
    };
    bool container = in_container();
    for (size_t i = 0; !container && i < sizeof(switches) / sizeof(*switches); i++)
        if (question_sysctl(switches[i].name) == switches[i].bad)
            return switches[i].flag;
    if (container)
        return "docker run --cap-add SYS_ADMIN --device /dev/fuse --security-opt "
               "seccomp=unconfined --cap-add NET_ADMIN (and where AppArmor is on, --security-opt "
               "apparmor=unconfined)";
    return "sudo rankquake ... (as root)";
}
