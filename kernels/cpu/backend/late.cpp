/* The cpu backend as an asynchronous one, for tests of whoever uses a backend. With ARRAYD_CPU_LATE=1 in the
 * environment operations are only queued. A thread for each stream executes them later, now and then after a while.
 * Mistakes that a GPU would punish go wrong here, too, and the sanitizers see them. Examples are memory that is used
 * again too early, a stream that does not wait for another, and a result that is read before it is there. */
#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <stdlib.h>
#include <string.h>
#include <string>
#include <thread>
#include <time.h>
#include <vector>

#include "kernels/cpu/fuse/chain.h"
#include "kernels/cpu/backend/late.h"
#include "kernels/cpu/backend/module.h"
#include "kernels/launch.h"
#include "protocol/infer.h"
#include "protocol/rows_request.h"

namespace {

const ad_backend *now; /* the one that does the work */

/* ---- streams: a queue, and a thread that works it off ---- */

/* Progress of a stream. It outlives the stream where events still ask. */
struct progress {
    std::mutex lock;
    std::condition_variable moved;
    uint64_t queued = 0, done = 0;

    bool reached(uint64_t target) {
        std::lock_guard<std::mutex> hold(lock);
        return done >= target;
    }
    void wait(uint64_t target) {
        std::unique_lock<std::mutex> hold(lock);
        moved.wait(hold, [&] { return done >= target; });
    }
};

std::mutex one_at_a_time; /* the real backend takes calls from one thread at a time */

struct late_stream {
    ad_stream *inner;
    std::shared_ptr<progress> at = std::make_shared<progress>();
    std::deque<std::function<void()>> queue;
    std::condition_variable work;
    bool stop = false;
    uint32_t random = 12345;
    std::thread thread;

    uint64_t push(std::function<void()> f) {
        std::lock_guard<std::mutex> hold(at->lock);
        queue.push_back(std::move(f));
        work.notify_one();
        return ++at->queued;
    }
    /* Wait. One wait in eight takes up to a tenth of a millisecond longer. */
    void dawdle() {
        random = random * 1664525u + 1013904223u;
        if (random >> 29) return;
        timespec pause = {0, long(random >> 8 & 0xffff)};
        nanosleep(&pause, nullptr);
    }
    void work_off() {
        std::unique_lock<std::mutex> hold(at->lock);
        for (;;) {
            work.wait(hold, [&] { return stop || !queue.empty(); });
            if (queue.empty()) return;
            std::function<void()> f = std::move(queue.front());
            queue.pop_front();
            hold.unlock();
            dawdle();
            f();
            f = nullptr;
            hold.lock();
            at->done++;
            at->moved.notify_all();
        }
    }
};

late_stream *own(ad_stream *s) { return reinterpret_cast<late_stream *>(s); }

int stream_open(ad_device *device, int priority, ad_stream **out, ad_fault *fault) {
    ad_stream *inner;
    int status = now->stream_open(device, priority, &inner, fault);
    if (status) return status;
    late_stream *s = new late_stream;
    s->inner = inner;
    s->thread = std::thread([s] { s->work_off(); });
    *out = reinterpret_cast<ad_stream *>(s);
    return 0;
}

void stream_close(ad_stream *stream) {
    late_stream *s = own(stream);
    {
        std::lock_guard<std::mutex> hold(s->at->lock);
        s->stop = true;
        s->work.notify_one();
    }
    s->thread.join();
    now->stream_close(s->inner);
    delete s;
}

/* A kernel has done something after which the process is not to be trusted: as on a GPU, whoever asks next hears it. */
ad_fault lost;
std::atomic<bool> is_lost{false};

int check_lost(ad_fault *fault) { return is_lost ? ad__fault(fault, AD_E_DEVICE_LOST, "%s", lost.text) : 0; }

int stream_wait(ad_stream *stream, ad_fault *fault) {
    late_stream *s = own(stream);
    uint64_t target;
    {
        std::lock_guard<std::mutex> hold(s->at->lock);
        target = s->at->queued;
    }
    s->at->wait(target);
    return is_lost ? check_lost(fault) : now->stream_wait(s->inner, fault);
}

/* ---- events ---- */

struct late_event {
    ad_event *inner;
    std::shared_ptr<progress> at;
    uint64_t target = 0;
};

late_event *own(ad_event *e) { return reinterpret_cast<late_event *>(e); }

int event_open(ad_device *device, bool timed, ad_event **out, ad_fault *fault) {
    late_event *e = new late_event;
    int status = now->event_open(device, timed, &e->inner, fault);
    *out = reinterpret_cast<ad_event *>(e);
    if (status) delete e;
    return status;
}

int event_done(ad_event *event, ad_fault *fault) {
    late_event *e = own(event);
    if (is_lost) return check_lost(fault);
    return e->at && !e->at->reached(e->target) ? 0 : now->event_done(e->inner, fault);
}

void event_close(ad_event *event) {
    late_event *e = own(event);
    if (e->at) e->at->wait(e->target);
    now->event_close(e->inner);
    delete e;
}

int event_record(ad_event *event, ad_stream *stream, ad_fault *) {
    late_event *e = own(event);
    late_stream *s = own(stream);
    ad_event *inner = e->inner;
    if (e->at) e->at->wait(e->target);
    e->at = s->at;
    e->target = s->push([=] { now->event_record(inner, s->inner, nullptr); });
    return 0;
}

int event_elapsed(ad_event *from, ad_event *to, float *ms, ad_fault *fault) {
    return now->event_elapsed(own(from)->inner, own(to)->inner, ms, fault);
}

int stream_follow(ad_stream *stream, ad_event *event, ad_fault *) {
    std::shared_ptr<progress> at = own(event)->at;
    uint64_t target = own(event)->target;
    if (at && at != own(stream)->at) own(stream)->push([=] { at->wait(target); });
    return 0;
}

/* ---- copies ---- */

int zero(ad_stream *stream, void *to, uint64_t size, ad_fault *) {
    own(stream)->push([=] { memset(to, 0, size); });
    return 0;
}

int upload(ad_stream *stream, void *to, const void *host, uint64_t size, ad_fault *) {
    const char *p = static_cast<const char *>(host);
    auto bytes = std::make_shared<std::vector<char>>(p, p + size);
    own(stream)->push([=] { memcpy(to, bytes->data(), bytes->size()); });
    return 0;
}

int copy(ad_stream *stream, void *to, const void *from, uint64_t size, ad_fault *) {
    own(stream)->push([=] { memcpy(to, from, size); });
    return 0;
}

/* ---- operations ---- */

std::mutex texts_lock;
std::map<const ad_check *, std::string> texts; /* of checks that have failed */

void report(ad_check *check, const ad_fault &fault, int code) {
    if (!check) return;
    {
        std::lock_guard<std::mutex> hold(texts_lock);
        texts[check] = fault.text;
    }
    __atomic_store_n(&check->code, int32_t(code), __ATOMIC_RELEASE);
}

int check_fault(const ad_check *check, ad_fault *fault) {
    std::lock_guard<std::mutex> hold(texts_lock);
    return ad__fault(fault, check->code, "%s", texts[check].c_str());
}

/* An operation with all that it points at, and scratch memory of its own. */
struct copied {
    ad_run run{};
    ad_op op;
    std::vector<ad_operand> operand;
    std::vector<ad_scalar> param;
    std::vector<std::vector<int64_t>> numbers;
    std::vector<void *> scratch;
    ad_check *check = nullptr;

