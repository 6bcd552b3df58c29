#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# hce_perf as processes that know each other by RANK, WORLD_SIZE, MASTER_ADDR
# and MASTER_PORT. The port is taken by a foreign listener, as torchrun's is by
# its store.
. "$srcdir/tests/job/perf_lib.sh"

# A listener that lives until its input ends; $port is where.
mkfifo "$TMPDIR/stdin1" "$TMPDIR/stdin2"
"$builddir/tests/job/foreign_port" <"$TMPDIR/stdin1" >"$TMPDIR/port1" &
"$builddir/tests/job/foreign_port" <"$TMPDIR/stdin2" >"$TMPDIR/port2" &
exec 8>"$TMPDIR/stdin1" 9>"$TMPDIR/stdin2"
until_seen '[0-9]' "$TMPDIR/port1"
until_seen '[0-9]' "$TMPDIR/port2"

# job NAME RANKS PORT ARG...: starts the processes; their pids in $started.
job() {
    local name=$1 ranks=$2 port=$3 rank
    shift 3

    started=()
    for ((rank = 0; rank < ranks; rank++)); do
        RANK=$rank LOCAL_RANK=$rank WORLD_SIZE=$ranks \
            MASTER_ADDR=127.0.0.1 MASTER_PORT=$port \
            "$perf" all_gather "$@" >"$TMPDIR/$name.$rank" \
            2>"$TMPDIR/$name.$rank.err" 8>&- 9>&- &
        started+=($!)
    done
}

# ended NAME ROWS RANKS PID...: the job was good.
ended() {
    local name=$1 rows=$2 ranks=$3 pid
    shift 3

    checks=$((checks + 1))
    status=0
    for pid; do
        wait "$pid" || status=$?
    done
    cp "$TMPDIR/$name.0" "$out"
    cat "$TMPDIR/$name".*.err >"$err"
    is_good "$rows" "$ranks" "$name"
}

port1=$(head -n 1 "$TMPDIR/port1") port2=$(head -n 1 "$TMPDIR/port2")
job one 4 "$port1" -b 8 -e 2M -f 512 -n 5
ended one 3 4 "${started[@]}"

# Two jobs at once, each behind a store of its own.
job left 4 "$port1" --nodes 2 -b 4097 -e 4097 -d int8 --per-rank -n 5
left=("${started[@]}")
job right 3 "$port2" --nodes 2,1 -b 4K -e 4K -n 5
ended right 1 3 "${started[@]}"
ended left 1 4 "${left[@]}"

# A rank that gets no company says for what it waited.
bad 1 'hce_comm_create' env RANK=0 WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 \
    MASTER_PORT="$port1" HCE_BOOTSTRAP_TIMEOUT=1s "$perf" all_gather
exec 8>&- 9>&-
wait
finish
