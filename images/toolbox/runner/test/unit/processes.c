/* Tests of what a worker reads about processes: which of them has a connection, and how long threads have waited for a processor. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* The sources are included, so that tests can call their static functions. */
#include "../../../runner-files/processor-waits.c"
#include "../../../runner-files/socket-owners.c"

#include "../../../runner-files/file-protocol.h"
#include "root.h"

static uint32_t cancelled;
static struct shared shared;
static struct worker_slot *const slots = shared.slots;
static uint8_t answer[WAITS_MAX * WAIT_RECORD_BYTES + WAIT_RECORD_BYTES], queries[3 * OWNER_QUERY_BYTES];

static void begin(void) {
    cancelled = 0;
    shared = (struct shared){0};
    memset(answer, 0xee, sizeof answer);
    memset(queries, 0, sizeof queries);
    expected.pid = 0;
    expected.descriptor = 0;
}

/* ---- connections -------------------------------------------------------------------------------------------------- */

/* Both ends of a connection over loopback, with their addresses. */
struct connection {
    int listener, ends[2];
    struct sockaddr_in addresses[2];
};

static void connect_over_loopback(struct connection *c) {
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof at;
    c->listener = socket(AF_INET, SOCK_STREAM, 0);
    c->ends[0] = socket(AF_INET, SOCK_STREAM, 0);
    REQUIRE(c->listener >= 0 && bind(c->listener, (struct sockaddr *)&at, size) == 0 && listen(c->listener, 8) == 0);
    REQUIRE(getsockname(c->listener, (struct sockaddr *)&at, &size) == 0);
    REQUIRE(c->ends[0] >= 0 && connect(c->ends[0], (struct sockaddr *)&at, size) == 0);
    c->ends[1] = accept(c->listener, NULL, NULL);
    REQUIRE(c->ends[1] >= 0);
    for (int i = 0; i < 2; i++) REQUIRE(getsockname(c->ends[i], (struct sockaddr *)&c->addresses[i], &size) == 0);
}

static void disconnect(struct connection *c) {
    close(c->listener);
    for (int i = 0; i < 2; i++)
        if (c->ends[i] >= 0) close(c->ends[i]);
}

static void write_address(uint8_t *out, const struct sockaddr_in *address) {
    out[0] = ADDRESS_IPV4;
    put16(out + 2, ntohs(address->sin_port));
    memcpy(out + 4, &address->sin_addr, 4);
}

/* Asks who has this end of the connection. */
static void ask(size_t at, const struct connection *c, int end) {
    write_address(queries + at * OWNER_QUERY_BYTES, &c->addresses[end]);
    write_address(queries + at * OWNER_QUERY_BYTES + ADDRESS_BYTES, &c->addresses[1 - end]);
}

static uint32_t find_owners(size_t count) {
    struct file_job job = {.cancelled = &cancelled, .shared = &shared};
    struct file_request request = {.second = queries, .second_length = (uint32_t)(count * OWNER_QUERY_BYTES)};
    struct file_result result = {.bytes = answer};
    uint32_t error = owners_find(&job, &request, &result);
    REQUIRE(error || result.length == count * OWNER_RECORD_BYTES);
    return error;
}

static void require_owner(size_t at, uint32_t channel, pid_t pid, const char *name) {
    const uint8_t *record = answer + at * OWNER_RECORD_BYTES;
    char padded[NAME_BYTES] = {0};
    memcpy(padded, name, strlen(name));
    REQUIRE(get32(record) == channel && get32(record + 4) == (uint32_t)pid && memcmp(record + 8, padded, NAME_BYTES) == 0);
}

static void a_connection_belongs_to_the_process_that_has_it_open(void) {
    struct connection c, other;
    REQUIRE(prctl(PR_SET_NAME, "the owner") == 0);
    begin();
    connect_over_loopback(&c);
    connect_over_loopback(&other);
    ask(0, &c, 0);
    ask(1, &other, 1);
    ask(2, &c, 1);
    slots[WORKER_SLOTS - 1] = (struct worker_slot){.supervisor = getpid(), .channel = 77};
    REQUIRE(find_owners(3) == 0);
    for (size_t k = 0; k < 3; k++) require_owner(k, 77, getpid(), "the owner");
    REQUIRE(answer[3 * OWNER_RECORD_BYTES] == 0xee);
    disconnect(&other);
    disconnect(&c);
}

