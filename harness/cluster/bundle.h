/* bundle: the runtime bundle, which is what of ours goes along into a node that has a root file
 * system of its own.
 *
 * Such a tree may hold another C library, another libevent, or none. Our programs therefore bring
 * the loader and the libraries that they run with on this host, at places of their own below /run,
 * where nothing of the tree looks: the programs are copies whose interpreter is BUNDLE_LOADER, and
 * the run path that they are linked with names BUNDLE_LIBRARIES. What they start, the job, knows
 * nothing of it and uses the tree's. See docs/decisions/0017. */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "base/texts.h"

#define BUNDLE_PROGRAMS  "/run/rankquake/bin"
#define BUNDLE_LIBRARIES "/run/rankquake/lib" /* the Makefile says it too */
#define BUNDLE_LOADER    BUNDLE_LIBRARIES "/ld.so"

struct bundle {
    char *programs;         /* a folder with the copies */
    struct texts libraries; /* "libz.so.1=/usr/lib/.../libz.so.1.2.13" */
};

/* Copies our programs from the folder bin to the folder to, which is made, and finds what they
 * load, also later: libcurl, OpenBLAS. Returns 0 or a -errno; *ret is to be freed either way. */
int bundle_pack(struct bundle *ret, const char *bin, const char *to, struct err *err);
void bundle_fini(struct bundle *b);

/* The loader that a program (an ELF file of this machine's width) asks the kernel for, "" when it
 * needs none: points into image. NULL: not such a file. */
const char *bundle_interpreter(const struct buf *image);
/* Writes another one in its place; -ENAMETOOLONG when there is no room. */
int bundle_set_interpreter(struct buf *image, const char *path, struct err *err);
/* The lines of a loader's trace ("libz.so.1 => /lib/libz.so.1 (0x..)") as entries of libraries. */
void bundle_add_trace(struct bundle *b, const char *trace);
