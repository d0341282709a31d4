PHP_ARG_ENABLE([firn],
  [whether to enable firn],
  [AS_HELP_STRING([--enable-firn], [Enable ids from a shared page])],
  [yes])

if test "$PHP_FIRN" != "no"; then
  AC_CHECK_SIZEOF([void *])
  if test "$ac_cv_sizeof_void_p" != 8; then
    AC_MSG_ERROR([firn needs a 64-bit PHP: an int of a 32-bit PHP cannot hold an id])
  fi
  dnl A package has a copy of firn.h, the repository has it beside this directory.
  firn_source=PHP_EXT_SRCDIR([firn])
  if test -f "$firn_source/firn.h"; then
    firn_header=$firn_source
  elif test -f "$firn_source/../c/firn.h"; then
    firn_header=$firn_source/../c
  else
    AC_MSG_ERROR([firn.h is missing: copy clients/c/firn.h of the repository to $firn_source])
  fi
  PHP_ADD_INCLUDE([$firn_header])
  PHP_NEW_EXTENSION([firn], [src/firn.c], [$ext_shared],, [-std=gnu11 -Wall -Wextra -Wno-unused-parameter])
fi
