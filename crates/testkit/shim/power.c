/* A disk that forgets what was not synced, put under a process by LD_PRELOAD.
 *
 * Files under $POWER_ROOT are mirrored under $POWER_DISK. A write reaches the mirror when it is
 * synced, or by chance, in part and out of order, as a real disk's cache may write back early.
 * After a power cut the mirror is what is left. With $POWER_LIES a sync only says that it synced.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#define FDS 4096
static char *mirror_of[FDS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t chance = 0;

static void *real(const char *name) { return dlsym(RTLD_NEXT, name); }

static uint64_t roll(void) {
    if (!chance) chance = (uint64_t)getpid() * 6364136223846793005ULL + 1442695040888963407ULL;
    chance ^= chance << 13; chance ^= chance >> 7; chance ^= chance << 17;
    return chance;
}

static char *mirror(const char *path) {
    const char *root = getenv("POWER_ROOT"), *disk = getenv("POWER_DISK");
    if (!root || !disk || strncmp(path, root, strlen(root)) != 0) return NULL;
    if (strstr(path, "-shm")) return NULL;
    char *name = malloc(PATH_MAX);
    snprintf(name, PATH_MAX, "%s%s", disk, path + strlen(root));
    return name;
}

static void remember(int fd, const char *path) {
    if (fd < 0 || fd >= FDS) return;
    pthread_mutex_lock(&lock);
    free(mirror_of[fd]);
    mirror_of[fd] = mirror(path);
    pthread_mutex_unlock(&lock);
}

static int raw_open(const char *path, int flags, mode_t mode) {
    int (*f)(const char *, int, ...) = real("open64");
    return f(path, flags, mode);
}

static void put(const char *name, const char *bytes, size_t count, off_t at) {
    ssize_t (*f)(int, const void *, size_t, off_t) = real("pwrite64");
    int (*shut)(int) = real("close");
    int fd = raw_open(name, O_WRONLY | O_CREAT, 0600);
    if (fd < 0) return;
    f(fd, bytes, count, at);
    shut(fd);
}

/* A write that was not synced may still reach the disk early: a part of it, by sectors. */
static void early(int fd, const char *bytes, size_t count, off_t at) {
    if (fd < 0 || fd >= FDS || getenv("POWER_LIES")) return;
    pthread_mutex_lock(&lock);
    char *name = mirror_of[fd];
    if (name && access(name, F_OK) == 0 && roll() % 4 == 0) {
        size_t sectors = count / 512 + 1;
        size_t kept = (roll() % (sectors + 1)) * 512;
        put(name, bytes, kept < count ? kept : count, at);
    }
    pthread_mutex_unlock(&lock);
}

static void keep(int fd) {
    if (fd < 0 || fd >= FDS || getenv("POWER_LIES")) return;
    pthread_mutex_lock(&lock);
    char *name = mirror_of[fd];
    if (name) {
        ssize_t (*get)(int, void *, size_t, off_t) = real("pread64");
        ssize_t (*set)(int, const void *, size_t, off_t) = real("pwrite64");
        int (*cut)(int, off_t) = real("ftruncate64");
        int (*shut)(int) = real("close");
        char source[64];
        snprintf(source, sizeof source, "/proc/self/fd/%d", fd);
        int from = raw_open(source, O_RDONLY, 0), to = raw_open(name, O_WRONLY | O_CREAT, 0600);
        static char buffer[1 << 16];
        off_t at = 0;
        ssize_t count;
        while (from >= 0 && to >= 0 && (count = get(from, buffer, sizeof buffer, at)) > 0) {
            set(to, buffer, count, at);
            at += count;
        }
        if (to >= 0) { cut(to, at); shut(to); }
        if (from >= 0) shut(from);
    }
    pthread_mutex_unlock(&lock);
}

#define OPEN(NAME)                                                         \
    int NAME(const char *path, int flags, ...) {                           \
        mode_t mode = 0;                                                   \
        if (flags & (O_CREAT | O_TMPFILE)) {                               \
            va_list more; va_start(more, flags); mode = va_arg(more, mode_t); va_end(more); \
        }                                                                  \
        int fd = raw_open(path, flags, mode);                              \
        int kept = errno;                                                  \
        remember(fd, path);                                                \
        errno = kept;                                                      \
        return fd;                                                         \
    }
OPEN(open)
OPEN(open64)

int close(int fd) {
    int (*f)(int) = real("close");
    if (fd >= 0 && fd < FDS) {
        pthread_mutex_lock(&lock);
        free(mirror_of[fd]);
        mirror_of[fd] = NULL;
        pthread_mutex_unlock(&lock);
    }
    return f(fd);
}

#define PWRITE(NAME)                                                       \
    ssize_t NAME(int fd, const void *bytes, size_t count, off_t at) {      \
        ssize_t (*f)(int, const void *, size_t, off_t) = real("pwrite64"); \
        ssize_t done = f(fd, bytes, count, at);                            \
        int kept = errno;                                                  \
        if (done > 0) early(fd, bytes, done, at);                          \
        errno = kept;                                                      \
        return done;                                                       \
    }
PWRITE(pwrite)
PWRITE(pwrite64)

#define SYNC(NAME)                                                         \
    int NAME(int fd) {                                                     \
        keep(fd);                                                          \
        return 0;                                                          \
    }
SYNC(fsync)
SYNC(fdatasync)

int rename(const char *from, const char *to) {
    int (*f)(const char *, const char *) = real("rename");
    int done = f(from, to);
    int kept = errno;
    char *a = mirror(from), *b = mirror(to);
    if (done == 0 && a && b) f(a, b);
    free(a); free(b);
    errno = kept;
    return done;
}

int unlink(const char *path) {
    int (*f)(const char *) = real("unlink");
    int done = f(path);
    int kept = errno;
    char *name = mirror(path);
    if (done == 0 && name) f(name);
    free(name);
    errno = kept;
    return done;
}
