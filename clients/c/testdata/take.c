/* Takes ids from a page, as told, and prints them, a line an id, with an empty line after those of each thread or process.
 *
 *     take next PATH N | append PATH N BATCH | threads PATH N THREADS | fork PATH N CHILDREN | bench PATH N | until PATH |
 *     runs PATH BATCH SINGLES PAUSE
 *
 * until and runs take ids until their standard input ends. runs prints runs of consecutive ids, a line FIRST COUNT.
 */
#define _GNU_SOURCE
#include "firn.h"
#include <poll.h>
#include <pthread.h>
#include <sys/wait.h>

static firn *ids;
static long n;

static void fail(int code) {
	fprintf(stderr, "%d: %s\n", code, firn_error(ids, code));
	exit(1);
}

static void print(const int64_t *all, long n) {
	char *text = malloc((size_t)n * 21 + 2), *at = text;
	long i;
	for (i = 0; i < n; i++)
		at += sprintf(at, "%lld\n", (long long)all[i]);
	*at++ = '\n';
	fwrite(text, 1, (size_t)(at - text), stdout);
	fflush(stdout);
	free(text);
}

static void *take(void *unused) {
	int64_t *all = malloc((size_t)n * sizeof *all);
	long i;
	int code;
	for (i = 0; i < n; i++)
		if ((code = firn_next(ids, &all[i])) != 0)
			fail(code);
	(void)unused;
	return all;
}

static int until(const char *path) {
	struct pollfd in = {0, POLLIN, 0};
	int64_t some[10];
	int code = firn_open(&ids, path, 60000), i;
	while (code == 0 && poll(&in, 1, 2) == 0) {
		if ((code = firn_append(ids, some, 10)) != 0)
			break;
		for (i = 0; i < 10; i++)
			printf("%lld\n", (long long)some[i]);
	}
	if (code != 0)
		fail(code);
	firn_close(ids);
	return 0;
}

/* Prints the runs of consecutive ids. All ids of this process increase. */
static void print_runs(const int64_t *all, long n) {
	static int64_t last;
	int64_t first = 0;
	long i;
	for (i = 0; i < n; i++) {
		if (all[i] <= last) {
			fprintf(stderr, "%lld after %lld\n", (long long)all[i], (long long)last);
			exit(1);
		}
		if (i == 0 || all[i] != last + 1) {
			if (i > 0)
				printf("%lld %lld\n", (long long)first, (long long)(last - first + 1));
			first = all[i];
		}
		last = all[i];
	}
	if (n > 0)
		printf("%lld %lld\n", (long long)first, (long long)(last - first + 1));
	fflush(stdout);
}

static int runs(const char *path, long batch, long singles, int pause) {
	struct pollfd in = {0, POLLIN, 0};
	int64_t *some = malloc((size_t)(batch + singles) * sizeof *some);
	int code = firn_open(&ids, path, 60000);
	long i;
	while (code == 0 && poll(&in, 1, pause) == 0) {
		code = firn_append(ids, some, (size_t)batch);
		for (i = 0; i < singles && code == 0; i++)
			code = firn_next(ids, &some[batch + i]);
		if (code == 0)
			print_runs(some, batch + singles);
	}
	if (code != 0)
		fail(code);
	firn_close(ids);
	return 0;
}

int main(int argc, char **argv) {
	long more = argc > 4 ? atol(argv[4]) : 1, i;
	int code;
	if (argc == 3 && strcmp(argv[1], "until") == 0)
		return until(argv[2]);
	if (argc == 6 && strcmp(argv[1], "runs") == 0)
		return runs(argv[2], atol(argv[3]), atol(argv[4]), atoi(argv[5]));
	if (argc < 4)
		return 2;
	n = atol(argv[3]);
	if ((code = firn_open(&ids, argv[2], 5000)) != 0)
		fail(code);
	if (strcmp(argv[1], "next") == 0) {
		print(take(NULL), n);
	} else if (strcmp(argv[1], "append") == 0) {
		int64_t *all = malloc((size_t)(n * more) * sizeof *all);
		for (i = 0; i < n; i++)
			if ((code = firn_append(ids, all + i * more, (size_t)more)) != 0)
				fail(code);
		print(all, n * more);
	} else if (strcmp(argv[1], "threads") == 0) {
		pthread_t threads[64];
		void *all;
		for (i = 0; i < more; i++)
			pthread_create(&threads[i], NULL, take, NULL);
		for (i = 0; i < more; i++) {
			pthread_join(threads[i], &all);
			print(all, n);
		}
	} else if (strcmp(argv[1], "fork") == 0) {
		/* All go into shared memory, and one process prints: a write of more than PIPE_BUF into a pipe may be mixed with others. */
		size_t size = (size_t)n * sizeof(int64_t);
		int64_t before, *all = mmap(NULL, (size_t)(more + 1) * size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
		int status, bad = 0;
		if ((code = firn_next(ids, &before)) != 0) /* the handle has been used */
			fail(code);
		for (i = 0; i < more; i++)
			if (fork() == 0) {
				memcpy(all + i * n, take(NULL), size);
				_exit(0);
			}
		memcpy(all + more * n, take(NULL), size);
		while (wait(&status) > 0)
			bad |= status;
		if (bad)
			return 1;
		print(&before, 1);
		for (i = 0; i <= more; i++)
			print(all + i * n, n);
	} else if (strcmp(argv[1], "bench") == 0) {
		struct timespec a, b;
		int64_t id = 0;
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &a);
		for (i = 0; i < n; i++)
			if ((code = firn_next(ids, &id)) != 0)
				fail(code);
		clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &b);
		printf("%.1f ns an id\n", ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / (double)n);
	}
	firn_close(ids);
	return 0;
}
