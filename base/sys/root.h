/* root: files as a process sees them whose root is another directory, without going there. */
#pragma once

/* open(2) of path, with every link followed inside root and no way out of it; relative paths begin
 * at root. Returns a descriptor, the caller's, or -errno. */
int root_open(const char *root, const char *path, int flags);
