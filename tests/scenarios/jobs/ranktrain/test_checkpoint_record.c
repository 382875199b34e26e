/* Checkpoints in a directory of their own: what is written, synced, renamed and taken away in which order, what a reader makes
 * of what is there, whole, in parts, damaged, of other rounds and trainings, and what is left when one call fails. */
#include "tests/played.h"

#include "scenarios/jobs/ranktrain/checkpoint.h"
#include "scenarios/jobs/ranktrain/checkpoint_dir.h"
#include "scenarios/jobs/ranktrain/checkpoints/leases.h"

#include "base/mem.h"
#include "base/sha256.h"
#include "base/sys/descriptors.h"
#include "base/sys/file.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

enum { TRAINED = 15, VALUES = 18, OPEN_MAX_HERE = 256, NAMES_MAX = 64, MODES = 07777 };

static struct {
    char dir[64];
    char of[OPEN_MAX_HERE][96]; /* what a descriptor is of */
    struct checkpoint_place place;
    struct training training;
    struct rankquake q;
    struct rankquake_page page;
    int events, lock; /* lock: of speaking */
    int zero;         /* where descriptor 0 is meanwhile, so that it is free; -1: where it was */
    pthread_mutex_t speaking;
    struct state state;
    struct model model;
    struct leases leases;
} scene;

/* ---- the system, in which each call is written down and may fail ---- */

/* What lies in the place by its name there. */
static const char *named_here(int dir, const char *path) {
    static char text[2][256];
    static int turn;
    size_t n = strlen(scene.dir);
    turn = !turn;
    if (strncmp(path, scene.dir, n) == 0)
        snprintf(text[turn], sizeof(text[turn]), "here%s", path + n);
    else
        snprintf(text[turn], sizeof(text[turn]), "%s%s%s", dir >= 0 ? scene.of[dir] : "",
                 dir >= 0 ? "/" : "", path);
    return text[turn];
}

static int keep_name(int fd, int dir, const char *path) {
    if (fd >= 0) {
        assert_true(fd < OPEN_MAX_HERE);
        snprintf(scene.of[fd], sizeof(scene.of[fd]), "%.95s", named_here(dir, path));
    }
    return fd;
}

static int played_openat(int dir, const char *path, int flags, ...) {
    bool makes = flags & O_CREAT;
    if (fails("open %s%s%s%s%s", named_here(dir, path), flags & O_DIRECTORY ? " directory" : "",
              makes ? " make" : "", flags & O_EXCL ? " new" : "",
              flags & O_NOFOLLOW ? " no link" : ""))
        return -1;
    assert_true(flags & O_CLOEXEC);
    return keep_name(makes ? openat(dir, path, flags, 0666) : openat(dir, path, flags), dir, path);
}

static int played_open_file(const char *path, int flags) {
    if (fails("open %s%s", named_here(-1, path), flags & O_DIRECTORY ? " directory" : ""))
        return -1;
    assert_true(flags & O_CLOEXEC);
    return keep_name(open(path, flags), -1, path);
}

static int played_mkdirat(int dir, const char *path, mode_t mode) {
    return fails("mkdir %s %o", named_here(dir, path), mode) ? -1 : mkdirat(dir, path, mode);
}

static int played_renameat(int dir, const char *from, int to_dir, const char *to) {
    return fails("rename %s to %s", named_here(dir, from), named_here(to_dir, to))
               ? -1
               : renameat(dir, from, to_dir, to);
}

static int played_unlinkat(int dir, const char *path, int flags) {
    note("unlink %s%s", named_here(dir, path), flags ? ", a directory" : "");
    return unlinkat(dir, path, flags);
}

/* Nothing needs to last here. */
static int played_fsync(int fd) {
    return fails("sync %s", scene.of[fd]) ? -1 : 0;
}

static int played_write_all(int fd, const void *data, size_t n, struct err *err) {
    assert_null(err);
    if (fails("write %zu to %s", n, scene.of[fd]))
        return -played.code;
    return file_write_all(fd, data, n, err);
}

static int played_read_fd(int fd, size_t max, struct buf *out, struct err *err) {
    assert_null(err);
    if (fails("read %s, %zu at most", scene.of[fd], max))
        return -played.code;
    return file_read_fd(fd, max, out, err);
}

static int played_make_dirs(const char *path, mode_t mode, struct err *err) {
    return fails("make %s %o", named_here(-1, path), mode) ? -played.code
                                                           : file_make_dirs(path, mode, err);
}

