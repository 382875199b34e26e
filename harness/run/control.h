/* control: the control run. Made once per job, cluster, launcher, programs and files, and kept:
 * it shows that the job trains at all, and gives what a disturbed run is compared with. */
#pragma once

#include "base/sys/folder.h"
#include "harness/run/run.h"

/* The scenario without its timeline and what is expected of it, and with all the nodes on that the
 * job takes: so scenarios that differ in nothing else share one. Shares the memory of s. */
struct scenario control_scenario(const struct scenario *s);

/* What the result depends on: the resolved job, the cluster, our version and the content of every
 * program and every argument that is a file; the seed only where {seed} is used. 64 hex digits. */
int control_key(const struct plan *p, const char *bin, char ret[65], struct err *err);

/* The cache folder of this key: $XDG_CACHE_HOME or ~/.cache, /rankquake/control/KEY. Without a home
 * it lies in /tmp, where it is used only when it is the caller's own (-EPERM). -ENOENT, with the
 * sentence: HOME names a folder that does not exist, which is not made for a cache. */
int control_dir(const char *key, char *ret, size_t size, struct err *err);
/* What is kept of another kind, beside it: kind/key in $XDG_CACHE_HOME/rankquake. */
int cache_dir(const char *kind, const char *key, char *ret, size_t size, struct err *err);
/* Opens the folder that a file of the cache lies in, and where make is true makes it; *ret_name is
 * the file's name in there, in path. No link is followed from the cache on; where path lies
 * elsewhere, on the way to its last part. With ret_name NULL path is the folder itself. */
int cache_enter(const char *path, bool make, struct folder *ret, const char **ret_name,
                struct err *err);

/* What an earlier run left there; -ENOENT: none. */
int control_read(const char *dir, struct control *ret, struct err *err);
/* Takes the result out of a history that was judged good. */
void control_take(const struct history *h, const struct rounds *rs, struct control *ret);
/* Keeps it in dir, atomically: two harnesses may do it at once. */
int control_keep(const char *dir, const struct control *c, struct err *err);
/* The next run makes it anew. */
void control_forget(const char *dir);
