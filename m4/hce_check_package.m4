dnl SPDX-License-Identifier: BSD-3-Clause
dnl Copyright (c) the libhce authors
dnl
dnl One way to look for a library, the same for all of them.

dnl HCE_CHECK_PACKAGE(NAME, MODULE, HEADERS, LIBRARIES, FUNCTION, PURPOSE)
dnl
dnl Adds --with-NAME=yes|no|DIR|guess (guess is the default) and sets, for
dnl NAME in capitals: NAME_CFLAGS and NAME_LIBS (which a user may preset),
dnl HCE_HAVE_NAME in config.h, the conditional HAVE_NAME, the shell variable
dnl have_NAME, and a line of the summary.
dnl
dnl   guess, yes  pkg-config's MODULE, else what the compiler finds by itself
dnl   DIR         DIR's own MODULE.pc, else headers and libraries below DIR;
dnl               DIR's library folder becomes a run path
dnl
dnl A candidate counts only when a program that includes HEADERS (the last is
dnl the package's, the others what it needs before it) and refers to FUNCTION
dnl links: that turns away the build machine's packages in a cross build.
dnl "yes" or DIR that cannot be met is an error; "guess" drops the package.
AC_DEFUN([HCE_CHECK_PACKAGE],
[AC_REQUIRE([PKG_PROG_PKG_CONFIG])
AC_REQUIRE([AC_PROG_SED])
AC_REQUIRE([HCE_PACKAGE_PATHS])
m4_pushdef([hce_up], m4_translit([$1], [a-z-], [A-Z_]))
AC_ARG_WITH([$1],
    [AS_HELP_STRING([--with-$1=ARG],
                    [$6: yes, no, a folder, or guess @<:@guess@:>@])],
    [], [with_$1=guess])
AC_ARG_VAR(hce_up[_CFLAGS], [C compiler flags for $1, instead of a search])
AC_ARG_VAR(hce_up[_LIBS], [linker flags for $1, instead of a search])
AC_MSG_CHECKING([for $1])
have_$1=no
hce_why=
AS_CASE([$with_$1],
    [no], [hce_tries=
           hce_why="switched off by --without-$1"],
    [yes|guess], [AS_IF([test -n "$hce_up[]_LIBS"], [hce_tries=given],
                        [hce_tries="pkg-config compiler"])],
    [_HCE_PACKAGE_BELOW([$with_$1], [$2])])
for hce_try in $hce_tries; do
    _HCE_PACKAGE_FLAGS([$2], [$4], hce_up, m4_bpatsubst([$3], [.* ]))
    _HCE_PACKAGE_LINK([$3], [$5], [have_$1=yes])
    test $have_$1 = yes && break
done
AS_IF([test $have_$1 = yes],
    [hce_up[]_CFLAGS=$hce_cflags
     hce_up[]_LIBS=$hce_libs
     AC_DEFINE([HCE_HAVE_]hce_up, [1], [Define to 1 to build with $1.])],
    [_HCE_PACKAGE_WHY([$1], [$2], m4_bpatsubst([$3], [.* ]))
     hce_up[]_CFLAGS=
     hce_up[]_LIBS=])
AC_MSG_RESULT([$have_$1${hce_why:+ ($hce_why)}])
AS_IF([test $have_$1 = no],
    [AS_CASE([$with_$1],
        [no|guess], [],
        [AC_MSG_ERROR([--with-$1=$with_$1 cannot be met: $hce_why])])])
AM_CONDITIONAL([HAVE_]hce_up, [test $have_$1 = yes])
HCE_SUMMARY([$1], [$have_$1], [${hce_why:-$6}])
m4_popdef([hce_up])
])

dnl Library folders below a prefix, as this compiler's platform names them.
AC_DEFUN([HCE_PACKAGE_PATHS],
[AC_REQUIRE([AC_PROG_CC])
hce_multiarch=`$CC -print-multiarch 2>/dev/null`
hce_libdirs="${hce_multiarch:+lib/$hce_multiarch }lib64 lib"
])

dnl _HCE_PACKAGE_BELOW(DIR, MODULE): candidates below a folder of the user's.
m4_define([_HCE_PACKAGE_BELOW],
[hce_tries=
 AS_IF([test ! -d "$1"], [hce_why="there is no folder $1"])
 for hce_dir in $hce_libdirs; do
     AS_IF([test -f "$1/$hce_dir/pkgconfig/$2.pc"],
           [hce_tries="$hce_tries pc:$1/$hce_dir"])
 done
 for hce_dir in $hce_libdirs; do
     AS_IF([test -d "$1/$hce_dir"],
           [hce_tries="$hce_tries below:$1/$hce_dir"])
 done
 hce_include=$1/include])

dnl _HCE_PACKAGE_FLAGS(MODULE, LIBRARIES, UPPER-CASE-NAME, HEADER): the flags
dnl of candidate $hce_try.
m4_define([_HCE_PACKAGE_FLAGS],
[hce_cflags=
 hce_libs=
 AS_CASE([$hce_try],
     [given],
     [hce_cflags=$$3_CFLAGS
      hce_libs=$$3_LIBS],
     [pkg-config],
     [AS_IF([test -n "$PKG_CONFIG" && $PKG_CONFIG --exists $1],
            [hce_cflags=`$PKG_CONFIG --cflags $1`
             hce_libs=`$PKG_CONFIG --libs $1`],
            [continue])],
     [compiler],
     [hce_libs="$2"],
     [pc:*],
     [hce_dir=${hce_try@%:@pc:}
      hce_path=$hce_dir/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}
      AS_IF([test -n "$PKG_CONFIG" &&
             PKG_CONFIG_PATH=$hce_path $PKG_CONFIG --exists $1],
            [hce_cflags=`PKG_CONFIG_PATH=$hce_path $PKG_CONFIG --cflags $1`
             hce_libs=`PKG_CONFIG_PATH=$hce_path $PKG_CONFIG --libs $1`
             hce_libs="-L$hce_dir -Wl,-rpath,$hce_dir $hce_libs"],
            [continue])],
     [below:*],
     [hce_dir=${hce_try@%:@below:}
      # Both must be there, or the compiler would take what it has elsewhere.
      hce_file=`echo "lib$2" | $SED 's/-l//;s/ .*//'`
      AS_IF([test ! -f "$hce_include/$4" ||
             test -z "`ls "$hce_dir/$hce_file".* 2>/dev/null`"], [continue])
      hce_cflags=-I$hce_include
      hce_libs="-L$hce_dir -Wl,-rpath,$hce_dir $2"])])

