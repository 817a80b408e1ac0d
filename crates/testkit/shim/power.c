/* A disk with a cache, put under a process by LD_PRELOAD. It can lose its power, fill up and fail.
 *
 * What a process does under $POWER_ROOT happens at once, as it does in the cache of a real system. What would
 * survive a power cut is kept in $POWER_DISK:
 *
 *   data/INODE   the bytes of a file: what fsync or fdatasync of that file has written, or, by chance, a part of a
 *                write that was not synced, as a cache may write back early and out of order
 *   dirs/INODE   the entries of a directory: those it had when that directory itself was synced. A file that was made,
 *                renamed or removed since then is not in it, or still is
 *   held/INODE   a link to every file that was removed and has bytes in data, so that no new file gets its inode
 *
 * Configuration, by environment:
 *
 *   POWER_SEED   chooses what is written back early
 *   POWER_CUT    n: the process is killed at the n-th write, after the write and before anything is synced
 *   POWER_CUT_SYNC  n: the process is killed at the n-th sync, a while after it began and before anything is synced
 *   POWER_FAULT  KIND:FIRST:COUNT:MILLISECONDS: from the FIRST-th call on, COUNT calls fail
 *                  space  a write fails with ENOSPC
 *                  io     a write fails with EIO
 *                  sync   a sync fails with EIO, and what it should have written is never written, as on Linux
 *                  slow   a sync takes so much longer
 *   POWER_SKIP   a path: syncs of this directory and of those in it do nothing, as if the program did not make them
 *   POWER_HITS   a file that gets one byte for each call that failed so
 *
 * A call is a write or a sync of a file or directory under the root. The index of shared memory (-shm) is no file of the
 * disk. What is written through memory maps or by copy_file_range is not seen.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define NODES 4096
#define RANGES 64
/* What was answered too early has left the process within this time. */
#define CUT_DELAY_NS 200000000

typedef struct { off_t from, to; } range;
/* A file, and what was written to it since it was last synced. */
typedef struct { ino_t inode; int count; range dirty[RANGES]; } node;

