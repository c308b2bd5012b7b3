/*
 * Resources of the machine that no control group counts, although commands can take them: memory of the kernel, and numbers that there
 * are only so many of. No limit stops that, so the runner looks at them while commands run.
 */
#ifndef BRIG_UNCOUNTED_H
#define BRIG_UNCOUNTED_H

#include <stdbool.h>
#include <stdint.h>

/* Files of the kernel. The first are read often, the others once there is a reason to. */
enum kernel_table {
    TABLE_MEMORY,
    TABLE_SOCKETS,
    TABLE_SOCKETS_6,
    TABLES_READ_OFTEN,
    TABLE_LOCKS = TABLES_READ_OFTEN,
    TABLE_NETLINK,
    TABLE_ICMP,
    TABLE_ICMP_6,
    TABLE_RAW,
    TABLE_RAW_6,
    TABLE_TCP,
    TABLE_TCP_6,
    TABLE_UDP,
    TABLE_UDP_6,
    KERNEL_TABLES,
};

struct uncounted {
    bool reads_proc;           /* opens the tables for each look; otherwise they are given */
    int tables[KERNEL_TABLES]; /* -1 for one that is not open, or that this kernel does not have */
    bool counts_sockets;       /* control groups of version 2 count what sockets of TCP and UDP hold */
    uint64_t least_kb;         /* the least memory of the kernel since everything was looked at */
    uint64_t look_ms;          /* 0 while nothing runs */
    uint64_t look_at_all_ms;
};

void uncounted_open(struct uncounted *u);

/* Call this while commands run. It looks when it is time to. One of enum excess_status if they have taken too much, otherwise 0. */
int uncounted_look(struct uncounted *u, uint64_t now);
/* Call this when nothing runs any more. */
void uncounted_rest(struct uncounted *u);

#endif
