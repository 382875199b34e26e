/* Whether the script that operators give to sbatch ends a job which could go on. It is read here; no host is asked. */
#include "harness/preflight/probe.h"
#include "harness/preflight/slurm_script.h"

#include "base/str.h"
#include "base/sys/file.h"

enum { SCRIPT_MAX = 1 << 20 };

struct script_reader {
    struct probing *probing;
    const char *path;
};

static void tell(void *arg, const char *sentence) {
    const struct script_reader *r = arg;
    json_put_string(r->probing->figures, NULL, sentence);
    probe_fail(r->probing, "%s: %s", r->path, sentence);
}

static bool read_one(struct probing *p, const char *path) {
    BUF_FINI struct buf text = {0};
    struct script_reader r = {.probing = p, .path = path};
    struct err err = {0};
    if (file_read_plain(path, SCRIPT_MAX, &text, &err) < 0) {
        probe_fail(p, "%s", err.msg);
        return true;
    }
    json_array(p->figures, path);
    int n = slurm_script_judge(buf_str(&text), tell, &r);
    json_end_array(p->figures);
    return n >= 0;
}

static void ask(struct probing *p) {
    const struct json *paths = json_get(p->given, "scripts");
    bool any = false;
    if (!json_first(paths)) {
        probe_skip(p, "no script for sbatch is named (--script FILE)");
        return;
    }
    json_each(path, paths) any |= read_one(p, json_string(path, ""));
    if (any)
        probe_pass(p, "no line of the script ends a job that could go on");
    else
        probe_skip(p, "no line of the script starts rankrun by srun");
}

const struct probe probe_script = {
    .name = "script",
    .text = "no line of the script for sbatch ends a job which could go on, or starts it twice on "
            "a host",
    .within_ns = INT64_C(5) * 1000000000,
    .ask = ask,
};
