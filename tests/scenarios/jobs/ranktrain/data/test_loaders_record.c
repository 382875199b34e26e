/* Loaders and who starts them on a system that is played: which processes and descriptors there are, who is asked for what
 * and when, what lies in a slot, and what comes of each call that fails. */
#include "tests/played.h"

#include "scenarios/jobs/ranktrain/data/images.h"
#include "scenarios/jobs/ranktrain/data/loaders.h"
#include "scenarios/jobs/ranktrain/data/sampler.h"

#include "base/mem.h"
#include "base/sys/file.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    WAKE_FD = 900,
    RANK = 50,
    FIRST = 100,
    SAMPLES = 30,
    BYTES = 5,
    LOADERS_MAX = 3,
    TAKES = 12
};

static struct {
    int forked, child; /* the so manyth process that is started is this one; -1: none */
    void *loaders;     /* as they were made */
    bool samples;      /* are drawn */
    jmp_buf gone;
    void *slots;
    size_t bytes;
    uint8_t pixels[SAMPLES][BYTES];
} host;

static int two(const char *what, int a, int b, int fd[2]) {
    if (fails("%s %d, %d", what, a, b))
        return -1;
    fd[0] = played_open();
    fd[1] = played_open();
    note("  %d and %d", fd[0], fd[1]);
    return 0;
}

static int played_socketpair(int domain, int type, int protocol, int fd[2]) {
    assert_int_equal(domain, AF_UNIX);
    return two("socketpair", type, protocol, fd);
}

static int played_pipe(int fd[2], int flags) {
    return two("pipe", flags, 0, fd);
}

static void *made(void *p) {
    return host.loaders = p;
}

static pid_t played_fork(void) {
    if (fails("fork"))
        return -1;
    int number = host.forked++;
    return number == host.child ? 0 : FIRST + number;
}

static int played_flush(FILE *f) {
    note("flush %d", f != NULL);
    return 0;
}

static pid_t played_parent(void) {
    return draw(9) ? RANK : 1;
}

static int played_prctl(int option, const char *word, long number) {
    note("prctl %d: %s %ld", option, option == PR_SET_NAME ? word : "", number);
    return 0;
}

static void (*played_signal(int number, void (*does)(int)))(int) {
    note("signal %d, ignored: %d", number, does == SIG_IGN);
    return SIG_DFL;
}

static _Noreturn void played_exit(int code) {
    note("exit %d", code);
    longjmp(host.gone, 1);
}

static void *played_map(void *at, size_t n, int may, int flags, int fd, off_t offset) {
    assert_true(!at && fd == -1 && offset == 0 && !host.slots);
    if (fails("map %zu bytes, %d, %d", n, may, flags))
        return MAP_FAILED;
    host.bytes = n;
    return host.slots = calloc(1, n);
}

static int played_unmap(void *at, size_t n) {
    assert_true(at && at == host.slots && n == host.bytes);
    note("unmap %zu", n);
    free(at);
    host.slots = NULL;
    return 0;
}

static pid_t played_wait(pid_t pid, int *status, int flags) {
    static const int ends[] = {0, 3 << 8, SIGKILL, SIGBUS, 0};
    int end = ends[draw(5)];
    note("wait for %d, %d, asked: %d; %d", (int)pid, flags, status != NULL, end);
    if (draw(9) == 0)
        return -1;
    if (status)
        *status = end;
    return pid;
}

static ssize_t played_send(int fd, const void *p, size_t n, int flags) {
    uint64_t step;
    assert_int_equal(n, sizeof(step));
    memcpy(&step, p, n);
    if (fails("ask %d for %llu, %d", fd, (unsigned long long)step, flags))
        return -1;
    return draw(40) ? (ssize_t)n : draw((int)n);
}

static int played_poll(struct pollfd *p, nfds_t n, int ms) {
    assert_int_equal(n, 2);
    if (fails("poll %d for %d, %d for %d, %d", p[0].fd, p[0].events, p[1].fd, p[1].events, ms))
        return -1;
    int first = draw(30);
    p[0].revents = first == 0 ? 0 : first == 1 ? POLLHUP : POLLIN;
    p[1].revents = first == 0 || draw(6) == 0 ? POLLIN : 0;
    return 1;
}

