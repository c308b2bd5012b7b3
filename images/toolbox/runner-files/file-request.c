#include "file-request.h"

#include <string.h>

static bool can_refuse_links(uint8_t operation) {
    return operation != FILE_LIST && operation != FILE_REPORT && operation < FILE_SEQUENCE;
}

static bool has_data(const struct file_request *request) {
    if (request->operation == FILE_WRITE) return request->flags & WRITE_INLINE;
    return request->operation == FILE_SEQUENCE || request->operation >= FILE_CHANGES;
}

bool file_parse(const uint8_t *data, size_t size, struct file_request *out) {
    struct file_head head;
    memset(out, 0, sizeof *out);
    if (!file_head_parse(data, size, &head)) return false;
    out->operation = head.operation;
    out->flags = head.flags;
    out->mode = get32(data + 4);
    out->offset = get64(data + 8);
    out->length = get64(data + 16);
    const uint8_t *at = data + FILE_HEAD_BYTES, *end = data + size;
    if (!take_bytes(&at, end, &out->path, &out->path_length) || !take_bytes(&at, end, &out->second, &out->second_length) || at != end) return false;
    if (memchr(out->path, 0, out->path_length) || (!has_data(out) && memchr(out->second, 0, out->second_length))) return false;
    if (out->operation == FILE_READ && out->flags & READ_INLINE && (out->length == 0 || out->length > INLINE_BYTES)) return false;
    return !(out->flags & PATH_WITHOUT_LINKS) || can_refuse_links(out->operation);
}

bool sequence_next(const uint8_t **at, const uint8_t *end, struct file_request *out) {
    const uint8_t *next = *at, *request;
    uint32_t length;
    if (!take_bytes(&next, end, &request, &length) || !file_parse(request, length, out)) return false;
    *at = next;
    return out->operation == FILE_WRITE && out->flags & WRITE_INLINE;
}
