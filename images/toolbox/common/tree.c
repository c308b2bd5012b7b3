#define _GNU_SOURCE
#include "tree.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FREEZE_ROUNDS 16
#define SKIP_4 " %*s %*s %*s %*s"
#define SKIP_15 SKIP_4 SKIP_4 SKIP_4 " %*s %*s %*s"

struct process {
    pid_t pid, parent;
    uint64_t started;
    bool zombie, chosen;
};

struct snapshot {
    struct process *list;
    size_t count, capacity;
};

/* The second field is the name of the program in parentheses. It may contain any character, so the last parenthesis ends it. */
static bool read_process(pid_t pid, struct process *out) {
    char path[64], text[512];
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    ssize_t n = read(fd, text, sizeof text - 1);
    close(fd);
    if (n <= 0) return false;
    text[n] = 0;
    const char *end = strrchr(text, ')');
    char state;
    int parent, threads;
    unsigned long long started;
    static const char fields[] = " %c %d" SKIP_15 " %d %*s %llu"; /* fields 3, 4, 5 to 19, 20, 21 and 22 of proc(5) */
    if (!end || sscanf(end + 1, fields, &state, &parent, &threads, &started) != 4) return false;
    /* The state is that of the first thread. If only that thread has ended, the others go on, and the process is no zombie. */
    bool zombie = (state == 'Z' || state == 'X') && threads <= 1;
    *out = (struct process){.pid = pid, .parent = parent, .started = started, .zombie = zombie};
    return true;
}

pid_t parent_of(pid_t pid) {
    struct process process;
    return read_process(pid, &process) ? process.parent : -1;
}

uint64_t start_of(pid_t pid) {
    struct process process;
    return read_process(pid, &process) ? process.started : 0;
}

static bool add(struct snapshot *all, const struct process *process) {
    if (all->count == all->capacity) {
        size_t capacity = all->capacity ? all->capacity * 2 : 64;
        struct process *list = realloc(all->list, capacity * sizeof *list);
        if (!list) return false;
        all->list = list;
        all->capacity = capacity;
    }
    all->list[all->count++] = *process;
    return true;
}

static struct snapshot take_snapshot(void) {
    struct snapshot all = {0};
    DIR *proc = opendir("/proc");
    if (!proc) return all;
    struct dirent *entry;
    while ((entry = readdir(proc))) {
        if (!isdigit((unsigned char)entry->d_name[0])) continue;
        struct process process;
        if (read_process((pid_t)atoi(entry->d_name), &process) && !add(&all, &process)) break;
    }
    closedir(proc);
    return all;
}

static bool parent_is_chosen(const struct snapshot *all, pid_t parent) {
    for (size_t i = 0; i < all->count; i++)
        if (all->list[i].pid == parent) return all->list[i].chosen;
    return false;
}

static void choose_below(struct snapshot *all) {
    bool changed = true;
    while (changed) {
        changed = false;
        for (size_t i = 0; i < all->count; i++) {
            struct process *p = &all->list[i];
            if (!p->chosen && parent_is_chosen(all, p->parent)) p->chosen = changed = true;
        }
    }
}

static size_t signal_chosen(const struct snapshot *all, int signal_number) {
    size_t alive = 0;
    for (size_t i = 0; i < all->count; i++) {
        if (!all->list[i].chosen || all->list[i].zombie) continue;
        alive++;
        kill(all->list[i].pid, signal_number);
    }
    return alive;
}

/* Everything below `root`; or, with `is_ours`, everything below PID 1 except what `is_ours` claims and what is older than `since`. */
struct target {
    pid_t root;
    int (*is_ours)(pid_t);
    uint64_t since;
};

static bool is_top(const struct target *target, const struct process *p) {
    if (!target->is_ours) return p->parent == target->root;
    return p->parent == 1 && p->started >= target->since && !target->is_ours(p->pid);
}

static size_t signal_once(const struct target *target, int signal_number) {
    struct snapshot all = take_snapshot();
    for (size_t i = 0; i < all.count; i++) {
        struct process *p = &all.list[i];
        p->chosen = is_top(target, p);
    }
    choose_below(&all);
    size_t alive = signal_chosen(&all, signal_number);
    free(all.list);
    return alive;
}

static size_t freeze_and_kill(const struct target *target) {
    size_t before = 0;
    for (int i = 0; i < FREEZE_ROUNDS; i++) {
        size_t now = signal_once(target, SIGSTOP);
        if (now == 0) return 0;
        if (now == before) break;
        before = now;
    }
    return signal_once(target, SIGKILL);
}

size_t tree_signal(pid_t root, int signal_number) { return signal_once(&(struct target){.root = root}, signal_number); }

size_t tree_kill(pid_t root) { return freeze_and_kill(&(struct target){.root = root}); }

size_t orphans_kill(int (*is_ours)(pid_t), uint64_t since) {
    return freeze_and_kill(&(struct target){.is_ours = is_ours, .since = since});
}
