/* Parses the records of a commit, which list the changes that it has to make. */
#ifndef BRIG_COMMIT_RECORDS_H
#define BRIG_COMMIT_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct commit_record {
    uint8_t action, expects, expected_type; /* of commit_action, expect_kind and entry_type */
    uint32_t content;                       /* the number of the staged file, for a put */
    uint32_t mode, uid, gid;
    int64_t mtime;
    uint64_t ino, size; /* these and the two times below are what the record expects at its path */
    int64_t expected_mtime, expected_ctime;
    char *path, *target;
};

struct commit_records {
    struct commit_record *all;
    size_t count;
    char *strings;
};

/* Returns false unless every record is complete and valid, and all paths are below the target and in order. Free them in any case. */
bool commit_records_parse(const uint8_t *data, size_t size, struct commit_records *records);
void commit_records_free(struct commit_records *records);

/* Whether an earlier record makes one of the directories on the way to the path of `record`. */
bool commit_records_make_parent(const struct commit_records *records, const struct commit_record *record);

/* Whether a name in the target is reserved for the stages of commits. */
bool is_stage_name(const char *name);

#endif
