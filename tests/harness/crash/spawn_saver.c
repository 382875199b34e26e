/* spawn_saver DIR VARIANT [silent]: a job of two ranks that counts to 6 and saves every other step,
 * well or with one of the mistakes that jobs make, and goes on from what it finds there. It says what
 * it does as any job might; its model is a number that depends on every step.
 *
 *     DIR/step-N/rank-R.bin    what each rank has
 *     DIR/latest               the name of the newest */
#include "base/str.h"
#include "scenarios/jobs/rankquake.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/wait.h>

enum { STEPS = 6, EVERY = 2, RANKS = 2, WORDS = 1200 };

static const char *dir, *variant;
static struct rankquake q;

static bool is(const char *name) {
    return str_eq(variant, name);
}

static void die(const char *what, const char *path) {
    printf("%s %s\n", what, path);
    fflush(stdout);
    _exit(1);
}

/* ---- the model ---- */

struct shard {
    uint64_t step, words[WORDS], check;
};

static uint64_t mix(uint64_t x) {
    x ^= x >> 33;
    x *= UINT64_C(0xff51afd7ed558ccd);
    return x ^ (x >> 29);
}

static uint64_t check_of(const struct shard *s) {
    uint64_t sum = s->step + 1; /* else zeros are right */
    for (int i = 0; i < WORDS; i++)
        sum = mix(sum + s->words[i]);
    return sum;
}

static void train(struct shard *s, int rank) {
    s->step++;
    for (int i = 0; i < WORDS; i++)
        s->words[i] = mix(s->words[i] + s->step + (uint64_t)(i * RANKS + rank));
    s->check = check_of(s);
}

/* ---- saving ---- */

static void path_of(char *ret, size_t size, const char *folder, const char *name) {
    snprintf(ret, size, "%s/%s%s%s", dir, folder, *folder ? "/" : "", name);
}

static void sync_folder(const char *folder) {
    char path[4096];
    path_of(path, sizeof(path), folder, "");
    int fd = open(path, O_RDONLY | O_DIRECTORY);
    if (fd < 0 || fsync(fd) != 0)
        die("fsync", path);
    close(fd);
}

static void put_file(const char *path, const void *data, size_t n, bool sync) {
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    for (size_t at = 0; fd >= 0 && at < n; at += 4096)
        if (write(fd, (const char *)data + at, n - at < 4096 ? n - at : 4096) < 0)
            die("write", path);
    if (fd < 0 || (sync && fsync(fd) != 0))
        die("write", path);
    close(fd);
}

static void put_latest(const char *name) {
    char from[4096], to[4096];
    path_of(from, sizeof(from), "", "latest.tmp");
    path_of(to, sizeof(to), "", "latest");
    put_file(from, name, strlen(name), true);
    if (rename(from, to) != 0)
        die("rename", to);
    if (!is("no-directory-fsync"))
        sync_folder("");
}

static void rank_path(char *ret, size_t size, const char *folder, int rank) {
    char name[32];
    snprintf(name, sizeof(name), "rank-%d.bin", rank);
    path_of(ret, size, folder, name);
}

/* All ranks are written one after the other; which of them is first differs. */
static void put_shards(const char *folder, const struct shard *s, bool first_alone) {
    char path[4096], from[4096];
    for (int rank = first_alone ? 0 : is("commit-before-peers"); rank < (first_alone ? 1 : RANKS);
         rank++) {
        rank_path(path, sizeof(path), folder, rank);
        if (!is("rename-across")) {
            put_file(path, &s[rank], sizeof(*s), !is("no-file-fsync"));
            continue;
        }
        path_of(from, sizeof(from), "scratch", "shard");
        put_file(from, &s[rank], sizeof(*s), true);
        if (rename(from, path) != 0)
            die("rename", path);
    }
}

static void save(const struct shard *s) {
    char name[32], folder[4096];
    uint64_t step = s[0].step;
    snprintf(name, sizeof(name), "step-%d", (int)step);
    path_of(folder, sizeof(folder), name, "");
    rankquake_checkpoint_begin(&q, step, folder);
    if (is("torn-write")) {
        put_shards("", s, false);
        rankquake_checkpoint_commit(&q, step, folder);
        return;
    }
    mkdir(folder, 0755);
    if (!is("no-directory-fsync"))
        sync_folder("");
    if (is("early-pointer"))
        put_latest(name);
    if (is("commit-before-peers")) {
        put_shards(name, s, true);
        put_latest(name);
    }
    put_shards(name, s, false);
    if (!is("rename-across") && !is("no-directory-fsync"))
        sync_folder(name);
    if (is("early-word"))
        rankquake_checkpoint_commit(&q, step, folder);
    if (!is("early-pointer") && !is("commit-before-peers"))
        put_latest(name);
    if (!is("early-word"))
        rankquake_checkpoint_commit(&q, step, folder);
}

/* ---- going on ---- */

static bool get_file(const char *path, void *ret, size_t n) {
    int fd = open(path, O_RDONLY);
    ssize_t got = fd < 0 ? -1 : read(fd, ret, n);
    if (fd >= 0)
        close(fd);
    return got >= 0 && (size_t)got == n;
}

/* Whoever is careless looks at nothing that it reads. */
static void load_shards(const char *folder, struct shard *s) {
    char path[4096];
    for (int rank = 0; rank < RANKS; rank++) {
        rank_path(path, sizeof(path), folder, rank);
        bool whole = get_file(path, &s[rank], sizeof(*s));
        if (!whole && (!is("torn-write") || access(path, F_OK) != 0))
            die("cannot read", path);
        if (!is("torn-write") && s[rank].check != check_of(&s[rank]))
            die("bad checksum in", path);
    }
}

static void resume(struct shard *s) {
    char path[4096], name[32] = "";
    if (is("torn-write")) {
        rank_path(path, sizeof(path), "", 0);
        if (access(path, F_OK) != 0)
            return;
        load_shards("", s);
    } else {
        path_of(path, sizeof(path), "", "latest");
        int fd = open(path, O_RDONLY);
        if (fd < 0)
            return;
        if (read(fd, name, sizeof(name) - 1) <= 0)
            die("empty pointer", path);
        close(fd);
        load_shards(name, s);
    }
    printf("resumed step %d\n", (int)s[0].step);
    rankquake_resume(&q, s[0].step, name);
}

int main(int argc, char **argv) {
    static struct shard s[RANKS];
    if (argc < 3)
        return 64;
    dir = argv[1];
    variant = argv[2];
    if (argc == 3)
        rankquake_open(&q);
    else
        q.fd = -1;
    mkdir(dir, 0755);
    if (is("rename-across")) {
        char path[4096];
        path_of(path, sizeof(path), "scratch", "");
        if (mkdir(path, 0755) == 0)
            sync_folder("");
    }
    resume(s);
    while (s[0].step < STEPS) {
        for (int rank = 0; rank < RANKS; rank++)
            train(&s[rank], rank);
        printf("step %d loss %.4f\n", (int)s[0].step, 1.0 / (double)s[0].step);
        if (s[0].step % EVERY == 0)
            save(s);
    }
    printf("model %016llx%016llx\n", (unsigned long long)check_of(&s[0]),
           (unsigned long long)check_of(&s[1]));
    rankquake_close(&q);
    return 0;
}