/* Not every machine has IPv6, so this is what the kernel prints on one that has it. */
static void the_tables_of_the_kernel_are_read_row_by_row(void) {
    static const char v4[] = "   1: 0100007F:1F90 0200007F:C001 01 00000000:00000000 00:00000000 00000000     0        0 4242 1 0000000000000000 20 4 30 10 -1\n";
    static const char v6[] = "   2: 00000000000000000000000001000000:1F90 00000000000000000000000001000000:C001 01 00000000:00000000 00:00000000 00000000"
                             "     0        0 4343 1 0000000000000000 20 4 30 10 -1\n";
    static const char closing[] = "   3: 0100007F:1F90 0200007F:C001 06 00000000:00000000 03:00001000 00000000     0        0 0 3 0000000000000000\n";
    static const char title[] = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n";
    uint8_t queries_v4_and_v6[2][OWNER_QUERY_BYTES] = {{ADDRESS_IPV4, 0, 0x90, 0x1f, 127, 0, 0, 1}, {ADDRESS_IPV6, 0, 0x90, 0x1f}};
    memcpy(queries_v4_and_v6[0] + ADDRESS_BYTES, (const uint8_t[]){ADDRESS_IPV4, 0, 0x01, 0xc0, 127, 0, 0, 2}, 8);
    memcpy(queries_v4_and_v6[1] + ADDRESS_BYTES, (const uint8_t[]){ADDRESS_IPV6, 0, 0x01, 0xc0}, 4);
    queries_v4_and_v6[1][ADDRESS_BYTES - 1] = queries_v4_and_v6[1][2 * ADDRESS_BYTES - 1] = 1;
    struct owner owners[2] = {0};
    struct search s = {.count = 2, .without_inode = 2, .owners = owners};
    for (int i = 0; i < 2; i++)
        for (int in_ipv6 = 0; in_ipv6 < 2; in_ipv6++) print_row(queries_v4_and_v6[i], in_ipv6, owners[i].rows[in_ipv6]);
    REQUIRE(owners[1].rows[0][0] == 0 && strcmp(owners[0].rows[0], "0100007F:1F90 0200007F:C001") == 0);
    REQUIRE(strcmp(owners[0].rows[1], "0000000000000000FFFF00000100007F:1F90 0000000000000000FFFF00000200007F:C001") == 0);
    take_line(&s, false, title);
    take_line(&s, false, closing);
    take_line(&s, true, v4);
    REQUIRE(s.without_inode == 2 && s.missing == 0);
    take_line(&s, true, v6);
    REQUIRE(s.without_inode == 1 && s.missing == 1 && owners[1].inode == 4343 && owners[0].inode == 0);
    take_line(&s, false, v4);
    REQUIRE(s.without_inode == 0 && s.missing == 2 && owners[0].inode == 4242);
    /* One that is found stays found. */
    take_line(&s, false, v4);
    REQUIRE(s.without_inode == 0 && s.missing == 2);
}

static void what_nobody_has_open_has_no_owner(void) {
    struct connection c;
    begin();
    connect_over_loopback(&c);
    ask(0, &c, 0);
    ask(1, &c, 1);
    put16(queries + 2, 1);
    REQUIRE(find_owners(2) == 0);
    require_owner(0, 0, 0, "");
    require_owner(1, 0, getpid(), "the owner");
    disconnect(&c);
}