/* What a loader is asked for; or, of the rank, what one has told of, and then its images are there. */
static void write_slot(uint64_t step);
static uint64_t step_heard;

static ssize_t played_read(int fd, void *p, size_t n) {
    if (fails("read %zu from %d", n, fd))
        return -1;
    uint64_t step = host.child >= 0 ? 1 + (uint64_t)draw(9) : step_heard;
    int luck = draw(host.child >= 0 ? 6 : 40);
    if (luck < 2)
        return luck ? 0 : 3;
    if (host.child < 0)
        write_slot(step);
    memcpy(p, &step, sizeof(step));
    return sizeof(step);
}

static ssize_t played_tell(int fd, const void *p, size_t n) {
    uint64_t step;
    assert_int_equal(n, sizeof(step));
    memcpy(&step, p, n);
    return fails("tell %d of %llu", fd, (unsigned long long)step) ? -1 : draw(9) ? (ssize_t)n : 2;
}

static const uint8_t *played_image(const struct images *d, uint32_t i, struct err *err) {
    assert_true(i < SAMPLES);
    if (fails("image %u", i)) {
        err_set(err, -errno, "image %u", i);
        return NULL;
    }
    return host.pixels[i];
}

static void played_sampler(struct sampler *s, uint64_t seed, uint32_t samples, uint32_t batch,
                           uint32_t parts, bool drop_last) {
    note("samples: %llu, %u, %u, %u, %d", (unsigned long long)seed, samples, batch, parts,
         drop_last);
    host.samples = true;
    (sampler_init)(s, seed, samples, batch, parts, drop_last);
}

#undef mem_new
#define mem_new(type) ((type *)made(mem_alloc(1, sizeof(type))))
#define socketpair    played_socketpair
#define pipe2         played_pipe
#define fork()        played_fork()
#define getpid()      RANK
#define getppid()     played_parent()
#define fflush        played_flush
#define prctl(option, value)                                                                       \
    played_prctl(option, (const char *)(uintptr_t)(value),                                         \
                 (option) == PR_SET_NAME ? 0 : (long)(uintptr_t)(value))
#define signal                         played_signal
#define _exit                          played_exit
#define mmap                           played_map
#define munmap                         played_unmap
#define waitpid                        played_wait
#define send                           played_send
#define poll                           played_poll
#define read                           played_read
#define write                          played_tell
#define close                          played_close
#define file_close                     played_file_close
#define images_read                    played_image
#define sampler_init(a, b, c, d, e, f) played_sampler(a, b, c, d, e, f)
#include "scenarios/jobs/ranktrain/data/loaders.c"
#undef signal
#undef read
#undef write
#undef poll

static struct loaders *of_rank; /* while it asks and hears */

/* As a loader would: its images, or why there are none. */
static void write_slot(uint64_t step) {
    struct loaders *l = of_rank;
    struct loaders_slot *slot = slot_of(l, step);
    slot->err = (struct err){0};
    if (draw(20) == 0)
        err_say(&slot->err, -EBADMSG, "step %llu is damaged", (unsigned long long)step);
    for (uint32_t i = 0; i < l->job.places_n; i++) {
        slot->samples[i] = (uint32_t)step * 10 + i;
        memset(pixels_of(l, step) + i * BYTES, (int)(step * 10 + i), BYTES);
    }
}

static struct loaders_job job_draw(const struct images *images, uint32_t *places) {
    struct loaders_job j = {.images = images,
                            .seed = 7,
                            .batch = 6,
                            .parts = draw(2) ? 1 : 3,
                            .drop_last = draw(2),
                            .places = places,
                            .places_n = (uint32_t)draw(5),
                            .loaders = 1 + draw(LOADERS_MAX),
                            .last_step = 1 + (uint64_t)draw(14)};
    for (uint32_t i = 0; i < j.places_n; i++)
        places[i] = (uint32_t)draw(6);
    note("%d loaders, %u places, %llu steps, of %u parts", j.loaders, j.places_n,
         (unsigned long long)j.last_step, j.parts);
    return j;
}

static void images_draw(struct images *ret) {
    *ret = (struct images){.count = SAMPLES, .bytes = BYTES};
    for (int i = 0; i < SAMPLES; i++)
        memset(host.pixels[i], 100 + i, BYTES);
}

