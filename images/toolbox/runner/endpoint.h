/* One socket on the sandbox's loopback interface that the host has asked for, on a channel of its own. */
#ifndef BRIG_ENDPOINT_H
#define BRIG_ENDPOINT_H

#include <stdbool.h>
#include <stdint.h>

#include "address.h"
#include "buffer.h"
#include "loop.h"
#include "wire.h"

/* The bytes that the host may send before it is granted more. It is also the most that one connection keeps in memory. */
#define ENDPOINT_INPUT_MAX (2u * INITIAL_CREDIT)

enum endpoint_kind { ENDPOINT_LISTENER, ENDPOINT_DATAGRAMS, ENDPOINT_CONNECTION };

/* A connection only goes forward through these. Other endpoints are open at once. */
enum endpoint_phase {
    ENDPOINT_WAITING,    /* waits for a program to connect to its listener */
    ENDPOINT_CONNECTING, /* is being made to a server in the sandbox */
    ENDPOINT_OPEN,
    ENDPOINT_RETIRED, /* EXIT is sent; it is freed at the end of the loop's turn */
};

struct endpoint {
    struct endpoint *next;
    uint32_t id;
    enum endpoint_kind kind;
    enum endpoint_phase phase;
    struct source source;
    int64_t credit; /* how much the host still takes */

    /* The fields of a listener: the connections that wait for a program, in their order. */
    struct endpoint *first_waiting, *last_waiting;
    uint64_t accept_again_ms; /* when it tries again because there was no descriptor, or 0 */

    /* The fields of a connection. */
    union address other;                      /* the end that is not the runner's */
    struct endpoint *listener, *next_waiting; /* while it waits */
    struct buffer input;                      /* bytes that the program inside has not taken yet */
    uint32_t taken;                           /* bytes that it has taken, for which no new credit was granted yet */
    bool input_ended;                         /* the host has sent the end of file */
    bool is_shut;                             /* the program will read the end of file, or nothing any more */
    bool output_ended;                        /* the host has got the end of file */
    bool has_hung_up;                         /* the kernel said so while nothing could be read */
    int error;                                /* the first errno of the connection, or 0 */
};

struct endpoint *endpoint_find(const struct runner *r, uint32_t id);
/* NULL when there is no memory. `fd` belongs to it; -1 for a connection that is not made yet. */
struct endpoint *endpoint_open(struct runner *r, uint32_t id, enum endpoint_kind kind);

/* A socket that does not block, or -1 with errno. */
int endpoint_socket(struct runner *r, int family, int type);
/* The same, bound to this address. Port 0 becomes one that is free. */
int endpoint_bind(struct runner *r, int type, union address *at);

/* Sends EXIT for the endpoint and closes its socket. */
void endpoint_end(struct runner *r, struct endpoint *e, int error);
/* Sends EXIT for a request that failed before there was a socket. */
void endpoint_refuse(struct runner *r, uint32_t id, int error);

bool endpoint_take_credit(struct endpoint *e, uint32_t bytes);
void endpoints_free_retired(struct runner *r);
void for_each_endpoint(struct runner *r, void (*act)(struct runner *, struct endpoint *));

#endif
