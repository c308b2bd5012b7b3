/* Tests of what is seen of memory and numbers of the machine that count for no container, in tables as the kernel writes them. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>

#include "../../uncounted.c"
#include "require.h"

#define MANY_KB "SUnreclaim:     400000 kB\n"
#define START 1000

static struct uncounted u;

static void put(enum kernel_table table, const char *text, size_t length) {
    if (u.tables[table] >= 0) close(u.tables[table]);
    u.tables[table] = memfd_create("table", MFD_CLOEXEC);
    REQUIRE(u.tables[table] >= 0 && write(u.tables[table], text, length) == (ssize_t)length);
}

static void put_text(enum kernel_table table, const char *text) { put(table, text, strlen(text)); }

/* `count` lines of this format, which may have a place for the number of the line. */
static void put_lines(enum kernel_table table, unsigned count, const char *format) {
    char *bytes;
    size_t size;
    FILE *file = open_memstream(&bytes, &size);
    REQUIRE(file);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    for (unsigned i = 1; i <= count; i++) fprintf(file, format, i);
#pragma GCC diagnostic pop
    REQUIRE(fclose(file) == 0);
    put(table, bytes, size);
    free(bytes);
}

/* Puts the tables of a machine where nothing is taken, a while after a command has begun. */
static void begin(void) {
    for (int i = 0; i < KERNEL_TABLES; i++) {
        if (u.look_ms && u.tables[i] >= 0) close(u.tables[i]);
        u.tables[i] = -1;
    }
    u.look_ms = u.look_at_all_ms = u.least_kb = 0;
    u.reads_proc = false;
    u.counts_sockets = false;
    put_text(TABLE_MEMORY, "MemTotal:       24000000 kB\nSReclaimable:    70000 kB\n" MANY_KB "KernelStack:  5000 kB\n");
    put_text(TABLE_SOCKETS, "sockets: used 9\nTCP: inuse 5000 orphan 5000 tw 0 alloc 9 mem 9\nUDP: inuse 1 mem 0\n");
    put_text(TABLE_SOCKETS_6, "TCP6: inuse 0\nUDP6: inuse 0\n");
    REQUIRE(uncounted_look(&u, START) == 0 && uncounted_look(&u, START + LOOK_EVERY_MS) == 0);
}

static uint64_t later(unsigned looks) { return START + (uint64_t)looks * LOOK_EVERY_MS; }

/* Looks once the kernel's memory has grown, and returns what is found. */
static int found_after_growth(void) {
    put_text(TABLE_MEMORY, "MemTotal:       24000000 kB\nSReclaimable:    70000 kB\nSUnreclaim:     420000 kB\n");
    return uncounted_look(&u, later(2));
}

#define OWN_LOCK "%u: POSIX  ADVISORY  WRITE 4711 00:2f:123456789012345678 1000000000000000000 1000000000000000001 and some more bytes\n"

static void more_locks_than_a_sandbox_may_hold(void) {
    begin();
    put_lines(TABLE_LOCKS, MOST_LOCKS + 1, OWN_LOCK);
    REQUIRE(found_after_growth() == EXCESS_LOCKS);
    begin();
    put_lines(TABLE_LOCKS, MOST_LOCKS, OWN_LOCK);
    REQUIRE(found_after_growth() == 0);
    begin();
    put_lines(TABLE_LOCKS, MOST_LOCKS + 1, "%u: OFDLCK ADVISORY  WRITE -1 00:2f:123456789012345678 1000000000000000000 1000000000000000001 and some more bytes\n");
    REQUIRE(found_after_growth() == 0);
}

#define NETLINK_HEAD "sk               Eth Pid        Groups   Rmem     Wmem     Dump  Locks    Drops    Inode\n"

static void answers_that_nobody_reads(void) {
    begin();
    put_lines(TABLE_NETLINK, 200, "00000000ca8f6488 0   4025324863 00000000 212992   0        0     2        0        1%u\n");
    REQUIRE(found_after_growth() == EXCESS_UNREAD);
    begin();
    put_lines(TABLE_NETLINK, 200, "00000000ca8f6488 0   %u 00000000 100000   0        0     2        0        10398142\n");
    REQUIRE(found_after_growth() == 0);
    begin();
    put_lines(TABLE_NETLINK, 17000, "00000000ca8f6488 0   %u 00000000 0        0        0     2        0        10398142\n");
    REQUIRE(found_after_growth() == EXCESS_UNREAD); /* the sockets alone */
    begin();
    put_text(TABLE_NETLINK, NETLINK_HEAD);
    REQUIRE(found_after_growth() == 0);
}

#define DATAGRAMS "%5u: 00000000:0001 00000000:0000 07 00000000:00034000 00:00000000 00000000     0        0 5177 2 0000000000000000 0\n"
#define DATAGRAMS_6 \
    "%5u: 00000000000000000000000001000000:003A 00000000000000000000000000000000:0000 07 00000000:00034000 00:00000000 00000000     0        0 5177 2 0 0\n"

