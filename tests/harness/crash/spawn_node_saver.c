/* spawn_node_saver SHARED DISK VARIANT: one of two ranks on two nodes (RANK, MASTER_ADDR, MASTER_PORT).
 * It counts to 4 and saves every other step, its part on its node's disk; rank 0 names in SHARED what
 * is whole. The part is the node's: which rank comes to it is another one each time. Well, or with a
 * mistake:
 *
 *     DISK/step-N/part.bin
 *     SHARED/latest           the name of the newest
 *
 * early: rank 0 names it before its peer has saved. no-fsync: rank 1 does not sync its part. none: does
 * not save. stubborn: does not start where there is something, and tells late that it saves. */
#include "base/str.h"
#include "scenarios/jobs/rankquake.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <unistd.h>

enum { STEPS = 4, EVERY = 2, WORDS = 600 };

static const char *shared, *disk, *variant;
static struct rankquake q;
static int rank, peer = -1;

struct part {
    uint64_t step, words[WORDS];
};

static bool is(const char *name) {
    return str_eq(variant, name);
}

static void die(const char *what, const char *path) {
    printf("%s %s\n", what, path);
    fflush(stdout);
    _exit(1);
}

/* ---- the other one ---- */

static void listen_for_it(int port) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
    if (bind(fd, (void *)&at, sizeof(at)) != 0 || listen(fd, 1) != 0)
        die("cannot listen", "");
    peer = accept4(fd, NULL, NULL, SOCK_CLOEXEC);
    close(fd);
}

/* Refused as long as rank 0 does not listen yet. */
static void connect_to_it(const char *host, const char *port) {
    struct addrinfo hints = {.ai_family = AF_INET, .ai_socktype = SOCK_STREAM}, *found = NULL;
    if (getaddrinfo(host, port, &hints, &found) != 0)
        die("nobody is called", host);
    for (int tries = 0; tries < 200; tries++) {
        peer = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (connect(peer, found->ai_addr, found->ai_addrlen) == 0)
            break;
        close(peer);
        usleep(20000);
    }
    freeaddrinfo(found);
}

static void meet(void) {
    char byte = 1;
    rankquake_event_named(&q, "barrier", "%s", "");
    if (write(peer, &byte, 1) != 1 || read(peer, &byte, 1) != 1)
        die("the other one has gone", "");
}

/* ---- saving ---- */

static void sync_folder(const char *path) {
    int fd = open(path, O_RDONLY | O_DIRECTORY);
    if (fd < 0 || fsync(fd) != 0)
        die("fsync", path);
    close(fd);
}

static void put_file(const char *path, const void *data, size_t n, bool sync) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd < 0 || write(fd, data, n) != (ssize_t)n || (sync && fsync(fd) != 0))
        die("write", path);
    close(fd);
}

static void put_part(const struct part *p) {
    char folder[4096], path[4200];
    bool sync = !is("no-fsync") || rank == 0;
    snprintf(folder, sizeof(folder), "%s/step-%d", disk, (int)p->step);
    snprintf(path, sizeof(path), "%s/part.bin", folder);
    mkdir(folder, 0755);
    put_file(path, p, sizeof(*p), sync);
    sync_folder(folder);
    sync_folder(disk);
}

static void put_latest(const struct part *p) {
    char name[32], from[4096], to[4096];
    snprintf(name, sizeof(name), "step-%d", (int)p->step);
    snprintf(from, sizeof(from), "%s/latest.tmp", shared);
    snprintf(to, sizeof(to), "%s/latest", shared);
    put_file(from, name, strlen(name), true);
    if (rename(from, to) != 0)
        die("rename", to);
    sync_folder(shared);
    rankquake_checkpoint_commit(&q, p->step, to);
}

/* Rank 1 has saved its part before rank 0 tells that a save begins. */
static void save_late(const struct part *p) {
    if (rank == 1)
        put_part(p);
    meet();
    if (rank == 1)
        return;
    rankquake_checkpoint_begin(&q, p->step, shared);
    put_part(p);
    put_latest(p);
}

static void save(const struct part *p) {
    if (is("stubborn")) {
        save_late(p);
        return;
    }
    if (rank == 0)
        rankquake_checkpoint_begin(&q, p->step, shared);
    if (is("early")) {
        if (rank == 0)
            put_latest(p);
        meet();
        put_part(p);
        return;
    }
    put_part(p);
    meet();
    if (rank == 0)
        put_latest(p);
}

/* ---- going on ---- */

static void resume(struct part *p) {
    char path[4096], name[32] = "";
    snprintf(path, sizeof(path), "%s/latest", shared);
    int fd = open(path, O_RDONLY);
    if (fd < 0)
        return;
    if (is("stubborn"))
        die("it is there already:", path);
    if (read(fd, name, sizeof(name) - 1) <= 0)
        die("empty pointer", path);
    close(fd);
    snprintf(path, sizeof(path), "%s/%s/part.bin", disk, name);
    fd = open(path, O_RDONLY);
    if (fd < 0 || read(fd, p, sizeof(*p)) != (ssize_t)sizeof(*p))
        die("cannot read", path);
    close(fd);
    for (int i = 0; i < WORDS; i++)
        if (p->words[i] != p->step * (uint64_t)(i + 7))
            die("wrong bytes in", path);
    rankquake_resume(&q, p->step, name);
}

static void train(struct part *p) {
    p->step++;
    for (int i = 0; i < WORDS; i++)
        p->words[i] = p->step * (uint64_t)(i + 7);
}

int main(int argc, char **argv) {
    static struct part p;
    char model[32];
    const char *host = getenv("MASTER_ADDR"), *port = getenv("MASTER_PORT"), *r = getenv("RANK");
    if (argc != 4 || !host || !port || !r)
        return 64;
    shared = argv[1];
    disk = argv[2];
    variant = argv[3];
    rank = atoi(r);
    rankquake_open(&q);
    if (rank == 0)
        listen_for_it(atoi(port));
    else
        connect_to_it(host, port);
    resume(&p);
    while (p.step < STEPS) {
        meet();
        train(&p);
        rankquake_step(&q, p.step, 1.0 / (double)p.step, 1, NULL, 0);
        if (p.step % EVERY == 0 && !is("none"))
            save(&p);
    }
    meet();
    snprintf(model, sizeof(model), "%016llx", (unsigned long long)p.words[WORDS - 1]);
    rankquake_done(&q, model);
    rankquake_close(&q);
    return 0;
}
