# SPDX-License-Identifier: BSD-3-Clause
# Tests of the build itself: what is exported, installed, packed.
dist_check_SCRIPTS =
