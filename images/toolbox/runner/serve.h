#ifndef BRIG_SERVE_H
#define BRIG_SERVE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Runs as PID 1 until the lease is over, or the engine or the host ends it. Returns an exit status only when it cannot start. With
 * `has_stream` its standard input and output are the host's first connection. Without `takes_bridges` it is the only one: such a
 * runner may work beside PID 1, which has the socket for later connections.
 */
int serve(const uint8_t token_hash[32], uint64_t lease_ms, bool has_stream, bool takes_bridges);

#endif
