/* The client in C: see the documentation of package main. */
#define _GNU_SOURCE
#include "firn.h"

static void check(firn *ids, int code) {
	if (code == 0)
		return;
	fprintf(stderr, "%s\n", firn_error(ids, code));
	exit(1);
}

int main(int argc, char **argv) {
	firn *ids = NULL;
	long n, batch, i;
	check(ids, firn_open(&ids, argv[argc - 1], 5000));
	while (scanf("%ld %ld", &n, &batch) == 2) {
		int64_t *some = malloc((size_t)batch * sizeof *some);
		for (i = 0; i < n; i += batch)
			check(ids, batch == 1 ? firn_next(ids, some) : firn_append(ids, some, (size_t)batch));
		puts("");
		fflush(stdout);
		free(some);
	}
	firn_close(ids);
	return 0;
}
