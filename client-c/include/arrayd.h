/* arrayd.h: the C client of arrayd, an array server.
 *
 * A session is a connection to a server; an array is a handle on elements that live there. Operations are sent and not
 * waited for. A function that makes an array returns at once. An error of the server is reported by the call that asks
 * for the data (or by ad_sync).
 *
 *     ad_session *s;
 *     ad_array *x, *y, *sum;
 *     double result;
 *     if (ad_session_open(NULL, &s) != 0) { fprintf(stderr, "%s\n", ad_error_message()); return 1; }
 *     ad_arange(s, ad_int(0), ad_int(10), ad_int(1), AD_FLOAT64, &x);
 *     ad_multiply(ad_of(x), ad_float(2.0), &y);
 *     ad_sum(ad_of(y), &sum);
 *     ad_download(sum, &result, sizeof result);
 *
 * Conventions: int functions return 0 or a negative AD_E_*; ad_error_message() then tells, per thread, what happened.
 * Out-parameters come last and are untouched on failure. Arrays are immutable handles (their elements are not) and
 * are released with ad_array_release. Every function may be called from any thread; one session may be shared by
 * threads. No function exits, aborts or raises a signal. After the server has gone every call on the session gives
 * AD_E_CONNECTION.
 *
 * Link with pkg-config --cflags --libs arrayd. */
#ifndef ARRAYD_H
#define ARRAYD_H

#include <protocol/base.h>
#include <protocol/rows.h>

