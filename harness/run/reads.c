/* Which files of the caller's tree the job of a control run opens, for who asks later whether a change
 * concerns it. Whatever is in its way is written down as the reason why nothing is known. */
#include "harness/run/reads.h"
#include "harness/run/control.h"
#include "harness/run/engine.h"

#include "base/sha256.h"
#include "base/str.h"
#include "base/sys/file.h"
#include "base/sys/opens.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What is larger is known by its size and its time: to read it would take longer than many a run. */
enum { HASHED_MAX = 64 << 20 };

struct reads {
    bool on;
    struct err unknown; /* code != 0: why */
    struct reads_tree tree;
    struct opens opens;
    struct loop_source *source;
};

/* ---- the tree ---- */

int reads_tree_find(struct reads_tree *ret, struct err *err) {
    char git[PATH_MAX + 8];
    if (!getcwd(ret->here, sizeof(ret->here)))
        return err_set(err, -errno, "find the working directory");
    str_copy(ret->top, sizeof(ret->top), ret->here);
    for (;;) {
        snprintf(git, sizeof(git), "%s/.git", ret->top);
        ret->repository = file_exists(git);
        char *slash = strrchr(ret->top, '/');
        if (ret->repository || slash == ret->top)
            break;
        *slash = '\0';
    }
    if (!ret->repository)
        str_copy(ret->top, sizeof(ret->top), ret->here);
    return 0;
}

static bool hash(const char *path, char ret[READS_MARK]) {
    BUF_FINI struct buf content = {0};
    char hex[65];
    if (file_read_plain(path, HASHED_MAX, &content, NULL) != 0)
        return false;
    sha256_of(content.data, content.len, hex);
    snprintf(ret, READS_MARK, "sha256 %s", hex);
    return true;
}

