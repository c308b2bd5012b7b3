/* Addresses of sockets: as bytes of the protocol, and as the kernel has them. There is no system call in here. */
#ifndef BRIG_ADDRESS_H
#define BRIG_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* Reads ADDRESS_BYTES. False unless it is an address of loopback, written in the one way in which that can be done. */
bool address_parse(const uint8_t *bytes, union address *out);
/* Writes ADDRESS_BYTES, zeros for an address of another family. */
void address_write(const union address *address, uint8_t *bytes);

socklen_t address_size(const union address *address);

#endif
