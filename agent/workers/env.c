#include "agent/workers/env.h"

#include "base/str.h"

#include <inttypes.h>
#include <stdlib.h>

enum { ENV_MAX = 28 };

struct env {
    char **strings;
    int n;
    struct arena *arena;
};

static void put(struct env *e, const char *name, const char *value) {
    e->strings[e->n++] = arena_printf(e->arena, "%s=%s", name, value);
}

static void put_number(struct env *e, const char *name, int64_t value) {
    e->strings[e->n++] = arena_printf(e->arena, "%s=%" PRId64, name, value);
}

/* --virtual-local-rank: the worker's own GPU is the only one it sees. */
static void put_one_device(struct env *e, int local_rank) {
    const char *all = getenv("CUDA_VISIBLE_DEVICES");
    size_t n = 0;
    char **names = all && *all ? str_split(e->arena, all, ',', &n) : NULL;
    if ((size_t)local_rank < n)
        put(e, "CUDA_VISIBLE_DEVICES", names[local_rank]);
    else if (!names)
        put_number(e, "CUDA_VISIBLE_DEVICES", local_rank);
    else
        put(e, "CUDA_VISIBLE_DEVICES", ""); /* there is none for it */
}

static void put_ranks(struct env *e, const struct worker_spec *s, int local_rank) {
    put_number(e, "LOCAL_RANK", s->virtual_local_rank ? 0 : local_rank);
    if (s->virtual_local_rank)
        put_one_device(e, local_rank);
    put_number(e, "RANK", s->rank_base + local_rank);
    put_number(e, "GROUP_RANK", s->group_rank);
    put_number(e, "ROLE_RANK", s->role_rank_base + local_rank);
    put(e, "ROLE_NAME", s->role);
    put_number(e, "LOCAL_WORLD_SIZE", s->local_world_size);
    put_number(e, "WORLD_SIZE", s->world_size);
    put_number(e, "GROUP_WORLD_SIZE", s->group_world_size);
    put_number(e, "ROLE_WORLD_SIZE", s->role_world_size);
    put(e, "MASTER_ADDR", s->master_addr);
    put_number(e, "MASTER_PORT", s->master_port);
}

/* Several workers that each start a thread per core would trip over each other; one may do as it
 * likes, and so may all when the user has said something. */
static void put_defaults(struct env *e, const struct worker_spec *s) {
    const char *nccl = getenv("TORCH_NCCL_ASYNC_ERROR_HANDLING");
    put(e, "TORCH_NCCL_ASYNC_ERROR_HANDLING", nccl ? nccl : "1");
    if (s->local_world_size > 1 && !getenv("OMP_NUM_THREADS"))
        put(e, "OMP_NUM_THREADS", "1");
}

char **env_make(const struct worker_spec *s, int local_rank, const char *error_file,
                struct arena *a) {
    struct env e = {arena_array(a, char *, ENV_MAX + 1), 0, a};
    put_ranks(&e, s, local_rank);
    put_number(&e, "TORCHELASTIC_RESTART_COUNT", s->restart_count);
    put_number(&e, "TORCHELASTIC_MAX_RESTARTS", s->max_restarts);
    put(&e, "TORCHELASTIC_RUN_ID", s->run_id);
    /* The worker of rank 0 hosts the job's own store: no agent serves one. */
    put(&e, "TORCHELASTIC_USE_AGENT_STORE", "False");
    put(&e, "TORCHELASTIC_ERROR_FILE", error_file);
    if (s->timer_file)
        put(&e, "TORCHELASTIC_TIMER_FILE", s->timer_file);
    put_number(&e, "RANKRUN_ROUND", (int64_t)s->round);
    if (s->token)
        put(&e, "RANKRUN_TOKEN", s->token);
    put_defaults(&e, s);
    return e.strings;
}
