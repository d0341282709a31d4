/* The client in C, clients/c/firn.h, as an extension of PHP. firn.stub.php has its classes.
 *
 * A process maps a page once and keeps the mapping from request to request. Objects of the class Page refer to it.
 */
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif
#include "php.h"
#include "ext/spl/spl_exceptions.h"
#include "ext/standard/info.h"
#include "zend_exceptions.h"

#include "firn.h"

#if PHP_VERSION_ID < 80200
#error "firn needs PHP 8.2 or later"
#endif
#if SIZEOF_ZEND_LONG != 8
#error "firn needs a 64-bit PHP: an int of a 32-bit PHP cannot hold an id"
#endif

#define PHP_FIRN_VERSION "0.1.0"
#define SLICE_MS 50 /* a wait goes no longer without a look at signals */

/* A page that this process has mapped. */
typedef struct {
	firn *ids;
	long users; /* objects, and the table of the process */
} held;

typedef struct {
	held *page;
	int64_t wait_ns; /* how long a call waits; -1: without end */
	zend_object std;
} page_object;

ZEND_BEGIN_MODULE_GLOBALS(firn)
	HashTable pages; /* by path: held *, for as long as the process lives */
ZEND_END_MODULE_GLOBALS(firn)
ZEND_DECLARE_MODULE_GLOBALS(firn)
#define PAGES (&ZEND_MODULE_GLOBALS_ACCESSOR(firn, pages))

#if defined(ZTS) && defined(COMPILE_DL_FIRN)
ZEND_TSRMLS_CACHE_DEFINE()
#endif

static zend_class_entry *page_class, *error_class;
static zend_class_entry *error_classes[FIRN_ESYSTEM + 1]; /* by code */
static zend_object_handlers page_handlers;

static page_object *object_of(zend_object *o) {
	return (page_object *)((char *)o - XtOffsetOf(page_object, std));
}

static void let_go(held *page) {
	if (page != NULL && --page->users == 0) {
		firn_close(page->ids);
		pefree(page, 1);
	}
}

static void let_go_of_entry(zval *entry) {
	let_go((held *)Z_PTR_P(entry));
}

static void throw_error(int code) {
	zend_throw_exception(error_classes[code] != NULL ? error_classes[code] : error_class, firn_error(NULL, code), code);
}

static bool is_over(int64_t wait_ns, int64_t since) {
	return wait_ns >= 0 && firn_clock_() - since >= wait_ns;
}

/* Runs handlers of signals during a wait. Returns whether one threw. They may use, and even change, the object that waits. */
static bool handle_signals(void) {
	if (zend_atomic_bool_load_ex(&EG(vm_interrupt))) {
		zend_atomic_bool_store_ex(&EG(vm_interrupt), false);
		if (zend_atomic_bool_load_ex(&EG(timed_out)))
			zend_timeout();
		else if (zend_interrupt_function != NULL)
			zend_interrupt_function(EG(current_execute_data));
	}
	return EG(exception) != NULL;
}

/* How long firn.h waits at a time. */
static int slice_ms(int64_t wait_ns, int64_t since) {
	int64_t left = wait_ns - (firn_clock_() - since);
	if (wait_ns < 0 || left > SLICE_MS * 1000000LL)
		return SLICE_MS;
	return left <= 0 ? 0 : (int)((left + 999999) / 1000000);
}

/* Makes the next object open the page again: the path has a page of another pool. */
static void forget(held *page) {
	zend_string *path;
	zval *entry;
	ZEND_HASH_FOREACH_STR_KEY_VAL(PAGES, path, entry) {
		if (Z_PTR_P(entry) == page) {
			zend_hash_del(PAGES, path);
			return;
		}
	} ZEND_HASH_FOREACH_END();
}

/* Waits, and takes up to n numbers. Returns false after an exception was thrown. */
static zend_never_inline bool wait_for_numbers(page_object *self, int answer, uint64_t n, uint64_t *first, uint64_t *last, firn_page_ **page) {
	int64_t since = firn_clock_();
	do {
		firn *ids = self->page->ids;
		int code;
		ids->wait_ms = slice_ms(self->wait_ns, since); /* one thread has this handle */
		code = firn_wait_(ids, *page, answer, n, first, last, page);
		if (code == 0)
			return true;
		if (is_over(self->wait_ns, since)) {
			throw_error(code);
			if (code == FIRN_EPOOL)
				forget(self->page);
			return false;
		}
		if (handle_signals())
			return false;
		*page = FIRN_LOAD_(&self->page->ids->page);
		answer = firn_take_(*page, n, first, last);
	} while (answer != FIRN_TAKE_);
	return true;
}

