/* Attempts to use up directories in memory and other resources. */
#include "attempts.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "copy.h"

static int programs_in_scratch_space(void) {
    static const char *const places[] = {"/run", "/dev/shm"};
    for (size_t i = 0; i < 2; i++) {
        char path[64], answer[16];
        snprintf(path, sizeof path, "%s/brig-attempt", places[i]);
        int refusal = copy_self(path);
        tried(refusal ? refusal : run_program(path, "uid", answer));
        unlink(path);
    }
    return all_tried();
}

enum { MOST_TMPFS = 256 };

static void (*visit_tmpfs)(const char *path, const struct statvfs *size);
static char *visited[MOST_TMPFS];
static int visited_count;

/* An engine may mount one directory over another at the same path, where only the last one is visible. */
static bool was_visited(const char *path) {
    for (int i = 0; i < visited_count; i++)
        if (strcmp(visited[i], path) == 0) return true;
    if (visited_count < MOST_TMPFS) visited[visited_count++] = strdup(path);
    return false;
}

static void if_writable_tmpfs(const struct mount_point *mount) {
    struct statvfs size;
    if (strcmp(mount->type, "tmpfs") != 0 || !mount->is_writable || access(mount->path, W_OK) != 0) return;
    if (!was_visited(mount->path) && statvfs(mount->path, &size) == 0) visit_tmpfs(mount->path, &size);
}

static void each_tmpfs(void (*visit)(const char *path, const struct statvfs *size)) {
    visit_tmpfs = visit;
    each_mount(if_writable_tmpfs);
}

static unsigned long long all_bytes;
static bool has_no_size;

static void add_size(const char *path, const struct statvfs *size) {
    (void) path;
    all_bytes += (unsigned long long) size->f_blocks * size->f_bsize;
    if (size->f_blocks == 0) has_no_size = true;
}

/* The sum of all scratch space is the most that it can cost; more than half of the memory would be too much. */
static int memory_without_size(void) {
    each_tmpfs(add_size);
    if (has_no_size) found("a directory without a size");
    if (all_bytes > strtoull(need("memoryBytes"), NULL, 10) / 2) {
        char size[64];
        snprintf(size, sizeof size, "%llu MiB", all_bytes >> 20);
        found(size);
    }
    return all_found();
}

static bool is_full_after(const char *place, unsigned long count) {
    char folder[4200], path[4300];
    snprintf(folder, sizeof folder, "%s/brig-attempt-files", place);
    if (mkdir(folder, 0700) != 0) return false;
    bool is_full = false;
    unsigned long made = 0;
    for (; made <= count; made++) {
        snprintf(path, sizeof path, "%s/%lu", folder, made);
        if (mknod(path, S_IFREG | 0600, 0) == 0) continue;
        is_full = errno == ENOSPC;
        break;
    }
    for (unsigned long i = 0; i < made; i++) {
        snprintf(path, sizeof path, "%s/%lu", folder, i);
        unlink(path);
    }
    rmdir(folder);
    return is_full;
}

/* Tries out a small limit, and believes a large one. */
static void try_limit_of_files(const char *path, const struct statvfs *size) {
    unsigned long limit = size->f_files;
    if (limit == 0 || limit > (unsigned long) given_number("manyFiles") || (limit <= 10000 && !is_full_after(path, limit))) found(path);
}

static int files_without_limit(void) {
    each_tmpfs(try_limit_of_files);
    return all_found();
}

/* Does nothing, and ends with the process that started it. */
_Noreturn static void be_one_of_many(pid_t parent) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(0);
    for (;;) pause();
}

/*
 * Every child is waited for. In a container that has the host's processes, orphans become children of containerd's shim, which takes a
 * second for each of them while it waits for a program of its own.
 */
static int processes_without_limit(void) {
    size_t most = (size_t) given_number("manyProcesses"), count = 0;
    pid_t *started = calloc(most, sizeof *started), self = getpid();
    if (!started) return errno;
    int refusal = 0;
    while (count < most && !refusal) {
        pid_t child = fork();
        if (child == 0) be_one_of_many(self);
        if (child < 0) refusal = errno;
        else started[count++] = child;
    }
    for (size_t i = 0; i < count; i++) kill(started[i], SIGKILL);
    for (size_t i = 0; i < count; i++) waitpid(started[i], NULL, 0);
    return refusal;
}

static int lease(void) {
    static const char *const places[] = {"/tmp", "/run", "/dev/shm"};
    for (size_t i = 0; i < 3; i++) {
        char path[64];
        snprintf(path, sizeof path, "%s/brig-attempt-lease", places[i]);
        int file = open(path, O_CREAT | O_RDONLY | O_CLOEXEC, 0600);
        if (file < 0) continue;
        unlink(path);
        return failure(fcntl(file, F_SETLEASE, F_RDLCK));
    }
    untried("no file could be made to take a lease of");
}

const struct attempt scratch_attempts[] = {
    {.name = "programs-in-scratch-space", .run = programs_in_scratch_space},
    {.name = "memory-without-size", .run = memory_without_size},
    {.name = "files-without-limit", .run = files_without_limit},
    {.name = "processes-without-limit", .run = processes_without_limit},
    {.name = "lease", .run = lease},
    {0},
};
