/* The bridge that `docker exec` starts: it hands its standard streams to PID 1 and waits. */
#ifndef BRIG_CONNECT_H
#define BRIG_CONNECT_H

/* The socket's abstract name: it cannot be removed or taken over while PID 1 lives. */
int listen_for_bridges(void);
int run_bridge(void);

#endif
