/* Connections from outside: who may speak, and the one that speaks for the host. */
#ifndef BRIG_BRIDGE_H
#define BRIG_BRIDGE_H

#include <stdbool.h>
#include <stdint.h>

struct runner;
struct bridge;

/* A connection over streams that no `connect` has handed over. HELLO has to come on them as on any other. */
bool bridges_adopt(struct runner *r, const int streams[2], uint64_t patience_ms);
void bridges_accept(struct runner *r);
void bridges_tick(struct runner *r, uint64_t now);
void bridge_drop(struct runner *r, struct bridge *b);
/* Writes to the host what it can take. */
void host_flush(struct runner *r);

#endif
