/* Opens a page, and prints an id for each line of its input. */
#define _GNU_SOURCE
#include "firn.h"

int main(int argc, char **argv) {
	firn *ids = NULL;
	char line[16];
	int64_t id;
	int code = argc < 2 ? FIRN_ENOPAGE : firn_open(&ids, argv[1], 5000);
	while (code == 0 && fgets(line, sizeof line, stdin) != NULL)
		if ((code = firn_next(ids, &id)) == 0) {
			printf("%lld\n", (long long)id);
			fflush(stdout);
		}
	if (code != 0)
		fprintf(stderr, "%d: %s\n", code, firn_error(ids, code));
	firn_close(ids);
	return code;
}
