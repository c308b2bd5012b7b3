/* A socket in the sandbox to which programs send datagrams, which the host answers. Datagrams without room are dropped. */
#ifndef BRIG_DATAGRAMS_H
#define BRIG_DATAGRAMS_H

#include "endpoint.h"

void datagrams_open(struct runner *r, uint32_t id, const union address *at);
/* Sends a datagram to a program. False when the frame is malformed. */
bool datagrams_take(const struct endpoint *e, const struct frame *frame);
/* Reads again, after new credit or when the link has room again. */
void datagrams_resume(struct runner *r, struct endpoint *e);

#endif
