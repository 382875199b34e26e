/* shm_watch: which files of /dev/shm, a directory of the whole host, are a node's. A file counts
 * when it is made while the node lives and a descendant of the calling process has it open or
 * mapped when that is heard of; one whose maker has gone by then is nobody's: better missed than
 * another's. One watch in a process. */
#pragma once

/* A descriptor that can be read when something was made; -1: it cannot be watched. */
int shm_watch_open(void);
void shm_watch_read(int fd);
/* The paths of those that are still there; the list is for free(), the texts are not. */
char **shm_watch_left(void);
void shm_watch_remove(void); /* unlinks them */
