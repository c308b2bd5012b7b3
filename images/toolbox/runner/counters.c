#define _GNU_SOURCE
#include "counters.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io.h"

#define V2 "/sys/fs/cgroup/"
#define MEMORY_V1 "/sys/fs/cgroup/memory/"
#define PIDS_V1 "/sys/fs/cgroup/pids/"
#define CPU_V1 "/sys/fs/cgroup/cpu/"
#define LARGEST_PIECE (1u << 20)

static int open_one(const char *path) { return open(path, O_RDONLY | O_CLOEXEC); }

static int open_either(const char *path, const char *other) {
    int fd = open_one(path);
    return fd >= 0 ? fd : open_one(other);
}

void counters_open(struct counters *c) {
    c->memory_events = open_one(V2 "memory.events");
    c->memory_kills = open_one(MEMORY_V1 "memory.oom_control");
    c->most_memory[0] = open_one(MEMORY_V1 "memory.max_usage_in_bytes");
    c->most_memory[1] = open_one(MEMORY_V1 "memory.memsw.max_usage_in_bytes");
    c->refused_forks = open_either(V2 "pids.events", PIDS_V1 "pids.events");
    c->memory_limit = open_either(V2 "memory.max", MEMORY_V1 "memory.limit_in_bytes");
    c->process_limit = open_either(V2 "pids.max", PIDS_V1 "pids.max");
    c->most_processes = open_either(V2 "pids.peak", PIDS_V1 "pids.peak");
    c->cpu_stat = open_either(V2 "cpu.stat", CPU_V1 "cpu.stat");
    c->cpu_limit = open_either(V2 "cpu.max", CPU_V1 "cpu.cfs_quota_us");
    c->cpu_period = open_one(CPU_V1 "cpu.cfs_period_us");
}

static uint64_t number_at(const char *text) {
    char *end;
    unsigned long long number = strtoull(text, &end, 10);
    return end == text ? COUNT_UNKNOWN : (uint64_t)number;
}

/* The number behind a name at the beginning of a line. */
static uint64_t named_number(const char *text, const char *name) {
    size_t length = strlen(name);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        if (*line == '\n') line++;
        if (strncmp(line, name, length) == 0 && line[length] == ' ') return number_at(line + length);
    }
    return COUNT_UNKNOWN;
}

static uint64_t read_number(int fd) {
    char text[64];
    return read_text(fd, text, sizeof text) ? number_at(text) : COUNT_UNKNOWN;
}

static uint64_t read_named(int fd, const char *name) {
    char text[512];
    return read_text(fd, text, sizeof text) ? named_number(text, name) : COUNT_UNKNOWN;
}

struct counts counters_read(const struct counters *c) {
    struct counts counts = {.limit_hits = COUNT_UNKNOWN, .refused_forks = read_named(c->refused_forks, "max")};
    char text[512];
    if (read_text(c->memory_events, text, sizeof text)) {
        counts.memory_kills = named_number(text, "oom_kill");
        counts.limit_hits = named_number(text, "oom");
    } else {
        counts.memory_kills = read_named(c->memory_kills, "oom_kill");
    }
    return counts;
}

/* The kernel charges memory in pieces, so the count may be one piece below a limit that was reached. */
static bool was_ever_reached(const struct counters *c, uint64_t limit) {
    for (int i = 0; i < 2; i++) {
        uint64_t most = read_number(c->most_memory[i]);
        if (most != COUNT_UNKNOWN && most + LARGEST_PIECE >= limit) return true;
    }
    return false;
}

uint64_t counters_memory_limit(const struct counters *c, const struct counts *before, const struct counts *now) {
    uint64_t limit = read_number(c->memory_limit);
    bool is_reached = now->limit_hits == COUNT_UNKNOWN ? was_ever_reached(c, limit) : now->limit_hits > before->limit_hits;
    return is_reached ? limit : COUNT_UNKNOWN;
}

/* Both counts of files in memory include those that exist only there (tmpfs, memfd), which cannot be given back. */
static uint64_t files_at_hand(int parts) {
    uint64_t files = read_named(parts, "file"), lying = read_named(parts, "shmem");
    if (files == COUNT_UNKNOWN) files = read_named(parts, "cache");
    return files == COUNT_UNKNOWN || lying == COUNT_UNKNOWN || lying > files ? 0 : files - lying;
}

static bool takes_most(uint64_t limit, int total, int parts) {
    uint64_t used = read_number(total), at_hand = files_at_hand(parts);
    if (limit == COUNT_UNKNOWN || used == COUNT_UNKNOWN || at_hand > used) return false;
    return used - at_hand >= limit / 4 * 3;
}

/* These two files are not kept open, because a container may have few descriptors. */
bool counters_memory_is_taken(const struct counters *c) {
    int total = open_either(V2 "memory.current", MEMORY_V1 "memory.usage_in_bytes"), parts = open_either(V2 "memory.stat", MEMORY_V1 "memory.stat");
    bool is_taken = takes_most(read_number(c->memory_limit), total, parts);
    if (total >= 0) close(total);
    if (parts >= 0) close(parts);
    return is_taken;
}

uint64_t counters_process_limit(const struct counters *c) {
    uint64_t limit = read_number(c->process_limit), most = read_number(c->most_processes);
    return most < limit ? COUNT_UNKNOWN : limit;
}

uint64_t counters_throttled(const struct counters *c) { return read_named(c->cpu_stat, "nr_throttled"); }

/* v2 has "QUOTA PERIOD", or "max PERIOD" without a limit; v1 has the quota alone, or -1. */
struct cpu_limit counters_cpu_limit(const struct counters *c) {
    struct cpu_limit limit = {.thousandths = COUNT_UNKNOWN, .period_us = COUNT_UNKNOWN};
    char text[64];
    if (!read_text(c->cpu_limit, text, sizeof text) || text[0] < '0' || text[0] > '9') return limit;
    const char *space = strchr(text, ' ');
    uint64_t quota = number_at(text), period = space ? number_at(space) : read_number(c->cpu_period);
    if (period == 0 || period == COUNT_UNKNOWN || quota > UINT64_MAX / 1000) return limit;
    return (struct cpu_limit){.thousandths = quota * 1000 / period, .period_us = period};
}
