/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) the libhce authors
 *
 * gnuplot is started without a shell and reads its script from an unnamed
 * file, so that nothing in a file name is ever a command and nothing is left
 * behind.
 */
#include <config.h>

#include "plot.h"

#include "util/math.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static const struct {
    const char *suffix, *terminal;
} kinds[] = {
    {".png", "pngcairo noenhanced size 960,600"},
    {".svg", "svg noenhanced size 960,600 background rgb 'white'"},
};

static const char *find_terminal(const char *file)
{
    size_t len = strlen(file), suffix, i;

    for (i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        suffix = strlen(kinds[i].suffix);
        if (len > suffix && strcmp(file + len - suffix, kinds[i].suffix) == 0)
            return kinds[i].terminal;
    }
    return NULL;
}

const char *hce_perf_plot_refusal(const char *file)
{
    if (find_terminal(file) == NULL)
        return "unknown kind of picture: expected a name that ends in .png or "
               ".svg";
    if (strpbrk(file, "\n\r") != NULL)
        return "expected a name without line breaks";
    return NULL;
}

/* Runs gnuplot with fd in as its input. Returns 0, a positive errno, or -1
 * when gnuplot itself has failed (it says why on standard error). */
static int run_gnuplot(int in, char *const argv[], const char *out)
{
    posix_spawn_file_actions_t actions;
    pid_t pid, ended;
    int err, status;

    err = posix_spawn_file_actions_init(&actions);
    if (err != 0)
        return err;
    err = posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
    if (err == 0 && out != NULL)
        err = posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out,
                                               O_WRONLY, 0);
    if (err == 0)
        err = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&actions);
    if (err != 0)
        return err;
    do {
        ended = waitpid(pid, &status, 0);
    } while (ended < 0 && errno == EINTR);
    if (ended < 0)
        return errno;
    return WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -1;
}

static hce_status_t fail(hce_perf_job_t *job, int err)
{
    return hce_perf_job_fail(job, HCE_ERR_SYSTEM, "--plot %s: %s",
                             job->opts->plot,
                             err == ENOENT ? "gnuplot is not installed"
                             : err < 0     ? "gnuplot failed"
                                           : strerror(err));
}

hce_status_t hce_perf_plot_probe(hce_perf_job_t *job)
{
    char *argv[] = {"gnuplot", "--version", NULL};
    int in, err;

    in = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (in < 0)
        return fail(job, errno);
    err = run_gnuplot(in, argv, "/dev/null");
    close(in);
    return err == 0 ? HCE_OK : fail(job, err);
}

/* In single quotes; a quote inside is doubled. */
static void print_quoted(FILE *script, const char *text)
{
    fputc('\'', script);
    for (; *text != '\0'; text++) {
        if (*text == '\'')
            fputc('\'', script);
        fputc(*text, script);
    }
    fputc('\'', script);
}

/* Curves are numbered: datatype by datatype, in each the variants. */
static int curves(const hce_perf_opts_t *opts,
                  const hce_perf_results_t *results)
{
    return opts->num_types * results->num_variants;
}

static hce_datatype_t curve_type(const hce_perf_opts_t *opts,
                                 const hce_perf_results_t *results, int curve)
{
    return opts->types[curve / results->num_variants];
}

/* Datablocks $t0, $t1, ...: one a curve. A size of 0 has no place on a
 * logarithmic axis. Returns the rows written. */
static size_t print_data(FILE *script, const hce_perf_opts_t *opts,
                         const hce_perf_results_t *results)
{
    const hce_perf_row_t *row;
    size_t i, rows = 0;
    int c;

    for (c = 0; c < curves(opts, results); c++) {
        fprintf(script, "$t%d << end\n", c);
        for (i = 0; i < results->num_rows; i++) {
            row = &results->rows[i];
            if (row->type != curve_type(opts, results, c) ||
                row->variant != c % results->num_variants || row->size == 0)
                continue;
            fprintf(script, "%" PRIu64 " %g %g\n", row->size,
                    row->cells[HCE_PERF_OUT_OF_PLACE].busbw,
                    row->cells[HCE_PERF_IN_PLACE].busbw);
            rows++;
        }
        fprintf(script, "end\n");
    }
    return rows;
}

static const char settings[] = "set xlabel 'size of the output'\n"
                               "set ylabel 'bus bandwidth (GB/s)'\n"
                               "set logscale x 2\n"
                               "set format x '%.0b %BB'\n"
                               "set xtics rotate by -45\n"
                               "set grid\n"
                               "set key left top\n"
                               "set offsets graph 0.02, graph 0.02, 0, 0\n"
                               "set yrange [0:*]\n"
                               "plot \\\n";

/* A curve is named by what tells it from the others. */
static void print_curve(FILE *script, const hce_perf_opts_t *opts,
                        const hce_perf_results_t *results, int curve,
                        int place)
{
    const char *label =
        results->variants[curve % results->num_variants].label;
    const char *type =
        hce_datatype_string(curve_type(opts, results, curve));
    const char *where =
        place == HCE_PERF_OUT_OF_PLACE ? "out of place" : "in place";

    fprintf(script, "$t%d using 1:%d with linespoints title ", curve,
            place + 2);
    if (!opts->each)
        fprintf(script, "'%s, %s'", type, where);
    else if (opts->num_types == 1)
        fprintf(script, "'%s'", label);
    else
        fprintf(script, "'%s, %s'", label, type);
}

static void print_script(FILE *script, hce_perf_job_t *job,
                         const hce_perf_results_t *results)
{
    const hce_perf_opts_t *opts = job->opts;
    /* Many paths in two places each would be a tangle. */
    int places = opts->each ? 1 : hce_perf_results_places(opts);
    int c, p, num = places * curves(opts, results);

    fprintf(script, "set terminal %s\nset output ", find_terminal(opts->plot));
    print_quoted(script, opts->plot);
    fprintf(script, "\nset title '%s: ranks %d, nodes %d, transport %s%s'\n",
            opts->coll->name, job->attr.size, job->attr.num_nodes,
            job->attr.transport, opts->each ? ", out of place" : "");
    fputs(settings, script);
    for (c = 0; c < curves(opts, results); c++) {
        for (p = 0; p < places; p++) {
            print_curve(script, opts, results, c, p);
            fprintf(script, "%s\n", --num > 0 ? ", \\" : "");
        }
    }
}

hce_status_t hce_perf_plot_write(hce_perf_job_t *job,
                                 const hce_perf_results_t *results)
{
    char *argv[] = {"gnuplot", "-", NULL};
    FILE *script;
    int err = 0;

    script = tmpfile();
    if (script == NULL)
        return fail(job, errno);
    if (print_data(script, job->opts, results) == 0) {
        fclose(script);
        return hce_perf_job_fail(job, HCE_ERR_INVALID_ARG,
                                 "--plot %s: no size above 0 to draw",
                                 job->opts->plot);
    }
    print_script(script, job, results);
    if (fflush(script) != 0 || lseek(fileno(script), 0, SEEK_SET) != 0)
        err = errno;
    if (err == 0)
        err = run_gnuplot(fileno(script), argv, NULL);
    fclose(script);
    return err == 0 ? HCE_OK : fail(job, err);
}
