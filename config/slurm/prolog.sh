#!/bin/bash
# Slurm's Prolog, or its HealthCheckProgram: drains a node whose RDMA is not fit for a
# job, with what is wrong as the reason. In slurm.conf:
#
#   Prolog=/usr/share/rdmaradar/slurm/prolog.sh
#
# Status 1 tells slurmd that the prolog failed, so that the job is queued again. What
# cannot be told drains nothing: a check that is missing, crashes, sees nothing or does
# not end is said in slurmd's log, and the job starts.
set -uo pipefail

# slurmd sets no search path (https://slurm.schedmd.com/prolog_epilog.html). Where Slurm
# is elsewhere, run a copy of this with its directory added.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin

# The check ends within 2 s, on a busy node later, and scontrol waits for a controller
# that is away; seconds for each.
readonly limit=5

# check prints what the check says, and in a line of its own its status. KILL ends one
# that hangs, but not one that a driver holds in the kernel: who reads must not wait, so
# nothing here keeps slurmd's log open, also not to restore it, as `} 2>&1` would.
check() {
	exec 2>&1
	timeout --signal=KILL "$limit" rdmaradar doctor --node-health
	printf '\nstatus %d\n' "$?"
}

# keeps_reason tells whether a node has a reason that is not to be overwritten, as it may be
# an administrator's: it is drained, down or failing. Of the line that scontrol prints the
# first State counts, what follows may be anybody's comment. Such as * and ~ behind a part
# of it say more about the node.
keeps_reason() {
	local part parts
	[[ $1 =~ (^|\ )State=([^\ ]*) ]] || return 1
	IFS=+ read -ra parts <<<"${BASH_REMATCH[2]}"
	for part in "${parts[@]}"; do
		case ${part%%[!A-Z_]*} in
		DRAIN | DRAINED | DRAINING | DOWN | FAIL | FAILING) return 0 ;;
		esac
	done
	return 1
}

# drain names the reason. Without it the node would be drained for a "Prolog error". Where
# the state of the node cannot be had, it is drained too: it is not fit.
drain() {
	local node=${SLURMD_NODENAME:-$(hostname --short)} shown
	shown=$(timeout --signal=KILL "$limit" scontrol --oneliner show node "$node")
	keeps_reason "$shown" && return
	timeout --signal=KILL "$limit" scontrol update "NodeName=$node" State=DRAIN "Reason=rdmaradar: $1" ||
		echo "rdmaradar: scontrol did not take the reason, status $?: $1" >&2
}

main() {
	local line unfit='' status=137 # Unless the check ends.
	while IFS= read -r -t $((limit + 2)) line; do
		line=${line//[^[:print:]]/ }
		case $line in
		'' | healthy*) ;;
		'not healthy'*) unfit=${unfit:-$line} ;;
		'status '[0-9]*) status=${line#status } ;;
		*) echo "$line" >&2 ;; # It says why, on its standard error.
		esac
	done < <(check)
	case $status:$unfit in
	0:*) return 0 ;;
	1:?*)
		echo "rdmaradar: this node is not fit: $unfit" >&2
		drain "${unfit:0:200}"
		return 1
		;;
	2:*) echo "rdmaradar: nothing was seen of this node, and the job starts" >&2 ;;
	137:*) echo "rdmaradar: the check of this node did not end within $limit s, and the job starts" >&2 ;;
	*) echo "rdmaradar: the check of this node could not run, status $status, and the job starts" >&2 ;;
	esac
}

main
