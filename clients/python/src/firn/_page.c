/* The client in C, clients/c/firn.h, as a module of Python. It uses the limited API: one build is for Python 3.9 and later.
 *
 * A call takes ids while it holds the GIL, which costs some ten nanoseconds. Only a call that has to wait releases it.
 */
#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x03090000
#include <Python.h>

#include "firn.h"

#define SLICE_MS 50 /* a wait goes no longer without a look at signals */

typedef struct {
	PyObject_HEAD
	firn *ids;       /* NULL after close */
	firn *closing;   /* what the last of the waiting calls frees */
	long waiting;    /* calls that wait without the GIL */
	int64_t wait_ns; /* how long a call waits; -1: without end */
	PyObject *path;  /* bytes */
} Page;

/* The classes of errors, by code. The others are of class Error itself. */
static struct {
	int code;
	const char *name, *text;
	PyObject *class;
} errors[] = {
	{0, "firn.Error", "No id. The attribute code is the code of firn.h, text is the message: it says what to do.", NULL},
	{FIRN_ENOPAGE, "firn.NoPage", "There is no page at the path: start its agent, or correct the path.", NULL},
	{FIRN_ECLOSED, "firn.Closed", "The agent of the page has ended: start it again.", NULL},
	{FIRN_EENDED, "firn.Ended", "The agent or its store is away: retry, ids resume when both are back.", NULL},
	{FIRN_EBUSY, "firn.Busy", "The ids of this moment are used up: retry, or allow a longer wait.", NULL},
	{FIRN_EUNUSABLE, "firn.Unusable", "The file is not a page that this process can use. The text says why.", NULL},
	{FIRN_EPOOL, NULL, NULL, NULL}, /* firn.Unusable too */
};
enum { ERRORS = sizeof errors / sizeof errors[0] };

static PyObject *class_of(int code) {
	int i;
	if (code == FIRN_EPOOL)
		code = FIRN_EUNUSABLE;
	for (i = 1; i < ERRORS; i++)
		if (errors[i].code == code)
			return errors[i].class;
	return errors[0].class;
}

/* Raises the exception for the error of the last call of firn.h in this thread. */
static void raise_error(firn *ids, int code) {
	PyObject *class = class_of(code), *error, *number;
	PyObject *text = PyUnicode_DecodeFSDefault(firn_error(ids, code));
	if (text == NULL)
		return;
	error = PyObject_CallFunctionObjArgs(class, text, NULL);
	number = PyLong_FromLong(code);
	if (error != NULL && number != NULL && PyObject_SetAttrString(error, "code", number) == 0 && PyObject_SetAttrString(error, "text", text) == 0)
		PyErr_SetObject(class, error);
	Py_XDECREF(number);
	Py_XDECREF(error);
	Py_DECREF(text);
}

static int is_over(Page *self, int64_t since) {
	return self->wait_ns >= 0 && firn_clock_() - since >= self->wait_ns;
}

/* How long firn.h waits at a time. */
static int slice_ms(int64_t wait_ns) {
	return wait_ns < 0 || wait_ns > SLICE_MS * 1000000LL ? SLICE_MS : (int)((wait_ns + 999999) / 1000000);
}

static void refuse_closed(void) {
	PyErr_SetString(PyExc_ValueError, "this page was closed by this process: take no ids after close()");
}

/* Waits at most one slice, without the GIL, and takes up to n numbers. close() may run meanwhile. */
static int wait_slice(Page *self, firn *ids, int answer, uint64_t n, uint64_t *first, uint64_t *last, firn_page_ **page) {
	PyThreadState *state;
	int code;
	self->waiting++;
	state = PyEval_SaveThread();
	code = firn_wait_(ids, *page, answer, n, first, last, page);
	PyEval_RestoreThread(state);
	if (--self->waiting == 0 && self->closing != NULL) {
		firn_close(self->closing);
		self->closing = NULL;
	}
	return code;
}

