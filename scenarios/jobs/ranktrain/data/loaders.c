#include "scenarios/jobs/ranktrain/data/loaders.h"
#include "scenarios/jobs/ranktrain/data/sampler.h"

#include "base/mem.h"
#include "base/sys/file.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { AHEAD = 2 /* steps for each loader */ };

/* What lies in a slot, before its pixels. */
struct loaders_slot {
    struct err err; /* code 0: the images are there */
    uint32_t samples[];
};

struct loader {
    pid_t pid;
    int ask_fd, told_fd;
};

struct loaders {
    struct loaders_job job;
    uint32_t *places;
    struct sampler sampler; /* of a loader */
    struct loader *v;
    uint8_t *slots;
    size_t slot_bytes, pixels_at;
    uint32_t slots_n;
    uint64_t asked, taken; /* steps; 0: none yet */
};

static struct loaders_slot *slot_of(const struct loaders *l, uint64_t step) {
    return (void *)(l->slots + step % l->slots_n * l->slot_bytes);
}

static uint8_t *pixels_of(const struct loaders *l, uint64_t step) {
    return (uint8_t *)slot_of(l, step) + l->pixels_at;
}

static struct loader *loader_of(const struct loaders *l, uint64_t step) {
    return &l->v[step % (uint64_t)l->job.loaders];
}

/* ---- a loader ---- */

static void load(struct loaders *l, uint64_t step) {
    const struct images *d = l->job.images;
    const uint32_t *samples = sampler_step(&l->sampler, step);
    struct loaders_slot *slot = slot_of(l, step);
    slot->err = (struct err){0};
    for (uint32_t i = 0; i < l->job.places_n && !slot->err.code; i++) {
        uint32_t sample = samples[l->places[i]];
        const uint8_t *image = images_read(d, sample, &slot->err);
        slot->samples[i] = sample;
        if (image)
            memcpy(pixels_of(l, step) + i * d->bytes, image, d->bytes);
    }
}

/* Until the rank hangs up. */
static _Noreturn void serve(struct loaders *l, int ask_fd, int told_fd) {
    uint64_t step;
    sampler_init(&l->sampler, l->job.seed, l->job.images->count, l->job.batch, l->job.parts,
                 l->job.drop_last);
    while (read(ask_fd, &step, sizeof(step)) == (ssize_t)sizeof(step)) {
        load(l, step);
        if (write(told_fd, &step, sizeof(step)) != (ssize_t)sizeof(step))
            break;
    }
    close(ask_fd);
    close(told_fd);
    _exit(0);
}

/* It takes no signals that are meant for the rank, which may have to go on for a while. */
static void settle(struct loaders *l, int loader, pid_t rank) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != rank)
        _exit(0);
    prctl(PR_SET_NAME, "rank-loader");
    signal(SIGTERM, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    for (int i = 0; i < loader; i++) { /* or it would keep the others' pipes open */
        close(l->v[i].ask_fd);
        close(l->v[i].told_fd);
    }
}

static int start_one(struct loaders *l, int i, struct err *err) {
    int ask[2], told[2];
    pid_t rank = getpid();
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ask) < 0)
        return err_set(err, -errno, "loader %d", i);
    if (pipe2(told, O_CLOEXEC) < 0) {
        close(ask[0]);
        close(ask[1]);
        return err_set(err, -errno, "loader %d", i);
    }
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        close(ask[1]);
        close(told[0]);
        settle(l, i, rank);
        serve(l, ask[0], told[1]);
    }
    close(ask[0]);
    close(told[1]);
    l->v[i] = (struct loader){.pid = pid, .ask_fd = ask[1], .told_fd = told[0]};
    return pid < 0 ? err_set(err, -errno, "loader %d", i) : 0;
}

/* ---- the rank ---- */

