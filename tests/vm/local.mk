# SPDX-License-Identifier: BSD-3-Clause
# What needs RDMA devices: soft-RoCE in a virtual machine.
LONG_TESTS += tests/vm/verbs.sh
EXTRA_DIST += tests/vm/verbs.sh tests/vm/prepare.sh tests/vm/boot.sh \
	tests/vm/guest_init.sh tests/vm/guest_main.sh tests/vm/suite.sh

.PHONY: clean-vm
clean-local: clean-vm
clean-vm:
	rm -rf tests/vm/cache
