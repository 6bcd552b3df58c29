# SPDX-License-Identifier: BSD-3-Clause
# A fragment for each folder under test; all append to check_PROGRAMS, TESTS.
include tests/unit/util.mk
include tests/unit/boot.mk
include tests/unit/topo.mk
include tests/unit/plan.mk
include tests/unit/ce.mk
include tests/unit/rma_proxy.mk
include tests/unit/core.mk
include tests/property/local.mk
include tests/job/local.mk
