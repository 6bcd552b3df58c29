# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# What perf/lab is made of. linux: calls of the kernel. fabric: building a
# lab. lab: finding one and working in it. launch, slurm: starting jobs.
