/* A socket in the sandbox to which programs send datagrams, which the host answers. What there is no room for is dropped. */
#ifndef BRIG_DATAGRAMS_H
#define BRIG_DATAGRAMS_H

#include "endpoint.h"

void datagrams_open(struct runner *r, uint32_t id, const union address *at);
/* Sends one. False when the frame is not what it should be. */
bool datagrams_take(const struct endpoint *e, const struct frame *frame);
/* Reads again, after new credit or when the link has room again. */
void datagrams_resume(struct runner *r, struct endpoint *e);

#endif
