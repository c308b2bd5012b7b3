/* Tests of the parts that everything else is made of: bytes as numbers, frames and requests, queues of bytes, and jobs for workers. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../buffer.h"
#include "../../../common/io.h"
#include "../../../common/job.h"
#include "../../../runner-files/file-request.h"
#include "require.h"

/* The answer of sched_getaffinity(2): an errno, or these processors. And how often sched_setaffinity(2) was called, with which ones last. */
static int affinity_error, affinity_calls;
static cpu_set_t affinity, affinity_set;

static int getaffinity_here(pid_t pid, size_t size, cpu_set_t *set) {
    REQUIRE(pid == 0 && size == sizeof affinity);
    errno = affinity_error;
    if (!affinity_error) *set = affinity;
    return affinity_error ? -1 : 0;
}

static int setaffinity_here(pid_t pid, size_t size, const cpu_set_t *set) {
    REQUIRE(pid == 0 && size == sizeof affinity);
    affinity_set = *set;
    affinity_calls++;
    return 0;
}
#define sched_getaffinity getaffinity_here
#define sched_setaffinity setaffinity_here
#include "../../../common/scheduling.c"
#undef sched_getaffinity
#undef sched_setaffinity

#define SOME_CHANNEL 0x04030201u

/* A request for more memory than any machine has is refused, as it is without sanitizers. */
const char *__asan_default_options(void);
const char *__lsan_default_options(void);
const char *__asan_default_options(void) { return "allocator_may_return_null=1"; }
const char *__lsan_default_options(void) { return "allocator_may_return_null=1"; }

/* ---- frames ------------------------------------------------------------------------------------------------------- */

static void a_frame_is_read_only_whole_and_as_it_was_written(void) {
    static const uint8_t types[] = {FRAME_SPAWN, FRAME_INPUT, FRAME_CREDIT, FRAME_DATAGRAM, FRAME_STDOUT, FRAME_EXIT};
    for (size_t i = 0; i < sizeof types; i++) {
        uint8_t bytes[HEADER_BYTES + 6];
        memset(bytes, 0xee, sizeof bytes);
        frame_header(bytes, types[i], SOME_CHANNEL, 5);
        REQUIRE(get32(bytes) == 5 && bytes[4] == types[i] && bytes[5] == 0 && get16(bytes + 6) == 0);
        REQUIRE(bytes[8] == 1 && bytes[9] == 2 && bytes[10] == 3 && bytes[11] == 4 && bytes[12] == 0xee);
        struct frame frame = {0};
        size_t used = 0;
        for (size_t size = 0; size < HEADER_BYTES + 5; size++) REQUIRE(frame_parse(bytes, size, 5, &frame, &used) == PARSE_MORE);
        for (size_t size = HEADER_BYTES + 5; size <= sizeof bytes; size++) {
            REQUIRE(frame_parse(bytes, size, 5, &frame, &used) == PARSE_FRAME && used == HEADER_BYTES + 5);
            REQUIRE(frame.type == types[i] && frame.channel == SOME_CHANNEL && frame.length == 5);
            REQUIRE(frame.payload == bytes + HEADER_BYTES);
        }
        REQUIRE(frame_parse(bytes, sizeof bytes, 4, &frame, &used) == PARSE_BAD);
        for (int at = 5; at < 8; at++) {
            bytes[at] = 1;
            REQUIRE(frame_parse(bytes, sizeof bytes, 5, &frame, &used) == PARSE_BAD);
            bytes[at] = 0;
        }
        REQUIRE(frame_is_counted(types[i]));
    }
}

static void only_frames_of_the_session_have_no_channel(void) {
    static const uint8_t session[] = {FRAME_HELLO, FRAME_ACK, FRAME_PING, FRAME_END, FRAME_WELCOME, FRAME_ACK_FROM_RUNNER, FRAME_PONG};
    for (int type = 0; type < 256; type++) {
        bool is_session = memchr(session, type, sizeof session) != NULL;
        REQUIRE(frame_is_counted((uint8_t)type) == !is_session);
        for (uint32_t channel = 0; channel < 2; channel++) {
            uint8_t bytes[HEADER_BYTES];
            struct frame frame;
            size_t used;
            frame_header(bytes, (uint8_t)type, channel, 0);
            enum parse_result expected = is_session == (channel == 0) ? PARSE_FRAME : PARSE_BAD;
            REQUIRE(frame_parse(bytes, sizeof bytes, 0, &frame, &used) == expected);
        }
    }
}

