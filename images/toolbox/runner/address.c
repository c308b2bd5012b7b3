#include "address.h"

#include <string.h>

#include "wire.h"

/* u8 family, u8 zero, u16 port, then 16 bytes, of which an IPv4 address has the first four. */
#define HOST_AT 4
#define V4_BYTES 4
#define V6_BYTES 16

static bool is_zero(const uint8_t *from, const uint8_t *end) {
    while (from < end)
        if (*from++) return false;
    return true;
}

bool address_parse(const uint8_t *bytes, union address *out) {
    const uint8_t *host = bytes + HOST_AT, *end = bytes + ADDRESS_BYTES;
    memset(out, 0, sizeof *out);
    if (bytes[1] != 0) return false;
    if (bytes[0] == ADDRESS_IPV4) {
        out->v4.sin_family = AF_INET;
        out->v4.sin_port = htons(get16(bytes + 2));
        memcpy(&out->v4.sin_addr, host, V4_BYTES);
        return host[0] == 127 && is_zero(host + V4_BYTES, end);
    }
    out->v6.sin6_family = AF_INET6;
    out->v6.sin6_port = htons(get16(bytes + 2));
    memcpy(&out->v6.sin6_addr, host, V6_BYTES);
    return bytes[0] == ADDRESS_IPV6 && is_zero(host, end - 1) && end[-1] == 1;
}

void address_write(const union address *address, uint8_t *bytes) {
    memset(bytes, 0, ADDRESS_BYTES);
    if (address->any.sa_family == AF_INET) {
        bytes[0] = ADDRESS_IPV4;
        put16(bytes + 2, ntohs(address->v4.sin_port));
        memcpy(bytes + HOST_AT, &address->v4.sin_addr, V4_BYTES);
    } else if (address->any.sa_family == AF_INET6) {
        bytes[0] = ADDRESS_IPV6;
        put16(bytes + 2, ntohs(address->v6.sin6_port));
        memcpy(bytes + HOST_AT, &address->v6.sin6_addr, V6_BYTES);
    }
}

socklen_t address_size(const union address *address) {
    return address->any.sa_family == AF_INET6 ? sizeof address->v6 : sizeof address->v4;
}
