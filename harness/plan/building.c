#include "harness/plan/building.h"

#include "base/arena.h"
#include "base/buf.h"
#include "base/sha256.h"
#include "base/str.h"
#include "base/sys/file.h"
#include "base/sys/folder.h"

#include <errno.h>
#include <glob.h>
#include <gnu/libc-version.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

enum { BUILDING_VERSION = 1, INPUT_MAX = 256 << 20, INPUTS_MAX = 100000, DEPTH_MAX = 64 };

static const char *plain(const char *path) {
    while (str_starts(path, "./"))
        path += 2;
    return path;
}

bool building_makes(const struct build_spec *b, const char *word) {
    for (size_t i = 0; i < b->outputs_n; i++)
        if (str_eq(plain(b->outputs[i]), plain(word)))
            return true;
    return false;
}

/* ---- the inputs ---- */

static int add_path(const struct build_spec *b, const char *path, int depth, struct texts *ret,
                    struct err *err);

/* All that lies in it; what git keeps there is no source. */
static int add_folder(const struct build_spec *b, const char *path, int depth, struct texts *ret,
                      struct err *err) {
    struct folder folder;
    TEXTS_FINI struct texts names = {0};
    if (depth > DEPTH_MAX)
        return err_say(err, -ELOOP, "job.build.inputs: %s lies too deep; name its files", path);
    int r = folder_open(&folder, path, err);
    if (r)
        return r;
    r = folder_list(&folder, ".", folder_is_shown, &names, err);
    folder_close(&folder);
    for (size_t i = 0; i < names.n && r == 0; i++) {
        ARENA_FINI struct arena a = {0};
        r = add_path(b, arena_printf(&a, "%s/%s", path, names.v[i]), depth + 1, ret, err);
    }
    return r;
}

static int add_path(const struct build_spec *b, const char *path, int depth, struct texts *ret,
                    struct err *err) {
    struct stat st;
    if (building_makes(b, path))
        return 0;
    if (stat(path, &st) < 0)
        return err_set(err, -errno, "job.build.inputs: %s", path);
    if (S_ISDIR(st.st_mode))
        return add_folder(b, path, depth, ret, err);
    if (!S_ISREG(st.st_mode))
        return err_say(err, -EINVAL, "job.build.inputs: %s is neither a file nor a folder", path);
    if (ret->n >= INPUTS_MAX)
        return err_say(err, -E2BIG, "job.build.inputs: more than %d files; name what it reads",
                       INPUTS_MAX);
    texts_add(ret, "%s", plain(path));
    return 0;
}

static int add_input(const struct build_spec *b, const char *pattern, struct texts *ret,
                     struct err *err) {
    glob_t found = {0};
    int r = 0, code = glob(pattern, GLOB_NOSORT, NULL, &found);
    if (code)
        r = err_say(err, -ENOENT,
                    "job.build.inputs: there is no file %s (looked for from the directory you are "
                    "in)",
                    pattern);
    for (size_t i = 0; code == 0 && i < found.gl_pathc && r == 0; i++)
        r = add_path(b, found.gl_pathv[i], 0, ret, err);
    globfree(&found);
    return r;
}

static int by_name(const void *a, const void *b) {
    return strcmp(*(char *const *)a, *(char *const *)b);
}

int building_inputs(const struct build_spec *b, struct texts *ret, struct err *err) {
    TEXTS_FINI struct texts all = {0};
    int r = 0;
    for (size_t i = 0; i < b->inputs_n && r == 0; i++)
        r = add_input(b, b->inputs[i], &all, err);
    if (r == 0 && all.n)
        qsort(all.v, all.n, sizeof(*all.v), by_name);
    for (size_t i = 0; r == 0 && i < all.n; i++)
        if (!i || !str_eq(all.v[i], all.v[i - 1]))
            texts_add(ret, "%s", all.v[i]);
    return r;
}

/* ---- the key ---- */

static void put(struct sha256 *sum, const char *text) {
    sha256_update(sum, text, strlen(text) + 1);
}

static void put_words(struct sha256 *sum, const char *kind, const char *const *v, size_t n) {
    put(sum, kind);
    for (size_t i = 0; i < n; i++)
        put(sum, v[i]);
    put(sum, "");
}

static int put_input(struct sha256 *sum, const char *path, struct err *err) {
    BUF_FINI struct buf content = {0};
    char hex[65];
    int r = file_read(path, INPUT_MAX, &content, err);
    if (r)
        return r;
    sha256_of(content.data, content.len, hex);
    put(sum, path);
    put(sum, access(path, X_OK) == 0 ? "x" : "-");
    put(sum, hex);
    return 0;
}

/* What a program that was built here runs on. */
static void put_machine(struct sha256 *sum) {
    struct utsname host = {0};
    BUF_FINI struct buf system = {0};
    uname(&host);
    put(sum, host.machine);
    put(sum, gnu_get_libc_version());
    file_read("/etc/os-release", 1 << 16, &system, NULL);
    put(sum, buf_str(&system));
}

static void put_variables(struct sha256 *sum) {
    static const char *const names[] = {"CC", "CXX", "CFLAGS", "CXXFLAGS", "CPPFLAGS", "LDFLAGS"};
    for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
        const char *value = getenv(names[i]);
        put(sum, value ? value : "");
    }
}

int building_key(const struct build_spec *b, char ret[65], struct err *err) {
    TEXTS_FINI struct texts inputs = {0};
    struct sha256 sum;
    int version = BUILDING_VERSION, r = building_inputs(b, &inputs, err);
    sha256_init(&sum);
    sha256_update(&sum, &version, sizeof(version));
    put_words(&sum, "run", b->run, b->run_n);
    put_words(&sum, "outputs", b->outputs, b->outputs_n);
    put_variables(&sum);
    put_machine(&sum);
    for (size_t i = 0; i < inputs.n && r == 0; i++)
        r = put_input(&sum, inputs.v[i], err);
    if (r == 0)
        sha256_hex(&sum, ret);
    return r;
}
