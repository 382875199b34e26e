#include "harness/observe/spawned.h"

#include "base/str.h"
#include "base/sys/file.h"
#include "base/sys/worker_env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENVIRON_MAX = 2 << 20, NAME_MAX_LEN = 63, VALUE_MAX = 700, FIELDS_MAX = 64 };

static bool place_of(const char *rank, const char *world, int *ret_rank, int *ret_world) {
    int64_t r, n;
    if (!str_to_i64(rank, 0, INT32_MAX, &r) || !str_to_i64(world, 1, INT32_MAX, &n) || r >= n)
        return false;
    *ret_rank = (int)r;
    *ret_world = (int)n;
    return true;
}

/* "" when it is not there; of two of one name the first counts, as for getenv(3). */
static const char *value_of(const struct buf *environ, const char *name) {
    for (size_t at = 0; at < environ->len; at += strlen(environ->data + at) + 1)
        if (str_starts(environ->data + at, name))
            return environ->data + at + strlen(name);
    return "";
}

bool spawned_read(struct spawned *s, pid_t pid) {
    char path[64];
    *s = (struct spawned){.rank = -1};
    snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
    if (file_read(path, ENVIRON_MAX, &s->environ, NULL) == 0 && *buf_str(&s->environ) &&
        place_of(value_of(&s->environ, "RANK="), value_of(&s->environ, "WORLD_SIZE="), &s->rank,
                 &s->world_size))
        return true;
    spawned_fini(s);
    return false;
}

void spawned_fini(struct spawned *s) {
    buf_fini(&s->environ);
}

bool spawned_claimed(const struct json *env, int *ret_rank, int *ret_world_size) {
    return place_of(json_get_string(env, "RANK", ""), json_get_string(env, "WORLD_SIZE", ""),
                    ret_rank, ret_world_size);
}

static void put_read(struct json_writer *w, const struct buf *environ) {
    char name[NAME_MAX_LEN + 1];
    int n = 0;
    for (size_t at = 0; at < environ->len; at += strlen(environ->data + at) + 1) {
        const char *entry = environ->data + at, *value = strchr(entry, '=');
        size_t len = value ? (size_t)(value - entry) : sizeof(name);
        if (len >= sizeof(name) || !worker_env_is_told(entry) || n++ >= FIELDS_MAX)
            continue;
        memcpy(name, entry, len);
        name[len] = '\0';
        json_put_stringn(w, name, value + 1, strnlen(value + 1, VALUE_MAX));
    }
}

static void put_claimed(struct json_writer *w, const struct json *env) {
    char entry[NAME_MAX_LEN + 2];
    int n = 0;
    json_each(it, env) {
        if (snprintf(entry, sizeof(entry), "%s=", it->key) < (int)sizeof(entry) &&
            worker_env_is_told(entry) && json_string(it, NULL) && n++ < FIELDS_MAX)
            json_put_string(w, it->key, json_string(it, ""));
    }
}

void spawned_put(struct json_writer *w, const struct spawned *s, pid_t pid,
                 const struct json *env) {
    BUF_FINI struct buf command = {0};
    char path[64];
    snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
    file_read(path, ENVIRON_MAX, &command, NULL);
    json_put_string(w, "argv0", buf_str(&command));
    json_object(w, "env");
    if (env)
        put_claimed(w, env);
    else
        put_read(w, &s->environ);
    json_end_object(w);
}
