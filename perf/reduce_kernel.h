/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * "hce_perf reduce_kernel": how fast one thread reduces, beside how fast it
 * copies. No ranks, no communicator.
 */
#ifndef HCE_PERF_REDUCE_KERNEL_H
#define HCE_PERF_REDUCE_KERNEL_H

/* argv starts with the command. Returns the exit status: 1 if a result was
 * not that of the portable kernels; ends the program on a wrong argument. */
int hce_perf_reduce_kernel(int argc, char **argv);

#endif
