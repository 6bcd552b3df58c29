# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# perf/compare without a job: medians and intervals against what is known of
# them, figures against hand-made ones, the order of runs, and that wrong
# values, planted one at a time, are found.
import contextlib
import importlib.machinery
import importlib.util
import io
import os
import random
import sys
import types
import unittest
from unittest import mock

sys.dont_write_bytecode = True
PERF = os.path.join(os.environ["srcdir"], "perf")
sys.path.insert(0, PERF)

from cmplib import contender, job, report, stats, volume  # noqa: E402
from lablib import fabric  # noqa: E402


def load_compare():
    """The script itself, which has no suffix."""
    loader = importlib.machinery.SourceFileLoader("compare",
                                                  PERF + "/compare")
    spec = importlib.util.spec_from_loader("compare", loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def covered(estimate, trials=200, num=12):
    """Share of samples, drawn around a known median, whose interval has it.
    Skewed as times are."""
    rng = random.Random(7)
    hits = 0
    for _ in range(trials):
        found = estimate([rng.lognormvariate(0, 0.5) for _ in range(num)])
        hits += found.low <= 1 <= found.high
    return hits / trials


class Stats(unittest.TestCase):
    def setUp(self):
        # Enough for a test, and four times as quick.
        patch = mock.patch.object(stats, "RESAMPLES", 1000)
        patch.start()
        self.addCleanup(patch.stop)

    def test_median(self):
        self.assertEqual(stats.estimate([3, 1, 2]).median, 2)
        self.assertEqual(stats.estimate([4, 1, 2, 3]).median, 2.5)
        self.assertEqual(stats.estimate([5]), (5, 5, 5, 1))
        with self.assertRaises(ValueError):
            stats.estimate([])

    def test_quantile(self):
        self.assertEqual(stats.quantile([0, 10, 20], 0), 0)
        self.assertEqual(stats.quantile([0, 10, 20], 0.25), 5)
        self.assertEqual(stats.quantile([0, 10, 20], 1), 20)

    def test_same_numbers_same_interval(self):
        values = [1.0, 1.5, 0.7, 1.1, 0.9, 1.2]
        self.assertEqual(stats.estimate(values), stats.estimate(values))

    def test_few_values_have_no_interval(self):
        few = stats.estimate([3.0, 1.0, 2.0, 9.0, 2.5])
        self.assertFalse(few.has_interval)
        self.assertEqual((few.low, few.high), (1.0, 9.0))
        self.assertEqual(report.ratio_text(few).split(),
                         ["2.50", "all", "1.00", "to", "9.00"])
        enough = stats.estimate([3.0, 1.0, 2.0, 9.0, 2.5, 2.0])
        self.assertTrue(enough.has_interval)
        self.assertIn("[", report.ratio_text(enough))

    def test_interval_covers(self):
        share = covered(stats.estimate)
        self.assertGreater(share, 0.90)
        self.assertLess(share, 0.995)

    def test_wrong_interval_is_found(self):
        with mock.patch.object(stats, "TAIL", 0.2):
            self.assertLess(covered(stats.estimate), 0.90)

    def test_ratio(self):
        found = stats.ratio([20, 30, 40], [10, 10, 10])
        self.assertEqual((found.median, found.num), (3, 3))
        with self.assertRaises(ValueError):
            stats.ratio([1, 2], [1])

    def test_drift_cancels_in_pairs(self):
        ours = [10 * 1.3 ** i for i in range(12)]
        found = stats.ratio([2 * value for value in ours], ours)
        self.assertAlmostEqual(found.low, 2)
        self.assertAlmostEqual(found.high, 2)

    def test_planted_values(self):
        ours, theirs = [10.0] * 12, [20.0 + i / 100 for i in range(12)]
        honest = stats.ratio(theirs, ours)
        one = stats.ratio([2000.0] + theirs[1:], ours)
        self.assertAlmostEqual(one.median, honest.median, delta=0.002)
        many = stats.ratio([2000.0] * 7 + theirs[7:], ours)
        self.assertGreater(many.median, honest.high)


SHAPE = volume.Shape(4, 2)
MB = 10 ** 6


class Figures(unittest.TestCase):
    def test_volumes(self):
        # Each of 8 ranks has 1 MB for the others; 6 of them are elsewhere.
        gather = volume.VOLUMES["all_gather"]
        self.assertEqual(gather.bus(SHAPE, MB), 7 * MB)
        self.assertEqual(gather.moved(SHAPE, MB), 56 * MB)
        self.assertEqual(gather.node(SHAPE, MB), 6 * MB)
        reduce = volume.VOLUMES["all_reduce"]
        self.assertEqual(reduce.bus(SHAPE, MB), 1.75 * MB)
        self.assertEqual(reduce.node(SHAPE, MB), 1.5 * MB)
        self.assertEqual(volume.VOLUMES["broadcast"].node(
            volume.Shape(1, 4), MB), 0)

    def test_ideal(self):
        rate = fabric.parse_rate("500mbit") / 8 * fabric.GOODPUT
        self.assertAlmostEqual(rate / MB, 59.77, delta=0.01)
        self.assertAlmostEqual(
            volume.ideal_seconds("all_gather", SHAPE, MB, 50 * MB), 0.12)
        self.assertEqual(
            volume.ideal_seconds("all_gather", SHAPE, MB, 0), 0)

    def test_rates(self):
        self.assertEqual(fabric.parse_rate("1.5gbit"), 1500000000)
        self.assertEqual(fabric.parse_rate("none"), 0)
        for text in ("0mbit", "fast", "500", "-1gbit", "5mbits"):
            with self.assertRaises(fabric.LabError):
                fabric.parse_rate(text)

    def test_cell(self):
        setup = types.SimpleNamespace(collective="all_gather", shape=SHAPE,
                                      goodput=50 * MB)
        samples = [job.Sample(single_us=us, mean_us=2 * us, calls=10,
                              cpu_sec=1.12, received=10 * 4 * 6.3 * MB,
                              interfaces=[])
                   for us in (100000, 120000, 140000)]
        cell = report.Cell(setup, MB, samples)
        self.assertEqual(cell.single.median, 120000)
        self.assertAlmostEqual(cell.busbw, 7 * MB / 0.12 / 1e9)
        self.assertAlmostEqual(cell.percent, 50)  # 120 ms of 240
        self.assertAlmostEqual(cell.cpu_per_gb, 2)  # 1.12 s for 0.56 GB
        self.assertAlmostEqual(cell.node_bytes / cell.node_ideal, 1.05)

    def test_picture(self):
        setup = types.SimpleNamespace(
            collective="all_gather", shape=SHAPE, goodput=50 * MB,
            title=lambda: "it's")
        one = contender.parse("hce:window", "all_gather")
        sample = job.Sample(1000, 1000, 1, 1, 1, [])
        table = {MB: {one.name: report.Cell(setup, MB, [sample])}}
        script = report.plot_script(setup, [one], table, "a.svg")
        self.assertIn("'it''s'", script)
        self.assertIn("title 'hce:window'", script)
        self.assertIn("title 'ideal'", script)
        self.assertIn("1000000 7.0 7.0 7.0\n", script)

    def test_sizes(self):
        for size, text in ((1024, "1K"), (3 << 20, "3M"), (1500, "1500")):
            self.assertEqual(report.size_text(size), text)


class Contenders(unittest.TestCase):
    def test_names(self):
        one = contender.parse("hce:malloc:flat", "all_gather")
        self.assertEqual(one.args, ["--buffers", "malloc", "--path", "flat"])
        two = contender.parse("mpi:ob1:ring", "all_reduce")
        self.assertEqual(
            two.environ["OMPI_MCA_coll_tuned_allreduce_algorithm"], "4")
        self.assertEqual(two.environ["OMPI_MCA_pml"], "ob1")
        self.assertEqual(two.environ["OMPI_MCA_btl_tcp_sndbuf"], "262144")
        three = contender.parse("mpi:ucx", "broadcast")
        self.assertEqual(three.environ["UCX_TCP_RCVBUF"], "524288")
        for collective in volume.VOLUMES:
            for name in contender.default_names(collective):
                contender.parse(name, collective)

    def test_refused(self):
        for name in ("hce", "hce:stack", "mpi", "mpi:cm", "mpi:ob1:fast",
                     "mpi:ob1:ring:ring", "gasnet:x", "hce:malloc:a:b"):
            with self.assertRaises(ValueError, msg=name):
                contender.parse(name, "all_gather")

    def test_wrong_data_is_an_error(self):
        place = types.SimpleNamespace(bytes=list, command=list)
        cell = {"single_us": 1.0, "time_us": 1.0, "calls": 5, "cpu_sec": 0.1,
                "net_received": 0, "wrong": 0}
        what = job.What(contender.parse("mpi:ob1", "all_gather"),
                        "all_gather", 1024, 1)
        with mock.patch.object(job, "mpi_cell", return_value=cell):
            self.assertEqual(job.run(place, "", what).calls, 5)
            cell["wrong"] = 1
            with self.assertRaisesRegex(job.JobError, "1 wrong"):
                job.run(place, "", what)


class Order(unittest.TestCase):
    def names(self, pairs, seconds, ticks):
        compare = load_compare()
        args = types.SimpleNamespace(
            pairs=pairs, seconds=seconds, builddir="", milliseconds=1,
            collective="all_gather")
        contenders = [contender.parse(name, "all_gather")
                      for name in ("hce:window", "mpi:ob1", "mpi:ucx")]
        ran = []

        def run(_place, _builddir, what):
            ran.append(what.contender.name)

        with mock.patch.object(compare.job, "run", run), \
                mock.patch.object(compare.time, "monotonic",
                                  side_effect=ticks):
            compare.measure_size(None, args, contenders, 1024)
        return ran

    def test_there_and_back(self):
        one = ["hce:window", "mpi:ob1", "mpi:ucx"]
        self.assertEqual(self.names(3, 60, [0] * 9), one + one[::-1] + one)

    def test_time_is_up(self):
        self.assertEqual(len(self.names(50, 60, [0, 10, 61])), 9)
        self.assertEqual(len(self.names(50, 60, [0, 61, 62])), 6)

    def test_arguments(self):
        compare = load_compare()
        for text in ("--sizes 3", "--sizes 1T", "--nodes 2", "hce:window",
                     "hce:window hce:window", "--pairs 0", "hce:x mpi:ob1",
                     "--builddir /nonexistent"):
            with contextlib.redirect_stderr(io.StringIO()), \
                    self.assertRaises(SystemExit, msg=text) as caught:
                compare.main(text.split())
            self.assertEqual(caught.exception.code, 2)


if __name__ == "__main__":
    unittest.main()
