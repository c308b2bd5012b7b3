#define _GNU_SOURCE
#include "commit-records.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "beneath.h"
#include "file-protocol.h"
#include "wire.h"

#define STAGE_PREFIX ".brig-stage-"

bool is_stage_name(const char *name) { return strncmp(name, STAGE_PREFIX, sizeof STAGE_PREFIX - 1) == 0; }

static void decode(const uint8_t *from, struct commit_record *record) {
    *record = (struct commit_record){.action = from[0], .expects = from[1], .expected_type = from[2]};
    record->content = get32(from + 4);
    record->mode = get32(from + 8);
    record->uid = get32(from + 12);
    record->gid = get32(from + 16);
    record->mtime = (int64_t)get64(from + 32);
    record->ino = get64(from + 40);
    record->size = get64(from + 48);
    record->expected_mtime = (int64_t)get64(from + 56);
    record->expected_ctime = (int64_t)get64(from + 64);
}

static bool is_sensible(const struct commit_record *record, uint32_t target_length) {
    if (record->action < COMMIT_PUT || record->action > COMMIT_CHECK || record->expects > EXPECT_OLDER) return false;
    if (record->expected_type > ENTRY_BLOCK_DEVICE || record->mode > 07777) return false;
    return (record->action == COMMIT_SYMLINK) == (target_length > 0);
}

static char *keep_string(char **strings, const uint8_t *from, uint32_t length) {
    char *kept = *strings;
    memcpy(kept, from, length);
    kept[length] = 0;
    *strings += length + 1;
    return kept;
}

/* Returns the size of the record, or 0 if it is invalid. */
static size_t take(const uint8_t *from, size_t size, struct commit_record *record, char **strings) {
    if (size < COMMIT_RECORD_BYTES) return 0;
    uint32_t path = get32(from + 20), target = get32(from + 24);
    const uint8_t *path_at = from + COMMIT_RECORD_BYTES;
    if (path >= PATH_MAX || target >= PATH_MAX || size - COMMIT_RECORD_BYTES < path + target) return 0;
    decode(from, record);
    if (from[3] != 0 || get32(from + 28) != 0 || !is_sensible(record, target)) return 0;
    if (!is_path_below((const char *)path_at, path) || memchr(path_at + path, 0, target)) return 0;
    record->path = keep_string(strings, path_at, path);
    record->target = keep_string(strings, path_at + path, target);
    return COMMIT_RECORD_BYTES + path + target;
}

bool commit_records_parse(const uint8_t *data, size_t size, struct commit_records *records) {
    size_t most = size / COMMIT_RECORD_BYTES;
    *records = (struct commit_records){.all = calloc(most + 1, sizeof *records->all), .strings = malloc(size + 1)};
    if (!records->all || !records->strings) return false;
    char *strings = records->strings;
    while (size > 0) {
        struct commit_record *record = &records->all[records->count];
        size_t used = records->count < most ? take(data, size, record, &strings) : 0;
        if (used == 0 || (records->count > 0 && strcmp(record[-1].path, record->path) >= 0)) return false;
        records->count++;
        data += used;
        size -= used;
    }
    return true;
}

void commit_records_free(struct commit_records *records) {
    free(records->all);
    free(records->strings);
}

static int compare_path(const void *path, const void *record) { return strcmp(path, ((const struct commit_record *)record)->path); }

bool commit_records_make_parent(const struct commit_records *records, const struct commit_record *record) {
    char path[PATH_MAX], *slash;
    strcpy(path, record->path);
    while ((slash = strrchr(path, '/'))) {
        *slash = 0;
        const struct commit_record *found = bsearch(path, records->all, records->count, sizeof *records->all, compare_path);
        if (found && found->action == COMMIT_MKDIR) return true;
    }
    return false;
}
