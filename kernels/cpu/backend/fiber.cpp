#include "kernels/cpu/backend/fiber.h"

#include <mutex>
#include <stdint.h>
#include <sys/mman.h>
#include <ucontext.h>

namespace {

constexpr size_t STACK = 256 << 10, GUARD = 4096;

/* Stacks that nobody uses, linked by their first words. Given back to the system never: what has been touched stays. */
struct spare {
    spare *next;
};
std::mutex lock;
spare *spares;
int made;

spare *take() {
    std::lock_guard<std::mutex> hold(lock);
    spare *s = spares;
    if (s) {
        spares = s->next;
        return s;
    }
    if (made == AD_FIBERS) return nullptr;
    void *p = mmap(nullptr, STACK + GUARD, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) return nullptr;
    if (mprotect(p, GUARD, PROT_NONE) != 0) {
        munmap(p, STACK + GUARD);
        return nullptr;
    }
    made++;
    /* The link lies at the stack's high end, which is touched anyway. */
    return reinterpret_cast<spare *>(static_cast<char *>(p) + GUARD + STACK - 64);
}

} // namespace

bool ad_fiber_open(ad_fiber *fiber) {
    fiber->stack = take();
    return fiber->stack != nullptr;
}

void ad_fiber_close(ad_fiber *fiber) {
    std::lock_guard<std::mutex> hold(lock);
    spare *s = static_cast<spare *>(fiber->stack);
    s->next = spares;
    spares = s;
    fiber->stack = nullptr;
}

#ifdef __x86_64__

/* The registers that a function must leave as they are, and the stack. */
asm(R"(
    .text
    .type ad_fiber_swap, @function
ad_fiber_swap:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
    .size ad_fiber_swap, .-ad_fiber_swap
    .type ad_fiber_enter, @function
ad_fiber_enter:
    movq %r12, %rdi
    xorl %ebp, %ebp
    callq *%r13
    ud2
    .size ad_fiber_enter, .-ad_fiber_enter
)");
extern "C" void ad_fiber_swap(void **from, void *to);
extern "C" void ad_fiber_enter();

void ad_fiber_prepare(ad_fiber *fiber, void (*main)(void *), void *argument) {
    uint64_t *top = static_cast<uint64_t *>(fiber->stack); /* a multiple of 16 */
    top -= 1;                                              /* so that the stack is aligned where main is called */
    top[0] = reinterpret_cast<uint64_t>(&ad_fiber_enter);
    top -= 6; /* r15, r14, r13, r12, rbx, rbp */
    top[0] = top[1] = top[4] = top[5] = 0;
    top[2] = reinterpret_cast<uint64_t>(main);
    top[3] = reinterpret_cast<uint64_t>(argument);
    fiber->place = top;
}

void ad_fiber_switch(ad_fiber *from, ad_fiber *to) { ad_fiber_swap(&from->place, to->place); }

#else

/* The context of a fiber lies at the high end of its stack, that of a thread where it is needed. */
namespace {
void enter(unsigned a, unsigned b, unsigned c, unsigned d) {
    void (*main)(void *) = reinterpret_cast<void (*)(void *)>(uint64_t(a) << 32 | b);
    main(reinterpret_cast<void *>(uint64_t(c) << 32 | d));
}
ucontext_t *context_of(ad_fiber *fiber) {
    if (!fiber->place) fiber->place = new ucontext_t;
    return static_cast<ucontext_t *>(fiber->place);
}
} // namespace

void ad_fiber_prepare(ad_fiber *fiber, void (*main)(void *), void *argument) {
    ucontext_t *c = context_of(fiber);
    const uint64_t f = reinterpret_cast<uint64_t>(main), x = reinterpret_cast<uint64_t>(argument);
    getcontext(c);
    c->uc_stack.ss_size = STACK - 64;
    c->uc_stack.ss_sp = static_cast<char *>(fiber->stack) - (STACK - 64);
    c->uc_link = nullptr;
    makecontext(c, reinterpret_cast<void (*)()>(enter), 4, unsigned(f >> 32), unsigned(f), unsigned(x >> 32),
                unsigned(x));
}

void ad_fiber_switch(ad_fiber *from, ad_fiber *to) { swapcontext(context_of(from), context_of(to)); }

#endif
