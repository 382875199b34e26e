/* What is installed beside us. */
#include "harness/doctor/host_question.h"

#include "base/buf.h"
#include "base/str.h"
#include "base/sys/file.h"
#include "faults/need.h"

#include <dlfcn.h>
#include <netdb.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static bool look_programs(struct question_result *r) {
    static const char *const own[] = {"rankrun", "rankprobe", "ranktrain"};
    char folder[3000], path[3100];
    file_own_folder(folder, sizeof(folder));
    for (size_t i = 0; i < sizeof(own) / sizeof(*own); i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, own[i]);
        if (access(path, X_OK) != 0)
            return question_lacks(r, "type make, or make install", "there is no program %.200s",
                                  path);
    }
    return question_works(r, "rankrun, rankprobe and ranktrain lie beside rankquake");
}

const struct host_question host_question_programs = {
    .name = "programs",
    .gives = "the launcher, the probe and the reference job",
    .demo = true,
    .look = look_programs,
};

/* ---- libraries ---- */

static bool loads(const char *library, const char *symbol) {
    void *lib = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    return lib && dlsym(lib, symbol);
}

static bool look_curl(struct question_result *r) {
    if (loads("libcurl.so.4", "curl_multi_init") || loads("libcurl-gnutls.so.4", "curl_multi_init"))
        return question_works(r, "libcurl loads");
    return question_lacks(r, "apt install libcurl4", "libcurl cannot be loaded");
}

const struct host_question host_question_curl = {
    .name = "curl",
    .gives = "stores and web pages that are reached by https",
    .look = look_curl,
};

static bool look_blas(struct question_result *r) {
    setenv("OPENBLAS_NUM_THREADS", "1", 1);
    if (loads("libopenblas.so.0", "cblas_sgemm"))
        return question_works(r, "OpenBLAS loads");
    return question_lacks(r, "apt install libopenblas0-pthread", "OpenBLAS cannot be loaded");
}

const struct host_question host_question_blas = {
    .name = "blas",
    .gives = "ranktrain, the reference job that scenarios/ uses",
    .demo = true,
    .look = look_blas,
};

static bool look_dataset(struct question_result *r) {
    static const char dir[] = "/usr/share/datasets/fashion-mnist";
    char path[200];
    snprintf(path, sizeof(path), "%s/train-images-idx3-ubyte.gz", dir);
    bool packed = access(path, R_OK) == 0;
    path[strlen(path) - strlen(".gz")] = '\0';
    if (packed || access(path, R_OK) == 0)
        return question_works(r, "%s", dir);
    return question_lacks(r, "apt install dataset-fashion-mnist, or RANKTRAIN_DATASET=generated",
                          "%s is not there: ranktrain asks for it or for --dataset=generated", dir);
}

const struct host_question host_question_dataset = {
    .name = "dataset",
    .gives = "training on real pictures",
    .look = look_dataset,
};

static bool look_cores(struct question_result *r) {
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof(set), &set) == 0 ? CPU_COUNT(&set) : 1;
    if (n >= 2)
        return question_works(r, "%d cores", n);
    return question_lacks(r, "give it two cores or more",
                          "1 core: workers, agents and the wire wait for each other");
}

const struct host_question host_question_cores = {
    .name = "cores",
    .gives = "times that mean something; with less, rdzv_conf profile: fast sees false alarms",
    .look = look_cores,
};

/* ---- etcd ---- */

static int connect_to(const char *endpoint) {
    struct addrinfo want = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    struct timeval wait = {.tv_sec = 3};
    char host[200];
    const char *colon = strrchr(endpoint, ':');
    snprintf(host, sizeof(host), "%.*s", (int)(colon ? colon - endpoint : 0), endpoint);
    if (!colon || getaddrinfo(host, colon + 1, &want, &found) != 0)
        return -1;
    int fd = socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof(wait));
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof(wait));
    int r = connect(fd, found->ai_addr, found->ai_addrlen);
    freeaddrinfo(found);
    return r == 0 ? fd : -1;
}

