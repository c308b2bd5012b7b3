/* The bridge that `docker exec` starts: it passes its standard streams to PID 1 and then waits. */
#ifndef BRIG_CONNECT_H
#define BRIG_CONNECT_H

/* Returns the exit status of the program. */
int run_bridge(void);

#endif