static void the_call_is_that_of_the_nearest_process_above_that_has_one(void) {
    struct connection c;
    int ready[2];
    char byte;
    begin();
    connect_over_loopback(&c);
    REQUIRE(pipe(ready) == 0);
    pid_t child = fork();
    if (child == 0) {
        if (prctl(PR_SET_NAME, "fifteen letters") != 0 || dup2(c.ends[0], 50) != 50) _exit(1);
        for (int fd = 3; fd < 50; fd++)
            if (fd != ready[1]) close(fd);
        if (write(ready[1], "x", 1) != 1) _exit(1);
        for (;;) pause();
    }
    close(c.ends[0]);
    c.ends[0] = -1;
    REQUIRE(child > 0 && read(ready[0], &byte, 1) == 1);
    ask(0, &c, 0);
    slots[3] = (struct worker_slot){.supervisor = getpid(), .channel = 8};
    slots[4] = (struct worker_slot){.supervisor = child, .channel = 9};
    for (int i = 0; i < 2; i++) {
        REQUIRE(find_owners(1) == 0);
        require_owner(0, 9, child, "fifteen letters");
        /* The next one is looked for where this one was. */
        REQUIRE(expected.pid == child && expected.descriptor == 51);
    }
    slots[4].supervisor = 0;
    REQUIRE(find_owners(1) == 0);
    require_owner(0, 8, child, "fifteen letters");
    slots[3].supervisor = 0;
    REQUIRE(find_owners(1) == 0);
    require_owner(0, 0, child, "fifteen letters");
    REQUIRE(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
    disconnect(&c);
    close(ready[0]);
    close(ready[1]);
}

static void a_search_ends_when_nobody_wants_it_or_after_so_many_descriptors(void) {
    struct connection c;
    begin();
    connect_over_loopback(&c);
    ask(0, &c, 0);
    cancelled = 1;
    REQUIRE(find_owners(1) == 0);
    require_owner(0, 0, 0, "");
    struct file_job job = {.cancelled = &cancelled, .shared = &shared};
    struct search s = {.job = &job, .missing = 1, .descriptors_left = 1};
    REQUIRE(!goes_on(&s));
    cancelled = 0;
    REQUIRE(goes_on(&s));
    s.descriptors_left = 0;
    REQUIRE(!goes_on(&s));
    s.descriptors_left = 1;
    s.missing = 0;
    REQUIRE(!goes_on(&s));
    s.missing = 1;
    s.descriptors_left = 3;
    look_into(&s, getpid()); /* which has more than three open */
    REQUIRE(s.descriptors_left == 0);
    disconnect(&c);
}

static void look_where_nothing_is(int left, int expected_left) {
    struct file_job job = {.cancelled = &cancelled, .shared = &shared};
    struct search s = {.job = &job, .missing = 1, .descriptors_left = left};
    expected.pid = getpid();
    expected.descriptor = 1000;
    look_where_expected(&s);
    REQUIRE(s.descriptors_left == expected_left && expected.descriptor == 1000);
}

static void a_few_descriptors_are_tried_where_the_next_one_is_likely(void) {
    begin();
    look_where_nothing_is(100, 100 - DESCRIPTORS_TRIED);
    look_where_nothing_is(5, 0);
}

static void a_question_that_is_cut_off_or_too_long_is_refused(void) {
    static uint8_t many[(OWNERS_MAX + 1) * OWNER_QUERY_BYTES];
    static uint8_t result_bytes[OWNERS_MAX * OWNER_RECORD_BYTES];
    struct file_job job = {.cancelled = &cancelled, .shared = &shared};
    struct file_request request = {.second = many, .second_length = sizeof many};
    struct file_result result = {.bytes = result_bytes};
    begin();
    REQUIRE(owners_find(&job, &request, &result) == EINVAL && result.length == 0);
    request.second_length = OWNER_QUERY_BYTES + 1;
    REQUIRE(owners_find(&job, &request, &result) == EINVAL);
    request.second_length = OWNERS_MAX * OWNER_QUERY_BYTES;
    REQUIRE(owners_find(&job, &request, &result) == 0 && result.length == sizeof result_bytes);
    REQUIRE(find_owners(0) == 0);
}

/* ---- waits for a processor ---------------------------------------------------------------------------------------- */

static bool wait_reads(const char *text, uint64_t *wait) {
    put_file("7/schedstat", text);
    int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    REQUIRE(fd >= 0);
    bool is_read = read_wait(fd, "7", wait);
    close(fd);
    return is_read;
}

static void the_second_number_is_how_long_a_thread_has_waited(void) {
    uint64_t wait = 1;
    REQUIRE(mkdir(in_root("7"), 0700) == 0);
    REQUIRE(wait_reads("12 18446744073709551614 5\n", &wait) && wait == UINT64_MAX - 1);
    REQUIRE(!wait_reads("", &wait) && !wait_reads("12", &wait) && !wait_reads("none at all", &wait) && wait == UINT64_MAX - 1);
    REQUIRE(unlink(in_root("7/schedstat")) == 0 && !read_wait(AT_FDCWD, in_root("7"), &wait));
}

static void *wait_for_ever(void *ready) {
    if (write(*(int *)ready, "x", 1) != 1) abort();
    for (;;) pause();
}

/* How often a thread is in the answer. */
static int listed(const struct file_result *result, pid_t thread) {
    int count = 0;
    REQUIRE(result->length % WAIT_RECORD_BYTES == 0);
    for (uint32_t at = 0; at < result->length; at += WAIT_RECORD_BYTES) count += get32(answer + at) == (uint32_t)thread;
    return count;
}

static uint32_t list_waits(struct file_result *result) {
    struct file_job job = {.cancelled = &cancelled, .shared = &shared};
    *result = (struct file_result){.bytes = answer};
    return waits_list(&job, result);
}

static int count_threads(pid_t pid) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *directory = opendir(path);
    int count = -2;
    while (directory && readdir(directory)) count++;
    if (directory) closedir(directory);
    return count;
}

