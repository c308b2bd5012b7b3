#define _GNU_SOURCE
#include "changes-record.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "file-stat.h"
#include "io.h"
#include "file-protocol.h"
#include "wire.h"

/* The most that a pipe takes at once. The longest record fits into it several times. */
#define CHUNK_BYTES (64u << 10)
/* The unit of st_blocks, whatever the size of the file system's own blocks. */
#define STAT_BLOCK_BYTES 512u
static uint8_t chunk[CHUNK_BYTES];

void changes_output_begin(struct changes_output *o, int out, int64_t since) {
    *o = (struct changes_output){.out = out, .since = since};
    sha256_begin(&o->left_out_hash);
}

bool changes_leave_out(struct changes_output *o, const struct change *change) {
    if (change->changed_at >= o->since) return false;
    uint8_t head[4], state[16] = {0};
    put32(head, (uint32_t)change->path_length);
    if (change->now) {
        put64(state, (uint64_t)change->now->st_ino);
        put64(state + 8, (uint64_t)file_time(change->now->st_ctim));
    }
    sha256_add(&o->left_out_hash, head, sizeof head);
    sha256_add(&o->left_out_hash, (const uint8_t *)change->path, change->path_length);
    sha256_add(&o->left_out_hash, state, sizeof state);
    o->left_out++;
    return true;
}

uint32_t changes_flush(struct changes_output *o) {
    uint32_t error = o->used > 0 && write_all(o->out, chunk, o->used) != 0 ? (uint32_t)errno : 0;
    o->used = 0;
    return error;
}

static void put_state(uint8_t *at, const struct stat *st) {
    put64(at, (uint64_t)st->st_size);
    put64(at + 8, (uint64_t)file_time(st->st_mtim));
    put64(at + 16, (uint64_t)file_time(st->st_ctim));
    put64(at + 24, (uint64_t)st->st_ino);
}

static void encode(uint8_t *record, const struct change *change) {
    const struct stat *now = change->now, *before = change->before;
    memset(record, 0, CHANGES_RECORD_BYTES);
    record[0] = change->kind;
    put32(record + 4, (uint32_t)change->path_length);
    put32(record + 8, (uint32_t)change->target_length);
    if (now) {
        record[1] = file_type(now->st_mode);
        put32(record + 12, now->st_mode & 07777);
        put32(record + 16, now->st_uid);
        put32(record + 20, now->st_gid);
        put32(record + 24, (uint32_t)now->st_nlink);
        put_state(record + 32, now);
        put64(record + 64, (uint64_t)now->st_rdev);
        put64(record + 120, (uint64_t)now->st_blocks * STAT_BLOCK_BYTES);
    }
    if (before) {
        record[2] = file_type(before->st_mode);
        put32(record + 28, before->st_mode & 07777);
        put_state(record + 72, before);
        put64(record + 104, (uint64_t)before->st_dev);
    }
    put64(record + 112, change->below);
}

uint32_t changes_write(struct changes_output *o, const struct change *change) {
    size_t size = CHANGES_RECORD_BYTES + change->path_length + change->target_length;
    uint32_t error = o->used + size > sizeof chunk ? changes_flush(o) : 0;
    if (error) return error;
    uint8_t *record = chunk + o->used;
    encode(record, change);
    memcpy(record + CHANGES_RECORD_BYTES, change->path, change->path_length);
    if (change->target_length > 0) memcpy(record + CHANGES_RECORD_BYTES + change->path_length, change->target, change->target_length);
    o->used += size;
    o->written++;
    return 0;
}