    explicit copied(const ad_op *from) : op(*from) {
        operand.assign(from->operand, from->operand + from->nout + from->nin);
        param.assign(from->param, from->param + from->nparam);
        numbers.reserve(2 * operand.size());
        for (ad_operand &o : operand) {
            if (o.is_scalar) continue;
            numbers.emplace_back(o.desc.shape, o.desc.shape + o.desc.ndim);
            o.desc.shape = numbers.back().data();
            numbers.emplace_back(o.desc.strides, o.desc.strides + o.desc.ndim);
            o.desc.strides = numbers.back().data();
        }
        op.operand = operand.data();
        op.param = param.data();
        run.workspace = workspace;
    }
    ~copied() {
        for (void *p : scratch) free(p);
    }
    static void *workspace(ad_run *run, uint64_t size) {
        void *p = nullptr;
        if (posix_memalign(&p, 256, size > 0 ? 2 * size : 1) != 0) return nullptr; /* as slabs have it, see slab.cpp */
        reinterpret_cast<copied *>(run)->scratch.push_back(p);
        return p;
    }
};

void execute(late_stream *s, const std::shared_ptr<copied> &c) {
    ad_fault fault = {};
    std::lock_guard<std::mutex> hold(one_at_a_time);
    int status = now->run(s->inner, &c->op, &c->run, &fault);
    if (status) report(c->check, fault, status);
}

/* A query, which is executed at once. The memory that it asks for may have to be made free by moving its contents,
 * which adds work to the stream. So the query waits for that work, while other streams go on. */
struct query {
    ad_run run; /* first */
    ad_run *asked;
    ad_stream *stream;