static void a_greeting_has_one_size(void) {
    uint8_t bytes[HELLO_BYTES + 1] = {0};
    put32(bytes, 0x01020304);
    put64(bytes + 36, UINT64_C(0x0807060504030201));
    struct hello hello;
    REQUIRE(!hello_parse(bytes, HELLO_BYTES - 1, &hello) && !hello_parse(bytes, HELLO_BYTES + 1, &hello));
    REQUIRE(hello_parse(bytes, HELLO_BYTES, &hello) && hello.version == 0x01020304 && hello.token == bytes + 4);
    REQUIRE(hello.received == UINT64_C(0x0807060504030201));
}

/* ---- requests for files -------------------------------------------------------------------------------------------- */

/* An operation with two strings; one of its bytes is written with `second` at the end. Returns its size. */
static size_t file_bytes(uint8_t *to, uint8_t operation, uint8_t flags, const char *second, uint32_t second_length) {
    memset(to, 0, FILE_HEAD_BYTES);
    to[0] = operation;
    to[1] = flags;
    put32(to + 4, 0x0a0b0c0d);
    put64(to + 8, UINT64_C(0x1112131415161718));
    put64(to + 16, INLINE_BYTES);
    put32(to + 24, 3);
    memcpy(to + 28, "one", 3);
    put32(to + 31, second_length);
    memcpy(to + 35, second, second_length);
    return 35 + second_length;
}

static bool reads(uint8_t operation, uint8_t flags, const char *second, uint32_t second_length) {
    uint8_t bytes[64];
    struct file_request request;
    return file_parse(bytes, file_bytes(bytes, operation, flags, second, second_length), &request);
}

static void a_request_for_a_file_is_read_field_by_field(void) {
    uint8_t bytes[64] = {0};
    struct file_request request;
    size_t size = file_bytes(bytes, FILE_RENAME, 0x21, "three", 5);
    REQUIRE(file_parse(bytes, size, &request));
    REQUIRE(request.operation == FILE_RENAME && request.flags == 0x21 && request.mode == 0x0a0b0c0d);
    REQUIRE(request.offset == UINT64_C(0x1112131415161718) && request.length == INLINE_BYTES);
    REQUIRE(request.path == bytes + 28 && request.path_length == 3 && request.second == bytes + 35 && request.second_length == 5);
    for (size_t shorter = 0; shorter < size; shorter++) REQUIRE(!file_parse(bytes, shorter, &request));
    REQUIRE(!file_parse(bytes, size + 1, &request));
    put32(bytes + 31, UINT32_MAX);
    REQUIRE(!file_parse(bytes, size, &request));
    size = file_bytes(bytes, FILE_RENAME, 0, "three", 5);
    bytes[29] = 0;
    REQUIRE(!file_parse(bytes, size, &request));
}

static void only_known_operations_are_read(void) {
    struct file_head head;
    for (int operation = 0; operation < 256; operation++) {
        bool is_known = operation >= FILE_READ && operation <= FILE_WAITS;
        uint8_t bytes[FILE_HEAD_BYTES] = {(uint8_t)operation, 0x21};
        REQUIRE(reads((uint8_t)operation, 0, "x", 1) == is_known);
        REQUIRE(file_head_parse(bytes, sizeof bytes, &head) == is_known && !file_head_parse(bytes, sizeof bytes - 1, &head));
        REQUIRE(!is_known || (head.operation == operation && head.flags == 0x21));
    }
}

