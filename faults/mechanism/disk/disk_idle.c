/* The record of a disk that is alone is held in memory while one operation comes after another, as whoever asks for
 * them waits; it goes to the disk when nobody does. */
#include "faults/mechanism/disk/disk_server.h"

#include "base/sys/clock.h"

#include <errno.h>
#include <stdint.h>
#include <sys/timerfd.h>
#include <unistd.h>

static const int64_t idle_ns = 2000000;

/* Set once, and not anew for each operation: on a virtual machine that takes longer than some of them. */
static void idle_at(struct disk *d, int64_t t_ns) {
    struct itimerspec at = {.it_value = {t_ns / 1000000000, t_ns % 1000000000}};
    d->idle_runs = timerfd_settime(d->idle, TFD_TIMER_ABSTIME, &at, NULL) == 0;
}

void disk_idle_note(struct disk *d, int64_t t_ns) {
    d->noted_ns = t_ns;
    if (d->idle >= 0 && !d->idle_runs)
        idle_at(d, t_ns + idle_ns);
}

static void *wait_for_idle(void *arg) {
    struct disk *d = arg;
    uint64_t times;
    while (read(d->idle, &times, sizeof(times)) > 0 || errno == EINTR) {
        pthread_mutex_lock(&d->lock);
        d->idle_runs = false;
        if (!d->recorder)
            ;
        else if (clock_monotonic_ns() < d->noted_ns + idle_ns)
            idle_at(d, d->noted_ns + idle_ns);
        else
            disk_recorder_flush(d->recorder);
        pthread_mutex_unlock(&d->lock);
    }
    return NULL;
}

int disk_idle_begin(struct disk *d, struct err *err) {
    int r = disk_recorder_hold(d->recorder, err);
    if (r)
        return r;
    d->idle = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    if (d->idle < 0)
        return err_set(err, -errno, "make a timer");
    return disk_thread(wait_for_idle, d) ? 0 : err_set(err, -EAGAIN, "start a thread");
}