dnl _HCE_PACKAGE_LINK(HEADERS, FUNCTION, IF-IT-LINKS)
m4_define([_HCE_PACKAGE_LINK],
[hce_save_CPPFLAGS=$CPPFLAGS
 hce_save_LIBS=$LIBS
 CPPFLAGS="$CPPFLAGS $hce_cflags"
 LIBS="$hce_libs $LIBS"
 AC_LINK_IFELSE(
     [AC_LANG_PROGRAM(
         [m4_foreach_w([hce_h], [$1], [@%:@include <hce_h>
])],
         [[void (*function)(void) = (void (*)(void))$2;
           return function == 0;]])],
     [$3])
 CPPFLAGS=$hce_save_CPPFLAGS
 LIBS=$hce_save_LIBS])

dnl _HCE_PACKAGE_WHY(NAME, MODULE, HEADER): sets hce_why unless it is known.
m4_define([_HCE_PACKAGE_WHY],
[AS_IF([test -z "$hce_why"],
    [AS_CASE([$with_$1],
        [yes|guess],
        [AS_IF([test "$hce_tries" = given],
               [hce_why="nothing links with the flags given"],
               [test -n "$PKG_CONFIG" && $PKG_CONFIG --exists $2],
               [hce_why="there is a $2.pc, but nothing links with it"],
               [hce_why="neither $2.pc nor <$3> is installed"])],
        [hce_why="no $2.pc or <$3> that links below $with_$1"])])])

dnl HCE_KEEP_RUN_PATHS(LIBS): sets HCE_LDFLAGS, for every link. Libtool forgets
dnl linker options among the libraries of a convenience library, the run path
dnl in pmix.pc for one.
AC_DEFUN([HCE_KEEP_RUN_PATHS],
[HCE_LDFLAGS=
for hce_word in $1; do
    AS_CASE([$hce_word],
        [-Wl,*], [HCE_LDFLAGS="$HCE_LDFLAGS $hce_word"])
done
AC_SUBST([HCE_LDFLAGS])
])