static void datagrams_that_nobody_reads(void) {
    static const enum kernel_table tables[] = {TABLE_ICMP, TABLE_ICMP_6, TABLE_RAW, TABLE_RAW_6};
    for (int i = 0; i < 4; i++) {
        begin();
        put_lines(tables[i], 160, i % 2 ? DATAGRAMS_6 : DATAGRAMS);
        REQUIRE(found_after_growth() == EXCESS_UNREAD);
        begin();
        put_lines(tables[i], 100, i % 2 ? DATAGRAMS_6 : DATAGRAMS);
        REQUIRE(found_after_growth() == 0);
    }
    begin();
    put_lines(TABLE_ICMP, 80, DATAGRAMS);
    put_lines(TABLE_RAW_6, 80, DATAGRAMS_6);
    REQUIRE(found_after_growth() == EXCESS_UNREAD);
}

#define CONNECTION(state, timer, inode) \
    "%4u: 0100007F:1F90 0100007F:D431 " state " 00001194:00000000 " timer ":00000014 00000000     0        0 " inode " 2 0000000000000000 24 4 0 10 -1\n"
#define CONNECTION_6(state, timer, inode) \
    "%4u: 00000000000000000000000001000000:1F90 00000000000000000000000001000000:D431 " state " 00001194:00000000 " timer \
    ":00000014 00000000     0       -1 " inode " 2 0000000000000000 24 4 0 10 -1\n"

static int with_connections(unsigned count, const char *lines) {
    begin();
    put_lines(TABLE_TCP, count, lines);
    return uncounted_look(&u, later(2));
}

static void connections_that_no_program_has(void) {
    static const char *const orphans[] = {CONNECTION("04", "04", "0"), CONNECTION("05", "02", "0"), CONNECTION("09", "01", "0"), CONNECTION("0B", "00", "0")};
    static const char *const others[] = {CONNECTION("04", "04", "77"), CONNECTION("05", "03", "0"), CONNECTION("06", "03", "0"), CONNECTION("01", "00", "0"),
                                         CONNECTION("08", "00", "0"), CONNECTION("0A", "00", "0")};
    for (int i = 0; i < 4; i++) {
        REQUIRE(with_connections(MOST_ORPHANS + 1, orphans[i]) == EXCESS_ORPHANS);
        REQUIRE(with_connections(MOST_ORPHANS, orphans[i]) == 0);
    }
    for (int i = 0; i < 6; i++) REQUIRE(with_connections(MOST_ORPHANS + 1, others[i]) == 0);
    begin();
    put_lines(TABLE_TCP, 1500, CONNECTION("04", "04", "0"));
    put_lines(TABLE_TCP_6, 1500, CONNECTION_6("04", "04", "0"));
    REQUIRE(uncounted_look(&u, later(2)) == EXCESS_ORPHANS);
}

#define FULL "%4u: 0100007F:1F90 0100007F:D431 01 00080000:00080000 00:00000000 00000000     0        0 77 2 0000000000000000 24 4 0 10 -1\n"

static void what_sockets_hold_where_that_is_not_memory(void) {
    for (int i = TABLE_TCP; i <= TABLE_UDP_6; i++) {
        begin();
        put_lines((enum kernel_table)i, 257, FULL);
        REQUIRE(found_after_growth() == EXCESS_SOCKETS);
        begin();
        put_lines((enum kernel_table)i, 256, FULL);
        REQUIRE(found_after_growth() == 0);
        begin();
        put_lines((enum kernel_table)i, 257, FULL);
        u.counts_sockets = true;
        REQUIRE(found_after_growth() == 0);
    }
    begin();
    put_lines(TABLE_TCP, 257, FULL);
    put_text(TABLE_SOCKETS, "TCP: inuse 600 orphan 0 tw 0 alloc 9 mem 2057\nUDP: inuse 1 mem 2047\n");
    REQUIRE(uncounted_look(&u, later(2)) == 0);
    put_text(TABLE_SOCKETS, "TCP: inuse 600 orphan 0 tw 0 alloc 9 mem 2057\nUDP: inuse 1 mem 2048\n");
    REQUIRE(uncounted_look(&u, later(3)) == EXCESS_SOCKETS);
}

