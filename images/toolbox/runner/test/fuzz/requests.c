/* The parsers of SPAWN, FILE, sequences, HELLO and the records of a commit. A request they accept can be written back byte for byte, so nothing was misread or skipped. */
#include <string.h>

#include "../../../runner-files/commit-records.h"
#include "../../../runner-files/file-request.h"
#include "input.h"

struct writer {
    uint8_t *data;
    size_t size;
};

static void write_bytes(struct writer *w, const void *data, size_t size) {
    if (size) memcpy(w->data + w->size, data, size);
    w->size += size;
}

static void write32(struct writer *w, uint32_t value) {
    put32(w->data + w->size, value);
    w->size += 4;
}

static void write_string(struct writer *w, const char *text) {
    write32(w, (uint32_t)strlen(text));
    write_bytes(w, text, strlen(text));
}

static void fuzz_spawn(const uint8_t *data, size_t size) {
    struct spawn_request request;
    if (!spawn_parse(data, size, &request)) return;
    REQUIRE(request.argc > 0);
    char *store = malloc(size);
    char **argv = malloc((request.argc + 1) * sizeof *argv), **envp = malloc((request.envc + 1) * sizeof *envp), *cwd;
    REQUIRE(store && argv && envp);
    spawn_strings(&request, store, argv, envp, &cwd);
    REQUIRE(!argv[request.argc] && !envp[request.envc]);

    struct writer again = {malloc(size), 0};
    REQUIRE(again.data);
    write_bytes(&again, data, 16);
    put16(again.data + 2, request.rows);
    put16(again.data + 4, request.cols);
    put32(again.data + 8, request.timeout_ms);
    put32(again.data + 12, request.grace_ms);
    again.data[0] = request.flags;
    write_string(&again, cwd);
    write32(&again, request.argc);
    for (uint32_t i = 0; i < request.argc; i++) write_string(&again, argv[i]);
    write32(&again, request.envc);
    for (uint32_t i = 0; i < request.envc; i++) write_string(&again, envp[i]);
    REQUIRE(again.size == size && memcmp(again.data, data, size) == 0);
    free(again.data);
    free(store);
    free(argv);
    free(envp);
}

static void fuzz_file(const uint8_t *data, size_t size) {
    struct file_head head = {0};
    struct file_request request;
    bool has_head = file_head_parse(data, size, &head);
    REQUIRE(!has_head || (size >= 24 && !(file_has_input(&head) && file_has_output(&head))));
    if (!file_parse(data, size, &request)) return;
    REQUIRE(has_head && head.operation == request.operation && head.flags == request.flags);
    REQUIRE(request.operation >= FILE_READ && request.operation <= FILE_WAITS);
    REQUIRE(size == 24 + 8 + (size_t)request.path_length + request.second_length);
    REQUIRE(request.operation == data[0] && request.flags == data[1]);
    REQUIRE(request.offset == get64(data + 8) && request.length == get64(data + 16));
    REQUIRE(request.path == data + 28 && request.second == request.path + request.path_length + 4);
    REQUIRE(!memchr(request.path, 0, request.path_length));
    bool is_data = request.operation == FILE_SEQUENCE || request.operation >= FILE_CHANGES || (request.operation == FILE_WRITE && request.flags & WRITE_INLINE);
    REQUIRE(is_data || !memchr(request.second, 0, request.second_length));
    bool can_be_without_links = request.operation != FILE_LIST && request.operation < FILE_REPORT;
    REQUIRE(can_be_without_links || !(request.flags & PATH_WITHOUT_LINKS));
    bool is_inline_read = request.operation == FILE_READ && request.flags & READ_INLINE;
    REQUIRE(!is_inline_read || (request.length >= 1 && request.length <= INLINE_BYTES));
    REQUIRE(!is_data || !file_has_input(&head) || request.operation == FILE_COMMIT);
}

static void fuzz_sequence(const uint8_t *data, size_t size) {
    struct file_request request;
    const uint8_t *at = data, *before = data;
    while (sequence_next(&at, data + size, &request)) {
        REQUIRE(request.operation == FILE_WRITE && request.flags & WRITE_INLINE);
        REQUIRE(request.path > before && request.second + request.second_length == at && at <= data + size);
        before = at;
    }
    REQUIRE(at <= data + size);
}

static void fuzz_hello(const uint8_t *data, size_t size) {
    struct hello hello;
    if (!hello_parse(data, size, &hello)) return;
    REQUIRE(size == 44 && hello.version == get32(data) && hello.token == data + 4 && hello.received == get64(data + 36));
}

static void fuzz_commit(const uint8_t *data, size_t size) {
    struct commit_records records;
    size_t used = 0;
    if (commit_records_parse(data, size, &records)) {
        for (size_t i = 0; i < records.count; i++) {
            const struct commit_record *record = &records.all[i];
            REQUIRE(record->path[0] && record->path[0] != '/' && !strstr(record->path, "//"));
            REQUIRE(i == 0 || strcmp(record[-1].path, record->path) < 0);
            REQUIRE((record->action == COMMIT_SYMLINK) == (record->target[0] != 0) && record->mode <= 07777);
            used += COMMIT_RECORD_BYTES + strlen(record->path) + strlen(record->target);
            commit_records_make_parent(&records, record);
        }
        REQUIRE(used == size);
    }
    commit_records_free(&records);
}

/* The payload is copied to memory of exactly its size, so that the sanitizer sees a read beyond its end. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 1) return 0;
    uint8_t *payload = malloc(size - 1 ? size - 1 : 1);
    REQUIRE(payload);
    memcpy(payload, data + 1, size - 1);
    switch (data[0] % 5) {
    case 0: fuzz_spawn(payload, size - 1); break;
    case 1: fuzz_file(payload, size - 1); break;
    case 3: fuzz_sequence(payload, size - 1); break;
    case 4: fuzz_commit(payload, size - 1); break;
    default: fuzz_hello(payload, size - 1);
    }
    free(payload);
    return 0;
}
