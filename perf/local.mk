# SPDX-License-Identifier: BSD-3-Clause
# hce_perf links the objects of the library, not the library: starting local
# ranks and reading flags are not in the public API.
bin_PROGRAMS += perf/hce_perf
perf_hce_perf_SOURCES = \
	perf/buffers.c \
	perf/buffers.h \
	perf/burst.c \
	perf/burst.h \
	perf/calibrate.c \
	perf/calibrate.h \
	perf/coll.c \
	perf/coll.h \
	perf/faults.c \
	perf/faults.h \
	perf/hce_perf.c \
	perf/job.c \
	perf/job.h \
	perf/json.c \
	perf/json.h \
	perf/launch.c \
	perf/launch.h \
	perf/measure.c \
	perf/measure.h \
	perf/opts.c \
	perf/opts.h \
	perf/opts_check.c \
	perf/pattern.c \
	perf/pattern.h \
	perf/plot.c \
	perf/plot.h \
	perf/procs.c \
	perf/procs.h \
	perf/ranks.c \
	perf/ranks.h \
	perf/reduce_kernel.c \
	perf/reduce_kernel.h \
	perf/reduce_loops.c \
	perf/reduce_loops.h \
	perf/results.c \
	perf/results.h \
	perf/run.c \
	perf/run.h \
	perf/series.c \
	perf/series.h \
	perf/stats.c \
	perf/stats.h \
	perf/table.c \
	perf/table.h \
	perf/values.c \
	perf/values.h \
	perf/variants.c \
	perf/variants.h \
	perf/timed.c \
	perf/timed.h
perf_hce_perf_LDADD = libhcecore.la -lm

# What perf/compare runs beside hce_perf.
if HAVE_OPENMPI
noinst_PROGRAMS += perf/compare_mpi
perf_compare_mpi_SOURCES = perf/compare_mpi.c perf/measure.c perf/measure.h
perf_compare_mpi_CPPFLAGS = $(OPENMPI_CFLAGS)
perf_compare_mpi_LDADD = $(OPENMPI_LIBS)
endif

# Several hosts on one machine, and the comparison; run from the source tree.
EXTRA_DIST += docs/PERFORMANCE.md docs/pictures
EXTRA_DIST += perf/compare perf/cmplib/__init__.py \
	perf/cmplib/contender.py perf/cmplib/job.py perf/cmplib/report.py \
	perf/cmplib/stats.py perf/cmplib/volume.py
EXTRA_DIST += perf/lab perf/lablib/__init__.py perf/lablib/fabric.py \
	perf/lablib/lab.py perf/lablib/launch.py perf/lablib/linux.py \
	perf/lablib/slurm.py
