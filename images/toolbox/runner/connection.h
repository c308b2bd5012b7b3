/* A connection between a program in the sandbox and the host: bytes both ways, each end closed by itself. */
#ifndef BRIG_CONNECTION_H
#define BRIG_CONNECTION_H

#include "endpoint.h"

/* Whether one more connection may be open. Half of all descriptors are left for commands. */
bool connection_fits(const struct runner *r);

/* Takes a connected socket for a connection that waited, and tells the host. */
void connection_begin(struct runner *r, struct endpoint *c, int fd, const union address *from);
/* Starts to connect to a server in the sandbox. */
void connection_dial(struct runner *r, uint32_t id, const union address *to);

/* False when the host sends more than it was granted, or something after the end. */
bool connection_take_input(struct runner *r, struct endpoint *c, const struct frame *frame);
/* Reads again, after new credit or when the link has room again. */
void connection_resume(struct runner *r, struct endpoint *c);
/* Ends the connection so that the program gets a reset, not an end of file. */
void connection_reset(struct runner *r, struct endpoint *c);

#endif
