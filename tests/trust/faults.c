/* Calls that fail as a full or dying disk makes them fail: preloaded, armed from the process itself.
   Only files whose path holds "fault-" count, so that the rest of the process goes on. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static int chosen = -1, left = 0, lasting = 0, code = 0, fired = 0;
enum { WRITE, SYNC, RENAME, TRUNCATE };

void fault_arm(int call, int at, int goes_on, int error) {
    chosen = call, left = at, lasting = goes_on, code = error;
}
int fault_fired(void) { return fired; }

static int ours(int descriptor) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0) return 0;
    path[size] = 0;
    return strstr(path, "fault-") != NULL;
}

static int fails(int call, int counted) {
    if (call != chosen || !counted) return 0;
    if (--left > 0 || (left < 0 && !lasting)) return 0;
    fired++;
    errno = code;
    return 1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

ssize_t write(int fd, const void *from, size_t size) {
    return fails(WRITE, chosen == WRITE && ours(fd)) ? -1 : REAL(write)(fd, from, size);
}
ssize_t pwrite(int fd, const void *from, size_t size, off_t at) {
    return fails(WRITE, chosen == WRITE && ours(fd)) ? -1 : REAL(pwrite)(fd, from, size, at);
}
ssize_t pwrite64(int fd, const void *from, size_t size, off64_t at) {
    return fails(WRITE, chosen == WRITE && ours(fd)) ? -1 : REAL(pwrite64)(fd, from, size, at);
}
int fsync(int fd) { return fails(SYNC, chosen == SYNC && ours(fd)) ? -1 : REAL(fsync)(fd); }
int fdatasync(int fd) { return fails(SYNC, chosen == SYNC && ours(fd)) ? -1 : REAL(fdatasync)(fd); }
int ftruncate(int fd, off_t size) {
    return fails(TRUNCATE, chosen == TRUNCATE && ours(fd)) ? -1 : REAL(ftruncate)(fd, size);
}
int ftruncate64(int fd, off64_t size) {
    return fails(TRUNCATE, chosen == TRUNCATE && ours(fd)) ? -1 : REAL(ftruncate64)(fd, size);
}
int rename(const char *from, const char *to) {
    return fails(RENAME, strstr(to, "fault-") != NULL) ? -1 : REAL(rename)(from, to);
}