static void what_is_data_may_contain_nul_and_what_is_a_name_may_not(void) {
    for (int operation = FILE_READ; operation <= FILE_WAITS; operation++) {
        bool is_data = operation == FILE_SEQUENCE || operation >= FILE_CHANGES;
        REQUIRE(reads((uint8_t)operation, 0, "a\0b", 3) == is_data);
    }
    REQUIRE(reads(FILE_WRITE, WRITE_INLINE, "a\0b", 3) && !reads(FILE_WRITE, WRITE_NEW, "a\0b", 3));
    REQUIRE(!reads(FILE_STAT, WRITE_INLINE, "a\0b", 3));
}

static void links_can_be_refused_only_where_one_path_is_opened(void) {
    for (int operation = FILE_READ; operation <= FILE_WAITS; operation++) {
        bool can = operation <= FILE_REMOVE && operation != FILE_LIST;
        REQUIRE(reads((uint8_t)operation, PATH_WITHOUT_LINKS, "x", 1) == can);
    }
}

static bool reads_inline(uint8_t operation, uint8_t flags, uint64_t length) {
    uint8_t bytes[64];
    struct file_request request;
    size_t size = file_bytes(bytes, operation, flags, "", 0);
    put64(bytes + 16, length);
    return file_parse(bytes, size, &request);
}

static void a_short_read_is_of_something_that_fits(void) {
    REQUIRE(!reads_inline(FILE_READ, READ_INLINE, 0) && reads_inline(FILE_READ, READ_INLINE, 1));
    REQUIRE(reads_inline(FILE_READ, READ_INLINE, INLINE_BYTES) && !reads_inline(FILE_READ, READ_INLINE, INLINE_BYTES + 1));
    REQUIRE(reads_inline(FILE_READ, 0, 0) && reads_inline(FILE_READ, READ_SKIP_HOLE, INLINE_BYTES + 1));
    REQUIRE(reads_inline(FILE_WRITE, WRITE_INLINE, 0) && reads_inline(FILE_STAT, READ_INLINE, 0));
}

static void streams_are_only_for_what_does_not_come_inline(void) {
    for (int operation = 0; operation < 20; operation++) {
        struct file_head plain = {.operation = (uint8_t)operation}, inline_one = {.operation = (uint8_t)operation};
        inline_one.flags = operation == FILE_READ ? READ_INLINE : operation == FILE_LIST ? LIST_INLINE : WRITE_INLINE;
        bool always = operation == FILE_REPORT || operation == FILE_RECEIPT || operation == FILE_CHANGES || operation == FILE_COPY;
        REQUIRE(file_has_output(&plain) == (always || operation == FILE_READ || operation == FILE_LIST));
        REQUIRE(file_has_output(&inline_one) == always);
        REQUIRE(file_has_input(&plain) == (operation == FILE_COMMIT || operation == FILE_WRITE));
        REQUIRE(file_has_input(&inline_one) == (operation == FILE_COMMIT));
    }
}

static void a_sequence_has_only_writes_with_their_data(void) {
    uint8_t bytes[256];
    struct file_request request;
    size_t first = file_bytes(bytes + 4, FILE_WRITE, WRITE_INLINE, "data", 4);
    put32(bytes, (uint32_t)first);
    size_t second = file_bytes(bytes + 8 + first, FILE_WRITE, 0, "", 0);
    put32(bytes + 4 + first, (uint32_t)second);
    const uint8_t *at = bytes, *end = bytes + 8 + first + second;
    REQUIRE(sequence_next(&at, end, &request) && at == bytes + 4 + first && request.second_length == 4);
    REQUIRE(!sequence_next(&at, end, &request));
    file_bytes(bytes + 8 + first, FILE_STAT, WRITE_INLINE, "", 0);
    at = bytes + 4 + first;
    REQUIRE(!sequence_next(&at, end, &request));
    at = end;
    REQUIRE(!sequence_next(&at, end, &request));
    at = bytes;
    REQUIRE(!sequence_next(&at, bytes + 3 + first, &request) && at == bytes);
}

/* ---- queues of bytes ----------------------------------------------------------------------------------------------- */

