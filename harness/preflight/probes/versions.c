/* Whether all hosts run the same kernel, libraries, driver, Python and programs of ours. */
#include "harness/preflight/inventory.h"
#include "harness/preflight/probe.h"

#include "base/str.h"
#include "base/sys/file.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static const int64_t PYTHON_NS = INT64_C(15) * 1000000000;

/* NCCL says its version as one number, 22005 for 2.20.5. */
static void put_nccl(struct json_writer *w) {
    char text[32] = "";
    int version = 0;
    void *library = dlopen("libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    int (*get)(int *) = NULL;
    if (library)
        *(void **)&get = dlsym(library, "ncclGetVersion");
    if (get && get(&version) == 0)
        snprintf(text, sizeof(text), "%d.%d.%d", version / 10000, version / 100 % 100,
                 version % 100);
    json_put_string(w, "nccl", text);
    if (library)
        dlclose(library);
}

/* Python's own and torch's, and the CUDA that torch was made for: as a job would get them. */
static void put_python(struct json_writer *w) {
    static const char script[] =
        "import sys\nv=['%d.%d.%d'%sys.version_info[:3],'','']\n"
        "try:\n import torch; v[1]=torch.__version__; v[2]=str(torch.version.cuda or '')\n"
        "except Exception: pass\nprint('|'.join(v))";
    ARENA_FINI struct arena a = {0};
    BUF_FINI struct buf said = {0};
    FILE_CLOSE int out = memfd_create("what Python says", MFD_CLOEXEC);
    FILE_CLOSE int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    struct process p;
    struct process_spawn s = {.argv = (const char *const[]){"python3", "-c", script, NULL},
                              .fds = (int[]){nowhere, out, nowhere},
                              .death_signal = SIGKILL};
    int status = -1;
    if (process_spawn(&s, &p, NULL) == 0) {
        if (process_reap(&p, PYTHON_NS, &status) < 0) {
            process_signal(&p, SIGKILL);
            process_reap(&p, -1, NULL);
        }
        process_close(&p);
    }
    if (status == 0 && lseek(out, 0, SEEK_SET) == 0)
        file_read_fd(out, 4096, &said, NULL);
    size_t n = 0;
    char **v =
        str_split(&a, arena_strndup(&a, buf_str(&said), strcspn(buf_str(&said), "\n")), '|', &n);
    static const char *const names[] = {"python", "torch", "cuda"};
    for (size_t i = 0; i < 3; i++)
        json_put_string(w, names[i], i < n ? v[i] : "");
}

static void look(const struct json *given, struct json_writer *w) {
    (void)given;
    inventory_put(w, "inventory");
    put_nccl(w);
    put_python(w);
}

static const char *text_of(const struct json *answer, const char *key) {
    const struct json *inventory = json_get(answer, "inventory");
    const char *own = json_get_string(answer, key, NULL),
               *of = json_get_string(inventory, key, NULL);
    const char *program = json_get_string(json_get(inventory, "programs"), key, "");
    return own ? own : of ? of : program;
}

static void ask(struct probing *p) {
    static const char *const keys[] = {"kernel",    "libc",    "machine",  "driver",
                                       "nccl",      "python",  "torch",    "cuda",
                                       "rankquake", "rankrun", "ranktrain"};
    const struct json **v = probe_look_all(p);
    const char **texts = arena_array(p->arena, const char *, p->n);
    for (size_t k = 0; k < sizeof(keys) / sizeof(*keys); k++) {
        for (size_t i = 0; i < p->n; i++)
            texts[i] = v[i] ? text_of(v[i], keys[k]) : NULL;
        probe_equal(p, keys[k], texts);
    }
    probe_pass(p, "%s: kernel %s, libc %s, torch %s", p->n > 1 ? "all are equal" : "they are known",
               v[0] ? text_of(v[0], "kernel") : "", v[0] ? text_of(v[0], "libc") : "",
               v[0] && *text_of(v[0], "torch") ? text_of(v[0], "torch") : "not there");
}

const struct probe probe_versions = {
    .name = "versions",
    .text = "the same kernel, libraries, driver, Python, torch and programs on all hosts",
    .within_ns = INT64_C(30) * 1000000000,
    .look = look,
    .ask = ask,
};
