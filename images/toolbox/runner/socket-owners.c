#define _GNU_SOURCE
#include "socket-owners.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "address.h"
#include "tree.h"

/* Programs may have millions of descriptors open only to make this search take long. Then some owners stay unknown. */
#define MOST_DESCRIPTORS 100000
#define MOST_ANCESTORS 1000
#define NAME_BYTES 16

struct owner {
    unsigned long long inode; /* of the socket, or 0 */
    pid_t pid;                /* or 0 */
};

struct search {
    const struct file_job *job;
    const uint8_t *queries;
    size_t count, missing; /* sockets whose process is not found yet */
    struct owner *owners;
    int descriptors_left;
};

/* ---- the numbers of the sockets ---------------------------------------------------------------------------------- */

/* The kernel prints the bytes of an address as numbers of 32 bits in its own order. */
static bool read_address(const char *text, unsigned port, union address *out) {
    uint32_t words[4] = {0};
    size_t count = strlen(text) / 8;
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < count; i++)
        if (sscanf(text + i * 8, "%8x", &words[i]) != 1) return false;
    bool is_mapped = count == 4 && !words[0] && !words[1] && words[2] == htonl(0xffff);
    if (count == 1 || is_mapped) {
        out->v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
        out->v4.sin_addr.s_addr = words[count - 1];
        return true;
    }
    out->v6.sin6_family = AF_INET6;
    out->v6.sin6_port = htons((uint16_t)port);
    memcpy(&out->v6.sin6_addr, words, sizeof words);
    return count == 4;
}

static void take_line(struct search *s, const char *line) {
    char own_text[33], other_text[33];
    unsigned own_port, other_port;
    unsigned long long inode;
    union address own, other;
    uint8_t key[OWNER_QUERY_BYTES];
    static const char fields[] = " %*u: %32[0-9A-F]:%x %32[0-9A-F]:%x %*s %*s %*s %*s %*s %*s %llu";
    if (sscanf(line, fields, own_text, &own_port, other_text, &other_port, &inode) != 5 || inode == 0) return;
    if (!read_address(own_text, own_port, &own) || !read_address(other_text, other_port, &other)) return;
    address_write(&own, key);
    address_write(&other, key + ADDRESS_BYTES);
    for (size_t i = 0; i < s->count; i++) {
        if (s->owners[i].inode || memcmp(key, s->queries + i * OWNER_QUERY_BYTES, sizeof key) != 0) continue;
        s->owners[i].inode = inode;
        s->missing++;
    }
}

static void find_sockets(struct search *s, const char *table) {
    char *line = NULL;
    size_t size = 0;
    FILE *file = fopen(table, "re");
    if (!file) return;
    while (getline(&line, &size, file) > 0) take_line(s, line);
    free(line);
    fclose(file);
}

/* ---- their processes --------------------------------------------------------------------------------------------- */

static void take_descriptor(struct search *s, pid_t pid, int directory, const char *name) {
    char target[64];
    unsigned long long inode;
    ssize_t n = readlinkat(directory, name, target, sizeof target - 1);
    if (n <= 0) return;
    target[n] = 0;
    if (sscanf(target, "socket:[%llu]", &inode) != 1) return;
    for (size_t i = 0; i < s->count; i++) {
        if (s->owners[i].pid || s->owners[i].inode != inode) continue;
        s->owners[i].pid = pid;
        s->missing--;
    }
}

static bool goes_on(const struct search *s) { return s->missing > 0 && s->descriptors_left > 0 && !*s->job->cancelled; }

static void look_into(struct search *s, pid_t pid) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    DIR *descriptors = opendir(path);
    struct dirent *entry;
    while (descriptors && goes_on(s) && (entry = readdir(descriptors))) {
        s->descriptors_left--;
        take_descriptor(s, pid, dirfd(descriptors), entry->d_name);
    }
    if (descriptors) closedir(descriptors);
}

static void find_processes(struct search *s) {
    DIR *proc = opendir("/proc");
    struct dirent *entry;
    while (proc && goes_on(s) && (entry = readdir(proc)))
        if (isdigit((unsigned char)entry->d_name[0])) look_into(s, (pid_t)atoi(entry->d_name));
    if (proc) closedir(proc);
}

/* ---- their calls ------------------------------------------------------------------------------------------------- */

static const struct worker_slot *slot_of(const struct worker_slot *slots, pid_t supervisor) {
    for (int i = 0; i < WORKER_SLOTS; i++)
        if (slots[i].supervisor == supervisor) return &slots[i];
    return NULL;
}

/* The channel of the call that the process descends from; 0 when there is none. */
static uint32_t channel_of(const struct worker_slot *slots, pid_t pid) {
    for (int i = 0; pid > 1 && i < MOST_ANCESTORS; i++) {
        const struct worker_slot *slot = slot_of(slots, pid);
        if (slot) return slot->channel;
        pid = parent_of(pid);
    }
    return 0;
}

/* What the process calls itself, which it may change. */
static void read_name(pid_t pid, uint8_t *name) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? 0 : read(fd, name, NAME_BYTES);
    if (fd >= 0) close(fd);
    if (n > 0 && name[n - 1] == '\n') name[n - 1] = 0;
}

static void write_record(const struct search *s, const struct owner *owner, uint8_t *record) {
    memset(record, 0, OWNER_RECORD_BYTES);
    if (!owner->pid) return;
    put32(record, channel_of(s->job->slots, owner->pid));
    put32(record + 4, (uint32_t)owner->pid);
    read_name(owner->pid, record + 8);
}

uint32_t owners_find(const struct file_job *job, const struct file_request *request, struct file_result *result) {
    size_t count = request->second_length / OWNER_QUERY_BYTES;
    if (request->second_length % OWNER_QUERY_BYTES != 0 || count > OWNERS_MAX) return EINVAL;
    struct search s = {.job = job, .queries = request->second, .count = count, .descriptors_left = MOST_DESCRIPTORS};
    s.owners = calloc(count ? count : 1, sizeof *s.owners);
    if (!s.owners) return ENOMEM;
    find_sockets(&s, "/proc/net/tcp");
    find_sockets(&s, "/proc/net/tcp6");
    find_processes(&s);
    for (size_t i = 0; i < count; i++) write_record(&s, &s.owners[i], result->bytes + i * OWNER_RECORD_BYTES);
    result->length = (uint32_t)(count * OWNER_RECORD_BYTES);
    free(s.owners);
    return 0;
}
