/* Loaded before the C library, it hides when files were made: Java says when they were changed then, as an old one does. */
#define _GNU_SOURCE
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int statx(int dir, const char *restrict path, int flags, unsigned mask, struct statx *restrict to) {
	long code = syscall(SYS_statx, dir, path, flags, mask, to);
	to->stx_mask &= ~STATX_BTIME;
	return (int)code;
}
