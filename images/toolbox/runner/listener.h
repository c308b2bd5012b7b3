/* A socket in the sandbox to which programs connect. The host opens channels ahead of time, one for each connection to come. */
#ifndef BRIG_LISTENER_H
#define BRIG_LISTENER_H

#include "endpoint.h"

void listener_open(struct runner *r, uint32_t id, const union address *at);
/* Adds a channel for the next connection. False when there is no memory. */
bool listener_add(struct runner *r, struct endpoint *listener, uint32_t id);
/* Takes a channel off the list of those that wait for a connection. */
void listener_forget(struct endpoint *waiting);
/* Ends the listener, and the channels that wait for its connections. */
void listener_close(struct runner *r, struct endpoint *listener);
/* Tries again if there was no descriptor for the next connection. */
void listener_tick(struct runner *r, struct endpoint *listener, uint64_t now);

#endif
