#include "tests/mutate/draw.h"

#include "base/mem.h"
#include "base/str.h"
#include "tests/mutate/rooms.h"

#include <stdlib.h>
#include <string.h>

enum { ROOMS_MAX = 64, NAME_MAX_LEN = 128 };

struct drawn {
    const struct point *point;
    int room;
    uint64_t key;
    size_t turn; /* which of its operator it is in its room */
};

struct room {
    char name[NAME_MAX_LEN];
    size_t n;
    int quota;
    int64_t rest; /* what rounding took */
};

static uint64_t mix(uint64_t x) {
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
    return x ^ (x >> 31);
}

static uint64_t key_of(uint64_t seed, const char *identity) {
    uint64_t h = mix(seed);
    for (; *identity; identity++)
        h = mix(h ^ (unsigned char)*identity);
    return h;
}

static int room_index(struct room *rooms, int *n, const char *path) {
    char buf[NAME_MAX_LEN];
    const char *name = room_of(path, buf, sizeof(buf));
    for (int i = 0; i < *n; i++)
        if (str_eq(rooms[i].name, name))
            return i;
    if (*n == ROOMS_MAX)
        return -1;
    str_copy(rooms[*n].name, sizeof(rooms[*n].name), name);
    return (*n)++;
}

/* One for each, then by size; what rounding leaves goes to those from whom it took most. */
static void share(struct room *rooms, int n, int sample) {
    size_t all = 0;
    int left = sample;
    for (int i = 0; i < n; i++)
        all += rooms[i].n;
    for (int i = 0; i < n; i++) {
        int64_t exact = (int64_t)sample * (int64_t)rooms[i].n;
        rooms[i].quota = (int)(exact / (int64_t)all);
        rooms[i].rest = exact % (int64_t)all;
        if (rooms[i].quota == 0)
            rooms[i].quota = 1, rooms[i].rest = -1;
        left -= rooms[i].quota;
    }
    while (left != 0) {
        int best = -1;
        for (int i = 0; i < n; i++)
            if (left > 0 ? best < 0 || rooms[i].rest > rooms[best].rest
                         : rooms[i].quota > 0 && (best < 0 || rooms[i].quota > rooms[best].quota))
                best = i;
        rooms[best].quota += left > 0 ? 1 : -1;
        rooms[best].rest = -1;
        left += left > 0 ? -1 : 1;
    }
}

static int by_key(const void *a, const void *b) {
    const struct drawn *p = a, *q = b;
    if (p->room != q->room)
        return p->room - q->room;
    int order = strcmp(p->point->operator, q->point->operator);
    return order ? order : (p->key > q->key) - (p->key < q->key);
}

static int by_turn(const void *a, const void *b) {
    const struct drawn *p = a, *q = b;
    if (p->room != q->room)
        return p->room - q->room;
    if (p->turn != q->turn)
        return p->turn < q->turn ? -1 : 1;
    return (p->key > q->key) - (p->key < q->key);
}

static void take_turns(struct drawn *v, size_t n) {
    qsort(v, n, sizeof(*v), by_key);
    for (size_t i = 1; i < n; i++)
        if (v[i].room == v[i - 1].room &&
            strcmp(v[i].point->operator, v[i - 1].point->operator) == 0)
            v[i].turn = v[i - 1].turn + 1;
    qsort(v, n, sizeof(*v), by_turn);
}

void draw_print(const struct points *p, const struct draw_spec *spec, FILE *out) {
    struct room rooms[ROOMS_MAX] = {0};
    struct drawn *v = NULL;
    size_t n = 0;
    int n_rooms = 0;
    for (size_t i = 0; i < p->n; i++) {
        char buf[NAME_MAX_LEN];
        if (spec->only && !str_eq(spec->only, room_of(p->v[i].path, buf, sizeof(buf))))
            continue;
        int room = room_index(rooms, &n_rooms, p->v[i].path);
        if (room < 0)
            continue;
        rooms[room].n++;
        mem_push(v, n) = (struct drawn){&p->v[i], room, key_of(spec->seed, p->v[i].identity), 0};
    }
    if (n) {
        share(rooms, n_rooms, spec->sample);
        take_turns(v, n);
    }
    for (size_t i = 0; i < n; i++)
        fprintf(out, "%s\t%d\t%s\t%u\t%s\n", rooms[v[i].room].name, rooms[v[i].room].quota,
                v[i].point->path, v[i].point->line, v[i].point->identity);
    free(v);
}