static int make_slots(struct loaders *l, struct err *err) {
    size_t n = l->job.places_n;
    l->pixels_at = (sizeof(struct loaders_slot) + n * sizeof(uint32_t) + 63) / 64 * 64;
    l->slot_bytes = (l->pixels_at + n * l->job.images->bytes + 63) / 64 * 64;
    l->slots_n = (uint32_t)l->job.loaders * AHEAD + 1;
    void *p = mmap(NULL, l->slot_bytes * l->slots_n, PROT_READ | PROT_WRITE,
                   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (p == MAP_FAILED)
        return err_set(err, -errno, "memory for --loaders=%d", l->job.loaders);
    l->slots = p;
    return 0;
}

int loaders_start(const struct loaders_job *job, struct loaders **ret, struct err *err) {
    struct loaders *l = mem_new(struct loaders);
    l->job = *job;
    l->places = mem_array(uint32_t, job->places_n + 1);
    memcpy(l->places, job->places, job->places_n * sizeof(*l->places));
    l->job.places = l->places;
    l->v = mem_array(struct loader, (size_t)job->loaders);
    for (int i = 0; i < job->loaders; i++)
        l->v[i] = (struct loader){.ask_fd = -1, .told_fd = -1};
    int r = make_slots(l, err);
    for (int i = 0; i < job->loaders && r == 0; i++)
        r = start_one(l, i, err);
    if (r < 0) {
        loaders_end(l);
        return r;
    }
    *ret = l;
    return 0;
}

void loaders_end(struct loaders *l) {
    if (!l)
        return;
    for (int i = 0; i < l->job.loaders; i++) {
        file_close(&l->v[i].ask_fd);
        file_close(&l->v[i].told_fd);
    }
    for (int i = 0; i < l->job.loaders; i++)
        if (l->v[i].pid > 0)
            waitpid(l->v[i].pid, NULL, 0);
    if (l->slots)
        munmap(l->slots, l->slot_bytes * l->slots_n);
    free(l->places);
    free(l->v);
    free(l);
}

/* Why nothing can be asked of a loader, or heard: it has hung up, or else r says it (0: nothing does). It ends, for its
 * streams are closed. */
static int ended(struct loaders *l, struct loader *loader, int r, struct err *err) {
    int status = 0, number = (int)(loader - l->v);
    pid_t pid = loader->pid;
    file_close(&loader->ask_fd);
    file_close(&loader->told_fd);
    waitpid(pid, &status, 0);
    loader->pid = -1;
    if (r < 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return err_set(err, r, "loader %d of %d", number, l->job.loaders);
    if (WIFSIGNALED(status))
        return err_say(err, -ECHILD, "loader %d of %d, process %d, was ended by signal %d (%s)",
                       number, l->job.loaders, (int)pid, WTERMSIG(status),
                       strsignal(WTERMSIG(status)));
    return err_say(err, -ECHILD, "loader %d of %d, process %d, has ended with exit status %d",
                   number, l->job.loaders, (int)pid, WEXITSTATUS(status));
}

static int ask_ahead(struct loaders *l, uint64_t step, struct err *err) {
    uint64_t last = step + l->slots_n - 1;
    if (last > l->job.last_step)
        last = l->job.last_step;
    if (l->asked < step - 1)
        l->asked = step - 1;
    while (l->asked < last) {
        uint64_t next = l->asked + 1;
        struct loader *loader = loader_of(l, next);
        ssize_t n = send(loader->ask_fd, &next, sizeof(next), MSG_NOSIGNAL);
        if (n != (ssize_t)sizeof(next))
            return ended(l, loader, n < 0 ? -errno : 0, err);
        l->asked = next;
    }
    return 0;
}

/* Until a step's loader has told of a step. */
static int hear(struct loaders *l, uint64_t step, int wake_fd, uint64_t *ret, struct err *err) {
    struct loader *loader = loader_of(l, step);
    struct pollfd p[2] = {{.fd = loader->told_fd, .events = POLLIN},
                          {.fd = wake_fd, .events = POLLIN}};
    while (poll(p, 2, -1) < 0)
        if (errno != EINTR)
            return err_set(err, -errno, "poll");
    if (!p[0].revents)
        return -ECANCELED;
    ssize_t n = read(loader->told_fd, ret, sizeof(*ret));
    return n == (ssize_t)sizeof(*ret) ? 0 : ended(l, loader, n < 0 ? -errno : 0, err);
}

/* Whoever goes back, or forth, waits until nobody writes into a slot any more. */
static int start_over(struct loaders *l, uint64_t step, int wake_fd, struct err *err) {
    int r = 0;
    for (uint64_t s = l->taken + 1; s <= l->asked && r == 0; s++) {
        uint64_t told;
        r = hear(l, s, wake_fd, &told, err);
    }
    l->asked = step - 1;
    return r;
}

int loaders_take(struct loaders *l, uint64_t step, int wake_fd, struct err *err) {
    uint64_t told = 0;
    int r = l->taken && step != l->taken + 1 ? start_over(l, step, wake_fd, err) : 0;
    if (r == 0)
        r = ask_ahead(l, step, err);
    if (r == 0)
        r = hear(l, step, wake_fd, &told, err);
    if (r < 0)
        return r;
    l->taken = step;
    const struct loaders_slot *slot = slot_of(l, step);
    if (slot->err.code && err)
        *err = slot->err;
    return slot->err.code;
}

const uint8_t *loaders_find(const struct loaders *l, uint32_t sample) {
    const struct loaders_slot *slot = slot_of(l, l->taken);
    for (uint32_t i = 0; l->taken && i < l->job.places_n; i++)
        if (slot->samples[i] == sample)
            return pixels_of(l, l->taken) + i * l->job.images->bytes;
    return NULL;
}

bool loaders_number(const struct loaders *l, const uint8_t *image, uint32_t *ret_sample) {
    const uint8_t *pixels = pixels_of(l, l->taken);
    size_t bytes = l->job.images->bytes;
    if (!l->taken || image < pixels || image >= pixels + l->job.places_n * bytes)
        return false;
    *ret_sample = slot_of(l, l->taken)->samples[(size_t)(image - pixels) / bytes];
    return true;
}