static void a_queue_gives_back_in_order_what_it_was_given(void) {
    struct buffer b = {0};
    uint8_t next_in = 0, next_out = 0;
    size_t length = 0;
    unsigned random = 1;
    for (int round = 0; round < 20000; round++) {
        random = random * 1103515245u + 12345u;
        size_t size = random >> 16 & 1023;
        if (random & 1u << 30) {
            uint8_t *room = buffer_reserve(&b, size);
            REQUIRE(room && buffer_length(&b) == length);
            for (size_t i = 0; i < size; i++) room[i] = next_in++;
            buffer_commit(&b, size);
            length += size;
        } else {
            if (size > length) size = length;
            for (size_t i = 0; i < size; i++) REQUIRE(buffer_front(&b)[i] == next_out++);
            buffer_drop(&b, size);
            length -= size;
        }
        REQUIRE(buffer_length(&b) == length && b.end <= b.capacity);
        if (length == 0) REQUIRE(b.start == 0 && b.end == 0);
    }
    buffer_free(&b);
    REQUIRE(!b.data && b.capacity == 0 && buffer_length(&b) == 0 && !buffer_front(&b));
    REQUIRE(buffer_append(&b, NULL, 0) == 0 && buffer_length(&b) == 0);
}

static void a_queue_grows_only_when_what_is_in_it_does_not_fit(void) {
    struct buffer b = {0};
    static uint8_t bytes[5000];
    REQUIRE(buffer_append(&b, bytes, 1) == 0 && b.capacity == 4096);
    REQUIRE(buffer_append(&b, bytes, 4095) == 0 && b.capacity == 4096 && b.end == 4096);
    /* There is room in front. */
    const uint8_t *data = b.data;
    buffer_drop(&b, 1000);
    REQUIRE(buffer_append(&b, bytes, 1000) == 0 && b.data == data && b.capacity == 4096 && buffer_length(&b) == 4096);
    REQUIRE(buffer_append(&b, bytes, 1) == 0 && b.capacity == 8192 && buffer_length(&b) == 4097);
    buffer_drop(&b, 4097);
    REQUIRE(buffer_append(&b, bytes, 5000) == 0 && b.capacity == 8192);
    REQUIRE(!buffer_is_loose(&b));
    buffer_free(&b);
    REQUIRE(buffer_append(&b, bytes, 4096) == 0 && b.capacity == 4096);
    buffer_free(&b);
    REQUIRE(buffer_append(&b, bytes, 5000) == 0 && b.capacity == 8192);
    buffer_free(&b);
}

static void a_queue_that_finds_no_memory_keeps_what_it_has(void) {
    struct buffer b = {0}, before;
    REQUIRE(buffer_append(&b, "abc", 3) == 0 && buffer_append(&b, "de", 2) == 0);
    before = b;
    REQUIRE(!buffer_reserve(&b, SIZE_MAX / 4) && buffer_append(&b, "x", SIZE_MAX / 4) == -1);
    REQUIRE(memcmp(&b, &before, sizeof b) == 0 && memcmp(buffer_front(&b), "abcde", 5) == 0);
    buffer_free(&b);
}

static void a_queue_is_loose_when_it_is_large_and_less_than_a_quarter_full(void) {
    struct buffer b = {.capacity = (256u << 10) + 4, .end = 1};
    REQUIRE(buffer_is_loose(&b));
    b.end = (64u << 10) + 1;
    REQUIRE(!buffer_is_loose(&b));
    b.end--;
    REQUIRE(buffer_is_loose(&b));
    b.capacity = 256u << 10;
    b.end = 0;
    REQUIRE(!buffer_is_loose(&b));
}

static void an_empty_queue_keeps_no_memory_when_it_is_tightened(void) {
    struct buffer b = {0};
    static uint8_t bytes[1 << 20];
    REQUIRE(buffer_append(&b, bytes, sizeof bytes) == 0);
    buffer_drop(&b, sizeof bytes);
    buffer_tighten(&b);
    REQUIRE(!b.data && b.capacity == 0);
}

/* ---- writing ------------------------------------------------------------------------------------------------------- */

static void on_signal(int number) { (void)number; }

struct slow_reader {
    int from;
    pthread_t writer;
    size_t taken;
    bool is_whole;
};

