/* Whether Slurm's settings betray a job: what it does to one that is told to leave, whose node fails, or
 * whose processes linger. The controller is asked, by each host. */
#include "harness/preflight/probe.h"
#include "harness/preflight/slurm_settings.h"

#include "base/str.h"
#include "base/sys/file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { SAID_MAX = 1 << 18, GRACE_S = 30 };
static const int64_t SCONTROL_NS = INT64_C(10) * 1000000000;

/* 0: it has said so; 1: there is no such program; below 0: it has failed, and says why. */
static int say(const char *const *argv, struct buf *ret) {
    FILE_CLOSE int out = memfd_create("what scontrol says", MFD_CLOEXEC);
    FILE_CLOSE int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    struct process p;
    struct process_spawn s = {
        .argv = argv, .fds = (int[]){nowhere, out, out}, .death_signal = SIGKILL};
    int status = -1, r = process_spawn(&s, &p, NULL);
    if (r < 0)
        return r == -ENOENT ? 1 : r;
    if (process_reap(&p, SCONTROL_NS, &status) < 0) {
        process_signal(&p, SIGKILL);
        process_reap(&p, -1, NULL);
    }
    process_close(&p);
    if (lseek(out, 0, SEEK_SET) == 0)
        file_read_fd(out, SAID_MAX, ret, NULL);
    return status == 0 ? 0 : -EIO;
}

/* Clients alone may be installed. Without a configuration they look for one in the network, for long. */
static bool is_configured(void) {
    static const char *const places[] = {"/etc/slurm/slurm.conf", "/etc/slurm-llnl/slurm.conf",
                                         "/usr/local/etc/slurm.conf", "/run/slurm/conf/slurm.conf"};
    if (getenv("SLURM_CONF") || getenv("SLURM_CONF_SERVER"))
        return true;
    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++)
        if (access(places[i], R_OK) == 0)
            return true;
    return false;
}

static void look(const struct json *given, struct json_writer *w) {
    BUF_FINI struct buf config = {0}, partitions = {0};
    (void)given;
    int r = is_configured()
                ? say((const char *const[]){"scontrol", "show", "config", NULL}, &config)
                : 1;
    json_put_bool(w, "slurm", r != 1);
    if (r == 1)
        return;
    if (r == 0)
        r = say((const char *const[]){"scontrol", "--oneliner", "show", "partition", NULL},
                &partitions);
    json_put_string(w, r ? "failed" : "config", buf_str(&config));
    json_put_string(w, "partitions", buf_str(&partitions));
}

static void tell(void *arg, const char *sentence) {
    struct probing *p = arg;
    json_put_string(p->figures, NULL, sentence);
    probe_fail(p, "%s", sentence);
}

/* The first line of what it said: what follows is that it gives up. */
static void tell_failed(struct probing *p, size_t i, const char *said) {
    if (*said)
        probe_fail(p, "%s: scontrol show config: %.*s", p->v[i].host, (int)strcspn(said, "\n"),
                   said);
    else
        probe_fail(p, "%s: scontrol show config: no answer within 10 s; is slurmctld up?",
                   p->v[i].host);
}

/* Several hosts of one cluster hear the same of its controller: it is told once. */
static void judge(struct probing *p, const struct json *answer) {
    struct slurm_settings s = {.config = json_get_string(answer, "config", ""),
                               .partitions = json_get_string(answer, "partitions", ""),
                               .grace_s = json_get_i64(p->given, "grace_s", GRACE_S)};
    json_array(p->figures, "betray");
    int n = slurm_settings_judge(&s, tell, p);
    json_end_array(p->figures);
    if (n < 0)
        probe_fail(p, "scontrol show config names no SLURM_VERSION: is it Slurm's?");
    probe_pass(p, "no setting of Slurm's ends a job that could go on");
}

static void ask(struct probing *p) {
    const struct json **v = probe_look_all(p);
    const struct json *first = NULL;
    for (size_t i = 0; i < p->n; i++) {
        const char *failed = json_get_string(v[i], "failed", NULL);
        if (failed)
            tell_failed(p, i, failed);
        else if (!first && json_get_string(v[i], "config", NULL))
            first = v[i];
    }
    if (first)
        judge(p, first);
    else
        probe_skip(p, "no host has Slurm's scontrol and a slurm.conf");
}

const struct probe probe_slurm = {
    .name = "slurm",
    .text = "no settings of Slurm's that end a job which could go on, or keep it from coming back",
    .within_ns = INT64_C(25) * 1000000000,
    .look = look,
    .ask = ask,
};