static void every_thread_of_the_commands_is_listed_and_none_of_the_runner(void) {
    struct file_result result;
    int ready[2];
    char byte;
    begin();
    REQUIRE(pipe(ready) == 0);
    pid_t child = fork(), worker = child == 0 ? 0 : fork();
    if (child == 0 || worker == 0) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, wait_for_ever, &ready[1]) != 0) abort();
        for (;;) pause();
    }
    for (int i = 0; i < 2; i++) REQUIRE(read(ready[0], &byte, 1) == 1);
    REQUIRE(child > 0 && worker > 0 && count_threads(child) == 2);
    uint32_t with_worker_left_out = 0;
    for (int slot = 0; slot < WORKER_SLOTS; slot += WORKER_SLOTS - 1) {
        slots[slot].supervisor = worker;
        REQUIRE(list_waits(&result) == 0);
        REQUIRE(listed(&result, child) == 1 && listed(&result, worker) == 0 && listed(&result, getpid()) == 0 && listed(&result, 1) == 0);
        with_worker_left_out = result.length;
        slots[slot].supervisor = 0;
    }
    REQUIRE(list_waits(&result) == 0 && listed(&result, worker) == 1 && result.length == with_worker_left_out + 2 * WAIT_RECORD_BYTES);
    cancelled = 1;
    REQUIRE(list_waits(&result) == 0 && result.length == 0);
    result.length = (WAITS_MAX - 1) * WAIT_RECORD_BYTES;
    char name[16];
    snprintf(name, sizeof name, "%d", (int)child);
    add_threads(name, &result); /* it has two, and there is room for one */
    REQUIRE(result.length == WAITS_MAX * WAIT_RECORD_BYTES && answer[result.length] == 0xee);
    for (int i = 0; i < 2; i++) {
        pid_t one = i ? child : worker;
        REQUIRE(kill(one, SIGKILL) == 0 && waitpid(one, NULL, 0) == one);
    }
    close(ready[0]);
    close(ready[1]);
}

int main(void) {
    setvbuf(stdout, NULL, _IONBF, 0);
    snprintf(root, sizeof root, "/tmp/brig-processes-XXXXXX");
    REQUIRE(mkdtemp(root));
    RUN(a_connection_belongs_to_the_process_that_has_it_open);
    RUN(the_tables_of_the_kernel_are_read_row_by_row);
    RUN(what_nobody_has_open_has_no_owner);
    RUN(the_call_is_that_of_the_nearest_process_above_that_has_one);
    RUN(a_search_ends_when_nobody_wants_it_or_after_so_many_descriptors);
    RUN(a_few_descriptors_are_tried_where_the_next_one_is_likely);
    RUN(a_question_that_is_cut_off_or_too_long_is_refused);
    RUN(the_second_number_is_how_long_a_thread_has_waited);
    RUN(every_thread_of_the_commands_is_listed_and_none_of_the_runner);
    return 0;
}
