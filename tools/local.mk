# SPDX-License-Identifier: BSD-3-Clause
bin_PROGRAMS += tools/hce_info
tools_hce_info_SOURCES = tools/hce_info.c
tools_hce_info_LDADD = libhcecore.la

# docs/ENV.md is made from the tables of settings; a test compares them.
EXTRA_DIST += docs/ENV.md

.PHONY: update-env-doc
update-env-doc: tools/hce_info
	tools/hce_info --doc >docs.tmp && mv docs.tmp $(top_srcdir)/docs/ENV.md
