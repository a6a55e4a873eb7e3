/* Stacks that a thread of the system goes to and fro between. */
#ifndef AD_KERNELS_CPU_BACKEND_FIBER_H
#define AD_KERNELS_CPU_BACKEND_FIBER_H

/* A place to go on: what ad_fiber_switch has left behind. */
struct ad_fiber {
    void *stack = nullptr; /* NULL: the thread's own */
    void *place = nullptr;
};

/* A stack, from those that are there or a new one; false: no memory. Below it lies a page that nobody may touch. */
bool ad_fiber_open(ad_fiber *fiber);
/* Close a fiber, whatever is on it. */
void ad_fiber_close(ad_fiber *fiber);
/* Let main(argument) be what is run on the stack when it is next switched to. It must not return. */
void ad_fiber_prepare(ad_fiber *fiber, void (*main)(void *argument), void *argument);
/* Go on at `to`; back here when somebody switches to `from`. */
void ad_fiber_switch(ad_fiber *from, ad_fiber *to);

/* How many stacks there may be. */
#define AD_FIBERS 16384

#endif