/* The order of names in a directory is the disk's: here they are sorted. */
static struct dirent *played_readdir(DIR *d) {
    static struct dirent all[NAMES_MAX];
    static DIR *of;
    static int n, at;
    if (d != of || at > n) {
        of = d;
        n = at = 0;
        for (struct dirent *e; (e = readdir(d)) && n < NAMES_MAX; n++)
            all[n] = *e;
        for (int i = 0; i < n; i++)
            for (int k = i + 1; k < n; k++)
                if (strcmp(all[k].d_name, all[i].d_name) < 0) {
                    struct dirent swap = all[i];
                    all[i] = all[k];
                    all[k] = swap;
                }
    }
    errno = 0;
    if (at == 0 && fails("list %s", scene.of[dirfd(d)])) {
        of = NULL;
        return NULL;
    }
    if (at < n)
        return &all[at++];
    at = n + 1;
    of = NULL;
    errno = 0;
    return NULL;
}

static void played_look(int dir, struct leases *ret) {
    note("look at leases of %s", scene.of[dir]);
    *ret = scene.leases;
}

static int played_lock(pthread_mutex_t *m) {
    assert_true(m == &scene.speaking && scene.lock++ == 0);
    return 0;
}

static int played_unlock(pthread_mutex_t *m) {
    char text[RANKQUAKE_MESSAGE_MAX + 1];
    ssize_t n;
    assert_true(m == &scene.speaking && scene.lock-- == 1);
    while ((n = recv(scene.events, text, sizeof(text) - 1, MSG_DONTWAIT)) > 0) {
        text[n] = 0;
        char *at = strstr(text, scene.dir);
        if (at)
            memmove(at, at + strlen(scene.dir), strlen(at + strlen(scene.dir)) + 1);
        note("told %s", text);
    }
    return 0;
}

#define open(path, flags)    played_open_file(path, flags)
#define openat               played_openat
#define mkdirat              played_mkdirat
#define renameat             played_renameat
#define unlinkat             played_unlinkat
#define fsync                played_fsync
#define file_write_all       played_write_all
#define file_read_fd         played_read_fd
#define file_make_dirs       played_make_dirs
#define readdir              played_readdir
#define leases_look          played_look
#define pthread_mutex_lock   played_lock
#define pthread_mutex_unlock played_unlock
#define getpid()             100
#include "scenarios/jobs/ranktrain/checkpoint_dir.c"
#include "scenarios/jobs/ranktrain/checkpoint.c"
#undef open
#undef openat
#undef mkdirat
#undef renameat
#undef unlinkat
#undef file_write_all
#undef file_read_fd
#undef file_make_dirs
#undef readdir
#undef getpid

/* ---- what is there ---- */

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static void say_folder(int dir, const char *name, const char *above) {
    char *names[NAMES_MAX];
    int n = 0, fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    for (struct dirent *e; d && (e = readdir(d)) && n < NAMES_MAX;)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            names[n++] = mem_strdup(e->d_name);
    qsort(names, (size_t)n, sizeof(*names), by_name);
    for (int i = 0; i < n; i++) {
        struct stat st;
        fstatat(fd, names[i], &st, AT_SYMLINK_NOFOLLOW);
        if (S_ISDIR(st.st_mode)) {
            note("  %s%s/", above, names[i]);
            say_folder(fd, names[i], names[i]);
        } else {
            BUF_FINI struct buf bytes = {0};
            FILE_CLOSE int file = openat(fd, names[i], O_RDONLY | O_CLOEXEC);
            char sum[65];
            file_read_fd(file, 1 << 20, &bytes, NULL);
            sha256_of(bytes.data, bytes.len, sum);
            note("    %s %zu %.16s", names[i], bytes.len, sum);
        }
        free(names[i]);
    }
    if (d)
        closedir(d);
}

static void say_all(void) {
    say_folder(AT_FDCWD, scene.dir, "");
}

static void take_all_away(int dir, const char *name) {
    int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
    for (struct dirent *e; d && (e = readdir(d));)
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
            unlinkat(fd, e->d_name, 0) < 0)
            take_all_away(fd, e->d_name);
    if (d)
        closedir(d);
    unlinkat(dir, name, AT_REMOVEDIR);
}

/* ---- what is done ---- */

static void hear(void *arg, int code, const char *sentence) {
    assert_ptr_equal(arg, &scene);
    const char *at = strstr(sentence, scene.dir);
    note("> %d %.*s%s", code, at ? (int)(at - sentence) : 0, sentence,
         at ? at + strlen(scene.dir) : sentence);
}

static void say(const char *what, int r, const struct err *err) {
    const char *at = strstr(err->msg, scene.dir);
    note("%s: %d, %d %.*s%s", what, r, err->code, at ? (int)(at - err->msg) : 0, err->msg,
         at ? at + strlen(scene.dir) : err->msg);
}