static void connections_are_looked_at_only_where_there_can_be_so_many(void) {
    static const char *const few[] = {"TCP: inuse 2048 orphan 5000 tw 0", "TCP: inuse 5000 orphan 2048 tw 0", "TCP: inuse", "", "UDP: inuse 5000 orphan 5000"};
    for (int i = 0; i < 5; i++) {
        begin();
        put_lines(TABLE_TCP, MOST_ORPHANS + 1, CONNECTION("04", "04", "0"));
        put_text(TABLE_SOCKETS, few[i]);
        REQUIRE(uncounted_look(&u, later(2)) == 0);
    }
    begin();
    put_lines(TABLE_TCP_6, MOST_ORPHANS + 1, CONNECTION_6("04", "04", "0"));
    put_text(TABLE_SOCKETS, "TCP: inuse 0 orphan 5000 tw 0");
    put_text(TABLE_SOCKETS_6, "TCP6: inuse 2049\n");
    REQUIRE(uncounted_look(&u, later(2)) == EXCESS_ORPHANS);
}

static void everything_is_looked_at_when_the_kernels_memory_grows_and_now_and_then(void) {
    begin();
    put_lines(TABLE_LOCKS, MOST_LOCKS + 1, OWN_LOCK);
    REQUIRE(uncounted_look(&u, later(2)) == 0);
    put_text(TABLE_MEMORY, "\nSUnreclaim:     390000 kB\n");
    REQUIRE(uncounted_look(&u, later(3)) == 0);
    put_text(TABLE_MEMORY, "\nSUnreclaim:     406383 kB\n");
    REQUIRE(uncounted_look(&u, later(4)) == 0);
    put_text(TABLE_MEMORY, "\nSUnreclaim:     406384 kB\n");
    REQUIRE(uncounted_look(&u, later(5) - 1) == 0 && uncounted_look(&u, later(5)) == EXCESS_LOCKS);
    REQUIRE(uncounted_look(&u, later(6)) == 0); /* it has not grown since then */
    REQUIRE(uncounted_look(&u, later(5) + LOOK_AT_ALL_EVERY_MS) == EXCESS_LOCKS);
}

static void nothing_is_looked_at_for_a_while_after_a_rest(void) {
    begin();
    put_lines(TABLE_LOCKS, MOST_LOCKS + 1, OWN_LOCK);
    put_lines(TABLE_TCP, MOST_ORPHANS + 1, CONNECTION("04", "04", "0"));
    uncounted_rest(&u);
    REQUIRE(uncounted_look(&u, later(200)) == 0 && u.look_ms == later(201));
    REQUIRE(uncounted_look(&u, later(201) - 1) == 0 && uncounted_look(&u, later(201)) == EXCESS_ORPHANS);
}

static void a_kernel_without_these_tables_shows_nothing(void) {
    begin();
    for (int i = 0; i < KERNEL_TABLES; i++) {
        if (u.tables[i] >= 0) close(u.tables[i]);
        u.tables[i] = -1;
    }
    for (unsigned i = 2; i < 400; i++) REQUIRE(uncounted_look(&u, later(i)) == 0);
}

/* The tables are those of this kernel: what it says of a netlink socket with answers that wait is understood. */
static void the_kernels_own_tables_are_read(void) {
    struct uncounted own;
    uncounted_open(&own);
    open_tables(&own, 0, KERNEL_TABLES);
    REQUIRE(own.tables[TABLE_MEMORY] >= 0 && own.tables[TABLE_LOCKS] >= 0 && own.tables[TABLE_NETLINK] >= 0 && own.tables[TABLE_TCP] >= 0);
    REQUIRE(kernel_memory_kb(own.tables) > 1000);
    uint64_t before = 0, after = 0;
    each_line(own.tables[TABLE_NETLINK], add_netlink, &before);
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    struct { struct nlmsghdr head; struct ifinfomsg body; } ask = {{sizeof ask, RTM_GETLINK, NLM_F_REQUEST | NLM_F_DUMP, 1, 0}, {.ifi_family = AF_UNSPEC}};
    REQUIRE(fd >= 0 && send(fd, &ask, sizeof ask, 0) == sizeof ask);
    each_line(own.tables[TABLE_NETLINK], add_netlink, &after);
    REQUIRE(after > before + NETLINK_SOCKET_BYTES);
    close(fd);
    close_tables(&own);
    REQUIRE(uncounted_look(&own, START) == 0 && uncounted_look(&own, START + LOOK_EVERY_MS) == 0);
    for (int i = 0; i < KERNEL_TABLES; i++) REQUIRE(own.tables[i] == -1);
}

int main(void) {
    setvbuf(stdout, NULL, _IONBF, 0);
    RUN(more_locks_than_a_sandbox_may_hold);
    RUN(answers_that_nobody_reads);
    RUN(datagrams_that_nobody_reads);
    RUN(connections_that_no_program_has);
    RUN(what_sockets_hold_where_that_is_not_memory);
    RUN(connections_are_looked_at_only_where_there_can_be_so_many);
    RUN(everything_is_looked_at_when_the_kernels_memory_grows_and_now_and_then);
    RUN(nothing_is_looked_at_for_a_while_after_a_rest);
    RUN(a_kernel_without_these_tables_shows_nothing);
    RUN(the_kernels_own_tables_are_read);
    return 0;
}
