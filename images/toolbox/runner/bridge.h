/* Connections from outside: deciding who may speak, and the connection that speaks for the host. */
#ifndef BRIG_BRIDGE_H
#define BRIG_BRIDGE_H

#include <stdbool.h>
#include <stdint.h>

struct runner;
struct bridge;
struct source;

/* Takes streams that no `connect` has handed over as a connection. HELLO has to come on them as on any other. */
bool bridges_adopt(struct runner *r, const int streams[2], uint64_t patience_ms);
/* What is called when the socket for them has connections. */
void bridges_accept(struct runner *r, struct source *s, uint32_t events);
void bridges_tick(struct runner *r, uint64_t now);
void bridge_drop(struct runner *r, struct bridge *b);
/* Writes as much to the host as it can take. */
void host_flush(struct runner *r);

#endif
