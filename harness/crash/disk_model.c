/* Whose word the table is, in our own:
 *
 * POSIX promises of fsync that the bytes of this file, and what is needed to read them back, are
 * there; of a name it says nothing, and fsync(2) of Linux says outright that the directory wants an
 * fsync of its own. Everything else may come in any order. The one thing that we do not take away
 * is that a rename is one step (ALICE found no file system where it is not, but for renames to
 * another directory on file systems without a journal: there the new name may come before the old
 * one has gone). Pillai et al., "All File Systems Are Not Created Equal", OSDI 2014 (ALICE), is
 * where programs were first held against such a weakest disk, and found wanting mostly for names
 * that were not synced, and for renames and appends that came before the bytes.
 *
 * ext4 (Documentation/admin-guide/ext4.rst, data=ordered, auto_da_alloc): changes of names and
 * sizes go through one journal, whose transactions come in order and whole: a prefix. Bytes of a
 * write get their place when they are written back, up to half a minute later, and only then does
 * the journal learn of the new size: hence the empty or zero-filled file after a rename. Two
 * patterns are so common that they are mended: a rename over a file that was there starts the
 * writing of the new one's bytes and has the commit wait for them; and so does the close of a file
 * that was cut to nothing. fsync commits the transaction in which the file was last changed, and so
 * all earlier changes of names, the file's own among them; of later ones it says nothing. Since
 * blocks are marked as written only when they are (dioread_nolock, the default since 5.6), a size
 * without the bytes reads as zeros, never as somebody else's old data.
 *
 * XFS (Documentation/filesystems/xfs/xfs-delayed-logging-design.rst): the same order by its log,
 * forced by fsync up to the file's last change. The size is logged when the bytes have been
 * written, so a file has never grown without them, but it may not have grown at all; parts that come out of
 * order leave zeros in front. Nothing is flushed by a rename, and what the close of a file that was
 * cut starts nobody waits for.
 *
 * NFS (RFC 8881 and 1813, nfs(5) "close-to-open"): the server has made names and sizes durable when
 * it answers; bytes are with the client until fsync or close, which send and commit them. So it is
 * the client's death that loses bytes, only those of that client, and the size is as far as they
 * were sent.
 *
 * That these models are where real file systems stand, and that two or three operations and a
 * sync show nearly all that goes wrong with them, is the finding of Mohan et al., "Finding
 * Crash-Consistency Bugs with Bounded Black-Box Crash Testing", OSDI 2018 (B3, CrashMonkey): hence the bounds
 * of what is lost together. Bugs of the file systems themselves are no part of the models. */
#include "harness/crash/disk_model.h"

#include "base/arena.h"
#include "base/str.h"

#include <errno.h>
#include <string.h>

const struct disk_model disk_models[DISK_MODELS_N] = {
    {
        .name = "ext4",
        .summary = "names and sizes in order, bytes when they are written back; a rename over a "
                   "file waits for the bytes of the new one",
        .journal = true,
        .rename_flushes = true,
        .truncate_flushes = true,
        .size = SIZE_BY_ITSELF,
    },
    {
        .name = "xfs",
        .summary = "names in order, bytes when they are written back, the size after the bytes",
        .journal = true,
        .size = SIZE_AFTER_BYTES,
    },
    {
        .name = "posix",
        .summary = "whatever no fsync was asked for, in any order: names want an fsync of their "
                   "directory",
        .size = SIZE_BY_ITSELF,
    },
    {
        .name = "nfs",
        .summary = "names at once; bytes when the file is closed or synced; a node loses its own",
        .at_once = true,
        .close_flushes = true,
        .by_node = true,
        .size = SIZE_IS_BYTES,
    },
};

/* What disks of nodes are formatted with, and what a program that is to run anywhere may rely on;
 * shared file systems promise too different things for one of them to be asked about unasked. */
const unsigned disk_models_default = 1 << 0 | 1 << 1 | 1 << 2;

static int refuse(const char *name, struct err *err) {
    const char *names[DISK_MODELS_N + 1] = {NULL};
    for (size_t i = 0; i < DISK_MODELS_N; i++)
        names[i] = disk_models[i].name;
    const char *near = str_nearest(name, names);
    return err_say(err, -EINVAL,
                   "there is no file system \"%s\" here; %s%s%s: ext4, xfs, posix, nfs", name,
                   near ? "did you mean " : "name some of these", near ? near : "",
                   near ? "? Those that there are" : "");
}

int disk_models_parse(const char *names, unsigned *ret, struct err *err) {
    ARENA_FINI struct arena a = {0};
    unsigned set = 0;
    char **v = str_split(&a, names, ',', NULL);
    for (; *v; v++) {
        size_t i = 0;
        while (i < DISK_MODELS_N && !str_eq(disk_models[i].name, *v))
            i++;
        if (i == DISK_MODELS_N)
            return refuse(*v, err);
        set |= 1U << i;
    }
    *ret = set;
    return 0;
}
