#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# hce_perf in the environment that torchrun gives its workers: the agent's
# store listens on MASTER_PORT as long as the job runs, and may not be
# disturbed. Names and values are those of torch/distributed/elastic/agent/
# server/local_elastic_agent.py of PyTorch 2.
. "$srcdir/tests/job/perf_lib.sh"

mkfifo "$TMPDIR/stdin"
"$builddir/tests/job/foreign_port" <"$TMPDIR/stdin" >"$TMPDIR/store" &
store=$!
exec 9>"$TMPDIR/stdin"
until_seen '[0-9]' "$TMPDIR/store"
port=$(head -n 1 "$TMPDIR/store")

# worker NAME RANK LOCAL-RANK GROUP RESTART ADDR ARG...: one of 4, on 2
# machines of 2.
worker() {
    local name=$1 rank=$2 local=$3 group=$4 restart=$5 addr=$6
    shift 6

    env LOCAL_RANK="$local" RANK="$rank" GROUP_RANK="$group" \
        ROLE_RANK="$rank" ROLE_NAME=default LOCAL_WORLD_SIZE=2 \
        WORLD_SIZE=4 GROUP_WORLD_SIZE=2 ROLE_WORLD_SIZE=4 \
        MASTER_ADDR="$addr" MASTER_PORT="$port" \
        TORCHELASTIC_RESTART_COUNT="$restart" \
        TORCHELASTIC_MAX_RESTARTS=3 TORCHELASTIC_RUN_ID=none \
        TORCHELASTIC_USE_AGENT_STORE=True TORCH_NCCL_ASYNC_ERROR_HANDLING=1 \
        TORCHELASTIC_ERROR_FILE="$TMPDIR/$name.$rank.json" \
        OMP_NUM_THREADS=1 "$perf" all_gather "$@" \
        >"$TMPDIR/$name.$rank" 2>"$TMPDIR/$name.$rank.err" 9>&-
}

# agent NAME GROUP RESTART ADDR ARG...: starts its workers, waits for them.
agent() {
    local name=$1 group=$2 restart=$3 addr=$4 local pids=() failed=0
    shift 4

    for local in 0 1; do
        worker "$name" $((2 * group + local)) "$local" "$group" "$restart" \
            "$addr" "$@" &
        pids+=($!)
    done
    for local in "${pids[@]}"; do
        wait "$local" || failed=1
    done
    return $failed
}

# job NAME RESTART ADDR ROWS ARG...: both agents, the second in a session of
# its own, as on another machine.
job() {
    local name=$1 restart=$2 addr=$3 rows=$4 other
    shift 4

    checks=$((checks + 1))
    status=0
    setsid bash -c "$(declare -f worker agent); agent \"\$@\"" agent \
        "$name" 1 "$restart" "$addr" "$@" 9>&- &
    other=$!
    agent "$name" 0 "$restart" "$addr" "$@" || status=1
    wait "$other" || status=1
    cp "$TMPDIR/$name.0" "$out"
    cat "$TMPDIR/$name".*.err >"$err"
    is_good "$rows" 4 "$name"
}

export perf port TMPDIR
job named 0 localhost 3 -b 8 -e 2M -f 512 -n 5
# The agents start their workers again, on the same port.
job again 1 127.0.0.1 1 -b 4K -e 4K -n 5
job nodes 2 localhost 1 --nodes 2 -b 4097 -e 4097 -d int8 --per-rank -n 5
! grep -q called "$TMPDIR/store" || fail "the agent's store was called"
exec 9>&-
wait "$store"
finish
