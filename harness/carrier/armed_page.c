#include "harness/carrier/armed_page.h"

#include "base/sys/file.h"

#include <fcntl.h>
#include <sys/mman.h>

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

int armed_page_make(struct armed_page *ret, struct err *err) {
    FILE_CLOSE int fd = memfd_create("rankquake-page", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0 || ftruncate(fd, sizeof(*ret->at)) < 0)
        return err_set(err, -errno, "make the page that arms events (memfd)");
    struct rankquake_page *at =
        mmap(NULL, sizeof(*ret->at), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED)
        return err_set(err, -errno, "map the page that arms events");
    if (fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK | F_SEAL_GROW) < 0) {
        err_set(err, -errno, "seal the page that arms events");
        munmap(at, sizeof(*at));
        return -EIO;
    }
    at->version = RANKQUAKE_VERSION_OF_PAGE;
    *ret = (struct armed_page){at, file_keep(&fd)};
    return 0;
}

void armed_page_set(struct armed_page *p, uint32_t kinds, uint64_t next_step) {
    if (p->at->kinds == kinds && p->at->next_step == next_step)
        return;
    __atomic_store_n(&p->at->armed_seq, p->at->armed_seq + 1, __ATOMIC_RELEASE);
    __atomic_store_n(&p->at->next_step, next_step, __ATOMIC_RELEASE);
    __atomic_store_n(&p->at->kinds, kinds, __ATOMIC_RELEASE);
}

void armed_page_end(struct armed_page *p) {
    if (p->at)
        munmap(p->at, sizeof(*p->at));
    file_close(&p->fd);
    *p = ARMED_PAGE_NONE;
}
