dnl SPDX-License-Identifier: BSD-3-Clause
dnl Copyright (c) the libhce authors
dnl
dnl The CUDA toolkit's headers. Nothing of the toolkit is linked, and the
dnl library is the same without: with the headers the declarations of lib/drv
dnl are compared with them, so only those that have all of them count.

dnl HCE_CHECK_CUDA
dnl
dnl Adds --with-cuda=yes|no|DIR|guess (guess is the default) and sets
dnl CUDA_CFLAGS (which a user may preset), the conditional HAVE_CUDA, the
dnl shell variable have_cuda, and a line of the summary. guess and yes look
dnl where the compiler does, then below CUDA_HOME and /usr/local/cuda. "yes" or
dnl DIR that cannot be met is an error.
AC_DEFUN([HCE_CHECK_CUDA],
[AC_ARG_WITH([cuda],
    [AS_HELP_STRING([--with-cuda=ARG],
                    [compare with the CUDA toolkit's headers (13.0 or later):
                     yes, no, a folder, or guess @<:@guess@:>@])],
    [], [with_cuda=guess])
AC_ARG_VAR([CUDA_CFLAGS], [C compiler flags for cuda.h, instead of a search])
AC_MSG_CHECKING([for the headers of cuda])
have_cuda=no
hce_why=
AS_CASE([$with_cuda],
    [no], [hce_tries=
           hce_why="switched off by --without-cuda"],
    [yes|guess], [AS_IF([test -n "$CUDA_CFLAGS"], [hce_tries=given],
                        [hce_tries="compiler ${CUDA_HOME:+$CUDA_HOME/include}
                                    /usr/local/cuda/include"])],
    [hce_tries="$with_cuda/include"])
for hce_try in $hce_tries; do
    AS_CASE([$hce_try],
        [given], [hce_cflags=$CUDA_CFLAGS],
        [compiler], [hce_cflags=],
        [hce_cflags="-isystem $hce_try"])
    hce_save_CPPFLAGS=$CPPFLAGS
    CPPFLAGS="$CPPFLAGS $hce_cflags"
    AC_COMPILE_IFELSE(
        [AC_LANG_PROGRAM([@%:@include <cuda.h>
@%:@include <cudaTypedefs.h>
@%:@if CUDA_VERSION < 13000
@%:@error older than 13.0
@%:@endif], [])],
        [have_cuda=yes])
    CPPFLAGS=$hce_save_CPPFLAGS
    test $have_cuda = yes && break
done
AS_IF([test $have_cuda = yes],
    [CUDA_CFLAGS=$hce_cflags
     AC_DEFINE([HCE_HAVE_CUDA], [1],
               [Define to 1 to compare with the headers of CUDA.])],
    [CUDA_CFLAGS=
     test -n "$hce_why" ||
         hce_why="no <cuda.h> of 13.0 or later; the device is built the same"])
AC_MSG_RESULT([$have_cuda${hce_why:+ ($hce_why)}])
AS_IF([test $have_cuda = no],
    [AS_CASE([$with_cuda],
        [no|guess], [],
        [AC_MSG_ERROR([--with-cuda=$with_cuda cannot be met: $hce_why])])])
AM_CONDITIONAL([HAVE_CUDA], [test $have_cuda = yes])
HCE_SUMMARY([cuda], [$have_cuda],
    [${hce_why:-headers, to compare the declarations of lib/drv with}])
])
