dnl SPDX-License-Identifier: BSD-3-Clause
dnl Copyright (c) the libhce authors
dnl
dnl The table at the end of configure: what is built, and why not the rest.

dnl HCE_SUMMARY(FEATURE, yes|no, TEXT): adds a line.
AC_DEFUN([HCE_SUMMARY],
[AS_VAR_APPEND([hce_summary], ["`printf '  %-10s %-4s %s' "$1" "$2" "$3"`
"])])

dnl HCE_SUMMARY_PRINT: to the terminal and to config.log.
AC_DEFUN([HCE_SUMMARY_PRINT],
[AS_ECHO(["
$PACKAGE_NAME $PACKAGE_VERSION for $host, $CC, in $prefix

  feature    ?    what for, or why not
$hce_summary"]) | tee /dev/fd/AS_MESSAGE_LOG_FD])
