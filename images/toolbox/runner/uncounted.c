#define _GNU_SOURCE
#include "uncounted.h"

#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io.h"
#include "protocol.h"

/* The first look comes this long after the start of a command, so that short commands cost nothing. */
#define LOOK_EVERY_MS 250
#define LOOK_AT_ALL_EVERY_MS 30000
/* The kernel's memory has to grow by this much before everything is looked at. For a machine this is little. */
#define GROWTH_KB (16u << 10)
/* Roughly the length of a lock's longest line. */
#define LOCK_LINE_BYTES 112u
/* The memory that a netlink socket itself takes, which the kernel counts for no container either. */
#define NETLINK_SOCKET_BYTES 2048u
/* No table is read further than this line, since that would take too long. Lines behind it are not counted. */
#define MOST_LINES (1u << 16)

/* The timer of a connection that is over and only remembered. */
#define TIMER_OF_THE_REMEMBERED 3

static const char *const paths[KERNEL_TABLES] = {
    [TABLE_MEMORY] = "/proc/meminfo",      [TABLE_SOCKETS] = "/proc/net/sockstat", [TABLE_SOCKETS_6] = "/proc/net/sockstat6",
    [TABLE_LOCKS] = "/proc/locks",         [TABLE_NETLINK] = "/proc/net/netlink",  [TABLE_ICMP] = "/proc/net/icmp",
    [TABLE_ICMP_6] = "/proc/net/icmp6",    [TABLE_RAW] = "/proc/net/raw",          [TABLE_RAW_6] = "/proc/net/raw6",
    [TABLE_TCP] = "/proc/net/tcp",         [TABLE_TCP_6] = "/proc/net/tcp6",       [TABLE_UDP] = "/proc/net/udp",
    [TABLE_UDP_6] = "/proc/net/udp6",
};

void uncounted_open(struct uncounted *u) {
    *u = (struct uncounted){.counts_sockets = access("/sys/fs/cgroup/memory/memory.limit_in_bytes", F_OK) != 0, .reads_proc = true};
    for (int i = 0; i < KERNEL_TABLES; i++) u->tables[i] = -1;
}

static void open_tables(struct uncounted *u, int from, int to) {
    for (int i = from; u->reads_proc && i < to; i++) u->tables[i] = open(paths[i], O_RDONLY | O_CLOEXEC);
}

/* A container may have few descriptors, so these are not kept. */
static void close_tables(struct uncounted *u) {
    for (int i = 0; u->reads_proc && i < KERNEL_TABLES; i++) {
        if (u->tables[i] >= 0) close(u->tables[i]);
        u->tables[i] = -1;
    }
}

/* ---- tables ------------------------------------------------------------------------------------------------------ */

/* Calls `visit` with each line until it says that it is enough. */
static void each_line(int table, bool (*visit)(const char *line, uint64_t *sum), uint64_t *sum) {
    char text[8192];
    size_t kept = 0;
    if (table < 0 || lseek(table, 0, SEEK_SET) != 0) return;
    for (unsigned lines = 0; lines < MOST_LINES;) {
        ssize_t n = read(table, text + kept, sizeof text - 1 - kept);
        if (n <= 0) return;
        text[kept + (size_t)n] = 0;
        char *line = text;
        for (char *end; (end = strchr(line, '\n')); line = end + 1, lines++) {
            *end = 0;
            if (visit(line, sum)) return;
        }
        kept = strlen(line);
        if (kept == sizeof text - 1) return; /* no line of these tables is that long */
        memmove(text, line, kept);
    }
}

/* ---- locks of files ---------------------------------------------------------------------------------------------- */

/* Locks of open files (OFDLCK) do not count: every container sees those of all others, and commands cannot take any. */
static bool count_lock(const char *line, uint64_t *sum) { return !strstr(line, "OFDLCK") && ++*sum > MOST_LOCKS; }

/* For each page of this table the kernel goes through all pages before it, but it skips to a far place at once. So that is asked for first. */
static bool has_many_locks(int table) {
    char byte;
    uint64_t count = 0;
    if (table < 0 || pread(table, &byte, 1, (off_t)MOST_LOCKS * LOCK_LINE_BYTES) != 1) return false;
    each_line(table, count_lock, &count);
    return count > MOST_LOCKS;
}

/* ---- bytes that wait to be read ---------------------------------------------------------------------------------- */

static bool add_netlink(const char *line, uint64_t *sum) {
    unsigned long bytes;
    if (sscanf(line, "%*x %*d %*u %*x %lu", &bytes) == 1) *sum += bytes + NETLINK_SOCKET_BYTES;
    return *sum > MOST_UNREAD_BYTES;
}

static bool add_datagrams(const char *line, uint64_t *sum) {
    unsigned long bytes;
    if (sscanf(line, " %*u: %*s %*s %*x %*x:%lx", &bytes) == 1) *sum += bytes;
    return *sum > MOST_UNREAD_BYTES;
}

static bool has_much_unread(const int *tables) {
    uint64_t bytes = 0;
    each_line(tables[TABLE_NETLINK], add_netlink, &bytes);
    for (int i = TABLE_ICMP; i <= TABLE_RAW_6; i++) each_line(tables[i], add_datagrams, &bytes);
    return bytes > MOST_UNREAD_BYTES;
}

