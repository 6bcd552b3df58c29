# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# What was measured, as text, JSON and a picture. All figures are made here,
# from the samples, by one function each.
import os
import platform
import statistics
import subprocess
import time

from . import stats, volume


def size_text(size):
    for unit, shift in (("G", 30), ("M", 20), ("K", 10)):
        if size >= 1 << shift and size % (1 << shift) == 0:
            return f"{size >> shift}{unit}"
    return str(size)


class Cell:
    """One contender at one size."""

    def __init__(self, setup, size, samples):
        amounts = volume.VOLUMES[setup.collective]
        shape = setup.shape
        self.samples = samples
        self.single = stats.estimate(s.single_us for s in samples)
        self.mean = stats.estimate(s.mean_us for s in samples)
        self.busbw = amounts.bus(shape, size) / self.single.median / 1e3
        ideal = volume.ideal_seconds(setup.collective, shape, size,
                                     setup.goodput)
        # Of the link: what calls that follow each other make of it.
        self.percent = 100 * ideal * 1e6 / self.mean.median
        self.cpu_per_gb = statistics.median(
            s.cpu_sec / (s.calls * amounts.moved(shape, size) / 1e9)
            for s in samples)
        self.node_bytes = statistics.median(
            s.received / s.calls / shape.nodes for s in samples)
        self.node_ideal = amounts.node(shape, size)

    def as_json(self):
        return {
            "single_us": self.single._asdict(),
            "mean_us": self.mean._asdict(),
            "busbw_gbps": self.busbw,
            "percent_of_ideal": self.percent or None,
            "cpu_sec_per_gb": self.cpu_per_gb,
            "bytes_a_node_and_call": self.node_bytes,
            "least_bytes_a_node_and_call": self.node_ideal,
            "samples": [s._asdict() for s in self.samples],
        }


class Pair:
    """Ours beside theirs at one size: how many times as fast ours is."""

    def __init__(self, ours, theirs):
        self.single = stats.ratio([s.single_us for s in theirs.samples],
                                  [s.single_us for s in ours.samples])
        self.mean = stats.ratio([s.mean_us for s in theirs.samples],
                                [s.mean_us for s in ours.samples])

    def as_json(self):
        return {"single": self.single._asdict(),
                "mean": self.mean._asdict()}


def make_pairs(contenders, cells):
    """Each contender of ours with all that are named after it."""
    return {(ours.name, theirs.name): Pair(cells[ours.name],
                                           cells[theirs.name])
            for i, ours in enumerate(contenders) if ours.is_hce
            for theirs in contenders[i + 1:]}


def best_mpi(contenders, cells):
    """The fastest one of Open MPI, None without any."""
    return min((c.name for c in contenders if not c.is_hce),
               key=lambda name: cells[name].single.median, default=None)


HEAD = (f"{'size':>6} {'contender':26} {'single us':>11} {'mean us':>11} "
        f"{'busbw GB/s':>10} {'% ideal':>7} {'bytes/node':>12} "
        f"{'of least':>8} {'CPU s/GB':>8}")


def cell_lines(size, contenders, cells):
    for contender in contenders:
        cell = cells[contender.name]
        percent = f"{cell.percent:7.1f}" if cell.percent else f"{'-':>7}"
        least = f"{cell.node_bytes / cell.node_ideal:8.3f}" \
            if cell.node_ideal and cell.node_bytes else f"{'-':>8}"
        yield (f"{size_text(size):>6} {contender.name:26} "
               f"{cell.single.median:11.1f} {cell.mean.median:11.1f} "
               f"{cell.busbw:10.3f} {percent} {cell.node_bytes:12.0f} "
               f"{least} {cell.cpu_per_gb:8.3f}")


def ratio_text(estimate):
    """With the interval in brackets, or else the range of few values."""
    range_text = f"{estimate.low:.2f} to {estimate.high:.2f}"
    return f"{estimate.median:6.2f} " + (
        f"[{range_text}]" if estimate.has_interval else f"all {range_text}")


def pair_lines(size, pairs, best):
    for (ours, theirs), pair in pairs.items():
        mark = "  <- best of Open MPI" if theirs == best else ""
        yield (f"{size_text(size):>6} {ours:20} over {theirs:26} "
               f"single {ratio_text(pair.single):22} "
               f"mean {ratio_text(pair.mean):22} "
               f"n {pair.single.num}{mark}")


def _output(*command):
    try:
        return subprocess.run(command, capture_output=True, text=True,
                              cwd=os.path.dirname(__file__)
                              ).stdout.strip()
    except OSError:
        return ""


def _cpu_model():
    with open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()


def machine():
    """What a figure is worth nothing without."""
    return {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "commit": _output("git", "describe", "--always", "--dirty"),
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "load": os.getloadavg(),
        "openmpi": _output("mpirun.openmpi", "--version").partition("\n")[0],
    }


def plot_script(setup, contenders, table, path):
    """Bus bandwidth over size with its interval, a curve a contender."""
    terminal = "svg size 900,600" if path.endswith(".svg") else \
        "pngcairo size 900,600"
    lines = [f"set terminal {terminal}",
             f"set output {quoted(path)}",
             f"set title {quoted(setup.title())} noenhanced",
             "set xlabel 'bytes a rank'", "set ylabel 'busbw (GB/s)'",
             "set logscale x 2", "set logscale y", "set grid",
             "set format x '%.0b%B'",
             "set key left top noenhanced",
             "set offsets graph 0.05, graph 0.05, 0, 0"]
    for index, contender in enumerate(contenders):
        lines.append(f"$c{index} << end")
        for size, cells in table.items():
            cell = cells[contender.name]
            bus = cell.busbw * cell.single.median
            lines.append(f"{size} {cell.busbw} {bus / cell.single.high} "
                         f"{bus / cell.single.low}")
        lines.append("end")
    curves = [f"$c{index} using 1:2:3:4 with yerrorlines title "
              f"{quoted(contender.name)}"
              for index, contender in enumerate(contenders)]
    if setup.goodput:
        lines.append("$ideal << end")
        for size in table:
            bound = volume.ideal_seconds(setup.collective, setup.shape, size,
                                         setup.goodput)
            bus = volume.VOLUMES[setup.collective].bus(setup.shape, size)
            lines.append(f"{size} {bus / bound / 1e9}")
        lines.append("end")
        curves.append("$ideal using 1:2 with lines dashtype 2 "
                      "linecolor 'black' title 'ideal'")
    lines.append("plot " + ", ".join(curves))
    return "\n".join(lines) + "\n"


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


def plot(setup, contenders, table, path):
    subprocess.run(["gnuplot", "-"], text=True, check=True,
                   input=plot_script(setup, contenders, table, path))
