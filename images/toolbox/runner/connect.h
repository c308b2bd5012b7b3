/* The bridge that `docker exec` starts: it passes its standard streams to PID 1 and then waits. */
#ifndef BRIG_CONNECT_H
#define BRIG_CONNECT_H

/* The socket has an abstract name, which nobody can remove or take while PID 1 lives. Returns -1 with errno on failure. */
int listen_for_bridges(void);
int run_bridge(void);

#endif