/* Interrupts the writer before each read: the first time in the middle, and then while it has nothing to write to. */
static void *read_slowly(void *given) {
    struct slow_reader *reader = given;
    uint8_t bytes[30000];
    reader->is_whole = true;
    for (;;) {
        for (int i = 0; i < 3; i++) {
            pthread_kill(reader->writer, SIGUSR1);
            usleep(500);
        }
        ssize_t n = read(reader->from, bytes, sizeof bytes);
        if (n <= 0) return NULL;
        for (ssize_t i = 0; i < n; i++) reader->is_whole &= bytes[i] == (uint8_t)(reader->taken++ % 251);
    }
}

static void what_is_written_is_whole_whatever_interrupts_it(void) {
    static uint8_t bytes[3000000];
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (uint8_t)(i % 251);
    struct sigaction action = {.sa_handler = on_signal}; /* without SA_RESTART */
    int ends[2];
    REQUIRE(sigaction(SIGUSR1, &action, NULL) == 0 && pipe(ends) == 0);
    struct slow_reader reader = {.from = ends[0], .writer = pthread_self()};
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, read_slowly, &reader) == 0);
    REQUIRE(write_all(ends[1], bytes, sizeof bytes) == 0 && write_all(ends[1], bytes, 0) == 0);
    close(ends[1]);
    REQUIRE(pthread_join(thread, NULL) == 0 && reader.taken == sizeof bytes && reader.is_whole);
    close(ends[0]);
    REQUIRE(write_all(ends[1], bytes, 1) == -1 && errno == EBADF);
}

/* ---- jobs ---------------------------------------------------------------------------------------------------------- */

static int open_descriptors(void) {
    DIR *directory = opendir("/proc/self/fd");
    int count = 0;
    REQUIRE(directory);
    while (readdir(directory)) count++;
    closedir(directory);
    return count;
}

/* Sends a job of so many bytes with so many streams, and requires that the worker gets the same. */
static void require_job(uint32_t length, int fd_count) {
    static uint8_t payload[3 * PACKET_MAX], packet[PACKET_MAX];
    int before = open_descriptors(), control[2], streams[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) == 0 && pipe(streams) == 0);
    for (uint32_t i = 0; i < length; i++) payload[i] = (uint8_t)(i * 7 % 253);
    struct job job = {.kind = JOB_FILE, .payload = payload, .length = length, .fd_count = fd_count};
    for (int i = 0; i < fd_count; i++) job.fds[i] = streams[1];
    REQUIRE(job_send(control[0], &job));
    struct received_job received;
    REQUIRE(job_receive(control[1], packet, &received));
    REQUIRE(received.header.kind == JOB_FILE && received.header.length == length && received.is_mapped == (length > PACKET_MAX));
    REQUIRE(memcmp(received.payload, payload, length) == 0);
    for (int i = 0; i < JOB_STREAMS; i++) {
        char byte = 0;
        if (i >= fd_count) {
            REQUIRE(received.fds[i] == -1);
            continue;
        }
        REQUIRE(received.fds[i] >= 0);
        REQUIRE(write(received.fds[i], "x", 1) == 1 && read(streams[0], &byte, 1) == 1 && byte == 'x');
        REQUIRE(fcntl(received.fds[i], F_GETFD) == FD_CLOEXEC);
    }
    uint8_t *mapped = received.is_mapped ? received.payload : NULL;
    job_free(&received);
    if (mapped) REQUIRE(msync(mapped, 1, MS_ASYNC) == -1 && errno == ENOMEM);
    for (int i = 0; i < JOB_STREAMS; i++) REQUIRE(received.fds[i] == -1);
    close(control[0]);
    REQUIRE(!job_receive(control[1], packet, &received));
    close(control[1]);
    close(streams[0]);
    close(streams[1]);
    REQUIRE(open_descriptors() == before);
}

static void a_job_arrives_with_its_request_and_its_streams_and_leaves_nothing_open(void) {
    static const uint32_t lengths[] = {0, 1, PACKET_MAX - 1, PACKET_MAX, PACKET_MAX + 1, 3 * PACKET_MAX};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        for (int streams = 0; streams <= JOB_STREAMS; streams++) require_job(lengths[i], streams);
}