/* All slots. */
static void say_slots(const struct loaders *l, uint64_t last) {
    for (uint64_t step = 0; step <= last; step++) {
        const struct loaders_slot *slot = slot_of(l, step);
        note("> step %llu lies at %zu: %d %s", (unsigned long long)step,
             (size_t)((const uint8_t *)slot - l->slots), slot->err.code, slot->err.msg);
        for (uint32_t i = 0; i < l->job.places_n; i++)
            note(">   %u: %02x .. %02x", slot->samples[i], pixels_of(l, step)[i * BYTES],
                 pixels_of(l, step)[i * BYTES + BYTES - 1]);
    }
}

/* The life of a loader; what the rank has in hand then is as it was. */
static void load_all(uint64_t seed) {
    struct images images;
    uint32_t places[4];
    struct loaders *l = NULL;
    struct err err = {0};
    memset(&host, 0, sizeof(host));
    images_draw(&images);
    const struct loaders_job j = job_draw(&images, places);
    host.child = draw(j.loaders);
    if (setjmp(host.gone) == 0) {
        int r = loaders_start(&j, &l, &err);
        note("> %d, %d %s", r, err.code, err.msg);
        loaders_end(l);
        return;
    }
    l = host.loaders;
    say_slots(l, 2);
    if (host.samples)
        sampler_fini(&l->sampler);
    else /* it has lost its rank before it began: all that is open is the system's to take */
        memset(played.open, 0, sizeof(played.open));
    for (int i = 0; i < j.loaders; i++)
        l->v[i] = (struct loader){.ask_fd = -1, .told_fd = -1};
    loaders_end(l);
}

static void say_found(const struct loaders *l, uint64_t step) {
    for (uint32_t i = 0; i < 6; i++) {
        uint32_t sample = (uint32_t)step * 10 + i, number = 4711;
        const uint8_t *image = loaders_find(l, sample);
        bool is = image && loaders_number(l, image + BYTES - 1, &number);
        note("> %u: %d, %d %u", sample, image ? *image : -1, is, number);
    }
    uint32_t number = 4711;
    const uint8_t *first = pixels_of(l, step);
    bool before = loaders_number(l, first - 1, &number);
    bool behind = loaders_number(l, first + l->job.places_n * BYTES, &number);
    note("> before %d, behind %d, %u", before, behind, number);
}

static void take_all(uint64_t seed) {
    struct images images;
    uint32_t places[4];
    struct err err = {0};
    memset(&host, 0, sizeof(host));
    host.child = -1;
    images_draw(&images);
    const struct loaders_job j = job_draw(&images, places);
    struct loaders *l = NULL;
    int r = loaders_start(&j, &l, &err);
    note("> started: %d, %d %s", r, err.code, err.msg);
    of_rank = l;
    uint64_t step = 0;
    for (int i = 0; i < TAKES && r == 0; i++) {
        step = step < j.last_step && draw(8) ? step + 1 : 1 + (uint64_t)draw((int)j.last_step);
        step_heard = step;
        err = (struct err){0};
        if (i == 0)
            say_found(l, step);
        r = loaders_take(l, step, WAKE_FD, draw(9) ? &err : NULL);
        note("> step %llu: %d, %d %s", (unsigned long long)step, r, err.code, err.msg);
        say_found(l, r == 0 ? step : l->taken);
        r = r == -EBADMSG || (r == -ECANCELED && draw(2)) ? 0 : r;
    }
    loaders_end(l);
}

static const struct play plays[] = {
    {"tests/scenarios/jobs/ranktrain/data/record/loader.txt", load_all, 100, true, {EINTR, EMFILE}},
    {"tests/scenarios/jobs/ranktrain/data/record/loaders.txt",
     take_all,
     100,
     true,
     {EINTR, EMFILE}}};

static void test_what_a_loader_does_is_on_record(void **state) {
    (void)state;
    played_check(&plays[0]);
}

static void test_what_a_rank_asks_of_loaders_is_on_record(void **state) {
    (void)state;
    played_check(&plays[1]);
}

int main(int argc, char **argv) {
    loaders_end(NULL);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_a_loader_does_is_on_record),
        cmocka_unit_test(test_what_a_rank_asks_of_loaders_is_on_record),
    };
    return played_main(argc, argv, plays, tests);
}
