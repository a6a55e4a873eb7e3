/* cooperative_groups.h for the host's compiler: the grid, the block, tiles of a warp, copies by a group. */
#pragma once

namespace cooperative_groups {

class grid_group {
  public:
    void sync() const { adrun::wait(adrun::WAIT_GRID, 0, 0, 0); }
    static bool is_valid() { return true; }
    static unsigned long long size() { return num_blocks() * thread_count(); }
    static unsigned long long num_threads() { return size(); }
    static unsigned long long num_blocks() {
        return 1ull * adrun::self->blocks.x * adrun::self->blocks.y * adrun::self->blocks.z;
    }
    static unsigned long long block_rank() {
        const uint3 &i = adrun::self->index, &n = adrun::self->blocks;
        return i.x + 1ull * n.x * (i.y + 1ull * n.y * i.z);
    }
    static unsigned long long thread_rank() { return block_rank() * thread_count() + adrun::self->current; }
    static dim3 group_dim() { return dim3(adrun::self->blocks); }
    static dim3 dim_blocks() { return dim3(adrun::self->blocks); }
    static dim3 block_index() { return dim3(adrun::self->index); }

  private:
    static unsigned thread_count() { return adrun::self->count; }
};

class thread_block {
  public:
    static void sync() { __syncthreads(); }
    static unsigned size() { return adrun::self->count; }
    static unsigned num_threads() { return size(); }
    static unsigned thread_rank() { return adrun::self->current; }
    static dim3 group_index() { return dim3(adrun::self->index); }
    static dim3 thread_index() { return dim3(adrun::self->thread); }
    static dim3 group_dim() { return dim3(adrun::self->threads); }
    static dim3 dim_threads() { return dim3(adrun::self->threads); }
};

/* As many neighbours of a warp as a power of two. */
template <unsigned Size, class Parent = thread_block> class thread_block_tile {
    static_assert(Size >= 1 && Size <= 32 && (Size & (Size - 1)) == 0, "a tile has 1, 2, 4, 8, 16 or 32 threads");
    static unsigned first() { return unsigned(adrun::lane()) & ~(Size - 1); }
    static unsigned mask() { return (Size == 32 ? 0xffffffffu : (1u << Size % 32) - 1) << first(); }

  public:
    static void sync() { __syncwarp(mask()); }
    static constexpr unsigned size() { return Size; }
    static constexpr unsigned num_threads() { return Size; }
    static unsigned thread_rank() { return unsigned(adrun::lane()) - first(); }
    static unsigned meta_group_rank() { return adrun::self->current / Size; }
    static unsigned meta_group_size() { return (adrun::self->count + Size - 1) / Size; }
    template <class T> static T shfl(T v, int from) { return __shfl_sync(mask(), v, from, Size); }
    template <class T> static T shfl_up(T v, unsigned by) { return __shfl_up_sync(mask(), v, by, Size); }
    template <class T> static T shfl_down(T v, unsigned by) { return __shfl_down_sync(mask(), v, by, Size); }
    template <class T> static T shfl_xor(T v, int bits) { return __shfl_xor_sync(mask(), v, bits, Size); }
    static int any(int p) { return __any_sync(mask(), p); }
    static int all(int p) { return __all_sync(mask(), p); }
    static unsigned ballot(int p) { return __ballot_sync(mask(), p) >> first(); }
};

inline grid_group this_grid() { return grid_group(); }
inline thread_block this_thread_block() { return thread_block(); }
template <unsigned Size, class Parent> inline thread_block_tile<Size, Parent> tiled_partition(const Parent &) {
    return thread_block_tile<Size, Parent>();
}
template <class Group> inline void sync(const Group &g) { g.sync(); }
template <class Group> inline unsigned long long thread_rank(const Group &g) { return g.thread_rank(); }
template <class Group> inline unsigned long long group_size(const Group &g) { return g.size(); }

/* Threads of a group copy elements in turn, and at once: before it waits nobody may rely on either. */
template <class Group, class T, class Size>
inline void memcpy_async(const Group &g, T *to, const T *from, const Size &size) {
    const size_t bytes = size_t(size), n = bytes / sizeof(T);
    for (size_t i = g.thread_rank(); i < n; i += g.size()) to[i] = from[i];
    if (g.thread_rank() == 0) __builtin_memcpy(static_cast<void *>(to + n), from + n, bytes - n * sizeof(T));
}
template <class T, class Size> void memcpy_async(const grid_group &, T *, const T *, const Size &) = delete;
template <class Group, class T, class To, class From>
inline void memcpy_async(const Group &g, T *to, const To &room, const T *from, const From &count) {
    memcpy_async(g, to, from, (size_t(room) < size_t(count) ? size_t(room) : size_t(count)) * sizeof(T));
}
template <unsigned Steps, class Group> inline void wait_prior(const Group &g) { g.sync(); }
template <class Group> inline void wait(const Group &g) { g.sync(); }

inline dim3 group_index(const thread_block &b) { return b.group_index(); }
inline dim3 thread_index(const thread_block &b) { return b.thread_index(); }

} // namespace cooperative_groups