/* Adds both directions. For TCP these are the bytes that were written, for UDP the memory that the kernel takes for them. */
static bool add_socket(const char *line, uint64_t *sum) {
    unsigned long out, in;
    if (sscanf(line, " %*u: %*s %*s %*x %lx:%lx", &out, &in) == 2) *sum += out + in;
    return *sum > MOST_SOCKET_BYTES;
}

static bool hold_sockets_much(const int *tables) {
    uint64_t bytes = 0;
    for (int i = TABLE_TCP; i <= TABLE_UDP_6 && bytes <= MOST_SOCKET_BYTES; i++) each_line(tables[i], add_socket, &bytes);
    return bytes > MOST_SOCKET_BYTES;
}

/* ---- connections that no program has any more ---------------------------------------------------------------------- */

static bool count_orphan(const char *line, uint64_t *sum) {
    unsigned state, timer, inode;
    if (sscanf(line, " %*u: %*s %*s %x %*x:%*x %x:%*x %*x %*u %*d %u", &state, &timer, &inode) != 3) return false;
    bool is_ending = state == TCP_FIN_WAIT1 || state == TCP_FIN_WAIT2 || state == TCP_LAST_ACK || state == TCP_CLOSING;
    return is_ending && inode == 0 && timer != TIMER_OF_THE_REMEMBERED && ++*sum > MOST_ORPHANS;
}

/* The number of this container's connections; `*orphans` is the number for the whole machine. */
static unsigned connections(const int *tables, unsigned *orphans) {
    char text[1024];
    unsigned count = 0, count_6 = 0;
    read_text(tables[TABLE_SOCKETS], text, sizeof text);
    const char *line = strstr(text, "TCP: ");
    if (!line || sscanf(line, "TCP: inuse %u orphan %u", &count, orphans) != 2) return 0;
    read_text(tables[TABLE_SOCKETS_6], text, sizeof text);
    if ((line = strstr(text, "TCP6: ")) && sscanf(line, "TCP6: inuse %u", &count_6) != 1) return 0;
    return count + count_6;
}

static bool may_have_many_orphans(const int *tables) {
    unsigned orphans = 0;
    return connections(tables, &orphans) > MOST_ORPHANS && orphans > MOST_ORPHANS;
}

static bool has_many_orphans(const int *tables) {
    uint64_t count = 0;
    each_line(tables[TABLE_TCP], count_orphan, &count);
    each_line(tables[TABLE_TCP_6], count_orphan, &count);
    return count > MOST_ORPHANS;
}

/* ---- when to look ------------------------------------------------------------------------------------------------ */

/* The smallest size of a page on any machine. */
#define PAGE_KB 4

/* The pages that sockets of this protocol hold on the whole machine. */
static uint64_t pages_of(const char *text, const char *protocol) {
    const char *line = strstr(text, protocol), *pages = line ? strstr(line, "mem ") : NULL;
    return pages ? strtoull(pages + 4, NULL, 10) : 0;
}

/* The kernel's own memory on the whole machine, as far as it cannot be given back. */
static uint64_t kernel_memory_kb(const int *tables) {
    static const char name[] = "\nSUnreclaim:";
    char text[4096];
    read_text(tables[TABLE_SOCKETS], text, sizeof text);
    uint64_t kb = PAGE_KB * (pages_of(text, "TCP: ") + pages_of(text, "UDP: "));
    read_text(tables[TABLE_MEMORY], text, sizeof text);
    const char *line = strstr(text, name);
    return kb + (line ? strtoull(line + sizeof name - 1, NULL, 10) : 0);
}

/* Looks for a reason first, because reading the locks makes every program that takes one wait for a moment. */
static bool has_reason(struct uncounted *u, uint64_t now) {
    uint64_t kb = kernel_memory_kb(u->tables);
    if (kb < u->least_kb) u->least_kb = kb;
    if (kb - u->least_kb < GROWTH_KB && now < u->look_at_all_ms) return false;
    u->least_kb = kb;
    u->look_at_all_ms = now + LOOK_AT_ALL_EVERY_MS;
    return true;
}

static int excess_of_memory(const struct uncounted *u) {
    if (has_much_unread(u->tables)) return EXCESS_UNREAD;
    if (!u->counts_sockets && hold_sockets_much(u->tables)) return EXCESS_SOCKETS;
    return has_many_locks(u->tables[TABLE_LOCKS]) ? EXCESS_LOCKS : 0;
}

int uncounted_look(struct uncounted *u, uint64_t now) {
    if (u->look_ms == 0) {
        u->look_ms = now + LOOK_EVERY_MS;
        u->look_at_all_ms = now + LOOK_AT_ALL_EVERY_MS;
        u->least_kb = UINT64_MAX;
    }
    if (now < u->look_ms) return 0;
    u->look_ms = now + LOOK_EVERY_MS;
    open_tables(u, 0, TABLES_READ_OFTEN);
    bool looks_at_orphans = may_have_many_orphans(u->tables), looks_at_all = has_reason(u, now);
    if (looks_at_orphans || looks_at_all) open_tables(u, TABLES_READ_OFTEN, KERNEL_TABLES);
    int excess = looks_at_orphans && has_many_orphans(u->tables) ? EXCESS_ORPHANS : looks_at_all ? excess_of_memory(u) : 0;
    close_tables(u);
    return excess;
}

void uncounted_rest(struct uncounted *u) { u->look_ms = 0; }
