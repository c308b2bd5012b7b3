/* The socket over which `connect` hands the streams of an exec to PID 1. */
#ifndef BRIG_BRIDGE_SOCKET_H
#define BRIG_BRIDGE_SOCKET_H

#include <sys/socket.h>
#include <sys/un.h>

/* Its name is an abstract one, which nobody can remove or take while PID 1 lives. Returns the length of the address. */
socklen_t bridge_address(struct sockaddr_un *address);
/* PID 1's side. Returns -1 with errno on failure. */
int listen_for_bridges(void);

#endif