static void a_worker_that_is_gone_gets_no_job(void) {
    static uint8_t payload[2 * PACKET_MAX];
    int before = open_descriptors(), control[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) == 0);
    close(control[1]);
    REQUIRE(!job_send(control[0], &(struct job){.kind = JOB_SPAWN, .payload = payload, .length = 1}) && errno == EPIPE);
    REQUIRE(!job_send(control[0], &(struct job){.kind = JOB_SPAWN, .payload = payload, .length = sizeof payload}));
    close(control[0]);
    REQUIRE(open_descriptors() == before);
}

/* The bytes of a file that may not be longer are an error, and not a signal, when that is ignored. */
static void a_request_that_fits_into_no_file_is_not_sent(void) {
    static uint8_t payload[2 * PACKET_MAX];
    int before = open_descriptors(), control[2];
    struct rlimit limit, short_limit;
    REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) == 0 && getrlimit(RLIMIT_FSIZE, &limit) == 0);
    short_limit = (struct rlimit){PACKET_MAX, limit.rlim_max};
    REQUIRE(signal(SIGXFSZ, SIG_IGN) != SIG_ERR && setrlimit(RLIMIT_FSIZE, &short_limit) == 0);
    REQUIRE(!job_send(control[0], &(struct job){.kind = JOB_FILE, .payload = payload, .length = sizeof payload}));
    REQUIRE(setrlimit(RLIMIT_FSIZE, &limit) == 0 && signal(SIGXFSZ, SIG_DFL) != SIG_ERR);
    close(control[0]);
    close(control[1]);
    REQUIRE(open_descriptors() == before);
}

static void a_worker_that_takes_nothing_holds_nobody_up(void) {
    static uint8_t payload[PACKET_MAX];
    int control[2], sent = 0;
    REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) == 0);
    while (job_send(control[0], &(struct job){.kind = JOB_FILE, .payload = payload, .length = sizeof payload})) REQUIRE(++sent < 100000);
    REQUIRE(sent > 0 && errno == EAGAIN);
    close(control[0]);
    close(control[1]);
}

struct late_job {
    int control;
    pthread_t worker;
};

static void *interrupt_and_send(void *given) {
    const struct late_job *late = given;
    for (int i = 0; i < 20; i++) {
        usleep(1000);
        pthread_kill(late->worker, SIGUSR1);
    }
    static const uint8_t payload[] = "late";
    REQUIRE(job_send(late->control, &(struct job){.kind = JOB_SPAWN, .payload = payload, .length = 4}));
    return NULL;
}

static void a_worker_that_is_interrupted_goes_on_waiting(void) {
    static uint8_t packet[PACKET_MAX];
    struct sigaction action = {.sa_handler = on_signal};
    int control[2];
    REQUIRE(sigaction(SIGUSR1, &action, NULL) == 0);
    REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) == 0);
    struct late_job late = {control[0], pthread_self()};
    struct received_job received;
    pthread_t thread;
    REQUIRE(pthread_create(&thread, NULL, interrupt_and_send, &late) == 0);
    REQUIRE(job_receive(control[1], packet, &received) && received.header.kind == JOB_SPAWN && memcmp(received.payload, "late", 4) == 0);
    REQUIRE(pthread_join(thread, NULL) == 0);
    job_free(&received);
    close(control[0]);
    close(control[1]);
}