/* Takes up to n numbers. Returns false after an exception was thrown. */
static zend_always_inline bool take(page_object *self, uint64_t n, uint64_t *first, uint64_t *last, firn_page_ **page) {
	int answer;
	if (UNEXPECTED(self->page == NULL)) {
		zend_throw_error(NULL, "Firn\\Page has no page: its constructor has not run");
		return false;
	}
	*page = FIRN_LOAD_(&self->page->ids->page);
	answer = firn_take_(*page, n, first, last);
	if (EXPECTED(answer == FIRN_TAKE_))
		return true;
	return wait_for_numbers(self, answer, n, first, last, page);
}

/* Opens the page at a path, and waits for one that does not exist yet. Returns NULL after an exception was thrown. */
static firn *open_page(const char *path, int64_t wait_ns) {
	int64_t since = firn_clock_();
	for (;;) {
		firn *ids;
		int code = firn_open(&ids, path, slice_ms(wait_ns, since));
		if (code == 0)
			return ids;
		if (code != FIRN_ENOPAGE || is_over(wait_ns, since)) {
			throw_error(code);
			return NULL;
		}
		if (handle_signals())
			return NULL;
	}
}

/* The page at an absolute path: the one that this process has, or a new one. NULL after an exception was thrown. */
static held *page_at(const char *path, int64_t wait_ns) {
	held *page = (held *)zend_hash_str_find_ptr(PAGES, path, strlen(path));
	firn *ids;
	if (page != NULL || (ids = open_page(path, wait_ns)) == NULL)
		return page;
	page = (held *)zend_hash_str_find_ptr(PAGES, path, strlen(path)); /* a handler of a signal may have opened it */
	if (page != NULL) {
		firn_close(ids);
		return page;
	}
	page = (held *)pemalloc(sizeof *page, 1);
	page->ids = ids;
	page->users = 1;
	zend_hash_str_add_new_ptr(PAGES, path, strlen(path), page);
	return page;
}

PHP_METHOD(Firn_Page, __construct) {
	page_object *self = object_of(Z_OBJ_P(ZEND_THIS));
	char absolute[MAXPATHLEN];
	zend_string *path;
	double wait = 1.0;
	bool without_end = false;
	held *page;
	ZEND_PARSE_PARAMETERS_START(1, 2)
		Z_PARAM_PATH_STR(path)
		Z_PARAM_OPTIONAL
		Z_PARAM_DOUBLE_OR_NULL(wait, without_end)
	ZEND_PARSE_PARAMETERS_END();
	if (!without_end && !(wait >= 0)) {
		zend_argument_value_error(2, "must be 0 or more seconds, or null to wait without end");
		RETURN_THROWS();
	}
	if (ZSTR_LEN(path) == 0 || expand_filepath_with_mode(ZSTR_VAL(path), absolute, NULL, 0, CWD_EXPAND) == NULL) {
		zend_argument_value_error(1, "must be the path of a page");
		RETURN_THROWS();
	}
	if (php_check_open_basedir_ex(absolute, 0) != 0) {
		zend_throw_exception_ex(error_classes[FIRN_EUNUSABLE], FIRN_EUNUSABLE, "firn: page %s: open_basedir does not allow it; add its directory", absolute);
		RETURN_THROWS();
	}
	self->wait_ns = without_end || wait > 1e9 ? -1 : (int64_t)(wait * 1e9);
	page = page_at(absolute, self->wait_ns);
	if (page == NULL)
		RETURN_THROWS();
	page->users++;
	let_go(self->page);
	self->page = page;
}

PHP_METHOD(Firn_Page, next) {
	page_object *self = object_of(Z_OBJ_P(ZEND_THIS));
	uint64_t first, last;
	firn_page_ *page;
	ZEND_PARSE_PARAMETERS_NONE();
	if (!take(self, 1, &first, &last, &page))
		RETURN_THROWS();
	RETURN_LONG(firn_id_(page, first));
}

PHP_METHOD(Firn_Page, batch) {
	page_object *self = object_of(Z_OBJ_P(ZEND_THIS));
	uint64_t first, last;
	firn_page_ *page;
	zend_long n;
	ZEND_PARSE_PARAMETERS_START(1, 1)
		Z_PARAM_LONG(n)
	ZEND_PARSE_PARAMETERS_END();
	if (n < 0 || n > HT_MAX_SIZE) {
		zend_argument_value_error(1, "must be between 0 and %d", (int)HT_MAX_SIZE);
		RETURN_THROWS();
	}
	array_init_size(return_value, (uint32_t)n);
	if (n == 0)
		return;
	zend_hash_real_init_packed(Z_ARRVAL_P(return_value));
	ZEND_HASH_FILL_PACKED(Z_ARRVAL_P(return_value)) {
		while (n > 0) {
			if (!take(self, (uint64_t)n, &first, &last, &page))
				break;
			for (; first <= last; first++, n--) {
				ZEND_HASH_FILL_SET_LONG(firn_id_(page, first));
				ZEND_HASH_FILL_NEXT();
			}
		}
	} ZEND_HASH_FILL_END();
	if (n > 0) {
		zend_array_destroy(Z_ARR_P(return_value));
		RETVAL_NULL();
	}
}