    template <class Ask> static void *get(ad_run *run, Ask ask) {
        query *q = reinterpret_cast<query *>(run);
        one_at_a_time.unlock();
        void *memory = ask(q->asked);
        stream_wait(q->stream, nullptr);
        one_at_a_time.lock();
        return memory;
    }
    static void *workspace(ad_run *run, uint64_t size) {
        return get(run, [=](ad_run *asked) { return asked->workspace(asked, size); });
    }
    static void *output(ad_run *run, int index, uint64_t size) {
        return get(run, [=](ad_run *asked) { return asked->output(asked, index, size); });
    }
};

int run_query(ad_stream *stream, const ad_op *op, ad_run *run, ad_fault *fault) {
    query q = {*run, run, stream};
    q.run.workspace = query::workspace;
    q.run.output = query::output;
    stream_wait(stream, nullptr);
    std::lock_guard<std::mutex> hold(one_at_a_time);
    int status = now->run(own(stream)->inner, op, &q.run, fault);
    run->nvalues = q.run.nvalues;
    run->checked = q.run.checked;
    run->wrote = q.run.wrote;
    return status;
}

int run_operation(ad_stream *stream, const ad_op *op, ad_run *run, ad_fault *fault) {
    late_stream *s = own(stream);
    if (op->opcode == AD_REQ_QUERY) return run_query(stream, op, run, fault);
    auto c = std::make_shared<copied>(op);
    c->check = run->check;
    run->checked = run->check != nullptr;
    run->wrote = !ad__op_updates(op);
    s->push([=] { execute(s, c); });
    return 0;
}

/* ---- chains ---- */

/* A chain with all that it points at. */
struct copied_chain {
    copied end; /* the reduction's operation, and what it may ask for */
    ad_chain chain;
    std::deque<std::vector<int64_t>> numbers;

    static const ad_op *end_of(const ad_chain *from) {
        static const ad_op none{};
        return from->end.op ? from->end.op : &none;
    }
    const int64_t *keep(const int64_t *from, int n) {
        numbers.emplace_back(from, from + n);
        return numbers.back().data();
    }
    void keep(ad_desc *d) {
        d->shape = keep(d->shape, d->ndim);
        d->strides = keep(d->strides, d->ndim);
    }
    explicit copied_chain(const ad_chain *from) : end(end_of(from)), chain(*from) {
        chain.shape = keep(chain.shape, chain.ndim);
        for (int i = 0; i < chain.ninputs; i++) keep(&chain.input[i].desc);
        for (int i = 0; i < chain.noutputs; i++) keep(&chain.output[i].view.desc);
        if (chain.end.op) chain.end.op = &end.op;
    }
};

void execute_chain(late_stream *s, const std::shared_ptr<copied_chain> &c) {
    ad_fault fault = {};
    std::lock_guard<std::mutex> hold(one_at_a_time);
    int result = now->fuse(s->inner, &c->chain, &c->end.run, &fault);
    if (result == 0) result = ad__fault(&fault, AD_E_MEMORY, "no memory for what the chain ends with");
    if (result < 0) report(c->end.check, fault, result);
}

int fuse(ad_stream *stream, const ad_chain *chain, ad_run *run, ad_fault *) {
    late_stream *s = own(stream);
    if (!ad_cpu_chain_suits(chain)) return 0;
    auto c = std::make_shared<copied_chain>(chain);
    c->end.check = run->check;
    run->checked = run->check != nullptr;
    run->wrote = true;
    s->push([=] { execute_chain(s, c); });
    return 1;
}

/* A launch with all that it points at. */
struct copied_launch {
    ad_kernel_launch launch;
    ad_run run{};
    std::vector<std::vector<char>> bytes;
    std::vector<void *> argument;
    std::vector<uint32_t> size;
    ad_check *check;

    copied_launch(const ad_kernel_launch *from, ad_check *to) : launch(*from), check(to) {
        for (int i = 0; i < from->narguments; i++) {
            const char *p = static_cast<const char *>(from->argument[i]);
            bytes.emplace_back(p, p + (from->argument_size[i] & ~AD_LAUNCH_LONGER));
            argument.push_back(bytes.back().data());
            size.push_back(from->argument_size[i]);
        }
        launch.argument = argument.data();
        launch.argument_size = size.data();
    }
};

int launch(ad_stream *stream, const ad_kernel_launch *from, ad_run *run, ad_fault *fault) {
    late_stream *s = own(stream);
    int status = ad_cpu_launch_check(from, fault);
    if (status) return status;
    auto c = std::make_shared<copied_launch>(from, run->check);
    run->checked = run->check != nullptr;
    run->wrote = true;
    s->push([=] {
        ad_fault why = {};
        std::lock_guard<std::mutex> hold(one_at_a_time);
        if (is_lost) return;
        int failed = now->launch(s->inner, &c->launch, &c->run, &why);
        if (failed == AD_E_DEVICE_LOST) {
            lost = why;
            is_lost = true;
        } else if (failed < 0) {
            report(c->check, why, failed);
        }
    });
    return 0;
}

} // namespace

const ad_backend *ad_cpu_late(const ad_backend *real) {
    static ad_backend late;
    now = real;
    late = *real;
    late.asynchronous = true;
    late.stream_open = stream_open;
    late.stream_close = stream_close;
    late.stream_wait = stream_wait;
    late.event_open = event_open;
    late.event_close = event_close;
    late.event_record = event_record;
    late.event_done = event_done;
    late.event_elapsed = event_elapsed;
    late.stream_follow = stream_follow;
    late.check_fault = check_fault;
    late.zero = zero;
    late.upload = upload;
    late.upload_pinned = copy;
    late.download = copy;
    late.move = copy;
    late.run = run_operation;
    late.fuse = fuse;
    late.launch = launch;
    return &late;
}