void reads_mark(const char *top, const char *path, char ret[READS_MARK]) {
    ARENA_FINI struct arena a = {0};
    const char *whole = arena_printf(&a, "%s/%s", top, path);
    struct stat st;
    *ret = '\0';
    if (stat(whole, &st) != 0)
        return;
    if (S_ISDIR(st.st_mode))
        str_copy(ret, READS_MARK, "folder");
    else if (!S_ISREG(st.st_mode) || st.st_size > HASHED_MAX || !hash(whole, ret))
        snprintf(ret, READS_MARK, "size %" PRId64 " of %" PRId64, (int64_t)st.st_size,
                 (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec);
}

/* ---- the watch ---- */

static void on_opened(void *arg, int fd, int what) {
    (void)fd, (void)what;
    opens_take(arg);
}

/* A folder name less its last n parts. */
static const char *above(struct arena *a, const char *path, int n) {
    char *cut = arena_strdup(a, path), *slash;
    for (; n > 0 && (slash = strrchr(cut, '/')) && slash != cut; n--)
        *slash = '\0';
    return cut;
}

/* What the harness itself writes meanwhile: the folder of all runs; this one alone where that is the tree
 * itself; and what it keeps. */
static void begin_watch(struct engine *e, struct reads *r) {
    const char *runs = above(&e->arena, e->spec->folder->path, 2);
    const char *run = above(&e->arena, e->spec->folder->path, 1);
    char cache[PATH_MAX] = "";
    cache_dir("x", "y", cache, sizeof(cache), NULL);
    const char *without[] = {plan_is_below(r->tree.top, runs) ? run : runs,
                             above(&e->arena, cache, 2), NULL};
    if (opens_begin(&r->opens, r->tree.top, without, &r->unknown) == 0)
        r->source = loop_fd(e->loop, r->opens.fd, LOOP_READ, on_opened, &r->opens);
}

/* Nodes see a layer over /etc, and what the kernel shows is no tree of files. */
static bool is_of_a_user(struct reads *r) {
    static const char *const systems[] = {"/etc", "/proc", "/sys", "/dev"};
    const char *top = r->tree.top;
    bool is = !str_eq(top, "/");
    for (size_t i = 0; i < sizeof(systems) / sizeof(*systems); i++)
        is &= !plan_is_below(top, systems[i]);
    if (!is)
        err_say(&r->unknown, -ENOTSUP,
                "%s is the system's and not watched; start rankquake in the job's own folder", top);
    return is;
}

static int open_reads(struct engine *e, struct err *err) {
    struct reads *r = own(e, reads);
    (void)err; /* a run goes on without it */
    r->on = e->spec->reads;
    r->opens.fd = -1;
    if (!r->on)
        return 0;
    if (e->plan->rootfs)
        err_say(&r->unknown, -ENOTSUP, "its nodes have a root file system of their own");
    else if (e->plan->scenario->job.writes_undone)
        err_say(&r->unknown, -ENOTSUP, "it sees its files through a layer (writes: undone)");
    else if (reads_tree_find(&r->tree, &r->unknown) == 0 && is_of_a_user(r))
        begin_watch(e, r);
    return 0;
}

/* ---- what was seen ---- */

static struct opens_folder *find_folder(struct opens *o, const char *path) {
    for (size_t i = 0; i < o->n; i++)
        if (str_eq(o->v[i].path, path))
            return &o->v[i];
    return NULL;
}

/* Python opens a module's bytecode in place of the module when it is the newer one. */
static bool take_for_source(struct opens *o, const struct opens_folder *f, const char *name) {
    ARENA_FINI struct arena a = {0};
    const char *dot = strchr(name, '.'), *slash = strrchr(f->path, '/');
    if (!str_eq(str_base(f->path), "__pycache__") || !str_ends(name, ".pyc"))
        return false;
    const char *folder = slash ? arena_strndup(&a, f->path, (size_t)(slash - f->path)) : ".";
    const char *source = arena_printf(&a, "%.*s.py", (int)(dot - name), name);
    struct opens_folder *to = find_folder(o, folder);
    for (size_t i = 0; to && i < to->names.n; i++)
        if (str_eq(to->names.v[i], source)) {
            to->seen[i] |= OPENS_READ;
            return true;
        }
    return false;
}

static void take_bytecode(struct opens *o) {
    for (size_t i = 0; i < o->n; i++)
        for (size_t k = 0; k < o->v[i].names.n; k++)
            if (o->v[i].seen[k] && take_for_source(o, &o->v[i], o->v[i].names.v[k]))
                o->v[i].seen[k] = 0;
}

static bool is_touched(const struct opens_folder *f) {
    bool any = f->own;
    for (size_t i = 0; i < f->names.n && !any; i++)
        any = f->seen[i];
    return any && !str_eq(str_base(f->path), "__pycache__");
}

/* What the job writes is another after every run: it has no mark. */
static void put_file(struct json_writer *w, const char *top, const struct opens_folder *f,
                     size_t i) {
    ARENA_FINI struct arena a = {0};
    char mark[READS_MARK] = "";
    const char *path =
        str_eq(f->path, ".") ? f->names.v[i] : arena_printf(&a, "%s/%s", f->path, f->names.v[i]);
    if (!(f->seen[i] & OPENS_WRITTEN))
        reads_mark(top, path, mark);
    json_object(w, NULL);
    json_put_string(w, "path", path);
    if (*mark)
        json_put_string(w, "mark", mark);
    json_end_object(w);
}

static void put_seen(struct json_writer *w, struct reads *r) {
    struct opens *o = &r->opens;
    take_bytecode(o);
    json_array(w, "files");
    for (size_t i = 0; i < o->n; i++)
        for (size_t k = 0; k < o->v[i].names.n; k++)
            if (o->v[i].seen[k])
                put_file(w, r->tree.top, &o->v[i], k);
    json_end_array(w);
    json_array(w, "folders");
    for (size_t i = 0; i < o->n; i++) {
        if (!is_touched(&o->v[i]))
            continue;
        json_object(w, NULL);
        json_put_string(w, "path", o->v[i].path);
        json_put_strings(w, "names", texts_list(&o->v[i].names));
        json_end_object(w);
    }
    json_end_array(w);
    json_put_strings(w, "links", texts_list(&o->links));
}

static void put_reads(struct reads *r, struct buf *out) {
    struct json_writer w = {.out = out};
    if (!r->unknown.code && r->opens.lost)
        err_say(&r->unknown, -EOVERFLOW,
                "files were opened faster than the kernel keeps; raise "
                "fs.inotify.max_queued_events");
    json_object(&w, NULL);
    json_put_i64(&w, "v", READS_VERSION);
    json_put_string(&w, "top", r->tree.top);
    json_put_string(&w, "here", r->tree.here);
    json_put_bool(&w, "repository", r->tree.repository);
    if (r->unknown.code)
        json_put_string(&w, "unknown", r->unknown.msg);
    else
        put_seen(&w, r);
    json_end_object(&w);
    buf_putc(out, '\n');
}

/* No node is left, so nothing more is opened. */
static void down(struct engine *e) {
    struct reads *r = own(e, reads);
    BUF_FINI struct buf text = {0};
    struct err err = {0};
    if (!r->on)
        return;
    if (r->source)
        opens_take(&r->opens);
    put_reads(r, &text);
    if (folder_write(e->spec->folder, READS_FILE, text.data, text.len, &err) != 0)
        engine_fail(e, &err);
}

/* ---- what is kept ---- */

int reads_keep(const struct folder *run, const char *cache, struct err *err) {
    BUF_FINI struct buf text = {0};
    struct folder to = FOLDER_NONE;
    int r = folder_read(run, READS_FILE, READS_MAX, &text, err);
    if (r == 0)
        r = cache_enter(cache, true, &to, NULL, err);
    if (r == 0)
        r = folder_write_synced(&to, READS_FILE, text.data, text.len, err);
    folder_close(&to);
    return r;
}

const struct json *reads_load(const char *cache, struct arena *a) {
    BUF_FINI struct buf text = {0};
    struct folder from = FOLDER_NONE;
    bool is = cache_enter(cache, false, &from, NULL, NULL) == 0 &&
              folder_read(&from, READS_FILE, READS_MAX, &text, NULL) == 0;
    const struct json *j = is ? json_parse(a, buf_str(&text), text.len, NULL) : NULL;
    folder_close(&from);
    return json_get_i64(j, "v", 0) == READS_VERSION ? j : NULL;
}

static void close_reads(struct engine *e) {
    struct reads *r = own(e, reads);
    loop_source_free(r->source);
    if (r->on)
        opens_fini(&r->opens);
}

const struct run_part run_part_reads = {
    .size = sizeof(struct reads), .open = open_reads, .down = down, .close = close_reads};