static void say_state(const struct state *s) {
    char hash[65];
    state_hash(s, hash);
    note("  step %llu %.16s %g %g", (unsigned long long)s->step, hash,
         state_range_length(s->held_moments) ? (double)s->moment[0][0] : 0,
         s->moments > 1 && state_range_length(s->held_moments) ? (double)s->moment[1][0] : 0);
}

static void fill(struct state *s, int base) {
    for (size_t i = 0; i < state_range_length(s->held); i++)
        s->weights[i] = (float)(base + (int)(i + s->held.lo));
    for (int k = 0; k < s->moments; k++)
        for (size_t i = 0; i < state_range_length(s->held_moments); i++)
            s->moment[k][i] = (float)(base * (k + 2) + (int)(i + s->held_moments.lo));
}

static void save_whole(void) {
    struct err err = {0};
    int r = checkpoint_save(&scene.place, &scene.state, &scene.q, &err);
    say("save", r, &err);
}

/* Of ranks that have all, or a part each. */
static void save_in_parts(void) {
    struct err err = {0};
    int parts = 1 + draw(3);
    bool shares = draw(2);
    struct checkpoint_part written[3];
    struct state own[3];
    uint64_t step = scene.state.step;
    memset(written, 0, sizeof(written));
    int r = checkpoint_parts_begin(&scene.place, step, parts, &scene.q, &err);
    say("begin", r, &err);
    for (int i = 0; i < parts; i++) {
        if (shares)
            checkpoint_slice_init(&scene.place, i, parts, &own[i]);
        else
            state_init(&own[i], scene.place.model, scene.place.optimizer);
        own[i].step = step;
        fill(&own[i], (int)step);
        err = (struct err){0};
        r = checkpoint_part_write(&scene.place, &own[i], i, parts, &written[i], &err);
        say("write", r, &err);
        for (int k = 0; r == 0 && k <= own[i].moments; k++)
            note("  %lld %lld %.16s", (long long)written[i].first[k],
                 (long long)written[i].bytes[k], written[i].sha256[k]);
    }
    err = (struct err){0};
    if (r == 0) {
        r = checkpoint_parts_commit(&scene.place, &own[0], parts, written, &scene.q, &err);
        say("commit", r, &err);
    }
    for (int i = 0; i < parts; i++)
        state_fini(&own[i]);
}

static void load(void) {
    struct err err = {0};
    struct state s;
    char path[PATH_MAX] = "";
    size_t lo = (size_t)draw(8), hi = lo + 1 + (size_t)draw(7);
    if (draw(2))
        state_init(&s, scene.place.model, scene.place.optimizer);
    else
        state_init_part(&s, scene.place.model, scene.place.optimizer,
                        (struct state_range){lo, hi + 3}, (struct state_range){lo, hi});
    int r = checkpoint_load(&scene.place, draw(3) ? 1000 : (uint64_t)draw(5), &s, path, hear,
                            &scene, &err);
    say("load", r, &err);
    if (r == 1) {
        note("  from %s", path + strlen(scene.dir));
        say_state(&s);
    }
    state_fini(&s);
}

/* What lies there as others may have left it. */
static void disturb(void) {
    static const char *const left[] = {".step-00000003.round-1.pid-7",
                                       ".step-00000003.round-9.pid-7",
                                       ".place-aa.round-2",
                                       ".place-aa.round-8",
                                       ".other.round-1",
                                       "step-3",
                                       "step-00000004x",
                                       "step-00000008"};
    char path[160];
    int what = draw(4), step = draw(4);
    static const char *const files[] = {"weights.f32", "velocity.f32", "manifest.json",
                                        "weights.000-of-002.f32"};
    snprintf(path, sizeof(path), "%s/%s", scene.dir, left[draw(8)]);
    if (what == 0) {
        if (strstr(path, ".place"))
            close(open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0666));
        else
            mkdir(path, 0777);
        note("left %s", path + strlen(scene.dir));
        return;
    }
    snprintf(path, sizeof(path), "%s/step-%08d/%s", scene.dir, step, files[draw(4)]);
    FILE_CLOSE int fd = open(path, O_RDWR | O_CLOEXEC);
    char byte = 0;
    note("damaged %s %d %d", path + strlen(scene.dir), what, fd >= 0);
    if (fd < 0)
        return;
    if (what == 1)
        unlink(path);
    else if (what == 2)
        assert_int_equal(ftruncate(fd, draw(50)), 0);
    else if (pread(fd, &byte, 1, 9) == 1) {
        byte ^= 1;
        assert_int_equal(pwrite(fd, &byte, 1, 9), 1);
    }
}

