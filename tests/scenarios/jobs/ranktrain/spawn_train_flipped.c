/* ranktrain with a planted bug: one byte of the resumed weights changes past the checksum. */
#define checkpoint_load checkpoint_load_rightly
#include "scenarios/jobs/ranktrain/checkpoint.c"
#undef checkpoint_load

int checkpoint_load(const struct checkpoint_place *p, uint64_t max_step, struct state *ret,
                    char ret_path[PATH_MAX], checkpoint_ignored_fn *ignored, void *arg,
                    struct err *err);

int checkpoint_load(const struct checkpoint_place *p, uint64_t max_step, struct state *ret,
                    char ret_path[PATH_MAX], checkpoint_ignored_fn *ignored, void *arg,
                    struct err *err) {
    int r = checkpoint_load_rightly(p, max_step, ret, ret_path, ignored, arg, err);
    if (r > 0)
        ((unsigned char *)ret->weights)[4 * 30000] ^= 1;
    return r;
}

#include "scenarios/jobs/ranktrain/main.c"
