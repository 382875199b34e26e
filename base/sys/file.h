/* file: whole files, whole trees. Paths are the caller's; every error names the path. */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <dirent.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Closes *fd if it is >= 0 and leaves -1. For __attribute__((cleanup)) as FILE_CLOSE too. */
void file_close(int *fd);
#define FILE_CLOSE __attribute__((cleanup(file_close)))
/* Returns *fd, which stays open: *fd is -1 from here on. */
int file_keep(int *fd);
/* The same for a directory that is read; NULL is none. */
void file_close_dir(DIR **d);
#define FILE_CLOSE_DIR __attribute__((cleanup(file_close_dir)))

/* Appends the whole file to *out; -EFBIG when it is longer than max bytes (out is then as before).
 */
int file_read(const char *path, size_t max, struct buf *out, struct err *err);
int file_read_fd(int fd, size_t max, struct buf *out, struct err *err);

/* Opens a plain file to read it. Anything else is not opened, for that alone may wait for ever (a
 * FIFO) or start something (a device): -EISDIR, or -EINVAL with what it is. What names a descriptor
 * of the caller's own (/dev/stdin, /dev/fd/63, /proc/self/fd/0) is taken as it is, so that a pipe
 * can be read. Returns a descriptor, which is the caller's. */
int file_open_plain(const char *path, struct err *err);
int file_read_plain(const char *path, size_t max, struct buf *out, struct err *err);
/* Where an open file lies, without links; false: nowhere that has a name. */
bool file_path_of(int fd, char *ret, size_t size);

/* Appends the last lines of a file, at most max bytes of it; in what people look at, so a carriage
 * return becomes a line feed and other control bytes blanks. -ENODATA when it is empty, or is no
 * plain file. */
int file_read_last(int fd, int lines, size_t max, struct buf *out, struct err *err);

/* Writes all of it to fd, over short writes. */
int file_write_all(int fd, const void *data, size_t len, struct err *err);
/* Makes or empties the file; no durability (for /proc, /sys and scratch). */
int file_write(const char *path, const void *data, size_t len, struct err *err);
/* A reader sees the old file or the new one, also after a power cut: written beside it, fsync,
 * rename, fsync of the directory. The mode of a new file is 0666 less the umask. What is there and is
 * no plain file (/dev/null, /dev/stdout, a FIFO that somebody reads) is written into instead. */
int file_write_atomic(const char *path, const void *data, size_t len, struct err *err);

bool file_exists(const char *path);
/* Whether one of the folders of such a list as PATH, "/usr/bin:/bin", has a file of that name which
 * may be executed; an empty folder is the caller's directory. */
bool file_in_path(const char *path, const char *name);
/* The folder that the running program lies in, with the others of ours; "." when it cannot be
 * told. Returns buf. */
const char *file_own_folder(char *buf, size_t size);
/* mkdir -p; 0 also when it was there. -ENOTDIR when something else is in the way. */
int file_make_dirs(const char *path, mode_t mode, struct err *err);
/* "/tmp/rankrun_XXXXXXXX": makes a directory (0700) and writes its name over the X (at least 6). */
int file_make_temp_dir(char *path, struct err *err);
/* Where directories for a while are made: the first of $TMPDIR, $TEMP, $TMP, /tmp, /var/tmp and .
 * that can be written into, as Python's tempfile has it. None can: the first that is named. */
const char *file_temp_base(void);
/* rm -rf; 0 also when it was not there. Never follows a symbolic link, never leaves the file system
 * of the tree (a mount inside it: -EBUSY). */
int file_remove_tree(const char *path, struct err *err);
/* The same for what goes by a name in a directory that is held, as long as it lies on the device.
 * Returns 0 or a -errno. */
int file_remove_tree_at(int dir, const char *name, dev_t dev);
