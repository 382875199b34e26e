#include "faults/mechanism/disk_spool.h"

#include "base/mem.h"
#include "base/sys/file.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { PARTS = 16, AWAKE = PARTS / 2 }; /* the thread is woken for so many, or when nobody waits */
static const size_t memory_size = (size_t)PARTS * DISK_SPOOL_PART;

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* Linux 5.14 */
#endif

struct spooled {
    unsigned char *bytes;
    size_t n;
    struct buf lines;
};

/* Parts are filled and written in turn: those in [written, given) are the thread's, and part `given` is
 * being filled. */
struct disk_spool {
    int bytes, lines;
    unsigned char *memory;
    struct spooled parts[PARTS];
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t given, written;
    uint64_t told; /* up to which part the thread has been woken for what is given */
    int code;
    bool ends;
};

static struct spooled *filled(struct disk_spool *s) {
    return &s->parts[s->given % PARTS];
}

/* ---- the thread ---- */

static int write_part(const struct disk_spool *s, const struct spooled *p) {
    int code = p->n ? file_write_all(s->bytes, p->bytes, p->n, NULL) : 0;
    return code || !p->lines.len ? code
                                 : file_write_all(s->lines, p->lines.data, p->lines.len, NULL);
}

static void write_next(struct disk_spool *s) {
    struct spooled *p = &s->parts[s->written % PARTS];
    int code = s->code;
    pthread_mutex_unlock(&s->lock);
    code = code ? code : write_part(s, p);
    p->n = 0;
    buf_clear(&p->lines);
    pthread_mutex_lock(&s->lock);
    s->code = code;
    s->written++;
    pthread_cond_broadcast(&s->changed);
}

static void *run(void *spool) {
    struct disk_spool *s = spool;
    pthread_mutex_lock(&s->lock);
    while (!s->ends || s->written < s->given)
        if (s->written < s->given)
            write_next(s);
        else
            pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* Signals are for the thread that has always been there. */
static int start(struct disk_spool *s) {
    sigset_t all, was;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &was);
    int code = pthread_create(&s->thread, NULL, run, s);
    pthread_sigmask(SIG_SETMASK, &was, NULL);
    return -code;
}

/* ---- who fills ---- */

static struct disk_spool *destroy(struct disk_spool *s) {
    if (s->memory)
        munmap(s->memory, memory_size);
    for (size_t i = 0; i < PARTS; i++)
        buf_fini(&s->parts[i].lines);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s);
    return NULL;
}

/* Made to be there before anybody waits for it; where the kernel does not know how, it comes as it is
 * used. */
static unsigned char *take_memory(void) {
    void *at = mmap(NULL, memory_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        return NULL;
    madvise(at, memory_size, MADV_HUGEPAGE);
    madvise(at, memory_size, MADV_POPULATE_WRITE);
    return at;
}

int disk_spool_new(struct disk_spool **ret, int bytes, int lines, struct err *err) {
    struct disk_spool *s = mem_new(struct disk_spool);
    s->bytes = bytes;
    s->lines = lines;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    s->memory = take_memory();
    for (size_t i = 0; i < PARTS; i++)
        s->parts[i].bytes = s->memory ? s->memory + i * DISK_SPOOL_PART : NULL;
    int code = s->memory ? start(s) : -ENOMEM;
    if (code == 0) {
        *ret = s;
        return 0;
    }
    destroy(s);
    return err_set(err, code, "hold what is recorded in memory");
}

static void wake(struct disk_spool *s) {
    s->told = s->given;
    pthread_cond_broadcast(&s->changed);
}

/* The part is full. A save is seldom larger than what the parts hold, and whoever is woken beside it takes
 * a processor, and the way to the memory, from it. */
static void next_part(struct disk_spool *s) {
    pthread_mutex_lock(&s->lock);
    s->given++;
    if (s->given - s->written >= AWAKE)
        wake(s);
    while (s->given - s->written >= PARTS)
        pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

void disk_spool_give(struct disk_spool *s) {
    if (!disk_spool_holds(s))
        return;
    if (filled(s)->n || filled(s)->lines.len)
        next_part(s);
    pthread_mutex_lock(&s->lock);
    wake(s);
    pthread_mutex_unlock(&s->lock);
}

unsigned char *disk_spool_room(struct disk_spool *s, size_t size) {
    if (size > DISK_SPOOL_PART)
        return NULL;
    if (size > DISK_SPOOL_PART - filled(s)->n)
        next_part(s);
    return filled(s)->bytes + filled(s)->n;
}

void disk_spool_put(struct disk_spool *s, const unsigned char *bytes, size_t size) {
    for (size_t n; size; size -= n, bytes += n) {
        n = size < DISK_SPOOL_PART ? size : DISK_SPOOL_PART;
        unsigned char *at = disk_spool_room(s, n);
        if (at != bytes)
            memcpy(at, bytes, n);
        filled(s)->n += n;
    }
}

void disk_spool_line(struct disk_spool *s, const struct buf *line) {
    buf_put(&filled(s)->lines, line->data, line->len);
}

bool disk_spool_holds(const struct disk_spool *s) {
    const struct spooled *p = &s->parts[s->given % PARTS];
    return p->n > 0 || p->lines.len > 0 || s->told < s->given;
}

int disk_spool_drain(struct disk_spool *s) {
    disk_spool_give(s);
    pthread_mutex_lock(&s->lock);
    while (s->written < s->given)
        pthread_cond_wait(&s->changed, &s->lock);
    int code = s->code;
    pthread_mutex_unlock(&s->lock);
    return code;
}

int disk_spool_code(struct disk_spool *s) {
    pthread_mutex_lock(&s->lock);
    int code = s->code;
    pthread_mutex_unlock(&s->lock);
    return code;
}

struct disk_spool *disk_spool_free(struct disk_spool *s) {
    if (!s)
        return NULL;
    disk_spool_drain(s);
    pthread_mutex_lock(&s->lock);
    s->ends = true;
    pthread_cond_broadcast(&s->changed);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    return destroy(s);
}
