/* The director: a process that starts the server and its clients, breaks connections, and looks at how all ends. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/sim/loop.h"
#include "tests/sim/director.h"

#define SOCKET "/sim/arrayd.sock"
#define SERVER_USER 990
#define START_MOST 5000000000LL
#define MOST_BREAKS 12          /* of connections: fewer than a client tries to connect */
#define WAIT_MOST 70000000000LL /* longer than a session waits for its client */
#define STANDARD_FILES 3
#define END_MOST 60000000000LL

static sim_process *start_server(void) {
    char backend[4096], memory[32];
    char *host = sim_planned.spill ? "--host-memory=64M" : "--host-memory=0",
         *arguments[] = {"arrayd",
                         "--socket=" SOCKET,
                         "--socket-mode=0666",
                         "--backend=cpu",
                         "--threads=1",
                         "--log-level=debug",
                         "--kernels-cache=/proc/none",
                         "--slab=1M",
                         "--principals=" SIM_PRINCIPALS,
                         sim_planned.moves ? "--kernels=all" : "--kernels=none",
                         host,
                         memory,
                         backend,
                         NULL};
    sim_file *log = sim_log_file(), *files[3] = {log, log, log};
    int n = 0;
    snprintf(memory, sizeof memory, "--memory=%dM", !sim_planned.spill ? 0 : sim_planned.bursts ? 32 : 16);
    snprintf(backend, sizeof backend, "--backend-path=%s", sim_backend_folder());
    while (arguments[n]) n++;
    sim_process *p = sim_start_process("arrayd", SERVER_USER, n, arguments, 3, files);
    sim_file_drop(log);
    return p;
}

static sim_process *start_client(unsigned user) {
    char operations[32], *arguments[] = {"client", "unix:" SOCKET, operations, NULL};
    sim_file *log = sim_log_file(), *files[3] = {log, log, log};
    snprintf(operations, sizeof operations, "%u", sim_planned.operations);
    sim_process *p = sim_start_process("client", user, 3, arguments, 3, files);
    sim_file_drop(log);
    return p;
}

static bool is_listening(sim_task *t, void *path) {
    (void)t;
    return sim_is_listening(path);
}

static bool has_no_client(sim_task *t, void *unused) {
    (void)t, (void)unused;
    for (const sim_process *p = sim_processes; p; p = p->next)
        if (!strcmp(p->program, "client")) return false;
    return true;
}

static bool is_gone(sim_task *t, void *number) {
    (void)t;
    return !sim_find_process(*(const int *)number);
}

static void break_a_connection(void) {
    sim_file *list[64];
    const int n = sim_sockets_of_clients(list, 64);
    if (n) sim_socket_break(list[sim_draw_below((uint64_t)n)]);
}

/* Wait for the clients. Meanwhile connections break, and the server is upgraded. */
static void attend_clients(sim_process *server) {
    unsigned upgrades = sim_planned.upgrades, breaks = MOST_BREAKS;
    const int64_t most = 400000LL << sim_draw_below(8); /* a run without delays lasts some ms */
    while (!sim_wait("clients", has_no_client, NULL, sim_time + most / 40 + (int64_t)sim_draw_below((uint64_t)most))) {
        if (breaks && sim_draw_case(sim_planned.drops)) {
            breaks--;
            break_a_connection();
        }
        if (!upgrades) continue;
        upgrades--;
        sim_send_signal(server, SIGUSR2);
    }
}

static void stop_server(sim_process *server) {
    int number = server->number;
    sim_send_signal(server, SIGTERM);
    if (!sim_wait("the server's end", is_gone, &number, sim_time + END_MOST)) sim_fail("the server does not end");
    else if (server->signal || server->status)
        sim_fail("the server ended with status %d, signal %d", server->status, server->signal);
}

/* ---- what is left when all clients have gone ---- */

/* Count the descriptors of a kind that a program's processes have. */
static int count_files(const char *program, sim_kind kind) {
    int n = 0;
    for (const sim_process *p = sim_processes; p; p = p->next)
        for (int fd = 0; fd < SIM_DESCRIPTORS && !strcmp(p->program, program); fd++)
            n += p->file[fd] && p->file[fd]->kind == kind;
    return n;
}

static int count_processes(const char *program) {
    int n = 0;
    for (const sim_process *p = sim_processes; p; p = p->next) n += !strcmp(p->program, program);
    return n;
}

static void check_count(const char *program, sim_kind kind, const char *what, int least, int most) {
    const int n = count_files(program, kind);
    if (n < least || n > most) sim_fail("%s has %d %s at the end, expected %d to %d", program, n, what, least, most);
}

/* Check that no descriptor is left over. Arrayd has the lock of its listening socket. Each worker has a socket to the
 * front, its journal, and slabs of what outlives its sessions because it was given to others. */
static void check_descriptors(void) {
    unsigned deaths;
    do { /* a session waits for its client anew after its worker's death */
        deaths = sim_worker_deaths;
        sim_wait("sessions that wait for their clients", NULL, NULL, sim_time + WAIT_MOST);
    } while (deaths != sim_worker_deaths);
    const int workers = count_processes("arrayd-worker"), gifts = (int)sim_shared_count();
    check_count("arrayd", SIM_SOCKET, "sockets", workers, workers);
    check_count("arrayd", SIM_LISTENER, "listening sockets", 2, 2);
    check_count("arrayd", SIM_PID, "processes", 0, 0);
    check_count("arrayd-worker", SIM_SOCKET, "sockets", workers, workers);
    check_count("arrayd-worker", SIM_COUNTER, "counters", workers, workers);
    check_count("arrayd-worker", SIM_TIMER, "timers", workers, workers);
    check_count("arrayd-worker", SIM_REAL, "files", STANDARD_FILES * workers, (STANDARD_FILES + 1) * workers + gifts);
    check_count("arrayd", SIM_REAL, "files", STANDARD_FILES, STANDARD_FILES + (workers ? 2 * workers : 1) + gifts);
}

static void *direct_run(void *unused) {
    (void)unused;
    sim_process *server = start_server();
    if (!sim_wait("the server", is_listening, SOCKET, sim_time + START_MOST)) {
        sim_fail("the server does not listen");
        return NULL;
    }
    for (unsigned i = 0; i < sim_planned.clients; i++) start_client(i ? SIM_OTHER : SIM_BYSTANDER);
    attend_clients(server);
    check_descriptors();
    stop_server(server);
    sim_exit_process(0);
}

void sim_start_director(void) {
    sim_process *p = calloc(1, sizeof *p);
    p->program = "director";
    p->heap = sim_heap_open();
    p->next = sim_processes;
    sim_processes = p;
    sim_add_task(p, direct_run, NULL);
}
