/* The sockets that the host has on the sandbox's loopback interface, each on a channel of its own, and what frames and time do to them. */
#ifndef BRIG_NETWORK_H
#define BRIG_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

#include "wire.h"

struct runner;

/* Whether the frame is for a socket, not for a command or a file operation. */
bool network_takes(const struct runner *r, const struct frame *frame);
/* False when it breaks the protocol. */
bool network_take_frame(struct runner *r, const struct frame *frame);
void network_tick(struct runner *r);
/* Goes on reading the sockets that were not read because the link was full. */
void network_resume(struct runner *r);

#endif