static void a_report_is_taken_only_whole(void) {
    static uint8_t sent[RESULT_MAX], result[RESULT_MAX];
    int control[2];
    REQUIRE(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) == 0);
    struct worker_report report = {.what = REPORT_ENDED, .kind = EXIT_FILE, .code = 3, .user_us = 9}, got;
    REQUIRE(report_receive(control[0], &got, result) == REPORT_NOT_YET);
    static const uint32_t lengths[] = {0, 1, RESULT_MAX};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        memset(sent, (int)i + 1, sizeof sent);
        memset(result, 0, sizeof result);
        report.result_length = lengths[i];
        report_send(control[1], &report, sent);
        REQUIRE(report_receive(control[0], &got, result) == REPORT_TAKEN && memcmp(&got, &report, sizeof got) == 0);
        REQUIRE(memcmp(result, sent, lengths[i]) == 0 && (lengths[i] == RESULT_MAX || result[lengths[i]] == 0));
    }
    report.result_length = 2;
    REQUIRE(write(control[1], &report, sizeof report) == sizeof report);
    REQUIRE(report_receive(control[0], &got, result) == REPORT_IMPOSSIBLE);
    REQUIRE(write(control[1], &report, sizeof report - 1) == sizeof report - 1);
    REQUIRE(report_receive(control[0], &got, result) == REPORT_IMPOSSIBLE);
    close(control[1]);
    REQUIRE(report_receive(control[0], &got, result) == REPORT_IMPOSSIBLE);
    close(control[0]);
}

/* ---- processors --------------------------------------------------------------------------------------------------- */

static void be_on(int count) {
    CPU_ZERO(&affinity);
    for (int i = 0; i < count; i++) CPU_SET(i, &affinity);
}

static void only_known_processors_are_set_and_only_if_there_are_others_now(void) {
    be_on(4);
    affinity_error = EPERM;
    scheduling_remember();
    affinity_error = 0;
    scheduling_unbind();
    REQUIRE(affinity_calls == 0);
    scheduling_remember();
    scheduling_unbind();
    REQUIRE(affinity_calls == 0);
    be_on(1);
    affinity_error = EPERM;
    scheduling_unbind();
    REQUIRE(affinity_calls == 0);
    affinity_error = 0;
    scheduling_unbind();
    be_on(4);
    REQUIRE(affinity_calls == 1 && CPU_EQUAL(&affinity_set, &affinity));
}

/* This runs in a child, because a process cannot take back what it does to itself here. */
static void who_makes_way_does_so_for_good(void) {
    pid_t pid = fork();
    REQUIRE(pid >= 0);
    if (pid == 0) {
        REQUIRE(setpriority(PRIO_PROCESS, 0, 2) == 0);
        scheduling_make_way();
        struct rlimit nice_limit;
        REQUIRE(getpriority(PRIO_PROCESS, 0) == 17 && getrlimit(RLIMIT_NICE, &nice_limit) == 0);
        REQUIRE(nice_limit.rlim_cur == 0 && nice_limit.rlim_max == 0);
        _exit(0);
    }
    int status = 0;
    REQUIRE(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void) {
    RUN(a_frame_is_read_only_whole_and_as_it_was_written);
    RUN(only_frames_of_the_session_have_no_channel);
    RUN(a_greeting_has_one_size);
    RUN(a_request_for_a_file_is_read_field_by_field);
    RUN(only_known_operations_are_read);
    RUN(what_is_data_may_contain_nul_and_what_is_a_name_may_not);
    RUN(links_can_be_refused_only_where_one_path_is_opened);
    RUN(a_short_read_is_of_something_that_fits);
    RUN(streams_are_only_for_what_does_not_come_inline);
    RUN(a_sequence_has_only_writes_with_their_data);
    RUN(a_queue_gives_back_in_order_what_it_was_given);
    RUN(a_queue_grows_only_when_what_is_in_it_does_not_fit);
    RUN(a_queue_that_finds_no_memory_keeps_what_it_has);
    RUN(a_queue_is_loose_when_it_is_large_and_less_than_a_quarter_full);
    RUN(an_empty_queue_keeps_no_memory_when_it_is_tightened);
    RUN(what_is_written_is_whole_whatever_interrupts_it);
    RUN(a_job_arrives_with_its_request_and_its_streams_and_leaves_nothing_open);
    RUN(a_worker_that_is_gone_gets_no_job);
    RUN(a_request_that_fits_into_no_file_is_not_sent);
    RUN(a_worker_that_takes_nothing_holds_nobody_up);
    RUN(a_worker_that_is_interrupted_goes_on_waiting);
    RUN(a_report_is_taken_only_whole);
    RUN(only_known_processors_are_set_and_only_if_there_are_others_now);
    RUN(who_makes_way_does_so_for_good);
    return 0;
}
