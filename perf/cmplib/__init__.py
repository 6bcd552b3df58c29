# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# What perf/compare is made of. stats: medians and their intervals. volume:
# bytes that collectives move. contender: what is compared, as commands. job:
# running one. report: tables, JSON, pictures.