static zend_object *page_create(zend_class_entry *class) {
	page_object *self = (page_object *)zend_object_alloc(sizeof *self, class);
	self->page = NULL;
	self->wait_ns = 0;
	zend_object_std_init(&self->std, class);
	object_properties_init(&self->std, class);
	self->std.handlers = &page_handlers;
	return &self->std;
}

static void page_free(zend_object *object) {
	let_go(object_of(object)->page);
	zend_object_std_dtor(object);
}

ZEND_BEGIN_ARG_INFO_EX(construct_args, 0, 0, 1)
	ZEND_ARG_TYPE_INFO(0, path, IS_STRING, 0)
	ZEND_ARG_TYPE_INFO_WITH_DEFAULT_VALUE(0, wait, IS_DOUBLE, 1, "1.0")
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(next_args, 0, 0, IS_LONG, 0)
ZEND_END_ARG_INFO()

ZEND_BEGIN_ARG_WITH_RETURN_TYPE_INFO_EX(batch_args, 0, 1, IS_ARRAY, 0)
	ZEND_ARG_TYPE_INFO(0, n, IS_LONG, 0)
ZEND_END_ARG_INFO()

static const zend_function_entry page_methods[] = {
	PHP_ME(Firn_Page, __construct, construct_args, ZEND_ACC_PUBLIC)
	PHP_ME(Firn_Page, next, next_args, ZEND_ACC_PUBLIC)
	PHP_ME(Firn_Page, batch, batch_args, ZEND_ACC_PUBLIC)
	PHP_FE_END
};

static zend_class_entry *register_error(const char *name, zend_class_entry *parent) {
	zend_class_entry class;
	INIT_CLASS_ENTRY_EX(class, name, strlen(name), NULL);
	return zend_register_internal_class_ex(&class, parent);
}

PHP_MINIT_FUNCTION(firn) {
	zend_class_entry class;
	INIT_NS_CLASS_ENTRY(class, "Firn", "Page", page_methods);
	page_class = zend_register_internal_class(&class);
	page_class->ce_flags |= ZEND_ACC_FINAL | ZEND_ACC_NO_DYNAMIC_PROPERTIES | ZEND_ACC_NOT_SERIALIZABLE;
	page_class->create_object = page_create;
	page_handlers = std_object_handlers;
	page_handlers.offset = XtOffsetOf(page_object, std);
	page_handlers.free_obj = page_free;
	page_handlers.clone_obj = NULL;

	error_class = register_error("Firn\\Exception", spl_ce_RuntimeException);
	error_classes[FIRN_ENOPAGE] = register_error("Firn\\NoPage", error_class);
	error_classes[FIRN_ECLOSED] = register_error("Firn\\Closed", error_class);
	error_classes[FIRN_EENDED] = register_error("Firn\\Ended", error_class);
	error_classes[FIRN_EBUSY] = register_error("Firn\\Busy", error_class);
	error_classes[FIRN_EUNUSABLE] = error_classes[FIRN_EPOOL] = register_error("Firn\\Unusable", error_class);
	return SUCCESS;
}

PHP_MINFO_FUNCTION(firn) {
	php_info_print_table_start();
	php_info_print_table_row(2, "firn", "enabled");
	php_info_print_table_row(2, "version", PHP_FIRN_VERSION);
	php_info_print_table_end();
}

PHP_GINIT_FUNCTION(firn) {
#if defined(ZTS) && defined(COMPILE_DL_FIRN)
	ZEND_TSRMLS_CACHE_UPDATE();
#endif
	zend_hash_init(&firn_globals->pages, 0, NULL, let_go_of_entry, 1);
}

PHP_GSHUTDOWN_FUNCTION(firn) {
	zend_hash_destroy(&firn_globals->pages);
}

zend_module_entry firn_module_entry = {
	STANDARD_MODULE_HEADER,
	"firn",
	NULL,
	PHP_MINIT(firn),
	NULL,
	NULL,
	NULL,
	PHP_MINFO(firn),
	PHP_FIRN_VERSION,
	PHP_MODULE_GLOBALS(firn),
	PHP_GINIT(firn),
	PHP_GSHUTDOWN(firn),
	NULL,
	STANDARD_MODULE_PROPERTIES_EX
};

#ifdef COMPILE_DL_FIRN
ZEND_GET_MODULE(firn)
#endif
