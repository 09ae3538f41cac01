#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# N network namespaces on one bridge, each limited to RATE both ways, as hosts at one switch with jumbo frames. Needs root.
#   net.sh up N [RATE]      node i, from 0, is 10.98.0.(i+1) in namespace ppn<i>; no RATE: unlimited
#   net.sh rate I RATE      of one node
#   net.sh down N
#   net.sh shape DEVICE RATE NAMESPACE      what leaves a device (sites.py)
# Packets are real ones of 9000 bytes: segmentation offload would let 64 KiB cross a shaper at once. There is no saved-up burst,
# a port queues 300 KB, and small packets (acknowledgements) do not stand behind large ones. TCP carries some 0.99 of RATE.
set -euo pipefail

usage() { sed -n '4,7p' "$0" >&2; exit 2; }

# shape DEVICE RATE [NAMESPACE]: what leaves DEVICE.
shape() {
  local tc=(${3:+ip netns exec "$3"} tc)
  "${tc[@]}" qdisc del dev "$1" root 2>/dev/null || true
  "${tc[@]}" qdisc add dev "$1" root handle 1: htb default 20
  "${tc[@]}" class add dev "$1" parent 1: classid 1:1 htb rate "$2" burst 9k cburst 9k quantum 60000
  "${tc[@]}" class add dev "$1" parent 1:1 classid 1:10 htb rate "$2" burst 9k cburst 9k prio 0 quantum 60000
  "${tc[@]}" class add dev "$1" parent 1:1 classid 1:20 htb rate 8kbit ceil "$2" burst 9k cburst 9k prio 1 quantum 60000
  "${tc[@]}" qdisc add dev "$1" parent 1:10 bfifo limit 100000
  "${tc[@]}" qdisc add dev "$1" parent 1:20 bfifo limit 300000
  "${tc[@]}" filter add dev "$1" parent 1: protocol ip prio 1 u32 match u16 0x0000 0xff80 at 2 flowid 1:10
}
both() { shape "ppv$1" "$2"; shape eth0 "$2" "ppn$1"; }

[[ $# -ge 2 ]] || usage
case $1 in
  up)
    ip link add ppbr type bridge mcast_snooping 0
    ip link set ppbr mtu 9000 up
    for ((i = 0; i < $2; ++i)); do
      ip netns add "ppn$i"
      ip link add "ppv$i" type veth peer name eth0 netns "ppn$i"
      ip link set "ppv$i" mtu 9000 gso_max_segs 1 master ppbr up
      ip -n "ppn$i" link set eth0 mtu 9000 gso_max_segs 1
      ip -n "ppn$i" addr add "10.98.0.$((i + 1))/24" brd + dev eth0
      ip -n "ppn$i" link set eth0 up
      ip -n "ppn$i" link set lo up
      [[ -z ${3:-} ]] || both "$i" "$3"
    done
    ;;
  rate) [[ $# -eq 3 ]] || usage; both "$2" "$3" ;;
  shape) [[ $# -eq 4 ]] || usage; shape "$2" "$3" "$4" ;;
  down)
    for ((i = 0; i < $2; ++i)); do ip netns del "ppn$i" 2>/dev/null || true; done
    ip link del ppbr 2>/dev/null || true
    ;;
  *) usage ;;
esac
