/* Kinds of file systems that hold shared memory on Linux: no file of macOS is of one. */
#define HUGETLBFS_MAGIC UINT32_MAX
#define TMPFS_MAGIC (UINT32_MAX - 1)
