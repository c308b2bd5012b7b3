#define _GNU_SOURCE
#include "processor-waits.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "wire.h"

/* The second number is the time in nanoseconds that a thread has spent on a run queue, since it began. */
static bool read_wait(int threads, const char *thread, uint64_t *out) {
    char path[64], text[128];
    snprintf(path, sizeof path, "%.20s/schedstat", thread);
    int fd = openat(threads, path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (fd >= 0) close(fd);
    if (n <= 0) return false;
    text[n] = 0;
    unsigned long long waited;
    if (sscanf(text, "%*u %llu", &waited) != 1) return false;
    *out = waited;
    return true;
}

static bool has_room(const struct file_result *result) { return result->length + WAIT_RECORD_BYTES <= WAITS_MAX * WAIT_RECORD_BYTES; }

static void add_threads(const char *process, struct file_result *result) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%.20s/task", process);
    DIR *threads = opendir(path);
    struct dirent *entry;
    while (threads && has_room(result) && (entry = readdir(threads))) {
        uint64_t waited;
        if (!isdigit((unsigned char)entry->d_name[0]) || !read_wait(dirfd(threads), entry->d_name, &waited)) continue;
        uint8_t *at = result->bytes + result->length;
        put32(at, (uint32_t)atoi(entry->d_name));
        put64(at + 4, waited);
        result->length += WAIT_RECORD_BYTES;
    }
    if (threads) closedir(threads);
}

/* PID 1 and the workers wait for a processor because they are asked for something, also by this operation. */
static bool is_runners_own(const struct file_job *job, pid_t pid) {
    if (pid == 1 || pid == getpid()) return true;
    for (int i = 0; i < WORKER_SLOTS; i++)
        if (job->shared->slots[i].supervisor == pid) return true;
    return false;
}

uint32_t waits_list(const struct file_job *job, struct file_result *result) {
    uint64_t own;
    bool is_counted = read_wait(AT_FDCWD, "/proc/self", &own);
    DIR *proc = is_counted ? opendir("/proc") : NULL;
    if (!proc) return ENOENT;
    struct dirent *entry;
    while (!*job->cancelled && has_room(result) && (entry = readdir(proc)))
        if (isdigit((unsigned char)entry->d_name[0]) && !is_runners_own(job, (pid_t)atoi(entry->d_name))) add_threads(entry->d_name, result);
    closedir(proc);
    return 0;
}