/* Takes up to n numbers. Returns -1 after an exception was set. */
static int take(Page *self, uint64_t n, uint64_t *first, uint64_t *last, firn_page_ **page) {
	int64_t since = 0;
	for (;;) {
		firn *ids = self->ids; /* a signal handler, or another thread, may have closed it */
		int answer, code;
		if (ids == NULL)
			break;
		*page = FIRN_LOAD_(&ids->page);
		answer = firn_take_(*page, n, first, last);
		if (answer == FIRN_TAKE_)
			return 0;
		if (since == 0)
			since = firn_clock_();
		code = wait_slice(self, ids, answer, n, first, last, page);
		if (self->ids == NULL)
			break;
		if (code == 0)
			return 0;
		if (is_over(self, since)) {
			raise_error(ids, code);
			return -1;
		}
		if (PyErr_CheckSignals() != 0)
			return -1;
	}
	refuse_closed();
	return -1;
}

static PyObject *page_next(PyObject *object, PyObject *unused) {
	uint64_t first, last;
	firn_page_ *page;
	(void)unused;
	if (take((Page *)object, 1, &first, &last, &page) != 0)
		return NULL;
	return PyLong_FromLongLong(firn_id_(page, first));
}

static PyObject *page_iternext(PyObject *object) {
	return page_next(object, NULL);
}

static PyObject *page_batch(PyObject *object, PyObject *count) {
	Py_ssize_t n = PyNumber_AsSsize_t(count, PyExc_OverflowError), i = 0;
	PyObject *list;
	if (n == -1 && PyErr_Occurred())
		return NULL;
	if (n < 0)
		return PyErr_Format(PyExc_ValueError, "a batch of %zd ids: it must be 0 or more", n);
	list = PyList_New(n);
	while (list != NULL && i < n) {
		uint64_t first, last;
		firn_page_ *page;
		if (take((Page *)object, (uint64_t)(n - i), &first, &last, &page) != 0)
			goto failed;
		for (; first <= last; first++, i++) {
			/* The page stays mapped: close() frees nothing that *page has while this call holds the GIL. */
			PyObject *id = PyLong_FromLongLong(firn_id_(page, first));
			if (id == NULL)
				goto failed;
			PyList_SetItem(list, i, id);
		}
	}
	return list;
failed:
	Py_DECREF(list);
	return NULL;
}

static PyObject *page_close(PyObject *object, PyObject *unused) {
	Page *self = (Page *)object;
	(void)unused;
	if (self->ids != NULL && self->waiting > 0)
		self->closing = self->ids; /* the calls that wait find it closed within a slice */
	else
		firn_close(self->ids);
	self->ids = NULL;
	Py_RETURN_NONE;
}

static PyObject *page_enter(PyObject *self, PyObject *unused) {
	(void)unused;
	Py_INCREF(self);
	return self;
}

static PyObject *page_exit(PyObject *self, PyObject *unused) {
	return page_close(self, unused);
}

static PyObject *seconds(int64_t ns) {
	if (ns < 0)
		Py_RETURN_NONE;
	return PyFloat_FromDouble((double)ns / 1e9);
}

/* For pickle: the process that reads it opens the page itself. */
static PyObject *page_reduce(PyObject *object, PyObject *unused) {
	Page *self = (Page *)object;
	(void)unused;
	return Py_BuildValue("O(ON)", (PyObject *)Py_TYPE(object), self->path, seconds(self->wait_ns));
}

/* Opens the page, and waits for one that does not exist yet. */
static int open_page(Page *self, const char *path) {
	int64_t since = firn_clock_();
	for (;;) {
		PyThreadState *state = PyEval_SaveThread();
		int code = firn_open(&self->ids, path, slice_ms(self->wait_ns));
		PyEval_RestoreThread(state);
		if (code == 0)
			return 0;
		if (code != FIRN_ENOPAGE || is_over(self, since)) {
			raise_error(NULL, code);
			return -1;
		}
		if (PyErr_CheckSignals() != 0)
			return -1;
	}
}

static int read_wait(PyObject *wait, int64_t *ns) {
	double s;
	*ns = 1000000000;
	if (wait == NULL)
		return 0;
	*ns = -1;
	if (wait == Py_None)
		return 0;
	s = PyFloat_AsDouble(wait);
	if (s == -1.0 && PyErr_Occurred())
		return -1;
	if (!(s >= 0)) {
		PyErr_Format(PyExc_ValueError, "wait=%R: it must be 0 or more seconds, or None to wait without end", wait);
		return -1;
	}
	*ns = s > 1e9 ? -1 : (int64_t)(s * 1e9);
	return 0;
}

