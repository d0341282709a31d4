/* The Node-API addon over firn.h. index.js makes an API of it.
 *
 * It has no state of its own besides handles. A handle is used by the thread of one environment: the main thread, or a worker.
 */
#define _GNU_SOURCE
#define NAPI_VERSION 8
#include "firn.h"
#include <node_api.h>
#include <stdbool.h>

typedef struct {
	firn *ids;       /* NULL once closed */
	int64_t *out;    /* where next puts an id: the memory of a BigInt64Array of index.js */
	napi_ref memory; /* keeps it */
	int64_t block;   /* how long a call may block while the ids of a moment are used up, in nanoseconds */
	int refs;        /* functions that have this handle */
} handle;

enum { HANDLE_CLOSED = 100 };

static napi_value number(napi_env env, int32_t n) {
	napi_value v = NULL;
	napi_create_int32(env, n, &v);
	return v;
}

/* Takes up to n numbers. Where the ids of this moment are used up, it sleeps until there are some, as long as the handle may
 * block. The firn has no wait of its own, so other errors come at once. */
static int numbers(handle *h, bool blocks, uint64_t n, uint64_t *first, uint64_t *last, firn_page_ **p) {
	int64_t since = 0;
	int code;
	if (h->ids == NULL)
		return HANDLE_CLOSED;
	while ((code = firn_numbers_(h->ids, n, first, last, p)) == FIRN_EBUSY && blocks) {
		int64_t now = firn_clock_();
		if (since == 0)
			since = now;
		if (now - since >= h->block)
			break;
		firn_sleep_(200000);
	}
	return code;
}

/* next() puts an id into memory and returns nothing, or returns a code. */
static napi_value next(napi_env env, napi_callback_info info) {
	handle *h;
	uint64_t first, last;
	firn_page_ *p;
	int code;
	napi_get_cb_info(env, info, NULL, NULL, NULL, (void **)&h);
	if ((code = numbers(h, true, 1, &first, &last, &p)) != 0)
		return number(env, code);
	*h->out = firn_id_(p, first);
	return NULL;
}

/* string() returns an id, or a code. */
static napi_value string(napi_env env, napi_callback_info info) {
	handle *h;
	uint64_t first, last, rest;
	firn_page_ *p;
	char text[24], *at = text + sizeof text;
	napi_value v = NULL;
	int code;
	napi_get_cb_info(env, info, NULL, NULL, NULL, (void **)&h);
	if ((code = numbers(h, true, 1, &first, &last, &p)) != 0)
		return number(env, code);
	rest = (uint64_t)firn_id_(p, first);
	do
		*--at = (char)('0' + rest % 10);
	while ((rest /= 10) != 0);
	napi_create_string_latin1(env, at, (size_t)(text + sizeof text - at), &v);
	return v;
}

/* fill(array, from, blocks) fills a BigInt64Array from an index on. It returns a code, and in memory how many ids the array has. */
static napi_value fill(napi_env env, napi_callback_info info) {
	size_t count = 3, length;
	napi_value args[3];
	napi_typedarray_type type;
	void *data;
	handle *h;
	uint32_t from;
	bool blocks;
	int code = 0;
	if (napi_get_cb_info(env, info, &count, args, NULL, (void **)&h) != napi_ok || count != 3 ||
		napi_get_typedarray_info(env, args[0], &type, &length, &data, NULL, NULL) != napi_ok || type != napi_bigint64_array ||
		napi_get_value_uint32(env, args[1], &from) != napi_ok || napi_get_value_bool(env, args[2], &blocks) != napi_ok) {
		napi_throw_type_error(env, NULL, "fill(BigInt64Array, number, boolean)");
		return NULL;
	}
	while (code == 0 && from < length) {
		uint64_t first, last;
		firn_page_ *p;
		code = numbers(h, blocks, length - from, &first, &last, &p);
		for (; code == 0 && first <= last; first++)
			((int64_t *)data)[from++] = firn_id_(p, first);
	}
	*h->out = from;
	return number(env, code);
}

static napi_value end(napi_env env, napi_callback_info info) {
	handle *h;
	napi_get_cb_info(env, info, NULL, NULL, NULL, (void **)&h);
	firn_close(h->ids);
	h->ids = NULL;
	return NULL;
}

static void unref(napi_env env, void *data, void *hint) {
	handle *h = data;
	(void)hint;
	if (--h->refs > 0)
		return;
	firn_close(h->ids);
	if (h->memory != NULL)
		napi_delete_reference(env, h->memory);
	free(h);
}

/* Sets a function of a handle. It keeps the handle. */
static bool method(napi_env env, napi_value object, const char *name, napi_callback f, handle *h) {
	napi_value v;
	if (napi_create_function(env, name, NAPI_AUTO_LENGTH, f, h, &v) != napi_ok || napi_add_finalizer(env, v, h, unref, NULL, NULL) != napi_ok)
		return false;
	h->refs++;
	return napi_set_named_property(env, object, name, v) == napi_ok;
}

/* open(path, block) returns { next, string, fill, close, out }, or a code. */
static napi_value page_open(napi_env env, napi_callback_info info) {
	size_t count = 2, length;
	napi_value args[2], object, buffer, out;
	char path[PATH_MAX];
	double block;
	void *memory;
	handle *h;
	int code;
	bool done;
	if (napi_get_cb_info(env, info, &count, args, NULL, NULL) != napi_ok || count != 2 ||
		napi_get_value_string_utf8(env, args[0], path, sizeof path, &length) != napi_ok || napi_get_value_double(env, args[1], &block) != napi_ok) {
		napi_throw_type_error(env, NULL, "open(string, number)");
		return NULL;
	}
	if ((h = calloc(1, sizeof *h)) == NULL) {
		napi_throw_error(env, NULL, "firn: no memory");
		return NULL;
	}
	h->refs = 1;
	h->block = (int64_t)(block * 1e6);
	if ((code = firn_open(&h->ids, path, 0)) != 0) {
		h->ids = NULL;
		unref(env, h, NULL);
		return number(env, code);
	}
	done = napi_create_object(env, &object) == napi_ok && napi_create_arraybuffer(env, sizeof(int64_t), &memory, &buffer) == napi_ok &&
		napi_create_typedarray(env, napi_bigint64_array, 1, buffer, 0, &out) == napi_ok && napi_set_named_property(env, object, "out", out) == napi_ok &&
		napi_create_reference(env, buffer, 1, &h->memory) == napi_ok;
	if (done)
		h->out = memory;
	done = done && method(env, object, "next", next, h) && method(env, object, "string", string, h) && method(env, object, "fill", fill, h) && method(env, object, "close", end, h);
	unref(env, h, NULL); /* the functions have it now */
	return done ? object : NULL;
}

/* error(code) returns the text of the last error of this thread. */
static napi_value error(napi_env env, napi_callback_info info) {
	size_t count = 1;
	napi_value arg, v = NULL;
	int32_t code = 0;
	napi_get_cb_info(env, info, &count, &arg, NULL, NULL);
	napi_get_value_int32(env, arg, &code);
	napi_create_string_utf8(env, firn_error(NULL, code), NAPI_AUTO_LENGTH, &v);
	return v;
}

NAPI_MODULE_INIT() {
	napi_value f;
	if (napi_create_function(env, "open", NAPI_AUTO_LENGTH, page_open, NULL, &f) == napi_ok)
		napi_set_named_property(env, exports, "open", f);
	if (napi_create_function(env, "error", NAPI_AUTO_LENGTH, error, NULL, &f) == napi_ok)
		napi_set_named_property(env, exports, "error", f);
	return exports;
}
