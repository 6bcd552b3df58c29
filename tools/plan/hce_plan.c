/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * hce_plan: shows, proves and draws what the ranks of a job would do.
 */
#include "config.h"

#include "commands.h"

#include <stdlib.h>

static int run(const hce_tools_opts_t *opts, FILE *out)
{
    switch (opts->command) {
    case HCE_TOOLS_SHOW:
        return hce_tools_show(opts, out);
    case HCE_TOOLS_VERIFY:
        return hce_tools_verify(opts, out);
    case HCE_TOOLS_DRAW:
        return hce_tools_draw(opts, out);
    default:
        return hce_tools_chunks(opts, out);
    }
}

int main(int argc, char **argv)
{
    hce_tools_opts_t opts;
    FILE *out = stdout;
    int status, failed;

    hce_tools_opts_parse(argc, argv, &opts);
    if (opts.out != NULL) {
        out = fopen(opts.out, "we");
        if (out == NULL) {
            fprintf(stderr, "hce_plan: %s: cannot be written: %m\n", opts.out);
            return HCE_TOOLS_EXIT_FAULT;
        }
    }
    status = run(&opts, out);
    /* What was cut short must not look complete. */
    failed = ferror(out);
    if (fclose(out) != 0 || failed) {
        fprintf(stderr, "hce_plan: %s: cannot be written in full\n",
                opts.out != NULL ? opts.out : "standard output");
        return HCE_TOOLS_EXIT_FAULT;
    }
    return status;
}
