// Package bpf holds the kernel side: the C sources of the programs and what
// bpf2go makes of them. The generated files and objects are committed, so that
// building the receiver needs no clang.
package bpf

//go:generate go tool -modfile=../internal/tools/go.mod bpf2go -go-package bpf -output-stem tracker -cc clang-19 -strip llvm-strip-19 -target amd64,arm64 -type queue_key -type queue -type entry -type segment -type cq_key -type cq -type device -type baseline -type series_key -type series -type rejected_key -type counter -type library -type slow_event -type scheduling -type stand_in -type scheduling_known -type cqe_sample -type control_kind -type control_event -type process -type queue_end -type queue_sync -type entry_state -type stage -type site -type site_place -type site_location -type site_override -type site_place_kind -type poll_function -type poller -type post_function -type hit -type extended_key -type extended_set -type extended_reader -type extended_cq -type extended_kind -type extended_refusal -type extended_role -type qp_function -type cq_function Tracker tracker.bpf.c -- -I. -Wall -Wextra -Werror -Wno-unused-parameter -Wno-missing-braces -mcpu=v3

//go:generate go tool -modfile=../internal/tools/go.mod bpf2go -go-package bpf -output-stem resources -cc clang-19 -strip llvm-strip-19 -target amd64,arm64 -type device_label -type kernel_qp_key -type kernel_qp -type kernel_cq -type async_event -type region_key -type region -type registrations_key -type registrations -type memory_kind Resources resources.bpf.c -- -I. -Wall -Wextra -Werror -Wno-unused-parameter -Wno-missing-braces -mcpu=v3

//go:generate go tool -modfile=../internal/tools/go.mod bpf2go -go-package bpf -output-stem kverbs -cc clang-19 -strip llvm-strip-19 -target amd64,arm64 -type driver_verbs -type consumer_name -type call Kverbs kverbs.bpf.c -- -I. -Wall -Wextra -Werror -Wno-unused-parameter -Wno-missing-braces -mcpu=v3
