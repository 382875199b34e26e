#include "faults/disk/stored.h"

#include "base/rand.h"
#include "base/str.h"
#include "faults/arguments.h"
#include "faults/mechanism/file_pick.h"

#include <errno.h>
#include <string.h>

static const char *const places[] = {[NODE_SHARED] = "{shared}", [NODE_DISK] = "{disk}"};

const char *stored_place_name(enum node_place place) {
    return places[place];
}

int stored_read(const char *key, const char *text, enum node_place *ret_place,
                const char **ret_pattern, struct err *err) {
    for (size_t i = 0; i < sizeof(places) / sizeof(*places); i++) {
        size_t n = strlen(places[i]);
        if (!str_starts(text, places[i]) || text[n] != '/')
            continue;
        int r = file_pattern_check(text + n + 1, err);
        if (r)
            return err_wrap(err, "%s: %s: ", key, text);
        *ret_place = (enum node_place)i;
        *ret_pattern = text + n + 1;
        return 0;
    }
    return err_say(err, -EINVAL,
                   "%s: \"%.200s\" is not on a disk of the job: begin with {shared}/ or {disk}/, "
                   "as in " STORED_PATH,
                   key, text);
}

static int read_age(const struct fault_args *a, enum file_age *ret, struct err *err) {
    const char *which = fault_arg(a, "which", file_age_names[FILE_NEWEST]);
    for (int i = 0; i < FILE_AGES_N; i++)
        if (str_eq(which, file_age_names[i])) {
            *ret = (enum file_age)i;
            return 0;
        }
    return err_say(err, -EINVAL, "which: %s is none of newest, oldest and seeded", which);
}

int stored_check(const struct fault_args *a, struct err *err) {
    enum node_place place;
    enum file_age age;
    const char *pattern;
    int r = stored_read("path", fault_arg(a, "path", STORED_PATH), &place, &pattern, err);
    return r ? r : read_age(a, &age, err);
}

int stored_open(const struct target *t, const struct fault_args *a, struct stored *ret,
                struct err *err) {
    struct stored s = {.in = FOLDER_NONE};
    enum file_age age;
    int r = stored_read("path", fault_arg(a, "path", STORED_PATH), &s.place, &s.pattern, err);
    r = r ? r : read_age(a, &age, err);
    r = r ? r : t->ops->open_place(t->node, s.place, false, &s.in, err);
    r = r ? r : file_pick(&s.in, s.pattern, age, a ? a->seed : 0, s.path, err);
    if (r) {
        folder_close(&s.in);
        return err_wrap(err, "%s: ", t->name);
    }
    *ret = s;
    return 0;
}

void stored_close(struct stored *s) {
    folder_close(&s->in);
}

int stored_damage(const struct target *t, const struct fault_args *a, stored_damage_fn *damage,
                  struct err *err) {
    struct stored s;
    int r = stored_open(t, a, &s, err);
    if (r)
        return r;
    r = damage(t, a, &s, err);
    stored_close(&s);
    return r;
}

static int read_number(const struct fault_args *a, const char *key, int64_t max, int64_t *ret,
                       struct err *err) {
    *ret = -1;
    if (str_eq(fault_arg(a, key, "drawn"), "drawn"))
        return 0;
    return fault_count(a, key, "drawn", 0, max, ret, err);
}

int stored_offset(const struct fault_args *a, int64_t bytes, int64_t *ret_offset, int *ret_bit,
                  struct err *err) {
    struct rand rand;
    int64_t bit;
    int r = read_number(a, "offset", INT64_MAX, ret_offset, err);
    r = r ? r : read_number(a, "bit", 7, &bit, err);
    if (r)
        return r;
    rand_init(&rand, a ? a->seed : 0);
    int64_t drawn = bytes > 0 ? (int64_t)rand_below(&rand, (uint64_t)bytes) : 0;
    int drawn_bit = (int)rand_below(&rand, 8);
    *ret_offset = *ret_offset < 0 ? drawn : *ret_offset;
    *ret_bit = bit < 0 ? drawn_bit : (int)bit;
    return 0;
}