static node *nodes[NODES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static const char *root, *disk, *hits, *skipped;
static uint64_t chance = 88172645463325252ULL;
static long writes, syncs, cut_at, cut_at_sync;
static struct { char kind[8]; long first, count, milliseconds; } fault;

static int (*real_open)(const char *, int, ...);
static int (*real_close)(int);
static ssize_t (*real_write)(int, const void *, size_t);
static ssize_t (*real_writev)(int, const struct iovec *, int);
static ssize_t (*real_pwrite)(int, const void *, size_t, off_t);
static ssize_t (*real_pread)(int, void *, size_t, off_t);
static int (*real_ftruncate)(int, off_t);
static int (*real_fsync)(int);
static int (*real_rename)(const char *, const char *);
static int (*real_renameat)(int, const char *, int, const char *);
static int (*real_renameat2)(int, const char *, int, const char *, unsigned);
static int (*real_unlink)(const char *);
static int (*real_unlinkat)(int, const char *, int);

static void prepare(void) {
    real_open = dlsym(RTLD_NEXT, "open64");
    real_close = dlsym(RTLD_NEXT, "close");
    real_write = dlsym(RTLD_NEXT, "write");
    real_writev = dlsym(RTLD_NEXT, "writev");
    real_pwrite = dlsym(RTLD_NEXT, "pwrite64");
    real_pread = dlsym(RTLD_NEXT, "pread64");
    real_ftruncate = dlsym(RTLD_NEXT, "ftruncate64");
    real_fsync = dlsym(RTLD_NEXT, "fsync");
    real_rename = dlsym(RTLD_NEXT, "rename");
    real_renameat = dlsym(RTLD_NEXT, "renameat");
    real_renameat2 = dlsym(RTLD_NEXT, "renameat2");
    real_unlink = dlsym(RTLD_NEXT, "unlink");
    real_unlinkat = dlsym(RTLD_NEXT, "unlinkat");
    root = getenv("POWER_ROOT");
    disk = getenv("POWER_DISK");
    hits = getenv("POWER_HITS");
    skipped = getenv("POWER_SKIP");
    const char *seed = getenv("POWER_SEED"), *cut = getenv("POWER_CUT"), *fails = getenv("POWER_FAULT");
    const char *cut_sync = getenv("POWER_CUT_SYNC");
    if (seed) chance ^= strtoull(seed, NULL, 10) * 6364136223846793005ULL;
    if (!chance) chance = 1;
    if (cut) cut_at = atol(cut);
    if (cut_sync) cut_at_sync = atol(cut_sync);
    if (fails && sscanf(fails, "%7[a-z]:%ld:%ld:%ld", fault.kind, &fault.first, &fault.count, &fault.milliseconds) < 3)
        fault.kind[0] = 0;
}

/* The power goes. */
static void die(void) {
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

static uint64_t roll(void) {
    chance ^= chance << 13; chance ^= chance >> 7; chance ^= chance << 17;
    return chance;
}

static void name_of(char *name, const char *kind, ino_t inode) {
    snprintf(name, PATH_MAX, "%s/%s/%lu", disk, kind, (unsigned long)inode);
}

/* Whether this descriptor is a file or a directory of the disk, and which. */
static int is_ours(int fd, struct stat *found, int *deaf) {
    pthread_once(&once, prepare);
    if (!root || !disk || fd < 0) return 0;
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length <= 0) return 0;
    path[length] = 0;
    size_t deep = strlen(root);
    if (strncmp(path, root, deep) != 0 || (path[deep] != '/' && path[deep] != 0)) return 0;
    if (length > 4 && strcmp(path + length - 4, "-shm") == 0) return 0;
    if (deaf) *deaf = skipped && strncmp(path, skipped, strlen(skipped)) == 0;
    return fstat(fd, found) == 0 && (S_ISREG(found->st_mode) || S_ISDIR(found->st_mode));
}

static node *node_of(ino_t inode) {
    for (size_t at = inode % NODES, tried = 0; tried < NODES; at = (at + 1) % NODES, tried++) {
        if (!nodes[at]) {
            nodes[at] = calloc(1, sizeof(node));
            nodes[at]->inode = inode;
        }
        if (nodes[at]->inode == inode) return nodes[at];
    }
    abort();
}

static void dirtied(node *it, off_t from, off_t to) {
    for (int at = 0; at < it->count; at++) {
        range *known = &it->dirty[at];
        if (from <= known->to && to >= known->from) {
            if (from < known->from) known->from = from;
            if (to > known->to) known->to = to;
            return;
        }
    }
    if (it->count == RANGES) {
        for (int at = 1; at < RANGES; at++) {
            if (it->dirty[at].from < it->dirty[0].from) it->dirty[0].from = it->dirty[at].from;
            if (it->dirty[at].to > it->dirty[0].to) it->dirty[0].to = it->dirty[at].to;
        }
        it->count = 1;
    }
    it->dirty[it->count++] = (range){from, to};
}

static void hit(void) {
    if (!hits) return;
    int fd = real_open(hits, O_WRONLY | O_CREAT | O_APPEND, 0600);
    if (fd < 0) return;
    if (real_write(fd, "x", 1) != 1) abort();
    real_close(fd);
}

/* Whether this call, the number-th of its kind, is one of those that fail. */
static int fails(const char *kind, long number) {
    if (strcmp(fault.kind, kind) != 0 || number < fault.first || number >= fault.first + fault.count) return 0;
    hit();
    return 1;
}

/* Copies a part of a file, as it now is, to where it survives. */
static void copy(int from, int to, off_t at, off_t end) {
    char buffer[1 << 14];
    while (at < end) {
        size_t wanted = end - at < (off_t)sizeof buffer ? (size_t)(end - at) : sizeof buffer;
        ssize_t count = real_pread(from, buffer, wanted, at);
        if (count <= 0 || real_pwrite(to, buffer, count, at) != count) return;
        at += count;
    }
}

static int data_of(ino_t inode, int flags) {
    char name[PATH_MAX];
    name_of(name, "data", inode);
    return real_open(name, flags, 0600);
}

/* Writes back what was written to a file since it was last synced. */
static void keep_file(int fd, const struct stat *found) {
    char source[64];
    snprintf(source, sizeof source, "/proc/self/fd/%d", fd);
    int from = real_open(source, O_RDONLY | O_CLOEXEC), to = data_of(found->st_ino, O_WRONLY | O_CREAT | O_CLOEXEC);
    if (from < 0 || to < 0) abort();
    node *it = node_of(found->st_ino);
    if (real_ftruncate(to, found->st_size) != 0) abort();
    for (int at = 0; at < it->count; at++) {
        off_t end = it->dirty[at].to < found->st_size ? it->dirty[at].to : found->st_size;
        copy(from, to, it->dirty[at].from, end);
    }
    it->count = 0;
    real_close(from);
    real_close(to);
}

/* The entries that a directory has now are the ones that survive. */
static void keep_directory(int fd, const struct stat *found) {
    char source[64], name[PATH_MAX], next[PATH_MAX + 8];
    snprintf(source, sizeof source, "/proc/self/fd/%d", fd);
    name_of(name, "dirs", found->st_ino);
    snprintf(next, sizeof next, "%s.next", name);
    int from = real_open(source, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *listed = from < 0 ? NULL : fdopendir(from);
    FILE *to = fopen(next, "w");
    if (!listed || !to) abort();
    for (struct dirent *entry; (entry = readdir(listed));) {
        struct stat one;
        size_t length = strlen(entry->d_name);
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        if (length > 4 && strcmp(entry->d_name + length - 4, "-shm") == 0) continue;
        if (fstatat(dirfd(listed), entry->d_name, &one, AT_SYMLINK_NOFOLLOW) != 0) continue;
        char kind = S_ISDIR(one.st_mode) ? 'd' : S_ISREG(one.st_mode) ? 'f' : 0;
        if (kind)
            fprintf(to, "%c %lu %o %s\n", kind, (unsigned long)one.st_ino, one.st_mode & 07777, entry->d_name);
    }
    closedir(listed);
    fclose(to);
    if (real_rename(next, name) != 0) abort();
}

static int synced(int fd) {
    struct stat found;
    int deaf = 0;
    if (!is_ours(fd, &found, &deaf)) return real_fsync(fd);
    if (deaf && S_ISDIR(found.st_mode)) return 0;
    pthread_mutex_lock(&lock);
    long number = ++syncs;
    int lost = fails("sync", number), slow = fails("slow", number);
    pthread_mutex_unlock(&lock);
    if (number == cut_at_sync) {
        nanosleep(&(struct timespec){0, CUT_DELAY_NS}, NULL);
        die();
    }
    if (slow) nanosleep(&(struct timespec){fault.milliseconds / 1000, fault.milliseconds % 1000 * 1000000}, NULL);
    pthread_mutex_lock(&lock);
    if (lost) {
        if (S_ISREG(found.st_mode)) node_of(found.st_ino)->count = 0;
    } else if (fstat(fd, &found) == 0) {
        if (S_ISREG(found.st_mode)) keep_file(fd, &found);
        else keep_directory(fd, &found);
    }
    pthread_mutex_unlock(&lock);
    if (lost) errno = EIO;
    return lost ? -1 : 0;
}

int fsync(int fd) { return synced(fd); }
int fdatasync(int fd) { return synced(fd); }

/* A write that was not synced may still reach the disk: a part of it, by sectors. */
static void early(const struct stat *found, const char *bytes, size_t count, off_t at) {
    if (roll() % 4 != 0) return;
    int to = data_of(found->st_ino, O_WRONLY | O_CLOEXEC);
    if (to < 0) return;
    size_t kept = (roll() % (count / 512 + 2)) * 512;
    if (kept > count) kept = count;
    if (real_pwrite(to, bytes, kept, at) < 0) abort();
    real_close(to);
}

/* Writes one piece, at a place or, without one, where the file stands. */
static ssize_t written(int fd, const char *bytes, size_t count, off_t at, int placed) {
    struct stat found;
    if (!is_ours(fd, &found, NULL)) return placed ? real_pwrite(fd, bytes, count, at) : real_write(fd, bytes, count);
    pthread_mutex_lock(&lock);
    long number = ++writes;
    int error = fails("space", number) ? ENOSPC : fails("io", number) ? EIO : 0;
    ssize_t done = -1;
    if (!error) {
        if (!placed) at = (fcntl(fd, F_GETFL) & O_APPEND) ? found.st_size : lseek(fd, 0, SEEK_CUR);
        done = placed ? real_pwrite(fd, bytes, count, at) : real_write(fd, bytes, count);
        error = errno;
        if (done > 0) {
            dirtied(node_of(found.st_ino), at, at + done);
            early(&found, bytes, done, at);
        }
        if (number == cut_at) die();
    }
    pthread_mutex_unlock(&lock);
    errno = error;
    return done;
}

ssize_t write(int fd, const void *bytes, size_t count) { return written(fd, bytes, count, 0, 0); }
ssize_t pwrite(int fd, const void *bytes, size_t count, off_t at) { return written(fd, bytes, count, at, 1); }
ssize_t pwrite64(int fd, const void *bytes, size_t count, off_t at) { return written(fd, bytes, count, at, 1); }

ssize_t writev(int fd, const struct iovec *pieces, int count) {
    struct stat found;
    if (!is_ours(fd, &found, NULL)) return real_writev(fd, pieces, count);
    ssize_t all = 0;
    for (int at = 0; at < count; at++) {
        ssize_t done = written(fd, pieces[at].iov_base, pieces[at].iov_len, 0, 0);
        if (done < 0) return all ? all : -1;
        all += done;
        if ((size_t)done < pieces[at].iov_len) break;
    }
    return all;
}

static int resized(int fd, off_t size) {
    struct stat found;
    int ours = is_ours(fd, &found, NULL);
    int done = real_ftruncate(fd, size);
    int error = errno;
    if (done == 0 && ours) {
        pthread_mutex_lock(&lock);
        int to = roll() % 4 == 0 ? data_of(found.st_ino, O_WRONLY | O_CLOEXEC) : -1;
        if (to >= 0) {
            if (real_ftruncate(to, size) != 0) abort();
            real_close(to);
        }
        pthread_mutex_unlock(&lock);
    }
    errno = error;
    return done;
}

int ftruncate(int fd, off_t size) { return resized(fd, size); }
int ftruncate64(int fd, off_t size) { return resized(fd, size); }

/* A file that is about to lose this name keeps its inode, if the disk knows it by it. */
static void hold(int directory, const char *path) {
    pthread_once(&once, prepare);
    struct stat found;
    char data[PATH_MAX], held[PATH_MAX];
    int error = errno;
    if (root && disk && fstatat(directory, path, &found, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(found.st_mode)) {
        name_of(data, "data", found.st_ino);
        name_of(held, "held", found.st_ino);
        if (access(data, F_OK) == 0 && linkat(directory, path, AT_FDCWD, held, 0) != 0 && errno != EEXIST && errno != EXDEV) abort();
    }
    errno = error;
}

int rename(const char *from, const char *to) {
    hold(AT_FDCWD, to);
    return real_rename(from, to);
}

int renameat(int old, const char *from, int new, const char *to) {
    hold(new, to);
    return real_renameat(old, from, new, to);
}

int renameat2(int old, const char *from, int new, const char *to, unsigned flags) {
    hold(new, to);
    return real_renameat2(old, from, new, to, flags);
}

int unlink(const char *path) {
    hold(AT_FDCWD, path);
    return real_unlink(path);
}

int unlinkat(int directory, const char *path, int flags) {
    if (!(flags & AT_REMOVEDIR)) hold(directory, path);
    return real_unlinkat(directory, path, flags);
}
