#define _GNU_SOURCE
#include "socket-owners.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tree.h"

/* Programs may have millions of descriptors open only to make this search take long. Then some owners stay unknown. */
#define MOST_DESCRIPTORS 100000
#define MOST_ANCESTORS 1000
#define NAME_BYTES 16
/* Two addresses with their ports, in the table of IPv6. */
#define ROW_TEXT_BYTES 76

struct owner {
    char rows[2][ROW_TEXT_BYTES]; /* how the rows of the socket begin in the table of IPv4 and in that of IPv6, or empty */
    unsigned long long inode;     /* of the socket, or 0 */
    pid_t pid;                    /* or 0 */
};

struct search {
    const struct file_job *job;
    size_t count;
    size_t without_inode, missing; /* sockets that no table has had yet, and those whose process is not found yet */
    struct owner *owners;
    int descriptors_left;
};

/* ---- the numbers of the sockets ---------------------------------------------------------------------------------- */

/* The kernel prints the bytes of an address as numbers of 32 bits in its own order. `query` has ADDRESS_BYTES. */
static int print_address(const uint8_t *query, bool in_ipv6, char *out, size_t size) {
    uint32_t words[4];
    unsigned port = get16(query + 2);
    memcpy(words, query + 4, sizeof words);
    if (query[0] == ADDRESS_IPV6)
        return in_ipv6 ? snprintf(out, size, "%08X%08X%08X%08X:%04X", words[0], words[1], words[2], words[3], port) : 0;
    /* A socket of IPv6 can have addresses of IPv4. */
    if (in_ipv6) return snprintf(out, size, "0000000000000000%08X%08X:%04X", htonl(0xffff), words[0], port);
    return snprintf(out, size, "%08X:%04X", words[0], port);
}

static void print_row(const uint8_t *query, bool in_ipv6, char *row) {
    char own[ROW_TEXT_BYTES / 2], other[ROW_TEXT_BYTES / 2];
    if (!print_address(query, in_ipv6, own, sizeof own) || !print_address(query + ADDRESS_BYTES, in_ipv6, other, sizeof other)) return;
    snprintf(row, ROW_TEXT_BYTES, "%s %s", own, other);
}

static void take_line(struct search *s, bool in_ipv6, const char *line) {
    const char *row = strstr(line, ": ");
    for (size_t i = 0; row && i < s->count; i++) {
        struct owner *owner = &s->owners[i];
        const char *wanted = owner->rows[in_ipv6];
        size_t length = strlen(wanted);
        if (owner->inode || !length || strncmp(row + 2, wanted, length) != 0) continue;
        if (sscanf(row + 2 + length, " %*s %*s %*s %*s %*s %*s %llu", &owner->inode) != 1 || !owner->inode) continue;
        s->missing++;
        s->without_inode--;
    }
}

/* Reads no more of the table than is needed, because the kernel goes through the sockets of all its network namespaces for it. */
static void find_sockets(struct search *s, bool in_ipv6) {
    char *line = NULL;
    size_t size = 0;
    FILE *file = s->without_inode ? fopen(in_ipv6 ? "/proc/net/tcp6" : "/proc/net/tcp", "re") : NULL;
    if (!file) return;
    while (s->without_inode && getline(&line, &size, file) > 0) take_line(s, in_ipv6, line);
    free(line);
    fclose(file);
}

/* ---- their processes --------------------------------------------------------------------------------------------- */

/* The likely place of the next socket, since most programs open one connection after the other. */
static struct {
    pid_t pid;
    int descriptor;
} expected;

#define DESCRIPTORS_TRIED 16

static bool take_descriptor(struct search *s, pid_t pid, int directory, const char *name) {
    char target[64];
    unsigned long long inode;
    bool found = false;
    ssize_t n = readlinkat(directory, name, target, sizeof target - 1);
    if (n <= 0) return false;
    target[n] = 0;
    if (sscanf(target, "socket:[%llu]", &inode) != 1) return false;
    for (size_t i = 0; i < s->count; i++) {
        if (s->owners[i].pid || s->owners[i].inode != inode) continue;
        s->owners[i].pid = pid;
        s->missing--;
        found = true;
    }
    return found;
}

static bool goes_on(const struct search *s) { return s->missing > 0 && s->descriptors_left > 0 && !*s->job->cancelled; }

static int open_descriptors(pid_t pid) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
    return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void look_where_expected(struct search *s) {
    char name[16];
    int directory = expected.pid ? open_descriptors(expected.pid) : -1;
    int descriptor = expected.descriptor;
    if (directory < 0) return;
    for (int missed = 0; missed < DESCRIPTORS_TRIED && goes_on(s); descriptor++) {
        snprintf(name, sizeof name, "%d", descriptor);
        s->descriptors_left--;
        missed = take_descriptor(s, expected.pid, directory, name) ? 0 : missed + 1;
        if (missed == 0) expected.descriptor = descriptor + 1;
    }
    close(directory);
}

static void look_into(struct search *s, pid_t pid) {
    int directory = open_descriptors(pid);
    DIR *descriptors = directory < 0 ? NULL : fdopendir(directory);
    struct dirent *entry;
    if (!descriptors && directory >= 0) close(directory);
    while (descriptors && goes_on(s) && (entry = readdir(descriptors))) {
        s->descriptors_left--;
        if (!take_descriptor(s, pid, directory, entry->d_name)) continue;
        expected.pid = pid;
        expected.descriptor = atoi(entry->d_name) + 1;
    }
    if (descriptors) closedir(descriptors);
}

static void find_processes(struct search *s) {
    look_where_expected(s);
    DIR *proc = s->missing ? opendir("/proc") : NULL;
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

/* The process's own name, which it may change. */
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
    put32(record, channel_of(s->job->shared->slots, owner->pid));
    put32(record + 4, (uint32_t)owner->pid);
    read_name(owner->pid, record + 8);
}

uint32_t owners_find(const struct file_job *job, const struct file_request *request, struct file_result *result) {
    size_t count = request->second_length / OWNER_QUERY_BYTES;
    if (request->second_length % OWNER_QUERY_BYTES != 0 || count > OWNERS_MAX) return EINVAL;
    struct search s = {.job = job, .count = count, .without_inode = count, .descriptors_left = MOST_DESCRIPTORS};
    s.owners = calloc(count ? count : 1, sizeof *s.owners);
    if (!s.owners) return ENOMEM;
    for (size_t i = 0; i < count; i++)
        for (int in_ipv6 = 0; in_ipv6 < 2; in_ipv6++)
            print_row(request->second + i * OWNER_QUERY_BYTES, in_ipv6, s.owners[i].rows[in_ipv6]);
    find_sockets(&s, false);
    find_sockets(&s, true);
    find_processes(&s);
    for (size_t i = 0; i < count; i++) write_record(&s, &s.owners[i], result->bytes + i * OWNER_RECORD_BYTES);
    result->length = (uint32_t)(count * OWNER_RECORD_BYTES);
    free(s.owners);
    return 0;
}