/* Another round, or another training. */
static void change(void) {
    struct checkpoint_place *p = &scene.place;
    switch (draw(9)) {
    case 0:
        p->round = draw(4);
        break;
    case 1:
        p->run_id = draw(2) ? "run" : "other";
        break;
    case 2:
        p->seed = draw(2);
        break;
    case 3:
        scene.model.width = 1 + draw(2);
        break;
    case 4:
        p->training = draw(3) ? &scene.training : NULL;
        break;
    case 5:
        scene.training.batch_size = 8 + draw(2);
        break;
    case 6:
        scene.training.lr = draw(2) ? 0.5 : 0.25;
        break;
    case 7:
        scene.leases = (struct leases){.n = draw(2), .terms = {{draw(6), 1 + draw(2)}}};
        break;
    default:
        p->keep = 1 + draw(3);
    }
    note("round %lld of %s, seed %lld, width %d, training %d %lld %g, keep %d", (long long)p->round,
         p->run_id, (long long)p->seed, scene.model.width, p->training != NULL,
         (long long)scene.training.batch_size, scene.training.lr, p->keep);
}

static void begin(uint64_t seed) {
    int pair[2];
    struct err err;
    (void)seed;
    memset(&scene, 0, sizeof(scene));
    scene.model =
        (struct model){.name = "played", .width = 1, .trained = TRAINED, .values = VALUES};
    snprintf(scene.dir, sizeof(scene.dir), "%s/test-checkpoint-record-XXXXXX",
             access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp");
    assert_non_null(mkdtemp(scene.dir));
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    scene.events = pair[1];
    scene.page.version = RANKQUAKE_VERSION_OF_PAGE;
    scene.q = (struct rankquake){.fd = pair[0], .pid = getpid(), .page = &scene.page};
    scene.training = (struct training){.dataset = "d", .images = 5, .batch_size = 8, .lr = 0.5};
    scene.place =
        (struct checkpoint_place){.dir = scene.dir,
                                  .run_id = "run",
                                  .model = &scene.model,
                                  .optimizer = optimizer_find(draw(2) ? "sgd" : "adam", &err),
                                  .round = 2,
                                  .seed = 1,
                                  .world = 3,
                                  .keep = 2,
                                  .training = &scene.training,
                                  .speaking = &scene.speaking};
    state_init(&scene.state, &scene.model, scene.place.optimizer);
    if (draw(4) == 0)
        rmdir(scene.dir);
    scene.zero = draw(2) ? fcntl(0, F_DUPFD_CLOEXEC, OPEN_MAX_HERE) : -1;
    if (scene.zero >= 0)
        close(0);
}

static void end(void) {
    say_all();
    state_fini(&scene.state);
    if (scene.zero >= 0) {
        dup2(scene.zero, 0);
        close(scene.zero);
    }
    close(scene.events);
    close(scene.q.fd);
    take_all_away(AT_FDCWD, scene.dir);
}

static void act(int n) {
    for (int i = 0; i < n; i++) {
        int what = draw(9);
        if (what < 3) {
            scene.state.step = (uint64_t)draw(4);
            fill(&scene.state, (int)scene.state.step + draw(2));
            save_whole();
        } else if (what < 5) {
            scene.state.step = (uint64_t)draw(4);
            save_in_parts();
        } else if (what < 7)
            load();
        else if (what == 7)
            disturb();
        else
            change();
        say_all();
    }
}

static void live(uint64_t seed) {
    begin(seed);
    act(12);
    end();
}

/* A few, each call of which fails once. */
static void live_shortly(uint64_t seed) {
    begin(seed);
    scene.state.step = 1 + seed % 3;
    fill(&scene.state, 5);
    for (int i = 0; i < 1 + (seed % 4 >= 2); i++, fill(&scene.state, 6)) /* again, and otherwise */
        if (seed % 2)
            save_whole();
        else
            save_in_parts();
    act(seed % 4 < 2);
    load();
    end();
}

static const struct play plays[] = {
    {"tests/scenarios/jobs/ranktrain/record/checkpoints.txt", live, 80, false, {0}},
    {"tests/scenarios/jobs/ranktrain/record/checkpoints_fail.txt",
     live_shortly,
     8,
     true,
     {ENOSPC, ENOENT}},
};

static void test_what_becomes_of_a_directory_is_on_record(void **state) {
    (void)state;
    played_check(&plays[0]);
    played_check(&plays[1]);
}

int main(int argc, char **argv) {
    umask(022);
    descriptors_open_standard(); /* the lowest that are free are those behind them */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_becomes_of_a_directory_is_on_record),
    };
    return played_main(argc, argv, plays, tests);
}
