#include "faults/scheduler/slurm.h"

#include "base/buf.h"
#include "base/str.h"
#include "base/sys/file.h"
#include "base/sys/process.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ENVIRONMENT_MAX = 2 << 20, SAID_MAX = 256 << 10 };
static const int64_t COMMAND_NS = 20000000000, END_NS = 5000000000;

/* NAME=value, whole or from behind the sign; "" where there is none. */
static void take(const struct buf *words, const char *name, bool whole, char *ret, size_t size) {
    size_t n = strlen(name);
    for (size_t at = 0; at < words->len; at += strlen(words->data + at) + 1)
        if (strncmp(words->data + at, name, n) == 0 && words->data[at + n] == '=') {
            str_copy(ret, size, words->data + at + (whole ? 0 : n + 1));
            return;
        }
}

/* What Slurm has told the process; "" where it has told nothing. */
static int read_job(pid_t pid, const char *name, struct slurm_job *ret, struct err *err) {
    BUF_FINI struct buf words = {0};
    struct slurm_job j = {.id = ""};
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    int r = pid > 0 ? file_read(path, ENVIRONMENT_MAX, &words, err) : -ESRCH;
    if (r == -ESRCH || r == -ENOENT)
        return err_say(err, -ESRCH, "%s is not running", name);
    if (r < 0)
        return r;
    take(&words, "SLURM_CONF", true, j.conf, sizeof(j.conf));
    take(&words, "PATH", true, j.path, sizeof(j.path));
    take(&words, "SLURM_JOB_ID", false, j.id, sizeof(j.id));
    take(&words, "SLURMD_NODENAME", false, j.node, sizeof(j.node));
    *ret = j;
    return 0;
}

int slurm_job_of(const struct target *t, struct slurm_job *ret, struct err *err) {
    struct slurm_job j;
    int r = read_job(t->pid, t->name, &j, err);
    if (r < 0)
        return r;
    if (!*j.id || !*j.node)
        return err_say(err, -ESRCH, "%s was not started by Slurm: it has no SLURM_JOB_ID", t->name);
    *ret = j;
    return 0;
}

/* The last line of what a command has said, or how it ended. */
static int tell(const char *const *argv, struct buf *said, int status, struct err *err) {
    char how[64];
    while (said->len && said->data[said->len - 1] == '\n')
        said->data[--said->len] = '\0';
    const char *line = strrchr(buf_str(said), '\n');
    return err_say(err, -EIO, "%s %s: %s", argv[0], argv[1],
                   said->len ? line ? line + 1 : buf_str(said)
                             : process_status_text(status, how, sizeof(how)));
}

static int wait_for(struct process *child, const char *const *argv, int *ret_status,
                    struct err *err) {
    int r = process_reap(child, COMMAND_NS, ret_status);
    if (r == -ETIME) {
        process_signal(child, SIGKILL);
        process_reap(child, -1, NULL);
    }
    process_close(child);
    return r < 0 ? err_say(err, r, "%s %s: no answer of Slurm within 20 s", argv[0], argv[1]) : 0;
}

int slurm_ask(const struct slurm_job *j, const char *const *argv, struct buf *ret,
              struct err *err) {
    const char *const env[] = {*j->path ? j->path : "PATH=/usr/bin:/bin", *j->conf ? j->conf : NULL,
                               NULL};
    FILE_CLOSE int said = memfd_create("slurm", MFD_CLOEXEC),
                   null = open("/dev/null", O_RDWR | O_CLOEXEC);
    struct process child = PROCESS_NONE;
    int status = 0;
    const struct process_spawn s = {
        .argv = argv, .envp = env, .fds = (const int[]){null, said, said}, .death_signal = SIGKILL};
    int r = process_spawn(&s, &child, err);
    r = r < 0 ? r : wait_for(&child, argv, &status, err);
    if (r < 0)
        return r;
    lseek(said, 0, SEEK_SET);
    file_read_fd(said, SAID_MAX, ret, NULL);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : tell(argv, ret, status, err);
}

int slurm_command(const struct slurm_job *j, const char *const *argv, struct err *err) {
    BUF_FINI struct buf said = {0};
    return slurm_ask(j, argv, &said, err);
}

int slurm_set_state(const struct slurm_job *j, const char *state, struct err *err) {
    char node[300], wanted[64];
    snprintf(node, sizeof(node), "NodeName=%s", j->node);
    snprintf(wanted, sizeof(wanted), "State=%s", state);
    return slurm_command(
        j, (const char *const[]){"scontrol", "update", node, wanted, "Reason=rankquake", NULL},
        err);
}

static pid_t find_daemon(pid_t above, const char *name) {
    pid_t *pids, found = 0;
    char text[32];
    size_t n = process_list_descendants(above, &pids);
    for (size_t i = 0; i < n && !found; i++)
        if (str_eq(process_name(pids[i], text, sizeof(text)), name))
            found = pids[i];
    free(pids);
    return found;
}

int slurm_host_of(const struct target *t, struct slurm_job *ret, struct err *err) {
    struct slurm_job j;
    int r = read_job(t->pid, t->name, &j, err);
    if (r < 0)
        return r;
    if (*j.node) {
        *ret = j;
        return 0;
    }
    pid_t pid = find_daemon(t->pid, "slurmd");
    if (!pid)
        return err_say(err, -ESRCH, "%s: no slurmd runs there", t->name);
    if ((r = read_job(pid, t->name, &j, err)) < 0)
        return r;
    if (gethostname(j.node, sizeof(j.node)) != 0)
        return err_set(err, -errno, "%s: its name", t->name);
    j.node[sizeof(j.node) - 1] = '\0';
    j.node[strcspn(j.node, ".")] = '\0';
    *ret = j;
    return 0;
}

int slurm_daemon_kill(const struct target *t, const char *name, struct err *err) {
    struct process p;
    pid_t pid = t->pid > 0 ? find_daemon(t->pid, name) : 0;
    if (!pid)
        return err_say(err, -ESRCH, "%s: no %s runs there", t->name, name);
    int r = process_open(pid, &p, err);
    if (r)
        return err_wrap(err, "%s: ", t->name), r;
    r = process_signal(&p, SIGKILL);
    r = r ? r : process_wait_end(&p, END_NS);
    process_close(&p);
    return r ? err_set(err, r, "%s: kill its %s", t->name, name) : 0;
}

/* Whatever has no handler for it would be ended by it: that is no node of ours. */
int slurm_daemon_start(const struct target *t, const struct fault_args *a, struct err *err) {
    int r = process_has_signal(t->pid, "SigCgt:", SIGUSR1) ? target_signal(t, SIGUSR1, err) : 0;
    return r == -ESRCH ? 0 : r;
}

int slurm_status(const struct fault_args *a) {
    return FAULT_STATUS_FAILED;
}
