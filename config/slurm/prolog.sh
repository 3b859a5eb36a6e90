#!/bin/bash
# Slurm's Prolog, or its HealthCheckProgram: drains a node whose RDMA is not fit for a
# job, with what is wrong as the reason. In slurm.conf:
#
#   Prolog=/usr/share/rdmaradar/slurm/prolog.sh
#
# Status 1 tells slurmd that the prolog failed, so that the job is queued again. What
# cannot be told drains nothing: a check that is missing, crashes or does not end is
# said in slurmd's log, and the job starts.
set -uo pipefail

# slurmd sets no search path (https://slurm.schedmd.com/prolog_epilog.html). Where Slurm
# is elsewhere, run a copy of this with its directory added.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

# The check ends within 2 s on a busy node; seconds.
readonly limit=5

# check prints what the check says, and in a line of its own its status. KILL ends one
# that hangs, but not one that a driver holds in the kernel: who reads must not wait.
check() {
	timeout --signal=KILL "$limit" rdmaradar doctor --node-health 2>/dev/null
	echo "$?"
}

# drain names the reason. Without it the node would be drained for a "Prolog error". A
# node that is drained keeps the reason that it has: it may be an administrator's.
drain() {
	local node=${SLURMD_NODENAME:-$(hostname --short)}
	[[ $(scontrol --oneliner show node "$node") =~ \ State=[^\ ]*DRAIN ]] && return
	scontrol update "NodeName=$node" State=DRAIN "Reason=rdmaradar: $1" ||
		echo "rdmaradar: scontrol did not take the reason: $1" >&2
}

main() {
	local line lines=() status
	while IFS= read -r -t $((limit + 2)) line; do
		lines+=("$line")
	done < <(check)
	# The last one is the status, unless the check never ended.
	((${#lines[@]} > 0)) || lines=(137)
	status=${lines[-1]}
	if [[ $status == 137 ]]; then
		echo "rdmaradar: the check of this node did not end within $limit s" >&2
		return 0
	fi
	[[ $status == 0 ]] && return 0
	# 1 with a line is a node that is not fit; all else is the check's own end.
	if ((${#lines[@]} < 2)) || [[ $status != 1 ]]; then
		echo "rdmaradar: the check of this node could not run, status $status" >&2
		return 0
	fi
	line=${lines[0]//[^[:print:]]/ }
	echo "rdmaradar: this node is not fit: $line" >&2
	drain "${line:0:200}"
	return 1
}

main
