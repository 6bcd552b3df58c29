#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) the libhce authors
#
# Inside the machine: what needs queue pairs. Nodes are made believe, each
# with a device of its own: node i has n(i+1). The ranks' control connections
# go over loopback, so that only the RDMA traffic sees what is done to links.
#   suite.sh [CASE...]
# environment: builddir
set -u
export LC_ALL=C LD_LIBRARY_PATH=$builddir/.libs
export HCE_SOCKET_IFNAME=lo HCE_TIMEOUT=60s HCE_BOOTSTRAP_TIMEOUT=60s
export HCE_LOG=info,proxy:debug
# rc_verbs of UCX before 1.19 over soft-RoCE: its check drops every datagram,
# and seven retries would be for ever.
export UCX_UD_VERBS_ETH_DGID_CHECK=n UCX_RC_VERBS_RETRY_COUNT=6
TMPDIR=$(mktemp -d) && export TMPDIR
perf=$builddir/perf/hce_perf
failures=0 port=29500

fail() {
    echo "FAILED: $case: $*"
    tail -n ${lines:-12} "$TMPDIR/$case".* 2>/dev/null | cut -c 1-250
    failures=$((failures + 1))
}

# job RANKS NODES ARG...: starts hce_perf as so many processes, each on its
# node's device, or on $devices; their pids in $pids.
job() {
    local ranks=$1 nodes=$2 rank
    shift 2

    port=$((port + 20)) pids=()
    rm -f "$TMPDIR/$case".*
    for ((rank = 0; rank < ranks; rank++)); do
        n=n$((rank * nodes / ranks + 1))
        RANK=$rank LOCAL_RANK=$rank WORLD_SIZE=$ranks MASTER_PORT=$port \
            MASTER_ADDR=127.0.0.1 HCE_VERBS_DEVICES=${devices-$n} \
            UCX_NET_DEVICES=$n:1 timeout -k 2 120 "$perf" all_gather \
            --nodes "$nodes" "$@" >"$TMPDIR/$case.$rank" \
            2>"$TMPDIR/$case.$rank.err" &
        pids+=($!)
    done
}

# ended: all ranks did well, and no byte is wrong.
ended() {
    local pid status=0

    for pid in "${pids[@]}"; do
        wait "$pid" || status=$?
    done
    [ $status -eq 0 ] || fail "exit status $status"
    grep -q '^# Verdict: OK, 0 wrong in [0-9]' "$TMPDIR/$case.0" ||
        fail "no verdict OK"
}

# failed PATTERN [BUT]: every rank did badly, and all but BUT say PATTERN.
failed() {
    local rank

    for rank in "${!pids[@]}"; do
        wait "${pids[rank]}" && fail "rank $rank noticed nothing"
        [ "$rank" = "${2-}" ] ||
            grep -qE "$1" "$TMPDIR/$case.$rank" "$TMPDIR/$case.$rank.err" ||
            fail "rank $rank does not say '$1'"
    done
}

said() { # PATTERN
    grep -qE "$1" "$TMPDIR/$case".*.err || fail "nobody says '$1'"
}

packets() { # DEVICE
    cat /sys/class/infiniband/"$1"/ports/1/hw_counters/sent_pkts
}

# moving DEVICE: waits until the job, which has begun before, is at work.
moving() {
    local from i

    for i in {1..600}; do
        grep -q '#wrong' "$TMPDIR/$case.0" && break
        sleep 0.05
    done
    from=$(packets "$1")
    for i in {1..600}; do
        [ $(($(packets "$1") - from)) -gt 100 ] && return
        sleep 0.02
    done
    fail "nothing moves on $1"
}

# What takes long enough to be interrupted.
long=(-b 512K -e 512K -n 150 --out-of-place --path direct)

unit_transport() {
    "$builddir/tests/unit/rma_proxy_transport_verbs" \
        >"$TMPDIR/$case.log" 2>&1 || fail "exit status $?"
}

# An op of four requests fills such a queue.
unit_short_queue() {
    HCE_VERBS_QUEUE=4 "$builddir/tests/unit/rma_proxy_transport_verbs" \
        >"$TMPDIR/$case.log" 2>&1 || fail "exit status $?"
}

unit_failure() {
    "$builddir/tests/unit/rma_proxy_failure_verbs" \
        >"$TMPDIR/$case.log" 2>&1 || fail "exit status $?"
}

all_paths() {
    job 8 4 --path each -b 8K -e 512K -f 64 -n 3
    ended
    said 'transport verbs: '
}

ucx_rc() {
    HCE_TRANSPORT=ucx UCX_TLS=rc_verbs,ud_verbs:aux,self HCE_NUM_CTX=1 \
        job 8 4 -b 8K -e 512K -f 64 -n 2
    ended
    said 'transport ucx: .*rc_verbs'
}

loss() {
    local i

    for i in 1 2 3 4; do
        tc qdisc add dev p$i root netem loss 2%
    done
    job 8 4 -b 512K -e 512K -n 5
    ended
    for i in 1 2 3 4; do
        tc qdisc del dev p$i root
    done
}

flap() {
    job 4 4 "${long[@]}"
    moving n2
    ip link set p2 down
    sleep 3
    ip link set p2 up
    ended
    said 'verbs: rank [0-9], context [0-9] goes on over'
}

# Data arrive, what says so does not.
lost_acks() {
    job 2 2 "${long[@]}" -n 400
    moving n1
    tc qdisc add dev p2 root netem loss 100%
    sleep 2
    tc qdisc del dev p2 root
    ended
    said 'verbs: rank [0-9], context [0-9] goes on over'
}

down_for_good() {
    HCE_SILENCE=4s job 4 4 "${long[@]}"
    moving n3
    ip link set p3 down
    failed 'n3 port 1'
    ip link set p3 up
}

killed() {
    job 8 4 "${long[@]}"
    moving n1
    kill -KILL "$(pgrep -P "${pids[5]}")"
    failed 'rank 5' 5
}

# All ranks have two ports, and one goes.
two_ports() {
    devices=n1,n2 job 4 4 "${long[@]}" --contexts 2
    moving n1
    ip link set p1 down
    ended
    said 'goes on over n2 port 1'
    ip link set p1 up
}

remap() {
    HCE_TRANSPORT=verbs "$builddir/tests/job/remap" >"$TMPDIR/$case.log" \
        2>&1 || fail "exit status $?"
}

[ $# -gt 0 ] || set -- unit_transport unit_short_queue unit_failure all_paths \
    ucx_rc loss flap lost_acks down_for_good killed two_ports remap
for case; do
    begin=$SECONDS before=$failures
    "$case"
    [ $failures -gt $before ] || echo "ok $case, $((SECONDS - begin)) s"
done
rm -rf "$TMPDIR"
echo "$# cases, $failures failures"
[ $failures -eq 0 ]