static void get(int fd, const char *path, struct buf *out) {
    struct buf request = {0};
    static char part[65536];
    buf_printf(&request, "GET %s HTTP/1.0\r\nHost: etcd\r\n\r\n", path);
    ssize_t n = send(fd, request.data, request.len, MSG_NOSIGNAL);
    while (n > 0 && out->len < 8 << 20 && (n = recv(fd, part, sizeof(part), 0)) > 0)
        buf_put(out, part, (size_t)n);
    buf_fini(&request);
}

/* "\nNAME VALUE" of the exposition format; -1: not there. */
static double metric(const struct buf *text, const char *name) {
    char line[200];
    snprintf(line, sizeof(line), "\n%s ", name);
    const char *at = strstr(buf_str(text), line);
    return at ? strtod(at + strlen(line), NULL) : -1;
}

/* An etcd keeps every change until it is told to forget, and refuses all writes when its quota is
 * full; each beat of an agent is a change. */
static bool look_at_store(const char *endpoint, struct question_result *r) {
    BUF_FINI struct buf text = {0};
    if (str_starts(endpoint, "http://"))
        endpoint += strlen("http://");
    int fd = connect_to(endpoint);
    if (fd < 0)
        return question_lacks(r, "start it, or name it as HOST:PORT", "nothing answers at %.150s",
                              endpoint);
    get(fd, "/metrics", &text);
    double now = metric(&text, "etcd_debugging_mvcc_current_revision");
    double forgotten = metric(&text, "etcd_debugging_mvcc_compact_revision");
    if (now < 0)
        question_lacks(r, "give the client address of an etcd v3",
                       "what answers at %.150s has none of etcd's metrics", endpoint);
    else if (forgotten > 0)
        question_works(r, "revision %.0f, the history before %.0f is compacted", now, forgotten);
    else
        question_lacks(
            r,
            "start etcd with --auto-compaction-retention=1h: every beat is a revision, and "
            "a full quota stops all writes (one that has just begun may not have "
            "compacted yet)",
            "revision %.0f, and nothing has ever been compacted", now);
    close(fd);
    return r->status == QUESTION_WORKS;
}

static bool look_etcd(struct question_result *r) {
    char version[200] = "";
    if (r->given->etcd) {
        look_at_store(r->given->etcd, r);
        return false;
    }
    FILE *p = popen("exec etcd --version 2>/dev/null", "re");
    if (p && !fgets(version, sizeof(version), p))
        *version = '\0';
    if (p)
        pclose(p);
    version[strcspn(version, "\n")] = '\0';
    if (*version)
        return question_works(r, "%s", version);
    return question_unasked(r, "no etcd in PATH; the embedded store needs none");
}

const struct host_question host_question_etcd = {
    .name = "etcd",
    .gives = "a store that is an etcd",
    .look = look_etcd,
};

/* ---- a scheduler ---- */

static bool look_scheduler(struct question_result *r) {
    ARENA_FINI struct arena a = {0};
    const char *own = getenv("PATH");
    const char *path = arena_printf(&a, "%s:" FAULT_SCHEDULER_PATH, own ? own : "/usr/bin");
    for (const char *const *name = fault_scheduler_programs; *name; name++)
        if (!file_in_path(path, *name))
            return question_lacks(r, FAULT_SCHEDULER_FIX, "there is no %s", *name);
    if (geteuid() != 0)
        return question_lacks(r, "run it as root", "Slurm's daemons are started by root alone");
    return question_works(r, "slurmctld, slurmd, srun and munged are there");
}

const struct host_question host_question_scheduler = {
    .name = "scheduler",
    .gives = "cluster: {scheduler: slurm}, a real Slurm in the nodes, and its faults",
    .need = FAULT_NEEDS_SCHEDULER,
    .part = QUESTION_FOR_NAMESPACES,
    .look = look_scheduler,
};
