dnl SPDX-License-Identifier: BSD-3-Clause
dnl Copyright (c) the libhce authors
dnl
dnl Kinds of build: debug, sanitizers, warnings as errors.

dnl HCE_BUILD_OPTIONS: sets HCE_CFLAGS, for compiling and linking all of the
dnl project but not for configure's own tests, TEST_LIMIT, the seconds a test
dnl may take in such a build, and TEST_ENVIRONMENT, variables for the tests.
AC_DEFUN([HCE_BUILD_OPTIONS],
[AC_ARG_ENABLE([debug],
    [AS_HELP_STRING([--enable-debug],
                    [verify every plan before it is run; costs time])],
    [], [enable_debug=no])
AC_ARG_ENABLE([asan],
    [AS_HELP_STRING([--enable-asan],
                    [build with the address and undefined sanitizers])],
    [], [enable_asan=no])
AC_ARG_ENABLE([tsan],
    [AS_HELP_STRING([--enable-tsan], [build with the thread sanitizer])],
    [], [enable_tsan=no])
AC_ARG_ENABLE([werror],
    [AS_HELP_STRING([--enable-werror], [make warnings errors])],
    [], [enable_werror=no])
AS_IF([test "$enable_asan" != no && test "$enable_tsan" != no],
    [AC_MSG_ERROR([--enable-asan and --enable-tsan exclude each other])])

HCE_CFLAGS=
TEST_LIMIT=120
TEST_ENVIRONMENT=
AS_IF([test "$enable_debug" != no],
    [AC_DEFINE([HCE_DEBUG], [1],
               [Define to 1 to verify every plan before it is run.])])
AS_IF([test "$enable_asan" != no],
    [_HCE_SANITIZER([address,undefined], [-fno-sanitize-recover=all])
     hce_supp='suppressions=$(abs_top_srcdir)/tests/lsan.supp'
     TEST_ENVIRONMENT="LSAN_OPTIONS=$hce_supp:print_suppressions=0"])
# UCX replaces madvise and others by calls of its own, which the thread
# sanitizer sees in threads that it has not set up yet, and crashes.
AS_IF([test "$enable_tsan" != no],
    [_HCE_SANITIZER([thread], [])
     TEST_ENVIRONMENT="UCX_MEM_MMAP_HOOK_MODE=none"])
AS_IF([test "$enable_werror" != no], [HCE_CFLAGS="$HCE_CFLAGS -Werror"])
AC_SUBST([HCE_CFLAGS])
AC_SUBST([TEST_LIMIT])
AC_SUBST([TEST_ENVIRONMENT])
_HCE_OPTION_SUMMARY([debug], [every plan is verified before it is run])
_HCE_OPTION_SUMMARY([asan], [address and undefined sanitizers])
_HCE_OPTION_SUMMARY([tsan], [thread sanitizer])
_HCE_OPTION_SUMMARY([werror], [warnings are errors])
])

dnl _HCE_OPTION_SUMMARY(OPTION, TEXT)
m4_define([_HCE_OPTION_SUMMARY],
[AS_IF([test "$enable_$1" = no],
       [HCE_SUMMARY([$1], [no], [not asked for by --enable-$1])],
       [HCE_SUMMARY([$1], [yes], [$2])])])

dnl _HCE_SANITIZER(KINDS, FLAGS): an error where the compiler cannot link it.
m4_define([_HCE_SANITIZER],
[hce_sanitizer="-fsanitize=$1 $2 -fno-omit-frame-pointer"
 hce_save_CFLAGS=$CFLAGS
 CFLAGS="$CFLAGS $hce_sanitizer"
 AC_MSG_CHECKING([whether $CC links with -fsanitize=$1])
 AC_LINK_IFELSE([AC_LANG_PROGRAM([], [])],
     [AC_MSG_RESULT([yes])],
     [AC_MSG_RESULT([no])
      AC_MSG_ERROR([the run time of -fsanitize=$1 is not installed])])
 CFLAGS=$hce_save_CFLAGS
 HCE_CFLAGS="$HCE_CFLAGS $hce_sanitizer"
 TEST_LIMIT=360])
