# SPDX-License-Identifier: BSD-3-Clause
# Section 3 is made from the public header, a page a call.
dist_man_MANS += man/hce.7 man/hce_info.1 man/hce_perf.1 man/hce_plan.1
EXTRA_DIST += man/man3.awk

man3dir = $(mandir)/man3
man3_awk = $(srcdir)/man/man3.awk
noinst_DATA += man/man3.stamp
CLEANFILES += man/man3.stamp
man/man3.stamp: $(srcdir)/include/hce/hce.h $(man3_awk)
	@$(MKDIR_P) man && rm -f man/*.3
	$(AM_V_GEN)$(AWK) -v dir=man -v version=$(PACKAGE_VERSION) \
		-f $(man3_awk) $(srcdir)/include/hce/hce.h
	@touch $@

install-data-local: man/man3.stamp
	$(MKDIR_P) "$(DESTDIR)$(man3dir)"
	$(INSTALL_DATA) man/*.3 "$(DESTDIR)$(man3dir)"

uninstall-local: man/man3.stamp
	for page in man/*.3; do rm -f "$(DESTDIR)$(man3dir)/$${page#man/}"; done

clean-local:
	rm -f man/*.3
