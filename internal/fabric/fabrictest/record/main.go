//go:build linux

// Command record writes what the RDMA netlink family of this machine answers
// into a directory, one file for each message of each dump: the recordings in
// internal/fabric/testdata/nldev were made with it.
//
//	record DIR
package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// The numbers of include/uapi/rdma/rdma_netlink.h.
const (
	client      = 5
	deviceIndex = 1
	maxDevices  = 64
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: record DIR")
		os.Exit(2)
	}
	if err := record(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "record:", err)
		os.Exit(1)
	}
}

func record(directory string) error {
	conn, err := netlink.Dial(unix.NETLINK_RDMA, nil)
	if err != nil {
		return fmt.Errorf("open an RDMA netlink socket: %w", err)
	}
	defer func() { _ = conn.Close() }()
	if err := dump(conn, directory, "device", 1, 0); err != nil {
		return fmt.Errorf("dump the devices: %w", err)
	}
	for name, command := range map[string]uint16{"qp": 10, "cq": 12, "mr": 13} {
		for index := range uint32(maxDevices) {
			err := dump(conn, directory, fmt.Sprintf("%s-%d", name, index), command, index)
			if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENODEV) {
				continue
			}
			if err != nil {
				return fmt.Errorf("dump %s of device %d: %w", name, index, err)
			}
		}
	}
	return nil
}

func dump(conn *netlink.Conn, directory, name string, command uint16, index uint32) error {
	encoder := netlink.NewAttributeEncoder()
	encoder.Uint32(deviceIndex, index)
	request, err := encoder.Encode()
	if err != nil {
		return err
	}
	messages, err := conn.Execute(netlink.Message{
		Header: netlink.Header{Type: netlink.HeaderType(client<<10 | command), Flags: netlink.Request | netlink.Dump},
		Data:   request,
	})
	if err != nil {
		return err
	}
	for i, message := range messages {
		path := filepath.Join(directory, fmt.Sprintf("%s-%d.bin", name, i))
		if err := os.WriteFile(path, message.Data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
