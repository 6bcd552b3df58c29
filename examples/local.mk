# SPDX-License-Identifier: BSD-3-Clause
# Examples are built by installcheck against the installed tree only.
EXTRA_DIST += examples/allgather.c tests/build/installcheck.sh

installcheck-local:
	srcdir=$(abs_top_srcdir) CC='$(CC)' CFLAGS='$(CFLAGS) $(HCE_CFLAGS)' \
		DESTDIR='$(DESTDIR)' $(TEST_ENVIRONMENT) \
		$(abs_top_srcdir)/tests/build/installcheck.sh '$(pkgconfigdir)'