static PyObject *page_new(PyTypeObject *type, PyObject *args, PyObject *kwargs) {
	static char *names[] = {"path", "wait", NULL};
	allocfunc alloc = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
	PyObject *path = NULL, *wait = NULL;
	int64_t wait_ns;
	Page *self;
	if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O&|O:Page", names, PyUnicode_FSConverter, &path, &wait))
		return NULL;
	if (read_wait(wait, &wait_ns) != 0 || (self = (Page *)alloc(type, 0)) == NULL) {
		Py_DECREF(path);
		return NULL;
	}
	self->path = path;
	self->wait_ns = wait_ns;
	if (open_page(self, PyBytes_AsString(path)) != 0) {
		Py_DECREF((PyObject *)self);
		return NULL;
	}
	return (PyObject *)self;
}

static void page_dealloc(PyObject *object) {
	Page *self = (Page *)object;
	PyTypeObject *type = Py_TYPE(object);
	freefunc free_object = (freefunc)PyType_GetSlot(type, Py_tp_free);
	firn_close(self->ids);
	Py_XDECREF(self->path);
	free_object(object);
	Py_DECREF((PyObject *)type);
}

static PyMethodDef page_methods[] = {
	{"next", page_next, METH_NOARGS, "next()\n--\n\nTakes one id."},
	{"batch", page_batch, METH_O, "batch(n)\n--\n\nTakes n ids, or none and raises. They increase."},
	{"close", page_close, METH_NOARGS, "close()\n--\n\nLets the page go. Later calls raise ValueError. The page stays as it is for other processes."},
	{"__enter__", page_enter, METH_NOARGS, NULL},
	{"__exit__", page_exit, METH_VARARGS, NULL},
	{"__reduce__", page_reduce, METH_NOARGS, NULL},
	{NULL, NULL, 0, NULL},
};

static PyType_Slot page_slots[] = {
	{Py_tp_doc, "Page(path, wait=1.0)\n--\n\nIds from the shared page at a path. firn.open makes one."},
	{Py_tp_new, page_new},
	{Py_tp_dealloc, page_dealloc},
	{Py_tp_methods, page_methods},
	{Py_tp_iter, PyObject_SelfIter},
	{Py_tp_iternext, page_iternext},
	{0, NULL},
};

static PyType_Spec page_spec = {"firn.Page", sizeof(Page), 0, Py_TPFLAGS_DEFAULT, page_slots};

/* The classes of errors are of one interpreter. */
static int refuse_another_interpreter(void) {
	static int64_t owner = -1;
	int64_t id = PyInterpreterState_GetID(PyInterpreterState_Get());
	if (owner == -1)
		owner = id;
	if (owner == id)
		return 0;
	PyErr_SetString(PyExc_ImportError, "firn works in one interpreter of a process, and another one has imported it: use processes or threads instead of subinterpreters");
	return -1;
}

static int add(PyObject *module, const char *name, PyObject *value) {
	if (value == NULL)
		return -1;
	Py_INCREF(value);
	if (PyModule_AddObject(module, name, value) == 0)
		return 0;
	Py_DECREF(value);
	return -1;
}

static int run_module(PyObject *module) {
	PyObject *type;
	int i, failed;
	if (refuse_another_interpreter() != 0)
		return -1;
	for (i = 0; i < ERRORS && errors[i].name != NULL; i++) {
		if (errors[i].class == NULL)
			errors[i].class = PyErr_NewExceptionWithDoc(errors[i].name, errors[i].text, i == 0 ? NULL : errors[0].class, NULL);
		if (add(module, errors[i].name + sizeof "firn." - 1, errors[i].class) != 0)
			return -1;
	}
	type = PyType_FromSpec(&page_spec);
	failed = add(module, "Page", type);
	Py_XDECREF(type);
	return failed;
}

static PyModuleDef_Slot module_slots[] = {{Py_mod_exec, run_module}, {0, NULL}};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "firn._page", NULL, 0, NULL, module_slots, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit__page(void) {
	return PyModuleDef_Init(&module);
}