#ifdef __cplusplus
extern "C" {
#endif

#define AD_API __attribute__((visibility("default")))

typedef struct ad_session ad_session;
typedef struct ad_array ad_array;

/* ---- errors ---- */
/* The message of the calling thread's last failing call; "" when none failed. Valid until the thread's next failing
 * call. */
AD_API const char *ad_error_message(void);
/* Number and name of the server's operation that the thread's last failure is about; 0 and "": no operation. */
AD_API uint64_t ad_error_operation(const char **name);
/* The fixed text of a status: "out of memory". */
AD_API const char *ad_error_text(int status);
/* The library's version: "1.2.3". */
AD_API const char *ad_version(void);

/* ---- sessions ---- */
/* Connect. url: "unix:/path", "tcp:host:port", "tls:host:port", "embedded:auto", "embedded:cpu" or "embedded:cuda" (a
 * server of this process, gone with it; auto takes the GPU where there is one); NULL: $ARRAYD_URL, else the user's and
 * then the system's well-known socket, else embedded:auto. A socket that may not be opened: AD_E_DENIED.
 * AD_E_URL, AD_E_CONNECTION, AD_E_VERSION, AD_E_DENIED, AD_E_TIMEOUT (10 s for a connection, 70 s for its welcome),
 * AD_E_MEMORY, AD_E_TLS. */
AD_API int ad_session_open(const char *url, ad_session **session);
/* Credentials for a server at "tcp:" or "tls:", and the authorities that its certificate is checked with; NULL: from
 * the environment. */
typedef struct ad_connection {
    const char *token; /* $ARRAYD_TOKEN, the file $ARRAYD_TOKEN_FILE, ~/.config/arrayd/token (unless there is a
                          certificate). It is copied, sent once and forgotten; no message shows it */
    const char *ca;    /* PEM file of authorities: $ARRAYD_CA, else the system's */
    const char *cert;  /* PEM file of the user's certificate: $ARRAYD_CERT, else none */
    const char *key;   /* PEM file of the certificate's key: $ARRAYD_KEY, else in the same file */
    const char *name;  /* what the server's operator sees of this program: $ARRAYD_NAME, else the name of its file */
} ad_connection;
/* Connect as ad_session_open, with these credentials. AD_E_VALUE, AD_E_SYSTEM: a file cannot be read. */
AD_API int ad_session_open_with(const char *url, const ad_connection *connection, ad_session **session);
/* Close: what has been sent is executed, arrays of the session become invalid handles (release them all the same).
 * NULL is allowed. */
AD_API void ad_session_close(ad_session *session);
/* Facts about a session that are known without asking the server. */
typedef struct ad_session_info {
    const char *url, *server, *backend, *device_name; /* valid while the session lives */
    uint64_t session, version, devices, memory;       /* session 0: of a forked process, which has not been told yet */
    uint64_t operations, round_trips, messages_bytes; /* sent; waited for; control bytes sent */
    uint64_t frees;        /* of the operations, those that free arrays: the library chooses when it sends them */
    uint64_t lent, copied; /* arrays made by ad_lend; copies by ad_write_device */
    bool kernels;          /* this session may run kernels of its own */
    const char *name, *principal, *peers; /* the server's name among its peers, "": none; who this client is to it;
                                             names of servers that it pulls arrays from, with commas between */
} ad_session_info;
AD_API void ad_session_get_info(ad_session *session, ad_session_info *info);
/* Send what is buffered, without waiting. Buffered operations are sent within a fraction of a millisecond anyway. */
AD_API int ad_flush(ad_session *session);
/* Cancel what has been sent. Computations that the server has not begun are not executed. An operation under way ends
 * early where the backend can do that. Their results carry AD_E_CANCELLED. Arrays that exist by then, and data that was
 * written into them, stay. Does not wait. AD_E_UNSUPPORTED: the server is too old. */
AD_API int ad_cancel(ad_session *session);
/* Wait until all operations so far are complete; reports the first error that no array carries. */
AD_API int ad_sync(ad_session *session);
/* The server's counters in the order of counter.def; n places, *got of them filled. */
AD_API int ad_stat(ad_session *session, int n, uint64_t *counters, int *got);
/* Set a function that is called from time to time while a call waits for the server. A result other than 0 ends the
 * wait with AD_E_INTERRUPTED and leaves the session usable. Python uses it for Ctrl-C. */
AD_API void ad_session_set_interrupt(ad_session *session, int (*check)(void *), void *argument);

/* ---- scalars and operands ---- */
/* A value given in place of an array. A strong one has a dtype and promotes as a 0-d array. A weak one (dtype -1)
 * promotes as a Python int, float or complex does under NEP 50. */
typedef enum ad_value_kind {
    AD_VALUE_BOOL = 1,
    AD_VALUE_INT,
    AD_VALUE_UINT,
    AD_VALUE_FLOAT,
    AD_VALUE_COMPLEX
} ad_value_kind;
typedef struct ad_value {
    int dtype; /* AD_FLOAT32 ...; -1: weak */
    ad_value_kind kind;
    union {
        int64_t i;
        uint64_t u;
        double f;
        double c[2];
    } as;
} ad_value;
typedef struct ad_in {
    const ad_array *array; /* NULL: value */
    ad_value value;
} ad_in;
/* Without compound literals, which C++ does not have. */
static inline ad_in ad_of(const ad_array *a) {
    ad_in in = {a, {-1, AD_VALUE_INT, {0}}};
    return in;
}
static inline ad_in ad_int(int64_t i) {
    ad_in in = {NULL, {-1, AD_VALUE_INT, {0}}};
    in.value.as.i = i;
    return in;
}
static inline ad_in ad_float(double f) {
    ad_in in = {NULL, {-1, AD_VALUE_FLOAT, {0}}};
    in.value.as.f = f;
    return in;
}
static inline ad_in ad_complex(double re, double im) {
    ad_in in = {NULL, {-1, AD_VALUE_COMPLEX, {0}}};
    in.value.as.c[0] = re;
    in.value.as.c[1] = im;
    return in;
}

/* ---- arrays ---- */
/* Facts about an array that are known without asking the server. A handle is released once for each time that it was
 * made or retained. */
typedef struct ad_array_info {
    ad_session *session;
    const int64_t *shape, *strides; /* ndim places, bytes; valid while the handle lives */
    int64_t count, offset;          /* elements; bytes into the buffer */
    uint64_t buffer;
    uint8_t dtype, ndim, device;
    bool contiguous, f_contiguous;
    bool writable; /* false: another user has published it, or it was lent read-only */
    void *lent;    /* address of the buffer in this process, which has lent it (ad_lend); NULL: the server has it */
} ad_array_info;
AD_API void ad_array_get_info(const ad_array *a, ad_array_info *info);
AD_API ad_array *ad_array_retain(ad_array *a);
AD_API void ad_array_release(ad_array *a); /* NULL is allowed; never fails; the last handle frees the elements */

/* New arrays. shape may be NULL for ndim 0. AD_E_VALUE, AD_E_TYPE, AD_E_OVERFLOW, AD_E_MEMORY (of this process). */
AD_API int ad_zeros(ad_session *s, int dtype, int ndim, const int64_t *shape, ad_array **out);
AD_API int ad_empty(ad_session *s, int dtype, int ndim, const int64_t *shape,
                    ad_array **out); /* elements have any values */
AD_API int ad_full(ad_session *s, int dtype, int ndim, const int64_t *shape, ad_in value, ad_array **out);
AD_API int ad_arange(ad_session *s, ad_in start, ad_in stop, ad_in step, int dtype, ad_array **out);
/* From host memory: size bytes, row-major, copied before the call returns. AD_E_VALUE when size is wrong. */
AD_API int ad_upload(ad_session *s, int dtype, int ndim, const int64_t *shape, const void *data, size_t size,
                     ad_array **out);
/* To host memory, row-major; waits. size must be count * itemsize. */
AD_API int ad_download(const ad_array *a, void *data, size_t size);
/* Overwrite a contiguous array's elements from host memory. */
AD_API int ad_write(const ad_array *a, const void *data, size_t size);

/* ---- devices ---- */
/* Device n of the session's server; waits. AD_E_VALUE when there is none. */
typedef struct ad_device_facts {
    uint64_t memory, free; /* bytes: in all, not in use by anybody */
    int major, minor;      /* compute capability; 0: none */
    int multiprocessors;   /* or processors */
    uint64_t peers;        /* bit n: it reaches the memory of device n */
    int runtime, driver;   /* versions of CUDA, 1000 * major + 10 * minor; 0: none */
} ad_device_facts;
AD_API int ad_device_get_facts(ad_session *s, int device, ad_device_facts *facts);
/* The session's memory on a device. AD_POOL_TRIM gives back what no array needs; AD_POOL_LIMIT sets the limit to value
 * (0: none). Waits. */
typedef struct ad_pool_facts {
    uint64_t used, total, free_blocks, limit; /* bytes in arrays of the session; taken from the device; -; 0: none */
} ad_pool_facts;
typedef enum ad_pool_action { AD_POOL_LOOK, AD_POOL_TRIM, AD_POOL_LIMIT } ad_pool_action;
AD_API int ad_pool_ask(ad_session *s, int device, ad_pool_action action, uint64_t value, ad_pool_facts *facts);

/* ---- streams and events ----
 * Operations of one session take effect in the order in which they were called, on whatever streams; those that do not
 * touch the same arrays may overlap when their streams differ. A stream is a number: 0 to 63 are the default streams of
 * the devices of those numbers, others are opened. Calls of a thread run on the stream that the thread has chosen
 * (of one session at a time; at first 0). New arrays lie on that stream's device. */
#define AD_DEFAULT_STREAMS 64
/* priority: 0 usual, 1 before others. */
AD_API int ad_stream_open(ad_session *s, int device, int priority, uint64_t *stream);
AD_API int ad_stream_drop(ad_session *s, uint64_t stream); /* what is on it is executed */
AD_API int ad_stream_use(ad_session *s, uint64_t stream);  /* sends nothing */
AD_API uint64_t ad_stream_current(const ad_session *s);
AD_API int ad_stream_wait(ad_session *s, uint64_t stream); /* returns when all that it holds is complete */
AD_API int ad_stream_done(ad_session *s, uint64_t stream, bool *done);
/* Let what the stream gets from now on wait for the event. */
AD_API int ad_stream_follow(ad_session *s, uint64_t stream, uint64_t event);
/* Record an event on a stream. *event: 0 for a new one, else it is recorded again. timed: ad_event_elapsed may be asked
 * for it. */
AD_API int ad_event_record(ad_session *s, uint64_t stream, bool timed, uint64_t *event);
AD_API int ad_event_drop(ad_session *s, uint64_t event);
AD_API int ad_event_wait(ad_session *s, uint64_t event);
AD_API int ad_event_done(ad_session *s, uint64_t event, bool *done);
AD_API int ad_event_elapsed(ad_session *s, uint64_t from, uint64_t to, double *milliseconds); /* waits for both */

/* ---- graphs ----
 * A graph keeps operations, and launches of kernels, that a thread calls, and sends them at each launch on the stream
 * that the calling thread uses then. They write the same arrays at each launch. An array that they make is there from
 * the beginning, with any contents. A graph keeps all memory that its operations use until it is released. */
typedef struct ad_graph ad_graph;
/* Begin a graph, without operations. AD_E_MEMORY. */
AD_API int ad_graph_new(ad_session *s, ad_graph **graph);
/* What the calling thread calls from now on is kept behind the graph's other operations, and not executed; NULL: it is
 * executed again. AD_E_DEVICE for what waits for the server meanwhile, AD_E_UNSUPPORTED for random numbers. */
AD_API void ad_graph_record(ad_graph *graph);
AD_API size_t ad_graph_size(const ad_graph *graph); /* how many operations it has */
/* Describe operation `i` as $ARRAYD_TRACE does: its name, then what it writes and reads. The text is cut to `size`
 * bytes with their NUL. AD_E_VALUE: the graph has no such operation. AD_E_MEMORY. */
AD_API int ad_graph_text(ad_graph *graph, size_t i, size_t size, char *text);
/* Execute n of its operations, from the first on. AD_E_VALUE: it has not as many. AD_E_DEVICE: the thread records. */
AD_API int ad_graph_launch(ad_graph *graph, size_t first, size_t n);
AD_API void ad_graph_release(ad_graph *graph); /* NULL is allowed */

/* ---- host memory that the server shares ----
 * Over a Unix socket, large arrays travel through memory that both ends have mapped. Uploads from such memory, and
 * ad_download_host, copy nothing on this side. It stays valid when the session ends. */
typedef struct ad_host ad_host;
/* Allocate such memory. AD_E_UNSUPPORTED: the session is remote, the server refuses, or there is no room. */
AD_API int ad_host_alloc(ad_session *s, size_t size, ad_host **host);
AD_API void *ad_host_data(const ad_host *host);
AD_API void ad_host_release(ad_host *host); /* NULL is allowed */
/* Download an array's elements, row-major, into such memory; waits. AD_E_UNSUPPORTED as above, and for small arrays. */
AD_API int ad_download_host(const ad_array *a, ad_host **host);
/* Count the free blocks of that memory, and its bytes in all. */
AD_API void ad_host_count(ad_session *s, uint64_t *free_blocks, uint64_t *bytes);
/* Unmap such memory that is not in use. */
AD_API int ad_host_trim(ad_session *s);
/* Set a function that is called now and then during a transfer of more than a GiB. The thread that asked for the
 * transfer calls it, and with done == total at its end. */
AD_API void ad_session_set_progress(ad_session *s,
                                    void (*progress)(void *argument, uint64_t done, uint64_t total, bool up),
                                    void *argument);

/* ---- kernels of the program's own ----
 * CUDA C++ that the server compiles and runs, where the session may (ad_session_info.kernels): a module is a source,
 * its kernels are known by the names of extern "C" functions, or by the name expressions given when it is built, such
 * as "scale<float>". */
typedef struct ad_module ad_module;
/* Compile a source of size bytes; waits. *log, unless log is NULL: what the compiler said, to be freed with free();
 * set, too, when the source does not compile (AD_E_COMPILE). AD_E_DENIED, AD_E_VALUE (an option that is not allowed),
 * AD_E_LIMIT, AD_E_UNSUPPORTED. */
AD_API int ad_module_build(ad_session *s, const char *source, size_t size, int noptions, const char *const *options,
                           int nnames, const char *const *names, ad_module **module, char **log);
AD_API ad_module *ad_module_retain(ad_module *m);
AD_API void ad_module_release(ad_module *m); /* NULL is allowed; what has been launched runs to its end */
/* A kernel's parameter: an array, which stands for the address of its first element, or a value: size bytes at data.
 * With both it is a structure, which begins with the array's address in place of the first 8 bytes at data; the
 * kernel's own may be shorter. */
typedef struct ad_parameter {
    const ad_array *array; /* NULL: a value */
    bool written;          /* the kernel may write the array's buffer */
    const void *data;
    size_t size;
} ad_parameter;
typedef struct ad_grid {
    uint32_t grid[3], block[3]; /* blocks, threads of a block: x, y, z */
    uint32_t shared;            /* bytes of dynamic shared memory */
} ad_grid;
/* Launch a kernel on the thread's stream, without waiting. A launch that cannot be (no such kernel, too many threads,
 * parameters of other sizes) is reported by the next call that waits. */
AD_API int ad_launch(ad_module *m, const char *kernel, const ad_grid *grid, int n, const ad_parameter *parameters);
/* Attributes of a kernel, as cudaFuncGetAttributes has them; on a server without a GPU 0 where an attribute has no
 * meaning. */
typedef struct ad_kernel_facts {
    int64_t max_threads_per_block, shared_size, const_size, local_size, registers, ptx_version, binary_version,
        cache_mode_ca, max_dynamic_shared_size, preferred_shared_carveout;
} ad_kernel_facts;
AD_API int ad_kernel_get_facts(ad_module *m, const char *kernel, ad_kernel_facts *facts); /* waits */
/* Set the limit of dynamic shared memory in bytes, and the carveout in percent; negative: leave it as it is. */
AD_API int ad_kernel_set(ad_module *m, const char *kernel, int64_t max_dynamic_shared, int64_t carveout);
/* Set whether a kernel's blocks run all at once, so that they may wait for each other (cooperative groups' grid_group).
 * A launch of more blocks than can run at once is then reported as one that cannot be. */
AD_API int ad_kernel_set_cooperative(ad_module *m, const char *kernel, bool cooperative);
/* Get a variable of a module (__device__ or __constant__) as an array of uint8 that is its memory; waits. */
AD_API int ad_module_get_global(ad_module *m, const char *name, ad_array **out);

/* ---- arrays for other processes ----
 * Processes of one user that use the same server may hold the same elements; nothing is copied. A process that is
 * handed an array has a snapshot of it. It does not see what others write: a holder that writes first gets a copy. */
/* A permission to attach an array, to be sent to another process. A process that knows it needs nothing else. */
typedef struct ad_capability {
    uint64_t half[2], server; /* server: the server that has the array */
} ad_capability;
/* Make a capability; waits. uses: how often it may be attached, 0: any number of times. lease: seconds after which it
 * expires, 0: never. It expires linger seconds after the session has ended. The elements exist as long as it is valid.
 */
AD_API int ad_capability_make(const ad_array *a, uint64_t uses, double lease, double linger, ad_capability *capability);
/* The layout of an array's elements in its buffer, as ad_array_get_info gives it. */
typedef struct ad_layout {
    int dtype, ndim;
    int64_t offset;
    const int64_t *shape, *strides;
} ad_layout;
/* Attach an array by a capability; waits. Operations that were called for the array before the capability was made are
 * seen. AD_E_STALE: it has expired, or is no capability. */
AD_API int ad_capability_attach(ad_session *s, const ad_capability *capability, const ad_layout *layout,
                                ad_array **out);
AD_API int ad_capability_revoke(ad_session *s, const ad_capability *capability);
/* Get an array of another server by a capability that was made there; waits. The session's server fetches the elements
 * from that one itself. server, principal: as ad_session_get_info says there, `name` and `principal`. AD_E_NAME: that
 * server is no peer of the session's; AD_E_STALE; AD_E_DENIED; AD_E_LIMIT; AD_E_CONNECTION: it is not to be reached. */
AD_API int ad_capability_pull(ad_session *s, const ad_capability *capability, const char *server, const char *principal,
                              const ad_layout *layout, ad_array **out);
/* Publish an array, which must be all of its buffer, by a name; waits. The array stays when the session ends. A process
 * that attaches it gets a snapshot that cannot be written. writable: all write into the same elements. grant:
 * principals besides the user that may attach it ("uid:1000,uid:1001"; "*": all). NULL: none. A name that the user has
 * published before is given to this array. */
AD_API int ad_publish(const ad_array *a, const char *name, bool writable, const char *grant);
/* Attach a published array; waits. principal: the one that has published it; NULL: the user. AD_E_NAME: there is no
 * such name. */
AD_API int ad_attach(ad_session *s, const char *principal, const char *name, ad_array **out);
AD_API int ad_unpublish(ad_session *s, const char *name); /* attached arrays stay */
/* List the arrays that may be attached, a line each. Tabs stand between name, principal, 1 if it may be written, dtype,
 * bytes, and dimensions with commas between. *text is to be freed. */
AD_API int ad_names(ad_session *s, char **text);
/* Tell whether this process can use the session. After a fork the child goes on with the parent's sessions that have
 * arrays, each a snapshot at the fork. false: the session is the parent's only. It is remote, or the server was not
 * there. Streams and events are always the parent's. */
AD_API bool ad_session_usable(const ad_session *s);
/* Register this library's handlers for forks. To be called before the program registers handlers that want to call this
 * library. */
AD_API void ad_watch_forks(void);

/* ---- memory of arrays in this process ----
 * Over a Unix socket a process may have the memory of an array itself, and read and write it without the server: as
 * memory of its own where the server computes on the CPU, as memory of the GPU where it uses that. The server sees what
 * is written there, and this process what the server writes. Calls of this process after it has written are ordered
 * behind that. Before it looks at what the server writes it must wait (ad_sync). The memory of a read-only array can
 * only be read. It stays as it is while the lease lasts: who writes to the elements by another array, in whatever
 * session, gets a copy of them. */
/* Make an array read-only, and the views that are made of it from now on. Other arrays of its elements stay as they
 * are. */
AD_API void ad_freeze(ad_array *a);
typedef struct ad_lease ad_lease;
/* Get a lease of the array's memory for this process; waits until all that was called for it before is complete. The
 * memory exists, and counts for the user, until ad_export_close or the end of this process. That holds also when the
 * session or the array are gone. The array moves once for that; sessions that get it from then on share its memory.
 * AD_E_UNSUPPORTED: the session is remote, or there are no elements; AD_E_VALUE: it is another user's;
 * AD_E_DENIED, AD_E_LIMIT, AD_E_MEMORY, and failures of operations on the array. */
AD_API int ad_export(const ad_array *a, ad_lease **lease);
/* Map the memory, once. *data: address of the array's first element, on the host or on the GPU; strides are the
 * array's. stream: for a GPU's memory the CUstream (NULL: the legacy default stream) that is to use it, which is made
 * to wait for the server; else NULL. The CUDA driver is loaded only here, and the device's primary context used.
 * AD_E_UNSUPPORTED: there is no driver, or the process does not see that GPU; AD_E_DEVICE, AD_E_MEMORY. */
AD_API int ad_import(ad_lease *lease, void *stream, void **data);
/* Facts about a lease that are known without asking the server; the id is valid while the lease is. */
typedef struct ad_lease_info {
    void *base;     /* address of the memory, once it is mapped; else NULL */
    uint64_t size;  /* bytes; those beyond the array's buffer are zero */
    int64_t offset; /* offset of the array in the memory */
    int fd;     /* descriptor of the memory until it is mapped, then -1; it is the lease's: duplicate it. -1: there is a
                   handle */
    bool cuda;  /* a GPU's memory: fd is a handle for cuMemImportFromShareableHandle; else a memfd */
    int device; /* number of that GPU in this process, once the memory is mapped; else -1 */
    const char *id; /* id of that GPU, "GPU-..." as nvidia-smi has it; "" on a CPU */
} ad_lease_info;
AD_API void ad_export_get_info(const ad_lease *lease, ad_lease_info *info);
/* Unmap the memory, after waiting for what this process does with it on the GPU. NULL is allowed. In a fork's child the
 * lease is its parent's, and ends with that. */
AD_API void ad_export_close(ad_lease *lease);
/* Overwrite an array's elements as ad_write does, and wait. The data is memory of this process on the GPU that has the
 * array (device: its number here, or -1). The copy comes after all that this process has begun on that GPU. AD_E_VALUE
 * also when it is another GPU, AD_E_UNSUPPORTED where the server uses none, or as ad_import. */
AD_API int ad_write_device(const ad_array *a, int device, const void *data, size_t size);
/* Memory that this process has on a GPU. */
typedef struct ad_loan {
    void *data;    /* the first element */
    int device;    /* the GPU's number in this process; -1: whichever the memory is of */
    bool readonly; /* the server is not to write it */
    void *stream;  /* CUstream on which it was made, and which is waited for; NULL: all that this process has begun */
    void (*release)(void *argument); /* called once, by any thread, when the server uses the memory no more */
    void *argument;
} ad_loan;
/* Make an array that is this memory, and wait. Nothing is copied, and both sides see what the other writes. layout: its
 * offset is not used. The memory must stay as it is until release is called. That is some time after the array has been
 * released, or the session or the server has ended. When this fails release is not called. Calls for the array are
 * ordered behind the work that the stream held. Before this process looks at what the server writes, or writes what the
 * server may still use, it must wait (ad_sync). Other processes that get the array, and a fork's child, have a copy.
 * The array is lost with the server's worker; its bytes count for the user. AD_E_UNSUPPORTED: the session is remote,
 * the server uses no GPU, there are no elements, or the memory's allocator lets no other process have it (cudaMalloc
 * does, and the virtual-memory API where it was told so); AD_E_VALUE: the server uses another GPU; AD_E_EXTENT:
 * elements are not aligned; AD_E_DENIED, AD_E_LIMIT, AD_E_MEMORY, AD_E_DEVICE, AD_E_SYSTEM. */
AD_API int ad_lend(ad_session *s, const ad_loan *loan, const ad_layout *layout, ad_array **out);
/* Wait until what was called on the calling thread's stream is complete. Failures of operations are reported by the
 * calls that follow, as ever. */
AD_API int ad_settle(ad_session *s);
/* Get a handle of the array's memory for a program that opens it by cudaIpcOpenMemHandle or cuIpcOpenMemHandle. *handle
 * gets the 64 bytes of a cudaIpcMemHandle_t. The lease is as ad_export's, but has no descriptor and is not to be
 * imported. The array begins ad_lease_info.offset bytes behind the address that opening gives. That program must close
 * the memory before the lease is closed. The lease lasts as long as this process, and the memory as long as the
 * server's worker. CUDA does not define what becomes of a mapping after that. AD_E_UNSUPPORTED: the server uses no GPU;
 * AD_E_VALUE also when it is read-only, or a lease of the other kind stands; and those of ad_export. */
AD_API int ad_ipc_handle(const ad_array *a, void *handle, ad_lease **lease);
/* Add a reference, which ad_export_close takes back: the last one closes the lease. */
AD_API ad_lease *ad_export_retain(ad_lease *lease);

/* ---- DLPack ----
 * Arrays for, and of, other libraries of this process that know DLPack 1 (LibTorch, ONNX Runtime, NumPy ...), whose
 * header <dlpack/dlpack.h> has this structure. */
struct DLManagedTensorVersioned;
/* Make a tensor that is the array's memory, as ad_export and ad_import give it. Nothing is copied. lease: a mapped
 * lease of an array of the same buffer, of which the tensor takes a reference. NULL: one is got. stream: as of
 * ad_import. The tensor needs neither array nor session; call its deleter, on any thread, when it is not used any more.
 * Its read-only flag is set when the array cannot be written. AD_E_VALUE: strides are no multiples of an element; and
 * those of ad_export and ad_import. */
AD_API int ad_to_dlpack(const ad_array *a, ad_lease *lease, void *stream, struct DLManagedTensorVersioned **out);
/* Make an array of a tensor. A tensor in memory of the GPU that the server uses becomes the array, as by ad_lend.
 * stream is the loan's. A tensor whose read-only flag is set is lent read-only. One in the host's memory is copied.
 * When this succeeds the tensor is the array's. Its deleter is called once, on any thread, when it is not needed any
 * more; for a copied one before this returns. release, unless it is NULL, is called with argument instead of the
 * deleter. The structure itself is read only before this returns. When this fails the tensor is still the caller's.
 * AD_E_TYPE: arrayd lacks the type; AD_E_UNSUPPORTED: another version or another kind of device; AD_E_VALUE, and those
 * of ad_lend.
 */
AD_API int ad_from_dlpack(ad_session *s, struct DLManagedTensorVersioned *tensor, void *stream,
                          void (*release)(void *argument), void *argument, ad_array **out);

/* ---- views: nothing is sent ---- */
/* Make any view whose elements lie within those of a's buffer (checked). offset: bytes from the buffer's beginning, as
 * in ad_array_info. AD_E_EXTENT, AD_E_VALUE, AD_E_TYPE. */
AD_API int ad_view(const ad_array *a, int dtype, int64_t offset, int ndim, const int64_t *shape, const int64_t *strides,
                   ad_array **out);
/* a[start:stop:step] along an axis, as Python slices with every value given (step not 0, negative allowed): negative
 * start and stop count from the end, and what is out of range is clipped (to go back to the beginning:
 * stop INT64_MIN). */
AD_API int ad_slice(const ad_array *a, int axis, int64_t start, int64_t stop, int64_t step, ad_array **out);
/* AD_E_UNSUPPORTED: the shape needs a copy. */
AD_API int ad_reshape_view(const ad_array *a, int ndim, const int64_t *shape, ad_array **out);
AD_API int ad_transpose(const ad_array *a, const int *axes /* NULL: reversed */, ad_array **out);
AD_API int ad_broadcast_to(const ad_array *a, int ndim, const int64_t *shape, ad_array **out);

/* ---- operations ---- */
/* Options of an operation; begin with AD_OPTIONS_INIT. */
typedef struct ad_options {
    int dtype;             /* loop type asked for; -1: by promotion */
    int casting;           /* ad_casting of protocol/infer.h: how inputs and outputs may be cast; default same_kind */
    const ad_array *where; /* bool mask; NULL: everywhere. Without out=, elements where it is false are unspecified */
    ad_array *out[AD_MAX_OUT]; /* written instead of new arrays; a reference to each is returned in outs */
    /* reductions */
    uint32_t axes; /* bit mask of axes; 0 with `all` unset: none is reduced */
    bool all;      /* every axis */
    bool keepdims;
    double ddof;
    const ad_value *initial;
} ad_options;
#define AD_OPTIONS_INIT \
    { -1, 3, NULL, {NULL}, 0, true, false, 0, NULL }

/* Call a ufunc by its id with nin inputs; at least one is an array, or session is given. outs has nout places.
 * AD_E_TYPE, AD_E_VALUE with NumPy's wording; errors of execution come with the data. */
AD_API int ad_ufunc_call(ad_session *s, int ufunc, const ad_in *in, const ad_options *options, ad_array **outs);
AD_API int ad_reduce_call(int reduction, ad_in in, const ad_options *options, ad_array **out);
/* Make a library call by its id (call.def). out: NULL to have outputs made, or arrays to be written (iota, bincount and
 * rows of kind UPDATE need them: their outputs' sizes are the caller's, or they change them). For ASK calls out is
 * ignored. They wait, and values (8 places, or NULL) takes the integers of the reply. dtype: the loop's. -1: the first
 * array input's. */
AD_API int ad_call_call(ad_session *s, int call, int dtype, int nin, const ad_in *in, int nparam, const ad_value *param,
                        ad_array *const *out, ad_array **outs, int64_t *values);
/* Make a library call whose first output has the loop's type and a shape that the caller chooses (random, curand). out
 * has a place for each output. */
AD_API int ad_call_shaped(ad_session *s, int call, int dtype, int nin, const ad_in *in, int nparam,
                          const ad_value *param, int ndim, const int64_t *shape, ad_array **out);
/* Cast elements into an existing array: out[...] = in, broadcast. */
AD_API int ad_copy_into(ad_array *out, ad_in in, int casting);
AD_API int ad_astype(const ad_array *a, int dtype, ad_array **out);

/* One function for every row: int ad_add(ad_in x, ad_in y, ad_array **out), int ad_sin(ad_in x, ad_array **out),
 * int ad_modf(ad_in x, ad_array **out0, ad_array **out1), int ad_sum(ad_in x, ad_array **out) over all axes ... */
#define AD_UFUNC(id, name, nin, nout, rule, domain, cost, traits, test, doc, ...) AD_PROTOTYPE_##nin##_##nout(name);
#define AD_PROTOTYPE_1_1(name) AD_API int ad_##name(ad_in x, ad_array **out)
#define AD_PROTOTYPE_2_1(name) AD_API int ad_##name(ad_in x, ad_in y, ad_array **out)
#define AD_PROTOTYPE_3_1(name) AD_API int ad_##name(ad_in x, ad_in y, ad_in z, ad_array **out)
#define AD_PROTOTYPE_1_2(name) AD_API int ad_##name(ad_in x, ad_array **out0, ad_array **out1)
#define AD_PROTOTYPE_2_2(name) AD_API int ad_##name(ad_in x, ad_in y, ad_array **out0, ad_array **out1)
#include <protocol/ufunc.def>
#undef AD_UFUNC
#define AD_REDUCTION(id, name, ...) AD_API int ad_##name(ad_in x, ad_array **out);
#include <protocol/reduction.def>
#undef AD_REDUCTION

#ifdef __cplusplus
}
#endif
#endif
