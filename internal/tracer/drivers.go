package tracer

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// verb is one of a driver's functions on the data path.
type verb int

const (
	verbPostSend verb = iota
	verbPostRecv
	verbPostSRQRecv
	verbPollCQ
	numVerbs
)

// driver is the verbs of a kernel module, by the names of their functions; "" is
// a verb that it has not.
type driver struct {
	module    string
	functions [numVerbs]string
}

// knownDrivers are the functions that the drivers of Linux 6.1 to 7.2 put into
// their struct ib_device_ops (drivers/infiniband/hw and sw). They are probed as
// soon as the module is loaded, so that the queues of its first device are seen
// from their start. A driver that is missing here, or has its functions renamed,
// is found by its first device. What mlx5 has there are inline functions, which
// cannot be probed; each does no more than call the one of this table.
var knownDrivers = []driver{
	{"mlx5_ib", [numVerbs]string{"mlx5_ib_post_send", "mlx5_ib_post_recv", "mlx5_ib_post_srq_recv", "mlx5_ib_poll_cq"}},
	{"mlx4_ib", [numVerbs]string{"mlx4_ib_post_send", "mlx4_ib_post_recv", "mlx4_ib_post_srq_recv", "mlx4_ib_poll_cq"}},
	{"irdma", [numVerbs]string{"irdma_post_send", "irdma_post_recv", "", "irdma_poll_cq"}},
	{"bnxt_re", [numVerbs]string{"bnxt_re_post_send", "bnxt_re_post_recv", "bnxt_re_post_srq_recv", "bnxt_re_poll_cq"}},
	{"rdma_rxe", [numVerbs]string{"rxe_post_send", "rxe_post_recv", "rxe_post_srq_recv", "rxe_poll_cq"}},
	{"siw", [numVerbs]string{"siw_post_send", "siw_post_receive", "siw_post_srq_recv", "siw_poll_cq"}},
	{"erdma", [numVerbs]string{"erdma_post_send", "erdma_post_recv", "", "erdma_poll_cq"}},
	{"hns_roce_hw_v2", [numVerbs]string{"hns_roce_v2_post_send", "hns_roce_v2_post_recv", "hns_roce_v2_post_srq_recv", "hns_roce_v2_poll_cq"}},
	{"iw_cxgb4", [numVerbs]string{"c4iw_post_send", "c4iw_post_receive", "c4iw_post_srq_recv", "c4iw_poll_cq"}},
	{"qedr", [numVerbs]string{"qedr_post_send", "qedr_post_recv", "qedr_post_srq_recv", "qedr_poll_cq"}},
	{"ocrdma", [numVerbs]string{"ocrdma_post_send", "ocrdma_post_recv", "ocrdma_post_srq_recv", "ocrdma_poll_cq"}},
	{"vmw_pvrdma", [numVerbs]string{"pvrdma_post_send", "pvrdma_post_recv", "", "pvrdma_poll_cq"}},
	{"rdmavt", [numVerbs]string{"rvt_post_send", "rvt_post_recv", "rvt_post_srq_recv", "rvt_poll_cq"}},
}

// moduleInode identifies a loaded module: one that is loaded anew has another
// directory. It is 0 for one that is not loaded.
func moduleInode(directory, module string) uint64 {
	var stat unix.Stat_t
	if err := unix.Stat(filepath.Join(directory, module), &stat); err != nil {
		return 0
	}
	return stat.Ino
}

// portStates returns the files whose reading asks a device's driver for the
// state of a port, one of each device.
func portStates(directory string) ([]string, error) {
	devices, err := os.ReadDir(directory)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing RDMA devices: %w", err)
	}
	var files []string
	for _, d := range devices {
		files = append(files, filepath.Join(directory, d.Name(), "ports", "1", "state"))
	}
	return files, nil
}
