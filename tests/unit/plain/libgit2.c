/* Criterion takes libgit2 to show how two texts differ, which no test here asks for. The real one reads every certificate
 * that the machine trusts whenever it is loaded, and Criterion starts each test in a process of its own: that took three
 * quarters of the time of all unit tests. */
int git_libgit2_init(void);
int git_libgit2_shutdown(void);
int git_diff_buffers(void);

int git_libgit2_init(void) { return 1; }
int git_libgit2_shutdown(void) { return 0; }
int git_diff_buffers(void) { return -1; }
