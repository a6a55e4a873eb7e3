/* Processes leave by _exit or become other programs, which writes no counts of branches; these write them first (the
 * linker's --wrap). */
void __gcov_dump(void);
void __gcov_reset(void);

void __real__exit(int status) __attribute__((noreturn));
void __wrap__exit(int status) __attribute__((noreturn));
void __wrap__exit(int status) {
    __gcov_dump();
    __real__exit(status);
}

int __real_execve(const char *path, char *const *arguments, char *const *environment);
int __wrap_execve(const char *path, char *const *arguments, char *const *environment);
int __wrap_execve(const char *path, char *const *arguments, char *const *environment) {
    __gcov_dump();
    const int status = __real_execve(path, arguments, environment);
    __gcov_reset();
    return status;
}
